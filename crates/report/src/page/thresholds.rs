//! The thresholds of the plan, on the first screen.

use std::fmt::Write as _;

use super::document::escape;
use crate::summary::{Answer, Summary};
use crate::view::thresholds::sentences;

/// Every threshold with a tick or a cross; empty if the plan has none.
pub(crate) fn list(summary: &Summary) -> String {
    if summary.thresholds.is_empty() {
        return String::new();
    }
    let said = said(summary);
    let mut html = format!(
        "<section class=\"short thresholds\" aria-labelledby=\"thresholds-title\">\n\
         <h2 id=\"thresholds-title\">{said}</h2>\n<ul>"
    );
    for (answer, text) in sentences(summary, false) {
        let (class, mark) = match answer {
            Answer::Holds => ("", "✓"),
            Answer::Failed => (" class=\"invalid\"", "✗"),
            Answer::Undecided => (" class=\"invalid\"", "?"),
        };
        let _ = write!(html, "<li{class}><b>{mark}</b> {}</li>", escape(&text));
    }
    html + "</ul>\n</section>\n"
}

/// Whether they hold, as in the answer, with the conditions that do not; `None` if the plan has
/// none.
pub(crate) fn verdict(summary: &Summary) -> Option<String> {
    let open = summary.thresholds.iter().filter(|threshold| !threshold.holds);
    let open: Vec<&str> = open.map(|threshold| threshold.condition.as_str()).collect();
    let which = if open.is_empty() { String::new() } else { format!(": {}", open.join("; ")) };
    (!summary.thresholds.is_empty()).then(|| said(summary) + &which)
}

fn said(summary: &Summary) -> String {
    let count = |wanted: Answer| {
        summary.thresholds.iter().filter(|threshold| threshold.answer() == wanted).count()
    };
    let all = summary.thresholds.len();
    let together = |number: usize, word: &str, plural: &str| match (number, all) {
        (1, 1) => format!("The threshold {word}"),
        (2, 2) => format!("Both thresholds {plural}"),
        (number, all) if number == all => format!("All {all} thresholds {plural}"),
        (number, all) => format!("{number} of {all} thresholds {plural}"),
    };
    let parts = [
        (count(Answer::Failed), "failed", "failed"),
        (count(Answer::Undecided), "could not be decided", "could not be decided"),
    ];
    let open: Vec<String> = parts
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, word, plural)| together(number, word, plural))
        .collect();
    if open.is_empty() { together(all, "holds", "hold") } else { open.join(", ") }
}
