//! What a search has found: for each goal two bounds and how they came about, and every trial, so
//! that the search itself can be drawn.

use std::fmt;

use serde::Serialize;
use weigh_model::units::Nanos;

use crate::axis::AxisKind;
use crate::classification::Standing;
use crate::goal::Goal;
use crate::trial::{TrialRequest, TrialResult};

/// What a search has found, at its end or so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Along what was searched.
    pub axis: AxisKind,
    /// In the order of the goals.
    pub goals: Vec<GoalAnswer>,
    /// Why the search ended.
    pub stop: Stop,
    /// All trials in their order.
    pub trials: Vec<TrialRecord>,
    /// What they took altogether.
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
    /// The next trial would not have fitted into the budget of time.
    Budget,
    /// A trial said nothing about the target, and why.
    Invalid(String),
    /// So many trials were allowed.
    TooManyTrials(usize),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Running => f.write_str("not ended yet"),
            Stop::Complete => f.write_str("every goal has its answer"),
            Stop::Budget => f.write_str("the budget of time was spent"),
            Stop::Invalid(why) => write!(f, "stopped by an invalid trial: {why}"),
            Stop::TooManyTrials(most) => write!(f, "stopped after {most} trials"),
        }
    }
}

/// The answer for one goal: the draft's Goal Result (section 4.8.4).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GoalAnswer {
    /// The goal as it was searched for.
    pub goal: Goal,
    /// The relevant lower bound: the goal was met here.
    pub lower: Option<Bound>,
    /// The relevant upper bound: the goal was missed here, and at no smaller load.
    pub upper: Option<Bound>,
    /// What the trials so far let expect, lower and upper: each bound as the latest stage has it.
    /// Until the goal is decided it may rest on a single short trial and is no bound of the goal.
    pub expected: (Option<f64>, Option<f64>),
    /// (upper - lower) / upper, where both exist.
    pub width: Option<f64>,
    /// Whether it is a regular result in the draft's sense: both bounds, as close as the goal
    /// asks, and not withdrawn.
    pub is_regular: bool,
    /// Messages per second to be expected at the lower bound; on an axis of rates only.
    pub conditional_throughput: Option<f64>,
    /// How it came out.
    pub outcome: Outcome,
    /// Trials that were run for this goal. Those of other goals count towards it too.
    pub trials: usize,
    /// What those took.
    pub time_used: Nanos,
}

/// A load that is a bound, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// In the unit of the axis.
    pub load: f64,
    /// Trials at this load, of whatever length.
    pub trials: usize,
    /// Their durations together.
    pub time: Nanos,
    /// How many of them missed the goal.
    pub missed: usize,
    /// Whether the target died here.
    pub has_died: bool,
}

/// How a goal came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Two bounds, as close as asked.
    Decided,
    /// Two bounds on neighbouring loads of the axis, farther apart than asked: nothing lies
    /// between them.
    AtGranularity,
    /// Even the smallest load misses the goal, and why its last trial did.
    NeverMet(String),
    /// Even the largest load meets it: a lower bound only.
    HoldsAtMax,
    /// The lower bound did not hold for as long as the goal asks, and why: there is no capacity.
    Withdrawn(String),
    /// The search ended before: bounds so far.
    Undecided,
}

/// A trial with what followed from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialRecord {
    /// What was asked for.
    pub request: TrialRequest,
    /// What came of it.
    pub result: TrialResult,
    /// By goal: why it missed it, if it did. Empty if the trial is invalid.
    pub missed: Vec<Option<String>>,
    /// By goal: how its load stands after it. Empty if the trial is invalid.
    pub standings: Vec<Standing>,
    /// By goal: the relevant bounds after it, in the unit of the axis.
    pub bounds: Vec<(Option<f64>, Option<f64>)>,
}

/// A goal's answer in one sentence.
impl fmt::Display for GoalAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.goal.name)?;
        match (&self.outcome, self.lower, self.upper) {
            (Outcome::NeverMet(why), _, Some(upper)) => {
                write!(f, "not met even at the smallest load, {} ({why})", upper.load)
            }
            (Outcome::HoldsAtMax, Some(lower), _) => {
                write!(f, "at least {}, the largest load allowed; no upper bound", lower.load)
            }
            (Outcome::Withdrawn(why), Some(lower), _) => {
                write!(f, "withdrawn: {} did not hold ({why})", lower.load)
            }
            (outcome, Some(lower), Some(upper)) => {
                let percent = 100.0 * self.width.unwrap_or(0.0);
                write!(f, "{} … {} ({percent:.2} % apart", lower.load, upper.load)?;
                f.write_str(match outcome {
                    Outcome::AtGranularity => "; nothing lies between)",
                    Outcome::Undecided => "; bounds so far)",
                    _ => ")",
                })
            }
            (_, Some(lower), None) => write!(f, "at least {}", lower.load),
            (_, None, Some(upper)) => write!(f, "less than {}", upper.load),
            (_, None, None) => f.write_str("no bound"),
        }?;
        if self.outcome == Outcome::Undecided && self.width.is_none() {
            f.write_str(" so far")?;
            match self.expected {
                (Some(lower), Some(upper)) => {
                    write!(f, "; short trials let expect {lower} … {upper}")?;
                }
                (Some(lower), None) => write!(f, "; short trials let expect more than {lower}")?,
                (None, Some(upper)) => write!(f, "; short trials let expect less than {upper}")?,
                (None, None) => {}
            }
        }
        Ok(())
    }
}
