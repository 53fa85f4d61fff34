//! The reference server: stores messages, answers them, and notifies observers.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ConnectionId, Outboxes, Record, Server, ServerReport};

use super::codec::{self, Code, Kind, Message, Options, Token, code, number};
use super::hub::{self, Mailbox};
use super::incoming::{Incoming, Taken};
use super::intake::{self, Request, Route, Target};
use super::observers::{Observer, Observers};
use super::oscore::{Exchange, Refusal, Scratch};
use super::repeats::{Due, Key, Repeats};
use super::reply::Reply;
use super::rules::Rules;
use super::seen::{Known, Seen};
use crate::chance::Chance;
use crate::readings_core::{Found, Query};
use crate::server_counts::ServerCounts;

/// All peers of one shard.
pub(super) struct CoapServer {
    rules: Arc<Rules>,
    own: Arc<Mailbox>,
    peers: Vec<Peer>,
    observers: Observers,
    /// Separate responses and notifications that are not acknowledged.
    repeats: Repeats,
    /// The newest message of each list.
    newest: HashMap<u32, Vec<u8>>,
    /// The ETag of the last page of readings.
    etag: u32,
    /// Messages that are protected, and those whose protection is removed.
    plain: Vec<u8>,
    scratch: Scratch,
    census: ServerCounts,
}

/// State of one peer.
#[derive(Default)]
struct Peer {
    seen: Seen,
    /// The next message ID towards it.
    next_id: u16,
    incoming: Option<Box<Incoming>>,
    /// The last page of readings that it requested, for its further blocks and for duplicates.
    page: Option<Box<Sent>>,
}

/// Where a response or a notification goes.
struct Receiver<'e> {
    peer: ConnectionId,
    token: Token,
    exchange: Option<&'e Exchange>,
}

/// A page of readings.
struct Sent {
    query: Query,
    /// The request for its first block.
    request: (u16, Token),
    etag: u32,
    body: Vec<u8>,
}

impl CoapServer {
    pub(super) fn new(rules: Arc<Rules>, shard: u16) -> CoapServer {
        CoapServer {
            own: rules.hub.join(shard),
            peers: Vec::new(),
            observers: Observers::default(),
            repeats: Repeats::new(rules.parameters, Chance::new(SERVER_SEED, shard.into())),
            newest: HashMap::new(),
            etag: 0,
            plain: Vec::new(),
            scratch: Scratch::default(),
            census: ServerCounts::default(),
            rules,
        }
    }

    fn peer(&mut self, of: ConnectionId) -> &mut Peer {
        let index = of.0 as usize;
        if index >= self.peers.len() {
            self.peers.resize_with(index + 1, Peer::default);
        }
        &mut self.peers[index]
    }

    fn next_id(&mut self, of: ConnectionId) -> u16 {
        let peer = self.peer(of);
        peer.next_id = peer.next_id.wrapping_add(1);
        peer.next_id
    }

    fn take(
        &mut self,
        from: ConnectionId,
        message: &Message<'_>,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let key = Key { peer: from.0, id: message.id };
        match (message.kind, message.code) {
            (Kind::Acknowledgement, _) => {
                self.repeats.take(key);
                self.notify_next(from, message.id, now, out);
            }
            (Kind::Reset, _) => {
                self.repeats.take(key);
                let gone = self.observers.reject(from, message.id);
                self.rules.hub.went(&self.own, gone);
            }
            (Kind::Confirmable | Kind::NonConfirmable, code) if code.is_request() => {
                self.take_request(from, message, now, out);
            }
            // An empty confirmable message asks whether the server is there (section 4.3).
            (Kind::Confirmable, _) => put_empty(out, from, Kind::Reset, message.id),
            (Kind::NonConfirmable, _) => {}
        }
    }

    fn take_request(
        &mut self,
        from: ConnectionId,
        outer: &Message<'_>,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let lifetime = self.rules.parameters.exchange_lifetime();
        let known = self.peer(from).seen.known(outer.id, outer.token, now, lifetime);
        let mut scratch = std::mem::take(&mut self.scratch);
        match self.open(from, outer, known, &mut scratch) {
            Ok(request) => self.handle(from, &request, known, now, out),
            Err(refusal) => {
                self.census.note_dropped(refusal.cause());
                // Outside only what is not authenticated was read, and none of it is used.
                let request = Request::plain(Message { options: Options::default(), ..*outer });
                let reply = Reply::uncacheable(refusal.code(), refusal.words());
                self.respond(from, &request, &reply, now, out);
            }
        }
        self.scratch = scratch;
    }

    /// Removes the protection of a request, if the server demands one.
    fn open<'m>(
        &mut self,
        from: ConnectionId,
        outer: &Message<'m>,
        known: Option<Known>,
        scratch: &'m mut Scratch,
    ) -> Result<Request<'m>, Refusal> {
        let Some(contexts) = &self.rules.contexts else { return Ok(Request::plain(*outer)) };
        let observe = outer.options.first(number::OBSERVE).and_then(codec::read_unsigned);
        let is_end = observe.is_some_and(|observe| observe != REGISTER);
        let observer = self.observers.of_peer(from, outer.token).filter(|_| is_end);
        let registration = observer.and_then(|observer| observer.exchange.as_ref());
        let again = known.map(|known| known.partial_iv);
        let (message, exchange) = contexts.open(outer, again, registration, scratch)?;
        Ok(Request { message, exchange: Some(exchange) })
    }

    fn handle(
        &mut self,
        from: ConnectionId,
        request: &Request<'_>,
        known: Option<Known>,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let lifetime = self.rules.parameters.exchange_lifetime();
        let Message { id, token, .. } = request.message;
        let known = known.filter(|known| known.partial_iv == request.partial_iv());
        // Asking twice changes nothing, so copies are handled again (section 4.5); a protected one
        // is known all the same, or it would be a replay.
        let is_shown = request.code == code::GET;
        if let Some(known) = known.filter(|_| !is_shown) {
            return self.answer_again(from, request, known.code, out);
        }
        if is_shown && request.exchange.is_some() {
            let known = Known { code: code::EMPTY, partial_iv: request.partial_iv() };
            self.peer(from).seen.note(id, token, known, now, lifetime);
        }
        let reply = match self.rules.store.route(request) {
            Route::Store(target) => self.store(from, request, target, now, out),
            Route::Poll(query) => return self.page(from, request, query, now, out),
            Route::Show(list, observe) => {
                return self.show(from, request, (list, observe), now, out);
            }
            Route::Discover => Reply::core(&self.rules.store),
            Route::Refused(code) => Reply::of(code),
            Route::BadQuery(why) => Reply::said(code::BAD_REQUEST, why),
        };
        let known = Known { code: reply.code, partial_iv: request.partial_iv() };
        self.peer(from).seen.note(id, token, known, now, lifetime);
        self.respond(from, request, &reply, now, out);
    }

    /// Answers a duplicate as the first one was answered.
    fn answer_again(
        &mut self,
        from: ConnectionId,
        request: &Request<'_>,
        answer: Code,
        out: &mut dyn Outboxes,
    ) {
        if request.code != code::GET && request.options.first(number::BLOCK1).is_none() {
            self.census.note(request.payload);
        }
        if request.kind != Kind::Confirmable {
            return;
        }
        if self.rules.is_separate {
            return put_empty(out, from, Kind::Acknowledgement, request.id);
        }
        let reply = Reply::of(answer).with_block1(request.options.first(number::BLOCK1));
        self.acknowledge_with(from, request, &reply, out);
    }

    /// Takes a message, or a block of one.
    fn store<'r>(
        &mut self,
        from: ConnectionId,
        request: &Request<'r>,
        target: Target,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Reply<'r> {
        let block1 = request.options.first(number::BLOCK1);
        let block = match intake::block(request, number::BLOCK1) {
            Ok(block) => block,
            Err(code) => return Reply::of(code),
        };
        let body_bytes_max = self.rules.body_bytes_max;
        let answered = |code| Reply::of(code).with_block1(block1);
        let Some(block) = block else {
            if request.payload.len() > body_bytes_max {
                return Reply::of(code::TOO_LARGE);
            }
            self.keep(request.kind, target, request.payload, now, out);
            return Reply::of(code::CHANGED);
        };
        let incoming = &mut self.peer(from).incoming;
        match Incoming::take(incoming, target, block, request.payload, body_bytes_max) {
            Taken::More => answered(code::CONTINUE),
            Taken::Whole(body) => {
                self.keep(request.kind, target, &body, now, out);
                answered(code::CHANGED)
            }
            Taken::Refused(code) => answered(code),
        }
    }

    fn keep(
        &mut self,
        kind: Kind,
        target: Target,
        body: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let (Target::State(list) | Target::Readings(list)) = target;
        // What is not confirmed need not be stored.
        if kind == Kind::Confirmable {
            out.store(Record::Message { name: &list.to_le_bytes(), body });
        }
        self.census.note(body);
        if target == Target::Readings(list) {
            // No request waits for readings.
            self.rules.readings.put(list, body);
            return;
        }
        let newest = self.newest.entry(list).or_default();
        newest.clear();
        newest.extend_from_slice(body);
        self.notify_all(list, body, now, out);
        self.rules.hub.post(&self.own, self.observers.len(), list, body, out);
    }

    /// Answers with the newest message, and registers or removes an observer.
    fn show(
        &mut self,
        from: ConnectionId,
        request: &Request<'_>,
        (list, observe): (u32, Option<u32>),
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let mut sequence = None;
        match observe {
            Some(REGISTER) => {
                let observer = Observer {
                    peer: from,
                    token: request.token,
                    list,
                    sequence: 1,
                    in_progress: 0,
                    waiting: VecDeque::new(),
                    exchange: request.exchange.clone(),
                };
                if self.observers.register(observer) {
                    self.rules.hub.came(&self.own);
                }
                sequence = Some(1);
            }
            Some(_) => {
                let gone = self.observers.remove(from, request.token);
                self.rules.hub.went(&self.own, gone);
            }
            None => {}
        }
        let newest = self.newest.entry(list).or_default();
        let newest = std::mem::take(newest);
        let reply = match intake::block(request, number::BLOCK2) {
            Ok(block) => Reply::content(&newest, block).with_observe(sequence),
            Err(code) => Reply::of(code),
        };
        self.respond(from, request, &reply, now, out);
        self.newest.insert(list, newest);
    }

    /// Answers with readings. Further blocks and duplicates get the page as it was.
    fn page(
        &mut self,
        from: ConnectionId,
        request: &Request<'_>,
        query: Query,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let asked = match intake::block(request, number::BLOCK2) {
            Ok(asked) => asked,
            Err(code) => return self.respond(from, request, &Reply::of(code), now, out),
        };
        let page = self.peer(from).page.take().filter(|page| page.query == query);
        let is_later = asked.is_some_and(|block| block.index > 0);
        let is_known = |page: &Sent| is_later || page.request == (request.id, request.token);
        let page = match page.filter(|page| is_known(page)) {
            Some(page) => page,
            None if is_later => {
                let why = "the first block comes first";
                let reply = Reply::said(code::REQUEST_INCOMPLETE, why);
                return self.respond(from, request, &reply, now, out);
            }
            None => {
                let mut body = Vec::new();
                match self.rules.readings.page(&query, None, &mut body) {
                    Found::Ahead => {
                        let reply = Reply::said(code::BAD_REQUEST, "since is beyond the end");
                        return self.respond(from, request, &reply, now, out);
                    }
                    Found::Readings { count, missed } => {
                        self.census.note_forwarded(count);
                        self.census.note_dropped_many(OVERFLOW, missed);
                    }
                }
                self.etag = self.etag.wrapping_add(1);
                let request = (request.id, request.token);
                Box::new(Sent { query, request, etag: self.etag, body })
            }
        };
        self.respond(from, request, &Reply::page(&page.body, page.etag, asked), now, out);
        self.peer(from).page = Some(page);
    }

    /// Sends a response in the way that the request demands (section 5.2).
    fn respond(
        &mut self,
        to: ConnectionId,
        request: &Request<'_>,
        reply: &Reply<'_>,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let Message { kind, id, token, .. } = request.message;
        let is_confirmable = kind == Kind::Confirmable;
        if intake::is_unwanted(request, reply.code) {
            if is_confirmable {
                put_empty(out, to, Kind::Acknowledgement, id);
            }
            return;
        }
        if is_confirmable && !self.rules.is_separate {
            return self.acknowledge_with(to, request, reply, out);
        }
        if is_confirmable {
            put_empty(out, to, Kind::Acknowledgement, id);
        }
        let exchange = request.exchange.as_ref();
        self.send(&Receiver { peer: to, token, exchange }, kind, reply, now, out);
    }

    /// Sends a response in the acknowledgement of its request.
    fn acknowledge_with(
        &mut self,
        to: ConnectionId,
        request: &Request<'_>,
        reply: &Reply<'_>,
        out: &mut dyn Outboxes,
    ) {
        let staged = out.stage(to);
        let before = staged.len();
        reply.put(staged, Kind::Acknowledgement, request.id, request.token);
        if let Some(exchange) = &request.exchange {
            exchange.protect(staged, before, &mut self.plain);
        }
        out.frame(to);
    }

    /// Sends a message with an ID of its own, and repeats it if it is confirmable.
    fn send(
        &mut self,
        to: &Receiver<'_>,
        kind: Kind,
        reply: &Reply<'_>,
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> u16 {
        let Receiver { peer, token, exchange } = *to;
        let id = self.next_id(peer);
        let staged = out.stage(peer);
        let before = staged.len();
        reply.put(staged, kind, id, token);
        if let Some(exchange) = exchange {
            exchange.protect(staged, before, &mut self.plain);
        }
        if kind == Kind::Confirmable {
            self.repeats.hold(Key { peer: peer.0, id }, token, &staged[before..], now);
        }
        out.frame(peer);
        id
    }

    /// Notifies the observers of a list on this shard.
    fn notify_all(&mut self, list: u32, body: &[u8], now: Nanos, out: &mut dyn Outboxes) {
        if self.observers.len() == 0 {
            return;
        }
        let Rules { parameters, notifies_confirmable, notify_queue, .. } = &*self.rules;
        let mut ready = Vec::new();
        for observer in self.observers.of(list) {
            let is_free = observer.in_progress < parameters.nstart;
            if is_free || !notifies_confirmable {
                ready.push((observer.peer, observer.token));
                continue;
            }
            // The oldest state makes room for the newest (RFC 7641, section 4.5.2).
            if observer.waiting.len() >= *notify_queue {
                observer.waiting.pop_front();
                self.census.note_dropped(SUPERSEDED);
            }
            observer.waiting.push_back(body.to_vec());
        }
        for (peer, token) in ready {
            self.notify(peer, token, body, now, out);
        }
    }

    fn notify(
        &mut self,
        peer: ConnectionId,
        token: Token,
        body: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) {
        let Some(observer) = self.observers.of_peer(peer, token) else { return };
        observer.sequence = (observer.sequence + 1) & SEQUENCE_MAX;
        let (sequence, is_confirmed) = (observer.sequence, self.rules.notifies_confirmable);
        observer.in_progress += u32::from(is_confirmed);
        let exchange = observer.exchange.clone();
        let kind = if is_confirmed { Kind::Confirmable } else { Kind::NonConfirmable };
        let reply = Reply::content(body, None).with_observe(Some(sequence));
        let to = Receiver { peer, token, exchange: exchange.as_ref() };
        let id = self.send(&to, kind, &reply, now, out);
        self.observers.note_sent(peer, id, token, is_confirmed);
        self.census.note_forwarded(1);
    }

    /// A notification was acknowledged: what waits for its observer goes next.
    fn notify_next(&mut self, peer: ConnectionId, id: u16, now: Nanos, out: &mut dyn Outboxes) {
        let Some(observer) = self.observers.answered(peer, id) else { return };
        let (token, waiting) = (observer.token, observer.waiting.pop_front());
        if let Some(body) = waiting {
            self.notify(peer, token, &body, now, out);
        }
    }
}

impl Server for CoapServer {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        *self.peer(connection) = Peer::default();
        self.census.note_connection();
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        match codec::parse(input) {
            Ok(message) => self.take(connection, &message, now, out),
            Err(_) => {
                self.census.note_dropped(MALFORMED);
                if let Some((Kind::Confirmable, id)) = codec::peek(input) {
                    put_empty(out, connection, Kind::Reset, id);
                }
            }
        }
        // Anybody may send anything to a socket: no datagram ends what others began.
        Ok(input.len())
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        *self.peer(connection) = Peer::default();
        self.repeats.forget(connection.0);
        let gone = self.observers.forget(connection);
        self.rules.hub.went(&self.own, gone);
    }

    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        while let Some(due) = self.repeats.due(now) {
            match due {
                Due::Again { key, message, .. } => {
                    let to = ConnectionId(key.peer);
                    out.stage(to).extend_from_slice(message);
                    out.frame(to);
                }
                // A client that does not acknowledge is no longer interested (RFC 7641, 4.5).
                Due::GivenUp(key, token) => {
                    let peer = ConnectionId(key.peer);
                    if self.observers.answered(peer, key.id).is_some() {
                        let gone = self.observers.remove(peer, token);
                        self.rules.hub.went(&self.own, gone);
                    }
                }
            }
        }
        self.repeats.next()
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.repeats.next()
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        let posts = self.own.take();
        let mut rest = &posts[..];
        while let Some((list, body, after)) = hub::split(rest) {
            self.notify_all(list, body, now, out);
            rest = after;
        }
    }

    fn report(&self) -> ServerReport {
        self.census.report()
    }
}

fn put_empty(out: &mut dyn Outboxes, to: ConnectionId, kind: Kind, id: u16) {
    codec::put_empty(out.stage(to), kind, id);
    out.frame(to);
}

/// Observe with this value registers (RFC 7641, section 2); other values end it.
const REGISTER: u32 = 0;

/// Notifications are numbered with 24 bits (RFC 7641, section 4.4).
const SEQUENCE_MAX: u32 = (1 << 24) - 1;

/// Cause of states that an observer did not get because a newer one replaced them.
const SUPERSEDED: &str = "superseded";

/// Why consumers missed readings that they asked for: there were newer ones than the list holds.
const OVERFLOW: &str = "readings_overflow";

/// Cause of datagrams that are not messages of CoAP.
const MALFORMED: &str = "malformed";

/// The server does not know the trial: its timers have a seed of their own.
const SERVER_SEED: u64 = 0x7252;
