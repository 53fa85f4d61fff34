//! The intervals of all trials as CSV (RFC 4180): the time series of the report's charts.

use std::collections::BTreeMap;
use std::io;

use weigh_model::event::Event;
use weigh_model::trial::Point;

use super::csv_error::csv_into_io;
use crate::summary::Summary;
use crate::summary::trials::finished_trials;

/// Writes a line for each interval of each trial that has a result; unknown values are empty.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(out: impl io::Write, summary: &Summary, events: &[Event]) -> io::Result<()> {
    let mut rows = csv::Writer::from_writer(out);
    rows.write_record(HEADING).map_err(csv_into_io)?;
    let names: Vec<(&Point, &str)> =
        summary.cells.iter().map(|cell| (&cell.point, cell.name.as_str())).collect();
    let trials: BTreeMap<&str, (&str, u32)> = finished_trials(events)
        .into_iter()
        .map(|trial| {
            let name = names.iter().find(|(point, _)| **point == trial.point);
            (trial.trial.as_str(), (name.map_or("", |(_, name)| name), trial.repetition))
        })
        .collect();
    for event in events {
        let Event::Interval(interval) = event else { continue };
        let Some((cell, repetition)) = trials.get(interval.trial.as_str()) else { continue };
        let known = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let share = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        rows.write_record([
            (*cell).to_owned(),
            repetition.to_string(),
            interval.trial.clone(),
            interval.at_ns.to_string(),
            known(interval.length_ns),
            interval.warmup.to_string(),
            interval.draining.to_string(),
            interval.sent.to_string(),
            interval.acknowledged.to_string(),
            interval.delivered.to_string(),
            interval.errors.to_string(),
            interval.connections.to_string(),
            known(interval.response_time_ns_p50),
            known(interval.response_time_ns_p99),
            known(interval.send_lag_ns_p99),
            share(interval.target_cpu_percent),
            known(interval.target_memory_bytes),
            share(interval.generator_cpu_percent),
        ])
        .map_err(csv_into_io)?;
    }
    rows.flush()
}

const HEADING: [&str; 18] = [
    "cell",
    "repetition",
    "trial",
    "at_ns",
    "length_ns",
    "warmup",
    "draining",
    "sent",
    "acknowledged",
    "delivered",
    "errors",
    "connections",
    "response_time_ns_p50",
    "response_time_ns_p99",
    "send_lag_ns_p99",
    "target_cpu_percent",
    "target_memory_bytes",
    "generator_cpu_percent",
];
