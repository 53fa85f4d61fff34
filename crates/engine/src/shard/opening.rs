//! Connections: made a few at a time, watched, taken down, made again.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::protocol::{Lifetime, Role, Seat};
use weigh_model::{Load, Nanos, Pattern, Topology};

use super::parts::Loss;
use super::{Phase, Shard};
use crate::io::{Close, Io, IoFault};
use crate::job::{Failure, Progress};
use crate::link::{Link, LinkPhase, NO_BATCH};
use crate::outcome::SILENCE;
use crate::outlet::made_through;

impl Shard {
    /// Opens more of the connections that stand during the whole trial. Consumers come first:
    /// nothing may be sent before they listen.
    pub(super) fn open_more(&mut self, io: &mut dyn Io) {
        let total = self.links_ahead() as u64;
        while self.has_openable() {
            let link = self.connecting.next_unopened as u32;
            self.connecting.next_unopened += 1;
            self.open(link, io);
        }
        let dead = self.connecting.dead.0 + self.connecting.dead.1;
        let now = io.now();
        if total > 0 && now >= self.told.next_interval {
            self.told.next_interval = now + PROGRESS;
            (self.told.progress)(Progress::Opening(self.desk.open_links, total));
        }
        if self.failure.is_some() || self.job.shared.has_failed.load(Ordering::Relaxed) {
            self.job.shared.has_failed.store(true, Ordering::Relaxed);
            self.clock.phase = Phase::Done;
        } else if self.connecting.next_unopened as u64 == total
            && self.desk.open_links + dead as u64 >= total
        {
            self.clock.phase = Phase::Waiting;
            self.job.shared.ready.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Links whose connections stand as long as the trial.
    pub(super) fn kept_links(&self) -> usize {
        match self.job.dial.lifetime {
            Lifetime::Kept => self.links.len(),
            Lifetime::PerMessage => self.desk.left.accounts.consumers.len(),
        }
    }

    pub(super) fn has_openable(&self) -> bool {
        if self.connecting.next_unopened >= self.links_ahead() {
            return false;
        }
        let consumers = self.desk.left.accounts.consumers.len();
        let consumers_stand = self.desk.open_links >= consumers as u64;
        let begun = self.connecting.next_unopened as u64;
        let opening = begun.saturating_sub(self.desk.left.opened + self.desk.left.lost_links);
        opening < OPENING_MAX && (self.connecting.next_unopened < consumers || consumers_stand)
    }

    /// Starts to connect a link.
    pub(super) fn open(&mut self, index: u32, io: &mut dyn Io) {
        let source = match self.job.sources.len() {
            0 => None,
            count => {
                self.connecting.next_source += 1;
                Some(self.job.sources[self.connecting.next_source % count])
            }
        };
        let state = &mut self.links[index as usize].state;
        state.connecting_since = io.now();
        state.connections += 1;
        state.phase = LinkPhase::Opening;
        state.is_lost = false;
        if let Some(traffic) = state.known_traffic() {
            traffic.first_here = traffic.sequence;
        }
        let seat = Seat { index: state.index, role: state.role };
        self.connecting.openings.push_back((state.connecting_since, index));
        let outlet = match seat.role {
            Role::Consumer => self.job.consumers.as_deref(),
            Role::Producer => None,
        };
        match made_through(outlet, || io.connect(self.job.address, source)) {
            Ok(token) => {
                self.set_token(index, Some(token));
                let mut connection = (self.job.dial.make)(seat);
                if let Some(metered) = &mut self.metered {
                    if let Some(own) = connection.metered() {
                        own.meter();
                    }
                    metered.opened(index, io.local(token));
                }
                self.waking.note_timing(connection.timing());
                self.links[index as usize].connection = Some(connection);
            }
            Err(fault) => {
                // Ports come back when closed connections have had their time; descriptors are
                // all held by ourselves.
                let is_final = fault == IoFault::Descriptors
                    || (fault == IoFault::Ports && self.clock.phase == Phase::Opening);
                self.lose(index, fault.to_string(), is_final);
            }
        }
    }

    /// Takes down what was lost, books what was in flight, and plans another attempt.
    pub(super) fn drop_lost(&mut self, io: &mut dyn Io) {
        while let Some(loss) = self.connecting.losses.pop() {
            self.take_down(&loss, io);
        }
    }

    fn take_down(&mut self, loss: &Loss, io: &mut dyn Io) {
        let is_ending = self.is_settled() || matches!(self.clock.phase, Phase::Lingering(_));
        let stays_away = is_ending || !self.comes_back(loss.link);
        let state = &mut self.links[loss.link as usize].state;
        if matches!(state.phase, LinkPhase::Idle | LinkPhase::Dead) {
            return;
        }
        let was_ready = state.is_standing;
        let is_planned = loss.reason.is_empty();
        let flights = state.known_traffic().map(|known| known.flights.take_all());
        let flights = flights.unwrap_or_default();
        let cut = state.traffic().first_here..state.traffic().sequence;
        if state.role == Role::Producer && !is_planned && !cut.is_empty() {
            self.desk.left.accounts.producers[state.account as usize].cut.push(cut);
        }
        if let Some(token) = state.token {
            self.set_token(loss.link, None);
            let is_answered = self.job.dial.is_answered || self.job.is_metered;
            let has_parted = matches!(self.clock.phase, Phase::Parting(_));
            let how = match is_planned {
                true if is_answered && was_ready && !has_parted => Close::Answered,
                true => Close::Graceful,
                false => Close::Abort,
            };
            io.close(token, how);
        }
        let now = io.now();
        self.forget_request(loss.link, now);
        let link = &mut self.links[loss.link as usize];
        if let Some(metered) = &mut self.metered {
            metered.closed(loss.link, link);
        }
        link.connection = None;
        let began = link.state.connecting_since;
        link.state.forget_connection();
        link.state.attempts = if was_ready { 0 } else { link.state.attempts + 1 };
        let is_whole = is_planned && was_ready && began >= self.clock.measure_from;
        if is_whole && self.job.dial.lifetime == Lifetime::PerMessage {
            self.desk.left.recorder.session.record((now - began).0);
        }
        self.desk.in_flight -= flights.len() as u64;
        for flight in &flights {
            let cause = if flight.is_expired { Cause::Timeout } else { Cause::ConnectionClosed };
            self.desk.fail(&self.links[loss.link as usize].state, flight, cause);
            let state = &mut self.links[loss.link as usize].state;
            self.desk.free_slot(loss.link, state, flight, now);
        }
        self.desk.open_links -= u64::from(was_ready);
        if !is_planned && !is_ending {
            self.desk.note_loss(&loss.reason);
            self.decide_after_loss(loss, was_ready, now);
        } else if !stays_away && self.job.dial.lifetime == Lifetime::Kept {
            self.connecting.reopens.push(Reverse((now, loss.link)));
        } else {
            self.desk.stirred.push(loss.link);
        }
    }

    /// Whether the link comes back, stays away, or ends the trial before it began.
    fn decide_after_loss(&mut self, loss: &Loss, was_ready: bool, now: Nanos) {
        let attempts = self.links[loss.link as usize].state.attempts;
        let is_cut_off = loss.reason == NO_SESSION && self.job.may_be_cut_off;
        let is_hopeless = loss.is_final || attempts > ATTEMPTS_MAX;
        let nothing_stood = self.desk.left.opened == 0;
        let must_stand = !matches!(self.job.load().pattern, Pattern::Hold | Pattern::Session);
        if is_hopeless
            && !is_cut_off
            && !was_ready
            && (nothing_stood || (must_stand && self.clock.phase == Phase::Opening))
        {
            self.fail_trial(loss);
            return;
        }
        let is_brought = self.client_of(loss.link);
        let misses_messages = self.is_consumer(loss.link)
            && self.clock.phase != Phase::Opening
            && is_brought.is_none()
            && !self.asks(loss.link);
        if is_hopeless || misses_messages {
            self.bury(loss.link);
            is_brought.into_iter().for_each(|client| self.bury(client));
            self.silence_partner(loss.link);
        } else if self.comes_back(loss.link) {
            let wait = Nanos(RETRY_FIRST.0 << attempts.min(ATTEMPTS_MAX));
            self.connecting.reopens.push(Reverse((now + wait, loss.link)));
        }
    }

    /// True for a consumer that asks: what it has missed it asks for when it is back.
    fn asks(&self, link: u32) -> bool {
        self.is_consumer(link) && self.job.load().polling().is_some()
    }

    /// True for a connection that is made again if it ends: once nothing more is sent, those that
    /// fetch what was sent are the only ones.
    pub(super) fn comes_back(&self, link: u32) -> bool {
        self.clock.phase != Phase::Draining || self.asks(link)
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
        self.clock.phase = Phase::Done;
    }

    /// The link will not come back; what it still had to send stays unsent.
    fn bury(&mut self, index: u32) {
        let is_consumer = self.is_consumer(index);
        self.connecting.dead.0 += usize::from(!is_consumer);
        self.connecting.dead.1 += usize::from(is_consumer);
        let measure_from = self.clock.measure_from;
        let state = &mut self.links[index as usize].state;
        state.phase = LinkPhase::Dead;
        if is_consumer {
            let account = &mut self.desk.left.accounts.consumers[state.account as usize];
            account.was_disconnected = true;
        }
        let (mut waiting, mut unsent) = (0, 0);
        if let Some(traffic) = state.known_traffic() {
            let dues = std::mem::take(&mut traffic.waiting);
            waiting = dues.iter().filter(|due| **due >= measure_from).count() as u64;
            unsent = std::mem::take(&mut traffic.quota) + std::mem::take(&mut traffic.burst_left);
        }
        self.source.owed -= unsent;
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
            let traffic = self.links[link as usize].state.traffic_mut();
            let unsent = std::mem::take(&mut traffic.quota);
            self.source.owed -= unsent;
            self.desk.note_not_sent(NotSentCause::ConnectionClosed, unsent);
        }
    }

    /// Says goodbye and closes; the link may open again for what is left to send.
    pub(super) fn close_link(&mut self, index: u32, io: &mut dyn Io) {
        let Link { connection, state } = &mut self.links[index as usize];
        let unfinished = state.known_traffic().and_then(|traffic| traffic.outgoing.take());
        // In the middle of an object nothing can be said any more.
        if unfinished.is_none()
            && let Some(connection) = connection
        {
            let mut staged = self.out.spare.lend(state);
            connection.close(&mut staged.out);
            self.out.spare.settle(state, staged);
        }
        self.flush(index, io);
        self.lose(index, String::new(), false);
    }

    /// Tries lost connections again whose time has come. One that lives for a message only
    /// comes back if there is a message.
    pub(super) fn reopen(&mut self, io: &mut dyn Io, now: Nanos) {
        while let Some(Reverse((at, link))) = self.connecting.reopens.peek().copied() {
            if at > now {
                break;
            }
            self.connecting.reopens.pop();
            let state = &self.links[link as usize].state;
            let is_kept = (link as usize) < self.kept_links();
            let has_message = !state.traffic().waiting.is_empty();
            if state.phase == LinkPhase::Idle && (is_kept || has_message) {
                self.open(link, io);
            } else {
                self.desk.stirred.push(link);
            }
        }
    }

    /// Gives up attempts to connect and messages in flight that take too long.
    pub(super) fn sweep(&mut self, now: Nanos) {
        if self.clock.phase == Phase::Opening
            && self.job.may_be_cut_off
            && now > opening_time_max(self.job.load())
        {
            self.go_on_without();
        }
        while let Some((since, index)) = self.connecting.openings.front().copied() {
            let state = &self.links[index as usize].state;
            let is_opening = state.phase == LinkPhase::Opening && !state.is_lost;
            let is_stale = !is_opening || state.connecting_since != since;
            if !is_stale && now - since <= self.session_time_max() {
                break;
            }
            self.connecting.openings.pop_front();
            if !is_stale {
                // Whoever has let nobody in by then lets nobody in: trying again would only wait.
                let is_final = self.desk.left.opened == 0 && !self.job.may_be_cut_off;
                self.lose(index, NO_SESSION.to_owned(), is_final);
            }
        }
        if self.desk.in_flight > 0 {
            self.expire_flights(now);
        }
        self.expire_requests(now);
    }

    /// How long one connection may take to stand: as long as an answer may take, within limits, but
    /// for paths, which delay every step of it.
    fn session_time_max(&self) -> Nanos {
        match self.job.may_be_cut_off {
            true => OPEN_TIME_MAX,
            false => self.job.load().timeout.clamp(OPEN_TIME_MIN, OPEN_TIME_MAX),
        }
    }

    /// Begins the load without the connections that the path lets nobody make: what they were to
    /// carry is accounted for as not sent.
    fn go_on_without(&mut self) {
        let load = self.job.load();
        // In a closed loop this many messages of each connection are due when it begins.
        let is_by_time =
            !load.arrival.is_open() && !self.job.has_quotas() && load.pattern != Pattern::Hold;
        let due_at_once = u64::from(load.window.unwrap_or(1)) * self.slot_messages() as u64;
        self.connecting.next_unopened = self.links_ahead();
        let ahead =
            if load.join.is_some() { self.connecting.next_unopened } else { self.links.len() };
        for index in 0..ahead as u32 {
            let state = &self.links[index as usize].state;
            if state.is_standing || state.phase == LinkPhase::Dead {
                continue;
            }
            let is_idle = state.phase == LinkPhase::Idle;
            let owes = is_by_time && state.role == Role::Producer;
            self.desk
                .note_not_sent(NotSentCause::ConnectionClosed, if owes { due_at_once } else { 0 });
            if is_idle {
                self.desk.note_loss(NO_SESSION);
                self.bury(index);
            } else {
                self.lose(index, NO_SESSION.to_owned(), true);
            }
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
            let Some(traffic) = link.state.known_traffic() else { continue };
            if traffic.flights.live() == 0 {
                continue;
            }
            let desk = &mut self.desk;
            let mut freed = 0;
            let batches = &mut traffic.batches;
            traffic.flights.expire(before, |flight| {
                let is_alone = flight.batch == NO_BATCH;
                let is_over = is_alone || batches.end_one(flight.batch, false).is_some();
                freed += usize::from(is_over);
            });
            let nothing_awaited = traffic.flights.awaited() == 0;
            if freed > 0 && !self.job.load().arrival.is_open() {
                desk.freed.extend(std::iter::repeat_n((index, now), freed));
            }
            let takes_no_more = self.job.dial.lifetime == Lifetime::PerMessage
                || link.connection.as_ref().is_some_and(|connection| connection.room() == 0);
            let is_stuck = nothing_awaited && takes_no_more;
            if is_stuck && !link.state.is_lost {
                self.lose(index, SILENCE.to_owned(), false);
            }
        }
    }
}

/// Connections of one shard that may be opening at once.
const OPENING_MAX: u64 = 128;

/// How long connections across a path may take to stand: as long as the load and its last answer
/// would have taken, within limits; on a slow path, whose timeout is longer, as long as that. The
/// kernel sends a SYN again after 1 and 3 s (RFC 6298).
fn opening_time_max(load: &Load) -> Nanos {
    let whole = load.duration.map_or(OPEN_TIME_MAX, |d| load.warmup + d + load.timeout);
    whole.clamp(OPEN_TIME_MIN, OPEN_TIME_MAX.max(load.timeout))
}

/// How long one connection may take to stand.
const OPEN_TIME_MAX: Nanos = Nanos::from_secs(10);
const OPEN_TIME_MIN: Nanos = Nanos::from_secs(4);

/// Why a connection is given up that never stood.
const NO_SESSION: &str = "no session within the time limit";

/// Failed attempts in a row after which a link is given up.
const ATTEMPTS_MAX: u8 = 4;

/// Wait before the first new attempt; it doubles with each.
const RETRY_FIRST: Nanos = Nanos::from_millis(50);

/// How often the opening is told.
const PROGRESS: Nanos = Nanos::from_millis(500);
