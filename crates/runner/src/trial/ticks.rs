//! Merges the reports of a trial's shards: their sum between two borders is one tick, complete as
//! soon as every shard has passed the second border.

use std::collections::{BTreeMap, VecDeque};

use weigh_engine::interval_times::IntervalTimes;
use weigh_engine::job::ShardInterval;
use weigh_model::Nanos;
use weigh_model::event::Interval;

/// The ticks of one trial while it runs. A tick is held back until every shard has passed its end,
/// so one shard that pauses delays all of them.
#[derive(Debug)]
pub struct Ticks {
    shards: u32,
    /// By shard: the last reported border; [`Nanos::NEVER`] after it has settled.
    passed: BTreeMap<u32, Nanos>,
    open: VecDeque<Tick>,
}

/// Counts and times of all shards between two borders.
#[derive(Clone, Debug, Default)]
pub struct Tick {
    counts: Interval,
    times: IntervalTimes,
    border: Nanos,
    from_ns: u64,
    /// By shard: connections at the end, CPU time.
    shards: BTreeMap<u32, (u64, Nanos)>,
}

impl Ticks {
    /// Makes the ticks of a trial with this many shards.
    pub fn new(shards: u32) -> Ticks {
        Ticks { shards, passed: BTreeMap::new(), open: VecDeque::new() }
    }

    /// Adds an interval of `shard`.
    pub fn add(&mut self, shard: u32, own: ShardInterval) {
        let tick = Tick::of(shard, own);
        let passed = self.passed.entry(shard).or_default();
        *passed = tick.border.max(*passed);
        match self.open.iter_mut().find(|later| tick.border <= later.border) {
            Some(same) => same.join(&tick),
            None => self.open.push_back(tick),
        }
    }

    /// Notes that `shard` has nothing more to report.
    pub fn settle(&mut self, shard: u32) {
        self.passed.insert(shard, Nanos::NEVER);
    }

    /// True once no shard has anything more to report.
    pub fn are_over(&self) -> bool {
        self.slowest() == Nanos::NEVER
    }

    /// The next tick that every shard has passed.
    pub fn next_complete(&mut self) -> Option<Tick> {
        let slowest = self.slowest();
        self.open.pop_front_if(|tick| tick.border <= slowest)
    }

    /// Returns the remaining ticks when no more reports come.
    pub fn rest(&mut self) -> impl Iterator<Item = Tick> {
        self.open.drain(..)
    }

    fn slowest(&self) -> Nanos {
        let is_known = self.passed.len() >= self.shards as usize;
        self.passed.values().copied().min().filter(|_| is_known).unwrap_or_default()
    }
}

impl Tick {
    /// Makes a tick of one shard's report.
    pub fn of(shard: u32, own: ShardInterval) -> Tick {
        let ShardInterval { interval: counts, border, times, cpu } = own;
        let from_ns = counts.at_ns.saturating_sub(counts.length_ns.unwrap_or(0));
        let shards = BTreeMap::from([(shard, (counts.connections, cpu))]);
        Tick { counts, times, border, from_ns, shards }
    }

    /// Counts of all shards, and the phase. Ends and connections are of one shard.
    pub fn counts(&self) -> &Interval {
        &self.counts
    }

    /// Response times and send lags.
    pub fn times(&self) -> &IntervalTimes {
        &self.times
    }

    /// Connections open at the end.
    pub fn connections(&self) -> u64 {
        self.shards.values().map(|(connections, _)| connections).sum()
    }

    /// Time from the first shard's start to the last one's end, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.counts.at_ns - self.from_ns
    }

    /// True for two ticks of the same phase: warm-up, load or draining.
    pub fn is_like(&self, other: &Tick) -> bool {
        let phase = |tick: &Tick| (tick.counts.warmup, tick.counts.draining);
        phase(self) == phase(other)
    }

    /// Adds the tick that follows, or another shard's report of this one.
    pub fn join(&mut self, other: &Tick) {
        self.times.merge(&other.times);
        self.border = self.border.max(other.border);
        let (sum, more) = (&mut self.counts, &other.counts);
        sum.sent += more.sent;
        sum.acknowledged += more.acknowledged;
        sum.delivered += more.delivered;
        sum.errors += more.errors;
        sum.at_ns = sum.at_ns.max(more.at_ns);
        self.from_ns = self.from_ns.min(other.from_ns);
        // Shards end a load by count at different times: what one still sends is load.
        sum.draining &= more.draining;
        for (shard, (connections, cpu)) in &other.shards {
            let entry = self.shards.entry(*shard).or_default();
            *entry = (*connections, entry.1 + *cpu);
        }
    }

    /// The interval with its quantiles.
    pub fn interval(&self) -> Interval {
        let length_ns = self.length_ns();
        let mut interval = self.counts.clone();
        self.times.tell(&mut interval);
        interval.connections = self.connections();
        interval.length_ns = Some(length_ns);
        let busiest = self.shards.values().map(|(_, cpu)| cpu.0).max().unwrap_or(0);
        interval.generator_cpu_percent =
            (length_ns > 0).then(|| 100.0 * busiest as f64 / length_ns as f64);
        interval
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const EVERY: u64 = 100_000_000;

    /// A shard's report of its interval of this number, from 1.
    pub fn reported(number: u64, warmup: bool) -> ShardInterval {
        let interval = Interval {
            at_ns: number * EVERY + 7,
            warmup,
            sent: 3,
            connections: 2,
            length_ns: Some(EVERY),
            ..Interval::default()
        };
        let (border, cpu) = (Nanos(number * EVERY), Nanos(EVERY / 4));
        ShardInterval { interval, border, cpu, ..ShardInterval::default() }
    }

    fn sent(ticks: &mut Ticks) -> Vec<u64> {
        std::iter::from_fn(|| ticks.next_complete()).map(|tick| tick.counts().sent).collect()
    }

    #[test]
    fn what_shards_report_of_one_border_is_one_tick() {
        let mut ticks = Ticks::new(2);
        for number in 1..=5 {
            ticks.add(0, reported(number, number <= 2));
            if number != 4 {
                ticks.add(1, reported(number, number <= 2));
            }
        }
        let all: Vec<Tick> = std::iter::from_fn(|| ticks.next_complete()).collect();
        let sent: Vec<u64> = all.iter().map(|tick| tick.counts().sent).collect();
        assert_eq!(sent, [6, 6, 6, 3, 6]);
        assert_eq!((all[4].connections(), all[4].length_ns()), (4, EVERY));
        assert_eq!(all[4].interval().generator_cpu_percent, Some(25.0));
        assert!(all[1].counts().warmup && !all[2].counts().warmup);
    }

    /// One shard has sent its share while the other still sends: the tick is load, whichever shard
    /// reports first.
    #[test]
    fn a_tick_is_draining_once_every_shard_drains() {
        let drains = |number: u64| {
            let mut own = reported(number, false);
            own.interval.draining = true;
            own
        };
        for first in [0, 1] {
            let mut ticks = Ticks::new(2);
            let last = 1 - first;
            ticks.add(first, if first == 0 { drains(1) } else { reported(1, false) });
            ticks.add(last, if last == 0 { drains(1) } else { reported(1, false) });
            (0..2).for_each(|shard| ticks.add(shard, drains(2)));
            let all = std::iter::from_fn(|| ticks.next_complete());
            assert_eq!(all.map(|tick| tick.counts().draining).collect::<Vec<_>>(), [false, true]);
        }
    }

    #[test]
    fn a_tick_waits_for_the_slowest_shard_until_that_has_settled() {
        let mut ticks = Ticks::new(2);
        (1..=3).for_each(|number| ticks.add(0, reported(number, false)));
        assert!(sent(&mut ticks).is_empty(), "the other shard has not reported");
        ticks.add(1, reported(2, false));
        assert_eq!(sent(&mut ticks), [3, 6]);
        ticks.settle(1);
        assert!(!ticks.are_over());
        assert_eq!(sent(&mut ticks), [3]);
        ticks.add(0, reported(4, false));
        ticks.settle(0);
        assert!(ticks.are_over());
        assert_eq!(sent(&mut ticks), [3]);
        ticks.add(0, reported(5, false));
        assert_eq!(sent(&mut ticks), [3], "what a settled shard still reports is not lost");
    }

    #[test]
    fn what_no_shard_completes_is_left_at_the_end() {
        let mut ticks = Ticks::new(3);
        ticks.add(0, reported(1, false));
        ticks.add(2, reported(1, false));
        assert!(ticks.next_complete().is_none());
        assert_eq!(ticks.rest().map(|tick| tick.counts().sent).collect::<Vec<_>>(), [6]);
    }
}
