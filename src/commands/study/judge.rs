//! `weigh study judge`: judges several runs of a study together.

use std::path::{Path, PathBuf};

use clap::Args;
use weigh_study::StudyTexts;
use weigh_testbed::catalogue::Catalogue;

use crate::show::terminal::Lines;
use crate::show::{output, study_text};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::study::library::{self, Studies};
use weigh_runner::study::several_runs::{self, Several};
use weigh_runner::study::study_run;

/// Flags of `weigh study judge`.
#[derive(Args)]
pub struct Judge {
    /// Runs of one study: their folders or ids
    #[arg(value_name = "STUDYRUN", required = true)]
    names: Vec<String>,
    /// Judge by the study files kept with the newest run instead of those of this version
    #[arg(long, conflicts_with = "data")]
    kept: bool,
    /// Judge runs of different machines together
    #[arg(long)]
    across_machines: bool,
    /// Print the answers as JSON
    #[arg(long)]
    json: bool,
    /// Folder for judged.json and report.html [default: RUNS/judged-NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Folder in which runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Folder whose studies/*/ and targets/*.toml replace built-in ones of the same name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Judge {
    /// Judges, writes the page and prints the answers.
    ///
    /// # Errors
    /// Runs that cannot be read or are not of one study and one machine, and a folder that cannot
    /// be written.
    pub fn run(self) -> Result<Exit, Stop> {
        let several = Several::find(&self.runs, &self.names)?;
        if !self.across_machines {
            several.check_machines()?;
        }
        let data = self.data.clone().or_else(|| several.data());
        let catalogue = Catalogue::load(data.as_deref()).map_err(Stop::usage)?;
        let study = library::read(&self.texts(&several, data.as_deref())?, &catalogue, &Lines)?;
        let default = || self.runs.join(format!("judged-{}", several.study));
        let out = self.out.clone().unwrap_or_else(default);
        let outcome = several.outcome(&study, &out);
        several_runs::write(&out, &study, &outcome)?;
        match self.json {
            true => output::put_document(&outcome.to_json())?,
            false => output::put(&study_text::shown(&outcome, &out))?,
        }
        Ok(Exit::Done)
    }

    fn texts(&self, several: &Several, data: Option<&Path>) -> Result<StudyTexts, Stop> {
        match self.kept {
            true => study_run::texts(several.newest()),
            false => Studies::load(data)?.find(&several.study).cloned(),
        }
    }
}
