//! The intervals of a trial, put together from what its shards tell. Their number is bounded: when
//! there are too many, neighbours are joined, so that a trial of ten hours takes no more memory,
//! and no more lines of the journal, than one of a minute.

use std::collections::BTreeMap;

use weigh_engine::job::ShardInterval;
use weigh_model::Nanos;
use weigh_model::event::Interval;

/// The intervals of one trial so far.
#[derive(Debug)]
pub struct Series {
    slots: Vec<Slot>,
    /// How many intervals of a shard make one.
    joined: u32,
}

/// One interval, of all shards.
#[derive(Debug)]
struct Slot {
    told: ShardInterval,
    /// Where the first of those that were joined began.
    from_ns: u64,
    /// Borders in it.
    parts: u32,
    /// By shard: connections at the end, processor time.
    shards: BTreeMap<u32, (u64, Nanos)>,
}

impl Series {
    /// For shards that tell of themselves every `told`, to make intervals of `length`.
    pub fn new(told: Nanos, length: Nanos) -> Series {
        let joined = (length.0 / told.0.max(1)).clamp(1, u64::from(u32::MAX));
        Series { slots: Vec::new(), joined: joined as u32 }
    }

    /// Takes in what `shard` did in one interval.
    pub fn add(&mut self, shard: u32, told: ShardInterval) {
        let later = self.slots.iter().position(|slot| told.border <= slot.told.border);
        match later {
            Some(place) => self.slots[place].join(&Slot::new(shard, told), false),
            None => {
                let next = Slot::new(shard, told);
                match self.slots.last_mut().filter(|last| last.may_take(&next, self.joined)) {
                    Some(last) => last.join(&next, true),
                    None => self.slots.push(next),
                }
            }
        }
        if self.slots.len() > SLOTS_MAX {
            self.joined = self.joined.saturating_mul(2);
            self.halve();
        }
    }

    /// Joins neighbours, warm-up never with what is measured.
    fn halve(&mut self) {
        let mut halved: Vec<Slot> = Vec::with_capacity(SLOTS_MAX + 1);
        for slot in self.slots.drain(..) {
            match halved.last_mut().filter(|last| last.may_take(&slot, self.joined)) {
                Some(last) => last.join(&slot, true),
                None => halved.push(slot),
            }
        }
        self.slots = halved;
    }

    /// Joins the last interval of each phase to the one before it where it is less than half as
    /// long: too few messages are in it for a rate or a quantile. Draining is never joined to load.
    fn join_the_rest(&mut self) {
        for index in (1..self.slots.len()).rev() {
            let (before, own) = (&self.slots[index - 1], &self.slots[index]);
            let is_last = self.slots.get(index + 1).is_none_or(|next| !own.is_like(next));
            if is_last && before.is_like(own) && 2 * own.length_ns() < before.length_ns() {
                let rest = self.slots.remove(index);
                self.slots[index - 1].join(&rest, true);
            }
        }
    }

    /// The intervals in their order, with their quantiles.
    pub fn finish(mut self) -> Vec<Interval> {
        self.join_the_rest();
        self.slots.into_iter().map(Slot::finish).collect()
    }
}

impl Slot {
    fn new(shard: u32, told: ShardInterval) -> Slot {
        let interval = &told.interval;
        let from_ns = interval.at_ns.saturating_sub(interval.length_ns.unwrap_or(0));
        let shards = BTreeMap::from([(shard, (interval.connections, told.cpu))]);
        Slot { told, from_ns, parts: 1, shards }
    }

    fn length_ns(&self) -> u64 {
        self.told.interval.at_ns - self.from_ns
    }

    /// True for two intervals of the same phase: warm-up, load or draining.
    fn is_like(&self, other: &Slot) -> bool {
        let phase = |slot: &Slot| (slot.told.interval.warmup, slot.told.interval.draining);
        phase(self) == phase(other)
    }

    fn may_take(&self, next: &Slot, joined: u32) -> bool {
        self.is_like(next) && self.parts + next.parts <= joined
    }

    /// Takes in another slot: the next one, or what another shard did in the same one.
    fn join(&mut self, other: &Slot, is_next: bool) {
        let (ours, theirs) = (&mut self.told, &other.told);
        ours.times.merge(&theirs.times);
        ours.border = ours.border.max(theirs.border);
        let (sum, more) = (&mut ours.interval, &theirs.interval);
        sum.sent += more.sent;
        sum.acknowledged += more.acknowledged;
        sum.delivered += more.delivered;
        sum.errors += more.errors;
        sum.at_ns = sum.at_ns.max(more.at_ns);
        self.from_ns = self.from_ns.min(other.from_ns);
        self.parts += if is_next { other.parts } else { 0 };
        for (shard, (connections, cpu)) in &other.shards {
            let entry = self.shards.entry(*shard).or_default();
            *entry = (*connections, entry.1 + *cpu);
        }
    }

    fn finish(self) -> Interval {
        let length_ns = self.length_ns();
        let mut interval = self.told.interval;
        self.told.times.tell(&mut interval);
        interval.connections = self.shards.values().map(|(connections, _)| connections).sum();
        interval.length_ns = Some(length_ns);
        let busiest = self.shards.values().map(|(_, cpu)| cpu.0).max().unwrap_or(0);
        interval.generator_cpu_percent =
            (length_ns > 0).then(|| 100.0 * busiest as f64 / length_ns as f64);
        interval
    }
}

/// Intervals of a trial at most: twice what a trial of known length has, and each has 37 KB of
/// times until the trial is over.
const SLOTS_MAX: usize = 2 * weigh_engine::job::INTERVALS_MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: u64 = 100_000_000;

    fn told(number: u64, warmup: bool) -> ShardInterval {
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

    #[test]
    fn what_shards_tell_of_one_border_is_one_interval() {
        let mut series = Series::new(Nanos(EVERY), Nanos(EVERY));
        for number in 1..=5 {
            series.add(0, told(number, number <= 2));
            if number != 4 {
                series.add(1, told(number, number <= 2));
            }
        }
        let intervals = series.finish();
        let sent: Vec<u64> = intervals.iter().map(|interval| interval.sent).collect();
        assert_eq!(sent, [6, 6, 6, 3, 6]);
        assert_eq!((intervals[4].connections, intervals[4].length_ns), (4, Some(EVERY)));
        assert_eq!(intervals[4].generator_cpu_percent, Some(25.0));
        assert!(intervals[1].warmup && !intervals[2].warmup);
    }

    #[test]
    fn a_moment_of_draining_belongs_to_the_interval_before() {
        let mut series = Series::new(Nanos(EVERY), Nanos(EVERY));
        (1..=2).for_each(|number| series.add(0, told(number, false)));
        let mut rest = told(3, false);
        rest.interval.at_ns = 2 * EVERY + 60_000;
        rest.interval.length_ns = Some(59_993);
        series.add(0, rest);
        let intervals = series.finish();
        assert_eq!((intervals.len(), intervals[1].sent), (2, 6));
        assert_eq!(intervals[1].length_ns, Some(EVERY + 59_993));
    }

    #[test]
    fn draining_is_an_interval_of_its_own_and_a_short_end_of_the_load_joins_the_load() {
        let mut series = Series::new(Nanos(EVERY), Nanos(EVERY));
        (1..=2).for_each(|number| series.add(0, told(number, false)));
        for (border, end_ns, length_ns, draining) in
            [(3, 240_000_007, 40_000_000, false), (4, 290_000_007, 50_000_000, true)]
        {
            let mut rest = told(border, false);
            rest.interval.at_ns = end_ns;
            rest.interval.length_ns = Some(length_ns);
            rest.interval.draining = draining;
            series.add(0, rest);
        }
        let intervals = series.finish();
        let seen: Vec<_> = intervals.iter().map(|own| (own.length_ns, own.draining)).collect();
        let (whole, longer) = (Some(EVERY), Some(140_000_000));
        assert_eq!(seen, [(whole, false), (longer, false), (Some(50_000_000), true)]);
    }

    /// An hour in tenths of a second: 36,000 intervals become at most 240, nothing is lost,
    /// and warm-up stays apart.
    #[test]
    fn an_hour_makes_no_more_intervals_than_a_minute() {
        let mut series = Series::new(Nanos(EVERY), Nanos(EVERY));
        for number in 1..=36_000 {
            series.add(0, told(number, number <= 13));
            assert!(series.slots.len() <= SLOTS_MAX);
        }
        let intervals = series.finish();
        assert!(intervals.len() > SLOTS_MAX / 4);
        assert_eq!(intervals.iter().map(|interval| interval.sent).sum::<u64>(), 3 * 36_000);
        let warmups: u64 = intervals.iter().filter(|i| i.warmup).map(|i| i.sent).sum();
        assert_eq!(warmups, 3 * 13);
        assert_eq!(intervals.last().unwrap().connections, 2);
        assert!(intervals.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
    }
}
