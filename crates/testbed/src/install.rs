//! Installs a server with an ordinary package client: completely or not at all, into a folder of
//! its own, or as root into the system.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::find::{find, on_path};
use crate::package::{Package, RECIPE, Step, folders};
use crate::process::{Ended, ManagedProcess, ProcessError, Start};
use crate::target::Target;

/// Steps and needs of an installation.
#[derive(Clone, Debug)]
pub struct Installation<'t> {
    target: &'t Target,
    package: &'t Package,
    /// Its own folder; `None` for the system.
    folder: Option<PathBuf>,
}

/// Why a server was not installed. A folder of its own is removed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The target's file has no package.
    #[error("weigh cannot install {title}: {fix}")]
    NoPackage {
        /// The server.
        title: String,
        /// What to type instead.
        fix: String,
    },
    /// The user has no home, and so no cache.
    #[error("no cache folder: set XDG_CACHE_HOME or HOME to a folder")]
    NoCache,
    /// A package client, or a program that the server needs, is missing.
    #[error("{title} needs {program}, which is not installed: type `{fix}`")]
    NoProgram {
        /// The server.
        title: String,
        /// The missing program.
        program: String,
        /// The command that installs it.
        fix: String,
    },
    /// Only root may change the system.
    #[error("{title} is installed into the system, which needs root: type `sudo {command}`")]
    NotRoot {
        /// The server.
        title: String,
        /// What to type.
        command: String,
    },
    /// Another process is installing it.
    #[error("another weigh process is installing {0}: wait until it has ended")]
    Busy(String),
    /// The disk has not enough room.
    #[error("{title} needs about {needed} MB, and {folder} has {free} MB left: free some space")]
    DiskFull {
        /// The server.
        title: String,
        /// The folder.
        folder: PathBuf,
        /// Free space there, in millions of bytes.
        free: u64,
        /// Size of the package, in millions of bytes.
        needed: u64,
    },
    /// A command failed.
    #[error(
        "`{command}` ended with {ended}{hint}; the end of its output:\n{log}\n\
         help: correct what the output above reports"
    )]
    StepFailed {
        /// The command.
        command: String,
        /// How it ended, or that it did not end.
        ended: String,
        /// Meaning of its output, if known.
        hint: &'static str,
        /// Its last lines.
        log: String,
    },
    /// All commands succeeded, but a file is missing.
    #[error("all commands succeeded, but {0} is missing: install it again from another mirror")]
    Missing(String),
    /// A file or folder could not be written.
    #[error("{path} could not be written: {error}")]
    Unwritable {
        /// Path of the file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The user interrupted the installation.
    #[error("{0}: interrupted; steps that change the system were completed, all else was removed")]
    GivenUp(String),
    /// A process could not be started.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl<'t> Installation<'t> {
    /// Returns the steps that install this target.
    ///
    /// # Errors
    /// If the target has no package, or the user has no cache folder.
    pub fn of(target: &'t Target) -> Result<Installation<'t>, InstallError> {
        let package = target.package.as_ref().ok_or_else(|| InstallError::NoPackage {
            title: target.title.clone(),
            fix: target.find.install.clone(),
        })?;
        let folder = package.folder(&target.name);
        if folder.is_none() && !package.system {
            return Err(InstallError::NoCache);
        }
        Ok(Installation { target, package, folder })
    }

    /// Describes the steps: commands, folder, size.
    pub fn words(&self) -> String {
        let Installation { target, package, folder } = self;
        let version = package.version.as_deref().map_or(String::new(), |own| format!(" {own}"));
        let mut text = format!("{}{version} takes about {} MB", target.title, package.megabytes);
        match folder {
            Some(folder) => {
                let _ = writeln!(text, " in {}", folder.display());
            }
            None => text.push_str(" of the system, which needs root\n"),
        }
        for file in &package.files {
            let _ = writeln!(text, "  write {}", file.name);
        }
        for step in &package.steps {
            let _ = writeln!(text, "  {}", step.words());
        }
        if let Some(note) = &package.note {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    /// Checks that it can begin: programs, rights, room.
    ///
    /// # Errors
    /// What is missing, with the fix.
    pub fn check(&self) -> Result<(), InstallError> {
        let Installation { target, package, folder } = self;
        let title = || target.title.clone();
        let needed =
            package.steps.iter().map(|step| &step.run[0]).filter(|word| !word.contains('/'));
        if let Some(program) = needed.chain(package.needs.keys()).find(|p| on_path(p).is_none()) {
            let fix = package.needs.get(program).cloned();
            let fix = fix.unwrap_or_else(|| format!("apt-get install {program}"));
            return Err(InstallError::NoProgram { title: title(), program: program.clone(), fix });
        }
        if package.system && !rustix::process::geteuid().is_root() {
            let command = format!("weigh targets install {} --yes", target.name);
            return Err(InstallError::NotRoot { title: title(), command });
        }
        let Some(folder) = folder.as_deref().and_then(Path::parent) else { return Ok(()) };
        made(folder)?;
        let free = free_megabytes(folder).unwrap_or(u64::MAX);
        if free < package.megabytes {
            let (folder, needed) = (folder.to_owned(), package.megabytes);
            return Err(InstallError::DiskFull { title: title(), folder, free, needed });
        }
        Ok(())
    }

    /// Runs the steps; calls `say` with each command before it runs. The folder appears when it is
    /// complete. When `is_given_up` becomes true, a command that fills the folder is stopped at
    /// once.
    /// One that changes the system is completed, since a half-configured package would disturb
    /// later
    /// installations.
    ///
    /// # Errors
    /// See [`InstallError`].
    pub fn run(
        &self,
        mut say: impl FnMut(&str),
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<(), InstallError> {
        self.check()?;
        let mut watch = Watch { say: &mut say, is_given_up, ends_steps: self.folder.is_some() };
        let Some(folder) = &self.folder else {
            // Its name cannot be guessed: another user could put a link in its place otherwise.
            let outside = tempfile::Builder::new().prefix("weigh-install-").tempdir();
            let outside = outside.map_err(unwritable(&std::env::temp_dir()))?;
            self.steps(outside.path(), &mut watch)?;
            let here = find(self.target).is_some();
            return here
                .then_some(())
                .ok_or_else(|| InstallError::Missing(self.target.title.clone()));
        };
        let all = folders().ok_or(InstallError::NoCache)?;
        let lock = all.join(format!(".{}.lock", self.target.name));
        let lock = File::create(&lock).map_err(unwritable(&lock))?;
        lock.try_lock().map_err(|_| InstallError::Busy(self.target.name.clone()))?;
        // This process holds the lock, so unfinished work there belongs to no running process.
        let partial = all.join(format!(".{}.partial", self.target.name));
        cleared(&partial)?;
        made(&partial)?;
        let result = self.fill(&partial, &mut watch).and_then(|()| {
            cleared(folder)?;
            fs::rename(&partial, folder).map_err(unwritable(folder))
        });
        if result.is_err() {
            let _ = fs::remove_dir_all(&partial);
        }
        result
    }

    fn fill(&self, folder: &Path, watch: &mut Watch<'_>) -> Result<(), InstallError> {
        for file in &self.package.files {
            let path = folder.join(&file.name);
            fs::write(&path, &file.text).map_err(unwritable(&path))?;
        }
        self.steps(folder, watch)?;
        if let Some(path) = self.package.holds.iter().find(|path| !folder.join(path).exists()) {
            return Err(InstallError::Missing(path.display().to_string()));
        }
        let recipe = folder.join(RECIPE);
        fs::write(&recipe, self.package.recipe()).map_err(unwritable(&recipe))
    }

    fn steps(&self, folder: &Path, watch: &mut Watch<'_>) -> Result<(), InstallError> {
        for step in &self.package.steps {
            (watch.say)(&step.words());
            run_step(step, folder, watch)?;
            if (watch.is_given_up)() {
                return Err(InstallError::GivenUp(self.target.title.clone()));
            }
        }
        Ok(())
    }
}

/// Progress callbacks of an installation, and whether to continue.
struct Watch<'w> {
    say: &'w mut dyn FnMut(&str),
    is_given_up: &'w dyn Fn() -> bool,
    /// True if a command may be stopped before its end.
    ends_steps: bool,
}

impl Watch<'_> {
    /// Waits for a command until its time limit, or until the user interrupts it.
    fn wait(&self, process: &mut ManagedProcess) -> Option<Ended> {
        let deadline = Instant::now() + STEP_WITHIN;
        loop {
            let ended = process.wait_ended(ASKED_EVERY);
            let is_over = self.ends_steps && (self.is_given_up)() || Instant::now() >= deadline;
            if ended.is_some() || is_over {
                return ended;
            }
        }
    }
}

/// Runs one command to its end.
fn run_step(step: &Step, folder: &Path, watch: &Watch<'_>) -> Result<(), InstallError> {
    let program = on_path(&step.run[0]).unwrap_or_else(|| step.run[0].clone().into());
    let log = folder.join(LOG);
    let _ = fs::remove_file(&log);
    let environment = step.environment.iter();
    let mut process = ManagedProcess::start(&Start {
        program,
        arguments: step.run[1..].iter().map(OsString::from).collect(),
        environment: environment.map(|(name, value)| (name.into(), value.into())).collect(),
        folder: folder.to_owned(),
        log: Some(log.clone()),
        cores: None,
        piped: false,
        door: None,
        enclosure: None,
    })?;
    let ended = watch.wait(&mut process);
    let said = process.log_tail(LOG_LINES);
    process.stop(Signal::TERM, Duration::from_secs(2));
    let _ = fs::remove_file(&log);
    match ended {
        Some(Ended::Status(0)) => Ok(()),
        // The interruption is the cause, not the command's exit status.
        _ if watch.ends_steps && (watch.is_given_up)() => Ok(()),
        ended => Err(InstallError::StepFailed {
            command: step.words(),
            ended: ended
                .map_or_else(|| "no result after half an hour".to_owned(), |e| e.to_string()),
            hint: hint(&said),
            log: said,
        }),
    }
}

/// Known error messages of package clients, with their meaning.
fn hint(said: &str) -> &'static str {
    let said = said.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    match () {
        () if has(FULL) => ": the disk is full",
        () if has(UNREACHABLE) => {
            ": its mirror cannot be reached: check the network and the client's proxy settings"
        }
        () if has(UNKNOWN) => ": its mirror does not have it; for apt-get, try `apt-get update`",
        () => "",
    }
}

/// strerror(3), ENOSPC and EDQUOT.
const FULL: &[&str] = &["no space left on device", "enospc", "disk quota exceeded"];

/// Messages of apt-get, Maven, npm, go and pip when the server does not answer.
const UNREACHABLE: &[&str] = &[
    "could not resolve",
    "failure resolving",
    "unknown host",
    "no such host",
    "enotfound",
    "eai_again",
    "econnrefused",
    "connection refused",
    "network is unreachable",
    "timed out",
];

/// Messages of the same clients when the package does not exist.
const UNKNOWN: &[&str] =
    &["unable to locate package", "could not find artifact", "e404", "404 not found"];

fn free_megabytes(folder: &Path) -> Option<u64> {
    let known = rustix::fs::statvfs(folder).ok()?;
    Some(known.f_bavail.saturating_mul(known.f_frsize) / 1_000_000)
}

fn made(folder: &Path) -> Result<(), InstallError> {
    fs::create_dir_all(folder).map_err(unwritable(folder))
}

fn cleared(folder: &Path) -> Result<(), InstallError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(folder)(error)),
        _ => Ok(()),
    }
}

fn unwritable(path: &Path) -> impl Fn(io::Error) -> InstallError {
    move |error| InstallError::Unwritable { path: path.to_owned(), error }
}

/// Time limit of one command: a mirror may be slow.
const STEP_WITHIN: Duration = Duration::from_secs(1800);

/// Longest time until Ctrl-C takes effect.
const ASKED_EVERY: Duration = Duration::from_millis(100);

/// File with the output of a command, in its folder.
const LOG: &str = "weigh-install.log";

/// Lines of it shown in an error.
const LOG_LINES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_clients_are_understood() {
        for (said, meant) in [
            ("npm ERR! code ENOTFOUND", "check the network"),
            ("E: Unable to locate package rabbit", "apt-get update"),
            ("write /x: no space left on device", "the disk is full"),
            ("syntax error", ""),
        ] {
            assert!(hint(said).contains(meant), "{said}");
        }
    }
}
