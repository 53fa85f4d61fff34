//! `weigh runs`: lists the runs that are kept, or a metric from run to run; cites and removes them.

mod cite;
mod listed;
mod prune;
mod removing;
mod rm;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use weigh_model::condition::resolve;
use weigh_report::history::{FigureEntry, History, RunEntry};

use crate::planning::counts::counts;
use crate::planning::metric_names::{flat_name, unknown};
use crate::planning::past::since;
use crate::show::output;
use crate::show::run_list::{self, StudyEntry};
use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh runs`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(subcommand)]
    command: Option<Command>,
    /// Show only runs with this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Show only runs that started since: 2026-11-01, 2026-11-01T12:00:00Z, or 12h or 7d ago
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
    /// Show a metric of every run, cell by cell, such as response_time_ns.p99
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Show only the N most recent runs
    #[arg(short = 'n', value_name = "N", value_parser = counts(0..=usize::MAX))]
    newest: Option<usize>,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Print a BibTeX entry and a sentence for a methods section
    Cite(cite::Cite),
    /// Remove runs
    Rm(rm::Rm),
    /// Remove old or failed runs
    Prune(prune::Prune),
}

impl Runs {
    /// Lists the runs, the oldest first, or runs a subcommand.
    ///
    /// # Errors
    /// Those of the subcommand; for the list, if the folder of runs cannot be read.
    pub fn run(mut self) -> Result<Exit, Stop> {
        match self.command.take() {
            Some(Command::Cite(command)) => command.run(),
            Some(Command::Rm(command)) => command.run(),
            Some(Command::Prune(command)) => command.run(),
            None => self.list(),
        }
    }

    fn list(&self) -> Result<Exit, Stop> {
        let asked = self.metric.as_deref().map(|text| flat_name("--metric", text)).transpose()?;
        let history = History::below(&self.runs);
        let mut listing = history.list(asked.as_deref()).map_err(Stop::usage)?;
        let resolved = |name: &str| resolve(name, |own| listing.metrics.contains(own)).into_owned();
        let metric = asked.as_deref().map(resolved);
        // The headline latency is the time that the runs have.
        if metric != asked {
            listing = history.list(metric.as_deref()).map_err(Stop::usage)?;
        }
        for note in &listing.notes {
            eprintln!("weigh: {note}");
        }
        if let Some(metric) = metric.as_ref().filter(|metric| {
            !listing.entries.is_empty() && !listing.metrics.contains(metric.as_str())
        }) {
            let names = listing.metrics.iter().map(String::as_str);
            let typed = self.metric.as_deref().unwrap_or(metric);
            return Err(unknown(("--metric", typed), metric, "no run", names));
        }
        let entries = self.chosen(&listing.entries);
        let studies = self.studies()?;
        let is_empty = listing.entries.is_empty() && studies.is_empty();
        let figures: Vec<&FigureEntry> = listing
            .figures
            .iter()
            .filter(|figure| entries.iter().any(|entry| entry.id == figure.run))
            .collect();
        if self.json {
            let text = match &metric {
                Some(_) => run_list::figures_json(&entries, &figures),
                None => run_list::entries_json(&entries, &studies),
            };
            let text = text.map_err(|error| Stop::new(Exit::Internal, error))?;
            output::put_document(&format!("{text}\n"))?;
        } else if is_empty {
            eprintln!("weigh: there is no run in the folder {} yet", self.runs.display());
        } else if entries.is_empty() && (studies.is_empty() || metric.is_some()) {
            eprintln!("weigh: none of {} runs matches", listing.entries.len());
        } else if let Some(metric) = &metric {
            output::put(&run_list::history(metric, &entries, &figures))?;
        } else {
            output::put(&run_list::tables(&entries, &studies))?;
        }
        Ok(Exit::Done)
    }

    /// Returns the selected runs of studies, the oldest first. Reports runs that cannot be read.
    fn studies(&self) -> Result<Vec<StudyEntry>, Stop> {
        let mut entries = listed::studies(&self.runs)?;
        entries.retain(|entry| self.is_chosen(&entry.name, &entry.started));
        let surplus = entries.len().saturating_sub(self.newest.unwrap_or(usize::MAX));
        entries.drain(..surplus);
        Ok(entries)
    }

    /// True if a run with this name and start is selected.
    fn is_chosen(&self, name: &str, started: &str) -> bool {
        let started = started.parse::<Timestamp>().unwrap_or(Timestamp::UNIX_EPOCH);
        self.name.as_ref().is_none_or(|own| own == name)
            && self.since.is_none_or(|since| started >= since)
    }

    fn chosen<'l>(&self, entries: &'l [RunEntry]) -> Vec<&'l RunEntry> {
        let is_chosen = |entry: &&RunEntry| self.is_chosen(&entry.name, &entry.started);
        let mut chosen: Vec<&RunEntry> = entries.iter().filter(is_chosen).collect();
        let surplus = chosen.len().saturating_sub(self.newest.unwrap_or(usize::MAX));
        chosen.drain(..surplus);
        chosen
    }
}
