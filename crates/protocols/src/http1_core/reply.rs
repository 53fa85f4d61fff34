//! An answer as the reference server writes it.

use super::framing::put_decimal;
use super::head::Refusal;

/// An answer to be written. There is no Date field: the server does not read the time
/// of day (RFC 9110, section 6.6.1).
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) allow: &'static str,
    pub(crate) body: &'a [u8],
    pub(crate) is_head: bool,
    pub(crate) minor: u8,
    pub(crate) keeps_alive: bool,
}

impl<'a> Answer<'a> {
    /// An answer in plain text.
    pub(crate) fn plain(status: u16, body: &'a [u8]) -> Answer<'a> {
        let (kind, allow) = ("text/plain", "");
        Answer { status, kind, allow, body, is_head: false, minor: 1, keeps_alive: true }
    }

    /// An answer in JSON.
    pub(crate) fn json(body: &'a [u8]) -> Answer<'a> {
        Answer { kind: "application/json", ..Answer::plain(200, body) }
    }

    /// Appends it.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 ");
        put_decimal(out, u64::from(self.status));
        out.push(b' ');
        out.extend_from_slice(phrase(self.status).as_bytes());
        out.extend_from_slice(b"\r\nContent-Length: ");
        put_decimal(out, self.body.len() as u64);
        let connection = match (self.keeps_alive, self.minor) {
            (false, _) => "close",
            (true, 0) => "keep-alive",
            (true, _) => "",
        };
        let fields =
            [("Content-Type", self.kind), ("Allow", self.allow), ("Connection", connection)];
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            for part in ["\r\n", name, ": ", value] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n\r\n");
        if !self.is_head {
            out.extend_from_slice(self.body);
        }
    }
}

/// Appends the answer to a request that is refused, after which the connection closes.
pub(crate) fn put_refusal(refusal: Refusal, out: &mut Vec<u8>) {
    let reason = [refusal.reason.as_bytes(), b"\n"].concat();
    Answer { keeps_alive: false, ..Answer::plain(refusal.status, &reason) }.put(out);
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
