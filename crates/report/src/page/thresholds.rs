//! What the plan says must hold, on the first screen.

use std::fmt::Write as _;

use super::escape;
use crate::summary::Summary;
use crate::thresholds::sentences;

/// Every threshold with a tick or a cross; empty where the plan has none.
pub(crate) fn list(summary: &Summary) -> String {
    if summary.thresholds.is_empty() {
        return String::new();
    }
    let said = said(summary);
    let mut html = format!(
        "<section class=\"short thresholds\" aria-labelledby=\"thresholds-title\">\n\
         <h2 id=\"thresholds-title\">{said}</h2>\n<ul>"
    );
    for (holds, text) in sentences(summary, false) {
        let (class, mark) = if holds { ("", "✓") } else { (" class=\"invalid\"", "✗") };
        let _ = write!(html, "<li{class}><b>{mark}</b> {}</li>", escape(&text));
    }
    html + "</ul>\n</section>\n"
}

/// Whether they hold, as the answer says it, with the conditions that fail; `None` where the plan
/// has none.
pub(crate) fn verdict(summary: &Summary) -> Option<String> {
    let failed = summary.thresholds.iter().filter(|threshold| !threshold.holds);
    let failed: Vec<&str> = failed.map(|threshold| threshold.condition.as_str()).collect();
    let which = if failed.is_empty() { String::new() } else { format!(": {}", failed.join("; ")) };
    (!summary.thresholds.is_empty()).then(|| said(summary) + &which)
}

fn said(summary: &Summary) -> String {
    let failed = summary.thresholds.iter().filter(|threshold| !threshold.holds).count();
    match (failed, summary.thresholds.len()) {
        (0, 1) => "The threshold holds".to_owned(),
        (0, 2) => "Both thresholds hold".to_owned(),
        (1, 1) => "The threshold failed".to_owned(),
        (2, 2) => "Both thresholds failed".to_owned(),
        (0, all) => format!("All {all} thresholds hold"),
        (failed, all) => format!("{failed} of {all} thresholds failed"),
    }
}
