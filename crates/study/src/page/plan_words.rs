//! What a plan does, in a few words: what it holds and what it varies.

use toml::Value;
use weigh_model::plan::Plan;
use weigh_model::units::{parse_duration, parse_size};
use weigh_report::figures::{bytes, count, time};

use crate::plans::Planned;

/// A plan as a list of what it holds and varies, such as `arrival closed`,
/// `connections 5, 10 ... 60 (12)`, `3 repetitions`.
pub(super) fn words(planned: &Planned) -> Vec<String> {
    let plan = &planned.resolved.plan;
    let mut words = Vec::new();
    for key in plan.cases.iter().flat_map(|case| case.keys()).fold(Vec::new(), distinct) {
        let values = plan.cases.iter().filter_map(|case| case.get(key)).fold(Vec::new(), distinct);
        let short = key.strip_prefix("load.").unwrap_or(key);
        words.push(format!("{short} {}", listed(&values)));
    }
    words.extend(held(plan));
    if let Some(search) = &planned.search {
        words.push(format!("searched along {}", search.kind().name()));
        if !search.goals.is_empty() {
            words.push(format!("goal {}", search.goals.join(", ")));
        }
    }
    let repetitions = plan.repeat.at_least;
    words.push(match repetitions {
        1 => "one repetition".to_owned(),
        more => format!("{more} repetitions"),
    });
    words
}

/// What the load holds for all cases, as far as a reader must know it.
fn held(plan: &Plan) -> Vec<String> {
    let Ok(Value::Table(load)) = Value::try_from(&plan.load) else { return Vec::new() };
    let is_varied = |key: &str| {
        let whole = format!("load.{key}");
        plan.cases.iter().any(|case| case.contains_key(&whole))
    };
    let shown = SHOWN.iter().filter(|key| !is_varied(key));
    let shown = shown.filter_map(|key| Some((key, load.get(*key)?)));
    shown
        .map(|(key, value)| (key, plain(value)))
        .filter(|(_, value)| !value.is_empty() && !["0", "0s"].contains(&value.as_str()))
        .map(|(key, value)| format!("{key} {value}"))
        .collect()
}

fn distinct<'v, V: PartialEq>(mut known: Vec<&'v V>, value: &'v V) -> Vec<&'v V> {
    if !known.contains(&value) {
        known.push(value);
    }
    known
}

/// Few values in full, of many the ends and their number.
fn listed(values: &[&Value]) -> String {
    let texts: Vec<String> = values.iter().map(|value| plain(value)).collect();
    match &texts[..] {
        [first, second, .., last] if texts.len() > VALUES_MAX => {
            format!("{first}, {second} … {last} ({})", texts.len())
        }
        few => few.join(", "),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => readable(text),
        Value::Integer(number) => u64::try_from(*number).map_or(number.to_string(), count),
        Value::Table(_) | Value::Array(_) => String::new(),
        other => other.to_string(),
    }
}

/// Sizes and times as people write them, and no more of long texts than tells them apart.
fn readable(text: &str) -> String {
    match (parse_size(text), parse_duration(text)) {
        (Ok(size), _) if size > 0 && size.is_multiple_of(1024) => bytes(size as f64),
        // Two units: `1ms 600us`.
        (_, Ok(duration)) if text.contains(' ') => time(duration.0 as f64, false),
        _ if text.chars().count() > TEXT_MAX => text.chars().take(TEXT_MAX).chain(['…']).collect(),
        _ => text.to_owned(),
    }
}

/// Keys of a load that say most about it.
const SHOWN: [&str; 11] = [
    "pattern",
    "arrival",
    "connections",
    "subscribers",
    "rate",
    "messages",
    "duration",
    "window",
    "think",
    "size",
    "timeout",
];

/// More values than this are not listed one by one.
const VALUES_MAX: usize = 6;

/// Characters of a text.
const TEXT_MAX: usize = 48;

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn sizes_and_times_are_those_that_people_write() {
        for (text, shown) in [
            ("4026531840B", "3.75 GiB"),
            ("1ms 600us", "1.60 ms"),
            ("5s", "5s"),
            ("32000B", "32000B"),
            ("reference", "reference"),
            ("17Mbit/s", "17Mbit/s"),
        ] {
            assert_eq!(readable(text), shown);
        }
        assert_eq!(readable(&"x".repeat(60)).chars().count(), 49);
    }
}
