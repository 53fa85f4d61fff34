//! Connections: made a few at a time, watched, taken down, made again.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::protocol::{Lifetime, Role, Seat};
use weigh_model::{Nanos, Pattern, Topology};

use super::receiving::Loss;
use super::{Phase, Shard};
use crate::io::{Close, Io, IoFault};
use crate::job::{Failure, Progress};
use crate::link::LinkPhase;
use crate::outcome::SILENCE;

impl Shard {
    /// Opens more of the connections that stand during the whole trial. Consumers come first:
    /// nothing may be sent before they listen.
    pub(super) fn open_more(&mut self, io: &mut dyn Io) {
        let total = self.kept_links() as u64;
        while self.has_openable() {
            let link = self.next_unopened as u32;
            self.next_unopened += 1;
            self.open(link, io);
        }
        let dead = self.dead.0 + self.dead.1;
        let now = io.now();
        if now >= self.next_interval {
            self.next_interval = now + PROGRESS;
            (self.progress)(Progress::Opening(self.desk.open_links, total));
        }
        if self.failure.is_some() || self.job.shared.has_failed.load(Ordering::Relaxed) {
            self.job.shared.has_failed.store(true, Ordering::Relaxed);
            self.phase = Phase::Done;
        } else if self.next_unopened as u64 == total && self.desk.open_links + dead as u64 >= total
        {
            self.phase = Phase::Waiting;
            self.job.shared.ready.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Links that are opened before the load starts.
    fn kept_links(&self) -> usize {
        match self.job.dial.lifetime {
            Lifetime::Kept => self.links.len(),
            Lifetime::PerMessage => self.desk.accounts.consumers.len(),
        }
    }

    pub(super) fn has_openable(&self) -> bool {
        if self.next_unopened >= self.kept_links() {
            return false;
        }
        let consumers = self.desk.accounts.consumers.len();
        let consumers_stand = self.desk.open_links >= consumers as u64;
        let begun = self.next_unopened as u64;
        let opening = begun.saturating_sub(self.desk.opened + self.desk.lost_links);
        opening < OPENING_MAX && (self.next_unopened < consumers || consumers_stand)
    }

    /// Starts to connect a link.
    pub(super) fn open(&mut self, index: u32, io: &mut dyn Io) {
        let source = match self.job.sources.len() {
            0 => None,
            count => {
                self.next_source += 1;
                Some(self.job.sources[self.next_source % count])
            }
        };
        let state = &mut self.links[index as usize].state;
        state.connecting_since = io.now();
        state.connections += 1;
        state.phase = LinkPhase::Opening;
        state.is_lost = false;
        state.first_here = state.sequence;
        let seat = Seat { index: state.index, role: state.role };
        match io.connect(self.job.address, source) {
            Ok(token) => {
                self.set_token(index, Some(token));
                self.links[index as usize].wire = Some((self.job.dial.make)(seat));
            }
            Err(fault) => {
                // Ports come back when closed connections have had their time; descriptors are
                // all held by ourselves.
                let is_final = fault == IoFault::Descriptors
                    || (fault == IoFault::Ports && self.phase == Phase::Opening);
                self.lose(index, fault.to_string(), is_final);
            }
        }
    }

    /// Takes down what was lost, books what was in flight, and plans another attempt.
    pub(super) fn drop_lost(&mut self, io: &mut dyn Io) {
        while let Some(loss) = self.losses.pop() {
            self.take_down(&loss, io);
        }
    }

    fn take_down(&mut self, loss: &Loss, io: &mut dyn Io) {
        let state = &mut self.links[loss.link as usize].state;
        if matches!(state.phase, LinkPhase::Idle | LinkPhase::Dead) {
            return;
        }
        let was_ready = state.is_standing;
        let is_planned = loss.reason.is_empty();
        let is_ending = matches!(self.phase, Phase::Lingering(_) | Phase::Settled | Phase::Done);
        let stays_away = is_ending || self.phase == Phase::Draining;
        let flights = state.flights.take_all();
        if state.role == Role::Producer && !is_planned && state.first_here < state.sequence {
            let cut = state.first_here..state.sequence;
            self.desk.accounts.producers[state.account as usize].cut.push(cut);
        }
        if let Some(token) = state.token {
            self.set_token(loss.link, None);
            io.close(token, if is_planned { Close::Graceful } else { Close::Abort });
        }
        let link = &mut self.links[loss.link as usize];
        link.wire = None;
        link.state.forget_connection();
        link.state.attempts = if was_ready { 0 } else { link.state.attempts + 1 };
        let now = io.now();
        self.desk.in_flight -= flights.len() as u64;
        for flight in &flights {
            let cause = if flight.is_expired { Cause::Timeout } else { Cause::ConnectionClosed };
            self.desk.fail(&self.links[loss.link as usize].state, flight, cause);
            self.desk.free_slot(loss.link, flight, now);
        }
        self.desk.open_links -= u64::from(was_ready);
        if !is_planned && !is_ending {
            self.desk.note_loss(&loss.reason);
            self.decide_after_loss(loss, was_ready, now);
        } else if !stays_away && self.job.dial.lifetime == Lifetime::Kept {
            self.reopens.push(Reverse((now, loss.link)));
        } else {
            self.desk.stirred.push(loss.link);
        }
    }

    /// Whether the link comes back, stays away, or ends the trial before it began.
    fn decide_after_loss(&mut self, loss: &Loss, was_ready: bool, now: Nanos) {
        let attempts = self.links[loss.link as usize].state.attempts;
        let is_hopeless = loss.is_final || attempts > ATTEMPTS_MAX;
        let nothing_stood = self.desk.opened == 0;
        let must_stand = !matches!(self.job.load().pattern, Pattern::Hold | Pattern::Session);
        if is_hopeless
            && !was_ready
            && (nothing_stood || (must_stand && self.phase == Phase::Opening))
        {
            self.fail_trial(loss);
            return;
        }
        let misses_messages = self.is_consumer(loss.link) && self.phase != Phase::Opening;
        if is_hopeless || misses_messages {
            self.bury(loss.link);
            self.silence_partner(loss.link);
        } else if self.phase != Phase::Draining {
            let wait = Nanos(RETRY_FIRST.0 << attempts.min(ATTEMPTS_MAX));
            self.reopens.push(Reverse((now + wait, loss.link)));
        }
    }

    fn fail_trial(&mut self, loss: &Loss) {
        let (address, reason) = (self.job.address, loss.reason.clone());
        self.bury(loss.link);
        self.failure.get_or_insert(if loss.is_final {
            Failure::Session { address, reason }
        } else {
            Failure::Unreachable { address, reason }
        });
        self.job.shared.has_failed.store(true, Ordering::Relaxed);
        self.phase = Phase::Done;
    }

    /// The link will not come back; what it still had to send stays unsent.
    fn bury(&mut self, index: u32) {
        let is_consumer = self.is_consumer(index);
        self.dead.0 += usize::from(!is_consumer);
        self.dead.1 += usize::from(is_consumer);
        let measure_from = self.measure_from;
        let state = &mut self.links[index as usize].state;
        state.phase = LinkPhase::Dead;
        if is_consumer {
            let account = &mut self.desk.accounts.consumers[state.account as usize];
            account.was_disconnected = true;
        }
        let waiting = std::mem::take(&mut state.waiting);
        let waiting = waiting.iter().filter(|due| **due >= measure_from).count() as u64;
        let unsent = std::mem::take(&mut state.quota) + std::mem::take(&mut state.burst_left);
        self.owed -= unsent;
        let is_open = self.job.load().arrival.is_open();
        self.desk.note_not_sent(
            NotSentCause::ConnectionClosed,
            unsent + if is_open { waiting } else { 0 },
        );
    }

    /// A closed loop that waits for deliveries goes on with nobody to deliver to: what the
    /// partner of a lost consumer still had to send stays unsent, instead of waiting for Tmax
    /// message by message.
    fn silence_partner(&mut self, consumer: u32) {
        let is_waited_for = self.delivers_complete && self.job.load().topology == Topology::Pairs;
        if !is_waited_for || !self.is_consumer(consumer) {
            return;
        }
        let partner = self.links[consumer as usize].state.index;
        if let Some(link) = self.producer_link(partner) {
            let unsent = std::mem::take(&mut self.links[link as usize].state.quota);
            self.owed -= unsent;
            self.desk.note_not_sent(NotSentCause::ConnectionClosed, unsent);
        }
    }

    /// Says goodbye and closes; the link may open again for what is left to send.
    pub(super) fn close_link(&mut self, index: u32, io: &mut dyn Io) {
        let link = &mut self.links[index as usize];
        if let Some(wire) = &mut link.wire {
            wire.close(&mut link.state.out);
        }
        self.flush(index, io);
        self.lose(index, String::new(), false);
    }

    /// Tries lost connections again whose time has come. One that lives for a message only
    /// comes back if there is a message.
    pub(super) fn reopen(&mut self, io: &mut dyn Io, now: Nanos) {
        while let Some(Reverse((at, link))) = self.reopens.peek().copied() {
            if at > now {
                break;
            }
            self.reopens.pop();
            let state = &self.links[link as usize].state;
            let is_kept = (link as usize) < self.kept_links();
            if state.phase == LinkPhase::Idle && (is_kept || !state.waiting.is_empty()) {
                self.open(link, io);
            } else {
                self.desk.stirred.push(link);
            }
        }
    }

    /// Gives up attempts to connect and messages in flight that take too long.
    pub(super) fn sweep(&mut self, now: Nanos) {
        for index in 0..self.links.len() as u32 {
            let state = &self.links[index as usize].state;
            let has_begun = state.phase == LinkPhase::Opening && !state.is_lost;
            if has_begun && now - state.connecting_since > OPEN_TIME_MAX {
                // Whoever has let nobody in by then lets nobody in: trying again would only wait.
                let is_final = self.desk.opened == 0;
                self.lose(index, "no session within 10 s".to_owned(), is_final);
            }
        }
        if self.desk.in_flight > 0 {
            self.expire_flights(now);
        }
    }

    /// Marks what is past Tmax. A connection on which nothing in flight can be hoped for any
    /// more, and which takes nothing more, is replaced.
    fn expire_flights(&mut self, now: Nanos) {
        let timeout = self.job.load().timeout;
        if now.0 < timeout.0 {
            return;
        }
        let before = now - timeout;
        for index in 0..self.links.len() as u32 {
            let link = &mut self.links[index as usize];
            if link.state.flights.live() == 0 {
                continue;
            }
            let desk = &mut self.desk;
            let mut freed = 0;
            link.state.flights.expire(before, |_| freed += 1);
            if freed > 0 && !self.job.load().arrival.is_open() {
                desk.freed.extend(std::iter::repeat_n((index, now), freed));
            }
            let takes_no_more = self.job.dial.lifetime == Lifetime::PerMessage
                || link.wire.as_ref().is_some_and(|wire| wire.room() == 0);
            let is_stuck = link.state.flights.awaited() == 0 && takes_no_more;
            if is_stuck && !link.state.is_lost {
                self.lose(index, SILENCE.to_owned(), false);
            }
        }
    }
}

/// Connections of one shard that may be opening at once.
const OPENING_MAX: u64 = 128;

/// How long one connection may take to stand.
const OPEN_TIME_MAX: Nanos = Nanos::from_secs(10);

/// Failed attempts in a row after which a link is given up.
const ATTEMPTS_MAX: u8 = 4;

/// Wait before the first new attempt; it doubles with each.
const RETRY_FIRST: Nanos = Nanos::from_millis(50);

/// How often the opening is told.
const PROGRESS: Nanos = Nanos::from_millis(500);
