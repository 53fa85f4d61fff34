//! Where an axis with stop rules ended, lane by lane: the answer of a plan with such an axis.

use serde_json::Value;

use crate::figures::count;
use crate::summary::matrix::quantity;
use crate::summary::{Cell, Matrix, Summary};

/// A sentence for every axis of the plan that has stop rules, such as `along messages: mqtt qos=0
/// ends between 1,000 and 4,000, first loss (10,600 lost)`; empty if no axis has any.
pub(crate) fn sentences(summary: &Summary, matrix: &Matrix) -> Vec<String> {
    let axes = summary.run.plan.stop.keys();
    axes.filter_map(|axis| {
        let lanes = lanes(summary, matrix, axis);
        let mut ends: Vec<String> = lanes.iter().take(LANES_MAX).map(|l| l.end(axis)).collect();
        if lanes.len() > LANES_MAX {
            ends.push(format!("{} more below", lanes.len() - LANES_MAX));
        }
        (!ends.is_empty()).then(|| format!("along {}: {}", Matrix::short(axis), ends.join("; ")))
    })
    .collect()
}

/// The cells along the axis, in rising order, for each combination of the other keys.
fn lanes<'a>(summary: &'a Summary, matrix: &Matrix, axis: &str) -> Vec<Lane<'a>> {
    let place = format!("{}=", Matrix::short(axis));
    let mut lanes: Vec<Lane> = Vec::new();
    for (cell, label) in summary.cells.iter().zip(&matrix.labels) {
        let Some(value) = cell.point.get(axis) else { continue };
        let words = label.split(' ').filter(|word| !word.starts_with(&place));
        let name = words.collect::<Vec<_>>().join(" ");
        match lanes.iter_mut().find(|lane| lane.name == name) {
            Some(lane) => lane.places.push((value, cell)),
            None => lanes.push(Lane { name, places: vec![(value, cell)] }),
        }
    }
    let number = |value: &Value| quantity(value).unwrap_or(f64::INFINITY);
    for lane in &mut lanes {
        lane.places.sort_by(|left, right| number(left.0).total_cmp(&number(right.0)));
    }
    lanes
}

struct Lane<'a> {
    name: String,
    places: Vec<(&'a Value, &'a Cell)>,
}

impl Lane<'_> {
    fn end(&self, axis: &str) -> String {
        let name = if self.name.is_empty() { "the case" } else { &self.name };
        let held = |cell: &Cell| {
            let texts = cell.warnings.iter().filter(|warning| warning.code == "axis-ended");
            let start = format!("{axis} ends here: ");
            let rest = texts.filter_map(|warning| warning.text.strip_prefix(&start)).next()?;
            Some(rest.split("; ").next().unwrap_or(rest).to_owned())
        };
        let ends = self.places.iter().enumerate();
        let end = ends.filter_map(|(at, (value, cell))| Some((at, *value, held(cell)?))).next();
        match end {
            Some((0, bad, held)) => {
                format!(
                    "{name} ends at {} already, the smallest value measured, {held}",
                    plain(bad)
                )
            }
            Some((at, bad, held)) => {
                let good = plain(self.places[at - 1].0);
                format!("{name} ends between {good} and {}, {held}", plain(bad))
            }
            None => {
                let last = self.places.last().map_or_else(String::new, |(value, _)| plain(value));
                format!("{name} goes up to {last}, and no stop rule held")
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match (value.as_u64(), value.as_str()) {
        (Some(number), _) => count(number),
        (None, Some(text)) => text.to_owned(),
        (None, None) => value.to_string(),
    }
}

/// More lanes do not fit into a sentence.
const LANES_MAX: usize = 6;
