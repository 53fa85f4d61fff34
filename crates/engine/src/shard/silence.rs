//! A target that takes connections and messages and never sends a byte. The trial ends early with
//! an error that says what was awaited, instead of measuring silence until its load is over.

use weigh_model::Nanos;

use super::parts::Silence;
use super::{Phase, Shard};
use crate::io::Io;
use crate::job::Failure;
use crate::outcome::NO_BYTE;

impl Shard {
    /// Ends the trial if something has been awaited for [`SILENCE_MIN`] and for the time limit of a
    /// message, and no session of the trial has received a byte. A target that takes bytes or ends
    /// connections is not silent.
    pub(super) fn check_silence(&mut self, io: &mut dyn Io, now: Nanos) {
        if self.silence == Silence::Over {
            return;
        }
        if io.bytes().1 > 0 {
            self.orders.note_heard();
        }
        let is_evidence = !self.job.may_be_cut_off && self.job.rendezvous.is_in_one_process();
        if self.orders.is_heard() || !is_evidence {
            self.silence = Silence::Over;
            return;
        }
        let is_running =
            matches!(self.clock.phase, Phase::WarmingUp | Phase::Measuring | Phase::Draining);
        if !is_running || self.books.outcome.was_interrupted {
            return;
        }
        let awaits = self.books.in_flight > 0 || self.books.requests_awaited > 0;
        match self.silence {
            Silence::Unasked if awaits => self.silence = Silence::Since(now),
            Silence::Since(since) => {
                let patience = SILENCE_MIN.max(self.rules.timeout);
                if now >= since.max(self.books.last_moved) + patience {
                    self.end_in_silence(patience);
                }
            }
            Silence::Unasked | Silence::Over => {}
        }
    }

    fn end_in_silence(&mut self, patience: Nanos) {
        let spoken = &self.job.trial.protocol;
        let awaited = if self.rules.ends_by_delivery { "delivery" } else { "answer" };
        let reason = format!(
            "accepted {spoken} connections and {NO_BYTE} {} s; awaited: the first {awaited}",
            patience.as_secs_f64()
        );
        self.failure.get_or_insert(Failure::Session { address: self.job.address, reason });
        self.orders.give_up();
    }
}

/// Least silence that ends a trial: as long as a target may take to accept connections.
const SILENCE_MIN: Nanos = Nanos::from_secs(10);
