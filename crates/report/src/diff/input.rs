//! One side of a comparison of two runs: a run's folder, its id, `latest`, or a file of it. A
//! journal has more than a summary: the losses of each repetition.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use weigh_model::Condition;
use weigh_model::condition::LOSS_RATIO;
use weigh_model::event::Event;
use weigh_model::warnings::WarningRecord;

use crate::journal::{BadLine, JOURNAL, Reader, RecordError, RunFolder};
use crate::summary::trials::finished_trials;
use crate::summary::{Cell, Metric, NotARun, SUMMARY_SCHEMA, Summary, quantiles};

/// A run as one side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Its result.
    pub summary: Summary,
    /// By name of the cell: the share of sent messages that each repetition lost. Absent if
    /// arrivals are not observed, and for a run with only a summary.
    pub loss_ratios: BTreeMap<String, Vec<f64>>,
    /// Cells that only some of its runs have, where it is made of several.
    pub partial: Vec<Cell>,
    /// The file it was read from.
    pub path: PathBuf,
    /// Lines of the journal that could not be read, and were skipped.
    pub bad_lines: Vec<BadLine>,
}

impl Side {
    /// Finds and reads a run: `latest`, `latest~2` (the third newest), an id below `runs`, a
    /// folder with a journal or a summary, a journal (`*.jsonl`) or a summary (`*.json`); or
    /// several of these with commas between them, see [`Side::of_runs`].
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read.
    pub fn find(runs: &Path, names: &str) -> Result<Side, RecordError> {
        Side::find_for(runs, names, &[])
    }

    /// Finds and reads a run with the quantiles in `conditions`: a journal has the recorded times.
    ///
    /// # Errors
    /// As [`Side::find`].
    pub fn find_for(
        runs: &Path,
        names: &str,
        conditions: &[Condition],
    ) -> Result<Side, RecordError> {
        if Path::new(names).exists() || !names.contains(',') {
            return Side::find_one(runs, names, conditions);
        }
        let found: Result<Vec<Side>, RecordError> =
            names.split(',').map(|name| Side::find_one(runs, name.trim(), conditions)).collect();
        Ok(Side::of_runs(found?))
    }

    fn find_one(runs: &Path, name: &str, conditions: &[Condition]) -> Result<Side, RecordError> {
        let path = match steps_back(name) {
            Some(back) => nth_newest(runs, back)?,
            None => file_of(runs, name)?,
        };
        Side::read_for(&path, conditions)
    }

    /// Reads a journal or a summary.
    ///
    /// # Errors
    /// If the file cannot be read, or has another format.
    pub fn read(path: &Path) -> Result<Side, RecordError> {
        Side::read_for(path, &[])
    }

    fn read_for(path: &Path, conditions: &[Condition]) -> Result<Side, RecordError> {
        if path.extension().is_some_and(|extension| extension == "json") {
            return Side::read_summary(path);
        }
        let failed = |problem| RecordError::new(path, problem);
        let folder = path.parent().filter(|_| path.ends_with(JOURNAL));
        let mut journal = match folder {
            // The folder decides which attempts of a journal count.
            Some(folder) => {
                RunFolder::find(folder, &folder.display().to_string())?.read_journal()?
            }
            None => Reader::open(path)?.read().map_err(failed)?,
        };
        journal.check_version(path)?;
        quantiles::add_to_all(&mut journal.events, conditions);
        let mut side = Side::from_events(&journal.events).map_err(|error| {
            RecordError::saying(path, error.to_string(), "name the journal of a run")
        })?;
        side.path = path.to_owned();
        side.bad_lines = journal.bad_lines;
        Ok(side)
    }

    /// A run from its events.
    ///
    /// # Errors
    /// If the events are not those of a run.
    pub fn from_events(events: &[Event]) -> Result<Side, NotARun> {
        let summary = Summary::from_events(events)?;
        let trials = finished_trials(events);
        let mut loss_ratios = BTreeMap::new();
        for cell in &summary.cells {
            let of_cell = trials.iter().filter(|trial| trial.point == cell.point);
            let ratios: Option<Vec<f64>> = of_cell.map(|trial| trial.figure(LOSS_RATIO)).collect();
            loss_ratios.extend(ratios.map(|ratios| (cell.name.clone(), ratios)));
        }
        let (path, bad_lines, partial) = (PathBuf::new(), Vec::new(), Vec::new());
        Ok(Side { summary, loss_ratios, partial, path, bad_lines })
    }

    /// Combines several runs into one side. The value of a metric is then the mean of each run, so
    /// that drift between runs is in the intervals. Cells that not all runs have are set apart; a
    /// result that is invalid in one of them stays invalid.
    ///
    /// # Panics
    /// If there is no run.
    pub fn of_runs(runs: Vec<Side>) -> Side {
        let mut all = runs[0].clone();
        all.partial = partial(&runs);
        all.summary.cells.retain(|cell| runs.iter().all(|run| run.cell(cell).is_some()));
        all.loss_ratios.clear();
        for cell in &mut all.summary.cells {
            let of_runs: Vec<&Cell> = runs.iter().filter_map(|run| run.cell(cell)).collect();
            let ratios: Option<Vec<f64>> = of_runs.iter().map(|cell| loss_ratio(cell)).collect();
            all.loss_ratios.extend(ratios.map(|ratios| (cell.name.clone(), ratios)));
            *cell = joined(&of_runs);
        }
        let names: Vec<&str> = runs.iter().map(|run| run.summary.run.id.as_str()).collect();
        all.summary.run.id = names.join(", ");
        let cut_short = runs.iter().find(|run| run.summary.run.outcome != "done");
        if let Some(run) = cut_short {
            all.summary.run.outcome.clone_from(&run.summary.run.outcome);
        }
        all.bad_lines = runs.into_iter().flat_map(|run| run.bad_lines).collect();
        all
    }

    fn cell(&self, like: &Cell) -> Option<&Cell> {
        self.summary.cells.iter().find(|cell| cell.point == like.point)
    }

    fn read_summary(path: &Path) -> Result<Side, RecordError> {
        let text = fs::read_to_string(path).map_err(|problem| RecordError::new(path, problem))?;
        let wrong = |problem: serde_json::Error| {
            let fix = "give a summary.json or a journal.jsonl that weigh wrote";
            RecordError::saying(path, problem.to_string(), fix)
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(wrong)?;
        let schema = value.get("schema").and_then(serde_json::Value::as_str);
        check_schema(path, schema)?;
        let summary = Summary::from_json(text.as_bytes()).map_err(wrong)?;
        let loss_ratios = BTreeMap::new();
        let (path, bad_lines, partial) = (path.to_owned(), Vec::new(), Vec::new());
        Ok(Side { summary, loss_ratios, partial, path, bad_lines })
    }
}

/// Cells that some of the runs have and others lack, each once.
fn partial(runs: &[Side]) -> Vec<Cell> {
    let mut found: Vec<Cell> = Vec::new();
    for cell in runs.iter().flat_map(|run| &run.summary.cells) {
        let is_new = found.iter().all(|known| known.point != cell.point);
        if is_new && runs.iter().any(|run| run.cell(cell).is_none()) {
            found.push(cell.clone());
        }
    }
    found
}

/// One cell of several runs, with one value per run.
fn joined(of_runs: &[&Cell]) -> Cell {
    let mut cell = of_runs[0].clone();
    let mut metrics = BTreeMap::new();
    for name in cell.metrics.keys() {
        let mean = |cell: &&Cell| {
            let metric = cell.metrics.get(name)?;
            // A repetition without a single message with this time is missing from the run's mean.
            let time = name.split_once('.').map_or("", |(time, _)| time);
            let is_whole = cell.samples.get(time) != Some(&0);
            is_whole.then(|| metric.value.unwrap_or(f64::INFINITY))
        };
        let means: Option<Vec<f64>> = of_runs.iter().map(mean).collect();
        metrics.extend(means.map(|means| (name.clone(), Metric::new(name, &means))));
    }
    cell.metrics = metrics;
    cell.repetitions = of_runs.len() as u32;
    cell.valid = of_runs.iter().all(|cell| cell.valid);
    for other in of_runs.iter().skip(1) {
        cell.ledger.add(&other.ledger);
        let known: BTreeSet<String> =
            cell.samples.keys().chain(other.samples.keys()).cloned().collect();
        let values = |cell: &Cell, time: &String| cell.samples.get(time).copied().unwrap_or(0);
        let least = |time: &String| values(&cell, time).min(values(other, time));
        cell.samples = known.iter().map(|time| (time.clone(), least(time))).collect();
        let is_new =
            |warning: &&WarningRecord| cell.warnings.iter().all(|known| known.code != warning.code);
        let new: Vec<WarningRecord> = other.warnings.iter().filter(is_new).cloned().collect();
        cell.warnings.extend(new);
    }
    cell
}

fn loss_ratio(cell: &Cell) -> Option<f64> {
    let sent = cell.ledger.sent;
    cell.ledger.lost.filter(|_| sent > 0).map(|lost| lost as f64 / sent as f64)
}

/// Number of runs before the newest one: 0 for `latest`, 1 for `latest~1`; `None` for other words.
fn steps_back(name: &str) -> Option<usize> {
    match name.strip_prefix(LATEST)? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

fn nth_newest(runs: &Path, back: usize) -> Result<PathBuf, RecordError> {
    let folders = RunFolder::all_below(runs)?;
    let found = folders.len().checked_sub(back + 1).map(|index| &folders[index]);
    let found = found.ok_or_else(|| {
        let problem = format!("there are only {} runs", folders.len());
        RecordError::saying(runs, problem, "name a run, or another folder with --runs DIR")
    })?;
    Ok(found.path().join(JOURNAL))
}

fn file_of(runs: &Path, name: &str) -> Result<PathBuf, RecordError> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(path.to_owned());
    }
    // A job of continuous integration may keep only the summary.
    let summary = path.join("summary.json");
    if !path.join(JOURNAL).is_file() && summary.is_file() {
        return Ok(summary);
    }
    Ok(RunFolder::find(runs, name)?.path().join(JOURNAL))
}

/// Refuses another version of the format; a file without a version is reported elsewhere.
fn check_schema(path: &Path, found: Option<&str>) -> Result<(), RecordError> {
    match found {
        Some(schema) if schema != SUMMARY_SCHEMA => {
            let problem =
                format!("it is {schema:?}, and this version of weigh reads {SUMMARY_SCHEMA:?}");
            Err(RecordError::saying(path, problem, "read it with the version that wrote it"))
        }
        _ => Ok(()),
    }
}

const LATEST: &str = "latest";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_runs_are_counted_back() {
        assert_eq!(steps_back("latest"), Some(0));
        assert_eq!(steps_back("latest~3"), Some(3));
        for other in ["latest~", "latest~x", "latest-compare", "2026-11-21T00-00-00-compare"] {
            assert_eq!(steps_back(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_no_run_is_refused_with_the_fix() {
        let folder = std::env::temp_dir().join(format!("weigh-diff-input-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (file, text, part) in [
            ("a.json", "{", "EOF"),
            ("b.json", "{\"schema\": \"weigh/summary/9\"}", "weigh/summary/9"),
            ("c.json", "{\"schema\": \"weigh/diff/1\"}", "reads \"weigh/summary/1\""),
            ("d.jsonl", "nonsense\n", "name the journal of a run"),
            (
                "e.jsonl",
                "{\"event\":\"run_started\",\"schema\":\"weigh/journal/99\",\"version\":\"9\"}\n",
                "weigh/journal/99",
            ),
        ] {
            let path = folder.join(file);
            fs::write(&path, text).unwrap();
            let error = Side::find(&folder, &path.display().to_string()).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(file), "{error}");
        }
        let error = Side::find(&folder, "latest").unwrap_err().to_string();
        assert!(error.contains("only 0 runs"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
