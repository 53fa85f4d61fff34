//! The thresholds of the plan, judged cell by cell.

use weigh_model::Condition;
use weigh_model::condition::{self, LOSS_RATIO, LOST, resolve};
use weigh_model::event::TrialFinished;
use weigh_model::plan::Plan;

use super::cell::{Cell, Failure};
use super::cell_name::point_name;
use super::judging;
use super::limit::{Limit, LimitGoal, LimitTrial};
use super::threshold::{Answer, Judged, Threshold};

impl Threshold {
    /// Its result over all cells.
    ///
    /// # Examples
    ///
    /// A threshold of a run without cells is undecided:
    ///
    /// ```
    /// use weigh_report::summary::{Answer, Threshold};
    ///
    /// let threshold = Threshold {
    ///     condition: "p99 < 50ms".to_owned(),
    ///     metric: "response_time_ns.p99".to_owned(),
    ///     holds: false,
    ///     reason: Some("there is no cell".to_owned()),
    ///     failed: Vec::new(),
    ///     undecided: Vec::new(),
    ///     close: Vec::new(),
    /// };
    /// assert_eq!(threshold.answer(), Answer::Undecided);
    /// ```
    pub fn answer(&self) -> Answer {
        match () {
            () if !self.failed.is_empty() => Answer::Failed,
            () if self.holds => Answer::Holds,
            () => Answer::Undecided,
        }
    }
}

/// All thresholds of `plan`, in its order.
pub(crate) fn judge(plan: &Plan, cells: &[Cell], failures: &[Failure]) -> Vec<Threshold> {
    plan.thresholds.iter().map(|condition| one(condition, cells, failures)).collect()
}

/// All thresholds of a search for limits: they apply to the capacity that was found, and to the
/// load at the lower bound. Other loads are meant to fail.
pub(crate) fn judge_search(
    plan: &Plan,
    (cells, limits): (&[Cell], &[Limit]),
    trials: &[&TrialFinished],
) -> Vec<Threshold> {
    let one = |condition: &Condition| {
        let mut threshold = Threshold::about(condition);
        for (limit, goal) in limits.iter().flat_map(|own| own.goals.iter().map(move |g| (own, g))) {
            if condition.metric.starts_with(CAPACITY) {
                threshold.note_capacity(condition, limit, goal);
                continue;
            }
            let at_bound = |own: &&LimitTrial| Some(own.load) == goal.lower;
            let trial = limit.trials.iter().rev().find(at_bound);
            let trial = trial.and_then(|own| trials.iter().find(|trial| trial.trial == own.trial));
            let cell = trial.and_then(|own| cells.iter().find(|cell| cell.point == own.point));
            match cell {
                Some(cell) => threshold.note(condition, cell),
                None => {
                    let why = format!("no load is known to meet the goal ({})", goal.sentence);
                    threshold.undecided.push(Judged::without(limit.title(), &why));
                }
            }
        }
        threshold.conclude()
    };
    plan.thresholds.iter().map(one).collect()
}

fn one(condition: &Condition, cells: &[Cell], failures: &[Failure]) -> Threshold {
    let mut threshold = Threshold::about(condition);
    threshold.reason = why_not_at_all(condition, cells, failures);
    if threshold.reason.is_some() {
        return threshold;
    }
    cells.iter().for_each(|cell| threshold.note(condition, cell));
    let mut without: Vec<&Failure> = Vec::new();
    for failure in failures {
        let is_known = cells.iter().any(|cell| cell.point == failure.point)
            || without.iter().any(|known| known.point == failure.point);
        if !is_known {
            without.push(failure);
        }
    }
    let not_done = |failure: &&Failure| Judged::without(point_name(&failure.point), NOT_DONE);
    threshold.undecided.extend(without.iter().map(not_done));
    threshold.conclude()
}

/// Why the condition cannot be decided at all.
fn why_not_at_all(condition: &Condition, cells: &[Cell], failures: &[Failure]) -> Option<String> {
    if matches!(condition.limit, condition::Limit::Change(_)) {
        return Some("a change is judged against another run: use weigh diff --fail-if".to_owned());
    }
    (cells.is_empty() && failures.is_empty()).then(|| "nothing was measured".to_owned())
}

impl Threshold {
    /// A condition without results yet.
    pub(crate) fn about(condition: &Condition) -> Threshold {
        Threshold {
            condition: condition.to_string(),
            metric: condition.metric.clone(),
            holds: false,
            reason: None,
            failed: Vec::new(),
            undecided: Vec::new(),
            close: Vec::new(),
        }
    }

    /// Adds the result of the condition in `cell`.
    pub(crate) fn note(&mut self, condition: &Condition, cell: &Cell) {
        let (answer, judged) = judging::judge(condition, cell);
        if answer != Answer::Undecided && is_close(condition, &judged) {
            self.close.push(judged.clone());
        }
        match answer {
            Answer::Failed => self.failed.push(judged),
            Answer::Undecided => self.undecided.push(judged),
            Answer::Holds => {}
        }
    }

    /// Adds the result of the condition for a capacity: for every load between its bounds, or it is
    /// undecided.
    fn note_capacity(&mut self, condition: &Condition, limit: &Limit, goal: &LimitGoal) {
        let found = goal.metrics.get(&condition.metric);
        let ends = found.map(|own| (own.low, own.high.unwrap_or(f64::INFINITY)));
        let held = ends.map(|(low, high)| (condition.holds(low), condition.holds(high)));
        let judged = Judged {
            figure: found.map(|own| own.value),
            low: found.map(|own| own.low),
            high: found.and_then(|own| own.high),
            ..Judged::without(limit.title(), &goal.sentence)
        };
        match held {
            Some((Some(true), Some(true))) => {}
            Some((Some(false), Some(false))) => self.failed.push(judged),
            _ => self.undecided.push(judged),
        }
    }

    /// Sets the result of all cells together.
    pub(crate) fn conclude(self) -> Threshold {
        let holds = self.failed.is_empty() && self.undecided.is_empty() && self.reason.is_none();
        Threshold { holds, ..self }
    }
}

/// The value of `name`, even if it is questionable: a stop rule of an axis uses it. `None` if it
/// was not measured.
pub(crate) fn figure_of(cell: &Cell, name: &str) -> Option<f64> {
    let name = resolve(name, |name| cell.metrics.contains_key(name));
    let lost = || cell.ledger.lost.map(|lost| lost as f64);
    match name.as_ref() {
        LOST => lost(),
        LOSS_RATIO if cell.ledger.sent == 0 => None,
        LOSS_RATIO => Some(lost()? / cell.ledger.sent as f64),
        name => cell.metrics.get(name).map(|own| own.value.unwrap_or(f64::INFINITY)),
    }
}

/// Whether the condition holds for some values in the interval and not for others.
fn is_close(condition: &Condition, judged: &Judged) -> bool {
    let (condition::Limit::Value(limit), Some(low), Some(high)) =
        (condition.limit, judged.low, judged.high)
    else {
        return false;
    };
    low < high && low <= limit && limit <= high
}

/// Prefix of the figures of a search for limits.
const CAPACITY: &str = "capacity_";

pub(crate) const NOT_DONE: &str = "not done";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use weigh_model::ledger::{Ledger, NotSentCause};
    use weigh_model::warnings::{Severity, WarningRecord};
    use weigh_model::{Guarantee, Warning};

    use super::*;
    use crate::summary::metric::Metric;

    fn cell(name: &str, values: &[f64], lost: Option<u64>) -> Cell {
        let metrics = match values {
            [] => BTreeMap::new(),
            _ => BTreeMap::from([(P95.to_owned(), Metric::new(P95, values))]),
        };
        Cell {
            name: name.to_owned(),
            point: BTreeMap::from([("protocol".to_owned(), json!(name))]),
            guarantee: Guarantee::AtLeastOnce,
            durability: None,
            target: String::new(),
            repetitions: 5,
            valid: true,
            metrics,
            samples: BTreeMap::new(),
            ledger: Ledger { sent: 1_000, lost, ..Ledger::zero() },
            warnings: Vec::new(),
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
        assert_eq!(unknown.answer(), Answer::Undecided);
        assert!(unknown.undecided[0].reason.as_ref().unwrap().contains("not observed"));
    }

    #[test]
    fn what_was_not_measured_is_undecided_and_says_so() {
        let some = judged("response_time p(95) < 5ms", &[fast(), cell("without", &[], Some(0))]);
        assert_eq!((some.answer(), some.holds), (Answer::Undecided, false));
        assert_eq!(some.undecided[0].reason.as_deref(), Some("not measured"));
        assert_eq!(some.undecided[0].cell, "without");
        let worse = judged("response_time p(95) < 5ms", &[slow(), cell("without", &[], Some(0))]);
        assert_eq!(worse.answer(), Answer::Failed, "one that fails counts more");
        let lost = cell("lossy", &[1e6, f64::INFINITY, 1e6, 1e6, 1e6], Some(5));
        let lost = judged("response_time p(95) < 5ms", &[lost]);
        assert_eq!(lost.failed[0].reason.as_deref(), Some("in the lost share"));
        let missing = judged("response_time p(95) < 5ms", &[cell("four", &[1e6; 4], Some(0))]);
        let why = missing.undecided[0].reason.as_deref();
        assert_eq!(why, Some("1 of 5 repetitions without a value"));
        let mut unsent = cell("unsent", &[1e6; 5], Some(1));
        unsent.ledger.not_sent_causes.insert(NotSentCause::ConnectionClosed, 500);
        for (limit, answer) in [("loss < 50 %", Answer::Holds), ("loss < 1 %", Answer::Undecided)] {
            let found = judged(limit, &[unsent.clone()]);
            assert_eq!(found.answer(), answer, "{limit}: 501 of 1,500 may be lost");
        }
        assert_eq!(judged("loss == 0", &[unsent.clone()]).answer(), Answer::Failed, "one is lost");
        let over = judged("loss > 1 %", &[unsent]);
        assert_eq!(over.answer(), Answer::Undecided, "a condition of what must not be");
        let nobody = judged("delivery_time p(95) < 5ms", &[fast()]);
        assert_eq!(nobody.answer(), Answer::Undecided);
        for (condition, cells) in
            [("response_time_ns.p95 > +5%", vec![fast()]), ("loss == 0", vec![])]
        {
            let never = judged(condition, &cells);
            assert_eq!(never.answer(), Answer::Undecided, "{condition}");
            assert!(never.reason.is_some());
        }
    }

    #[test]
    fn nothing_sent_loses_nothing_and_passes_nothing() {
        let idle = Cell { ledger: Ledger { lost: Some(0), ..Ledger::zero() }, ..fast() };
        for condition in ["lost == 0", "loss == 0", "first loss"] {
            let judged = judged(condition, std::slice::from_ref(&idle));
            assert_eq!(judged.answer(), Answer::Undecided, "{condition}");
        }
    }

    #[test]
    fn a_quantile_says_how_many_messages_it_needs() {
        let few = Cell { samples: [("response_time_ns".to_owned(), 500)].into(), ..fast() };
        let thin = judged("p99.9 < 50ms", std::slice::from_ref(&few));
        assert_eq!(thin.answer(), Answer::Undecided);
        assert_eq!(
            thin.undecided[0].reason.as_deref(),
            Some(
                "p99.9 needs 3,688 messages in each repetition, there were 500: send more messages \
                 or use p99"
            )
        );
        let again = judged("p95 < 5ms", &[few]);
        assert_eq!(again.answer(), Answer::Holds);
    }

    #[test]
    fn an_invalid_result_decides_nothing() {
        let warnings = vec![Warning::generator_limited(99.0).record()];
        let invalid = Cell { valid: false, warnings, ..fast() };
        for condition in ["p95 < 5ms", "p95 < 1ms", "loss == 0"] {
            let judged = judged(condition, std::slice::from_ref(&invalid));
            assert_eq!(judged.answer(), Answer::Undecided, "{condition}");
        }
    }

    /// The target took as long as was measured or less: only a limit above that is surely kept.
    #[test]
    fn a_time_made_invalid_by_the_generator_is_an_upper_bound() {
        let late = WarningRecord {
            severity: Severity::InvalidTimes,
            ..Warning::generator_limited(99.0).record()
        };
        let invalid = Cell { warnings: vec![late], ..fast() };
        let answer = |condition| judged(condition, std::slice::from_ref(&invalid)).answer();
        assert_eq!(answer("p95 < 5ms"), Answer::Holds);
        assert_eq!(answer("p95 < 3ms"), Answer::Undecided, "4 ms, all of which may be lag");
        assert_eq!(answer("p95 > 3ms"), Answer::Undecided);
        assert_eq!(answer("loss == 0"), Answer::Holds, "losses are no times");
    }

    #[test]
    fn a_case_without_any_result_is_undecided() {
        let failure = Failure {
            trial: "x".to_owned(),
            point: BTreeMap::from([("protocol".to_owned(), json!("gone"))]),
            error: "no server".to_owned(),
        };
        let failures = [failure.clone(), failure];
        let found = one(&"loss == 0".parse().unwrap(), &[fast()], &failures);
        assert_eq!(found.undecided.len(), 1);
        assert_eq!(found.undecided[0].reason.as_deref(), Some("not done"));
        assert_eq!(found.answer(), Answer::Undecided);
    }

    const P95: &str = "response_time_ns.p95";
}
