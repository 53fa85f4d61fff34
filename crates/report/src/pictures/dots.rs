//! A metric of every cell: a dot for each repetition, the mean as a stroke, the interval as a line.

use serde_json::json;

use super::picture::{Kind, Picture, of_repetitions, part};
use super::scale;
use crate::figures::capital;
use crate::summary::{Cell, Metric, Summary};
use weigh_model::metrics::unit_of;

/// The pictures of one metric: one, or several where there are many cells.
pub(crate) fn pictures(summary: &Summary, metric: &str) -> Vec<Picture> {
    let having: Vec<(usize, &Cell, &Metric)> = summary
        .cells
        .iter()
        .enumerate()
        .filter_map(|(index, cell)| Some((index, cell, cell.shown(metric)?)))
        .collect();
    let rows = |first: usize| (first, having.len().min(first + ROWS_MAX));
    let parts = (0..having.len()).step_by(ROWS_MAX).map(rows);
    parts.map(|(first, end)| picture(metric, &having, summary.cells.len(), first, end)).collect()
}

fn picture(
    metric: &str,
    having: &[(usize, &Cell, &Metric)],
    all: usize,
    first: usize,
    end: usize,
) -> Picture {
    let missing = all - having.len();
    let shown = &having[first..end];
    let values = || shown.iter().flat_map(|(.., m)| m.values.iter().copied().flatten());
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(0.0, f64::max);
    let reach = shown.iter().filter_map(|(.., m)| m.high).fold(0.0, f64::max);
    let cells: Vec<usize> = shown.iter().map(|(index, ..)| *index).collect();
    let part = part(first, end, having.len());
    let number = if part.is_empty() { String::new() } else { format!("-{}", first / ROWS_MAX + 1) };
    let height = 34 + cells.len() as u32 * ROW;
    Picture {
        name: format!("dots-{metric}{number}"),
        kind: Kind::Dots,
        subject: metric.to_owned(),
        title: format!("{}, every case", capital(metric)),
        note: note(&part, missing, &of_repetitions(shown.iter().map(|(.., metric)| *metric))),
        part,
        height,
        about: json!({ "unit": unit_of(metric) }),
        option: json!({
            "grid": { "top": 4, "right": 18, "height": cells.len() as u32 * ROW },
            "tooltip": { "trigger": "item", "formatter": "@rows" },
            "xAxis": scale::axis(low, high, reach),
            "yAxis": { "type": "category", "inverse": true, "data": { "$labels": cells } },
            "series": [{
                "type": "custom", "renderItem": "@drawRow", "encode": { "x": [1], "y": 0 },
                "data": { "$rows": [metric, first, end] },
            }],
        }),
    }
}

fn note(part: &str, missing: usize, repetitions: &str) -> String {
    let without = match missing {
        0 => String::new(),
        1 => " 1 case does not have this figure.".to_owned(),
        n => format!(" {n} cases do not have this figure."),
    };
    let cases = if part.is_empty() { String::new() } else { format!(" Cases {part}.") };
    format!(
        "Dot: one repetition. Short bar: mean. Long line: the mean's 95 % interval \
         ({repetitions}).{cases}{without}"
    )
}

/// More rows are not readable in one picture.
const ROWS_MAX: usize = 40;

/// Height of a row, CSS pixels.
const ROW: u32 = 30;
