//! From a resolved plan to a table: what `weigh run` and `weigh compare` have in common.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use weigh_model::Condition;
use weigh_model::endpoint::Credentials;
use weigh_model::event::Setup;
use weigh_model::plan::Plan;
use weigh_report::table::limits;
use weigh_report::{Style, checks, table};
use weigh_testbed::catalogue::Catalogue;

use crate::output_file;
use crate::planning::counts::counts;
use crate::planning::verdicts::{self, Verdicts};
use crate::show::output;
use crate::show::terminal::{Display, Lines};
use weigh_runner::case::lanes::Against;
use weigh_runner::case::secrets::Secrets;
use weigh_runner::case::{Case, decide};
use weigh_runner::energy;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::input_file::{self, TEXT_BYTES_MAX};
use weigh_runner::interrupts::Interrupts;
use weigh_runner::preflight;
use weigh_runner::preflight::due;
use weigh_runner::preflight::forecast;
use weigh_runner::preflight::patience;
use weigh_runner::run::experiment::{Experiment, Finished, Place, RunContext};
use weigh_runner::run::resumption;
use weigh_runner::run::resumption::Begun;
use weigh_runner::targets::stage::Privileges;

/// How a plan is carried out, whatever it asks.
#[derive(Args)]
pub struct RunOptions {
    /// Prints the cases, the number of trials and the time they take, and starts nothing
    #[arg(long)]
    dry: bool,
    /// Writes the plan as resolved to a file, for `weigh run`
    #[arg(long, value_name = "FILE")]
    save_plan: Option<PathBuf>,
    /// Lets --save-plan overwrite a file that holds something else
    #[arg(long, requires = "save_plan")]
    force: bool,
    /// Starts more than 10,000 trials without asking
    #[arg(long)]
    yes: bool,
    /// Threads of the generator, each with its own limit of open files [default: as many as
    /// the connections need]
    #[arg(long, value_name = "N", value_parser = counts(1..=64))]
    shards: Option<u32>,
    /// Prints summary.json instead of the table
    #[arg(long)]
    json: bool,
    /// Says nothing on the way
    #[arg(long, short = 'Q')]
    quiet: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// A folder whose targets/*.toml, devices/*.toml and radios/*.toml come before those built in
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// User name at targets given by URL; the password comes from WEIGH_PASSWORD
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A file whose first line is that password instead
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Says that you may put load on targets beyond this machine
    #[arg(long)]
    i_may_load_this: bool,
    /// End with exit code 99 if this holds in a case: "p99 > 50ms", "loss > 0",
    /// "throughput_out < 20k/s"; kept in the plan as a threshold (docs/guide/conditions.md)
    #[arg(long, value_name = "CONDITION", value_parser = verdicts::fail_if)]
    fail_if: Vec<Condition>,
    #[command(flatten)]
    verdicts: Verdicts,
}

impl RunOptions {
    /// The targets that there are.
    pub fn catalogue(&self) -> Result<Catalogue, Stop> {
        Catalogue::load(self.data.as_deref()).map_err(Stop::usage)
    }

    /// Asks before so many trials are started: a million are a slip more often than a wish.
    ///
    /// # Errors
    /// If they are not wanted, or nobody is there to be asked.
    pub fn ask(&self, trials: u64) -> Result<(), Stop> {
        if trials <= TRIALS_UNASKED_MAX || self.yes || self.dry {
            return Ok(());
        }
        let no = || {
            Stop::usage(format!(
                "the plan has {trials} trials: nothing was started; see what they are with --dry, \
                 and type --yes if you mean it"
            ))
        };
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(no());
        }
        eprint!("weigh: the plan has {trials} trials; start? [y/N] ");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(no()) }
    }

    /// True if nothing shall be started.
    pub fn is_dry(&self) -> bool {
        self.dry
    }

    /// What a plan may not hold: what its URLs said, and whom the command line names.
    ///
    /// # Errors
    /// If the file of the password cannot be read.
    pub fn secrets(
        &self,
        by_url: BTreeMap<String, Credentials>,
        settings: BTreeMap<String, String>,
    ) -> Result<Secrets, Stop> {
        let password = self.password()?.unwrap_or_default();
        let user = self.user.as_deref().map(|user| (user, password));
        Ok(secrets_of(user, by_url, settings))
    }

    /// The password of the user who is named, where one was given.
    fn password(&self) -> Result<Option<String>, Stop> {
        let Some(path) = &self.password_file else { return Ok(password_of_environment()) };
        let text = input_file::text(path, TEXT_BYTES_MAX).map_err(|error| {
            let mend = "name a file with the password in its first line";
            let path = path.display();
            Stop::usage(format!("--password-file {path}: cannot be read: {error}; {mend}"))
        })?;
        Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
    }

    /// The same with so many threads of the generator, where that is said elsewhere.
    pub fn with_shards(self, shards: Option<u32>) -> RunOptions {
        RunOptions { shards: shards.or(self.shards), ..self }
    }

    /// The same without a word on the way, where that is said elsewhere.
    pub fn quieter(self, is_quiet: bool) -> RunOptions {
        RunOptions { quiet: self.quiet || is_quiet, ..self }
    }

    /// Weighs and shows.
    pub fn conduct(
        &self,
        catalogue: &Catalogue,
        plan: Plan,
        secrets: &Secrets,
    ) -> Result<Exit, Stop> {
        let finished = self.weigh(catalogue, plan, secrets)?;
        finished.map_or(Ok(Exit::Done), |finished| self.show(finished))
    }

    /// Weighs; `None` where nothing was to be started.
    pub fn weigh(
        &self,
        catalogue: &Catalogue,
        plan: Plan,
        secrets: &Secrets,
    ) -> Result<Option<Finished>, Stop> {
        let plan = self.guarded(plan)?;
        let energy = energy::basis(&plan, self.data.as_deref())?;
        let plan = energy::heard(plan);
        let cases = decide(&plan, catalogue, secrets)?;
        check_user(self.user.as_deref(), &cases)?;
        due::check(&cases)?;
        due::warn_of_few(&plan, &cases, &Lines);
        if let Some(path) = &self.save_plan {
            save(&plan, path, self.force)?;
        }
        preflight::check_log(plan.observe.meter.as_ref(), &Lines)?;
        if self.dry {
            let forecast = forecast::Forecast::of(&plan, &cases, catalogue);
            output::put(&if self.json { forecast.json() } else { forecast.text() })?;
            return Ok(None);
        }
        patience::warnings(&cases).iter().for_each(|line| eprintln!("weigh: {line}"));
        let privileges = Privileges::take(&cases, &Lines)?;
        let shards = self.examine(catalogue, &cases, self.shards)?;
        let setup = resumption::setup(shards, self.data.as_deref(), secrets, &cases)?;
        let experiment = self.experiment(catalogue, plan, cases, setup, privileges)?;
        Experiment { energy, ..experiment }.run().map(Some)
    }

    /// The devices and radios that there are.
    pub fn devices(&self) -> Result<weigh_energy::Catalogue, Stop> {
        energy::catalogue(self.data.as_deref())
    }

    /// A run that is ready to begin with trials at other loads than those of the plan's cases; the
    /// largest are `examined` as cases of their own.
    pub fn prepare<'e>(
        &'e self,
        catalogue: &'e Catalogue,
        plan: Plan,
        secrets: &Secrets,
        examined: impl FnOnce(&[Case]) -> Result<Vec<Case>, Stop>,
    ) -> Result<Experiment<'e>, Stop> {
        if self.save_plan.is_some() {
            return Err(Stop::usage(
                "--save-plan: which trials a search runs follows from their results: leave it out",
            ));
        }
        let plan = self.with_thresholds(plan);
        let cases = decide(&plan, catalogue, secrets)?;
        check_user(self.user.as_deref(), &cases)?;
        let privileges = Privileges::take(&cases, &Lines)?;
        let shards = self.examine(catalogue, &examined(&cases)?, self.shards)?;
        let setup = resumption::setup(shards, self.data.as_deref(), secrets, &cases)?;
        self.experiment(catalogue, plan, cases, setup, privileges)
    }

    /// The plan with what fails a build as thresholds: its opposite must hold.
    fn with_thresholds(&self, mut plan: Plan) -> Plan {
        plan.thresholds.extend(self.fail_if.iter().map(Condition::negated));
        plan
    }

    /// The same where nothing is searched, so that there is no capacity.
    fn guarded(&self, plan: Plan) -> Result<Plan, Stop> {
        if let Some(own) = self.fail_if.iter().find(|own| own.metric.starts_with("capacity")) {
            return Err(Stop::usage(format!(
                "--fail-if \"{own}\": only a search has a capacity: type weigh limit, or \
                 \"throughput_out < 20k/s\""
            )));
        }
        Ok(self.with_thresholds(plan))
    }

    /// True if the result is to be one JSON document.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Goes on with a run that ended early, and shows. Everything but passwords, which `sets` and
    /// the user's name stand for, is as it was when the run was started.
    pub fn resume(&self, run: &str, sets: &[String]) -> Result<Exit, Stop> {
        for (flag, is_given) in [
            ("--dry", self.dry),
            ("--save-plan", self.save_plan.is_some()),
            ("--shards", self.shards.is_some()),
            ("--data", self.data.is_some()),
            ("--fail-if", !self.fail_if.is_empty()),
        ] {
            if is_given {
                return Err(Stop::usage(format!(
                    "{flag}: a run goes on as it was started, by its journal: leave it out"
                )));
            }
        }
        let begun = Begun::open(&self.runs, run, &Lines)?;
        let secrets = begun.secrets(self.user.as_deref(), self.password()?, sets)?;
        let (plan, setup) = (begun.started.plan.clone(), begun.started.setup.clone());
        let catalogue = Catalogue::load(begun.data().as_deref()).map_err(Stop::usage)?;
        let cases = decide(&plan, &catalogue, &secrets)?;
        check_user(self.user.as_deref(), &cases)?;
        begun.check_material(&cases)?;
        let privileges = Privileges::take(&cases, &Lines)?;
        let shards = self.examine(&catalogue, &cases, begun.shards())?;
        let setup = Setup { shards, ..setup };
        self.show(self.experiment(&catalogue, plan, cases, setup, privileges)?.resume(begun)?)
    }

    /// What is looked at before anything starts; the number of threads.
    fn examine(
        &self,
        catalogue: &Catalogue,
        cases: &[Case],
        shards: Option<u32>,
    ) -> Result<u32, Stop> {
        preflight::may_load(cases, self.i_may_load_this)?;
        let shards = preflight::shards(cases, shards);
        preflight::examine(catalogue, cases, shards)?;
        Ok(shards)
    }

    fn experiment<'e>(
        &'e self,
        catalogue: &'e Catalogue,
        plan: Plan,
        cases: Vec<Case>,
        setup: Setup,
        privileges: Privileges,
    ) -> Result<Experiment<'e>, Stop> {
        let around = RunContext {
            catalogue,
            place: Place::Below(&self.runs),
            interrupts: Interrupts::listen(Lines)?,
            privileges,
            is_quiet: self.quiet,
            watch: Display::watch,
            program: std::env::current_exe()?,
        };
        Experiment::new(plan, cases, setup, around)
    }

    /// Shows what a run came to, and says how the program ends.
    pub fn show(&self, finished: Finished) -> Result<Exit, Stop> {
        if self.json {
            output::put(&finished.summary.to_json())?;
        } else {
            let width = std::io::stdout().is_terminal().then(crate::show::terminal::width);
            let style = Style::from_environment(width, |name| std::env::var(name).ok());
            let table = match finished.summary.limits.is_empty() {
                true => {
                    table::render(&finished.summary, style) + &limits::ladders(&finished.summary)
                }
                // Every load of a search is a cell: its table would hide the answer.
                false => limits::render(&finished.summary, &style),
            };
            output::put(&format!("{table}run: {}\n", finished.folder.path().display()))?;
        }
        self.ended(finished)
    }

    /// How the program ends after a run.
    ///
    /// # Errors
    /// If not all of it could be recorded.
    pub fn ended(&self, finished: Finished) -> Result<Exit, Stop> {
        if let Some(stop) = finished.unrecorded {
            eprintln!("weigh: not everything could be recorded; what was measured is above");
            return Err(stop);
        }
        let run = &finished.summary.run;
        let checks = checks::of_run(&finished.summary);
        let judged = self.verdicts.conclude((&run.plan.name, &run.started), &checks)?;
        Ok(match (finished.exit(), judged) {
            (Exit::Done, judged) => judged,
            (Exit::Finding | Exit::Undecided, Exit::Finding) => Exit::Finding,
            (Exit::Undecided, _) => self.verdicts.of_undecided(),
            (own, _) => own,
        })
    }
}

/// The password that no command line shows.
pub fn password_of_environment() -> Option<String> {
    std::env::var("WEIGH_PASSWORD").ok()
}

/// What a plan may not hold: what its URLs said, and whom a command line names, with the password.
pub fn secrets_of(
    user: Option<(&str, String)>,
    by_url: BTreeMap<String, Credentials>,
    settings: BTreeMap<String, String>,
) -> Secrets {
    let Some((user, password)) = user else { return Secrets { user: None, by_url, settings } };
    // A user who is named stands for all of them.
    let user = Some(Credentials { user: user.to_owned(), password });
    Secrets { user, by_url: BTreeMap::new(), settings }
}

/// Whoever names a user must name a server to be that user at.
pub fn check_user(user: Option<&str>, cases: &[Case]) -> Result<(), Stop> {
    let has_foreign = cases.iter().any(|case| matches!(case.lane.against, Against::Foreign(_)));
    if user.is_some() && !has_foreign {
        return Err(Stop::usage(
            "--user: is for targets given by URL: name one, such as mqtt://HOST:PORT",
        ));
    }
    Ok(())
}

/// Writes the plan; a file that holds another one, perhaps edited, only if that is wanted.
fn save(plan: &Plan, path: &Path, is_forced: bool) -> Result<(), Stop> {
    let text = toml::to_string(plan).map_err(|error| {
        Stop::usage(format!("--save-plan: {error}; give whole numbers below 2^63"))
    })?;
    let is_other = || {
        let there = path.is_file() && std::fs::metadata(path).is_ok_and(|own| own.len() > 0);
        there && input_file::bytes(path, TEXT_BYTES_MAX).ok().as_deref() != Some(text.as_bytes())
    };
    if !is_forced && is_other() {
        return Err(Stop::usage(format!(
            "--save-plan {path}: the file holds something else, which would be lost; name another \
             file, or add --force to overwrite it",
            path = path.display()
        )));
    }
    output_file::write(path, text).map_err(|error| {
        let path = path.display();
        Stop::new(Exit::Record, format!("{path}: cannot be written: {error}; name another file"))
    })
}

/// Trials that are started without asking.
const TRIALS_UNASKED_MAX: u64 = 10_000;
