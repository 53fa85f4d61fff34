//! State of a search that has not ended: the largest load that passed, the smallest that failed
//! above it, and the number of trials until the answer is proven.

use serde::Serialize;
use weigh_model::units::Nanos;

use crate::axis::Step;
use crate::bounds::{Relevant, Trials};

/// What is left of a search, if the target continues to behave as it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Remaining {
    /// Number of trials.
    pub trials: usize,
    /// Their time, including what trials have taken beyond their duration so far.
    pub time: Nanos,
}

/// Where the limit probably is: by the stages, or else by single trials.
pub(crate) fn best(so_far: Relevant, trials: &Trials, goal: usize) -> Relevant {
    let mut best = so_far;
    if best.lower.is_none() {
        let below = |step: &Step| best.upper.is_none_or(|upper| *step < upper);
        let met = trials.steps().filter(below).filter(|step| trials.mostly_met(*step, goal));
        best.lower = met.last();
    }
    if best.upper.is_none() {
        let above = |step: &Step| best.lower.is_none_or(|lower| lower < *step);
        let mut missed = trials.steps().filter(above);
        best.upper = missed.find(|step| !trials.mostly_met(*step, goal));
    }
    best
}

/// A load that may be the limit: between what passed and what failed, or a step beyond the known
/// one.
pub(crate) fn guess(best: Relevant, first: Step, last: Step) -> f64 {
    let mean = |low: Step, high: Step| (low as f64 * high as f64).sqrt();
    match (best.lower, best.upper) {
        (Some(lower), Some(upper)) => mean(lower, upper),
        (Some(lower), None) if lower >= last => last as f64,
        (Some(lower), None) => 1.5 * lower as f64,
        (None, Some(upper)) => 0.75 * upper as f64,
        (None, None) => mean(first, last),
    }
}

/// Maximum number of trials that are simulated.
pub(crate) const SIMULATED_MAX: usize = 1_000;
