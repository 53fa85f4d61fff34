//! The intervals of a trial, each available while the trial runs. Defines their length.
//!
//! A trial of known length has intervals of one fixed length. Written intervals cannot be joined,
//! so with an unknown length later ones are longer: the length doubles whenever the trial has
//! lasted [`INTERVALS_MAX`] times as long. A trial of ten hours then has some 1,500 intervals, and
//! none is longer than a 120th of the time before it. Draining after a load of known length counts
//! as unknown time.

use std::collections::VecDeque;

use weigh_engine::job::interval_length;
use weigh_model::event::Interval;
use weigh_model::{Load, Nanos};

use crate::trial::ticks::Tick;

/// Initial length of the intervals: as the plan asks, at least [`INTERVAL_MIN`], or fitted to the
/// length of the trial.
fn interval(load: &Load, wanted: Option<Nanos>) -> Nanos {
    wanted.map_or_else(|| interval_length(load), |wanted| wanted.max(INTERVAL_MIN))
}

/// Interval of the shards' reports: a whole number of them in each interval, and at least every
/// second for the display.
pub fn reported_every(load: &Load, wanted: Option<Nanos>) -> Nanos {
    let interval = interval(load, wanted);
    Nanos(interval.0 / interval.0.div_ceil(1_000_000_000).max(1))
}

/// The intervals of one trial that are not complete yet.
#[derive(Debug)]
pub struct Series {
    slots: VecDeque<Slot>,
    /// Ticks in an interval that starts now.
    ticks_each: u64,
    /// Ticks so far.
    ticks: u64,
    is_over: bool,
}

/// An interval that grows tick by tick.
#[derive(Debug)]
struct Slot {
    tick: Tick,
    ticks: u64,
    ticks_max: u64,
}

impl Series {
    /// Makes the series of a trial with this load, whose plan asks for intervals of length
    /// `wanted`.
    pub fn new(load: &Load, wanted: Option<Nanos>) -> Series {
        let tick = reported_every(load, wanted).0.max(1);
        let mut ticks_each = (interval(load, wanted).0 / tick).max(1);
        let intervals = |ticks_each: u64| {
            let phases = [load.warmup, load.duration.unwrap_or_default()];
            phases
                .map(|phase| phase.0.div_ceil(tick.saturating_mul(ticks_each)))
                .iter()
                .sum::<u64>()
        };
        while intervals(ticks_each) > INTERVALS_MAX {
            ticks_each *= 2;
        }
        Series { slots: VecDeque::new(), ticks_each, ticks: 0, is_over: false }
    }

    /// Adds the next tick.
    pub fn add(&mut self, tick: Tick) {
        self.is_over = false;
        if self.ticks >= INTERVALS_MAX * self.ticks_each {
            self.ticks_each *= 2;
        }
        self.ticks += 1;
        match self.slots.back_mut().filter(|last| last.may_take(&tick)) {
            Some(last) => last.take(&tick, 1),
            None => self.slots.push_back(Slot { tick, ticks: 1, ticks_max: self.ticks_each }),
        }
    }

    /// Ends the series: all intervals are complete.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// The next complete interval.
    pub fn next_known(&mut self) -> Option<Interval> {
        while self.slots.len() > 1 {
            if !self.joins_the_one_before(1)? {
                return self.slots.pop_front().map(|slot| slot.tick.interval());
            }
            let rest = self.slots.remove(1)?;
            self.slots.front_mut()?.take(&rest.tick, rest.ticks);
        }
        self.slots.pop_front_if(|_| self.is_over).map(|slot| slot.tick.interval())
    }

    /// True if the last interval of its phase joins the previous one: it is less than half as long,
    /// too short for a rate or a quantile. Draining never joins load. `None` while that is unknown
    /// for the interval at `index`.
    fn joins_the_one_before(&self, index: usize) -> Option<bool> {
        let (before, own) = (&self.slots[index - 1].tick, &self.slots[index].tick);
        let is_short = |length_ns: u64| 2 * length_ns < before.length_ns();
        // It can only grow.
        if !before.is_like(own) || !is_short(own.length_ns()) {
            return Some(false);
        }
        match self.slots.get(index + 1) {
            None => self.is_over.then_some(true),
            Some(next) if !own.is_like(&next.tick) => Some(true),
            Some(next) => {
                let is_last = self.joins_the_one_before(index + 1)?;
                Some(is_last && is_short(own.length_ns() + next.tick.length_ns()))
            }
        }
    }
}

impl Slot {
    fn may_take(&self, next: &Tick) -> bool {
        self.tick.is_like(next) && self.ticks < self.ticks_max
    }

    fn take(&mut self, next: &Tick, ticks: u64) {
        self.tick.join(next);
        self.ticks += ticks;
    }
}

/// Maximum number of intervals of one length, twice that of a trial of known length without
/// draining.
const INTERVALS_MAX: u64 = 2 * weigh_engine::job::INTERVALS_MAX;

/// With usual loads a shorter interval has too few messages for a quantile.
const INTERVAL_MIN: Nanos = Nanos::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::ticks::tests::{EVERY, reported};
    use weigh_engine::job::ShardInterval;
    use weigh_model::Pattern;

    fn load(duration_s: Option<u64>) -> Load {
        let (duration, warmup) = (duration_s.map(Nanos::from_secs), Nanos::from_secs(1));
        Load { duration, warmup, ..Load::closed(Pattern::Request, 1) }
    }

    fn series() -> Series {
        Series::new(&load(None), None)
    }

    fn known(series: &mut Series) -> Vec<Interval> {
        std::iter::from_fn(|| series.next_known()).collect()
    }

    fn lengths(intervals: &[Interval]) -> Vec<u64> {
        intervals.iter().map(|own| own.length_ns.unwrap() / 1_000_000).collect()
    }

    /// A tick with this start and length in milliseconds.
    fn tick(begin_ms: u64, number: u64, length_ms: u64, draining: bool) -> Tick {
        let mut own: ShardInterval = reported(number, false);
        own.interval.at_ns = 7 + (begin_ms + length_ms) * 1_000_000;
        own.interval.length_ns = Some(length_ms * 1_000_000);
        own.interval.draining = draining;
        Tick::of(0, own)
    }

    #[test]
    fn an_interval_is_known_once_the_next_one_is_half_as_long() {
        let mut series = series();
        series.add(Tick::of(0, reported(1, false)));
        assert!(known(&mut series).is_empty());
        series.add(tick(100, 2, 30, false));
        assert!(known(&mut series).is_empty(), "the short one may be the last");
        series.add(tick(130, 3, 100, false));
        assert_eq!(lengths(&known(&mut series)), [100, 30], "it is not");
        series.add(tick(230, 4, 50, false));
        assert_eq!(lengths(&known(&mut series)), [100]);
        series.end();
        assert_eq!(lengths(&known(&mut series)), [50]);
        assert!(known(&mut series).is_empty());
    }

    #[test]
    fn a_moment_of_draining_belongs_to_the_interval_before() {
        let mut series = series();
        (1..=2).for_each(|number| series.add(Tick::of(0, reported(number, false))));
        assert_eq!(lengths(&known(&mut series)), [100]);
        let mut rest = reported(3, false);
        rest.interval.at_ns = 2 * EVERY + 60_000;
        rest.interval.length_ns = Some(59_993);
        series.add(Tick::of(0, rest));
        assert!(known(&mut series).is_empty());
        series.end();
        let last = known(&mut series);
        assert_eq!((last.len(), last[0].sent), (1, 6));
        assert_eq!(last[0].length_ns, Some(EVERY + 59_993));
    }

    #[test]
    fn draining_is_an_interval_of_its_own_and_a_short_end_of_the_load_joins_the_load() {
        let mut series = series();
        (1..=2).for_each(|number| series.add(Tick::of(0, reported(number, false))));
        series.add(tick(200, 3, 40, false));
        assert_eq!(lengths(&known(&mut series)), [100], "of the last one the end is not known");
        series.add(tick(240, 4, 50, true));
        assert_eq!(lengths(&known(&mut series)), [140], "while it drains");
        series.end();
        let last = known(&mut series);
        assert!(last[0].draining && lengths(&last) == [50]);
    }

    /// Ends of ends: what is joined first may be long enough to stand alone.
    #[test]
    fn ends_join_from_the_last_one_on() {
        for (ends, expected) in [
            (&[100, 30, 10][..], &[140][..]),
            (&[100, 40, 15], &[100, 55]),
            (&[100, 60, 10], &[100, 70]),
            (&[100, 20, 30], &[100, 20, 30]),
        ] {
            let mut series = series();
            let mut begin_ms = 0;
            for (number, length_ms) in (1..).zip(ends) {
                series.add(tick(begin_ms, number, *length_ms, false));
                begin_ms += length_ms;
            }
            series.end();
            let all = known(&mut series);
            assert_eq!(all.iter().map(|own| own.sent).sum::<u64>(), 3 * ends.len() as u64);
            assert_eq!(lengths(&all), expected, "{ends:?}");
        }
    }

    /// A known length is the same from the beginning to the end, also if a plan wants more
    /// intervals than there may be.
    #[test]
    fn a_known_length_makes_intervals_of_one_length() {
        for (duration_s, wanted_ms, ticks_each, every_ms) in
            [(10, None, 1, 100), (60, Some(10), 32, 10), (600, None, 10, 1000)]
        {
            let (load, wanted) = (load(Some(duration_s)), wanted_ms.map(Nanos::from_millis));
            let series = Series::new(&load, wanted);
            assert_eq!(series.ticks_each, ticks_each, "{duration_s} s");
            assert_eq!(reported_every(&load, wanted), Nanos::from_millis(every_ms));
        }
    }

    /// An hour in tenths of a second: at most three slots wait, nothing is lost, warm-up stays
    /// apart, and no interval is longer than a 120th of the time before it.
    #[test]
    fn an_hour_of_unknown_length_makes_few_intervals_and_each_is_known_at_once() {
        let mut series = series();
        let mut intervals = Vec::new();
        for number in 1..=36_000 {
            series.add(Tick::of(0, reported(number, number <= 13)));
            intervals.extend(known(&mut series));
            assert!(series.slots.len() <= 3);
        }
        series.end();
        intervals.extend(known(&mut series));
        assert!((900..1300).contains(&intervals.len()), "{}", intervals.len());
        assert_eq!(intervals.iter().map(|interval| interval.sent).sum::<u64>(), 3 * 36_000);
        let warmups: u64 = intervals.iter().filter(|i| i.warmup).map(|i| i.sent).sum();
        assert_eq!(warmups, 3 * 13);
        assert_eq!(intervals.last().unwrap().connections, 2);
        assert!(intervals.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
        for own in &intervals[240..] {
            let length_ns = own.length_ns.unwrap();
            assert!(length_ns <= (own.at_ns - length_ns) / 119, "{own:?}");
        }
    }
}
