//! Books of exchanges that hold several messages: the answers to consumers that ask, and batches.

use weigh_model::Nanos;
use weigh_model::mark::Reading;

use super::Bookkeeping;
use crate::flights::{Flight, NO_BATCH};
use crate::link::{Answered, LinkId, LinkState};

impl Bookkeeping {
    /// A consumer has made a request that was due at `due`.
    pub(in crate::shard) fn request_made(&mut self, due: Nanos, sent: Nanos, is_counted: bool) {
        if is_counted {
            self.requests_awaited += 1;
            self.outcome.recorder.polls.made += 1;
            self.outcome.recorder.polls.lag.record((sent - due).0);
        }
    }

    /// A message of an answer: it is delivered when it has been taken out of it.
    pub(super) fn polled(&mut self, state: &mut LinkState, now: Nanos, reading: Reading) {
        if let Some(asked) = &mut state.traffic_mut().asked {
            asked.messages += 1;
        }
        let handled = self.epoch.map_or(now, |epoch| Nanos(epoch.elapsed().as_nanos() as u64));
        let late_request = match (reading, state.traffic().asked) {
            (Reading::Whole(mark), Some(asked)) => asked.kept_waiting(mark.due + mark.lag),
            _ => Nanos(0),
        };
        let is_delivered = self.message(state, handled, reading, late_request);
        if let (true, Reading::Whole(mark), Some(asked)) =
            (is_delivered && self.rules.is_marked, reading, state.traffic().asked)
        {
            self.outcome.recorder.polls.delivered(mark.due, asked.sent, now, handled);
        }
    }

    /// A consumer's request is answered.
    pub(super) fn answered(
        &mut self,
        link: LinkId,
        state: &mut LinkState,
        now: Nanos,
        result: Result<(), u16>,
    ) {
        let traffic = state.traffic_mut();
        let Some(asked) = traffic.asked.take() else { return };
        traffic.has_answer = true;
        let is_refused = result.is_err();
        self.answered.push(Answered { link, now, asked, is_refused });
        if !asked.is_counted {
            return;
        }
        self.requests_awaited -= 1;
        self.outcome.recorder.polls.messages += u64::from(asked.messages);
        match result {
            Ok(()) => self.outcome.recorder.polls.empty += u64::from(asked.messages == 0),
            Err(status) => {
                self.outcome.recorder.polls.refused += 1;
                self.outcome.first_refusal.get_or_insert(status);
            }
        }
    }

    /// True if the exchange that a flight belongs to is over with it; one that shares it with no
    /// other always is. An expired one has been counted when it expired.
    pub(super) fn end_in_batch(
        &mut self,
        state: &mut LinkState,
        flight: &Flight,
        is_confirmed: bool,
        now: Nanos,
    ) -> bool {
        if flight.batch == NO_BATCH || flight.is_expired {
            return true;
        }
        let Some(batch) = state.traffic_mut().batches.end_one(flight.batch, is_confirmed) else {
            return false;
        };
        if batch.failed == 0 && !batch.warmup {
            self.outcome.recorder.batch.record((now - batch.due).0);
        }
        true
    }
}
