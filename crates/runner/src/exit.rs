//! Exit codes of the program; `docs/exit-codes.md` lists them.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use weigh_model::protocol::Invalid;
use weigh_model::refusal;

/// The exit codes.
///
/// # Examples
///
/// ```
/// use std::process::ExitCode;
/// use weigh_runner::exit::Exit;
///
/// assert_eq!(ExitCode::from(Exit::Finding), ExitCode::from(99));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done; losses are a result, not an error.
    Done,
    /// A fault of Weighbridge.
    Internal,
    /// The flags or the plan are wrong; nothing was run.
    Usage,
    /// A target could not be started or reached.
    Target,
    /// The record could not be written.
    Record,
    /// An agent of a fleet was lost or missing, or the bus could not be used.
    Generator,
    /// A condition could not be decided, or a search ended unproven, or nothing was measured.
    Undecided,
    /// A threshold failed, or an audit found something.
    Finding,
    /// SIGINT; results so far are kept.
    Interrupted,
    /// SIGTERM; results so far are kept.
    Terminated,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Internal => 1,
            Exit::Usage => 2,
            Exit::Target => 3,
            Exit::Record => 4,
            Exit::Generator => 5,
            Exit::Undecided => 98,
            Exit::Finding => 99,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        })
    }
}

/// Command to build with all features.
pub const FULL_BUILD: &str = "build it with `cargo build --release --features full`";

/// Reason for which the program ends early: its message and its exit code.
///
/// # Examples
///
/// ```
/// use weigh_runner::exit::{Exit, Stop};
///
/// let stop = Stop::usage("load.rate: 5 has no unit");
/// assert_eq!(stop.exit(), Exit::Usage);
/// assert_eq!(stop.to_string(), "load.rate: 5 has no unit");
/// ```
#[derive(Debug)]
pub struct Stop {
    exit: Exit,
    text: String,
    /// True for a text that has its own colours and needs no styling.
    is_rendered: bool,
    /// True if a server listens and refuses every session: trying again changes nothing.
    is_refusal: bool,
    /// True if an agent of a fleet was lost: another attempt at the trial may succeed.
    is_generator_lost: bool,
}

impl Stop {
    /// Ends with the code `exit` and the message `text`: what is wrong and where, then a line
    /// `help: ` with what to type. A fix after a colon or semicolon becomes that line.
    pub fn new(exit: Exit, text: impl fmt::Display) -> Stop {
        Stop {
            exit,
            text: refusal::shaped(&text.to_string()),
            is_rendered: false,
            is_refusal: false,
            is_generator_lost: false,
        }
    }

    /// The flags or the plan are wrong.
    pub fn usage(text: impl fmt::Display) -> Stop {
        Stop::new(Exit::Usage, text)
    }

    /// A file or folder of the record cannot be written.
    pub fn unwritten(path: &Path, error: &std::io::Error) -> Stop {
        Stop::new(
            Exit::Record,
            format!(
                "{}: cannot be written: {error}\nhelp: check the free space and the permissions of \
                 its folder",
                path.display()
            ),
        )
    }

    /// Names a part that this build does not have, and how to get it.
    pub fn unbuilt(part: &str) -> Stop {
        Stop::usage(format!("this build of weigh has no {part}; {FULL_BUILD}"))
    }

    /// A plan is wrong: diagnostics like a compiler's, in colour.
    pub fn rendered(text: String) -> Stop {
        Stop { text, is_rendered: true, ..Stop::new(Exit::Usage, "") }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Marks a server that listens and refuses every session.
    pub fn refusing(self) -> Stop {
        Stop { is_refusal: true, ..self }
    }

    /// True if a server listens and refuses every session.
    pub fn is_refusal(&self) -> bool {
        self.is_refusal
    }

    /// Names the failure of a trial whose load an agent of a fleet did not generate: the agent was
    /// lost or is missing, or it knew the start too late.
    pub fn generator_lost(text: impl fmt::Display) -> Stop {
        Stop { is_generator_lost: true, ..Stop::new(Exit::Generator, text) }
    }

    /// True if another attempt at the trial may succeed, because an agent was lost. An agent that
    /// refuses its part would refuse it again.
    pub fn is_generator_lost(&self) -> bool {
        self.is_generator_lost
    }

    /// True if the text has its own colours, see [`Stop::rendered`].
    pub fn is_rendered(&self) -> bool {
        self.is_rendered
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Invalid> for Stop {
    fn from(invalid: Invalid) -> Stop {
        let Invalid { place, problem, fix } = invalid;
        Stop::usage(format!("{place}: {problem}\nhelp: {fix}"))
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::new(Exit::Internal, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lost_generator_is_worth_another_attempt() {
        let lost = Stop::generator_lost("generator lost: agent 1 (a) did not answer for 10 s");
        assert!(lost.is_generator_lost() && lost.exit() == Exit::Generator);
        let refused = Stop::new(Exit::Generator, "generator lost: is only a text here");
        assert!(!refused.is_generator_lost() && !Stop::rendered(String::new()).is_generator_lost());
    }
}
