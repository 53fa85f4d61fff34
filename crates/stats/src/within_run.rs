//! The mean of a single run with correlated values: the correlation time, the number of independent
//! values, and an interval from the means of batches.

use crate::Refusal;
use crate::estimate::{Sample, t_quantile};
use crate::interval::{Interval, Method};

/// The autocorrelation at `lag`: the products of deviations from the mean of all, over their
/// squares (G. E. P. Box and G. M. Jenkins, 1970, as NIST certifies it). 0 without spread.
pub fn autocorrelation(values: &[f64], lag: usize) -> f64 {
    let Some(sample) = Sample::of(values) else { return 0.0 };
    correlation(values, &sample, lag)
}

fn correlation(values: &[f64], sample: &Sample, lag: usize) -> f64 {
    let squares = sample.variance * (sample.n as f64 - 1.0);
    if squares == 0.0 || lag >= values.len() {
        return 0.0;
    }
    let pairs = values.iter().zip(&values[lag..]);
    pairs.map(|(one, other)| (one - sample.mean) * (other - sample.mean)).sum::<f64>() / squares
}

/// The integrated autocorrelation time in values, at least 1: 1 + 2 x the sum of the
/// autocorrelations up to the first lag that is at least 5 times the sum so far (A. Sokal, "Monte
/// Carlo Methods in Statistical Mechanics", 1997, section 3). It is the factor by which the
/// variance of the mean of correlated values is larger. Too small when the run is shorter than some
/// 50 times as long.
pub fn autocorrelation_time(values: &[f64]) -> f64 {
    let Some(sample) = Sample::of(values) else { return 1.0 };
    let mut time = 1.0;
    for lag in 1..values.len() {
        time += 2.0 * correlation(values, &sample, lag);
        if lag as f64 >= WINDOW_TIMES * time {
            break;
        }
    }
    time.max(1.0)
}

/// The mean of one run with an interval from the means of batches of successive values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchMeans {
    /// The mean of all batches.
    pub mean: f64,
    /// Student's t over the batches' means. It is about this run alone.
    pub interval: Interval,
    /// Number of batches, at least [`BATCHES_MIN`].
    pub batches: usize,
    /// Values per batch; a remainder at the start of the run is left out.
    pub batch_length: usize,
    /// The lag-1 autocorrelation of the batches' means, below 0.2.
    pub lag1: f64,
    /// The integrated autocorrelation time, in values.
    pub autocorrelation_time: f64,
    /// The effective sample size.
    pub effective: f64,
}

impl BatchMeans {
    /// Batches of some 10 autocorrelation times, at most 100 of them; longer ones while their means
    /// are still correlated by 0.2 or more, down to [`BATCHES_MIN`] (A. M. Law, "Simulation
    /// Modeling and Analysis", section 9.5.3).
    ///
    /// # Errors
    /// When the run is worth fewer than [`EFFECTIVE_MIN`] independent values, with the length that
    /// is needed, or batch means are still correlated.
    pub fn of(values: &[f64]) -> Result<BatchMeans, Refusal> {
        let sample = Sample::of(values).ok_or(Refusal::NoValues)?;
        if sample.variance == 0.0 {
            return Err(Refusal::NoSpread);
        }
        let time = autocorrelation_time(values);
        let effective = sample.n as f64 / time;
        if effective < EFFECTIVE_MIN {
            let needed = (EFFECTIVE_MIN * time).ceil() as usize;
            return Err(Refusal::Autocorrelated { have: sample.n, time, effective, needed });
        }
        let mut batches = ((effective / BATCH_TIMES) as usize).clamp(BATCHES_MIN, BATCHES_MAX);
        loop {
            let batch_length = sample.n / batches;
            let means = batch_means(values, batches, batch_length);
            let of_batches = Sample::of(&means).ok_or(Refusal::NoValues)?;
            let lag1 = correlation(&means, &of_batches, 1);
            if lag1 < LAG1_MAX {
                let error = of_batches.variance_of_mean().sqrt();
                let half = t_quantile(batches as f64 - 1.0) * error;
                let (low, high) = (of_batches.mean - half, of_batches.mean + half);
                let interval = Interval { low, high, method: Method::BatchMeans };
                let (mean, autocorrelation_time) = (of_batches.mean, time);
                return Ok(BatchMeans {
                    mean,
                    interval,
                    batches,
                    batch_length,
                    lag1,
                    autocorrelation_time,
                    effective,
                });
            }
            if batches == BATCHES_MIN {
                return Err(Refusal::BatchesCorrelated { batches, lag1 });
            }
            batches = (batches * 3 / 4).max(BATCHES_MIN);
        }
    }
}

/// The means of the last `batches` x `length` values.
fn batch_means(values: &[f64], batches: usize, length: usize) -> Vec<f64> {
    let start = values.len() - batches * length;
    let mean = |batch: &[f64]| batch.iter().sum::<f64>() / length as f64;
    values[start..].chunks_exact(length).map(mean).collect()
}

/// Fewer batches leave too few degrees of freedom to show their correlation.
pub const BATCHES_MIN: usize = 20;

/// Independent values that a run must be worth: ten for each of the fewest batches.
pub const EFFECTIVE_MIN: f64 = 200.0;

const BATCHES_MAX: usize = 100;
const BATCH_TIMES: f64 = 10.0;
const LAG1_MAX: f64 = 0.2;
/// Sokal's c.
const WINDOW_TIMES: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// An autoregressive series of order 1, started in its stationary state.
    fn series(random: &mut Random, phi: f64, n: usize) -> Vec<f64> {
        let mut value = random.normal() / (1.0 - phi * phi).sqrt();
        let step = |_| {
            value = phi * value + random.normal();
            value
        };
        (0..n).map(step).collect()
    }

    /// An autoregressive series has the time (1 + phi) / (1 - phi).
    #[test]
    fn the_time_of_an_autoregressive_series_is_the_known_one() {
        let mut random = Random::new(3);
        for phi in [0.0f64, 0.5, 0.9] {
            let values = series(&mut random, phi, 200_000);
            let expected = (1.0 + phi) / (1.0 - phi);
            let time = autocorrelation_time(&values);
            assert!((time / expected - 1.0).abs() < 0.1, "{phi}: {time}, not {expected}");
            assert!((autocorrelation(&values, 2) - phi * phi).abs() < 0.02);
        }
    }

    #[test]
    fn a_run_that_hangs_together_too_long_is_refused_with_what_it_needs() {
        let mut random = Random::new(4);
        let refusal = BatchMeans::of(&series(&mut random, 0.99, 5000)).unwrap_err();
        let Refusal::Autocorrelated { needed, .. } = refusal else { panic!("{refusal}") };
        assert!(needed > 10_000, "{needed}");
        let weighed = BatchMeans::of(&series(&mut random, 0.5, 5000)).unwrap();
        assert!(weighed.batches >= 20 && weighed.lag1 < 0.2, "{weighed:?}");
        assert!(weighed.batches * weighed.batch_length <= 5000);
        assert_eq!(BatchMeans::of(&[1.0; 100]), Err(Refusal::NoSpread));
        assert_eq!(BatchMeans::of(&[]), Err(Refusal::NoValues));
    }
}
