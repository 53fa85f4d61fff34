//! Processes that belong together, as started by `weigh serve pipeline`. The first line of each
//! says that it is ready, the last what it counted. One that dies may be restarted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::{Ended, ManagedProcess, ProcessError, Start};
use crate::reference::{ReferenceError, next_line, read_lines};

/// Name and arguments of a member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// The arguments of the program, `serve` first.
    pub arguments: Vec<OsString>,
    /// Environment variables added to those of this process.
    pub environment: Vec<(OsString, OsString)>,
}

/// A running member. Its stderr is that of this process. Dropping it stops it.
#[derive(Debug)]
pub struct Child {
    member: Member,
    process: ManagedProcess,
    lines: Receiver<String>,
    first_line: String,
    born: Instant,
    deaths: u32,
}

/// Why a member does not run.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The process ended before it was ready.
    #[error("it ended with {0} before it was ready; see its messages above")]
    Ended(Ended),
    /// The process died too soon after its start, too often.
    #[error("it ended {0} times within {1:?} of its start")]
    GivenUp(u32, Duration),
    /// The process could not be started, or sent no first line.
    #[error(transparent)]
    Unready(#[from] ReferenceError),
}

impl From<ProcessError> for ChildError {
    fn from(error: ProcessError) -> ChildError {
        ReferenceError::from(error).into()
    }
}

impl Child {
    /// Starts `program ARGUMENTS` and waits for its first line.
    ///
    /// # Errors
    /// If it does not start, ends, or says nothing in time.
    pub fn start(program: &Path, member: Member, within: Duration) -> Result<Child, ChildError> {
        let (process, lines, first_line) = start(program, &member, within)?;
        Ok(Child { member, process, lines, first_line, born: Instant::now(), deaths: 0 })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.member.name
    }

    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Its first line.
    pub fn first_line(&self) -> &str {
        &self.first_line
    }

    /// Changes the arguments of the next start.
    pub fn set_arguments(&mut self, arguments: Vec<OsString>) {
        self.member.arguments = arguments;
    }

    /// How it ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<Ended> {
        self.process.ended()
    }

    /// Restarts one that has ended. Gives up on one that dies too soon too often.
    ///
    /// # Errors
    /// As for the first start, and if it is given up.
    pub fn start_again(&mut self, program: &Path, within: Duration) -> Result<(), ChildError> {
        self.deaths = if self.born.elapsed() < YOUNG { self.deaths + 1 } else { 0 };
        if self.deaths > YOUNG_DEATHS_MAX {
            return Err(ChildError::GivenUp(self.deaths, YOUNG));
        }
        let (process, lines, first_line) = start(program, &self.member, within)?;
        (self.process, self.lines, self.first_line) = (process, lines, first_line);
        self.born = Instant::now();
        Ok(())
    }

    /// Stops it in order. Returns its last line, if there was one after the first.
    pub fn finish(self, grace: Duration) -> Option<String> {
        let Child { process, lines, .. } = self;
        process.stop(Signal::TERM, grace);
        // It has been reaped, so its pipe has ended or will end at once.
        lines.iter().last()
    }
}

fn start(
    program: &Path,
    member: &Member,
    within: Duration,
) -> Result<(ManagedProcess, Receiver<String>, String), ChildError> {
    let folder = std::env::current_dir()
        .map_err(|error| ProcessError::Unwritable { path: PathBuf::from("."), error })?;
    let mut process = ManagedProcess::start(&Start {
        program: program.to_owned(),
        arguments: member.arguments.clone(),
        environment: member.environment.clone(),
        folder,
        log: None,
        cores: None,
        piped: true,
        door: None,
        enclosure: None,
    })?;
    let lines = process.take_stdout().map(read_lines).transpose()?;
    let lines = lines.ok_or_else(|| ReferenceError::Nonsense("it has no stdout".to_owned()))?;
    let first_line = match next_line(&mut process, &lines, within) {
        Err(ReferenceError::Gone { .. }) if let Some(ended) = process.ended() => {
            return Err(ChildError::Ended(ended));
        }
        outcome => outcome?,
    };
    Ok((process, lines, first_line))
}

/// A process that ends within this time after its start has a lasting fault.
const YOUNG: Duration = Duration::from_secs(2);
const YOUNG_DEATHS_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::process::Command;

    use super::*;

    fn shell(script: &str) -> Member {
        let arguments = vec!["-c".into(), script.into()];
        Member { name: "shell", arguments, environment: vec![("WORD".into(), "given".into())] }
    }

    #[test]
    fn first_and_last_words_are_heard() {
        let script =
            "trap 'echo last $WORD; exit 0' TERM; echo first; while :; do sleep 0.01; done";
        let program = Path::new("/bin/sh");
        let child = Child::start(program, shell(script), Duration::from_secs(20)).unwrap();
        assert_eq!(child.first_line(), "first");
        assert_eq!(child.finish(Duration::from_secs(20)), Some("last given".to_owned()));
    }

    /// As under a supervisor that reads what we say from a socket.
    #[test]
    fn stderr_may_be_a_socket() {
        let (_reader, stderr) = UnixStream::pair().unwrap();
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "family::tests::first_and_last_words_are_heard"]);
        let output = again.stderr(OwnedFd::from(stderr)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    fn one_that_keeps_dying_is_given_up() {
        let program = Path::new("/bin/sh");
        let within = Duration::from_secs(20);
        let mut child = Child::start(program, shell("echo up"), within).unwrap();
        for death in 1..=YOUNG_DEATHS_MAX + 1 {
            while child.ended().is_none() {
                std::thread::sleep(Duration::from_millis(2));
            }
            let again = child.start_again(program, within);
            assert_eq!(again.is_ok(), death <= YOUNG_DEATHS_MAX, "{death}: {again:?}");
        }
    }
}
