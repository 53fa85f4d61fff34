//! Whether a condition holds of two runs. A change must be both real and large: the interval of
//! the ratio must leave nothing-changed out, and the ratio itself must be beyond the limit. What
//! the data cannot carry is told apart from what does not hold.

use std::collections::BTreeSet;

use weigh_model::Condition;
use weigh_model::condition::{Limit, Operator};

use super::rows::{Pair, invalid};
use super::text::{figure_text, times};
use super::{Holds, Judgement, Row};
use crate::summary::{Cell, Ratio, Verdict};

/// Refuses a condition that nothing in either run could decide.
pub(crate) fn check(condition: &Condition, known: &BTreeSet<&str>) -> Result<(), String> {
    let metric = condition.metric.as_str();
    if !known.contains(metric) {
        let near = known
            .iter()
            .map(|name| (strsim::jaro_winkler(metric, name), name))
            .max_by(|left, right| left.0.total_cmp(&right.0))
            .filter(|(likeness, _)| *likeness >= LIKENESS_MIN);
        let mend = near.map_or_else(
            || "weigh diff A B --all shows what there is".to_owned(),
            |(_, name)| format!("did you mean {name}?"),
        );
        return Err(format!("\"{condition}\": no cell of either run has {metric}; {mend}"));
    }
    let is_equality = matches!(condition.operator, Operator::Equal | Operator::NotEqual);
    if is_equality && matches!(condition.limit, Limit::Change(_)) {
        return Err(format!(
            "\"{condition}\": no two measurements are equal; ask with < or >, such as \
             \"{metric} > +5%\""
        ));
    }
    Ok(())
}

/// What the condition comes to in a cell that both runs have.
pub(crate) fn judge(condition: &Condition, pair: &Pair) -> Judgement {
    let row = pair.row(&condition.metric);
    let (holds, text) = match condition.limit {
        Limit::Change(share) => of_change(condition, share, &row),
        Limit::Value(_) => of_value(condition, pair, &row),
    };
    let is_measured = match condition.limit {
        Limit::Change(_) => row.a.is_some() && row.b.is_some(),
        Limit::Value(_) => row.b.is_some(),
    };
    Judgement { condition: condition.to_string(), cell: row.cell, holds, text, is_measured }
}

/// A cell that one run lacks hides whatever happened to it.
pub(crate) fn unmatched(condition: &Condition, cell: &Cell) -> Judgement {
    let text = "only one of the runs has this cell".to_owned();
    let (condition, cell) = (condition.to_string(), cell.name.clone());
    Judgement { condition, cell, holds: Holds::CannotTell, text, is_measured: false }
}

fn of_change(condition: &Condition, share: f64, row: &Row) -> (Holds, String) {
    let because = |reason: String| (Holds::CannotTell, reason);
    let is_above = matches!(condition.operator, Operator::Greater | Operator::GreaterOrEqual);
    let Some(Ratio { value, low: Some(low), high: Some(high) }) = row.ratio else {
        let reason = row.reason.clone().unwrap_or_default();
        if row.verdict == Verdict::TooClose {
            let holds = condition.holds_for_change(1.0) == Some(true);
            return (if holds { Holds::Yes } else { Holds::No }, reason);
        }
        // A ratio that has no bounds must still be beyond the limit itself.
        let beyond = row.ratio.map(|ratio| condition.holds_for_change(ratio.value) == Some(true));
        let holds = match (without_bounds(row, is_above), beyond) {
            (Holds::Yes, Some(false)) | (Holds::No, Some(true)) => Holds::CannotTell,
            (holds, _) => holds,
        };
        return (holds, reason);
    };
    let [at_value, at_low, at_high] =
        [value, low, high].map(|ratio| condition.holds_for_change(ratio) == Some(true));
    // A limit on the far side of nothing-changed, such as "> -5%" (not improved by 5 %), must
    // itself be left out by the interval.
    let is_far = if is_above { share < 0.0 } else { share > 0.0 };
    let beyond = if is_above { Verdict::Higher } else { Verdict::Lower };
    let is_left_out = if is_above { low > 1.0 } else { high < 1.0 };
    let is_real = match row.verdict {
        _ if is_far => at_low && at_high,
        Verdict::PracticallyEqual => is_left_out,
        verdict => verdict == beyond,
    };
    let figures = times(value, Some((low, high)));
    match () {
        () if at_value && is_real => (Holds::Yes, figures),
        () if !at_value && !at_low && !at_high => (Holds::No, figures),
        () if at_value => because(format!("{figures}: it may be chance; repeat more often")),
        () => because(format!("{figures}: it may be more; repeat more often")),
    }
}

/// Without bounds of a ratio, ranks or lost quantiles may still say that a figure grew from
/// nothing, or without bound: beyond every limit on that side.
fn without_bounds(row: &Row, is_above: bool) -> Holds {
    let is_infinite = row.method.is_none();
    match (row.verdict, is_above) {
        (Verdict::Higher, true) => Holds::Yes,
        (Verdict::Higher, false) => Holds::No,
        (Verdict::Lower, true) if is_infinite => Holds::No,
        (Verdict::Lower, false) if is_infinite => Holds::Yes,
        _ => Holds::CannotTell,
    }
}

/// A limit in the metric's own unit is held against B's figure alone, as thresholds of a plan
/// are. An infinite quantile is beyond every limit.
fn of_value(condition: &Condition, pair: &Pair, row: &Row) -> (Holds, String) {
    if let Some(reason) = invalid("B", pair.b.0, &condition.metric) {
        return (Holds::CannotTell, reason);
    }
    let Some(figure) = row.b else {
        return (Holds::CannotTell, "not measured in B".to_owned());
    };
    let value = figure.value.unwrap_or(f64::INFINITY);
    let holds = if condition.holds(value) == Some(true) { Holds::Yes } else { Holds::No };
    let mut text = figure_text(Some(&figure), &row.unit);
    if let (Limit::Value(limit), Some(low), Some(high)) = (condition.limit, figure.low, figure.high)
        && low < high
        && (low..=high).contains(&limit)
    {
        text += ": too close to call, its interval includes the limit";
    }
    (holds, text)
}

/// Names that are less alike are not what was meant.
const LIKENESS_MIN: f64 = 0.8;
