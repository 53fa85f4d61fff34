//! What a request asks of the reference server: its route, by method and path.

use weigh_model::Nanos;
use weigh_model::units::parse_duration;

use crate::http1_core::framing::decimal;
use crate::http1_core::head::{self, Body, Refusal};
use crate::http1_core::reply::Answer;
use crate::readings_core::Query;

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

impl Intake {
    /// Makes an answer fit the request: HEAD, and whether the connection stays open.
    pub(super) fn fit<'a>(&self, answer: Answer<'a>) -> Answer<'a> {
        let Intake { is_head, minor, keeps_alive, .. } = *self;
        Answer { is_head, minor, keeps_alive, ..answer }
    }
}

/// Reads the head at the start of `input`; `None` if it is not all there.
pub(super) fn read(input: &[u8], paths: &Paths) -> Result<Option<(Intake, usize)>, Refusal> {
    let Some((head, head_bytes)) = head::read(input, &mut |_, _| {})? else { return Ok(None) };
    let route = route(head.method, head.target, paths)?;
    let intake = Intake {
        route,
        body: head.body(route.takes_messages())?,
        is_head: head.method == "HEAD",
        expects: head.expects,
        minor: head.minor,
        keeps_alive: head.framing.keeps_alive(head.minor),
    };
    Ok(Some((intake, head_bytes)))
}

/// Finds what a target names.
fn route(method: &str, target: &str, paths: &Paths) -> Result<Route, Refusal> {
    let (place, query) = head::place_and_query(target)?;
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

const READINGS_DEFAULT: u64 = 1000;
const READINGS_MAX: u64 = 10_000;

/// Longest time for which a request is held.
const WAIT_MAX: Nanos = Nanos::from_secs(300);

const LIMIT_DEFAULT: u64 = 100;
const LIMIT_MAX: u64 = 1000;
