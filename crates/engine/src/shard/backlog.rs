//! Bounds on what is due and waits: a load that is far beyond the generator costs no memory without
//! end, and no step takes so long that a signal is not heard.

use weigh_model::Nanos;

use super::Shard;
use super::parts::Timer;
use crate::schedule::Schedule;

impl Shard {
    /// Takes due messages of the shared schedule into the backlog. What does not fit stays in the
    /// schedule, which is computed and takes no memory; its due times do not change by that.
    pub(super) fn release_shared(&mut self, now: Nanos) {
        for _ in 0..RELEASED_MAX {
            let Some(due) = self.source.stream_next.filter(|due| self.clock.start + due.at <= now)
            else {
                return;
            };
            if self.is_backlog_full() {
                return;
            }
            self.source.last_release = now;
            self.desk.scheduled(due.warmup);
            self.source.newest_due = self.clock.start + due.at;
            self.source.backlog.push_back(self.source.newest_due);
            self.source.stream_next = self.source.stream.as_mut().and_then(Schedule::next_due);
        }
    }

    /// True where no more messages of the shared schedule are taken for now.
    pub(super) fn is_backlog_full(&self) -> bool {
        self.source.backlog.len() >= BACKLOG_MAX
    }

    /// Puts the next message of a client aside if too many of this client wait already; true if so.
    pub(super) fn parks(&mut self, link: u32, at: Nanos, timer: Timer) -> bool {
        let is_full = timer == Timer::Client && self.waiting_of(link) >= self.waiting_max();
        if is_full {
            self.source.bounds.parked.push((at, link));
        }
        is_full
    }

    /// Brings back what was put aside, where half of what waited has been sent.
    pub(super) fn unpark(&mut self) {
        let room = self.waiting_max() / 2;
        let mut place = 0;
        while let Some((at, link)) = self.source.bounds.parked.get(place).copied() {
            if self.waiting_of(link) <= room {
                self.source.bounds.parked.swap_remove(place);
                self.source.timers.push(std::cmp::Reverse((at, Timer::Client, link)));
            } else {
                place += 1;
            }
        }
    }

    fn waiting_of(&self, link: u32) -> usize {
        self.links[link as usize].state.traffic().waiting.len()
    }

    /// Messages of one client that wait at most.
    fn waiting_max(&self) -> usize {
        let gathers = 2 * self.job.load().batch_size() as usize;
        (BACKLOG_MAX / self.desk.producers.max(1)).max(WAITING_MIN).max(gathers)
    }

    /// The last moment at which a message of a schedule that is not spent is due.
    pub(super) fn last_due_ahead(&self) -> Nanos {
        let shared = self.source.stream.iter().filter(|_| self.source.stream_next.is_some());
        let own = self.source.streams.iter().filter(|_| !self.source.bounds.parked.is_empty());
        let last = shared.chain(own).map(Schedule::last_due).max();
        last.map_or(Nanos(0), |last| self.clock.start + last)
    }

    /// Measured messages that were due by `now` and never came out of the schedules, because more
    /// of them waited than are kept.
    pub(super) fn still_in_schedules(&mut self, now: Nanos) -> u64 {
        let (start, measure_from) = (self.clock.start, self.clock.measure_from);
        let mut unsent = 0;
        if let Some(due) = self.source.stream_next.filter(|due| start + due.at <= now) {
            unsent += u64::from(!due.warmup);
            unsent += self.source.stream.as_mut().map_or(0, |stream| stream.pass(now - start));
        }
        let before = self.desk.left.accounts.consumers.len();
        for (at, link) in std::mem::take(&mut self.source.bounds.parked) {
            unsent += u64::from(at >= measure_from);
            let stream = self.source.streams.get_mut(link as usize - before);
            unsent += stream.map_or(0, |stream| stream.pass(now - start));
        }
        unsent
    }
}

/// Messages of the shared schedule that wait in memory at most: 128 MiB of due times. At ten times
/// what the fastest target takes of one thread it is full after seconds.
pub(super) const BACKLOG_MAX: usize = if cfg!(test) { 1 << 14 } else { 1 << 24 };

/// Every client may have so many messages waiting, however many clients there are.
const WAITING_MIN: usize = 64;

/// Messages that are taken from schedules in one step of the loop, and handed to links: some ten
/// milliseconds. Then events and signals have their turn.
pub(super) const RELEASED_MAX: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };
