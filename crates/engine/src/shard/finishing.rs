//! The end of a trial: what is in flight is awaited, what did not come is booked as lost.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::protocol::Role;
use weigh_model::{Nanos, Pattern, Topology};

use super::parts::Timer;
use super::{Phase, Shard};
use crate::accounts::ProducerAccount;
use crate::io::Io;
use crate::link::LinkPhase;

impl Shard {
    /// Nothing more is sent from here on.
    pub(super) fn start_draining(&mut self, now: Nanos) {
        self.clock.phase = Phase::Draining;
        let shared = &self.job.shared;
        let sent = self.desk.left.accounts.producers.iter().map(ProducerAccount::left);
        let sent: u64 = sent.sum();
        shared.sent.fetch_add(sent, Ordering::SeqCst);
        if self.job.load().pattern == Pattern::Hold && !self.desk.left.was_interrupted {
            // Answers to what was said last are awaited like those to messages.
            self.desk.last_due = self.clock.end;
        }
        shared.last_due_ns.fetch_max(self.desk.last_due.0, Ordering::SeqCst);
        shared.sending_done.fetch_add(1, Ordering::SeqCst);
        self.book_unsent(now);
    }

    fn book_unsent(&mut self, now: Nanos) {
        let measure_from = self.clock.measure_from;
        let is_open = self.job.load().arrival.is_open();
        // A slot of a closed loop that never got a session had its message all the time.
        let is_cut_off =
            self.job.may_be_cut_off && self.desk.left.opened == 0 && !self.job.has_quotas();
        let cause = if self.desk.left.was_interrupted {
            NotSentCause::Interrupted
        } else if self.links.iter().all(|link| link.state.phase != LinkPhase::Ready) {
            NotSentCause::ConnectionClosed
        } else {
            NotSentCause::WindowFull
        };
        let measured = |dues: &std::collections::VecDeque<Nanos>| {
            dues.iter().filter(|due| **due >= measure_from).count() as u64
        };
        let mut unsent = measured(&self.source.backlog);
        unsent += match cause {
            NotSentCause::ConnectionClosed => self.never_due(),
            _ => self.still_in_schedules(now),
        };
        self.source.backlog.clear();
        self.source.stream_next = None;
        self.source.timers.clear();
        let reopens = std::mem::take(&mut self.connecting.reopens).into_iter();
        self.connecting.reopens =
            reopens.filter(|Reverse((_, link))| self.comes_back(*link)).collect();
        for link in &mut self.links {
            let Some(traffic) = link.state.known_traffic() else { continue };
            let waiting = std::mem::take(&mut traffic.waiting);
            unsent += match is_open {
                true => measured(&waiting),
                false if is_cut_off => waiting.len() as u64,
                false => 0,
            };
            unsent += std::mem::take(&mut traffic.quota);
            unsent += std::mem::take(&mut traffic.burst_left);
        }
        self.source.owed = 0;
        self.desk.note_not_sent(cause, unsent);
    }

    /// Measured messages that would still have become due, had anybody been left to send them:
    /// a load is offered in full, whatever becomes of the connections.
    fn never_due(&mut self) -> u64 {
        let next = u64::from(self.source.stream_next.is_some_and(|due| !due.warmup));
        let shared =
            next + self.source.stream.as_mut().map_or(0, |stream| stream.pass(Nanos::NEVER));
        let parked = std::mem::take(&mut self.source.bounds.parked);
        let parked = parked.iter().filter(|(at, _)| *at >= self.clock.measure_from).count() as u64;
        let pending = self
            .source
            .timers
            .iter()
            .filter(|Reverse((at, timer, _))| {
                *timer == Timer::Client && *at >= self.clock.measure_from
            })
            .count() as u64;
        let own = self.source.streams.iter_mut().map(|stream| stream.pass(Nanos::NEVER));
        shared + parked + pending + own.sum::<u64>()
    }

    /// When the trial ends even if messages are missing: Tmax after the last due time.
    pub(super) fn deadline(&self) -> Nanos {
        let last_due = Nanos(self.job.shared.last_due_ns.load(Ordering::SeqCst));
        let patience = if self.desk.left.was_interrupted {
            self.job.load().timeout.min(INTERRUPTED_PATIENCE)
        } else {
            self.job.load().timeout
        };
        last_due.max(self.desk.last_due) + patience
    }

    /// When to look again: at once, if the last thing that was awaited was seen to happen since; at
    /// the deadline, once it is known; and soon where other shards may be done meanwhile.
    pub(super) fn drain_moment(&self, io: &mut dyn Io) -> Nanos {
        let all_sent = self.job.shared.sending_done.load(Ordering::SeqCst) >= self.job.shards;
        if all_sent && !self.told.is_told_complete && self.is_seen_through() && self.is_complete() {
            return Nanos(0);
        }
        let deadline = if all_sent { self.deadline() } else { Nanos::NEVER };
        if self.job.shards > 1 || self.told.is_told_complete {
            deadline.min(io.now() + DRAIN_POLL)
        } else {
            deadline
        }
    }

    /// Awaits what is in flight.
    pub(super) fn drain(&mut self, now: Nanos) {
        self.settle_deliveries();
        self.desk.freed.clear();
        self.desk.stirred.clear();
        self.source.eager.clear();
        let shared = &self.job.shared;
        let unique: u64 = self.desk.unique.iter().sum();
        shared.unique.fetch_add(unique - self.told.told_unique, Ordering::SeqCst);
        self.told.told_unique = unique;
        let all_sent = shared.sending_done.load(Ordering::SeqCst) >= self.job.shards;
        if all_sent && !self.told.is_told_complete && self.is_complete() {
            self.told.is_told_complete = true;
            shared.complete.fetch_add(1, Ordering::SeqCst);
        }
        let all_complete = shared.complete.load(Ordering::SeqCst) >= self.job.shards;
        if all_complete && self.job.has_consumers() {
            self.clock.phase = Phase::Lingering(now + LINGER);
        } else if all_complete || (all_sent && now >= self.deadline()) {
            self.settle();
        }
    }

    /// True if nothing more can come to this shard: no answer is awaited, no bytes wait for a
    /// socket, and every consumer that is still there has everything it should get.
    fn is_complete(&self) -> bool {
        let is_waiting = |link: &crate::link::Link| {
            let is_open = matches!(link.state.phase, LinkPhase::Ready | LinkPhase::Closing);
            is_open && link.state.out_bytes() > 0
        };
        let is_held = self.job.load().pattern == Pattern::Hold;
        self.desk.in_flight == 0
            && (self.desk.requests_awaited == 0 || self.holds_requests())
            && (!is_held || self.desk.signs_awaited() == 0)
            && !self.links.iter().any(is_waiting)
            && (0..self.desk.left.accounts.consumers.len())
                .all(|account| self.has_everything(account))
    }

    /// True if nothing that left can still be on its way: all of it was confirmed, or is awaited by
    /// consumers. What nobody confirms is given a moment to arrive before its connection is closed.
    fn is_seen_through(&self) -> bool {
        let accounts = &self.desk.left.accounts;
        let mut producers = accounts.producers.iter();
        !accounts.consumers.is_empty()
            || producers.all(|own| own.confirmed + own.confirmed_late == own.sent)
    }

    /// True where the server holds requests until there is something new: they need not end.
    fn holds_requests(&self) -> bool {
        self.job.load().polling().is_some_and(|polling| polling.wait.0 > 0)
    }

    fn has_everything(&self, account: usize) -> bool {
        let consumer = &self.desk.left.accounts.consumers[account];
        let expected = match self.job.load().topology {
            Topology::Pairs => self
                .desk
                .left
                .accounts
                .producers
                .get((consumer.index / self.job.shards) as usize)
                .filter(|producer| producer.index == consumer.index)
                .map_or(0, ProducerAccount::left),
            Topology::Shared => {
                return self.job.shared.unique.load(Ordering::SeqCst)
                    >= self.job.shared.sent.load(Ordering::SeqCst);
            }
            Topology::FanIn | Topology::FanOut => self.job.shared.sent.load(Ordering::SeqCst),
        };
        consumer.was_disconnected || self.desk.unique[account] >= expected
    }

    /// Books what is still in flight as lost: the books are closed.
    pub(super) fn settle(&mut self) {
        self.clock.phase = Phase::Settled;
        for index in 0..self.links.len() as u32 {
            let traffic = self.links[index as usize].state.known_traffic();
            let Some(flights) = traffic.map(|known| known.flights.take_all()) else { continue };
            for flight in &flights {
                self.desk.left.recorder.window.note_unanswered(flight.sent);
                self.desk.fail(&self.links[index as usize].state, flight, Cause::Timeout);
            }
        }
        self.desk.in_flight = 0;
        self.desk.note_end();
    }

    /// Says goodbye on every connection, and is done.
    pub(super) fn part(&mut self, io: &mut dyn Io) {
        for role in [Role::Producer, Role::Consumer] {
            for index in 0..self.links.len() as u32 {
                let state = &self.links[index as usize].state;
                if state.role == role && state.token.is_some() {
                    self.close_link(index, io);
                }
            }
        }
        self.drop_lost(io);
        self.clock.phase = Phase::Done;
    }

    /// Reacts to a request to stop: the first finishes the record, the second ends it now.
    pub(super) fn heed_stop(&mut self, io: &mut dyn Io) {
        let level = self.job.shared.stop_level();
        if self.job.shared.has_failed.load(Ordering::Relaxed) && self.clock.phase != Phase::Done {
            self.give_up(io);
        }
        if level == 0 || self.clock.phase == Phase::Done {
            return;
        }
        if !self.desk.left.was_interrupted {
            self.desk.left.was_interrupted = true;
            self.desk.left.recorder.window.cut(io.now());
            match self.clock.phase {
                Phase::Opening | Phase::Waiting => {
                    self.job.shared.has_failed.store(true, Ordering::Relaxed);
                    self.give_up(io);
                }
                Phase::WarmingUp | Phase::Measuring => self.start_draining(io.now()),
                Phase::Draining
                | Phase::Lingering(_)
                | Phase::Settled
                | Phase::Parting(_)
                | Phase::Done => {}
            }
        }
        if level > 1 && !self.is_settled() {
            self.settle();
        }
    }

    /// Ends without waiting for anybody.
    fn give_up(&mut self, io: &mut dyn Io) {
        if !self.is_settled() {
            self.settle();
        }
        self.part(io);
    }
}

/// How long what may still come twice is awaited.
const LINGER: Nanos = Nanos::from_millis(50);

/// How often a shard looks whether the others are done.
const DRAIN_POLL: Nanos = Nanos::from_millis(2);

/// How long answers are awaited after an interrupt.
const INTERRUPTED_PATIENCE: Nanos = Nanos::from_millis(500);
