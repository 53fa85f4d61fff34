//! The three answers to a claim, each from a closed list of words: what arithmetic says to the
//! figures as printed, what the replay shows, and whether the cause is shown (decision 43).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of arithmetic on the published figures, independent of any run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Printed {
    /// The published figures agree with the claim.
    #[serde(rename = "consistent")]
    Consistent,
    /// The published figures do not agree with the claim, or with one another.
    #[serde(rename = "inconsistent")]
    Inconsistent,
    /// Arithmetic forbids the claim.
    #[serde(rename = "impossible")]
    Impossible,
    /// The paper prints too little for a check.
    #[serde(rename = "nothing to check")]
    NothingToCheck,
}

/// Result of a replay of the authors' experiment.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Replayed {
    /// The claim holds in the replay, over the whole 95 % interval.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The claim does not hold in the replay, over the whole 95 % interval.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// The evidence is too weak for either.
    #[serde(rename = "undecided")]
    Undecided,
    /// There is no run to judge by.
    #[serde(rename = "not run")]
    NotRun,
}

/// Whether a run shows the cause that the study names.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Why {
    /// Every condition on the cause holds.
    #[serde(rename = "cause shown")]
    CauseShown,
    /// The evidence is too weak to say.
    #[serde(rename = "cause possible")]
    CausePossible,
    /// A condition on the cause does not hold.
    #[serde(rename = "cause not found")]
    CauseNotFound,
    /// The study names no cause to look for.
    #[serde(rename = "not asked")]
    NotAsked,
}

impl Printed {
    /// All four.
    pub const ALL: [Printed; 4] =
        [Printed::Consistent, Printed::Inconsistent, Printed::Impossible, Printed::NothingToCheck];

    /// The words.
    pub fn name(self) -> &'static str {
        match self {
            Printed::Consistent => "consistent",
            Printed::Inconsistent => "inconsistent",
            Printed::Impossible => "impossible",
            Printed::NothingToCheck => "nothing to check",
        }
    }
}

impl Replayed {
    /// All four.
    pub const ALL: [Replayed; 4] =
        [Replayed::Reproduced, Replayed::NotReproduced, Replayed::Undecided, Replayed::NotRun];

    /// The words.
    pub fn name(self) -> &'static str {
        match self {
            Replayed::Reproduced => "reproduced",
            Replayed::NotReproduced => "not reproduced",
            Replayed::Undecided => "undecided",
            Replayed::NotRun => "not run",
        }
    }
}

impl Why {
    /// All four.
    pub const ALL: [Why; 4] =
        [Why::CauseShown, Why::CausePossible, Why::CauseNotFound, Why::NotAsked];

    /// The words.
    pub fn name(self) -> &'static str {
        match self {
            Why::CauseShown => "cause shown",
            Why::CausePossible => "cause possible",
            Why::CauseNotFound => "cause not found",
            Why::NotAsked => "not asked",
        }
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
