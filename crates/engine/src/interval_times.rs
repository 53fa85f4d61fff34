//! The times of one interval, for the time series of a report: coarser than the recorded times of
//! the whole trial, so that a border between intervals costs microseconds and not a late message.

use hdrhistogram::Histogram;
use weigh_model::event::Interval;
use weigh_model::live::{QUANTILES, Quantiles};
use weigh_model::portable::{Portable, Reader, Unreadable};

use crate::recorded;

/// Response time and send lag of what happened in one interval, of one shard or of several.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalTimes {
    /// Due to confirmed; where nothing confirms, due to delivered.
    response: Histogram<u32>,
    /// Due to sent.
    send_lag: Histogram<u32>,
}

impl IntervalTimes {
    /// Counts a response time, nanoseconds.
    #[inline]
    pub(crate) fn responded(&mut self, time_ns: u64) {
        self.response.saturating_record(time_ns);
    }

    /// Counts a send lag, nanoseconds.
    #[inline]
    pub(crate) fn sent(&mut self, lag_ns: u64) {
        self.send_lag.saturating_record(lag_ns);
    }

    /// Returns the counts so far and starts again from zero in the same memory.
    pub(crate) fn take(&mut self) -> IntervalTimes {
        let taken = self.clone();
        self.response.reset();
        self.send_lag.reset();
        taken
    }

    /// Forgets the response times, where they are not of one clock.
    pub fn forget_response(&mut self) {
        self.response.reset();
    }

    /// Adds the times of another shard, or of the interval that follows.
    pub fn merge(&mut self, other: &IntervalTimes) {
        let same = "all of them have the same bounds";
        self.response.add(&other.response).expect(same);
        self.send_lag.add(&other.send_lag).expect(same);
    }

    /// Writes the quantiles that the values carry into `interval`: the median of any, the 99 %
    /// quantile of at least 100.
    pub fn tell(&self, interval: &mut Interval) {
        interval.response_time_ns_p50 = quantile(&self.response, 0.5, 1);
        interval.response_time_ns_p99 = quantile(&self.response, 0.99, P99_VALUES_MIN);
        interval.send_lag_ns_p99 = quantile(&self.send_lag, 0.99, P99_VALUES_MIN);
    }

    /// Returns the quantiles that the values carry; `q` needs `1 / (1 - q)` values.
    pub fn quantiles(&self) -> Quantiles {
        let of = |times: &Histogram<u32>| {
            QUANTILES.map(|(q, _)| quantile(times, q, (1.0 / (1.0 - q)).round() as u64))
        };
        Quantiles {
            values: self.response.len(),
            response_ns: of(&self.response),
            send_lag_ns: of(&self.send_lag),
            response_ns_max: (!self.response.is_empty()).then(|| self.response.max()),
        }
    }
}

impl Default for IntervalTimes {
    fn default() -> IntervalTimes {
        let empty = || {
            Histogram::new_with_bounds(1, TIME_NS_MAX, DIGITS)
                .expect("the bounds are constants that the histogram takes")
        };
        IntervalTimes { response: empty(), send_lag: empty() }
    }
}

impl Portable for IntervalTimes {
    fn put(&self, out: &mut Vec<u8>) {
        for times in [&self.response, &self.send_lag] {
            let steps = times.iter_recorded();
            let values = steps.map(|step| (step.value_iterated_to(), step.count_at_value().into()));
            recorded::put(values, out);
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<IntervalTimes, Unreadable> {
        let mut taken = IntervalTimes::default();
        for times in [&mut taken.response, &mut taken.send_lag] {
            recorded::take(from, |value_ns, count| {
                let count = u32::try_from(count);
                let count = count.map_err(|_| Unreadable::Wrong("a count beyond 32 bits"))?;
                times.saturating_record_n(value_ns.min(TIME_NS_MAX), count);
                Ok(())
            })?;
        }
        Ok(taken)
    }
}

fn quantile(times: &Histogram<u32>, q: f64, values_min: u64) -> Option<u64> {
    (times.len() >= values_min).then(|| times.value_at_quantile(q))
}

/// Longest time that is distinguished, nanoseconds: one hour, as in the recorded times.
const TIME_NS_MAX: u64 = 3_600_000_000_000;

/// Significant digits: buckets are at most 1/128 wide, and a histogram takes 18 KB.
const DIGITS: u8 = 2;

/// Values below which a 99 % quantile would be the maximum under another name.
const P99_VALUES_MIN: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(times: &IntervalTimes) -> Interval {
        let mut interval = Interval::default();
        times.tell(&mut interval);
        interval
    }

    /// 1 to 1000 µs, split over two shards: the quantiles are those of all of them, within the
    /// width of a bucket, and never too small.
    #[test]
    fn merged_quantiles_are_those_of_all_values() {
        let (mut left, mut right) = (IntervalTimes::default(), IntervalTimes::default());
        for us in 1..=1000_u64 {
            let one = if us % 3 == 0 { &mut left } else { &mut right };
            one.responded(us * 1000);
            one.sent(us * 10);
        }
        left.merge(&right);
        let interval = told(&left);
        let within = |value: Option<u64>, exact: u64| {
            let value = value.unwrap();
            assert!(value >= exact && value <= exact + exact / 128, "{value} is not {exact}");
        };
        within(interval.response_time_ns_p50, 500_000);
        within(interval.response_time_ns_p99, 990_000);
        within(interval.send_lag_ns_p99, 9_900);
    }

    #[test]
    fn a_quantile_needs_a_value_beyond_it() {
        let mut times = IntervalTimes::default();
        (1..=100_u64).for_each(|us| times.responded(us * 1000));
        let found = times.quantiles();
        assert_eq!((found.values, found.send_lag_ns), (100, [None; QUANTILES.len()]));
        let [p50, .., p99, p999] = found.response_ns;
        assert!(p50.unwrap().abs_diff(50_000) <= 500, "{p50:?}");
        assert!(p99.unwrap().abs_diff(99_000) <= 1000, "{p99:?}");
        assert_eq!(p999, None);
        assert!(found.response_ns_max.unwrap().abs_diff(100_000) <= 1000);
    }

    #[test]
    fn a_new_interval_begins_empty_and_few_values_have_no_p99() {
        let mut times = IntervalTimes::default();
        (0..99).for_each(|_| times.responded(5));
        let taken = times.take();
        assert_eq!(told(&taken).response_time_ns_p50, Some(5));
        assert_eq!(told(&taken).response_time_ns_p99, None);
        assert_eq!(told(&times), Interval::default());
    }
}
