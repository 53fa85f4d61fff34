//! A child process with its own group, cores and log. It ends with this process, however that
//! ends, and is always stopped and waited for.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weigh_model::numbers::seconds;

use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getppid, getrlimit,
    kill_process_group, set_parent_process_death_signal, setrlimit, waitid,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::cgroup::{ControlGroup, Entry};
use crate::hosts::Door;
use crate::patience;
use crate::pinning::CoreSet;
use crate::spawner;

/// Program, arguments and environment of a child.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program's path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables added to those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder it runs in; it must exist.
    pub folder: PathBuf,
    /// Where its stderr goes, and its stdout unless piped; `None` for the stderr of this process.
    pub log: Option<PathBuf>,
    /// The cores it may use; `None` for those of the calling thread.
    pub cores: Option<CoreSet>,
    /// Whether its stdin and stdout are pipes to this process.
    pub piped: bool,
    /// The host it runs in; `None` for that of this process.
    pub door: Option<Door>,
    /// Its control group, kept as long as it runs; `None` for no limits.
    pub enclosure: Option<Arc<ControlGroup>>,
}

/// A running child.
#[derive(Debug)]
pub struct ManagedProcess {
    child: Child,
    pid: Pid,
    program: String,
    log: Option<PathBuf>,
    ended: Option<Ended>,
    reaped: bool,
    /// Removed after the process, which is stopped first.
    _enclosure: Option<Arc<ControlGroup>>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself with this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Status(status) => write!(f, "exit status {status}"),
            Ended::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// Errors of a child process.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It did not start.
    #[error("{program} could not be started: {error}; check its path and permissions")]
    NotStarted {
        /// The program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// It ended when it should have become ready.
    #[error(
        "{program} ended with {ended} before it was ready; the end of its log:\n{log}\n\
         help: {fix}",
        fix = READ_LOG
    )]
    EndedEarly {
        /// The program.
        program: String,
        /// How it ended.
        ended: Ended,
        /// The last lines of its log.
        log: String,
    },
    /// It did not become ready in time.
    #[error(
        "{program} did not {awaited} within {}; the end of its log:\n{log}\nhelp: {fix}",
        seconds(.within.as_secs_f64()),
        fix = READ_LOG
    )]
    NotReady {
        /// The program.
        program: String,
        /// What was awaited, as a verb: `accept connections on 127.0.0.1:1883`.
        awaited: String,
        /// The time it had.
        within: Duration,
        /// The last lines of its log.
        log: String,
    },
    /// A file could not be written.
    #[error("{path} could not be written: {error}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl ManagedProcess {
    /// Starts a child. Raises its soft limit of descriptors to the hard one.
    ///
    /// # Errors
    /// [`ProcessError::NotStarted`] and [`ProcessError::Unwritable`] for its log.
    pub fn start(start: &Start) -> Result<ManagedProcess, ProcessError> {
        let program = start.program.display().to_string();
        let unwritable = |error| {
            let path = start.log.clone().unwrap_or_else(|| "stderr".into());
            ProcessError::Unwritable { path, error }
        };
        let log = open_log(start.log.as_deref()).map_err(unwritable)?;
        let mut command = Command::new(&start.program);
        command
            .args(&start.arguments)
            // A log has no width: its lines stay whole.
            .env("COLUMNS", u16::MAX.to_string())
            .envs(start.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&start.folder)
            .process_group(0)
            .stderr(log.try_clone().map_err(unwritable)?);
        if start.piped {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        } else {
            command.stdin(Stdio::null()).stdout(log);
        }
        let not_started =
            |error: io::Error| ProcessError::NotStarted { program: program.clone(), error };
        let cores = match &start.cores {
            Some(cores) => cores.mask(),
            None => sched_getaffinity(None).map_err(|error| not_started(error.into()))?,
        };
        prepare(&mut command, cores);
        if let Some(door) = &start.door {
            door.lead(&mut command);
        }
        if let Some(enclosure) = &start.enclosure {
            enclose(&mut command, enclosure.entry().map_err(not_started)?);
        }
        let child = spawner::spawn(command).map_err(not_started)?;
        let pid = Pid::from_child(&child);
        Ok(ManagedProcess {
            child,
            pid,
            program,
            log: start.log.clone(),
            ended: None,
            reaped: false,
            _enclosure: start.enclosure.clone(),
        })
    }

    /// Its process ID, which is also the ID of its process group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended; `None` while it runs. It keeps its ID until it is stopped or dropped.
    pub fn ended(&mut self) -> Option<Ended> {
        if self.ended.is_none() {
            self.ended = peek(self.pid);
        }
        self.ended
    }

    /// Its stdin, once, if it is piped. Dropping it closes it.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Its stdout, once, if it is piped.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The file of its output, if that is not the stderr of this process.
    pub fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        match &self.log {
            Some(path) => tail(&log_text(path), lines),
            None => "(see stderr above)".to_owned(),
        }
    }

    /// Whether any line of its log contains this text.
    pub fn log_holds(&self, text: &str) -> bool {
        self.log().is_some_and(|path| log_text(path).lines().any(|line| line.contains(text)))
    }

    /// Waits until `ready` returns true, or until all waiting was ended. Calls it every few
    /// milliseconds at first and less often later, because a call may read all of `/proc`.
    /// `awaited` says in an error what the process did not do, as a verb.
    ///
    /// # Errors
    /// [`ProcessError::EndedEarly`] or [`ProcessError::NotReady`], with the end of its log.
    pub fn wait_ready(
        &mut self,
        awaited: &str,
        within: Duration,
        mut ready: impl FnMut(&ManagedProcess) -> bool,
    ) -> Result<(), ProcessError> {
        let begun = Instant::now();
        loop {
            if let Some(ended) = self.ended() {
                return Err(self.ended_early(ended));
            }
            if ready(self) {
                return Ok(());
            }
            let waited = begun.elapsed();
            if waited >= within || patience::is_over() {
                let (program, log) = (self.program.clone(), self.log_tail(LOG_LINES));
                let awaited = awaited.to_owned();
                return Err(ProcessError::NotReady { program, awaited, within, log });
            }
            std::thread::sleep((waited / READY_SHARE).clamp(READY_PAUSE, READY_PAUSE_MAX));
        }
    }

    /// The error of a process that ended too soon.
    pub(crate) fn ended_early(&self, ended: Ended) -> ProcessError {
        let (program, log) = (self.program.clone(), self.log_tail(LOG_LINES));
        ProcessError::EndedEarly { program, ended, log }
    }

    /// Waits for this long until it ends by itself.
    pub fn wait_ended(&mut self, within: Duration) -> Option<Ended> {
        let deadline = Instant::now() + within;
        while self.ended().is_none() && Instant::now() < deadline {
            std::thread::sleep(READY_PAUSE);
        }
        self.ended()
    }

    /// Sends SIGTERM, waits for `grace`, kills what is left of its group, and reaps it.
    pub fn stop(mut self, signal: Signal, grace: Duration) -> Ended {
        self.end(signal, grace)
    }

    fn end(&mut self, signal: Signal, grace: Duration) -> Ended {
        if self.ended().is_none() {
            // It may have ended by now; its ID stays valid until it has been waited for.
            let _ = kill_process_group(self.pid, signal);
            let is_hurried = patience::is_over();
            self.wait_ended(if is_hurried { grace.min(GRACE_HURRIED) } else { grace });
        }
        // The leader's number, and so the group's, is kept by the kernel until it is reaped.
        let _ = kill_process_group(self.pid, Signal::KILL);
        let status = self.child.wait();
        self.reaped = true;
        *self.ended.get_or_insert_with(|| match status {
            Ok(status) => ended_from(status),
            Err(_) => Ended::Signal(Signal::KILL.as_raw()),
        })
    }
}

impl Drop for ManagedProcess {
    fn drop(&mut self) {
        if !self.reaped {
            self.end(Signal::TERM, DROP_GRACE);
        }
    }
}

/// Lines of a log shown in an error.
const LOG_LINES: usize = 12;

/// Fix for a server that does not start or ends.
pub(crate) const READ_LOG: &str = "correct what the log above reports";
/// Shortest time between two checks of a child.
const READY_PAUSE: Duration = Duration::from_millis(2);
/// Longest time between two checks of a child that becomes ready.
const READY_PAUSE_MAX: Duration = Duration::from_millis(50);
/// The pause is this part of the time that was waited.
const READY_SHARE: u32 = 20;
/// Grace for a child that is dropped without having been stopped.
const DROP_GRACE: Duration = Duration::from_secs(2);
/// Most bytes of a log that are read.
const LOG_BYTES: u64 = 1 << 20;

/// Everything that the child does between fork and exec.
#[expect(unsafe_code, reason = "there is no safe way to run code between fork and exec")]
fn prepare(command: &mut Command, cores: CpuSet) {
    let parent = getpid();
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent ended before the line above, no signal comes; a changed parent shows it.
        if getppid() != Some(parent) {
            return Err(Errno::SRCH.into());
        }
        sched_setaffinity(None, &cores)?;
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
        Ok(())
    };
    // SAFETY: after the fork of a threaded program only async-signal-safe calls are allowed. The
    // closure makes system calls on values it owns; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(before_exec) };
}

/// Makes the child run in its control group.
#[expect(unsafe_code, reason = "there is no safe way to run code between fork and exec")]
fn enclose(command: &mut Command, entry: Entry) {
    // SAFETY: as in `prepare`: the closure makes system calls on what it owns.
    unsafe { command.pre_exec(move || entry.enter()) };
}

/// How a child ended, without reaping it.
fn peek(pid: Pid) -> Option<Ended> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid), options).ok()??;
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Ended::Status(code)),
        (None, Some(signal)) => Some(Ended::Signal(signal)),
        (None, None) => None,
    }
}

fn ended_from(status: std::process::ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Status(code),
        (None, signal) => Ended::Signal(signal.unwrap_or_default()),
    }
}

/// Duplicates stderr instead of opening it by its name, which fails if it is a socket.
fn open_log(path: Option<&Path>) -> io::Result<OwnedFd> {
    match path {
        Some(path) => Ok(File::options().create(true).append(true).open(path)?.into()),
        None => io::stderr().as_fd().try_clone_to_owned(),
    }
}

fn log_text(path: &Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = fs::metadata(path)?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    if all.is_empty() {
        return "(empty)".to_owned();
    }
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Grace of a process once the user has interrupted the program.
const GRACE_HURRIED: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ManagedProcess {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weigh-process-{}-{number}.log", std::process::id());
        let log = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&log);
        let start = Start {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: vec![("WORD".into(), "given".into())],
            folder: std::env::temp_dir(),
            log: Some(log),
            cores: None,
            piped: false,
            door: None,
            enclosure: None,
        };
        ManagedProcess::start(&start).unwrap()
    }

    #[test]
    fn an_early_end_is_told_with_the_log() {
        let mut process = shell("echo one; echo $WORD >&2; exit 7");
        let error = process.wait_ready("print", Duration::from_secs(20), |_| false).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("exit status 7") && text.contains("one\ngiven"), "{text}");
        let log = process.log().unwrap().to_owned();
        assert_eq!(process.stop(Signal::TERM, Duration::ZERO), Ended::Status(7));
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn one_that_does_not_listen_is_killed_with_its_children() {
        let mut process = shell("trap '' TERM; sleep 1000 & echo ready; wait; sleep 1000");
        process.wait_ready("print", Duration::from_secs(20), |p| p.log_holds("ready")).unwrap();
        let (pid, log) = (process.pid(), process.log().unwrap().to_owned());
        let ended = process.stop(Signal::TERM, Duration::from_millis(50));
        assert_eq!(ended, Ended::Signal(9));
        fs::remove_file(log).unwrap();
        let group = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        // The killed grandchild may wait for its new parent to reap it.
        let deadline = Instant::now() + Duration::from_secs(10);
        while rustix::process::test_kill_process_group(group).is_ok() {
            assert!(Instant::now() < deadline || only_zombies(pid), "the group lives");
            std::thread::sleep(READY_PAUSE);
            if only_zombies(pid) {
                break;
            }
        }
    }

    fn only_zombies(group: u32) -> bool {
        let stats = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let text = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
            let fields: Vec<String> =
                text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect();
            (fields[2] == group.to_string()).then(|| fields[0].clone())
        });
        stats.into_iter().all(|state| state == "Z")
    }

    #[test]
    fn dropping_stops() {
        let process = shell("exec sleep 1000");
        let (pid, log) = (process.pid(), process.log().unwrap().to_owned());
        drop(process);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn the_limit_of_descriptors_is_raised_and_the_cores_are_set() {
        let core = CoreSet::allowed().unwrap().first();
        let log = std::env::temp_dir().join(format!("weigh-limits-{}", std::process::id()));
        let _ = fs::remove_file(&log);
        let start = Start {
            program: "/bin/sh".into(),
            arguments: vec![
                "-c".into(),
                "test $(ulimit -Sn) = $(ulimit -Hn) && grep Cpus_allowed_list /proc/self/status"
                    .into(),
            ],
            environment: Vec::new(),
            folder: std::env::temp_dir(),
            log: Some(log.clone()),
            cores: Some(CoreSet::of([core])),
            piped: false,
            door: None,
            enclosure: None,
        };
        let mut process = ManagedProcess::start(&start).unwrap();
        assert_eq!(process.wait_ended(Duration::from_secs(20)), Some(Ended::Status(0)));
        assert_eq!(process.log_tail(1), format!("Cpus_allowed_list:\t{core}"));
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn what_is_not_there_is_named() {
        let log = std::env::temp_dir().join(format!("weigh-nowhere-{}", std::process::id()));
        let mut start = Start {
            program: "/nowhere/server".into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: std::env::temp_dir(),
            log: Some(log.clone()),
            cores: None,
            piped: false,
            door: None,
            enclosure: None,
        };
        let error = ManagedProcess::start(&start).unwrap_err().to_string();
        assert!(error.contains("/nowhere/server could not be started"), "{error}");
        fs::remove_file(log).unwrap();
        start.log = Some("/nowhere/log".into());
        let error = ManagedProcess::start(&start).unwrap_err().to_string();
        assert!(error.contains("/nowhere/log could not be written"), "{error}");
    }
}
