//! A connection of the reference server with its sessions and links, as one shard keeps it.

use std::collections::VecDeque;
use std::sync::Arc;

use weigh_model::Nanos;

use super::codec::distance;
use super::queue::{Message, Parts, Waiting};
use super::window::Windows;
use crate::broker_core::Place;

/// A connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) place: Place,
    pub(super) stage: Stage,
    /// Largest frame that the client takes.
    pub(super) frame_max: u32,
    /// Time without output after which an empty frame is due; 0 is never.
    pub(super) beat: Nanos,
    pub(super) last_received: Nanos,
    pub(super) last_sent: Nanos,
    pub(super) sessions: Vec<Session>,
    /// It is on the list of those that wait until there is memory again.
    pub(super) is_blocked: bool,
    /// It is not read until there is memory again.
    pub(super) is_held: bool,
    /// It waits until it has read its answers.
    pub(super) is_behind: bool,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No protocol header yet.
    Header,
    /// The mechanisms of SASL are out.
    Mechanisms,
    /// The client is logged in; the header of AMQP is due.
    LoggedIn,
    /// The header of AMQP is out; the client's `open` is due.
    Greeted,
    /// Both opened.
    Open,
    /// `close` is out: only the client's counts.
    Closing,
    /// The server closes it; later input is ignored.
    Over,
}

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) channel: u16,
    /// `end` is out: only the client's counts.
    pub(super) is_ending: bool,
    pub(super) links: Vec<Link>,
    pub(super) given: Given,
    /// A message of which a part waits for the window.
    pub(super) held: Option<Held>,
    pub(super) windows: Windows,
}

/// A delivery of which a part is sent.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) handle: u32,
    pub(super) id: u32,
    pub(super) is_settled: bool,
    /// Its header as it is sent.
    pub(super) head: Vec<u8>,
    pub(super) message: Arc<Message>,
    pub(super) sent: usize,
}

/// A link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) handle: u32,
    /// `detach` is out: only the client's counts.
    pub(super) is_detaching: bool,
    pub(super) end: End,
}

/// What is at the client's end of a link.
#[derive(Debug)]
pub(super) enum End {
    /// A producer.
    Producer(Producer),
    /// A consumer, by its key.
    Consumer(u32),
    /// Nothing: the link was refused.
    Nothing,
}

/// The link of a producer.
#[derive(Debug, Default)]
pub(super) struct Producer {
    pub(super) node: u32,
    /// Deliveries that may come.
    pub(super) credit: u32,
    /// Deliveries so far.
    pub(super) count: u32,
    /// The delivery that is arriving: its number, and true if it is settled.
    pub(super) current: Option<(u32, bool)>,
    /// Its bytes so far, where it does not come in one transfer.
    pub(super) parts: Parts,
}

/// Deliveries of a session that are not settled.
#[derive(Debug, Default)]
pub(super) struct Given {
    deliveries: VecDeque<Option<Delivery>>,
    /// Number of the first one.
    first: u32,
}

/// A message that was delivered.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) consumer: u32,
    pub(super) queue: u32,
    pub(super) waiting: Waiting,
}

impl Peer {
    pub(super) fn new(place: Place, now: Nanos) -> Peer {
        Peer {
            place,
            stage: Stage::Header,
            frame_max: super::codec::FRAME_MIN,
            beat: Nanos(0),
            last_received: now,
            last_sent: now,
            sessions: Vec::new(),
            is_blocked: false,
            is_held: false,
            is_behind: false,
        }
    }

    pub(super) fn session(&mut self, channel: u16) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.channel == channel)
    }

    /// True if memory does not depend on what it still sends: the end of a message, or the
    /// settlements of a consumer.
    pub(super) fn may_wait(&self) -> bool {
        let mut links = self.sessions.iter().flat_map(|session| &session.links);
        links.all(|link| match &link.end {
            End::Producer(producer) => producer.current.is_none(),
            End::Consumer(_) => false,
            End::Nothing => true,
        })
    }

    /// Time at which it has been silent for too long; [`Nanos::NEVER`] without a limit, and while
    /// the server does not read it.
    pub(super) fn deadline(&self, idle: Nanos) -> Nanos {
        match self.stage {
            Stage::Open if idle.0 == 0 || self.is_held => Nanos::NEVER,
            Stage::Open => self.last_received + idle,
            Stage::Over => Nanos::NEVER,
            _ => self.last_received + HANDSHAKE,
        }
    }
}

impl Session {
    pub(super) fn new(channel: u16, next_incoming_id: u32, window: u32) -> Session {
        let mut windows = Windows::default();
        windows.began(next_incoming_id, window);
        Session {
            channel,
            is_ending: false,
            links: Vec::new(),
            given: Given::default(),
            held: None,
            windows,
        }
    }

    pub(super) fn link(&mut self, handle: u32) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.handle == handle)
    }
}

impl Given {
    /// Notes a delivery; `None` if it is settled. Returns its number.
    pub(super) fn note(&mut self, delivery: Option<Delivery>) -> u32 {
        if delivery.is_none() && self.deliveries.is_empty() {
            self.first = self.first.wrapping_add(1);
            return self.first.wrapping_sub(1);
        }
        self.deliveries.push_back(delivery);
        self.first.wrapping_add(self.deliveries.len() as u32 - 1)
    }

    /// Takes the deliveries of a range, in their order; those that ended before are not in it.
    pub(super) fn take(&mut self, first: u32, last: u32) -> Vec<Delivery> {
        let (from, to) = (distance(self.first, first), distance(self.first, last.wrapping_add(1)));
        let to = (to as usize).min(self.deliveries.len());
        let from = (from as usize).min(to);
        let taken: Vec<Delivery> =
            self.deliveries.range_mut(from..to).filter_map(Option::take).collect();
        self.forget();
        taken
    }

    /// Takes the deliveries of a consumer.
    pub(super) fn take_of(&mut self, consumer: u32) -> Vec<Delivery> {
        let is_its = |delivery: &mut Delivery| delivery.consumer == consumer;
        let own = self.deliveries.iter_mut().filter_map(|place| place.take_if(is_its));
        let taken = own.collect();
        self.forget();
        taken
    }

    fn forget(&mut self) {
        while self.deliveries.front().is_some_and(Option::is_none) {
            self.deliveries.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

/// Time limit of each step before a connection is open.
const HANDSHAKE: Nanos = Nanos::from_secs(10);

#[cfg(test)]
mod tests {
    use super::super::codec::Header;
    use super::*;

    fn delivery(queue: u32) -> Option<Delivery> {
        let message = Arc::new(Message::new(Header::default(), b"x", &Arc::default()));
        let waiting = Waiting { message, failures: 0 };
        Some(Delivery { queue, consumer: queue, waiting })
    }

    #[test]
    fn numbers_count_every_delivery_and_are_taken_once() {
        let mut given = Given { first: u32::MAX, ..Given::default() };
        assert_eq!(given.note(None), u32::MAX);
        let numbers: Vec<u32> = (0..4).map(|queue| given.note(delivery(queue))).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!(given.note(None), 4);
        let queues = |taken: Vec<Delivery>| taken.iter().map(|one| one.queue).collect::<Vec<_>>();
        assert_eq!(queues(given.take(1, 1)), [1]);
        let none: [u32; 0] = [];
        assert_eq!(queues(given.take(1, 1)), none, "it was taken");
        assert_eq!(queues(given.take(9, 20)), none, "they do not exist");
        assert_eq!(queues(given.take(0, 2)), [0, 2]);
        assert_eq!(queues(given.take_of(3)), [3]);
        assert_eq!(given.note(delivery(9)), 5);
    }
}
