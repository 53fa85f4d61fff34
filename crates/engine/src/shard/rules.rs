//! Rules for every message of a trial, decided once when a shard is made.

use weigh_model::load::Polling;
use weigh_model::protocol::{Lifetime, Transport};
use weigh_model::{Nanos, Pattern, Topology, Writes};

use crate::job::Job;

/// The modes of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Marks the messages of this trial.
    pub(super) tag: u16,
    pub(super) exchange: Exchange,
    pub(super) consumer: Consumer,
    pub(super) lifetime: Lifetime,
    pub(super) transport: Transport,
    /// True where the end of a message lets the next one go.
    pub(super) is_closed: bool,
    /// True if a schedule gives each message a due time, so that the generator can be late.
    pub(super) has_schedule: bool,
    /// True where each client has a share of the total.
    pub(super) has_quotas: bool,
    /// True where bodies carry a mark.
    pub(super) is_marked: bool,
    /// True where subscribers tell what arrived.
    pub(super) has_consumers: bool,
    /// True where a message ends by being delivered, because nothing confirms it.
    pub(super) ends_by_delivery: bool,
    /// Deliveries that end a message while all subscribers are there; 0 where an answer does.
    pub(super) copies: u32,
    /// Maximum number of messages in flight on a link, in batches of exchanges; `u32::MAX` for no
    /// limit.
    pub(super) window: u32,
    /// True where each message has a write to the socket of its own.
    pub(super) writes_single: bool,
    /// After this a message is late.
    pub(super) timeout: Nanos,
}

/// Way in which messages leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    /// Each by itself, as a whole.
    Single,
    /// This many together; they are confirmed together.
    Batch(u32),
    /// Each by itself, as an object that is sent piece by piece.
    Stream,
}

/// Way in which subscribers get messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Consumer {
    /// They listen, or there are none.
    Listen,
    /// They ask for what is new.
    Poll(Polling),
}

impl Rules {
    /// The modes of a job.
    pub(super) fn of(job: &Job) -> Rules {
        let load = job.load();
        let ends_by_delivery = job.completes_on_delivery();
        Rules {
            tag: job.trial.tag(),
            exchange: match load.pattern {
                Pattern::Batch => Exchange::Batch(load.batch_size()),
                _ if job.composer.makes_pieces() => Exchange::Stream,
                _ => Exchange::Single,
            },
            consumer: load.polling().map_or(Consumer::Listen, Consumer::Poll),
            lifetime: job.dial.lifetime,
            transport: job.dial.transport,
            is_closed: load.arrival.is_closed(),
            has_schedule: load.arrival.has_schedule(),
            has_quotas: job.has_quotas(),
            is_marked: job.composer.is_marked(),
            has_consumers: job.has_consumers(),
            ends_by_delivery,
            copies: match (ends_by_delivery, load.topology) {
                (false, _) => 0,
                (true, Topology::Pairs) => 1,
                (true, _) => (load.copies() as u32).max(1),
            },
            window: load.window.unwrap_or(u32::MAX),
            writes_single: load.writes == Writes::Single,
            timeout: load.timeout,
        }
    }

    /// Deliveries that end a message now that `dead` subscribers are gone.
    #[inline]
    pub(super) fn copies_awaited(&self, dead: usize) -> u32 {
        self.copies.min(self.copies.saturating_sub(dead as u32).max(1))
    }

    /// Returns the part of the `lag` of a message that is the generator's own lateness. A message
    /// without a schedule counts from its send time.
    #[inline]
    pub(super) fn own_lag(&self, opening_lag: Nanos, lag: Nanos, was_held_up: bool) -> Nanos {
        match self.lifetime {
            _ if !self.has_schedule => lag,
            Lifetime::PerMessage => opening_lag.min(lag),
            Lifetime::Kept if was_held_up => Nanos(0),
            Lifetime::Kept => lag,
        }
    }

    /// True where each connection carries one message, or one exchange.
    #[inline]
    pub(super) fn is_per_message(&self) -> bool {
        self.lifetime == Lifetime::PerMessage
    }
}

impl Exchange {
    /// Messages in a full exchange.
    #[inline]
    pub(super) fn size(self) -> u32 {
        match self {
            Exchange::Batch(size) => size,
            Exchange::Single | Exchange::Stream => 1,
        }
    }
}

impl Consumer {
    /// Returns the polling of subscribers; `None` if they listen.
    #[inline]
    pub(super) fn polling(self) -> Option<Polling> {
        match self {
            Consumer::Listen => None,
            Consumer::Poll(polling) => Some(polling),
        }
    }
}
