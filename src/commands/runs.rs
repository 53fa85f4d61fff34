//! `weigh runs`: lists past runs, or a metric over all of them.

use std::path::PathBuf;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use weigh_model::Condition;
use weigh_model::nearest::nearest;
use weigh_model::units::parse_duration;
use weigh_report::StudyFolder;
use weigh_report::history::{FigureEntry, History, Listing, RunEntry};

use crate::planning::counts::counts;
use crate::show::output;
use crate::show::run_list::{self, StudyEntry};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::study::study_run;

/// Flags of `weigh runs`.
#[derive(Args)]
pub struct Runs {
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

impl Runs {
    /// Lists the runs, the oldest first.
    ///
    /// # Errors
    /// Runs that cannot be read, and an unknown metric.
    pub fn run(self) -> Result<Exit, Stop> {
        let metric = self.metric.as_deref().map(flat_name).transpose()?;
        let listing = History::below(&self.runs).list(metric.as_deref()).map_err(Stop::usage)?;
        for note in &listing.notes {
            eprintln!("weigh: {note}");
        }
        if let Some(metric) = metric.as_ref().filter(|metric| {
            !listing.entries.is_empty() && !listing.metrics.contains(metric.as_str())
        }) {
            return Err(unknown_metric(metric, &listing));
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
            output::put(&format!("{text}\n"))?;
        } else if is_empty {
            eprintln!("weigh: there is no run below {} yet", self.runs.display());
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
        let mut entries = Vec::new();
        for folder in StudyFolder::all_below(&self.runs).map_err(Stop::usage)? {
            match study_run::document(&folder) {
                Ok(outcome) => entries.push(StudyEntry::of(&folder, &outcome)),
                Err(unreadable) => eprintln!("weigh: {unreadable}"),
            }
        }
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

/// Returns the flat name of a metric, in any notation of conditions: `response_time p(99)`.
fn flat_name(text: &str) -> Result<String, Stop> {
    let condition = format!("{text} > +0%").parse::<Condition>();
    let condition = condition.map_err(|problem| Stop::usage(format!("--metric: {problem}")))?;
    Ok(condition.metric)
}

fn unknown_metric(metric: &str, listing: &Listing) -> Stop {
    let family = metric.split('.').next().unwrap_or(metric);
    let names: Vec<&str> = listing.metrics.iter().map(String::as_str).collect();
    let is_near = |name: &&str| name.starts_with(family) || name.contains(metric);
    let near: Vec<&str> = names.iter().copied().filter(is_near).collect();
    let near = match nearest(metric, names.iter().copied()) {
        Some(name) if near.is_empty() => vec![name],
        _ => near,
    };
    let fix = match near.len() {
        0 => "type weigh export RUN --format csv, which has all metrics of a run".to_owned(),
        1..=NAMES_MAX => format!("type {}", near.join(" or ")),
        many => {
            let first = near[..NAMES_MAX].join(", ");
            format!("type {first} or another of {many} (weigh export RUN --format csv)")
        }
    };
    Stop::usage(format!("--metric {metric}: no run has this metric\nhelp: {fix}"))
}

fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(time) = format!("{text}T00:00:00Z").parse::<Timestamp>() {
        return Ok(time);
    }
    let hours = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    let ago = match hours {
        Some(days) => Ok(SignedDuration::from_hours(24 * days.min(DAYS_MAX) as i64)),
        None => parse_duration(text).map(|time| SignedDuration::from_nanos(time.0 as i64)),
    };
    let ago = ago.map_err(
        |_| "type a day (2026-11-01), a time (2026-11-01T12:00:00Z), or how long ago (12h, 7d)",
    )?;
    Timestamp::now().checked_sub(ago).map_err(|error| error.to_string())
}

/// Most names in an error.
const NAMES_MAX: usize = 6;

/// A hundred years.
const DAYS_MAX: u64 = 36_500;
