//! The reference server: a subset of Redis, on as many shards as there are, with one common state.

mod blocked;
mod channels;
mod commands;
mod peer;
mod place;
mod rules;
mod stream;
mod world;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};

pub(super) use self::rules::Rules;
pub(super) use self::world::World;

use self::peer::{Peer, Words};
use self::place::{Place, Turn};
use super::codec;
use crate::broker_core::{Holding, Peers, Shared, Waiting};

/// All connections of one shard.
pub(super) struct RedisServer {
    shared: Shared<World>,
    peers: Peers<Box<Peer>>,
    /// Ends of waits: time, connection, serial.
    deadlines: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
    words: Vec<Range<usize>>,
}

impl RedisServer {
    pub(super) fn new(shared: Shared<World>, shard: u16) -> RedisServer {
        RedisServer {
            shared,
            peers: Peers::new(shard),
            deadlines: BinaryHeap::new(),
            words: Vec::new(),
        }
    }

    /// Lets connections continue whose blocked command was answered, and those that these unblock.
    fn continue_unblocked(&mut self, world: &mut World, turn: &mut Turn<'_>) {
        while let Some(Place { connection: of, .. }) = turn.woken.pop() {
            let Some(peer) = self.peer(of) else { continue };
            peer.blocked_until = None;
            // Invalid bytes end the connection; their error is staged.
            if self.run_held(of, world, turn).is_err() {
                turn.out.close(of);
            }
        }
    }

    fn turn<T>(
        &mut self,
        now: Nanos,
        out: &mut dyn Outboxes,
        act: impl FnOnce(&mut RedisServer, &mut World, &mut Turn<'_>) -> T,
    ) -> T {
        let shared = self.shared.clone();
        let mut world = shared.lock();
        let mut turn = Turn::new(out, now, self.peers.shard);
        let result = act(self, &mut world, &mut turn);
        self.continue_unblocked(&mut world, &mut turn);
        result
    }
}

impl Holding for RedisServer {
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
        let mut taken = 0;
        let mut words = std::mem::take(&mut self.words);
        let most = world.rules.most;
        let result = loop {
            let Some(peer) = self.peers.get(of) else { break Ok(input.len()) };
            if peer.is_ending {
                break Ok(input.len());
            }
            if peer.is_waiting() {
                break Ok(taken);
            }
            let rest = &input[taken..];
            match codec::read_request(rest, most, &mut words) {
                Ok(None) => break Ok(taken),
                Ok(Some(bytes)) => {
                    taken += bytes;
                    if words.is_empty() {
                        continue;
                    }
                    commands::execute(Words::new(rest, &words), peer, world, turn);
                    if turn.out.pending_bytes(of) > ANSWER_BYTES_MAX {
                        peer.is_choked = true;
                        turn.out.notify_drained(of);
                    }
                    if let Some(until) = peer.blocked_until.filter(|until| *until < Nanos::NEVER) {
                        self.deadlines.push(Reverse((until, of.0, peer.place.serial)));
                    }
                }
                Err(flaw) => {
                    let text = format!("ERR Protocol error: {flaw}");
                    codec::put_error(turn.out.stage(of), &text);
                    peer.is_ending = true;
                    break Err(Fault::Malformed(flaw.to_string()));
                }
            }
        };
        self.words = words;
        result
    }
}

impl Server for RedisServer {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        let mut world = self.shared.lock();
        world.connections += 1;
        let is_authenticated = world.rules.login.is_none();
        self.peers.accept(connection, |place| Box::new(Peer::new(place, is_authenticated)));
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
                if own.run_held(connection, world, turn).is_err() {
                    turn.out.close(connection);
                }
            }
        });
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        if let Some(peer) = self.peers.remove(connection) {
            self.shared.lock().forget(peer.place);
        }
    }

    /// Reads whose time is over are answered with nothing.
    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        self.turn(now, out, |own, world, turn| {
            while let Some(Reverse((until, connection, serial))) = own.deadlines.peek().copied() {
                if until > now {
                    break;
                }
                own.deadlines.pop();
                let of = ConnectionId(connection);
                let Some(peer) = own.peer(of) else { continue };
                let place = peer.place;
                let is_it = place.serial == serial && peer.blocked_until == Some(until);
                if is_it && world.blocked.remove(place).is_some() {
                    commands::put_nothing(turn.out.stage(of), peer.is_resp3);
                    turn.woken.push(place);
                }
            }
        });
        self.next_wake()
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.deadlines.peek().map(|Reverse((until, ..))| *until)
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        self.turn(now, out, |own, world, turn| {
            for letter in world.take_mail(turn.shard) {
                let of = letter.to.connection;
                let is_there = own.peer(of).is_some_and(|peer| peer.place == letter.to);
                match (is_there, letter.is_answer) {
                    (false, _) => {}
                    (true, true) => world.answer(letter.to, &letter.bytes, turn),
                    (true, false) => _ = world.push(letter.to, &letter.bytes, turn),
                }
            }
        });
    }

    /// Connections are counted by shard; everything else is common and reported by shard 0 only, so
    /// that reports add up.
    fn report(&self) -> ServerReport {
        let own = ServerReport { connections: self.peers.accepted, ..ServerReport::default() };
        if self.peers.shard > 0 {
            return own;
        }
        let world = self.shared.lock();
        let mut report = world.census.report();
        report.add(&own);
        report.disconnects += world.disconnects;
        report
    }
}

/// Bytes of answers that may wait for a client before its next command waits too.
const ANSWER_BYTES_MAX: usize = 1 << 20;
