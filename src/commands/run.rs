//! `weigh run`: an experiment that was written down, or one that ended early.

use std::path::PathBuf;

use clap::Args;
use weigh_stage::catalogue::Catalogue;
use weigh_stage::pinning::{CoreSet, Pinning};

use crate::cases;
use crate::exit::{Exit, Stop};
use crate::experiment::Experiment;
use crate::output;
use crate::preflight;
use crate::resumption::Begun;

/// The flags of `weigh run`.
#[derive(Args)]
pub struct Run {
    /// Goes on with a run that ended early, by its folder, its id, or as latest: trials that are
    /// finished stay, the one in progress is done again
    #[arg(long, value_name = "RUN")]
    resume: String,
    /// With --resume: a password that stood in a setting, such as mqtt.broker_password=...
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "resume")]
    sets: Vec<String>,
    /// Prints summary.json instead of the table
    #[arg(long)]
    json: bool,
    /// Says nothing on the way
    #[arg(long, short = 'Q')]
    quiet: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// User name at targets given by URL; the password comes from WEIGH_PASSWORD
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Says that you may put load on targets beyond this machine
    #[arg(long)]
    i_may_load_this: bool,
}

impl Run {
    /// Goes on, and shows.
    pub fn run(self) -> Result<Exit, Stop> {
        let begun = Begun::open(&self.runs, &self.resume)?;
        let secrets = begun.secrets(self.user.as_deref(), &self.sets)?;
        let plan = begun.started.plan.clone();
        let catalogue = Catalogue::load(begun.data().as_deref()).map_err(Stop::usage)?;
        let cases = cases::decide(&plan, &catalogue, &secrets)?;
        begun.check_material(&cases)?;
        preflight::may_load(&cases, self.i_may_load_this)?;
        let shards = preflight::shards(&cases, begun.shards());
        preflight::examine(&catalogue, &cases, shards)?;
        let allowed = CoreSet::allowed()?;
        let experiment = Experiment {
            setup: begun.started.setup.clone(),
            plan,
            cases,
            catalogue: &catalogue,
            pinning: Pinning::divide(&allowed, 1, shards as usize),
            shards,
            runs: &self.runs,
            is_quiet: self.quiet,
        };
        let finished = experiment.resume(begun)?;
        output::put(&finished.summary.to_json())?;
        Ok(finished.interrupted.unwrap_or(Exit::Done))
    }
}
