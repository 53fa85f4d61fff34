//! The finished trials among the events of a run, by cell.

use std::collections::{BTreeMap, BTreeSet};

use weigh_model::event::{Event, TrialFinished};
use weigh_model::session::SessionPackets;

use super::document::Summary;
use super::matrix::point_key;

/// The results of every cell, by repetition.
pub(crate) fn trials_by_cell<'a>(
    summary: &Summary,
    events: &'a [Event],
) -> Vec<Vec<&'a TrialFinished>> {
    let mut by_point: BTreeMap<String, Vec<&TrialFinished>> = BTreeMap::new();
    for trial in finished_trials(events) {
        by_point.entry(point_key(&trial.point)).or_default().push(trial);
    }
    let mut of_cell = |point| by_point.remove(&point_key(point)).unwrap_or_default();
    let mut trials: Vec<Vec<&TrialFinished>> =
        summary.cells.iter().map(|cell| of_cell(&cell.point)).collect();
    trials.iter_mut().for_each(|trials| trials.sort_by_key(|trial| trial.repetition));
    trials
}

/// The first session of each cell that has one, by the cell's index.
pub(crate) fn by_cell<'a>(
    trials: &[Vec<&TrialFinished>],
    events: &'a [Event],
) -> Vec<(usize, &'a SessionPackets)> {
    let sessions: BTreeMap<&str, &SessionPackets> = events
        .iter()
        .filter_map(|event| match event {
            Event::SessionPackets(session) => Some((session.trial.as_str(), &**session)),
            _ => None,
        })
        .collect();
    let first = |of_cell: &Vec<&TrialFinished>| {
        of_cell.iter().find_map(|trial| sessions.get(trial.trial.as_str()).copied())
    };
    let cells = trials.iter().enumerate();
    cells.filter_map(|(cell, of_cell)| Some((cell, first(of_cell)?))).collect()
}

/// The result of every trial, the first one if there are several.
pub(crate) fn finished_trials(events: &[Event]) -> Vec<&TrialFinished> {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let finished = events.iter().filter_map(|event| match event {
        Event::TrialFinished(trial) => Some(&**trial),
        _ => None,
    });
    finished.filter(|trial| known.insert(&trial.trial)).collect()
}
