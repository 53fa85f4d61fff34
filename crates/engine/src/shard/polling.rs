//! Consumers that ask for what is new: each at its own times, one request at a time.

use std::cmp::Reverse;

use weigh_model::load::Polling;
use weigh_model::{Load, Nanos};
use weigh_stats::random::Random;

use super::parts::{Reason, Request};
use super::rules::Consumer;
use super::{Phase, Shard};
use crate::io::Io;
use crate::link::{Answered, Asked, Link, LinkId, LinkPhase};
use crate::outcome::SILENCE;

impl Shard {
    /// The load begins: every consumer has a first time to ask.
    pub(super) fn begin_polling(&mut self) {
        let Consumer::Poll(polling) = self.rules.consumer else { return };
        let load = self.job.load();
        let reason = if polling.wait.0 > 0 { Reason::Answer } else { Reason::Tick };
        for link in self.links.consumers() {
            let consumer = self.links[link].state.index;
            let offset = first_request(load, &polling, self.job.trial.seed, consumer);
            let due = self.clock.start + offset;
            self.requests.push(Reverse(Request { due, reason, link }));
        }
    }

    /// Makes the requests that are due.
    pub(super) fn ask_due(&mut self, io: &mut dyn Io, now: Nanos) {
        let Consumer::Poll(polling) = self.rules.consumer else { return };
        self.note_answered(&polling);
        let released_before = self.pending.last_release;
        while self.next_ask() <= now {
            let Some(Reverse(request)) = self.requests.pop() else { break };
            self.pending.last_release = now;
            self.ask(request, &polling, io);
            if self.out.dirty.len() >= ASKED_TOGETHER {
                self.flush_dirty(io);
            }
        }
        self.keep_pace(released_before, now);
    }

    /// Returns the time of the next request.
    pub(super) fn next_ask(&self) -> Nanos {
        self.requests.peek().map_or(Nanos::NEVER, |Reverse(first)| first.due)
    }

    /// Notes an answer. A full answer is followed by the next request at once: there is more. A
    /// long poll continues after every answer, even an empty one.
    fn note_answered(&mut self, polling: &Polling) {
        for Answered { link, now, asked, is_refused } in self.books.answered.drain(..) {
            let is_early = asked.messages == 0 && now < asked.sent + Nanos(polling.wait.0 / 2);
            if asked.messages >= polling.limit {
                let reason = Reason::Answer;
                self.requests.push(Reverse(Request { due: now, reason, link }));
            } else if polling.wait.0 > 0 {
                // A server that refuses, or does not hold what it has nothing for, is not to be
                // asked as fast as it answers.
                let pause = if is_refused || is_early { SESSION_AWAITED } else { Nanos(0) };
                let (due, reason) = (now + polling.period.max(pause), Reason::Answer);
                self.requests.push(Reverse(Request { due, reason, link }));
            }
        }
    }

    fn ask(&mut self, request: Request, polling: &Polling, io: &mut dyn Io) {
        let Request { due, reason, link } = request;
        let is_counted = self.counts_request(due);
        let Link { connection, state } = &mut self.links[link];
        if state.phase == LinkPhase::Dead {
            return;
        }
        if reason == Reason::Tick {
            self.requests.push(Reverse(Request { due: due + polling.period, ..request }));
        }
        let sent = io.now();
        let stands = state.phase == LinkPhase::Ready && !state.is_lost;
        let is_idle = stands && state.traffic().asked.is_none();
        let Some(connection) = connection.as_mut().filter(|_| is_idle) else {
            if reason == Reason::Tick {
                self.books.outcome.recorder.polls.skipped += u64::from(is_counted);
            } else if !stands {
                self.requests.push(Reverse(Request { due: sent + SESSION_AWAITED, ..request }));
            }
            return;
        };
        let mut staged = self.out.spare.lend(state);
        if let Some(poll) = connection.poll() {
            poll.ask(sent, &mut staged.out);
        }
        self.out.spare.settle(state, staged);
        state.traffic_mut().asked = Some(Asked { sent, lag: sent - due, messages: 0, is_counted });
        self.books.request_made(due, sent, is_counted);
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
        let Consumer::Poll(polling) = self.rules.consumer else { return };
        let patience = self.rules.timeout + polling.wait;
        for link in self.links.consumers() {
            let state = &self.links[link].state;
            let asked = state.traffic().asked.filter(|_| !state.is_lost);
            if asked.is_some_and(|asked| now > asked.sent + patience) {
                self.lose(link, SILENCE.to_owned(), false);
            }
        }
    }

    /// Drops a consumer's request whose connection was lost; it will not be answered.
    pub(super) fn drop_request(&mut self, link: LinkId, now: Nanos) {
        let Consumer::Poll(polling) = self.rules.consumer else { return };
        let state = &mut self.links[link].state;
        let asked = state.known_traffic().and_then(|traffic| traffic.asked.take());
        if let Some(asked) = asked {
            self.books.requests_awaited -= u64::from(asked.is_counted);
            if polling.wait.0 > 0 {
                let (due, reason) = (now + SESSION_AWAITED, Reason::Answer);
                self.requests.push(Reverse(Request { due, reason, link }));
            }
        }
    }
}

/// Returns the time of a consumer's first request, counted from the begin of the load: the
/// consumers are spread evenly over one period, each at random within its own part of it. Long
/// polls all begin at once.
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

/// Time until a long poll checks again whether its session is open, or asks a server again that did
/// not let it wait.
const SESSION_AWAITED: Nanos = Nanos::from_millis(10);

/// The random streams of consumers lie beyond those of all clients.
const FIRST_STREAM: u64 = 1 << 40;
