//! What the values of runs, one each, say about their mean: the headline figure with everything
//! that a reader needs to trust it or not. Which interval, and why: `docs/decisions/0007`.

use crate::bootstrap::{self, Bootstrap};
use crate::estimate::{INTERVAL_VALUES_MIN, Sample, t_quantile};
use crate::interval::{Interval, Method};
use crate::normality::{self, Normality};
use crate::order_statistic::quantile_interval;
use crate::outlier::Rule;
use crate::{Refusal, average};

/// A mean over runs and what stands beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunsMean {
    /// How many runs.
    pub n: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation from run to run, with n - 1 below the line; 0 for one run.
    pub deviation: f64,
    /// The interval of the mean, by [`mean_interval`]; refused for fewer than three runs.
    pub interval: Result<Interval, Refusal>,
    /// The studentised bootstrap interval of the mean, where it should be looked at too: below
    /// [`BESIDE_BELOW`] runs, or with values that lean to one side, up to a thousand. It needs
    /// five runs.
    pub beside: Option<Interval>,
    /// The median.
    pub median: f64,
    /// The interval of the median from order statistics, which no skewness harms; six runs.
    pub median_interval: Result<Interval, Refusal>,
    /// Shapiro and Wilk's test and the skewness; `None` where there is too little to test.
    pub normality: Option<Normality>,
    /// Indices of runs that stand apart by Tukey's fences. They are part of every figure above.
    pub outliers: Vec<usize>,
}

impl RunsMean {
    /// Weighs one value per run; refused without values or if one of them is not finite.
    pub fn of(values: &[f64]) -> Result<RunsMean, Refusal> {
        let sample = Sample::of(values).ok_or(Refusal::NoValues)?;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let beside = sample.n < BESIDE_BELOW || leans(values);
        let resampled = studentised(values);
        Ok(RunsMean {
            n: sample.n,
            mean: sample.mean,
            deviation: sample.standard_deviation(),
            interval: wider(values, resampled),
            beside: resampled.filter(|_| beside),
            median: average::median(values).unwrap_or(f64::NAN),
            median_interval: quantile_interval(&sorted, 0.5).map(|found| found.interval),
            normality: Normality::of(values).ok(),
            outliers: Rule::TukeyFences.flags(values),
        })
    }
}

/// The interval of the mean of runs. Student's t where the values lean to no side; where they do,
/// the farther ends of t and of the studentised bootstrap, which follows the longer tail. With it
/// values as skewed as a log-normal of sigma 0.5 are covered in 94 of 100 data sets of 5 to 30, by
/// t alone in 92; `docs/decisions/0007-intervals.md` has the table.
pub fn mean_interval(values: &[f64]) -> Result<Interval, Refusal> {
    wider(values, studentised(values))
}

/// [`mean_interval`] with the bootstrap interval made.
fn wider(values: &[f64], resampled: Option<Interval>) -> Result<Interval, Refusal> {
    let Some(resampled) = resampled.filter(|_| leans(values)) else { return t_interval(values) };
    let t = plain_t(values)?;
    let (low, high) = (t.low.min(resampled.low), t.high.max(resampled.high));
    Ok(Interval { low, high, method: Method::TOrStudentised })
}

/// The studentised bootstrap interval, where there are enough values for one and not so many that
/// skewness no longer moves the interval of a mean.
fn studentised(values: &[f64]) -> Option<Interval> {
    let bootstrap = Bootstrap { resamples: RESAMPLES, ..Bootstrap::default() };
    let is_wanted = values.len() < BESIDE_BELOW || leans(values);
    let is_possible = (bootstrap::RUNS_MIN..=BESIDE_MOST).contains(&values.len());
    (is_wanted && is_possible).then(|| bootstrap.studentised_mean(values).ok()).flatten()
}

/// Whether the skewness is more than [`LEAN_Z`] of the standard errors that it has among normal
/// values (R. A. Fisher, 1930). No test: with five values no test could find anything, and
/// an interval that is sometimes wider than it had to be misleads nobody.
fn leans(values: &[f64]) -> bool {
    let n = values.len() as f64;
    let error = (6.0 * (n - 2.0) / ((n + 1.0) * (n + 3.0))).sqrt();
    n > 2.0 && normality::skewness(values).abs() > LEAN_Z * error
}

/// Student's t interval of the mean of runs. Refused below three values, and where D'Agostino's
/// test finds skewness and there are fewer than 25 x skewness^2 values, with which an interval
/// that says 95 % is wrong in at most 6 % (W. G. Cochran, "Sampling Techniques", 1977, section
/// 2.15).
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
    plain_t(values)
}

fn plain_t(values: &[f64]) -> Result<Interval, Refusal> {
    let sample = Sample::of(values).ok_or(Refusal::NoValues)?;
    let half = t_quantile(sample.n as f64 - 1.0) * sample.variance_of_mean().sqrt();
    let (low, high) = (sample.mean - half, sample.mean + half);
    Ok(Interval { low, high, method: Method::TOverRuns })
}

/// Whether D'Agostino's test, which needs eight values, finds skewness at 5 %.
fn is_skewed(values: &[f64]) -> bool {
    normality::skewness_p(values).is_ok_and(|p| p < SKEWED_P)
}

/// With fewer runs the bootstrap interval stands beside the t interval.
pub const BESIDE_BELOW: usize = 10;

/// With more values than this, skewness no longer moves the interval of a mean.
const BESIDE_MOST: usize = 1000;
/// A report has thousands of these means: so many resamples leave 2 % of the width to chance.
const RESAMPLES: usize = 2_000;
/// Of 0.3 to 1.4, the value that keeps both normal values (at most 96.5 %) and log-normal ones with
/// sigma 0.5 (at least 93.5 %) covered as often as they should be.
const LEAN_Z: f64 = 0.5;
const COCHRAN: f64 = 25.0;
const SKEWED_P: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_show_two_intervals_and_very_few_none() {
        let six = RunsMean::of(&[10.0, 10.4, 9.8, 10.1, 9.9, 10.2]).unwrap();
        let interval = six.interval.unwrap();
        assert!(interval.contains(six.mean) && six.beside.unwrap().contains(six.mean));
        assert_eq!((interval.method, six.outliers.len()), (Method::TOverRuns, 0));
        assert!(six.median_interval.is_ok());
        let four = RunsMean::of(&[10.0, 10.1, 10.0, 14.0]).unwrap();
        assert_eq!((four.interval.unwrap().method, four.beside), (Method::TOverRuns, None));
        let two = RunsMean::of(&[10.0, 10.4]).unwrap();
        assert_eq!(two.interval, Err(Refusal::TooFew { have: 2, needed: 3 }));
        assert_eq!((two.beside, two.normality), (None, None));
        assert_eq!(RunsMean::of(&[]), Err(Refusal::NoValues));
    }

    #[test]
    fn one_wild_run_is_shown_and_the_interval_reaches_to_its_side() {
        let values = [10.0, 10.4, 9.8, 10.1, 9.9, 10.2, 10.3, 9.7, 10.0, 30.0];
        let weighed = RunsMean::of(&values).unwrap();
        assert_eq!(weighed.outliers, [9]);
        let (interval, t) = (weighed.interval.unwrap(), plain_t(&values).unwrap());
        assert_eq!(interval.method, Method::TOrStudentised);
        assert!(interval.low <= t.low && interval.high > t.high, "{interval:?} {t:?}");
        assert!(weighed.beside.unwrap().high > 15.0 && weighed.mean > 12.0);
        assert!(weighed.median_interval.unwrap().high < 11.0);
        let alone = t_interval(&values);
        assert!(matches!(alone, Err(Refusal::TooSkewed { n: 10, .. })), "{alone:?}");
    }

    #[test]
    fn equal_values_have_a_sharp_interval() {
        let weighed = RunsMean::of(&[3.0; 12]).unwrap();
        let interval = weighed.interval.unwrap();
        assert_eq!((interval.low, interval.high, weighed.beside), (3.0, 3.0, None));
    }
}
