//! Bytes that break the protocol: what is wrong, and the condition that the specification has for
//! it (part 2, section 2.8.15 and after).

use std::fmt;

/// What is wrong with received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Error condition, such as `amqp:decode-error`.
    pub condition: &'static str,
    /// What is wrong.
    pub what: &'static str,
}

impl Flaw {
    /// A frame that cannot be read.
    pub const fn frame(what: &'static str) -> Flaw {
        Flaw { condition: condition::FRAMING_ERROR, what }
    }

    /// A value that cannot be read.
    pub const fn decode(what: &'static str) -> Flaw {
        Flaw { condition: condition::DECODE_ERROR, what }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.what, self.condition)
    }
}

/// Error conditions (part 2, sections 2.8.15 to 2.8.18).
pub mod condition {
    /// Data could not be decoded.
    pub const DECODE_ERROR: &str = "amqp:decode-error";
    /// The peer may not do that now.
    pub const ILLEGAL_STATE: &str = "amqp:illegal-state";
    /// A field has a value that it must not have.
    pub const INVALID_FIELD: &str = "amqp:invalid-field";
    /// The peer may not do that.
    pub const NOT_ALLOWED: &str = "amqp:not-allowed";
    /// There is no such thing.
    pub const NOT_FOUND: &str = "amqp:not-found";
    /// The receiver does not have that part of the protocol.
    pub const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
    /// A limit of the receiver is reached.
    pub const RESOURCE_LIMIT: &str = "amqp:resource-limit-exceeded";
    /// The peer is not authorised.
    pub const UNAUTHORIZED: &str = "amqp:unauthorized-access";
    /// A frame cannot be read.
    pub const FRAMING_ERROR: &str = "amqp:connection:framing-error";
    /// An operator ended the connection.
    pub const CONNECTION_FORCED: &str = "amqp:connection:forced";
    /// More transfers than the window of the session allows.
    pub const WINDOW_VIOLATION: &str = "amqp:session:window-violation";
    /// A handle that is in use.
    pub const HANDLE_IN_USE: &str = "amqp:session:handle-in-use";
    /// A handle to which no link is attached.
    pub const UNATTACHED_HANDLE: &str = "amqp:session:unattached-handle";
    /// More transfers than the credit of the link allows.
    pub const TRANSFER_LIMIT: &str = "amqp:link:transfer-limit-exceeded";
    /// A message that is larger than the link allows.
    pub const MESSAGE_SIZE: &str = "amqp:link:message-size-exceeded";
}
