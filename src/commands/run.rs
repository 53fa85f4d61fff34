//! `weigh run`: an experiment that was written down, or the rest of a run that ended early.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::exit::{Exit, Stop};
use crate::planning::conduct::Manner;
use crate::planning::known::Known;
use crate::planning::plan_file::PlanFile;

/// The flags of `weigh run`.
#[derive(Args)]
pub struct Run {
    /// The plan: a TOML file, see docs/guide/first-plan.md and examples/
    #[arg(value_name = "PLAN.toml")]
    plan: Option<PathBuf>,
    /// Goes on with a run that ended early, given by its folder, its id, or as latest: finished
    /// trials stay, the one in progress is done again
    #[arg(long, value_name = "RUN", conflicts_with_all = ["plan", "yes"])]
    resume: Option<String>,
    /// With --resume: a password that was a setting, such as mqtt.broker_password=...
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "resume")]
    sets: Vec<String>,
    /// Starts a plan of more than 10,000 trials without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    manner: Manner,
}

impl Run {
    /// Reads, weighs and shows.
    pub fn run(self) -> Result<Exit, Stop> {
        if let Some(run) = &self.resume {
            return self.manner.resume(run, &self.sets);
        }
        let plan = self.plan.as_deref().ok_or_else(|| {
            Stop::usage(
                "no plan is named: type weigh run PLAN.toml (examples/ has some), or weigh run \
                 --resume RUN to go on with a run that ended early",
            )
        })?;
        self.start(plan)
    }

    fn start(&self, plan: &Path) -> Result<Exit, Stop> {
        let catalogue = self.manner.catalogue()?;
        let file = PlanFile::read(plan)?;
        let known = Known::new(&catalogue);
        let draft = file.draft(&known)?;
        if !self.manner.is_dry() {
            self.ask(draft.trials_max())?;
        }
        let resolved = file.resolve(draft)?;
        let secrets = self.manner.secrets(known.into_credentials(), resolved.secrets)?;
        self.manner.conduct(&catalogue, resolved.plan, &secrets)
    }

    /// A million trials are a slip more often than a wish.
    fn ask(&self, trials: u64) -> Result<(), Stop> {
        if trials <= TRIALS_UNASKED_MAX || self.yes {
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
}

/// Trials that are started without asking.
const TRIALS_UNASKED_MAX: u64 = 10_000;
