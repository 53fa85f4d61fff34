//! Rules about whole cells: one figure for a ramp, and differences between compared cells.

use std::collections::BTreeMap;
use weigh_model::numbers;

use weigh_model::arrival::Step;
use weigh_model::plan::Plan;
use weigh_model::warnings::WarningRecord;
use weigh_model::{Arrival, Condition, Rule, Warning};

use super::asked::Asked;
use super::saturation;
use super::saturation::AxisPoint;
use super::storing;
use crate::summary::Cell;
use crate::summary::matrix::{point_key, quantity};
use crate::summary::thresholds::figure_of;

/// Adds to `cells` the rules that they break.
pub fn add(cells: &mut [Cell], plan: &Plan) {
    let asked: Vec<Asked> = cells.iter().map(|cell| Asked::of(&cell.point, plan)).collect();
    for (cell, asked) in cells.iter_mut().zip(&asked) {
        if let Some(seen) = ramp(&asked.arrival) {
            cell.warnings.push(Warning::Broken(Rule::L04, seen).record());
        }
    }
    let windows = unequal_windows(cells, &asked);
    let limits = limits(cells, plan);
    let unknown = storing::unknown(cells, plan);
    for (index, warning) in windows.into_iter().chain(limits).chain(unknown) {
        cells[index].warnings.push(warning);
    }
}

/// L10: the limit of a lane on an axis with a stop rule, at the first place where the rule held.
fn limits(cells: &[Cell], plan: &Plan) -> Vec<(usize, WarningRecord)> {
    let mut warnings = Vec::new();
    for (axis, conditions) in &plan.stop {
        let mut lanes: BTreeMap<String, Vec<(AxisPoint, usize)>> = BTreeMap::new();
        for (index, cell) in cells.iter().enumerate() {
            let Some(value) = cell.point.get(axis).and_then(quantity) else { continue };
            let mut rest = cell.point.clone();
            rest.remove(axis);
            let holds = |condition: &Condition| {
                let figure = figure_of(cell, &condition.metric);
                figure.and_then(|figure| condition.holds(figure)).unwrap_or(false)
            };
            let is_good = !conditions.iter().any(holds);
            let point = AxisPoint { value, is_good, trials: cell.repetitions };
            lanes.entry(point_key(&rest)).or_default().push((point, index));
        }
        for mut lane in lanes.into_values() {
            lane.sort_by(|left, right| left.0.value.total_cmp(&right.0.value));
            let points: Vec<AxisPoint> = lane.iter().map(|(point, _)| *point).collect();
            let first_bad = lane.iter().find(|(point, _)| !point.is_good);
            let warning = saturation::warning(axis, &points);
            warnings.extend(
                warning.zip(first_bad).map(|(warning, (_, cell))| (*cell, warning.record())),
            );
        }
    }
    warnings
}

/// L04: clients or rate change within the window.
fn ramp(arrival: &Arrival) -> Option<String> {
    match arrival {
        Arrival::Ramp(over) if over.0 > 0 => {
            Some(format!("clients join over {over}: one figure describes every number of them"))
        }
        Arrival::Steps(steps) => {
            let rate = |step: &Step| step.rate.per_second;
            let low = steps.iter().map(rate).fold(f64::INFINITY, f64::min);
            let high = steps.iter().map(rate).fold(0.0, f64::max);
            let changes = low < (1.0 - CHANGE_MAX) * high;
            changes.then(|| {
                format!(
                    "the rate goes from {} to {} in one window",
                    numbers::rate(low),
                    numbers::rate(high)
                )
            })
        }
        _ => None,
    }
}

/// L16: cells that are compared have different numbers in flight per connection; for each of them.
/// In an open loop only if a message ever had to wait for its place.
fn unequal_windows(cells: &[Cell], asked: &[Asked]) -> Vec<(usize, WarningRecord)> {
    let windows: Vec<Option<u64>> =
        cells.iter().zip(asked).map(|(cell, asked)| window(cell, asked)).collect();
    // Only cells that may be compared with others of another window are checked further.
    let alike = |index: usize| {
        let asked = &asked[index];
        (cells[index].guarantee.to_string(), asked.pattern.name(), asked.arrival.is_open())
    };
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    (0..cells.len()).for_each(|index| groups.entry(alike(index)).or_default().push(index));
    groups.retain(|_, group| group.iter().any(|index| windows[*index] != windows[group[0]]));
    let mut warnings = Vec::new();
    let members = groups.values().flat_map(|group| group.iter().map(move |i| (*i, group)));
    for (index, group) in members {
        let own = &windows[index];
        let is_open = asked[index].arrival.is_open();
        let other = group.iter().copied().find(|other| {
            let is_felt = !is_open || waits(&cells[index]) || waits(&cells[*other]);
            is_felt && windows[*other] != *own
        });
        // A window that varies is a factor of the plan, and is in the cell's name.
        let is_varied = cells[index].point.contains_key("load.window");
        if other.is_some() && !is_varied {
            let seen = format!(
                "the cases allow different numbers of messages in flight per connection ({})",
                in_words(group, &windows, cells)
            );
            let advice = "type --window 1 (in a plan load.window = 1) to make them equal";
            let record = Warning::Broken(Rule::L16, seen).record();
            warnings.push((index, WarningRecord { advice: advice.to_owned(), ..record }));
        }
    }
    warnings
}

/// The windows of a group, each once with the first cell that has it: `mqtt 65,535, http1 1`.
fn in_words(group: &[usize], windows: &[Option<u64>], cells: &[Cell]) -> String {
    let mut known: Vec<Option<u64>> = Vec::new();
    let mut words = Vec::new();
    for index in group {
        let window = windows[*index];
        if !known.contains(&window) {
            known.push(window);
            let most = window.map_or("as many as it can".to_owned(), numbers::count);
            let name = &cells[*index].name;
            words.push(format!("{} {most}", name.strip_suffix(" on reference").unwrap_or(name)));
        }
    }
    let rest = words.len().saturating_sub(WINDOWS_MAX);
    words.truncate(WINDOWS_MAX);
    if rest > 0 {
        words.push(format!("{rest} more"));
    }
    words.join(", ")
}

/// Messages in flight per connection: the minimum of what the plan, the protocol and the server
/// allow, as the engine observed it; `None` means unlimited.
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

/// Windows that a text names.
const WINDOWS_MAX: usize = 4;

/// The share of messages that may wait for a place before the window matters.
const HELD_UP_MAX: f64 = 0.01;

/// The share by which a rate may change within a window.
const CHANGE_MAX: f64 = 0.05;
