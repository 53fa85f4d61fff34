//! The interval of a mean by resampling *runs*, never single messages: what varies from run to run
//! does not average out within one.
//!
//! With few runs the classical bootstrap intervals are too narrow. The studentised form holds from
//! 5 runs on (`tests/coverage.rs` prints the table).

use crate::estimate::Sample;
use crate::interval::{Interval, Method};
use crate::quantile::interpolated;
use crate::random::Random;
use crate::{CONFIDENCE, Refusal};

/// Minimum of runs for any bootstrap: 5 give 126 different resamples, fewer do not represent a
/// distribution.
pub const RUNS_MIN: usize = 5;

/// Number of resamples, and the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// How many resamples; 10,000 leave a Monte-Carlo error of about 1 % of the width.
    pub resamples: usize,
    /// Seed of the random numbers; the same seed gives the same interval.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Bootstrap {
        Bootstrap { resamples: 10_000, seed: 0x5EED }
    }
}

impl Bootstrap {
    /// The studentised interval of the mean, "bootstrap-t" (B. Efron, 1981; P. Hall, 1988): every
    /// resample's distance from the mean in its own standard errors. Unlike t it follows skewness,
    /// and unlike BCa it holds with few runs.
    ///
    /// # Errors
    /// Below [`RUNS_MIN`] values, and without spread.
    pub fn studentised_mean(&self, values: &[f64]) -> Result<Interval, Refusal> {
        let sample = check(values)?;
        let n = values.len() as f64;
        let mut random = Random::new(self.seed);
        let mut distances: Vec<f64> = (0..self.resamples)
            .filter_map(|_| {
                let (mut sum, mut squares) = (0.0, 0.0);
                for _ in values {
                    let apart = values[random.index(values.len())] - sample.mean;
                    sum += apart;
                    squares += apart * apart;
                }
                let mean = sum / n;
                let variance = (squares / n - mean * mean).max(0.0) * n / (n - 1.0);
                // A resample of one repeated value has no standard error.
                (variance > 1e-12 * sample.variance).then(|| mean / (variance / n).sqrt())
            })
            .collect();
        distances.sort_unstable_by(f64::total_cmp);
        let around = middle(&distances, Method::StudentisedBootstrap);
        let error = sample.variance_of_mean().sqrt();
        let (low, high) = (sample.mean - around.high * error, sample.mean - around.low * error);
        Ok(Interval { low, high, method: Method::StudentisedBootstrap })
    }
}

fn check(values: &[f64]) -> Result<Sample, Refusal> {
    let sample = Sample::of(values).ok_or(Refusal::NoValues)?;
    if sample.n < RUNS_MIN {
        return Err(Refusal::TooFew { have: sample.n, needed: RUNS_MIN });
    }
    if sample.variance == 0.0 {
        return Err(Refusal::NoSpread);
    }
    Ok(sample)
}

fn middle(sorted: &[f64], method: Method) -> Interval {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Interval { low: interpolated(sorted, tail), high: interpolated(sorted, 1.0 - tail), method }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// A long upper tail pulls the studentised interval upwards of where t would put it.
    #[test]
    fn the_studentised_interval_follows_skewness() {
        let values = [1.0, 1.1, 1.2, 1.3, 1.4, 1.6, 2.0, 2.7, 4.1, 7.0];
        let interval = Bootstrap::default().studentised_mean(&values).unwrap();
        let centre = mean(&values);
        assert!(interval.high - centre > 1.5 * (centre - interval.low), "{interval:?}");
    }
}
