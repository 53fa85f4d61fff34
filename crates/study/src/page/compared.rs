//! The table of printed figures beside measured ones, a row each, with the answer to the claim.

use std::fmt::Write as _;

use weigh_report::page::document::escape;

use super::claims::short_answer;
use super::numbers::{between, in_unit, unit_after};
use super::prose::prose;
use crate::figures::number;
use crate::outcome::{ClaimOutcome, ComparedShown, Outcome};

/// The table; empty where nothing is compared.
pub(super) fn section(outcome: &Outcome) -> String {
    let rows: String = outcome.claims.iter().map(rows).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Printed and measured \
         figures\"><table class=\"compared\">\n<thead><tr><th scope=\"col\">claim</th><th \
         scope=\"col\" class=\"text\">figure</th><th scope=\"col\">paper</th><th scope=\"col\">\
         here</th><th scope=\"col\">here / paper</th><th scope=\"col\">95 % interval</th><th \
         scope=\"col\" class=\"text\">answer</th></tr></thead>\n{rows}</table></div>\n<p \
         class=\"note\">The interval is that of here / paper; where the paper prints no such \
         figure, that of the figure measured here.</p>\n"
    )
}

/// The rows of a claim, together.
fn rows(claim: &ClaimOutcome) -> String {
    let has_value = |one: &&ComparedShown| one.theirs.is_some() || one.here.is_some();
    let compared: Vec<&ComparedShown> = claim.compared.iter().filter(has_value).collect();
    if compared.is_empty() {
        return String::new();
    }
    let mut html = "<tbody>\n".to_owned();
    let number = compared.len();
    for (nth, one) in compared.into_iter().enumerate() {
        let (id, answer) = match nth {
            0 => (
                format!(
                    "<th scope=\"rowgroup\" rowspan=\"{number}\">\
                     <a href=\"#claim-{0}\">{0}</a></th>",
                    escape(&claim.id)
                ),
                format!(
                    "<td class=\"text answer\" rowspan=\"{number}\">{}</td>",
                    short_answer(claim)
                ),
            ),
            _ => (String::new(), String::new()),
        };
        let _ = writeln!(
            html,
            "<tr>{id}<td class=\"text what\">{}</td><td>{}</td><td{}>{}</td><td>{}</td><td>{}</td>\
             {answer}</tr>",
            prose(&one.what),
            escape(&theirs(one)),
            if one.reason.is_empty() {
                String::new()
            } else {
                format!(" title=\"{}\"", escape(&one.reason))
            },
            escape(&measured(one)),
            one.ratio.map_or("–".to_owned(), number_of),
            escape(&interval(one)),
        );
    }
    html + "</tbody>\n"
}

fn number_of(value: f64) -> String {
    escape(&number(value))
}

/// The published figure, digit by digit as printed.
pub(super) fn theirs(one: &ComparedShown) -> String {
    match (&one.theirs, one.theirs_printed.as_str()) {
        (None, _) => "–".to_owned(),
        (Some(value), "") => in_unit(*value, &one.unit),
        (Some(_), printed) => unit_after(printed, &one.unit),
    }
}

/// The measured figure.
pub(super) fn measured(one: &ComparedShown) -> String {
    one.here.map_or("–".to_owned(), |here| in_unit(here, &one.unit))
}

/// The interval of the ratio; where there is no ratio, of what was measured.
fn interval(one: &ComparedShown) -> String {
    match one.ratio {
        Some(_) => between((one.ratio_low, one.ratio_high), "1"),
        None => between((one.low, one.high), &one.unit),
    }
}

/// True if the measured figure is within a quarter of the printed one, either way.
pub(super) fn is_near(one: &ComparedShown) -> bool {
    one.ratio.is_some_and(|ratio| (0.8..=1.25).contains(&ratio))
}
