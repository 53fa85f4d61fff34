//! What pictures and tables of a run share, so that no figure stands on the page twice.

use serde_json::{Map, Value, json};

use super::lean;
use super::matrix::{Axis, Line, Matrix};
use crate::summary::{Metric, Summary, unit_of};

/// `cells` (label, name, guarantee, colour, valid), `names` of all metrics, and `metrics`: for
/// each its unit and a row `[cell, mean, low, high, [values]]` for every cell that has it; `axes`:
/// the lines along each.
pub(crate) fn data(summary: &Summary, matrix: &Matrix, names: &[&str]) -> Value {
    let cells: Vec<Value> = summary
        .cells
        .iter()
        .enumerate()
        .map(|(index, cell)| {
            json!({
                "label": matrix.labels[index],
                "guarantee": cell.guarantee.to_string(),
                "colour": matrix.colours[index],
                "valid": cell.valid,
            })
        })
        .collect();
    let mut metrics = Map::new();
    for name in names {
        let rows: Vec<Value> = summary
            .cells
            .iter()
            .enumerate()
            .filter_map(|(index, cell)| Some(row(index, cell.metrics.get(*name)?)))
            .collect();
        metrics.insert((*name).to_owned(), json!({ "unit": unit_of(name), "rows": rows }));
    }
    let axes: Vec<Value> = matrix.axes.iter().map(lines).collect();
    json!({ "cells": cells, "names": names, "metrics": metrics, "axes": axes })
}

/// The lines along an axis: `[name, [[place, cell], ...]]`.
fn lines(axis: &Axis) -> Value {
    let line = |line: &Line| {
        let place = |(x, cell): &(f64, usize)| json!([lean(*x), cell]);
        json!([line.name, line.places.iter().map(place).collect::<Vec<_>>()])
    };
    axis.lines.iter().map(line).collect()
}

fn row(cell: usize, metric: &Metric) -> Value {
    let figure = |value: Option<f64>| value.map_or(Value::Null, lean);
    let values: Vec<Value> = metric.values.iter().map(|value| figure(*value)).collect();
    json!([cell, figure(metric.value), figure(metric.low), figure(metric.high), values])
}
