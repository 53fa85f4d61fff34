//! Step-and-hold: a load is raised in steps and held at each. The result is a curve, never an
//! average over the ramp. Where the output no longer follows the load there is a plateau; it is a
//! description, not a capacity, because loss and latency are not considered.

use serde::Serialize;
use weigh_model::numbers::exact;
use weigh_stats::segments::borders;
use weigh_stats::{Estimate, estimate::Sample};

/// One step of the load, held for a while.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hold {
    /// Offered messages per second; above 0.
    pub offered: f64,
    /// Messages per second sent.
    pub input: Option<f64>,
    /// Messages per second received, one value per window of the hold, without the settling time;
    /// at least two.
    pub output: Vec<f64>,
    /// The 99 % quantile of response time, nanoseconds.
    pub response_time_ns_p99: Option<f64>,
    /// Share of errors.
    pub errors_ratio: Option<f64>,
    /// Processor use of the target, percent.
    pub target_cpu_percent: Option<f64>,
}

impl Hold {
    /// A hold with output only.
    pub fn of(offered: f64, output: Vec<f64>) -> Hold {
        Hold {
            offered,
            input: None,
            output,
            response_time_ns_p99: None,
            errors_ratio: None,
            target_cpu_percent: None,
        }
    }
}

/// The part where the output no longer follows the load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plateau {
    /// The index of the first hold on it.
    pub first: usize,
    /// The output bends between these two offered loads.
    pub begins: (f64, f64),
    /// The mean output on it, messages per second.
    pub level: f64,
    /// Its interval at 95 % (Student's t over holds), with at least three.
    pub level_between: Option<(f64, f64)>,
    /// Growth of the output with the load, as a ratio of relative changes: 0 is flat.
    pub elasticity: f64,
}

/// Why there is no plateau.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoPlateau {
    /// Too few holds or too few windows in one.
    #[error("{0}: hold at least {HOLDS_MIN} loads for at least two windows each")]
    TooLittle(String),
    /// The loads do not rise.
    #[error("hold {0} does not offer more than the one before it: order holds by load, once each")]
    NotRising(usize),
    /// The output still follows the load at its end.
    #[error(
        "the output still grows at the largest load, {} (by {elasticity:.2} of the load's \
         growth): offer more to find a plateau",
        exact(*.largest)
    )]
    StillGrowing {
        /// The largest offered load.
        largest: f64,
        /// Growth of the output over growth of the load at the end.
        elasticity: f64,
    },
    /// The output falls with the load at its end.
    #[error(
        "the output falls beyond a load of {} (by {elasticity:.2} of the load's growth): a \
         peak and a collapse, not a plateau",
        exact(*.after)
    )]
    Falls {
        /// The last load before it falls.
        after: f64,
        /// Growth of the output over growth of the load at the end.
        elasticity: f64,
    },
}

/// Finds the plateau at the end of a curve.
///
/// Between successive holds the output grows by some share of the load's own growth: the
/// elasticity, d ln(out) / d ln(offered). It is 1 while the target keeps up and 0 once it is
/// full, so the bend of the curve is a change of level in the series of elasticities, which
/// [`weigh_stats::segments`] finds. The penalty for a border is 2 ln(n) variances (Y.-C. Yao,
/// "Estimating the Number of Change-Points via Schwarz' Criterion", 1988), the variance being the
/// largest that the windows within holds give to any step. The end of the curve is a plateau as
/// far as the mean elasticity of its segments is less than 0.25 either way, over at least two
/// steps.
///
/// # Errors
/// If there is no plateau, or there are too few holds to find one.
pub fn plateau(holds: &[Hold]) -> Result<Plateau, NoPlateau> {
    let means = means(holds)?;
    let elasticities: Vec<f64> = (1..holds.len())
        .map(|i| (means[i].mean / means[i - 1].mean).ln() / growth(holds, i))
        .collect();
    let variance = variance(holds, &means);
    let n = elasticities.len() as f64;
    let penalty = (2.0 * n.ln() * variance).max(PENALTY_MIN);
    let cuts = borders(&elasticities, penalty, 1);
    let starts: Vec<usize> = std::iter::once(0).chain(cuts).collect();
    let ends = starts[1..].iter().copied().chain([elasticities.len()]);
    let segments: Vec<(usize, f64)> = starts
        .iter()
        .zip(ends)
        .map(|(start, end)| (*start, mean(&elasticities[*start..end])))
        .collect();
    // Two neighbouring segments may both be flat: noise has split them.
    let flat = segments.iter().rev().take_while(|(_, level)| level.abs() < ELASTICITY_MAX);
    let first = flat.last().map_or(elasticities.len(), |(start, _)| *start);
    let level = segments[segments.len() - 1].1;
    if level <= -ELASTICITY_MAX {
        let falling = segments.iter().rev().take_while(|(_, level)| *level <= -ELASTICITY_MAX);
        let start = falling.last().map_or(0, |(start, _)| *start);
        let elasticity = mean(&elasticities[start..]);
        return Err(NoPlateau::Falls { after: holds[start].offered, elasticity });
    }
    // A single flat step at the end may be chance.
    if first + 2 > elasticities.len() {
        let largest = holds[holds.len() - 1].offered;
        return Err(NoPlateau::StillGrowing { largest, elasticity: level });
    }
    // The first of its holds may still be on the slope.
    let on_it: Vec<f64> = means[first + 1..].iter().map(|hold| hold.mean).collect();
    let level = Estimate::of_mean(&on_it).expect("means of finite values are finite");
    Ok(Plateau {
        first: first + 1,
        begins: (holds[first.saturating_sub(1)].offered, holds[first + 1].offered),
        level: level.value,
        level_between: level.low.zip(level.high),
        elasticity: mean(&elasticities[first..]),
    })
}

fn means(holds: &[Hold]) -> Result<Vec<Sample>, NoPlateau> {
    if holds.len() < HOLDS_MIN {
        return Err(NoPlateau::TooLittle(format!("there are {} holds", holds.len())));
    }
    let rises = |i: &usize| holds[*i].offered > holds[i - 1].offered;
    if let Some(falling) = (1..holds.len()).find(|i| !rises(i)) {
        return Err(NoPlateau::NotRising(falling));
    }
    let sample = |(index, hold): (usize, &Hold)| {
        Sample::of(&hold.output)
            .filter(|sample| sample.n >= 2 && sample.mean > 0.0 && hold.offered > 0.0)
            .ok_or_else(|| {
                NoPlateau::TooLittle(format!("hold {index} does not have two windows with output"))
            })
    };
    holds.iter().enumerate().map(sample).collect()
}

fn growth(holds: &[Hold], i: usize) -> f64 {
    (holds[i].offered / holds[i - 1].offered).ln()
}

/// The largest variance of an elasticity that follows from the scatter of windows within holds:
/// short steps between high loads scatter most.
fn variance(holds: &[Hold], means: &[Sample]) -> f64 {
    let relative = |sample: &Sample| sample.variance_of_mean() / sample.mean.powi(2);
    (1..holds.len())
        .map(|i| (relative(&means[i]) + relative(&means[i - 1])) / growth(holds, i).powi(2))
        .fold(0.0, f64::max)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Fewer steps cannot show a change of level.
const HOLDS_MIN: usize = 5;

/// Output that grows by less than a quarter of the load's growth does not follow it.
const ELASTICITY_MAX: f64 = 0.25;

/// A change of elasticity by 0.3 over one step justifies a border even without noise.
const PENALTY_MIN: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_stats::random::Random;

    /// A target that keeps up until `capacity` and then gives `after` of what is offered beyond.
    fn curve(capacity: f64, after: f64, noise: f64, seed: u64) -> Vec<Hold> {
        let mut random = Random::new(seed);
        let hold = |step: u32| {
            let offered = 500.0 * f64::from(step);
            let mean = offered.min(capacity) + after * (offered - capacity).max(0.0);
            let window = |_| mean * (1.0 + noise * random.normal());
            Hold::of(offered, (0..10).map(window).collect())
        };
        (1..=14).map(hold).collect()
    }

    #[test]
    fn the_plateau_is_where_it_is_in_20_of_20_at_each_noise() {
        for noise in [0.0, 0.01, 0.03] {
            for seed in 0..20 {
                let found = plateau(&curve(3100.0, 0.0, noise, seed)).unwrap();
                let (low, high) = found.begins;
                assert!(low <= 3100.0 && 3100.0 <= high && high - low <= 1000.0, "{found:?}");
                // Four standard errors of the mean of 80 windows, or of more.
                let error = 4.0 * noise / 80f64.sqrt() + 1e-9;
                assert!((found.level / 3100.0 - 1.0).abs() < error, "{found:?}");
                assert!(found.first >= 6 && found.elasticity.abs() < 0.1, "{found:?}");
            }
        }
    }

    #[test]
    fn a_curve_that_grows_or_collapses_has_no_plateau() {
        for seed in 0..20 {
            let growing = plateau(&curve(1e9, 0.0, 0.02, seed)).unwrap_err();
            assert!(matches!(growing, NoPlateau::StillGrowing { largest: 7000.0, .. }));
            let slower = plateau(&curve(3100.0, 0.6, 0.02, seed)).unwrap_err();
            assert!(matches!(slower, NoPlateau::StillGrowing { .. }), "{slower}");
            let collapsing = plateau(&curve(3100.0, -0.5, 0.02, seed)).unwrap_err();
            let NoPlateau::Falls { after, .. } = collapsing else { panic!("{collapsing}") };
            assert!((2500.0..=4500.0).contains(&after), "{after}");
        }
    }

    #[test]
    fn a_ramp_that_is_no_curve_is_refused_with_the_fix() {
        let mut holds = curve(3100.0, 0.0, 0.0, 1);
        let few = plateau(&holds[..4]).unwrap_err().to_string();
        assert!(few.contains("hold at least 5 loads"), "{few}");
        holds.swap(3, 4);
        assert_eq!(plateau(&holds), Err(NoPlateau::NotRising(4)));
        holds.swap(3, 4);
        holds[2].output.truncate(1);
        assert!(plateau(&holds).unwrap_err().to_string().contains("hold 2"));
    }
}
