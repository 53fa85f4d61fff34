//! How the program ends; `docs/exit-codes.md` lists the codes.

use std::fmt;
use std::process::ExitCode;

use weigh_model::protocol::Invalid;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done; losses are a result, not an error.
    Done,
    /// Our own fault.
    Internal,
    /// The flags or the plan are wrong; nothing was run.
    Usage,
    /// A target could not be started or reached.
    Target,
    /// The record could not be written.
    Record,
    /// A condition could not be decided, or a search ended unproven, or nothing was measured.
    Undecided,
    /// A threshold failed, or an audit found something.
    Finding,
    /// SIGINT: what was measured is kept.
    Interrupted,
    /// SIGTERM: what was measured is kept.
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
            Exit::Undecided => 98,
            Exit::Finding => 99,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        })
    }
}

/// How to get a build that has every part.
pub const FULL_BUILD: &str = "build it with `cargo build --release --features full`";

/// Why the program ends early: what it says, and with which code.
#[derive(Debug)]
pub struct Stop {
    exit: Exit,
    text: String,
    /// True for a text that has colours, of which everything else is visible already.
    is_rendered: bool,
}

impl Stop {
    /// Ends with `exit` after saying `text`.
    pub fn new(exit: Exit, text: impl fmt::Display) -> Stop {
        Stop { exit, text: text.to_string(), is_rendered: false }
    }

    /// The flags or the plan are wrong.
    pub fn usage(text: impl fmt::Display) -> Stop {
        Stop::new(Exit::Usage, text)
    }

    /// Names a part that this build does not have, and how to get it.
    pub fn unbuilt(part: &str) -> Stop {
        Stop::usage(format!("this build of weigh has no {part}; {FULL_BUILD}"))
    }

    /// A plan is wrong: what compilers would print, with their colours.
    pub fn rendered(text: String) -> Stop {
        Stop { exit: Exit::Usage, text, is_rendered: true }
    }

    /// The code it ends with.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether its text has colours of its own, see [`Stop::rendered`].
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
        Stop::usage(invalid)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::new(Exit::Internal, error)
    }
}
