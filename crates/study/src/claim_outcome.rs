//! Outcome of one claim: three answers, the conditions behind them, published
//! and measured values, and the value of an unknown at which the answer changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answers::{Printed, Replayed, Why};
use crate::outcome::{CellShown, Link};

/// A claim with its answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimOutcome {
    /// Its id.
    pub id: String,
    /// The paper's statement, in the words of the study.
    pub says: String,
    /// The section, table or figure of the paper that says it.
    pub section: String,
    /// True for a finding of the audit, which the authors do not claim.
    #[serde(default)]
    pub is_finding: bool,
    /// The experiments it rests on, by id.
    pub experiments: Vec<String>,
    /// The published figures it rests on.
    pub cells: Vec<CellShown>,
    /// Result of arithmetic on the published figures.
    pub printed: Printed,
    /// Result of each replay: the study's own first, then those on the named software.
    pub replays: Vec<Replay>,
    /// Whether the cause was shown.
    pub why: Why,
    /// True where arithmetic forbids the claim, or the very software that it names was measured
    /// and the interval excludes it.
    pub is_contradicted: bool,
    /// The three answers in one plain sentence, with the deciding figures.
    pub sentence: String,
    /// The cause that was looked for; absent where the study names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Context that is not evidence; absent if the study gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Every condition, with what the runs say to it.
    pub conditions: Vec<Judged>,
    /// Published values beside measured ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<ComparedShown>,
    /// Value at which the answer changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub break_even: Vec<BreakEvenShown>,
    /// Number of runs that give the same answers alone; absent for one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// The roles whose conditions rest on a modelled figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_model: Vec<Role>,
}

/// Result of one replay of a claim, and its software.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// The answer.
    pub answer: Replayed,
    /// The software that was measured, and what it stands in for if it is a stand-in.
    pub on: String,
    /// True if it is the software that the paper names.
    pub is_same: bool,
    /// The machine: `2 cores, <processor>`; empty where nothing was run.
    #[serde(default)]
    pub host: String,
    /// Why it is undecided or was not run; empty where it is decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// A published value beside a measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedShown {
    /// Name of the figure.
    pub what: String,
    /// The unit of the values; `1` for plain numbers.
    pub unit: String,
    /// The published value; null where there is none.
    pub theirs: Option<f64>,
    /// The published value as printed; empty for a value worked out from several.
    #[serde(default)]
    pub theirs_printed: String,
    /// The measured value in the same unit; null where there is none.
    pub here: Option<f64>,
    /// Lower end of its 95 % interval; null where it is exact, absent or unbounded.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval; null where it is exact, absent or unbounded.
    pub high: Option<f64>,
    /// Measured over published; null where one is missing or the published value is 0.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval.
    pub ratio_low: Option<f64>,
    /// Upper end of the ratio's 95 % interval.
    pub ratio_high: Option<f64>,
    /// Sources of the measured value.
    pub links: Vec<Link>,
    /// Why there is no measured value, or what weakens it; empty otherwise.
    #[serde(default)]
    pub reason: String,
}

/// The value of an unknown at which a condition's answer turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakEvenShown {
    /// Name of the unknown.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// Value at which it changes; null if it does not within the range that was searched.
    pub value: Option<f64>,
    /// Lower end of the 95 % interval; null where there is none.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; null where there is none.
    pub high: Option<f64>,
    /// The break-even as a sentence.
    pub sentence: String,
}

/// Number of runs that give the same answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// Runs whose own answers equal the answers of all runs together.
    pub same: usize,
    /// Runs in all.
    pub of: usize,
    /// The answers of each run alone.
    pub answers: Vec<RunAnswers>,
}

/// The answers of one run alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunAnswers {
    /// The run's id.
    pub run: String,
    /// Result of each replay, in the order of [`ClaimOutcome::replays`].
    pub replays: Vec<Replayed>,
    /// Whether the cause was shown.
    pub why: Why,
}

/// Purpose of a condition.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The published figures agree with the claim.
    Printed,
    /// Arithmetic allows the claim.
    Possible,
    /// The claim, on the runs of the replay.
    Replayed,
    /// The claim, on the software that the paper names.
    Named,
    /// The cause.
    Why,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 5] =
        [Role::Printed, Role::Possible, Role::Replayed, Role::Named, Role::Why];

    /// True where a condition may rest on published figures alone.
    pub fn is_by_paper(self) -> bool {
        matches!(self, Role::Printed | Role::Possible)
    }
}

/// Judgement of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The whole interval lies where the condition holds.
    Yes,
    /// The whole interval lies where it does not hold.
    No,
    /// Neither, there is no interval, or a warning forbids to decide.
    Undecided,
}

/// A condition, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// Its purpose.
    pub role: Role,
    /// Which replay it belongs to: 0 for the study's own, 1 for the first named software.
    #[serde(default)]
    pub lane: usize,
    /// The condition, as the study has it.
    pub text: String,
    /// Its expression in words; empty if the study has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// The value of its expression; null where there is none.
    pub estimate: Option<f64>,
    /// Lower end of the 95 % interval; null where there is none or nothing bounds it.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; null where there is none or nothing bounds it.
    pub high: Option<f64>,
    /// The fewest repetitions behind one of its quantities; null where none rests on repetitions.
    pub n: Option<u32>,
    /// The value with its interval as sentences have it, also where an end is infinite:
    /// `3.94 (3.61 to 4.20)`; empty where there is no value.
    #[serde(default)]
    pub shown: String,
    /// Its answer.
    pub answer: Answer,
    /// True if none of its runs was made.
    #[serde(default)]
    pub is_without_runs: bool,
    /// Why it is undecided, or what else is to be known; empty where nothing is.
    pub reasons: Vec<String>,
    /// Quantities of the expression.
    pub quantities: Vec<QuantityShown>,
}

/// A quantity of an expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantityShown {
    /// Its name in the expression.
    pub name: String,
    /// Description in words.
    pub text: String,
    /// Its value; null where there is none.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval; null where it is exact or nothing bounds it.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval; null where it is exact or nothing bounds it.
    pub high: Option<f64>,
    /// Its unit; `1` for plain numbers.
    pub unit: String,
    /// Repetitions behind it; null where it rests on none: exact values, and searches.
    pub n: Option<u32>,
    /// Its sources.
    pub links: Vec<Link>,
}

impl Judged {
    /// False where every figure in it is exact, infinite ones too.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.low != self.high || (self.low.is_none() && self.estimate.is_some())
    }
}

impl ClaimOutcome {
    /// The claim's answers as words: as printed, each replay, and why.
    pub fn words(&self) -> (Printed, Vec<Replayed>, Why) {
        (self.printed, self.replays.iter().map(|one| one.answer).collect(), self.why)
    }
}
