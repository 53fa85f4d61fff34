//! A running real server: on a free port, in its own folder, configured by its file in `targets/`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh_model::endpoint::Credentials;
use weigh_model::{Endpoint, Nanos};

use crate::catalogue::Choice;
use crate::counter::Counter;
use crate::find::{Found, find, fix, on_path};
use crate::hosts::Host;
use crate::listening::{
    Listener, accepts, datagram_listener, free_datagram_port, free_port, listener,
};
use crate::pinning::CoreSet;
use crate::placement::Placement;
use crate::process::{Ended, ManagedProcess, ProcessError, READ_LOG, Start};
use crate::target::{PORT_PREFIX, Prepare, Stop, Target};
use crate::template;

/// A server started from the catalogue; dropping it stops it.
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

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It is not installed.
    #[error("{title} is not installed: type `{install}`")]
    NotInstalled {
        /// The server.
        title: String,
        /// The command that installs it.
        install: String,
    },
    /// It does not speak the requested protocol.
    #[error("{title} does not speak {protocol}: it speaks {speaks}")]
    DoesNotSpeak {
        /// The server.
        title: String,
        /// The requested protocol.
        protocol: String,
        /// The protocols it speaks.
        speaks: String,
    },
    /// Its file has no settings for TLS.
    #[error("{title} cannot be started with TLS, since its file has no [tls]: remove --tls for it")]
    NoTls {
        /// The server.
        title: String,
    },
    /// Its file has no settings for client certificates.
    #[error("{title} cannot require client certificates: its file has no tls.mutual")]
    NoMutualTls {
        /// The server.
        title: String,
    },
    /// Its file has no settings for WebSocket.
    #[error(
        "{title} cannot be started with WebSocket, since its file has no [websocket]: remove it"
    )]
    NoWebSocket {
        /// The server.
        title: String,
    },
    /// The machine has no port left, or does not report one.
    #[error("no free port for the server: {0}")]
    NoPort(io::Error),
    /// Its files contain a placeholder without a value.
    #[error("the files of {title} use {{{name}}}, which has no value")]
    NoValue {
        /// The server.
        title: String,
        /// The placeholder.
        name: String,
    },
    /// Its files name 127.0.0.1, which other hosts cannot reach.
    #[error(
        "{0} listens on 127.0.0.1 only: write {{address}} instead in its file in targets/, \
        so that it can be measured across a path"
    )]
    OnlyLocal(String),
    /// A command before its start failed.
    #[error(
        "{title}: `{command}` in [[prepare]] {how}; the end of its log:\n{log}\n\
         help: {fix}",
        fix = READ_LOG
    )]
    Unprepared {
        /// The server.
        title: String,
        /// The command.
        command: String,
        /// How it ended, or that it did not end.
        how: String,
        /// Its last lines.
        log: String,
    },
    /// Its process failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl ManagedServer {
    /// Starts a server on loopback without TLS; see [`ManagedServer::start_in`].
    ///
    /// # Errors
    /// See [`ServerError`]; those of the process hold the end of the server's log.
    pub fn start(
        choice: Choice<'_>,
        protocol: Option<&str>,
        folder: &Path,
        cores: Option<&CoreSet>,
    ) -> Result<ManagedServer, ServerError> {
        let site = Placement { cores, ..Placement::default() };
        ManagedServer::start_in(choice, protocol, folder, &site, Layers::default())
    }

    /// Finds the server, writes its files into `folder` (made if it is not there), starts it on
    /// a free port of its site, and waits until it is ready. `protocol` is one that it speaks,
    /// `None` for its first; it is spoken inside `layers`.
    ///
    /// # Errors
    /// See [`ServerError`]; those of the process hold the end of the server's log.
    pub fn start_in(
        choice: Choice<'_>,
        protocol: Option<&str>,
        folder: &Path,
        site: &Placement<'_>,
        layers: Layers<'_>,
    ) -> Result<ManagedServer, ServerError> {
        let target = choice.target;
        let scheme = target.scheme(protocol).ok_or_else(|| does_not_speak(target, protocol))?;
        let found = find(target).ok_or_else(|| ServerError::NotInstalled {
            title: target.title.clone(),
            install: fix(target).to_owned(),
        })?;
        if site.host.is_some() && !may_bind_elsewhere(choice) {
            return Err(ServerError::OnlyLocal(target.title.clone()));
        }
        let scheme = layers.scheme.unwrap_or(scheme);
        let layers = layer_values(target, layers)?;
        let folder = made_absolute(folder)?;
        let place = Place { folder: &folder, site, layers: &layers };
        let (process, port, counters) = start_on_free_port(choice, &found, place)?;
        let address = SocketAddr::from((site.address(), port));
        let credentials = target.client.clone().map(|client| {
            let (user, password) = (client.user, client.password);
            Credentials { user, password }
        });
        Ok(ManagedServer {
            process,
            endpoint: Endpoint { credentials, ..Endpoint::at(scheme, address) },
            title: format!("{} {}", target.title, found.version),
            profile: choice.profile.name.clone(),
            counters,
            stop: target.stop.clone(),
            folder,
        })
    }

    /// Its URL.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Its name and version: `Mosquitto 2.0.11`.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its profile.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// Its counters; all placeholders of their URLs are filled in.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Its process ID, for probes.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// How it ended; `None` while it runs.
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

/// Layers between the protocol and TCP; by default none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layers<'l> {
    /// TLS.
    pub tls: Option<TlsFiles<'l>>,
    /// WebSocket, inside TLS where that is there too.
    pub websocket: bool,
    /// Returns the scheme of URLs with these layers; `None` for that of the target's own table.
    pub scheme: Option<&'static str>,
}

/// What a server needs for TLS.
#[derive(Clone, Copy, Debug)]
pub struct TlsFiles<'f> {
    /// A folder with `ca.pem` and `server.pem`.
    pub folder: &'f Path,
    /// The key of `server.pem`.
    pub key: &'f Path,
    /// True if clients must show certificates.
    pub mutual: bool,
}

/// Settings of an attempt to start.
#[derive(Clone, Copy)]
struct Place<'p> {
    folder: &'p Path,
    site: &'p Placement<'p>,
    layers: &'p BTreeMap<String, String>,
}

/// Values of the placeholders for layers.
fn layer_values(
    target: &Target,
    layers: Layers<'_>,
) -> Result<BTreeMap<String, String>, ServerError> {
    let mut values = BTreeMap::new();
    let title = || target.title.clone();
    let websocket = match &target.websocket {
        Some(told) if layers.websocket => told.lines.clone(),
        None if layers.websocket => return Err(ServerError::NoWebSocket { title: title() }),
        _ => String::new(),
    };
    let (mut listen, mut lines) = (String::new(), String::new());
    if let Some(asked) = layers.tls {
        let told = target.tls.as_ref().ok_or_else(|| ServerError::NoTls { title: title() })?;
        values.insert("tls".to_owned(), made_absolute(asked.folder)?.display().to_string());
        values.insert("tls_key".to_owned(), asked.key.display().to_string());
        if asked.mutual && told.mutual.trim().is_empty() {
            return Err(ServerError::NoMutualTls { title: title() });
        }
        let text = if asked.mutual { &[&told.lines, &told.mutual][..] } else { &[&told.lines] };
        lines = text.iter().map(|part| part.as_str()).collect();
        listen.clone_from(&told.listen);
    }
    for name in ["tls", "tls_key"] {
        values.entry(name.to_owned()).or_default();
    }
    values.insert("websocket_lines".to_owned(), websocket);
    values.insert("tls_listen".to_owned(), listen);
    values.insert(TLS_LINES.to_owned(), lines);
    Ok(values)
}

/// Placeholder for the configuration of TLS.
const TLS_LINES: &str = "tls_lines";

/// A port is free when it is chosen and may be taken when the server binds it.
const PORTS_TRIED: u32 = 5;

fn start_on_free_port(
    choice: Choice<'_>,
    found: &Found,
    place: Place<'_>,
) -> Result<(ManagedProcess, u16, Vec<Counter>), ServerError> {
    let mut tried = 0;
    loop {
        tried += 1;
        let site = place.site;
        let free = || site.inside(|| free_port(site.address())).map_err(ServerError::NoPort);
        let free_datagram = || site.inside(|| free_datagram_port(site.address()));
        let port = match choice.target.ready.datagrams {
            true => free_datagram().map_err(ServerError::NoPort)?,
            false => free()?,
        };
        let more = &choice.target.start.ports;
        let more: Result<BTreeMap<_, _>, ServerError> =
            more.iter().map(|name| Ok((format!("{PORT_PREFIX}{name}"), free()?))).collect();
        let filling = Filling::of(choice, found, place, port, &more?)?;
        match start_on(choice, found, place, (port, &filling)) {
            Err(ServerError::Process(ProcessError::EndedEarly { log, .. }))
                if tried < PORTS_TRIED && says_in_use(&log) => {}
            Err(error) => return Err(error),
            Ok(process) => return Ok((process, port, filling.counters(choice.target)?)),
        }
    }
}

/// Messages for EADDRINUSE: of strerror(3), and its atom in Erlang, which servers print.
fn says_in_use(log: &str) -> bool {
    let log = log.to_ascii_lowercase();
    log.contains("address already in use") || log.contains("eaddrinuse")
}

/// Placeholders of a target's texts, with their values for one attempt to start it.
struct Filling<'f> {
    title: &'f str,
    values: BTreeMap<String, String>,
}

impl<'f> Filling<'f> {
    fn of(
        choice: Choice<'f>,
        found: &Found,
        place: Place<'_>,
        port: u16,
        more: &BTreeMap<String, u16>,
    ) -> Result<Filling<'f>, ServerError> {
        let mut values = choice.profile.values.clone();
        values.extend(place.layers.clone());
        values.extend(more.iter().map(|(name, port)| (name.clone(), port.to_string())));
        let package = found.package.as_ref().map(|folder| folder.display().to_string());
        values.insert("package".to_owned(), package.unwrap_or_default());
        values.insert("port".to_owned(), port.to_string());
        values.insert("address".to_owned(), place.site.address().to_string());
        values.insert("dir".to_owned(), place.folder.display().to_string());
        values.insert("user".to_owned(), user_name());
        let mut filling = Filling { title: &choice.target.title, values };
        // The lines for TLS may use every other value.
        let lines = filling.values.remove(TLS_LINES).unwrap_or_default();
        let lines = filling.fill(&lines)?;
        filling.values.insert(TLS_LINES.to_owned(), lines);
        Ok(filling)
    }

    fn fill(&self, text: &str) -> Result<String, ServerError> {
        template::fill(text, &self.values)
            .map_err(|name| ServerError::NoValue { title: self.title.to_owned(), name })
    }

    fn all(&self, texts: &[String]) -> Result<Vec<String>, ServerError> {
        texts.iter().map(|text| self.fill(text)).collect()
    }

    /// The counters, with the URLs of this attempt.
    fn counters(&self, target: &Target) -> Result<Vec<Counter>, ServerError> {
        let filled = |counter: &Counter| {
            let url = counter.url.as_deref().map(|url| self.fill(url)).transpose()?;
            Ok(Counter { url, ..counter.clone() })
        };
        // Pages are used for servers given by URL.
        target.counters.iter().filter(|own| own.paths.is_empty()).map(filled).collect()
    }
}

fn start_on(
    choice: Choice<'_>,
    found: &Found,
    place: Place<'_>,
    (port, filling): (u16, &Filling<'_>),
) -> Result<ManagedProcess, ServerError> {
    let Choice { target, profile } = choice;
    let Place { folder, site, .. } = place;
    for file in target.files_of(profile) {
        let path = folder.join(&file.name);
        fs::write(&path, filling.fill(&file.text)?)
            .map_err(|error| ProcessError::Unwritable { path, error })?;
    }
    let log = folder.join(format!("{}.log", target.name));
    // The output of an attempt on another port does not belong to this one.
    match fs::remove_file(&log) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(ProcessError::Unwritable { path: log, error }.into());
        }
        _ => {}
    }
    let environment: Result<Vec<_>, ServerError> = target
        .start
        .environment
        .iter()
        .map(|(name, text)| Ok((name.into(), filling.fill(text)?.into())))
        .collect();
    let start = Start {
        program: found.path.clone(),
        arguments: filling.all(&target.start.arguments)?.into_iter().map(Into::into).collect(),
        environment: environment?,
        folder: folder.to_owned(),
        log: Some(log),
        cores: site.cores.cloned(),
        piped: false,
        door: site.host.map(Host::door),
        enclosure: site.enclosure.cloned(),
    };
    for preparation in &target.preparations {
        prepare(target, preparation, filling.all(&preparation.run)?, &start)?;
    }
    let mut process = ManagedProcess::start(&start)?;
    let log_line = target.ready.log_line.as_deref();
    let address = SocketAddr::from((site.address(), port));
    let deed = match target.ready.datagrams {
        true => format!("receive datagrams on {address}"),
        false => format!("accept connections on {address}"),
    };
    let awaited = match log_line {
        Some(line) => format!("log {line:?} and {deed}"),
        None => deed,
    };
    process.wait_ready(&awaited, duration(target.ready.within), |process| {
        let listens = match target.ready.datagrams {
            true => receives(process, port),
            false => listens(process, site, port),
        };
        log_line.is_none_or(|line| process.log_holds(line)) && listens
    })?;
    Ok(process)
}

/// Runs a preparation to its end, where and as the server itself will run.
fn prepare(
    target: &Target,
    preparation: &Prepare,
    words: Vec<String>,
    start: &Start,
) -> Result<(), ServerError> {
    let command = words.join(" ");
    let unprepared = |how: String, log: String| {
        let (title, command) = (target.title.clone(), command.clone());
        Err(ServerError::Unprepared { title, command, how, log })
    };
    let (program, arguments) = words.split_first().unwrap_or((&command, &[]));
    let Some(program) = on_path(program) else {
        return unprepared(format!("needs {program}, which was not found"), "(empty)".to_owned());
    };
    let arguments = arguments.iter().map(Into::into).collect();
    let mut process = ManagedProcess::start(&Start { program, arguments, ..start.clone() })?;
    let ended = process.wait_ended(duration(preparation.within));
    let log = process.log_tail(LOG_LINES);
    process.stop(target.stop.signal.signal(), duration(target.stop.grace));
    match ended {
        Some(Ended::Status(0)) => Ok(()),
        Some(ended) => unprepared(format!("ended with {ended}"), log),
        None => unprepared(format!("was not done within {}", preparation.within), log),
    }
}

/// Lines of a log shown in an error.
const LOG_LINES: usize = 12;

/// Ready means that the port takes connections and belongs to the server: another process that
/// took the port would accept connections too. If the kernel hides owners, accepting is enough.
fn listens(process: &ManagedProcess, site: &Placement<'_>, port: u16) -> bool {
    let listener = listener(port, process.pid());
    let takes = || Ok(accepts(site.address(), port, CONNECT_WITHIN));
    matches!(listener, Listener::Group | Listener::Unseen) && site.inside(takes).unwrap_or(false)
}

/// Ready for datagrams means that the port belongs to the server; nothing accepts them.
fn receives(process: &ManagedProcess, port: u16) -> bool {
    matches!(datagram_listener(port, process.pid()), Listener::Group | Listener::Unseen)
}

/// Whether the server's files and arguments have a placeholder for the address.
fn may_bind_elsewhere(choice: Choice<'_>) -> bool {
    let Choice { target, profile } = choice;
    let has = |text: &str| text.contains("{address}");
    target.files_of(profile).iter().any(|file| has(&file.text))
        || target.start.arguments.iter().any(|text| has(text))
        || target.start.environment.values().any(|text| has(text))
        || target.preparations.iter().flat_map(|own| &own.run).any(|text| has(text))
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

/// Makes the folder if needed and returns its absolute path.
pub(crate) fn made_absolute(folder: &Path) -> Result<PathBuf, ProcessError> {
    fs::create_dir_all(folder)
        .and_then(|()| fs::canonicalize(folder))
        .map_err(|error| ProcessError::Unwritable { path: folder.to_owned(), error })
}

/// Name of the current user, from `/etc/passwd` (passwd(5)), or the number if it has none.
/// Servers started by root would otherwise switch to a user who may not enter the run's folder.
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
    fn what_is_missing_is_told_with_the_fix() {
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
        target.find.version = None;
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
