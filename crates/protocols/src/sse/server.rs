//! The reference server: takes messages by POST, and hands each as an event to the subscribers of
//! its channel, on this shard and on the others.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::protocol::Invalid;
use weigh_model::server::{ConnectionId, Outboxes, Record, Server, ServerReport};
use weigh_model::trial::Settings;

use super::codec;
use super::settings;
use crate::http1_core::chunked::Chunked;
use crate::http1_core::framing::{Memory, decimal};
use crate::http1_core::head::{self, Body, Refusal, refusal};
use crate::http1_core::reply::{Answer, put_refusal};
use crate::push_core::hub::Hub;
use crate::push_core::slow::Slow;
use crate::push_core::subscribers::{Form, Subscribers, Turn, put};
use crate::push_core::trial::channel_below;
use crate::server_counts::ServerCounts;

/// Settings of all shards of one server.
pub(super) struct Rules {
    path: String,
    publish_path: String,
    event: String,
    event_bytes_max: usize,
    is_chunked: bool,
    history: usize,
    retry: Nanos,
    keep_alive: Nanos,
    slow: Slow,
}

/// All connections of one shard.
pub(super) struct SseServer {
    rules: Arc<Rules>,
    peers: Vec<Peer>,
    subscribers: Subscribers,
    counts: ServerCounts,
    /// All producers of a trial send the same head, so one memory serves the whole shard.
    memory: Memory<Request>,
    /// When idle subscribers get a comment; `None` before the first of them.
    next_comment: Option<Nanos>,
}

struct Peer {
    stage: Stage,
    /// A chunked body so far.
    body: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Stage {
    Head,
    Length(Request, usize),
    Chunked(Request, Chunked),
    /// It gets the events of this channel.
    Stream(u32),
    Closed,
}

/// A request without its body.
#[derive(Clone, Copy)]
struct Request {
    route: Route,
    body: Body,
    minor: u8,
    keeps_alive: bool,
    expects: bool,
    /// Number of the event that a subscriber had last.
    last_id: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    Publish(u32),
    Subscribe(u32),
    Missing,
    Allows(&'static str),
}

impl Rules {
    /// Reads the settings.
    ///
    /// # Errors
    /// A path or a type of event that is none.
    pub(super) fn read(given: &Settings) -> Result<Rules, Invalid> {
        let path = |key: &str| {
            let path = given.text(key).split('?').next().unwrap_or_default();
            if path.is_empty() || path.starts_with('/') {
                return Ok(path.to_owned());
            }
            let (place, problem) = (format!("sse.{key}"), format!("{path:?} is not a path"));
            Err(Invalid::new(place, problem, "type one that starts with /"))
        };
        let (own, publish_path) = (path("path")?, path("publish_path")?);
        let own = if own.is_empty() { settings::PATH.to_owned() } else { own };
        let event = given.text("server_event").to_owned();
        if event.contains(['\r', '\n']) {
            return Err(Invalid::new(
                "sse.server_event",
                format!("{event:?} has a line end"),
                "type one word",
            ));
        }
        Ok(Rules {
            publish_path: if publish_path.is_empty() { own.clone() } else { publish_path },
            path: own,
            event,
            event_bytes_max: given.integer("event_bytes_max").max(64) as usize,
            is_chunked: given.text("server_framing") != "close",
            history: given.integer("server_history") as usize,
            retry: given.duration("server_retry"),
            keep_alive: given.duration("server_keep_alive"),
            slow: Slow::read(given),
        })
    }

    /// Events that each channel keeps.
    pub(super) fn history(&self) -> usize {
        self.history
    }

    /// Finds what a request asks for.
    fn route(&self, method: &str, target: &str) -> Result<Route, Refusal> {
        let (place, _) = head::place_and_query(target)?;
        let publish = channel_below(place, &self.publish_path);
        let subscribe = channel_below(place, &self.path);
        Ok(match (method, publish, subscribe) {
            ("POST", Some(channel), _) => Route::Publish(channel),
            ("GET", _, Some(channel)) => Route::Subscribe(channel),
            (_, Some(_), Some(_)) => Route::Allows("GET, POST"),
            (_, Some(_), None) => Route::Allows("POST"),
            (_, None, Some(_)) => Route::Allows("GET"),
            (_, None, None) => Route::Missing,
        })
    }
}

impl SseServer {
    pub(super) fn new(rules: Arc<Rules>, hub: Arc<Hub>, shard: u16) -> SseServer {
        SseServer {
            subscribers: Subscribers::new(hub, shard, rules.slow),
            rules,
            peers: Vec::new(),
            counts: ServerCounts::default(),
            memory: Memory::new(Box::default()),
            next_comment: None,
        }
    }

    fn stage(&self, of: ConnectionId) -> Stage {
        self.peers.get(of.0 as usize).map_or(Stage::Closed, |peer| peer.stage)
    }

    fn set_stage(&mut self, of: ConnectionId, stage: Stage) {
        let Some(peer) = self.peers.get_mut(of.0 as usize) else { return };
        let before = std::mem::replace(&mut peer.stage, stage);
        if let (Stage::Stream(channel), Stage::Closed) = (before, stage) {
            self.subscribers.remove(of, channel);
        }
    }

    /// Takes the head at the start of `input`; 0 if it is not all there.
    fn take_head(
        &mut self,
        of: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> usize {
        let known = self.memory.recall(input);
        let (request, head_bytes) =
            match known.map_or_else(|| self.read_head(input), |it| Ok(Some(it))) {
                Ok(Some(found)) => found,
                Ok(None) => return 0,
                Err(refusal) => {
                    self.refuse(of, refusal, out);
                    return input.len();
                }
            };
        if known.is_none() && matches!(request.route, Route::Publish(_)) && !request.expects {
            self.memory.keep(&input[..head_bytes], request);
        }
        let has_body = request.body != Body::Length(0);
        if request.expects && has_body && matches!(request.route, Route::Publish(_)) {
            out.stage(of).extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        match request.body {
            Body::Length(0) => self.answer(of, &request, b"", now, out),
            Body::Length(length) => {
                self.set_stage(of, Stage::Length(request, length as usize));
            }
            Body::Chunked => self.set_stage(of, Stage::Chunked(request, Chunked::START)),
        }
        head_bytes
    }

    fn read_head(&self, input: &[u8]) -> Result<Option<(Request, usize)>, Refusal> {
        let mut last_id = None;
        let read = head::read(input, &mut |name, value| {
            if name.eq_ignore_ascii_case("last-event-id") {
                last_id = decimal(value);
            }
        })?;
        let Some((head, head_bytes)) = read else { return Ok(None) };
        let route = self.rules.route(head.method, head.target)?;
        let body = head.body(matches!(route, Route::Publish(_)))?;
        if matches!(body, Body::Length(length) if length > self.rules.event_bytes_max as u64) {
            return Err(TOO_LONG);
        }
        let (minor, expects) = (head.minor, head.expects);
        let keeps_alive = head.framing.keeps_alive(minor);
        Ok(Some((Request { route, body, minor, keeps_alive, expects, last_id }, head_bytes)))
    }

    fn refuse(&mut self, of: ConnectionId, refusal: Refusal, out: &mut dyn Outboxes) {
        put_refusal(refusal, out.stage(of));
        self.set_stage(of, Stage::Closed);
        out.close(of);
    }

    /// Executes a request that is whole.
    fn answer(
        &mut self,
        of: ConnectionId,
        request: &Request,
        body: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let answer = match request.route {
            Route::Publish(channel) if codec::can_carry(body) => {
                self.publish(channel, body, out);
                Answer { kind: "", ..Answer::plain(201, b"") }
            }
            Route::Publish(_) => Answer::plain(400, NOT_TEXT),
            Route::Subscribe(channel) => return self.subscribe(of, request, channel, now, out),
            Route::Missing => Answer::plain(404, b"not found\n"),
            Route::Allows(allow) => {
                Answer { allow, ..Answer::plain(405, b"the path does not support this method\n") }
            }
        };
        let Request { minor, keeps_alive, .. } = *request;
        Answer { minor, keeps_alive, ..answer }.put(out.stage(of));
        self.set_stage(of, if keeps_alive { Stage::Head } else { Stage::Closed });
        if !keeps_alive {
            out.close(of);
        }
    }

    fn publish(&mut self, channel: u32, body: &[u8], out: &mut dyn Outboxes) {
        self.counts.note(body);
        out.store(Record::Message { name: b"", body });
        let rules = Arc::clone(&self.rules);
        let mut turn = Turn { out, counts: &mut self.counts };
        self.subscribers.publish(channel, &mut turn, |id, bytes| {
            let id = (rules.history > 0).then_some(id);
            codec::put_event(bytes, id, &rules.event, body);
        });
    }

    fn subscribe(
        &mut self,
        of: ConnectionId,
        request: &Request,
        channel: u32,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let is_chunked = self.rules.is_chunked && request.minor >= 1;
        let (form, framing) = match is_chunked {
            true => (Form::Chunk, "Transfer-Encoding: chunked"),
            false => (Form::Plain, "Connection: close"),
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nCache-Control: no-store\r\n{framing}\r\n\r\n",
            codec::KIND
        );
        out.stage(of).extend_from_slice(head.as_bytes());
        if self.rules.retry.0 > 0 {
            let mut retry = Vec::new();
            codec::put_retry(&mut retry, self.rules.retry.0 / 1_000_000);
            put(form, &retry, out.stage(of));
        }
        let mut turn = Turn { out, counts: &mut self.counts };
        self.subscribers.add(of, channel, form, request.last_id, &mut turn);
        self.set_stage(of, Stage::Stream(channel));
        if self.rules.keep_alive.0 > 0 {
            self.next_comment.get_or_insert(now + self.rules.keep_alive);
        }
    }

    /// Takes more of a chunked body; `None` if nothing could be taken.
    fn take_chunks(
        &mut self,
        of: ConnectionId,
        (request, mut chunked): (Request, Chunked),
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Option<usize> {
        let bytes_max = self.rules.event_bytes_max;
        let body = &mut self.peers.get_mut(of.0 as usize)?.body;
        let mut is_too_long = false;
        let advance = chunked.advance(input, &mut |piece| {
            is_too_long |= body.len() + piece.len() > bytes_max;
            if !is_too_long {
                body.extend_from_slice(piece);
            }
        });
        let advance = match advance {
            _ if is_too_long => {
                self.refuse(of, TOO_LONG, out);
                return Some(input.len());
            }
            Ok(advance) => advance,
            Err(_) => {
                self.refuse(of, refusal(400, "the chunked body is malformed"), out);
                return Some(input.len());
            }
        };
        if advance.is_whole {
            let body = std::mem::take(body);
            self.answer(of, &request, &body, now, out);
        } else {
            self.set_stage(of, Stage::Chunked(request, chunked));
        }
        (advance.taken > 0).then_some(advance.taken)
    }
}

impl Server for SseServer {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        let index = connection.0 as usize;
        if index >= self.peers.len() {
            self.peers.resize_with(index + 1, || Peer { stage: Stage::Closed, body: Vec::new() });
        }
        self.peers[index] = Peer { stage: Stage::Head, body: Vec::new() };
        self.counts.note_connection();
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
            match self.stage(connection) {
                // A subscriber has nothing more to say.
                Stage::Closed | Stage::Stream(_) => return Ok(input.len()),
                Stage::Head if rest.is_empty() => return Ok(taken),
                Stage::Head => match self.take_head(connection, rest, now, out) {
                    0 => return Ok(taken),
                    head_bytes => taken += head_bytes,
                },
                Stage::Length(request, length) => {
                    let Some(body) = rest.get(..length) else { return Ok(taken) };
                    self.answer(connection, &request, body, now, out);
                    taken += length;
                }
                Stage::Chunked(request, chunked) => {
                    match self.take_chunks(connection, (request, chunked), rest, now, out) {
                        Some(bytes) => taken += bytes,
                        None => return Ok(taken),
                    }
                }
            }
        }
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        self.set_stage(connection, Stage::Closed);
        if let Some(peer) = self.peers.get_mut(connection.0 as usize) {
            peer.body = Vec::new();
        }
    }

    /// Idle subscribers get a comment (WHATWG HTML, section 9.2.7).
    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        if self.next_comment.is_some_and(|due| due <= now) {
            self.subscribers.keep_alive(codec::COMMENT, out);
            let next = now + self.rules.keep_alive;
            self.next_comment = self.subscribers.are_there().then_some(next);
        }
        self.next_comment
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.next_comment
    }

    fn notified(&mut self, _now: Nanos, out: &mut dyn Outboxes) {
        let mut turn = Turn { out, counts: &mut self.counts };
        self.subscribers.deliver_mail(&mut turn);
    }

    fn report(&self) -> ServerReport {
        let disconnects = self.subscribers.disconnects();
        ServerReport { disconnects, ..self.counts.report() }
    }
}

const NOT_TEXT: &[u8] = b"an event is UTF-8 without carriage returns\n";

const TOO_LONG: Refusal = Refusal { status: 413, reason: "the body is longer than allowed" };
