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
    /// Student's t interval of the mean; refused for fewer than three runs, and for values so
    /// skewed that it would not hold.
    pub interval: Result<Interval, Refusal>,
    /// The studentised bootstrap interval of the mean, where it should be looked at too: below
    /// [`BESIDE_BELOW`] runs, or with skewness among up to a thousand. It needs five runs.
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
        let beside = sample.n < BESIDE_BELOW || (sample.n <= BESIDE_MOST && is_skewed(values));
        let bootstrap = Bootstrap { resamples: RESAMPLES, ..Bootstrap::default() };
        let resampled = || bootstrap.studentised_mean(values).ok();
        Ok(RunsMean {
            n: sample.n,
            mean: sample.mean,
            deviation: sample.standard_deviation(),
            interval: t_interval(values),
            beside: if beside && sample.n >= bootstrap::RUNS_MIN { resampled() } else { None },
            median: average::median(values).unwrap_or(f64::NAN),
            median_interval: quantile_interval(&sorted, 0.5).map(|found| found.interval),
            normality: Normality::of(values).ok(),
            outliers: Rule::TukeyFences.flags(values),
        })
    }
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
        let two = RunsMean::of(&[10.0, 10.4]).unwrap();
        assert_eq!(two.interval, Err(Refusal::TooFew { have: 2, needed: 3 }));
        assert_eq!((two.beside, two.normality), (None, None));
        assert_eq!(RunsMean::of(&[]), Err(Refusal::NoValues));
    }

    #[test]
    fn one_wild_run_is_shown_and_takes_the_interval_away() {
        let values = [10.0, 10.4, 9.8, 10.1, 9.9, 10.2, 10.3, 9.7, 10.0, 30.0];
        let weighed = RunsMean::of(&values).unwrap();
        assert_eq!(weighed.outliers, [9]);
        let refusal = weighed.interval.unwrap_err();
        assert!(matches!(refusal, Refusal::TooSkewed { n: 10, .. }), "{refusal}");
        assert!(weighed.beside.unwrap().high > 15.0 && weighed.mean > 12.0);
        assert!(weighed.median_interval.unwrap().high < 11.0);
    }

    #[test]
    fn equal_values_have_a_sharp_interval() {
        let weighed = RunsMean::of(&[3.0; 12]).unwrap();
        let interval = weighed.interval.unwrap();
        assert_eq!((interval.low, interval.high, weighed.beside), (3.0, 3.0, None));
    }
}
