//! A plan as a sentence: what it varies and what it holds constant.

use std::collections::BTreeMap;

use serde_json::Value;
use weigh_model::numbers::{count, size};
use weigh_model::plan::Plan;
use weigh_model::units::{parse_duration, parse_rate, parse_size};

use super::prose::and;
use crate::plans::Planned;

/// A plan in a sentence, such as `HTTP/1.1 and MQTT: messages handed over at a constant rate of
/// 100/s, 300/s and 500/s, 50 connections, for 5s; 10 repetitions of each.`
pub(super) fn sentence(planned: &Planned) -> String {
    let plan = &planned.resolved.plan;
    let mut settings = settings(plan);
    let mut take = |key: &str| settings.remove(key).unwrap_or_default();
    let mut parts: Vec<String> = Vec::new();
    let protocols: Vec<String> = take("protocol").iter().map(|name| protocol(name)).collect();
    parts.push(load(&mut take));
    for (key, one, many) in COUNTED {
        parts.push(counted(&take(key), one, many));
    }
    parts.push(worded("for", &take("duration")));
    parts.push(worded("messages of", &take("size")));
    parts.push(worded("with a pause of", &take("think")));
    parts.push(worded("at most in flight:", &take("window")));
    parts.push(background(&take("background")));
    parts.push(keep_alive(&take("http1.keep_alive")));
    parts.push(worded("QoS", &take("mqtt.qos")));
    parts.push(target(&mut take));
    parts.push(worded("stored in", &take("target.store")));
    parts.push(match &take("target.cores")[..] {
        [] => String::new(),
        cores => format!("the server on {}", counted(cores, "core", "cores")),
    });
    parts.push(worded("over the path", &take("path")));
    let rest = settings.iter().filter(|(key, _)| !UNSAID.contains(&key.as_str()));
    parts.extend(rest.map(|(key, values)| worded(&plainly(key), values)));
    parts.push(search(planned));
    parts.retain(|part| !part.is_empty());
    let repetitions = match plan.repeat.at_least {
        1 => "one repetition".to_owned(),
        more => format!("{more} repetitions"),
    };
    let each = if plan.cases.len() > 1 { " of each" } else { "" };
    let protocols = if protocols.is_empty() { String::new() } else { all(&protocols) + ": " };
    format!("{protocols}{}; {repetitions}{each}.", parts.join(", "))
}

/// Every setting that says something, by its key: all its values, in the order of the plan.
fn settings(plan: &Plan) -> BTreeMap<String, Vec<String>> {
    let mut settings: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if let Ok(Value::Object(load)) = serde_json::to_value(&plan.load) {
        let held = LOAD.iter().filter_map(|key| Some((*key, plain(load.get(*key)?))));
        for (key, value) in held.filter(|(_, value)| !["", "0", "0s"].contains(&value.as_str())) {
            settings.insert(key.to_owned(), vec![value]);
        }
    }
    let mut varied: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value) in plan.cases.iter().flatten() {
        let value = plain(value);
        let values = varied.entry(short(key).to_owned()).or_default();
        if !value.is_empty() && !values.contains(&value) {
            values.push(value);
        }
    }
    settings.extend(varied);
    settings
}

fn short(key: &str) -> &str {
    key.strip_prefix("load.").unwrap_or(key)
}

fn protocol(name: &str) -> String {
    match name {
        "http" | "http1" => "HTTP/1.1",
        "http2" => "HTTP/2",
        "http3" => "HTTP/3",
        "mqtt" => "MQTT",
        "grpc" => "gRPC",
        "tcp" => "TCP sockets",
        other => other,
    }
    .to_owned()
}

/// Load of the clients, and its timing.
fn load(take: &mut impl FnMut(&str) -> Vec<String>) -> String {
    let pattern = |name: &String| {
        match name.as_str() {
            "request" => "requests with answers",
            "publish" => "messages handed over",
            "deliver" => "messages delivered to subscribers",
            "poll" => "messages fetched by polling",
            "batch" => "messages in batches",
            "session" => "sessions of one message",
            "transfer" => "whole objects",
            "hold" => "idle connections",
            other => other,
        }
        .to_owned()
    };
    let patterns: Vec<String> = take("pattern").iter().map(pattern).collect();
    let (rates, arrivals) = (take("rate"), take("arrival"));
    if patterns.iter().all(|pattern| pattern == "idle connections") {
        return all(&patterns);
    }
    let arrival = |name: &String| match name.split_once(':').unwrap_or((name, "")) {
        ("closed", _) => "in a closed loop".to_owned(),
        ("burst", _) => "all at once".to_owned(),
        ("constant", _) => "at a constant rate".to_owned(),
        ("periodic", _) => "at each client's own period".to_owned(),
        ("poisson", _) => "at random".to_owned(),
        ("ramp", over) => format!("in a closed loop that clients join over {over}"),
        (other, _) => other.to_owned(),
    };
    let arrivals: Vec<String> = arrivals.iter().map(arrival).collect();
    let rates = worded("of", &rates);
    format!("{} {} {rates}", all(&patterns), all(&arrivals)).trim().to_owned()
}

fn background(values: &[String]) -> String {
    match values {
        [] => String::new(),
        [one] if one == "off" => "without the background load".to_owned(),
        [_] => "with the background load".to_owned(),
        _ => "without and with the background load".to_owned(),
    }
}

fn keep_alive(values: &[String]) -> String {
    match values {
        [] => String::new(),
        [one] if one == "true" => "connections kept".to_owned(),
        [_] => "a new connection for each request".to_owned(),
        _ => "connections kept or new for each request".to_owned(),
    }
}

/// The server, and what it is made of.
fn target(take: &mut impl FnMut(&str) -> Vec<String>) -> String {
    let (names, more, stages) = (take("target"), take("target.name"), take("target.stages"));
    let names: Vec<String> = names.into_iter().chain(more).collect();
    let stages: Vec<String> = stages.iter().map(|own| own.replace(',', " and ")).collect();
    match (&names[..], &stages[..]) {
        ([], []) => String::new(),
        (names, []) => format!("against {}", all(names)),
        ([], stages) => format!("against the stages {}", stages.join("; ")),
        (names, stages) => format!("against {} ({})", all(names), stages.join("; ")),
    }
}

fn search(planned: &Planned) -> String {
    let Some(search) = &planned.search else { return String::new() };
    let along = search.kind().name().replace('_', " ");
    match &search.goals[..] {
        [] => format!("searching the highest {along}"),
        goals => format!("searching the highest {along} with {}", goals.join(", ")),
    }
}

/// `10 connections`, `5, 10 … 60 connections (12 values)`.
fn counted(values: &[String], one: &str, many: &str) -> String {
    match values {
        [] => String::new(),
        [single] if single == "1" => format!("one {one}"),
        values => format!("{} {many}", all(values)),
    }
}

fn worded(word: &str, values: &[String]) -> String {
    if values.is_empty() { String::new() } else { format!("{word} {}", all(values)) }
}

/// Few values in full, of many the ends and their number.
fn all(values: &[String]) -> String {
    match values {
        [first, second, .., last] if values.len() > VALUES_MAX => {
            format!("{first}, {second} … {last} ({} values)", values.len())
        }
        few => and(&few.iter().map(String::as_str).collect::<Vec<_>>()),
    }
}

/// A key as words: `target.overload` is `target overload`.
fn plainly(key: &str) -> String {
    key.replace(['.', '_'], " ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => readable(text),
        Value::Number(number) => number.as_u64().map_or(number.to_string(), count),
        Value::Object(_) | Value::Array(_) => String::new(),
        other => other.to_string(),
    }
}

/// Sizes and times with a space before their unit; long texts are cut where they stay distinct.
fn readable(text: &str) -> String {
    if let Ok(rate) = parse_rate(text) {
        return rate.to_string();
    }
    match (parse_size(text), parse_duration(text)) {
        (Ok(bytes), _) if bytes > 0 && text.ends_with('B') => size(bytes),
        (_, Ok(duration)) if duration.0 > 0 => duration.to_string(),
        _ if text.chars().count() > TEXT_MAX => text.chars().take(TEXT_MAX).chain(['…']).collect(),
        _ => text.to_owned(),
    }
}

/// Keys of a load that are said, also where they are held.
const LOAD: [&str; 11] = [
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
    "batch",
];

/// Keys that count something, and what.
const COUNTED: [(&str, &str, &str); 3] = [
    ("connections", "connection", "connections"),
    ("subscribers", "subscriber", "subscribers"),
    ("messages", "message", "messages"),
];

/// Keys that say nothing to who reads the page: they are in the plan.
const UNSAID: [&str; 6] =
    ["warmup", "mqtt.keep_alive", "timeout", "topology", "tcp.acknowledge", "mqtt.topic"];

/// More values than this are not listed one by one.
const VALUES_MAX: usize = 6;

/// Characters of a text.
const TEXT_MAX: usize = 48;

#[cfg(test)]
mod tests {
    use super::{all, readable};

    #[test]
    fn sizes_and_times_have_a_space_before_their_unit() {
        for (text, shown) in [
            ("4026531840B", "3.75 GiB"),
            ("1ms 600us", "1.6 ms"),
            ("5s", "5 s"),
            ("32000B", "32,000 B"),
            ("reference", "reference"),
            ("17Mbit/s", "17Mbit/s"),
            ("5000/s", "5,000/s"),
            ("10/s/client", "10/s per client"),
        ] {
            assert_eq!(readable(text), shown);
        }
        assert_eq!(readable(&"x".repeat(60)).chars().count(), 49);
    }

    #[test]
    fn many_values_are_their_ends_and_their_number() {
        let values = |number: u32| (1..=number).map(|nth| nth.to_string()).collect::<Vec<_>>();
        assert_eq!(all(&values(3)), "1, 2 and 3");
        assert_eq!(all(&values(9)), "1, 2 … 9 (9 values)");
    }
}
