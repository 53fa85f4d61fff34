//! The targets of a run: one for each trial, or kept from trial to trial. What a kept target
//! counted before a trial is taken off what it counted in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weigh_engine::outcome::Outcome;
use weigh_model::counters::SysChoice;
use weigh_model::plan::TargetLife;
use weigh_model::server::ServerReport;
use weigh_model::{Ledger, Trial};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::enclosure::Enclosure;
use weigh_testbed::hosts::Scene;
use weigh_testbed::pinning::CoreSet;
use weigh_testbed::site::Site;

use crate::case::lanes::Lane;
use crate::exit::{Exit, Stop};
use crate::targets::addresses;
use crate::targets::behind::{Asking, Await, Behind, CountersRead};
use crate::targets::relayed::Relayed;
use crate::targets::running::{READY_WITHIN, Running};
use crate::targets::secured::Vault;
use crate::targets::stage::{RELAY, Stage, TARGET};

/// Starts targets, and keeps those that are to be kept. Dropping it stops them.
pub struct Targets {
    life: TargetLife,
    catalogue: Catalogue,
    shards: u32,
    /// The program `weigh`, of which reference servers and relays are made.
    program: PathBuf,
    /// Where targets keep their files and logs.
    folder: PathBuf,
    /// Their certificates, beside those.
    vault: Vault,
    kept: BTreeMap<String, Kept>,
    /// How many were started to be kept.
    started: u32,
    /// The counters of those that are given by URL.
    behind: Behind,
    awaits: Await,
}

/// What is known of a kept target between two trials.
enum Kept {
    Alive(Box<(Started, Counted)>),
    /// It is to be started anew, and why.
    Gone(String),
}

/// A target that runs, with all that it stands on. What is first goes first.
pub struct Started {
    /// The target.
    pub running: Running,
    /// The relay before it.
    pub relay: Option<Relayed>,
    /// Its share of the machine, where it was given one.
    pub enclosure: Option<Arc<Enclosure>>,
    /// The hosts that generator and target are, where they are any.
    pub scene: Option<Scene>,
}

impl Started {
    /// Ends all of it.
    pub fn stop(self) {
        if let Some(relay) = self.relay {
            relay.stop();
        }
        self.running.stop();
    }
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
    pub target: Started,
    /// What it had counted before the trial.
    pub before: Counted,
    /// True if it has served an earlier trial.
    pub is_used: bool,
    /// How its predecessor ended, where it had to be started anew.
    pub restarted: Option<String>,
    /// What the server behind a URL has told of the trial.
    pub told: CountersRead,
    /// By which it is kept.
    key: String,
    awaits: Await,
}

impl Targets {
    /// Targets that live so long, with their files below `folder`. Reference servers and relays are
    /// made of `program`, which is `weigh`.
    pub fn new(
        life: TargetLife,
        catalogue: &Catalogue,
        shards: u32,
        folder: PathBuf,
        program: &Path,
    ) -> Targets {
        let (vault, kept) = (Vault::new(folder.join("tls")), BTreeMap::new());
        let (behind, awaits) = (Behind::default(), Await::default());
        let (catalogue, program) = (catalogue.clone(), program.to_owned());
        Targets {
            life,
            catalogue,
            shards,
            program,
            folder,
            vault,
            kept,
            started: 0,
            behind,
            awaits,
        }
    }

    /// The same, where those given by URL are asked so for their counters.
    pub fn asking(mut self, sys: SysChoice) -> Targets {
        self.behind = Behind::new(sys);
        self
    }

    /// From now on counters are waited for after these trials.
    pub fn await_counters(&mut self, awaits: Await) {
        self.awaits = awaits;
    }

    /// Before the first connection of a trial at a target that is given by URL.
    ///
    /// # Errors
    /// If it has no counters although they were demanded.
    pub fn ask_before(
        &mut self,
        lane: &Lane,
        trial: &Trial,
        say: &dyn Fn(&str),
    ) -> Result<(), Stop> {
        if !lane.is_foreign() {
            return Ok(());
        }
        self.behind.before(&Asking { lane, trial, vault: &self.vault, say }, &self.catalogue)
    }

    /// After such a trial has settled.
    pub fn ask_after(
        &mut self,
        lane: &Lane,
        trial: &Trial,
        outcome: &Outcome,
        say: &dyn Fn(&str),
    ) -> CountersRead {
        let asking = Asking { lane, trial, vault: &self.vault, say };
        self.behind.after(&asking, outcome, self.awaits)
    }

    /// The target of `lane` on this stage and these cores, for the trial of this id.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn lease(
        &mut self,
        lane: &Lane,
        stage: &Stage,
        cores: &CoreSet,
        trial: &str,
    ) -> Result<Lease, Stop> {
        if self.life == TargetLife::Fresh || lane.is_foreign() {
            let started = self.start(lane, stage, cores, self.folder.join(trial))?;
            return Ok(self.first(started, String::new(), None));
        }
        let key = Running::key(lane, self.shards) + &stage.key();
        let restarted = match self.kept.remove(&key) {
            Some(Kept::Alive(kept)) => match Self::ready_again(*kept) {
                Ok((target, before)) => {
                    let restarted = None;
                    let lease = self.first(target, key, restarted);
                    return Ok(Lease { before, is_used: true, ..lease });
                }
                Err(ended) => Some(ended),
            },
            Some(Kept::Gone(ended)) => Some(ended),
            None => None,
        };
        self.started += 1;
        let folder = self.folder.join(format!("kept-{}", self.started));
        let started = self.start(lane, stage, cores, folder)?;
        Ok(self.first(started, key, restarted))
    }

    fn first(&self, target: Started, key: String, restarted: Option<String>) -> Lease {
        let (before, told, awaits) = (Counted::default(), CountersRead::default(), self.awaits);
        Lease { target, before, is_used: false, restarted, told, key, awaits }
    }

    /// Takes a target back after a trial at whose end it had counted so much; `None` where that
    /// is not known, or where the trial failed: then the next one gets a target that is new.
    pub fn give_back(&mut self, lease: Lease, counted: Option<Counted>) {
        let Lease { mut target, key, .. } = lease;
        if key.is_empty() {
            return target.stop();
        }
        let kept = match (target.running.ended(), counted) {
            (None, Some(counted)) => Kept::Alive(Box::new((target, counted))),
            (ended, _) => {
                target.stop();
                Kept::Gone(ended.unwrap_or_else(|| "the trial before it failed".to_owned()))
            }
        };
        self.kept.insert(key, kept);
    }

    /// The real servers that can be started.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The program `weigh`.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Where targets keep their files and logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The certificates of the run.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    fn start(
        &self,
        lane: &Lane,
        stage: &Stage,
        cores: &CoreSet,
        folder: PathBuf,
    ) -> Result<Started, Stop> {
        let scene = if lane.is_foreign() { None } else { stage.set()? };
        let host = scene.as_ref().map(|scene| scene.host(TARGET)).transpose();
        let host = host.map_err(|error| Stop::new(Exit::Internal, error))?;
        let enclosure = if lane.is_foreign() { None } else { stage.share.enclose(cores) };
        let site = Site { cores: Some(cores), host, enclosure: enclosure.as_ref() };
        let beside = (&*folder, &self.vault);
        let running =
            Running::start(&self.program, lane, &self.catalogue, &site, self.shards, beside)?;
        let mut relay = None;
        if stage.has_relay {
            let to = addresses::resolve(running.endpoint())?;
            let host = scene.as_ref().and_then(|scene| scene.host(RELAY).ok());
            // Where the scheduler puts it: on the target's cores it would take the target's time.
            let site = Site { cores: None, host, enclosure: None };
            relay = Some(Relayed::start(&self.program, to, &site, &folder)?);
        }
        Ok(Started { running, relay, enclosure, scene })
    }

    /// A kept target with its count now: what came late for an earlier trial belongs to no later
    /// one. Or how it ended.
    fn ready_again(
        (mut target, mut counted): (Started, Counted),
    ) -> Result<(Started, Counted), String> {
        if let Some(ended) = target.running.ended() {
            return Err(ended);
        }
        if let Some(ended) = target.relay.as_mut().and_then(Relayed::ended) {
            target.stop();
            return Err(format!("its relay: {ended}"));
        }
        if let Running::Reference(server) = &mut target.running {
            match server.report(READY_WITHIN) {
                Ok(report) => counted.report = report,
                Err(error) => {
                    target.stop();
                    return Err(error.to_string());
                }
            }
        }
        Ok((target, counted))
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        for kept in std::mem::take(&mut self.kept).into_values() {
            if let Kept::Alive(kept) = kept {
                kept.0.stop();
            }
        }
    }
}

impl Lease {
    /// Whether the target's counters must be waited for: one that is kept counts on from them.
    pub fn awaits_counters(&self, ledger: &Ledger) -> bool {
        !self.key.is_empty() || self.awaits.is_met(ledger)
    }
}
