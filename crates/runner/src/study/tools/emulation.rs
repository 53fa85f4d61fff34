//! Runs a real program's load with `weigh`, and computes what the program would have printed.

use std::path::Path;

use crate::emulate::autocannon;
use crate::emulate::comparison::{self, Left};
use weigh_report::RunFolder;
use weigh_report::journal::LATEST;

/// The figures that the run in `runs` reports instead of a program, which the first of the words
/// after `weigh` names.
///
/// # Errors
/// A folder without a run that has a result.
pub fn figures(words: &[String], runs: &Path) -> Result<Vec<(&'static str, f64)>, String> {
    let folder = RunFolder::find(runs, LATEST).map_err(|error| error.to_string())?;
    let journal = folder.read_journal().map_err(|error| error.to_string())?;
    let summary = folder.summary(&journal.events).map_err(|error| error.to_string())?;
    let (trial, intervals) = comparison::one_trial(journal.events).ok_or("it left no result")?;
    let load = &summary.run.plan.load;
    let left = Left { load, finished: &trial, intervals: &intervals };
    let metric = |name: &str| trial.metrics.get(name).copied();
    let row = |rows: &[crate::emulate::Row], name: &str| {
        let row = rows.iter().find(|row| row.name == name)?;
        row.tool.split_whitespace().next()?.replace(',', "").parse::<f64>().ok()
    };
    let ms = |name: &str| metric(name).map(|ns| ns / 1e6);
    let found = match words.first().map(String::as_str) {
        Some("autocannon") => {
            let rows = autocannon::compare(&left).rows;
            vec![
                ("reported_messages", Some(trial.ledger.acknowledged as f64)),
                ("reported_time_s", metric("autocannon_time_s")),
                ("reported_per_s", metric("autocannon_per_s")),
                ("reported_latency_ms_mean", row(&rows, "Latency Avg")),
                ("reported_latency_ms_p50", row(&rows, "Latency 50%")),
                ("reported_latency_ms_max", row(&rows, "Latency Max")),
            ]
        }
        Some("mqtt-stresser") => {
            vec![
                ("reported_messages", trial.ledger.delivered.map(|count| count as f64)),
                ("reported_received_ratio", metric("mqtt_stresser_receive_ratio")),
                ("reported_publish_per_s", metric("mqtt_stresser_publish_per_s")),
                ("reported_receive_per_s", metric("mqtt_stresser_receive_per_s")),
            ]
        }
        _ => vec![
            ("reported_messages", Some(trial.ledger.sent as f64)),
            ("reported_time_s", metric("transfer_time_s").or(metric("window_s"))),
            ("reported_per_s", metric("throughput_in_per_s")),
            ("reported_latency_ms_mean", ms("response_time_ns.mean")),
            ("reported_latency_ms_p50", ms("response_time_ns.p50")),
            ("reported_latency_ms_max", ms("response_time_ns.max")),
            ("reported_errors_ratio", metric("errors_ratio")),
        ],
    };
    Ok(found.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}
