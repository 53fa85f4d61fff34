//! A short description of a run, and its figures.

use std::collections::BTreeSet;

use crate::{RunFolder, Summary};
use serde::Serialize;
use weigh_model::warnings::{Severity, WarningRecord};

use crate::history::stamp::Stamp;
use crate::journal::is_being_written;

/// A short description of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunEntry {
    /// Its id: the folder's name.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What the user wanted to know.
    pub question: Option<String>,
    /// When it started, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// `done`, `interrupted`, `failed`, or `unfinished` if the journal has no last line.
    pub outcome: String,
    /// True if a process is writing to it now; an unfinished run without a writer ended by a crash.
    pub in_progress: bool,
    /// Points of the matrix that have a result.
    pub cells: u32,
    /// Trials that have one.
    pub trials: u32,
    /// Trials that could not be done.
    pub failures: u32,
    /// Points with a result in which no message succeeded: nothing was measured there.
    pub unmeasured: u32,
    /// Number of different warnings in all cells.
    #[serde(rename = "doubts")]
    pub warnings: u32,
    /// The most severe of them: the first that makes a result invalid, else the first.
    #[serde(rename = "worst_doubt")]
    pub worst_warning: Option<WorstWarning>,
}

/// The most severe warning of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstWarning {
    /// Its code.
    pub code: String,
    /// True if it makes a result invalid.
    pub is_invalid: bool,
}

/// A metric of one cell of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureEntry {
    /// The run's id.
    pub run: String,
    /// The cell's name in that run.
    pub cell: String,
    /// The cell's point as JSON: the same in all runs.
    #[serde(skip)]
    pub point: String,
    /// False if the result must not be used.
    pub valid: bool,
    /// The mean over the repetitions; `None` if one is in the lost share.
    pub value: Option<f64>,
    /// Lower end of its interval at 95 %.
    pub low: Option<f64>,
    /// Upper end of its interval at 95 %.
    pub high: Option<f64>,
    /// Repetitions.
    pub n: u32,
}

/// What was read of a run: its entry and its figures, or why it cannot be read.
pub(crate) struct RunRead {
    pub(crate) entry: Result<RunEntry, String>,
    pub(crate) figures: Vec<(String, FigureEntry)>,
}

impl RunRead {
    /// Reads the summary if it is not older than the journal, else the journal.
    pub(crate) fn of(folder: &RunFolder, stamp: &Stamp) -> RunRead {
        let summary = stamp.has_current_summary().then(|| of_summary_file(folder)).flatten();
        match summary.map_or_else(|| of_journal(folder), Ok) {
            Ok(summary) => RunRead {
                entry: Ok(entry(folder.id(), &summary)),
                figures: figures(folder.id(), &summary),
            },
            Err(problem) => RunRead { entry: Err(problem), figures: Vec::new() },
        }
    }
}

fn of_summary_file(folder: &RunFolder) -> Option<Summary> {
    let text = std::fs::read(folder.path().join("summary.json")).ok()?;
    let summary = Summary::from_json(&text).ok()?;
    // A run that was resumed after its summary was written is read from its journal.
    (summary.run.outcome != UNFINISHED).then_some(summary)
}

fn of_journal(folder: &RunFolder) -> Result<Summary, String> {
    let journal = folder.read_journal().map_err(|error| error.to_string())?;
    let id = folder.id();
    Summary::from_events(&journal.events)
        .map_err(|_| format!("run {id} was stopped before it began\nhelp: type weigh runs rm {id}"))
}

fn entry(id: &str, summary: &Summary) -> RunEntry {
    let run = &summary.run;
    let mut warnings: Vec<&WarningRecord> = Vec::new();
    for warning in summary.cells.iter().flat_map(|cell| &cell.warnings) {
        if !warnings.iter().any(|known| known.code == warning.code) {
            warnings.push(warning);
        }
    }
    let is_invalid = |warning: &WarningRecord| warning.severity == Severity::Invalid;
    let all = summary.cells.iter().flat_map(|cell| &cell.warnings);
    let worst = all.clone().find(|warning| is_invalid(warning)).or(warnings.first().copied());
    RunEntry {
        id: id.to_owned(),
        name: run.plan.name.clone(),
        question: run.plan.question.clone(),
        started: run.started.clone(),
        version: run.version.clone(),
        outcome: run.outcome.clone(),
        in_progress: false,
        cells: summary.cells.len() as u32,
        trials: summary.cells.iter().map(|cell| cell.repetitions).sum(),
        failures: summary.failures.len() as u32,
        unmeasured: summary.unmeasured().len() as u32,
        warnings: warnings.len() as u32,
        worst_warning: worst.map(|warning| WorstWarning {
            code: warning.code.clone(),
            is_invalid: is_invalid(warning),
        }),
    }
}

fn figures(id: &str, summary: &Summary) -> Vec<(String, FigureEntry)> {
    let of_cell = |cell: &crate::summary::Cell| -> Vec<(String, FigureEntry)> {
        let point = serde_json::to_string(&cell.point).unwrap_or_default();
        let figure = |(name, metric): (&String, &crate::summary::Metric)| {
            let figure = FigureEntry {
                run: id.to_owned(),
                cell: cell.name.clone(),
                point: point.clone(),
                valid: cell.valid,
                value: metric.value,
                low: metric.low,
                high: metric.high,
                n: metric.n,
            };
            (name.clone(), figure)
        };
        cell.metrics.iter().map(figure).collect()
    };
    summary.cells.iter().flat_map(of_cell).collect()
}

/// The outcome of a run whose journal has no last line.
pub(crate) const UNFINISHED: &str = "unfinished";

/// All runs, the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Every run that can be read.
    pub entries: Vec<RunEntry>,
    /// Of the requested metric: one figure for every run and cell that has it.
    pub figures: Vec<FigureEntry>,
    /// Every metric of a run, if one was requested.
    pub metrics: BTreeSet<String>,
    /// Notes for the user: runs that cannot be read, an index that was rebuilt.
    pub notes: Vec<String>,
    /// Number of runs that were read from their own files.
    pub read: usize,
}

impl Listing {
    /// Adds a run to the list.
    pub(crate) fn take(&mut self, folder: &RunFolder, entry: Result<RunEntry, String>) {
        match entry {
            Ok(entry) => self.entries.push(entry),
            // Its first line is being written.
            Err(_) if is_being_written(folder.path()) => {
                self.notes.push(format!("run {} is about to begin", folder.id()));
            }
            Err(problem) if problem.starts_with("run ") => self.notes.push(problem),
            Err(problem) => self.notes.push(format!("{}: {problem}", folder.path().display())),
        }
    }
}
