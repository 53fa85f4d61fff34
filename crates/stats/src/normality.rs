//! Whether values look normal: Shapiro and Wilk's test, and skewness with D'Agostino's test.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::Refusal;
use crate::estimate::Sample;

/// How far a sample is from a normal one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normality {
    /// Shapiro and Wilk's W, 0 to 1; 1 is perfectly normal.
    pub w: f64,
    /// The probability of a W this small if the values are normal.
    pub p: f64,
    /// The skewness g1 = m3 / m2^(3/2); 0 is symmetrical.
    pub skewness: f64,
}

impl Normality {
    /// Tests 3 to 5,000 values (of more, evenly spaced ones of the sorted are taken).
    ///
    /// S. S. Shapiro and M. B. Wilk (1965); weights and p-value by P. Royston, "Remark AS R94"
    /// (Applied Statistics 44, 1995).
    ///
    /// # Errors
    /// Below 3 values, without spread, or if a value is not finite.
    pub fn of(values: &[f64]) -> Result<Normality, Refusal> {
        let sample = Sample::of(values).ok_or(Refusal::NoValues)?;
        if sample.n < VALUES_MIN {
            return Err(Refusal::TooFew { have: sample.n, needed: VALUES_MIN });
        }
        if sample.variance == 0.0 {
            return Err(Refusal::NoSpread);
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        if sorted.len() > VALUES_MAX {
            let step = (sorted.len() - 1) as f64 / (VALUES_MAX - 1) as f64;
            sorted = (0..VALUES_MAX).map(|i| sorted[(i as f64 * step) as usize]).collect();
        }
        let w = shapiro_w(&sorted);
        Ok(Normality { w, p: shapiro_p(w, sorted.len()), skewness: skewness(values) })
    }
}

/// The skewness g1 = m3 / m2^(3/2), with moments over n; 0 without spread.
pub fn skewness(values: &[f64]) -> f64 {
    let Some(sample) = Sample::of(values) else { return 0.0 };
    let n = sample.n as f64;
    let moment =
        |power: i32| values.iter().map(|value| (value - sample.mean).powi(power)).sum::<f64>() / n;
    let second = moment(2);
    if second > 0.0 { moment(3) / second.powf(1.5) } else { 0.0 }
}

/// The two-sided probability of a skewness as far from 0 among at least 8 normal values (R. B.
/// D'Agostino, "Transformation to normality of the null distribution of g1", Biometrika 57, 1970).
///
/// # Errors
/// Below 8 values, or without spread.
pub fn skewness_p(values: &[f64]) -> Result<f64, Refusal> {
    if values.len() < SKEWNESS_VALUES_MIN {
        return Err(Refusal::TooFew { have: values.len(), needed: SKEWNESS_VALUES_MIN });
    }
    let n = values.len() as f64;
    let y = skewness(values) * ((n + 1.0) * (n + 3.0) / (6.0 * (n - 2.0))).sqrt();
    let beta2 = 3.0 * (n * n + 27.0 * n - 70.0) * (n + 1.0) * (n + 3.0)
        / ((n - 2.0) * (n + 5.0) * (n + 7.0) * (n + 9.0));
    let w2 = -1.0 + (2.0 * (beta2 - 1.0)).sqrt();
    let delta = 1.0 / (0.5 * w2.ln()).sqrt();
    let alpha = (2.0 / (w2 - 1.0)).sqrt();
    let z = delta * (y / alpha).asinh();
    Ok(2.0 * standard().sf(z.abs()))
}

fn shapiro_w(sorted: &[f64]) -> f64 {
    let weights = weights(sorted.len());
    let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
    let last = sorted.len() - 1;
    let sum: f64 =
        weights.iter().enumerate().map(|(i, weight)| weight * (sorted[last - i] - sorted[i])).sum();
    let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    (sum * sum / squares).min(1.0)
}

/// The weights of the upper half, largest first.
fn weights(n: usize) -> Vec<f64> {
    if n == 3 {
        return vec![0.5f64.sqrt()];
    }
    let half = n / 2;
    let normal = standard();
    let scores: Vec<f64> =
        (1..=half).map(|i| -normal.inverse_cdf((i as f64 - 0.375) / (n as f64 + 0.25))).collect();
    let squares = 2.0 * scores.iter().map(|score| score * score).sum::<f64>();
    let root = 1.0 / (n as f64).sqrt();
    let first = polynomial(&FIRST_WEIGHT, root) + scores[0] / squares.sqrt();
    let mut ends = vec![first];
    if n > 5 {
        ends.push(polynomial(&SECOND_WEIGHT, root) + scores[1] / squares.sqrt());
    }
    let over = squares - 2.0 * scores.iter().take(ends.len()).map(|m| m * m).sum::<f64>();
    let under = 1.0 - 2.0 * ends.iter().map(|a| a * a).sum::<f64>();
    let factor = (over / under).sqrt();
    let inner = scores[ends.len()..].iter().map(|score| score / factor);
    ends.iter().copied().chain(inner).collect()
}

fn shapiro_p(w: f64, n: usize) -> f64 {
    if n == 3 {
        let p = 6.0 / std::f64::consts::PI * (w.sqrt().asin() - 0.75f64.sqrt().asin());
        return p.clamp(0.0, 1.0);
    }
    let y = (1.0 - w).max(f64::MIN_POSITIVE).ln();
    let (n, log_n) = (n as f64, (n as f64).ln());
    let (y, mean, deviation) = if n <= 11.0 {
        let gamma = polynomial(&GAMMA, n);
        if y >= gamma {
            return 0.0;
        }
        (-(gamma - y).ln(), polynomial(&SMALL_MEAN, n), polynomial(&SMALL_LOG_DEVIATION, n).exp())
    } else {
        (y, polynomial(&LARGE_MEAN, log_n), polynomial(&LARGE_LOG_DEVIATION, log_n).exp())
    };
    standard().sf((y - mean) / deviation)
}

/// The polynomial with the lowest coefficient first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

fn standard() -> Normal {
    Normal::standard()
}

const VALUES_MIN: usize = 3;
const VALUES_MAX: usize = 5000;
const SKEWNESS_VALUES_MIN: usize = 8;

/// The polynomials of AS R94, under its names c1, c2, g, c3, c4, c5, c6.
const FIRST_WEIGHT: [f64; 6] = [0.0, 0.221157, -0.147981, -2.07119, 4.434685, -2.706056];
const SECOND_WEIGHT: [f64; 6] = [0.0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633];
const GAMMA: [f64; 2] = [-2.273, 0.459];
const SMALL_MEAN: [f64; 4] = [0.544, -0.39978, 0.025054, -6.714e-4];
const SMALL_LOG_DEVIATION: [f64; 4] = [1.3822, -0.77857, 0.062767, -0.0020322];
const LARGE_MEAN: [f64; 4] = [-1.5861, -0.31082, -0.083751, 0.0038915];
const LARGE_LOG_DEVIATION: [f64; 3] = [-0.4803, -0.082676, 0.0030302];
