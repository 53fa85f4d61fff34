//! Codes (RFC 7252, section 12.1): methods of requests and results of responses.

use std::fmt;

/// A code: three bits of class and five of detail, written `2.04`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u8);

impl Code {
    /// The code `class.detail`.
    pub const fn new(class: u8, detail: u8) -> Code {
        Code(class << 5 | detail & 0x1f)
    }

    /// 0 for requests, 2 for success, 4 and 5 for errors.
    pub fn class(self) -> u8 {
        self.0 >> 5
    }

    /// The part after the point.
    pub fn detail(self) -> u8 {
        self.0 & 0x1f
    }

    /// True for a method.
    pub fn is_request(self) -> bool {
        (GET.0..=REQUEST_MAX.0).contains(&self.0)
    }

    /// True for a result, good or bad.
    pub fn is_response(self) -> bool {
        (2..=5).contains(&self.class())
    }

    /// True for 2.xx.
    pub fn is_success(self) -> bool {
        self.class() == 2
    }

    /// The code as a number of three digits, as in HTTP: 404 for 4.04.
    pub fn number(self) -> u16 {
        u16::from(self.class()) * 100 + u16::from(self.detail())
    }

    /// Its name in the specification; `None` for codes of other documents.
    pub fn name(self) -> Option<&'static str> {
        Some(match (self.class(), self.detail()) {
            (0, 0) => "Empty",
            (0, 1) => "GET",
            (0, 2) => "POST",
            (0, 3) => "PUT",
            (0, 4) => "DELETE",
            (0, 5) => "FETCH",
            (0, 6) => "PATCH",
            (0, 7) => "iPATCH",
            (2, 1) => "Created",
            (2, 2) => "Deleted",
            (2, 3) => "Valid",
            (2, 4) => "Changed",
            (2, 5) => "Content",
            (2, 31) => "Continue",
            (4, 0) => "Bad Request",
            (4, 1) => "Unauthorized",
            (4, 2) => "Bad Option",
            (4, 3) => "Forbidden",
            (4, 4) => "Not Found",
            (4, 5) => "Method Not Allowed",
            (4, 6) => "Not Acceptable",
            (4, 8) => "Request Entity Incomplete",
            (4, 12) => "Precondition Failed",
            (4, 13) => "Request Entity Too Large",
            (4, 15) => "Unsupported Content-Format",
            (4, 29) => "Too Many Requests",
            (5, 0) => "Internal Server Error",
            (5, 1) => "Not Implemented",
            (5, 2) => "Bad Gateway",
            (5, 3) => "Service Unavailable",
            (5, 4) => "Gateway Timeout",
            (5, 5) => "Proxying Not Supported",
            _ => return None,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.class(), self.detail())
    }
}

/// An empty message.
pub const EMPTY: Code = Code(0);
/// Asks for a representation.
pub const GET: Code = Code(1);
/// Asks for the payload to be processed.
pub const POST: Code = Code(2);
/// Asks for the resource to be replaced.
pub const PUT: Code = Code(3);
/// Asks for the resource to be removed.
pub const DELETE: Code = Code(4);
/// Asks with a payload for a representation (RFC 8132, section 2).
pub const FETCH: Code = Code(5);
/// A request of any method.
pub const REQUEST_MAX: Code = Code(0x1f);
/// The response to a POST or PUT that changed a resource.
pub const CHANGED: Code = Code::new(2, 4);
/// The response to a GET.
pub const CONTENT: Code = Code::new(2, 5);
/// A block was received, and more are expected (RFC 7959, section 2.9.1).
pub const CONTINUE: Code = Code::new(2, 31);
/// The request is not understood.
pub const BAD_REQUEST: Code = Code::new(4, 0);
/// The client is not authorised.
pub const UNAUTHORIZED: Code = Code::new(4, 1);
/// A critical option is not understood.
pub const BAD_OPTION: Code = Code::new(4, 2);
/// There is no such resource.
pub const NOT_FOUND: Code = Code::new(4, 4);
/// The resource does not support the method.
pub const METHOD_NOT_ALLOWED: Code = Code::new(4, 5);
/// Blocks are missing (RFC 7959, section 2.9.2).
pub const REQUEST_INCOMPLETE: Code = Code::new(4, 8);
/// The payload is too large.
pub const TOO_LARGE: Code = Code::new(4, 13);
