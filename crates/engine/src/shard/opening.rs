//! Connections: made a few at a time, watched, taken down, made again.

use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::protocol::{Lifetime, Role, Seat, Transport};
use weigh_model::{Load, Nanos, Pattern, Topology};

use super::parts::Loss;
use super::rules::Consumer;
use super::source::Source;
use super::{Phase, Shard};
use crate::flights::{Flight, NO_BATCH};
use crate::io::{Close, Io, IoFault};
use crate::job::{Failure, Progress};
use crate::link::{Link, LinkId, LinkPhase};
use crate::outcome::SILENCE;
use crate::socket_host::made_on;

impl Shard {
    /// Opens more of the connections that stand during the whole trial. Consumers come first:
    /// nothing may be sent before they listen.
    pub(super) fn open_more(&mut self, io: &mut dyn Io) {
        let total = self.links_ahead() as u64;
        if self.books.outcome.opened > 0 {
            self.connecting.spacing.note_standing(io.now());
        }
        while self.has_openable() && io.now() >= self.connecting.spacing.not_before() {
            let link = LinkId(self.connecting.next_unopened as u32);
            self.connecting.next_unopened += 1;
            self.open(link, io);
        }
        let dead = self.connecting.dead.0 + self.connecting.dead.1;
        let now = io.now();
        if total > 0 && now >= self.reported.next_interval {
            self.reported.next_interval = now + PROGRESS;
            (self.reported.progress)(Progress::Opening(self.books.open_links, total));
        }
        if self.failure.is_some() || self.orders.has_failed() {
            self.orders.give_up();
            self.clock.phase = Phase::Done;
        } else if self.connecting.next_unopened as u64 == total
            && self.books.open_links + dead as u64 >= total
        {
            self.clock.phase = Phase::Waiting;
            self.job.rendezvous.note_ready();
        }
    }

    /// Links whose connections stand as long as the trial.
    pub(super) fn kept_links(&self) -> usize {
        match self.rules.lifetime {
            Lifetime::Kept => self.links.len(),
            Lifetime::PerMessage => self.links.consumers().len(),
        }
    }

    pub(super) fn has_openable(&self) -> bool {
        if self.connecting.next_unopened >= self.links_ahead() {
            return false;
        }
        let consumers = self.links.consumers().len();
        let consumers_stand = self.books.open_links >= consumers as u64;
        let begun = self.connecting.next_unopened as u64;
        let opening =
            begun.saturating_sub(self.books.outcome.opened + self.books.outcome.lost_links);
        opening < OPENING_MAX && (self.connecting.next_unopened < consumers || consumers_stand)
    }

    /// Starts to connect a link.
    pub(super) fn open(&mut self, index: LinkId, io: &mut dyn Io) {
        let source = match self.job.sources.len() {
            0 => None,
            count => {
                self.connecting.next_source += 1;
                Some(self.job.sources[self.connecting.next_source % count])
            }
        };
        let state = &mut self.links[index].state;
        state.connecting_since = io.now();
        state.connections += 1;
        state.phase = LinkPhase::Opening;
        state.is_lost = false;
        if let Some(traffic) = state.known_traffic() {
            traffic.first_here = traffic.sequence;
        }
        let seat = Seat { index: state.index, role: state.role };
        self.connecting.openings.push_back((state.connecting_since, index));
        let host = match seat.role {
            Role::Consumer => self.job.consumers.as_deref(),
            Role::Producer => None,
        };
        match made_on(host, || match self.rules.transport {
            Transport::Stream => io.connect(self.job.address, source),
            // Streams are a layer's, which speaks in datagrams.
            Transport::Datagram | Transport::DatagramRuns | Transport::Streams => {
                io.connect_datagrams(self.job.address, source)
            }
        }) {
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
                // How fast connections come to stand is what a hold measures.
                let is_hold = self.job.load().pattern == Pattern::Hold;
                if connection.times_its_handshake() && !is_hold {
                    self.connecting.spacing.note_opening(self.links[index].state.connecting_since);
                }
                self.connecting.resumes |= seat.role == Role::Consumer && connection.resumes();
                let own = connection.opens_within().unwrap_or_default();
                self.connecting.opens_within = self.connecting.opens_within.max(own);
                self.links[index].connection = Some(connection);
            }
            Err(fault) => {
                // Ports come back when closed connections have had their time; descriptors are
                // all held by this process.
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
        let state = &mut self.links[loss.link].state;
        if matches!(state.phase, LinkPhase::Idle | LinkPhase::Dead) {
            return;
        }
        let was_ready = state.is_standing;
        let is_planned = loss.reason.is_empty();
        let keeps = is_planned && !stays_away && self.rules.lifetime == Lifetime::Kept;
        let now = io.now();
        let is_short = now < state.connecting_since + RETRY_FIRST;
        let ended = state.known_traffic();
        let ended = ended.map(|known| (known.end_connection(is_short), known.end_flights(keeps)));
        // Links that send nothing have no count of their own.
        let (fruitless, flights) = ended.unwrap_or((u8::from(is_short) * 2, Vec::new()));
        let cut = state.traffic().first_here..state.traffic().sequence;
        if state.role == Role::Producer && !is_planned && !cut.is_empty() {
            self.books.outcome.accounts.producers[state.account as usize].cut.push(cut);
        }
        let token = state.token;
        let parts = self.links[loss.link].connection.as_ref().is_some_and(|own| own.is_parting());
        if let Some(token) = token {
            self.set_token(loss.link, None);
            let is_answered = self.job.dial.is_answered || self.job.is_metered;
            let has_parted = matches!(self.clock.phase, Phase::Closing(_));
            let how = match is_planned {
                true if is_answered && was_ready && !has_parted => Close::Answered,
                true => Close::Graceful,
                false => Close::Abort,
            };
            if is_planned {
                self.say_last(loss.link, token, io);
            }
            if !(is_planned && parts) {
                io.close(token, how);
            }
        }
        self.drop_request(loss.link, now);
        let link = &mut self.links[loss.link];
        if let Some(metered) = &mut self.metered {
            metered.closed(loss.link, link);
        }
        if let (Some(token), Some(connection)) = (token, link.connection.take())
            && is_planned
            && parts
        {
            self.parting.add(token, connection, now);
        }
        let began = link.state.connecting_since;
        link.state.forget_connection();
        link.state.attempts = if was_ready { 0 } else { link.state.attempts + 1 };
        let is_whole = is_planned && was_ready && began >= self.clock.measure_from;
        if is_whole && self.rules.is_per_message() {
            self.books.outcome.recorder.session.record((now - began).0);
        }
        self.fail_flights(loss.link, &flights, now);
        self.books.open_links -= u64::from(was_ready);
        if !is_planned && !is_ending {
            self.books.note_loss(&loss.reason);
            self.decide_after_loss(loss, was_ready, now);
        } else if !stays_away && self.rules.lifetime == Lifetime::Kept {
            self.connecting.reopens.push(now + pause_after(fruitless), loss.link);
        } else {
            self.books.unblocked.push(loss.link);
        }
    }

    /// Books the messages that were in flight on a connection that ended.
    fn fail_flights(&mut self, link: LinkId, flights: &[Flight], now: Nanos) {
        self.books.in_flight -= flights.len() as u64;
        for flight in flights {
            let cause = if flight.is_expired { Cause::Timeout } else { Cause::ConnectionClosed };
            let state = &mut self.links[link].state;
            self.books.fail(state, flight, cause);
            self.books.free_slot(link, state, flight, now);
        }
    }

    /// Decides whether the link reconnects, stays closed, or ends the trial before it began.
    fn decide_after_loss(&mut self, loss: &Loss, was_ready: bool, now: Nanos) {
        let attempts = self.links[loss.link].state.attempts;
        let is_cut_off = loss.reason == NO_SESSION && self.job.may_be_cut_off;
        let is_hopeless = loss.is_final || attempts > ATTEMPTS_MAX;
        let nothing_stood = self.books.outcome.opened == 0;
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
            && !self.fetches(loss.link);
        if is_hopeless || misses_messages {
            self.give_up_link(loss.link);
            is_brought.into_iter().for_each(|client| self.give_up_link(client));
            self.cancel_partner(loss.link);
        } else if self.comes_back(loss.link) {
            let wait = Nanos(RETRY_FIRST.0 << attempts.min(ATTEMPTS_MAX));
            self.connecting.reopens.push(now + wait, loss.link);
        }
    }

    /// True for a consumer that gets what it has missed when it is back: it polls, or resumes.
    fn fetches(&self, link: LinkId) -> bool {
        let polls = matches!(self.rules.consumer, Consumer::Poll(_));
        self.is_consumer(link) && (polls || self.connecting.resumes)
    }

    /// True for a connection that is made again if it ends: once nothing more is sent, those that
    /// fetch what was sent, or have to send again, are the only ones.
    pub(super) fn comes_back(&self, link: LinkId) -> bool {
        let has_unprocessed = !self.links[link].state.traffic().unprocessed.is_empty();
        self.clock.phase != Phase::Draining || self.fetches(link) || has_unprocessed
    }

    fn fail_trial(&mut self, loss: &Loss) {
        let (address, reason) = (self.job.address, loss.reason.clone());
        self.give_up_link(loss.link);
        self.failure.get_or_insert(if loss.is_final {
            Failure::Session { address, reason }
        } else {
            Failure::Unreachable { address, reason }
        });
        self.orders.give_up();
        self.clock.phase = Phase::Done;
    }

    /// The link will not come back; what it still had to send stays unsent.
    fn give_up_link(&mut self, index: LinkId) {
        let is_consumer = self.is_consumer(index);
        self.connecting.dead.0 += usize::from(!is_consumer);
        self.connecting.dead.1 += usize::from(is_consumer);
        let measure_from = self.clock.measure_from;
        let state = &mut self.links[index].state;
        state.phase = LinkPhase::Dead;
        if is_consumer {
            let account = &mut self.books.outcome.accounts.consumers[state.account as usize];
            account.was_disconnected = true;
        }
        let (mut waiting, mut unsent) = (0, 0);
        if let Some(traffic) = state.known_traffic() {
            let dues = std::mem::take(&mut traffic.waiting);
            waiting = dues.iter().filter(|due| **due >= measure_from).count() as u64;
            unsent = std::mem::take(&mut traffic.quota) + std::mem::take(&mut traffic.burst_left);
        }
        self.pending.owed -= unsent;
        let waiting = if self.rules.is_closed { 0 } else { waiting };
        self.books.note_not_sent(NotSentCause::ConnectionClosed, unsent + waiting);
    }

    /// A closed loop that waits for deliveries continues without a consumer: what the
    /// partner of a lost consumer still had to send stays unsent, instead of waiting for Tmax
    /// message by message.
    fn cancel_partner(&mut self, consumer: LinkId) {
        let is_waited_for =
            self.rules.ends_by_delivery && self.job.load().topology == Topology::Pairs;
        if !is_waited_for || !self.is_consumer(consumer) {
            return;
        }
        let partner = self.links[consumer].state.index;
        if let Some(link) = self.producer_link(partner) {
            let traffic = self.links[link].state.traffic_mut();
            let unsent = std::mem::take(&mut traffic.quota);
            self.pending.owed -= unsent;
            self.books.note_not_sent(NotSentCause::ConnectionClosed, unsent);
        }
    }

    /// Closes the session and the connection; the link may open again for what is left to send.
    pub(super) fn close_link(&mut self, index: LinkId, io: &mut dyn Io) {
        let Link { connection, state } = &mut self.links[index];
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
        while let Some((_, link)) = self.connecting.reopens.pop(now) {
            let state = &self.links[link].state;
            let is_kept = (link.0 as usize) < self.kept_links();
            let has_message = !state.traffic().waiting.is_empty();
            if state.phase == LinkPhase::Idle && (is_kept || has_message) {
                self.open(link, io);
            } else {
                self.books.unblocked.push(link);
            }
        }
    }

    /// Gives up attempts to connect and messages in flight that take too long.
    pub(super) fn sweep(&mut self, now: Nanos) {
        if self.clock.phase == Phase::Opening
            && self.job.may_be_cut_off
            && now > opening_time_max(self.job.load()) + self.connecting.spacing.total()
        {
            self.go_on_without();
        }
        self.end_stalled_opening(now);
        while let Some((since, index)) = self.connecting.openings.front().copied() {
            let state = &self.links[index].state;
            let is_opening = state.phase == LinkPhase::Opening && !state.is_lost;
            let is_stale = !is_opening || state.connecting_since != since;
            if !is_stale && now - since <= self.session_time_max() {
                break;
            }
            self.connecting.openings.pop_front();
            if !is_stale {
                // If no connection stands by now, trying again would only delay the failure.
                let is_final = self.books.outcome.opened == 0 && !self.job.may_be_cut_off;
                self.lose(index, NO_SESSION.to_owned(), is_final);
            }
        }
        if self.books.in_flight > 0 {
            self.expire_flights(now);
        }
        self.expire_requests(now);
    }

    /// Ends the opening of connections that the other side, or a kernel without memory for them,
    /// closes as fast as they are made: each attempt succeeds, and all of them never stand.
    fn end_stalled_opening(&mut self, now: Nanos) {
        let (open, highest) = (self.books.open_links, &mut self.connecting.highest);
        if self.clock.phase != Phase::Opening || open > highest.0 || highest.1 == Nanos(0) {
            *highest = (open, now);
            return;
        }
        if now - highest.1 < OPENING_STALL {
            return;
        }
        let (most, total) = (highest.0, self.links_ahead());
        if matches!(self.job.load().pattern, Pattern::Hold | Pattern::Session) {
            return self.go_on_without();
        }
        let (address, seconds) = (self.job.address, OPENING_STALL.0 / 1_000_000_000);
        let last = self.books.outcome.first_loss.as_deref().unwrap_or("none was closed");
        let reason = format!(
            "at most {most} of {total} connections stood at the same time, and for {seconds} s no \
             more; the first that was closed: {last}"
        );
        self.failure.get_or_insert(Failure::Session { address, reason });
        self.orders.give_up();
        self.clock.phase = Phase::Done;
    }

    /// Returns the time limit for opening one connection: as long as an answer may take, within
    /// limits; longer for paths, which delay every step of it, and where connections ask for it.
    fn session_time_max(&self) -> Nanos {
        let most = match self.job.may_be_cut_off {
            true => OPEN_TIME_MAX,
            false => self.job.load().timeout.clamp(OPEN_TIME_MIN, OPEN_TIME_MAX),
        };
        most.max(self.connecting.opens_within)
    }

    /// Begins the load without the connections that the path prevents: what they were to
    /// carry is accounted for as not sent.
    fn go_on_without(&mut self) {
        let load = self.job.load();
        // In a closed loop this many messages of each connection are due when it begins.
        let is_by_time = matches!(self.source, Source::Closed(_)) && !self.rules.has_quotas;
        let slot_messages = self.rules.exchange.size();
        let due_at_once = u64::from(load.window.unwrap_or(1)) * u64::from(slot_messages);
        self.connecting.next_unopened = self.links_ahead();
        let ahead =
            if load.join.is_some() { self.connecting.next_unopened } else { self.links.len() };
        for index in self.links.ids().take(ahead) {
            let state = &self.links[index].state;
            if state.is_standing || state.phase == LinkPhase::Dead {
                continue;
            }
            let is_idle = state.phase == LinkPhase::Idle;
            let owes = is_by_time && state.role == Role::Producer;
            self.books
                .note_not_sent(NotSentCause::ConnectionClosed, if owes { due_at_once } else { 0 });
            if is_idle {
                self.books.note_loss(NO_SESSION);
                self.give_up_link(index);
            } else {
                self.lose(index, NO_SESSION.to_owned(), true);
            }
        }
    }

    /// Marks what is past Tmax. A connection on which nothing in flight can be hoped for any
    /// more, and which takes nothing more, is replaced.
    fn expire_flights(&mut self, now: Nanos) {
        let timeout = self.rules.timeout;
        if now.0 < timeout.0 {
            return;
        }
        let before = now - timeout;
        for index in self.links.ids() {
            let link = &mut self.links[index];
            let Some(traffic) = link.state.known_traffic() else { continue };
            if traffic.flights.live() == 0 {
                continue;
            }
            let books = &mut self.books;
            let mut freed = 0;
            let batches = &mut traffic.batches;
            traffic.flights.expire(before, |flight| {
                let is_alone = flight.batch == NO_BATCH;
                let is_over = is_alone || batches.end_one(flight.batch, false).is_some();
                freed += usize::from(is_over);
            });
            let nothing_awaited = traffic.flights.awaited() == 0;
            if freed > 0 && self.rules.is_closed {
                books.freed.extend(std::iter::repeat_n((index, now), freed));
            }
            let takes_no_more = self.rules.is_per_message()
                || link.connection.as_ref().is_some_and(|connection| connection.room() == 0);
            let is_stuck = nothing_awaited && takes_no_more;
            if is_stuck && !link.state.is_lost {
                self.lose(index, SILENCE.to_owned(), false);
            }
        }
    }
}

/// Returns the pause before the next connection of a link after this number of short ones in a row
/// that the server ended without an answer. One may be a restart; more would only be ended again.
fn pause_after(fruitless: u8) -> Nanos {
    match fruitless {
        0 | 1 => Nanos(0),
        many => Nanos(RETRY_FIRST.0 << (many - 2).min(ATTEMPTS_MAX)),
    }
}

/// Connections of one shard that may be opening at once.
const OPENING_MAX: u64 = 128;

/// Returns the time limit for opening connections across a path: as long as the load and its last
/// answer would have taken, within limits; on a slow path, whose timeout is longer, as long as
/// that. The kernel sends a SYN again after 1 and 3 s (RFC 6298).
fn opening_time_max(load: &Load) -> Nanos {
    let whole = load.duration.map_or(OPEN_TIME_MAX, |d| load.warmup + d + load.timeout);
    whole.clamp(OPEN_TIME_MIN, OPEN_TIME_MAX.max(load.timeout))
}

/// Time without one more connection after which opening ends.
const OPENING_STALL: Nanos = Nanos::from_secs(30);

/// Maximum time to open one connection.
const OPEN_TIME_MAX: Nanos = Nanos::from_secs(10);
const OPEN_TIME_MIN: Nanos = Nanos::from_secs(4);

/// Reason for giving up a connection that never was open.
const NO_SESSION: &str = "no session within the time limit";

/// Failed attempts in a row after which a link is given up.
const ATTEMPTS_MAX: u8 = 4;

/// Wait before the first new attempt; it doubles with each.
const RETRY_FIRST: Nanos = Nanos::from_millis(50);

/// Interval at which the progress of opening is reported.
const PROGRESS: Nanos = Nanos::from_millis(500);
