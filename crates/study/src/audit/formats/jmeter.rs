//! JMeter's samples (`.jtl` as CSV) and its aggregate report (CSV).

use std::collections::BTreeMap;

use super::sheet::{Printed, Sheet};
use crate::audit::figure::{Evidence, Quantity, Statistic};
use crate::audit::source::Unreadable;

/// One sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// When it began, milliseconds.
    pub(super) start_ms: u64,
    /// How long it took, milliseconds.
    pub(super) elapsed_ms: u64,
    /// Which request it was.
    pub(super) label: String,
    /// Whether it succeeded.
    pub(super) is_good: bool,
    /// Threads that ran then.
    pub(super) threads: Option<u64>,
    /// Time to connect, milliseconds; 0 on a kept connection.
    pub(super) connect_ms: Option<u64>,
}

/// Reads samples as CSV.
pub(super) fn read_samples(name: &str, text: &str) -> Result<Evidence, Unreadable> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let broken = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        Unreadable::at(name, line, error.to_string(), "export it from JMeter again")
    };
    let headers = reader.headers().map_err(|error| broken(&error))?.clone();
    let at = |column: &str| headers.iter().position(|header| header == column);
    let (start, elapsed, label) = (at("timeStamp"), at("elapsed"), at("label"));
    let (success, threads, connect) = (at("success"), at("allThreads"), at("Connect"));
    let mut samples = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| broken(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let text = |at: Option<usize>| at.and_then(|at| record.get(at)).unwrap_or_default();
        let number = |at: Option<usize>| text(at).parse::<u64>().ok();
        let (Some(start_ms), Some(elapsed_ms)) = (number(start), number(elapsed)) else {
            let problem = "timeStamp or elapsed is not a whole number of milliseconds";
            return Err(Unreadable::at(name, line, problem, "save time stamps in milliseconds"));
        };
        samples.push(Sample {
            start_ms,
            elapsed_ms,
            label: text(label).to_owned(),
            is_good: success.is_none() || text(success) == "true",
            threads: number(threads),
            connect_ms: number(connect),
        });
    }
    Ok(sum_up(name, &samples))
}

/// The figures of samples, label by label. Pauses are not in them, so a load below what Little's
/// law gives is not a finding.
pub(super) fn sum_up(name: &str, samples: &[Sample]) -> Evidence {
    let mut sheet = Sheet::new(name, "JMeter");
    sheet.fact("pace", "paused");
    let mut labels: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        labels.entry(&sample.label).or_default().push(sample);
    }
    for (label, samples) in labels {
        sheet.cell(&[("label", label)]);
        put_label(&mut sheet, &samples);
    }
    sheet.done()
}

fn put_label(sheet: &mut Sheet, samples: &[&Sample]) {
    let count = samples.len() as u64;
    let mut times: Vec<u64> = samples.iter().map(|sample| sample.elapsed_ms).collect();
    times.sort_unstable();
    let failed = samples.iter().filter(|sample| !sample.is_good).count() as u64;
    let put_count = |sheet: &mut Sheet, series: &str, quantity, printed: &Printed| {
        sheet.put(0, series, quantity, Statistic::Plain, printed);
    };
    put_count(sheet, "samples", Quantity::Count, &Printed::count(count));
    put_count(sheet, "success", Quantity::Failed, &Printed::share(failed, count));
    if samples.iter().all(|sample| sample.connect_ms.is_some()) {
        let opened = samples.iter().filter(|sample| sample.connect_ms > Some(0)).count() as u64;
        put_count(sheet, "Connect", Quantity::Connections, &Printed::count(opened));
    }
    let ends = samples.iter().map(|sample| sample.start_ms.saturating_add(sample.elapsed_ms)).max();
    let starts = samples.iter().map(|sample| sample.start_ms).min();
    let span_ms = ends.zip(starts).map_or(0, |(end, start)| end - start);
    if span_ms > 0 {
        let rate = Printed::exact(count as f64 * 1000.0 / span_ms as f64, "1/s");
        put_count(sheet, "samples / time", Quantity::Throughput, &rate);
    }
    let mean = times.iter().map(|time| *time as f64).sum::<f64>() / count.max(1) as f64;
    let mut put_time = |statistic, value: f64| {
        let printed = Printed { rounding: 0.0005, ..Printed::exact(value, "ms") };
        sheet.put(0, "elapsed", Quantity::Latency, statistic, &printed);
    };
    put_time(Statistic::Mean, mean);
    put_time(Statistic::Max, times[times.len() - 1] as f64);
    let mut threads: Vec<u64> = samples.iter().filter_map(|sample| sample.threads).collect();
    threads.sort_unstable();
    if let (Some(low), Some(high)) = (quantile_of(&threads, 0.05), quantile_of(&threads, 0.95)) {
        // The few samples in which threads start and end are no ramp.
        for (statistic, value) in [(Statistic::Min, low), (Statistic::Max, high)] {
            let printed = Printed::count(value);
            sheet.put(0, "allThreads", Quantity::Clients, statistic, &printed);
        }
    }
}

/// Reads an aggregate report, in the words of its table or of its older export.
pub(super) fn read_aggregate(name: &str, text: &str) -> Result<Evidence, Unreadable> {
    let mut sheet = Sheet::new(name, "JMeter aggregate");
    sheet.fact("pace", "paused");
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let broken = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        Unreadable::at(name, line, error.to_string(), "export it from JMeter again")
    };
    let headers = reader.headers().map_err(|error| broken(&error))?.clone();
    for record in reader.records() {
        let record = record.map_err(|error| broken(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let label = record.get(0).unwrap_or_default().to_owned();
        sheet.cell(&[("label", &label)]);
        for (header, cell) in headers.iter().zip(&record).skip(1) {
            let Some((quantity, statistic, unit)) = column(header) else { continue };
            if let Some(printed) = Printed::read(cell, unit) {
                sheet.put(line, header, quantity, statistic, &printed);
            }
        }
    }
    Ok(sheet.done())
}

/// What a column of an aggregate report holds, and its unit where it prints none.
fn column(header: &str) -> Option<(Quantity, Statistic, &'static str)> {
    let plain = header.trim().to_lowercase().replace("aggregate_report_", "");
    let time = |statistic| Some((Quantity::Latency, statistic, "ms"));
    match plain.as_str() {
        "# samples" | "count" => Some((Quantity::Count, Statistic::Plain, "")),
        "average" => time(Statistic::Mean),
        "median" => time(Statistic::Quantile(0.5)),
        "min" => time(Statistic::Min),
        "max" => time(Statistic::Max),
        "std. dev." | "stddev" => time(Statistic::Deviation),
        "error %" | "error%" | "error" => Some((Quantity::Failed, Statistic::Plain, "")),
        "throughput" | "rate" => Some((Quantity::Throughput, Statistic::Plain, "1/s")),
        other => {
            let percent = other.split('%').next()?.trim().parse::<f64>().ok()?;
            let is_line = other.ends_with("line") && (0.0..100.0).contains(&percent);
            if is_line { time(Statistic::Quantile(percent / 100.0)) } else { None }
        }
    }
}

/// The value at `quantile` of sorted numbers.
fn quantile_of(sorted: &[u64], quantile: f64) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[(quantile * last as f64).round() as usize])
}
