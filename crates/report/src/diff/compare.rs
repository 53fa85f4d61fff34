//! Compares two runs, cell by cell: the ratio of B to A with its interval, the verdict, and whether
//! a condition such as `response_time_ns.p99 > +5%` holds. `docs/decisions/0012` explains which
//! figure decides.

use std::collections::BTreeSet;

use weigh_model::Condition;
use weigh_model::condition::{LOSS_RATIO, LOST};

use super::document::{DIFF_SCHEMA, Diff, Holds, Judgement, Row, RunHead};
use super::input::Side;
use super::matching::Matched;
use super::{judgements, rows, warnings};
use crate::summary::{Answer, Cell, Summary};

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Conditions that fail the comparison if they hold.
    pub fail_if: Vec<Condition>,
    /// All metrics, not only the headlines.
    pub all: bool,
    /// The A/A limit of this host, as a share of 1: smaller effects are ignored.
    pub aa_limit: f64,
}

impl Diff {
    /// Compares B with A. A condition on a metric that no cell of either run has is refused, with
    /// the nearest name.
    ///
    /// # Errors
    /// If a condition is on a metric that no cell has, or is meaningless.
    pub fn of(a: &Side, b: &Side, asked: &Asked) -> Result<Diff, String> {
        let known = metric_names(a, b);
        asked.fail_if.iter().try_for_each(|condition| judgements::check(condition, &known))?;
        let mut matched = Matched::of(&a.summary, &b.summary);
        let is_in =
            |side: &Side, cell: &Cell| side.partial.iter().any(|own| own.point == cell.point);
        matched.only_in_a.retain(|cell| !is_in(b, cell));
        matched.only_in_b.retain(|cell| !is_in(a, cell));
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
        let mut partial: Vec<&Cell> = a.partial.iter().collect();
        partial.extend(b.partial.iter().filter(|cell| !is_in(a, cell)));
        for cell in &partial {
            judgements.extend(asked.fail_if.iter().map(|c| judgements::partial(c, cell)));
        }
        rows.sort_by(|left, right| rows::badness(right).total_cmp(&rows::badness(left)));
        judgements.sort_by_key(|judgement| judgement.holds);
        let names = |cells: &[&Cell]| cells.iter().map(|c| c.name.clone()).collect();
        Ok(Diff {
            schema: DIFF_SCHEMA,
            a: head(&a.summary),
            b: head(&b.summary),
            warnings: warnings::all(&a.summary, &b.summary, &matched),
            only_in_a: names(&matched.only_in_a),
            only_in_b: names(&matched.only_in_b),
            not_in_every_run: names(&partial),
            rows,
            judgements,
            unjudged,
        })
    }

    /// The result of all conditions: failed if one holds, undecided if one could not be decided or
    /// no cell had its figures. Undecided is never a good result.
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

/// The metrics of all cells of both runs, and those of the ledgers.
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
        crate::summary::shape::assert_stored("diff.schema.json", &Diff::json_schema());
    }
}
