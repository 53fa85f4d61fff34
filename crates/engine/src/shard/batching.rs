//! Exchanges of several messages: gathered until they are full, handed over together, over when
//! the last of them has ended.

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Op, Reply, Ticket};
use weigh_model::protocol::Lifetime;

use super::Shard;
use super::books::Handed;
use super::parts::Gathered;
use super::sending::TURN_BYTES;
use crate::flights::{Batch, Flight};
use crate::io::Io;
use crate::link::{Link, LinkId, LinkPhase};
use crate::recorder::Sending;

impl Shard {
    /// Messages that wait for a link and would leave together now; 0 while there are too few.
    pub(super) fn gathered(&self, link: LinkId) -> u32 {
        let full = self.rules.exchange.size();
        let traffic = self.links[link].state.traffic();
        if traffic.waiting.is_empty() {
            return u64::from(full).min(traffic.burst_left) as u32;
        }
        let mut there = traffic.waiting.len() as u64;
        if self.rules.has_quotas && traffic.waiting[0] >= self.clock.measure_from {
            there = there.min(traffic.quota);
        }
        match there >= u64::from(full) {
            true => full,
            false if self.source.is_spent() => there as u32,
            false => 0,
        }
    }

    /// True if one more exchange may begin on a link.
    pub(super) fn may_begin_batch(&mut self, link: LinkId) -> bool {
        let Link { connection, state } = &mut self.links[link];
        let Some(connection) = connection else { return false };
        let traffic = state.traffic();
        let is_spent = self.rules.is_per_message() && traffic.flights.live() > 0;
        state.phase == LinkPhase::Ready
            && !state.is_blocked
            && !state.is_lost
            && !is_spent
            && traffic.filling.is_none()
            && room_together(connection) > 0
            && traffic.batches.open() < self.rules.window
    }

    /// Hands the exchanges over that a link has the messages for, as far as window, protocol and
    /// socket allow. True if it could do more at once.
    pub(super) fn serve_batches(&mut self, link: LinkId, io: &mut dyn Io) -> bool {
        let mut could_more = false;
        loop {
            let state = &self.links[link].state;
            if state.phase != LinkPhase::Ready || state.is_blocked || state.is_lost {
                break;
            }
            if state.out_bytes() >= TURN_BYTES {
                could_more = true;
                break;
            }
            let goes_on = state.traffic().filling.is_some() || self.begin_batch(link);
            if !goes_on || !self.send_part(link, io) {
                break;
            }
        }
        self.end_turn(link, could_more, io)
    }

    fn begin_batch(&mut self, link: LinkId) -> bool {
        let size = self.gathered(link);
        if size == 0 || !self.may_begin_batch(link) {
            return false;
        }
        let turn = self.turn(link);
        let traffic = self.links[link].state.traffic_mut();
        let due = traffic.waiting.front().copied().unwrap_or(turn);
        let last = traffic.waiting.get(size as usize - 1).copied();
        traffic.complete_since = last.filter(|_| traffic.held_up < size).unwrap_or(Nanos::NEVER);
        let warmup = due < self.clock.measure_from;
        let number = traffic.batches.begin(Batch { due, left: size, failed: 0, warmup });
        traffic.filling = Some((number, size));
        true
    }

    /// Hands over as much of the exchange that was begun as the protocol takes at once; false if
    /// that is nothing.
    fn send_part(&mut self, index: LinkId, io: &mut dyn Io) -> bool {
        let Link { connection, state } = &mut self.links[index];
        let (Some(connection), Some((batch, left))) = (connection, state.traffic().filling) else {
            return false;
        };
        let count = left.min(room_together(connection));
        self.gather(index, count, count == left);
        if self.out.gathered.is_empty() {
            return false;
        }
        let taken = self.out.gathered.len() as u32;
        let traffic = self.links[index].state.traffic_mut();
        traffic.filling = Some((batch, left - taken)).filter(|(_, left)| *left > 0);
        let sent = io.now();
        let reply = self.send_gathered(index, batch, sent);
        match reply {
            Reply::Awaited => self.books.in_flight += u64::from(taken),
            Reply::None => self.end_unanswered(index, batch, sent),
        }
        true
    }

    /// Takes the messages that come next. All but the last had to wait for it, by design.
    fn gather(&mut self, index: LinkId, count: u32, is_last_part: bool) {
        self.out.gathered.clear();
        for place in 1..=count {
            let Some(due) = self.next_due_of(index) else { break };
            let was_held_up = self.take_due_of(index) || place < count || !is_last_part;
            let (body_end, ticket) = (0, Ticket(0));
            self.out.gathered.push(Gathered { due, was_held_up, body_end, ticket });
        }
    }

    fn send_gathered(&mut self, index: LinkId, batch: u32, sent: Nanos) -> Reply {
        let Link { connection, state } = &mut self.links[index];
        let Some(connection) = connection else { return Reply::Awaited };
        let mut staged = self.out.spare.lend(state);
        let traffic = state.traffic_mut();
        let late = match self.rules.lifetime {
            Lifetime::PerMessage => traffic.opening_lag,
            Lifetime::Kept => sent.since(traffic.complete_since),
        };
        // What is left of the exchange waits for the protocol.
        traffic.complete_since = Nanos::NEVER;
        let (mut is_written, mut body_start) = (false, 0);
        self.out.body.clear();
        for one in &mut self.out.gathered {
            let Gathered { due, was_held_up, .. } = *one;
            let (warmup, lag) = (due < self.clock.measure_from, sent - due);
            let own_lag = if self.rules.has_schedule { late.min(lag) } else { lag };
            let mark = state.next_mark(self.rules.tag, Sending { due, sent, own_lag }, warmup);
            self.job.composer.compose(&mark, &mut self.out.body);
            one.body_end = self.out.body.len();
            let flight = Flight::of(&mark, sent, self.rules.copies, batch);
            one.ticket = state.traffic_mut().flights.start(flight);
            let body_bytes = (one.body_end - body_start) as u64;
            let handed = Handed { mark, sent, body_bytes, was_held_up };
            self.pending.owed -= self.books.handed_over(&handed, state);
            is_written |= !warmup;
            body_start = one.body_end;
        }
        self.books.outcome.recorder.writes += u64::from(is_written);
        let mut body_start = 0;
        let op = |one: &Gathered| {
            let body = &self.out.body[body_start..one.body_end];
            body_start = one.body_end;
            Op { ticket: one.ticket, body }
        };
        // One piece of memory for the whole exchange, not one for each message.
        let ops: Vec<Op<'_>> = self.out.gathered.iter().map(op).collect();
        let reply = match connection.batch() {
            Some(batch) => batch.send_together(&ops, sent, &mut staged.out),
            None => {
                let each = ops.iter().map(|op| connection.send(op, sent, &mut staged.out));
                each.last().unwrap_or(Reply::None)
            }
        };
        state.staged = Some(staged);
        reply
    }

    /// No answer will come to these messages: they are over now that they have left.
    fn end_unanswered(&mut self, link: LinkId, batch: u32, sent: Nanos) {
        let traffic = self.links[link].state.traffic_mut();
        let mut is_over = false;
        for one in &self.out.gathered {
            traffic.flights.end(one.ticket);
            is_over |= traffic.batches.end_one(batch, false).is_some();
            if one.due >= self.clock.measure_from {
                self.books.outcome.recorder.done(sent);
            }
        }
        self.close_if_per_message(link);
        if is_over && self.rules.is_closed {
            self.books.freed.push((link, sent));
        }
    }

    /// Hands shared messages to links in turn, one exchange at a time.
    pub(super) fn serve_backlog_together(&mut self, size: u32, io: &mut dyn Io) {
        let full = size as usize;
        while self.pending.backlog.len() >= full
            || (!self.pending.backlog.is_empty() && self.source.is_spent())
        {
            let Some(link) = self.pending.free_links.pop_front() else { break };
            self.links[link].state.is_queued = false;
            if !self.may_take(link) {
                continue;
            }
            let count = full.min(self.pending.backlog.len());
            let held_up = self.pending.held_up.min(count);
            self.pending.held_up -= held_up;
            let state = &mut self.links[link].state;
            let traffic = state.traffic_mut();
            traffic.waiting.extend(self.pending.backlog.drain(..count));
            traffic.held_up = held_up as u32;
            let last = traffic.waiting.back().copied().unwrap_or(self.pending.newest_due);
            if state.phase == LinkPhase::Idle {
                self.open_for(link, last, held_up == count, io);
            } else {
                if self.serve_batches(link, io) {
                    self.pending.to_serve.push(link);
                }
                self.offer(link);
            }
        }
        self.pending.held_up = self.pending.backlog.len();
    }

    /// The schedules of all clients are spent: what each has gathered goes, full or not.
    pub(super) fn send_what_is_gathered(&mut self) {
        for index in self.links.producers() {
            if !self.links[index].state.traffic().waiting.is_empty() {
                self.pending.to_serve.push(index);
            }
        }
    }
}

/// Returns how many messages may start now, in one exchange if the protocol supports that.
fn room_together(connection: &mut Box<dyn Connection>) -> u32 {
    match connection.batch() {
        Some(batch) => batch.room_together(),
        None => connection.room(),
    }
}
