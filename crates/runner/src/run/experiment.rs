//! What a run is made of, and what it came to.

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
use crate::run::null_path::NullPaths;
use crate::targets::stage::Privileges;
use crate::targets::watching::Lookouts;
use crate::watcher::{Watch, Watcher};

/// Everything a run is made of.
pub struct Experiment<'e> {
    /// What was asked, resolved.
    pub plan: Plan,
    /// What is weighed: the plan's cases, index by index.
    pub cases: Vec<Case>,
    /// The real servers that can be started.
    pub catalogue: &'e Catalogue,
    /// Who runs where.
    pub pinning: Pinning,
    /// Threads of the generator and of reference servers.
    pub shards: u32,
    /// What else it takes to resume the run, see [`crate::run::resumption::setup`].
    pub setup: Setup,
    /// Where its folder is made.
    pub place: Place<'e>,
    /// Signals that may end it early.
    pub interrupts: Arc<Interrupts>,
    /// Whether generator and target can be hosts.
    pub privileges: Privileges,
    /// Says nothing on the way.
    pub is_quiet: bool,
    /// Who is told how it goes.
    pub watcher: Box<dyn Watcher>,
    /// The program `weigh`, started for reference servers, relays and backgrounds.
    pub program: PathBuf,
    /// What this machine and this build can do at most, once it is known.
    pub null_paths: NullPaths,
    /// How energy is measured, once it is known.
    pub metering: Metering,
    /// What is watched of targets that somebody else runs, once it is known to be there.
    pub lookouts: Lookouts,
    /// What modelled figures of energy rest on, where they were asked for.
    pub energy: Option<Box<EnergyBasis>>,
}

/// What a run is carried out under, whatever it weighs.
pub struct RunContext<'e> {
    /// The real servers that can be started.
    pub catalogue: &'e Catalogue,
    /// Where its folder is made.
    pub place: Place<'e>,
    /// Signals that may end it early.
    pub interrupts: Arc<Interrupts>,
    /// Whether generator and target can be hosts.
    pub privileges: Privileges,
    /// Says nothing on the way.
    pub is_quiet: bool,
    /// Makes who is told how it goes.
    pub watch: Watch,
    /// The program `weigh`, started for reference servers, relays and backgrounds.
    pub program: PathBuf,
}

/// Where the folder of a run is made.
#[derive(Clone, Copy, Debug)]
pub enum Place<'e> {
    /// Below this one, called by the time and the plan.
    Below(&'e Path),
    /// It is this one: the run is a part of a study.
    At(&'e Path),
}

/// What a run came to.
pub struct Finished {
    /// The result.
    pub summary: Summary,
    /// Where it lies.
    pub folder: RunFolder,
    /// The first reason why a trial could not be done.
    pub first_failure: Option<Stop>,
    /// Why not everything could be recorded; the summary holds it all the same.
    pub unrecorded: Option<Stop>,
    /// The exit code that a signal asked for.
    pub interrupted: Option<Exit>,
}

impl Finished {
    /// How a program ends that did nothing else. What could not be recorded comes before all.
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
                // Nothing measured is no pass.
                Answer::Holds if !self.summary.unmeasured().is_empty() => Exit::Undecided,
                Answer::Holds => Exit::Done,
            },
        }
    }
}

impl<'e> Experiment<'e> {
    /// Of a plan with its cases, decided and looked at, under these circumstances.
    ///
    /// # Errors
    /// If the system does not say on which cores the program may run.
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
            null_paths: NullPaths::default(),
            metering: Metering::default(),
            lookouts: Lookouts::default(),
            energy: None,
        })
    }
}
