//! Bytes that break the protocol: what is wrong, and the reply code that the specification has for
//! it (AMQP 0-9-1, section 1.2 of the reference, "Constants").

use std::fmt;

use super::code;

/// What is wrong with received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Reply code: `501` for a malformed frame.
    pub code: u16,
    /// What is wrong.
    pub what: &'static str,
}

impl Flaw {
    /// A frame that cannot be read.
    pub const fn frame(what: &'static str) -> Flaw {
        Flaw { code: code::FRAME_ERROR, what }
    }

    /// A field that cannot be read.
    pub const fn syntax(what: &'static str) -> Flaw {
        Flaw { code: code::SYNTAX_ERROR, what }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.what, self.code, code::name(self.code))
    }
}
