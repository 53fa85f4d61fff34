//! What a trial adds to the journal is bounded, however long it is and however many messages it
//! has: its intervals are (`src/series.rs`), and here is how long a line can be.

use serde_json::{Value, json};
use weigh_model::event::{Event, Interval};
use weigh_stats::Histogram;

/// Every number as long as it can be.
#[test]
fn a_line_of_an_interval_is_at_most_a_kibibyte() {
    let whole = u64::MAX;
    let interval = json!({
        "event": "interval", "trial": "0123456789abcdef", "at_ns": whole, "warmup": false,
        "sent": whole, "acknowledged": whole, "delivered": whole, "errors": whole,
        "connections": whole, "length_ns": whole, "response_time_ns_p50": whole,
        "response_time_ns_p99": whole, "send_lag_ns_p99": whole,
        "target_cpu_percent": -2.225_073_858_507_201_4e-308, "target_memory_bytes": whole,
        "generator_cpu_percent": -2.225_073_858_507_201_4e-308,
    });
    let event: Event = serde_json::from_value(interval.clone()).unwrap();
    let line = serde_json::to_string(&event).unwrap();
    // No key of an interval was forgotten above.
    let Event::Interval(read) = event else { panic!("{interval}") };
    let keys = |value: &Value| value.as_object().unwrap().len();
    assert_eq!(keys(&serde_json::to_value(&read).unwrap()), keys(&interval) - 1);
    assert!(read.length_ns.is_some() && Interval::default().length_ns.is_none());
    assert!(line.len() <= 1024, "{} bytes", line.len());
}

/// A message in every bucket that there is, a different number in each: nothing is longer.
#[test]
fn a_recorded_time_is_at_most_64_kibibytes() {
    let mut histogram = Histogram::new();
    let mut value = 1u64;
    let mut number = 1u64;
    while value < 1 << 62 {
        number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        (0..=number >> 60).for_each(|_| histogram.record(value));
        value += value / 300 + 1;
    }
    let length = histogram.to_base64().len();
    assert!((1_000..=64 << 10).contains(&length), "{length} bytes");
}
