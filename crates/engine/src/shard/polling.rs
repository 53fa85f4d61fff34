//! Consumers that ask for what is new: each at its own times, one request at a time.

use std::cmp::Reverse;

use weigh_model::load::Polling;
use weigh_model::{Load, Nanos};
use weigh_stats::random::Random;

use super::parts::Reason;
use super::{Phase, Shard};
use crate::io::Io;
use crate::link::{Answered, Asked, Link, LinkPhase};
use crate::outcome::SILENCE;

impl Shard {
    /// The load begins: every consumer has a first time to ask.
    pub(super) fn begin_polling(&mut self) {
        let load = self.job.load();
        let Some(polling) = load.polling() else { return };
        let reason = if polling.wait.0 > 0 { Reason::Answer } else { Reason::Tick };
        for link in 0..self.desk.left.accounts.consumers.len() as u32 {
            let consumer = self.links[link as usize].state.index;
            let offset = first_request(load, &polling, self.job.trial.seed, consumer);
            self.source.asks.push(Reverse((self.clock.start + offset, reason, link)));
        }
    }

    /// Lets everybody ask whose time has come.
    pub(super) fn ask_due(&mut self, io: &mut dyn Io, now: Nanos) {
        let Some(polling) = self.job.load().polling() else { return };
        self.note_answered(&polling);
        let released_before = self.source.last_release;
        while let Some(Reverse((due, reason, link))) = self.source.asks.peek().copied() {
            if due > now {
                break;
            }
            self.source.asks.pop();
            self.source.last_release = now;
            self.ask((link, due, reason), &polling, io);
            if self.out.dirty.len() >= ASKED_TOGETHER {
                self.flush_dirty(io);
            }
        }
        self.keep_pace(released_before, now);
    }

    /// When the next one asks.
    pub(super) fn next_ask(&self) -> Nanos {
        self.source.asks.peek().map_or(Nanos::NEVER, |Reverse((due, ..))| *due)
    }

    /// An answer that is full is followed by the next request at once: there is more. A long poll
    /// goes on after every answer, whatever was in it.
    fn note_answered(&mut self, polling: &Polling) {
        for Answered { link, now, asked, is_refused } in self.desk.answered.drain(..) {
            let is_early = asked.messages == 0 && now < asked.sent + Nanos(polling.wait.0 / 2);
            if asked.messages >= polling.limit {
                self.source.asks.push(Reverse((now, Reason::Answer, link)));
            } else if polling.wait.0 > 0 {
                // A server that refuses, or does not hold what it has nothing for, is not to be
                // asked as fast as it answers.
                let pause = if is_refused || is_early { SESSION_AWAITED } else { Nanos(0) };
                let next = now + polling.period.max(pause);
                self.source.asks.push(Reverse((next, Reason::Answer, link)));
            }
        }
    }

    fn ask(
        &mut self,
        (link, due, reason): (u32, Nanos, Reason),
        polling: &Polling,
        io: &mut dyn Io,
    ) {
        let is_counted = self.counts_request(due);
        let Link { connection, state } = &mut self.links[link as usize];
        if state.phase == LinkPhase::Dead {
            return;
        }
        if reason == Reason::Tick {
            self.source.asks.push(Reverse((due + polling.period, reason, link)));
        }
        let sent = io.now();
        let stands = state.phase == LinkPhase::Ready && !state.is_lost;
        let is_idle = stands && state.traffic().asked.is_none();
        let Some(connection) = connection.as_mut().filter(|_| is_idle) else {
            if reason == Reason::Tick {
                self.desk.left.recorder.polls.skipped += u64::from(is_counted);
            } else if !stands {
                self.source.asks.push(Reverse((sent + SESSION_AWAITED, reason, link)));
            }
            return;
        };
        let mut staged = self.out.spare.lend(state);
        if let Some(poll) = connection.poll() {
            poll.ask(sent, &mut staged.out);
        }
        self.out.spare.settle(state, staged);
        state.traffic_mut().asked = Some(Asked { sent, lag: sent - due, messages: 0, is_counted });
        self.desk.note_asked(due, sent, is_counted);
        self.mark_dirty(link);
    }

    /// True for a request of the measured window: where a time ends that, by when it was due; where
    /// a number of messages does, while they are sent.
    fn counts_request(&self, due: Nanos) -> bool {
        let is_within = due >= self.clock.measure_from && due < self.clock.end;
        is_within && (self.clock.end < Nanos::NEVER || self.clock.phase == Phase::Measuring)
    }

    /// Gives connections up on which an answer takes longer than Tmax.
    pub(super) fn expire_requests(&mut self, now: Nanos) {
        let load = self.job.load();
        let Some(polling) = load.polling() else { return };
        let patience = load.timeout + polling.wait;
        for link in 0..self.desk.left.accounts.consumers.len() as u32 {
            let state = &self.links[link as usize].state;
            let asked = state.traffic().asked.filter(|_| !state.is_lost);
            if asked.is_some_and(|asked| now > asked.sent + patience) {
                self.lose(link, SILENCE.to_owned(), false);
            }
        }
    }

    /// What a consumer had asked when its connection went will not be answered.
    pub(super) fn forget_request(&mut self, link: u32, now: Nanos) {
        let Some(polling) = self.job.load().polling() else { return };
        let state = &mut self.links[link as usize].state;
        let asked = state.known_traffic().and_then(|traffic| traffic.asked.take());
        if let Some(asked) = asked {
            self.desk.requests_awaited -= u64::from(asked.is_counted);
            if polling.wait.0 > 0 {
                self.source.asks.push(Reverse((now + SESSION_AWAITED, Reason::Answer, link)));
            }
        }
    }
}

/// When a consumer asks first, counted from the begin of the load: the consumers are spread evenly
/// over one period, each by chance within its own part of it. Long polls all begin at once.
fn first_request(load: &Load, polling: &Polling, seed: u64, consumer: u32) -> Nanos {
    if polling.wait.0 > 0 {
        return Nanos(0);
    }
    let mut random = Random::stream(seed, FIRST_STREAM + u64::from(consumer));
    let share = (f64::from(consumer) + random.next_f64()) / f64::from(load.subscribers.max(1));
    Nanos((polling.period.0 as f64 * share) as u64)
}

/// Requests that are composed before they are handed over.
const ASKED_TOGETHER: usize = 32;

/// How soon a long poll looks again whether its session stands, or asks a server again that did
/// not let it wait.
const SESSION_AWAITED: Nanos = Nanos::from_millis(10);

/// The random streams of consumers lie beyond those of all clients.
const FIRST_STREAM: u64 = 1 << 40;
