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
/// them. In an open loop only where a message ever had to wait for its place.
fn unequal_windows(cells: &[Cell], asked: &[Asked]) -> Vec<(usize, DoubtRecord)> {
    let windows: Vec<Option<u64>> =
        cells.iter().zip(asked).map(|(cell, asked)| window(cell, asked)).collect();
    let mut doubts = Vec::new();
    for (index, own) in windows.iter().enumerate() {
        let is_open = asked[index].arrival.is_open();
        let other = (0..cells.len()).find(|other| {
            let is_alike = cells[*other].guarantee == cells[index].guarantee
                && asked[*other].pattern == asked[index].pattern
                && asked[*other].arrival.is_open() == is_open;
            let is_felt = !is_open || waits(&cells[index]) || waits(&cells[*other]);
            is_alike && is_felt && windows[*other] != *own
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

/// Messages in flight per connection: the least of what the plan, the protocol and the server
/// allow, as the engine saw it; `None` is no limit.
fn window(cell: &Cell, asked: &Asked) -> Option<u64> {
    let seen = cell.granted.get("in_flight").copied();
    let wanted = asked.window.or((!asked.arrival.is_open()).then_some(1));
    let granted = cell.granted.get("receive_maximum").copied();
    seen.or(wanted.map(|wanted| granted.map_or(wanted, |granted| wanted.min(granted))))
}

/// True if more than a few messages waited for a place in the window.
fn waits(cell: &Cell) -> bool {
    let held_up = cell.metrics.get("held_up_ratio").and_then(|metric| metric.value);
    held_up.is_some_and(|held_up| held_up > HELD_UP_MAX)
}

/// The share of messages that may wait for a place before the window matters.
const HELD_UP_MAX: f64 = 0.01;

/// The share by which a rate may change within a window.
const CHANGE_MAX: f64 = 0.05;
