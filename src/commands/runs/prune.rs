//! `weigh runs prune`: removes old or failed runs, and keeps the newest.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use weigh_report::journal::Removal;

use super::listed::{self, Listed};
use super::removing::{Removable, ask, counted, remove};
use crate::planning::counts::counts;
use crate::planning::past::since;
use crate::show::{output, run_list};
use weigh_runner::exit::{Exit, Stop};

/// The flags of `weigh runs prune`.
#[derive(Args)]
pub struct Prune {
    /// Keep the newest N runs
    #[arg(long, value_name = "N", value_parser = counts(0..=usize::MAX))]
    keep: Option<usize>,
    /// Remove only runs that started before: 30d or 12h ago, or 2026-11-01
    #[arg(long, value_name = "TIME", value_parser = since)]
    older_than: Option<Timestamp>,
    /// Remove only runs that failed, crashed or were interrupted
    #[arg(long)]
    failed: bool,
    /// Print what would be removed, and remove nothing
    #[arg(long, alias = "dry")]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

impl Prune {
    /// Lists what would be removed, asks, and removes it.
    ///
    /// # Errors
    /// Without a condition, without a confirmation, and if a run cannot be removed.
    pub fn run(self) -> Result<Exit, Stop> {
        if self.keep.is_none() && self.older_than.is_none() && !self.failed {
            let help = "give --keep N, --older-than 30d or --failed";
            return Err(Stop::usage(format!("prune needs a condition\nhelp: {help}")));
        }
        let listed = listed::all(&self.runs)?;
        let mut chosen = Vec::new();
        for run in self.chosen(&listed) {
            // Its state may have changed since it was listed.
            match Removal::of(&self.runs, &run.path) {
                Ok(claimed) => chosen.push((run, Removable::of(&claimed))),
                Err(kept) => eprintln!("weigh: {kept}"),
            }
        }
        if chosen.is_empty() {
            eprintln!("weigh: none of {} runs is to be removed", listed.len());
            return Ok(Exit::Done);
        }
        let row = |(run, removable): &(&Listed, Removable)| run_list::RemovedRow {
            id: run.id.clone(),
            started: run.started.clone(),
            outcome: run.outcome.clone(),
            bytes: removable.bytes,
        };
        output::put(&run_list::removed(&chosen.iter().map(row).collect::<Vec<_>>()))?;
        let all: Vec<Removable> = chosen.into_iter().map(|(_, removable)| removable).collect();
        if self.dry_run {
            eprintln!("weigh: would remove {}", counted(&all));
            return Ok(Exit::Done);
        }
        if !self.yes {
            ask(&all)?;
        }
        remove(&self.runs, &all)
    }

    /// The runs that meet every condition, the oldest first. The newest stay whatever their
    /// outcome; a run in progress is one of them if it is new enough, and is never removed.
    fn chosen<'l>(&self, listed: &'l [Listed]) -> Vec<&'l Listed> {
        let old = listed.len().saturating_sub(self.keep.unwrap_or(0));
        let is_chosen = |run: &&Listed| {
            run.outcome != IN_PROGRESS
                && self.older_than.is_none_or(|before| run.moment() < before)
                && (!self.failed || run.outcome != "done")
        };
        listed[..old].iter().filter(is_chosen).collect()
    }
}

const IN_PROGRESS: &str = "in progress";

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(runs: &[(&str, &str)]) -> Vec<Listed> {
        let of = |(number, (started, outcome)): (usize, &(&str, &str))| Listed {
            id: format!("run-{number}"),
            path: PathBuf::new(),
            started: format!("2026-11-{started}T00:00:00Z"),
            outcome: (*outcome).to_owned(),
        };
        runs.iter().enumerate().map(of).collect()
    }

    fn prune(keep: Option<usize>, older_than: Option<&str>, failed: bool) -> Vec<usize> {
        let all = listed(&[
            ("01", "done"),
            ("02", "failed"),
            ("03", "in progress"),
            ("04", "crashed"),
            ("05", "interrupted"),
            ("06", "done"),
        ]);
        let older_than = older_than.map(|text| since(text).unwrap());
        let (runs, dry_run, yes) = (PathBuf::new(), false, false);
        let prune = Prune { keep, older_than, failed, dry_run, yes, runs };
        let number = |run: &&Listed| run.id.strip_prefix("run-").unwrap().parse().unwrap();
        prune.chosen(&all).iter().map(number).collect()
    }

    #[test]
    fn the_newest_and_a_run_in_progress_stay() {
        assert_eq!(prune(Some(2), None, false), [0, 1, 3]);
        assert_eq!(prune(Some(0), None, false), [0, 1, 3, 4, 5]);
        assert!(prune(Some(9), None, false).is_empty());
    }

    #[test]
    fn every_condition_must_hold() {
        assert_eq!(prune(None, Some("2026-11-04"), false), [0, 1]);
        assert_eq!(prune(None, None, true), [1, 3, 4]);
        assert_eq!(prune(Some(2), Some("2026-11-04"), true), [1]);
    }
}
