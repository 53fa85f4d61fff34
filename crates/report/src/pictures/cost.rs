//! What a message costs, stacked by who pays: processor time at both ends, bytes on the wire.

use serde_json::{Value, json};

use super::{Kind, Picture, part};
use crate::summary::{Summary, unit_of};

/// The pictures of both costs, as far as they were measured.
pub(crate) fn pictures(summary: &Summary) -> Vec<Picture> {
    COSTS.iter().flat_map(|cost| of_cost(summary, cost)).collect()
}

/// What is stacked.
struct Cost {
    name: &'static str,
    title: &'static str,
    note: &'static str,
    parts: &'static [(&'static str, &'static str, &'static str)],
}

fn of_cost(summary: &Summary, cost: &Cost) -> Vec<Picture> {
    let has = |metric: &str, cell: usize| summary.cells[cell].metrics.contains_key(metric);
    let cells: Vec<usize> = (0..summary.cells.len())
        .filter(|cell| cost.parts.iter().any(|(metric, ..)| has(metric, *cell)))
        .collect();
    let chunks = cells.chunks(ROWS_MAX).enumerate();
    let make = |(index, chunk): (usize, &[usize])| {
        let first = index * ROWS_MAX;
        picture(cost, chunk, part(first, first + chunk.len(), cells.len()), index)
    };
    chunks.map(make).collect()
}

fn picture(cost: &Cost, cells: &[usize], part: String, index: usize) -> Picture {
    let number = if part.is_empty() { String::new() } else { format!("-{}", index + 1) };
    let series: Vec<Value> = cost
        .parts
        .iter()
        .map(|(metric, name, colour)| {
            json!({
                "type": "bar", "stack": "cost", "name": name, "color": colour, "barMaxWidth": 16,
                "data": { "$means": [metric, cells] },
            })
        })
        .collect();
    let rows = cells.len() as u32 * ROW;
    Picture {
        name: format!("cost-{}{number}", cost.name),
        kind: Kind::Cost,
        subject: cost.name.to_owned(),
        title: cost.title.to_owned(),
        note: match part.as_str() {
            "" => cost.note.to_owned(),
            part => format!("{} Cases {part}.", cost.note),
        },
        part,
        height: rows + 34,
        about: json!({ "unit": unit_of(cost.parts[0].0) }),
        option: json!({
            "grid": { "top": 4, "right": 18, "height": rows },
            "legend": {},
            "tooltip": {
                "trigger": "axis", "axisPointer": { "type": "shadow" }, "formatter": "@stack",
            },
            "xAxis": { "type": "value", "min": 0, "axisLabel": { "formatter": "@mark" } },
            "yAxis": { "type": "category", "inverse": true, "data": { "$labels": cells } },
            "series": series,
        }),
    }
}

const COSTS: [Cost; 2] = [
    Cost {
        name: "cpu",
        title: "Processor time of a message",
        note: "Means over the repetitions, for each delivered message; the generator's share is \
               the instrument's own.",
        parts: &[
            ("target_cpu_us_per_message", "target", "$c0"),
            ("generator_cpu_us_per_message", "generator", "$quiet"),
        ],
    },
    Cost {
        name: "bytes",
        title: "Bytes of a message on the wire",
        note: "Means over the repetitions: everything from Ethernet up, both directions, set-up \
               and tear-down included.",
        parts: &[("wire.bytes_per_message", "on the wire", "$c0")],
    },
];

const ROWS_MAX: usize = 40;

/// Height of a row, CSS pixels.
const ROW: u32 = 28;
