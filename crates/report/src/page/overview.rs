//! The table of all cases, and the verdict of every pair.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::answer::at_one_place;
use super::escape;
use crate::figures::three_digits;
use crate::pictures::Matrix;
use crate::summary::{Cell, Ratio, Summary, Verdict};
use crate::table::{INVALID_MARK, Row, headings, rows};

/// The table of the terminal, sortable.
pub(crate) fn table(summary: &Summary) -> String {
    if summary.cells.is_empty() {
        return "<p>Nothing was weighed.</p>\n".to_owned();
    }
    let mut html = "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"All cases\">\
                    <table class=\"sortable\">\n<thead><tr>"
        .to_owned();
    for heading in headings() {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(&heading));
    }
    html.push_str("</tr></thead>\n");
    let mut is_open = false;
    for row in rows(summary) {
        match row {
            Row::Title(title) => {
                html.push_str(if is_open { "</tbody>\n<tbody>" } else { "<tbody>" });
                is_open = true;
                let span = headings().count();
                let title = escape(&title);
                let _ = write!(
                    html,
                    "<tr class=\"group\"><th colspan=\"{span}\" scope=\"rowgroup\">{title}</th>\
                     </tr>"
                );
            }
            Row::Figures(cell, figures) => html.push_str(&figures_row(cell, &figures)),
        }
    }
    html + "</tbody></table></div>\n<p class=\"note\">Sorting stays within a guarantee: that \
            nothing is confirmed is no way of being fast. <b>!</b> invalid, not to be used. \
            <b>d</b> delivery time, where nothing confirms. <b>∞</b> falls into the lost share. \
            <b>–</b> not measured.</p>\n"
}

fn figures_row(cell: &Cell, figures: &[String]) -> String {
    let start = if cell.valid { "<tr>" } else { "<tr class=\"invalid\">" };
    let mut row = start.to_owned();
    for (index, figure) in figures.iter().enumerate() {
        let figure = figure.trim().replacen(INVALID_MARK, &format!("{INVALID_MARK} "), 1);
        let figure = escape(&figure);
        row += &match index {
            0 => format!("<th scope=\"row\">{figure}</th>"),
            _ => format!("<td>{figure}</td>"),
        };
    }
    row + "</tr>\n"
}

/// Every pair at one place of the axes that was compared, metric by metric; the refused ones are
/// counted by their reason.
pub(crate) fn verdicts(summary: &Summary, matrix: &Matrix) -> String {
    let index: BTreeMap<&str, usize> =
        summary.cells.iter().enumerate().map(|(i, cell)| (cell.name.as_str(), i)).collect();
    let mut rows = String::new();
    let (mut shown, mut beyond) = (0, 0);
    let mut refused: Vec<(&str, usize)> = Vec::new();
    for comparison in &summary.comparisons {
        let verdict = match comparison.verdict {
            Verdict::Lower => "lower",
            Verdict::Higher => "higher",
            Verdict::TooClose => "too close to call",
            Verdict::Refused => {
                let reason = comparison.reason.as_deref().unwrap_or("refused");
                match refused.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, number)) => *number += 1,
                    None => refused.push((reason, 1)),
                }
                continue;
            }
        };
        let number = |name: &str| index.get(name).copied();
        let (left, right) = (number(&comparison.left), number(&comparison.right));
        let Some((left, right)) = left.zip(right) else { continue };
        if shown == ROWS_MAX || !at_one_place(matrix, left, right) {
            beyond += 1;
            continue;
        }
        shown += 1;
        let [left, right] = [left, right].map(|cell| escape(&matrix.labels[cell]));
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td class=\"text\">{left}</td><td class=\"text\">\
             {right}</td><td>{}</td><td class=\"text\">{verdict}</td></tr>",
            escape(&comparison.metric),
            comparison.ratio.map_or_else(|| "–".to_owned(), ratio),
        );
    }
    verdict_table(&rows, shown, beyond) + &refusals(refused)
}

fn verdict_table(rows: &str, shown: usize, beyond: usize) -> String {
    let mut html = String::new();
    if shown > 0 {
        let open = if shown <= ROWS_OPEN { " open" } else { "" };
        let _ = write!(
            html,
            "<p>The left case divided by the right one, with the interval of the ratio at 95 %. A \
             verdict is given where the interval leaves out 1.</p>\n<details{open}><summary>\
             {shown} pairs</summary><div class=\"wide\" tabindex=\"0\" role=\"region\" \
             aria-label=\"Verdicts\"><table class=\"sortable\">\n<thead><tr><th scope=\"col\">\
             metric</th><th scope=\"col\" class=\"text\">left</th><th scope=\"col\" \
             class=\"text\">right</th><th scope=\"col\">left / right</th><th scope=\"col\" \
             class=\"text\">left is</th></tr></thead><tbody>\n{rows}</tbody></table></div>\
             </details>\n"
        );
    }
    if beyond > 0 {
        let _ = writeln!(
            html,
            "<p class=\"note\">{beyond} more comparisons, most of them of cases under different \
             loads, stand in summary.json.</p>"
        );
    }
    html
}

fn refusals(mut refused: Vec<(&str, usize)>) -> String {
    if refused.is_empty() {
        return String::new();
    }
    refused.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let mut html = "<p>Not compared:</p>\n<ul>".to_owned();
    for (reason, number) in refused.iter().take(REASONS_MAX) {
        let _ = write!(html, "<li>{number}: {}</li>", escape(reason));
    }
    if refused.len() > REASONS_MAX {
        let _ =
            write!(html, "<li>{} more reasons in summary.json</li>", refused.len() - REASONS_MAX);
    }
    html + "</ul>\n"
}

fn ratio(ratio: Ratio) -> String {
    let value = three_digits(ratio.value);
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            format!("{value} ({} to {})", three_digits(low), three_digits(high))
        }
        _ => value,
    }
}

/// Two hundred cases make tens of thousands of pairs, which nobody reads.
const ROWS_MAX: usize = 400;
const ROWS_OPEN: usize = 30;
const REASONS_MAX: usize = 8;
