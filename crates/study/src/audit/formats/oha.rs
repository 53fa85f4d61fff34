//! The JSON and the text of oha. It does not print how many connections it had.

use serde_json::Value;

use super::sheet::{Printed, Sheet};
use crate::audit::figure::{Evidence, Quantity, Statistic};
use crate::audit::vocabulary::quantile;

/// True if this is JSON of oha.
pub(super) fn fits(value: &Value) -> bool {
    value.pointer("/summary/successRate").is_some() && value.get("latencyPercentiles").is_some()
}

/// True if this is text of oha.
pub(super) fn fits_text(text: &str) -> bool {
    text.contains("Success rate:") && text.contains("Response time distribution")
}

/// Reads the JSON.
pub(super) fn read_json(name: &str, value: &Value) -> Evidence {
    let mut sheet = start(name);
    let summary = |key: &str| value.get("summary").and_then(|all| all.get(key)?.as_f64());
    if let Some(rate) = summary("requestsPerSec") {
        let rate = Printed::exact(rate, "1/s");
        sheet.put(0, "requestsPerSec", Quantity::Throughput, Statistic::Plain, &rate);
    }
    for (key, statistic) in
        [("average", Statistic::Mean), ("slowest", Statistic::Max), ("fastest", Statistic::Min)]
    {
        if let Some(value) = summary(key) {
            let printed = Printed::exact(value, "s");
            sheet.put(0, key, Quantity::Latency, statistic, &printed);
        }
    }
    let quantiles = value.get("latencyPercentiles").and_then(Value::as_object);
    for (word, value) in quantiles.into_iter().flatten() {
        if let Some((quantile, value)) = quantile(word).zip(value.as_f64()) {
            let printed = Printed::exact(value, "s");
            sheet.put(0, word, Quantity::Latency, Statistic::Quantile(quantile), &printed);
        }
    }
    let codes = value.get("statusCodeDistribution").and_then(Value::as_object);
    let codes = codes.into_iter().flatten();
    let codes: Vec<(&str, u64)> =
        codes.filter_map(|(code, count)| Some((code.as_str(), count.as_u64()?))).collect();
    put_codes(&mut sheet, 0, &codes);
    sheet.done()
}

/// Reads the text.
pub(super) fn read_text(name: &str, text: &str) -> Evidence {
    let mut sheet = start(name);
    let mut codes: Vec<(&str, u64)> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [name @ ("Slowest:" | "Fastest:" | "Average:"), number, unit] => {
                let statistic = match name {
                    "Slowest:" => Statistic::Max,
                    "Fastest:" => Statistic::Min,
                    _ => Statistic::Mean,
                };
                let unit = if unit.starts_with("sec") { "s" } else { unit };
                if let Some(printed) = Printed::read(number, unit) {
                    sheet.put(line, name, Quantity::Latency, statistic, &printed);
                }
            }
            ["Requests/sec:", rate] => {
                if let Some(printed) = Printed::read(rate, "1/s") {
                    let series = "Requests/sec";
                    sheet.put(line, series, Quantity::Throughput, Statistic::Plain, &printed);
                }
            }
            [share, "in", number, unit] if share.ends_with('%') => {
                let unit = if unit.starts_with("sec") { "s" } else { unit };
                let quantile = Printed::read(share, "").map(|share| share.value);
                let quantile = quantile.filter(|quantile| *quantile < 1.0);
                if let Some((quantile, printed)) = quantile.zip(Printed::read(number, unit)) {
                    let statistic = Statistic::Quantile(quantile);
                    sheet.put(line, share, Quantity::Latency, statistic, &printed);
                }
            }
            [code, count, "responses"] if code.starts_with('[') => {
                let code = code.trim_matches(['[', ']']);
                codes.push((code, count.parse().unwrap_or(0)));
            }
            _ => {}
        }
    }
    put_codes(&mut sheet, 0, &codes);
    sheet.done()
}

fn start(name: &str) -> Sheet {
    let mut sheet = Sheet::new(name, "oha");
    sheet.fact("pace", "fastest");
    sheet
}

/// All answers count into the times, also those with an error status.
fn put_codes(sheet: &mut Sheet, line: u64, codes: &[(&str, u64)]) {
    let all: u64 = codes.iter().map(|(_, count)| count).sum();
    let good = codes.iter().filter(|(code, _)| code.starts_with(['2', '3']));
    let good: u64 = good.map(|(_, count)| count).sum();
    if all > 0 {
        sheet.put(line, "responses", Quantity::Count, Statistic::Plain, &Printed::count(all));
        let failed = Printed::share(all - good, all);
        sheet.put(line, "error status", Quantity::Failed, Statistic::Plain, &failed);
    }
}
