//! The reference server: stores and counts messages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::mark::Reading;
use weigh_model::pieces::BodyReader;
use weigh_model::protocol::Invalid;
use weigh_model::server::{ConnectionId, Outboxes, Record, Server, ServerReport};
use weigh_model::trial::Settings;

use super::codec::{self, Intake, Paths, Route};
use super::store::Store;
use super::waiting::Held;
use crate::http1_core::chunked::Chunked;
use crate::http1_core::framing::{Memory, put_decimal};
use crate::http1_core::head::{Body, Refusal};
use crate::http1_core::reply::{Answer, put_refusal};
use crate::pass_through::UNHEARD_BYTES_MAX;
use crate::readings_core::{self as readings, Found, Query, Readings};
use crate::requests;
use crate::server_counts::ServerCounts;

/// Common settings of all shards of one server.
pub(super) struct Rules {
    paths: Paths,
    body_bytes_max: u64,
    readings: Readings,
    store: usize,
    /// Messages each shard has taken in.
    counts: Mutex<Vec<Arc<AtomicU64>>>,
}

/// All connections of one shard.
pub(super) struct HttpServer {
    rules: Arc<Rules>,
    shard: u16,
    connections: Vec<Connection>,
    /// Requests that wait for a reading.
    held: Held,
    /// All clients of a trial send the same head, so one memory serves the whole shard.
    memory: Memory<Intake>,
    store: Store,
    census: ServerCounts,
    count: Arc<AtomicU64>,
    scratch: Vec<u8>,
}

struct Connection {
    phase: Phase,
    /// A chunked body so far.
    body: Vec<u8>,
    /// Reads a body that is too large to be kept.
    passing: Option<Box<Passing>>,
}

/// A body of which only its check and its end are kept.
#[derive(Default)]
struct Passing {
    reader: BodyReader,
    bytes: u64,
}

/// State of a body that is collected.
enum Content<'a> {
    Whole(&'a [u8]),
    Passed(Reading),
}

#[derive(Clone, Copy)]
enum Phase {
    Head,
    Length(Intake, u64),
    /// Remaining bytes of a body that passes through.
    Passing(Intake, u64),
    Chunked(Intake, Chunked),
    /// Its request waits for a reading.
    Held,
    Closing,
}

impl Rules {
    pub(super) fn new(settings: &Settings) -> Result<Rules, Invalid> {
        let path = |key: &str| {
            let path = settings.text(key).split('?').next().unwrap_or_default();
            if path.starts_with('/') {
                return Ok(path.to_owned());
            }
            let (place, problem) = (format!("http1.{key}"), format!("{path:?} is not a path"));
            Err(Invalid::new(place, problem, "type one that starts with /"))
        };
        Ok(Rules {
            paths: Paths {
                store: path("path")?,
                stores_anywhere: settings.text("path") == requests::PATH.default,
                batch: path("batch_path")?,
                readings: path("poll_path")?,
            },
            readings: Readings::new(settings.integer("readings") as usize),
            body_bytes_max: settings.integer("body_bytes_max"),
            store: settings.integer("store") as usize,
            counts: Mutex::default(),
        })
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Vec<Arc<AtomicU64>>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpServer {
    pub(super) fn new(rules: Arc<Rules>, shard: u16) -> HttpServer {
        let count = Arc::new(AtomicU64::new(0));
        rules.counts().push(count.clone());
        HttpServer {
            shard,
            connections: Vec::new(),
            held: Held::default(),
            memory: Memory::new(Box::default()),
            store: Store::new(rules.store),
            census: ServerCounts::default(),
            count,
            scratch: Vec::new(),
            rules,
        }
    }

    /// Takes the head at the start of `input`; 0 if it is not all there.
    fn take_head(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> usize {
        if let Some((intake, head_bytes)) = self.memory.recall(input) {
            self.set_phase(connection, awaited(intake));
            return head_bytes;
        }
        let read = codec::read(input, &self.rules.paths);
        let (intake, head_bytes) = match read {
            Ok(Some(read)) => read,
            Ok(None) => return 0,
            Err(refusal) => {
                self.refuse(connection, refusal, out);
                return input.len();
            }
        };
        if let Some(refusal) = self.refusal(&intake) {
            self.refuse(connection, refusal, out);
            return input.len();
        }
        let has_content = intake.body != Body::Length(0);
        if intake.expects && has_content {
            if !intake.route.takes_messages() {
                let intake = Intake { keeps_alive: false, ..intake };
                self.answer(connection, &intake, Content::Whole(&[]), now, out);
                return input.len();
            }
            out.stage(connection).extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        } else if intake.route.takes_messages() {
            self.memory.keep(&input[..head_bytes], intake);
        }
        self.set_phase(connection, awaited(intake));
        head_bytes
    }

    fn refusal(&self, intake: &Intake) -> Option<Refusal> {
        let bytes_max = self.body_bytes_max(intake);
        let is_too_long = matches!(intake.body, Body::Length(length) if length > bytes_max);
        is_too_long.then_some(TOO_LONG)
    }

    fn body_bytes_max(&self, intake: &Intake) -> u64 {
        let whole = if intake.route.needs_whole() { WHOLE_BYTES_MAX } else { u64::MAX };
        self.rules.body_bytes_max.min(whole)
    }

    fn refuse(&mut self, connection: ConnectionId, refusal: Refusal, out: &mut dyn Outboxes) {
        put_refusal(refusal, out.stage(connection));
        self.set_phase(connection, Phase::Closing);
        out.close(connection);
    }

    /// Executes a complete request.
    fn answer(
        &mut self,
        connection: ConnectionId,
        intake: &Intake,
        content: Content<'_>,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        if let Route::Poll(query, wait) = intake.route {
            return self.answer_consumer(connection, intake, &query, wait, now, out);
        }
        let is_taken = self.take_messages(connection, intake.route, content, now, out);
        if intake.route.takes_messages() && is_taken {
            self.count.store(self.store.count(), Ordering::Relaxed);
            if intake.keeps_alive && intake.minor >= 1 {
                out.stage(connection).extend_from_slice(CREATED);
                self.set_phase(connection, Phase::Head);
                return;
            }
        }
        self.scratch.clear();
        let answer = match intake.route {
            Route::Batch if !is_taken => Answer::plain(400, NO_BATCH),
            Route::Store | Route::Batch | Route::Keep(_) => {
                Answer { kind: "", ..Answer::plain(201, b"") }
            }
            Route::List { since, limit } => {
                let count = self.count_of_all_shards();
                self.store.list(since, limit, count, &mut self.scratch);
                Answer::json(&self.scratch)
            }
            Route::Count => {
                let count = self.count_of_all_shards();
                self.scratch.extend_from_slice(b"{\"count\":");
                put_decimal(&mut self.scratch, count);
                self.scratch.push(b'}');
                Answer::json(&self.scratch)
            }
            Route::Health => Answer::plain(200, b"ok\n"),
            Route::BadQuery(why) => Answer::plain(400, why.as_bytes()),
            Route::Poll(..) => return,
            Route::Missing => Answer::plain(404, b"not found\n"),
            Route::Allows(allow) => {
                Answer { allow, ..Answer::plain(405, b"the path does not support this method\n") }
            }
        };
        intake.fit(answer).put(out.stage(connection));
        self.end_exchange(connection, intake, out);
    }

    fn end_exchange(&mut self, at: ConnectionId, intake: &Intake, out: &mut dyn Outboxes) {
        self.set_phase(at, if intake.keeps_alive { Phase::Head } else { Phase::Closing });
        if !intake.keeps_alive {
            out.close(at);
        }
    }

    /// Stores the messages of a request; false for an invalid batch, of which none is stored.
    fn take_messages(
        &mut self,
        from: ConnectionId,
        route: Route,
        content: Content<'_>,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> bool {
        match (route, content) {
            (Route::Store, Content::Whole(body)) => {
                out.store(Record::Message { name: b"", body });
                self.census.note(body);
                self.store.put(body);
            }
            (Route::Store, Content::Passed(reading)) => {
                out.store(Record::End { of: from });
                self.census.note_reading(reading);
                self.store.pass_over();
            }
            (Route::Batch, Content::Whole(batch)) => {
                let (census, store) = (&mut self.census, &mut self.store);
                let read = readings::each_of_batch(batch, |body| {
                    out.store(Record::Message { name: b"", body });
                    census.note(body);
                    store.put(body);
                });
                return read.is_ok();
            }
            (Route::Keep(list), Content::Whole(body)) => {
                out.store(Record::Message { name: &list.to_le_bytes(), body });
                self.census.note(body);
                let waiting = self.rules.readings.put(list, body);
                for shard in waiting.into_iter().filter(|shard| *shard != self.shard) {
                    out.notify_shard(shard);
                }
                self.answer_held(list, now, out);
            }
            _ => {}
        }
        true
    }

    /// Answers a consumer, or lets it wait.
    fn answer_consumer(
        &mut self,
        connection: ConnectionId,
        intake: &Intake,
        query: &Query,
        wait: Nanos,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let may_wait = wait.0 > 0 && query.limit > 0;
        if self.page(connection, intake, query, may_wait, out) {
            return;
        }
        self.set_phase(connection, Phase::Held);
        self.held.put(connection, *intake, *query, now + wait);
    }

    /// Answers a request for readings; false if there are none and it may wait for some.
    fn page(
        &mut self,
        connection: ConnectionId,
        intake: &Intake,
        query: &Query,
        may_wait: bool,
        out: &mut dyn Outboxes,
    ) -> bool {
        self.scratch.clear();
        let waits_for = may_wait.then_some(self.shard);
        let answer = match self.rules.readings.page(query, waits_for, &mut self.scratch) {
            Found::Ahead => Answer::plain(400, CURSOR_AHEAD),
            Found::Readings { count: 0, .. } if may_wait => return false,
            Found::Readings { count, missed } => {
                self.census.note_forwarded(count);
                self.census.note_dropped_many(OVERFLOW, missed);
                Answer::json(&self.scratch)
            }
        };
        intake.fit(answer).put(out.stage(connection));
        self.end_exchange(connection, intake, out);
        true
    }

    /// Answers those who wait for a reading of this list.
    fn answer_held(&mut self, list: u32, now: Nanos, out: &mut dyn Outboxes) {
        for (connection, intake, query, until) in self.held.take_list(list) {
            if !self.page(connection, &intake, &query, until > now, out) {
                self.held.put(connection, intake, query, until);
            }
        }
    }

    fn count_of_all_shards(&self) -> u64 {
        self.rules.counts().iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn set_phase(&mut self, connection: ConnectionId, phase: Phase) {
        if let Some(connection) = self.connections.get_mut(connection.0 as usize) {
            connection.phase = phase;
        }
    }

    /// Takes more of a body that is not kept, of which `left` bytes follow; false if it is not all.
    fn pass(
        &mut self,
        connection: ConnectionId,
        (intake, left): (Intake, u64),
        piece: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> bool {
        let open = &mut self.connections[connection.0 as usize];
        let Some(passing) = &mut open.passing else { return false };
        passing.take(connection, piece, out);
        if left > 0 {
            open.phase = Phase::Passing(intake, left);
            return false;
        }
        let reading = passing.reader.finish();
        open.passing = None;
        self.answer(connection, &intake, Content::Passed(reading), now, out);
        true
    }

    /// Takes more of a chunked body; `None` if nothing could be taken.
    fn take_chunks(
        &mut self,
        connection: ConnectionId,
        (intake, mut chunked): (Intake, Chunked),
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Option<usize> {
        let body_bytes_max = self.body_bytes_max(&intake);
        let Connection { body, passing, .. } = &mut self.connections[connection.0 as usize];
        let needs_whole = intake.route.needs_whole();
        let mut is_too_long = false;
        let advance = chunked.advance(input, &mut |piece| {
            let so_far = passing.as_ref().map_or(body.len() as u64, |passing| passing.bytes);
            is_too_long |= so_far + piece.len() as u64 > body_bytes_max;
            if is_too_long {
                return;
            }
            if !needs_whole
                && passing.is_none()
                && (body.len() + piece.len()) as u64 > UNHEARD_BYTES_MAX
            {
                let mut new = Box::new(Passing::default());
                new.take(connection, body, out);
                *body = Vec::new();
                *passing = Some(new);
            }
            match passing {
                Some(passing) => passing.take(connection, piece, out),
                None => body.extend_from_slice(piece),
            }
        });
        let advance = match advance {
            _ if is_too_long => {
                self.refuse(connection, TOO_LONG, out);
                return Some(input.len());
            }
            Ok(advance) => advance,
            Err(_) => {
                let reason = "the chunked body is malformed";
                self.refuse(connection, Refusal { status: 400, reason }, out);
                return Some(input.len());
            }
        };
        if advance.is_whole {
            let open = &mut self.connections[connection.0 as usize];
            let (body, passed) = (std::mem::take(&mut open.body), open.passing.take());
            let content = match passed {
                Some(passed) => Content::Passed(passed.reader.finish()),
                None => Content::Whole(&body),
            };
            self.answer(connection, &intake, content, now, out);
        } else {
            self.set_phase(connection, Phase::Chunked(intake, chunked));
        }
        (advance.taken > 0).then_some(advance.taken)
    }
}

impl Connection {
    const UNUSED: Connection =
        Connection { phase: Phase::Closing, body: Vec::new(), passing: None };
}

impl Passing {
    fn take(&mut self, from: ConnectionId, piece: &[u8], out: &mut dyn Outboxes) {
        out.store(Record::Piece { of: from, is_first: self.bytes == 0, body: piece });
        self.reader.take(piece);
        self.bytes += piece.len() as u64;
    }
}

fn awaited(intake: Intake) -> Phase {
    match intake.body {
        Body::Length(length) => Phase::Length(intake, length),
        Body::Chunked => Phase::Chunked(intake, Chunked::START),
    }
}

impl Server for HttpServer {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        let index = connection.0 as usize;
        if index >= self.connections.len() {
            self.connections.resize_with(index + 1, || Connection::UNUSED);
        }
        self.connections[index].phase = Phase::Head;
        self.census.note_connection();
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            let phase = self.connections.get(connection.0 as usize).map(|open| open.phase);
            match phase.unwrap_or(Phase::Closing) {
                Phase::Closing => return Ok(input.len()),
                Phase::Held if rest.is_empty() => return Ok(taken),
                // A client that sends more does not want to wait.
                Phase::Held => match self.held.take(connection) {
                    Some((intake, query)) => {
                        self.page(connection, &intake, &query, false, out);
                    }
                    None => return Ok(input.len()),
                },
                Phase::Head if rest.is_empty() => return Ok(taken),
                Phase::Head => match self.take_head(connection, rest, now, out) {
                    0 => return Ok(taken),
                    head_bytes => taken += head_bytes,
                },
                Phase::Length(intake, length) => {
                    let whole = usize::try_from(length).ok().and_then(|whole| rest.get(..whole));
                    if let Some(body) = whole {
                        self.answer(connection, &intake, Content::Whole(body), now, out);
                        taken += body.len();
                    } else if length > UNHEARD_BYTES_MAX && !intake.route.needs_whole() {
                        self.connections[connection.0 as usize].passing = Some(Box::default());
                        self.set_phase(connection, Phase::Passing(intake, length));
                    } else {
                        return Ok(taken);
                    }
                }
                Phase::Passing(intake, left) => {
                    let here = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    taken += here;
                    if !self.pass(connection, (intake, left - here as u64), &rest[..here], now, out)
                    {
                        return Ok(taken);
                    }
                }
                Phase::Chunked(intake, chunked) => {
                    match self.take_chunks(connection, (intake, chunked), rest, now, out) {
                        Some(bytes) => taken += bytes,
                        None => return Ok(taken),
                    }
                }
            }
        }
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        self.held.take(connection);
        if let Some(connection) = self.connections.get_mut(connection.0 as usize) {
            *connection = Connection::UNUSED;
        }
    }

    /// Requests that have waited long enough get an empty answer.
    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        for (connection, intake, query, _) in self.held.take_due(now) {
            self.page(connection, &intake, &query, false, out);
        }
        self.held.next_due()
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.held.next_due()
    }

    /// Another shard received a reading for which a consumer here waits.
    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        for list in self.held.lists() {
            self.answer_held(list, now, out);
        }
    }

    fn report(&self) -> ServerReport {
        self.census.report()
    }
}

const CREATED: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
const NO_BATCH: &[u8] = b"a batch must be a JSON array with one message per element\n";
const CURSOR_AHEAD: &[u8] = b"since is beyond the list's end: use `next` of the last answer\n";

/// Why consumers missed readings that they asked for: there were newer ones than the list holds.
const OVERFLOW: &str = "readings_overflow";

/// The largest body that is needed whole: a batch, a reading.
const WHOLE_BYTES_MAX: u64 = 64 << 20;

const TOO_LONG: Refusal = Refusal { status: 413, reason: "the body is longer than allowed" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Connection>() <= 160, "{}", size_of::<Connection>());
    }
}
