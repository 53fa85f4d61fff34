//! Two runs, cell by cell: the ratio of B to A with its interval, what follows from it, and
//! whether a condition such as `response_time_ns.p99 > +5%` holds. Which figure decides, and why:
//! `docs/decisions/0012`.

mod doubts;
mod input;
mod judgements;
mod matching;
mod rows;
mod text;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use weigh_model::Condition;
use weigh_model::condition::{LOSS_RATIO, LOST};
use weigh_model::doubt::DoubtRecord;

pub use input::Side;
pub use text::render;

use crate::judging::Answer;
use crate::shape::DoubtShape;
use crate::summary::{Ratio, Summary, Verdict};
use matching::Matched;

/// The name and version of the document's format.
pub const DIFF_SCHEMA: &str = "weigh/diff/1";

/// What is asked of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Conditions that nobody wants to hold.
    pub fail_if: Vec<Condition>,
    /// All metrics, not only the headlines.
    pub all: bool,
    /// What this host shows between equals, as a share of 1: no smaller effect is called one.
    pub aa_limit: f64,
}

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
    pub doubts: Vec<DoubtRecord>,
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

impl Diff {
    /// Compares B with A. A condition about a metric that no cell of either run has is refused,
    /// with the nearest name.
    pub fn of(a: &Side, b: &Side, asked: &Asked) -> Result<Diff, String> {
        let known = metric_names(a, b);
        asked.fail_if.iter().try_for_each(|condition| judgements::check(condition, &known))?;
        let matched = Matched::of(&a.summary, &b.summary);
        let mut rows: Vec<Row> = Vec::new();
        let mut judgements: Vec<Judgement> = Vec::new();
        for (cell_a, cell_b) in &matched.pairs {
            let pair = rows::Pair { a: (cell_a, a), b: (cell_b, b), aa_limit: asked.aa_limit };
            let metrics = if asked.all { pair.metrics() } else { pair.headlines() };
            rows.extend(metrics.iter().map(|metric| pair.row(metric)));
            judgements.extend(asked.fail_if.iter().map(|c| judgements::judge(c, &pair)));
        }
        let unjudged = asked.fail_if.iter().filter(|condition| {
            !judgements.iter().any(|j| j.is_measured && j.condition == condition.to_string())
        });
        let unjudged = unjudged.map(Condition::to_string).collect();
        for cell in matched.only_in_a.iter().chain(&matched.only_in_b) {
            judgements.extend(asked.fail_if.iter().map(|c| judgements::unmatched(c, cell)));
        }
        rows.sort_by(|left, right| rows::badness(right).total_cmp(&rows::badness(left)));
        judgements.sort_by_key(|judgement| judgement.holds);
        let names =
            |cells: &[&crate::summary::Cell]| cells.iter().map(|c| c.name.clone()).collect();
        Ok(Diff {
            schema: DIFF_SCHEMA,
            a: head(&a.summary),
            b: head(&b.summary),
            doubts: doubts::all(&a.summary, &b.summary, &matched),
            only_in_a: names(&matched.only_in_a),
            only_in_b: names(&matched.only_in_b),
            rows,
            judgements,
            unjudged,
        })
    }

    /// What all conditions come to: failed where one holds, undecided where it cannot be told
    /// whether one does or where nothing could decide one. Undecided is never a good result.
    pub fn answer(&self) -> Answer {
        let of = |holds: Holds| self.judgements.iter().any(|own| own.holds == holds);
        match () {
            () if of(Holds::Yes) => Answer::Failed,
            () if of(Holds::CannotTell) || !self.unjudged.is_empty() => Answer::Undecided,
            () => Answer::Holds,
        }
    }

    /// The document as it is printed, with a line break at its end.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("a diff has only text keys, and its numbers are finite") + "\n"
    }

    /// The JSON Schema (2020-12) of the document, as checked in at `schemas/`.
    pub fn json_schema() -> String {
        let schema = schemars::schema_for!(Diff);
        serde_json::to_string_pretty(&schema).expect("a schema is plain JSON") + "\n"
    }
}

/// The metrics of all cells of both runs, and what ledgers say.
fn metric_names<'r>(a: &'r Side, b: &'r Side) -> BTreeSet<&'r str> {
    let cells = [a, b].into_iter().flat_map(|side| &side.summary.cells);
    let measured = cells.flat_map(|cell| cell.metrics.keys().map(String::as_str));
    measured.chain([LOSS_RATIO, LOST]).collect()
}

fn head(summary: &Summary) -> RunHead {
    let run = &summary.run;
    RunHead {
        id: run.id.clone(),
        name: run.plan.name.clone(),
        started: run.started.clone(),
        version: run.version.clone(),
        outcome: run.outcome.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_the_repository_is_current() {
        crate::shape::assert_stored("diff.schema.json", &Diff::json_schema());
    }
}
