//! The reference server of plain HTTP: takes bodies in and counts them.

use std::borrow::Cow;
use std::sync::Arc;

use weigh_model::pieces::BodyReader;
use weigh_model::protocol::Invalid;
use weigh_model::server::ServerReport;
use weigh_model::trial::Settings;

use super::answer::{Answer, Fields, KnownFields};
use super::fields::RequestHead;
use super::head::Naming;
use super::serving::Service;
use super::stored::Stored;
use crate::requests;
use crate::server_counts::ServerCounts;

/// Common settings of all shards of one server.
pub(crate) struct Rules {
    /// Path that stores messages.
    path: String,
    /// True if a POST at any other path is stored too: no path was chosen.
    stores_anywhere: bool,
    body_bytes_max: u64,
}

/// One shard.
pub(crate) struct Intake {
    rules: Arc<Rules>,
    census: ServerCounts,
    stored: Stored,
}

/// A request whose body is not complete.
#[derive(Default)]
pub(crate) struct Call {
    route: Route,
    /// Bytes of the body so far.
    bytes: u64,
    /// Reads a body that comes in pieces.
    reader: Option<Box<BodyReader>>,
    /// The pieces, if the server stores.
    pieces: Vec<u8>,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Route {
    #[default]
    Missing,
    Store,
    /// Another method than POST on the path that stores.
    NotPost,
    /// Another method than GET on the path that reports.
    NotGet,
    Health,
    HealthHead,
}

impl Rules {
    /// Reads and checks them.
    ///
    /// # Errors
    /// A path that is none.
    pub(crate) fn new(settings: &Settings, naming: &Naming) -> Result<Rules, Invalid> {
        let path = naming.stored_at(settings.text("path"))?;
        let stores_anywhere = settings.text("path") == requests::PATH.default;
        let body_bytes_max = settings.integer("body_bytes_max");
        Ok(Rules { path, stores_anywhere, body_bytes_max })
    }
}

impl Intake {
    /// A shard that has counted nothing.
    pub(crate) fn new(rules: Arc<Rules>) -> Intake {
        Intake { rules, census: ServerCounts::default(), stored: Stored::default() }
    }

    fn take_piece(&self, call: &mut Call, data: &[u8]) {
        call.bytes += data.len() as u64;
        call.reader.get_or_insert_default().take(data);
        if self.stored.is_on() {
            call.pieces.extend_from_slice(data);
        }
    }
}

impl Service for Intake {
    type Call = Call;

    const KNOWN: KnownFields = &[&[(":status", "201")]];

    fn accepted(&mut self) {
        self.census.note_connection();
    }

    fn begin(&mut self, head: &RequestHead) -> Call {
        let path = head.path.split(|byte| *byte == b'?').next().unwrap_or_default();
        let is_stored = path == self.rules.path.as_bytes();
        let route = match (&head.method[..], path) {
            (b"POST", _) if is_stored => Route::Store,
            _ if is_stored => Route::NotPost,
            (b"GET", b"/healthz" | b"/") => Route::Health,
            (b"HEAD", b"/healthz" | b"/") => Route::HealthHead,
            (_, b"/healthz") => Route::NotGet,
            (b"POST", _) if self.rules.stores_anywhere => Route::Store,
            _ => Route::Missing,
        };
        Call { route, ..Call::default() }
    }

    fn more(&mut self, call: &mut Call, data: &[u8]) -> Option<Answer> {
        if call.route != Route::Store {
            return None;
        }
        self.take_piece(call, data);
        (call.bytes > self.rules.body_bytes_max).then(too_long)
    }

    fn end(&mut self, mut call: Call, data: &[u8]) -> Answer {
        match call.route {
            Route::Store => {
                if call.bytes + data.len() as u64 > self.rules.body_bytes_max {
                    return too_long();
                }
                if call.reader.is_none() {
                    self.census.note(data);
                    self.stored.put(data);
                } else {
                    self.take_piece(&mut call, data);
                    self.census.note_reading(call.reader.get_or_insert_default().finish());
                    self.stored.put(&call.pieces);
                }
                Answer::bare(Fields::Known(0))
            }
            Route::NotPost => text(405, "use POST to send messages\n"),
            Route::NotGet => text(405, "use GET or HEAD here\n"),
            Route::Health => text(200, "ok\n"),
            Route::HealthHead => Answer { body: Cow::Borrowed(b""), ..text(200, "ok\n") },
            Route::Missing => text(404, "not found\n"),
        }
    }

    fn stored(&mut self) -> &mut Stored {
        &mut self.stored
    }

    fn report(&self) -> ServerReport {
        self.census.report()
    }
}

fn too_long() -> Answer {
    text(413, "the body is too long\n")
}

/// An answer in plain text. There is no date: the server does not read the time of day (RFC 9110,
/// section 6.6.1).
fn text(status: u16, body: &'static str) -> Answer {
    let head = vec![
        (":status", status.to_string()),
        ("content-type", "text/plain".to_owned()),
        ("content-length", body.len().to_string()),
    ];
    Answer { head: Fields::Other(head), body: Cow::Borrowed(body.as_bytes()), trailers: None }
}
