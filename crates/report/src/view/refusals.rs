//! Pairs of cases that were not compared, and why.

use std::collections::{BTreeMap, BTreeSet};

use crate::figures::spoken;
use crate::summary::{Summary, Verdict};

/// Each reason once, those of most pairs first, with the metrics if a pair has a ratio in others.
/// Different guarantees are already visible as groups of the tables.
pub(crate) fn lines(summary: &Summary) -> Vec<String> {
    let mut answers: BTreeMap<[&str; 2], BTreeSet<Option<&str>>> = BTreeMap::new();
    for own in &summary.comparisons {
        let pair = [own.left.as_str(), own.right.as_str()];
        answers.entry(pair).or_default().insert(own.reason.as_deref());
    }
    let mut reasons: Vec<Refused<'_>> = Vec::new();
    for comparison in &summary.comparisons {
        let reason = comparison.reason.as_deref();
        let reason = reason.filter(|_| comparison.verdict == Verdict::Refused);
        let Some(reason) = reason.filter(|text| !text.ends_with("(L08)")) else { continue };
        let pair = [comparison.left.as_str(), comparison.right.as_str()];
        let at = reasons.iter().position(|own| own.reason == reason).unwrap_or_else(|| {
            reasons.push(Refused { reason, pairs: Vec::new(), metrics: Vec::new() });
            reasons.len() - 1
        });
        let Refused { pairs, metrics, .. } = &mut reasons[at];
        let metric = spoken(&comparison.metric);
        if answers[&pair].len() > 1 && !metrics.contains(&metric) {
            metrics.push(metric);
        }
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    reasons.sort_by_key(|own| std::cmp::Reverse(own.pairs.len()));
    let line = |Refused { reason, pairs, metrics }: Refused<'_>| {
        let about = match &pairs[..] {
            [[left, right]] => format!("{left} and {right}"),
            many => format!("{} pairs", many.len()),
        };
        let fix = if reason.starts_with("patterns differ") { ALIKE } else { "" };
        let of = if metrics.is_empty() { String::new() } else { metrics.join(", ") + ": " };
        format!("{about}: {of}{reason}{fix}")
    };
    reasons.into_iter().map(line).collect()
}

/// Pairs that were not compared for the same reason.
struct Refused<'s> {
    reason: &'s str,
    pairs: Vec<[&'s str; 2]>,
    /// Metrics concerned, if a pair was compared in others.
    metrics: Vec<String>,
}

/// What to type if two protocols have different patterns.
const ALIKE: &str =
    "; --pattern publish measures both the same way, up to the server's confirmation";
