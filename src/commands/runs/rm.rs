//! `weigh runs rm`: removes the runs that are named.

use std::path::PathBuf;

use clap::Args;
use weigh_report::journal::Removal;

use super::removing::{Removable, ask, remove};
use weigh_runner::exit::{Exit, Stop};

/// The flags of `weigh runs rm`.
#[derive(Args)]
pub struct Rm {
    /// Runs, or runs of studies: their folders, their IDs, or `latest`
    #[arg(required = true, value_name = "RUN")]
    names: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

impl Rm {
    /// Checks all runs, asks, and removes them.
    ///
    /// # Errors
    /// If one of them is not a run or is in progress: then nothing is removed.
    pub fn run(self) -> Result<Exit, Stop> {
        let mut all: Vec<Removable> = Vec::new();
        for name in &self.names {
            let claimed = Removal::claim(&self.runs, name).map_err(Stop::usage)?;
            if !all.iter().any(|run| run.path == claimed.path()) {
                all.push(Removable::of(&claimed));
            }
        }
        if !self.yes {
            ask(&all)?;
        }
        remove(&self.runs, &all)
    }
}
