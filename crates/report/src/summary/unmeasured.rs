//! Cells in which nothing was measured: no message was due, none was sent, or none arrived. It is
//! reported prominently, so that it does not pass for a good result.

use weigh_model::Pattern;
use weigh_model::ledger::Cause;
use weigh_model::plan::Plan;

use super::cell::Cell;
use super::document::Summary;
use super::lint::asked::Asked;
use crate::figures::count;

/// A cell in which no message succeeded, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmeasured {
    /// The cell's name.
    pub cell: String,
    /// The reason, with what to type.
    pub why: String,
}

impl Summary {
    /// The cells in which nothing was measured. A search offers loads that get no answer, so it has
    /// none.
    pub fn unmeasured(&self) -> Vec<Unmeasured> {
        if !self.limits.is_empty() {
            return Vec::new();
        }
        let found = |cell: &Cell| {
            Some(Unmeasured { cell: cell.name.clone(), why: why(cell, &self.run.plan)? })
        };
        self.cells.iter().filter_map(found).collect()
    }
}

/// Why nothing was measured in a cell; `None` if something was.
pub(crate) fn why(cell: &Cell, plan: &Plan) -> Option<String> {
    let asked = Asked::of(&cell.point, plan);
    if asked.pattern == Pattern::Hold {
        let held = cell.metrics.get("connections_held").and_then(|own| own.value);
        return (held == Some(0.0)).then(|| "no connection was established".to_owned());
    }
    let ledger = &cell.ledger;
    if ledger.scheduled == 0 && ledger.sent == 0 {
        let why = "no message was due: raise the rate (-R) or the duration (-d)";
        return Some(why.to_owned());
    }
    if ledger.sent == 0 {
        return Some(format!("none of {} due messages was sent", count(ledger.scheduled)));
    }
    // Without confirmations and subscribers, delivery is unknown.
    if ledger.delivered? > 0 || ledger.late > 0 || ledger.lost == Some(0) {
        return None;
    }
    let errors = ledger.causes.get(&Cause::ErrorAnswer).copied().unwrap_or(0);
    let sent = count(ledger.sent);
    if errors == ledger.sent {
        let warning = cell.warnings.iter().find(|warning| warning.code == "error-answers");
        let said = warning.map_or(String::new(), |warning| {
            let status = warning.text.rsplit("answered with ").next().unwrap_or_default();
            format!(" ({status}): {}", warning.advice)
        });
        return Some(format!("all {sent} messages were answered with errors{said}"));
    }
    let causes: Vec<String> = ledger
        .causes
        .iter()
        .filter(|(_, lost)| **lost > 0)
        .map(|(cause, lost)| format!("{} {}", count(*lost), cause.words()))
        .collect();
    let causes =
        if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
    Some(format!("none of {sent} sent messages arrived{causes}"))
}
