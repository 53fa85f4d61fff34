//! The search for one goal: which load to measure next, given all trials so far. First coarsely
//! with short trials, then with ever finer widths and longer ones; each stage begins with the
//! bounds of the stage before. The draft leaves the choice of loads to the implementer (section
//! 4.9.2); it affects only the time, not the meaning of the bounds.

use weigh_model::units::Nanos;

use crate::axis::{Axis, AxisKind, Step};
use crate::bounds::{Relevant, Target, Trials};
use crate::goal::Goal;

/// The stages to one goal.
#[derive(Clone, Debug)]
pub(crate) struct Pursuit {
    stages: Vec<Target>,
    at: usize,
    /// The bounds of the stage before.
    expected: Relevant,
    expansion: f64,
    /// Loads chosen by the forwarding rate, see [`Pursuit::aim`].
    aimed: Vec<Step>,
}

/// A load that a search for a goal wants to be measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub step: Step,
    pub duration: Nanos,
    /// The sum of the stage: searches that are still coarse come first.
    pub duration_sum: Nanos,
}

impl Pursuit {
    pub fn new(index: usize, goal: &Goal) -> Pursuit {
        let expected = Relevant::default();
        let stages = stages(index, goal);
        Pursuit { stages, at: 0, expected, expansion: goal.expansion, aimed: Vec::new() }
    }

    /// The goal itself, as the last stage.
    pub fn goal(&self) -> &Target {
        self.stages.last().expect("there is always the goal itself")
    }

    /// The expected bounds: each as the latest stage has it. An older bound that contradicts a
    /// newer one is dropped.
    pub fn so_far(&self, trials: &Trials) -> Relevant {
        let mut known = Relevant::default();
        for stage in self.stages[..=self.at].iter().rev() {
            let found = trials.relevant(stage);
            let lower = known.lower.or(found.lower);
            if known.lower.is_none() && lower.zip(known.upper).is_none_or(|(l, u)| l < u) {
                known.lower = lower;
            }
            let upper = known.upper.or(found.upper);
            if known.upper.is_none() && known.lower.zip(upper).is_none_or(|(l, u)| l < u) {
                known.upper = upper;
            }
        }
        known
    }

    /// The next load; `None` once the goal's bounds are as close as they can come.
    pub fn next(&mut self, axis: &Axis, trials: &Trials) -> Option<Wanted> {
        loop {
            let stage = self.stages[self.at];
            let found = trials.relevant(&stage);
            if !is_reached(axis, &found, stage.width) {
                let step = self.choose(axis, trials, &stage, found);
                let Target { trial_duration: duration, duration_sum, .. } = stage;
                return Some(Wanted { step, duration, duration_sum });
            }
            if self.at + 1 == self.stages.len() {
                return None;
            }
            self.at += 1;
            self.expected = found;
        }
    }

    fn choose(&mut self, axis: &Axis, trials: &Trials, stage: &Target, found: Relevant) -> Step {
        let width = log_width(stage.width);
        let likely = self.likely(found);
        match (likely.lower, likely.upper) {
            (None, None) => axis.first(),
            // Expected bounds are confirmed before one side depends on them.
            (Some(lower), None) if found.lower != Some(lower) => lower,
            (None, Some(upper)) if found.upper != Some(upper) => upper,
            (Some(lower), None) => self.beyond(axis, width, lower).min(axis.last()),
            (None, Some(upper)) => self.below(axis, width, upper).max(axis.first()),
            (Some(lower), Some(upper)) => {
                if !is_reached(axis, &likely, stage.width) {
                    return self.between(axis, trials, width, likely);
                }
                // The smaller load first: bounds found early are then less likely to be overturned
                // (the draft, section 5.3.4).
                if found.lower == Some(lower) { upper } else { lower }
            }
        }
    }

    /// The bounds found, or tighter ones of the stage before that this one has not refuted.
    /// Splitting the expected interval before its ends are confirmed saves one of them.
    fn likely(&self, found: Relevant) -> Relevant {
        let open = |step: &Step| found.encloses(*step);
        Relevant {
            lower: self.expected.lower.filter(open).or(found.lower),
            upper: self.expected.upper.filter(open).or(found.upper),
        }
    }

    /// A load between two bounds that are too far apart.
    fn between(&mut self, axis: &Axis, trials: &Trials, width: f64, likely: Relevant) -> Step {
        let (Some(lower), Some(upper)) = (likely.lower, likely.upper) else {
            unreachable!("there are two bounds")
        };
        let inside = |step: Step| lower < step && step < upper;
        let split = split(axis, width, lower, upper);
        // If an expected bound was refuted, the limit is probably close to it.
        let overtaken = self.expected.upper.is_some_and(|upper| upper <= lower);
        let undercut = self.expected.lower.is_some_and(|lower| upper <= lower);
        let (further, nearer) = (self.beyond(axis, width, lower), self.below(axis, width, upper));
        if overtaken && inside(further) && further < split {
            return further;
        }
        if undercut && inside(nearer) && nearer > split {
            return nearer;
        }
        self.aim(axis, trials, width, likely).unwrap_or(split)
    }

    /// A load above `lower`, which met the goal.
    fn beyond(&self, axis: &Axis, width: f64, lower: Step) -> Step {
        let origin = self.expected.upper.or(self.expected.lower).filter(|origin| *origin <= lower);
        let gone = origin.map(|origin| (lower as f64 / origin as f64).ln());
        axis.nearest(axis.load(lower) * self.stride(gone, width)).max(lower + 1)
    }

    /// A load below `upper`, which failed.
    fn below(&self, axis: &Axis, width: f64, upper: Step) -> Step {
        let origin = self.expected.lower.or(self.expected.upper).filter(|origin| *origin >= upper);
        let gone = origin.map(|origin| (origin as f64 / upper as f64).ln());
        axis.nearest(axis.load(upper) / self.stride(gone, width)).min(upper - 1)
    }

    /// The factor of the next step outwards; `gone` is the distance from the expected bound, in
    /// logarithms of load. The distance grows by the expansion each time; without an expectation
    /// the load doubles. It never more than doubles: an overload stays bounded.
    fn stride(&self, gone: Option<f64>, width: f64) -> f64 {
        match gone {
            None => 2.0,
            Some(gone) => (gone * (self.expansion - 1.0)).max(width).min(2f64.ln()).exp(),
        }
    }

    /// On an axis of rates, the rate that an overloaded target still forwards is a good guess at
    /// its limit: first just below it, then just above. The draft begins with the forwarding rate
    /// (load times forwarding ratio, section 4.5.7) at the largest load (section 1.1). At most
    /// [`AIMS_MAX`] times: a target that collapses under overload forwards less than it can, and
    /// then halving takes over.
    fn aim(&mut self, axis: &Axis, trials: &Trials, width: f64, found: Relevant) -> Option<Step> {
        let (lower, upper) = (found.lower?, found.upper?);
        if axis.kind() != AxisKind::Rate {
            return None;
        }
        let rate = axis.load(upper) * trials.forwarding_ratio(upper)?;
        let apart = (axis.load(upper) / axis.load(lower)).ln();
        if apart < AIM_WIDTHS_MIN * width || rate <= 0.0 {
            return None;
        }
        let above = axis.nearest(rate * (width / 2.0).exp());
        let step = [widths_below(axis, width, above, 1.0), above]
            .into_iter()
            .find(|step| lower < *step && *step < upper)?;
        if !self.aimed.contains(&step) {
            if self.aimed.len() >= AIMS_MAX {
                return None;
            }
            self.aimed.push(step);
        }
        Some(step)
    }
}

/// Whether bounds are as close as the goal asks, or as the axis allows.
pub(crate) fn is_reached(axis: &Axis, found: &Relevant, width: f64) -> bool {
    match (found.lower, found.upper) {
        (Some(lower), Some(upper)) => {
            upper - lower <= 1 || relative_width(axis.load(lower), axis.load(upper)) <= width
        }
        (None, Some(upper)) => upper == axis.first(),
        (Some(lower), None) => lower == axis.last(),
        (None, None) => false,
    }
}

/// The distance of two bounds as a share of the upper one.
pub(crate) fn relative_width(lower: f64, upper: f64) -> f64 {
    (upper - lower) / upper
}

/// A width as a difference of logarithms, in which widths add up.
fn log_width(width: f64) -> f64 {
    -(-width).ln_1p()
}

/// Where to split two bounds: below the upper one by the largest power of two of widths that fits.
/// That takes no more loads than halving, often fewer, and ends with bounds that are one width
/// apart and not closer: closer ones would cost trials that the goal does not need.
fn split(axis: &Axis, width: f64, lower: Step, upper: Step) -> Step {
    let widths = (upper as f64 / lower as f64).ln() / width;
    let power = ((widths - ROUNDING).log2().ceil() - 1.0).max(0.0);
    widths_below(axis, width, upper, power.exp2()).clamp(lower + 1, upper - 1)
}

/// This number of widths below a load, rounded so that it is never more.
fn widths_below(axis: &Axis, width: f64, upper: Step, widths: f64) -> Step {
    let exact = upper as f64 * (-width * widths).exp();
    ((exact - ROUNDING).ceil() as Step).clamp(axis.first(), axis.last())
}

/// The goal and the coarser stages before it, coarsest first. Sums grow geometrically from the
/// initial trial duration to the goal's sum; trials are as long as the sum, at most the final
/// trial duration; the width doubles with each stage back, in logarithms of load.
fn stages(index: usize, goal: &Goal) -> Vec<Target> {
    let last = Target {
        goal: index,
        trial_duration: goal.final_trial_duration,
        duration_sum: goal.duration_sum,
        exceed_ratio: goal.exceed_ratio,
        width: goal.width,
    };
    let shrink = goal.initial_trial_duration.as_secs_f64() / goal.duration_sum.as_secs_f64();
    let coarser = |back: u32| {
        let share = shrink.powf(f64::from(back) / f64::from(goal.coarser_stages));
        // Whole milliseconds, so that people can read them.
        let sum = Nanos::from_millis((goal.duration_sum.as_secs_f64() * share * 1e3).ceil() as u64);
        let duration_sum = sum.clamp(goal.initial_trial_duration, goal.duration_sum);
        let trial_duration = goal.final_trial_duration.min(duration_sum);
        let widths = log_width(goal.width) * f64::from(1u32 << back);
        let width = (-(-widths).exp_m1()).min(COARSEST_WIDTH);
        Target { trial_duration, duration_sum, width, ..last }
    };
    (1..=goal.coarser_stages).rev().map(coarser).chain([last]).collect()
}

/// Guesses by the forwarding rate in one pursuit.
const AIMS_MAX: usize = 3;

/// Bounds closer than this many widths need no guess.
const AIM_WIDTHS_MIN: f64 = 3.0;

/// Shares of a width or a step that rounding may cost.
const ROUNDING: f64 = 1e-9;

/// The first stage has found something once its bounds are a factor of two apart.
const COARSEST_WIDTH: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_lead_from_the_initial_trial_to_the_goal() {
        let seconds = |target: &Target| {
            (target.trial_duration.as_secs_f64(), target.duration_sum.as_secs_f64(), target.width)
        };
        let found: Vec<_> = stages(0, &Goal::rfc2544()).iter().map(seconds).collect();
        // The root of 60 and of 21, to the next millisecond.
        let middle = 7.746;
        let coarser = [1.0 - 0.995f64.powi(4), 1.0 - 0.995f64.powi(2)];
        let expected = [(1.0, 1.0, coarser[0]), (middle, middle, coarser[1]), (60.0, 60.0, 0.005)];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found.0 - expected.0).abs() < 1e-6 && (found.1 - expected.1).abs() < 1e-6);
            assert!((found.2 - expected.2).abs() < 1e-12, "{found:?}");
        }
        let quick: Vec<_> = stages(0, &Goal::quick()).iter().map(seconds).collect();
        assert_eq!((quick[1].0, quick[2]), (1.0, (1.0, 21.0, 0.005)));
        assert_eq!(quick[1].1, 4.583);
    }

    #[test]
    fn steps_outside_of_what_was_expected_grow() {
        let axis = Axis::new(AxisKind::Rate, 1.0, 1e6, 1.0).unwrap();
        let mut pursuit = Pursuit::new(0, &Goal::quick());
        assert_eq!(pursuit.beyond(&axis, 0.005, 1000), 2000);
        assert_eq!(pursuit.below(&axis, 0.005, 1000), 500);
        pursuit.expected = Relevant { lower: Some(990), upper: Some(1000) };
        let mut lower = 1000;
        let mut steps = Vec::new();
        for _ in 0..5 {
            let next = pursuit.beyond(&axis, 0.01, lower);
            steps.push(next - lower);
            lower = next;
        }
        assert!(steps.windows(2).all(|pair| pair[0] <= pair[1]), "{steps:?}");
        assert!(steps[0] == 10 && steps[4] > 50, "{steps:?}");
    }
}
