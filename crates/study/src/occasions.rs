//! Combines the values of several runs of a study (JCGM 200, 2.25, reproducibility
//! conditions; ISO 5725-2).
//!
//! Repetitions within a run share its boot, its minutes and its machine: their interval says how
//! far one run repeats itself, and not how far another run on another day would be from it. With
//! estimates e_1 .. e_m of m runs, and draws of what is known of each within its run:
//!
//! - One run: e_1, and the interval of the run, [`BETWEEN_RUNS`] times as far from e_1.
//! - Two or three: the mean, and the hull of two intervals: that of the mean of the draws, each
//!   [`BETWEEN_RUNS`] times as far from its e_k; and mean ± t(3) s / sqrt(m).
//! - Four or more: the mean, and the hull of that of the mean of the draws, and
//!   mean ± t(m - 1) s / sqrt(m).
//!
//! s is the standard deviation of the e_k, t(f) the two-sided 95 % quantile of Student's t with f
//! degrees of freedom. Two runs alone would have one degree, and t(1) = 12.7 leaves everything
//! open; that runs differ by at most about [`BETWEEN_RUNS`] half widths is known from many figures,
//! which stands for the missing degrees. The mean has no weights: where runs differ by more than
//! their intervals, the longer one is not closer to the truth.
//!
//! What is exact within a run (counts of a ledger) stays exact where all runs agree, and has the
//! second interval alone where they do not. What is only known to lie between two bounds (searches,
//! places on an axis) is no less unknown after several runs: there the first interval is the hull
//! of the runs' own, not that of their mean; the bounds of a search are moved apart in a single run
//! only.

use weigh_stats::estimate::{Sample, t_quantile};
use weigh_stats::propagation::interval;

/// How much wider than the interval of one run that of its value is.
///
/// Measured: the two sets of recordings of all five studies that were committed on 2026-11-21
/// (commit ef69c04) and 2026-11-22 (d113033) have 843 valid uncertain figures in common of those
/// metrics that the claims of their own study named then. The distance of the two estimates over
/// the root sum of squares of their half widths, which is at most 1 in 95 % of cases where nothing
/// but repetition varies, is below 0.23 in half of them, below 1.66 in 95 % and below 2 in 96.7 %.
/// Of the 2,969 figures of metrics that any claim names today 95 % are below 1.14 and 98.0 % below
/// 2, of all 13,785 figures 95 % below 1.13. Three searches were in both: 0.76, 1.08, 1.55. One
/// machine, so that it is a lower bound for several.
/// `cargo run -p weigh-study --example between_runs -- RUN RUN` measures it anew.
pub const BETWEEN_RUNS: f64 = 2.0;

/// From this number of runs on, their own spread shows how far runs are apart.
pub const RUNS_MANY: usize = 4;

/// Factor by which intervals are wider than within a run, for each number of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Widening {
    /// Of figures with repetitions.
    pub repeated: f64,
    /// Of the bounds of searches.
    pub bounds: f64,
}

impl Widening {
    /// For one run, for two or three, for four or more.
    pub const ALL: [Widening; 3] = [
        Widening { repeated: BETWEEN_RUNS, bounds: BETWEEN_RUNS },
        Widening { repeated: BETWEEN_RUNS, bounds: 1.0 },
        Widening { repeated: 1.0, bounds: 1.0 },
    ];

    /// Index in [`Widening::ALL`] for this number of runs.
    pub fn index(runs: usize) -> usize {
        match runs {
            0 | 1 => 0,
            _ if runs < RUNS_MANY => 1,
            _ => 2,
        }
    }
}

/// A draw moved away from the estimate by this factor; an infinite one stays where it is.
pub fn widened(draw: f64, estimate: f64, factor: f64) -> f64 {
    if factor == 1.0 || !estimate.is_finite() || !draw.is_finite() {
        return draw;
    }
    estimate + factor * (draw - estimate)
}

/// What one run says of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct OneRun {
    /// Its estimate; may be infinite, and is not a number where there is none.
    pub estimate: f64,
    /// Draws from what is known of it, widened as [`Widening`] says; of all runs as many. `None`
    /// where it is exact.
    pub draws: Option<Vec<f64>>,
}

/// What several runs say of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Together {
    /// The mean of their estimates.
    pub estimate: f64,
    /// Lower end of the 95 % interval; that of an exact value is the estimate.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

impl Together {
    /// The same estimate, with an interval that holds the other one's too.
    pub fn or_wider(self, other: Together) -> Together {
        let (low, high) = (self.low.min(other.low), self.high.max(other.high));
        Together { low, high, ..self }
    }
}

/// What these runs say together, by the table of this module. `is_bounded` where the value is only
/// known to lie between bounds.
///
/// # Panics
/// If there is no run, or if two have different numbers of draws.
pub fn together(runs: Vec<OneRun>, is_bounded: bool) -> Together {
    let estimates: Vec<f64> = runs.iter().map(|run| run.estimate).collect();
    let plain = || estimates.iter().sum::<f64>() / estimates.len() as f64;
    // The mean of equal estimates is that estimate, to the last digit.
    let estimate = Sample::of(&estimates).map_or_else(plain, |sample| sample.mean);
    if estimate.is_nan() {
        return Together { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    let (low, high) = match is_bounded || estimate.is_infinite() {
        true => hull(runs.into_iter().map(own)),
        false if runs.iter().all(|run| run.draws.is_none()) => (estimate, estimate),
        false => interval_of_mean(&runs),
    };
    let half = between(&estimates);
    let spread = if half > 0.0 { (estimate - half, estimate + half) } else { (low, high) };
    let (low, high) = hull([(low, high), spread].into_iter());
    Together { estimate, low, high }
}

/// The half width that the estimates of several runs demand; 0 where they are equal, where one is
/// infinite, and for one run.
fn between(estimates: &[f64]) -> f64 {
    let sample = Sample::of(estimates).filter(|sample| sample.n > 1);
    sample.map_or(0.0, |sample| {
        let freedom = (sample.n - 1).max(RUNS_MANY - 1) as f64;
        t_quantile(freedom) * sample.variance_of_mean().sqrt()
    })
}

fn own(run: OneRun) -> (f64, f64) {
    run.draws.map_or((run.estimate, run.estimate), interval)
}

/// The interval of the mean of the runs' draws, of which one has some: those of different runs are
/// independent.
fn interval_of_mean(runs: &[OneRun]) -> (f64, f64) {
    let exact: f64 = runs.iter().filter(|run| run.draws.is_none()).map(|run| run.estimate).sum();
    let uncertain: Vec<&Vec<f64>> = runs.iter().filter_map(|run| run.draws.as_ref()).collect();
    let count = runs.len() as f64;
    let number = uncertain[0].len();
    assert!(uncertain.iter().all(|draws| draws.len() == number), "runs have as many draws");
    let mean =
        |draw: usize| (exact + uncertain.iter().map(|draws| draws[draw]).sum::<f64>()) / count;
    interval((0..number).map(mean).collect())
}

fn hull(all: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| {
        (low.min(one.0), high.max(one.1))
    })
}
