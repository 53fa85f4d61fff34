//! The cells of a summary as one table for spreadsheets (RFC 4180): one row per cell; the point's
//! keys, path and capture, the ledger, and every metric with its interval as columns.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::summary::{Cell, Summary};

/// The table with its heading; what was not measured is empty.
pub fn csv(summary: &Summary) -> Vec<u8> {
    let keys: BTreeSet<&String> = summary.cells.iter().flat_map(|c| c.point.keys()).collect();
    let metrics: BTreeSet<&String> = summary.cells.iter().flat_map(|c| c.metrics.keys()).collect();
    let scenes: BTreeSet<&String> = summary.cells.iter().flat_map(|c| c.scene.keys()).collect();
    let mut rows = csv::Writer::from_writer(Vec::new());
    let mut heading: Vec<String> = FIXED.map(str::to_owned).to_vec();
    heading.extend(keys.iter().map(|key| format!("point.{key}")));
    heading.extend(scenes.iter().map(|key| format!("scene.{key}")));
    heading.extend(LEDGER.map(|term| format!("ledger.{term}")));
    for metric in &metrics {
        heading.extend([(*metric).clone(), format!("{metric}.low"), format!("{metric}.high")]);
    }
    let mut write = |row: &[String]| {
        rows.write_record(row).expect("memory takes everything, and all rows are equally long");
    };
    write(&heading);
    for cell in &summary.cells {
        write(&row(cell, [&keys, &scenes, &metrics]));
    }
    rows.into_inner().expect("memory takes everything")
}

fn row(cell: &Cell, [keys, scenes, metrics]: [&BTreeSet<&String>; 3]) -> Vec<String> {
    let warnings: BTreeSet<&str> =
        cell.warnings.iter().map(|warning| warning.code.as_str()).collect();
    let mut row = vec![
        cell.name.clone(),
        cell.guarantee.to_string(),
        cell.target.clone(),
        cell.repetitions.to_string(),
        cell.valid.to_string(),
        warnings.into_iter().collect::<Vec<_>>().join(" "),
        cell.durability.map_or_else(String::new, |own| own.to_string()),
    ];
    row.extend(keys.iter().map(|key| cell.point.get(*key).map_or_else(String::new, text)));
    row.extend(scenes.iter().map(|key| cell.scene.get(*key).cloned().unwrap_or_default()));
    let ledger = serde_json::to_value(&cell.ledger).unwrap_or_default();
    row.extend(LEDGER.map(|term| text(&ledger[term])));
    for metric in metrics {
        let metric = cell.metrics.get(*metric);
        let figures = metric.map_or([None; 3], |m| [m.value, m.low, m.high]);
        row.extend(figures.map(|figure| figure.map_or_else(String::new, |f| f.to_string())));
    }
    row
}

/// A value of a point without quotes; null is empty.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

const FIXED: [&str; 7] =
    ["name", "guarantee", "target", "repetitions", "valid", "doubts", "durability"];

/// Terms of the ledger, in the order of their columns.
pub(crate) const LEDGER: [&str; 15] = [
    "messages",
    "scheduled",
    "not_sent",
    "sent",
    "acknowledged",
    "delivered",
    "late",
    "lost",
    "duplicates",
    "reordered",
    "corrupt",
    "foreign",
    "acked_not_delivered",
    "no_subscriber",
    "received",
];
