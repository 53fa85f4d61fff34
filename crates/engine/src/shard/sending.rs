//! Messages that are due: from the schedule to a link, from there to the connection and the socket.

use std::cmp::Reverse;

use weigh_model::connection::{Op, Reply};
use weigh_model::mark::Mark;
use weigh_model::protocol::{Lifetime, Role};
use weigh_model::{Arrival, Nanos, Pattern, Topology, Writes};

use super::backlog::RELEASED_MAX;
use super::parts::Timer;
use super::streaming::compose;
use super::{PACE_CREDIT, Phase, QUANTUM, Shard};
use crate::accounts::ProducerAccount;
use crate::io::Io;
use crate::job::Job;
use crate::link::{Flight, Link, LinkPhase, NO_BATCH, Traffic};
use crate::schedule::Due;

impl Shard {
    /// Releases what has become due, serves every link that can send, and sees whether that was
    /// all.
    pub(super) fn send_due(&mut self, io: &mut dyn Io, now: Nanos) {
        if self.clock.phase == Phase::WarmingUp && now >= self.clock.measure_from {
            self.clock.phase = Phase::Measuring;
        }
        self.settle_deliveries();
        let released_before = self.source.last_release;
        self.release(now);
        self.keep_pace(released_before, now);
        self.serve_all(io);
        self.end_sending(now);
    }

    /// Puts the next wake-up off if this one released something.
    pub(super) fn keep_pace(&mut self, released_before: Nanos, now: Nanos) {
        if self.source.last_release > released_before {
            // Releases that answers brought about cost no wake-up of their own: they must not
            // push the next one further away than a quantum.
            let paced_until = self.source.paced_until.max(now - PACE_CREDIT) + QUANTUM;
            self.source.paced_until = paced_until.min(now + QUANTUM);
        }
    }

    /// Puts everything that is due by `now` where it waits for a link.
    fn release(&mut self, now: Nanos) {
        let think = self.job.load().think;
        let mut freed = std::mem::take(&mut self.desk.freed);
        for (link, since) in freed.drain(..) {
            if think.0 == 0 {
                self.offer_slot(link, since);
            } else {
                self.source.timers.push(Reverse((since + think, Timer::Slot, link)));
            }
        }
        self.desk.freed = freed;
        self.unpark();
        for _ in 0..RELEASED_MAX {
            let Some(Reverse((at, timer, link))) = self.source.timers.peek().copied() else {
                break;
            };
            if at > now {
                break;
            }
            self.source.timers.pop();
            if self.parks(link, at, timer) {
                continue;
            }
            self.source.last_release = now;
            match timer {
                Timer::Slot => self.open_or_offer_slot(link, at),
                Timer::Client => self.client_due(link, at),
            }
        }
        self.release_shared(now);
    }

    /// The first due time of a ramp's client opens all its slots; later ones are single slots.
    fn open_or_offer_slot(&mut self, link: u32, at: Nanos) {
        let state = &self.links[link as usize].state;
        let traffic = state.traffic();
        let is_fresh =
            traffic.sequence == 0 && traffic.warmup_sequence == 0 && traffic.flights.live() == 0;
        if is_fresh && matches!(self.job.load().arrival, Arrival::Ramp(_)) {
            self.open_slots(link, at);
        } else {
            self.offer_slot(link, at);
        }
    }

    /// Every slot of a closed loop's window is free from `since` on.
    pub(super) fn open_slots(&mut self, link: u32, since: Nanos) {
        let Link { connection, state } = &self.links[link as usize];
        let room = match (connection, self.job.dial.lifetime) {
            (_, Lifetime::PerMessage) => 1,
            (Some(connection), Lifetime::Kept) if state.phase == LinkPhase::Ready => {
                connection.room().max(1)
            }
            // Not known before the session stands again; what is too much then waits.
            (_, Lifetime::Kept) => self.job.load().window.unwrap_or(1),
        };
        for _ in 0..self.job.load().window_within(room) {
            self.offer_slot(link, since);
        }
    }

    /// Notes how many messages may be in flight on a link that stands and is still idle.
    pub(super) fn note_window(&mut self, link: u32) {
        let Link { connection, state } = &self.links[link as usize];
        let room = match (connection, self.job.dial.lifetime) {
            (_, Lifetime::PerMessage) => 1,
            (Some(connection), Lifetime::Kept) if state.phase == LinkPhase::Ready => {
                connection.room().max(1)
            }
            (_, Lifetime::Kept) => return,
        };
        self.desk.note_window(self.job.load().window_within(room));
    }

    fn offer_slot(&mut self, link: u32, since: Nanos) {
        let messages = self.slot_messages();
        let state = &mut self.links[link as usize].state;
        let is_dead = state.phase == LinkPhase::Dead;
        let traffic = state.traffic_mut();
        let is_spent =
            self.job.has_quotas() && since >= self.clock.measure_from && traffic.quota == 0;
        if is_dead || since >= self.clock.end || is_spent {
            return;
        }
        if let Some(later) = self.next_second(link, since, messages as u64) {
            self.source.timers.push(Reverse((later, Timer::Slot, link)));
            return;
        }
        let traffic = self.links[link as usize].state.traffic_mut();
        traffic.waiting.extend(std::iter::repeat_n(since, messages));
        self.source.eager.push(link);
    }

    fn client_due(&mut self, link: u32, at: Nanos) {
        let producers_before = self.desk.left.accounts.consumers.len();
        let stream = &mut self.source.streams[link as usize - producers_before];
        let next = stream.next_due();
        if let Some(Due { at, warmup }) = next {
            self.desk.scheduled(warmup);
            self.source.timers.push(Reverse((self.clock.start + at, Timer::Client, link)));
        } else {
            self.source.streams_left -= 1;
            if self.source.streams_left == 0 && self.is_batched() {
                self.send_what_is_gathered();
            }
        }
        let state = &mut self.links[link as usize].state;
        if state.phase == LinkPhase::Dead {
            let cause = weigh_model::ledger::NotSentCause::ConnectionClosed;
            self.desk.note_not_sent(cause, u64::from(at >= self.clock.measure_from));
        } else {
            state.traffic_mut().waiting.push_back(at);
            self.source.newest_due = self.source.newest_due.max(at);
            self.source.eager.push(link);
        }
    }

    /// Lets every link that has something to send, and every link that something happened on,
    /// send what it may.
    fn serve_all(&mut self, io: &mut dyn Io) {
        let mut stirred = std::mem::take(&mut self.desk.stirred);
        for link in stirred.drain(..) {
            let traffic = self.links[link as usize].state.traffic();
            if !traffic.waiting.is_empty() || traffic.burst_left > 0 {
                self.source.eager.push(link);
            } else {
                self.offer(link);
            }
        }
        self.desk.stirred = stirred;
        let eager = std::mem::take(&mut self.source.eager);
        for link in eager {
            if self.serve(link, io) {
                self.source.eager.push(link);
            }
        }
        self.serve_backlog(io);
    }

    /// Puts a link into the queue of those that may take a shared message.
    pub(super) fn offer(&mut self, link: u32) {
        if self.source.stream.is_none() || !self.may_take(link) {
            return;
        }
        let state = &mut self.links[link as usize].state;
        if !state.is_queued && state.role == Role::Producer {
            state.is_queued = true;
            self.source.takers.push_back(link);
        }
    }

    pub(super) fn may_take(&mut self, link: u32) -> bool {
        match (self.job.dial.lifetime, self.links[link as usize].state.phase) {
            (Lifetime::PerMessage, LinkPhase::Idle) => {
                self.links[link as usize].state.traffic().waiting.is_empty()
            }
            (_, LinkPhase::Ready) => self.has_window(link),
            _ => false,
        }
    }

    /// True if one more message may be in flight on a link that stands.
    fn has_window(&mut self, link: u32) -> bool {
        if self.is_batched() {
            return self.may_begin_batch(link);
        }
        let Link { connection, state } = &self.links[link as usize];
        let Some(connection) = connection else { return false };
        let room = connection.room();
        // A connection that lives for one message takes no second one.
        let Traffic { flights, outgoing, .. } = state.traffic();
        if self.job.dial.lifetime == Lifetime::PerMessage && flights.live() > 0 {
            return false;
        }
        !state.is_blocked
            && !state.is_lost
            && outgoing.is_none()
            && room > 0
            && flights.awaited() < self.job.load().window.unwrap_or(u32::MAX)
    }

    /// Hands shared messages to links in turn, one at a time.
    fn serve_backlog(&mut self, io: &mut dyn Io) {
        if self.is_batched() {
            return self.serve_gathered_backlog(io);
        }
        let mut steps_left = RELEASED_MAX;
        while !self.source.backlog.is_empty() && steps_left > 0 {
            let Some(link) = self.source.takers.pop_front() else { break };
            steps_left -= 1;
            self.links[link as usize].state.is_queued = false;
            if !self.may_take(link) {
                continue;
            }
            let Some(due) = self.source.backlog.pop_front() else { break };
            let was_held_up = self.source.bounds.held_up > 0;
            self.source.bounds.held_up = self.source.bounds.held_up.saturating_sub(1);
            if self.links[link as usize].state.phase == LinkPhase::Idle {
                self.links[link as usize].state.traffic_mut().waiting.push_back(due);
                self.open_for(link, due, was_held_up, io);
            } else {
                let is_joining = self.links[link as usize].state.out_bytes() > 0;
                let mut write = Write { is_open: is_joining, ..Write::default() };
                self.send_one(link, due, was_held_up, &mut write, io);
                if self.job.load().writes == Writes::Single {
                    self.flush(link, io);
                }
                self.mark_dirty(link);
                self.offer(link);
            }
            if self.out.dirty.len() >= FLUSH_LINKS {
                self.flush_dirty(io);
            }
        }
        self.source.bounds.is_cut_short = steps_left == 0;
        // What could still go at once waits for this thread, not for a link.
        if !self.source.bounds.is_cut_short {
            self.source.bounds.held_up = self.source.backlog.len();
        }
    }

    /// Sends what waits for this link, as far as window, socket and one turn's share allow, and
    /// hands it to the socket. True if it could have sent more.
    fn serve(&mut self, link: u32, io: &mut dyn Io) -> bool {
        let state = &self.links[link as usize].state;
        if state.phase == LinkPhase::Idle && self.job.dial.lifetime == Lifetime::PerMessage {
            let has_enough = !self.is_batched() || self.gathered(link) > 0;
            if let Some(due) = self.next_due_of(link).filter(|_| has_enough) {
                let traffic = self.links[link as usize].state.traffic();
                let last = traffic.waiting.len().min(self.job.load().batch_size() as usize);
                let due = traffic.waiting.get(last.wrapping_sub(1)).copied().unwrap_or(due);
                self.open_for(link, due, traffic.held_up as usize >= last.max(1), io);
            }
            return false;
        }
        if self.is_batched() {
            return self.serve_batches(link, io);
        }
        let mut could_more = false;
        let is_single = self.job.load().writes == Writes::Single;
        let mut write = Write::default();
        while self.links[link as usize].state.phase == LinkPhase::Ready && self.has_window(link) {
            let Some(due) = self.next_due_of(link) else { break };
            if self.links[link as usize].state.out_bytes() >= TURN_BYTES {
                could_more = true;
                break;
            }
            let was_held_up = self.take_due_of(link);
            self.send_one(link, due, was_held_up, &mut write, io);
            // The others first: of two writes in a row to one socket the second would find the
            // receiver at work on the first, and wait for its lock.
            if is_single {
                could_more = self.has_window(link) && self.next_due_of(link).is_some();
                break;
            }
        }
        let traffic = self.links[link as usize].state.traffic_mut();
        traffic.held_up = if could_more { 0 } else { traffic.waiting.len() as u32 };
        self.flush(link, io);
        could_more && !self.links[link as usize].state.is_blocked
    }

    /// Opens the connection that the message due at `due` gets for itself.
    pub(super) fn open_for(&mut self, link: u32, due: Nanos, was_held_up: bool, io: &mut dyn Io) {
        self.open(link, io);
        let state = &mut self.links[link as usize].state;
        let late = if was_held_up { Nanos(0) } else { state.connecting_since.since(due) };
        state.traffic_mut().opening_lag = late;
    }

    /// The due time of the next message that waits for this link.
    pub(super) fn next_due_of(&self, link: u32) -> Option<Nanos> {
        let traffic = self.links[link as usize].state.traffic();
        match traffic.waiting.front() {
            Some(due) if self.job.has_quotas() => {
                let is_warmup = *due < self.clock.measure_from;
                (is_warmup || traffic.quota > 0).then_some(*due)
            }
            Some(due) => Some(*due),
            None if traffic.burst_left > 0 => Some(self.turn(link)),
            None => None,
        }
    }

    /// Takes it; true if it had to wait for the window.
    pub(super) fn take_due_of(&mut self, link: u32) -> bool {
        let traffic = self.links[link as usize].state.traffic_mut();
        if traffic.waiting.pop_front().is_none() {
            traffic.burst_left -= 1;
            self.source.owed -= 1;
            return true;
        }
        let was_held_up = traffic.held_up > 0;
        traffic.held_up = traffic.held_up.saturating_sub(1);
        was_held_up
    }

    /// Encodes one message into the outbox of a link that has room for it.
    fn send_one(
        &mut self,
        index: u32,
        due: Nanos,
        was_held_up: bool,
        write: &mut Write,
        io: &mut dyn Io,
    ) {
        let warmup = due < self.clock.measure_from;
        let sent = write.stamp(io);
        let copies = self.copies_awaited();
        let Link { connection, state } = &mut self.links[index as usize];
        let Some(connection) = connection else { return };
        let account = &mut self.desk.left.accounts.producers[state.account as usize];
        let (producer, mut staged) = (state.index, self.out.spare.lend(state));
        let traffic = state.traffic_mut();
        let number = if warmup { traffic.warmup_sequence } else { traffic.sequence };
        let lag = sent - due;
        let own_lag = own_lag(&self.job, traffic.opening_lag, lag, was_held_up);
        let mark = Mark { tag: self.tag, warmup, producer, sequence: number, due, lag, own_lag };
        self.out.body.clear();
        let composed = compose(&self.job, &mark, &mut self.out.body);
        let body_bytes = composed.whole_bytes(&self.out.body);
        let (batch, is_expired) = (NO_BATCH, false);
        let flight = Flight { due, sent, own_lag, number, copies, batch, warmup, is_expired };
        let ticket = traffic.flights.start(flight);
        let op = Op { ticket, body: &self.out.body };
        let reply = composed.hand_to(connection, &op, sent, &mut staged.out);
        count_sent(traffic, account, &mut self.source.owed, (sent, warmup));
        if !warmup {
            self.desk.last_due = self.desk.last_due.max(due);
        }
        let is_unanswered = reply == Reply::None && !self.delivers_complete;
        let object = composed.object(ticket, is_unanswered);
        if is_unanswered && object.is_none() {
            traffic.flights.end(ticket);
        }
        state.staged = Some(staged);
        // Sealing takes far longer than encoding.
        if reply == Reply::Awaited || self.job.composer.seals() {
            write.spend();
        }
        let opens_write = !std::mem::replace(&mut write.is_open, true);
        if !warmup {
            self.desk.left.recorder.writes += u64::from(opens_write);
            self.desk.note_sent(&mark, state, sent, body_bytes);
        }
        self.desk.left.recorder.sent(due, sent, warmup, was_held_up);
        if let Some(object) = object {
            return self.object_begun(index, object, sent);
        }
        if is_unanswered {
            if !warmup {
                self.desk.left.recorder.done(sent);
            }
            self.free_unanswered(index, sent);
            if self.job.dial.lifetime == Lifetime::PerMessage {
                self.links[index as usize].state.phase = LinkPhase::Closing;
                self.mark_dirty(index);
            }
        } else {
            self.desk.in_flight += 1;
        }
    }

    /// Deliveries that complete a message where they do: subscribers that are gone are not
    /// waited for.
    fn copies_awaited(&self) -> u32 {
        let load = self.job.load();
        match (self.delivers_complete, load.topology) {
            (false, _) | (_, Topology::Pairs) => 1,
            _ => (load.copies() as u32).saturating_sub(self.connecting.dead.1 as u32).max(1),
        }
    }

    /// A message that nobody will answer has left: in a closed loop its slot is free at once,
    /// and the next one may follow in the same write.
    #[inline]
    pub(super) fn free_unanswered(&mut self, link: u32, sent: Nanos) {
        let load = self.job.load();
        if load.arrival.is_open() {
            return;
        }
        let has_shares = load.arrival == Arrival::EachSecond;
        if load.think.0 == 0 && !has_shares && self.job.dial.lifetime == Lifetime::Kept {
            if sent < self.clock.end {
                self.links[link as usize].state.traffic_mut().waiting.push_back(sent);
            }
        } else {
            self.desk.freed.push((link, sent));
        }
    }

    /// Ends the flights of producers whose messages were delivered, where that completes them.
    pub(super) fn settle_deliveries(&mut self) {
        let mut deliveries = std::mem::take(&mut self.desk.deliveries);
        for (producer, number, warmup, now) in deliveries.drain(..) {
            let Some(link) = self.producer_link(producer) else { continue };
            let state = &mut self.links[link as usize].state;
            if let Some(flight) = state.traffic_mut().flights.deliver(number, warmup) {
                self.desk.completed_by_delivery(link, state, &flight, now);
            }
        }
        self.desk.deliveries = deliveries;
    }

    /// The link of a producer of this shard.
    pub(super) fn producer_link(&self, producer: u32) -> Option<u32> {
        let place = self.desk.left.accounts.consumers.len() as u32 + producer / self.job.shards;
        let link = self.links.get(place as usize)?;
        (link.state.index == producer).then_some(place)
    }

    /// Goes on to drain once everything is sent, or the time is over, or nobody is left to send.
    fn end_sending(&mut self, now: Nanos) {
        let load = self.job.load();
        let is_out_of_time = now >= self.clock.end;
        let is_over = match (&load.arrival, load.pattern) {
            (_, Pattern::Hold) => is_out_of_time,
            (arrival, _) if arrival.is_closed() && self.job.has_quotas() => {
                (now >= self.clock.measure_from && self.source.owed == 0) || self.is_stalled(now)
            }
            (arrival, _) if arrival.is_closed() => is_out_of_time,
            (Arrival::Burst, _) => self.source.owed == 0 || self.is_stalled(now),
            _ => {
                let is_spent = self.source.stream_next.is_none() && self.source.streams_left == 0;
                let is_full = self.is_backlog_full() || !self.source.bounds.parked.is_empty();
                // Consumers that ask go on asking as long as the load lasts.
                let is_asked = load.polling().is_some() && load.duration.is_some();
                let is_unheeded = is_full && self.is_past_waiting(now);
                is_unheeded
                    || is_spent
                        && (!is_asked || is_out_of_time)
                        && (!self.has_backlog() || self.is_past_waiting(now))
            }
        };
        let producers = self.desk.producers;
        let nobody_sends = producers > 0 && self.connecting.dead.0 == producers;
        let consumers = self.desk.left.accounts.consumers.len();
        let nobody_hears =
            self.delivers_complete && consumers > 0 && self.connecting.dead.1 == consumers;
        if is_over || nobody_sends || nobody_hears {
            self.start_draining(now);
        }
    }

    fn has_backlog(&self) -> bool {
        !self.source.backlog.is_empty()
            || self.links.iter().any(|link| !link.state.traffic().waiting.is_empty())
    }

    /// True once even the last message that became due has waited for longer than Tmax.
    fn is_past_waiting(&self, now: Nanos) -> bool {
        now > self.source.newest_due.max(self.last_due_ahead()) + self.job.load().timeout
    }

    /// True if the target has stood still for so long that a number of messages would never be
    /// reached: a load that ends by count must end all the same.
    fn is_stalled(&self, now: Nanos) -> bool {
        let patience = Nanos(self.job.load().timeout.0.saturating_mul(STALLED_TIMEOUTS));
        // Where clients are still to come, it is they who are waited for.
        let is_joined = self.next_turn() == Nanos::NEVER;
        if !is_joined || now <= self.desk.last_moved.max(self.clock.start) + patience {
            return false;
        }
        let is_blocked = |link: &Link| link.state.is_blocked && link.state.token.is_some();
        self.desk.in_flight > 0 || self.links.iter().any(is_blocked)
    }
}

/// How much of the `lag` of a message is the generator's own lateness. A message without a schedule
/// counts from its send time.
#[inline]
fn own_lag(job: &Job, opening_lag: Nanos, lag: Nanos, was_held_up: bool) -> Nanos {
    match job.dial.lifetime {
        _ if !job.load().arrival.has_schedule() => lag,
        Lifetime::PerMessage => opening_lag.min(lag),
        Lifetime::Kept if was_held_up => Nanos(0),
        Lifetime::Kept => lag,
    }
}

/// One more message of a link was handed over at `sent`.
#[inline]
pub(super) fn count_sent(
    traffic: &mut Traffic,
    account: &mut ProducerAccount,
    owed: &mut u64,
    (sent, warmup): (Nanos, bool),
) {
    if warmup {
        traffic.warmup_sequence += 1;
        account.warmup_sent += 1;
        return;
    }
    traffic.sequence += 1;
    account.hand_over(sent);
    if traffic.quota > 0 {
        traffic.quota -= 1;
        *owed -= 1;
    }
}

/// So many times Tmax without a sign of the target end a load that is limited by count.
const STALLED_TIMEOUTS: u64 = 3;

/// One write to a link's socket while messages are staged for it, and the time that they are
/// stamped with. Each that is answered gets a reading of the clock of its own; of those that nobody
/// answers, a few that leave in one write share one.
#[derive(Default)]
struct Write {
    last: Nanos,
    shares_left: u32,
    /// True once a message is staged: the next one joins it.
    is_open: bool,
}

impl Write {
    fn stamp(&mut self, io: &mut dyn Io) -> Nanos {
        if self.shares_left == 0 {
            self.last = io.now();
            self.shares_left = STAMP_SHARES;
        }
        self.shares_left -= 1;
        self.last
    }

    /// The message will be answered: the next one needs a time of its own.
    fn spend(&mut self) {
        self.shares_left = 0;
    }
}

/// Messages without an answer that share a reading of the clock: they take some 2 µs to encode.
const STAMP_SHARES: u32 = 16;

/// Bytes one link may stage in one turn before the next link has its turn.
pub(super) const TURN_BYTES: usize = 64 * 1024;

/// Links with staged bytes after which they are flushed, so that the time a message is stamped
/// with stays close to the time the kernel gets it.
const FLUSH_LINKS: usize = 32;
