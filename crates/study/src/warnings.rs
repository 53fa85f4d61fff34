//! Warnings about the results of a run, each listed once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::warnings::Severity;
use weigh_report::Summary;

/// Warning about results of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WarningShown {
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

impl WarningShown {
    /// The warnings of a run's cells, once for each code: those that remove a result first.
    pub fn of(summary: &Summary) -> Vec<WarningShown> {
        of(summary)
    }
}

/// The warnings of a run's cells: those that remove a result first, then those of most cells.
pub(crate) fn of(summary: &Summary) -> Vec<WarningShown> {
    let mut known: Vec<WarningShown> = Vec::new();
    for cell in &summary.cells {
        for warning in &cell.warnings {
            let place = known.iter().position(|shown| shown.code == warning.code);
            let place = place.unwrap_or_else(|| {
                known.push(WarningShown {
                    code: warning.code.clone(),
                    takes: String::new(),
                    text: warning.text.clone(),
                    advice: warning.advice.clone(),
                    cells: Vec::new(),
                });
                known.len() - 1
            });
            let shown = &mut known[place];
            if rank(takes(warning.severity)) < rank(&shown.takes) {
                shown.takes = takes(warning.severity).to_owned();
                shown.text.clone_from(&warning.text);
            }
            if shown.cells.last() != Some(&cell.name) {
                shown.cells.push(cell.name.clone());
            }
        }
    }
    known.sort_by_key(|shown| (rank(&shown.takes), std::cmp::Reverse(shown.cells.len())));
    known
}

/// What a warning removes, in a word.
fn takes(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "",
        Severity::InvalidTimes => "response times",
        Severity::Invalid => "the result",
    }
}

fn rank(takes: &str) -> u8 {
    match takes {
        "the result" => 0,
        "" => 2,
        _ => 1,
    }
}
