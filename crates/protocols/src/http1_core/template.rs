//! A client's request, rendered once per trial: a connection adds only the length and the body.

use super::framing::put_decimal;
use crate::name_pattern::NamePattern;
use crate::statuses::Statuses;

/// The request that all connections of a trial send.
pub(crate) struct Template {
    pub(crate) method: Method,
    /// The path, where it differs from message to message; else it stands in the line.
    pub(crate) places: Option<NamePattern>,
    /// The request line, up to the path where that differs.
    pub(crate) line: Vec<u8>,
    /// Everything behind it up to `Content-Length: `, or to the empty line where there is no body.
    pub(crate) head: Vec<u8>,
    /// Which answers confirm.
    pub(crate) statuses: Statuses,
    /// True if a body waits for 100 (Continue).
    pub(crate) expects: bool,
    pub(crate) is_chunked: bool,
    /// Requests in flight on one connection.
    pub(crate) pipeline: u32,
    /// Writes several messages as the body of one request; `None` if there is no such form.
    pub(crate) put_batch: Option<PutBatch>,
}

/// Appends the form of these bodies.
pub(crate) type PutBatch = fn(&mut Vec<u8>, &mut dyn Iterator<Item = &[u8]>);

/// Content of a request that comes from its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rendered {
    /// Head and body.
    Whole,
    /// The head of a method that has no body.
    WithoutBody,
    /// The head; the body is held back until the server asks for it.
    BodyHeld,
}

/// Kind of a method, by where bodies are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// With a body: POST, PUT, PATCH.
    Post,
    /// Without: GET, DELETE.
    Get,
    /// Without, and so is its answer.
    Head,
}

impl Template {
    /// True if an answer with this status confirms.
    pub(crate) fn confirms(&self, status: u16) -> bool {
        self.statuses.hold(status)
    }

    /// Appends the request line and what follows it in every request.
    #[inline]
    fn put_head(&self, body: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.line);
        if let Some(places) = &self.places {
            places.fill(body, out);
        }
        out.extend_from_slice(&self.head);
    }

    /// True if answers have no body, whatever their heads say.
    pub(crate) fn is_head(&self) -> bool {
        self.method == Method::Head
    }

    /// Appends a request. One without content expects nothing (RFC 9110, section 10.1.1).
    pub(crate) fn render(&self, body: &[u8], out: &mut Vec<u8>) -> Rendered {
        out.reserve(self.line.len() + self.head.len() + body.len() + TAIL_BYTES_MAX);
        self.put_head(body, out);
        if self.method != Method::Post {
            out.extend_from_slice(b"\r\n");
            return Rendered::WithoutBody;
        }
        if self.is_chunked {
            out.extend_from_slice(b"\r\n\r\n");
            self.put_piece(body, 0, out);
            return Rendered::Whole;
        }
        put_decimal(out, body.len() as u64);
        if self.expects && !body.is_empty() {
            out.extend_from_slice(b"\r\nExpect: 100-continue\r\n\r\n");
            return Rendered::BodyHeld;
        }
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(body);
        Rendered::Whole
    }

    /// Appends the head of a request whose body has `bytes` bytes and follows in pieces.
    pub(crate) fn render_head(&self, bytes: u64, out: &mut Vec<u8>) {
        self.put_head(&[], out);
        if !self.is_chunked {
            put_decimal(out, bytes);
        }
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends a piece of a body of which `rest` bytes follow (RFC 9112, section 7.1).
    pub(crate) fn put_piece(&self, piece: &[u8], rest: u64, out: &mut Vec<u8>) {
        if !self.is_chunked {
            out.extend_from_slice(piece);
            return;
        }
        if !piece.is_empty() {
            out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
        }
        if rest == 0 {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }

    /// True if some request may hold its body back.
    pub(crate) fn expects(&self) -> bool {
        self.expects
    }
}

/// Appends a field of a head.
pub(crate) fn add_field(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str(": ");
    text.push_str(value);
    text.push_str("\r\n");
}

/// Bytes between the head and the body: digits of the length, `Expect`, line ends.
const TAIL_BYTES_MAX: usize = 48;
