//! The cells of a run as OpenMetrics 1.0 text (github.com/prometheus/OpenMetrics): a gauge for
//! each metric and each end of its interval, a histogram for each recorded time, the ledger.

use std::collections::{BTreeMap, BTreeSet};

use weigh_model::event::{Event, TrialFinished};
use weigh_stats::Histogram;

use super::openmetrics_names::{Family, plain};
use super::openmetrics_text::{head, number, pair, put};
use crate::summary::trials::finished_trials;
use crate::summary::{Cell, Metric, Summary};

/// The text, `# EOF` at its end.
pub fn text(summary: &Summary, events: &[Event]) -> String {
    let mut text = String::new();
    information(&mut text, summary);
    let labels: Vec<String> = summary.cells.iter().map(|cell| labels(summary, cell)).collect();
    let metrics: BTreeSet<&String> = summary.cells.iter().flat_map(|c| c.metrics.keys()).collect();
    for metric in metrics {
        gauges(&mut text, metric, summary, &labels);
    }
    let finished = finished_trials(events);
    let times: BTreeSet<&String> =
        finished.iter().flat_map(|trial| trial.histograms.keys()).collect();
    for time in times {
        histograms(&mut text, time, summary, &finished, &labels);
    }
    ledgers(&mut text, summary, &labels);
    text.push_str("# EOF\n");
    text
}

/// Facts about the run, and its warnings.
fn information(text: &mut String, summary: &Summary) {
    let run = &summary.run;
    head(text, "weigh_run", "info", "", "The run that these figures are of.");
    let pairs = [
        ("run", run.id.as_str()),
        ("name", &run.plan.name),
        ("started", &run.started),
        ("version", &run.version),
        ("outcome", &run.outcome),
        ("kernel", &run.host.kernel),
        ("cpu", &run.host.cpu),
    ];
    let pairs = pairs.map(|(key, value)| pair(key, value)).join(",");
    put(text, &format!("weigh_run_info{{{pairs}}}"), 1.0);
    let about = "1 if the figures of a cell may be used, 0 if a warning makes them invalid.";
    head(text, "weigh_cell_valid", "gauge", "", about);
    for cell in &summary.cells {
        let labels = labels(summary, cell);
        put(text, &format!("weigh_cell_valid{{{labels}}}"), f64::from(u8::from(cell.valid)));
    }
}

fn gauges(text: &mut String, metric: &str, summary: &Summary, labels: &[String]) {
    let family = Family::of(metric);
    type Part = fn(&Metric) -> Option<f64>;
    let parts: [(&str, &str, Part); 3] = [
        ("", "mean over the repetitions", |metric| {
            // A quantile in the lost share is known to be infinite.
            metric.value.or((metric.n > 0).then_some(f64::INFINITY))
        }),
        ("low", "lower end of the 95 % interval", |metric| metric.low),
        ("high", "upper end of the 95 % interval", |metric| metric.high),
    ];
    for (word, about, part) in parts {
        let values: Vec<(&String, f64)> = summary
            .cells
            .iter()
            .zip(labels)
            .filter_map(|(cell, labels)| Some((labels, part(cell.metrics.get(metric)?)?)))
            .collect();
        if values.is_empty() {
            continue;
        }
        let name = family.name(word);
        head(text, &name, "gauge", family.unit, &format!("{metric}: {about}."));
        for (labels, value) in values {
            put(text, &format!("{name}{{{labels}}}"), value * family.factor);
        }
    }
}

/// The recorded time of all repetitions of each cell, in buckets that grow by 1, 2, 5.
fn histograms(
    text: &mut String,
    time: &str,
    summary: &Summary,
    finished: &[&TrialFinished],
    labels: &[String],
) {
    let family = Family::of(time);
    let name = family.name("");
    let mut is_headed = false;
    for (cell, labels) in summary.cells.iter().zip(labels) {
        let mut all = Histogram::new();
        let of_cell = finished.iter().filter(|trial| trial.point == cell.point);
        let texts = of_cell.filter_map(|trial| trial.histograms.get(time));
        texts.filter_map(|text| Histogram::from_base64(text).ok()).for_each(|h| all.merge(&h));
        if all.is_empty() {
            continue;
        }
        if !is_headed {
            let about = format!("{time} of every message of all repetitions.");
            head(text, &name, "histogram", family.unit, &about);
            is_headed = true;
        }
        for bound_ns in bucket_bounds_ns() {
            let bound = number(bound_ns as f64 / 1e9);
            let count = all.count_up_to(bound_ns) as f64;
            put(text, &format!("{name}_bucket{{{labels},le=\"{bound}\"}}"), count);
        }
        let count = all.count() as f64;
        put(text, &format!("{name}_bucket{{{labels},le=\"+Inf\"}}"), count);
        put(text, &format!("{name}_count{{{labels}}}"), count);
        let sum = all.mean().unwrap_or(0.0) * count * family.factor;
        put(text, &format!("{name}_sum{{{labels}}}"), sum);
    }
}

/// 1, 2 and 5 of every power of ten from 1 µs to 100 s.
fn bucket_bounds_ns() -> impl Iterator<Item = u64> {
    let powers = (3..11).map(|exponent| 10_u64.pow(exponent));
    powers.flat_map(|power| [power, 2 * power, 5 * power]).chain([10_u64.pow(11)])
}

/// The ledger: its terms, and the causes of loss.
fn ledgers(text: &mut String, summary: &Summary, labels: &[String]) {
    let about = "Messages, or pairs of message and subscriber, by term of the ledger.";
    head(text, "weigh_ledger_messages", "gauge", "messages", about);
    for (cell, labels) in summary.cells.iter().zip(labels) {
        let ledger = serde_json::to_value(&cell.ledger).unwrap_or_default();
        for (term, value) in ledger.as_object().into_iter().flatten() {
            if let Some(value) = value.as_f64() {
                let term = pair("term", term);
                put(text, &format!("weigh_ledger_messages{{{labels},{term}}}"), value);
            }
        }
    }
    let about = "Pairs that were lost, by cause.";
    head(text, "weigh_lost_messages", "gauge", "messages", about);
    for (cell, labels) in summary.cells.iter().zip(labels) {
        let causes = serde_json::to_value(&cell.ledger.causes).unwrap_or_default();
        for (cause, value) in causes.as_object().into_iter().flatten() {
            let (cause, value) = (pair("cause", cause), value.as_f64().unwrap_or(0.0));
            put(text, &format!("weigh_lost_messages{{{labels},{cause}}}"), value);
        }
    }
}

/// The labels of a cell: run, name, and its point; if several keys get the same name, the first.
fn labels(summary: &Summary, cell: &Cell) -> String {
    let mut labels = BTreeMap::new();
    for (key, value) in &cell.point {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        labels.entry(plain(key)).or_insert(value);
    }
    labels.insert("run".to_owned(), summary.run.id.clone());
    labels.insert("cell".to_owned(), cell.name.clone());
    let pairs: Vec<String> = labels.iter().map(|(key, value)| pair(key, value)).collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_go_from_a_microsecond_to_a_hundred_seconds() {
        let bounds: Vec<u64> = bucket_bounds_ns().collect();
        assert_eq!(bounds[..4], [1_000, 2_000, 5_000, 10_000]);
        assert_eq!((bounds.len(), bounds[bounds.len() - 1]), (25, 100_000_000_000));
    }
}
