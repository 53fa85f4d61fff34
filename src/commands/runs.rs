//! `weigh runs`: what has been weighed and kept.

use std::path::PathBuf;

use clap::Args;
use weigh_report::Summary;
use weigh_report::run_folder::RunFolder;

use crate::exit::{Exit, Stop};
use crate::output;

/// The flags of `weigh runs`.
#[derive(Args)]
pub struct Runs {
    /// Prints the list as JSON
    #[arg(long)]
    json: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

/// One line of the list.
#[derive(serde::Serialize)]
struct Entry {
    id: String,
    name: String,
    started: String,
    outcome: String,
    cells: usize,
    failures: usize,
}

impl Runs {
    /// Lists the runs, the oldest first.
    pub fn run(self) -> Result<Exit, Stop> {
        let mut entries = Vec::new();
        for folder in RunFolder::all_below(&self.runs).map_err(Stop::usage)? {
            match entry(&folder) {
                Ok(entry) => entries.push(entry),
                Err(problem) => eprintln!("weigh: {}: {problem}", folder.path().display()),
            }
        }
        if self.json {
            let text = serde_json::to_string_pretty(&entries)
                .map_err(|error| Stop::new(Exit::Internal, error))?;
            output::put(&format!("{text}\n"))?;
        } else if entries.is_empty() {
            eprintln!("weigh: there is no run below {} yet", self.runs.display());
        } else {
            output::put(&list(&entries))?;
        }
        Ok(Exit::Done)
    }
}

/// What the journal says; it is there from the first moment of a run on.
fn entry(folder: &RunFolder) -> Result<Entry, String> {
    let journal = folder.read_journal().map_err(|error| error.to_string())?;
    let summary = Summary::from_events(&journal.events).map_err(|error| error.to_string())?;
    Ok(Entry {
        id: folder.id().to_owned(),
        name: summary.run.plan.name,
        started: summary.run.started,
        outcome: summary.run.outcome,
        cells: summary.cells.len(),
        failures: summary.failures.len(),
    })
}

fn list(entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.id.chars().count()).max().unwrap_or(0);
    let mut text =
        format!("{:<width$}  {:<20}  {:<11}  cells  failed  name\n", "id", "started", "outcome");
    for entry in entries {
        let Entry { id, name, started, outcome, cells, failures } = entry;
        text += &format!("{id:<width$}  {started:<20}  {outcome:<11}  {cells:>5}");
        text += &format!("  {failures:>6}  {name}\n");
    }
    text
}
