//! The JSON of autocannon (`--json`), as versions 7 to 9 write it.

use serde_json::Value;

use super::sheet::{Printed, Sheet};
use crate::audit::figure::{Evidence, Quantity, Statistic};

/// True if this is the output of autocannon.
pub(super) fn fits(value: &Value) -> bool {
    ["connections", "pipelining", "latency", "requests", "non2xx"]
        .iter()
        .all(|key| value.get(key).is_some())
}

/// Reads it. Its latencies are whole milliseconds, cut off, and a run by count ends only on the
/// tick at which it takes samples.
pub(super) fn read(name: &str, value: &Value) -> Evidence {
    let mut sheet = Sheet::new(name, "autocannon");
    let number = |path: &str| value.pointer(path).and_then(Value::as_f64);
    let count = |path: &str| value.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    for (key, path) in [("clients", "/connections"), ("in_flight", "/pipelining")] {
        sheet.fact(key, count(path).to_string());
    }
    sheet.fact("pace", "fastest");
    let requests = count("/requests/total");
    sheet.put(0, "requests.total", Quantity::Count, Statistic::Plain, &Printed::count(requests));
    if let Some(mean) = number("/requests/mean").or(number("/requests/average")) {
        let mean = Printed::exact(mean, "1/s");
        sheet.put(0, "requests.mean", Quantity::Throughput, Statistic::Mean, &mean);
    }
    let failed = Printed::share(count("/non2xx"), requests);
    sheet.put(0, "non2xx", Quantity::Failed, Statistic::Plain, &failed);
    let latencies = value.get("latency").and_then(Value::as_object);
    for (word, value) in latencies.into_iter().flatten() {
        let (Some(statistic), Some(value)) = (statistic(word), value.as_f64()) else { continue };
        // Cut off to whole milliseconds: up to one too small, whatever the digits of a mean say.
        let printed = Printed { rounding: GRID_S, ..Printed::exact(value, "ms") };
        let series = format!("latency.{word}");
        sheet.cell(&[]);
        sheet.put(0, &series, Quantity::Latency, statistic, &printed);
    }
    sheet.cell(&[("part", "mean"), ("grid", "1ms")]);
    if let Some(mean) = number("/latency/mean").or(number("/latency/average")) {
        let mean = Printed::exact(mean, "ms");
        sheet.put(0, "latency.mean", Quantity::Latency, Statistic::Mean, &mean);
    }
    // By time, requests are cut off in flight; by count, every one that was sent was answered.
    let is_by_count = requests > 0 && count("/requests/sent") == requests;
    if let Some(duration) = number("/duration").filter(|_| is_by_count) {
        let tick = number("/sampleInt").unwrap_or(1000.0);
        sheet.cell(&[("part", "duration"), ("grid", &format!("{tick}ms"))]);
        let duration = Printed::exact(duration, "s");
        sheet.put(0, "duration", Quantity::Span, Statistic::Plain, &duration);
    }
    sheet.done()
}

/// `p97_5` is a quantile, `totalCount` is none; the mean is separate.
fn statistic(word: &str) -> Option<Statistic> {
    match word {
        "mean" => Some(Statistic::Mean),
        "min" => Some(Statistic::Min),
        "max" => Some(Statistic::Max),
        _ => {
            let percent: f64 = word.strip_prefix('p')?.replace('_', ".").parse().ok()?;
            Some(Statistic::Quantile(percent / 100.0)).filter(|_| percent >= 50.0)
        }
    }
}

/// What its latencies are cut off to, seconds.
const GRID_S: f64 = 0.001;
