//! The words that tables use for the same things, and values with their units.

use crate::audit::figure::{Quantity, Statistic};

/// A key of a series in its one form: `threads`, `publishers` and `users` are all `clients`.
/// Words that are not known stay as they are: they still tell cells apart.
pub fn key(word: &str) -> &str {
    let found = KEYS.iter().find(|(_, words)| words.contains(&word));
    found.map_or(word, |(key, _)| key)
}

/// True if `word` is one that rules ask for.
pub fn is_known(word: &str) -> bool {
    KEYS.iter().any(|(key, _)| *key == word)
}

/// All words that rules ask for.
pub fn known_keys() -> Vec<&'static str> {
    KEYS.iter().map(|(key, _)| *key).collect()
}

/// True if a key names what is compared.
pub fn is_subject(word: &str) -> bool {
    ["system", "protocol", "server", "broker", "tool", "method", "client", "target"].contains(&word)
}

/// What a figure is about, from the words of its statistic and its unit.
pub fn quantity(words: &[&str], unit: &str) -> Quantity {
    let has = |any: &[&str]| any.iter().any(|word| words.contains(word));
    if has(&["cpu"]) && is_share(unit) {
        return Quantity::Cpu;
    }
    if seconds_in(unit).is_some() {
        return match () {
            () if has(&["delay", "oneway"]) || (has(&["one"]) && has(&["way"])) => Quantity::OneWay,
            () if has(&["transfer", "total", "duration", "lifetime", "sum", "span", "window"]) => {
                Quantity::Span
            }
            () => Quantity::Latency,
        };
    }
    if per_second_in(unit).is_some() {
        return if has(&["offered"]) { Quantity::Offered } else { Quantity::Throughput };
    }
    if is_share(unit) {
        return match () {
            () if has(&["acceptance", "accepted", "delivered", "received"]) => Quantity::Accepted,
            () if has(&["error", "errors", "failed", "failures"]) => Quantity::Failed,
            () => Quantity::Other,
        };
    }
    match () {
        () if has(&["header", "headers"]) => Quantity::HeaderBytes,
        () if has(&["payload", "size", "body"]) && bytes_in(unit).is_some() => Quantity::Payload,
        () if has(&["syn", "syns", "connects", "connections"]) => Quantity::Connections,
        () if has(&["expected", "sent", "rounded"]) => Quantity::Expected,
        () if has(&["received", "delivered"]) => Quantity::Received,
        () if has(&["clients", "threads", "users", "vus"]) => Quantity::Clients,
        () if has(&["samples", "count", "requests", "messages"]) => Quantity::Count,
        () => Quantity::Other,
    }
}

/// Which statistic the words name.
pub fn statistic(words: &[&str]) -> Statistic {
    for word in words {
        match *word {
            "mean" | "average" | "avg" => return Statistic::Mean,
            "median" | "med" => return Statistic::Quantile(0.5),
            "max" | "maximum" | "slowest" => return Statistic::Max,
            "min" | "minimum" | "fastest" => return Statistic::Min,
            "sd" | "stddev" | "stdev" | "mdev" => return Statistic::Deviation,
            other => {
                if let Some(quantile) = quantile(other) {
                    return Statistic::Quantile(quantile);
                }
            }
        }
    }
    Statistic::Plain
}

/// `p95`, `p99.9`, `p999` and `p(95)` as shares of 1.
pub fn quantile(word: &str) -> Option<f64> {
    let digits = word.strip_prefix('p')?.trim_matches(['(', ')']);
    let value: f64 = digits.parse().ok()?;
    let whole = digits.split('.').next().unwrap_or_default().len();
    let percent = if whole > 2 && !digits.contains('.') && value != 100.0 {
        value / 10f64.powi(whole as i32 - 2)
    } else {
        value
    };
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// True if the words claim that a figure is the most there is.
pub fn is_limit(words: &[&str]) -> bool {
    ["capacity", "plateau", "knee", "saturation", "limit", "peak", "without"]
        .iter()
        .any(|word| words.contains(word))
}

/// The words of a name: `mean_rtt`, `Mean RTT` and `mean-rtt` are the same.
pub fn words_of(name: &str) -> Vec<String> {
    let parts = name.split(|c: char| !c.is_alphanumeric() && !['.', '(', ')'].contains(&c));
    parts.filter(|part| !part.is_empty()).map(str::to_lowercase).collect()
}

/// The factor from `unit` to the unit of figures: seconds, per second, shares of 1, bytes.
pub fn factor(unit: &str) -> f64 {
    seconds_in(unit)
        .or_else(|| per_second_in(unit))
        .or_else(|| bytes_in(unit))
        .unwrap_or(if ["percent", "%"].contains(&unit) { 0.01 } else { 1.0 })
}

/// A duration with its unit: `100ms`, `50 s`; a bare number is not a duration.
pub fn duration(text: &str) -> Option<f64> {
    let (value, unit) = with_unit(text)?;
    Some(value * seconds_in(unit)?)
}

/// A rate with its unit: `10000/s`, `500 1/s`; a bare number is taken as per second.
pub fn rate(text: &str) -> Option<f64> {
    let (value, unit) = with_unit(text)?;
    if unit.is_empty() { Some(value) } else { Some(value * per_second_in(unit)?) }
}

/// A share: `34.5%`, `34.5 percent`, `0.345`.
pub fn share(text: &str) -> Option<f64> {
    let (value, unit) = with_unit(text)?;
    match unit {
        "" | "fraction" | "1" => Some(value),
        "%" | "percent" => Some(value / 100.0),
        _ => None,
    }
}

/// A number before its unit: `100 clients`.
pub fn count(text: &str) -> Option<f64> {
    with_unit(text).map(|(value, _)| value)
}

fn with_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || ['.', '-', '+', ','].contains(&c);
    let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
    let value = text[..end].replace(',', "").parse().ok()?;
    Some((value, text[end..].trim()))
}

fn seconds_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" | "sec" | "seconds" => 1.0,
        "m" | "min" | "minutes" => 60.0,
        "h" | "hours" => 3600.0,
        _ => return None,
    })
}

fn per_second_in(unit: &str) -> Option<f64> {
    let (what, per) = unit.split_once('/')?;
    let is_count = ["", "1", "msg", "messages", "req", "requests", "samples"].contains(&what);
    Some(match per {
        "s" | "sec" | "second" if is_count => 1.0,
        "min" | "minute" if is_count => 1.0 / 60.0,
        _ => return None,
    })
}

fn bytes_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "B" | "byte" | "bytes" => 1.0,
        "kB" | "KB" | "Kbytes" => 1e3,
        "MB" | "Mbytes" => 1e6,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        _ => return None,
    })
}

fn is_share(unit: &str) -> bool {
    ["percent", "%", "fraction", "share"].contains(&unit)
}

/// Keys that rules ask for, and other words for them.
const KEYS: &[(&str, &[&str])] = &[
    (
        "clients",
        &["clients", "threads", "connections", "publishers", "users", "vus", "concurrency"],
    ),
    ("messages", &["messages", "payloads", "requests"]),
    ("payload", &["payload", "payload_size", "size", "bytes", "body"]),
    ("in_flight", &["in_flight", "window", "pipelining", "outstanding"]),
    ("rate", &["rate", "offered", "offered_rate", "target_rate"]),
    ("interval", &["interval", "period"]),
    ("interval_over", &["interval_over"]),
    ("loop", &["loop"]),
    ("connections_per_client", &["connections_per_client"]),
    ("think", &["think", "think_time", "timer", "pause"]),
    ("ramp", &["ramp", "ramp_up", "rampup"]),
    ("duration", &["duration"]),
    ("repetitions", &["repetitions", "runs", "reps", "iterations", "iterations_minimum"]),
    ("run", &["run", "repetition"]),
    ("load", &["load", "background"]),
    ("background_share", &["background_share", "background_coverage", "overlap"]),
    ("complete", &["complete", "completion"]),
    ("qos", &["qos"]),
    ("durability", &["durability", "persistence", "fsync"]),
    ("connection", &["connection", "lifetime_of_connection", "keep_alive"]),
    ("relays", &["relays", "hops"]),
    ("mss", &["mss"]),
    ("header_bytes", &["header_bytes"]),
    ("clock_bound", &["clock_bound", "offset_bound", "clock"]),
    ("generator", &["generator", "generator_cpu", "generator_check", "generator_lag"]),
    ("errors", &["errors", "errors_in_latency", "population"]),
    ("trials", &["trials"]),
    ("grid", &["grid", "resolution", "tick"]),
    ("pace", &["pace", "arrival"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn both(name: &str, unit: &str) -> (Quantity, Statistic) {
        let words = words_of(name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        (quantity(&words, unit), statistic(&words))
    }

    #[test]
    fn the_words_of_published_tables_are_understood() {
        assert_eq!(both("mean_rtt", "us"), (Quantity::Latency, Statistic::Mean));
        assert_eq!(both("p95_rtt", "us"), (Quantity::Latency, Statistic::Quantile(0.95)));
        assert_eq!(both("average_cpu", "percent"), (Quantity::Cpu, Statistic::Mean));
        assert_eq!(both("max_cpu", "percent"), (Quantity::Cpu, Statistic::Max));
        assert_eq!(both("total_transfer_time", "s").0, Quantity::Span);
        assert_eq!(both("throughput", "1/min").0, Quantity::Throughput);
        assert_eq!(both("acceptance", "percent").0, Quantity::Accepted);
        assert_eq!(both("error", "fraction").0, Quantity::Failed);
        assert_eq!(both("payloads_rounded", "messages").0, Quantity::Expected);
        assert_eq!(both("median", "ms"), (Quantity::Latency, Statistic::Quantile(0.5)));
    }

    #[test]
    fn quantiles_and_values_have_many_forms() {
        for (word, expected) in
            [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p999", 0.999), ("p(95)", 0.95)]
        {
            assert!((quantile(word).unwrap() - expected).abs() < 1e-12, "{word}");
        }
        assert_eq!((quantile("payload"), quantile("p"), quantile("p500.1")), (None, None, None));
        assert_eq!(
            (duration("100ms"), duration("50 s"), duration("5")),
            (Some(0.1), Some(50.0), None)
        );
        assert_eq!((rate("10,000/s"), rate("60/min")), (Some(10_000.0), Some(1.0)));
        assert_eq!((share("34.5%"), share("0.345")), (Some(0.345), Some(0.345)));
        assert_eq!(
            (key("threads"), key("payloads"), key("colour")),
            ("clients", "messages", "colour")
        );
    }
}
