//! Inputs and results of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weigh_model::event::Setup;
use weigh_model::modelled::EnergyBasis;
use weigh_model::plan::Plan;
use weigh_report::summary::Answer;
use weigh_report::{RunFolder, Summary};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::pinning::{CoreSet, Pinning};

use crate::case::Case;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::probes::metering::Metering;
use crate::run::baseline::Baselines;
use crate::targets::hosts::Privileges;
use crate::targets::observers::Observers;
use crate::targets::pool::Targets;
use crate::watcher::{Watch, Watcher};

/// Everything that a run needs.
pub struct Experiment<'e> {
    /// The plan, resolved.
    pub plan: Plan,
    /// The plan's cases, in its order.
    pub cases: Vec<Case>,
    /// The real servers that can be started.
    pub catalogue: &'e Catalogue,
    /// Cores of target and generator.
    pub pinning: Pinning,
    /// Threads of the generator and of reference servers.
    pub shards: u32,
    /// Everything else that a resumption needs, see [`crate::run::resumption::setup`].
    pub setup: Setup,
    /// The place of its folder.
    pub place: Place<'e>,
    /// Signals that may end it early.
    pub interrupts: Arc<Interrupts>,
    /// Permission to make network namespaces for generator and target.
    pub privileges: Privileges,
    /// Suppresses progress.
    pub is_quiet: bool,
    /// Receives progress and notices.
    pub watcher: Box<dyn Watcher>,
    /// The program `weigh`, started for reference servers, relays and backgrounds.
    pub program: PathBuf,
    /// The baselines of this machine and build, once they are measured.
    pub baselines: Baselines,
    /// The energy meter, once it is opened.
    pub metering: Metering,
    /// Observers of external targets, once they are connected.
    pub lookouts: Observers,
    /// Coefficients of modelled energy, if it is asked for.
    pub energy: Option<Box<EnergyBasis>>,
}

/// Context of a run that does not depend on its plan.
pub struct RunContext<'e> {
    /// The real servers that can be started.
    pub catalogue: &'e Catalogue,
    /// The place of its folder.
    pub place: Place<'e>,
    /// Signals that may end it early.
    pub interrupts: Arc<Interrupts>,
    /// Permission to make network namespaces for generator and target.
    pub privileges: Privileges,
    /// Suppresses progress.
    pub is_quiet: bool,
    /// Makes the watcher of a run.
    pub watch: Watch,
    /// The program `weigh`, started for reference servers, relays and backgrounds.
    pub program: PathBuf,
}

/// Place in which the folder of a run is made.
#[derive(Clone, Copy, Debug)]
pub enum Place<'e> {
    /// In this folder, named by time and plan.
    Below(&'e Path),
    /// This folder: the run is part of a study.
    At(&'e Path),
}

/// Results of a run.
pub struct Finished {
    /// The result.
    pub summary: Summary,
    /// Its folder.
    pub folder: RunFolder,
    /// The first failure of a trial.
    pub first_failure: Option<Stop>,
    /// Reason for which not everything could be recorded; the summary is complete.
    pub unrecorded: Option<Stop>,
    /// The exit code of a signal.
    pub interrupted: Option<Exit>,
}

impl Finished {
    /// Exit code of a program that only ran this. A failed record takes precedence.
    pub fn exit(&self) -> Exit {
        match (&self.unrecorded, self.interrupted, &self.first_failure) {
            (Some(stop), ..) => stop.exit(),
            (None, Some(exit), _) => exit,
            (None, None, Some(stop))
                if self.summary.cells.is_empty() || stop.exit() == Exit::Target =>
            {
                stop.exit()
            }
            (None, None, Some(_)) => Exit::Internal,
            (None, None, None) => match self.summary.answer() {
                Answer::Failed => Exit::Finding,
                Answer::Undecided => Exit::Undecided,
                // A run with unmeasured cases does not pass.
                Answer::Holds if !self.summary.unmeasured().is_empty() => Exit::Undecided,
                Answer::Holds => Exit::Done,
            },
        }
    }
}

impl<'e> Experiment<'e> {
    /// Makes a run of a plan and its checked cases.
    ///
    /// # Errors
    /// A system that does not report the cores of the program.
    pub fn new(
        plan: Plan,
        cases: Vec<Case>,
        setup: Setup,
        around: RunContext<'e>,
    ) -> Result<Experiment<'e>, Stop> {
        let RunContext { catalogue, place, interrupts, privileges, is_quiet, watch, program } =
            around;
        let (shards, allowed) = (setup.shards, CoreSet::allowed()?);
        let pinning = Pinning::divide(&allowed, 1, shards as usize);
        Ok(Experiment {
            plan,
            cases,
            catalogue,
            pinning,
            shards,
            setup,
            place,
            interrupts,
            privileges,
            is_quiet,
            watcher: watch(is_quiet),
            program,
            baselines: Baselines::default(),
            metering: Metering::default(),
            lookouts: Observers::default(),
            energy: None,
        })
    }

    /// The targets of its trials, with their files in `folder`.
    pub fn targets(&self, folder: &RunFolder) -> Targets {
        let (plan, logs) = (&self.plan, folder.path().join("targets"));
        Targets::new(plan.repeat.target, self.catalogue, self.shards, logs, &self.program)
            .asking(plan.observe.sys)
    }
}
