//! Data shared by pictures and tables of a run, so that every figure is on the page only once.

use serde_json::{Map, Value, json};

use super::picture::lean;
use crate::figures::method_words;
use crate::summary::matrix::{Axis, Line};
use crate::summary::{Matrix, Metric, Summary};
use crate::view::columns::{promise, shows_durability};
use weigh_model::metrics::unit_of;

/// `cells` (label, name, guarantee, colour, valid), `names` of all metrics, and `metrics`: for each
/// its unit, a row `[cell, mean, low, high, [values]]` for every cell that has it, and for each row
/// how it was made: `[number of the words in hows, [places of outliers], [low, high] of the second
/// interval, [median, low, high]]`, shortened from its end if values are missing; `axes`: the lines
/// along each.
pub(crate) fn data(summary: &Summary, matrix: &Matrix, names: &[&str]) -> Value {
    let shows = shows_durability(summary);
    let cells: Vec<Value> = summary
        .cells
        .iter()
        .enumerate()
        .map(|(index, cell)| {
            json!({
                "label": matrix.labels[index],
                "guarantee": promise(cell, shows),
                "colour": matrix.colours[index],
                "valid": cell.valid,
            })
        })
        .collect();
    let mut metrics = Map::new();
    let mut hows: Vec<String> = Vec::new();
    for name in names {
        let rows: Vec<Value> = summary
            .cells
            .iter()
            .enumerate()
            .filter_map(|(index, cell)| Some(row(index, cell.shown(name)?)))
            .collect();
        let having = summary.cells.iter().filter_map(|cell| cell.shown(name));
        let how: Vec<Value> = having.map(|metric| how(metric, &mut hows)).collect();
        let unit = unit_of(name);
        metrics.insert((*name).to_owned(), json!({ "unit": unit, "rows": rows, "how": how }));
    }
    let axes: Vec<Value> = matrix.axes.iter().map(lines).collect();
    json!({ "cells": cells, "names": names, "metrics": metrics, "hows": hows, "axes": axes })
}

/// The lines along an axis: `[name, [[place, cell], ...]]`.
fn lines(axis: &Axis) -> Value {
    let line = |line: &Line| {
        let place = |(x, cell): &(f64, usize)| json!([lean(*x), cell]);
        json!([line.name, line.places.iter().map(place).collect::<Vec<_>>()])
    };
    axis.lines.iter().map(line).collect()
}

/// Method and further statistics of a metric's figure.
fn how(metric: &Metric, hows: &mut Vec<String>) -> Value {
    let words = metric.method.as_deref().map(method_words).or(metric.refused.clone());
    let words = words.unwrap_or_default();
    let number = hows.iter().position(|known| *known == words).unwrap_or_else(|| {
        hows.push(words);
        hows.len() - 1
    });
    let apart: Vec<usize> = metric.outlier_places();
    let bootstrap = metric.bootstrap.as_ref().map(|b| json!([lean(b.low), lean(b.high)]));
    let figure = |value: Option<f64>| value.map_or(Value::Null, lean);
    let median = metric.median.as_ref();
    let median = median.map(|m| json!([lean(m.value), figure(m.low), figure(m.high)]));
    let mut how = vec![json!(number), json!(apart), json!(bootstrap), json!(median)];
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    while how.last().is_some_and(is_empty) {
        how.pop();
    }
    Value::Array(how)
}

fn row(cell: usize, metric: &Metric) -> Value {
    let figure = |value: Option<f64>| value.map_or(Value::Null, lean);
    let values: Vec<Value> = metric.values.iter().map(|value| figure(*value)).collect();
    json!([cell, figure(metric.value), figure(metric.low), figure(metric.high), values])
}
