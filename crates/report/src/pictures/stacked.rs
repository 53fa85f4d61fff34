//! Horizontal bars of several parts, a row for each case: the frame of pictures of compositions.

use serde_json::{Value, json};

/// The height of a picture with this number of rows, CSS pixels.
pub(super) fn height(rows: usize) -> u32 {
    rows as u32 * ROW + AXIS
}

/// The chart of cases, given by their indices among all cells, with a series for each part.
pub(super) fn option(cases: &[usize], series: Vec<Value>) -> Value {
    json!({
        "grid": { "top": 4, "right": 18, "height": cases.len() as u32 * ROW },
        "legend": {},
        "tooltip": {
            "trigger": "axis", "axisPointer": { "type": "shadow" }, "formatter": "@stack",
        },
        "xAxis": { "type": "value", "min": 0, "axisLabel": { "formatter": "@mark" } },
        "yAxis": { "type": "category", "inverse": true, "data": { "$labels": cases } },
        "series": series,
    })
}

/// Maximum number of rows of one picture; further ones get another picture.
pub(super) const ROWS_MAX: usize = 40;

/// Height of a row, CSS pixels.
const ROW: u32 = 28;

/// Height of the axis below the rows, CSS pixels.
const AXIS: u32 = 34;
