//! The question of a run in one sentence, and its answer in two, made from the verdicts.

use std::collections::BTreeSet;

use weigh_model::Guarantee;

use super::{ends, thresholds};
use crate::figures::{count, spoken};
use crate::summary::headlines::headline_metric;
use crate::summary::{Cell, Comparison, Matrix, Summary, Verdict};
use crate::view::interference;
use crate::view::meeting::{Lanes, Meeting, everywhere};

/// The question: that of the plan, or else one made from its cases.
pub(crate) fn question(summary: &Summary, matrix: &Matrix) -> String {
    if let Some(question) = &summary.run.plan.question {
        return question.clone();
    }
    if let Some(limit) = summary.limits.first() {
        return format!("Where is the limit, by {}?", limit.axis);
    }
    let mut names: Vec<&str> = match matrix.axes.first() {
        Some(axis) => axis.lines.iter().map(|line| line.name.as_str()).collect(),
        None => matrix.labels.iter().map(String::as_str).collect(),
    };
    names.dedup();
    let how = match matrix.axes.first() {
        Some(axis) => format!("along {}", Matrix::short(&axis.key)),
        None => load(summary),
    };
    match &names[..] {
        [] => "Nothing was measured.".to_owned(),
        [one] => format!("How does {one} perform {how}?"),
        few if few.len() <= NAMES_MAX => format!("{} compared {how}", in_words(few)),
        many => match protocols(summary) {
            Some(protocols) => format!("{protocols} compared {how}: {} cases", many.len()),
            None => format!("{} cases compared {how}", many.len()),
        },
    }
}

/// The protocols of the cases in words, if there are several.
fn protocols(summary: &Summary) -> Option<String> {
    let own = |cell: &Cell| cell.point.get("protocol")?.as_str().map(str::to_owned);
    let mut names: Vec<String> = summary.cells.iter().filter_map(own).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    (names.len() > 1 && names.len() <= NAMES_MAX).then(|| in_words_of(&names))
}

/// The load in words: `with 2 connections`, with its pattern if all cases have the same.
fn load(summary: &Summary) -> String {
    let plan = &summary.run.plan;
    let own = |cell: &Cell| {
        cell.point.get("load.pattern").and_then(|own| own.as_str().map(str::to_owned))
    };
    let patterns: BTreeSet<Option<String>> = summary.cells.iter().map(own).collect();
    let connections = match plan.load.connections {
        1 => "1 connection".to_owned(),
        many => format!("{} connections", count(u64::from(many))),
    };
    match patterns.len() {
        0 | 1 => {
            let pattern = patterns.into_iter().flatten().next();
            let pattern = pattern.unwrap_or_else(|| plan.load.pattern.name().to_owned());
            format!("in {pattern} with {connections}")
        }
        _ => format!("with {connections}"),
    }
}

/// The answer: thresholds and the end of an axis, if the plan has them; then a sentence on time,
/// and one on loss and cost. After a search: the result of every lane and what limited it.
pub(crate) fn answer(summary: &Summary, matrix: &Matrix) -> Vec<String> {
    if !summary.limits.is_empty() {
        let found = summary.limits.iter().flat_map(|limit| {
            limit.goals.iter().map(move |goal| format!("{}: {}", limit.title(), goal.sentence))
        });
        let ended = summary.limits.iter().flat_map(|limit| {
            let ended = limit.goals.iter().filter_map(|goal| goal.ended_by.as_ref());
            ended.map(move |ended| format!("{}: limited by {}", limit.title(), ended.sentence))
        });
        return found.chain(ended).map(sentence).collect();
    }
    if summary.cells.is_empty() {
        return vec![
            "No trial has a result.".to_owned(),
            "See what was not done, below.".to_owned(),
        ];
    }
    let mut texts: Vec<String> = thresholds::verdict(summary).into_iter().collect();
    texts.extend(interference::answer(summary));
    texts.extend(ends::sentences(summary, matrix));
    let metric = headline_metric(summary).unwrap_or("response_time_ns.p99");
    match verdict(summary, matrix, metric) {
        Ok(said) => texts.push(said),
        // A run with another answer needs no sentence about a missing comparison.
        Err(nothing) if texts.is_empty() => texts.push(nothing),
        Err(_) => {}
    }
    texts.push(loss_and_cost(summary, matrix));
    texts.into_iter().map(sentence).collect()
}

/// The verdicts of one metric together, or why there are none. Cells are only compared within a
/// guarantee, so there is a part for each.
fn verdict(summary: &Summary, matrix: &Matrix, metric: &str) -> Result<String, String> {
    if summary.cells.len() == 1 {
        return Err(format!("{}: only one case, so nothing is compared", spoken(metric)));
    }
    let lanes = Lanes::of(summary, matrix);
    let parts: Vec<String> = guarantees(&summary.cells)
        .into_iter()
        .filter_map(|guarantee| within(summary, &lanes, (metric, guarantee)))
        .collect();
    if parts.is_empty() {
        let of_metric: Vec<&Comparison> =
            summary.comparisons.iter().filter(|c| c.metric == metric).collect();
        return Err(nothing_to_say(metric, &summary.cells, &of_metric));
    }
    let said = parts.join("; ");
    let legend = if said.contains(" ?") { MARKED } else { "" };
    Ok(format!("{}: {said}{legend}", spoken(metric)))
}

fn guarantees(cells: &[Cell]) -> Vec<Guarantee> {
    let mut all = Vec::new();
    for cell in cells {
        if !all.contains(&cell.guarantee) {
            all.push(cell.guarantee);
        }
    }
    all
}

/// Why no pair could be compared: reasons between cells of the same guarantee take precedence over
/// different guarantees.
fn nothing_to_say(metric: &str, cells: &[Cell], comparisons: &[&Comparison]) -> String {
    if cells.iter().all(|cell| !cell.valid) {
        return format!("{}: every case is invalid, so nothing is compared", spoken(metric));
    }
    let reasons = || comparisons.iter().filter_map(|comparison| comparison.reason.as_deref());
    let reason = reasons().find(|reason| !reason.starts_with("guarantees differ"));
    let reason = reason.or_else(|| reasons().next());
    let because = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    format!("{}: no two cases can be compared{because}", spoken(metric))
}

/// The lanes of one guarantee: their order, or the course of a single one along its axis.
fn within(
    summary: &Summary,
    lanes: &Lanes,
    (metric, guarantee): (&str, Guarantee),
) -> Option<String> {
    let of_guarantee = summary.cells.iter().filter(|cell| cell.guarantee == guarantee);
    let names: BTreeSet<&str> = of_guarantee.map(|cell| lanes.name(&cell.name)).collect();
    let here = |is_of_lanes: bool| -> Vec<Meeting> {
        let all = lanes.meetings(summary, metric, is_of_lanes).into_iter();
        all.filter(|meeting| names.contains(meeting.left.as_str())).collect()
    };
    let said = match (here(true), here(false)) {
        (pairs, _) if pairs.iter().any(Meeting::is_compared) => {
            winner(&pairs, names.len(), metric).unwrap_or_else(|| pair_by_pair(pairs, metric))
        }
        (_, steps) => {
            let steps = steps.iter().filter(|meeting| meeting.is_compared());
            steps.map(Meeting::steps).reduce(|all, one| format!("{all}, {one}"))?
        }
    };
    let is_only = summary.cells.iter().all(|cell| cell.guarantee == guarantee);
    let prefix = if is_only { String::new() } else { format!("under “{guarantee}” ") };
    Some(prefix + &said)
}

/// The one of three lanes or more that is ahead of all others at every place, if there is one: it
/// was compared with each of them wherever they met, and every verdict is significant among all.
fn winner(pairs: &[Meeting], lanes: usize, metric: &str) -> Option<String> {
    let is_more_better = metric.contains("per_s") || metric.contains("acceptance");
    let wanted = if is_more_better { Verdict::Higher } else { Verdict::Lower };
    let names = || pairs.iter().flat_map(|pair| [&pair.left, &pair.right]);
    let views = |name: &str| -> Vec<Meeting> {
        pairs.iter().filter_map(|pair| pair.seen_from(name)).collect()
    };
    let best = names().find(|name| {
        let views = views(name);
        views.len() + 1 == lanes && views.iter().all(|pair| pair.is_everywhere(wanted))
    })?;
    let views = views(best);
    if views.len() < 2 {
        return None;
    }
    let places = views.iter().map(Meeting::places).max().unwrap_or(1);
    let at = everywhere(places);
    let word = if is_more_better { "highest" } else { "lowest" };
    let others: Vec<String> = views
        .iter()
        .take(PAIRS_MAX)
        .map(|pair| {
            let part = match pair.places() {
                few if few < places => format!(" (they met at {few})"),
                _ => String::new(),
            };
            format!("{} times {}{part}", pair.ratio(), pair.right)
        })
        .collect();
    let more = match views.len().saturating_sub(PAIRS_MAX) {
        0 => String::new(),
        1 => ", and one other".to_owned(),
        more => format!(", and {more} others"),
    };
    Some(format!("{best} is {word}{at}, {}{more}", in_words_of(&others)))
}

fn in_words_of(texts: &[String]) -> String {
    in_words(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Without a single leader: the clearest pairs.
fn pair_by_pair(pairs: Vec<Meeting>, metric: &str) -> String {
    let (mut pairs, refused): (Vec<_>, Vec<_>) = pairs.into_iter().partition(Meeting::is_compared);
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.decided()));
    let pairs_of = |number: usize| if number == 1 { "pair" } else { "pairs" };
    let mut shown = if pairs.len() > 1 && pairs.iter().all(|pair| pair.decided() == 0) {
        vec![format!("all {} pairs are too close to call", pairs.len())]
    } else {
        let words = pairs.iter().take(PAIRS_MAX).map(|pair| pair.words(metric));
        let mut shown: Vec<String> = words.collect();
        let more = pairs.len().saturating_sub(PAIRS_MAX);
        if more > 0 {
            shown.push(format!("{more} more {} below", pairs_of(more)));
        }
        shown
    };
    if !refused.is_empty() {
        let number = refused.len();
        shown.push(format!("{number} {} could not be compared", pairs_of(number)));
    }
    shown.join("; ")
}

fn loss_and_cost(summary: &Summary, matrix: &Matrix) -> String {
    let cost = "target_cpu_us_per_message";
    let measured = summary.cells.iter().filter(|cell| cell.metrics.contains_key(cost)).count();
    let said = (measured > 1).then(|| verdict(summary, matrix, cost).ok()).flatten();
    match said {
        None => loss(summary),
        Some(said) => format!("{}; {}", loss(summary), lower_first(&said)),
    }
}

fn loss(summary: &Summary) -> String {
    let cells = &summary.cells;
    let lossy: Vec<&Cell> = cells.iter().filter(|cell| cell.ledger.lost > Some(0)).collect();
    let unknown = cells.iter().filter(|cell| cell.ledger.lost.is_none()).count();
    let mut text = match lossy.len() {
        0 => "no message was lost".to_owned(),
        n => {
            let lost: u64 = lossy.iter().filter_map(|cell| cell.ledger.lost).sum();
            let sent: u64 = lossy.iter().map(|cell| cell.ledger.sent).sum();
            let of = if cells.len() == 1 {
                String::new()
            } else {
                format!(" in {n} of {} cases", cells.len())
            };
            format!("{} of {} sent messages were lost{of}", count(lost), count(sent))
        }
    };
    let late: u64 = cells.iter().map(|cell| cell.ledger.late).sum();
    if late > 0 {
        text += &format!(", {} arrived late (after the timeout)", count(late));
    }
    if unknown > 0 {
        text += &format!(", and unknown in {unknown}");
    }
    text
}

fn sentence(text: String) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str() + "."
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn in_words(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// More names do not fit into a sentence.
const NAMES_MAX: usize = 6;

/// The meaning of the mark, if there is one.
const MARKED: &str = " (?: not significant when all comparisons are considered together)";

/// Pairs in one sentence.
const PAIRS_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::meeting::tests::{meeting, place};

    const P99: &str = "response_time_ns.p99";

    #[test]
    fn the_one_that_leaves_all_others_behind_is_named() {
        let pairs = [
            meeting(["a", "b"], vec![place(0.5, true), place(0.75, true)], 0),
            meeting(["a", "c"], vec![place(0.2, true), place(0.25, true)], 0),
            meeting(["b", "c"], vec![place(0.5, true), place(1.0, false)], 0),
        ];
        let won = winner(&pairs, 3, P99).unwrap();
        assert_eq!(
            won,
            "a is lowest at both places, 0.500 to 0.750 times b and 0.200 to 0.250 times c"
        );
        assert_eq!(winner(&pairs, 3, "throughput_out_per_s"), None, "c and b are too close");
        assert_eq!(winner(&pairs, 4, P99), None, "there is a lane that it never met");
    }

    #[test]
    fn nobody_wins_over_what_was_refused_or_does_not_stand() {
        let sure = meeting(["a", "c"], vec![place(0.2, true), place(0.25, true)], 0);
        let refused = meeting(["a", "b"], vec![place(0.5, true)], 1);
        let invalid = meeting(["a", "b"], vec![place(0.5, true), place(0.5, false)], 0);
        let close = meeting(["a", "b"], vec![place(0.5, true), place(1.0, false)], 0);
        for other in [refused.clone(), invalid, close] {
            assert_eq!(winner(&[sure.clone(), other.clone()], 3, P99), None, "{other:?}");
        }
        let never = meeting(["b", "c"], vec![], 2);
        let said = pair_by_pair(vec![refused, never], P99);
        assert_eq!(
            said,
            "a was 2.00 ± 0.02 times faster than b at 1 of 2 places, not compared at 1; 1 pair \
             could not be compared"
        );
    }
}
