//! A rate over loopback: what the generator was late by is said of each time, and takes none away
//! that is mostly the target's.

use serde_json::Value;

use crate::rig::{Place, has};

/// The table, the warnings and the recorded shares say the same of every cell, however late this
/// machine was.
fn agree(place: &Place, table: &str) {
    assert!(!table.contains("INVALID"), "{table}");
    let summary = place.summary();
    for cell in summary["cells"].as_array().expect("cells") {
        let value = |name: &str| cell["metrics"][name]["value"].as_f64();
        let times = ["response_time", "delivery_time"];
        let time = times.into_iter().find(|time| value(&format!("{time}_ns.p99")).is_some());
        let time = time.unwrap_or_else(|| panic!("no time from the due time: {cell}"));
        let share = |part: &str| {
            let lag = value(&format!("{time}_lag_ns.{part}"));
            let lag = lag.unwrap_or_else(|| panic!("no share of {time} {part}: {cell}"));
            lag / value(&format!("{time}_ns.{part}")).expect("the time itself")
        };
        let parts = ["p50", "p90", "p95", "p99", "max", "mean"];
        assert!(parts.iter().all(|part| (0.0..1.0).contains(&share(part))), "{cell}");
        let is_withheld = times.iter().any(|time| {
            parts.iter().any(|part| {
                let lag = value(&format!("{time}_lag_ns.{part}")).unwrap_or(0.0);
                lag > 0.5 * value(&format!("{time}_ns.{part}")).unwrap_or(f64::INFINITY)
            })
        });
        let warnings = cell["doubts"].as_array().expect("doubts");
        let says = warnings.iter().any(|warning: &Value| warning["code"] == "generator-lag");
        assert_eq!(says, is_withheld, "{cell}");
        assert_eq!(cell["valid"], true, "{cell}");
    }
}

#[test]
fn a_rate_over_loopback_is_never_invalid_for_its_lag() {
    let place = Place::new("lag-http");
    let words = ["compare", "http", "mqtt", "-R", "500/s", "-n", "400", "--reps", "1"];
    let ended = place.weigh(&words).with(0);
    assert!(ended.stdout.contains("http1 request"), "{}", ended.stdout);
    agree(&place, &ended.stdout);
}

#[test]
fn a_rate_to_mosquitto_is_never_invalid_for_its_lag() {
    if !has("mosquitto") {
        return;
    }
    let place = Place::new("lag-mosquitto");
    let words = ["compare", "mqtt", "mosquitto", "-R", "500/s", "-n", "400", "--reps", "1"];
    let ended = place.weigh(&words).with(0);
    agree(&place, &ended.stdout);
}
