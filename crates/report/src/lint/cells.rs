//! Rules about whole cells: one figure for a ramp, and what is not equal beside other cells.

use weigh_model::arrival::Step;
use weigh_model::doubt::DoubtRecord;
use weigh_model::plan::Plan;
use weigh_model::{Arrival, Doubt, Rule};

use super::asked::Asked;
use crate::summary::Cell;

/// Adds to `cells` what they break.
pub fn add(cells: &mut [Cell], plan: &Plan) {
    let asked: Vec<Asked> = cells.iter().map(|cell| Asked::of(&cell.point, plan)).collect();
    for (cell, asked) in cells.iter_mut().zip(&asked) {
        if let Some(seen) = ramp(&asked.arrival) {
            cell.doubts.push(Doubt::Broken(Rule::L04, seen).record());
        }
    }
    let windows = unequal_windows(cells, &asked);
    for (index, doubt) in windows {
        cells[index].doubts.push(doubt);
    }
}

/// L04: clients or rate change within the window.
fn ramp(arrival: &Arrival) -> Option<String> {
    match arrival {
        Arrival::Ramp(over) if over.0 > 0 => {
            Some(format!("clients join over {over}: one figure stands for every number of them"))
        }
        Arrival::Steps(steps) => {
            let rate = |step: &Step| step.rate.per_second;
            let low = steps.iter().map(rate).fold(f64::INFINITY, f64::min);
            let high = steps.iter().map(rate).fold(0.0, f64::max);
            let changes = low < (1.0 - CHANGE_MAX) * high;
            changes.then(|| format!("the rate goes from {low}/s to {high}/s in one window"))
        }
        _ => None,
    }
}

/// L16: cells that are compared have different numbers in flight per connection, for each of
/// them.
fn unequal_windows(cells: &[Cell], asked: &[Asked]) -> Vec<(usize, DoubtRecord)> {
    let windows: Vec<Option<u64>> =
        cells.iter().zip(asked).map(|(cell, asked)| window(cell, asked)).collect();
    let mut doubts = Vec::new();
    for (index, own) in windows.iter().enumerate() {
        let other = (0..cells.len()).find(|other| {
            let is_alike = cells[*other].guarantee == cells[index].guarantee
                && asked[*other].pattern == asked[index].pattern
                && asked[*other].arrival.is_open() == asked[index].arrival.is_open();
            is_alike && windows[*other] != *own
        });
        // A window that is varied is a factor of the plan, and the cell's name says it.
        let is_varied = cells[index].point.contains_key("load.window");
        if let Some(other) = other.filter(|_| !is_varied) {
            let say = |window: &Option<u64>| {
                window.map_or("as many as it can".to_owned(), |window| window.to_string())
            };
            let seen = format!(
                "in flight per connection: {} here, {} in {}",
                say(own),
                say(&windows[other]),
                cells[other].name
            );
            doubts.push((index, Doubt::Broken(Rule::L16, seen).record()));
        }
    }
    doubts
}

/// Messages in flight per connection, where something was asked for or granted that limits it:
/// open loops are held to no window of their own.
fn window(cell: &Cell, asked: &Asked) -> Option<u64> {
    let is_closed = !asked.arrival.is_open();
    let wanted = asked.window.or(is_closed.then_some(1))?;
    Some(cell.granted.get("receive_maximum").map_or(wanted, |granted| wanted.min(*granted)))
}

/// The share by which a rate may change within a window.
const CHANGE_MAX: f64 = 0.05;
