//! `study.toml` as it is written: names and texts with their places, before anything is held
//! against anything else.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Spanned, Table, Value};

/// A published study and its replay.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A study of Weighbridge")]
pub(crate) struct StudyFile {
    /// The study's name: that of its folder.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// What the column `study` of published.csv begins with.
    pub source: String,
    /// What it asks, as a question.
    pub question: String,
    /// Two to four sentences: what replaying it teaches.
    #[serde(default)]
    pub finding: Vec<String>,
    /// What the replay does not say, for the doubts of its report.
    #[serde(default)]
    pub limits: Vec<String>,
    /// The paper.
    pub paper: PaperFile,
    /// What it was done with.
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
    /// What is doubtful about printed figures.
    #[serde(default)]
    pub flag: Vec<FlagFile>,
    /// The question of how many units a server carries.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    pub carry: Vec<Spanned<Table>>,
}

/// What the paper is about.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaperFile {
    /// Its title, where the sources state it.
    pub title: Option<String>,
    /// What it is about.
    pub topic: String,
    /// What its authors asked.
    pub asked: String,
    /// What they did.
    pub did: String,
    /// What they found.
    pub found: String,
}

/// What it was done with.
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

/// A sentence of the authors.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimFile {
    /// Its id.
    #[schemars(with = "String")]
    pub id: Spanned<String>,
    /// Where they say it.
    pub source: String,
    /// What they say.
    pub says: String,
    /// The experiments it rests on.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub experiments: Vec<Spanned<String>>,
    /// The published figures it rests on.
    #[serde(default)]
    #[schemars(with = "Vec<CellFile>")]
    pub cells: Vec<Spanned<CellFile>>,
    /// Why it cannot be tested here, instead of conditions.
    #[schemars(with = "Option<String>")]
    pub not_testable: Option<Spanned<String>>,
    /// The cause, printed when the claim is explained, and as the right reading otherwise.
    pub because: Option<String>,
    /// full, where its figures are only measured there.
    #[schemars(with = "Option<ScaleFile>")]
    pub scale: Option<Spanned<ScaleFile>>,
    /// Our run as published shows what they saw: "EXPRESSION > N", or "WORDS: EXPRESSION > N" with
    /// what the expression is, in words, for whoever reads the report.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub picture: Vec<Spanned<String>>,
    /// Our run shows the cause that `because` names.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub cause: Vec<Spanned<String>>,
    /// The sentence, measured right.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub truth: Vec<Spanned<String>>,
    /// The quantities: names are variables of the expressions.
    #[serde(default, rename = "let")]
    #[schemars(with = "BTreeMap<String, QuantityFile>")]
    pub quantities: BTreeMap<Spanned<String>, Spanned<QuantityFile>>,
}

/// What a claim waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScaleFile {
    /// Its figures are only measured at full scale.
    Full,
}

/// A published figure.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellFile {
    /// Its table.
    pub table: String,
    /// Its series.
    pub series: String,
    /// Where in the series; left out where there is no such thing.
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

/// A series of ours in a picture.
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

/// What is doubtful about a printed figure.
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
    /// Why.
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
