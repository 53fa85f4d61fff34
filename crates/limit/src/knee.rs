//! The knee of a curve by Kneedle (V. Satopää, J. Albrecht, D. Irwin and B. Raghavan, "Finding a
//! 'Kneedle' in a Haystack: Detecting Knee Points in System Behavior", ICDCS Workshops 2011): where
//! the curve is farthest from the straight line between its ends. It describes the shape of the
//! curve, with an interval. It is never a capacity, because it depends on the range of the
//! measurement.

use weigh_stats::bootstrap::Bootstrap;
use weigh_stats::quantile::interpolated;
use weigh_stats::random::Random;
use weigh_stats::{CONFIDENCE, Interval, Method};

/// Which way a curve bends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It rises, ever less steeply: throughput against load.
    Flattening,
    /// It rises, ever more steeply: latency against load.
    Steepening,
}

/// The paper's sensitivity S: how many mean steps the distance must fall back after its maximum
/// for it to be a knee. It recommends 1 for curves that are known from end to end (section IV).
pub const SENSITIVITY: f64 = 1.0;

/// The knee of points with rising x; `None` if there is none, if there are fewer than three
/// points, if x does not rise or a value is not finite. Points are taken as they are: the paper's
/// smoothing is for raw samples, and means over windows are smoothed already.
pub fn knee(points: &[(f64, f64)], shape: Shape, sensitivity: f64) -> Option<f64> {
    let finite = points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
    if points.len() < 3 || !finite || points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        return None;
    }
    let differences = differences(points, shape)?;
    let at = knee_index(&differences, sensitivity)?;
    let index = match shape {
        Shape::Flattening => at,
        Shape::Steepening => points.len() - 1 - at,
    };
    Some(points[index].0)
}

/// Section III: both axes to the unit square, then how far y lies above x there. A steepening
/// curve is turned by half a circle first, which makes a flattening one of it.
fn differences(points: &[(f64, f64)], shape: Shape) -> Option<Vec<(f64, f64)>> {
    let span = |values: &dyn Fn(&(f64, f64)) -> f64| {
        let low = points.iter().map(values).fold(f64::INFINITY, f64::min);
        let high = points.iter().map(values).fold(f64::NEG_INFINITY, f64::max);
        (high > low).then_some((low, high - low))
    };
    let (x_low, x_span) = span(&|point| point.0)?;
    let (y_low, y_span) = span(&|point| point.1)?;
    let unit = |(x, y): &(f64, f64)| ((x - x_low) / x_span, (y - y_low) / y_span);
    let square: Vec<(f64, f64)> = match shape {
        Shape::Flattening => points.iter().map(unit).collect(),
        Shape::Steepening => {
            let turned = |point| {
                let (x, y) = unit(point);
                (1.0 - x, 1.0 - y)
            };
            points.iter().rev().map(turned).collect()
        }
    };
    Some(square.into_iter().map(|(x, y)| (x, y - x)).collect())
}

/// The highest maximum, if the difference falls below its threshold afterwards: the maximum minus
/// the sensitivity times the mean step in x. The paper lists every local maximum that does so, and
/// gives one up at the next local minimum, which needs smoothed points; a curve described by one
/// knee needs the highest, and smaller oscillations do not matter.
fn knee_index(differences: &[(f64, f64)], sensitivity: f64) -> Option<usize> {
    let last = differences.len() - 1;
    let step = (differences[last].0 - differences[0].0) / last as f64;
    let y = |index: usize| differences[index].1;
    // On a flat top the first point counts.
    let top = (1..last).reduce(|best, index| if y(index) > y(best) { index } else { best })?;
    let rises = y(top) > y(0);
    let threshold = y(top) - sensitivity * step;
    (rises && (top..=last).any(|index| y(index) < threshold)).then_some(top)
}

/// A knee with its certainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// The load at the knee: one of those measured.
    pub at: f64,
    /// The 95 % interval of the load.
    pub interval: Interval,
    /// The share of resampled curves that have a knee.
    pub share: f64,
}

/// Why there is no knee.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoKnee {
    /// The curve has none.
    #[error("the curve has no knee in this range: measure at more loads")]
    None,
    /// The knee may be due to chance.
    #[error(
        "only {:.0} % of the resampled curves have a knee: repeat each load more often",
        share * 100.0
    )]
    Unsure {
        /// The share that has one.
        share: f64,
    },
    /// A load was measured once only.
    #[error("the load {load} has {values} values: measure each at least {VALUES_MIN} times")]
    TooFew {
        /// The load.
        load: f64,
        /// Number of measurements.
        values: usize,
    },
}

/// The knee of a curve of means, each over the values measured at one load, with an interval from
/// resampling the values of each load (percentiles; B. Efron, 1979). It is shown only if at least
/// 95 % of the resampled curves have one.
///
/// # Errors
/// If there is no knee, or a load has too few values.
pub fn describe(
    measured: &[(f64, Vec<f64>)],
    shape: Shape,
    bootstrap: Bootstrap,
) -> Result<Knee, NoKnee> {
    if let Some((load, values)) = measured.iter().find(|(_, values)| values.len() < VALUES_MIN) {
        return Err(NoKnee::TooFew { load: *load, values: values.len() });
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let means: Vec<(f64, f64)> =
        measured.iter().map(|(load, values)| (*load, mean(values))).collect();
    let at = knee(&means, shape, SENSITIVITY).ok_or(NoKnee::None)?;
    let mut random = Random::new(bootstrap.seed);
    let mut resampled = |values: &Vec<f64>| {
        let drawn = (0..values.len()).map(|_| values[random.index(values.len())]);
        drawn.sum::<f64>() / values.len() as f64
    };
    let resamples = bootstrap.resamples.max(1);
    let mut knees: Vec<f64> = (0..resamples)
        .filter_map(|_| {
            let curve: Vec<(f64, f64)> =
                measured.iter().map(|(load, values)| (*load, resampled(values))).collect();
            knee(&curve, shape, SENSITIVITY)
        })
        .collect();
    let share = knees.len() as f64 / resamples as f64;
    if share < CONFIDENCE {
        return Err(NoKnee::Unsure { share });
    }
    knees.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let interval = Interval {
        low: interpolated(&knees, tail),
        high: interpolated(&knees, 1.0 - tail),
        method: Method::PercentileBootstrap,
    };
    Ok(Knee { at, interval, share })
}

/// Two values per load do not show its spread well enough for resampling.
const VALUES_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 2 of the paper: y = 5 - 1 / (x + 0.1) at ten points; its knee is at x = 0.22.
    #[test]
    fn figure_2_of_the_paper_has_its_knee() {
        let points: Vec<(f64, f64)> =
            (0..10).map(|i| f64::from(i) / 9.0).map(|x| (x, 5.0 - 1.0 / (x + 0.1))).collect();
        let found = knee(&points, Shape::Flattening, SENSITIVITY).unwrap();
        assert!((found - 0.222).abs() < 0.001, "{found}");
        // The same curve turned by half a circle has it at the turned place.
        let turned: Vec<(f64, f64)> =
            points.iter().rev().map(|(x, y)| (1.0 - x, 10.0 - y)).collect();
        let found = knee(&turned, Shape::Steepening, SENSITIVITY).unwrap();
        assert!((found - (1.0 - 0.222)).abs() < 0.001, "{found}");
    }

    /// The distribution function of normal values with mean 50 and deviation 10, the paper's
    /// example of noisy data: it lies farthest from the line between its ends where its slope, the
    /// density, is 1 over the range.
    #[test]
    fn the_knee_of_a_normal_distribution_is_where_its_density_says() {
        let mut off = 0.0;
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut values: Vec<f64> = (0..10_000).map(|_| 50.0 + 10.0 * random.normal()).collect();
            values.sort_unstable_by(f64::total_cmp);
            let points: Vec<(f64, f64)> =
                values.iter().enumerate().map(|(i, x)| (*x, i as f64 / 10_000.0)).collect();
            let range = values[9999] - values[0];
            let expected =
                50.0 + 10.0 * (2.0 * (range / (10.0 * std::f64::consts::TAU.sqrt())).ln()).sqrt();
            // Raw samples need a higher sensitivity in place of the paper's smoothing.
            let found = knee(&points, Shape::Flattening, 1000.0).unwrap();
            assert!((found / expected - 1.0).abs() < 0.08, "{found} {expected}");
            off += (found / expected - 1.0) / 20.0;
        }
        assert!(off.abs() < 0.02, "{off}");
    }

    /// Curves whose knee is known because they are made of two straight lines.
    #[test]
    fn known_knees_are_found_within_5_percent() {
        for at in [1000.0, 3000.0, 4200.0] {
            let loads = || (1..=60).map(|i| 100.0 * f64::from(i));
            let throughput: Vec<(f64, f64)> = loads().map(|x: f64| (x, x.min(at))).collect();
            let latency: Vec<(f64, f64)> =
                loads().map(|x| (x, 1.0 + (x - at).max(0.0) / 10.0)).collect();
            for (curve, shape) in [(throughput, Shape::Flattening), (latency, Shape::Steepening)] {
                let found = knee(&curve, shape, SENSITIVITY).unwrap();
                assert!((found / at - 1.0).abs() < 0.05, "{found} {at}");
            }
        }
    }

    #[test]
    fn a_straight_line_and_a_single_value_have_no_knee() {
        let line: Vec<(f64, f64)> = (1..20).map(|i| (f64::from(i), f64::from(i) * 3.0)).collect();
        assert_eq!(knee(&line, Shape::Flattening, SENSITIVITY), None);
        assert_eq!(knee(&[(1.0, 1.0); 5], Shape::Flattening, SENSITIVITY), None);
        assert_eq!(knee(&line[..2], Shape::Flattening, SENSITIVITY), None);
        assert_eq!(knee(&[(1.0, 1.0), (2.0, f64::NAN), (3.0, 1.0)], Shape::Flattening, 1.0), None);
    }

    #[test]
    fn a_knee_has_an_interval_and_chance_has_none() {
        let bootstrap = Bootstrap { resamples: 1000, seed: 1 };
        let mut random = Random::new(4);
        let mut measured = |level: &dyn Fn(f64) -> f64, noise: f64| -> Vec<(f64, Vec<f64>)> {
            (1..=15)
                .map(|i| 400.0 * f64::from(i))
                .map(|x| (x, (0..8).map(|_| level(x) * (1.0 + noise * random.normal())).collect()))
                .collect()
        };
        let flat = measured(&|x| x.min(3000.0), 0.03);
        let found = describe(&flat, Shape::Flattening, bootstrap).unwrap();
        assert!(found.interval.low <= 3000.0 && 3000.0 <= found.interval.high + 400.0, "{found:?}");
        assert_eq!(found, describe(&flat, Shape::Flattening, bootstrap).unwrap());
        let noise = measured(&|x| x, 0.02);
        assert!(describe(&noise, Shape::Flattening, bootstrap).is_err());
        let once = [(1.0, vec![1.0]), (2.0, vec![2.0])];
        let told = describe(&once, Shape::Flattening, bootstrap).unwrap_err().to_string();
        assert!(told.contains("measure each at least 3 times"), "{told}");
    }
}
