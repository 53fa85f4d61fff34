//! A study: its paper, its experiments, its claims, its pictures. Its parts are complete: all
//! references between its files were checked when it was read.

use std::collections::BTreeMap;

use crate::audit::Audit;
use crate::carry;
use crate::expression::{Condition, Expression};
use crate::outcome::{AxisShown, Role};
use crate::plans::StudyPlan;
use crate::published::Published;
use crate::quantity::Quantity;
use crate::scale::{Scale, Way};
use crate::selector::Selector;
use crate::tools::Tool;

pub use crate::written::Paper;

/// A published study and its replay.
#[derive(Clone, Debug)]
pub struct Study {
    /// Its name: that of its folder.
    pub name: String,
    /// What the column `study` of its published figures begins with.
    pub source: String,
    /// What it asks, as a question.
    pub question: String,
    /// What replaying it teaches, sentence by sentence.
    pub finding: Vec<String>,
    /// What replaying it does not say.
    pub limits: Vec<String>,
    /// The paper.
    pub paper: Paper,
    /// What it was done with.
    pub environment: Environment,
    /// Its experiments, in the order of the file.
    pub experiments: Vec<Experiment>,
    /// Its claims, in the order of the file.
    pub claims: Vec<Claim>,
    /// Its pictures, in the order of the file.
    pub figures: Vec<Figure>,
    /// The question how many units a server carries; empty if the study does not ask.
    pub carry: Vec<carry::Asked>,
    /// Remarks on printed figures.
    pub flags: Vec<Flag>,
    /// Published figures that are settings and no results.
    pub parameters: Vec<Parameter>,
    /// Its published figures.
    pub published: Published,
    /// Every plan of both plan files, in the order of the files.
    pub plans: Vec<StudyPlan>,
    /// Its real client programs, in the order of `tools.toml`.
    pub tools: Vec<Tool>,
    /// What an audit finds in its published figures, before any run.
    pub audit: Audit,
    /// `README.md`.
    pub readme: String,
    /// SHA-256 of `study.toml`, in hexadecimal digits: which conditions it is judged by.
    pub hash: String,
}

/// What an experiment was done with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// What the authors state.
    pub stated: BTreeMap<String, String>,
    /// What they do not.
    pub not_stated: Vec<String>,
    /// What we set where they are silent, and why.
    pub ours: Vec<String>,
}

/// An experiment of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// The published tables it made.
    pub tables: Vec<String>,
    /// Its runs the authors' way, by name: `published/E1-http`.
    pub published: Vec<String>,
    /// Its runs done right, by name: `right/cost`.
    pub right: Vec<String>,
    /// Why it cannot be run here; `None` where it can.
    pub not_run: Option<String>,
    /// What is wrong with how it was done.
    pub flaws: Vec<String>,
}

/// What the paper says, and what is asked of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its id.
    pub id: String,
    /// The section, table or figure of the paper that says it.
    pub section: String,
    /// What the paper says, in the study's own words.
    pub says: String,
    /// True for a finding of the audit, which the authors do not claim.
    pub is_finding: bool,
    /// The experiments it rests on, by id.
    pub experiments: Vec<String>,
    /// The published figures it rests on, as indices of [`Published::cells`].
    pub cells: Vec<usize>,
    /// Why it is not replayed and what that would take; `None` where it is.
    pub not_replayed: Option<String>,
    /// On what it is replayed: its own replay first, then those on named software. One where it is
    /// not replayed.
    pub replays: Vec<ReplayAsked>,
    /// The cause; `None` where the study names none.
    pub because: Option<String>,
    /// Context that is not evidence.
    pub remark: Option<String>,
    /// True if its figures are only measured at full scale.
    pub needs_full: bool,
    /// Cores that its runs need, at least; 0 for any number.
    pub cores_min: u32,
    /// What must hold, and what each condition is for.
    pub conditions: Vec<Asked>,
    /// Published values beside measured ones.
    pub compares: Vec<Compare>,
    /// Unknowns on which an answer hangs.
    pub break_even: Vec<BreakEven>,
    /// What the names of the expressions stand for.
    pub quantities: BTreeMap<String, Quantity>,
}

/// On what a claim is replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayAsked {
    /// The software, and what it stands in for if it is a stand-in; empty where it is not replayed.
    pub on: String,
    /// True if it is the software that the paper names.
    pub is_same: bool,
}

/// A condition of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// What it is for.
    pub role: Role,
    /// Which of [`Claim::replays`] it belongs to; 0 for what belongs to none.
    pub lane: usize,
    /// What must hold.
    pub condition: Condition,
}

/// A row that holds a published value beside a measured one.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// What is compared.
    pub what: String,
    /// The published value.
    pub theirs: Option<Expression>,
    /// The measured value.
    pub here: Option<Expression>,
    /// The unit of both; `None` for that of the quantities.
    pub unit: Option<String>,
}

/// An unknown on which an answer hangs.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakEven {
    /// Its name in the condition.
    pub vary: String,
    /// Its unit.
    pub unit: String,
    /// What it is, in words.
    pub what: String,
    /// The range in which the value is searched, the smaller end first.
    pub within: (f64, f64),
    /// The condition whose answer turns.
    pub condition: Condition,
}

/// Published figures that are settings and no results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Which, as indices of [`Published::cells`].
    pub cells: Vec<usize>,
    /// What they are.
    pub why: String,
}

/// A picture of the paper, drawn again.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
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
    /// True where the authors drew straight lines through their points.
    pub has_trend: bool,
    /// Published series.
    pub theirs: Vec<TheirSeries>,
    /// Measured series.
    pub ours: Vec<OurSeries>,
}

/// A published series of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct TheirSeries {
    /// What it is called.
    pub label: String,
    /// Its figures, as indices of [`Published::cells`], in their order along x.
    pub cells: Vec<usize>,
    /// Where its one figure is drawn, if the paper gives it no place.
    pub at: Option<f64>,
    /// Factor to the unit of y.
    pub scale: f64,
}

/// A measured series in a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct OurSeries {
    /// What it is called.
    pub label: String,
    /// The run's name.
    pub run: String,
    /// The figure of its cells.
    pub metric: String,
    /// The plan key of the axis.
    pub over: String,
    /// Which cells.
    pub at: Selector,
    /// Factor to the unit of y.
    pub scale: f64,
}

/// Remark on a printed figure, or on a table as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The table.
    pub table: String,
    /// The series, or what else of the table it is about.
    pub series: String,
    /// Where in the series; empty for all of it.
    pub x: String,
    /// As it is printed.
    pub printed: String,
    /// What it is read as.
    pub used: String,
    /// The reason.
    pub reason: String,
    /// How sure that is.
    pub confidence: String,
}

/// What is known of a run of a study beside its results.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// How much was run.
    pub scale: Scale,
    /// In whose way.
    pub ways: Vec<Way>,
    /// The experiments that were asked for, by id; empty where all were.
    pub only: Vec<String>,
    /// The folder of targets and studies beside those built in, as an absolute path.
    pub data: Option<String>,
    /// Where runs are kept, as it was typed; `None` for `runs`.
    pub runs: Option<String>,
    /// The id of the study's run.
    pub id: String,
    /// When it started, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// `done`, `interrupted` or `running`.
    pub state: String,
}

impl Study {
    /// The plan of this name, such as `right/cost`.
    pub fn plan(&self, name: &str) -> Option<&StudyPlan> {
        self.plans.iter().find(|plan| plan.name == name)
    }

    /// The tool of this name, such as `tools/curl-post`.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The experiment of this id.
    pub fn experiment(&self, id: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.id == id)
    }
}
