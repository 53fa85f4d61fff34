//! A mean with its uncertainty, from one value per run. Pooling the messages of all runs would give
//! far too narrow intervals: what varies from run to run does not average out within one (T.
//! Kalibera and R. Jones, "Rigorous Benchmarking in Reasonable Time", 2013).

use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

use crate::CONFIDENCE;

/// Minimum of values for an interval; with two of them it is too wide to be useful.
pub const INTERVAL_VALUES_MIN: usize = 3;

/// A mean and its interval at [`CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The arithmetic mean.
    pub value: f64,
    /// Lower end of the interval; `None` below [`INTERVAL_VALUES_MIN`] values.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` below [`INTERVAL_VALUES_MIN`] values.
    pub high: Option<f64>,
    /// Number of values.
    pub n: usize,
}

impl Estimate {
    /// The mean of `values` with Student's t interval; `None` without values or if one of them
    /// is not finite.
    pub fn of_mean(values: &[f64]) -> Option<Estimate> {
        let sample = Sample::of(values)?;
        let half = (sample.n >= INTERVAL_VALUES_MIN)
            .then(|| t_quantile(sample.n as f64 - 1.0) * sample.variance_of_mean().sqrt());
        Some(Estimate {
            value: sample.mean,
            low: half.map(|half| sample.mean - half),
            high: half.map(|half| sample.mean + half),
            n: sample.n,
        })
    }
}

/// Mean and spread of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Number of values.
    pub n: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The variance with n - 1 below the line; 0 for a single value.
    pub variance: f64,
}

impl Sample {
    /// Describes `values` in two passes, with the correction of T. F. Chan, G. H. Golub and R. J.
    /// LeVeque (1983) for the rounding error of the mean; `None` without values or if one of them
    /// is not finite.
    pub fn of(values: &[f64]) -> Option<Sample> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len() as f64;
        let first = compensated_sum(values.iter().copied()) / n;
        let mean = first + compensated_sum(values.iter().map(|value| value - first)) / n;
        let squares = compensated_sum(values.iter().map(|value| (value - mean).powi(2)));
        let drift = compensated_sum(values.iter().map(|value| value - mean));
        let variance = ((squares - drift * drift / n) / (n - 1.0).max(1.0)).max(0.0);
        Some(Sample { n: values.len(), mean, variance })
    }

    /// The variance of the mean.
    pub fn variance_of_mean(&self) -> f64 {
        self.variance / self.n as f64
    }

    /// The standard deviation with n - 1 below the line.
    pub fn standard_deviation(&self) -> f64 {
        self.variance.sqrt()
    }
}

/// The factor of a two-sided interval at [`CONFIDENCE`] with `freedom` degrees of freedom (at least
/// 1, not necessarily whole). The library's inverse is iterative; two steps of Newton's method on
/// its distribution function make its last digits exact.
pub fn t_quantile(freedom: f64) -> f64 {
    let probability = 1.0 - (1.0 - CONFIDENCE) / 2.0;
    let student = StudentsT::new(0.0, 1.0, freedom.max(1.0))
        .expect("location and scale are constants, and the degrees of freedom are positive");
    let start = student.inverse_cdf(probability);
    (0..2).fold(start, |t, _| t - (student.cdf(t) - probability) / student.pdf(t))
}

/// Sums with compensation of rounding errors (A. Neumaier, 1974).
fn compensated_sum(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, error) = values.fold((0.0f64, 0.0f64), |(sum, error), value| {
        let next = sum + value;
        let lost =
            if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        (next, error + lost)
    });
    sum + error
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's t at 0.975, computed to 20 digits from the regularised incomplete beta function.
    #[test]
    fn t_quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [
            (1.0, 12.706_204_736_174_705),
            (2.0, 4.302_652_729_749_464),
            (2.5, 3.574_654_842_003_683),
            (4.0, 2.776_445_105_197_794_4),
            (9.0, 2.262_157_162_798_205_5),
            (29.0, 2.045_229_642_132_704_3),
            (149.0, 1.976_013_177_689_192_5),
        ] {
            let error = (t_quantile(freedom) / expected - 1.0f64).abs();
            assert!(
                error < 1e-10,
                "{freedom} degrees: {} is off by {error:e}",
                t_quantile(freedom)
            );
        }
    }

    /// The certified values of NIST StRD, univariate summary statistics, NumAcc1 to NumAcc4. The
    /// data of the last two cannot be held exactly in binary, which costs digits of the deviation.
    #[test]
    fn means_and_deviations_are_those_certified_by_nist() {
        let alternating = |base: f64| -> Vec<f64> {
            let pairs = (0..500).flat_map(|_| [base + 0.1, base + 0.3]);
            std::iter::once(base + 0.2).chain(pairs).collect()
        };
        let first = vec![10_000_001.0, 10_000_003.0, 10_000_002.0];
        for (values, mean, deviation, tolerance) in [
            (first, 10_000_002.0, 1.0, 1e-15),
            (alternating(1.0), 1.2, 0.1, 1e-13),
            (alternating(1_000_000.0), 1_000_000.2, 0.1, 1e-9),
            (alternating(10_000_000.0), 10_000_000.2, 0.1, 1e-8),
        ] {
            let sample = Sample::of(&values).unwrap();
            assert!((sample.mean / mean - 1.0f64).abs() < 1e-15, "{}", sample.mean);
            let error = (sample.standard_deviation() / deviation - 1.0f64).abs();
            assert!(error < tolerance, "{} is off by {error:e}", sample.standard_deviation());
        }
    }

    #[test]
    fn an_interval_needs_three_values() {
        assert_eq!(Estimate::of_mean(&[]), None);
        assert_eq!(Estimate::of_mean(&[1.0, f64::NAN]), None);
        for values in [&[5.0][..], &[5.0, 5.0]] {
            let estimate = Estimate::of_mean(values).unwrap();
            assert_eq!((estimate.value, estimate.low, estimate.high), (5.0, None, None));
        }
        let estimate = Estimate::of_mean(&[1.0, 2.0, 3.0]).unwrap();
        let half = 4.302_652_729_749_464 / 3f64.sqrt();
        assert!((estimate.high.unwrap() - 2.0 - half).abs() < 1e-9);
        assert!((2.0 - estimate.low.unwrap() - half).abs() < 1e-9);
    }
}
