//! Clients that come group by group while the load runs. A client that brings the subscriber which
//! hears it connects when that one listens, so that no message is sent without a receiver.

use weigh_model::Nanos;
use weigh_model::protocol::{Lifetime, Role};

use super::Shard;
use crate::io::Io;
use crate::link::{LinkId, LinkPhase};

impl Shard {
    /// Connections that are made before the load starts, whatever comes later.
    pub(super) fn links_ahead(&self) -> usize {
        match self.job.load().join {
            None => self.kept_links(),
            Some(_) if self.brings_subscribers() => 0,
            Some(_) => self.links.consumers().len(),
        }
    }

    /// True where each client comes with its subscriber. One that connects for every message has
    /// its subscriber stand before.
    fn brings_subscribers(&self) -> bool {
        self.job.load().brings_subscribers() && self.rules.lifetime == Lifetime::Kept
    }

    /// Lets every client come whose turn it is.
    pub(super) fn join_clients(&mut self, io: &mut dyn Io, now: Nanos) {
        while self.next_turn() <= now {
            let link = LinkId(self.connecting.next_joiner as u32);
            self.connecting.next_joiner += 1;
            self.begin_client(link, self.turn(link));
            let index = self.links[link].state.index;
            if self.brings_subscribers() {
                self.open(LinkId(index / self.job.shards), io);
            } else if self.rules.lifetime == Lifetime::Kept {
                self.open(link, io);
            }
        }
        self.open_brought(io);
    }

    /// Connects the clients whose subscribers have come to listen.
    fn open_brought(&mut self, io: &mut dyn Io) {
        if !self.brings_subscribers() {
            return;
        }
        for place in 0..self.books.unblocked.len() {
            let consumer = self.books.unblocked[place];
            if !self.is_consumer(consumer) {
                continue;
            }
            if let Some(link) = self.client_of(consumer) {
                self.open(link, io);
            }
        }
    }

    /// The client that this subscriber was brought by, if it waits for it to listen.
    pub(super) fn client_of(&self, consumer: LinkId) -> Option<LinkId> {
        let state = &self.links[consumer].state;
        if !self.brings_subscribers() || state.role != Role::Consumer {
            return None;
        }
        let link = self.producer_link(state.index)?;
        let client = &self.links[link].state;
        let waits = client.phase == LinkPhase::Idle && client.connections == 0;
        (waits && (link.0 as usize) < self.connecting.next_joiner).then_some(link)
    }

    /// Returns the time at which the next client starts; never if all have started, or were open
    /// before the load.
    pub(super) fn next_turn(&self) -> Nanos {
        match self.connecting.next_joiner < self.links.len() {
            true => self.turn(LinkId(self.connecting.next_joiner as u32)),
            false => Nanos::NEVER,
        }
    }

    /// Returns the time at which the client of this link starts.
    pub(super) fn turn(&self, link: LinkId) -> Nanos {
        self.clock.start + self.job.load().turn(self.links[link].state.index)
    }
}
