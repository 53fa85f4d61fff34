//! The results of the conditions of a run or of a comparison, one by one and in one form, for exit
//! codes, JUnit files and annotations.

use std::collections::BTreeSet;

use crate::diff::{Diff, Holds};
use crate::summary::figure_text::figure_text;
use crate::summary::{Answer, Judged, Summary, Threshold};

/// One condition in one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The condition as it was written.
    pub condition: String,
    /// The case: a cell's name, or `all cases` if it is not about a single one.
    pub case: String,
    /// The result.
    pub answer: Answer,
    /// The figures or the reason; empty if there is nothing to add.
    pub text: String,
}

/// Name of a condition about the run itself.
pub const MEASURED: &str = "something was measured";

/// Name of a condition about the proof of a search for a limit.
pub const PROVEN: &str = "the limit is proven";

/// Returns the thresholds of a run, whether its search is proven, and whether each of its cases
/// measured anything.
pub fn of_run(summary: &Summary) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for threshold in &summary.thresholds {
        checks.extend(of_threshold(summary, threshold));
    }
    checks.extend(summary.unmeasured().into_iter().map(|own| Check {
        condition: MEASURED.to_owned(),
        case: own.cell,
        answer: Answer::Undecided,
        text: own.why,
    }));
    checks.extend(summary.unproven().map(|why| Check {
        condition: PROVEN.to_owned(),
        case: ALL.to_owned(),
        answer: Answer::Undecided,
        text: why,
    }));
    checks
}

fn of_threshold(summary: &Summary, threshold: &Threshold) -> Vec<Check> {
    let check = |case: &str, answer, text: String| Check {
        condition: threshold.condition.clone(),
        case: case.to_owned(),
        answer,
        text,
    };
    if let Some(reason) = &threshold.reason {
        return vec![check(ALL, Answer::Undecided, reason.clone())];
    }
    let text = |judged: &Judged| {
        let figure = judged.figure.map(|figure| figure_text(&threshold.metric, figure, false));
        let parts = [figure, judged.reason.clone()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    };
    let open = [(&threshold.failed, Answer::Failed), (&threshold.undecided, Answer::Undecided)];
    let mut checks: Vec<Check> = open
        .into_iter()
        .flat_map(|(judged, answer)| judged.iter().map(move |own| (own, answer)))
        .map(|(own, answer)| check(&own.cell, answer, text(own)))
        .collect();
    let named: BTreeSet<String> = checks.iter().map(|own| own.case.clone()).collect();
    if summary.limits.is_empty() {
        let held = summary.cells.iter().filter(|cell| !named.contains(&cell.name));
        checks.extend(held.map(|cell| check(&cell.name, Answer::Holds, String::new())));
    } else if checks.is_empty() {
        checks.push(check(ALL, Answer::Holds, String::new()));
    }
    checks
}

/// Returns the conditions of a comparison. They describe what fails a build: one that holds has
/// failed.
pub fn of_diff(diff: &Diff) -> Vec<Check> {
    let mut checks: Vec<Check> = diff
        .judgements
        .iter()
        .map(|own| Check {
            condition: must_not_hold(&own.condition),
            case: own.cell.clone(),
            answer: match own.holds {
                Holds::Yes => Answer::Failed,
                Holds::CannotTell => Answer::Undecided,
                Holds::No => Answer::Holds,
            },
            text: own.text.clone(),
        })
        .collect();
    let unjudged = diff
        .unjudged
        .iter()
        .filter(|condition| !diff.judgements.iter().any(|own| own.condition == **condition));
    let why = "the runs have no case in common; compare runs of the same plan and targets";
    checks.extend(unjudged.map(|condition| Check {
        condition: must_not_hold(condition),
        case: ALL.to_owned(),
        answer: Answer::Undecided,
        text: why.to_owned(),
    }));
    checks
}

/// A condition that fails a build, as what must be.
fn must_not_hold(condition: &str) -> String {
    format!("{condition} must not hold")
}

impl Check {
    /// The check in one line: the condition, the case and why.
    pub fn line(&self) -> String {
        let case = self.case.strip_suffix(" on reference").unwrap_or(&self.case);
        match self.text.is_empty() {
            true => format!("{}: {case}", self.condition),
            false => format!("{}: {case}: {}", self.condition, self.text),
        }
    }
}

/// Name that represents every case.
const ALL: &str = "all cases";
