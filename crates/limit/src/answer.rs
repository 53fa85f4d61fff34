//! The result of a search: for each goal two bounds and their trials, and every trial, so that the
//! search can be drawn.

use std::fmt;

use serde::Serialize;
use weigh_model::numbers::{exact, three_digits};
use weigh_model::units::Nanos;

use crate::axis::AxisKind;
use crate::classification::Standing;
use crate::goal::Goal;
use crate::standing::Remaining;
use crate::trial::{TrialRequest, TrialResult};

/// The result of a search, at its end or so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The axis of the search.
    pub axis: AxisKind,
    /// In the order of the goals.
    pub goals: Vec<GoalAnswer>,
    /// Why the search ended.
    pub stop: Stop,
    /// All trials in their order.
    pub trials: Vec<TrialRecord>,
    /// Their total time.
    pub time_used: Nanos,
}

/// Why a search ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// It has not ended.
    Running,
    /// Every goal has its answer.
    Complete,
    /// The next trial would not have fitted into the time budget.
    Budget,
    /// A trial was invalid, and why.
    Invalid(String),
    /// This maximum number of trials was reached.
    TooManyTrials(usize),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Running => f.write_str("not ended yet"),
            Stop::Complete => f.write_str("the search is complete"),
            Stop::Budget => f.write_str("the time budget was used up: --budget gives more"),
            Stop::Invalid(why) => write!(f, "stopped by an invalid trial: {why}"),
            Stop::TooManyTrials(most) => write!(f, "stopped after {most} trials"),
        }
    }
}

/// The answer for one goal: the draft's Goal Result (section 4.8.4).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GoalAnswer {
    /// The goal of the search.
    pub goal: Goal,
    /// The axis of the search.
    pub axis: AxisKind,
    /// The relevant lower bound: the goal was met here.
    pub lower: Option<Bound>,
    /// The relevant upper bound: the goal was missed here, and at no smaller load.
    pub upper: Option<Bound>,
    /// Bounds expected from the trials so far, lower and upper: each as the latest stage has it.
    /// Until the goal is decided one may depend on a single short trial and is not a bound of the
    /// goal.
    pub expected: (Option<f64>, Option<f64>),
    /// The best answer so far: the largest load that passed and the smallest above it that failed,
    /// in trials of any length. They are bounds if [`GoalAnswer::lower`] and [`GoalAnswer::upper`]
    /// are the same.
    pub best: (Option<f64>, Option<f64>),
    /// Trials left in the search if the goal is not proven.
    pub remaining: Option<Remaining>,
    /// Why the goal is not proven; absent if it is.
    pub unproven: Option<String>,
    /// (upper - lower) / upper, if both exist.
    pub width: Option<f64>,
    /// Whether it is a regular result in the draft's sense: both bounds, as close as the goal
    /// asks, and not withdrawn.
    pub is_regular: bool,
    /// Messages per second expected at the lower bound; on an axis of rates only.
    pub conditional_throughput: Option<f64>,
    /// The outcome.
    pub outcome: Outcome,
    /// Trials that were run for this goal. Those of other goals count towards it too.
    pub trials: usize,
    /// Total time of those trials.
    pub time_used: Nanos,
}

/// A load that is a bound, and its trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// In the unit of the axis.
    pub load: f64,
    /// Trials at this load, of whatever length.
    pub trials: usize,
    /// Sum of their durations.
    pub time: Nanos,
    /// Number of them that missed the goal.
    pub missed: usize,
    /// Whether the target died at this load.
    pub has_died: bool,
}

/// Outcome of a goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Two bounds, as close as the goal asks.
    Decided,
    /// Two bounds on neighbouring loads of the axis, farther apart than the goal asks: there is no
    /// load between them.
    AtGranularity,
    /// Even the smallest load misses the goal, and why its last trial did.
    NeverMet(String),
    /// Even the largest load meets it: a lower bound only.
    HoldsAtMax,
    /// The lower bound did not hold for as long as the goal asks, and why: there is no capacity.
    Withdrawn(String),
    /// The search ended too early: bounds so far.
    Undecided,
}

/// A trial and its consequences.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialRecord {
    /// The request.
    pub request: TrialRequest,
    /// The result.
    pub result: TrialResult,
    /// By goal: why it missed it, if it did. Empty if the trial is invalid.
    pub missed: Vec<Option<String>>,
    /// By goal: status of its load after the trial. Empty if the trial is invalid.
    pub standings: Vec<Standing>,
    /// By goal: the relevant bounds after it, in the unit of the axis.
    pub bounds: Vec<(Option<f64>, Option<f64>)>,
}

/// A goal's answer in one sentence.
impl fmt::Display for GoalAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.goal.name)?;
        let load = |load: f64| exact(load) + self.axis.unit();
        let apart = three_digits(100.0 * self.width.unwrap_or(0.0));
        match (&self.outcome, self.lower, self.upper) {
            (Outcome::Undecided, ..) => self.write_best(f),
            (Outcome::NeverMet(why), _, Some(upper)) => {
                write!(f, "not met even at the smallest load, {} ({why})", load(upper.load))
            }
            (Outcome::HoldsAtMax, Some(lower), _) => {
                let lower = load(lower.load);
                write!(f, "at least {lower}, the largest load allowed; no upper bound")
            }
            (Outcome::Withdrawn(why), Some(lower), _) => {
                write!(f, "withdrawn: {} did not hold ({why})", load(lower.load))
            }
            (outcome, Some(lower), Some(upper)) => {
                let (lower, upper) = (exact(lower.load), load(upper.load));
                write!(f, "{lower} … {upper} ({apart} % apart")?;
                f.write_str(match outcome {
                    Outcome::AtGranularity => "; no load between them)",
                    _ => ")",
                })
            }
            (_, Some(lower), None) => write!(f, "at least {}", load(lower.load)),
            (_, None, Some(upper)) => write!(f, "less than {}", load(upper.load)),
            (_, None, None) => f.write_str("no bound"),
        }
    }
}

impl GoalAnswer {
    /// The best answer of a search that has not proven one, and what is missing.
    fn write_best(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = |load: f64| exact(load) + self.axis.unit();
        let is = |bound: Option<Bound>, load: f64| bound.is_some_and(|own| own.load == load);
        let proven = |is_proven: bool| if is_proven { " (proven)" } else { "" };
        let (passed, failed) = self.best;
        if let (Some(why), Some(own), None) = (&self.unproven, passed, failed)
            && is(self.lower, own)
        {
            return write!(f, "at least {} (proven); no upper bound: {why}", load(own));
        }
        match passed {
            Some(own) => write!(f, "passed {}{}", load(own), proven(is(self.lower, own)))?,
            None => f.write_str("no load passed")?,
        }
        match failed {
            Some(own) => write!(f, ", failed at {}{}", load(own), proven(is(self.upper, own)))?,
            None => f.write_str(", no load failed")?,
        }
        if let Some(width) = self.width {
            let (found, asked) = (three_digits(100.0 * width), exact(100.0 * self.goal.width));
            write!(f, ", {found} % apart, goal: {asked} %")?;
        }
        match &self.unproven {
            Some(why) => write!(f, ", not proven: {why}"),
            None => f.write_str(", not proven"),
        }
    }
}
