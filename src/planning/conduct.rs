//! From a resolved plan to a table: what `weigh run` and `weigh compare` have in common.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use weigh_model::Condition;
use weigh_model::endpoint::Credentials;
use weigh_model::plan::Plan;
use weigh_report::table::limits;
use weigh_report::{checks, table};
use weigh_testbed::catalogue::Catalogue;

use crate::output_file;
use crate::planning::counts::counts;
use crate::planning::verdicts::{self, Verdicts};
use crate::show::output;
use crate::show::terminal::{self, Display, Lines};
use weigh_runner::case::secrets::Secrets;
use weigh_runner::energy;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::input_file::{self, TEXT_BYTES_MAX};
use weigh_runner::preflight::forecast;
use weigh_runner::run::experiment::Finished;
use weigh_runner::run::resumption::Begun;
use weigh_runner::runner::{Checked, Runner};
use weigh_runner::watcher::rough;

/// How a plan is carried out, whatever it asks.
#[derive(Args)]
pub struct RunOptions {
    /// Print cases, number of trials and duration; start nothing
    #[arg(long)]
    dry: bool,
    /// Write the resolved plan to a file, for `weigh run`
    #[arg(long, value_name = "FILE")]
    save_plan: Option<PathBuf>,
    /// Let --save-plan overwrite a different file
    #[arg(long, requires = "save_plan")]
    force: bool,
    /// Start more than 10,000 trials without asking
    #[arg(long)]
    yes: bool,
    /// Number of generator threads [default: as many as the connections need]
    ///
    /// Each thread has its own limit of open files.
    #[arg(long, value_name = "N", value_parser = counts(1..=64_u32))]
    shards: Option<u32>,
    /// Print summary.json instead of the table
    #[arg(long)]
    json: bool,
    /// Suppress progress output
    #[arg(long, short = 'Q')]
    quiet: bool,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Folder whose targets/*.toml, devices/*.toml and radios/*.toml replace built-in ones of the
    /// same name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// User name at targets given by URL; the password comes from WEIGH_PASSWORD
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Read the password from the first line of a file instead
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Confirm that you are authorised to load-test remote hosts
    #[arg(long)]
    i_may_load_this: bool,
    /// End with exit code 99 if a condition holds, such as "p99 > 50ms"
    ///
    /// Other conditions: "loss > 0", "throughput_out < 20k/s". The plan keeps its opposite as a
    /// threshold (docs/guide/conditions.md).
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
            let fix = "name a file with the password in its first line";
            let path = path.display();
            Stop::usage(format!("--password-file {path}: cannot be read: {error}\nhelp: {fix}"))
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
        let runner = self.runner(catalogue)?;
        let checked = runner.check(self.guarded(plan)?, secrets)?;
        if let Some(path) = &self.save_plan {
            save(&checked.plan, path, self.force)?;
        }
        if self.dry {
            let forecast = forecast::Forecast::of(&checked.plan, &checked.cases, catalogue);
            output::put(&if self.json { forecast.json() } else { forecast.text() })?;
            return Ok(None);
        }
        self.announce(&checked, catalogue);
        runner.begin(checked, secrets)?.run().map(Some)
    }

    /// Says what begins before anything that takes time: machine and baseline are checked first.
    fn announce(&self, checked: &Checked, catalogue: &Catalogue) {
        if self.quiet {
            return;
        }
        let times = forecast::times(&checked.plan, &checked.cases, catalogue);
        let plural = |number: u64| if number == 1 { "" } else { "s" };
        let (cases, trials) = (checked.cases.len() as u64, times.trials_most);
        let most = if times.trials_least < trials { "at most " } else { "" };
        eprintln!(
            "weigh: {cases} case{}, {most}{trials} trial{}, about {}; checking the machine first",
            plural(cases),
            plural(trials),
            rough(times.time_least)
        );
    }

    /// The same of a search in so many lanes.
    pub fn announce_search(&self, lanes: usize) {
        if !self.quiet && !self.dry {
            let searches = if lanes == 1 { "search" } else { "searches" };
            eprintln!("weigh: {lanes} {searches}; checking the machine first");
        }
    }

    /// What runs plans as these options say.
    pub fn runner<'c>(&self, catalogue: &'c Catalogue) -> Result<Runner<'c>, Stop> {
        Ok(Runner {
            program: std::env::current_exe()?,
            runs: self.runs.clone(),
            catalogue: Cow::Borrowed(catalogue),
            data: self.data.clone(),
            shards: self.shards,
            may_load: self.i_may_load_this,
            is_quiet: self.quiet,
            watch: Display::watch,
        })
    }

    /// The devices and radios that there are.
    pub fn devices(&self) -> Result<weigh_energy::Catalogue, Stop> {
        energy::catalogue(self.data.as_deref())
    }

    /// A plan whose trials a search chooses, with what fails a build.
    pub fn searched(&self, plan: Plan) -> Result<Plan, Stop> {
        if self.save_plan.is_some() {
            return Err(Stop::usage(
                "--save-plan: which trials a search runs follows from their results\nhelp: leave \
                 it out",
            ));
        }
        Ok(self.with_thresholds(plan))
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
                "--fail-if \"{own}\": only a search has a capacity\nhelp: type weigh limit, or \
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
                    "{flag}: a run goes on as it was started, by its journal\nhelp: leave it out"
                )));
            }
        }
        let begun = Begun::open(&self.runs, run, &Lines)?;
        let secrets = begun.secrets(self.user.as_deref(), self.password()?, sets)?;
        let catalogue = Catalogue::load(begun.data().as_deref()).map_err(Stop::usage)?;
        self.show(self.runner(&catalogue)?.resume(begun, &secrets)?)
    }

    /// Shows what a run came to, and says how the program ends.
    pub fn show(&self, finished: Finished) -> Result<Exit, Stop> {
        if self.json {
            output::put(&finished.summary.to_json())?;
        } else {
            let style = terminal::style();
            let table = match finished.summary.limits.is_empty() {
                true => {
                    table::render(&finished.summary, style) + &limits::ladders(&finished.summary)
                }
                // Every load of a search is a cell: its table would hide the answer.
                false => limits::render(&finished.summary, &style),
            };
            output::put_table(&format!("{table}run: {}\n", finished.folder.path().display()))?;
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

/// Writes the plan; a file that holds another one, perhaps edited, only if that is wanted.
fn save(plan: &Plan, path: &Path, is_forced: bool) -> Result<(), Stop> {
    let text = plan.to_toml().map_err(|error| {
        Stop::usage(format!("--save-plan: {error}\nhelp: give whole numbers below 2^63"))
    })?;
    let is_other = || {
        let there = path.is_file() && std::fs::metadata(path).is_ok_and(|own| own.len() > 0);
        there && input_file::bytes(path, TEXT_BYTES_MAX).ok().as_deref() != Some(text.as_bytes())
    };
    if !is_forced && is_other() {
        return Err(Stop::usage(format!(
            "--save-plan {path}: the file holds something else, which would be lost\nhelp: name \
             another file, or add --force to overwrite it",
            path = path.display()
        )));
    }
    output_file::write(path, text).map_err(|error| {
        let path = path.display();
        Stop::new(
            Exit::Record,
            format!(
                "{path}: cannot be written: {error}\nhelp: name another \
             file"
            ),
        )
    })
}

/// Trials that are started without asking.
const TRIALS_UNASKED_MAX: u64 = 10_000;
