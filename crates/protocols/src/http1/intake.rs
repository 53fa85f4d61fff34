//! The head of a request, as the reference server reads it: operation, length of the body, and
//! errors.

use std::mem::MaybeUninit;

use httparse::{Error, Header, ParserConfig, Request, Status};

use weigh_model::Nanos;
use weigh_model::units::parse_duration;

use super::codec::{FIELDS_MAX, Flaw, Framing, HEAD_BYTES_MAX, decimal};
use crate::readings::Query;

/// A request without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intake {
    pub(super) route: Route,
    pub(super) body: Body,
    pub(super) is_head: bool,
    pub(super) expects: bool,
    /// The minor version, 0 or 1.
    pub(super) minor: u8,
    pub(super) keeps_alive: bool,
}

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Store,
    /// Several messages.
    Batch,
    /// A reading for those who poll this list.
    Keep(u32),
    /// Poll of new readings; without any, the answer may wait for this time.
    Poll(Query, Nanos),
    List {
        since: u64,
        limit: u64,
    },
    Count,
    Health,
    /// The query is invalid, and why.
    BadQuery(&'static str),
    Missing,
    /// The path allows only these methods.
    Allows(&'static str),
}

/// Framing of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunked,
}

/// A request that is answered by its head alone, after which the connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) reason: &'static str,
}

/// Paths of the server.
pub(super) struct Paths {
    /// Messages are stored here, beside `/messages`.
    pub(super) store: String,
    /// True if messages are stored at every other path too: no path was set.
    pub(super) stores_anywhere: bool,
    /// Batches of messages are stored here.
    pub(super) batch: String,
    /// The list of readings; below it those of single producers, by their index.
    pub(super) readings: String,
}

impl Route {
    /// True for a body that is needed whole.
    pub(super) fn needs_whole(self) -> bool {
        matches!(self, Route::Batch | Route::Keep(_))
    }

    /// True for a message, or several.
    pub(super) fn takes_messages(self) -> bool {
        matches!(self, Route::Store | Route::Batch | Route::Keep(_))
    }
}

/// Reads the head at the start of `input`; `None` if it is not all there.
pub(super) fn read(input: &[u8], paths: &Paths) -> Result<Option<(Intake, usize)>, Refusal> {
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
    let intake = understand(method, target, minor, request.headers, paths)?;
    Ok(Some((intake, head_bytes)))
}

fn understand(
    method: &str,
    target: &str,
    minor: u8,
    headers: &[Header<'_>],
    paths: &Paths,
) -> Result<Intake, Refusal> {
    let framing = Framing::of(headers, minor).map_err(framing_refusal)?;
    let mut hosts = 0;
    let mut expects = false;
    for header in headers {
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
    }
    if hosts > 1 || (hosts == 0 && minor >= 1) {
        return Err(refusal(400, "a request needs exactly one Host field"));
    }
    if !KNOWN_METHODS.contains(&method) {
        return Err(refusal(501, "unknown method"));
    }
    let route = route(method, target, paths)?;
    let body = match framing.length {
        _ if framing.has_other_coding && framing.is_chunked => {
            return Err(refusal(501, "the only supported transfer coding is chunked"));
        }
        _ if framing.has_other_coding => {
            return Err(refusal(400, "the last transfer coding of a request must be chunked"));
        }
        _ if framing.is_chunked => Body::Chunked,
        Some(length) => Body::Length(length),
        None if route.takes_messages() => {
            return Err(refusal(411, "a message needs Content-Length or chunked"));
        }
        None => Body::Length(0),
    };
    let keeps_alive = framing.keeps_alive(minor);
    Ok(Intake { route, body, is_head: method == "HEAD", expects, minor, keeps_alive })
}

/// Finds what a target in origin form or absolute form (RFC 9112, section 3.2) names.
fn route(method: &str, target: &str, paths: &Paths) -> Result<Route, Refusal> {
    let origin = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            rest.find('/').map_or("/", |slash| &rest[slash..])
        }
        _ => target,
    };
    if !origin.starts_with('/') && origin != "*" {
        return Err(refusal(400, "the target must start with a slash"));
    }
    let (place, query) = origin.split_once('?').unwrap_or((origin, ""));
    let reads = method == "GET" || method == "HEAD";
    let path = paths.store.as_str();
    if let Some(list) = list_at(place, &paths.readings).filter(|_| place != path) {
        return Ok(match method {
            "POST" => Route::Keep(list),
            _ if reads => poll(list, query),
            _ => Route::Allows("GET, HEAD, POST"),
        });
    }
    Ok(match place {
        _ if place == paths.batch && place != path => match method {
            "POST" => Route::Batch,
            _ => Route::Allows("POST"),
        },
        _ if place == path && method == "POST" => Route::Store,
        "/messages" if method == "POST" => Route::Store,
        "/messages/count" if reads => Route::Count,
        "/messages/count" | "/healthz" if !reads => Route::Allows("GET, HEAD"),
        "/healthz" => Route::Health,
        _ if (place == path || place == "/messages") && reads => list(query),
        _ if place == path || place == "/messages" => Route::Allows("GET, HEAD, POST"),
        // The request without a path.
        "/" if reads => Route::Health,
        _ if method == "POST" && paths.stores_anywhere => Route::Store,
        _ => Route::Missing,
    })
}

fn list(query: &str) -> Route {
    let (mut since, mut limit) = (0, LIMIT_DEFAULT);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let number = decimal(value.as_bytes());
        match (key, number) {
            ("since", Some(number)) => since = number,
            ("limit", Some(number)) => limit = number.min(LIMIT_MAX),
            ("since" | "limit", None) => {
                return Route::BadQuery("since and limit must be whole numbers\n");
            }
            _ => {}
        }
    }
    Route::List { since, limit }
}

/// Index of the list of readings at `place`: 0 for the list of all producers, otherwise one more
/// than the index of its producer.
fn list_at(place: &str, readings: &str) -> Option<u32> {
    match place.strip_prefix(readings)? {
        "" => Some(0),
        below => {
            let index = decimal(below.strip_prefix('/')?.as_bytes())?;
            u32::try_from(index).ok()?.checked_add(1)
        }
    }
}

fn poll(list: u32, query: &str) -> Route {
    let mut asked = Query { list, since: None, limit: READINGS_DEFAULT };
    let mut wait = Nanos(0);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let number = decimal(value.as_bytes());
        match (key, number) {
            ("since", Some(number)) => asked.since = Some(number),
            ("limit", Some(number)) => asked.limit = number.min(READINGS_MAX),
            ("since", None) => {
                return Route::BadQuery(
                    "unknown cursor in since: use `next` of the last answer, or leave \
                    it out for all readings\n",
                );
            }
            ("limit", None) => return Route::BadQuery("limit must be a whole number\n"),
            ("wait", _) => match parse_duration(value).ok().filter(|wait| *wait <= WAIT_MAX) {
                Some(time) => wait = time,
                None => {
                    return Route::BadQuery(
                        "wait must be a time with its unit, such as 30s, of at most 5m\n",
                    );
                }
            },
            _ => {}
        }
    }
    Route::Poll(asked, wait)
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

fn refusal(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}

/// RFC 9110, section 9.1, and PATCH of RFC 5789.
const KNOWN_METHODS: [&str; 9] =
    ["POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH"];

const READINGS_DEFAULT: u64 = 1000;
const READINGS_MAX: u64 = 10_000;

/// Longest time for which a request is held.
const WAIT_MAX: Nanos = Nanos::from_secs(300);

const LIMIT_DEFAULT: u64 = 100;
const LIMIT_MAX: u64 = 1000;
