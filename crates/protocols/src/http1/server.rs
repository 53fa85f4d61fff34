//! The reference server: stores and counts messages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weigh_model::Nanos;
use weigh_model::protocol::Invalid;
use weigh_model::server::{ConnectionId, Outlets, Server, ServerReport};
use weigh_model::trial::Settings;
use weigh_model::wire::Fault;

use super::chunked::Chunked;
use super::codec::{Memory, put_decimal};
use super::intake::{self, Body, Intake, Refusal, Route};
use super::store::Store;
use crate::census::Census;

/// What all shards of one server go by.
pub(super) struct Rules {
    /// Where messages are stored, beside `/messages`.
    path: String,
    body_bytes_max: u64,
    store: usize,
    /// Messages each shard has taken in.
    counts: Mutex<Vec<Arc<AtomicU64>>>,
}

/// All connections of one shard.
pub(super) struct HttpServer {
    rules: Arc<Rules>,
    connections: Vec<Connection>,
    /// All clients of a trial send the same head, so one memory serves the whole shard.
    memory: Memory<Intake>,
    store: Store,
    census: Census,
    count: Arc<AtomicU64>,
    scratch: Vec<u8>,
}

struct Connection {
    phase: Phase,
    /// A chunked body so far.
    body: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Phase {
    Head,
    Length(Intake, usize),
    Chunked(Intake, Chunked),
    Closing,
}

impl Rules {
    pub(super) fn new(settings: &Settings) -> Result<Rules, Invalid> {
        let path = settings.text("path").split('?').next().unwrap_or_default();
        if !path.starts_with('/') {
            let problem = format!("{path:?} is no path");
            return Err(Invalid::new("http1.path", problem, "type one that starts with /"));
        }
        Ok(Rules {
            path: path.to_owned(),
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
    pub(super) fn new(rules: Arc<Rules>) -> HttpServer {
        let count = Arc::new(AtomicU64::new(0));
        rules.counts().push(count.clone());
        HttpServer {
            connections: Vec::new(),
            memory: Memory::new(Box::default()),
            store: Store::new(rules.store),
            census: Census::default(),
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
        out: &mut dyn Outlets,
    ) -> usize {
        if let Some((intake, head_bytes)) = self.memory.recall(input) {
            self.set_phase(connection, awaited(intake));
            return head_bytes;
        }
        let read = intake::read(input, &self.rules.path);
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
            if intake.route != Route::Store {
                self.answer(connection, &Intake { keeps_alive: false, ..intake }, &[], out);
                return input.len();
            }
            out.stage(connection).extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        } else if intake.route == Route::Store {
            self.memory.keep(&input[..head_bytes], intake);
        }
        self.set_phase(connection, awaited(intake));
        head_bytes
    }

    fn refusal(&self, intake: &Intake) -> Option<Refusal> {
        let is_too_long =
            matches!(intake.body, Body::Length(length) if length > self.rules.body_bytes_max);
        is_too_long.then_some(TOO_LONG)
    }

    fn refuse(&mut self, connection: ConnectionId, refusal: Refusal, out: &mut dyn Outlets) {
        let reason = [refusal.reason.as_bytes(), b"\n"].concat();
        let answer = Answer { keeps_alive: false, ..Answer::plain(refusal.status, &reason) };
        answer.put(out.stage(connection));
        self.set_phase(connection, Phase::Closing);
        out.close(connection);
    }

    /// Does what a whole request wants.
    fn answer(
        &mut self,
        connection: ConnectionId,
        intake: &Intake,
        body: &[u8],
        out: &mut dyn Outlets,
    ) {
        if intake.route == Route::Store {
            self.census.note(body);
            self.store.put(body);
            self.count.store(self.store.count(), Ordering::Relaxed);
            if intake.keeps_alive && intake.minor >= 1 {
                out.stage(connection).extend_from_slice(CREATED);
                self.set_phase(connection, Phase::Head);
                return;
            }
        }
        self.scratch.clear();
        let answer = match intake.route {
            Route::Store => Answer { kind: "", ..Answer::plain(201, b"") },
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
            Route::BadQuery => Answer::plain(400, b"since and limit are whole numbers\n"),
            Route::Missing => Answer::plain(404, b"nothing is here\n"),
            Route::Allows(allow) => {
                Answer { allow, ..Answer::plain(405, b"the method does not fit the path\n") }
            }
        };
        let Intake { is_head, minor, keeps_alive, .. } = *intake;
        Answer { is_head, minor, keeps_alive, ..answer }.put(out.stage(connection));
        self.set_phase(connection, if keeps_alive { Phase::Head } else { Phase::Closing });
        if !keeps_alive {
            out.close(connection);
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

    /// Takes more of a chunked body; `None` if nothing could be taken.
    fn take_chunks(
        &mut self,
        connection: ConnectionId,
        (intake, mut chunked): (Intake, Chunked),
        input: &[u8],
        out: &mut dyn Outlets,
    ) -> Option<usize> {
        let body = &mut self.connections[connection.0 as usize].body;
        let body_bytes_max = self.rules.body_bytes_max;
        let mut is_too_long = false;
        let advance = chunked.advance(input, &mut |piece| {
            is_too_long |= (body.len() + piece.len()) as u64 > body_bytes_max;
            if !is_too_long {
                body.extend_from_slice(piece);
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
            let body = std::mem::take(&mut self.connections[connection.0 as usize].body);
            self.answer(connection, &intake, &body, out);
        } else {
            self.set_phase(connection, Phase::Chunked(intake, chunked));
        }
        (advance.taken > 0).then_some(advance.taken)
    }
}

fn awaited(intake: Intake) -> Phase {
    match intake.body {
        Body::Length(length) => Phase::Length(intake, length as usize),
        Body::Chunked => Phase::Chunked(intake, Chunked::START),
    }
}

impl Server for HttpServer {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outlets) {
        let index = connection.0 as usize;
        if index >= self.connections.len() {
            let unused = || Connection { phase: Phase::Closing, body: Vec::new() };
            self.connections.resize_with(index + 1, unused);
        }
        self.connections[index].phase = Phase::Head;
        self.census.note_connection();
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _now: Nanos,
        out: &mut dyn Outlets,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            let phase = self.connections.get(connection.0 as usize).map(|open| open.phase);
            match phase.unwrap_or(Phase::Closing) {
                Phase::Closing => return Ok(input.len()),
                Phase::Head if rest.is_empty() => return Ok(taken),
                Phase::Head => match self.take_head(connection, rest, out) {
                    0 => return Ok(taken),
                    head_bytes => taken += head_bytes,
                },
                Phase::Length(intake, length) => {
                    let Some(body) = rest.get(..length) else { return Ok(taken) };
                    self.answer(connection, &intake, body, out);
                    taken += length;
                }
                Phase::Chunked(intake, chunked) => {
                    match self.take_chunks(connection, (intake, chunked), rest, out) {
                        Some(bytes) => taken += bytes,
                        None => return Ok(taken),
                    }
                }
            }
        }
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outlets) {
        if let Some(connection) = self.connections.get_mut(connection.0 as usize) {
            *connection = Connection { phase: Phase::Closing, body: Vec::new() };
        }
    }

    fn report(&self) -> ServerReport {
        self.census.report()
    }
}

/// An answer to be written. There is no Date field: the server has no clock that tells the time
/// of day (RFC 9110, section 6.6.1).
struct Answer<'a> {
    status: u16,
    kind: &'static str,
    allow: &'static str,
    body: &'a [u8],
    is_head: bool,
    minor: u8,
    keeps_alive: bool,
}

impl<'a> Answer<'a> {
    fn plain(status: u16, body: &'a [u8]) -> Answer<'a> {
        let (kind, allow) = ("text/plain", "");
        Answer { status, kind, allow, body, is_head: false, minor: 1, keeps_alive: true }
    }

    fn json(body: &'a [u8]) -> Answer<'a> {
        Answer { kind: "application/json", ..Answer::plain(200, body) }
    }

    fn put(&self, out: &mut Vec<u8>) {
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

const CREATED: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
const TOO_LONG: Refusal = Refusal { status: 413, reason: "the body is longer than allowed" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Connection>() <= 160, "{}", size_of::<Connection>());
    }
}
