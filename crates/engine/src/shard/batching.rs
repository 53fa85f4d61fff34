//! Exchanges of several messages: gathered until they are full, handed over together, over when
//! the last of them has ended.

use weigh_model::connection::{Connection, Op, Reply, Ticket};
use weigh_model::mark::Mark;
use weigh_model::protocol::Lifetime;
use weigh_model::{Nanos, Pattern};

use super::Shard;
use super::parts::Gathered;
use super::sending::{TURN_BYTES, count_sent};
use crate::io::Io;
use crate::link::{Batch, Flight, Link, LinkPhase};

impl Shard {
    /// True where several messages go in one exchange.
    pub(super) fn is_batched(&self) -> bool {
        self.job.load().pattern == Pattern::Batch
    }

    /// Messages that wait for a link and would leave together now; 0 while there are too few.
    pub(super) fn gathered(&self, link: u32) -> u32 {
        let full = self.job.load().batch_size();
        let traffic = self.links[link as usize].state.traffic();
        if traffic.waiting.is_empty() {
            return u64::from(full).min(traffic.burst_left) as u32;
        }
        let mut there = traffic.waiting.len() as u64;
        if self.job.has_quotas() && traffic.waiting[0] >= self.clock.measure_from {
            there = there.min(traffic.quota);
        }
        match there >= u64::from(full) {
            true => full,
            false if self.gathers_no_more() => there as u32,
            false => 0,
        }
    }

    /// True where what is there is all there will be for an exchange: a slot of a closed loop comes
    /// with all its messages, and a schedule that is spent brings no others.
    pub(super) fn gathers_no_more(&self) -> bool {
        let is_open = self.job.load().arrival.is_open();
        !is_open || (self.source.stream_next.is_none() && self.source.streams_left == 0)
    }

    /// True if one more exchange may begin on a link.
    pub(super) fn may_begin_batch(&mut self, link: u32) -> bool {
        let Link { connection, state } = &mut self.links[link as usize];
        let Some(connection) = connection else { return false };
        let traffic = state.traffic();
        let is_spent = self.job.dial.lifetime == Lifetime::PerMessage && traffic.flights.live() > 0;
        state.phase == LinkPhase::Ready
            && !state.is_blocked
            && !state.is_lost
            && !is_spent
            && traffic.filling.is_none()
            && room_together(connection) > 0
            && traffic.batches.open() < self.job.load().window.unwrap_or(u32::MAX)
    }

    /// Hands the exchanges over that a link has the messages for, as far as window, protocol and
    /// socket allow. True if it could do more at once.
    pub(super) fn serve_batches(&mut self, link: u32, io: &mut dyn Io) -> bool {
        let mut could_more = false;
        loop {
            let state = &self.links[link as usize].state;
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
        let traffic = self.links[link as usize].state.traffic_mut();
        traffic.held_up = if could_more { 0 } else { traffic.waiting.len() as u32 };
        self.flush(link, io);
        could_more && !self.links[link as usize].state.is_blocked
    }

    fn begin_batch(&mut self, link: u32) -> bool {
        let size = self.gathered(link);
        if size == 0 || !self.may_begin_batch(link) {
            return false;
        }
        let turn = self.turn(link);
        let traffic = self.links[link as usize].state.traffic_mut();
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
    fn send_part(&mut self, index: u32, io: &mut dyn Io) -> bool {
        let Link { connection, state } = &mut self.links[index as usize];
        let (Some(connection), Some((batch, left))) = (connection, state.traffic().filling) else {
            return false;
        };
        let count = left.min(room_together(connection));
        self.gather(index, count, count == left);
        if self.out.gathered.is_empty() {
            return false;
        }
        let taken = self.out.gathered.len() as u32;
        let traffic = self.links[index as usize].state.traffic_mut();
        traffic.filling = Some((batch, left - taken)).filter(|(_, left)| *left > 0);
        let sent = io.now();
        let reply = self.send_gathered(index, batch, sent);
        match reply {
            Reply::Awaited => self.desk.in_flight += u64::from(taken),
            Reply::None => self.end_unanswered(index, batch, sent),
        }
        true
    }

    /// Takes the messages that come next. All but the last had to wait for it, by design.
    fn gather(&mut self, index: u32, count: u32, is_last_part: bool) {
        self.out.gathered.clear();
        for place in 1..=count {
            let Some(due) = self.next_due_of(index) else { break };
            let was_held_up = self.take_due_of(index) || place < count || !is_last_part;
            let (body_end, ticket) = (0, Ticket(0));
            self.out.gathered.push(Gathered { due, was_held_up, body_end, ticket });
        }
    }

    fn send_gathered(&mut self, index: u32, batch: u32, sent: Nanos) -> Reply {
        let Link { connection, state } = &mut self.links[index as usize];
        let Some(connection) = connection else { return Reply::Awaited };
        let (producer, place) = (state.index, state.account as usize);
        let mut staged = self.out.spare.lend(state);
        let (tag, measure_from) = (self.tag, self.clock.measure_from);
        let has_schedule = self.job.load().arrival.has_schedule();
        let (mut written, mut body_start) = (false, 0);
        let traffic = state.traffic_mut();
        let late = match self.job.dial.lifetime {
            Lifetime::PerMessage => traffic.opening_lag,
            Lifetime::Kept => sent.since(traffic.complete_since),
        };
        // What is left of the exchange waits for the protocol.
        traffic.complete_since = Nanos::NEVER;
        self.out.body.clear();
        for one in &mut self.out.gathered {
            let Gathered { due, was_held_up, .. } = *one;
            let warmup = due < measure_from;
            let traffic = state.traffic_mut();
            let number = if warmup { traffic.warmup_sequence } else { traffic.sequence };
            let lag = sent - due;
            let own_lag = if has_schedule { late.min(lag) } else { lag };
            let mark = Mark { tag, warmup, producer, sequence: number, due, lag, own_lag };
            self.job.composer.compose(&mark, &mut self.out.body);
            one.body_end = self.out.body.len();
            let (copies, is_expired) = (1, false);
            let flight = Flight { due, sent, own_lag, number, copies, batch, warmup, is_expired };
            one.ticket = traffic.flights.start(flight);
            let account = &mut self.desk.left.accounts.producers[place];
            count_sent(traffic, account, &mut self.source.owed, (sent, warmup));
            self.desk.left.recorder.sent(due, sent, warmup, was_held_up);
            if !warmup {
                written = true;
                self.desk.last_due = self.desk.last_due.max(due);
                self.desk.note_sent(&mark, state, sent, (one.body_end - body_start) as u64);
            }
            body_start = one.body_end;
        }
        self.desk.left.recorder.writes += u64::from(written);
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

    /// Nobody will answer these messages: they are over now that they have left.
    fn end_unanswered(&mut self, index: u32, batch: u32, sent: Nanos) {
        let is_per_message = self.job.dial.lifetime == Lifetime::PerMessage;
        let state = &mut self.links[index as usize].state;
        let mut is_over = false;
        for one in &self.out.gathered {
            let traffic = state.traffic_mut();
            traffic.flights.end(one.ticket);
            is_over |= traffic.batches.end_one(batch, false).is_some();
            if one.due >= self.clock.measure_from {
                self.desk.left.recorder.done(sent);
            }
        }
        if is_per_message {
            state.phase = LinkPhase::Closing;
            self.mark_dirty(index);
        }
        if is_over && !self.job.load().arrival.is_open() {
            self.desk.freed.push((index, sent));
        }
    }

    /// Hands shared messages to links in turn, one exchange at a time.
    pub(super) fn serve_gathered_backlog(&mut self, io: &mut dyn Io) {
        let full = self.job.load().batch_size() as usize;
        while self.source.backlog.len() >= full
            || (!self.source.backlog.is_empty() && self.gathers_no_more())
        {
            let Some(link) = self.source.takers.pop_front() else { break };
            self.links[link as usize].state.is_queued = false;
            if !self.may_take(link) {
                continue;
            }
            let count = full.min(self.source.backlog.len());
            let held_up = self.source.bounds.held_up.min(count);
            self.source.bounds.held_up -= held_up;
            let state = &mut self.links[link as usize].state;
            let traffic = state.traffic_mut();
            traffic.waiting.extend(self.source.backlog.drain(..count));
            traffic.held_up = held_up as u32;
            let last = traffic.waiting.back().copied().unwrap_or(self.source.newest_due);
            if state.phase == LinkPhase::Idle {
                self.open_for(link, last, held_up == count, io);
            } else {
                if self.serve_batches(link, io) {
                    self.source.eager.push(link);
                }
                self.offer(link);
            }
        }
        self.source.bounds.held_up = self.source.backlog.len();
    }

    /// The schedules of all clients are spent: what each has gathered goes, full or not.
    pub(super) fn send_what_is_gathered(&mut self) {
        let consumers = self.desk.left.accounts.consumers.len();
        for index in consumers..self.links.len() {
            if !self.links[index].state.traffic().waiting.is_empty() {
                self.source.eager.push(index as u32);
            }
        }
    }

    /// Due times that a slot of a closed loop brings at once.
    pub(super) fn slot_messages(&self) -> usize {
        match self.job.load().arrival.is_closed() {
            true => self.job.load().batch_size() as usize,
            false => 1,
        }
    }
}

/// How many messages may start now, in one exchange where the protocol has such.
fn room_together(connection: &mut Box<dyn Connection>) -> u32 {
    match connection.batch() {
        Some(batch) => batch.room_together(),
        None => connection.room(),
    }
}
