//! Units of metrics, and a figure in the unit of its metric.

use weigh_model::condition::LOST;

use crate::figures::{bytes, three_digits, time};

/// The unit of a metric, from the end of its name; statistics after a dot (`.p99`) do not count.
pub fn unit_of(name: &str) -> &'static str {
    if name.starts_with("counter.") {
        return "count";
    }
    let parts = || name.rsplit('.');
    SUFFIXES
        .iter()
        .find(|(suffix, _)| {
            parts().any(|part| {
                part == *suffix || part.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('_'))
            })
        })
        .map_or("1", |(_, unit)| unit)
}

/// Ends of metric names and their units; the first that fits counts, so longer ones come first.
const SUFFIXES: &[(&str, &str)] = &[
    ("bytes_per_message", "B/message"),
    ("bytes_per_session", "B/session"),
    ("packets_per_message", "packets/message"),
    ("packets_per_session", "packets/session"),
    ("us_per_message", "us/message"),
    ("j_per_message", "J/message"),
    ("j_per_session", "J/session"),
    ("mah_per_session", "mAh/session"),
    ("j_per_session", "J/session"),
    ("sessions_per_charge", "sessions/charge"),
    ("messages_per_charge", "messages/charge"),
    ("days_per_charge", "days/charge"),
    ("bytes_per_s", "B/s"),
    ("per_s", "1/s"),
    ("percent", "%"),
    ("bytes", "B"),
    ("packets", "packets"),
    ("ratio", "1"),
    ("ns", "ns"),
    ("us", "us"),
    ("ms", "ms"),
    ("s", "s"),
    ("j", "J"),
    ("w", "W"),
    ("v", "V"),
    ("connections", "connections"),
    ("clients", "clients"),
    ("messages", "messages"),
];

/// A figure in the unit of its metric.
pub(crate) fn figure_text(metric: &str, figure: f64, is_ascii: bool) -> String {
    match unit_of(metric) {
        "ns" => time(figure, is_ascii),
        "B" => bytes(figure),
        "1" if metric != LOST => format!("{} %", three_digits(figure * 100.0)),
        "%" => format!("{} %", three_digits(figure)),
        _ => three_digits(figure),
    }
}
