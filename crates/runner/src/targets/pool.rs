//! The targets of a run: one for each trial, or kept from trial to trial. Counts of a kept target
//! before a trial are subtracted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weigh_engine::outcome::Outcome;
use weigh_model::counters::SysChoice;
use weigh_model::plan::TargetLife;
use weigh_model::server::ServerReport;
use weigh_model::{Ledger, Trial};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::cgroup::ControlGroup;
use weigh_testbed::hosts::Scene;
use weigh_testbed::pinning::CoreSet;
use weigh_testbed::placement::Placement;

use crate::case::lanes::Lane;
use crate::exit::{Exit, Stop};
use crate::targets::addresses;
use crate::targets::external_counters::{Asking, Await, CountersRead, ExternalCounters};
use crate::targets::hosts::{RELAY, Stage, TARGET};
use crate::targets::relay::RunningRelay;
use crate::targets::running::{READY_WITHIN, Running, store_of};
use crate::targets::tls::CertificateFiles;

/// Starts targets, and keeps those that the plan asks to keep. Dropping it stops them.
pub struct Targets {
    life: TargetLife,
    catalogue: Catalogue,
    shards: u32,
    /// The program `weigh`, which runs reference servers and relays.
    program: PathBuf,
    /// Folder of the targets' files and logs.
    folder: PathBuf,
    /// Their certificates.
    vault: CertificateFiles,
    kept: BTreeMap<String, Kept>,
    /// Number of kept targets that were started.
    started: u32,
    /// The counters of external targets.
    behind: ExternalCounters,
    awaits: Await,
}

/// State of a kept target between two trials.
enum Kept {
    Alive(Box<(Started, Counted)>),
    /// It must be restarted, with the reason.
    Gone(String),
}

/// A running target and its environment. Fields are dropped in this order.
pub struct Started {
    /// The target.
    pub running: Running,
    /// The relay in front of it.
    pub relay: Option<RunningRelay>,
    /// Its share of the machine, if it has one.
    pub enclosure: Option<Arc<ControlGroup>>,
    /// The network namespaces of generator and target, if they have any.
    pub scene: Option<Scene>,
    /// Folder of its store, which is removed when it stops; often there is none.
    store: PathBuf,
}

impl Started {
    /// Stops all of it.
    pub fn stop(self) {
        if let Some(relay) = self.relay {
            relay.stop();
        }
        self.running.stop();
        // Its counts are in the journal, and its files may be as large as everything it was sent.
        let _ = std::fs::remove_dir_all(&self.store);
    }
}

/// Counts of a target since its start.
#[derive(Clone, Default)]
pub struct Counted {
    /// The count of a reference server.
    pub report: ServerReport,
    /// The counters of a real server.
    pub counters: BTreeMap<String, f64>,
}

/// A target for one trial.
pub struct Lease {
    /// The target.
    pub target: Started,
    /// Its counts before the trial.
    pub before: Counted,
    /// True if it has served an earlier trial.
    pub is_used: bool,
    /// End of its predecessor, if it had to be restarted.
    pub restarted: Option<String>,
    /// Counters of the trial by an external server.
    pub told: CountersRead,
    /// The key by which it is kept.
    key: String,
    awaits: Await,
}

impl Targets {
    /// Makes targets with this lifetime, with their files in `folder`. Reference servers and relays
    /// run as `program`, which is `weigh`.
    pub fn new(
        life: TargetLife,
        catalogue: &Catalogue,
        shards: u32,
        folder: PathBuf,
        program: &Path,
    ) -> Targets {
        let (vault, kept) = (CertificateFiles::new(folder.join("tls")), BTreeMap::new());
        let (behind, awaits) = (ExternalCounters::default(), Await::default());
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

    /// Sets how counters of external targets are read.
    pub fn asking(mut self, sys: SysChoice) -> Targets {
        self.behind = ExternalCounters::new(sys);
        self
    }

    /// Sets after which trials counters are awaited.
    pub fn await_counters(&mut self, awaits: Await) {
        self.awaits = awaits;
    }

    /// Prepares the counters of an external target before a trial's first connection.
    ///
    /// # Errors
    /// A target without counters although the plan demands them.
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

    /// Reads the counters of an external target after a trial has settled.
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

    /// Returns the target of `lane` on this stage and these cores, for the trial of this id.
    ///
    /// # Errors
    /// A target that cannot be started.
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

    /// Returns a target to the pool after a trial, with its counts at the end; `None` if they are
    /// unknown or the trial failed: then the next trial gets a new target.
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

    /// Folder of the targets' files and logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The certificates of the run.
    pub fn vault(&self) -> &CertificateFiles {
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
        let site = Placement { cores: Some(cores), host, enclosure: enclosure.as_ref() };
        let keeping = (&*folder, &self.vault);
        let running =
            Running::start(&self.program, lane, &self.catalogue, &site, self.shards, keeping)?;
        let mut relay = None;
        if stage.has_relay {
            let to = addresses::resolve(running.endpoint())?;
            let host = scene.as_ref().and_then(|scene| scene.host(RELAY).ok());
            // The scheduler chooses its core: on the target's cores it would take CPU time from the
            // target.
            let site = Placement { cores: None, host, enclosure: None };
            relay = Some(RunningRelay::start(&self.program, to, &site, &folder)?);
        }
        Ok(Started { running, relay, enclosure, scene, store: store_of(&folder) })
    }

    /// A kept target with its present counts, so that late messages of an earlier trial do not
    /// count for a later one; or how it ended.
    fn ready_again(
        (mut target, mut counted): (Started, Counted),
    ) -> Result<(Started, Counted), String> {
        if let Some(ended) = target.running.ended() {
            return Err(ended);
        }
        if let Some(ended) = target.relay.as_mut().and_then(RunningRelay::ended) {
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
    /// True if the target's counters must be awaited: those of a kept one continue.
    pub fn awaits_counters(&self, ledger: &Ledger) -> bool {
        !self.key.is_empty() || self.awaits.is_met(ledger)
    }
}
