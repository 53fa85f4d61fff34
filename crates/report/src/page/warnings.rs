//! The warnings: in short on the first screen, with advice further down.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use weigh_model::warnings::{Severity, WarningRecord};

use super::document::escape;
use crate::summary::cell_name::point_name;
use crate::summary::{NOT_TRIED, Summary};
use crate::view::ranges::joined;

/// A warning and its cells.
struct Shared<'a> {
    warning: &'a WarningRecord,
    cells: Vec<&'a str>,
}

/// Every code once, those that make results invalid first, then those of most cells.
fn by_code(summary: &Summary) -> Vec<Vec<Shared<'_>>> {
    let mut codes: Vec<Vec<Shared<'_>>> = Vec::new();
    for cell in &summary.cells {
        for warning in &cell.warnings {
            let at = codes.iter().position(|code| code[0].warning.code == warning.code);
            let at = at.unwrap_or_else(|| {
                codes.push(Vec::new());
                codes.len() - 1
            });
            match codes[at].iter_mut().find(|known| known.warning == warning) {
                Some(known) => known.cells.push(&cell.name),
                None => codes[at].push(Shared { warning, cells: vec![&cell.name] }),
            }
        }
    }
    codes.sort_by_key(|code| {
        let is_invalid = code.iter().any(|shared| shared.warning.severity == Severity::Invalid);
        (!is_invalid, std::cmp::Reverse(cells(code)))
    });
    codes
}

/// Number of cells of a code: one may have it twice, with different figures.
fn cells(code: &[Shared<'_>]) -> usize {
    let names: BTreeSet<&str> = code.iter().flat_map(|s| s.cells.iter().copied()).collect();
    names.len()
}

/// The warnings of the first screen: one line per code.
pub(crate) fn short(summary: &Summary) -> String {
    let codes = by_code(summary);
    let mut html = "<section class=\"short\" aria-labelledby=\"short-title\">\n\
                    <h2 id=\"short-title\">Warnings</h2>\n"
        .to_owned();
    if codes.is_empty() && summary.failures.is_empty() {
        return html + "<p>None.</p>\n</section>\n";
    }
    html.push_str("<ul>");
    for code in codes.iter().take(SHORT_MAX) {
        let shared = &code[0];
        let (class, word) = match shared.warning.severity {
            Severity::Invalid => (" class=\"invalid\"", "<b>invalid</b> "),
            Severity::InvalidTimes => ("", "<b>response times invalid</b> "),
            Severity::Warning => ("", ""),
        };
        let of = match (cells(code), summary.cells.len()) {
            (number, all) if number == all => "all cases".to_owned(),
            (1, _) => escape(shared.cells[0]),
            (number, all) => format!("{number} of {all} cases"),
        };
        let texts: Vec<&str> = code.iter().map(|own| &*own.warning.text).collect();
        let text = escape(&joined(&texts, "each is below"));
        let advice = escape(&shared.warning.advice);
        let _ = write!(html, "<li{class}>{word}{text}; {advice} <span>{of}</span></li>");
    }
    if !summary.failures.is_empty() {
        let number = summary.failures.len();
        let trials = if number == 1 { "trial" } else { "trials" };
        let _ = write!(html, "<li class=\"invalid\">{number} {trials} could not be done</li>");
    }
    let rest = codes.len().saturating_sub(SHORT_MAX);
    let more = if rest > 0 { format!("{rest} more, and which") } else { "Which".to_owned() };
    html + &format!("</ul>\n<p><a href=\"#warnings\">{more} cases have them</a></p>\n</section>\n")
}

/// Every warning with its advice and its cells, and what could not be done.
pub(crate) fn full(summary: &Summary) -> String {
    let mut html = String::new();
    for code in by_code(summary) {
        let is_invalid = code.iter().any(|shared| shared.warning.severity == Severity::Invalid);
        let class = if is_invalid { " class=\"invalid\"" } else { "" };
        let _ = write!(
            html,
            "<dt{class}><code>{}</code>{}</dt><dd><ul>",
            escape(&code[0].warning.code),
            if is_invalid { " makes a result invalid" } else { "" },
        );
        for shared in code.iter().take(TEXTS_MAX) {
            let of = match shared.cells.len() {
                number if number == summary.cells.len() => "all cases".to_owned(),
                number if number > CELLS_MAX => format!("{number} cases"),
                _ => shared.cells.join("; "),
            };
            let WarningRecord { text, advice, .. } = shared.warning;
            let (text, advice) = (escape(text), escape(advice));
            let _ = write!(html, "<li>{text}; <b>{advice}</b> <span>{}</span></li>", escape(&of));
        }
        if code.len() > TEXTS_MAX {
            let _ = write!(html, "<li>and {} more like these</li>", code.len() - TEXTS_MAX);
        }
        html.push_str("</ul></dd>\n");
    }
    let html = match html.is_empty() {
        true => "<p>None.</p>\n".to_owned(),
        false => format!("<dl>\n{html}</dl>\n"),
    };
    html + &failures(summary)
}

fn failures(summary: &Summary) -> String {
    if summary.failures.is_empty() {
        return String::new();
    }
    let mut html = "<h3>Not done</h3>\n<ul>".to_owned();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for failure in &summary.failures {
        let error = failure.error.strip_prefix(NOT_TRIED).unwrap_or(&failure.error);
        let item = format!("<li>{}: {}</li>", escape(&point_name(&failure.point)), escape(error));
        // Repetitions often fail alike.
        if seen.insert(item.clone()) {
            html += &item;
        }
    }
    html + "</ul>\n"
}

const SHORT_MAX: usize = 5;

const TEXTS_MAX: usize = 12;

const CELLS_MAX: usize = 6;
