//! Resumption of a run: everything but passwords is in its journal.

use std::path::{Path, PathBuf};

use weigh_model::endpoint::Credentials;
use weigh_model::event::{Event, RunStarted, Setup};
use weigh_model::plan::Plan;
use weigh_report::journal::JOURNAL;
use weigh_report::{RunFolder, Writer};

use crate::case::Case;
use crate::case::secrets::Secrets;
use crate::exit::{Exit, Stop};
use crate::trial::identity::material_check;
use crate::watcher::Watcher;

/// A run that was started, locked for its resumption.
///
/// # Examples
///
/// Resumes the newest run of a folder:
///
/// ```no_run
/// use weigh_runner::run::resumption::Begun;
/// use weigh_runner::runner::Runner;
/// use weigh_runner::watcher::Silent;
///
/// let runner = Runner::new("/usr/local/bin/weigh", "runs")?;
/// let begun = Begun::open(&runner.runs, "latest", &Silent)?;
/// let secrets = begun.secrets(None, None, &[])?;
/// let finished = runner.resume(begun, &secrets)?;
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
pub struct Begun {
    /// Its folder.
    pub folder: RunFolder,
    /// Its journal.
    pub journal: Writer,
    /// All events in it.
    pub events: Vec<Event>,
    /// Its first event: the plan of the journal is the run's plan, even if `plan.toml` differs.
    pub started: RunStarted,
}

impl Begun {
    /// Finds a run by its folder, its id or as `latest`, and reports damage of its journal.
    ///
    /// # Errors
    /// A run that does not exist, or that another process writes; a damaged journal.
    pub fn open(runs: &Path, name: &str, watcher: &dyn Watcher) -> Result<Begun, Stop> {
        let folder = RunFolder::find(runs, name).map_err(Stop::usage)?;
        let path = folder.path().join(JOURNAL);
        let (journal, read) = folder.resume_journal().map_err(Stop::usage)?;
        for bad in &read.bad_lines {
            watcher.say(&format!("{}: {bad}", path.display()));
        }
        if let Some(line) = read.torn_line {
            watcher.say(&format!("{}: line {line} is incomplete and was removed", path.display()));
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

    /// Its number of threads, if recorded.
    pub fn shards(&self) -> Option<u32> {
        (self.started.setup.shards > 0).then_some(self.started.setup.shards)
    }

    /// Its folder of targets.
    pub fn data(&self) -> Option<PathBuf> {
        self.started.setup.data.as_ref().map(PathBuf::from)
    }

    /// Checks the secrets that must be given again because the journal does not hold them: a user,
    /// by `--user` or in the URL, and settings as `KEY=VALUE`.
    ///
    /// # Errors
    /// A missing secret, or one that is not of the run.
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
                    "--set {key}: a resumed run keeps all of its settings except passwords: \
                     leave it out"
                )));
            }
            secrets.settings.insert(key.to_owned(), value.to_owned());
        }
        if let Some(user) = user.or(setup.user.as_deref()) {
            let password = password.ok_or_else(|| {
                Stop::usage(format!(
                    "the password of {user} is not in the journal: set \
                                     WEIGH_PASSWORD"
                ))
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
                "{url}: the credentials in it are not in the journal: type --user NAME and \
                 set WEIGH_PASSWORD"
            ))),
            Some(key) => {
                Err(Stop::usage(format!("{key} is not in the journal: type --set {key}=PASSWORD")))
            }
        }
    }

    /// Rejects another place of the load than that of the earlier trials: as many agents are needed
    /// as the run was started with; `agents` of them are asked for.
    ///
    /// # Errors
    /// A fleet where there was none, none where there was one, or another number of agents.
    pub fn check_agents(&self, agents: Option<u32>) -> Result<(), Stop> {
        let own = self.started.setup.agents;
        let run = self.folder.id();
        match (own, agents) {
            (own, agents) if own == agents => Ok(()),
            (Some(own), _) => Err(Stop::usage(format!(
                "{run}: its load was generated by {own} agents of a fleet\nhelp: type --fleet \
                 nats://HOST:PORT --agents {own}"
            ))),
            (None, _) => Err(Stop::usage(format!(
                "--fleet: {run} was started without a fleet, so its trials would not be \
                 comparable\nhelp: leave --fleet out"
            ))),
        }
    }

    /// Rejects bodies or due times that differ from those of the earlier trials.
    ///
    /// # Errors
    /// Files that have changed.
    pub fn check_material(&self, cases: &[Case]) -> Result<(), Stop> {
        match &self.started.setup.material {
            Some(before) if *before != material_check(cases) => Err(Stop::usage(format!(
                "{}: the files of its bodies or due times have changed since it was \
                 started; put them back, or start a new run",
                self.folder.path().display()
            ))),
            _ => Ok(()),
        }
    }

    /// Reports differences from the start of the run.
    fn tell_differences(&self, watcher: &dyn Watcher) {
        let started = &self.started;
        let own = env!("CARGO_PKG_VERSION");
        if started.version != own {
            watcher.say(&format!(
                "the run was started by weigh {}, and this is weigh {own}: its trials will \
                 be of different versions",
                started.version
            ));
        }
        let host = weigh_observe::host::facts();
        if started.host != host {
            watcher.say(
                "the machine has changed since the run was started: do not compare \
                 earlier trials with later ones",
            );
        }
        let path = self.folder.path().join("plan.toml");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if Plan::from_toml(&text).ok().as_ref() != Some(&started.plan) {
            watcher.say(&format!(
                "{} is not the plan that the run was started with: weigh uses the plan \
                 in its journal",
                path.display()
            ));
        }
        let here = std::env::current_dir().ok().map(|folder| folder.display().to_string());
        if started.setup.folder.is_some() && started.setup.folder != here {
            watcher.say(&format!(
                "the run was started in {}: relative paths of its plan start there",
                started.setup.folder.as_deref().unwrap_or_default()
            ));
        }
    }
}

/// Returns what the journal must record besides the plan for a resumption. Of secrets it has only
/// the names.
///
/// # Errors
/// A process without a current folder.
pub fn setup(
    shards: u32,
    data: Option<&Path>,
    commit: Option<&str>,
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
        commit: commit.map(str::to_owned),
        agents: None,
    })
}
