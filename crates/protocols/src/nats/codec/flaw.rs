//! Violations of the protocol, by the names that servers give them in `-ERR`.

use std::fmt;

use weigh_model::connection::Fault;

/// What breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A line that begins with an unknown word.
    UnknownOperation,
    /// A line with too many or too few fields, or with a number that is not one.
    Fields(&'static str),
    /// A control line that is too long.
    LineTooLong(usize),
    /// A payload above the limit: its bytes, and the limit.
    PayloadTooLarge(u64, u64),
    /// A payload that does not end where its size says.
    NoLineEnd,
}

impl Flaw {
    /// The text that nats-server sends as `-ERR`.
    pub fn error(self) -> &'static str {
        match self {
            Flaw::UnknownOperation => "Unknown Protocol Operation",
            Flaw::Fields(_) | Flaw::NoLineEnd => "Parser Error",
            Flaw::LineTooLong(_) => "Maximum Control Line Exceeded",
            Flaw::PayloadTooLarge(..) => "Maximum Payload Violation",
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::UnknownOperation => f.write_str("a line with an unknown operation"),
            Flaw::Fields(of) => write!(f, "{of} with wrong fields"),
            Flaw::LineTooLong(max) => write!(f, "a control line of more than {max} bytes"),
            Flaw::PayloadTooLarge(bytes, max) => {
                write!(f, "a payload of {bytes} bytes; the limit is {max} (max_payload)")
            }
            Flaw::NoLineEnd => f.write_str("a payload that does not end where its size says"),
        }
    }
}

impl From<Flaw> for Fault {
    fn from(flaw: Flaw) -> Fault {
        Fault::Malformed(flaw.to_string())
    }
}
