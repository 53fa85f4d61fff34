//! The runs of a study, by name: their results, or why there are none.

use std::collections::BTreeMap;

use weigh_model::event::{Event, HostFacts};
use weigh_report::Summary;
use weigh_report::summary::NotARun;

use crate::tools::ToolMade;

/// The runs of a study by name (`published/E1-http`); one that is not there was not asked for.
pub type Runs = BTreeMap<String, RunState>;

/// A run of a study, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum RunState {
    /// It was made, if only in part.
    Made(Box<RunMade>),
    /// It is the run of a tool, and was made, if only in part.
    Tool(Box<ToolMade>),
    /// It was not, for this reason: a sentence that ends with what would help.
    Skipped(String),
}

impl RunState {
    /// The machine on which it was made; `None` where it was not.
    pub fn host(&self) -> Option<&HostFacts> {
        match self {
            RunState::Made(made) => Some(&made.summary.run.host),
            RunState::Tool(made) => Some(&made.begun.host),
            RunState::Skipped(_) => None,
        }
    }
}

/// A run that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct RunMade {
    /// Its folder, relative to that of the study's run.
    pub folder: String,
    /// Its result.
    pub summary: Summary,
    /// Ids of the trials of each cell, by the cell's name.
    pub trials: BTreeMap<String, Vec<String>>,
}

impl RunMade {
    /// From the events of its journal.
    ///
    /// # Errors
    /// If they are not those of a run.
    pub fn of(folder: &str, events: &[Event]) -> Result<RunMade, NotARun> {
        let summary = Summary::from_events(events)?;
        let mut trials: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in events {
            let Event::TrialFinished(trial) = event else { continue };
            let cell = summary.cells.iter().find(|cell| cell.point == trial.point);
            let Some(cell) = cell else { continue };
            let known = trials.entry(cell.name.clone()).or_default();
            if !known.contains(&trial.trial) {
                known.push(trial.trial.clone());
            }
        }
        Ok(RunMade { folder: folder.to_owned(), summary, trials })
    }
}

/// Reason of a run that was not requested.
pub const NOT_ASKED: &str = "it was not requested";

/// The folder of the run of this name within that of the study's run: `published-E1-http`.
pub fn folder(name: &str) -> String {
    name.replace('/', "-")
}
