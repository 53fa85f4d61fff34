//! Messages that the server did not process, as it said: they are sent again on the next connection
//! of their link. They stay in flight meanwhile, and keep their identity and due time.

use weigh_model::Nanos;
use weigh_model::connection::{Op, Ticket};
use weigh_model::ledger::Cause;
use weigh_model::mark::Mark;

use super::Shard;
use super::streaming::compose;
use crate::flights::Flight;
use crate::io::Io;
use crate::link::{Link, LinkId, LinkPhase};

impl Shard {
    /// Sends again on the links that have become ready.
    pub(super) fn repeat_unprocessed(&mut self, io: &mut dyn Io) {
        for place in 0..self.books.unblocked.len() {
            let link = self.books.unblocked[place];
            if !self.links[link].state.traffic().unprocessed.is_empty() {
                self.repeat_on(link, io);
            }
        }
    }

    fn repeat_on(&mut self, link: LinkId, io: &mut dyn Io) {
        while let Some(ticket) = self.next_to_repeat(link) {
            let now = io.now();
            let state = &mut self.links[link].state;
            let Some(flight) = state.traffic().flights.get(ticket).copied() else { continue };
            if flight.is_expired {
                state.traffic_mut().flights.end(ticket);
                self.books.in_flight -= 1;
                self.books.fail(&self.links[link].state, &flight, Cause::Timeout);
                continue;
            }
            self.send_again(link, ticket, &flight, now);
        }
        self.flush(link, io);
    }

    /// Takes the next message of a link that is to be sent again, if the link takes it now.
    fn next_to_repeat(&mut self, link: LinkId) -> Option<Ticket> {
        let Link { connection, state } = &mut self.links[link];
        let takes = state.phase == LinkPhase::Ready
            && !state.is_blocked
            && !state.is_lost
            && connection.as_ref().is_some_and(|own| own.room() > 0);
        let unprocessed = &mut state.traffic_mut().unprocessed;
        (takes && !unprocessed.is_empty()).then(|| unprocessed.remove(0))
    }

    fn send_again(&mut self, link: LinkId, ticket: Ticket, flight: &Flight, now: Nanos) {
        let Link { connection, state } = &mut self.links[link];
        let Some(connection) = connection else { return };
        let Flight { due, own_lag, number: sequence, warmup, .. } = *flight;
        let (tag, producer, lag) = (self.rules.tag, state.index, now - due);
        let mark = Mark { tag, warmup, producer, sequence, due, lag, own_lag };
        self.out.body.clear();
        let composed = compose(&self.job, self.rules.exchange, &mark, &mut self.out.body);
        let mut staged = self.out.spare.lend(state);
        let op = Op { ticket, body: &self.out.body };
        composed.hand_to(connection, &op, now, &mut staged.out);
        state.staged = Some(staged);
        self.books.outcome.accounts.sent_again += 1;
        self.mark_dirty(link);
    }
}
