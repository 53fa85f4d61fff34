//! Compares two samples whose values form pairs, such as trials in turn: what a pair has in common,
//! mainly the state of the machine, cancels out.
//!
//! The difference has Student's t interval over the differences ("The Probable Error of a Mean",
//! 1908, whose example this is). The ratio of the means has Fieller's (E. C. Fieller, 1954) for
//! dependent samples, with the same degrees of freedom: it excludes 1 exactly if that of the
//! difference excludes 0.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Refusal;
use crate::comparison::{Ratio, Verdict};
use crate::estimate::{Estimate, INTERVAL_VALUES_MIN, Sample, t_quantile};

/// Left against right, pair by pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// The mean of left minus right; bounds from three pairs on.
    pub difference: Estimate,
    /// Mean of left over mean of right; `None` if that is infinite; without bounds if there are
    /// none.
    pub ratio: Option<Ratio>,
    /// The verdict on left, by the interval of the difference.
    pub verdict: Verdict,
    /// Why there is no verdict, if it is [`Verdict::Refused`].
    pub refusal: Option<Refusal>,
    /// The two-sided probability of a difference at least this large between equals; `None` below
    /// three pairs.
    pub p: Option<f64>,
}

impl Paired {
    /// Compares `pairs` of left and right.
    ///
    /// # Errors
    /// Without pairs, or if a value is not finite.
    pub fn of(pairs: &[(f64, f64)]) -> Result<Paired, Refusal> {
        let column = |pick: fn(&(f64, f64)) -> f64| pairs.iter().map(pick).collect::<Vec<f64>>();
        let differences = column(|(left, right)| left - right);
        let difference = Estimate::of_mean(&differences).ok_or(Refusal::NoValues)?;
        let of = |values: &[f64]| Sample::of(values).ok_or(Refusal::NoValues);
        let (left, right) = (of(&column(|pair| pair.0))?, of(&column(|pair| pair.1))?);
        let spread = of(&differences)?;
        let bounds = difference.low.zip(difference.high);
        let value = left.mean / right.mean;
        let ratio = value.is_finite().then(|| {
            let bounds = bounds.and_then(|_| fieller(&left, &right, &spread));
            Ratio { value, low: bounds.map(|own| own.0), high: bounds.map(|own| own.1) }
        });
        let (verdict, refusal) = match bounds {
            None => (Verdict::Refused, Some(Refusal::FewValues)),
            Some((low, _)) if low > 0.0 => (Verdict::Higher, None),
            Some((_, high)) if high < 0.0 => (Verdict::Lower, None),
            Some(_) => (Verdict::TooClose, None),
        };
        let p = bounds.map(|_| probability(&spread));
        Ok(Paired { difference, ratio, verdict, refusal, p })
    }
}

/// All ratios r for which left minus r times right is not significantly different from 0; `None` if
/// they are unbounded on both sides. The covariance follows from the variance of the differences.
fn fieller(left: &Sample, right: &Sample, differences: &Sample) -> Option<(f64, f64)> {
    let n = left.n as f64;
    debug_assert!(left.n >= INTERVAL_VALUES_MIN);
    let covariance = (left.variance + right.variance - differences.variance) / 2.0 / n;
    let t = t_quantile(n - 1.0).powi(2);
    let square = right.mean.powi(2) - t * right.variance_of_mean();
    let cross = left.mean * right.mean - t * covariance;
    let constant = left.mean.powi(2) - t * left.variance_of_mean();
    if square.is_nan() || square <= 0.0 {
        return None;
    }
    let root = (cross * cross - square * constant).max(0.0).sqrt();
    Some(((cross - root) / square, (cross + root) / square))
}

fn probability(differences: &Sample) -> f64 {
    let error = differences.variance_of_mean().sqrt();
    if error == 0.0 {
        return if differences.mean == 0.0 { 1.0 } else { 0.0 };
    }
    let freedom = (differences.n as f64 - 1.0).max(1.0);
    let t = (differences.mean / error).abs();
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |student| 2.0 * student.sf(t)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Hours of sleep gained with two drugs by ten patients (Student, 1908; Cushny and Peebles,
    /// 1905), with the answers of R 4: `t.test(left, right, paired = TRUE)`.
    #[test]
    fn students_own_example_has_the_answers_of_r() {
        let left = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let right = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs: Vec<(f64, f64)> = left.into_iter().zip(right).collect();
        let found = Paired::of(&pairs).unwrap();
        let close = |value: f64, expected: f64| {
            assert!((value - expected).abs() < 5e-7, "{value} is not {expected}");
        };
        close(found.difference.value, -1.58);
        close(found.difference.low.unwrap(), -2.459_885_8);
        close(found.difference.high.unwrap(), -0.700_114_2);
        assert!((found.p.unwrap() - 0.002_833).abs() < 5e-7, "{:?}", found.p);
        assert_eq!(found.verdict, Verdict::Lower);
    }

    /// The bounds of the ratio are those at which the test of `left - r right` is just undecided.
    #[test]
    fn the_ratio_ends_where_the_scaled_difference_touches_zero() {
        let pairs = [(12.1, 6.2), (11.8, 5.9), (12.6, 6.1), (12.0, 6.3), (12.4, 6.0)];
        let ratio = Paired::of(&pairs).unwrap().ratio.unwrap();
        for (end, is_low) in [(ratio.low.unwrap(), true), (ratio.high.unwrap(), false)] {
            let scaled: Vec<(f64, f64)> = pairs.iter().map(|(l, r)| (*l, end * r)).collect();
            let rest = Paired::of(&scaled).unwrap().difference;
            let touching = if is_low { rest.low } else { rest.high };
            assert!(touching.unwrap().abs() < 1e-9, "{rest:?}");
        }
        assert!(ratio.low.unwrap() < 2.0 && ratio.high.unwrap() > 2.0);
    }

    /// A machine that drifts by ten times the effect from pair to pair hides it from samples that
    /// are taken for independent, and not from pairs.
    #[test]
    fn what_both_of_a_pair_share_cancels_out() {
        let mut random = Random::new(3);
        let mut noise = |width: f64| width * (random.next_f64() - 0.5);
        let pairs: Vec<(f64, f64)> = (0..8)
            .map(|round| {
                let state = 100.0 + 10.0 * f64::from(round);
                (state + 1.0 + noise(0.2), state + noise(0.2))
            })
            .collect();
        let found = Paired::of(&pairs).unwrap();
        assert_eq!(found.verdict, Verdict::Higher);
        assert!((found.difference.value - 1.0).abs() < 0.2);
        let (left, right): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let apart = crate::Comparison::of(&left, &right);
        assert_eq!(apart.verdict, Verdict::TooClose);
    }

    /// Of 2,000 differences whose mean is 0.3 the interval of 5 pairs holds 0.3 in 95 of 100,
    /// within four standard deviations of a binomial.
    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        let mut random = Random::new(11);
        let mut normal = move || random.normal();
        let holds = (0..2_000).filter(|_| {
            let mut pair = |_| {
                let state = 50.0 * normal();
                (state + 0.3 + normal(), state)
            };
            let found = Paired::of(&(0..5).map(&mut pair).collect::<Vec<_>>()).unwrap().difference;
            (found.low.unwrap()..=found.high.unwrap()).contains(&0.3)
        });
        let share = holds.count() as f64 / 2_000.0;
        assert!((share - 0.95).abs() < 0.0195, "{share}");
    }

    #[test]
    fn two_pairs_have_a_difference_and_no_verdict() {
        let found = Paired::of(&[(2.0, 1.0), (4.0, 2.0)]).unwrap();
        assert_eq!((found.difference.value, found.difference.low), (1.5, None));
        assert_eq!((found.verdict, found.refusal), (Verdict::Refused, Some(Refusal::FewValues)));
        assert_eq!(found.ratio.map(|ratio| (ratio.value, ratio.low)), Some((2.0, None)));
        assert_eq!(Paired::of(&[]).unwrap_err(), Refusal::NoValues);
        assert_eq!(Paired::of(&[(1.0, f64::INFINITY)]).unwrap_err(), Refusal::NoValues);
    }
}
