//! What the reference server refuses: it ends the link, the session or the connection, with a
//! condition and a text (part 2, section 2.8.14).

use super::codec::{Flaw, Problem, condition};

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) ends: Ends,
    pub(super) condition: &'static str,
    pub(super) text: String,
}

/// What a refusal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// The link with this handle.
    Link(u32),
    Session,
    Connection,
}

impl Refusal {
    pub(super) fn link(handle: u32, condition: &'static str, text: impl Into<String>) -> Refusal {
        Refusal { ends: Ends::Link(handle), condition, text: text.into() }
    }

    pub(super) fn session(condition: &'static str, text: impl Into<String>) -> Refusal {
        Refusal { ends: Ends::Session, condition, text: text.into() }
    }

    pub(super) fn connection(condition: &'static str, text: impl Into<String>) -> Refusal {
        Refusal { ends: Ends::Connection, condition, text: text.into() }
    }

    /// A frame that must not come at this moment.
    pub(super) fn unexpected(what: &str) -> Refusal {
        Refusal::connection(condition::ILLEGAL_STATE, format!("{what} at this moment"))
    }

    pub(super) fn missing(handle: u32, what: &str) -> Refusal {
        let text = format!("{what} is not part of the reference server");
        Refusal::link(handle, condition::NOT_IMPLEMENTED, text)
    }

    pub(super) fn problem(&self) -> Problem<'_> {
        Problem { condition: self.condition, description: Some(&self.text), info: None }
    }
}

impl From<Flaw> for Refusal {
    fn from(flaw: Flaw) -> Refusal {
        Refusal::connection(flaw.condition, flaw.what)
    }
}
