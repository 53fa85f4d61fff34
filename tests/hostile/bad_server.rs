//! A bad server: the reference server whose bytes are tampered with, each connection by itself.

use std::collections::{BTreeMap, VecDeque};

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::protocol::{Host, Transport};
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};

use crate::desk::Desk;
use crate::kind::{End, Kind};
use crate::speaker::Rehearsal;
use crate::tamper::{Flood, Passed, Side, Tamper};

/// Makes `host` one whose servers are of this kind; the first connection has the number `from`.
pub fn tampered(host: Host, kind: Kind, from: u64, known: Rehearsal) -> Host {
    let Host { transport, make } = host;
    let make = Box::new(move |shard| -> Box<dyn Server> {
        Box::new(BadServer {
            inner: make(shard),
            transport,
            kind,
            known,
            next: from,
            talks: BTreeMap::new(),
            next_drip: None,
        })
    });
    Host { transport, make }
}

struct BadServer {
    inner: Box<dyn Server>,
    transport: Transport,
    kind: Kind,
    known: Rehearsal,
    /// The number of the next connection.
    next: u64,
    talks: BTreeMap<u32, Talk>,
    next_drip: Option<Nanos>,
}

struct Talk {
    tamper: Tamper,
    pending: VecDeque<Vec<u8>>,
    flood: Option<Flood>,
    end: Option<End>,
    drips: bool,
}

impl Talk {
    fn put(&mut self, passed: Passed) {
        if !passed.bytes.is_empty() {
            self.pending.push_back(passed.bytes);
        }
        self.flood = passed.flood.or(self.flood);
        self.end = passed.end.or(self.end);
        self.drips |= passed.drips;
    }
}

impl BadServer {
    /// Lets the honest server do something, and says in its place what is to be said.
    fn act<T>(
        &mut self,
        out: &mut dyn Outboxes,
        now: Nanos,
        act: impl FnOnce(&mut dyn Server, &mut Desk<'_>) -> T,
    ) -> T {
        let mut desk = Desk::new(out);
        let result = act(&mut *self.inner, &mut desk);
        for (to, frames) in desk.take() {
            if let Some(talk) = self.talks.get_mut(&to.0) {
                for frame in frames {
                    let passed = talk.tamper.pass(&frame);
                    talk.put(passed);
                }
            }
        }
        let closes = std::mem::take(&mut desk.closes);
        let touched: Vec<u32> = self.talks.keys().copied().collect();
        touched.into_iter().for_each(|which| self.say(ConnectionId(which), out, now));
        for (which, at_once) in closes {
            let is_muted = self.talks.get(&which.0).is_some_and(|talk| talk.tamper.is_muted());
            match (is_muted, at_once) {
                (true, _) => {}
                (false, true) => out.abort(which),
                (false, false) => out.close(which),
            }
        }
        result
    }

    /// Hands over what a connection has to say now.
    fn say(&mut self, to: ConnectionId, out: &mut dyn Outboxes, now: Nanos) {
        let Some(talk) = self.talks.get_mut(&to.0) else { return };
        if talk.drips {
            if !talk.pending.is_empty() {
                self.next_drip.get_or_insert(now + DRIP);
            }
            return;
        }
        for piece in talk.pending.drain(..) {
            out.stage(to).extend_from_slice(&piece);
            if self.transport == Transport::Datagram {
                out.frame(to);
            }
        }
        if let Some(flood) = &mut talk.flood {
            if out.pending_bytes(to) > 0 {
                return out.notify_drained(to);
            }
            if let Some(piece) = flood.next(self.transport) {
                out.stage(to).extend_from_slice(&piece);
                if self.transport == Transport::Datagram {
                    out.frame(to);
                }
                return out.notify_drained(to);
            }
            talk.flood = None;
        }
        match talk.end.take() {
            Some(End::Finish) => out.close(to),
            Some(End::Reset) => out.abort(to),
            Some(End::Deaf) => out.hold(to),
            Some(End::Stay) | None => {}
        }
    }

    /// A byte, or a datagram, of each that is slow.
    fn drip(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        if self.next_drip.is_none_or(|at| at > now) {
            return;
        }
        self.next_drip = None;
        for (to, talk) in &mut self.talks {
            let Some(front) = talk.pending.front_mut() else { continue };
            let to = ConnectionId(*to);
            let length = if self.transport == Transport::Stream { 1 } else { front.len() };
            out.stage(to).extend(front.drain(..length));
            if self.transport == Transport::Datagram {
                out.frame(to);
            }
            if front.is_empty() {
                talk.pending.pop_front();
            }
            if !talk.pending.is_empty() {
                self.next_drip = Some(now + DRIP);
            }
        }
    }
}

impl Server for BadServer {
    fn accepted(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        let mut tamper = Tamper::new(&self.kind, self.next, Side::Server, &self.known);
        self.next += 1;
        let first = tamper.begin();
        let (pending, flood, end, drips) = (VecDeque::new(), None, None, false);
        let mut talk = Talk { tamper, pending, flood, end, drips };
        talk.put(first);
        self.talks.insert(connection.0, talk);
        self.act(out, now, |inner, desk| inner.accepted(connection, now, desk));
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        self.act(out, now, |inner, desk| inner.receive(connection, input, now, desk))
    }

    fn drained(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.act(out, now, |inner, desk| inner.drained(connection, now, desk));
    }

    fn closed(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.talks.remove(&connection.0);
        self.act(out, now, |inner, desk| inner.closed(connection, now, desk));
    }

    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        let own = self.act(out, now, |inner, desk| inner.wake(now, desk));
        self.drip(now, out);
        own.into_iter().chain(self.next_drip).min()
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.inner.next_wake().into_iter().chain(self.next_drip).min()
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        self.act(out, now, |inner, desk| inner.notified(now, desk));
    }

    fn report(&self) -> ServerReport {
        self.inner.report()
    }
}

/// Time between the bytes of one that is slow.
const DRIP: Nanos = Nanos::from_millis(50);
