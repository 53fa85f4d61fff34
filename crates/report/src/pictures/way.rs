//! The route of a cell's messages through the stages of a pipeline, hop after hop: a waterfall.

use serde_json::{Value, json};

use super::picture::{Kind, Picture, lean};
use crate::summary::{Cell, Matrix, Summary};
use crate::view::stages;
use crate::view::stages::Stage;

/// A picture of every cell with stages.
pub(crate) fn pictures(summary: &Summary, matrix: &Matrix) -> Vec<Picture> {
    let cells = summary.cells.iter().enumerate();
    cells.filter_map(|(index, cell)| picture(index, cell, &matrix.labels[index])).collect()
}

fn picture(index: usize, cell: &Cell, label: &str) -> Option<Picture> {
    let stages = stages::of(cell);
    let timed = |stage: &&Stage| stage.time(cell, "mean").is_some();
    let hops: Vec<&Stage> = stages.iter().filter(timed).collect();
    if hops.is_empty() {
        return None;
    }
    let value = |stage: &Stage, statistic: &str| {
        stage.time(cell, statistic).and_then(|metric| metric.value).unwrap_or(0.0)
    };
    let mut begin = 0.0;
    let (mut begins, mut means, mut tails) = (Vec::new(), Vec::new(), Vec::new());
    for hop in &hops {
        begins.push(lean(begin));
        means.push(lean(value(hop, "mean")));
        tails.push(lean(value(hop, "p99")));
        begin += value(hop, "mean");
    }
    let labels: Vec<String> = hops.iter().map(|hop| hop.label()).collect();
    let height = hops.len() as u32 * ROW;
    Some(Picture {
        name: format!("way-{}", index + 1),
        kind: Kind::Way,
        subject: index.to_string(),
        part: String::new(),
        title: format!("The route of a message: {label}"),
        note: NOTE.to_owned(),
        height: height + AXIS,
        about: json!({ "unit": "ns" }),
        option: option(&labels, height, [begins, means, tails]),
    })
}

fn option(labels: &[String], height: u32, [begins, means, tails]: [Vec<Value>; 3]) -> Value {
    let before = |stack: &str| {
        json!({
            "type": "bar", "stack": stack, "name": BEGINS, "silent": true, "data": begins,
            "itemStyle": { "color": "transparent" },
        })
    };
    let bar = |stack: &str, name: &str, colour: &str, width: u32, data: Vec<Value>| {
        json!({
            "type": "bar", "stack": stack, "name": name, "color": colour, "barMaxWidth": width,
            "data": data,
        })
    };
    json!({
        "grid": { "top": 4, "right": 18, "height": height },
        "legend": { "data": [MEAN, TAIL] },
        "tooltip": {
            "trigger": "axis", "axisPointer": { "type": "shadow" }, "formatter": "@stack",
        },
        "xAxis": { "type": "value", "min": 0, "axisLabel": { "formatter": "@mark" } },
        "yAxis": { "type": "category", "inverse": true, "data": labels },
        "series": [
            before(MEAN),
            bar(MEAN, MEAN, "$c0", 14, means),
            before(TAIL),
            bar(TAIL, TAIL, "$quiet", 6, tails),
        ],
    })
}

/// Name of the invisible part of a bar that moves it to its place.
const BEGINS: &str = "begins after, on average";

const MEAN: &str = "mean";

const TAIL: &str = "p99";

/// Height of a row, CSS pixels.
const ROW: u32 = 34;

/// Height of the axis below the rows, CSS pixels.
const AXIS: u32 = 34;

const NOTE: &str = "From the due time of a message to its commit, hop after hop: each bar \
                    begins where the means of the previous ones end, so the means add up to the \
                    mean delivery time. The thin bar is the hop that 99 % of messages do not \
                    exceed; these do not add up. Means over the repetitions.";
