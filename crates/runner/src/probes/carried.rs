//! What the generator's codecs know of a trial, compared with what was on the wire.

use weigh_engine::contents::Contents;
use weigh_engine::outcome::Outcome;

use crate::targets::handshakes::Handshakes;

/// What a trial carried, as the generator knows it.
#[derive(Default)]
pub struct Carried {
    /// Messages handed over, warm-up included.
    pub messages: u64,
    /// What each connection carried.
    pub contents: Option<Contents>,
    /// What TLS counted of itself.
    pub tls: Option<Handshakes>,
}

impl Carried {
    /// From the generator's books, whose contents are taken.
    pub fn of(outcome: &mut Outcome, tls: Option<Handshakes>) -> Carried {
        let producers = &outcome.shards.accounts.producers;
        let messages = producers.iter().map(|one| one.sent + one.warmup_sent).sum();
        Carried { messages, contents: outcome.shards.contents.take(), tls }
    }
}
