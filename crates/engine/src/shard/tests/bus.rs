//! A rendezvous over several hosts: each keeps its own numbers, and rounds carry their sums from
//! host to host. What a round gathers the next one delivers, so all that hosts know of each other
//! is one to two rounds old.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weigh_model::Nanos;

use crate::io::Io;
use crate::io::sim::{Party, SimIo};
use crate::rendezvous::orders::Orders;
use crate::rendezvous::{Rendezvous, Totals};

/// The hosts of a trial, and what the last round gathered.
pub(super) struct Bus {
    hosts: Vec<Arc<HostRendezvous>>,
    shards: u32,
    gathered: Gathered,
}

/// The rendezvous of one of them.
pub(super) struct HostRendezvous {
    orders: Arc<Orders>,
    shards: u32,
    own: Mutex<Counts>,
    heard: Mutex<Gathered>,
}

/// What the shards of a host have noted, or the sums over hosts.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    ready: u32,
    sending_done: u32,
    complete: u32,
    sent: u64,
    arrived: u64,
    last_due: Nanos,
}

#[derive(Clone, Debug, Default)]
struct Gathered {
    counts: Counts,
    start: Option<Nanos>,
    stop_level: u8,
    has_failed: bool,
    /// Of each host.
    is_held: Vec<bool>,
}

impl Bus {
    pub(super) fn new(hosts: u32, shards: u32) -> Bus {
        let host = |_| {
            let (orders, own, heard) = Default::default();
            Arc::new(HostRendezvous { orders, shards, own, heard })
        };
        Bus { hosts: (0..hosts).map(host).collect(), shards, gathered: Gathered::default() }
    }

    pub(super) fn host(&self, index: usize) -> Arc<HostRendezvous> {
        Arc::clone(&self.hosts[index])
    }

    /// Delivers what the last round gathered, and gathers again.
    pub(super) fn carry(&mut self, now: Nanos) {
        let last = &self.gathered;
        for (index, host) in self.hosts.iter().enumerate() {
            *lock(&host.heard) = last.clone();
            host.orders.raise_stop(last.stop_level);
            if last.has_failed {
                host.orders.give_up();
            }
            let mut others = last.is_held.iter().enumerate();
            host.orders.hold_elsewhere(others.any(|(other, held)| *held && other != index));
        }
        let mut next = Gathered { start: last.start, ..Gathered::default() };
        for host in &self.hosts {
            next.counts.add(*lock(&host.own));
            next.stop_level = next.stop_level.max(host.orders.stop_level());
            next.has_failed |= host.orders.has_failed();
            next.is_held.push(host.orders.is_held_here());
        }
        if next.counts.ready == self.shards {
            next.start.get_or_insert(now + START_AHEAD);
        }
        self.gathered = next;
    }
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.ready += other.ready;
        self.sending_done += other.sending_done;
        self.complete += other.complete;
        self.sent += other.sent;
        self.arrived += other.arrived;
        self.last_due = self.last_due.max(other.last_due);
    }
}

impl Rendezvous for HostRendezvous {
    fn orders(&self) -> &Arc<Orders> {
        &self.orders
    }

    fn note_ready(&self) {
        lock(&self.own).ready += 1;
    }

    fn start(&self, _: Nanos) -> Option<Nanos> {
        lock(&self.heard).start
    }

    fn note_sent(&self, messages: u64, last_due: Nanos) {
        let mut own = lock(&self.own);
        own.sent += messages;
        own.last_due = own.last_due.max(last_due);
        own.sending_done += 1;
    }

    fn note_dropped(&self) {
        lock(&self.own).sent -= 1;
    }

    fn note_arrived(&self, messages: u64) {
        lock(&self.own).arrived += messages;
    }

    fn note_complete(&self) {
        lock(&self.own).complete += 1;
    }

    fn totals(&self) -> Option<Totals> {
        let Counts { sending_done, sent, arrived, last_due, .. } = lock(&self.heard).counts;
        (sending_done == self.shards).then_some(Totals { sent, arrived, last_due })
    }

    fn is_complete(&self) -> bool {
        lock(&self.heard).counts.complete == self.shards
    }
}

/// Carries ten times a second of virtual time.
pub(super) struct Carrier {
    pub(super) bus: Bus,
    pub(super) io: SimIo,
    pub(super) next: Nanos,
}

impl Party for Carrier {
    fn step(&mut self) -> bool {
        let now = self.io.now();
        if now >= self.next {
            self.bus.carry(now);
            self.next = now + ROUND;
        }
        self.io.turn(self.next, &mut |_, _| {});
        true
    }

    fn serves(&self) -> bool {
        true
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

const ROUND: Nanos = Nanos::from_millis(100);

/// Long enough that a round delivers the start before it.
const START_AHEAD: Nanos = Nanos::from_millis(250);
