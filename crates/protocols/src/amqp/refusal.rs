//! What the reference server refuses: it closes the channel or the connection, with a reply code
//! and a text (AMQP 0-9-1, section 4.10).

use super::codec::{Flaw, code};

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// True if the whole connection ends, not only the channel.
    pub(super) ends_connection: bool,
    pub(super) code: u16,
    pub(super) text: String,
}

impl Refusal {
    /// Ends the connection.
    pub(super) fn connection(code: u16, text: impl AsRef<str>) -> Refusal {
        Refusal { ends_connection: true, ..Refusal::channel(code, text) }
    }

    /// Ends the channel.
    pub(super) fn channel(code: u16, text: impl AsRef<str>) -> Refusal {
        let text = format!("{} - {}", code::name(code), text.as_ref());
        Refusal { ends_connection: false, code, text }
    }

    pub(super) fn no_exchange(name: &str, vhost: &str) -> Refusal {
        let text = format!("no exchange '{name}' in vhost '{vhost}'");
        Refusal::channel(code::NOT_FOUND, text)
    }

    pub(super) fn no_queue(name: &str, vhost: &str) -> Refusal {
        Refusal::channel(code::NOT_FOUND, format!("no queue '{name}' in vhost '{vhost}'"))
    }

    pub(super) fn locked(name: &str) -> Refusal {
        let text = format!("queue '{name}' belongs to another connection");
        Refusal::channel(code::RESOURCE_LOCKED, text)
    }

    pub(super) fn precondition(text: String) -> Refusal {
        Refusal::channel(code::PRECONDITION_FAILED, text)
    }

    pub(super) fn missing(what: &str) -> Refusal {
        let text = format!("{what} is not part of the reference server");
        Refusal::connection(code::NOT_IMPLEMENTED, text)
    }

    pub(super) fn unexpected(what: &str) -> Refusal {
        Refusal::connection(code::UNEXPECTED_FRAME, what)
    }
}

impl From<Flaw> for Refusal {
    fn from(flaw: Flaw) -> Refusal {
        Refusal::connection(flaw.code, flaw.what)
    }
}
