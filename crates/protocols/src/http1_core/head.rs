//! The head of a request, as a reference server reads it: method, target, length of the body, and
//! what is refused by its head alone.

use std::mem::MaybeUninit;

use httparse::{Error, ParserConfig, Request, Status};

use super::framing::{FIELDS_MAX, Flaw, Framing, HEAD_BYTES_MAX};

/// A head that may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head<'i> {
    pub(crate) method: &'i str,
    pub(crate) target: &'i str,
    /// The minor version, 0 or 1.
    pub(crate) minor: u8,
    pub(crate) framing: Framing,
    /// True if the client waits for 100 (Continue) before it sends the body.
    pub(crate) expects: bool,
}

/// Framing of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Length(u64),
    Chunked,
}

/// A request that is answered by its head alone, after which the connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
}

impl Head<'_> {
    /// The framing of its body; a request that `needs_body` has one.
    pub(crate) fn body(&self, needs_body: bool) -> Result<Body, Refusal> {
        let framing = &self.framing;
        match framing.length {
            _ if framing.has_other_coding && framing.is_chunked => {
                Err(refusal(501, "the only supported transfer coding is chunked"))
            }
            _ if framing.has_other_coding => {
                Err(refusal(400, "the last transfer coding of a request must be chunked"))
            }
            _ if framing.is_chunked => Ok(Body::Chunked),
            Some(length) => Ok(Body::Length(length)),
            None if needs_body => Err(refusal(411, "a message needs Content-Length or chunked")),
            None => Ok(Body::Length(0)),
        }
    }
}

/// Reads the head at the start of `input`; `None` if it is not all there. `each` gets every field.
pub(crate) fn read<'i>(
    input: &'i [u8],
    each: &mut dyn FnMut(&str, &[u8]),
) -> Result<Option<(Head<'i>, usize)>, Refusal> {
    let mut headers = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut request = Request::new(&mut []);
    let seen = &input[..input.len().min(HEAD_BYTES_MAX)];
    let parsed =
        ParserConfig::default().parse_request_with_uninit_headers(&mut request, seen, &mut headers);
    let head_bytes = match parsed {
        Ok(Status::Complete(head_bytes)) => head_bytes,
        Ok(Status::Partial) if input.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(Status::Partial) if seen.contains(&b'\n') => {
            return Err(refusal(431, "the head is longer than 16 KiB"));
        }
        Ok(Status::Partial) => return Err(refusal(414, "the request line is too long")),
        Err(error) => return Err(flawed(error, seen)),
    };
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version)
    else {
        return Err(refusal(400, "the request line is incomplete"));
    };
    let framing = Framing::of(request.headers, minor).map_err(framing_refusal)?;
    let mut hosts = 0;
    let mut expects = false;
    for header in request.headers.iter() {
        match header.name.len() {
            4 if header.name.eq_ignore_ascii_case("host") => hosts += 1,
            6 if header.name.eq_ignore_ascii_case("expect") => {
                if !header.value.trim_ascii().eq_ignore_ascii_case(b"100-continue") {
                    return Err(refusal(417, "the only supported expectation is 100-continue"));
                }
                expects = minor >= 1;
            }
            _ => {}
        }
        each(header.name, header.value);
    }
    if hosts > 1 || (hosts == 0 && minor >= 1) {
        return Err(refusal(400, "a request needs exactly one Host field"));
    }
    if !KNOWN_METHODS.contains(&method) {
        return Err(refusal(501, "unknown method"));
    }
    Ok(Some((Head { method, target, minor, framing, expects }, head_bytes)))
}

/// Path and query of a target in origin form or absolute form (RFC 9112, section 3.2).
pub(crate) fn place_and_query(target: &str) -> Result<(&str, &str), Refusal> {
    let origin = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            rest.find('/').map_or("/", |slash| &rest[slash..])
        }
        _ => target,
    };
    if !origin.starts_with('/') && origin != "*" {
        return Err(refusal(400, "the target must start with a slash"));
    }
    Ok(origin.split_once('?').unwrap_or((origin, "")))
}

fn flawed(error: Error, seen: &[u8]) -> Refusal {
    match error {
        Error::TooManyHeaders => refusal(431, "more than 64 header fields"),
        Error::Version if has_other_version(seen) => refusal(505, "it speaks HTTP/1.0 and 1.1"),
        Error::HeaderName => refusal(400, "a header field name is malformed"),
        Error::HeaderValue => refusal(400, "a header field value is malformed"),
        Error::NewLine => refusal(400, "a line end is malformed"),
        _ => refusal(400, "the request line is malformed"),
    }
}

/// True if the third word of the request line is an HTTP version, one that is not supported.
/// `seen` may end right behind the first octet that shows it.
fn has_other_version(seen: &[u8]) -> bool {
    let line = seen.trim_ascii_start();
    let third = line.split(|byte| *byte == b' ').nth(2).unwrap_or_default();
    third.strip_prefix(b"HTTP/").and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit)
}

fn framing_refusal(flaw: Flaw) -> Refusal {
    refusal(
        400,
        match flaw {
            Flaw::BadLength => "Content-Length is not a whole number",
            Flaw::LengthConflict => "two Content-Length fields differ",
            Flaw::LengthAndCoding => "both Content-Length and Transfer-Encoding",
            Flaw::CodingInHttp10 => "Transfer-Encoding in HTTP/1.0",
            Flaw::ChunkedMisplaced => "chunked is not the last transfer coding",
            Flaw::UnknownCoding => "an empty transfer coding",
        },
    )
}

pub(crate) fn refusal(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}

/// RFC 9110, section 9.1, and PATCH of RFC 5789.
const KNOWN_METHODS: [&str; 9] =
    ["POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH"];
