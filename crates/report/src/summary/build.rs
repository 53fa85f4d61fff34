//! Makes a [`Summary`] from the events of a run, finished or not.

use std::collections::BTreeSet;

use weigh_model::event::{Event, RunStarted, TrialFinished};

use super::cell::Failure;
use super::course::Courses;
use super::document::{Run, SUMMARY_SCHEMA, Summary};
use super::energy::Energies;
use super::fleet;
use super::threshold::{Answer, Threshold};
use super::trials::finished_trials;
use super::{
    cells, comparisons, decisions, energy, interference, ladder, limits, modelled, thresholds,
};
use crate::answer;

/// A stream of events without its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run was stopped before it began: its journal has no event run_started")]
pub struct NotARun;

impl Summary {
    /// Summarises a run, finished or not. A trial that occurs twice in the events (a resumed run)
    /// counts once, and a failure that was repeated successfully is ignored.
    ///
    /// # Errors
    /// If the events do not begin with that of a run.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    /// use weigh_report::{RunFolder, Summary};
    /// # let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/stored/compare");
    ///
    /// let run = RunFolder::find(Path::new(runs), "latest")?;
    /// let summary = Summary::from_events(&run.read_journal()?.events)?;
    /// assert_eq!(summary.run.outcome, "done");
    /// assert!(summary.cells.iter().all(|cell| cell.ledger.contradiction().is_none()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_events(events: &[Event]) -> Result<Summary, NotARun> {
        let started = events.iter().find_map(|event| match event {
            Event::RunStarted(started) => Some(&**started),
            _ => None,
        });
        let started = started.ok_or(NotARun)?;
        let trials = finished_trials(events);
        let failures = failures(events, &trials);
        let (courses, energies) = (Courses::of(events), Energies::of(events));
        let mut cells = cells::build(&trials, &failures, &started.plan, &courses, &energies);
        decisions::tell(&mut cells, events, started);
        let modelled = modelled::add(&mut cells, events, (started, &trials));
        let limits = limits::from_events(events);
        let ladders = ladder::ladders(&cells, &started.plan.load, events);
        // The loads of a search are compared only by the search.
        let is_search = !limits.is_empty();
        let mut comparisons = match is_search {
            true => Vec::new(),
            false => comparisons::build(&cells, &started.plan, &trials),
        };
        let multiplicity = comparisons::together(&mut comparisons);
        let interference = interference::from_events(&cells, events, &trials);
        let thresholds = match is_search {
            true => thresholds::judge_search(&started.plan, (&cells, &limits), &trials),
            false => thresholds::judge(&started.plan, &cells, &failures),
        };
        let mut summary = Summary {
            schema: SUMMARY_SCHEMA.to_owned(),
            run: run(started, events),
            answer: Vec::new(),
            cells,
            comparisons,
            multiplicity,
            thresholds,
            limits,
            ladders,
            interference,
            modelled,
            claims: Vec::new(),
            failures,
        };
        summary.answer = answer::lines(&summary);
        Ok(summary)
    }

    /// The result of all thresholds of the plan: a failed one takes precedence over an undecided
    /// one.
    pub fn answer(&self) -> Answer {
        let answers = self.thresholds.iter().map(Threshold::answer);
        answers.min().unwrap_or(Answer::Holds)
    }

    /// Reads a document that [`Summary::to_json`] wrote. Compiled here once, not in each crate
    /// that reads summaries.
    ///
    /// # Errors
    /// If it is not JSON, or not a summary.
    pub fn from_json(text: &[u8]) -> serde_json::Result<Summary> {
        serde_json::from_slice(text)
    }

    /// The document as it is written and printed, with a line break at its end.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("a summary has only text keys, and its numbers are finite") + "\n"
    }

    /// The JSON Schema (2020-12) of the document, as checked in at `schemas/`.
    pub fn json_schema() -> String {
        let schema = schemars::schema_for!(Summary);
        serde_json::to_string_pretty(&schema).expect("a schema is plain JSON") + "\n"
    }
}

fn run(started: &RunStarted, events: &[Event]) -> Run {
    let outcome = events.iter().rev().find_map(|event| match event {
        Event::RunFinished { outcome } => Some(outcome.clone()),
        _ => None,
    });
    let (hosts, start_skew_bound_ns) = fleet::from_events(events);
    Run {
        id: started.id.clone(),
        started: started.started.clone(),
        version: started.version.clone(),
        outcome: outcome.unwrap_or_else(|| "unfinished".to_owned()),
        host: started.host.clone(),
        plan: started.plan.clone(),
        meter: energy::meter(events),
        hosts,
        start_skew_bound_ns,
    }
}

/// The last failure of every trial that has no result.
fn failures(events: &[Event], trials: &[&TrialFinished]) -> Vec<Failure> {
    let finished: BTreeSet<&str> = trials.iter().map(|trial| trial.trial.as_str()).collect();
    let mut failures: Vec<Failure> = Vec::new();
    for event in events {
        if let Event::TrialFailed { trial, point, error, .. } = event
            && !finished.contains(trial.as_str())
        {
            failures.retain(|known| known.trial != *trial);
            let (trial, point, error) = (trial.clone(), point.clone(), error.clone());
            failures.push(Failure { trial, point, error });
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_the_repository_is_current() {
        crate::summary::shape::assert_stored("summary.schema.json", &Summary::json_schema());
    }
}
