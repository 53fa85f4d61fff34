//! One line of the answer that a run begins with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A line of the answer to the question that a run asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerLine {
    /// What the line is about.
    pub kind: AnswerKind,
    /// A sentence, without line breaks.
    pub text: String,
}

/// What a line of the answer is about.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// Whether the thresholds of the plan hold.
    Thresholds,
    /// Whether the result may be used.
    Validity,
    /// The limit that a search found.
    Limit,
    /// The effect of a background.
    Background,
    /// Where an axis ended, or the course along it.
    Axis,
    /// Which messages were lost, and where.
    Loss,
    /// Which case costs the server least CPU time per message.
    Cpu,
    /// Which case needs the fewest bytes per message.
    Bytes,
    /// Which case is fastest.
    Time,
    /// In which case a battery lasts longest, by the model.
    Battery,
    /// What is too close to call, and what was not compared.
    Undecided,
}
