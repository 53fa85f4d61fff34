//! What is too close to call and what was not compared, with the reason and the option to type.

use std::collections::BTreeSet;

use super::ranking::metrics;
use super::words::{counted, listed};
use crate::summary::pairs::LANE;
use crate::summary::{Comparison, Summary, Verdict};
use crate::view::meeting::Lanes;

/// Comparisons without a verdict; `None` if there are none.
pub(super) fn line(summary: &Summary, lanes: &Lanes) -> Option<String> {
    let own: BTreeSet<String> = metrics().collect();
    let is_meant = |c: &&Comparison| c.factor == LANE && own.contains(&c.metric);
    let all: Vec<&Comparison> = summary.comparisons.iter().filter(is_meant).collect();
    let parts = [close(summary, &all), refused(&all, lanes)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(". "))
}

/// Comparisons that more repetitions may decide.
fn close(summary: &Summary, all: &[&Comparison]) -> Option<String> {
    let compared = all.iter().filter(|own| own.verdict != Verdict::Refused).count();
    let is_open = |own: &&&Comparison| match own.verdict {
        Verdict::TooClose => true,
        Verdict::Lower | Verdict::Higher => !own.stands,
        Verdict::PracticallyEqual | Verdict::Refused => false,
    };
    let open: Vec<&&Comparison> = all.iter().filter(is_open).collect();
    // A difference that may be the generator's own stays open, however often it is repeated.
    let is_lag = |own: &&&&Comparison| own.verdict == Verdict::TooClose && own.reason.is_some();
    let lag = open.iter().filter(is_lag).count();
    let most = summary.cells.iter().map(|cell| cell.repetitions).max().unwrap_or(1);
    let repeat = format!("--reps {} may decide", 2 * most);
    let what = match (open.len() - lag, lag) {
        (0, _) => "generator lag may be the cause".to_owned(),
        (1, 0) => repeat,
        (_, 0) => format!("{repeat} some of them"),
        (rest, lag) => {
            let some = if rest == 1 { "one" } else { "some" };
            format!("{repeat} {some}, but not the {lag} where the generator may have sent too late")
        }
    };
    (!open.is_empty()).then(|| {
        format!(
            "Too close to call: {} of {} of two cases by {}; {what}",
            open.len(),
            counted(compared, "comparison"),
            subjects(all)
        )
    })
}

/// What was compared: `CPU, bytes and time`.
fn subjects(all: &[&Comparison]) -> String {
    let is_there = |part: &str| {
        let mut compared = all.iter().filter(|own| own.verdict != Verdict::Refused);
        compared.any(|own| own.metric.contains(part))
    };
    let known = [("cpu", "CPU"), ("wire.", "bytes"), ("_time_ns", "time")];
    let words: Vec<&str> =
        known.into_iter().filter(|(part, _)| is_there(part)).map(|(_, word)| word).collect();
    listed(&words)
}

/// Pairs that must not or cannot be compared, by reason; those with a fix first.
fn refused(all: &[&Comparison], lanes: &Lanes) -> Option<String> {
    let mut reasons: Vec<(Reason, BTreeSet<[&str; 2]>)> = Vec::new();
    for comparison in all.iter().filter(|own| own.verdict == Verdict::Refused) {
        let reason = Reason::of(comparison.reason.as_deref().unwrap_or_default());
        let pair = [lanes.name(&comparison.left), lanes.name(&comparison.right)];
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, pairs)) => {
                pairs.insert(pair);
            }
            None => reasons.push((reason, BTreeSet::from([pair]))),
        }
    }
    reasons.sort_by_key(|(reason, pairs)| (reason.fix.is_empty(), std::cmp::Reverse(pairs.len())));
    let text = |(reason, pairs): &(Reason, BTreeSet<[&str; 2]>)| {
        let about = match (reason.is_general, pairs.iter().next()) {
            (true, _) | (_, None) => reason.text.clone(),
            (false, Some([left, right])) if pairs.len() == 1 => {
                format!("{left} and {right}: {}", reason.text)
            }
            (false, Some(_)) => format!("{}: {}", counted(pairs.len(), "pair"), reason.text),
        };
        if reason.fix.is_empty() { about } else { format!("{about} ({})", reason.fix) }
    };
    let mut texts: Vec<String> = reasons.iter().take(REASONS_MAX).map(text).collect();
    if reasons.len() > REASONS_MAX {
        texts.push(format!("{} more reasons below", reasons.len() - REASONS_MAX));
    }
    (!texts.is_empty()).then(|| format!("Not compared: {}", texts.join("; ")))
}

/// A reason in few words.
#[derive(PartialEq)]
struct Reason {
    text: String,
    /// What to type; empty if nothing changes it.
    fix: &'static str,
    /// True if it needs no names.
    is_general: bool,
}

impl Reason {
    fn of(reason: &str) -> Reason {
        let known = |text: &str, fix| Reason { text: text.to_owned(), fix, is_general: true };
        match reason {
            own if own.starts_with("guarantees differ") => {
                known("cases with different guarantees", "")
            }
            own if own.starts_with("durability differs") => {
                known("cases with different durability", "")
            }
            own if own.starts_with("patterns differ: ") => {
                let patterns = own.trim_start_matches("patterns differ: ");
                let patterns = patterns.split(" (").next().unwrap_or_default();
                let text = format!("pairs of the patterns {patterns}, which do different work");
                // Where some cases publish already, the others were asked for too.
                let has_published = patterns.split(' ').any(|word| word == "publish");
                let fix = if has_published { "" } else { "type --pattern publish" };
                Reason { text, fix, is_general: true }
            }
            own if own.contains("repetitions") => known("too few repetitions", "type --reps 5"),
            own if own.contains(" is invalid (") => known("invalid cases", ""),
            own if own.starts_with("the quantile ") => {
                known("percentiles of too few messages", "send more messages")
            }
            own if own.starts_with("different shares did not arrive") => {
                known("costs of cases that lost different shares", "")
            }
            own if own.contains("lost share") => known("percentiles among lost messages", ""),
            own if own.starts_with("too noisy for a ratio") => {
                known("pairs too noisy for a ratio", "")
            }
            own if own.contains("is generator lag in") => {
                known("response times that are mostly generator lag", "")
            }
            own => Reason { text: own.to_owned(), fix: "", is_general: false },
        }
    }
}

/// Reasons in a line.
const REASONS_MAX: usize = 3;
