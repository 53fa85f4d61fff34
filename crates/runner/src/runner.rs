//! Entry point of the library: takes a plan, returns its results. The checks before a run are here,
//! for programs and for the command line.

use std::borrow::Cow;
use std::path::PathBuf;

use weigh_model::event::Setup;
use weigh_model::modelled::EnergyBasis;
use weigh_model::plan::Plan;
use weigh_testbed::catalogue::Catalogue;

use crate::case::build::Build;
use crate::case::known::Known;
use crate::case::lanes::Against;
use crate::case::secrets::Secrets;
use crate::case::{Case, decide};
use crate::energy;
use crate::exit::Stop;
use crate::fleet::hosts::Hosts;
use crate::fleet::request::FleetRequest;
use crate::fleet::{self, fitness};
use crate::interrupts::Interrupts;
use crate::preflight::{self, due, patience};
use crate::run::experiment::{Experiment, Finished, Place, RunContext};
use crate::run::resumption::{self, Begun};
use crate::targets::hosts::Privileges;
use crate::targets::observers::Observers;
use crate::watcher::{Silent, Watch, Watcher};

/// Runs plans of this program, one after another. [`Runner::new`] has the defaults.
///
/// # Examples
///
/// 100 messages to a server that listens at `server.address()`:
///
/// ```
/// use weigh_runner::exit::{Exit, Stop};
/// use weigh_runner::runner::Runner;
/// # use std::collections::BTreeMap;
/// # use weigh_runner::case::lanes::{Against, Lane};
/// # let protocol = weigh_protocols::find("tcp")?;
/// # let settings = Lane::new(protocol, Against::Reference, BTreeMap::new())?.settings;
/// # let any_port = "127.0.0.1:0".parse().expect("an address");
/// # let server = weigh_engine::serving::Serving::start(&protocol.host(&settings)?, any_port, 1)
/// #     .map_err(Stop::usage)?;
/// # let runs = std::env::temp_dir().join(format!("weigh-example-{}", std::process::id()));
///
/// let load = "load = { pattern = \"batch\", messages = 100, warmup = \"0s\" }";
/// let plan = format!("target = \"tcp://{}\"\nrepeat.at_least = 1\n{load}", server.address());
/// let finished = Runner::new("/usr/local/bin/weigh", &runs)?.run("example", &plan)?;
/// let ledger = &finished.summary.cells[0].ledger;
/// assert_eq!((ledger.sent, ledger.lost), (100, Some(0)));
/// assert_eq!(finished.exit(), Exit::Done);
/// # std::fs::remove_dir_all(&runs)?;
/// # Ok::<(), Stop>(())
/// ```
pub struct Runner<'c> {
    /// The program `weigh`, started for reference servers, relays and backgrounds.
    pub program: PathBuf,
    /// The commit from which the program was built, for the journals of its runs; `None` if it is
    /// not known.
    pub commit: Option<String>,
    /// The folder of runs.
    pub runs: PathBuf,
    /// The targets that can be started.
    pub catalogue: Cow<'c, Catalogue>,
    /// A folder with targets, devices and radios of the user.
    pub data: Option<PathBuf>,
    /// Threads of the generator; `None` for as many as the connections need.
    pub shards: Option<u32>,
    /// True confirms that you are authorised to load-test remote hosts.
    pub may_load: bool,
    /// True suppresses progress.
    pub is_quiet: bool,
    /// Makes the watcher of each run; nothing is printed otherwise.
    pub watch: Watch,
    /// The fleet that generates the load; `None` for this process.
    pub fleet: Option<FleetRequest>,
}

/// A plan that can be run, with its cases.
///
/// # Examples
///
/// Checks a plan and starts nothing:
///
/// ```
/// use weigh_runner::runner::Runner;
///
/// let runner = Runner::new("/usr/local/bin/weigh", "runs")?;
/// let text = "vary.protocol = [\"tcp\", \"mqtt\"]\nload.rate = \"500/s\"";
/// let (plan, secrets) = runner.read("two-cases", text)?;
/// assert_eq!(runner.check(plan, &secrets)?.cases.len(), 2);
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
pub struct Checked {
    /// The plan.
    pub plan: Plan,
    /// Its cases.
    pub cases: Vec<Case>,
    energy: Option<Box<EnergyBasis>>,
}

impl Runner<'static> {
    /// A runner that keeps runs in the folder `runs`. Reference servers, relays and backgrounds are
    /// processes of `program`, which is `weigh`.
    ///
    /// # Errors
    /// If the built-in targets cannot be read.
    pub fn new(
        program: impl Into<PathBuf>,
        runs: impl Into<PathBuf>,
    ) -> Result<Runner<'static>, Stop> {
        Ok(Runner {
            program: program.into(),
            commit: None,
            runs: runs.into(),
            catalogue: Cow::Owned(Catalogue::load(None).map_err(Stop::usage)?),
            data: None,
            shards: None,
            may_load: false,
            is_quiet: false,
            watch: Silent::watch,
            fleet: None,
        })
    }
}

impl Runner<'_> {
    /// Runs a plan in TOML, as `weigh run` does. Signals end it early and leave a run folder that
    /// can be resumed.
    ///
    /// # Errors
    /// If the plan is wrong, or a run cannot begin or be recorded. Trials that failed are in
    /// [`Finished::first_failure`].
    pub fn run(&self, name: &str, plan: &str) -> Result<Finished, Stop> {
        let (plan, secrets) = self.read(name, plan)?;
        self.begin(self.check(plan, &secrets)?, &secrets)?.run()
    }

    /// Reads a plan in TOML: what may be recorded of it, and its secrets, which may not. `name` is
    /// for messages, and for a plan without a name of its own.
    ///
    /// # Errors
    /// All errors of the plan, each with its line.
    pub fn read(&self, name: &str, plan: &str) -> Result<(Plan, Secrets), Stop> {
        let watcher = self.watcher();
        let known = Known::new(&self.catalogue, &*watcher);
        let resolved = weigh_plan::read(plan, &known).and_then(|draft| draft.resolve(name));
        let resolved =
            resolved.map_err(|problems| Stop::usage(problems.render(name, plan, false)))?;
        let (by_url, settings) = (known.into_credentials(), resolved.secrets);
        Ok((resolved.plan, Secrets { by_url, settings, ..Secrets::default() }))
    }

    /// Checks what can be known of a plan without this machine, and starts nothing.
    ///
    /// # Errors
    /// An invalid plan.
    pub fn check(&self, plan: Plan, secrets: &Secrets) -> Result<Checked, Stop> {
        let watcher = self.watcher();
        let energy = energy::basis(&plan, self.data.as_deref())?;
        let plan = energy::heard(plan);
        let cases = self.cases(&plan, secrets)?;
        due::check(&cases)?;
        due::warn_of_few(&plan, &cases, &*watcher);
        preflight::check_log(plan.observe.meter.as_ref(), &*watcher)?;
        Ok(Checked { plan, cases, energy })
    }

    /// Checks whether this machine can run a plan, and makes the run. To be called while there is
    /// one thread.
    ///
    /// # Errors
    /// A plan that the machine cannot run, or that lacks a permission.
    pub fn begin(&self, checked: Checked, secrets: &Secrets) -> Result<Experiment<'_>, Stop> {
        let Checked { plan, cases, energy } = checked;
        let watcher = self.watcher();
        patience::warnings(&cases).iter().for_each(|line| watcher.say(line));
        let (privileges, shards) = self.ready(&cases, &cases, self.shards)?;
        let fleet = self.gather(&cases)?;
        let shards = self.spread(fleet.as_ref(), &cases, shards);
        let setup = self.setup(shards, secrets, &cases)?;
        Ok(Experiment { energy, fleet, ..self.experiment(plan, cases, setup, privileges)? })
    }

    /// Checks whether a fleet can run a search, if one is asked for, without gathering its agents.
    ///
    /// # Errors
    /// What a fleet cannot do, and fewer shards than agents.
    pub fn check_fleet(&self, plan: &Plan, secrets: &Secrets) -> Result<(), Stop> {
        let Some(request) = &self.fleet else { return Ok(()) };
        let cases = self.cases(plan, secrets)?;
        let needed = preflight::shards(&cases, None);
        fitness::shards(request.agents, self.shards, needed).map(drop)
    }

    /// Makes a run with trials at other loads than those of the plan's cases; the largest are
    /// `examined` as cases of their own.
    ///
    /// # Errors
    /// As [`Runner::check`] and [`Runner::begin`].
    pub fn search(
        &self,
        plan: Plan,
        secrets: &Secrets,
        examined: impl FnOnce(&[Case]) -> Vec<Case>,
    ) -> Result<Experiment<'_>, Stop> {
        let cases = self.cases(&plan, secrets)?;
        let largest = examined(&cases);
        let (privileges, shards) = self.ready(&cases, &largest, self.shards)?;
        let fleet = self.gather(&cases)?;
        let shards = self.spread(fleet.as_ref(), &largest, shards);
        let setup = self.setup(shards, secrets, &cases)?;
        Ok(Experiment { fleet, ..self.experiment(plan, cases, setup, privileges)? })
    }

    /// Resumes a run that ended early. Everything but passwords is as it was when it was started.
    ///
    /// # Errors
    /// If it cannot be resumed, or be recorded.
    pub fn resume(&self, begun: Begun, secrets: &Secrets) -> Result<Finished, Stop> {
        let (plan, setup) = (begun.started.plan.clone(), begun.started.setup.clone());
        let cases = self.cases(&plan, secrets)?;
        begun.check_material(&cases)?;
        begun.check_agents(self.fleet.as_ref().map(|own| own.agents))?;
        let (privileges, shards) = self.ready(&cases, &cases, begun.shards())?;
        let fleet = self.gather(&cases)?;
        let setup = Setup { shards, ..setup };
        let experiment = self.experiment(plan, cases, setup, privileges)?;
        Experiment { fleet, ..experiment }.resume(begun)
    }

    /// Waits for the agents that are to generate the load of these cases, if there are any.
    fn gather(&self, cases: &[Case]) -> Result<Option<Hosts>, Stop> {
        let Some(request) = &self.fleet else { return Ok(None) };
        let version = fleet::version(self.commit.as_deref());
        let hosts = Hosts::gather(request, version, &*self.watcher())?;
        fitness::check_places(cases, hosts.elsewhere().iter().map(String::as_str))?;
        hosts.check_private(cases)?;
        Ok(Some(hosts))
    }

    fn cases(&self, plan: &Plan, secrets: &Secrets) -> Result<Vec<Case>, Stop> {
        let cases = decide(plan, &self.catalogue, secrets)?;
        Build::OWN.check(plan, &cases)?;
        check_user(secrets, &cases)?;
        Observers::check(&plan.observe.target, &cases)?;
        if let Some(request) = &self.fleet {
            fitness::check(plan, &cases, request.agents)?;
        }
        Ok(cases)
    }

    /// What the journal records besides the plan.
    fn setup(&self, shards: u32, secrets: &Secrets, cases: &[Case]) -> Result<Setup, Stop> {
        let (data, commit) = (self.data.as_deref(), self.commit.as_deref());
        let setup = resumption::setup(shards, data, commit, secrets, cases)?;
        Ok(Setup { agents: self.fleet.as_ref().map(|own| own.agents), ..setup })
    }

    /// Takes the privileges of these cases, and checks that this machine can do the `largest`: with
    /// as many threads.
    fn ready(
        &self,
        cases: &[Case],
        largest: &[Case],
        shards: Option<u32>,
    ) -> Result<(Privileges, u32), Stop> {
        let privileges = Privileges::take(cases, &*self.watcher())?;
        preflight::may_load(largest, self.may_load)?;
        let Some(request) = &self.fleet else {
            let shards = preflight::shards(largest, shards);
            preflight::examine(&self.catalogue, largest, shards)?;
            return Ok((privileges, shards));
        };
        // Agents know the limits of their own hosts.
        let shards = fitness::shards(request.agents, shards, preflight::shards(largest, None))?;
        preflight::check_shards(largest, shards)?;
        Ok((privileges, shards))
    }

    /// The number of shards on a fleet: what was asked for, or as many as its machines carry, of
    /// which each has a client; at least the `needed` ones.
    fn spread(&self, fleet: Option<&Hosts>, cases: &[Case], needed: u32) -> u32 {
        let Some(hosts) = fleet.filter(|_| self.shards.is_none()) else { return needed };
        let clients = cases.iter().map(|case| case.load.connections).max().unwrap_or(0);
        let shards = hosts.carried().min(clients).max(needed);
        // One thread must see what some loads wait for.
        if preflight::check_shards(cases, shards).is_ok() { shards } else { needed }
    }

    fn experiment(
        &self,
        plan: Plan,
        cases: Vec<Case>,
        setup: Setup,
        privileges: Privileges,
    ) -> Result<Experiment<'_>, Stop> {
        let around = RunContext {
            catalogue: &self.catalogue,
            place: Place::Below(&self.runs),
            interrupts: Interrupts::listen(self.watcher())?,
            privileges,
            is_quiet: self.is_quiet,
            watch: self.watch,
            program: self.program.clone(),
        };
        Experiment::new(plan, cases, setup, around)
    }

    pub(crate) fn watcher(&self) -> Box<dyn Watcher> {
        (self.watch)(self.is_quiet)
    }
}

/// Rejects credentials without a target that uses them.
///
/// # Errors
/// A plan without targets given by URL.
pub fn check_user(secrets: &Secrets, cases: &[Case]) -> Result<(), Stop> {
    let has_foreign = cases.iter().any(|case| matches!(case.lane.against, Against::Foreign(_)));
    if secrets.user.is_some() && !has_foreign {
        return Err(Stop::usage(
            "--user: is for targets given by URL: name one, such as mqtt://HOST:PORT",
        ));
    }
    Ok(())
}
