//! The end of a trial: what is in flight is awaited, what did not come is booked as lost.

use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::protocol::Role;
use weigh_model::{Nanos, Pattern, Topology};

use super::parting::PARTING_TIME_MAX;
use super::parts::Awaited;
use super::source::Source;
use super::{Phase, Shard};
use crate::accounts::ProducerAccount;
use crate::io::Io;
use crate::link::{LinkId, LinkPhase};
use crate::rendezvous::Totals;

impl Shard {
    /// Nothing more is sent from here on.
    pub(super) fn start_draining(&mut self, now: Nanos) {
        self.clock.phase = Phase::Draining;
        let sent = self.books.outcome.accounts.producers.iter().map(ProducerAccount::left);
        let sent: u64 = sent.sum();
        if self.job.load().pattern == Pattern::Hold && !self.books.outcome.was_interrupted {
            // Answers to what was said last are awaited like those to messages.
            self.books.last_due = self.clock.end;
        }
        self.job.rendezvous.note_sent(sent, self.books.last_due);
        self.book_unsent(now);
    }

    fn book_unsent(&mut self, now: Nanos) {
        let measure_from = self.clock.measure_from;
        // A slot of a closed loop that never got a session had its message all the time.
        let is_cut_off =
            self.job.may_be_cut_off && self.books.outcome.opened == 0 && !self.rules.has_quotas;
        let cause = if self.books.outcome.was_interrupted {
            NotSentCause::Interrupted
        } else if self.links.iter().all(|link| link.state.phase != LinkPhase::Ready) {
            NotSentCause::ConnectionClosed
        } else {
            NotSentCause::WindowFull
        };
        let measured = |dues: &std::collections::VecDeque<Nanos>| {
            dues.iter().filter(|due| **due >= measure_from).count() as u64
        };
        let mut unsent = measured(&self.pending.backlog);
        unsent += match cause {
            NotSentCause::ConnectionClosed => self.never_due(),
            _ => self.still_in_schedules(now),
        };
        self.pending.backlog.clear();
        self.source = Source::Nothing;
        let mut reopens = std::mem::take(&mut self.connecting.reopens);
        reopens.retain(|link| self.comes_back(link));
        self.connecting.reopens = reopens;
        for link in self.links.iter_mut() {
            let Some(traffic) = link.state.known_traffic() else { continue };
            let waiting = std::mem::take(&mut traffic.waiting);
            unsent += match self.rules.is_closed {
                false => measured(&waiting),
                true if is_cut_off => waiting.len() as u64,
                true => 0,
            };
            unsent += std::mem::take(&mut traffic.quota);
            unsent += std::mem::take(&mut traffic.burst_left);
        }
        self.pending.owed = 0;
        self.books.note_not_sent(cause, unsent);
    }

    /// Returns the time at which the trial ends even if messages are missing: Tmax after the last
    /// due time.
    fn deadline(&self, totals: &Totals) -> Nanos {
        let patience = if self.books.outcome.was_interrupted {
            self.rules.timeout.min(INTERRUPTED_PATIENCE)
        } else {
            self.rules.timeout
        };
        totals.last_due.max(self.books.last_due) + patience
    }

    /// Returns the time of the next check: at once, if the last thing that was awaited has happened
    /// since; at the deadline, once it is known; and soon if other shards may be done in the
    /// meantime.
    pub(super) fn drain_moment(&mut self, io: &mut dyn Io) -> Nanos {
        let totals = self.job.rendezvous.totals();
        if let Some(totals) = &totals
            && !self.reported.is_complete_reported
            && self.is_complete(totals)
            && self.is_seen_through()
        {
            return Nanos(0);
        }
        let deadline = totals.map_or(Nanos::NEVER, |totals| self.deadline(&totals));
        if self.job.shards > 1 || self.reported.is_complete_reported {
            deadline.min(io.now() + DRAIN_POLL)
        } else {
            deadline
        }
    }

    /// Awaits what is in flight.
    pub(super) fn drain(&mut self, now: Nanos) {
        self.settle_deliveries();
        self.books.freed.clear();
        self.books.unblocked.clear();
        self.pending.to_serve.clear();
        let unique = self.books.unique_total;
        if unique > self.reported.reported_unique {
            self.job.rendezvous.note_arrived(unique - self.reported.reported_unique);
            self.reported.reported_unique = unique;
        }
        let totals = self.job.rendezvous.totals();
        if let Some(totals) = &totals
            && !self.reported.is_complete_reported
            && self.is_complete(totals)
        {
            self.reported.is_complete_reported = true;
            self.job.rendezvous.note_complete();
        }
        let all_complete = self.job.rendezvous.is_complete();
        if all_complete && self.job.has_consumers() {
            self.clock.phase = Phase::Lingering(now + LINGER);
        } else if all_complete {
            self.settle();
        } else if totals.is_some_and(|totals| now >= self.deadline(&totals)) {
            // After an interruption the time is too short to tell.
            if !self.books.outcome.was_interrupted {
                self.books.outcome.accounts.note_backlogs(now, self.rules.timeout);
            }
            self.settle();
        }
    }

    /// True if nothing more can come to this shard: no answer is awaited, no bytes wait for a
    /// socket, and every consumer that is still there has everything it should get. What was
    /// awaited last is looked at first: most often it still is, and the others need no look.
    fn is_complete(&mut self, totals: &Totals) -> bool {
        let is_held = self.job.load().pattern == Pattern::Hold;
        if self.books.in_flight > 0
            || (self.books.requests_awaited > 0 && !self.holds_requests())
            || (is_held && self.books.signs_awaited() > 0)
        {
            return false;
        }
        let has_bytes = |link: usize| {
            let state = &self.links[LinkId(link as u32)].state;
            let is_open = matches!(state.phase, LinkPhase::Ready | LinkPhase::Closing);
            is_open && state.out_bytes() > 0
        };
        let misses = |account: usize| !self.has_everything(account, totals);
        let Awaited { link, consumer } = self.awaited;
        if let Some(link) = first_from(link, self.links.len(), has_bytes) {
            self.awaited.link = link;
            return false;
        }
        let consumers = self.books.outcome.accounts.consumers.len();
        if let Some(consumer) = first_from(consumer, consumers, misses) {
            self.awaited.consumer = consumer;
            return false;
        }
        true
    }

    /// True if nothing that left can still be on its way: all of it was confirmed, or is awaited by
    /// consumers. Unconfirmed messages get a moment to arrive before their connection is closed.
    fn is_seen_through(&self) -> bool {
        let accounts = &self.books.outcome.accounts;
        let mut producers = accounts.producers.iter();
        !accounts.consumers.is_empty()
            || producers.all(|own| own.confirmed + own.confirmed_late == own.sent)
    }

    /// True where the server holds requests until there is something new: they need not end.
    fn holds_requests(&self) -> bool {
        self.rules.consumer.polling().is_some_and(|polling| polling.wait.0 > 0)
    }

    fn has_everything(&self, account: usize, totals: &Totals) -> bool {
        let consumer = &self.books.outcome.accounts.consumers[account];
        let expected = match self.job.load().topology {
            Topology::Pairs => self
                .books
                .outcome
                .accounts
                .producers
                .get((consumer.index / self.job.shards) as usize)
                .filter(|producer| producer.index == consumer.index)
                .map_or(0, ProducerAccount::left),
            // What several got after a new division counts once for each of them, so that the
            // number of arrivals is no longer that of messages.
            Topology::Shared if self.books.outcome.accounts.regroupings.times > 0 => return false,
            Topology::Shared => return totals.arrived >= totals.sent,
            Topology::FanIn | Topology::FanOut => totals.sent,
        };
        consumer.was_disconnected || self.books.unique[account] >= expected
    }

    /// Books what is still in flight as lost: the books are closed.
    pub(super) fn settle(&mut self) {
        self.clock.phase = Phase::Settled;
        for index in self.links.ids() {
            let traffic = self.links[index].state.known_traffic();
            let Some(flights) = traffic.map(|known| known.flights.take_all()) else { continue };
            for flight in &flights {
                self.books.outcome.recorder.window.note_unanswered(flight.sent);
                self.books.fail(&self.links[index].state, flight, Cause::Timeout);
            }
        }
        self.books.in_flight = 0;
        self.books.note_end();
    }

    /// Closes every session and connection, and is done.
    pub(super) fn close_all(&mut self, io: &mut dyn Io) {
        for role in [Role::Producer, Role::Consumer] {
            for index in self.links.ids() {
                let state = &self.links[index].state;
                if state.role == role && state.token.is_some() {
                    self.close_link(index, io);
                }
            }
        }
        self.drop_lost(io);
        self.clock.phase = match self.parting.is_empty() {
            true => Phase::Done,
            false => Phase::Closing(io.now() + PARTING_TIME_MAX),
        };
    }

    /// Reacts to a request to stop: the first finishes the record, the second ends it now.
    pub(super) fn check_stop(&mut self, io: &mut dyn Io) {
        let level = self.orders.stop_level();
        if self.orders.has_failed() && self.clock.phase != Phase::Done {
            self.give_up(io);
        }
        if level == 0 || self.clock.phase == Phase::Done {
            return;
        }
        if !self.books.outcome.was_interrupted {
            self.books.outcome.was_interrupted = true;
            self.books.outcome.recorder.window.cut(io.now());
            match self.clock.phase {
                Phase::Opening | Phase::Waiting => {
                    self.orders.give_up();
                    self.give_up(io);
                }
                Phase::WarmingUp | Phase::Measuring => self.start_draining(io.now()),
                Phase::Draining
                | Phase::Lingering(_)
                | Phase::Settled
                | Phase::Closing(_)
                | Phase::Done => {}
            }
        }
        if level > 1 && !self.is_settled() {
            self.settle();
        }
    }

    /// Ends without waiting for answers.
    fn give_up(&mut self, io: &mut dyn Io) {
        if !self.is_settled() {
            self.settle();
        }
        self.close_all(io);
        self.parting.end(io);
        self.clock.phase = Phase::Done;
    }
}

/// The first of `count` places for which `is_it` holds, from `start` on and then from 0.
fn first_from(start: usize, count: usize, is_it: impl Fn(usize) -> bool) -> Option<usize> {
    (start..count).chain(0..start.min(count)).find(|place| is_it(*place))
}

/// Time that is waited for duplicates.
const LINGER: Nanos = Nanos::from_millis(50);

/// Interval at which a shard checks whether the others are done.
const DRAIN_POLL: Nanos = Nanos::from_millis(2);

/// Time that answers are awaited after an interrupt.
const INTERRUPTED_PATIENCE: Nanos = Nanos::from_millis(500);
