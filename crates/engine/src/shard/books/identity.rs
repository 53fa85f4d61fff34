//! Identity of a body: it decides what can be opened, what a producer may have sent, and the mark
//! that a body without one would have had.

use weigh_model::Nanos;
use weigh_model::mark::{Mark, Reading};
use weigh_model::protocol::Role;

use super::{Bookkeeping, SEQUENCES_ELSEWHERE_MAX};
use crate::link::LinkState;

impl Bookkeeping {
    /// Returns the opened body; a body that a consumer cannot open did not arrive complete.
    #[inline]
    pub(super) fn opened(&self, state: &LinkState, body: &[u8], reading: Reading) -> Reading {
        match reading {
            Reading::Whole(mark)
                if state.role == Role::Consumer
                    && !self.job.composer.opens(body, state.index, &mark) =>
            {
                Reading::Corrupt(Some(mark))
            }
            reading => reading,
        }
    }

    /// No number at or above this can have been sent by the mark's producer: a server that makes
    /// one up must not make the tally grow.
    pub(super) fn sequences_below(&self, mark: &Mark) -> u64 {
        let place = (mark.producer / self.job.shards) as usize;
        let account = self.outcome.accounts.producers.get(place);
        match account.filter(|account| account.index == mark.producer) {
            Some(account) if mark.warmup => account.warmup_sent,
            Some(account) => account.sent,
            None => SEQUENCES_ELSEWHERE_MAX,
        }
    }

    /// The mark that the `number`th message of `producer` would have had: its warm-up messages
    /// come first.
    pub(super) fn by_order(&self, producer: u32, number: u64) -> Reading {
        let warmups = self.warmup_sent(producer);
        let warmup = number < warmups;
        let sequence = if warmup { number } else { number - warmups };
        let (tag, due, lag) = (self.rules.tag, Nanos(0), Nanos(0));
        Reading::Whole(Mark { tag, warmup, producer, sequence, due, lag, own_lag: lag })
    }

    /// Warm-up messages that `producer` has sent, as far as this shard knows.
    pub(super) fn warmup_sent(&self, producer: u32) -> u64 {
        let place = (producer / self.job.shards) as usize;
        let account = self.outcome.accounts.producers.get(place);
        account.filter(|account| account.index == producer).map_or(0, |own| own.warmup_sent)
    }
}
