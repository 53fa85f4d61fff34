//! The requests of consumers that ask for their messages: how many, and how long their parts took.

use weigh_model::{Nanos, portable_fields};

use crate::times::Times;

/// Counts and times of requests in the measured window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Polls {
    /// Requests.
    pub made: u64,
    /// Those whose answers held no message.
    pub empty: u64,
    /// Messages that answers to them held, of whatever kind.
    pub messages: u64,
    /// Those that were due and not made, because the last one was not answered.
    pub skipped: u64,
    /// Those that were answered with an error.
    pub refused: u64,
    /// Due to the request that fetched the message; 0 where that was made before.
    pub wait: Times,
    /// That request, or the due time if it is later, to the answer.
    pub round_trip: Times,
    /// The answer to the message taken out of it and known.
    pub handling: Times,
    /// A request's due time to its sending.
    pub lag: Times,
}

impl Polls {
    /// Takes the memory for the times before the first of them.
    pub fn prepare(&mut self) {
        let times = [&mut self.wait, &mut self.round_trip, &mut self.handling, &mut self.lag];
        times.into_iter().for_each(Times::prepare);
    }

    /// A measured message, due at `due`, was in the answer that came at `answered` to a request
    /// made at `asked`, and was taken out of it at `handled`. The three parts add up to its
    /// delivery time.
    pub fn delivered(&mut self, due: Nanos, asked: Nanos, answered: Nanos, handled: Nanos) {
        self.wait.record(asked.since(due).0);
        self.round_trip.record(answered.since(asked.max(due)).0);
        self.handling.record(handled.since(answered).0);
    }

    /// Adds another shard's requests.
    pub fn merge(&mut self, other: &Polls) {
        self.made += other.made;
        self.empty += other.empty;
        self.messages += other.messages;
        self.skipped += other.skipped;
        self.refused += other.refused;
        self.wait.merge(&other.wait);
        self.round_trip.merge(&other.round_trip);
        self.handling.merge(&other.handling);
        self.lag.merge(&other.lag);
    }
}

portable_fields!(Polls {
    made,
    empty,
    messages,
    skipped,
    refused,
    wait,
    round_trip,
    handling,
    lag,
});
