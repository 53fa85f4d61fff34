//! Sources of the messages of a load. The source is chosen once, and each source knows what makes
//! its next message due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weigh_model::{Arrival, Nanos, Pattern};

use crate::job::Job;
use crate::link::LinkId;
use crate::schedule::{Due, Schedule};

/// Source that makes messages due.
pub(super) enum Source {
    /// One schedule for all clients: a free link takes the next message.
    Shared(SharedSchedule),
    /// A schedule for each client.
    Own(OwnSchedules),
    /// A closed loop: the end of a message lets the next one go.
    Closed(ClosedLoop),
    /// Each client has all its messages when it begins.
    Burst,
    /// Connections are held and send nothing, or the load is over.
    Nothing,
}

/// A schedule that all clients share, as far as this shard sends it.
pub(super) struct SharedSchedule {
    pub(super) schedule: Schedule,
    /// Its next entry.
    pub(super) next: Option<Due>,
}

/// The schedules of clients.
pub(super) struct OwnSchedules {
    /// By the place of the client among the producers.
    pub(super) schedules: Vec<Schedule>,
    /// Schedules that are not spent.
    pub(super) unspent: usize,
    /// Times of the next message of each client.
    pub(super) timers: Timers,
    /// Due messages of clients of which too many wait.
    pub(super) parked: Vec<(Nanos, LinkId)>,
    /// Messages of one client that wait at most.
    pub(super) waiting_max: usize,
}

/// A closed loop.
pub(super) struct ClosedLoop {
    /// From the end of a message to the next one.
    pub(super) think: Nanos,
    /// Messages that a free slot lets go: those of an exchange.
    pub(super) slot_messages: usize,
    /// The time over which clients join; `None` where all begin at once.
    pub(super) ramp: Option<Nanos>,
    /// Times at which slots become free.
    pub(super) timers: Timers,
    /// Limits of producers in messages per second; empty without such a limit.
    shares: Vec<Share>,
}

/// Messages that a producer has sent of its share of a second.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// Messages that it may send in each second.
    whole: u64,
    /// The second, from the start of the load on.
    second: u64,
    /// Messages that were let go in it.
    spent: u64,
}

/// Links by the time at which something is due on them.
#[derive(Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Nanos, LinkId)>>);

impl Source {
    /// The source of a job's load in a shard with these producers.
    pub(super) fn of(job: &Job, shard: u32, producers: &[u32]) -> Source {
        let load = job.load();
        let ramp = match load.arrival {
            _ if load.pattern == Pattern::Hold => return Source::Nothing,
            Arrival::Burst => return Source::Burst,
            Arrival::Ramp(over) => Some(over),
            Arrival::Closed | Arrival::EachSecond => None,
            Arrival::Constant
            | Arrival::Poisson
            | Arrival::Periodic
            | Arrival::Steps(_)
            | Arrival::Trace(_) => return scheduled(job, shard, producers),
        };
        let share = |producer: &u32| {
            load.share_of_second(*producer).map(|whole| Share { whole, ..Share::default() })
        };
        Source::Closed(ClosedLoop {
            think: load.think,
            slot_messages: load.batch_size() as usize,
            ramp,
            timers: Timers::default(),
            shares: producers.iter().filter_map(share).collect(),
        })
    }

    /// Returns the time of its next message, if that is known; the load began at `start`.
    pub(super) fn next_moment(&self, start: Nanos) -> Nanos {
        match self {
            Source::Shared(own) => own.next.map_or(Nanos::NEVER, |due| start + due.at),
            Source::Own(own) => own.timers.next(),
            Source::Closed(own) => own.timers.next(),
            Source::Burst | Source::Nothing => Nanos::NEVER,
        }
    }

    /// True where what is due is all that will be due without an answer.
    pub(super) fn is_spent(&self) -> bool {
        match self {
            Source::Shared(own) => own.next.is_none(),
            Source::Own(own) => own.unspent == 0,
            Source::Closed(_) | Source::Burst | Source::Nothing => true,
        }
    }

    /// The last moment, since the load began, at which a message is due that is held back;
    /// `None` where none is.
    pub(super) fn last_due_ahead(&self) -> Option<Nanos> {
        match self {
            Source::Shared(own) => own.next.map(|_| own.schedule.last_due()),
            Source::Own(own) if own.parked.is_empty() => None,
            Source::Own(own) => own.schedules.iter().map(Schedule::last_due).max(),
            Source::Closed(_) | Source::Burst | Source::Nothing => None,
        }
    }
}

/// A schedule for all, or for each.
fn scheduled(job: &Job, shard: u32, producers: &[u32]) -> Source {
    let (load, seed) = (job.load(), job.trial.seed);
    if let Some(mut schedule) = Schedule::shared(load, &job.trace, seed, shard, job.shards) {
        let next = schedule.next_due();
        return Source::Shared(SharedSchedule { schedule, next });
    }
    let own = producers.iter().filter_map(|producer| Schedule::client(load, seed, *producer));
    Source::Own(OwnSchedules {
        schedules: own.collect(),
        unspent: 0,
        timers: Timers::default(),
        parked: Vec::new(),
        waiting_max: (BACKLOG_MAX / producers.len().max(1))
            .max(WAITING_MIN)
            .max(2 * load.batch_size() as usize),
    })
}

impl SharedSchedule {
    /// Measured messages that are due by `until`, since the load began, and were not taken.
    pub(super) fn pass(&mut self, until: Nanos) -> u64 {
        let Some(due) = self.next.take_if(|due| due.at <= until) else { return 0 };
        u64::from(!due.warmup) + self.schedule.pass(until)
    }
}

impl ClosedLoop {
    /// Returns the time at which a producer may send again, since the load began, if its share of
    /// the second of `since` is spent; else takes `messages` from the share.
    pub(super) fn next_second(&mut self, place: usize, since: Nanos) -> Option<Nanos> {
        let share = self.shares.get_mut(place)?;
        let second = since.0 / SECOND.0;
        if second > share.second {
            *share = Share { second, spent: 0, ..*share };
        }
        if share.spent < share.whole {
            share.spent += self.slot_messages as u64;
            return None;
        }
        Some(Nanos((share.second + 1) * SECOND.0))
    }

    /// True where a message that ends as it is sent may be followed at once.
    #[inline]
    pub(super) fn follows_at_once(&self) -> bool {
        self.think.0 == 0 && self.shares.is_empty()
    }
}

impl Timers {
    pub(super) fn push(&mut self, at: Nanos, link: LinkId) {
        self.0.push(Reverse((at, link)));
    }

    /// Returns the due time of the first message.
    #[inline]
    pub(super) fn next(&self) -> Nanos {
        self.0.peek().map_or(Nanos::NEVER, |Reverse((at, _))| *at)
    }

    /// Takes the first that is due by `now`.
    #[inline]
    pub(super) fn pop(&mut self, now: Nanos) -> Option<(Nanos, LinkId)> {
        if self.next() > now {
            return None;
        }
        self.0.pop().map(|Reverse(first)| first)
    }

    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(LinkId) -> bool) {
        self.0.retain(|Reverse((_, link))| is_kept(*link));
    }

    /// Returns how many messages are due at `from` or later.
    pub(super) fn count_from(&self, from: Nanos) -> u64 {
        self.0.iter().filter(|Reverse((at, _))| *at >= from).count() as u64
    }
}

/// Messages of the shared schedule that wait in memory at most: 128 MiB of due times. At ten times
/// what the fastest target takes of one thread it is full after seconds.
pub(super) const BACKLOG_MAX: usize = if cfg!(test) { 1 << 14 } else { 1 << 24 };

/// Messages of one client that may wait, however many clients there are.
const WAITING_MIN: usize = 64;

/// Duration of a share.
const SECOND: Nanos = Nanos::from_secs(1);
