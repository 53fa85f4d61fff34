//! The front door of the library: a plan in, its results out.

use std::path::PathBuf;

use weigh_model::plan::Plan;
use weigh_testbed::catalogue::Catalogue;

use crate::case::decide;
use crate::case::known::Known;
use crate::case::secrets::Secrets;
use crate::energy;
use crate::exit::Stop;
use crate::interrupts::Interrupts;
use crate::preflight::{self, due};
use crate::run::experiment::{Experiment, Finished, Place, RunContext};
use crate::run::resumption;
use crate::targets::stage::Privileges;
use crate::watcher::{Silent, Watch, Watcher};

/// Runs plans of this program, one after another.
pub struct Runner {
    program: PathBuf,
    runs: PathBuf,
    catalogue: Catalogue,
    watch: Watch,
    may_load: bool,
}

impl Runner {
    /// A runner that keeps runs in the folder `runs`. Reference servers, relays and backgrounds are
    /// processes of `program`, which is `weigh`.
    ///
    /// # Errors
    /// If the built-in targets cannot be read.
    pub fn new(program: impl Into<PathBuf>, runs: impl Into<PathBuf>) -> Result<Runner, Stop> {
        Ok(Runner {
            program: program.into(),
            runs: runs.into(),
            catalogue: Catalogue::load(None).map_err(Stop::usage)?,
            watch: Silent::watch,
            may_load: false,
        })
    }

    /// Has `watch` make who is told how each run goes; nothing is printed otherwise.
    pub fn watched_by(self, watch: Watch) -> Runner {
        Runner { watch, ..self }
    }

    /// Confirms that you are authorised to load-test remote hosts.
    pub fn allowed_to_load(self) -> Runner {
        Runner { may_load: true, ..self }
    }

    /// Runs a plan in TOML, as `weigh run` does. Signals end it early and leave a run folder that
    /// can be resumed.
    ///
    /// # Errors
    /// If the plan is wrong, or a run cannot begin or be recorded. Trials that failed are in
    /// [`Finished::first_failure`].
    pub fn run(&self, name: &str, plan: &str) -> Result<Finished, Stop> {
        let watcher = (self.watch)(false);
        let known = Known::new(&self.catalogue, &*watcher);
        let resolved = weigh_plan::read(plan, &known).and_then(|draft| draft.resolve(name));
        let resolved =
            resolved.map_err(|problems| Stop::usage(problems.render(name, plan, false)))?;
        let secrets = Secrets {
            by_url: known.into_credentials(),
            settings: resolved.secrets,
            ..Secrets::default()
        };
        self.experiment(resolved.plan, &secrets, &*watcher)?.run()
    }

    /// What `weigh run` checks before anything starts.
    fn experiment(
        &self,
        plan: Plan,
        secrets: &Secrets,
        watcher: &dyn Watcher,
    ) -> Result<Experiment<'_>, Stop> {
        let energy = energy::basis(&plan, None)?;
        let plan = energy::heard(plan);
        let cases = decide(&plan, &self.catalogue, secrets)?;
        due::check(&cases)?;
        due::warn_of_few(&plan, &cases, watcher);
        preflight::check_log(plan.observe.meter.as_ref(), watcher)?;
        let privileges = Privileges::take(&cases, watcher)?;
        preflight::may_load(&cases, self.may_load)?;
        let shards = preflight::shards(&cases, None);
        preflight::examine(&self.catalogue, &cases, shards)?;
        let setup = resumption::setup(shards, None, secrets, &cases)?;
        let around = RunContext {
            catalogue: &self.catalogue,
            place: Place::Below(&self.runs),
            interrupts: Interrupts::listen(Silent)?,
            privileges,
            is_quiet: false,
            watch: self.watch,
            program: self.program.clone(),
        };
        Ok(Experiment { energy, ..Experiment::new(plan, cases, setup, around)? })
    }
}
