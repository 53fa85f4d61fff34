//! The reference server: the connections of one shard, and the handling of each line.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};

use super::api::{ACK, API};
use super::codec::info::{Connect, Info, from_json};
use super::codec::{self, Flaw, FromClient, LINE_BYTES_MAX, Limits, Publish, Subscribe, subject};
use super::consumer;
use super::jetstream::JetStream;
use super::router::{Router, Subscription, is_control};
use super::settings::{Login, Rules};
use crate::broker_core::{Peers, Place, Turn};
use crate::server_counts::ServerCounts;

/// State shared by the shards of one server.
pub(super) struct Hub {
    rules: Rules,
    state: Mutex<State>,
    /// When streams and consumers have to be looked at, in nanoseconds.
    due: AtomicU64,
}

struct State {
    router: Router,
    jetstream: JetStream,
    census: ServerCounts,
}

/// One shard of the server.
pub(super) struct NatsServer {
    hub: Arc<Hub>,
    info: Vec<u8>,
    peers: Peers<Peer>,
    /// When to PING a connection, by number and serial.
    pings: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
}

#[derive(Debug)]
struct Peer {
    serial: u32,
    stage: Stage,
    is_verbose: bool,
    is_pedantic: bool,
    has_headers: bool,
    wants_no_responders: bool,
    wants_echo: bool,
    /// It was seen after the time for its greeting.
    has_greeted: bool,
    /// PINGs that were not answered.
    pinged: u8,
    subscriptions: Vec<(Box<[u8]>, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No CONNECT yet.
    Greeting,
    Connected,
    /// The server closes it; later input is ignored.
    Ending,
}

impl Hub {
    pub(super) fn new(rules: Rules) -> Hub {
        let router = Router::new(rules.pending_bytes_max);
        let (jetstream, census) = (JetStream::new(), ServerCounts::default());
        let state = Mutex::new(State { router, jetstream, census });
        Hub { rules, state, due: AtomicU64::new(u64::MAX) }
    }
}

impl NatsServer {
    pub(super) fn new(hub: Arc<Hub>, shard: u16) -> NatsServer {
        let rules = &hub.rules;
        let info = Info {
            server_id: "WEIGHBRIDGE".to_owned(),
            server_name: "weigh".to_owned(),
            version: VERSION.to_owned(),
            proto: 1,
            host: "0.0.0.0".to_owned(),
            port: 4222,
            headers: true,
            max_payload: rules.payload_bytes_max as u64,
            jetstream: true,
            auth_required: rules.login != Login::Nothing,
            tls_required: rules.is_secure,
            ..Info::default()
        };
        let mut line = Vec::new();
        codec::put_line(&mut line, "INFO", &serde_json::to_vec(&info).unwrap_or_default());
        NatsServer { hub, info: line, peers: Peers::new(shard), pings: BinaryHeap::new() }
    }

    fn peer(&mut self, id: ConnectionId) -> Option<&mut Peer> {
        self.peers.get(id)
    }

    fn take_all(
        &mut self,
        id: ConnectionId,
        input: &[u8],
        state: &mut State,
        turn: &mut Turn<'_>,
    ) -> Result<usize, Fault> {
        let limits = Limits {
            line_bytes_max: LINE_BYTES_MAX,
            payload_bytes_max: self.hub.rules.payload_bytes_max,
        };
        let mut used = 0;
        loop {
            let stage = self.peer(id).map_or(Stage::Ending, |peer| peer.stage);
            if stage == Stage::Ending {
                return Ok(input.len());
            }
            match codec::read_client(&input[used..], &limits) {
                Ok(None) => return Ok(used),
                Ok(Some((line, bytes))) => {
                    used += bytes;
                    self.take(id, line, state, turn)?;
                }
                Err(flaw) => return Err(self.give_up(id, flaw, turn)),
            }
        }
    }

    /// Parts with a client that broke the protocol: the engine closes.
    fn give_up(&mut self, id: ConnectionId, flaw: Flaw, turn: &mut Turn<'_>) -> Fault {
        codec::put_error(turn.out.stage(id), flaw.error());
        let was = self.peer(id).map(|peer| std::mem::replace(&mut peer.stage, Stage::Ending));
        match (was, flaw) {
            (Some(Stage::Greeting), Flaw::UnknownOperation) => {
                Fault::OtherProtocol("the first line is none of NATS".to_owned())
            }
            _ => flaw.into(),
        }
    }

    fn take(
        &mut self,
        id: ConnectionId,
        line: FromClient<'_>,
        state: &mut State,
        turn: &mut Turn<'_>,
    ) -> Result<(), Fault> {
        let Some(peer) = self.peers.get(id) else { return Ok(()) };
        if peer.stage == Stage::Greeting
            && self.hub.rules.login != Login::Nothing
            && !matches!(line, FromClient::Connect(_))
        {
            return self.refuse(id, "Authorization Violation", turn);
        }
        let owner = Place { shard: turn.shard, connection: id, serial: peer.serial };
        match line {
            FromClient::Connect(json) => return self.connect(id, json, turn),
            FromClient::Publish(publish) => peer.publish(owner, &publish, state, turn),
            FromClient::Subscribe(subscribe) => peer.subscribe(owner, &subscribe, state, turn),
            FromClient::Unsubscribe(sid, after) => {
                peer.unsubscribe(owner, sid, after, state);
                peer.confirm(id, turn);
            }
            FromClient::Ping => turn.out.stage(id).extend_from_slice(codec::PONG),
            FromClient::Pong => peer.pinged = 0,
        }
        Ok(())
    }

    fn connect(&mut self, id: ConnectionId, json: &[u8], turn: &mut Turn<'_>) -> Result<(), Fault> {
        let Ok(connect) = from_json::<Connect>(json) else {
            return self.refuse(id, "Parser Error", turn);
        };
        let is_right = match &self.hub.rules.login {
            Login::Nothing => true,
            Login::Token(token) => connect.auth_token.as_ref() == Some(token),
            Login::User(user, password) => {
                connect.user.as_ref() == Some(user)
                    && connect.pass.as_deref().unwrap_or_default() == password
            }
        };
        if !is_right {
            return self.refuse(id, "Authorization Violation", turn);
        }
        if connect.no_responders && !connect.headers {
            return self.refuse(id, "No Responders Requires Headers Support", turn);
        }
        if let Some(peer) = self.peer(id) {
            peer.stage = Stage::Connected;
            peer.is_verbose = connect.verbose;
            peer.is_pedantic = connect.pedantic;
            peer.has_headers = connect.headers;
            peer.wants_no_responders = connect.no_responders;
            peer.wants_echo = connect.echo;
            peer.confirm(id, turn);
        }
        Ok(())
    }

    /// Closes a connection with a reason.
    fn refuse(&mut self, id: ConnectionId, why: &str, turn: &mut Turn<'_>) -> Result<(), Fault> {
        codec::put_error(turn.out.stage(id), why);
        turn.out.close(id);
        if let Some(peer) = self.peer(id) {
            peer.stage = Stage::Ending;
        }
        Ok(())
    }

    /// Parts with consumers that do not read, and notes when to look at the streams again.
    fn settle(&mut self, state: &mut State, turn: &mut Turn<'_>) {
        while let Some(slow) = state.router.next_slow() {
            let id = slow.connection;
            let Some(peer) = self.peer(id) else { continue };
            if peer.serial != slow.serial || peer.stage == Stage::Ending {
                continue;
            }
            peer.stage = Stage::Ending;
            peer.leave(&mut state.router);
            state.router.counts.disconnects += 1;
            codec::put_error(turn.out.stage(id), "Slow Consumer");
            turn.out.abort(id);
        }
        self.hub.due.store(state.jetstream.due.0, Ordering::Release);
    }

    /// Sends PINGs, ends connections that answer none, and those that never said CONNECT.
    fn ping_silent(&mut self, turn: &mut Turn<'_>) {
        let interval = Nanos(self.hub.rules.ping_ns);
        while let Some(&Reverse((due, number, serial))) = self.pings.peek() {
            if due > turn.now {
                return;
            }
            self.pings.pop();
            let id = ConnectionId(number);
            let Some(peer) = self.peer(id) else { continue };
            if peer.serial != serial || peer.stage == Stage::Ending {
                continue;
            }
            let why = match peer.stage {
                Stage::Greeting => Some("Authentication Timeout"),
                _ if peer.pinged >= PINGS_MAX => Some("Stale Connection"),
                _ => None,
            };
            if let Some(why) = why {
                peer.stage = Stage::Ending;
                codec::put_error(turn.out.stage(id), why);
                turn.out.close(id);
                continue;
            }
            if std::mem::replace(&mut peer.has_greeted, true) {
                peer.pinged += 1;
                turn.out.stage(id).extend_from_slice(codec::PING);
            }
            if interval.0 > 0 {
                self.pings.push(Reverse((turn.now + interval, number, serial)));
            }
        }
    }
}

impl Peer {
    fn confirm(&self, id: ConnectionId, turn: &mut Turn<'_>) {
        if self.is_verbose {
            turn.out.stage(id).extend_from_slice(codec::OKAY);
        }
    }

    fn publish(
        &mut self,
        owner: Place,
        publish: &Publish<'_>,
        state: &mut State,
        turn: &mut Turn<'_>,
    ) {
        let id = owner.connection;
        let is_wrong = !publish.headers.is_empty() && !codec::headers::is_block(publish.headers);
        if is_wrong || (self.is_pedantic && !subject::is_literal(publish.subject)) {
            codec::put_error(turn.out.stage(id), "Invalid Publish Subject");
            return;
        }
        // As in nats-server, it says that the line was read, and nothing of what becomes of it.
        self.confirm(id, turn);
        let State { router, jetstream, census } = state;
        if publish.subject.starts_with(API.as_bytes()) {
            return jetstream.request(publish, router, turn);
        }
        if publish.subject.starts_with(ACK.as_bytes()) {
            return jetstream.acknowledged(publish, router, turn);
        }
        if !is_control(publish.subject) {
            census.note(publish.body);
        }
        let except = (!self.wants_echo).then_some(owner);
        let reached = router.send(publish.subject, publish, except, turn);
        let is_kept = !is_control(publish.subject) && jetstream.capture(publish, router, turn);
        if reached == 0 && !is_kept && self.wants_no_responders && !publish.reply.is_empty() {
            consumer::answer(publish.reply, (503, ""), &[], router, turn);
        }
    }

    fn subscribe(
        &mut self,
        owner: Place,
        subscribe: &Subscribe<'_>,
        state: &mut State,
        turn: &mut Turn<'_>,
    ) {
        if !subject::is_valid(subscribe.subject) {
            codec::put_error(turn.out.stage(owner.connection), "Invalid Subject");
            return;
        }
        self.unsubscribe(owner, subscribe.sid, None, state);
        let id = state.router.subscribe(Subscription {
            owner,
            sid: subscribe.sid.into(),
            subject: subscribe.subject.into(),
            queue: subscribe.queue.into(),
            has_headers: self.has_headers,
            left: None,
            delivered: 0,
        });
        self.subscriptions.push((subscribe.sid.into(), id));
        self.confirm(owner.connection, turn);
        state.jetstream.subscribed(subscribe.subject, &mut state.router, turn);
    }

    fn unsubscribe(&mut self, owner: Place, sid: &[u8], after: Option<u64>, state: &mut State) {
        // Some may have ended by themselves, and their numbers be used again.
        let router = &mut state.router;
        self.subscriptions.retain(|(known, id)| {
            if **known != *sid {
                return true;
            }
            if router.is(*id, owner, sid) {
                router.unsubscribe(*id, after);
            }
            after.is_some()
        });
    }

    /// Ends its subscriptions.
    fn leave(&mut self, router: &mut Router) {
        for (_, id) in self.subscriptions.drain(..) {
            router.unsubscribe(id, None);
        }
    }
}

impl Server for NatsServer {
    fn accepted(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        let place = self.peers.accept(connection, |place| Peer {
            serial: place.serial,
            stage: Stage::Greeting,
            is_verbose: true,
            is_pedantic: false,
            has_headers: false,
            wants_no_responders: false,
            wants_echo: true,
            has_greeted: false,
            pinged: 0,
            subscriptions: Vec::new(),
        });
        self.pings.push(Reverse((now + GREETING_WITHIN, connection.0, place.serial)));
        out.stage(connection).extend_from_slice(&self.info);
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let hub = Arc::clone(&self.hub);
        let mut state = hub.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut turn = Turn::new(out, now, self.peers.shard);
        let result = self.take_all(connection, input, &mut state, &mut turn);
        self.settle(&mut state, &mut turn);
        result
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        if let Some(mut peer) = self.peers.remove(connection) {
            let mut state = self.hub.state.lock().unwrap_or_else(PoisonError::into_inner);
            peer.leave(&mut state.router);
        }
    }

    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        let mut turn = Turn::new(out, now, self.peers.shard);
        self.ping_silent(&mut turn);
        if self.hub.due.load(Ordering::Acquire) <= now.0 {
            let hub = Arc::clone(&self.hub);
            let mut state = hub.state.lock().unwrap_or_else(PoisonError::into_inner);
            let State { router, jetstream, .. } = &mut *state;
            jetstream.wake(router, &mut turn);
            self.settle(&mut state, &mut turn);
        }
        self.next_wake()
    }

    fn next_wake(&self) -> Option<Nanos> {
        let due = Nanos(self.hub.due.load(Ordering::Acquire));
        let ping = self.pings.peek().map_or(Nanos::NEVER, |Reverse((due, ..))| *due);
        Some(due.min(ping)).filter(|due| *due != Nanos::NEVER)
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        let hub = Arc::clone(&self.hub);
        let mut state = hub.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mail = state.router.take_mail(self.peers.shard);
        let mut turn = Turn::new(out, now, self.peers.shard);
        let mut rest = &mail.bytes[..];
        for letter in &mail.letters {
            let (message, after) = rest.split_at(letter.bytes);
            rest = after;
            let to = letter.to.connection;
            let is_there = self.peer(to).is_some_and(|peer| {
                peer.serial == letter.to.serial && peer.stage == Stage::Connected
            });
            if !is_there {
                continue;
            }
            let waiting = turn.out.pending_bytes(to);
            if waiting.saturating_add(message.len()) > state.router.pending_bytes_max() {
                state.router.drop_letter(letter);
            } else {
                turn.out.stage(to).extend_from_slice(message);
            }
        }
        self.settle(&mut state, &mut turn);
    }

    fn report(&self) -> ServerReport {
        let mut report =
            ServerReport { connections: self.peers.accepted, ..ServerReport::default() };
        if self.peers.shard == 0 {
            let state = self.hub.state.lock().unwrap_or_else(PoisonError::into_inner);
            report.add(&state.census.report());
            let counts = &state.router.counts;
            report.forwarded += counts.forwarded;
            report.disconnects += counts.disconnects;
            for (cause, count) in &counts.dropped {
                *report.dropped.entry((*cause).to_owned()).or_default() += count;
            }
        }
        report
    }
}

/// The version whose client protocol and JetStream API are answered: clients decide by it.
const VERSION: &str = "2.9.10";

/// Time for CONNECT (`auth_timeout` is 2 s where credentials are required).
const GREETING_WITHIN: Nanos = Nanos::from_secs(5);

/// Unanswered PINGs that end a connection (`ping_max`).
const PINGS_MAX: u8 = 2;
