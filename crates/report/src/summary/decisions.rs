//! Decisions during a run, and interruptions: warnings on the figures concerned, because they
//! affect how far these can be trusted.

use weigh_model::condition::LOST;
use weigh_model::event::{AxisEnded, Event, RunResumed, RunStarted};
use weigh_model::trial::Point;
use weigh_model::{Condition, Warning};

use super::cell::Cell;
use super::figure_text::figure_text;
use crate::figures::{count, three_digits};

/// Adds warnings on decisions to `cells` of the run that `started`.
pub(crate) fn tell(cells: &mut [Cell], events: &[Event], started: &RunStarted) {
    for event in events {
        match event {
            Event::AxisEnded(ended) => axis_ended(cells, ended),
            Event::CaseSettled { point, looks, is_precise, .. } => {
                let warning = Warning::OptionalStopping(*looks, *is_precise);
                of_point(cells, point).for_each(|cell| add(cell, &warning));
            }
            Event::BudgetSpent { .. } => {
                let asked = started.plan.repeat.at_least;
                for cell in cells.iter_mut().filter(|cell| cell.repetitions < asked) {
                    add(cell, &Warning::BudgetSpent(cell.repetitions, asked));
                }
            }
            Event::RunResumed(resumed) => {
                if let Some(warning) = other_conditions(started, resumed) {
                    cells.iter_mut().for_each(|cell| add(cell, &warning));
                }
            }
            _ => {}
        }
    }
}

fn axis_ended(cells: &mut [Cell], ended: &AxisEnded) {
    let mut point = ended.lane.clone();
    point.insert(ended.axis.clone(), ended.at.clone());
    let held = format!("{} ({})", ended.condition, figure(ended));
    let warning = Warning::AxisEnded(ended.axis.clone(), held, ended.not_weighed.len());
    of_point(cells, &point).for_each(|cell| add(cell, &warning));
}

/// The figure that met the condition, in the unit of its metric.
fn figure(ended: &AxisEnded) -> String {
    let metric = ended.condition.parse::<Condition>().map(|condition| condition.metric);
    match metric.as_deref() {
        _ if !ended.figure.is_finite() => "in the lost share".to_owned(),
        Ok(LOST) => format!("{} lost", count(ended.figure as u64)),
        Ok(metric) => format!("it was {}", figure_text(metric, ended.figure, false)),
        Err(_) => format!("it was {}", three_digits(ended.figure)),
    }
}

fn other_conditions(started: &RunStarted, resumed: &RunResumed) -> Option<Warning> {
    let what = match (started.version != resumed.version, started.host != resumed.host) {
        (true, true) => "version of weigh and machine",
        (true, false) => "version of weigh",
        (false, true) => "machine or kernel",
        (false, false) => return None,
    };
    Some(Warning::ResumedElsewhere(what.to_owned()))
}

fn of_point<'c>(cells: &'c mut [Cell], point: &'c Point) -> impl Iterator<Item = &'c mut Cell> {
    cells.iter_mut().filter(move |cell| cell.point == *point)
}

/// A resumed run may repeat a warning.
fn add(cell: &mut Cell, warning: &Warning) {
    let record = warning.record();
    if !cell.warnings.contains(&record) {
        cell.warnings.push(record);
    }
}
