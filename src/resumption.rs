//! What it takes to resume a run: everything is in its journal, except passwords.

use std::path::{Path, PathBuf};

use weigh_model::event::{Event, RunStarted, Setup};
use weigh_report::journal::Writer;
use weigh_report::run_folder::{JOURNAL, RunFolder};

use crate::cases::Case;
use crate::exit::{Exit, Stop};
use crate::identity::material_check;

/// A run that was begun, locked for whoever goes on with it.
pub struct Begun {
    /// Where it lies.
    pub folder: RunFolder,
    /// Its journal.
    pub journal: Writer,
    /// All events in it.
    pub events: Vec<Event>,
    /// How it was started: the plan of the journal is the run's plan, whatever `plan.toml` says.
    pub started: RunStarted,
}

impl Begun {
    /// Finds a run by its folder, its id or as `latest`, and says what is wrong with its journal.
    ///
    /// # Errors
    /// If there is no such run, if somebody else records into it now, or if its journal cannot
    /// carry a run.
    pub fn open(runs: &Path, name: &str) -> Result<Begun, Stop> {
        let folder = RunFolder::find(runs, name).map_err(Stop::usage)?;
        let path = folder.path().join(JOURNAL);
        let (journal, read) = folder.resume_journal().map_err(Stop::usage)?;
        for bad in &read.bad_lines {
            eprintln!("weigh: {}: {bad}", path.display());
        }
        if let Some(line) = read.torn_line {
            eprintln!("weigh: {}: line {line} was torn and is cut off", path.display());
        }
        let started = read.events.iter().find_map(|event| match event {
            Event::RunStarted(started) => Some((**started).clone()),
            _ => None,
        });
        let started = started.ok_or_else(|| {
            Stop::usage(format!(
                "{}: line 1, which holds the plan, is damaged: the run cannot be resumed; start a \
                 new one",
                path.display()
            ))
        })?;
        let begun = Begun { folder, journal, events: read.events, started };
        begun.tell_differences();
        Ok(begun)
    }

    /// The threads that it was started with, if that was written down.
    pub fn shards(&self) -> Option<u32> {
        (self.started.setup.shards > 0).then_some(self.started.setup.shards)
    }

    /// The folder of targets that it was started with.
    pub fn data(&self) -> Option<PathBuf> {
        self.started.setup.data.as_ref().map(PathBuf::from)
    }

    /// Refuses to go on with bodies or due times that are not those of the trials before.
    ///
    /// # Errors
    /// If the files that hold them have changed.
    pub fn check_material(&self, cases: &[Case]) -> Result<(), Stop> {
        match &self.started.setup.material {
            Some(before) if *before != material_check(cases) => Err(Stop::usage(format!(
                "{}: the files that its bodies or due times are made of have changed since it was \
                 started; put them back, or start a new run",
                self.folder.path().display()
            ))),
            _ => Ok(()),
        }
    }

    /// Says what is not as it was when the run was started.
    fn tell_differences(&self) {
        let started = &self.started;
        let own = env!("CARGO_PKG_VERSION");
        if started.version != own {
            eprintln!(
                "weigh: the run was started by weigh {}, and this is weigh {own}: its trials are \
                 not all of one version",
                started.version
            );
        }
        let host = weigh_observe::host::facts();
        if started.host != host {
            eprintln!(
                "weigh: the machine is not what it was when the run was started: do not compare \
                 trials from before with those from now"
            );
        }
        let path = self.folder.path().join("plan.toml");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if toml::from_str(&text).ok().as_ref() != Some(&started.plan) {
            eprintln!(
                "weigh: {} is not the plan that the run was started with: going on with the plan \
                 in its journal",
                path.display()
            );
        }
        let here = std::env::current_dir().ok().map(|folder| folder.display().to_string());
        if started.setup.folder.is_some() && started.setup.folder != here {
            eprintln!(
                "weigh: the run was started in {}: relative paths of its plan lead from there",
                started.setup.folder.as_deref().unwrap_or_default()
            );
        }
    }
}

/// What the journal must hold beside the plan, so that the run can be resumed. `user` is a name
/// without its password.
///
/// # Errors
/// If there is no current folder.
pub fn setup(
    shards: u32,
    data: Option<&Path>,
    user: Option<&str>,
    cases: &[Case],
) -> Result<Setup, Stop> {
    let folder = std::env::current_dir().map_err(|error| Stop::new(Exit::Internal, error))?;
    Ok(Setup {
        shards,
        data: data.map(|data| data.display().to_string()),
        user: user.map(str::to_owned),
        folder: Some(folder.display().to_string()),
        material: Some(material_check(cases)),
    })
}
