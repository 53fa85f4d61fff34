//! Reasons for which bytes are not RESP, in the words of Redis where it has them.

use std::fmt;

/// Why bytes are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The first byte of a value is not a type.
    Type(u8),
    /// A line without its end within the limit.
    Line,
    /// A line that ends without CR, or has a CR inside.
    LineEnd,
    /// A number that is not one.
    Number,
    /// Length of a bulk string that is negative or above the limit.
    BulkLength,
    /// Number of elements that is negative or above the limit.
    Elements,
    /// A bulk string that is not followed by CR and LF.
    BulkEnd,
    /// An element of a request that is not a bulk string.
    NotBulk(u8),
    /// A value above the limit of bytes.
    Bytes,
    /// A streamed string or aggregate, which Redis does not send.
    Streamed,
}

impl Flaw {
    /// True if the very first byte shows that it is another protocol.
    pub fn is_of_another_protocol(self) -> bool {
        matches!(self, Flaw::Type(_))
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Flaw::Type(byte) => return write!(f, "\"{}\" is not a type", byte.escape_ascii()),
            Flaw::NotBulk(byte) => {
                return write!(f, "expected '$', got '{}'", byte.escape_ascii());
            }
            Flaw::Line => "too big inline request",
            Flaw::LineEnd => "a line without CR and LF",
            Flaw::Number => "invalid number",
            Flaw::BulkLength => "invalid bulk length",
            Flaw::Elements => "invalid multibulk length",
            Flaw::BulkEnd => "a bulk string without CR and LF after it",
            Flaw::Bytes => "too big value",
            Flaw::Streamed => "streamed values are not supported",
        };
        f.write_str(text)
    }
}
