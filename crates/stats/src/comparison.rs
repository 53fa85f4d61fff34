//! Says whether one sample is lower than another, by the ratio of their means.
//!
//! The interval of the ratio is Fieller's (E. C. Fieller, 1954), for independent samples with
//! unequal variances, with Welch's degrees of freedom at the estimated ratio (A. C. Tamhane and
//! B. R. Logan, 2004). It was chosen before Welch's test on logarithms because it is about the
//! ratio of arithmetic means, which is what the figures beside it are, and takes zeros.

use std::fmt;

use crate::estimate::{INTERVAL_VALUES_MIN, Sample, t_quantile};
use crate::interval::{Interval, Method};
use crate::quantile::nearest_rank;
use crate::rank::RankTest;
use crate::{CONFIDENCE, Refusal};

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

impl Ratio {
    /// Its bounds as an interval; `None` where the samples are too small for one.
    pub fn interval(&self) -> Option<Interval> {
        Some(Interval { low: self.low?, high: self.high?, method: Method::Fieller })
    }
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

/// A ratio and what follows from it. The verdict comes from the interval of the ratio, never
/// from whether two intervals overlap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The ratio; `None` where there is none, and without bounds below three values a side.
    pub ratio: Option<Ratio>,
    /// What can be said.
    pub verdict: Verdict,
    /// Why nothing can be said, where the verdict is [`Verdict::Refused`].
    pub refusal: Option<Refusal>,
    /// The same question asked of the ranks, which no single wild run can decide: Mann and
    /// Whitney's p and the shift of Hodges and Lehmann. `None` without values or spread.
    pub rank: Option<RankTest>,
    /// The smallest effect that was taken for one, as a share of 1; 0 if none was given.
    pub aa_limit: f64,
}

impl Comparison {
    /// Compares two independent samples of at least three values each; smaller ones are refused.
    pub fn of(left: &[f64], right: &[f64]) -> Comparison {
        Comparison::beyond(left, right, 0.0)
    }

    /// As [`Comparison::of`], but an effect must also be larger than what this host shows between
    /// equals, see [`aa_limit`]: the ratio above 1 + `aa_limit`, or below its reciprocal.
    pub fn beyond(left: &[f64], right: &[f64], aa_limit: f64) -> Comparison {
        let rank = RankTest::of(left, right).ok();
        let refused = |ratio, refusal| Comparison {
            ratio,
            verdict: Verdict::Refused,
            refusal: Some(refusal),
            rank,
            aa_limit,
        };
        let (Some(left), Some(right)) = (Sample::of(left), Sample::of(right)) else {
            return refused(None, Refusal::NoValues);
        };
        let value = left.mean / right.mean;
        let ratio = value.is_finite().then_some(Ratio { value, low: None, high: None });
        if left.n.min(right.n) < INTERVAL_VALUES_MIN {
            return refused(ratio, Refusal::FewValues);
        }
        let Some((low, high)) = bounds(&left, &right) else {
            return refused(ratio, Refusal::UnboundedRatio);
        };
        let verdict = match () {
            () if high < 1.0 && value < 1.0 / (1.0 + aa_limit) => Verdict::Lower,
            () if low > 1.0 && value > 1.0 + aa_limit => Verdict::Higher,
            () => Verdict::TooClose,
        };
        let ratio = Some(Ratio { value, low: Some(low), high: Some(high) });
        Comparison { ratio, verdict, refusal: None, rank, aa_limit }
    }
}

/// The effect that a host shows between equals, as a share of 1: the distance from 1 that 95 in
/// 100 of the `ratios` of A/A pairs, each left over right, do not exceed. Refused below 20 pairs,
/// of which one alone would decide.
pub fn aa_limit(ratios: &[f64]) -> Result<f64, Refusal> {
    if ratios.len() < AA_PAIRS_MIN {
        return Err(Refusal::TooFew { have: ratios.len(), needed: AA_PAIRS_MIN });
    }
    if ratios.iter().any(|ratio| ratio.is_nan() || *ratio <= 0.0) {
        return Err(Refusal::NotPositive);
    }
    let mut distances: Vec<f64> = ratios.iter().map(|ratio| ratio.ln().abs()).collect();
    distances.sort_by(f64::total_cmp);
    Ok(nearest_rank(&distances, CONFIDENCE).exp_m1())
}

/// Fewer A/A pairs give no limit.
pub const AA_PAIRS_MIN: usize = 20;

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
    use crate::random::Random;

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
        let mut random = Random::new(0x5EED);
        let rounds = 4000;
        let covered = (0..rounds)
            .filter(|_| {
                let left: Vec<f64> = (0..5).map(|_| 2.0 * (1.0 + 0.10 * random.normal())).collect();
                let right: Vec<f64> = (0..5).map(|_| 1.0 + 0.05 * random.normal()).collect();
                let ratio = Comparison::of(&left, &right).ratio.unwrap();
                ratio.low.unwrap() <= 2.0 && 2.0 <= ratio.high.unwrap()
            })
            .count();
        let share = covered as f64 / f64::from(rounds);
        assert!((0.935..=0.965).contains(&share), "{share}");
    }

    fn runs(random: &mut Random, mean: f64, spread: f64, n: usize) -> Vec<f64> {
        (0..n).map(|_| mean * (1.0 + spread * random.normal())).collect()
    }

    /// Equal sides: the interval alone gives false alarms in 5 of 100 pairs, as it says; with the
    /// A/A limit of the host, taken from other pairs, there are fewer.
    #[test]
    fn equals_are_seldom_called_different() {
        let mut random = Random::new(41);
        let spread = 0.03;
        let ratios: Vec<f64> = (0..60)
            .map(|_| {
                let sides = [0; 2].map(|_| runs(&mut random, 100.0, spread, 5));
                Comparison::of(&sides[0], &sides[1]).ratio.unwrap().value
            })
            .collect();
        let limit = aa_limit(&ratios).unwrap();
        let mut alarms = |pairs: u32, limit: f64| {
            let is_alarm = |_: &u32| {
                let sides = [0; 2].map(|_| runs(&mut random, 100.0, spread, 5));
                let verdict = Comparison::beyond(&sides[0], &sides[1], limit).verdict;
                matches!(verdict, Verdict::Lower | Verdict::Higher)
            };
            (0..pairs).filter(is_alarm).count()
        };
        let (alone, limited) = (alarms(10_000, 0.0), alarms(200, limit));
        println!("false alarms: {alone} of 10,000, {limited} of 200 beyond {limit:.3}");
        assert!((350..=530).contains(&alone), "{alone} false alarms of 10,000");
        assert!(limited <= 10, "{limited} false alarms of 200 beyond {limit}");
        assert_eq!(aa_limit(&[1.0; 19]), Err(Refusal::TooFew { have: 19, needed: 20 }));
        assert_eq!(aa_limit(&[-1.0; 20]), Err(Refusal::NotPositive));
    }

    /// A slowdown of 5 % with 2 % from run to run and 10 runs a side.
    #[test]
    fn an_injected_slowdown_is_found() {
        let mut random = Random::new(42);
        let found = (0..100)
            .filter(|_| {
                let (slow, quick) =
                    (runs(&mut random, 105.0, 0.02, 10), runs(&mut random, 100.0, 0.02, 10));
                Comparison::beyond(&slow, &quick, 0.02).verdict == Verdict::Higher
            })
            .count();
        println!("found: {found} of 100");
        assert!(found >= 95, "{found} of 100");
    }

    #[test]
    fn ranks_stand_beside_the_ratio() {
        let comparison = Comparison::of(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.5]);
        let rank = comparison.rank.unwrap();
        assert!((rank.p - 2.0 / 70.0).abs() < 1e-12 && rank.shift < -3.9, "{rank:?}");
        let limited = Comparison::beyond(&[101.0, 101.1, 101.2], &[100.0, 100.1, 100.2], 0.03);
        assert_eq!(limited.verdict, Verdict::TooClose);
    }
}
