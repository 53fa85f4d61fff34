//! The result of comparing two runs as one document, `weigh/diff/1`.

use schemars::JsonSchema;
use serde::Serialize;
use weigh_model::warnings::WarningRecord;

use crate::summary::shape::WarningShape;
use crate::summary::{Ratio, Verdict};

/// The name and version of the document's format.
pub const DIFF_SCHEMA: &str = "weigh/diff/1";

/// Two runs, compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(extend("$id" = "urn:weigh:schema:diff:1"))]
pub struct Diff {
    /// [`DIFF_SCHEMA`].
    pub schema: &'static str,
    /// The run that B is compared with.
    pub a: RunHead,
    /// The run that is compared.
    pub b: RunHead,
    /// Warnings on the whole comparison.
    #[schemars(with = "Vec<WarningShape>")]
    #[serde(rename = "doubts")]
    pub warnings: Vec<WarningRecord>,
    /// Cells that only A has.
    pub only_in_a: Vec<String>,
    /// Cells that only B has.
    pub only_in_b: Vec<String>,
    /// Cells that some runs of a side of several runs lack: they are not compared. Absent if there
    /// are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_every_run: Vec<String>,
    /// Metric by metric of the cells that both runs have, the worst first.
    pub rows: Vec<Row>,
    /// One for every condition and cell, those that hold first.
    pub judgements: Vec<Judgement>,
    /// Conditions that could not be decided, because no cell of both runs has the figures: cells or
    /// targets have other names, or the metric is measured on one side only.
    pub unjudged: Vec<String>,
}

/// Identity of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunHead {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When it started, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// `done`, `interrupted`, `failed` or `unfinished`.
    pub outcome: String,
}

/// One metric of one cell in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The cell's name in B.
    pub cell: String,
    /// The metric's name.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// In A; null if it was not measured.
    pub a: Option<Figure>,
    /// In B; null if it was not measured.
    pub b: Option<Figure>,
    /// B over A; null if there is no ratio.
    pub ratio: Option<Ratio>,
    /// Verdict on B, relative to A.
    pub verdict: Verdict,
    /// Whether the change is good; null without a verdict, or if neither direction of the metric is
    /// better.
    pub effect: Option<Effect>,
    /// Method of the verdict.
    pub method: Option<&'static str>,
    /// Why there is no verdict, or none by the ratio.
    pub reason: Option<String>,
    /// Mann and Whitney's p, two-sided: by ranks, which no single extreme repetition can decide.
    pub mann_whitney_p: Option<f64>,
    /// True if that p is exact, false if it uses the normal approximation.
    pub mann_whitney_exact: Option<bool>,
    /// The shift from A to B of Hodges and Lehmann, in the metric's unit.
    pub shift: Option<f64>,
}

/// One metric of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// The mean over the repetitions; null if one of them is in the lost share.
    pub value: Option<f64>,
    /// Lower end of its interval at 95 %.
    pub low: Option<f64>,
    /// Upper end of its interval at 95 %.
    pub high: Option<f64>,
    /// Repetitions that gave a value.
    pub n: u32,
}

/// Whether a change is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// B is better than A.
    Better,
    /// B is worse than A.
    Worse,
}

/// The result of a condition in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Judgement {
    /// The condition as it was given.
    pub condition: String,
    /// The cell.
    pub cell: String,
    /// Whether it holds.
    pub holds: Holds,
    /// The figures that decide it.
    pub text: String,
    /// False if one of its figures was not measured.
    #[serde(skip)]
    pub(crate) is_measured: bool,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Holds {
    /// It does.
    #[serde(rename = "holds")]
    Yes,
    /// The data do not decide it.
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// It does not.
    #[serde(rename = "does not hold")]
    No,
}
