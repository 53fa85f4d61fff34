//! `weigh targets`: the real servers that can be started and weighed.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use tempfile::TempDir;
use weigh_protocols as registry;
use weigh_stage::catalogue::{Catalogue, Choice};
use weigh_stage::find;
use weigh_stage::managed::ManagedServer;
use weigh_stage::pinning::{CoreSet, Pinning};

use crate::commands::install::install;
use crate::commands::probe::Probe;
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};

/// The flags of `weigh targets`.
#[derive(Args)]
pub struct Targets {
    #[command(subcommand)]
    action: Option<Action>,
    /// A folder whose targets/*.toml come before those built in
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Action {
    /// What there is, and what is installed.
    List {
        /// Also the keys of every protocol that --set takes
        #[arg(long)]
        settings: bool,
    },
    /// Starts one and keeps it running until Ctrl-C.
    Start {
        /// mosquitto, mosquitto@no-limits, nginx
        name: String,
    },
    /// Says how to install one, how much that takes and where it goes, and with --yes does it.
    Install {
        /// mosquitto, hivemq, rabbitmq; see weigh targets
        name: String,
        /// Runs the commands and starts it once to see that it works
        #[arg(long)]
        yes: bool,
    },
    /// Finds out what one can do: versions, guarantees, limits; as a table and as data.
    Probe(Box<Probe>),
}

impl Targets {
    /// Lists or starts.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = Catalogue::load(self.data.as_deref()).map_err(Stop::usage)?;
        match self.action.unwrap_or(Action::List { settings: false }) {
            Action::List { settings } => {
                let mut text = list(&catalogue);
                if settings {
                    text += &self::settings();
                }
                output::put(&text)?;
                Ok(Exit::Done)
            }
            Action::Start { name } => start(&catalogue, &name),
            Action::Install { name, yes } => install(&catalogue, &name, yes),
            Action::Probe(probe) => probe.run(&catalogue),
        }
    }
}

fn list(catalogue: &Catalogue) -> String {
    let mut text = String::new();
    for protocol in registry::PROTOCOLS {
        text += &format!("{:<12} reference server of Weighbridge\n", protocol.name());
    }
    for target in catalogue.targets() {
        let state = match find::find(target) {
            Some(found) => format!("{} {}", target.title, found.version),
            None => format!("{}, not installed: {}", target.title, find::mend(target)),
        };
        text += &format!("{:<12} {state}\n", target.name);
        for profile in &target.profiles {
            text += &format!("{:<12}   {}@{}: {}\n", "", target.name, profile.name, profile.about);
        }
    }
    text
}

fn settings() -> String {
    let mut text = String::new();
    for protocol in registry::PROTOCOLS {
        text.push('\n');
        for setting in protocol.settings() {
            let key = format!("{}.{}", protocol.name(), setting.key);
            text += &format!("{key:<32} [{}] {}\n", setting.default, setting.doc);
        }
    }
    text
}

fn start(catalogue: &Catalogue, name: &str) -> Result<Exit, Stop> {
    let choice = catalogue.choose(name).map_err(Stop::usage)?;
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
    ])?;
    let started = Started::start(choice)?;
    let server = started.server();
    let who = format!("{} ({}) pid {}", server.title(), server.profile(), server.pid());
    output::put(&format!("{who}\nlistening on {}\n", server.endpoint()))?;
    signals.forever().next();
    started.stop();
    Ok(Exit::Done)
}

/// A server that runs in a folder of its own; both are gone when it is dropped.
pub struct Started {
    server: ManagedServer,
    /// Dropped after the server.
    _home: Home,
}

/// The folder of a server, as long as it is needed. Its name cannot be guessed, so nobody can have
/// put something else in its place.
struct Home {
    folder: TempDir,
    _lock: File,
}

impl Started {
    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    /// If it is not installed, does not start, or gets no folder.
    pub fn start(choice: Choice<'_>) -> Result<Started, Stop> {
        sweep();
        let home = Home::make()?;
        let pinning = Pinning::divide(&CoreSet::allowed()?, 1, 1);
        let server = ManagedServer::start(choice, None, home.folder.path(), Some(&pinning.target))
            .map_err(|error| Stop::new(Exit::Target, error))?;
        Ok(Started { server, _home: home })
    }

    /// Stops it as its file says, and takes its folder away.
    pub fn stop(self) {
        self.server.stop();
    }

    /// The server.
    pub fn server(&self) -> &ManagedServer {
        &self.server
    }
}

impl Home {
    /// A new one, with a lock in it that lasts as long as we do.
    fn make() -> Result<Home, Stop> {
        let folder = temporary_folder(FOLDER);
        let made = folder.and_then(|folder| Ok((File::create(folder.path().join(LOCK))?, folder)));
        let (lock, folder) = made.map_err(|error| {
            let place = std::env::temp_dir();
            let place = place.display();
            Stop::new(Exit::Target, format!("{place}: no folder for the server there: {error}"))
        })?;
        // Where a lock cannot be had, only the sweeping of others could take the folder away.
        let _ = lock.try_lock();
        Ok(Home { folder, _lock: lock })
    }
}

/// A new folder that is removed when dropped. A server that gives up being root must be able to
/// enter it.
pub fn temporary_folder(prefix: &str) -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o755)).tempdir()
}

/// Removes what was left behind by those of us that were killed: their locks are free.
fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let is_named_so = entry.file_name().to_string_lossy().starts_with(FOLDER);
        // Whoever else's folder has such a name is none of our business, also where we are root.
        let is_ours = is_named_so && entry.metadata().is_ok_and(|found| found.uid() == own);
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        // Whoever has just made one may not have locked it yet.
        let modified = lock.metadata().and_then(|found| found.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > SWEPT_AFTER) && lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// How the folder of a server that runs in the foreground begins.
const FOLDER: &str = "weigh-target-";

const LOCK: &str = "lock";

const SWEPT_AFTER: Duration = Duration::from_secs(10);
