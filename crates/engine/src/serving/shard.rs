//! One shard of a server: what is read goes to the server, what it stages is sent when the whole
//! batch has been read and what is confirmed is stored. It runs on whatever [`Io`] it is stepped
//! with.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::protocol::Transport;
use weigh_model::server::{ConnectionId, Server};

use super::lines::{Flushed, Lines};
use super::report::{REASONS_KEPT, ServingReport};
use crate::io::{Close, Io, IoEvent, Token, Waker};
use crate::storage::Store;

/// A server and its connections; its sockets are in the `Io` with which it is stepped, always the
/// same one. The owner of both makes the listening socket.
pub struct ServerShard {
    server: Box<dyn Server>,
    lines: Lines,
    transport: Transport,
    wake_at: Option<Nanos>,
    faults: u64,
    fault_reasons: Vec<String>,
    /// The lines of one round of flushing; kept for its memory.
    round: Vec<Token>,
    /// Connections whose end is awaited: until when, and the bytes that came meanwhile.
    lingering: BTreeMap<Token, (Nanos, usize)>,
    /// Entries of the map in the order of time; entries that the map does not have are stale.
    lingering_until: VecDeque<(Nanos, Token)>,
    /// Called when the store has failed.
    on_failure: Arc<dyn Fn(&str) + Send + Sync>,
}

impl ServerShard {
    /// A shard over `transport` that reaches all shards, itself included, through `wakers`, by
    /// index.
    pub fn new(server: Box<dyn Server>, transport: Transport, wakers: Vec<Waker>) -> ServerShard {
        ServerShard {
            server,
            lines: Lines::new(wakers, transport),
            transport,
            wake_at: Some(Nanos(0)),
            faults: 0,
            fault_reasons: Vec::new(),
            round: Vec::new(),
            lingering: BTreeMap::new(),
            lingering_until: VecDeque::new(),
            on_failure: Arc::new(|_| {}),
        }
    }

    /// Stores what the server confirms. After a failure of the store, `on_failure` is called once,
    /// all connections are closed without what was staged, and new ones at once.
    pub fn storing(
        mut self,
        store: Store,
        on_failure: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> ServerShard {
        self.lines.store = Some(Box::new(store));
        self.on_failure = on_failure;
        self
    }

    /// One turn: waits for something to happen, at the longest until `until` or the server's
    /// own next wake-up, and handles everything that has happened.
    pub fn step(&mut self, io: &mut dyn Io, until: Nanos) {
        self.wake(io);
        self.end_lingering(io.now());
        self.sync_if_due(io.now());
        self.flush(io);
        let until = self
            .lines
            .store
            .as_ref()
            .and_then(|store| store.next_due())
            .map_or(until, |due| due.min(until));
        let until = self.wake_at.map_or(until, |wake| wake.min(until));
        let until = self.lingering_until.front().map_or(until, |(at, _)| until.min(*at));
        // A server that stages again whenever it is drained continues in the next turn.
        let until = if self.lines.any_dirty() { Nanos(0) } else { until };
        io.turn(until, &mut |now, event| self.handle(now, event));
        let asked = self.server.next_wake();
        self.wake_at = self.wake_at.into_iter().chain(asked).min();
        self.wake(io);
        self.flush(io);
    }

    /// True if there is more to send at once, so that the next step must not wait.
    pub fn unfinished(&self) -> bool {
        self.lines.any_dirty()
    }

    /// Returns the counts so far, without the figures that only the `Io` has.
    pub fn report(&self) -> ServingReport {
        let mut server = self.server.report();
        server.store = self.lines.store.as_ref().map(|store| store.counts());
        ServingReport {
            server,
            faults: self.faults,
            fault_reasons: self.fault_reasons.clone(),
            open_connections: self.lines.open(),
            ..ServingReport::default()
        }
    }

    /// Closes all connections; what is staged is tried once.
    pub fn shut(&mut self, io: &mut dyn Io) {
        self.lines.close_all();
        self.flush(io);
        self.lines.abort_all();
        self.flush(io);
        let now = io.now();
        if let Some(Err(said)) = self.lines.store.as_mut().map(|store| store.finish(now)) {
            (self.on_failure)(&said);
        }
    }

    /// Stores what the staged answers confirm; answers that are not stored are discarded with their
    /// connections.
    fn commit(&mut self, now: Nanos) {
        let Some(store) = &mut self.lines.store else { return };
        if let Err(said) = store.commit(now) {
            (self.on_failure)(&said);
        }
        if self.lines.store.as_ref().is_some_and(|store| store.has_failed()) {
            self.lines.abort_all();
        }
    }

    fn sync_if_due(&mut self, now: Nanos) {
        if let Some(Err(said)) = self.lines.store.as_mut().map(|store| store.sync_if_due(now)) {
            (self.on_failure)(&said);
            self.lines.abort_all();
        }
    }

    fn wake(&mut self, io: &mut dyn Io) {
        let Some(due) = self.wake_at else { return };
        let now = io.now();
        if due <= now {
            self.wake_at = self.server.wake(now, &mut self.lines);
        }
    }

    fn handle(&mut self, now: Nanos, event: IoEvent<'_>) {
        match event {
            IoEvent::Accepted { connection } => {
                self.lines.open_line(connection);
                self.server.accepted(ConnectionId(connection.0), now, &mut self.lines);
            }
            IoEvent::Received(token, bytes) => self.receive(now, token, bytes),
            IoEvent::Writable(token) => self.lines.mark_writable(token),
            IoEvent::Ended(token) => self.lines.mark_ended(token),
            IoEvent::Failed(token, _) => self.lines.mark_failed(token),
            IoEvent::Woken => self.server.notified(now, &mut self.lines),
            // A server makes no connections.
            IoEvent::Connected(_) => {}
        }
    }

    fn receive(&mut self, now: Nanos, token: Token, bytes: &[u8]) {
        if self.lines.lingers(token) {
            return self.discard(token, bytes.len());
        }
        if !self.lines.reads(token) {
            return;
        }
        let connection = ConnectionId(token.0);
        let mut carry = self.lines.take_carry(token);
        let carried = !carry.is_empty();
        if carried {
            carry.extend_from_slice(bytes);
        }
        let input = if carried { &carry[..] } else { bytes };
        match self.server.receive(connection, input, now, &mut self.lines) {
            Ok(taken) => {
                let taken = taken.min(input.len());
                if self.transport.is_over_datagrams() {
                    return;
                }
                if carried {
                    carry.drain(..taken);
                } else {
                    carry.extend_from_slice(&bytes[taken..]);
                }
                self.lines.put_carry(token, carry);
            }
            Err(fault) => {
                self.faults += 1;
                if self.fault_reasons.len() < REASONS_KEPT {
                    self.fault_reasons.push(fault.to_string());
                }
                carry.clear();
                self.lines.put_carry(token, carry);
                self.lines.mark_closing(token);
            }
        }
    }

    /// Counts what still comes from a peer that should have stopped.
    fn discard(&mut self, token: Token, bytes: usize) {
        let Some((_, discarded)) = self.lingering.get_mut(&token) else { return };
        *discarded += bytes;
        if *discarded > LINGER_BYTES_MAX {
            self.lines.mark_ended(token);
        }
    }

    /// Waits no longer for those that have had their time.
    fn end_lingering(&mut self, now: Nanos) {
        while let Some((until, token)) = self.lingering_until.front().copied() {
            let is_stale = self.lingering.get(&token).is_none_or(|(known, _)| *known != until);
            if !is_stale && until > now {
                return;
            }
            self.lingering_until.pop_front();
            if !is_stale {
                self.lines.mark_ended(token);
            }
        }
    }

    /// Sends what is staged and ends what is to be ended.
    fn flush(&mut self, io: &mut dyn Io) {
        for _ in 0..FLUSH_ROUNDS {
            self.lines.settle_holds(io);
            if !self.lines.any_dirty() {
                return;
            }
            let now = io.now();
            self.commit(now);
            let mut round = std::mem::take(&mut self.round);
            self.lines.begin_flush(&mut round);
            for token in round.drain(..) {
                match self.lines.flush(token, io) {
                    Flushed::Kept => {}
                    Flushed::Drained => {
                        self.server.drained(ConnectionId(token.0), now, &mut self.lines);
                    }
                    Flushed::Over(how) => self.end(io, now, token, how),
                    Flushed::Lingers => self.linger(io, now, token),
                }
            }
            self.round = round;
        }
        self.lines.settle_holds(io);
    }

    /// For the server the connection is gone; the socket waits for the peer's end.
    fn linger(&mut self, io: &mut dyn Io, now: Nanos, token: Token) {
        io.release(token);
        io.shutdown(token);
        let until = now + LINGER_TIME_MAX;
        self.lingering.insert(token, (until, 0));
        self.lingering_until.push_back((until, token));
        self.server.closed(ConnectionId(token.0), now, &mut self.lines);
    }

    fn end(&mut self, io: &mut dyn Io, now: Nanos, token: Token, how: Close) {
        self.lines.forget(token);
        if self.lingering.remove(&token).is_none() {
            self.server.closed(ConnectionId(token.0), now, &mut self.lines);
        }
        io.close(token, how);
    }
}

/// Number of times within one turn that a server may stage more because it was drained.
const FLUSH_ROUNDS: u32 = 8;

/// Time that the end of a peer is awaited, and number of bytes that are still read, after which the
/// close may be a reset.
const LINGER_TIME_MAX: Nanos = Nanos::from_secs(2);
const LINGER_BYTES_MAX: usize = 64 << 20;
