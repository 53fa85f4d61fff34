//! The title of a run: the question of its plan, or what was measured and under which load.

use super::words::{counted, listed};
use crate::figures::count;
use crate::summary::cell_name::plain;
use crate::summary::{Cell, Matrix, Summary, Verdict};

/// The question of the plan, or else a title made from its cases: `MQTT and HTTP/1.1 compared:
/// publish, 10 connections, 1,000/s`.
pub fn question(summary: &Summary) -> String {
    if let Some(question) = &summary.run.plan.question {
        return question.clone();
    }
    if let Some(limit) = summary.limits.first() {
        let points = summary.limits.iter().map(|limit| limit.point.get("protocol").map(plain));
        let subject = protocols(points.flatten());
        return format!("The limit of {subject} by {}", limit.axis);
    }
    let cells = &summary.cells;
    if cells.is_empty() {
        return "Nothing was measured".to_owned();
    }
    let matrix = Matrix::new(cells);
    let is_compared = summary.comparisons.iter().any(|own| own.verdict != Verdict::Refused);
    let compared = if is_compared { " compared" } else { "" };
    let along = matrix.axes.first().map(|axis| {
        let values = || axis.lines.iter().flat_map(|line| &line.places).map(|(_, cell)| *cell);
        let text = |cell: usize| cells[cell].point.get(&axis.key).map_or_else(String::new, shown);
        let ends = [values().min_by(at(axis)), values().max_by(at(axis))];
        let [first, last] = ends.map(|cell| cell.map_or_else(String::new, text));
        let key = Matrix::short(&axis.key).replace(['_', '-', '.'], " ");
        (axis.key.clone(), format!("{key} from {first} to {last}"))
    });
    let mut parts: Vec<String> = along.iter().map(|(_, text)| text.clone()).collect();
    parts.extend(load(summary, along.as_ref().map_or("", |(key, _)| key)));
    format!("{}{compared}: {}", subject(cells), parts.join(", "))
}

/// The order of cells along an axis.
fn at(axis: &crate::summary::matrix::Axis) -> impl Fn(&usize, &usize) -> std::cmp::Ordering + '_ {
    let place = |cell: &usize| {
        let places = axis.lines.iter().flat_map(|line| &line.places);
        places.into_iter().find(|(_, own)| own == cell).map_or(0.0, |(value, _)| *value)
    };
    move |left, right| place(left).total_cmp(&place(right))
}

/// What was measured: protocols, or the targets of one protocol.
fn subject(cells: &[Cell]) -> String {
    let of = |key: &str| -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for value in cells.iter().filter_map(|cell| cell.point.get(key)).map(plain) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let targets = of("target");
    let names = protocols(of("protocol").into_iter());
    let has_one = of("protocol").len() == 1;
    match &targets[..] {
        [one] if one != "reference" => format!("{names} on {one}"),
        [_, _, ..] if has_one && targets.len() <= NAMES_MAX => {
            let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
            format!("{names} on {}", listed(&targets))
        }
        _ => names,
    }
}

/// The protocols in words.
fn protocols(names: impl Iterator<Item = String>) -> String {
    let mut shown: Vec<String> = Vec::new();
    for name in names.map(|name| written(&name)) {
        if !shown.contains(&name) {
            shown.push(name);
        }
    }
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    if shown.len() <= NAMES_MAX { listed(&shown) } else { counted(shown.len(), "protocol") }
}

/// What all cases have in common of the load, without the axis.
fn load(summary: &Summary, axis: &str) -> Vec<String> {
    let load = &summary.run.plan.load;
    let same = |key: &str| -> Option<Option<String>> {
        let first = summary.cells.first()?.point.get(key).map(plain);
        let is_same = |cell: &Cell| cell.point.get(key).map(plain) == first;
        (key != axis && summary.cells.iter().all(is_same)).then_some(first)
    };
    let mut parts = Vec::new();
    if let Some(own) = same("load.pattern") {
        parts.push(own.unwrap_or_else(|| load.pattern.name().to_owned()));
    }
    if let Some(own) = same("load.connections") {
        let number = own.and_then(|text| text.parse().ok()).unwrap_or(load.connections);
        parts.push(counted(number as usize, "connection"));
    }
    if let Some(own) = same("load.rate") {
        let rate = own.map_or(load.rate, |text| weigh_model::units::parse_rate(&text).ok());
        parts.extend(rate.map(|rate| rate.to_string()));
    }
    parts
}

/// A value of an axis for people.
fn shown(value: &serde_json::Value) -> String {
    value.as_u64().map_or_else(|| plain(value), count)
}

/// A protocol's name as its specification writes it.
fn written(name: &str) -> String {
    match name {
        "http1" => "HTTP/1.1".to_owned(),
        "http2" => "HTTP/2".to_owned(),
        "http3" => "HTTP/3".to_owned(),
        "grpc" => "gRPC".to_owned(),
        "coap" => "CoAP".to_owned(),
        "redis" => "Redis".to_owned(),
        "kafka" => "Kafka".to_owned(),
        "websocket" => "WebSocket".to_owned(),
        other => other.to_uppercase(),
    }
}

/// More names do not fit into a title.
const NAMES_MAX: usize = 5;
