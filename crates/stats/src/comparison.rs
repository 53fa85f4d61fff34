//! Computes whether one sample is lower than another, by the ratio of their means.
//!
//! The interval of the ratio is Fieller's (E. C. Fieller, 1954), for independent samples with
//! unequal variances, with Welch's degrees of freedom at the estimated ratio (A. C. Tamhane and B.
//! R. Logan, 2004). It was preferred to Welch's test on logarithms because it is about the ratio of
//! arithmetic means, like the figures printed with it, and accepts zeros.

use std::fmt;

use statrs::distribution::{ContinuousCDF, StudentsT};

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
    /// Lower end of the interval; `None` if the samples are too small for one.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` if the samples are too small for one.
    pub high: Option<f64>,
}

impl Ratio {
    /// Its bounds as an interval; `None` if the samples are too small for one.
    pub fn interval(&self) -> Option<Interval> {
        Some(Interval { low: self.low?, high: self.high?, method: Method::Fieller })
    }
}

/// Verdict on the left sample, relative to the right one.
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
    /// The words in reports.
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

/// A ratio and its verdict. The verdict depends on the interval of the ratio, never on whether two
/// intervals overlap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The ratio; `None` if there is none, and without bounds below three values a side.
    pub ratio: Option<Ratio>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why there is no verdict, if it is [`Verdict::Refused`].
    pub refusal: Option<Refusal>,
    /// The same question answered by ranks, which no single extreme run can decide: Mann and
    /// Whitney's p and the shift of Hodges and Lehmann. `None` without values or spread.
    pub rank: Option<RankTest>,
    /// The two-sided probability of a ratio at least as far from 1 if both sides are equal: the
    /// smallest share of errors at which the interval still excludes 1. `None` if there is no
    /// interval.
    pub p: Option<f64>,
    /// The smallest effect that counts, as a share of 1; 0 if none was given.
    pub aa_limit: f64,
}

impl Comparison {
    /// Compares two independent samples of at least three values each; smaller ones are refused.
    pub fn of(left: &[f64], right: &[f64]) -> Comparison {
        Comparison::beyond(left, right, 0.0)
    }

    /// As [`Comparison::of`], but an effect must also exceed the A/A limit of this host, see
    /// [`aa_limit`]: the ratio above 1 + `aa_limit`, or below its reciprocal.
    pub fn beyond(left: &[f64], right: &[f64], aa_limit: f64) -> Comparison {
        let rank = RankTest::of(left, right).ok();
        let refused = |ratio, refusal| Comparison {
            ratio,
            verdict: Verdict::Refused,
            refusal: Some(refusal),
            rank,
            p: None,
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
        let p = Some(equality_p(&left, &right));
        Comparison { ratio, verdict, refusal: None, rank, p, aa_limit }
    }
}

/// The A/A limit of a host, as a share of 1: the distance from 1 that 95 in 100 of the `ratios` of
/// A/A pairs, each left over right, do not exceed.
///
/// # Errors
/// Below 20 pairs, of which one alone would decide.
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

/// The probability that belongs to Fieller's interval: a ratio of 1 is outside it exactly if the
/// difference of the means exceeds t times its standard error.
fn equality_p(left: &Sample, right: &Sample) -> f64 {
    let ratio = left.mean / right.mean;
    let (left_variance, right_variance) = (left.variance_of_mean(), right.variance_of_mean());
    let error = (left_variance + right_variance).sqrt();
    let apart = (left.mean - right.mean).abs();
    if error == 0.0 {
        return if apart == 0.0 { 1.0 } else { 0.0 };
    }
    let freedom = welch_freedom(left_variance, left.n, ratio * ratio * right_variance, right.n);
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(1.0, |t| 2.0 * t.sf(apart / error)).min(1.0)
}

/// Returns which of several comparisons are significant when all are considered together: at most
/// `share` of those are expected to be false (Y. Benjamini and Y. Hochberg, "Controlling the False
/// Discovery Rate", 1995). One answer for every probability.
pub fn standing(probabilities: &[f64], share: f64) -> Vec<bool> {
    let mut sorted = probabilities.to_vec();
    sorted.sort_by(f64::total_cmp);
    let all = sorted.len() as f64;
    let within = |(index, p): (usize, &f64)| *p <= share * (index + 1) as f64 / all;
    let last = sorted.iter().enumerate().rposition(within);
    let limit = last.map_or(f64::NEG_INFINITY, |last| sorted[last]);
    probabilities.iter().map(|p| *p <= limit).collect()
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

    /// The probability is below 5 % exactly where the interval leaves out 1.
    #[test]
    fn probability_and_interval_agree() {
        let mut random = Random::new(43);
        let mut called = 0;
        for _ in 0..2_000 {
            let sides = [runs(&mut random, 103.0, 0.02, 5), runs(&mut random, 100.0, 0.03, 6)];
            let comparison = Comparison::of(&sides[0], &sides[1]);
            let is_called = comparison.verdict != Verdict::TooClose;
            assert_eq!(comparison.p.unwrap() < 0.05, is_called, "{comparison:?}");
            called += u32::from(is_called);
        }
        assert!((100..1_900).contains(&called), "both kinds were seen: {called}");
        assert_eq!(Comparison::of(&[3.0; 4], &[3.0; 4]).p, Some(1.0));
        assert_eq!(Comparison::of(&[3.0; 4], &[2.0; 4]).p, Some(0.0));
    }

    /// The example of Benjamini and Hochberg (1995), section 3.2: of 15 comparisons the first four
    /// stand, where Bonferroni keeps three.
    #[test]
    fn of_many_comparisons_those_stand_that_the_paper_names() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0000,
        ];
        let stands = standing(&p, 0.05);
        assert_eq!(stands.iter().filter(|stands| **stands).count(), 4);
        assert!(stands[..4].iter().all(|stands| *stands));
        assert_eq!(standing(&[], 0.05), [false; 0]);
        assert_eq!(standing(&[0.9, 0.04], 0.05), [false, false]);
    }

    #[test]
    fn ranks_are_given_with_the_ratio() {
        let comparison = Comparison::of(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.5]);
        let rank = comparison.rank.unwrap();
        assert!((rank.p - 2.0 / 70.0).abs() < 1e-12 && rank.shift < -3.9, "{rank:?}");
        let limited = Comparison::beyond(&[101.0, 101.1, 101.2], &[100.0, 100.1, 100.2], 0.03);
        assert_eq!(limited.verdict, Verdict::TooClose);
    }
}
