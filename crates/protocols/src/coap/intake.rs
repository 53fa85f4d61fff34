//! A request as the reference server reads it: its resource, and what it asks for.

use super::codec::{Block, Code, Message, code, number};

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// A message for this list.
    Store(u32),
    /// The newest message of this list; with 0 to be notified of new ones, with 1 no longer.
    Show(u32, Option<u32>),
    /// The list of resources (RFC 6690).
    Discover,
    /// The request is refused.
    Refused(Code),
}

/// The path of the store, in segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Store(pub(super) Vec<Vec<u8>>);

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
        match (self.list(request), request.code) {
            (Some(list), code::POST | code::PUT) => Route::Store(list),
            (Some(list), code::GET) => Route::Show(list, observe),
            (None, code::GET) if is_core => Route::Discover,
            (Some(_), _) => Route::Refused(code::METHOD_NOT_ALLOWED),
            (None, _) => Route::Refused(code::NOT_FOUND),
        }
    }

    /// The list that a path names: the store itself, or one of single producers below it.
    fn list(&self, request: &Message<'_>) -> Option<u32> {
        let mut segments = request.options.iter().filter(|own| own.number == number::URI_PATH);
        for own in &self.0 {
            segments.next().filter(|found| found.value == &own[..])?;
        }
        let Some(last) = segments.next() else { return Some(EVERYONE) };
        let number = std::str::from_utf8(last.value).ok()?.parse().ok()?;
        (segments.next().is_none() && number != EVERYONE).then_some(number)
    }
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
