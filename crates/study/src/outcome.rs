//! What came of a study as one document, `weigh/study/1`: what `study.json` of a study's run holds.
//! It is made from the study and the results of its runs alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_report::Summary;

use crate::carry::CarryOutcome;
use crate::scale::{Scale, Way};
use crate::verdict::Verdict;

/// The name and version of the document's format.
pub const STUDY_SCHEMA: &str = "weigh/study/1";

/// What came of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Every claim with its verdict, in the order of the study; empty while the study is run.
    pub claims: Vec<ClaimOutcome>,
    /// How sure the answers to their conditions are, all together.
    #[serde(default)]
    pub certainty: Certainty,
    /// The pictures: theirs and ours; empty while the study is run.
    pub figures: Vec<FigureOutcome>,
    /// How many units a server carries; absent where nobody asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carry: Vec<CarryOutcome>,
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
    /// What makes its results doubtful, once for each code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<DoubtShown>,
}

/// What makes results of a run doubtful.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoubtShown {
    /// The rule's code or a kebab-case name.
    pub code: String,
    /// What it takes away: `the result`, `response times`, or nothing (empty).
    pub takes: String,
    /// What was seen, in the first of the cells.
    pub text: String,
    /// What to do about it.
    pub advice: String,
    /// The cells, by name.
    pub cells: Vec<String>,
}

impl DoubtShown {
    /// The doubts of a run's cells, once for each code: those that take a result away first.
    pub fn of(summary: &Summary) -> Vec<DoubtShown> {
        crate::doubts::of(summary)
    }
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimOutcome {
    /// Its id.
    pub id: String,
    /// Where the authors say it.
    pub source: String,
    /// What they say.
    pub says: String,
    /// The experiments it rests on.
    pub experiments: Vec<String>,
    /// The published figures it rests on.
    pub cells: Vec<CellShown>,
    /// What came of it.
    pub verdict: Verdict,
    /// Why, with the figures.
    pub sentence: String,
    /// What explains it, or the right reading; absent where the study says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What was asked, and what the runs say to it.
    pub conditions: Vec<Judged>,
    /// The roles whose conditions rest on what was published alone: figures of the paper and
    /// findings of the audit. No run of ours says anything to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_paper: Vec<Role>,
    /// The roles whose conditions rest on a figure that is modelled and not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_model: Vec<Role>,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellShown {
    /// The table it stands in.
    pub table: String,
    /// Its series.
    pub series: String,
    /// Where in the series, as printed; empty where there is no such thing.
    pub x: String,
    /// The unit of `x`; empty where there is none.
    pub x_unit: String,
    /// Its value.
    pub value: f64,
    /// As it stands in the table of published figures.
    pub printed: String,
    /// Its unit.
    pub unit: String,
    /// What is doubtful about its printed form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<FlagShown>,
}

/// What is doubtful about a printed figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlagShown {
    /// What of the table it is about, where that is not the figure itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// As it is printed.
    pub printed: String,
    /// What it is read as.
    pub used: String,
    /// Why.
    pub reason: String,
    /// How sure that is.
    pub confidence: String,
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

/// What a condition is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Our run as published shows what the authors saw.
    Picture,
    /// Our run shows the cause that explains it.
    Cause,
    /// The sentence itself, measured right.
    Truth,
}

impl Role {
    /// All three.
    pub const ALL: [Role; 3] = [Role::Picture, Role::Cause, Role::Truth];
}

/// What a run says to a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The interval lies where the condition holds.
    Yes,
    /// The interval lies where it does not hold.
    No,
    /// Neither, or there is no interval.
    Undecided,
}

/// A condition, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// What it is for.
    pub role: Role,
    /// The condition, as the study has it.
    pub text: String,
    /// What its expression is, in words; empty where the study has none.
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
    /// The value with its interval, as sentences have it, also where an end of it is infinite:
    /// `3.94 (3.61 to 4.20)`; empty where there is no value.
    #[serde(default)]
    pub shown: String,
    /// What the runs say to it.
    pub answer: Answer,
    /// Why it is undecided, or what else is to be known; empty where nothing is.
    pub reasons: Vec<String>,
    /// What the expression is made of.
    pub quantities: Vec<QuantityShown>,
}

/// A quantity of an expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantityShown {
    /// Its name in the expression.
    pub name: String,
    /// What it is, in words.
    pub text: String,
    /// Its value; null where there is none.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval; null where it is exact or nothing bounds it.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval; null where it is exact or nothing bounds it.
    pub high: Option<f64>,
    /// Its unit; `1` for plain numbers.
    pub unit: String,
    /// Repetitions behind it; null where it rests on none: what is exact, and searches.
    pub n: Option<u32>,
    /// Where it comes from.
    pub links: Vec<Link>,
}

/// Where a figure comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The run's name in the study: `published/E1-http`; empty for a published figure.
    pub run: String,
    /// The run's folder, relative to that of the study's run; empty for a published figure.
    pub folder: String,
    /// Its cell's name in that run, or the published table and series.
    pub cell: String,
    /// Ids of the cell's trials, as in the run's journal; empty where they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<String>,
}

/// A picture: theirs and ours, on the same axes.
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
    /// Every series: theirs first.
    pub series: Vec<Series>,
}

/// An axis of a picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AxisShown {
    /// What it shows.
    pub label: String,
    /// Its unit; empty where there is none.
    pub unit: String,
    /// True for a logarithmic one.
    pub is_log: bool,
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
    /// False where a doubt says that the point must not be used.
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
            0 => format!("{judged} condition{plural} answered, all by exact figures."),
            _ => format!(
                "{judged} condition{plural} answered, {uncertain} of them by an interval of 95 % \
                 each: up to {false_max:.1} false answers by chance are to be expected. Nothing \
                 was corrected for their number."
            ),
        }
    }
}

impl Judged {
    /// False where every figure in it is exact, infinite ones too.
    fn is_uncertain(&self) -> bool {
        self.low != self.high || (self.low.is_none() && self.estimate.is_some())
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
