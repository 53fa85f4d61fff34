//! Why a figure is not given. An instrument that cannot know says so, and says what would help.

use crate::estimate::INTERVAL_VALUES_MIN;

/// The reason, and the mend, in words for the reader of a report.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A sample of a comparison has fewer values than an interval needs.
    #[error("fewer than {INTERVAL_VALUES_MIN} repetitions: no interval, so no verdict")]
    FewValues,
    /// The right mean cannot be told from 0, so the ratio has no bounds.
    #[error("the right side cannot be told from 0: the ratio has no bounds")]
    UnboundedRatio,
    /// A sample is empty or holds a value that is not finite.
    #[error("there are no finite values on one side")]
    NoValues,
    /// Too few repetitions for the interval that was asked for.
    #[error("at least {needed} repetitions are needed, {have} given: repeat more often")]
    TooFew {
        /// How many there are.
        have: usize,
        /// How many there must be.
        needed: usize,
    },
    /// Too few values in the tail for a quantile's interval.
    #[error("the quantile {q} needs at least {needed} values, {have} given")]
    TailTooThin {
        /// The quantile, 0 to 1.
        q: f64,
        /// How many values there are.
        have: u64,
        /// How many there must be.
        needed: u64,
    },
    /// Successive values hang together so long that the run holds too few independent ones.
    #[error(
        "the values hang together over {time:.0} of them: {have} are worth {effective:.0} \
         independent ones; measure {needed} or more"
    )]
    Autocorrelated {
        /// How many values there are.
        have: usize,
        /// The integrated autocorrelation time, in values.
        time: f64,
        /// The effective sample size.
        effective: f64,
        /// How many values would do.
        needed: usize,
    },
    /// The means of even the longest batches still hang together.
    #[error(
        "the means of {batches} batches still hang together (lag-1 {lag1:.2}, at most 0.2): \
         measure longer, and look whether the run was steady"
    )]
    BatchesCorrelated {
        /// How many batches there were.
        batches: usize,
        /// Their lag-1 autocorrelation.
        lag1: f64,
    },
    /// A rate or a ratio of zero or below has no logarithm and no reciprocal.
    #[error("a value is not above 0: there is no harmonic mean and no factor")]
    NotPositive,
    /// All values are equal, so that the statistic is not defined.
    #[error("all values are equal: there is no spread to judge by")]
    NoSpread,
    /// Groups that should have the same number of levels have not.
    #[error("the values stand at different depths: give every value all levels")]
    UnevenDepth,
    /// Values so skewed that no interval of so few of them holds what it promises.
    #[error(
        "the {n} values are too skewed for an interval of their mean (skewness {skewness:.1}): \
         repeat at least {needed} times, or report the median"
    )]
    TooSkewed {
        /// How many values there are.
        n: usize,
        /// Their skewness.
        skewness: f64,
        /// How many would do.
        needed: usize,
    },
    /// An exchange between two clocks whose answer came before it could.
    #[error(
        "exchange {number} ended before it began, or took longer there than here: its stamps are \
             in the wrong columns, or a clock was set back"
    )]
    ImpossibleExchange {
        /// Its number, from 1.
        number: usize,
    },
    /// No offset with an even drift fits all exchanges.
    #[error(
        "no offset with an even drift fits all exchanges: a clock was set or slewed meanwhile; \
         stop what sets it (NTP) and measure again"
    )]
    UnsteadyClocks,
    /// What should tell the parts of a cost apart was never apart.
    #[error(
        "what drives the cost rose and fell together (condition number {condition:.0}): vary one \
         without the other"
    )]
    DriversTogether {
        /// The condition number of the drivers.
        condition: f64,
    },
    /// Resampling gave statistics that are not finite.
    #[error("the statistic is not finite for some resamples: it cannot be bootstrapped")]
    NotResampled,
}
