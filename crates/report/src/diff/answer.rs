//! The answer of a comparison of two runs in a sentence: what changed most and by how much, or how
//! large a difference could have stayed unseen.

use super::digits::{decimals, figure_text, plus_minus};
use super::document::{Diff, Effect, Row};
use crate::figures::spoken;
use crate::summary::Verdict;

/// The answer, in a few sentences. Rows are sorted, the worst first and the largest improvement
/// last.
pub(super) fn sentence(diff: &Diff) -> String {
    let mut text = answer(&diff.rows);
    if !diff.warnings.is_empty() {
        let codes: Vec<&str> = diff.warnings.iter().map(|own| own.code.as_str()).collect();
        text += &format!(" See the warnings first: {}.", codes.join(", "));
    }
    text
}

fn answer(rows: &[Row]) -> String {
    let of = |effect: Option<Effect>| {
        let is_called = |own: &&Row| matches!(own.verdict, Verdict::Higher | Verdict::Lower);
        rows.iter().filter(is_called).filter(|own| own.effect == effect).collect::<Vec<&Row>>()
    };
    let (worse, better) = (of(Some(Effect::Worse)), of(Some(Effect::Better)));
    let changed = of(None);
    let all = comparisons(rows.len());
    if let Some(most) = worse.first() {
        let also = match better.len() {
            0 => String::new(),
            some => format!(" and better in {some}"),
        };
        let place = worse.len();
        return format!("B is worse than A in {place}{also} of {all}. Worst: {}.", change(most));
    }
    if let Some(most) = better.last() {
        return format!("B is better than A in {} of {all}. Most: {}.", better.len(), change(most));
    }
    if let Some(most) = changed.first() {
        return format!("B differs from A in {} of {all}. Most: {}.", changed.len(), change(most));
    }
    match rows {
        [] => "The runs have no case in common: nothing was compared.".to_owned(),
        _ => no_difference(rows),
    }
}

/// What one figure did: the ratio with its interval, or both figures if there is no ratio.
fn change(row: &Row) -> String {
    let bounds = row.ratio.and_then(|ratio| Some((ratio.value, ratio.low?, ratio.high?)));
    match bounds {
        Some((value, low, high)) => format!(
            "{} is {} times that of A ({} at 95 %)",
            figure(row),
            plus_minus(value, Some((low, high))),
            range(low, high)
        ),
        None => format!(
            "{} went from {} to {}",
            figure(row),
            figure_text(row.a.as_ref(), &row.unit),
            figure_text(row.b.as_ref(), &row.unit)
        ),
    }
}

/// That nothing was found, and what could have stayed unseen: the interval that reaches farthest
/// from 1. If nothing could be compared, why.
fn no_difference(rows: &[Row]) -> String {
    let decided = rows.iter().filter(|own| own.verdict != Verdict::Refused).count();
    if decided == 0 {
        let reason = rows.iter().find_map(|own| own.reason.as_deref());
        let reason = reason.unwrap_or("no figure has a ratio");
        return format!("Whether B differs from A is unknown: {reason}.");
    }
    let reach = |(_, low, high): &(&Row, f64, f64)| high.ln().max(-low.ln());
    let bounded = rows.iter().filter_map(|own| {
        let (low, high) = own.ratio.and_then(|ratio| ratio.low.zip(ratio.high))?;
        (own.verdict != Verdict::Refused && low > 0.0).then_some((own, low, high))
    });
    let widest = bounded.max_by(|one, other| reach(one).total_cmp(&reach(other)));
    let unseen = match widest {
        Some((row, low, high)) => format!(
            "Unseen could be: {} is {} times that of A (95 % CI); other intervals are narrower",
            figure(row),
            range(low, high)
        ),
        None => "How large a difference could have stayed unseen is unknown".to_owned(),
    };
    let refused = match rows.len() - decided {
        0 => String::new(),
        some => format!(" ({some} more not decided)"),
    };
    format!("No difference was found in {}{refused}. {unseen}.", comparisons(decided))
}

fn comparisons(number: usize) -> String {
    format!("{number} comparison{}", if number == 1 { "" } else { "s" })
}

/// `1.18 to 1.22`, with the digits of half of it.
fn range(low: f64, high: f64) -> String {
    let decimals = decimals((high - low) / 2.0);
    format!("{low:.decimals$} to {high:.decimals$}")
}

/// The metric in words and its cell.
fn figure(row: &Row) -> String {
    let cell = row.cell.strip_suffix(" on reference").unwrap_or(&row.cell);
    format!("{} of {cell}", spoken(&row.metric))
}
