//! The thresholds of the plan, on the first screen.

use std::fmt::Write as _;

use super::document::escape;
use crate::summary::{Answer, Summary};
use crate::view::thresholds::{held, sentences};

/// Every threshold with a tick or a cross; empty if the plan has none.
pub(crate) fn list(summary: &Summary) -> String {
    if summary.thresholds.is_empty() {
        return String::new();
    }
    let said = held(summary);
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
