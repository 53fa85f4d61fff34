//! The reference server: one broker that leads all partitions, on as many shards as there are,
//! with one common state.

mod fetching;
mod group;
mod groups;
mod log;
mod offsets;
mod place;
mod producing;
mod requests;
mod rules;
mod topics;
mod world;

use std::collections::BTreeSet;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};

pub(super) use self::rules::Rules;
pub(super) use self::world::World;

use self::place::{Outcome, Place, Turn};
use super::codec::frame;
use crate::broker_core::{self, Holding, Peers, Shared, Waiting as _};

/// All connections of one shard.
pub(super) struct KafkaServer {
    shared: Shared<World>,
    peers: Peers<Box<Peer>>,
    /// Ends of waits: time and connection, one for each connection that waits.
    deadlines: BTreeSet<(Nanos, u32)>,
}

/// One connection of a shard.
pub(in crate::kafka) struct Peer {
    place: Place,
    /// A fetch that waits for messages, or a member that waits for its group.
    waiting: Option<Waiting>,
    /// It does not read its answers, and no more of its requests are executed.
    is_choked: bool,
    /// Input that has to wait: requests of a connection are answered in their order.
    held: Vec<u8>,
    /// It has sent a whole request.
    has_asked: bool,
}

struct Waiting {
    request: Vec<u8>,
    until: Nanos,
}

impl broker_core::Waiting for Peer {
    fn is_waiting(&self) -> bool {
        self.waiting.is_some() || self.is_choked
    }

    fn held(&mut self) -> &mut Vec<u8> {
        &mut self.held
    }
}

impl KafkaServer {
    pub(super) fn new(shared: Shared<World>, shard: u16) -> KafkaServer {
        KafkaServer { shared, peers: Peers::new(shard), deadlines: BTreeSet::new() }
    }

    /// Answers a request that waits, if it can be or `is_last`; what its connection held back
    /// follows.
    fn answer(&mut self, place: Place, is_last: bool, world: &mut World, turn: &mut Turn<'_>) {
        let of = place.connection;
        let Some(peer) = self.peer(of).filter(|peer| peer.place == place) else { return };
        let Some(Waiting { request, until }) = peer.waiting.take() else { return };
        let outcome = requests::again(&request, place, (is_last, until), world, turn);
        self.deadlines.remove(&(until, of.0));
        if let Outcome::Waits(until) = outcome {
            self.deadlines.insert((until, of.0));
            if let Some(peer) = self.peer(of) {
                peer.waiting = Some(Waiting { request, until });
            }
            return;
        }
        // Invalid bytes end the connection.
        if self.run_held(of, world, turn).is_err() {
            turn.out.close(of);
        }
    }

    fn turn<T>(
        &mut self,
        now: Nanos,
        out: &mut dyn Outboxes,
        act: impl FnOnce(&mut KafkaServer, &mut World, &mut Turn<'_>) -> T,
    ) -> T {
        let shared = self.shared.clone();
        let mut world = shared.lock();
        let mut turn = Turn::new(out, now, self.peers.shard);
        let result = act(self, &mut world, &mut turn);
        // What a woken connection held back may wake others.
        let mut next = 0;
        while let Some(place) = turn.woken.get(next).copied() {
            next += 1;
            self.answer(place, false, &mut world, &mut turn);
        }
        result
    }
}

impl Holding for KafkaServer {
    type Peer = Peer;
    type World = World;

    fn peer(&mut self, of: ConnectionId) -> Option<&mut Peer> {
        self.peers.get(of).map(|peer| &mut **peer)
    }

    fn run(
        &mut self,
        of: ConnectionId,
        input: &[u8],
        world: &mut World,
        turn: &mut Turn<'_>,
    ) -> Result<usize, Fault> {
        let most = world.rules.request_bytes_max;
        let mut taken = 0;
        loop {
            let Some(peer) = self.peers.get(of) else { return Ok(input.len()) };
            if peer.is_waiting() {
                return Ok(taken);
            }
            let read = frame::read_frame(&input[taken..], most);
            let Some((content, bytes)) = read.map_err(|flaw| match peer.has_asked {
                true => flaw.into(),
                false => Fault::OtherProtocol(format!("{flaw} at the start")),
            })?
            else {
                return Ok(taken);
            };
            taken += bytes;
            peer.has_asked = true;
            match requests::execute(content, peer.place, world, turn)? {
                Outcome::Answered => {}
                Outcome::Waits(until) => {
                    self.deadlines.insert((until, of.0));
                    peer.waiting = Some(Waiting { request: content.to_vec(), until });
                }
                Outcome::Ends => {
                    turn.out.close(of);
                    return Ok(input.len());
                }
            }
            if turn.out.pending_bytes(of) > ANSWER_BYTES_MAX {
                peer.is_choked = true;
                turn.out.notify_drained(of);
            }
        }
    }
}

impl Server for KafkaServer {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        self.peers.accept(connection, |place| {
            Box::new(Peer {
                place,
                waiting: None,
                is_choked: false,
                held: Vec::new(),
                has_asked: false,
            })
        });
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        self.turn(now, out, |own, world, turn| own.run_or_hold(connection, input, world, turn))
    }

    fn drained(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.turn(now, out, |own, world, turn| {
            if let Some(peer) = own.peer(connection) {
                peer.is_choked = false;
                if peer.waiting.is_none() && own.run_held(connection, world, turn).is_err() {
                    turn.out.close(connection);
                }
            }
        });
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        if let Some(peer) = self.peers.remove(connection)
            && let Some(waiting) = &peer.waiting
        {
            self.deadlines.remove(&(waiting.until, connection.0));
            requests::forget(&waiting.request, peer.place, &mut self.shared.lock());
        }
    }

    /// Fetches whose time is over are answered with what is there, and members of a group without
    /// those that did not come.
    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        self.turn(now, out, |own, world, turn| {
            while let Some((until, connection)) = own.deadlines.first().copied() {
                if until > now {
                    break;
                }
                own.deadlines.pop_first();
                let waits = |peer: &&mut Peer| peer.waiting.is_some();
                let peer = own.peer(ConnectionId(connection)).filter(waits);
                if let Some(place) = peer.map(|peer| peer.place) {
                    own.answer(place, true, world, turn);
                }
            }
        });
        self.next_wake()
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.deadlines.first().map(|(until, _)| *until)
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        self.turn(now, out, |_, world, turn| {
            turn.woken.extend(world.mail.take(turn.shard));
        });
    }

    /// Connections are counted by shard; everything else is common and reported by shard 0 only, so
    /// that reports add up.
    fn report(&self) -> ServerReport {
        let own = ServerReport { connections: self.peers.accepted, ..ServerReport::default() };
        if self.peers.shard > 0 {
            return own;
        }
        let mut report = self.shared.lock().census.report();
        report.add(&own);
        report
    }
}

/// Bytes of answers that may wait for a client before its next request waits too.
const ANSWER_BYTES_MAX: usize = 1 << 20;
