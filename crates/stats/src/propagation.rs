//! Propagation of distributions by a Monte Carlo method (JCGM 101:2008): distributions of the
//! inputs of a model, draws of them, and the interval of the output.

use crate::estimate::{Sample, t_quantile};
use crate::random::Random;

/// Knowledge of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// An exact value.
    Exactly(f64),
    /// The expectation of repeated indications: a scaled and shifted t distribution (JCGM 101,
    /// 6.4.9.2).
    MeanOf {
        /// Arithmetic mean of the indications.
        mean: f64,
        /// Their standard deviation, with divisor n - 1.
        deviation: f64,
        /// Number of indications; at least 2.
        n: usize,
    },
    /// The standard deviation of normal repeated indications: s sqrt((n-1) / chi^2).
    DeviationOf {
        /// The standard deviation of the indications.
        deviation: f64,
        /// Number of indications; at least 2.
        n: usize,
    },
    /// The coefficient of variation: the standard deviation over the size of the expectation. It is
    /// infinite if a draw of the expectation has the other sign: 0 cannot be excluded as divisor.
    VariationOf {
        /// Arithmetic mean of the indications.
        mean: f64,
        /// Their standard deviation, n - 1 below the line.
        deviation: f64,
        /// Number of indications; at least 2.
        n: usize,
    },
    /// Two bounds: a rectangular distribution (JCGM 101, 6.4.2). With an infinite upper bound half
    /// of the draws are the lower bound, half are infinite.
    Between(f64, f64),
}

impl Known {
    /// The mean of these indications; `None` for fewer than two, or one that is not finite.
    pub fn mean_of(values: &[f64]) -> Option<Known> {
        let sample = Sample::of(values).filter(|sample| sample.n > 1)?;
        let (mean, deviation, n) = (sample.mean, sample.standard_deviation(), sample.n);
        Some(Known::MeanOf { mean, deviation, n })
    }

    /// The best estimate: the expectation, or the lower of two bounds if the upper is infinite.
    pub fn estimate(self) -> f64 {
        match self {
            Known::Exactly(value) => value,
            Known::Between(low, high) if high.is_finite() => low + (high - low) / 2.0,
            Known::Between(low, _) => low,
            Known::MeanOf { mean, .. } => mean,
            Known::DeviationOf { deviation, .. } => deviation,
            Known::VariationOf { mean, deviation, .. } => deviation / mean.abs(),
        }
    }

    /// The interval of a mean by Student's t in closed form; `None` for everything else.
    pub fn student_interval(self) -> Option<(f64, f64)> {
        let Known::MeanOf { mean, deviation, n } = self else { return None };
        let half = t_quantile(n as f64 - 1.0) * deviation / (n as f64).sqrt();
        Some((mean - half, mean + half))
    }

    /// Draws from the distribution: the same ones for the same seed.
    pub fn draws(self, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut draw: Box<dyn FnMut() -> f64> = match self {
            Known::Exactly(value) => Box::new(move || value),
            Known::MeanOf { mean, deviation, n } => {
                let scale = deviation / (n as f64).sqrt();
                Box::new(move || mean + scale * student(n - 1, &mut random))
            }
            Known::DeviationOf { deviation, n } => {
                Box::new(move || deviation / reduced_chi(n - 1, &mut random))
            }
            Known::VariationOf { mean, deviation, n } => Box::new(move || {
                let deviation = deviation / reduced_chi(n - 1, &mut random);
                let drawn = mean + deviation / (n as f64).sqrt() * random.normal();
                if drawn * mean > 0.0 { deviation / drawn.abs() } else { f64::INFINITY }
            }),
            Known::Between(low, high) if high.is_finite() => {
                Box::new(move || low + (high - low) * random.next_f64())
            }
            Known::Between(low, high) => {
                Box::new(move || if random.next_f64() < 0.5 { low } else { high })
            }
        };
        (0..DRAWS).map(|_| draw()).collect()
    }
}

/// The 95 % interval with equal tails (JCGM 101, 7.7). Draws without a value count as beyond both
/// ends, so that they only widen it; an end among them is infinite.
pub fn interval(mut draws: Vec<f64>) -> (f64, f64) {
    let all = draws.len();
    draws.retain(|draw| !draw.is_nan());
    let beyond = (all as f64 * (1.0 - crate::CONFIDENCE) / 2.0).round() as usize;
    let without = all - draws.len();
    let Some(at) = beyond.checked_sub(without).filter(|at| *at < draws.len()) else {
        return (f64::NEG_INFINITY, f64::INFINITY);
    };
    let end = draws.len() - 1 - at;
    let low = *draws.select_nth_unstable_by(at, f64::total_cmp).1;
    (low, *draws.select_nth_unstable_by(end, f64::total_cmp).1)
}

/// A draw from Student's t distribution (R. W. Bailey, "Polar generation of random variates with
/// the t-distribution", 1994).
fn student(freedom: usize, random: &mut Random) -> f64 {
    let freedom = freedom as f64;
    loop {
        let (u, v) = (2.0 * random.next_f64() - 1.0, 2.0 * random.next_f64() - 1.0);
        let w = u * u + v * v;
        if w > 0.0 && w <= 1.0 {
            return u * (freedom * (w.powf(-2.0 / freedom) - 1.0) / w).sqrt();
        }
    }
}

/// A draw of sqrt(chi^2 / freedom).
fn reduced_chi(freedom: usize, random: &mut Random) -> f64 {
    let squares: f64 = (0..freedom).map(|_| random.normal().powi(2)).sum();
    (squares / freedom as f64).sqrt()
}

/// Draws of each quantity. This number leaves 0.07 % of coverage to chance; the guide's
/// recommendation of 10^4 / (1 - p) (JCGM 101, 7.2.2), here twice as many, is for figures with more
/// digits.
pub const DRAWS: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Comparison;

    fn of_pairs(left: Known, right: Known, model: impl Fn(f64, f64) -> f64) -> (f64, f64) {
        let (left, right) = (left.draws(1), right.draws(2));
        interval(left.iter().zip(&right).map(|(a, b)| model(*a, *b)).collect())
    }

    fn near(got: f64, expected: f64, share: f64) {
        assert!((got - expected).abs() <= share * expected.abs(), "{got} is not {expected}");
    }

    /// The interval of one mean is Student's own.
    #[test]
    fn a_mean_by_itself_has_students_interval() {
        for n in [2usize, 3, 5, 10, 40] {
            let known = Known::MeanOf { mean: 10.0, deviation: 2.0, n };
            let (low, high) = interval(known.draws(7));
            let half = t_quantile(n as f64 - 1.0) * 2.0 / (n as f64).sqrt();
            assert_eq!(known.student_interval(), Some((10.0 - half, 10.0 + half)));
            near(10.0 - low, half, 0.04);
            near(high - 10.0, half, 0.04);
        }
    }

    /// NIST/SEMATECH handbook, 7.2.3.1: the limits of a standard deviation from chi-square; with
    /// 10 values the factors are 0.6878 and 1.8256.
    #[test]
    fn a_deviation_has_the_limits_of_chi_square() {
        let (low, high) = interval(Known::DeviationOf { deviation: 1.0, n: 10 }.draws(3));
        near(low, 0.6878, 0.02);
        near(high, 1.8256, 0.02);
        let of = |mean| interval(Known::VariationOf { mean, deviation: 1.0, n: 10 }.draws(3));
        near(of(1e6).1 * 1e6, 1.8256, 0.02);
        assert!(of(2.0).1 > 1.8256 / 2.0, "the mean is uncertain too");
    }

    /// A spread over a mean is not negative, whatever the sign of the mean, and has no upper bound
    /// where the mean may be 0.
    #[test]
    fn a_coefficient_of_variation_is_not_negative() {
        for (mean, estimate) in [(0.5, 2.0), (-0.5, 2.0)] {
            let known = Known::VariationOf { mean, deviation: 1.0, n: 3 };
            assert_eq!(known.estimate(), estimate);
            let (low, high) = interval(known.draws(5));
            assert!(low > 0.0 && high == f64::INFINITY, "{low} {high}");
        }
    }

    /// JCGM 101:2008, 9.2.3: the sum of four rectangular distributions with standard deviation 1;
    /// the interval of 95 % is +- 2 sqrt(3) (2 - (3/5)^(1/4)) = 3.88.
    #[test]
    fn four_rectangles_sum_up_as_in_the_guide() {
        let half = 3f64.sqrt();
        let all: Vec<Vec<f64>> = (0..4).map(|at| Known::Between(-half, half).draws(at)).collect();
        let sums = (0..DRAWS).map(|at| all.iter().map(|draws| draws[at]).sum()).collect();
        let (low, high) = interval(sums);
        near(low, -3.88, 0.01);
        near(high, 3.88, 0.01);
    }

    /// A ratio of two normal means: Fieller's theorem with Welch's degrees of freedom gives about
    /// the same where both have many values.
    #[test]
    fn a_ratio_agrees_with_fieller() {
        let of = |centre: f64, spread: f64| -> Vec<f64> {
            (0..24).map(|at| centre + spread * (f64::from(at) * 2.4).sin()).collect()
        };
        let (left, right) = (of(30.0, 3.0), of(10.0, 1.5));
        let known = |values: &[f64]| Known::mean_of(values).unwrap();
        let (low, high) = of_pairs(known(&left), known(&right), |a, b| a / b);
        let exact = Comparison::of(&left, &right).ratio.unwrap().interval().unwrap();
        near(low, exact.low, 0.01);
        near(high, exact.high, 0.01);
    }

    /// Two t distributions of one degree each: the sum of two Cauchy distributions is one whose
    /// scale is the sum of theirs.
    #[test]
    fn two_cauchys_sum_up_to_one() {
        let known = Known::MeanOf { mean: 0.0, deviation: 2f64.sqrt(), n: 2 };
        let (low, high) = of_pairs(known, known, |a, b| a + b);
        near(high, 2.0 * 12.706, 0.06);
        near(low, -2.0 * 12.706, 0.06);
    }

    /// Of 2,000 simulated pairs of three runs each, the interval of the ratio holds the true one
    /// in at least 93.5 %; few runs make it wider than it need be (JCGM 101 takes the spread of
    /// each for itself), never narrower.
    #[test]
    fn the_interval_covers_the_true_ratio() {
        let mut random = Random::new(11);
        let (t_left, t_right) = (student_table(2, 5), student_table(2, 6));
        let mut held = 0;
        const TRIES: usize = 2_000;
        for _ in 0..TRIES {
            let mut three =
                |centre: f64| -> Vec<f64> { (0..3).map(|_| centre + random.normal()).collect() };
            let [left, right] = [three(60.0), three(40.0)].map(|v| Sample::of(&v).unwrap());
            let scale = |sample: &Sample| sample.standard_deviation() / 3f64.sqrt();
            let ratios = t_left
                .iter()
                .zip(&t_right)
                .map(|(a, b)| (left.mean + scale(&left) * a) / (right.mean + scale(&right) * b));
            let (low, high) = interval(ratios.collect());
            held += usize::from((low..=high).contains(&1.5));
        }
        let share = held as f64 / TRIES as f64;
        assert!((0.935..=0.995).contains(&share), "{share}");
    }

    fn student_table(freedom: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..4_000).map(|_| student(freedom, &mut random)).collect()
    }

    #[test]
    fn what_has_no_value_only_widens() {
        let plain: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(interval(plain.clone()), (25.0, 974.0));
        let mut some = plain.clone();
        some[500..510].fill(f64::NAN);
        let (low, high) = interval(some);
        assert!(low < 25.0 && high > 974.0, "{low} {high}");
        let mut many = plain;
        many[..100].fill(f64::NAN);
        assert_eq!(interval(many), (f64::NEG_INFINITY, f64::INFINITY));
        let open = interval(Known::Between(5.0, f64::INFINITY).draws(1));
        assert_eq!(open, (5.0, f64::INFINITY));
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let known = Known::mean_of(&[1.0, 2.0, 4.0]).unwrap();
        assert_eq!(known.draws(9), known.draws(9));
        assert_ne!(known.draws(9)[..5], known.draws(10)[..5]);
        assert_eq!(Known::mean_of(&[1.0]), None);
        assert_eq!(Known::Exactly(3.0).draws(1)[99_999], 3.0);
    }
}
