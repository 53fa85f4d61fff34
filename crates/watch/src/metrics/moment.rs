//! What the current second shows. A value that is older than five seconds is left out: an old one
//! would look as if the load continued.

use weigh_model::live::{QUANTILES, Second};
use weigh_report::exports::openmetrics_text::{head, pair, put};

use super::seen::{Seen, gauge};
use crate::state::Point;

/// Appends the values of the current second.
pub(super) fn add(text: &mut String, seen: &Seen) {
    let Some(second) = current(seen) else { return };
    trials(text, second);
    rates(text, second);
    times(text, second);
    target(text, seen, second);
    generator(text, seen, second);
}

/// The last second, unless it is old or nothing records any more.
fn current<'s>(seen: &'s Seen) -> Option<&'s Second> {
    let second = seen.state.seconds.back().filter(|_| seen.is_recorded)?;
    (seen.unix_ms.saturating_sub(second.unix_ms) <= STALE_MS).then_some(second)
}

/// Progress of the run.
fn trials(text: &mut String, second: &Second) {
    let standing = &second.standing;
    let number = Some(standing.number as f64);
    gauge(text, "weigh_run_trial", "", "Number of the trial in progress, from 1.", number);
    let known = |values: [u64; 2]| values[1] > 0;
    if known(standing.of) {
        let about = "Trials of the run, at least and at most.";
        let of = standing.of.map(|value| value as f64);
        bounds(text, "weigh_run_planned_trials", "trials", about, of);
    }
    if known(standing.left_ns) {
        let left = standing.left_ns.map(|ns| ns.saturating_sub(standing.passed_ns) as f64 / 1e9);
        let about = "Time left, at least and at most.";
        bounds(text, "weigh_run_left_seconds", "seconds", about, left);
    }
}

fn bounds(text: &mut String, name: &str, unit: &str, about: &str, values: [f64; 2]) {
    head(text, name, "gauge", unit, about);
    for (bound, value) in ["at least", "at most"].into_iter().zip(values) {
        put(text, &format!("{name}{{{}}}", pair("bound", bound)), value);
    }
}

fn rates(text: &mut String, second: &Second) {
    let offered = second.standing.offered_per_s;
    let point = Point::of_second(second);
    let of = |value: fn(&Point) -> f64| point.as_ref().map(value);
    let counted = [
        ("offered", "due", offered),
        ("sent", "handed to the transport", of(|point| point.sent_per_s)),
        ("acknowledged", "confirmed", of(|point| point.acknowledged_per_s)),
        ("delivered", "delivered, as pairs with a subscriber,", of(|point| point.delivered_per_s)),
    ];
    for (name, words, value) in counted {
        let name = format!("weigh_live_{name}_per_second");
        let about = format!("Messages {words} per second, in the last second.");
        gauge(text, &name, "per_second", &about, value);
    }
    let open = of(|point| point.connections as f64);
    gauge(text, "weigh_live_connections", "", "Open connections.", open);
}

/// The quantiles of the last second, as summaries without counts.
fn times(text: &mut String, second: &Second) {
    let Some(quantiles) = &second.quantiles else { return };
    let times = [
        (
            "weigh_live_response_time_seconds",
            "Response time from the intended time, in the last second.",
            quantiles.response_ns,
        ),
        (
            "weigh_live_send_lag_seconds",
            "Send lag (due to sent), in the last second.",
            quantiles.send_lag_ns,
        ),
    ];
    for (name, about, values) in times {
        if values.iter().all(Option::is_none) {
            continue;
        }
        head(text, name, "summary", "seconds", about);
        for ((quantile, _), value) in QUANTILES.iter().zip(values) {
            if let Some(ns) = value {
                let label = pair("quantile", &quantile.to_string());
                put(text, &format!("{name}{{{label}}}"), ns as f64 / 1e9);
            }
        }
    }
}

/// The target as the last interval of the journal has it. Intervals of long trials are long: one is
/// valid until the next is due.
fn target(text: &mut String, seen: &Seen, second: &Second) {
    let interval = seen.state.current.and_then(|place| seen.state.last_interval(place));
    let at_s = second.counts.as_ref().map(|counts| counts.at_ns as f64 / 1e9);
    let (Some(interval), Some(at_s)) = (interval, at_s) else { return };
    if at_s - interval.at_s > interval.length_s + STALE_MS as f64 / 1e3 {
        return;
    }
    let about = "Load of the target, of the cores it was given.";
    let cpu = interval.target_cpu_percent.map(|percent| percent / 100.0);
    gauge(text, "weigh_live_target_cpu_ratio", "ratio", about, cpu);
    let memory = interval.target_memory_bytes.map(|bytes| bytes as f64);
    let about = "Resident memory of the target.";
    gauge(text, "weigh_live_target_memory_bytes", "bytes", about, memory);
}

fn generator(text: &mut String, seen: &Seen, second: &Second) {
    let busiest = second.counts.as_ref().and_then(|counts| counts.generator_cpu_percent);
    let about = "Load of the generator's busiest thread, of one core.";
    let busiest = busiest.map(|percent| percent / 100.0);
    gauge(text, "weigh_live_generator_cpu_ratio", "ratio", about, busiest);
    let own = &seen.resources;
    if let Some(cpu_s) = own.cpu_s {
        let name = "weigh_generator_cpu_seconds";
        head(text, name, "counter", "seconds", "CPU time of the generator's process.");
        put(text, &format!("{name}_total"), cpu_s);
    }
    let count = |value: Option<u64>| value.map(|value| value as f64);
    for (name, unit, about, value) in [
        ("memory_bytes", "bytes", "Resident memory of the generator.", own.memory_bytes),
        ("open_files", "", "Open files of the generator.", own.open_files),
        ("open_files_max", "", "Limit of the generator's open files.", own.open_files_max),
        ("ports_max", "", "Ports that the kernel gives to connections.", own.ports_max),
    ] {
        gauge(text, &format!("weigh_generator_{name}"), unit, about, count(value));
    }
}

/// Age at which a value of the current second is left out, milliseconds.
const STALE_MS: u64 = 5_000;
