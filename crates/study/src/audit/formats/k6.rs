//! The end-of-test summary of k6: `--summary-export`, the data of `handleSummary`, or the text.
//! Little's law is asked of iterations, which hold the pauses of a script.

use serde_json::Value;

use super::sheet::{Printed, Sheet};
use crate::audit::figure::{Evidence, Quantity, Statistic};
use crate::audit::vocabulary::statistic;

/// True if this is a summary of k6 as JSON.
pub(super) fn fits(value: &Value) -> bool {
    let metrics = value.get("metrics").and_then(Value::as_object);
    metrics.is_some_and(|metrics| {
        metrics.contains_key("iterations") || metrics.contains_key("http_reqs")
    })
}

/// True if this is the summary that k6 prints.
pub(super) fn fits_text(text: &str) -> bool {
    text.lines().any(|line| metric_line(line).is_some_and(|(metric, _)| metric == "iterations"))
}

/// Reads the JSON, in either form.
pub(super) fn read_json(name: &str, value: &Value) -> Evidence {
    let mut sheet = Sheet::new(name, "k6");
    let metrics = value.get("metrics").and_then(Value::as_object);
    let mut read: Vec<(String, Vec<(String, f64)>)> = Vec::new();
    for (metric, content) in metrics.into_iter().flatten() {
        let values = content.get("values").unwrap_or(content).as_object();
        let values = values.into_iter().flatten();
        let values = values.filter_map(|(key, value)| Some((key.clone(), value.as_f64()?)));
        read.push((metric.clone(), values.collect()));
    }
    let vus = clients(&read);
    for (metric, values) in &read {
        let printed = values.iter().map(|(key, value)| {
            let unit = if is_time(metric) { "ms" } else { rate_unit(key) };
            (key.as_str(), Printed::exact(*value, unit))
        });
        put(&mut sheet, 0, metric, printed.collect(), vus);
    }
    sheet.done()
}

/// Reads the text.
pub(super) fn read_text(name: &str, text: &str) -> Evidence {
    let mut sheet = Sheet::new(name, "k6");
    let lines: Vec<Line<'_>> = (1..)
        .zip(text.lines())
        .filter_map(|(line, text)| {
            let (metric, rest) = metric_line(text)?;
            Some((line, metric, values_of(metric, rest)))
        })
        .collect();
    let read: Vec<(String, Vec<(String, f64)>)> = lines
        .iter()
        .map(|(_, metric, values)| {
            let values = values.iter().map(|(key, value)| ((*key).to_owned(), value.value));
            ((*metric).to_owned(), values.collect())
        })
        .collect();
    let vus = clients(&read);
    for (line, metric, values) in lines {
        put(&mut sheet, line, metric, values, vus);
    }
    sheet.done()
}

/// Number, metric and values of a printed line.
type Line<'t> = (u64, &'t str, Vec<(&'t str, Printed)>);

/// Puts what the rules read of one metric.
fn put(sheet: &mut Sheet, line: u64, metric: &str, values: Vec<(&str, Printed)>, vus: Option<f64>) {
    let vus = vus.map(|vus| vus.to_string()).unwrap_or_default();
    let is_iteration = metric.starts_with("iteration");
    match is_iteration && !vus.is_empty() {
        true => sheet.cell(&[("phase", "iteration"), ("clients", &vus)]),
        false if is_iteration => sheet.cell(&[("phase", "iteration")]),
        false => sheet.cell(&[]),
    }
    for (key, printed) in values {
        let one = statistic(&[key]);
        let (quantity, one) = match (metric, key) {
            ("http_req_duration" | "iteration_duration", _) if one != Statistic::Plain => {
                (Quantity::Latency, one)
            }
            ("http_reqs" | "iterations", "rate") => (Quantity::Throughput, Statistic::Plain),
            ("http_reqs" | "iterations", "count") => (Quantity::Count, Statistic::Plain),
            ("http_req_failed", "rate" | "value") => (Quantity::Failed, Statistic::Plain),
            ("vus", "min" | "max") => (Quantity::Clients, one),
            _ => continue,
        };
        sheet.put(line, &format!("{metric} {key}"), quantity, one, &printed);
    }
}

/// Virtual users, where they stayed the same.
fn clients(read: &[(String, Vec<(String, f64)>)]) -> Option<f64> {
    let (_, values) = read.iter().find(|(metric, _)| metric == "vus")?;
    let of = |key: &str| values.iter().find(|(own, _)| own == key).map(|(_, value)| *value);
    of("max").filter(|max| of("min") == Some(*max))
}

/// `http_reqs......................: 180 4.36938/s`: the metric and the rest.
fn metric_line(line: &str) -> Option<(&str, &str)> {
    let (head, rest) = line.trim().split_once(": ")?;
    let metric = head.trim_end_matches('.');
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    (head.len() > metric.len() + 1 && metric.chars().all(is_name)).then_some((metric, rest))
}

fn values_of<'t>(metric: &str, rest: &'t str) -> Vec<(&'t str, Printed)> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let named = words.iter().filter_map(|word| {
        let (key, value) = word.split_once('=')?;
        Some((key, Printed::read(value, "")?))
    });
    let mut values: Vec<(&str, Printed)> = named.collect();
    if metric == "http_req_failed" {
        values.extend(words.first().and_then(|word| Some(("rate", Printed::read(word, "")?))));
    } else if let [count, rate, ..] = words[..] {
        let rate = rate.strip_suffix("/s").and_then(|rate| Printed::read(rate, "1/s"));
        let count = Printed::read(count, "");
        values.extend(count.map(|count| ("count", count)).filter(|_| rate.is_some()));
        values.extend(rate.map(|rate| ("rate", rate)));
    }
    values
}

fn is_time(metric: &str) -> bool {
    metric.contains("duration") || metric.starts_with("http_req_") && metric != "http_req_failed"
}

fn rate_unit(key: &str) -> &'static str {
    if key == "rate" { "1/s" } else { "" }
}
