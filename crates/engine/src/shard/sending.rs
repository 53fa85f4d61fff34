//! Messages that are due and wait: from there to a connection and its socket.

use weigh_model::Nanos;
use weigh_model::connection::{Op, Reply};
use weigh_model::protocol::{Lifetime, Role};

use super::books::Handed;
use super::parts::RELEASED_MAX;
use super::rules::{Consumer, Exchange};
use super::source::Source;
use super::streaming::compose;
use super::{PACE_CREDIT, Phase, QUANTUM, Shard};
use crate::flights::{Flight, NO_BATCH};
use crate::io::Io;
use crate::link::{Link, LinkId, LinkPhase, Traffic};
use crate::recorder::Sending;

impl Shard {
    /// Releases what has become due, serves every link that can send, and sees whether that was
    /// all.
    pub(super) fn send_due(&mut self, io: &mut dyn Io, now: Nanos) {
        if self.clock.phase == Phase::WarmingUp && now >= self.clock.measure_from {
            self.clock.phase = Phase::Measuring;
        }
        self.settle_deliveries();
        let released_before = self.pending.last_release;
        self.release(now);
        self.keep_pace(released_before, now);
        self.serve_all(io);
        self.end_sending(now);
    }

    /// Puts the next wake-up off if this one released something.
    pub(super) fn keep_pace(&mut self, released_before: Nanos, now: Nanos) {
        if self.pending.last_release > released_before {
            // Releases that answers brought about cost no wake-up of their own: they must not
            // push the next one further away than a quantum.
            let paced_until = self.pending.paced_until.max(now - PACE_CREDIT) + QUANTUM;
            self.pending.paced_until = paced_until.min(now + QUANTUM);
        }
    }

    /// Lets every link that has something to send, and every link that may send again, send what
    /// it may.
    fn serve_all(&mut self, io: &mut dyn Io) {
        self.repeat_unprocessed(io);
        let mut unblocked = std::mem::take(&mut self.books.unblocked);
        for link in unblocked.drain(..) {
            let traffic = self.links[link].state.traffic();
            if !traffic.waiting.is_empty() || traffic.burst_left > 0 {
                self.pending.to_serve.push(link);
            } else {
                self.offer(link);
            }
        }
        self.books.unblocked = unblocked;
        for link in std::mem::take(&mut self.pending.to_serve) {
            if self.serve(link, io) {
                self.pending.to_serve.push(link);
            }
        }
        match (&self.source, self.rules.exchange) {
            (Source::Shared(_), Exchange::Batch(size)) => self.serve_backlog_together(size, io),
            (Source::Shared(_), _) => self.serve_backlog(io),
            _ => {}
        }
    }

    /// Puts a link into the queue of those that may take a message of the backlog.
    pub(super) fn offer(&mut self, link: LinkId) {
        if !matches!(self.source, Source::Shared(_)) || !self.may_take(link) {
            return;
        }
        let state = &mut self.links[link].state;
        if !state.is_queued && state.role == Role::Producer {
            state.is_queued = true;
            self.pending.free_links.push_back(link);
        }
    }

    pub(super) fn may_take(&mut self, link: LinkId) -> bool {
        let state = &self.links[link].state;
        match (self.rules.lifetime, state.phase) {
            (Lifetime::PerMessage, LinkPhase::Idle) => state.traffic().waiting.is_empty(),
            (_, LinkPhase::Ready) => self.has_window(link),
            _ => false,
        }
    }

    /// True if one more message, or one more exchange, may be in flight on a link that stands.
    fn has_window(&mut self, link: LinkId) -> bool {
        if matches!(self.rules.exchange, Exchange::Batch(_)) {
            return self.may_begin_batch(link);
        }
        let Link { connection, state } = &self.links[link];
        let Some(connection) = connection else { return false };
        // A connection that lives for one message takes no second one.
        let Traffic { flights, outgoing, .. } = state.traffic();
        let is_spent = self.rules.is_per_message() && flights.live() > 0;
        !is_spent
            && !state.is_blocked
            && !state.is_lost
            && outgoing.is_none()
            && connection.room() > 0
            && flights.awaited() < self.rules.window
    }

    /// Hands messages of the backlog to links in turn, one at a time.
    fn serve_backlog(&mut self, io: &mut dyn Io) {
        let mut steps_left = RELEASED_MAX;
        while !self.pending.backlog.is_empty() && steps_left > 0 {
            let Some(link) = self.pending.free_links.pop_front() else { break };
            steps_left -= 1;
            self.links[link].state.is_queued = false;
            if !self.may_take(link) {
                continue;
            }
            let Some(due) = self.pending.backlog.pop_front() else { break };
            let was_held_up = self.pending.held_up > 0;
            self.pending.held_up = self.pending.held_up.saturating_sub(1);
            let state = &mut self.links[link].state;
            if state.phase == LinkPhase::Idle {
                state.traffic_mut().waiting.push_back(due);
                self.open_for(link, due, was_held_up, io);
            } else {
                let mut write = Write { is_open: state.out_bytes() > 0, ..Write::default() };
                self.send_one(link, due, was_held_up, &mut write, io);
                if self.rules.writes_single {
                    self.flush(link, io);
                }
                self.mark_dirty(link);
                self.offer(link);
            }
            if self.out.dirty.len() >= FLUSH_LINKS {
                self.flush_dirty(io);
            }
        }
        self.pending.is_cut_short = steps_left == 0;
        // What could still go at once waits for this thread, not for a link.
        if !self.pending.is_cut_short {
            self.pending.held_up = self.pending.backlog.len();
        }
    }

    /// Sends what waits for this link, as far as window, socket and one turn's share allow, and
    /// hands it to the socket. True if it could have sent more.
    fn serve(&mut self, link: LinkId, io: &mut dyn Io) -> bool {
        if self.rules.is_per_message() && self.links[link].state.phase == LinkPhase::Idle {
            self.open_for_next(link, io);
            return false;
        }
        if matches!(self.rules.exchange, Exchange::Batch(_)) {
            return self.serve_batches(link, io);
        }
        let mut could_more = false;
        let mut write = Write::default();
        while self.links[link].state.phase == LinkPhase::Ready && self.has_window(link) {
            let Some(due) = self.next_due_of(link) else { break };
            if self.links[link].state.out_bytes() >= TURN_BYTES {
                could_more = true;
                break;
            }
            let was_held_up = self.take_due_of(link);
            self.send_one(link, due, was_held_up, &mut write, io);
            // The others first: of two writes in a row to one socket the second would find the
            // receiver at work on the first, and wait for its lock.
            if self.rules.writes_single {
                could_more = self.has_window(link) && self.next_due_of(link).is_some();
                break;
            }
        }
        self.end_turn(link, could_more, io)
    }

    /// Hands to the socket what a link has sent in its turn; returns true if it can continue at
    /// once.
    pub(super) fn end_turn(&mut self, link: LinkId, could_more: bool, io: &mut dyn Io) -> bool {
        let traffic = self.links[link].state.traffic_mut();
        traffic.held_up = if could_more { 0 } else { traffic.waiting.len() as u32 };
        self.flush(link, io);
        could_more && !self.links[link].state.is_blocked
    }

    /// Opens the connection for the next message of a link, or for its next exchange once that
    /// has all its messages.
    fn open_for_next(&mut self, link: LinkId, io: &mut dyn Io) {
        if self.gathered(link) == 0 {
            return;
        }
        let traffic = self.links[link].state.traffic();
        let last = traffic.waiting.len().min(self.rules.exchange.size() as usize);
        let due = last.checked_sub(1).and_then(|last| traffic.waiting.get(last).copied());
        let was_held_up = traffic.held_up as usize >= last.max(1);
        self.open_for(link, due.unwrap_or_else(|| self.turn(link)), was_held_up, io);
    }

    /// Opens the connection that the message due at `due` gets for itself.
    pub(super) fn open_for(
        &mut self,
        link: LinkId,
        due: Nanos,
        was_held_up: bool,
        io: &mut dyn Io,
    ) {
        self.open(link, io);
        let state = &mut self.links[link].state;
        let late = if was_held_up { Nanos(0) } else { state.connecting_since.since(due) };
        state.traffic_mut().opening_lag = late;
    }

    /// The due time of the next message that waits for this link.
    pub(super) fn next_due_of(&self, link: LinkId) -> Option<Nanos> {
        let traffic = self.links[link].state.traffic();
        match traffic.waiting.front() {
            Some(due) if self.rules.has_quotas => {
                let is_warmup = *due < self.clock.measure_from;
                (is_warmup || traffic.quota > 0).then_some(*due)
            }
            Some(due) => Some(*due),
            None if traffic.burst_left > 0 => Some(self.turn(link)),
            None => None,
        }
    }

    /// Takes it; true if it had to wait for the window.
    pub(super) fn take_due_of(&mut self, link: LinkId) -> bool {
        let traffic = self.links[link].state.traffic_mut();
        if traffic.waiting.pop_front().is_none() {
            traffic.burst_left -= 1;
            self.pending.owed -= 1;
            return true;
        }
        let was_held_up = traffic.held_up > 0;
        traffic.held_up = traffic.held_up.saturating_sub(1);
        was_held_up
    }

    /// Encodes one message into the outbox of a link that has room for it.
    fn send_one(
        &mut self,
        link: LinkId,
        due: Nanos,
        was_held_up: bool,
        write: &mut Write,
        io: &mut dyn Io,
    ) {
        let sent = write.stamp(io);
        let copies = self.rules.copies_awaited(self.connecting.dead.1);
        let warmup = due < self.clock.measure_from;
        let Link { connection, state } = &mut self.links[link];
        let Some(connection) = connection else { return };
        let mut staged = self.out.spare.lend(state);
        let own_lag = self.rules.own_lag(state.traffic().opening_lag, sent - due, was_held_up);
        let mark = state.next_mark(self.rules.tag, Sending { due, sent, own_lag }, warmup);
        self.out.body.clear();
        let composed = compose(&self.job, self.rules.exchange, &mark, &mut self.out.body);
        let body_bytes = composed.whole_bytes(&self.out.body);
        let ticket = state.traffic_mut().flights.start(Flight::of(&mark, sent, copies, NO_BATCH));
        let op = Op { ticket, body: &self.out.body };
        let reply = composed.hand_to(connection, &op, sent, &mut staged.out);
        let is_unanswered = reply == Reply::None && !self.rules.ends_by_delivery;
        let object = composed.object(ticket, is_unanswered);
        if is_unanswered && object.is_none() {
            state.traffic_mut().flights.end(ticket);
        }
        state.staged = Some(staged);
        // Sealing takes far longer than encoding.
        if reply == Reply::Awaited || self.job.composer.seals() {
            write.spend();
        }
        let opens_write = !std::mem::replace(&mut write.is_open, true);
        self.books.outcome.recorder.writes += u64::from(opens_write && !warmup);
        let handed = Handed { mark, sent, body_bytes, was_held_up };
        self.pending.owed -= self.books.handed_over(&handed, state);
        match object {
            Some(object) => self.object_begun(link, object, sent),
            None if is_unanswered => {
                if !warmup {
                    self.books.outcome.recorder.done(sent);
                }
                self.free_unanswered(link, sent);
                self.close_if_per_message(link);
            }
            None => self.books.in_flight += 1,
        }
    }

    /// Closes a connection that was made for one message, or one exchange, which is over.
    #[inline]
    pub(super) fn close_if_per_message(&mut self, link: LinkId) {
        if self.rules.is_per_message() {
            self.links[link].state.phase = LinkPhase::Closing;
            self.mark_dirty(link);
        }
    }

    /// Ends the flights of producers whose messages were delivered, where that ends them.
    pub(super) fn settle_deliveries(&mut self) {
        let mut deliveries = std::mem::take(&mut self.books.deliveries);
        for delivery in deliveries.drain(..) {
            let Some(link) = self.producer_link(delivery.producer) else { continue };
            let state = &mut self.links[link].state;
            let flights = &mut state.traffic_mut().flights;
            if let Some(flight) = flights.deliver(delivery.number, delivery.warmup) {
                self.books.completed_by_delivery(link, state, &flight, delivery.at);
            }
        }
        self.books.deliveries = deliveries;
    }

    /// The link of a producer of this shard.
    pub(super) fn producer_link(&self, producer: u32) -> Option<LinkId> {
        let link = self.links.producer(producer / self.job.shards)?;
        (self.links[link].state.index == producer).then_some(link)
    }

    /// Starts to drain once everything is sent, the time is over, or no link is left to send or
    /// to hear.
    fn end_sending(&mut self, now: Nanos) {
        let is_out_of_time = now >= self.clock.end;
        let is_over = match &self.source {
            Source::Nothing => is_out_of_time,
            Source::Closed(_) if self.rules.has_quotas => {
                (now >= self.clock.measure_from && self.pending.owed == 0) || self.is_stalled(now)
            }
            Source::Closed(_) => is_out_of_time,
            Source::Burst => self.pending.owed == 0 || self.is_stalled(now),
            Source::Shared(_) | Source::Own(_) => {
                // Consumers that ask continue to ask as long as the load lasts.
                let is_polled = matches!(self.rules.consumer, Consumer::Poll(_));
                let is_asked = is_polled && self.job.load().duration.is_some();
                (self.is_overfull() && self.is_past_waiting(now))
                    || self.source.is_spent()
                        && (!is_asked || is_out_of_time)
                        && (!self.has_backlog() || self.is_past_waiting(now))
            }
        };
        let producers = self.books.producers;
        let none_sends = producers > 0 && self.connecting.dead.0 == producers;
        let consumers = self.links.consumers().len();
        let none_hears =
            self.rules.ends_by_delivery && consumers > 0 && self.connecting.dead.1 == consumers;
        if is_over || none_sends || none_hears {
            self.start_draining(now);
        }
    }

    fn has_backlog(&self) -> bool {
        !self.pending.backlog.is_empty()
            || self.links.iter().any(|link| !link.state.traffic().waiting.is_empty())
    }

    /// True once even the last message that became due has waited for longer than Tmax.
    fn is_past_waiting(&self, now: Nanos) -> bool {
        let ahead = self.source.last_due_ahead().map_or(Nanos(0), |last| self.clock.start + last);
        now > self.pending.newest_due.max(ahead) + self.rules.timeout
    }

    /// True if the target has stood still for so long that a number of messages would never be
    /// reached: a load that ends by count must end all the same.
    fn is_stalled(&self, now: Nanos) -> bool {
        let patience = Nanos(self.rules.timeout.0.saturating_mul(STALLED_TIMEOUTS));
        // Where clients are still to come, it is they who are waited for.
        let is_joined = self.next_turn() == Nanos::NEVER;
        if !is_joined || now <= self.books.last_moved.max(self.clock.start) + patience {
            return false;
        }
        let is_blocked = |link: &Link| link.state.is_blocked && link.state.token.is_some();
        // The target lets nothing be sent, such as one that allows no streams.
        let is_kept_back = |link: &Link| {
            let traffic = link.state.traffic();
            let of_burst = (traffic.burst_left > 0).then_some(self.clock.measure_from);
            let of_quota = traffic.waiting.front().copied().filter(|_| traffic.quota > 0);
            let due = of_burst.or(of_quota);
            due.is_some_and(|due| due + patience < now) && link.state.phase == LinkPhase::Ready
        };
        self.books.in_flight > 0
            || self.links.iter().any(|link| is_blocked(link) || is_kept_back(link))
    }
}

/// A load that is limited by count ends after this many Tmax without a sign of the target.
const STALLED_TIMEOUTS: u64 = 3;

/// One write to a link's socket while messages are staged for it, and the time that they are
/// stamped with. Each that is answered gets a reading of the clock of its own; of those that get no
/// answer, a few that leave in one write share one.
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
