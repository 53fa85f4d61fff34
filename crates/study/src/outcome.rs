//! The outcome of a study as one document, `weigh/study/1`: the content of `study.json` of its run.
//! It is made from the study and the results of its runs alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::numbers::exact;

use crate::carry::CarryOutcome;
pub use crate::claim_outcome::*;
use crate::scale::{Scale, Way};
pub use crate::shown::FlagShown;
pub use crate::shown::{AxisShown, CellShown, Link};
use crate::tools::ToolShown;
pub use crate::warnings::WarningShown;

/// The name and version of the document's format.
pub const STUDY_SCHEMA: &str = "weigh/study/1";

/// The outcome of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("$id" = "urn:weigh:schema:outcome:1"))]
pub struct Outcome {
    /// [`STUDY_SCHEMA`].
    pub schema: String,
    /// The study's name.
    pub study: String,
    /// What it asks.
    pub question: String,
    /// How much of it was run.
    pub scale: Scale,
    /// In whose way: both, or one.
    pub ways: Vec<Way>,
    /// The experiments that were asked for, by id; empty where all were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// The folder of targets and studies beside those built in, as an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Where runs are kept, as it was typed; absent for `runs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<String>,
    /// The id of the study's run: its folder's name.
    pub id: String,
    /// When it started, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// The machine, as in `weigh/summary/1`; null before the first run.
    pub host: Option<serde_json::Value>,
    /// How far the run of the study came: `done`, `interrupted`, `running`.
    pub state: String,
    /// What was run, in the order of the study.
    pub experiments: Vec<ExperimentOutcome>,
    /// The runs of the study that were judged together, the newest last.
    #[serde(default)]
    pub occasions: Vec<OccasionShown>,
    /// The paper, as far as its text says.
    #[serde(default)]
    pub paper: PaperShown,
    /// SHA-256 of the `study.toml` whose conditions were judged, in hexadecimal digits.
    #[serde(default)]
    pub judged_hash: String,
    /// What weakens all of it, as sentences; empty where nothing does.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Every claim with its answers, in the order of the study; empty while the study is run.
    pub claims: Vec<ClaimOutcome>,
    /// How sure the answers to their conditions are, all together.
    #[serde(default)]
    pub certainty: Certainty,
    /// The pictures: published and measured series; empty while the study runs.
    pub figures: Vec<FigureOutcome>,
    /// Number of units that a server carries; absent if the study does not ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carry: Vec<CarryOutcome>,
    /// The real programs that were run beside the plans; absent where the study has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolShown>,
}

/// The paper.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaperShown {
    /// Its title; null where the text does not state it.
    pub title: Option<String>,
    /// Its authors; empty where the text does not state them.
    pub authors: Vec<String>,
    /// Where they work; null where the text does not state it.
    pub institution: Option<String>,
    /// When it was published or written; null where the text does not state it.
    pub date: Option<String>,
    /// Where it was published; null where the text does not state it.
    pub venue: Option<String>,
    /// Its address; null where the text does not state it.
    pub link: Option<String>,
}

/// One run of a study, as evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OccasionShown {
    /// The id of the study's run.
    pub run: String,
    /// How much of the study it was asked to run.
    #[serde(default)]
    pub scale: Scale,
    /// When it started, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// The machine, as in `weigh/summary/1`; null where nothing was run.
    pub host: Option<serde_json::Value>,
    /// How far it came: `done`, `interrupted`, `running`.
    pub state: String,
    /// SHA-256 of `study.toml` when the run started; absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study_hash: Option<String>,
    /// True if that is the file whose conditions were judged; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_same_study: Option<bool>,
    /// Which boot of the machine it was made in; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// What weakens it, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What was run for one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentOutcome {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// Why it cannot be run here; absent where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run: Option<String>,
    /// Its runs. One that several experiments share stands in each.
    pub runs: Vec<RunOutcome>,
}

/// One run of a study, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunOutcome {
    /// Its name in the study: `published/E1-http`.
    pub name: String,
    /// The authors' way, or the right one.
    pub way: Way,
    /// The run's folder, relative to that of the study's run; absent where it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The run's id; absent where it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How it ended (`done`, `interrupted` ...), as in its `summary.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Cells with a result.
    pub cells: usize,
    /// Cells among them whose result must not be used.
    pub invalid_cells: usize,
    /// Why it was not run, and what would help; absent where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Warnings about its results, once for each code.
    #[serde(rename = "doubts", default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<WarningShown>,
}

/// How sure the answers to all conditions of a study are together: each stands for itself at 95 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Certainty {
    /// Conditions that were answered yes or no.
    pub judged: usize,
    /// Those among them whose answer rests on an interval; the others rest on exact figures.
    pub uncertain: usize,
    /// How many of these are to be expected at most to be false by chance: 5 %.
    pub false_max: f64,
}

/// A picture: published and measured series, on the same axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureOutcome {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// The axis along.
    pub x: AxisShown,
    /// The axis up.
    pub y: AxisShown,
    /// Every series: published ones first.
    pub series: Vec<Series>,
}

/// A series of a picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// What it is called.
    pub label: String,
    /// True for a published one.
    pub is_theirs: bool,
    /// Its points by x.
    pub points: Vec<PointShown>,
    /// The straight line of least squares through its points, where the authors drew one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<Line>,
    /// Why points, or all of them, are missing; absent where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Where it comes from.
    pub links: Vec<Link>,
}

/// A point of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointShown {
    /// Along.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Lower end of the 95 % interval; null where there is none.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; null where there is none.
    pub high: Option<f64>,
    /// False if a warning says that the point must not be used.
    pub is_valid: bool,
}

/// A straight line: y = intercept + slope x.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Rise of y per x.
    pub slope: f64,
    /// y where x is 0.
    pub intercept: f64,
}

impl Certainty {
    /// Of these claims.
    pub fn of(claims: &[ClaimOutcome]) -> Certainty {
        let all = claims.iter().flat_map(|claim| &claim.conditions);
        let judged = all.filter(|one| one.answer != Answer::Undecided);
        let (judged, uncertain) = judged.fold((0, 0), |(judged, uncertain), one| {
            (judged + 1, uncertain + usize::from(one.is_uncertain()))
        });
        let false_max = (1.0 - weigh_stats::CONFIDENCE) * uncertain as f64;
        Certainty { judged, uncertain, false_max }
    }

    /// What that means to a reader, in one sentence.
    pub fn sentence(&self) -> String {
        let Certainty { judged, uncertain, false_max } = *self;
        let plural = if judged == 1 { " was" } else { "s were" };
        match uncertain {
            0 => format!("{judged} condition{plural} answered, all with exact figures."),
            _ => format!(
                "{judged} condition{plural} answered, {uncertain} of them with a 95 % interval; \
                without correction for their number, up to {} answers may be wrong by chance.",
                exact((false_max * 10.0).round() / 10.0)
            ),
        }
    }
}

impl Outcome {
    /// The document as it is written and printed, with a line break at its end.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("an outcome has only text keys, and its numbers are finite") + "\n"
    }

    /// The JSON Schema (2020-12) of the document, as checked in at `schemas/`.
    pub fn json_schema() -> String {
        let schema = schemars::schema_for!(Outcome);
        serde_json::to_string_pretty(&schema).expect("a schema is plain JSON") + "\n"
    }
}
