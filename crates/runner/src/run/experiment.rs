//! Inputs and results of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weigh_model::counters::SysChoice;
use weigh_model::event::Setup;
use weigh_model::modelled::EnergyBasis;
use weigh_model::plan::Plan;
use weigh_report::summary::Answer;
use weigh_report::{RunFolder, Summary};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::pinning::{CoreSet, Pinning};

use crate::case::Case;
use crate::exit::{Exit, Stop};
use crate::fleet::hosts::Hosts;
use crate::interrupts::Interrupts;
use crate::probes::metering::Metering;
use crate::run::baseline::Baselines;
use crate::targets::external_counters::Await;
use crate::targets::hosts::Privileges;
use crate::targets::observers::Observers;
use crate::targets::pool::Targets;
use crate::watcher::{Watch, Watcher};

/// Everything that a run needs.
///
/// # Examples
///
/// A run that has passed all checks and has not begun:
///
/// ```
/// use weigh_runner::runner::Runner;
///
/// let runner = Runner::new("/usr/local/bin/weigh", "runs")?;
/// let (plan, secrets) = runner.read("example", "protocol = \"tcp\"\nload.messages = 100")?;
/// let experiment = runner.begin(runner.check(plan, &secrets)?, &secrets)?;
/// assert_eq!(experiment.cases.len(), 1);
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
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
    /// The agents that generate the load, if this process does not.
    pub fleet: Option<Hosts>,
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
///
/// # Examples
///
/// ```
/// use weigh_runner::exit::Stop;
/// use weigh_runner::run::experiment::Finished;
///
/// /// Prints the losses of a run, and where its record is.
/// fn print(finished: &Finished) {
///     for cell in &finished.summary.cells {
///         println!("{}: {:?} of {} lost", cell.name, cell.ledger.lost, cell.ledger.sent);
///     }
///     println!("run: {}", finished.folder.path().display());
/// }
/// # use weigh_runner::runner::Runner;
/// # use std::collections::BTreeMap;
/// # use weigh_runner::case::lanes::{Against, Lane};
/// # let protocol = weigh_protocols::find("tcp")?;
/// # let settings = Lane::new(protocol, Against::Reference, BTreeMap::new())?.settings;
/// # let any_port = "127.0.0.1:0".parse().expect("an address");
/// # let server = weigh_engine::serving::Serving::start(&protocol.host(&settings)?, any_port, 1)
/// #     .map_err(Stop::usage)?;
/// # let runs = std::env::temp_dir().join(format!("weigh-experiment-{}", std::process::id()));
/// # let load = "load = { pattern = \"batch\", messages = 100, warmup = \"0s\" }";
/// # let plan = format!("target = \"tcp://{}\"\nrepeat.at_least = 1\n{load}", server.address());
/// # let finished = Runner::new("/usr/local/bin/weigh", &runs)?.run("example", &plan)?;
/// # print(&finished);
/// # assert!(finished.folder.path().join("summary.json").is_file());
/// # std::fs::remove_dir_all(&runs)?;
/// # Ok::<(), Stop>(())
/// ```
pub struct Finished {
    /// The result.
    pub summary: Summary,
    /// Its folder.
    pub folder: RunFolder,
    /// The first failure of a trial.
    pub first_failure: Option<Stop>,
    /// Reason for which not everything could be recorded, or measured because a fleet's bus is
    /// gone; the summary has all that was.
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
                if self.summary.cells.is_empty()
                    || matches!(stop.exit(), Exit::Target | Exit::Generator) =>
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
            fleet: None,
        })
    }

    /// The targets of its trials, with their files in `folder`.
    pub fn targets(&self, folder: &RunFolder) -> Targets {
        let (plan, logs) = (&self.plan, folder.path().join("targets"));
        let targets =
            Targets::new(plan.repeat.target, self.catalogue, self.shards, logs, &self.program);
        let mut targets = targets.asking(plan.observe.sys);
        if plan.observe.sys == SysChoice::Off {
            targets.await_counters(Await::LossAbove(0.0));
        }
        targets
    }
}
