//! How two tools compare: one ratio for each round in which both had their turn, so that what
//! changes from round to round touches both sides of every ratio alike.

/// The ratios of two tools over the rounds of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    /// The median over the rounds.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) low: f64,
    /// The largest.
    pub(crate) high: f64,
    /// How many rounds both sides have.
    pub(crate) rounds: usize,
}

/// Whether a bar is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The median is at or above it, and so is every round.
    Met,
    /// The median is, some rounds are not.
    MetInMedian,
    /// The median is below, some rounds are not.
    MissedInMedian,
    /// Every round is below.
    Missed,
}

impl Ratio {
    /// The ratio `own / other`, round by round; `None` where no round has both.
    pub(crate) fn of(own: &[Option<f64>], other: &[Option<f64>]) -> Option<Ratio> {
        let pairs = own.iter().zip(other).filter_map(|(own, other)| (*own).zip(*other));
        let mut ratios: Vec<f64> = pairs.map(|(own, other)| own / other).collect();
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (*ratios.first()?, *ratios.last()?);
        Some(Ratio { median: median(&ratios), low, high, rounds: ratios.len() })
    }

    /// Whether it is at least `bar`.
    pub(crate) fn verdict(&self, bar: f64) -> Verdict {
        match (self.median >= bar, self.low >= bar, self.high >= bar) {
            (true, true, _) => Verdict::Met,
            (true, false, _) => Verdict::MetInMedian,
            (false, _, true) => Verdict::MissedInMedian,
            (false, _, false) => Verdict::Missed,
        }
    }
}

impl Verdict {
    /// As the table says it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::MetInMedian => "met in the median",
            Verdict::MissedInMedian => "missed in the median",
            Verdict::Missed => "MISSED",
        }
    }
}

/// The middle value, or the mean of the two middle ones; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match (values.len(), values.len() / 2) {
        (0, _) => 0.0,
        (n, middle) if n % 2 == 1 => values[middle],
        (_, middle) => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine slows down by half from round to round and one round is lost on either side: the
    /// ratio of medians would be 1.5 (150 / 100), the median of ratios is 2 throughout.
    #[test]
    fn ratios_are_paired_by_round() {
        let own = [Some(400.0), Some(200.0), None, Some(100.0)];
        let other = [Some(200.0), Some(100.0), Some(70.0), Some(50.0)];
        let ratio = Ratio::of(&own, &other).unwrap();
        assert_eq!(ratio, Ratio { median: 2.0, low: 2.0, high: 2.0, rounds: 3 });
        assert_eq!(Ratio::of(&[None], &[Some(1.0)]), None);
    }

    #[test]
    fn verdicts_tell_the_median_from_every_round() {
        let ratio = Ratio { median: 1.1, low: 1.0, high: 1.3, rounds: 5 };
        assert_eq!(ratio.verdict(1.0), Verdict::Met);
        assert_eq!(ratio.verdict(1.1), Verdict::MetInMedian);
        assert_eq!(ratio.verdict(1.2), Verdict::MissedInMedian);
        assert_eq!(ratio.verdict(1.4), Verdict::Missed);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }
}
