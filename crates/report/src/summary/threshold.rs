//! The result of a condition that the plan sets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The three answers to a condition, and to all conditions of a run together: the gravest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It does not hold.
    Failed,
    /// What was measured cannot decide it.
    Undecided,
    /// It holds.
    Holds,
}

/// A threshold of the plan and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    /// The condition as it was written.
    pub condition: String,
    /// The flat name of the figure that it is about.
    pub metric: String,
    /// Whether it holds of every cell; by the estimates, whatever their intervals.
    pub holds: bool,
    /// Why it cannot be decided at all: there is no cell, or it cannot be judged here; absent
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The cells of which it does not hold, in the order of the plan.
    pub failed: Vec<Judged>,
    /// The cells of which it cannot be decided, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<Judged>,
    /// The cells of which it holds or fails too close to call: their interval includes the limit.
    pub close: Vec<Judged>,
}

/// The figure of one cell under a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The cell's name.
    pub cell: String,
    /// Its figure; null where it was not measured and where it is infinite.
    pub figure: Option<f64>,
    /// Lower end of the figure's interval; null where there is none.
    pub low: Option<f64>,
    /// Upper end of the figure's interval; null where there is none.
    pub high: Option<f64>,
    /// Why there is no figure, or none that decides: `not measured`, `in the lost share`,
    /// `not done` or a sentence; absent where the figure decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Judged {
    pub(crate) fn without(cell: String, reason: &str) -> Judged {
        Judged { cell, figure: None, low: None, high: None, reason: Some(reason.to_owned()) }
    }
}
