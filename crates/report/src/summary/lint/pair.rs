//! Why two cells must not form a ratio, with the rule.

use weigh_model::plan::Plan;
use weigh_model::{Pattern, Rule};

use super::asked::{Asked, are_alike};
use super::storing;
use crate::figures::three_digits;
use crate::summary::Cell;

/// The rule and the reason for refusing `metric` of the two cells; `None` if they may be compared.
pub fn refusal(metric: &str, left: &Cell, right: &Cell, plan: &Plan) -> Option<String> {
    let [left_asked, right_asked] = [left, right].map(|cell| Asked::of(&cell.point, plan));
    refusal_of(metric, (left, &left_asked), (right, &right_asked))
}

/// As [`refusal`], for cells that may be of two runs: each with its load.
pub(crate) fn refusal_of(
    metric: &str,
    (left, left_asked): (&Cell, &Asked),
    (right, right_asked): (&Cell, &Asked),
) -> Option<String> {
    let because = |rule: Rule, reason: String| Some(format!("{reason} ({rule})"));
    if left.guarantee != right.guarantee {
        // The weaker first, so that it is one reason whichever cell is on the left.
        let weaker = left.guarantee.min(right.guarantee);
        let stronger = left.guarantee.max(right.guarantee);
        let reason = format!("guarantees differ: {weaker} and {stronger}");
        return because(Rule::L08, reason);
    }
    if let Some(reason) = storing::refusal(left, right) {
        return because(Rule::L21, reason);
    }
    let [left_pattern, right_pattern] = [left_asked.pattern, right_asked.pattern];
    if !are_alike(left_pattern, right_pattern) {
        // In a fixed order, so that it is one reason whichever cell is on the left.
        let mut patterns = [left_pattern.to_string(), right_pattern.to_string()];
        patterns.sort();
        let reason = format!("patterns differ: {}", patterns.join(" and "));
        // A delivery passes the server; a request ends there.
        let has_relay = [left_pattern, right_pattern].iter().any(|pattern| pattern.delivers_to(0));
        return if has_relay { because(Rule::L18, reason) } else { Some(reason) };
    }
    let hops = [left_asked.hops, right_asked.hops];
    if left_pattern == Pattern::Transfer && hops[0] != hops[1] {
        let words =
            |hops: u64| if hops == 0 { "direct".to_owned() } else { format!("{hops} in between") };
        let mut ways = hops.map(words);
        ways.sort();
        let reason = format!("numbers of servers in between differ: {}", ways.join(" and "));
        return because(Rule::L18, reason);
    }
    if let Some(reason) = unequal_shares(metric, left, right) {
        return Some(reason);
    }
    let is_setting = |(cell, asked): (&Cell, &Asked)| asked.has_rate() && reached(cell);
    let both = [(left, left_asked), (right, right_asked)].into_iter().all(is_setting);
    if metric.starts_with("throughput_") && both {
        let reason = "both ran at the requested rate, so rates are not compared";
        return because(Rule::L03, reason.to_owned());
    }
    None
}

/// True if `metric` is a cost per delivered message, and the two cells lost unequal shares.
pub(crate) fn lost_unlike(metric: &str, left: &Cell, right: &Cell) -> bool {
    unequal_shares(metric, left, right).is_some()
}

/// True for a figure per delivered message, or of messages per charge.
fn is_per_delivered(metric: &str) -> bool {
    let name = metric.split('.').next().unwrap_or(metric);
    let ends = ["_per_message", "messages_per_charge"].iter().any(|end| name.ends_with(end));
    // The generator's costs are per sent message.
    ends && !name.starts_with("generator_") && !name.starts_with("ledger_")
}

/// Why two cells cannot be compared in a cost per delivered message: lost messages were work too,
/// and their cost is divided among those that arrived. In a fixed order, so that it is one reason
/// whichever cell is on the left.
fn unequal_shares(metric: &str, left: &Cell, right: &Cell) -> Option<String> {
    if !is_per_delivered(metric) {
        return None;
    }
    let share = |cell: &Cell| {
        let missing = cell.ledger.sent.checked_sub(cell.ledger.delivered?)?;
        (cell.ledger.sent > 0).then(|| missing as f64 / cell.ledger.sent as f64)
    };
    let shares = [share(left), share(right)];
    let apart = match shares {
        [Some(one), Some(other)] => (one - other).abs(),
        [Some(known), None] | [None, Some(known)] => known,
        [None, None] => return None,
    };
    if apart <= LOSS_APART_MAX {
        return None;
    }
    let words = |(cell, share): (&Cell, Option<f64>)| match share {
        Some(share) => format!("{} % of {}", three_digits(100.0 * share), cell.name),
        None => format!("an unknown share of {}", cell.name),
    };
    let mut sides = [(left, shares[0]), (right, shares[1])];
    sides.sort_by(|one, other| one.0.name.cmp(&other.0.name));
    let [one, other] = sides.map(words);
    Some(format!("different shares did not arrive in time: {one}, {other}"))
}

/// True if the offered rate was reached, and sent messages arrived during the load.
fn reached(cell: &Cell) -> bool {
    let short = ["rate-not-reached", "backlog"];
    let fell_short = cell.warnings.iter().any(|warning| short.contains(&warning.code.as_str()));
    let accepted = cell.metrics.get("acceptance_ratio").and_then(|metric| metric.value);
    !fell_short && accepted.is_none_or(|accepted| accepted >= REACHED_MIN)
}

/// Largest difference of the undelivered shares for a comparison of costs per delivered message.
const LOSS_APART_MAX: f64 = 0.01;

/// The share of the offered rate from which it is a setting (rule L03).
const REACHED_MIN: f64 = 0.98;
