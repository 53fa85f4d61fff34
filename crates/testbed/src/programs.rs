//! Client programs: started once or several times, one after another, with the resources they used.
//!
//! The starts are made by a process of its own ([`ProgramOrder::carry_out`], in `weigh programs`)
//! and not by the program that measures: a small process forks quickly, its children begin with
//! little memory, and the kernel's accounts of them ([wait4(2)]) hold nothing else.
//!
//! [wait4(2)]: https://man7.org/linux/man-pages/man2/wait4.2.html

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use weigh_model::numbers::seconds;

use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::hosts::Door;
use crate::pinning::CoreSet;
use crate::process::{ManagedProcess, ProcessError, Start};
use crate::reference::read_lines;

/// What to start, how many times and with what input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramOrder {
    /// The program's path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables added to those of this process.
    pub environment: Vec<(String, String)>,
    /// The folder it runs in, where `stdout`, `stderr` and `stdin` are kept.
    pub folder: PathBuf,
    /// Number of starts, one after another.
    pub starts: u64,
    /// Its standard input: a line, and its number of repetitions; `None` for none.
    pub input: Option<(String, u64)>,
}

/// Resources used by all starts of a program together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramUse {
    /// Starts that were made, the failed one included.
    pub starts: u64,
    /// From before the first start to the end of the last, nanoseconds.
    pub wall_ns: u64,
    /// User time of all starts and of the children that they waited for, nanoseconds.
    pub user_ns: u64,
    /// System time, likewise.
    pub system_ns: u64,
    /// The largest resident memory of a start, bytes.
    pub max_rss_bytes: u64,
    /// How the first start ended that did not end with 0, and its number from 1; `None` for none.
    pub failed: Option<(u64, String)>,
}

/// A series of starts in progress.
#[derive(Debug)]
pub struct ProgramRun {
    process: ManagedProcess,
    lines: Receiver<String>,
    folder: PathBuf,
}

/// Why the resources of a program are not known.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The program could not be started.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A file of it could not be written.
    #[error("{path} could not be written: {error}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It took too long and was stopped.
    #[error("it did not end within {} and was stopped; {printed}", seconds(.within.as_secs_f64()))]
    TooLong {
        /// The time it had.
        within: Duration,
        /// The end of what it printed.
        printed: String,
    },
    /// The user interrupted it.
    #[error("it was interrupted")]
    Interrupted,
    /// A start ended with an error.
    #[error("start {start} ended with {how}; {printed}")]
    Failed {
        /// Its number, from 1.
        start: u64,
        /// How it ended.
        how: String,
        /// The end of what it printed.
        printed: String,
    },
    /// The process that makes the starts did not report.
    #[error("its starts were not reported: {0}")]
    Unreported(String),
}

impl ProgramRun {
    /// Makes `executable programs` carry out an order on these cores, in the host behind `door` if
    /// there is one. Ends with this process; dropping it stops the program too.
    ///
    /// # Errors
    /// If it cannot be started, or its folder cannot be written.
    pub fn start(
        executable: &Path,
        order: &ProgramOrder,
        cores: Option<&CoreSet>,
        door: Option<Door>,
    ) -> Result<ProgramRun, ProgramError> {
        let unwritable = |error| ProgramError::Unwritable { path: order.folder.clone(), error };
        fs::create_dir_all(&order.folder).map_err(unwritable)?;
        let mut process = ManagedProcess::start(&Start {
            program: executable.to_owned(),
            arguments: vec!["programs".into()],
            environment: Vec::new(),
            folder: order.folder.clone(),
            log: Some(order.folder.join("programs.log")),
            cores: cores.cloned(),
            piped: true,
            door,
            enclosure: None,
        })?;
        let lines = process.take_stdout().map(read_lines).transpose()?;
        let unreported = || ProgramError::Unreported("it has no pipes".to_owned());
        let lines = lines.ok_or_else(unreported)?;
        let mut stdin = process.take_stdin().ok_or_else(unreported)?;
        let order_line = serde_json::to_string(order).map_err(|error| unwritable(error.into()))?;
        writeln!(stdin, "{order_line}").map_err(unwritable)?;
        Ok(ProgramRun { process, lines, folder: order.folder.clone() })
    }

    /// Waits for the last start to end and reports the resources of all. `is_over` returns true
    /// once
    /// the user has interrupted it.
    ///
    /// # Errors
    /// If a start ended with an error, if it takes longer than `within` (then all its processes are
    /// stopped), or if the user interrupts it.
    pub fn wait(
        mut self,
        within: Duration,
        is_over: impl Fn() -> bool,
    ) -> Result<ProgramUse, ProgramError> {
        let deadline = Instant::now() + within;
        let line = loop {
            match self.lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) if is_over() => {
                    return Err(ProgramError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    let printed = printed(&self.folder);
                    return Err(ProgramError::TooLong { within, printed });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.process.wait_ended(LOOK_EVERY);
                    return Err(ProgramError::Unreported(self.process.log_tail(LINES)));
                }
            }
        };
        let used = serde_json::from_str::<ProgramUse>(&line);
        let used = used.map_err(|error| ProgramError::Unreported(format!("{error}: {line}")))?;
        match used.failed {
            Some((start, how)) => {
                let printed = printed(&self.folder);
                Err(ProgramError::Failed { start, how, printed })
            }
            None => Ok(used),
        }
    }
}

impl ProgramOrder {
    /// Makes the starts, until one fails. Call it in a process that starts nothing else.
    ///
    /// # Errors
    /// If a file cannot be written or the program cannot be started.
    pub fn carry_out(&self) -> io::Result<ProgramUse> {
        fs::create_dir_all(&self.folder)?;
        let input = self.folder.join(STDIN);
        if let Some((line, count)) = &self.input {
            let mut file = io::BufWriter::new(File::create(&input)?);
            (0..*count).try_for_each(|_| writeln!(file, "{line}"))?;
            file.flush()?;
        }
        let mut all = ProgramUse::default();
        let begun = Instant::now();
        for start in 1..=self.starts {
            let mut command = Command::new(&self.program);
            command
                .args(&self.arguments)
                .envs(self.environment.iter().map(|(name, value)| (name, value)))
                .current_dir(&self.folder)
                .stdout(File::create(self.folder.join(STDOUT))?)
                .stderr(File::create(self.folder.join(STDERR))?);
            command.stdin(match &self.input {
                Some(_) => File::open(&input)?.into(),
                None => Stdio::null(),
            });
            end_with_this_process(&mut command);
            let child = command.spawn()?;
            let (status, used) = wait_for(child.id())?;
            all.add(&used);
            all.starts = start;
            if let Some(how) = failure(status) {
                all.failed = Some((start, how));
                break;
            }
        }
        all.wall_ns = begun.elapsed().as_nanos() as u64;
        Ok(all)
    }
}

impl ProgramUse {
    fn add(&mut self, used: &libc::rusage) {
        let time = |time: libc::timeval| {
            (time.tv_sec as u64).saturating_mul(1_000_000_000) + time.tv_usec as u64 * 1_000
        };
        self.user_ns += time(used.ru_utime);
        self.system_ns += time(used.ru_stime);
        // getrusage(2): kilobytes.
        self.max_rss_bytes = self.max_rss_bytes.max((used.ru_maxrss as u64).saturating_mul(1024));
    }
}

/// The end of what a program printed in this folder, on both outputs.
pub fn printed(folder: &Path) -> String {
    let texts = [STDOUT, STDERR].iter().filter_map(|name| {
        let text = fs::read(folder.join(name)).ok()?;
        let text =
            String::from_utf8_lossy(&text[text.len().saturating_sub(SHOWN_BYTES)..]).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown = lines[lines.len().saturating_sub(LINES)..].join("\n");
        (!shown.is_empty()).then_some(shown)
    });
    let texts: Vec<String> = texts.collect();
    match texts.is_empty() {
        true => "it printed nothing".to_owned(),
        false => format!("it printed:\n{}", texts.join("\n")),
    }
}

/// What a program printed on its standard output in this folder.
///
/// # Errors
/// If there is no such file.
pub fn standard_output(folder: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(folder.join(STDOUT))?).into_owned())
}

/// The kernel ends the child when this process ends, however it ends.
#[expect(unsafe_code, reason = "there is no safe way to run code between fork and exec")]
fn end_with_this_process(command: &mut Command) {
    let parent = getpid();
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            return Err(Errno::SRCH.into());
        }
        Ok(())
    };
    // SAFETY: the closure makes two system calls on values it owns; it allocates nothing and takes
    // no lock.
    unsafe { command.pre_exec(before_exec) };
}

/// Waits for a child, and takes the kernel's account of it and of the children it waited for.
#[expect(unsafe_code, reason = "rustix has no wait4")]
fn wait_for(pid: u32) -> io::Result<(i32, libc::rusage)> {
    let mut status = 0;
    loop {
        // SAFETY: rusage is plain numbers, for which zero is a value; both pointers are of values
        // that live through the call.
        let (waited, used) = unsafe {
            let mut used: libc::rusage = std::mem::zeroed();
            (libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut used), used)
        };
        if waited >= 0 {
            return Ok((status, used));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// How a start ended; `None` where it ended with 0.
fn failure(status: i32) -> Option<String> {
    use std::os::unix::process::ExitStatusExt;
    let status = std::process::ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit status {code}")),
        (None, signal) => Some(format!("signal {}", signal.unwrap_or_default())),
    }
}

const STDIN: &str = "stdin";
const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";

/// Lines of each output shown in an error.
const LINES: usize = 8;

/// Bytes of an output in which these lines are.
const SHOWN_BYTES: usize = 16 << 10;

/// Time between two checks for an interruption.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn order(name: &str, script: &str, starts: u64) -> ProgramOrder {
        let folder =
            std::env::temp_dir().join(format!("weigh-programs-{}-{name}", std::process::id()));
        ProgramOrder {
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: vec![("WORD".to_owned(), "given".to_owned())],
            folder,
            starts,
            input: None,
        }
    }

    #[test]
    fn every_start_is_made_and_accounted_for() {
        let own = ProgramOrder {
            input: Some(("{\"test\":1}".to_owned(), 3)),
            ..order("input", "wc -l; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", 2)
        };
        let used = own.carry_out().unwrap();
        assert_eq!((used.starts, used.failed), (2, None));
        assert!(used.user_ns + used.system_ns > 0 && used.wall_ns > 0);
        assert!(used.max_rss_bytes > 100 << 10, "{}", used.max_rss_bytes);
        assert_eq!(standard_output(&own.folder).unwrap().trim(), "3");
        fs::remove_dir_all(&own.folder).unwrap();
    }

    #[test]
    fn the_first_start_that_fails_ends_it() {
        let own = order("failing", "echo $WORD; echo refused >&2; exit 7", 5);
        let used = own.carry_out().unwrap();
        assert_eq!(used.failed, Some((1, "exit status 7".to_owned())));
        assert_eq!(printed(&own.folder), "it printed:\ngiven\nrefused");
        fs::remove_dir_all(&own.folder).unwrap();
        let own = order("killed", "kill -9 $$", 1);
        assert_eq!(own.carry_out().unwrap().failed, Some((1, "signal 9".to_owned())));
        assert_eq!(printed(&own.folder), "it printed nothing");
        fs::remove_dir_all(&own.folder).unwrap();
        let missing = ProgramOrder { program: "/nowhere/curl".into(), ..order("missing", "", 1) };
        assert!(missing.carry_out().is_err());
        fs::remove_dir_all(&missing.folder).unwrap();
    }
}
