//! The processor time of a message, stacked by process.

use serde_json::{Value, json};

use super::picture::{Kind, Picture, part};
use super::stacked;
use super::stacked::ROWS_MAX;
use crate::summary::Summary;
use weigh_model::metrics::unit_of;

/// The pictures of the cost, if it was measured.
pub(crate) fn pictures(summary: &Summary) -> Vec<Picture> {
    let has = |metric: &str, cell: usize| summary.cells[cell].metrics.contains_key(metric);
    let cells: Vec<usize> = (0..summary.cells.len())
        .filter(|cell| PARTS.iter().any(|(metric, ..)| has(metric, *cell)))
        .collect();
    let chunks = cells.chunks(ROWS_MAX).enumerate();
    let make = |(index, chunk): (usize, &[usize])| {
        let first = index * ROWS_MAX;
        picture(chunk, part(first, first + chunk.len(), cells.len()), index)
    };
    chunks.map(make).collect()
}

fn picture(cells: &[usize], part: String, index: usize) -> Picture {
    let number = if part.is_empty() { String::new() } else { format!("-{}", index + 1) };
    let series: Vec<Value> = PARTS
        .iter()
        .map(|(metric, name, colour)| {
            json!({
                "type": "bar", "stack": "cost", "name": name, "color": colour, "barMaxWidth": 16,
                "data": { "$means": [metric, cells] },
            })
        })
        .collect();
    Picture {
        name: format!("cost-cpu{number}"),
        kind: Kind::Cost,
        subject: "cpu".to_owned(),
        title: "Processor time of a message".to_owned(),
        note: match part.as_str() {
            "" => NOTE.to_owned(),
            part => format!("{NOTE} Cases {part}."),
        },
        part,
        height: stacked::height(cells.len()),
        about: json!({ "unit": unit_of(PARTS[0].0) }),
        option: stacked::option(cells, series),
    }
}

/// Metric, name and colour of each part.
const PARTS: [(&str, &str, &str); 2] = [
    ("target_cpu_us_per_message", "target", "$c0"),
    ("generator_cpu_us_per_message", "generator", "$quiet"),
];

const NOTE: &str = "Means over the repetitions, for each delivered message; the generator's \
                    share is the cost of the measurement itself.";
