//! What the plan says must hold, judged cell by cell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::Condition;
use weigh_model::condition::{LOSS_RATIO, LOST, Limit};
use weigh_model::plan::Plan;

use crate::cells::point_name;
use crate::figures::{bytes, three_digits, time};
use crate::summary::{Cell, Failure, Summary, unit_of};

/// A threshold of the plan and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold {
    /// The condition as it was written.
    pub condition: String,
    /// The flat name of the figure that it is about.
    pub metric: String,
    /// Whether it holds of every cell; by the estimates, whatever their intervals.
    pub holds: bool,
    /// Why it fails as a whole: no cell has such a figure, or it cannot be judged here; absent
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The cells of which it does not hold, in the order of the plan.
    pub failed: Vec<Judged>,
    /// The cells of which it holds or fails too close to call: their interval includes the limit.
    pub close: Vec<Judged>,
}

/// The figure of one cell under a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The cell's name.
    pub cell: String,
    /// Its figure; null where it was not measured and where it is infinite.
    pub figure: Option<f64>,
    /// Lower end of the figure's interval; null where there is none.
    pub low: Option<f64>,
    /// Upper end of the figure's interval; null where there is none.
    pub high: Option<f64>,
    /// Why there is no figure: `not measured`, `in the lost share`, `not done`; absent where there
    /// is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// All thresholds of `plan`, in its order.
pub(crate) fn judge(plan: &Plan, cells: &[Cell], failures: &[Failure]) -> Vec<Threshold> {
    plan.thresholds.iter().map(|condition| one(condition, cells, failures)).collect()
}

fn one(condition: &Condition, cells: &[Cell], failures: &[Failure]) -> Threshold {
    let mut threshold = Threshold {
        condition: condition.to_string(),
        metric: condition.metric.clone(),
        holds: false,
        reason: why_not_at_all(condition, cells),
        failed: Vec::new(),
        close: Vec::new(),
    };
    if threshold.reason.is_some() {
        return threshold;
    }
    for cell in cells {
        let (judged, value) = figure(cell, &condition.metric);
        let holds = value.and_then(|value| condition.holds(value)).unwrap_or(false);
        if is_close(condition, &judged) {
            threshold.close.push(judged.clone());
        }
        if !holds {
            threshold.failed.push(judged);
        }
    }
    let mut without: Vec<&Failure> = Vec::new();
    for failure in failures {
        let is_known = cells.iter().any(|cell| cell.point == failure.point)
            || without.iter().any(|known| known.point == failure.point);
        if !is_known {
            without.push(failure);
        }
    }
    let not_done = |failure: &&Failure| Judged::without(point_name(&failure.point), NOT_DONE);
    threshold.failed.extend(without.iter().map(not_done));
    threshold.holds = threshold.failed.is_empty();
    threshold
}

/// Why the condition cannot hold of anything.
fn why_not_at_all(condition: &Condition, cells: &[Cell]) -> Option<String> {
    let metric = &condition.metric;
    if matches!(condition.limit, Limit::Change(_)) {
        return Some("a change is judged against another run: use weigh diff --fail-if".to_owned());
    }
    if cells.is_empty() {
        return Some("nothing was weighed".to_owned());
    }
    let has = |cell: &Cell| is_of_ledger(metric) || cell.metrics.contains_key(metric);
    (!cells.iter().any(has)).then(|| {
        format!("no case has a figure {metric}: `weigh report RUN --json` lists those there are")
    })
}

/// The figure that the cell has under this name, and the number to be judged: infinite for a
/// quantile in the lost share, `None` where nothing was measured.
fn figure(cell: &Cell, name: &str) -> (Judged, Option<f64>) {
    let known = |value: f64| {
        let judged = Judged {
            cell: cell.name.clone(),
            figure: Some(value),
            low: None,
            high: None,
            reason: None,
        };
        (judged, Some(value))
    };
    let without = |reason: &str, value| (Judged::without(cell.name.clone(), reason), value);
    if is_of_ledger(name) {
        let ledger = &cell.ledger;
        return match ledger.lost {
            Some(lost) if name == LOST => known(lost as f64),
            Some(lost) if ledger.sent > 0 => known(lost as f64 / ledger.sent as f64),
            _ => without(NOT_MEASURED, None),
        };
    }
    match cell.metrics.get(name) {
        None => without(NOT_MEASURED, None),
        Some(metric) => match metric.value {
            None => without("in the lost share", Some(f64::INFINITY)),
            Some(value) => {
                let (judged, number) = known(value);
                (Judged { low: metric.low, high: metric.high, ..judged }, number)
            }
        },
    }
}

/// The number that a condition on `name` is judged by; `None` where nothing was measured.
pub(crate) fn figure_of(cell: &Cell, name: &str) -> Option<f64> {
    figure(cell, name).1
}

/// Whether the interval holds values for which the condition holds and others for which it does
/// not.
fn is_close(condition: &Condition, judged: &Judged) -> bool {
    let (Limit::Value(limit), Some(low), Some(high)) = (condition.limit, judged.low, judged.high)
    else {
        return false;
    };
    low < high && low <= limit && limit <= high
}

fn is_of_ledger(name: &str) -> bool {
    name == LOST || name == LOSS_RATIO
}

/// A sentence for each threshold, and whether it holds.
pub(crate) fn sentences(summary: &Summary, is_ascii: bool) -> Vec<(bool, String)> {
    let said = |threshold: &Threshold| {
        let without = threshold.failed.iter().filter(|j| j.reason.as_deref() == Some(NOT_DONE));
        let all = summary.cells.len() + without.count();
        (threshold.holds, sentence(threshold, all, is_ascii))
    };
    summary.thresholds.iter().map(said).collect()
}

/// The condition and what it met among `all` cells.
fn sentence(threshold: &Threshold, all: usize, is_ascii: bool) -> String {
    let mut text = threshold.condition.clone();
    if let Some(reason) = &threshold.reason {
        text += &format!(": {reason}");
    }
    let said = |judged: &Judged| {
        let figure = judged.figure.map(|figure| figure_text(&threshold.metric, figure, is_ascii));
        let figure = figure.or_else(|| judged.reason.clone()).unwrap_or_default();
        let name = judged.cell.strip_suffix(" on reference").unwrap_or(&judged.cell);
        format!("{name} {figure}")
    };
    let kinds = [(&threshold.failed, "fails"), (&threshold.close, "too close to call")];
    for (judged, what) in kinds.into_iter().filter(|(judged, _)| !judged.is_empty()) {
        let shown: Vec<String> = judged.iter().take(NAMES_MAX).map(said).collect();
        let more = match judged.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text += &format!("; {what} in {} of {all}: {}{more}", judged.len(), shown.join(", "));
    }
    text
}

/// A figure in the unit of its metric.
pub(crate) fn figure_text(metric: &str, figure: f64, is_ascii: bool) -> String {
    match unit_of(metric) {
        "ns" => time(figure, is_ascii),
        "B" => bytes(figure),
        "1" if metric != LOST => format!("{} %", three_digits(figure * 100.0)),
        "%" => format!("{} %", three_digits(figure)),
        _ => three_digits(figure),
    }
}

impl Judged {
    fn without(cell: String, reason: &str) -> Judged {
        Judged { cell, figure: None, low: None, high: None, reason: Some(reason.to_owned()) }
    }
}

/// Cells that a sentence names.
const NAMES_MAX: usize = 3;
const NOT_DONE: &str = "not done";
const NOT_MEASURED: &str = "not measured";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use weigh_model::Guarantee;
    use weigh_model::ledger::Ledger;

    use super::*;
    use crate::metric::Metric;

    fn cell(name: &str, values: &[f64], lost: Option<u64>) -> Cell {
        let metrics = match values {
            [] => BTreeMap::new(),
            _ => BTreeMap::from([(P95.to_owned(), Metric::new(P95, values))]),
        };
        Cell {
            name: name.to_owned(),
            point: BTreeMap::from([("protocol".to_owned(), json!(name))]),
            guarantee: Guarantee::AtLeastOnce,
            target: String::new(),
            repetitions: 5,
            valid: true,
            metrics,
            ledger: Ledger { sent: 1_000, lost, ..Ledger::zero() },
            doubts: Vec::new(),
            granted: BTreeMap::new(),
            steady_state: BTreeMap::new(),
            scene: BTreeMap::new(),
        }
    }

    fn judged(condition: &str, cells: &[Cell]) -> Threshold {
        one(&condition.parse().unwrap(), cells, &[])
    }

    fn fast() -> Cell {
        cell("fast", &[4e6, 4.1e6, 3.9e6, 4.05e6, 3.95e6], Some(0))
    }

    fn slow() -> Cell {
        cell("slow", &[6e6, 6.1e6, 5.9e6, 6.05e6, 5.95e6], Some(10))
    }

    #[test]
    fn it_holds_of_every_cell_or_names_those_of_which_it_does_not() {
        let both = judged("response_time p(95) < 5ms", &[fast(), slow()]);
        assert!(!both.holds && both.close.is_empty() && both.reason.is_none());
        assert_eq!(both.failed.len(), 1);
        assert_eq!((both.failed[0].cell.as_str(), both.failed[0].figure), ("slow", Some(6e6)));
        assert!(judged("response_time p(95) < 7ms", &[fast(), slow()]).holds);
    }

    #[test]
    fn a_limit_within_the_interval_is_too_close_to_call() {
        let near = judged("response_time p(95) < 4.05ms", &[fast(), slow()]);
        assert_eq!(near.close.len(), 1);
        assert_eq!(near.close[0].cell, "fast");
        assert_eq!(near.failed.len(), 1, "the estimate decides");
    }

    #[test]
    fn losses_are_those_of_the_ledger() {
        assert!(!judged("loss == 0", &[fast(), slow()]).holds);
        assert!(judged("loss <= 1 %", &[fast(), slow()]).holds);
        assert_eq!(judged("first loss", &[slow()]).failed, []);
        let unknown = judged("loss == 0", &[cell("unknown", &[1e6], None)]);
        assert_eq!(unknown.failed[0].reason.as_deref(), Some("not measured"));
    }

    #[test]
    fn what_was_not_measured_fails_and_says_so() {
        let some = judged("response_time p(95) < 5ms", &[fast(), cell("without", &[], Some(0))]);
        assert_eq!(some.failed[0].reason.as_deref(), Some("not measured"));
        let lost = cell("lossy", &[1e6, f64::INFINITY, 1e6], Some(5));
        let lost = judged("response_time p(95) < 5ms", &[lost]);
        assert_eq!(lost.failed[0].reason.as_deref(), Some("in the lost share"));
        let nobody = judged("delivery_time p(95) < 5ms", &[fast()]);
        assert!(!nobody.holds && nobody.reason.unwrap().contains("delivery_time_ns.p95"));
        assert!(!judged("response_time_ns.p95 > +5%", &[fast()]).holds);
        assert!(!judged("loss == 0", &[]).holds);
    }

    #[test]
    fn a_case_without_any_result_fails() {
        let failure = Failure {
            trial: "x".to_owned(),
            point: BTreeMap::from([("protocol".to_owned(), json!("gone"))]),
            error: "no server".to_owned(),
        };
        let failures = [failure.clone(), failure];
        let found = one(&"loss == 0".parse().unwrap(), &[fast()], &failures);
        assert_eq!(found.failed.len(), 1);
        assert_eq!(found.failed[0].reason.as_deref(), Some("not done"));
    }

    #[test]
    fn a_sentence_says_what_it_met_in_the_unit_of_the_metric() {
        let said =
            |threshold: Threshold, cells: Vec<Cell>| sentence(&threshold, cells.len(), false);
        let text =
            said(judged("response_time p(95) < 5ms", &[fast(), slow()]), vec![fast(), slow()]);
        assert_eq!(text, "response_time p(95) < 5ms; fails in 1 of 2: slow 6.00 ms");
        let text = said(judged("loss == 0", &[slow()]), vec![slow()]);
        assert_eq!(text, "loss == 0; fails in 1 of 1: slow 1.00 %");
    }

    const P95: &str = "response_time_ns.p95";
}
