//! The figures that a condition or a precision may speak of: a sentence about one that nobody
//! measures would never hold, or never fail.

use weigh_model::condition::{LOSS_RATIO, LOST};

use crate::kind::{Wrong, nearest};

/// Whether a trial can have this figure.
///
/// # Errors
/// If none has, with the nearest name.
pub fn check(metric: &str) -> Result<(), Wrong> {
    let (quantity, part) = metric.split_once('.').unwrap_or((metric, ""));
    if WHOLE.contains(&metric) || TIMES.contains(&quantity) && PARTS.contains(&part) {
        return Ok(());
    }
    let text = format!("no trial has a figure {metric:?}");
    if TIMES.contains(&quantity) {
        return Err(Wrong::new(text, format!("its parts are: {}", PARTS.join(", "))));
    }
    let times: Vec<String> = TIMES.iter().map(|time| format!("{time}.{part}")).collect();
    let names = WHOLE.iter().copied().chain(times.iter().map(String::as_str));
    let longer: Vec<&str> = WHOLE.iter().copied().filter(|name| name.starts_with(metric)).collect();
    let mend = match nearest(metric, names) {
        _ if !longer.is_empty() => format!("did you mean {}?", longer.join(" or ")),
        Some(near) => format!("did you mean {near}?"),
        None => format!(
            "there are: {}, and {} of {}",
            WHOLE.join(", "),
            PARTS.join(", "),
            TIMES.join(", ")
        ),
    };
    Err(Wrong::new(text, mend))
}

/// What is wrong with the name of the figure that a sentence begins with, where something is: its
/// limit cannot be read without knowing the unit.
pub fn misnamed(sentence: &str) -> Option<Wrong> {
    let end = sentence.find(['<', '>', '=', '!', ' ', '.']).unwrap_or(sentence.len());
    let word = &sentence[..end];
    let short = TIMES.iter().map(|time| time.trim_end_matches("_ns"));
    let whole = WHOLE.iter().map(|name| name.split('.').next().unwrap_or_default());
    let mut names = short.chain(TIMES).chain(whole).chain(WORDS);
    if word.is_empty() || names.clone().any(|name| name == word) {
        return None;
    }
    let near = nearest(word, &mut names)?;
    Some(Wrong::new(format!("no trial has a figure {word:?}"), format!("did you mean {near}?")))
}

/// What a sentence may begin with beside names of figures.
const WORDS: [&str; 8] = ["loss", "errors", "first", "p50", "p90", "p95", "p99", "p999"];

/// Recorded times; their figures have a part.
const TIMES: [&str; 8] = [
    "response_time_ns",
    "delivery_time_ns",
    "service_time_ns",
    "one_way_time_ns",
    "connect_time_ns",
    "send_lag_ns",
    "error_time_ns",
    "own_lag_ns",
];

/// What is kept of a recorded time.
const PARTS: [&str; 7] = ["mean", "p50", "p90", "p95", "p99", "p999", "max"];

/// Figures without parts.
const WHOLE: [&str; 19] = [
    LOSS_RATIO,
    LOST,
    "acceptance_ratio",
    "errors_ratio",
    "throughput_in_per_s",
    "throughput_out_per_s",
    "goodput_bytes_per_s",
    "transfer_time_s",
    "window_s",
    "body_bytes",
    "ledger_bytes_per_message",
    "target_cpu_percent.mean",
    "target_cpu_percent.max",
    "target_cpu_us_per_message",
    "target_memory_bytes.max",
    "target_memory_bytes_per_connection",
    "generator_cpu_percent.max",
    "generator_cpu_us_per_message",
    "generator_memory_bytes_per_connection",
];
