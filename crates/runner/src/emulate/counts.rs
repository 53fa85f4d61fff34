//! Counts values in a tool's own unit, and computes the statistics of tools.

use std::collections::BTreeMap;

use weigh_stats::histogram::Histogram;

/// Values in a tool's unit, and the count of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<u64, u64>);

impl Counts {
    /// Recorded times in whole units of `unit_ns` nanoseconds, truncated.
    pub(crate) fn of(times: &Histogram, unit_ns: u64) -> Counts {
        let mut counts = Counts::default();
        for (value_ns, count) in times.recorded() {
            counts.add(value_ns / unit_ns, count);
        }
        counts
    }

    /// Adds other counts.
    pub(crate) fn and(mut self, more: &Counts) -> Counts {
        more.iter().for_each(|(value, count)| self.add(value, count));
        self
    }

    /// Counts each of these values once.
    pub(crate) fn of_values(values: impl IntoIterator<Item = u64>) -> Counts {
        let mut counts = Counts::default();
        values.into_iter().for_each(|value| counts.add(value, 1));
        counts
    }

    pub(crate) fn add(&mut self, value: u64, count: u64) {
        *self.0.entry(value).or_default() += count;
    }

    /// Distinct values in ascending order, with their counts.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(value, count)| (*value, *count))
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.values().sum()
    }

    pub(crate) fn min(&self) -> Option<u64> {
        self.0.first_key_value().map(|(value, _)| *value)
    }

    /// Share of values within `deviation` of their mean; 0 without values.
    pub(crate) fn within(&self, deviation: f64) -> f64 {
        let Some(mean) = self.mean() else { return 0.0 };
        let is_near = |value: u64| (value as f64 - mean).abs() <= deviation;
        let near: u64 = self.iter().filter(|(value, _)| is_near(*value)).map(|own| own.1).sum();
        near as f64 / self.count() as f64
    }

    pub(crate) fn max(&self) -> Option<u64> {
        self.0.last_key_value().map(|(value, _)| *value)
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        let sum: f64 = self.iter().map(|(value, count)| value as f64 * count as f64).sum();
        (!self.0.is_empty()).then(|| sum / self.count() as f64)
    }

    /// Standard deviation of the population, or of a sample with `is_sample`.
    pub(crate) fn deviation(&self, is_sample: bool) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 =
            self.iter().map(|(value, count)| (value as f64 - mean).powi(2) * count as f64).sum();
        let freedom = self.count().saturating_sub(u64::from(is_sample));
        Some(if freedom == 0 { 0.0 } else { (squares / freedom as f64).sqrt() })
    }

    /// The value at rank `q` times their number, rounded to nearest and at least 1 (HdrHistogram's
    /// `getValueAtPercentile`).
    pub(crate) fn quantile(&self, q: f64) -> Option<u64> {
        self.at_rank((q * self.count() as f64 + 0.5).floor() as u64)
    }

    /// The value of this rank, from 1; ranks outside are clamped.
    pub(crate) fn at_rank(&self, rank: u64) -> Option<u64> {
        let rank = rank.clamp(1, self.count().max(1));
        let mut seen = 0;
        self.iter().find_map(|(value, count)| {
            seen += count;
            (seen >= rank).then_some(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_to_whole_units() {
        let mut times = Histogram::new();
        times.record_n(900_000, 60);
        times.record_n(2_400_000, 40);
        let counts = Counts::of(&times, 1_000_000);
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(0, 60), (2, 40)]);
        assert_eq!((counts.quantile(0.5), counts.quantile(0.99)), (Some(0), Some(2)));
        assert_eq!((counts.mean(), counts.max()), (Some(0.8), Some(2)));
    }

    #[test]
    fn a_share_lies_within_a_deviation() {
        let counts = Counts::of_values([2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(counts.within(2.0), 0.75, "mean 5: all but 2 and 9");
        assert_eq!(Counts::default().within(1.0), 0.0);
        let ranks = [1, 8, 99].map(|rank| counts.at_rank(rank));
        assert_eq!(ranks, [Some(2), Some(9), Some(9)]);
    }

    #[test]
    fn deviations_are_of_all_or_of_a_sample() {
        let counts = Counts::of_values([2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(counts.deviation(false), Some(2.0));
        assert_eq!(counts.deviation(true), Some((32.0_f64 / 7.0).sqrt()));
        assert_eq!(Counts::default().deviation(true), None);
        assert_eq!(Counts::of_values([3]).deviation(true), Some(0.0));
    }
}
