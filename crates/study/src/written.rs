//! `study.toml` as parsed: names and texts with their places, before they are checked against each
//! other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Spanned, Table, Value};

/// A published study and its replay.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A study of Weighbridge")]
#[schemars(extend("$id" = "urn:weigh:schema:study:1"))]
pub(crate) struct StudyFile {
    /// The study's name: that of its folder.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// Prefix of the column `study` of published.csv.
    pub source: String,
    /// Question of the study.
    pub question: String,
    /// Two to four sentences: what replaying it teaches.
    #[serde(default)]
    pub finding: Vec<String>,
    /// What the replay does not show, for the limits in its report.
    #[serde(default)]
    pub limits: Vec<String>,
    /// The paper.
    pub paper: Paper,
    /// Environment of the original.
    pub environment: EnvironmentFile,
    /// Its experiments.
    #[serde(default)]
    pub experiment: Vec<ExperimentFile>,
    /// Its claims.
    #[serde(default)]
    pub claim: Vec<ClaimFile>,
    /// Its pictures.
    #[serde(default)]
    pub figure: Vec<FigureFile>,
    /// Remarks on printed figures.
    #[serde(default)]
    pub flag: Vec<FlagFile>,
    /// Published figures that are settings and no results.
    #[serde(default)]
    #[schemars(with = "Vec<ParameterFile>")]
    pub parameter: Vec<Spanned<ParameterFile>>,
    /// The question of how many units a server carries.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    pub carry: Vec<Spanned<Table>>,
}

/// The paper.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PaperFile")]
pub struct Paper {
    /// Its title, where its text states it.
    pub title: Option<String>,
    /// Its authors, where its text states them.
    #[serde(default)]
    pub authors: Vec<String>,
    /// Institution, if the text states it.
    pub institution: Option<String>,
    /// When it was published or written, where its text states it.
    pub date: Option<String>,
    /// Place of publication, if the text states it.
    pub venue: Option<String>,
    /// Its address, where its text states one.
    pub link: Option<String>,
    /// Subject of the paper.
    pub topic: String,
    /// Question of its authors.
    pub asked: String,
    /// Method of its authors.
    pub did: String,
    /// Findings of its authors.
    pub found: String,
}

/// Environment of the original.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnvironmentFile {
    /// What the authors state, by any keys.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub stated: BTreeMap<String, Value>,
    /// What they do not.
    #[serde(default)]
    pub not_stated: Vec<String>,
    /// What we set where they are silent, and why.
    #[serde(default)]
    pub ours: Vec<String>,
}

/// An experiment.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExperimentFile {
    /// Its id.
    #[schemars(with = "String")]
    pub id: Spanned<String>,
    /// What it is about.
    pub title: String,
    /// The published tables it made.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Its plans in plan-published.toml; the one of its own name if left out and it is there.
    #[schemars(with = "Option<Vec<String>>")]
    pub published: Option<Vec<Spanned<String>>>,
    /// Its plans in plan-right.toml; the one of its own name if left out and it is there.
    #[schemars(with = "Option<Vec<String>>")]
    pub right: Option<Vec<Spanned<String>>>,
    /// Why it cannot be run here, instead of plans.
    pub not_run: Option<String>,
    /// What is wrong with how it was done, with the rule in brackets where one applies: [L09].
    #[serde(default)]
    pub flaws: Vec<String>,
}

/// What the paper says, and what is asked of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimFile {
    /// Its id.
    #[schemars(with = "String")]
    pub id: Spanned<String>,
    /// The section, table or figure of the paper that says it.
    pub section: String,
    /// What the paper says, no more and no less, in the study's own words.
    pub says: String,
    /// True for a finding of the audit, which the authors do not claim.
    #[serde(default)]
    pub finding: bool,
    /// The experiments it rests on.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub experiments: Vec<Spanned<String>>,
    /// The published figures it rests on.
    #[serde(default)]
    #[schemars(with = "Vec<CellFile>")]
    pub cells: Vec<Spanned<CellFile>>,
    /// The published figures agree with the claim: conditions on published figures alone.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub printed: Vec<Spanned<String>>,
    /// Arithmetic allows the claim: conditions on published figures alone.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub possible: Vec<Spanned<String>>,
    /// The claim, on runs: "EXPRESSION > N", or "WORDS: EXPRESSION > N" with what the expression
    /// is, in words.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub replayed: Vec<Spanned<String>>,
    /// What stands in for the software of the paper, beside `replayed`.
    pub stand_in: Option<String>,
    /// The software of the paper, where `replayed` measures that, instead of `stand_in`.
    pub same: Option<String>,
    /// Why it is not replayed and what that would take, instead of `replayed`.
    #[schemars(with = "Option<String>")]
    pub not_replayed: Option<Spanned<String>>,
    /// The same claim on software that the paper names.
    #[serde(default)]
    pub named: Vec<NamedFile>,
    /// The cause, in words.
    pub because: Option<String>,
    /// Conditions that show the cause.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub why: Vec<Spanned<String>>,
    /// Context that is not evidence.
    pub remark: Option<String>,
    /// What its runs need of the machine.
    pub needs: Option<ClaimNeedsFile>,
    /// full, where its figures are measured there only.
    #[schemars(with = "Option<ScaleFile>")]
    pub scale: Option<Spanned<ScaleFile>>,
    /// Published values beside measured ones.
    #[serde(default)]
    #[schemars(with = "Vec<CompareFile>")]
    pub compare: Vec<Spanned<CompareFile>>,
    /// The value of an unknown at which an answer turns.
    #[serde(default)]
    #[schemars(with = "Vec<BreakEvenFile>")]
    pub break_even: Vec<Spanned<BreakEvenFile>>,
    /// The quantities: names are variables of the expressions.
    #[serde(default, rename = "let")]
    #[schemars(with = "BTreeMap<String, QuantityFile>")]
    pub quantities: BTreeMap<Spanned<String>, Spanned<QuantityFile>>,
}

/// A claim on software that the paper names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedFile {
    /// The software, with its version if the plan fixes one.
    pub same: String,
    /// The claim, on runs with that software.
    #[schemars(with = "Vec<String>")]
    pub replayed: Vec<Spanned<String>>,
}

/// What the runs of a claim need of the machine.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimNeedsFile {
    /// Cores, at least.
    pub cores: u32,
}

/// A row of the table that holds published values beside measured ones.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompareFile {
    /// What is compared.
    pub what: String,
    /// An expression over published quantities: often one name.
    pub theirs: Option<String>,
    /// An expression over measured quantities: often one name.
    pub here: Option<String>,
    /// The unit of both, where it is not that of the quantities.
    pub unit: Option<String>,
}

/// An unknown on which an answer hangs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BreakEvenFile {
    /// Its name in the condition.
    pub vary: String,
    /// Its unit.
    pub unit: String,
    /// What it is, in words.
    pub what: String,
    /// The range in which the value is searched.
    pub within: (f64, f64),
    /// The condition whose answer turns.
    pub condition: String,
}

/// Published figures that are settings and no results.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParameterFile {
    /// Their table; `*` stands for any text.
    pub table: String,
    /// Their series; `*` stands for any text.
    pub series: String,
    /// Where in the series; all of it if left out.
    #[schemars(with = "Option<NumberOrText>")]
    pub x: Option<Value>,
    /// What they are.
    pub why: String,
}

/// What a claim waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScaleFile {
    /// Its figures are only measured at full scale.
    Full,
}

/// Published figures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellFile {
    /// Their table.
    pub table: String,
    /// Their series; `*` stands for any text.
    pub series: String,
    /// Where in the series; all of it if left out.
    #[schemars(with = "Option<NumberOrText>")]
    pub x: Option<Value>,
}

/// A number, or a text.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum NumberOrText {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// A quantity: of a run, of a search, of published figures, or a finding of the audit.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuantityFile {
    /// The run: published/PLAN or right/PLAN.
    pub run: Option<String>,
    /// A figure of its cells.
    pub metric: Option<String>,
    /// A count of its cells' ledgers, exact: sent, delivered, lost, causes.timeout.
    pub ledger: Option<String>,
    /// The limit that its search found: capacity_per_s.
    pub limit: Option<String>,
    /// Which goal of the search; the first if left out.
    pub goal: Option<String>,
    /// A figure with its background over the same without.
    pub interference: Option<String>,
    /// Plan keys and values that pick the cells.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub at: BTreeMap<String, Value>,
    /// The axis along which cells are taken: a plan key, or x for published figures.
    pub over: Option<String>,
    /// What is taken of the least-squares line along it.
    pub fit: Option<FitFile>,
    /// The smallest value of the axis at which the figure meets this: "< 1".
    pub first: Option<String>,
    /// What is taken over the repetitions, or along published figures; the mean if left out.
    pub statistic: Option<StatisticFile>,
    /// True to take it even where our own generator was the limit: for claims about just that.
    #[serde(default)]
    pub even_limited: bool,
    /// A published table.
    pub table: Option<String>,
    /// A series in it.
    pub series: Option<String>,
    /// Where in the series.
    #[schemars(with = "Option<NumberOrText>")]
    pub x: Option<Value>,
    /// A finding of the audit: 1 if it is found, 0 if not.
    pub audit: Option<FindingFile>,
    /// A figure of a run in tools.toml.
    pub tool: Option<String>,
}

/// A finding of the audit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FindingFile {
    /// The rule: L05.
    pub finding: String,
    /// A text in the place where it is found: a table, a part of a series.
    pub series: String,
}

/// What is taken of a least-squares line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FitFile {
    /// Its rise per unit of the axis.
    Slope,
    /// Its value where the axis is 0.
    Intercept,
    /// Pearson's coefficient of correlation.
    Correlation,
}

/// What is taken over several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StatisticFile {
    /// The arithmetic mean.
    Mean,
    /// Standard deviation over mean.
    Cv,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The standard deviation.
    Sd,
}

/// A picture of the paper, drawn again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureFile {
    /// Its id.
    #[schemars(with = "String")]
    pub id: Spanned<String>,
    /// Its title.
    pub title: String,
    /// The axis along.
    pub x: AxisFile,
    /// The axis up.
    pub y: AxisFile,
    /// The trend line that the authors drew through each series.
    pub trend: Option<TrendFile>,
    /// What to see.
    #[serde(default)]
    pub caption: String,
    /// Published series.
    #[serde(default)]
    #[schemars(with = "Vec<TheirsFile>")]
    pub theirs: Vec<Spanned<TheirsFile>>,
    /// Our series.
    #[serde(default)]
    #[schemars(with = "Vec<OursFile>")]
    pub ours: Vec<Spanned<OursFile>>,
}

/// An axis of a picture.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AxisFile {
    /// What it shows.
    pub label: String,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// linear, or log.
    #[serde(default)]
    pub scale: AxisScaleFile,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AxisScaleFile {
    /// Evenly.
    #[default]
    Linear,
    /// By powers.
    Log,
}

/// A trend line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TrendFile {
    /// The straight line of least squares.
    Linear,
}

/// A published series of a picture.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TheirsFile {
    /// What it is called.
    pub label: String,
    /// Its table.
    pub table: String,
    /// Its series; one `*` stands for any text without a semicolon, so that several make one line.
    pub series: String,
    /// Where a figure is drawn that has no x in published.csv.
    pub x: Option<f64>,
    /// Factor to the unit of y; 1 if left out.
    #[serde(default = "one")]
    pub scale: f64,
}

/// A measured series in a picture.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OursFile {
    /// What it is called.
    pub label: String,
    /// The run: published/PLAN or right/PLAN.
    pub run: String,
    /// The figure of its cells.
    pub metric: String,
    /// The axis along which they are taken: a plan key.
    pub over: String,
    /// Further plan keys and values that pick the cells.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub at: BTreeMap<String, Value>,
    /// Factor to the unit of y; 1 if left out.
    #[serde(default = "one")]
    pub scale: f64,
}

/// Remark on a printed figure.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FlagFile {
    /// The table.
    #[schemars(with = "String")]
    pub table: Spanned<String>,
    /// The series, or what else of the table it is about.
    pub series: String,
    /// Where in the series; left out for all of it.
    #[schemars(with = "Option<NumberOrText>")]
    pub x: Option<Value>,
    /// As it is printed.
    pub printed: String,
    /// What it is read as.
    pub used: String,
    /// The reason.
    pub reason: String,
    /// How sure that is.
    pub confidence: String,
}

impl StudyFile {
    /// The JSON Schema (2020-12) of study.toml.
    pub(crate) fn json_schema() -> String {
        let schema = schemars::schema_for!(StudyFile);
        serde_json::to_string_pretty(&schema).expect("a schema is plain JSON") + "\n"
    }
}

fn one() -> f64 {
    1.0
}

/// The text of a number or text; empty where there is none.
pub(crate) fn text_of(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}
