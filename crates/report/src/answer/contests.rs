//! Who is lowest among the cases that were compared at one place: from the verdicts alone.

use crate::summary::pairs::LANE;
use crate::summary::{Comparison, Summary, Verdict};

/// Cases of one place that were compared in one metric, directly or by way of others.
#[derive(Debug)]
pub(super) struct Contest<'s> {
    /// Their names, in the order of the plan.
    pub(super) cells: Vec<&'s str>,
    /// The result.
    pub(super) result: Standing<'s>,
}

/// The result of a contest.
#[derive(Debug, PartialEq)]
pub(super) enum Standing<'s> {
    /// One case is lower than each of the others, and every verdict is significant when all
    /// comparisons of the run are considered together.
    Lowest {
        /// Its name.
        cell: &'s str,
        /// The nearest of the others.
        next: &'s str,
        /// Its figure over that of `next`.
        ratio: f64,
    },
    /// These differ by less than 1 %, and are lower than the others.
    Equal(Vec<&'s str>),
    /// Any of these may be the lowest: too close to call.
    TooClose {
        /// Their names.
        cells: Vec<&'s str>,
        /// The cases than which each of these is significantly lower.
        above: Vec<&'s str>,
    },
    /// Any of these may be the lowest, and not all of them were compared with each other.
    Incomplete(Vec<&'s str>),
}

/// All contests in `metric`, place by place and guarantee by guarantee.
pub(super) fn contests<'s>(summary: &'s Summary, metric: &str) -> Vec<Contest<'s>> {
    let is_meant =
        |c: &&Comparison| c.metric == metric && c.factor == LANE && c.verdict != Verdict::Refused;
    let comparisons: Vec<&Comparison> = summary.comparisons.iter().filter(is_meant).collect();
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for comparison in &comparisons {
        let mut joined = vec![comparison.left.as_str(), comparison.right.as_str()];
        // Every group that has one of the two becomes one.
        groups.retain(|group| {
            let is_met = group.iter().any(|cell| joined[..2].contains(cell));
            if is_met {
                joined.extend(
                    group
                        .iter()
                        .filter(|cell| !joined[..2].contains(cell))
                        .copied()
                        .collect::<Vec<_>>(),
                );
            }
            !is_met
        });
        groups.push(joined);
    }
    let order = |cell: &&str| summary.cells.iter().position(|own| own.name == *cell);
    for group in &mut groups {
        group.sort_by_key(order);
    }
    groups.sort_by_key(|group| group.first().and_then(order));
    let contest = |cells: Vec<&'s str>| {
        let result = result(&cells, &comparisons);
        Contest { cells, result }
    };
    groups.into_iter().map(contest).collect()
}

fn result<'s>(cells: &[&'s str], comparisons: &[&Comparison]) -> Standing<'s> {
    let is_beaten = |cell: &str| {
        cells
            .iter()
            .any(|other| matches!(seen(comparisons, other, cell), Some((Verdict::Lower, true, _))))
    };
    let mut best: Vec<&str> = cells.iter().copied().filter(|cell| !is_beaten(cell)).collect();
    if let [cell] = best[..] {
        let others = || cells.iter().copied().filter(|other| *other != cell);
        let views: Vec<(&str, f64)> = others()
            .filter_map(|other| match seen(comparisons, cell, other) {
                Some((Verdict::Lower, true, ratio)) => Some((other, ratio)),
                _ => None,
            })
            .collect();
        let next = views.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((next, ratio)) = next.filter(|_| views.len() + 1 == cells.len()) {
            return Standing::Lowest { cell, next, ratio };
        }
        // What it did not beat itself may be as low.
        best.extend(others().filter(|other| !views.iter().any(|(beaten, _)| beaten == other)));
    }
    if best.is_empty() {
        best = cells.to_vec();
    }
    let is_equal = |left: &str, right: &str| {
        matches!(seen(comparisons, left, right), Some((Verdict::PracticallyEqual, ..)))
    };
    let pairs = || {
        best.iter()
            .enumerate()
            .flat_map(|(at, one)| best[at + 1..].iter().map(move |other| (*one, *other)))
    };
    match () {
        () if pairs().any(|(one, other)| seen(comparisons, one, other).is_none()) => {
            Standing::Incomplete(best)
        }
        () if best.len() > 1 && pairs().all(|(one, other)| is_equal(one, other)) => {
            Standing::Equal(best)
        }
        () => {
            let is_lower = |one: &str, other: &str| {
                matches!(seen(comparisons, one, other), Some((Verdict::Lower, true, _)))
            };
            let is_above = |cell: &&str| best.iter().all(|own| is_lower(own, cell));
            let above = cells.iter().copied().filter(is_above).collect();
            Standing::TooClose { cells: best, above }
        }
    }
}

/// The verdict on `left` relative to `right`, whether it is significant among all, and the ratio.
fn seen(comparisons: &[&Comparison], left: &str, right: &str) -> Option<(Verdict, bool, f64)> {
    comparisons.iter().find_map(|own| {
        let ratio = own.ratio.map_or(f64::NAN, |ratio| ratio.value);
        if own.left == left && own.right == right {
            return Some((own.verdict, own.stands, ratio));
        }
        let turned = match own.verdict {
            Verdict::Lower => Verdict::Higher,
            Verdict::Higher => Verdict::Lower,
            same => same,
        };
        (own.left == right && own.right == left).then_some((turned, own.stands, 1.0 / ratio))
    })
}
