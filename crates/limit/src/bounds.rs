//! All trials so far by load, and the relevant bounds that follow from them (the draft, sections
//! 4.8.1 and 4.8.2).

use std::collections::BTreeMap;

use weigh_model::units::Nanos;

use crate::axis::Step;
use crate::classification::{DurationSums, FullLength, Standing, classify, conditional_throughput};

/// Requirements that loads are compared with: a goal, or a coarser stage before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Target {
    /// The goal, by its index, that decides which trials count as high-loss.
    pub goal: usize,
    /// Trials shorter than this are short.
    pub trial_duration: Nanos,
    /// Total time of full-length trials that decides a load.
    pub duration_sum: Nanos,
    /// The share of high loss that a lower bound may have.
    pub exceed_ratio: f64,
    /// How close the bounds must come, as a share of the upper one.
    pub width: f64,
}

/// A trial as classification needs it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    pub duration: Nanos,
    pub loss_ratio: f64,
    pub has_died: bool,
    /// By goal.
    pub is_high_loss: Vec<bool>,
}

/// Trials by load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trials {
    by_step: BTreeMap<Step, Vec<Measured>>,
}

/// The two loads around the limit, as far as known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relevant {
    /// The largest lower bound below the upper one; without an upper one the largest of all, which
    /// the draft calls an effective lower bound only (section 4.8.4).
    pub lower: Option<Step>,
    /// The smallest upper bound.
    pub upper: Option<Step>,
}

impl Relevant {
    /// True for loads that would tighten the bounds.
    pub fn encloses(&self, step: Step) -> bool {
        self.lower.is_none_or(|lower| lower < step) && self.upper.is_none_or(|upper| step < upper)
    }
}

impl Trials {
    pub fn add(&mut self, step: Step, measured: Measured) {
        self.by_step.entry(step).or_default().push(measured);
    }

    pub fn at(&self, step: Step) -> &[Measured] {
        self.by_step.get(&step).map_or(&[], Vec::as_slice)
    }

    /// All loads with a trial, ascending.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.by_step.keys().copied()
    }

    /// True if trials that met the goal took more of the time at this load than others.
    pub fn mostly_met(&self, step: Step, goal: usize) -> bool {
        let trials = self.at(step);
        let time = |is_high_loss: bool| -> u64 {
            let own = trials.iter().filter(|trial| trial.is_high_loss[goal] == is_high_loss);
            own.map(|trial| trial.duration.0).sum()
        };
        time(false) > time(true) && !trials.iter().any(|trial| trial.has_died)
    }

    pub fn standing(&self, step: Step, target: &Target) -> Standing {
        let mut sums = DurationSums::default();
        for trial in self.at(step) {
            if trial.has_died {
                return Standing::Upper;
            }
            let is_full_length = trial.duration >= target.trial_duration;
            sums.add(trial.duration, is_full_length, trial.is_high_loss[target.goal]);
        }
        classify(&sums, target.duration_sum, target.exceed_ratio).standing
    }

    pub fn relevant(&self, target: &Target) -> Relevant {
        let mut found = Relevant::default();
        for step in self.by_step.keys() {
            match self.standing(*step, target) {
                Standing::Lower => found.lower = Some(*step),
                // Results above the smallest upper bound are taken for chance.
                Standing::Upper => {
                    found.upper = Some(*step);
                    return found;
                }
                Standing::Undecided => {}
            }
        }
        found
    }

    /// The share of messages that arrived in all trials at a load, each weighted by its duration;
    /// `None` without any.
    pub fn forwarding_ratio(&self, step: Step) -> Option<f64> {
        let trials = self.at(step);
        let time: f64 = trials.iter().map(|trial| trial.duration.as_secs_f64()).sum();
        let arrived = |trial: &Measured| (1.0 - trial.loss_ratio) * trial.duration.as_secs_f64();
        (time > 0.0).then(|| trials.iter().map(arrived).sum::<f64>() / time)
    }

    pub fn conditional_throughput(&self, step: Step, load: f64, target: &Target) -> Option<f64> {
        let is_full_length = |trial: &&Measured| trial.duration >= target.trial_duration;
        let full_length = |trial: &Measured| FullLength {
            is_high_loss: trial.is_high_loss[target.goal],
            loss_ratio: trial.loss_ratio,
            duration: trial.duration,
        };
        let trials = self.at(step).iter().filter(is_full_length).map(full_length).collect();
        conditional_throughput(load, trials, target.duration_sum, target.exceed_ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target {
        goal: 0,
        trial_duration: Nanos::from_secs(1),
        duration_sum: Nanos::from_secs(1),
        exceed_ratio: 0.0,
        width: 0.01,
    };

    fn measured(is_high_loss: bool, has_died: bool) -> Measured {
        Measured {
            duration: Nanos::from_secs(1),
            loss_ratio: 0.0,
            has_died,
            is_high_loss: vec![is_high_loss],
        }
    }

    /// Loss inversion (the draft, section 5.3.2): the larger lower bound is taken for chance.
    #[test]
    fn the_smallest_upper_bound_counts_and_what_is_above_it_does_not() {
        let mut trials = Trials::default();
        for (step, is_high_loss) in [(10, false), (20, false), (30, true), (40, false), (50, true)]
        {
            trials.add(step, measured(is_high_loss, false));
        }
        assert_eq!(trials.relevant(&TARGET), Relevant { lower: Some(20), upper: Some(30) });
    }

    #[test]
    fn a_load_that_killed_the_target_is_an_upper_bound_whatever_else_was_seen_there() {
        let mut trials = Trials::default();
        (0..20).for_each(|_| trials.add(10, measured(false, false)));
        trials.add(10, measured(true, true));
        let tolerant = Target { exceed_ratio: 0.5, ..TARGET };
        assert_eq!(trials.standing(10, &tolerant), Standing::Upper);
    }
}
