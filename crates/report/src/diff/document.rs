//! The result of comparing two runs as one document, `weigh/diff/1`.

use schemars::JsonSchema;
use serde::Serialize;
use weigh_model::warnings::WarningRecord;

use crate::summary::shape::DoubtShape;
use crate::summary::{Ratio, Verdict};

/// The name and version of the document's format.
pub const DIFF_SCHEMA: &str = "weigh/diff/1";

/// Two runs, compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Diff {
    /// [`DIFF_SCHEMA`].
    pub schema: &'static str,
    /// The run that is compared with.
    pub a: RunHead,
    /// The run that is compared.
    pub b: RunHead,
    /// What makes the whole comparison doubtful.
    #[schemars(with = "Vec<DoubtShape>")]
    pub doubts: Vec<WarningRecord>,
    /// Cells that only A has.
    pub only_in_a: Vec<String>,
    /// Cells that only B has.
    pub only_in_b: Vec<String>,
    /// Metric by metric of the cells that both have, the worst first.
    pub rows: Vec<Row>,
    /// One for every condition and cell, those that hold first.
    pub judgements: Vec<Judgement>,
    /// Conditions that nothing could decide, because no cell of both runs has the figures: the
    /// names of cells or targets are other ones, or the metric is measured on one side alone.
    pub unjudged: Vec<String>,
}

/// Which run it is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunHead {
    /// Its id.
    pub id: String,
    /// What it was called.
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
    /// In A; null where it was not measured.
    pub a: Option<Figure>,
    /// In B; null where it was not measured.
    pub b: Option<Figure>,
    /// B over A; null where the two have no ratio.
    pub ratio: Option<Ratio>,
    /// B as seen from A.
    pub verdict: Verdict,
    /// Whether that is good; null where nothing can be said, or where the metric has no good side.
    pub effect: Option<Effect>,
    /// How the verdict was come to.
    pub method: Option<&'static str>,
    /// Why there is no verdict, or none by the ratio.
    pub reason: Option<String>,
    /// Mann and Whitney's p, two-sided: ranks alone, which no single wild repetition can decide.
    pub mann_whitney_p: Option<f64>,
    /// True if that p is exact, false if it rests on the normal approximation.
    pub mann_whitney_exact: Option<bool>,
    /// The shift from A to B of Hodges and Lehmann, in the metric's unit.
    pub shift: Option<f64>,
}

/// One metric of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// The mean over the repetitions; null where one of them fell into the lost share.
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

/// What a condition came to in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Judgement {
    /// The condition as it was given.
    pub condition: String,
    /// The cell.
    pub cell: String,
    /// Whether it holds.
    pub holds: Holds,
    /// The figures that say so.
    pub text: String,
    /// False where a figure that it asks for was not measured.
    #[serde(skip)]
    pub(crate) is_measured: bool,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Holds {
    /// It does.
    #[serde(rename = "holds")]
    Yes,
    /// The data cannot carry an answer.
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// It does not.
    #[serde(rename = "does not hold")]
    No,
}
