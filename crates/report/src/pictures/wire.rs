//! Bytes of a message and of a session on the wire, stacked by layer.

use serde_json::{Value, json};
use weigh_model::metrics::{LAYERS, PHASES};

use super::picture::{Kind, Picture, part};
use crate::summary::Summary;
use crate::summary::wire_bytes::{COLOURS, CellBytes, Whole, present};

/// The pictures of both, if there was a capture.
pub(crate) fn pictures(summary: &Summary) -> Vec<Picture> {
    [Whole::Message, Whole::Session]
        .into_iter()
        .flat_map(|whole| {
            let cells = CellBytes::all(summary, whole);
            let all = cells.len();
            let chunks: Vec<Picture> = cells
                .chunks(ROWS_MAX)
                .enumerate()
                .map(|(index, chunk)| {
                    let first = index * ROWS_MAX;
                    picture(whole, chunk, part(first, first + chunk.len(), all), index)
                })
                .collect();
            chunks
        })
        .collect()
}

/// One scale with a bar for each cell.
struct Panel {
    title: &'static str,
    /// The phases whose bytes it stacks, by index.
    phases: &'static [usize],
}

fn picture(whole: Whole, cells: &[CellBytes], part: String, index: usize) -> Picture {
    let panels = panels(whole);
    let layers = present(cells);
    let rows = cells.len() as u32 * ROW;
    let labels: Vec<usize> = cells.iter().map(|cell| cell.cell).collect();
    let (mut grids, mut x, mut y, mut series) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (at, panel) in panels.iter().enumerate() {
        let top = HEAD + at as u32 * (rows + FOOT + HEAD);
        grids.push(json!({ "top": top, "right": 72, "height": rows }));
        x.push(json!({
            "type": "value", "gridIndex": at, "min": 0, "splitNumber": 4,
            "axisLabel": { "formatter": "@octets" },
        }));
        y.push(json!({
            "type": "category", "gridIndex": at, "inverse": true, "data": { "$labels": labels },
            "name": panel.title, "nameLocation": "start", "nameGap": 8,
            "nameTextStyle": { "align": "left", "fontWeight": 600, "color": "$ink" },
        }));
        series.extend(layers.iter().map(|layer| bars(at, *layer, panel, cells)));
        series.push(totals(at, panel, cells));
    }
    let number = if part.is_empty() { String::new() } else { format!("-{}", index + 1) };
    let titles: Vec<&str> = layers.iter().map(|layer| LAYERS[*layer].title).collect();
    Picture {
        name: format!("wire-{}{number}", whole.word()),
        kind: Kind::Wire,
        subject: whole.word().to_owned(),
        title: format!("Bytes of a {} on the wire", whole.word()),
        note: match part.as_str() {
            "" => note(whole).to_owned(),
            part => format!("{} Cases {part}.", note(whole)),
        },
        part,
        height: panels.len() as u32 * (HEAD + rows + FOOT),
        about: json!({ "unit": "B" }),
        option: json!({
            "grid": grids, "legend": { "data": titles },
            "tooltip": {
                "trigger": "axis", "axisPointer": { "type": "shadow" }, "formatter": "@layers",
            },
            "xAxis": x, "yAxis": y, "series": series,
        }),
    }
}

fn panels(whole: Whole) -> &'static [Panel] {
    match whole {
        Whole::Message => &[
            Panel { title: "with set-up and tear-down", phases: &[0, 1, 2] },
            Panel { title: "without", phases: &[1] },
        ],
        Whole::Session => &[
            Panel { title: PHASES[0].title, phases: &[0] },
            Panel { title: PHASES[1].title, phases: &[1] },
            Panel { title: PHASES[2].title, phases: &[2] },
        ],
    }
}

fn note(whole: Whole) -> &'static str {
    match whole {
        Whole::Message => {
            "Means over the repetitions: bytes at the clients' interfaces from Ethernet up, both \
             directions, divided by messages, warm-up included. Inside TLS, packets and records \
             are assigned to phases by its handshake, content by the codecs: phases of short \
             sessions are not exact there, their sum is."
        }
        Whole::Session => {
            "Means over the repetitions: bytes at the clients' interfaces from Ethernet up, both \
             directions, divided by connections, those of subscribers included. Each phase has \
             its own scale."
        }
    }
}

fn stacked(panel: &Panel, cell: &CellBytes, layer: usize) -> f64 {
    panel.phases.iter().map(|phase| cell.bytes[*phase][layer]).sum()
}

fn bars(at: usize, layer: usize, panel: &Panel, cells: &[CellBytes]) -> Value {
    let data: Vec<Value> =
        cells.iter().map(|cell| thousandths(stacked(panel, cell, layer))).collect();
    json!({
        "type": "bar", "stack": format!("panel {at}"), "name": LAYERS[layer].title,
        "color": COLOURS[layer], "barMaxWidth": 18, "xAxisIndex": at, "yAxisIndex": at,
        "itemStyle": { "borderColor": "$ground", "borderWidth": 0.75 },
        "emphasis": { "focus": "series" }, "data": data,
    })
}

/// The total at the end of each bar.
fn totals(at: usize, panel: &Panel, cells: &[CellBytes]) -> Value {
    let total = |cell: &CellBytes| -> f64 {
        (0..LAYERS.len()).map(|layer| stacked(panel, cell, layer)).sum()
    };
    let data: Vec<Value> =
        cells.iter().map(|cell| json!({ "value": 0, "total": thousandths(total(cell)) })).collect();
    json!({
        "type": "bar", "stack": format!("panel {at}"), "name": "", "color": "$ink", "silent": true,
        "xAxisIndex": at, "yAxisIndex": at, "data": data,
        "label": {
            "show": true, "position": "right", "formatter": "@total", "color": "$ink",
            "fontSize": 12,
        },
    })
}

/// To a thousandth of a byte, so that rounded parts still add up.
fn thousandths(bytes: f64) -> Value {
    let rounded = (bytes * 1e3).round() / 1e3;
    if rounded.fract() == 0.0 { Value::from(rounded as u64) } else { Value::from(rounded) }
}

const ROWS_MAX: usize = 24;

/// Heights of a row, of a panel's title and of its scale, CSS pixels.
const ROW: u32 = 28;

const HEAD: u32 = 26;

const FOOT: u32 = 30;
