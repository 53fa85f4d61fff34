//! One connection of the generator: its wire, what it has in flight, what waits for it. Small,
//! because a shard may hold twenty thousand of them.

use std::collections::VecDeque;

use weigh_model::Nanos;
use weigh_model::protocol::Role;
use weigh_model::wire::{Outbox, Ticket, Wire};

use crate::io::Token;

/// A connection of the generator.
pub(crate) struct Link {
    /// The protocol's state machine; none between the connections of a link that opens one per
    /// message.
    pub wire: Option<Box<dyn Wire>>,
    /// Everything else, apart so that it can be borrowed beside the wire.
    pub state: LinkState,
}

/// A connection without its wire.
pub(crate) struct LinkState {
    /// Index among the connections of its role, over all shards.
    pub index: u32,
    /// Index into the shard's accounts of its role.
    pub account: u32,
    /// Number of the next measured message.
    pub sequence: u64,
    /// Number of the next warm-up message.
    pub warmup_sequence: u64,
    /// First number sent over the present connection.
    pub first_here: u64,
    /// Measured messages still to send where they are counted per client.
    pub quota: u64,
    /// Messages due at once, of a burst.
    pub burst_left: u64,
    /// Due times that wait for this very link.
    pub waiting: VecDeque<Nanos>,
    /// How many of those at the front had to wait because the window was full.
    pub held_up: u32,
    /// What is in flight, by ticket.
    pub flights: Flights,
    /// Bytes that wait for the socket.
    pub out: Outbox,
    /// How many of them the socket has taken.
    pub out_taken: usize,
    /// Bytes received that make no whole message yet.
    pub carry: Vec<u8>,
    /// How many connections were asked for.
    pub connections: u32,
    /// When the present connection was asked for.
    pub connecting_since: Nanos,
    /// The socket.
    pub token: Option<Token>,
    /// How far the connection is.
    pub phase: LinkPhase,
    /// What it is for.
    pub role: Role,
    /// True while the socket takes no more bytes.
    pub is_blocked: bool,
    /// True from [`LinkPhase::Ready`] until the connection is taken down.
    pub is_standing: bool,
    /// True once it is known that the connection cannot go on, until it is taken down.
    pub is_lost: bool,
    /// True while it stands in the queue of links that may take a shared message.
    pub is_queued: bool,
    /// True while it stands in the list of links with bytes to flush.
    pub is_dirty: bool,
    /// Connection attempts that failed in a row.
    pub attempts: u8,
    /// When the wire wants to be woken; other entries of the heap are stale.
    pub wake_at: Nanos,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkPhase {
    /// No socket.
    Idle,
    /// The socket is being connected, or the session is being set up.
    Opening,
    /// Operations may start.
    Ready,
    /// It ends once its bytes are out.
    Closing,
    /// It will not come back.
    Dead,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// When it was due.
    pub due: Nanos,
    /// When it was handed to the transport.
    pub sent: Nanos,
    /// Its number at its producer, of the measured or of the warm-up messages.
    pub number: u64,
    /// Deliveries still awaited where a message completes by being delivered; else 1.
    pub copies: u32,
    /// True before the measured window.
    pub warmup: bool,
    /// True once it is past Tmax; it no longer counts against the window.
    pub is_expired: bool,
}

/// The messages in flight of one link, by ticket.
#[derive(Default)]
pub(crate) struct Flights {
    slots: Vec<Option<Flight>>,
    free: Vec<u32>,
    live: u32,
    expired: u32,
}

impl Flights {
    /// Takes a flight in and names it.
    pub(crate) fn start(&mut self, flight: Flight) -> Ticket {
        self.live += 1;
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(flight);
                Ticket(slot)
            }
            None => {
                self.slots.push(Some(flight));
                Ticket(self.slots.len() as u32 - 1)
            }
        }
    }

    /// Ends a flight; `None` if there is no such one.
    pub(crate) fn end(&mut self, ticket: Ticket) -> Option<Flight> {
        let flight = self.slots.get_mut(ticket.0 as usize)?.take()?;
        self.free.push(ticket.0);
        self.live -= 1;
        self.expired -= u32::from(flight.is_expired);
        Some(flight)
    }

    /// One copy of the message `number` was delivered; the flight, once all copies were.
    pub(crate) fn deliver(&mut self, number: u64, warmup: bool) -> Option<Flight> {
        let slot = self.slots.iter_mut().position(|slot| {
            slot.is_some_and(|flight| flight.number == number && flight.warmup == warmup)
        })?;
        let flight = self.slots[slot].as_mut()?;
        flight.copies = flight.copies.saturating_sub(1);
        if flight.copies == 0 { self.end(Ticket(slot as u32)) } else { None }
    }

    /// Marks what was handed over before `before` as expired and calls `each` for it.
    pub(crate) fn expire(&mut self, before: Nanos, mut each: impl FnMut(&Flight)) {
        for flight in self.slots.iter_mut().flatten() {
            if !flight.is_expired && flight.sent < before {
                flight.is_expired = true;
                self.expired += 1;
                each(flight);
            }
        }
    }

    /// Ends all flights.
    pub(crate) fn take_all(&mut self) -> Vec<Flight> {
        self.free.clear();
        (self.live, self.expired) = (0, 0);
        std::mem::take(&mut self.slots).into_iter().flatten().collect()
    }

    /// Flights that still count against the window.
    pub(crate) fn awaited(&self) -> u32 {
        self.live - self.expired
    }

    /// All flights, expired ones included.
    pub(crate) fn live(&self) -> u32 {
        self.live
    }
}

impl LinkState {
    /// A link that has not been opened yet.
    pub(crate) fn new(index: u32, account: u32, role: Role) -> LinkState {
        LinkState {
            index,
            account,
            sequence: 0,
            warmup_sequence: 0,
            first_here: 0,
            quota: 0,
            burst_left: 0,
            waiting: VecDeque::new(),
            held_up: 0,
            flights: Flights::default(),
            out: Outbox::default(),
            out_taken: 0,
            carry: Vec::new(),
            connections: 0,
            connecting_since: Nanos(0),
            token: None,
            phase: LinkPhase::Idle,
            role,
            is_blocked: false,
            is_standing: false,
            is_lost: false,
            is_queued: false,
            is_dirty: false,
            attempts: 0,
            wake_at: Nanos::NEVER,
        }
    }

    /// Forgets the connection, keeps the place in the trial.
    pub(crate) fn forget_connection(&mut self) {
        self.token = None;
        self.phase = LinkPhase::Idle;
        self.is_blocked = false;
        self.is_standing = false;
        self.is_lost = false;
        self.out = Outbox::default();
        self.out_taken = 0;
        self.carry = Vec::new();
    }
}
