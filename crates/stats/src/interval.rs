//! An interval that names its method.

use std::fmt;

/// From `low` to `high` at [`crate::CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end; infinite if it has no bound.
    pub high: f64,
    /// How it was made.
    pub method: Method,
}

impl Interval {
    /// True if `value` is within, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half the width. The number behind "±" is the longer side, which may be more.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Method of an interval. Each is described, with its source, where it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Student's t over the values of runs.
    TOverRuns,
    /// Studentised bootstrap over runs.
    StudentisedBootstrap,
    /// Student's t over the values of runs, its longer side corrected for skewness.
    SkewnessCorrectedT,
    /// Percentile bootstrap over runs.
    PercentileBootstrap,
    /// Wild bootstrap over runs: signs of residuals are drawn.
    WildBootstrap,
    /// Order statistics with exact binomial probabilities.
    OrderStatistics,
    /// Student's t over batch means within a run.
    BatchMeans,
    /// Student's t over the means of the highest level that varies.
    TopLevelMeans,
    /// Ratio of means by Fieller's theorem with Welch's degrees of freedom.
    Fieller,
    /// Ratio of means as Kalibera and Jones compute it.
    KaliberaJones,
    /// Shift by inverting the exact rank test.
    HodgesLehmannExact,
    /// Shift by inverting the rank test in its normal approximation.
    HodgesLehmannNormal,
}

impl Method {
    /// The words printed with the interval.
    pub fn name(self) -> &'static str {
        match self {
            Method::TOverRuns => "t over runs",
            Method::StudentisedBootstrap => "studentised bootstrap over runs",
            Method::SkewnessCorrectedT => "t over runs, corrected for skewness",
            Method::PercentileBootstrap => "percentile bootstrap over runs",
            Method::WildBootstrap => "wild bootstrap over runs",
            Method::OrderStatistics => "order statistics",
            Method::BatchMeans => "t over batch means",
            Method::TopLevelMeans => "t over the highest level's means",
            Method::Fieller => "Fieller",
            Method::KaliberaJones => "Kalibera-Jones ratio",
            Method::HodgesLehmannExact => "Hodges-Lehmann, exact",
            Method::HodgesLehmannNormal => "Hodges-Lehmann, normal approximation",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
