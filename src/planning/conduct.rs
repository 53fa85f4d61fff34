//! Runs a resolved plan and prints its table: the common part of `weigh run` and `weigh compare`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use weigh_model::Condition;
use weigh_model::endpoint::Credentials;
use weigh_model::numbers::count;
use weigh_model::plan::Plan;
use weigh_report::table::limits;
use weigh_report::{checks, table};
use weigh_testbed::catalogue::Catalogue;

use crate::help;
use crate::output_file;
use crate::planning::counts::counts;
use crate::planning::fleet_options::FleetOptions;
use crate::planning::verdicts::{self, Verdicts};
#[cfg(feature = "watch")]
use crate::show::live_view::LiveView;
use crate::show::output;
use crate::show::terminal::{self, Display, Lines};
use weigh_runner::case::secrets::Secrets;
use weigh_runner::energy;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::input_file::{self, TEXT_BYTES_MAX};
use weigh_runner::preflight::{self, forecast};
use weigh_runner::run::experiment::Finished;
use weigh_runner::run::resumption::Begun;
use weigh_runner::runner::{Checked, Runner};
use weigh_runner::watcher::Watch;

/// Flags about running any plan.
#[derive(Args)]
pub struct RunOptions {
    /// Print cases, number of trials and duration; start nothing
    #[arg(long)]
    dry: bool,
    /// Write the plan of this command to a file, for `weigh run`
    ///
    /// The command then runs the plan. With --dry it only writes the file.
    #[arg(long, value_name = "FILE")]
    save_plan: Option<PathBuf>,
    /// Let --save-plan overwrite an existing file with other content
    #[arg(long, requires = "save_plan")]
    force: bool,
    /// Start more than 10,000 trials without asking
    #[arg(long)]
    yes: bool,
    /// Number of generator threads [default: as many as the connections need]
    ///
    /// Each thread has a file table of its own, so more threads allow more connections.
    #[arg(long, value_name = "N", value_parser = counts(1..=64_u32))]
    shards: Option<u32>,
    /// Print summary.json instead of the table
    #[arg(long)]
    json: bool,
    /// Print all columns of the table side by side, however wide
    #[arg(long, conflicts_with = "json")]
    wide: bool,
    /// Suppress progress output
    #[arg(long, short = 'Q')]
    quiet: bool,
    /// Show the run in this terminal while it runs, as `weigh watch` does
    #[arg(long, conflicts_with_all = ["quiet", "dry", "open"])]
    live: bool,
    /// Show the run in a browser while it runs, as `weigh watch --web` does
    #[arg(long, conflicts_with = "dry")]
    open: bool,
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
    /// Read the password of --user from the first line of a file
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Confirm that you are authorised to load-test remote hosts
    #[arg(long)]
    i_may_load_this: bool,
    /// End with exit code 99 if this is true of a case, such as "p99 > 50ms"
    ///
    /// Other conditions: "loss > 0", "throughput_out < 20k/s". Plan and output show what must hold,
    /// which is the opposite: "p99 > 50ms" appears as "p99 <= 50ms" (docs/guide/conditions.md).
    #[arg(long, value_name = "CONDITION", value_parser = verdicts::fail_if)]
    fail_if: Vec<Condition>,
    #[command(flatten)]
    verdicts: Verdicts,
    #[command(flatten)]
    fleet: FleetOptions,
}

impl RunOptions {
    /// Returns the known targets.
    ///
    /// # Errors
    /// A folder of `--data` that cannot be read, or whose targets are wrong.
    pub fn catalogue(&self) -> Result<Catalogue, Stop> {
        Catalogue::load(self.data.as_deref()).map_err(Stop::usage)
    }

    /// Asks before a large number of trials is started, which is more often a mistake than
    /// intended.
    ///
    /// # Errors
    /// If the user declines, or if there is no terminal to ask on.
    pub fn ask(&self, trials: u64) -> Result<(), Stop> {
        if trials <= TRIALS_UNASKED_MAX || self.yes || self.dry {
            return Ok(());
        }
        let no = || {
            Stop::usage(format!(
                "the plan has {} trials; nothing was started\nhelp: list them with --dry, and type \
                 --yes to start them",
                count(trials)
            ))
        };
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(no());
        }
        eprint!("weigh: the plan has {} trials; start? [y/N] ", count(trials));
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(no()) }
    }

    /// True if a fleet generates the load.
    pub fn has_fleet(&self) -> bool {
        self.fleet.is_given()
    }

    /// True if nothing is to be started.
    pub fn is_dry(&self) -> bool {
        self.dry
    }

    /// Returns what a plan must not contain: credentials of URLs, and those of the command line.
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

    /// Returns the password of the named user, if one was given.
    fn password(&self) -> Result<Option<String>, Stop> {
        let Some(path) = &self.password_file else { return Ok(password_of_environment()) };
        let text = input_file::text(path, TEXT_BYTES_MAX).map_err(|error| {
            let fix = "name a file with the password in its first line";
            let path = path.display();
            Stop::usage(format!("--password-file {path}: cannot be read: {error}\nhelp: {fix}"))
        })?;
        Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
    }

    /// Sets the number of generator threads, if `shards` has one.
    pub fn with_shards(self, shards: Option<u32>) -> RunOptions {
        RunOptions { shards: shards.or(self.shards), ..self }
    }

    /// Suppresses progress output if `is_quiet`.
    pub fn quieter(self, is_quiet: bool) -> RunOptions {
        RunOptions { quiet: self.quiet || is_quiet, ..self }
    }

    /// Runs the plan and prints the result.
    ///
    /// # Errors
    /// Those of [`RunOptions::weigh`] and [`RunOptions::show`].
    pub fn conduct(
        &self,
        catalogue: &Catalogue,
        plan: Plan,
        secrets: &Secrets,
    ) -> Result<Exit, Stop> {
        let finished = self.weigh(catalogue, plan, secrets)?;
        finished.map_or(Ok(Exit::Done), |finished| self.show(finished))
    }

    /// Runs the plan; returns `None` with `--dry`.
    ///
    /// # Errors
    /// A plan that is wrong or that this machine cannot run, and a record that cannot be written.
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
            match self.json {
                true => output::put_document(&forecast.json())?,
                false => output::put(&forecast.text())?,
            }
            if let Err(refused) = preflight::may_load(&checked.cases, self.i_may_load_this) {
                eprintln!("weigh: without --dry this is refused: {refused}");
            }
            return Ok(None);
        }
        self.announce(&checked, catalogue);
        runner.begin(checked, secrets)?.run().map(Some)
    }

    /// Prints what begins, because machine and baseline are checked before the first trial.
    fn announce(&self, checked: &Checked, catalogue: &Catalogue) {
        if self.quiet {
            return;
        }
        let times = forecast::times(&checked.plan, &checked.cases, catalogue);
        let plural = |number: u64| if number == 1 { "" } else { "s" };
        let (cases, trials) = (checked.cases.len() as u64, times.trials_most);
        let most = if times.trials_least < trials { "at most " } else { "" };
        // A load without a rate ends as soon as its messages are through.
        let about = if times.unknown == 0 { "about" } else { "at least" };
        eprintln!(
            "weigh: {} case{}, {most}{} trial{}, {about} {}; checking the machine first",
            count(cases),
            plural(cases),
            count(trials),
            plural(trials),
            times.time_least.rough()
        );
    }

    /// Prints that the searches of `lanes` lanes begin.
    pub fn announce_search(&self, lanes: usize) {
        if !self.quiet && !self.dry {
            let searches = if lanes == 1 { "search" } else { "searches" };
            eprintln!("weigh: {lanes} {searches}; checking the machine first");
        }
    }

    /// Returns the runner of plans with these options.
    ///
    /// # Errors
    /// If the system does not report the path of this program.
    pub fn runner<'c>(&self, catalogue: &'c Catalogue) -> Result<Runner<'c>, Stop> {
        Ok(Runner {
            program: std::env::current_exe()?,
            commit: help::commit(),
            runs: self.runs.clone(),
            catalogue: Cow::Borrowed(catalogue),
            data: self.data.clone(),
            shards: self.shards,
            may_load: self.i_may_load_this,
            is_quiet: self.quiet,
            watch: self.watch()?,
            fleet: self.fleet.asked()?,
        })
    }

    /// Returns what shows the progress of a run.
    #[cfg(feature = "watch")]
    fn watch(&self) -> Result<Watch, Stop> {
        match (self.live, self.open) {
            (true, _) if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() => {
                Err(Stop::usage(
                    "--live draws in a terminal, and standard input or output is not one\nhelp: \
                     type --open for a page in a browser, or leave it out",
                ))
            }
            (true, _) => Ok(LiveView::terminal),
            (_, true) => Ok(LiveView::page),
            (false, false) => Ok(Display::watch),
        }
    }

    /// Returns what shows the progress of a run.
    #[cfg(not(feature = "watch"))]
    fn watch(&self) -> Result<Watch, Stop> {
        match self.live || self.open {
            true => Err(Stop::unbuilt("live view (--live, --open)")),
            false => Ok(Display::watch),
        }
    }

    /// Returns the known devices and radios.
    ///
    /// # Errors
    /// A folder of `--data` that cannot be read, or whose devices are wrong.
    pub fn devices(&self) -> Result<weigh_energy::Catalogue, Stop> {
        energy::catalogue(self.data.as_deref())
    }

    /// Returns a plan whose trials a search chooses, with the thresholds of `--fail-if`.
    ///
    /// # Errors
    /// `--save-plan`, because the trials of a search follow from their results.
    pub fn searched(&self, plan: Plan) -> Result<Plan, Stop> {
        if self.save_plan.is_some() {
            return Err(Stop::usage(
                "--save-plan: the trials of a search depend on their results\nhelp: leave it out",
            ));
        }
        Ok(self.with_thresholds(plan))
    }

    /// Returns the plan with the opposite of each `--fail-if` as a threshold.
    fn with_thresholds(&self, mut plan: Plan) -> Plan {
        plan.thresholds.extend(self.fail_if.iter().map(Condition::negated));
        plan
    }

    /// Adds the thresholds to a plan without a search, which has no capacity.
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

    /// Resumes a run that ended early, and prints the result. Its settings come from the journal,
    /// except passwords, which come from `sets` and the user.
    ///
    /// # Errors
    /// Flags that a resumed run does not take, a run that cannot be read, and a missing secret.
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
                    "{flag}: a resumed run keeps its settings, which are in its journal\nhelp: \
                     leave it out"
                )));
            }
        }
        if !self.quiet {
            eprintln!("weigh: resuming {run}; reading its journal and checking the machine first");
        }
        let begun = Begun::open(&self.runs, run, &Lines)?;
        let secrets = begun.secrets(self.user.as_deref(), self.password()?, sets)?;
        let catalogue = Catalogue::load(begun.data().as_deref()).map_err(Stop::usage)?;
        self.show(self.runner(&catalogue)?.resume(begun, &secrets)?)
    }

    /// Prints the result of a run, and returns the exit code.
    ///
    /// # Errors
    /// Standard output that cannot be written, and those of [`RunOptions::ended`].
    pub fn show(&self, finished: Finished) -> Result<Exit, Stop> {
        if self.json {
            output::put_document(&finished.summary.to_json())?;
        } else {
            let style = terminal::table_style(self.wide);
            let table = match finished.summary.limits.is_empty() {
                true => {
                    table::render(&finished.summary, style)
                        + &limits::ladders(&finished.summary, style)
                }
                // Every load of a search is a cell, so the table would hide the answer.
                false if !self.wide => limits::render(&finished.summary, &style),
                false => {
                    limits::render(&finished.summary, &style)
                        + &table::render(&finished.summary, style)
                }
            };
            let table = output::elsewhere(&table, &finished.summary.run.id, &self.runs);
            let run = finished.folder.path().display();
            output::put_table_of(&format!("{table}run: {run}\n"), style)?;
        }
        self.ended(finished)
    }

    /// Returns the exit code of a run.
    ///
    /// # Errors
    /// If a part of it could not be recorded, or the bus of its fleet is gone.
    pub fn ended(&self, finished: Finished) -> Result<Exit, Stop> {
        if let Some(stop) = finished.unrecorded {
            let what = match stop.exit() {
                Exit::Generator => "the run could not be finished",
                _ => "a part of the run could not be recorded",
            };
            eprintln!("weigh: {what}; the measured results are above");
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

/// Returns the password from the environment.
pub fn password_of_environment() -> Option<String> {
    std::env::var("WEIGH_PASSWORD").ok()
}

/// Returns what a plan must not contain: credentials of URLs, and of the command line with the
/// password.
pub fn secrets_of(
    user: Option<(&str, String)>,
    by_url: BTreeMap<String, Credentials>,
    settings: BTreeMap<String, String>,
) -> Secrets {
    let Some((user, password)) = user else { return Secrets { user: None, by_url, settings } };
    // A user on the command line replaces those of all URLs.
    let user = Some(Credentials { user: user.to_owned(), password });
    Secrets { user, by_url: BTreeMap::new(), settings }
}

/// Writes the plan. Overwrites a file with other content only if `is_forced`.
fn save(plan: &Plan, path: &Path, is_forced: bool) -> Result<(), Stop> {
    let text = plan.to_toml().map_err(|error| {
        Stop::usage(format!("--save-plan: {error}\nhelp: give whole numbers below 2^63"))
    })?;
    let text = format!("{SCHEMA_LINE}\n{text}");
    let is_other = || {
        let there = path.is_file() && std::fs::metadata(path).is_ok_and(|own| own.len() > 0);
        there && input_file::bytes(path, TEXT_BYTES_MAX).ok().as_deref() != Some(text.as_bytes())
    };
    if !is_forced && is_other() {
        return Err(Stop::usage(format!(
            "--save-plan {path}: the file has other content, which would be lost\nhelp: name \
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

/// First lines of a saved plan: with them editors complete keys and check values.
const SCHEMA_LINE: &str = "\
#:schema plan.schema.json
# For completion in editors, write the schema to this folder: weigh man --schemas .
";

/// Largest number of trials that start without a question.
const TRIALS_UNASKED_MAX: u64 = 10_000;
