//! The mean over runs, one value each: the headline figure with everything needed to judge it. The
//! choice of intervals is explained in `docs/decisions/0007`.

use crate::bootstrap::{self, Bootstrap};
use crate::estimate::{INTERVAL_VALUES_MIN, Sample, t_quantile};
use crate::interval::{Interval, Method};
use crate::normality::{self, Normality};
use crate::order_statistic::quantile_interval;
use crate::outlier::Rule;
use crate::{Refusal, average};

/// A mean over runs and related figures.
#[derive(Clone, Debug, PartialEq)]
pub struct RunsMean {
    /// Number of runs.
    pub n: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation from run to run, with n - 1 below the line; 0 for one run.
    pub deviation: f64,
    /// The interval of the mean, by [`mean_interval`]; refused for fewer than three runs.
    pub interval: Result<Interval, Refusal>,
    /// The studentised bootstrap interval of the mean, if it should be checked too: below
    /// [`BOOTSTRAP_BELOW`] runs, or with skewness among up to a thousand. It needs five runs.
    pub bootstrap: Option<Interval>,
    /// The median.
    pub median: f64,
    /// The interval of the median from order statistics, which skewness does not affect; needs six
    /// runs.
    pub median_interval: Result<Interval, Refusal>,
    /// Shapiro and Wilk's test and the skewness; `None` if there are too few values.
    pub normality: Option<Normality>,
    /// Indices of outliers by Tukey's fences. They are part of every figure above.
    pub outliers: Vec<usize>,
}

impl RunsMean {
    /// Analyses one value per run.
    ///
    /// # Errors
    /// Without values, or if one of them is not finite.
    pub fn of(values: &[f64]) -> Result<RunsMean, Refusal> {
        let sample = Sample::of(values).ok_or(Refusal::NoValues)?;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Ok(RunsMean {
            n: sample.n,
            mean: sample.mean,
            deviation: sample.standard_deviation(),
            interval: mean_interval(values),
            bootstrap: bootstrap_interval(values),
            median: average::median(values).unwrap_or(f64::NAN),
            median_interval: quantile_interval(&sorted, 0.5).map(|found| found.interval),
            normality: Normality::of(values).ok(),
            outliers: Rule::TukeyFences.flags(values),
        })
    }
}

/// The interval of the mean of runs: Student's t, and from [`CORRECTED_FROM`] values on its side
/// towards the longer tail lengthened by s G (1 + 2 t^2) / (6 n), with the skewness G and the
/// standard deviation s (N. J. Johnson, "Modified t Tests and Confidence Intervals for Asymmetrical
/// Populations", 1978). The other side stays as in t: with few values G is too uncertain to shorten
/// anything, and if both were shifted as Johnson does, five normal values would be covered in 89 of
/// 100 cases. So values as skewed as a log-normal of sigma 0.5 are covered in 94 of 100, by t alone
/// in 92; `docs/decisions/0007-intervals.md` has the table.
///
/// # Errors
/// Below three values.
pub fn mean_interval(values: &[f64]) -> Result<Interval, Refusal> {
    let sample = Sample::of(values).ok_or(Refusal::NoValues)?;
    if sample.n < INTERVAL_VALUES_MIN {
        return Err(Refusal::TooFew { have: sample.n, needed: INTERVAL_VALUES_MIN });
    }
    let plain = plain_t(&sample);
    if sample.n < CORRECTED_FROM {
        return Ok(plain);
    }
    let n = sample.n as f64;
    let t = t_quantile(n - 1.0);
    // The skewness of a sample is too small by this factor on average (D. N. Joanes and C. A. Gill,
    // 1998).
    let skewness = normality::skewness(values) * (n * (n - 1.0)).sqrt() / (n - 2.0);
    let longer = sample.standard_deviation() * skewness * (1.0 + 2.0 * t * t) / (6.0 * n);
    let (low, high) = (plain.low + longer.min(0.0), plain.high + longer.max(0.0));
    Ok(Interval { low, high, method: Method::SkewnessCorrectedT })
}

/// The studentised bootstrap interval, if it should be checked too.
fn bootstrap_interval(values: &[f64]) -> Option<Interval> {
    let bootstrap = Bootstrap { resamples: RESAMPLES, ..Bootstrap::default() };
    let is_wanted = values.len() < BOOTSTRAP_BELOW || is_skewed(values);
    let is_possible = (bootstrap::RUNS_MIN..=BOOTSTRAP_MOST).contains(&values.len());
    (is_wanted && is_possible).then(|| bootstrap.studentised_mean(values).ok()).flatten()
}

/// Student's t interval of the mean of runs. G. Cochran, "Sampling Techniques", 1977, section
/// 2.15).
///
/// # Errors
/// Below three values, and if they are too skewed for their number.
pub fn t_interval(values: &[f64]) -> Result<Interval, Refusal> {
    let sample = Sample::of(values).ok_or(Refusal::NoValues)?;
    if sample.n < INTERVAL_VALUES_MIN {
        return Err(Refusal::TooFew { have: sample.n, needed: INTERVAL_VALUES_MIN });
    }
    let skewness = normality::skewness(values);
    let needed = (COCHRAN * skewness * skewness).ceil() as usize;
    if sample.n < needed && is_skewed(values) {
        return Err(Refusal::TooSkewed { n: sample.n, skewness, needed });
    }
    Ok(plain_t(&sample))
}

fn plain_t(sample: &Sample) -> Interval {
    let half = t_quantile(sample.n as f64 - 1.0) * sample.variance_of_mean().sqrt();
    let (low, high) = (sample.mean - half, sample.mean + half);
    Interval { low, high, method: Method::TOverRuns }
}

/// Whether D'Agostino's test, which needs eight values, finds skewness at 5 %.
fn is_skewed(values: &[f64]) -> bool {
    normality::skewness_p(values).is_ok_and(|p| p < SKEWED_P)
}

/// With fewer runs the bootstrap interval is given with the t interval.
pub const BOOTSTRAP_BELOW: usize = 10;

/// The skewness of three values is meaningless.
pub const CORRECTED_FROM: usize = 4;

/// With more values than this, skewness no longer moves the interval of a mean.
const BOOTSTRAP_MOST: usize = 1000;
/// A report has thousands of these means: this number of resamples leaves 2 % of the width to
/// chance.
const RESAMPLES: usize = 2_000;
const COCHRAN: f64 = 25.0;
const SKEWED_P: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_show_two_intervals_and_very_few_none() {
        let six = RunsMean::of(&[10.0, 10.4, 9.8, 10.1, 9.9, 10.2]).unwrap();
        let interval = six.interval.unwrap();
        assert!(interval.contains(six.mean) && six.bootstrap.unwrap().contains(six.mean));
        assert_eq!((interval.method, six.outliers.len()), (Method::SkewnessCorrectedT, 0));
        assert!(six.median_interval.is_ok());
        let three = RunsMean::of(&[10.0, 10.1, 14.0]).unwrap();
        assert_eq!((three.interval.unwrap().method, three.bootstrap), (Method::TOverRuns, None));
        let two = RunsMean::of(&[10.0, 10.4]).unwrap();
        assert_eq!(two.interval, Err(Refusal::TooFew { have: 2, needed: 3 }));
        assert_eq!((two.bootstrap, two.normality), (None, None));
        assert_eq!(RunsMean::of(&[]), Err(Refusal::NoValues));
    }

    #[test]
    fn one_wild_run_is_shown_and_the_interval_reaches_to_its_side() {
        let values = [10.0, 10.4, 9.8, 10.1, 9.9, 10.2, 10.3, 9.7, 10.0, 30.0];
        let weighed = RunsMean::of(&values).unwrap();
        assert_eq!(weighed.outliers, [9]);
        let (interval, t) = (weighed.interval.unwrap(), plain_t(&Sample::of(&values).unwrap()));
        assert!(interval.low == t.low && interval.high > t.high + 1.0, "{interval:?} {t:?}");
        assert!(weighed.bootstrap.unwrap().high > 15.0 && weighed.mean > 12.0);
        assert!(weighed.median_interval.unwrap().high < 11.0);
        let alone = t_interval(&values);
        assert!(matches!(alone, Err(Refusal::TooSkewed { n: 10, .. })), "{alone:?}");
    }

    /// By hand: 1, 2, 3, 4, 10 have mean 4, s = sqrt(12.5), third central moment 36 and second 10,
    /// so g1 = 36 / 10^1.5 and G = g1 sqrt(20) / 3.
    #[test]
    fn the_correction_is_johnsons() {
        let t = 2.776_445_105_197_794f64;
        let skewness = 36.0 / 10f64.powf(1.5) * 20f64.sqrt() / 3.0;
        let longer = 12.5f64.sqrt() * skewness * (1.0 + 2.0 * t * t) / 30.0;
        let half = t * 2.5f64.sqrt();
        let right = mean_interval(&[1.0, 2.0, 3.0, 4.0, 10.0]).unwrap();
        assert!((right.low - (4.0 - half)).abs() < 1e-9, "{right:?}");
        assert!((right.high - (4.0 + half + longer)).abs() < 1e-9, "{right:?}");
        let left = mean_interval(&[-1.0, -2.0, -3.0, -4.0, -10.0]).unwrap();
        assert_eq!((left.low, left.high), (-right.high, -right.low));
    }

    #[test]
    fn equal_values_have_a_sharp_interval() {
        let weighed = RunsMean::of(&[3.0; 12]).unwrap();
        let interval = weighed.interval.unwrap();
        assert_eq!((interval.low, interval.high, weighed.bootstrap), (3.0, 3.0, None));
    }
}
