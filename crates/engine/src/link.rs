//! A link: one connection of the generator with its messages in flight and those that wait for it.
//! It is small, because a shard may hold twenty thousand of them: the state of messages is
//! allocated separately and only if there are messages, and buffers are lent only while they hold
//! bytes.

use std::collections::VecDeque;

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Outbox, Ticket};
use weigh_model::mark::Mark;
use weigh_model::pieces::{BodyMaker, BodyReader};
use weigh_model::protocol::Role;

use crate::flights::{Batches, Flight, Flights};
use crate::io::Token;
use crate::recorder::Sending;

/// Names a link of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub u32);

/// A connection of the generator.
pub(crate) struct Link {
    /// The protocol's state machine; none between the connections of a link that opens one per
    /// message.
    pub connection: Option<Box<dyn Connection>>,
    /// All other state, separate so that it can be borrowed together with the connection.
    pub state: LinkState,
}

/// A link without its state machine.
pub(crate) struct LinkState {
    /// Index among the connections of its role, over all shards.
    pub index: u32,
    /// Index into the shard's accounts of its role.
    pub account: u32,
    /// Number of connections that were requested.
    pub connections: u32,
    /// Time at which the connection wants to be woken; other entries of the heap are stale.
    pub wake_at: Tick,
    /// The socket.
    pub token: Option<Token>,
    /// Time at which the present connection was requested.
    pub connecting_since: Nanos,
    /// State of messages; `None` on a link that sends none.
    traffic: Option<Box<Traffic>>,
    /// Bytes on their way, in either direction; none where there are none.
    pub staged: Option<Box<Staged>>,
    /// Phase of the connection.
    pub phase: LinkPhase,
    /// Role of the connection.
    pub role: Role,
    /// True while the socket takes no more bytes.
    pub is_blocked: bool,
    /// True from [`LinkPhase::Ready`] until the connection is taken down.
    pub is_standing: bool,
    /// True once it is known that the connection cannot continue, until it is taken down.
    pub is_lost: bool,
    /// True while it stands in the queue of links that may take a shared message.
    pub is_queued: bool,
    /// True while it stands in the list of links with bytes to flush.
    pub is_dirty: bool,
    /// Connection attempts that failed in a row.
    pub attempts: u8,
}

/// State of a link that moves messages.
#[derive(Default)]
pub(crate) struct Traffic {
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
    /// Number of messages at the front that had to wait because the window was full.
    pub held_up: u32,
    /// By how much the generator was late to open the connection for the message at the front,
    /// where each message has a connection of its own.
    pub opening_lag: Nanos,
    /// Messages in flight, by ticket.
    pub flights: Flights,
    /// Those of them that the server did not process: they are sent again on the next connection.
    pub unprocessed: Vec<Ticket>,
    /// Short connections in a row that ended before the server had answered anything on them.
    pub fruitless: u8,
    /// True once the server has answered on the present connection.
    pub has_answer: bool,
    /// Exchanges of several messages that are not over.
    pub batches: Batches,
    /// The exchange of which a part is still to be handed over, and how many messages that is.
    pub filling: Option<(u32, u32)>,
    /// Since when that exchange has had all its messages; never where it waited for the window, or
    /// once a part of it has left.
    pub complete_since: Nanos,
    /// Request of a consumer that has no answer yet.
    pub asked: Option<Asked>,
    /// The object that is being sent piece by piece.
    pub outgoing: Option<Box<Outgoing>>,
    /// The object that is coming in piece by piece.
    pub incoming: Option<Box<Incoming>>,
}

/// The buffers of a connection with bytes on their way.
#[derive(Default)]
pub(crate) struct Staged {
    /// Bytes that wait for the socket.
    pub out: Outbox,
    /// Number of them that the socket has taken.
    pub taken: usize,
    /// Bytes received that make no whole message yet.
    pub carry: Vec<u8>,
}

impl Staged {
    /// True if it holds nothing, so that another link may have it.
    pub(crate) fn is_empty(&self) -> bool {
        self.out.is_empty() && self.carry.is_empty()
    }
}

/// A moment in steps of [`Tick::LENGTH`], so that connections which want to be woken one soon after
/// the other are woken together, and so that the moment is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(u32);

impl Tick {
    /// Maximum lateness of waking a connection. Keep-alives and timeouts ask for it, in seconds; at
    /// 100,000 connections and a keep-alive of 60 s, 33 of them share one tick.
    pub(crate) const LENGTH: Nanos = Nanos::from_millis(20);

    /// No moment that comes.
    pub(crate) const NEVER: Tick = Tick(u32::MAX);

    /// The first that does not lie before `moment`; they last for two years.
    pub(crate) fn at(moment: Nanos) -> Tick {
        Tick(u32::try_from(moment.0.div_ceil(Tick::LENGTH.0)).unwrap_or(u32::MAX))
    }

    /// Returns the time of the tick.
    pub(crate) fn moment(self) -> Nanos {
        Nanos(u64::from(self.0) * Tick::LENGTH.0)
    }
}

/// Phase of a connection.
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

/// An object of which a part has been handed to the connection.
pub(crate) struct Outgoing {
    /// Makes the rest.
    pub maker: BodyMaker,
    /// Names its flight.
    pub ticket: Ticket,
    /// True if nothing will be heard of it: it is done with its last byte.
    pub is_unanswered: bool,
}

/// An object of which a part has come in.
pub(crate) struct Incoming {
    /// Checks it as it comes.
    pub reader: BodyReader,
    /// The topic it came on.
    pub topic: Box<[u8]>,
    /// Bytes that have not come yet.
    pub left: u64,
    /// Time at which its head arrived.
    pub since: Nanos,
}

/// A consumer's request for what is new.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Time at which it was handed to the transport.
    pub sent: Nanos,
    /// Delay of that after the due time.
    pub lag: Nanos,
    /// Messages that its answer has brought so far.
    pub messages: u32,
    /// True within the measured window.
    pub is_counted: bool,
}

impl Asked {
    /// Returns how long a message sent at `message_sent` had to wait because this request was late:
    /// only what was there before the request waited for it.
    pub(crate) fn kept_waiting(&self, message_sent: Nanos) -> Nanos {
        self.lag.min(self.sent.since(message_sent))
    }
}

/// A consumer that got its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// Its link.
    pub link: LinkId,
    /// Time at which the answer was complete.
    pub now: Nanos,
    /// The request.
    pub asked: Asked,
    /// True if the answer was an error.
    pub is_refused: bool,
}

impl Traffic {
    const NONE: Traffic = Traffic {
        sequence: 0,
        warmup_sequence: 0,
        first_here: 0,
        quota: 0,
        burst_left: 0,
        waiting: VecDeque::new(),
        held_up: 0,
        opening_lag: Nanos(0),
        flights: Flights::NONE,
        unprocessed: Vec::new(),
        fruitless: 0,
        has_answer: false,
        batches: Batches::NONE,
        filling: None,
        complete_since: Nanos::NEVER,
        asked: None,
        outgoing: None,
        incoming: None,
    };

    /// Ends the messages in flight, if `keeps` without those that are sent again.
    pub(crate) fn end_flights(&mut self, keeps: bool) -> Vec<Flight> {
        if keeps && !self.unprocessed.is_empty() {
            return self.flights.take_others(&self.unprocessed);
        }
        self.unprocessed.clear();
        self.flights.take_all()
    }

    /// Notes that the connection ends; returns the number of short connections in a row on which
    /// the server has answered nothing.
    pub(crate) fn end_connection(&mut self, is_short: bool) -> u8 {
        let is_fruitless = is_short && !self.has_answer;
        self.fruitless = if is_fruitless { self.fruitless.saturating_add(1) } else { 0 };
        self.has_answer = false;
        self.fruitless
    }

    /// Once for each link, apart from what every message goes through.
    #[cold]
    fn made() -> Box<Traffic> {
        Box::default()
    }
}

impl LinkState {
    /// A link that has not been opened yet.
    pub(crate) fn new(index: u32, account: u32, role: Role) -> LinkState {
        LinkState {
            index,
            account,
            connections: 0,
            wake_at: Tick::NEVER,
            token: None,
            connecting_since: Nanos(0),
            traffic: None,
            staged: None,
            phase: LinkPhase::Idle,
            role,
            is_blocked: false,
            is_standing: false,
            is_lost: false,
            is_queued: false,
            is_dirty: false,
            attempts: 0,
        }
    }

    /// Returns the state of messages.
    #[inline]
    pub(crate) fn traffic(&self) -> &Traffic {
        static NONE: Traffic = Traffic::NONE;
        self.traffic.as_deref().unwrap_or(&NONE)
    }

    /// Returns the state of messages, to be changed; it is made at the first call.
    #[inline]
    pub(crate) fn traffic_mut(&mut self) -> &mut Traffic {
        self.traffic.get_or_insert_with(Traffic::made)
    }

    /// Returns the state of messages, to be changed, if there is one already.
    pub(crate) fn known_traffic(&mut self) -> Option<&mut Traffic> {
        self.traffic.as_deref_mut()
    }

    /// The mark of the next message of a producer.
    #[inline]
    pub(crate) fn next_mark(&self, tag: u16, sending: Sending, warmup: bool) -> Mark {
        let traffic = self.traffic();
        let sequence = if warmup { traffic.warmup_sequence } else { traffic.sequence };
        let Sending { due, sent, own_lag } = sending;
        Mark { tag, warmup, producer: self.index, sequence, due, lag: sent - due, own_lag }
    }

    /// Bytes that wait for the socket.
    #[inline]
    pub(crate) fn out_bytes(&self) -> usize {
        self.staged.as_ref().map_or(0, |staged| staged.out.len())
    }

    /// Forgets the connection, keeps the place in the trial.
    pub(crate) fn forget_connection(&mut self) {
        self.token = None;
        self.phase = LinkPhase::Idle;
        self.is_blocked = false;
        self.is_standing = false;
        self.is_lost = false;
        self.staged = None;
        if let Some(traffic) = &mut self.traffic {
            traffic.asked = None;
            traffic.outgoing = None;
            traffic.incoming = None;
        }
    }
}

/// An idle link, its state machine apart.
const _: () = assert!(size_of::<Link>() <= 72);
