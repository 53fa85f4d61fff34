//! A server whose answers leave at computed moments, for protocols inside a layer that has its own
//! packets: the policy stands between the layer and the reference server.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Arc, Mutex};

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::protocol::{Host, Transport};
use weigh_model::server::{ConnectionId, Outboxes, Record, Server, ServerReport};
use weigh_model::streams::{self, Piece};

use crate::scripted::{Policy, unit_of};

/// The reference server of `host`, of the protocol of this name, behind `policy`; of one shard.
pub fn delayed(protocol: &str, host: Host, policy: Policy) -> Host {
    let transport = host.transport;
    let unit: Unit = match transport {
        Transport::Streams => Arc::new(piece),
        _ => Arc::new(unit_of(protocol)),
    };
    let policy = Mutex::new(Some(policy));
    let make = move |shard| {
        let policy = policy.lock().unwrap().take().expect("one shard");
        let server: Box<dyn Server> = Box::new(Delayed {
            inner: (host.make)(shard),
            policy,
            unit: Arc::clone(&unit),
            departures: BinaryHeap::new(),
            letters: BTreeMap::new(),
            next: 0,
        });
        server
    };
    Host { transport, make: Box::new(make) }
}

/// The bytes of the first unit, and whether it is a message.
type Unit = Arc<dyn Fn(&[u8]) -> Option<(usize, bool)> + Send + Sync>;

/// A piece of a stream; a message is whole where the stream of a request ends.
fn piece(input: &[u8]) -> Option<(usize, bool)> {
    let (piece, bytes) = streams::next(input)?;
    let is_message = matches!(piece, Piece::Bytes { stream, is_last: true, .. }
        if streams::is_both_ways(stream));
    Some((bytes, is_message))
}

struct Delayed {
    inner: Box<dyn Server>,
    policy: Policy,
    unit: Unit,
    departures: BinaryHeap<Reverse<(Nanos, u64)>>,
    letters: BTreeMap<u64, BTreeMap<u32, Vec<u8>>>,
    next: u64,
}

impl Delayed {
    fn leave(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        while let Some(Reverse((at, number))) = self.departures.peek().copied() {
            if at > now {
                return;
            }
            self.departures.pop();
            for (to, letter) in self.letters.remove(&number).unwrap_or_default() {
                out.stage(ConnectionId(to)).extend_from_slice(&letter);
            }
        }
    }
}

impl Server for Delayed {
    fn accepted(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.inner.accepted(connection, now, out);
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some((bytes, is_message)) = (self.unit)(&input[taken..]) {
            let unit = &input[taken..taken + bytes];
            taken += bytes;
            let mut desk = Desk::default();
            assert_eq!(self.inner.receive(connection, unit, now, &mut desk), Ok(unit.len()));
            let departure = if is_message { (self.policy)(now, unit) } else { now };
            self.departures.push(Reverse((departure, self.next)));
            self.letters.insert(self.next, desk.staged);
            self.next += 1;
        }
        self.leave(now, out);
        Ok(taken)
    }

    fn closed(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.inner.closed(connection, now, out);
    }

    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        self.leave(now, out);
        self.next_wake()
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.departures.peek().map(|Reverse((at, _))| *at)
    }

    fn report(&self) -> ServerReport {
        self.inner.report()
    }
}

/// What the inner server staged for one piece.
#[derive(Default)]
struct Desk {
    staged: BTreeMap<u32, Vec<u8>>,
}

impl Outboxes for Desk {
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8> {
        self.staged.entry(to.0).or_default()
    }

    fn frame(&mut self, _to: ConnectionId) {}

    fn pending_bytes(&self, _of: ConnectionId) -> usize {
        0
    }

    fn notify_drained(&mut self, _of: ConnectionId) {}

    fn hold(&mut self, _which: ConnectionId) {}

    fn release(&mut self, _which: ConnectionId) {}

    fn close(&mut self, _which: ConnectionId) {}

    fn abort(&mut self, _which: ConnectionId) {}

    fn notify_shard(&mut self, _shard: u16) {}

    fn store(&mut self, _record: Record<'_>) {}

    fn stores(&self) -> bool {
        false
    }
}
