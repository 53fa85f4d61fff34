//! `weigh run`: runs an experiment from a plan file, or resumes an interrupted run.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::planning::conduct::RunOptions;
use crate::planning::plan_file::{PlanFile, another_plan};
use crate::show::terminal::Lines;
use weigh_runner::case::known::Known;
use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh run`.
#[derive(Args)]
pub struct Run {
    /// Plan file; `weigh compare ... --save-plan FILE` makes one (docs/guide/first-plan.md)
    #[arg(value_name = "PLAN.toml")]
    plan: Option<PathBuf>,
    /// Continue an interrupted run, named by its folder, its ID or `latest`
    ///
    /// Finished trials are kept; the one in progress is repeated.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["plan", "yes"])]
    resume: Option<String>,
    /// Override a key of the plan, such as load.rate=500/s or mqtt.qos=2
    ///
    /// With --resume: set a password that was a setting, such as mqtt.broker_password=...
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    run_options: RunOptions,
}

impl Run {
    /// Reads the plan, runs it and prints the result.
    ///
    /// # Errors
    /// A command without a plan, a plan that is wrong, targets that cannot be started or reached,
    /// and a record that cannot be written.
    pub fn run(self) -> Result<Exit, Stop> {
        if let Some(run) = &self.resume {
            return self.run_options.resume(run, &self.sets);
        }
        let plan = self.plan.as_deref().ok_or_else(|| {
            Stop::usage(format!(
                "the plan is missing\nhelp: type weigh run PLAN.toml, or {}; to resume an \
                 interrupted run, type weigh run --resume RUN",
                another_plan()
            ))
        })?;
        self.start(plan)
    }

    fn start(&self, plan: &Path) -> Result<Exit, Stop> {
        let catalogue = self.run_options.catalogue()?;
        let file = PlanFile::read(plan)?.with_sets(&self.sets)?;
        let known = Known::new(&catalogue, &Lines);
        let draft = file.draft(&known)?;
        self.run_options.ask(draft.trials_max())?;
        let resolved = file.resolve(draft)?;
        let secrets = self.run_options.secrets(known.into_credentials(), resolved.secrets)?;
        self.run_options.conduct(&catalogue, resolved.plan, &secrets)
    }
}
