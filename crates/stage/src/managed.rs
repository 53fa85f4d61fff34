//! A real server that runs: on a free port, in its own folder, as its file in `targets/` says.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh_model::{Endpoint, Nanos};

use crate::catalogue::Choice;
use crate::find::{Found, find};
use crate::listening::{Listener, accepts, free_port, listener};
use crate::pinning::CoreSet;
use crate::process::{Ended, ManagedProcess, ProcessError, Start};
use crate::target::{Counter, Stop, Target};
use crate::template;

/// A server that was started from the catalogue; dropping it stops it.
#[derive(Debug)]
pub struct ManagedServer {
    process: ManagedProcess,
    endpoint: Endpoint,
    title: String,
    profile: String,
    counters: Vec<Counter>,
    stop: Stop,
    folder: PathBuf,
}

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It is not on this machine.
    #[error("{title} is not installed: type `{install}`")]
    NotInstalled {
        /// What is missing.
        title: String,
        /// What to type.
        install: String,
    },
    /// It speaks something else.
    #[error("{title} does not speak {protocol}: it speaks {speaks}")]
    DoesNotSpeak {
        /// The server.
        title: String,
        /// What was asked.
        protocol: String,
        /// What it speaks.
        speaks: String,
    },
    /// The machine has no port left, or does not say so.
    #[error("no free port on 127.0.0.1: {0}")]
    NoPort(io::Error),
    /// Its files contain a place without a value.
    #[error("the files of {title} have no value for {{{name}}}")]
    NoValue {
        /// The server.
        title: String,
        /// The place.
        name: String,
    },
    /// Its process failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl ManagedServer {
    /// Finds the server, writes its files into `folder` (made if it is not there), starts it on
    /// a free port of 127.0.0.1 and on these cores, and waits until it is ready. `protocol` is
    /// one that it speaks, `None` for its first.
    ///
    /// # Errors
    /// See [`ServerError`]; those of the process hold the end of the server's log.
    pub fn start(
        choice: Choice<'_>,
        protocol: Option<&str>,
        folder: &Path,
        cores: Option<&CoreSet>,
    ) -> Result<ManagedServer, ServerError> {
        let target = choice.target;
        let scheme = target.scheme(protocol).ok_or_else(|| does_not_speak(target, protocol))?;
        let found = find(target).ok_or_else(|| ServerError::NotInstalled {
            title: target.title.clone(),
            install: target.find.install.clone(),
        })?;
        let folder = made_absolute(folder)?;
        let (process, port) = start_on_free_port(choice, &found, &folder, cores)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(ManagedServer {
            process,
            endpoint: Endpoint::at(scheme, address),
            title: format!("{} {}", target.title, found.version),
            profile: choice.profile.name.clone(),
            counters: target.counters.clone(),
            stop: target.stop.clone(),
            folder,
        })
    }

    /// Where it is reached.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Its name and version: `Mosquitto 2.0.11`.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// How it is configured.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The counters it publishes.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Its process, for whoever watches it.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<Ended> {
        self.process.ended()
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        self.process.log_tail(lines)
    }

    /// The folder with its files and its log.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stops it as its file says; its folder stays.
    pub fn stop(self) -> Ended {
        self.process.stop(self.stop.signal.signal(), duration(self.stop.grace))
    }
}

/// A port is free when it is chosen and may be taken when the server binds it.
const PORTS_TRIED: u32 = 5;

fn start_on_free_port(
    choice: Choice<'_>,
    found: &Found,
    folder: &Path,
    cores: Option<&CoreSet>,
) -> Result<(ManagedProcess, u16), ServerError> {
    let mut tried = 0;
    loop {
        tried += 1;
        let port = free_port().map_err(ServerError::NoPort)?;
        match start_on(choice, found, folder, cores, port) {
            Err(ServerError::Process(ProcessError::EndedEarly { log, .. }))
                if tried < PORTS_TRIED && says_in_use(&log) => {}
            outcome => return outcome.map(|process| (process, port)),
        }
    }
}

/// The words of EADDRINUSE in strerror(3), which servers print.
fn says_in_use(log: &str) -> bool {
    log.to_ascii_lowercase().contains("address already in use")
}

fn start_on(
    choice: Choice<'_>,
    found: &Found,
    folder: &Path,
    cores: Option<&CoreSet>,
    port: u16,
) -> Result<ManagedProcess, ServerError> {
    let Choice { target, profile } = choice;
    let mut values = profile.values.clone();
    values.insert("port".to_owned(), port.to_string());
    values.insert("dir".to_owned(), folder.display().to_string());
    values.insert("user".to_owned(), user_name());
    let fill = |text: &str| {
        template::fill(text, &values)
            .map_err(|name| ServerError::NoValue { title: target.title.clone(), name })
    };
    for file in target.files_of(profile) {
        let path = folder.join(&file.name);
        fs::write(&path, fill(&file.text)?)
            .map_err(|error| ProcessError::Unwritable { path, error })?;
    }
    let arguments: Result<Vec<_>, ServerError> =
        target.start.arguments.iter().map(|text| Ok(fill(text)?.into())).collect();
    let environment: Result<BTreeMap<_, _>, ServerError> = target
        .start
        .environment
        .iter()
        .map(|(name, text)| Ok((name.into(), fill(text)?.into())))
        .collect();
    let log = folder.join(format!("{}.log", target.name));
    // What an attempt on another port said does not belong to this one.
    match fs::remove_file(&log) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(ProcessError::Unwritable { path: log, error }.into());
        }
        _ => {}
    }
    let mut process = ManagedProcess::start(&Start {
        program: found.path.clone(),
        arguments: arguments?,
        environment: environment?.into_iter().collect(),
        folder: folder.to_owned(),
        log,
        cores: cores.cloned(),
        piped: false,
    })?;
    let log_line = target.ready.log_line.as_deref();
    process.wait_ready(duration(target.ready.within), |process| {
        log_line.is_none_or(|line| process.log_holds(line)) && listens(process, port)
    })?;
    Ok(process)
}

/// Ready is a port that takes connections and is the server's own: a stranger who was faster
/// would take connections too. Where the kernel hides owners, taking connections must do.
fn listens(process: &ManagedProcess, port: u16) -> bool {
    let listener = listener(port, process.pid());
    matches!(listener, Listener::Group | Listener::Unseen) && accepts(port, CONNECT_WITHIN)
}

const CONNECT_WITHIN: Duration = Duration::from_secs(1);

fn does_not_speak(target: &Target, protocol: Option<&str>) -> ServerError {
    let speaks: Vec<&str> = target.speaks.iter().map(|s| s.protocol.as_str()).collect();
    ServerError::DoesNotSpeak {
        title: target.title.clone(),
        protocol: protocol.unwrap_or_default().to_owned(),
        speaks: speaks.join(" and "),
    }
}

fn made_absolute(folder: &Path) -> Result<PathBuf, ProcessError> {
    fs::create_dir_all(folder)
        .and_then(|()| fs::canonicalize(folder))
        .map_err(|error| ProcessError::Unwritable { path: folder.to_owned(), error })
}

/// The name of the user we are, from `/etc/passwd` (passwd(5)), or the number where it has none.
/// Servers started by root would otherwise become a user who may not enter the run's folder.
fn user_name() -> String {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    name.unwrap_or(id)
}

fn duration(time: Nanos) -> Duration {
    Duration::from_nanos(time.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn what_is_missing_is_told_with_the_mend() {
        let text = include_str!("../../../targets/mosquitto.toml")
            .replace("binaries = [\"mosquitto\"]", "binaries = [\"/nowhere/mosquitto\"]");
        let target = Target::parse("mosquitto.toml", &text).unwrap();
        let choice = Choice { target: &target, profile: &target.profiles[0] };
        let folder = std::env::temp_dir();
        let error = ManagedServer::start(choice, None, &folder, None).unwrap_err().to_string();
        assert!(error.contains("type `apt-get install mosquitto`"), "{error}");
        let error = ManagedServer::start(choice, Some("http1"), &folder, None).unwrap_err();
        assert!(error.to_string().contains("does not speak http1: it speaks mqtt"), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let catalogue = Catalogue::load(None).unwrap();
        let mut target = catalogue.choose("mosquitto").unwrap().target.clone();
        target.find.binaries = vec!["sh".into()];
        target.find.version.arguments = vec!["-c".into(), "true".into()];
        let choice = Choice { target: &target, profile: &target.profiles[0] };
        let folder = Path::new("/proc/weigh/folder");
        let error = ManagedServer::start(choice, None, folder, None).unwrap_err().to_string();
        assert!(error.contains("/proc/weigh/folder could not be written"), "{error}");
    }

    #[test]
    fn we_have_a_name_or_a_number() {
        assert!(!user_name().is_empty());
        assert!(says_in_use("bind(): Address already in use (98)") && !says_in_use("denied"));
    }
}
