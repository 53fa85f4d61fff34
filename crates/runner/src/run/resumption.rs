//! What it takes to resume a run: everything is in its journal, except passwords.

use std::path::{Path, PathBuf};

use weigh_model::endpoint::Credentials;
use weigh_model::event::{Event, RunStarted, Setup};
use weigh_report::journal::JOURNAL;
use weigh_report::{RunFolder, Writer};

use crate::case::Case;
use crate::case::secrets::Secrets;
use crate::exit::{Exit, Stop};
use crate::trial::identity::material_check;
use crate::watcher::Watcher;

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
    pub fn open(runs: &Path, name: &str, watcher: &dyn Watcher) -> Result<Begun, Stop> {
        let folder = RunFolder::find(runs, name).map_err(Stop::usage)?;
        let path = folder.path().join(JOURNAL);
        let (journal, read) = folder.resume_journal().map_err(Stop::usage)?;
        for bad in &read.bad_lines {
            watcher.say(&format!("{}: {bad}", path.display()));
        }
        if let Some(line) = read.torn_line {
            watcher.say(&format!("{}: line {line} was torn and is cut off", path.display()));
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
        begun.tell_differences(watcher);
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

    /// What must be given again because no journal holds it: a user, by `--user` or as it was, and
    /// settings as `KEY=VALUE`.
    ///
    /// # Errors
    /// If something is missing, or is none of the run's secrets.
    pub fn secrets(
        &self,
        user: Option<&str>,
        password: Option<String>,
        sets: &[String],
    ) -> Result<Secrets, Stop> {
        let setup = &self.started.setup;
        let mut secrets = Secrets::default();
        for text in sets {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            if !setup.secrets.iter().any(|known| known == key) {
                return Err(Stop::usage(format!(
                    "--set {key}: everything but passwords is as it was when the run was started: \
                     leave it out"
                )));
            }
            secrets.settings.insert(key.to_owned(), value.to_owned());
        }
        if let Some(user) = user.or(setup.user.as_deref()) {
            let password = password.ok_or_else(|| {
                Stop::usage(format!("the password of {user} is in no journal: set WEIGH_PASSWORD"))
            })?;
            secrets.user = Some(Credentials { user: user.to_owned(), password });
        }
        let is_given = |name: &String| {
            let is_url = name.contains("://");
            if is_url { secrets.user.is_some() } else { secrets.settings.contains_key(name) }
        };
        match setup.secrets.iter().find(|name| !is_given(name)) {
            None => Ok(secrets),
            Some(url) if url.contains("://") => Err(Stop::usage(format!(
                "{url}: the credentials that stood in it are in no journal: type --user NAME and \
                 set WEIGH_PASSWORD"
            ))),
            Some(key) => {
                Err(Stop::usage(format!("{key} is in no journal: type --set {key}=PASSWORD")))
            }
        }
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
    fn tell_differences(&self, watcher: &dyn Watcher) {
        let started = &self.started;
        let own = env!("CARGO_PKG_VERSION");
        if started.version != own {
            watcher.say(&format!(
                "the run was started by weigh {}, and this is weigh {own}: its trials are \
                 not all of one version",
                started.version
            ));
        }
        let host = weigh_observe::host::facts();
        if started.host != host {
            watcher.say(
                "the machine is not what it was when the run was started: do not compare \
                 trials from before with those from now",
            );
        }
        let path = self.folder.path().join("plan.toml");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if toml::from_str(&text).ok().as_ref() != Some(&started.plan) {
            watcher.say(&format!(
                "{} is not the plan that the run was started with: going on with the plan \
                 in its journal",
                path.display()
            ));
        }
        let here = std::env::current_dir().ok().map(|folder| folder.display().to_string());
        if started.setup.folder.is_some() && started.setup.folder != here {
            watcher.say(&format!(
                "the run was started in {}: relative paths of its plan lead from there",
                started.setup.folder.as_deref().unwrap_or_default()
            ));
        }
    }
}

/// What the journal must hold beside the plan, so that the run can be resumed. Of what is secret
/// it holds names.
///
/// # Errors
/// If there is no current folder.
pub fn setup(
    shards: u32,
    data: Option<&Path>,
    secrets: &Secrets,
    cases: &[Case],
) -> Result<Setup, Stop> {
    let folder = std::env::current_dir().map_err(|error| Stop::new(Exit::Internal, error))?;
    Ok(Setup {
        shards,
        data: data.map(|data| data.display().to_string()),
        user: secrets.user.as_ref().map(|own| own.user.clone()),
        secrets: secrets.by_url.keys().chain(secrets.settings.keys()).cloned().collect(),
        folder: Some(folder.display().to_string()),
        material: Some(material_check(cases)),
        study_hash: None,
        boot: weigh_observe::boot::id(),
    })
}
