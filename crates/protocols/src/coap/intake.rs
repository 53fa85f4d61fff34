//! A request as the reference server reads it: its resource, and what it asks for.

use std::ops::Deref;

use super::codec::{Block, Code, Message, code, number};
use super::oscore::Exchange;
use crate::readings_core::Query;

/// A request, without its protection.
#[derive(Clone, Debug)]
pub(super) struct Request<'m> {
    pub(super) message: Message<'m>,
    /// How responses to it are protected; `None` if it was not protected.
    pub(super) exchange: Option<Exchange>,
}

impl<'m> Request<'m> {
    /// A request without OSCORE.
    pub(super) fn plain(message: Message<'m>) -> Request<'m> {
        Request { message, exchange: None }
    }

    /// Its number among those of its sender; 0 without OSCORE.
    pub(super) fn partial_iv(&self) -> u64 {
        self.exchange.as_ref().map_or(0, Exchange::number)
    }
}

impl<'m> Deref for Request<'m> {
    type Target = Message<'m>;

    fn deref(&self) -> &Message<'m> {
        &self.message
    }
}

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// A message.
    Store(Target),
    /// The readings of a list from a cursor on.
    Poll(Query),
    /// The newest message of this list; with 0 to be notified of new ones, with 1 no longer.
    Show(u32, Option<u32>),
    /// The list of resources (RFC 6690).
    Discover,
    /// The request is refused.
    Refused(Code),
    /// The query is invalid, and why.
    BadQuery(&'static str),
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// It becomes the state of this list.
    State(u32),
    /// It is a reading for those who poll this list.
    Readings(u32),
}

/// The paths of the server, in segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Store {
    /// The resource whose state is the newest message; below it those of single producers.
    pub(super) state: Vec<Vec<u8>>,
    /// The list of readings; below it those of single producers.
    pub(super) readings: Vec<Vec<u8>>,
}

impl Store {
    /// Returns what a request is to do.
    pub(super) fn route(&self, request: &Message<'_>) -> Route {
        if request.options.unknown_critical(KNOWN).is_some() {
            return Route::Refused(code::BAD_OPTION);
        }
        let observe = request.options.first(number::OBSERVE);
        let observe = observe.and_then(super::codec::read_unsigned);
        let mut segments = request.options.iter().filter(|own| own.number == number::URI_PATH);
        let is_core = segments.by_ref().map(|own| own.value).eq(CORE.iter().copied());
        let target = match list_at(&self.state, request) {
            Some(list) => Some(Target::State(list)),
            None => list_at(&self.readings, request).map(Target::Readings),
        };
        match (target, request.code) {
            (Some(target), code::POST | code::PUT) => Route::Store(target),
            (Some(Target::State(list)), code::GET) => Route::Show(list, observe),
            (Some(Target::Readings(list)), code::GET) => poll(list, request),
            (None, code::GET) if is_core => Route::Discover,
            (Some(_), _) => Route::Refused(code::METHOD_NOT_ALLOWED),
            (None, _) => Route::Refused(code::NOT_FOUND),
        }
    }
}

/// The list that a path names: the one at `path`, or one of single producers below it.
fn list_at(path: &[Vec<u8>], request: &Message<'_>) -> Option<u32> {
    let mut segments = request.options.iter().filter(|own| own.number == number::URI_PATH);
    for own in path {
        segments.next().filter(|found| found.value == &own[..])?;
    }
    let Some(last) = segments.next() else { return Some(EVERYONE) };
    let number = std::str::from_utf8(last.value).ok()?.parse().ok()?;
    (segments.next().is_none() && number != EVERYONE).then_some(number)
}

/// Reads the query of a request for readings.
fn poll(list: u32, request: &Message<'_>) -> Route {
    let mut query = Query { list, since: None, limit: READINGS_DEFAULT };
    for part in request.options.iter().filter(|own| own.number == number::URI_QUERY) {
        let text = std::str::from_utf8(part.value).unwrap_or_default();
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        match (key, value.parse::<u64>()) {
            ("since", Ok(number)) => query.since = Some(number),
            ("limit", Ok(number)) => query.limit = number.min(READINGS_MAX),
            ("since", Err(_)) => {
                return Route::BadQuery("unknown cursor in since: use next of the last answer");
            }
            ("limit", Err(_)) => return Route::BadQuery("limit must be a whole number"),
            ("wait", _) => {
                return Route::BadQuery("no request is held: observe the resource instead");
            }
            _ => {}
        }
    }
    Route::Poll(query)
}

/// The block of a request that is sent block-wise; an error for a malformed option.
pub(super) fn block(request: &Message<'_>, number: u16) -> Result<Option<Block>, Code> {
    match request.options.first(number) {
        None => Ok(None),
        Some(value) => Block::read(value).map(Some).ok_or(code::BAD_REQUEST),
    }
}

/// True if the client wants no response with this code (RFC 7967, section 2.1).
pub(super) fn is_unwanted(request: &Message<'_>, code: Code) -> bool {
    let classes = request.options.first(number::NO_RESPONSE);
    let classes = classes.and_then(super::codec::read_unsigned).unwrap_or(0);
    let class = code.class().saturating_sub(1);
    classes >> class & 1 == 1
}

/// The list of all producers.
pub(super) const EVERYONE: u32 = u32::MAX;

/// Readings in one answer if the request names no limit.
const READINGS_DEFAULT: u64 = 1_000;

/// The most readings in one answer.
const READINGS_MAX: u64 = 10_000;

/// Critical options that the server understands.
const KNOWN: &[u16] = &[
    number::URI_HOST,
    number::URI_PORT,
    number::URI_PATH,
    number::URI_QUERY,
    number::ACCEPT,
    number::BLOCK1,
    number::BLOCK2,
];

/// Path of the list of resources (RFC 6690, section 4).
const CORE: &[&[u8]] = &[b".well-known", b"core"];
