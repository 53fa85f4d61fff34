//! The names of figures in a condition: flat names of the summary (`response_time_ns.p99`), the
//! words of k6 (`response_time p(95)`) and short names (`p99`, `loss`, `cpu`).

use std::borrow::Cow;

use crate::metrics::time_names;

/// Returns the flat name of what is written as `p99.9`, `response_time p(95)`,
/// `response_time_ns.p95` or `loss`.
///
/// # Errors
/// The mistake, and what to type instead.
pub(super) fn metric(text: &str) -> Result<String, String> {
    let (name, statistic) = parts(text);
    if statistic.is_none() || statistic == Some("rate") {
        if let Some((_, full)) = SHORT.iter().find(|(short, _)| *short == name) {
            return Ok((*full).to_owned());
        }
        if let Some(part) = part_of(name) {
            return Ok(format!("{HEADLINE}.{part}"));
        }
    }
    let Some(full) = time(name) else {
        return match statistic {
            None => Ok(name.to_owned()),
            Some(part) if text.contains(char::is_whitespace) => {
                Err(format!("{name} has no part {part:?}: only times have quantiles; type {name}"))
            }
            Some(part) => Ok(format!("{name}.{part}")),
        };
    };
    match statistic {
        Some(words) => {
            let part = part_of(words).ok_or_else(|| {
                format!(
                    "{words:?} is not a statistic of a time: type p50, p99, p99.9 or another \
                     quantile, avg, med or max"
                )
            })?;
            Ok(format!("{full}.{part}"))
        }
        None => Err(format!(
            "{name} needs a statistic before the comparison: type \"{name} p(95)\", or avg, \
                 med or max in place of p(95)"
        )),
    }
}

/// Splits into name and statistic: `response_time p(95)`, `response_time_ns.p95`, `p99.9`, `p(99)`.
fn parts(text: &str) -> (&str, Option<&str>) {
    if part_of(text).is_some() {
        return (text, None);
    }
    if let Some((name, statistic)) = text.split_once(char::is_whitespace) {
        return (name, Some(statistic.trim()));
    }
    match text.split_once('.') {
        Some((name, statistic)) => (name, Some(statistic)),
        None => (text, None),
    }
}

/// The flat name of a recorded time, with or without its unit.
fn time(name: &str) -> Option<String> {
    if name == "latency" || name == HEADLINE {
        return Some(HEADLINE.to_owned());
    }
    let is_short = |time: &&str| time.strip_suffix("_ns") == Some(name) || *time == name;
    time_names().find(is_short).map(str::to_owned).or_else(|| {
        // A time that is not in the list keeps its name: whether there is one is checked later.
        name.ends_with("_ns").then(|| name.to_owned())
    })
}

/// The part of a metric's name for a statistic: `p(99.9)`, `p99.9` and `p999` are `p999`, `avg` is
/// `mean`. A quantile without a point is one of percent up to two digits, and a decimal fraction
/// from three on, as in names of metrics.
fn part_of(words: &str) -> Option<String> {
    let plain: String = words.chars().filter(|c| !c.is_whitespace()).collect();
    match plain.as_str() {
        "avg" | "mean" => return Some("mean".to_owned()),
        "med" | "median" => return Some("p50".to_owned()),
        "max" | "p100" | "p(100)" => return Some("max".to_owned()),
        _ => {}
    }
    let inner = plain.strip_prefix('p')?;
    let bare = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    let number = bare.unwrap_or(inner);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.')
        && number.matches('.').count() <= 1
        && !number.ends_with('.');
    if !is_number {
        return None;
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = match whole.len() {
        1 => format!("0{whole}{fraction}"),
        2 => format!("{whole}{fraction}"),
        _ if bare.is_none() && fraction.is_empty() => whole.to_owned(),
        _ => return None,
    };
    let short = digits.trim_end_matches('0');
    let digits = if short.len() < 2 { &digits[..2] } else { short };
    let is_inside = digits.chars().any(|c| c != '0') && digits.len() <= DIGITS_MAX;
    is_inside.then(|| format!("p{digits}"))
}

/// Returns the figure that `metric` means where the figures that `has` knows exist: the headline
/// latency is the response time, or the delivery time if nothing is confirmed.
pub fn resolve(metric: &str, has: impl Fn(&str) -> bool) -> Cow<'_, str> {
    let Some(part) = metric.strip_prefix(HEADLINE).and_then(|rest| rest.strip_prefix('.')) else {
        return Cow::Borrowed(metric);
    };
    let is_there = |time: &&&str| has(&format!("{time}.mean")) || has(&format!("{time}.{part}"));
    let time = HEADLINE_OF.iter().find(is_there).unwrap_or(&HEADLINE_OF[0]);
    Cow::Owned(format!("{time}.{part}"))
}

/// The headline latency is the first of these that was measured.
const HEADLINE_OF: [&str; 2] = ["response_time_ns", "delivery_time_ns"];

/// A quantile with more digits would need more messages than a run can have.
const DIGITS_MAX: usize = 7;

/// Short names of figures.
pub const SHORT: [(&str, &str); 15] = [
    ("loss", LOSS_RATIO),
    ("errors", "errors_ratio"),
    ("error_rate", "errors_ratio"),
    ("acceptance", "acceptance_ratio"),
    ("throughput", "throughput_out_per_s"),
    ("throughput_out", "throughput_out_per_s"),
    ("throughput_in", "throughput_in_per_s"),
    ("goodput", "goodput_bytes_per_s"),
    ("cpu", "target_cpu_percent.mean"),
    ("cpu_per_message", "target_cpu_us_per_message"),
    ("memory", "target_memory_bytes.max"),
    ("bytes_per_message", "wire.bytes_per_message"),
    ("transfer_time", "transfer_time_s"),
    ("connections", "connections_held"),
    ("capacity", "capacity_per_s"),
];

/// The share of sent messages that were lost; not measured if arrivals are not observed.
pub const LOSS_RATIO: &str = "loss_ratio";

/// The headline latency: the response time, or the delivery time if nothing is confirmed, see
/// [`resolve`].
pub const HEADLINE: &str = "latency_time_ns";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantile_has_one_name() {
        for (text, name) in [
            ("p99", "latency_time_ns.p99"),
            ("p99.9", "latency_time_ns.p999"),
            ("p999", "latency_time_ns.p999"),
            ("p(99.90)", "latency_time_ns.p999"),
            ("p75", "latency_time_ns.p75"),
            ("p5", "latency_time_ns.p05"),
            ("p50", "latency_time_ns.p50"),
            ("med", "latency_time_ns.p50"),
            ("p100", "latency_time_ns.max"),
            ("latency p99.99", "latency_time_ns.p9999"),
            ("response_time p(99)", "response_time_ns.p99"),
            ("response_time p99.5", "response_time_ns.p995"),
            ("response_time.p99", "response_time_ns.p99"),
            ("response_time_ns.p99.9", "response_time_ns.p999"),
            ("delivery_time avg", "delivery_time_ns.mean"),
            ("stage.store.hop_time_ns.p99", "stage.store.hop_time_ns.p99"),
            ("target_cpu_percent.max", "target_cpu_percent.max"),
            ("cpu", "target_cpu_percent.mean"),
            ("errors rate", "errors_ratio"),
        ] {
            assert_eq!(metric(text).as_deref(), Ok(name), "{text}");
        }
        for text in ["response_time p(101)", "response_time min", "loss p99", "response_time p(0)"]
        {
            assert!(metric(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_headline_latency_is_the_response_or_else_the_delivery() {
        let of = |have: &[&str]| {
            resolve("latency_time_ns.p99", |name| have.contains(&name)).into_owned()
        };
        assert_eq!(of(&["response_time_ns.mean", "delivery_time_ns.p99"]), "response_time_ns.p99");
        assert_eq!(of(&["delivery_time_ns.mean"]), "delivery_time_ns.p99");
        assert_eq!(of(&[]), "response_time_ns.p99");
    }
}
