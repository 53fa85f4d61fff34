//! Messages that become due: from the source of the load to the links that may send them. What
//! waits is bounded, so that a load far beyond the generator does not fill the memory, and so is
//! the work of one step, so that signals are handled in time.

use weigh_model::Nanos;
use weigh_model::ledger::NotSentCause;
use weigh_model::protocol::Lifetime;

use super::Shard;
use super::parts::RELEASED_MAX;
use super::rules::Exchange;
use super::source::{BACKLOG_MAX, ClosedLoop, Source};
use crate::link::{Link, LinkId, LinkPhase};
use crate::schedule::Due;

impl Shard {
    /// The load starts: slots open, schedules begin.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.clock.has_begun = true;
        self.begin_polling();
        for link in self.links.producers() {
            if let Some(room) = self.room_known(link) {
                self.books.note_window(self.job.load().window_within(room));
            }
        }
        if let Source::Own(own) = &mut self.source {
            for (link, schedule) in self.links.producers().zip(&mut own.schedules) {
                if let Some(due) = schedule.next_due() {
                    self.books.scheduled(due.warmup);
                    own.timers.push(self.clock.start + due.at, link);
                    own.unspent += 1;
                }
            }
        } else if self.job.load().join.is_none() {
            for link in self.links.producers() {
                self.begin_client(link, self.clock.start);
            }
        }
        self.pending.last_release = now;
    }

    /// Starts a client; its own messages are due from `since` on.
    pub(super) fn begin_client(&mut self, link: LinkId, since: Nanos) {
        match &mut self.source {
            Source::Shared(_) => self.offer(link),
            Source::Closed(ClosedLoop { ramp: Some(over), timers, .. }) => {
                let place = u64::from(self.links[link].state.index);
                let offset = over.0 * place / u64::from(self.job.load().connections);
                timers.push(since + Nanos(offset), link);
            }
            Source::Closed(_) => self.open_slots(link, since),
            Source::Burst => {
                let burst = self.links[link].state.traffic().burst_left;
                self.books.scheduled_many(burst);
                if burst > 0 {
                    self.pending.to_serve.push(link);
                }
            }
            Source::Own(_) | Source::Nothing => {}
        }
    }

    /// Puts everything that is due by `now` where it waits for a link.
    pub(super) fn release(&mut self, now: Nanos) {
        match &self.source {
            Source::Shared(_) => self.release_shared(now),
            Source::Own(_) => self.release_own(now),
            Source::Closed(own) => self.release_slots(own.think, now),
            Source::Burst | Source::Nothing => {}
        }
    }

    /// Takes due messages of the shared schedule into the backlog. What does not fit stays in the
    /// schedule, which is computed and takes no memory; its due times do not change by that.
    fn release_shared(&mut self, now: Nanos) {
        let Source::Shared(own) = &mut self.source else { return };
        for _ in 0..RELEASED_MAX {
            let Some(due) = own.next.filter(|due| self.clock.start + due.at <= now) else { return };
            if self.pending.backlog.len() >= BACKLOG_MAX {
                return;
            }
            self.pending.last_release = now;
            self.books.scheduled(due.warmup);
            self.pending.newest_due = self.clock.start + due.at;
            self.pending.backlog.push_back(self.pending.newest_due);
            own.next = own.schedule.next_due();
        }
    }

    /// Releases what is due on each client's own schedule; a client with too many messages that
    /// wait is put aside until half of them are sent.
    fn release_own(&mut self, now: Nanos) {
        let Source::Own(own) = &mut self.source else { return };
        let waiting = |link: LinkId| self.links[link].state.traffic().waiting.len();
        let mut place = 0;
        while let Some((at, link)) = own.parked.get(place).copied() {
            if waiting(link) <= own.waiting_max / 2 {
                own.parked.swap_remove(place);
                own.timers.push(at, link);
            } else {
                place += 1;
            }
        }
        for _ in 0..RELEASED_MAX {
            let Source::Own(own) = &mut self.source else { return };
            let Some((at, link)) = own.timers.pop(now) else { return };
            if self.links[link].state.traffic().waiting.len() >= own.waiting_max {
                own.parked.push((at, link));
            } else {
                self.pending.last_release = now;
                self.client_due(link, at);
            }
        }
    }

    fn client_due(&mut self, link: LinkId, at: Nanos) {
        let Source::Own(own) = &mut self.source else { return };
        if let Some(Due { at, warmup }) = own.schedules[self.links.place(link)].next_due() {
            self.books.scheduled(warmup);
            own.timers.push(self.clock.start + at, link);
        } else {
            own.unspent -= 1;
            if own.unspent == 0 && matches!(self.rules.exchange, Exchange::Batch(_)) {
                self.send_what_is_gathered();
            }
        }
        let state = &mut self.links[link].state;
        if state.phase == LinkPhase::Dead {
            let count = u64::from(at >= self.clock.measure_from);
            self.books.note_not_sent(NotSentCause::ConnectionClosed, count);
        } else {
            state.traffic_mut().waiting.push_back(at);
            self.pending.newest_due = self.pending.newest_due.max(at);
            self.pending.to_serve.push(link);
        }
    }

    /// Slots of a closed loop that are free lead to the next message, after the think time.
    fn release_slots(&mut self, think: Nanos, now: Nanos) {
        let mut freed = std::mem::take(&mut self.books.freed);
        for (link, since) in freed.drain(..) {
            if think.0 == 0 {
                self.offer_slot(link, since);
            } else if let Source::Closed(own) = &mut self.source {
                own.timers.push(since + think, link);
            }
        }
        self.books.freed = freed;
        for _ in 0..RELEASED_MAX {
            let Source::Closed(own) = &mut self.source else { return };
            let Some((at, link)) = own.timers.pop(now) else { return };
            self.pending.last_release = now;
            let traffic = self.links[link].state.traffic();
            let is_fresh = traffic.sequence == 0
                && traffic.warmup_sequence == 0
                && traffic.flights.live() == 0;
            // The first due time of a ramp's client opens all its slots; later ones are single.
            if is_fresh && own.ramp.is_some() {
                self.open_slots(link, at);
            } else {
                self.offer_slot(link, at);
            }
        }
    }

    /// Every slot of a closed loop's window is free from `since` on.
    fn open_slots(&mut self, link: LinkId, since: Nanos) {
        // Not known before the session stands again; what is too much then waits.
        let room = self.room_known(link).unwrap_or(self.job.load().window.unwrap_or(1));
        for _ in 0..self.job.load().window_within(room) {
            self.offer_slot(link, since);
        }
    }

    /// Returns how many messages may be in flight on an idle link; `None` while its session is not
    /// open.
    fn room_known(&self, link: LinkId) -> Option<u32> {
        let Link { connection, state } = &self.links[link];
        match (self.rules.lifetime, connection) {
            (Lifetime::PerMessage, _) => Some(1),
            (Lifetime::Kept, Some(connection)) if state.phase == LinkPhase::Ready => {
                Some(connection.room().max(1))
            }
            (Lifetime::Kept, _) => None,
        }
    }

    fn offer_slot(&mut self, link: LinkId, since: Nanos) {
        let Source::Closed(own) = &mut self.source else { return };
        let place = self.links.place(link);
        let state = &mut self.links[link].state;
        let is_dead = state.phase == LinkPhase::Dead;
        let traffic = state.traffic_mut();
        let is_spent =
            self.rules.has_quotas && since >= self.clock.measure_from && traffic.quota == 0;
        if is_dead || since >= self.clock.end || is_spent {
            return;
        }
        if let Some(later) = own.next_second(place, since.since(self.clock.start)) {
            own.timers.push(self.clock.start + later, link);
            return;
        }
        traffic.waiting.extend(std::iter::repeat_n(since, own.slot_messages));
        self.pending.to_serve.push(link);
    }

    /// A message that nothing answers has left: in a closed loop its slot is free at once, and the
    /// next one may follow in the same write.
    #[inline]
    pub(super) fn free_unanswered(&mut self, link: LinkId, sent: Nanos) {
        let Source::Closed(own) = &self.source else { return };
        if !own.follows_at_once() || self.rules.lifetime == Lifetime::PerMessage {
            self.books.freed.push((link, sent));
        } else if sent < self.clock.end {
            self.links[link].state.traffic_mut().waiting.push_back(sent);
        }
    }

    /// Measured messages that were due by `now` and were never released, because too many waited.
    pub(super) fn still_in_schedules(&mut self, now: Nanos) -> u64 {
        let (until, measure_from) = (now - self.clock.start, self.clock.measure_from);
        match &mut self.source {
            _ if !self.clock.has_begun => 0,
            Source::Shared(own) => own.pass(until),
            Source::Own(own) => {
                let mut unsent = 0;
                for (at, link) in std::mem::take(&mut own.parked) {
                    unsent += u64::from(at >= measure_from);
                    unsent += own.schedules[self.links.place(link)].pass(until);
                }
                unsent
            }
            Source::Closed(_) | Source::Burst | Source::Nothing => 0,
        }
    }

    /// Measured messages that would still have become due if a connection were left to send them:
    /// a load is offered in full, whatever happens to the connections.
    pub(super) fn never_due(&mut self) -> u64 {
        let from = self.clock.measure_from;
        match &mut self.source {
            Source::Shared(own) => own.pass(Nanos::NEVER),
            Source::Own(own) => {
                let parked = own.parked.iter().filter(|(at, _)| *at >= from).count() as u64;
                let later = own.schedules.iter_mut().map(|schedule| schedule.pass(Nanos::NEVER));
                parked + own.timers.count_from(from) + later.sum::<u64>()
            }
            Source::Closed(_) | Source::Burst | Source::Nothing => 0,
        }
    }

    /// True where messages are held back because too many wait.
    pub(super) fn is_overfull(&self) -> bool {
        match &self.source {
            Source::Shared(_) => self.pending.backlog.len() >= BACKLOG_MAX,
            Source::Own(own) => !own.parked.is_empty(),
            Source::Closed(_) | Source::Burst | Source::Nothing => false,
        }
    }
}
