//! Why a figure is not given, and what to do.

use crate::estimate::INTERVAL_VALUES_MIN;

/// Why a figure is not given, and how to get it, for readers of a report.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A sample of a comparison has fewer values than an interval needs.
    #[error("fewer than {INTERVAL_VALUES_MIN} repetitions: no interval, so no verdict")]
    FewValues,
    /// The right mean is not significantly different from 0, so the ratio has no bounds.
    #[error("too noisy for a ratio: it has no upper bound yet; repeat more often")]
    UnboundedRatio,
    /// A sample is empty or holds a value that is not finite.
    #[error("there are no finite values on one side")]
    NoValues,
    /// Too few repetitions for the interval.
    #[error("at least {needed} repetitions are needed, {have} given: repeat more often")]
    TooFew {
        /// Number given.
        have: usize,
        /// Number needed.
        needed: usize,
    },
    /// Too few values in the tail for a quantile's interval.
    #[error(
        "the quantile {q} needs at least {needed} values in each repetition, there were {have}"
    )]
    TailTooThin {
        /// The quantile, 0 to 1.
        q: f64,
        /// Number given.
        have: u64,
        /// Number needed.
        needed: u64,
    },
    /// Successive values are correlated for so long that the run holds too few independent ones.
    #[error(
        "the values are correlated over {time:.0} of them: {have} are worth {effective:.0} \
         independent ones; measure {needed} or more"
    )]
    Autocorrelated {
        /// Number given.
        have: usize,
        /// The integrated autocorrelation time, in values.
        time: f64,
        /// The effective sample size.
        effective: f64,
        /// Number needed.
        needed: usize,
    },
    /// The means of even the longest batches are still correlated.
    #[error(
        "the means of {batches} batches are still correlated (lag-1 {lag1:.2}, at most 0.2): \
         measure longer, and check whether the run was steady"
    )]
    BatchesCorrelated {
        /// Number of batches.
        batches: usize,
        /// Their lag-1 autocorrelation.
        lag1: f64,
    },
    /// A rate or a ratio of zero or below has no logarithm and no reciprocal.
    #[error("a value is not above 0: there is no harmonic mean and no factor")]
    NotPositive,
    /// All values are equal, so that the statistic is not defined.
    #[error("all values are equal: the statistic needs spread")]
    NoSpread,
    /// Groups that should have the same number of levels do not.
    #[error("the values have different numbers of levels: give every value all levels")]
    UnevenDepth,
    /// Values so skewed that an interval from few of them is not reliable.
    #[error(
        "the {n} values are too skewed for an interval of their mean (skewness {skewness:.1}): \
         repeat at least {needed} times, or report the median"
    )]
    TooSkewed {
        /// Number given.
        n: usize,
        /// Their skewness.
        skewness: f64,
        /// Number needed.
        needed: usize,
    },
    /// An exchange between two clocks whose answer came before its request.
    #[error(
        "exchange {number} ended before it began, or took longer on the other host than here: its \
         timestamps are in the wrong columns, or a clock was set back"
    )]
    ImpossibleExchange {
        /// Its number, from 1.
        number: usize,
    },
    /// No offset with an even drift fits all exchanges.
    #[error(
        "no offset with an even drift fits all exchanges: a clock was set or slewed in between; \
         stop what sets it (NTP) and measure again"
    )]
    UnsteadyClocks,
    /// The drivers of a cost were not varied separately.
    #[error(
        "the drivers of the cost rose and fell together (condition number {condition:.0}): vary \
         one without the other"
    )]
    DriversTogether {
        /// The condition number of the drivers.
        condition: f64,
    },
}
