//! Says whether one sample is lower than another, by the ratio of their means.
//!
//! The interval of the ratio is Fieller's (E. C. Fieller, 1954), for independent samples with
//! unequal variances, with Welch's degrees of freedom at the estimated ratio (A. C. Tamhane and
//! B. R. Logan, 2004). It was chosen before Welch's test on logarithms because it is about the
//! ratio of arithmetic means, which is what the figures beside it are, and takes zeros.

use std::fmt;

use crate::Refusal;
use crate::estimate::{INTERVAL_VALUES_MIN, Sample, t_quantile};

/// Left over right, with the interval at [`crate::CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Mean of the left sample over mean of the right.
    pub value: f64,
    /// Lower end of the interval; `None` where the samples are too small for one.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` where the samples are too small for one.
    pub high: Option<f64>,
}

/// What can be said of left, as seen from right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval of the ratio is below 1.
    Lower,
    /// The whole interval of the ratio is above 1.
    Higher,
    /// The interval of the ratio contains 1.
    TooClose,
    /// The two must not be, or cannot be, compared.
    Refused,
}

impl Verdict {
    /// The words in which it is reported.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Lower => "lower",
            Verdict::Higher => "higher",
            Verdict::TooClose => "too close to call",
            Verdict::Refused => "refused",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A ratio and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The ratio; `None` where there is none, and without bounds below three values a side.
    pub ratio: Option<Ratio>,
    /// What can be said.
    pub verdict: Verdict,
    /// Why nothing can be said, where the verdict is [`Verdict::Refused`].
    pub refusal: Option<Refusal>,
}

impl Comparison {
    /// Compares two independent samples of at least three values each; smaller ones are refused.
    pub fn of(left: &[f64], right: &[f64]) -> Comparison {
        let (Some(left), Some(right)) = (Sample::of(left), Sample::of(right)) else {
            return Comparison::refused(None, Refusal::NoValues);
        };
        let value = left.mean / right.mean;
        let ratio = value.is_finite().then_some(Ratio { value, low: None, high: None });
        if left.n.min(right.n) < INTERVAL_VALUES_MIN {
            return Comparison::refused(ratio, Refusal::FewValues);
        }
        match bounds(&left, &right) {
            None => Comparison::refused(ratio, Refusal::UnboundedRatio),
            Some((low, high)) => Comparison {
                ratio: Some(Ratio { value, low: Some(low), high: Some(high) }),
                verdict: match () {
                    () if high < 1.0 => Verdict::Lower,
                    () if low > 1.0 => Verdict::Higher,
                    () => Verdict::TooClose,
                },
                refusal: None,
            },
        }
    }

    fn refused(ratio: Option<Ratio>, refusal: Refusal) -> Comparison {
        Comparison { ratio, verdict: Verdict::Refused, refusal: Some(refusal) }
    }
}

/// Fieller's bounds of left over right; `None` where they do not exist.
fn bounds(left: &Sample, right: &Sample) -> Option<(f64, f64)> {
    let ratio = left.mean / right.mean;
    let (left_variance, right_variance) = (left.variance_of_mean(), right.variance_of_mean());
    let scaled = ratio * ratio * right_variance;
    let t = t_quantile(welch_freedom(left_variance, left.n, scaled, right.n));
    let g = t * t * right_variance / (right.mean * right.mean);
    if g.is_nan() || g >= 1.0 {
        return None;
    }
    let spread = (left_variance * (1.0 - g) + scaled).max(0.0).sqrt();
    let half = t / right.mean.abs() * spread;
    Some(((ratio - half) / (1.0 - g), (ratio + half) / (1.0 - g)))
}

/// Welch's and Satterthwaite's degrees of freedom for a sum of two variances of means.
fn welch_freedom(first: f64, first_n: usize, second: f64, second_n: usize) -> f64 {
    let (first_free, second_free) = (first_n as f64 - 1.0, second_n as f64 - 1.0);
    let below = first * first / first_free + second * second / second_free;
    if below > 0.0 { (first + second).powi(2) / below } else { first_free + second_free }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clear_differences_are_called_and_close_ones_are_not() {
        let low = [10.0, 10.1, 9.9, 10.05, 9.95];
        let high = [20.0, 20.3, 19.8, 20.1, 19.9];
        let comparison = Comparison::of(&low, &high);
        assert_eq!(comparison.verdict, Verdict::Lower);
        let ratio = comparison.ratio.unwrap();
        assert!(ratio.low.unwrap() < ratio.value && ratio.value < ratio.high.unwrap());
        assert_eq!(Comparison::of(&high, &low).verdict, Verdict::Higher);
        assert_eq!(Comparison::of(&low, &low).verdict, Verdict::TooClose);
        assert_eq!(Verdict::TooClose.to_string(), "too close to call");
    }

    #[test]
    fn small_samples_show_a_ratio_but_no_verdict() {
        let comparison = Comparison::of(&[1.0, 1.0], &[2.0, 2.0, 2.0]);
        assert_eq!(comparison.verdict, Verdict::Refused);
        assert_eq!(comparison.refusal, Some(Refusal::FewValues));
        assert_eq!(comparison.ratio, Some(Ratio { value: 0.5, low: None, high: None }));
    }

    #[test]
    fn a_right_side_near_zero_has_no_ratio_to_speak_of() {
        let near_zero = Comparison::of(&[5.0, 5.1, 4.9], &[-1.0, 1.0, 0.1]);
        assert_eq!(near_zero.refusal, Some(Refusal::UnboundedRatio));
        let zero = Comparison::of(&[5.0, 5.1, 4.9], &[0.0; 3]);
        assert_eq!((zero.refusal, zero.ratio), (Some(Refusal::UnboundedRatio), None));
        assert_eq!(Comparison::of(&[], &[1.0]).refusal, Some(Refusal::NoValues));
    }

    #[test]
    fn equal_values_without_spread_have_a_sharp_ratio() {
        let comparison = Comparison::of(&[3.0; 4], &[2.0; 4]);
        assert_eq!(comparison.ratio, Some(Ratio { value: 1.5, low: Some(1.5), high: Some(1.5) }));
        assert_eq!(comparison.verdict, Verdict::Higher);
    }

    /// The interval must hold the true ratio in 95 of 100 cases, also with five runs a side and
    /// unequal spread: 10 % against 5 % from run to run.
    #[test]
    fn the_interval_covers_the_true_ratio_as_often_as_it_says() {
        let mut random = Normal(0x5EED);
        let rounds = 4000;
        let covered = (0..rounds)
            .filter(|_| {
                let left: Vec<f64> = (0..5).map(|_| 2.0 * (1.0 + 0.10 * random.next())).collect();
                let right: Vec<f64> = (0..5).map(|_| 1.0 + 0.05 * random.next()).collect();
                let ratio = Comparison::of(&left, &right).ratio.unwrap();
                ratio.low.unwrap() <= 2.0 && 2.0 <= ratio.high.unwrap()
            })
            .count();
        let share = covered as f64 / f64::from(rounds);
        assert!((0.935..=0.965).contains(&share), "{share}");
    }

    /// Normal deviates: splitmix64 and the method of Box and Muller.
    struct Normal(u64);

    impl Normal {
        fn next(&mut self) -> f64 {
            let (u, v) = (self.uniform(), self.uniform());
            (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        }

        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
        }
    }
}
