//! Modelled battery energy of a message, stacked by use.

use serde_json::{Value, json};

use super::picture::{Kind, Picture, lean, part};
use super::stacked;
use super::stacked::ROWS_MAX;
use crate::summary::Summary;
use crate::summary::modelled::ModelledCell;

/// The pictures of both ways to send: as measured, and one message after a pause.
pub(crate) fn pictures(summary: &Summary) -> Vec<Picture> {
    let Some(modelled) = &summary.modelled else { return Vec::new() };
    let mut pictures = Vec::new();
    for way in [Way::Weighed, Way::Duty] {
        let rows: Vec<(usize, &ModelledCell)> = modelled
            .cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| way.joules(cell, PARTS[0].0).is_some())
            .collect();
        for (index, chunk) in rows.chunks(ROWS_MAX).enumerate() {
            let first = index * ROWS_MAX;
            let part = part(first, first + chunk.len(), rows.len());
            pictures.push(picture(way, chunk, part, (index, &modelled.title)));
        }
    }
    pictures
}

/// How messages are sent.
#[derive(Clone, Copy)]
enum Way {
    Weighed,
    Duty,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Weighed => "weighed",
            Way::Duty => "duty",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Way::Weighed => "Modelled energy of a message, no pause",
            Way::Duty => "Modelled energy of a message after a pause, without idling",
        }
    }

    fn joules(self, cell: &ModelledCell, part: &str) -> Option<f64> {
        match self {
            Way::Weighed => cell.weighed_j.get(part).copied(),
            // Idling between messages would dominate the picture.
            Way::Duty if part == "idle" => Some(0.0).filter(|_| !cell.duty_j.is_empty()),
            Way::Duty => cell.duty_j.get(part).copied(),
        }
    }
}

fn picture(
    way: Way,
    cells: &[(usize, &ModelledCell)],
    part: String,
    (index, about): (usize, &str),
) -> Picture {
    let number = if part.is_empty() { String::new() } else { format!("-{}", index + 1) };
    let labels: Vec<usize> = cells.iter().map(|(place, _)| *place).collect();
    let series: Vec<Value> = PARTS
        .iter()
        .map(|(key, name, colour)| {
            let data: Vec<Value> =
                cells.iter().map(|(_, cell)| lean(way.joules(cell, key).unwrap_or(0.0))).collect();
            json!({
                "type": "bar", "stack": "joules", "name": name, "color": colour,
                "barMaxWidth": 16, "data": data,
            })
        })
        .collect();
    let note = format!("{about}: modelled, not measured. {NOTE}");
    Picture {
        name: format!("modelled-{}{number}", way.name()),
        kind: Kind::Modelled,
        subject: way.name().to_owned(),
        title: way.title().to_owned(),
        note: match part.as_str() {
            "" => note,
            part => format!("{note} Cases {part}."),
        },
        part,
        height: stacked::height(cells.len()),
        about: json!({ "unit": "J/message" }),
        option: stacked::option(&labels, series),
    }
}

/// Key, name and colour of each part.
const PARTS: [(&str, &str, &str); 7] = [
    ("attach", "joining the network", "$c5"),
    ("connect", "wake-ups and connections", "$c3"),
    ("message", "messages", "$c1"),
    ("bytes", "bytes", "$c0"),
    ("tail", "radio awake and tail", "$c2"),
    ("idle", "idling", "$quiet"),
    ("cpu", "processor", "$c4"),
];

const NOTE: &str = "Means over the repetitions, joules of a message by use.";
