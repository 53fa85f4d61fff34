//! A reference server as a child: `weigh serve PROTOCOL`, controlled by [`crate::serve_lines`].

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weigh_model::numbers::seconds;

use rustix::process::Signal;
use serde::de::DeserializeOwned;
use weigh_model::Endpoint;
use weigh_model::server::ServerReport;

use crate::hosts::Host;
use crate::pinning::CoreSet;
use crate::placement::Placement;
use crate::process::{Ended, ManagedProcess, ProcessError, READ_LOG, Start};
use crate::serve_lines::{Request, parse_listening, parse_report};

/// A running reference server; dropping it stops it.
#[derive(Debug)]
pub struct ReferenceServer {
    process: ManagedProcess,
    asker: Asker,
    endpoint: Endpoint,
}

/// Asks a reference server for its counts from any thread.
#[derive(Clone, Debug)]
pub struct Asker {
    stdin: Arc<Mutex<Option<ChildStdin>>>,
    lines: Arc<Mutex<Receiver<String>>>,
}

/// Why a reference server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// Its process failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Its line was not what the protocol of lines expects.
    #[error("unexpected output of the reference server: {0}")]
    Nonsense(String),
    /// It did not answer in time.
    #[error(
        "the reference server did not answer within {}; the end of its log:\n{log}\n\
         help: {fix}",
        seconds(.within.as_secs_f64()),
        fix = READ_LOG
    )]
    Silent {
        /// The time it had.
        within: Duration,
        /// The last lines of its log.
        log: String,
    },
    /// It has ended.
    #[error(
        "the reference server ended with {ended}; the end of its log:\n{log}\n\
         help: {fix}",
        fix = READ_LOG
    )]
    Gone {
        /// How it ended.
        ended: String,
        /// The last lines of its log.
        log: String,
    },
}

impl ReferenceServer {
    /// Starts `executable serve ARGUMENTS` (the protocol comes first) in `folder`, where its log
    /// is kept as `serve.log`, on these cores, and waits for the line that says where it listens.
    ///
    /// # Errors
    /// If it does not start, ends, prints something else or prints nothing in time.
    pub fn start(
        executable: &Path,
        arguments: &[OsString],
        folder: &Path,
        cores: Option<&CoreSet>,
        within: Duration,
    ) -> Result<ReferenceServer, ReferenceError> {
        let site = Placement { cores, ..Placement::default() };
        ReferenceServer::start_in(executable, arguments, folder, &site, within)
    }

    /// Starts it on a host of its own, if given: it then listens on the host's address.
    ///
    /// # Errors
    /// As [`ReferenceServer::start`].
    pub fn start_in(
        executable: &Path,
        arguments: &[OsString],
        folder: &Path,
        site: &Placement<'_>,
        within: Duration,
    ) -> Result<ReferenceServer, ReferenceError> {
        let listen = site.host.map(|host| format!("{}:0", host.address()));
        let listen = listen.map_or_else(Vec::new, |at| vec!["--listen".into(), at.into()]);
        std::fs::create_dir_all(folder)
            .map_err(|error| ProcessError::Unwritable { path: folder.to_owned(), error })?;
        let mut process = ManagedProcess::start(&Start {
            program: executable.to_owned(),
            arguments: [OsString::from("serve")]
                .into_iter()
                .chain(arguments.to_vec())
                .chain(listen)
                .collect(),
            environment: Vec::new(),
            folder: folder.to_owned(),
            log: Some(folder.join("serve.log")),
            cores: site.cores.cloned(),
            piped: true,
            door: site.host.map(Host::door),
            enclosure: site.enclosure.cloned(),
        })?;
        let stdin = process.take_stdin();
        let lines = process.take_stdout().map(read_lines).transpose()?;
        let lines = lines.ok_or_else(|| ReferenceError::Nonsense("it has no stdout".into()))?;
        let first = match next_line(&mut process, &lines, within) {
            Err(ReferenceError::Gone { .. }) if let Some(ended) = process.ended() => {
                return Err(process.ended_early(ended).into());
            }
            outcome => outcome?,
        };
        let endpoint = parse_listening(&first).map_err(ReferenceError::Nonsense)?;
        let asker =
            Asker { stdin: Arc::new(Mutex::new(stdin)), lines: Arc::new(Mutex::new(lines)) };
        Ok(ReferenceServer { process, asker, endpoint })
    }

    /// Its URL.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
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

    /// Asks for its counts.
    ///
    /// # Errors
    /// If it has ended, prints something else or nothing in time. After a silence the answer may
    /// still come; it is then taken for that of the next question, so do not ask again.
    pub fn report(&mut self, within: Duration) -> Result<ServerReport, ReferenceError> {
        self.counts(within)
    }

    /// Asks a server that counts something else, as a relay does, for its counts.
    ///
    /// # Errors
    /// As [`ReferenceServer::report`].
    pub fn counts<T: DeserializeOwned>(&mut self, within: Duration) -> Result<T, ReferenceError> {
        let line = self.asker.ask(within).map_err(|silence| match silence {
            RecvTimeoutError::Timeout => {
                ReferenceError::Silent { within, log: self.process.log_tail(LOG_LINES) }
            }
            RecvTimeoutError::Disconnected => gone(&mut self.process),
        })?;
        parse_report(&line).map_err(ReferenceError::Nonsense)
    }

    /// Returns a handle that asks for its counts from another thread.
    pub fn asker(&self) -> Asker {
        self.asker.clone()
    }

    /// Closes its stdin, waits for it to end, and sends SIGTERM and SIGKILL if it does
    /// not, each after `grace`.
    pub fn stop(mut self, grace: Duration) -> Ended {
        self.asker.close();
        self.process.wait_ended(grace);
        self.process.stop(Signal::TERM, grace)
    }
}

impl Asker {
    /// Its counts; `None` if it has ended, prints something else or nothing in time, see
    /// [`ReferenceServer::report`].
    pub fn report(&self, within: Duration) -> Option<ServerReport> {
        parse_report(&self.ask(within).ok()?).ok()
    }

    /// The line of its answer. One question is asked at a time.
    fn ask(&self, within: Duration) -> Result<String, RecvTimeoutError> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = match &mut *self.stdin.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(stdin) => writeln!(stdin, "{}", Request::Report.line()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        asked.map_err(|_| RecvTimeoutError::Disconnected)?;
        lines.recv_timeout(within)
    }

    fn close(&self) {
        drop(self.stdin.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Lines of a child, as they arrive.
pub(crate) fn read_lines(stdout: ChildStdout) -> Result<Receiver<String>, ProcessError> {
    let (said, lines) = channel();
    let reader = move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { break };
            if said.send(line).is_err() {
                break;
            }
        }
    };
    std::thread::Builder::new()
        .name("weigh-serve-lines".to_owned())
        .spawn(reader)
        .map_err(|error| ProcessError::NotStarted { program: "a thread".into(), error })?;
    Ok(lines)
}

/// The next line, or why there is none.
pub(crate) fn next_line(
    process: &mut ManagedProcess,
    lines: &Receiver<String>,
    within: Duration,
) -> Result<String, ReferenceError> {
    match lines.recv_timeout(within) {
        Ok(line) => Ok(line),
        Err(RecvTimeoutError::Timeout) => {
            Err(ReferenceError::Silent { within, log: process.log_tail(LOG_LINES) })
        }
        Err(RecvTimeoutError::Disconnected) => Err(gone(process)),
    }
}

/// Its pipe is closed, so it has ended or will soon.
fn gone(process: &mut ManagedProcess) -> ReferenceError {
    let ended = process.wait_ended(ENDING_WITHIN);
    let ended = ended.map_or_else(|| "its pipe closed".to_owned(), |ended| ended.to_string());
    ReferenceError::Gone { ended, log: process.log_tail(LOG_LINES) }
}

const ENDING_WITHIN: Duration = Duration::from_secs(1);
const LOG_LINES: usize = 12;
