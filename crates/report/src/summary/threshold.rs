//! The result of a threshold of the plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The three results of a condition, and of all conditions of a run together: the most severe
/// first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It does not hold.
    Failed,
    /// The measurements do not decide it.
    Undecided,
    /// It holds.
    Holds,
}

/// A threshold of the plan and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    /// The condition as it was written.
    pub condition: String,
    /// The flat name of its figure.
    pub metric: String,
    /// Whether it holds for every cell; by the estimates, whatever their intervals.
    pub holds: bool,
    /// Why it cannot be decided at all: there is no cell, or it cannot be judged here; absent
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The cells for which it does not hold, in the order of the plan.
    pub failed: Vec<Judged>,
    /// The cells for which it is undecided, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<Judged>,
    /// The cells for which it holds or fails too close to call: their interval includes the limit.
    pub close: Vec<Judged>,
}

/// The figure of one cell under a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The cell's name.
    pub cell: String,
    /// Its figure; null if it was not measured and if it is infinite.
    pub figure: Option<f64>,
    /// Lower end of the figure's interval; null if there is none.
    pub low: Option<f64>,
    /// Upper end of the figure's interval; null if there is none.
    pub high: Option<f64>,
    /// Why there is no figure, or none that decides: `not measured`, `in the lost share`, `not
    /// done` or a sentence; absent if the figure decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Judged {
    pub(crate) fn without(cell: String, reason: &str) -> Judged {
        Judged { cell, figure: None, low: None, high: None, reason: Some(reason.to_owned()) }
    }
}
