//! A study: its paper, its experiments, its claims, its pictures. In it nothing is left open: what
//! its files say of each other was held against each other when it was read.

use std::collections::BTreeMap;

use weigh_audit::Audit;
use weigh_plan::World;

use crate::carry::Asked;
use crate::expression::Condition;
use crate::outcome::{AxisShown, Outcome, Role};
use crate::plans::StudyPlan;
use crate::published::Published;
use crate::quantity::Quantity;
use crate::runs::Runs;
use crate::scale::{Scale, Way};
use crate::selector::Selector;
use crate::texts::{StudyProblems, StudyTexts};

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
    /// The question of how many units a server carries; empty where nobody asks.
    pub carry: Vec<Asked>,
    /// What is doubtful about printed figures.
    pub flags: Vec<Flag>,
    /// Its published figures.
    pub published: Published,
    /// Every plan of both plan files, in the order of the files.
    pub plans: Vec<StudyPlan>,
    /// What an audit finds in its published figures, before any run.
    pub audit: Audit,
    /// `README.md`.
    pub readme: String,
}

/// What the paper is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paper {
    /// Its title; `None` where the sources do not state it.
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

/// A sentence of the authors, and what would make it true.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its id.
    pub id: String,
    /// Where they say it.
    pub source: String,
    /// What they say.
    pub says: String,
    /// The experiments it rests on, by id.
    pub experiments: Vec<String>,
    /// The published figures it rests on, as indices of [`Published::cells`].
    pub cells: Vec<usize>,
    /// Why it cannot be tested here; `None` where it can.
    pub not_testable: Option<String>,
    /// What explains it, or the right reading.
    pub because: Option<String>,
    /// True if its figures are only measured at full scale.
    pub needs_full: bool,
    /// What must hold, and what each is for.
    pub conditions: Vec<(Role, Condition)>,
    /// What the names of their expressions stand for.
    pub quantities: BTreeMap<String, Quantity>,
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
    /// Series of ours.
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

/// A series of ours in a picture.
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

/// What is doubtful about a printed figure, or about a table as a whole.
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
    /// Why.
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
    /// Reads a study and holds its files against each other. `world` says which protocols and
    /// targets there are.
    ///
    /// # Errors
    /// Everything that is wrong with its files, each with its place.
    pub fn read(texts: &StudyTexts, world: &dyn World) -> Result<Study, StudyProblems> {
        crate::reading::read(texts, world)
    }

    /// What came of it: the verdicts and the pictures, as far as there are runs.
    pub fn outcome(&self, about: &About, runs: &Runs) -> Outcome {
        crate::judging::outcome(self, about, runs)
    }

    /// What was run of it so far, without claims and pictures: these take time to work out, which
    /// a measurement that goes on would notice.
    pub fn progress(&self, about: &About, runs: &Runs) -> Outcome {
        crate::judging::progress(self, about, runs)
    }

    /// The plan of this name, such as `right/cost`.
    pub fn plan(&self, name: &str) -> Option<&StudyPlan> {
        self.plans.iter().find(|plan| plan.name == name)
    }

    /// The experiment of this id.
    pub fn experiment(&self, id: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.id == id)
    }
}
