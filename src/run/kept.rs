//! The targets of a run: one for each trial, or kept from trial to trial. What a kept target
//! counted before a trial is taken off what it counted in it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use weigh_model::plan::TargetLife;
use weigh_model::server::ServerReport;
use weigh_stage::catalogue::Catalogue;
use weigh_stage::pinning::CoreSet;

use crate::exit::Stop;
use crate::planning::lanes::Lane;
use crate::run::target::{READY_WITHIN, Running};

/// Starts targets, and keeps those that are to be kept. Dropping it stops them.
pub struct Targets<'t> {
    life: TargetLife,
    catalogue: &'t Catalogue,
    cores: CoreSet,
    shards: u32,
    /// Where targets keep their files and logs.
    folder: PathBuf,
    kept: BTreeMap<String, Kept>,
    /// How many were started to be kept.
    started: u32,
}

/// What is known of a kept target between two trials.
enum Kept {
    Alive(Box<(Running, Counted)>),
    /// It is to be started anew, and why.
    Gone(String),
}

/// What a target has counted since it was started.
#[derive(Clone, Default)]
pub struct Counted {
    /// The count of a reference server.
    pub report: ServerReport,
    /// The counters of a real one.
    pub counters: BTreeMap<String, f64>,
}

/// A target for the time of a trial.
pub struct Lease {
    /// The target.
    pub running: Running,
    /// What it had counted before the trial.
    pub before: Counted,
    /// True if it has served an earlier trial.
    pub is_used: bool,
    /// How its predecessor ended, where it had to be started anew.
    pub restarted: Option<String>,
    /// By which it is kept.
    key: String,
}

impl<'t> Targets<'t> {
    /// Targets that live so long, on these cores, with their files below `folder`.
    pub fn new(
        life: TargetLife,
        catalogue: &'t Catalogue,
        cores: &CoreSet,
        shards: u32,
        folder: PathBuf,
    ) -> Targets<'t> {
        let cores = cores.clone();
        Targets { life, catalogue, cores, shards, folder, kept: BTreeMap::new(), started: 0 }
    }

    /// The target of `lane` for the trial of this id.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn lease(&mut self, lane: &Lane, trial: &str) -> Result<Lease, Stop> {
        if self.life == TargetLife::Fresh || lane.is_foreign() {
            let running = self.start(lane, self.folder.join(trial))?;
            return Ok(Lease::first(running, String::new(), None));
        }
        let key = Running::key(lane, self.shards);
        let restarted = match self.kept.remove(&key) {
            Some(Kept::Alive(kept)) => match Self::ready_again(*kept) {
                Ok((running, before)) => {
                    return Ok(Lease { running, before, is_used: true, restarted: None, key });
                }
                Err(ended) => Some(ended),
            },
            Some(Kept::Gone(ended)) => Some(ended),
            None => None,
        };
        self.started += 1;
        let folder = self.folder.join(format!("kept-{}", self.started));
        let running = self.start(lane, folder)?;
        Ok(Lease::first(running, key, restarted))
    }

    /// Takes a target back after a trial at whose end it had counted so much; `None` where that
    /// is not known, or where the trial failed: then the next one gets a target that is new.
    pub fn give_back(&mut self, lease: Lease, counted: Option<Counted>) {
        let Lease { mut running, key, .. } = lease;
        if key.is_empty() {
            return running.stop();
        }
        let kept = match (running.ended(), counted) {
            (None, Some(counted)) => Kept::Alive(Box::new((running, counted))),
            (ended, _) => {
                let why = ended.map(|ended| ended.to_string());
                running.stop();
                Kept::Gone(why.unwrap_or_else(|| "the trial before it failed".to_owned()))
            }
        };
        self.kept.insert(key, kept);
    }

    fn start(&self, lane: &Lane, folder: PathBuf) -> Result<Running, Stop> {
        Running::start(lane, self.catalogue, &self.cores, self.shards, &folder)
    }

    /// A kept target with its count now: what came late for an earlier trial belongs to no later
    /// one. Or how it ended.
    fn ready_again(
        (mut running, mut counted): (Running, Counted),
    ) -> Result<(Running, Counted), String> {
        if let Some(ended) = running.ended() {
            return Err(ended.to_string());
        }
        if let Running::Reference(server) = &mut running {
            match server.report(READY_WITHIN) {
                Ok(report) => counted.report = report,
                Err(error) => {
                    running.stop();
                    return Err(error.to_string());
                }
            }
        }
        Ok((running, counted))
    }
}

impl Drop for Targets<'_> {
    fn drop(&mut self) {
        for kept in std::mem::take(&mut self.kept).into_values() {
            if let Kept::Alive(kept) = kept {
                kept.0.stop();
            }
        }
    }
}

impl Lease {
    fn first(running: Running, key: String, restarted: Option<String>) -> Lease {
        Lease { running, before: Counted::default(), is_used: false, restarted, key }
    }
}
