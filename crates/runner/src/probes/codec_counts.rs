//! Counts of the generator's codecs for a trial, for comparison with the capture.

use weigh_engine::contents::Contents;
use weigh_engine::outcome::Outcome;

use crate::targets::handshakes::Handshakes;

/// Counts of a trial by the generator.
#[derive(Default)]
pub struct CodecCounts {
    /// Messages sent, warm-up included.
    pub messages: u64,
    /// Contents of each connection.
    pub contents: Option<Contents>,
    /// Counts of TLS.
    pub tls: Option<Handshakes>,
}

impl CodecCounts {
    /// Takes the contents from the generator's accounts.
    pub fn of(outcome: &mut Outcome, tls: Option<Handshakes>) -> CodecCounts {
        let producers = &outcome.shards.accounts.producers;
        let messages = producers.iter().map(|one| one.sent + one.warmup_sent).sum();
        CodecCounts { messages, contents: outcome.shards.contents.take(), tls }
    }
}
