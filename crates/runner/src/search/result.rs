//! Turns the record of a trial into the result for its search.

use std::collections::BTreeMap;
use weigh_model::numbers::percent;

use weigh_limit::trial::BACKLOG_RATIO;
use weigh_limit::{Goal, TrialEnd, TrialRequest, TrialResult};
use weigh_model::Condition;
use weigh_model::condition::{Limit, resolve};
use weigh_model::event::{Interval, TrialFinished};
use weigh_model::ledger::NotSentCause;
use weigh_model::warnings::{Severity, WarningRecord};
use weigh_model::{Load, Nanos, Pattern};

use crate::search::backlog::{Usual, backlog_ratio, unsent_ratio};
use crate::search::length::messages_needed;

/// A finished trial.
pub struct Over<'o> {
    /// Request of the search.
    pub request: &'o TrialRequest,
    /// Its load.
    pub load: &'o Load,
    /// Its result.
    pub finished: &'o TrialFinished,
    /// Its time series.
    pub intervals: &'o [Interval],
    /// Its total duration.
    pub elapsed: Nanos,
    /// The usual time of a message, from this and earlier trials of the search.
    pub usual: Usual,
}

impl Over<'_> {
    /// The result for the search for these goals.
    pub fn result(&self, goals: &[Goal]) -> TrialResult {
        let (forwarded, lost) = self.counts();
        TrialResult {
            load: self.request.load,
            duration: self.request.duration,
            elapsed: self.elapsed,
            forwarded,
            lost,
            figures: self.figures(goals),
            end: self.end(goals),
        }
    }

    /// Messages that arrived in time, and those that did not; with the pattern hold, connections.
    fn counts(&self) -> (u64, u64) {
        let ledger = &self.finished.ledger;
        if self.load.pattern == Pattern::Hold {
            let asked = u64::from(self.load.connections);
            let held = self.finished.metrics.get("connections_held").copied().unwrap_or(0.0) as u64;
            return (held.min(asked), asked.saturating_sub(held));
        }
        let lost = ledger.lost.unwrap_or(0) + ledger.late + ledger.held_back();
        (ledger.delivered.unwrap_or(0), lost)
    }

    fn backlog_ratio(&self) -> f64 {
        backlog_ratio(self.load, self.finished, self.intervals, self.usual)
    }

    /// The figures in the goals.
    fn figures(&self, goals: &[Goal]) -> BTreeMap<String, f64> {
        let names = goals.iter().flat_map(|goal| &goal.conditions).map(|own| own.metric.as_str());
        let figure = |name: &str| match name {
            BACKLOG_RATIO => Some(self.backlog_ratio()),
            _ => self.finished.figure(name),
        };
        names.filter_map(|name| Some((name.to_owned(), figure(name)?))).collect()
    }

    fn end(&self, goals: &[Goal]) -> TrialEnd {
        let warnings = &self.finished.warnings;
        if let Some(died) = warnings.iter().find(|warning| warning.code == "target-died") {
            return TrialEnd::TargetDied(died.text.clone());
        }
        let ruined = warnings.iter().find(|warning| warning.severity == Severity::Invalid);
        if let Some(warning) = ruined {
            return TrialEnd::Invalid(format!("{}; {}", warning.text, warning.advice));
        }
        if self.load.pattern != Pattern::Hold && self.finished.ledger.lost.is_none() {
            let why = "deliveries are unknown: use the pattern deliver, or QoS 1";
            return TrialEnd::Invalid(why.to_owned());
        }
        match self.lag_warning(goals) {
            Some(warning) => TrialEnd::Invalid(format!("{}; {}", warning.text, warning.advice)),
            None => self.too_few(goals).unwrap_or(TrialEnd::Completed),
        }
    }

    /// Checks whether a goal that was not missed by loss has a quantile with too few messages. A
    /// burst has a fixed number.
    fn too_few(&self, goals: &[Goal]) -> Option<TrialEnd> {
        if self.load.messages.is_some() {
            return None;
        }
        let (forwarded, lost) = self.counts();
        let loss_ratio = lost as f64 / (forwarded + lost).max(1) as f64;
        let open = goals.iter().filter(|goal| loss_ratio <= goal.loss_ratio);
        open.flat_map(|goal| &goal.conditions).find_map(|condition| {
            let needed = messages_needed(&condition.metric)?;
            let samples = &self.finished.samples;
            let family = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
            let named = resolve(&condition.metric, |name| samples.contains_key(&family(name)));
            let had = samples.get(&family(&named)).copied().unwrap_or(0);
            let had = had + self.finished.ledger.lost.unwrap_or(0);
            // After a long trial without any message, a longer one would not help.
            if had == 0 && self.request.duration >= LONG_ENOUGH {
                return None;
            }
            let metric = named.into_owned();
            (had < needed).then_some(TrialEnd::TooFew { metric, had, needed })
        })
    }

    /// Returns the warning that chance made the trial invalid: the generator was late where that
    /// decides a goal. The search may repeat the load.
    pub fn lag_warning(&self, goals: &[Goal]) -> Option<WarningRecord> {
        let warnings = &self.finished.warnings;
        // Messages that could not be sent to a target that had ended are not late.
        let is_ruined = warnings
            .iter()
            .any(|warning| warning.severity == Severity::Invalid || warning.code == "target-died");
        let conditions = goals.iter().flat_map(|goal| &goal.conditions);
        let mut decided = conditions.filter_map(|condition| self.lag_decides(condition));
        let text = decided.find(|_| !is_ruined)?;
        Some(WarningRecord {
            code: "generator-lag".to_owned(),
            severity: Severity::Warning,
            text,
            advice: "stop other programs and repeat, or change the limit of the goal".to_owned(),
        })
    }

    /// Returns why the generator's send lag decides the condition: the figure misses its limit by
    /// no more than the lag in it. A figure that meets its limit meets it without the lag too; one
    /// that misses it by more misses it without the lag. Unsent messages that were not held up were
    /// queued in the generator.
    fn lag_decides(&self, condition: &Condition) -> Option<String> {
        let metric = |name: &str| self.finished.metrics.get(name).copied();
        let differs = |figure: f64, without: f64| {
            let [with, without] = [figure, without].map(|value| condition.holds(value));
            with != without
        };
        if condition.metric == BACKLOG_RATIO {
            let piled_up = self.backlog_ratio();
            let held_up = metric("held_up_ratio").unwrap_or(0.0);
            let unsent = unsent_ratio(self.load, self.finished, self.intervals);
            // Without a connection nothing can be sent in time.
            let is_cut_off =
                self.finished.ledger.not_sent_causes.contains_key(&NotSentCause::ConnectionClosed);
            let own = if is_cut_off { 0.0 } else { (unsent - held_up).max(0.0) };
            return differs(piled_up, (piled_up - own).max(0.0)).then(|| {
                format!(
                    "the generator itself had not sent {} of what was due",
                    percent(100.0 * own)
                )
            });
        }
        let metrics = &self.finished.metrics;
        let named = resolve(&condition.metric, |name| metrics.contains_key(name));
        let (time, part) = named.split_once('.')?;
        let lag = metric(&format!("{}_lag_ns.{part}", time.strip_suffix("_ns")?))?;
        let (Limit::Value(_), Some(figure)) =
            (condition.limit, self.finished.figure(&condition.metric))
        else {
            return None;
        };
        differs(figure, figure - lag).then(|| {
            let [figure, lag] = [figure, lag].map(|ns| weigh_report::figures::time(ns, false));
            format!(
                "{named} is {figure}, and up to {lag} of it is the generator's send lag: the limit \
                 is in between"
            )
        })
    }
}

/// A trial of this length is long enough.
const LONG_ENOUGH: Nanos = Nanos::from_secs(30);

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};
    use weigh_limit::Purpose;
    use weigh_model::Rate;
    use weigh_model::ledger::Ledger;

    /// 3,000/s over 8 connections, for a second.
    pub(in crate::search) fn load() -> Load {
        Load {
            duration: Some(Nanos::from_secs(1)),
            warmup: Nanos::from_millis(500),
            ..Load::open(Pattern::Request, 8, Rate { per_second: 3000.0, per_client: false })
        }
    }

    /// A trial in which 3,000 were due and none was lost, except for the fields of `changed`.
    pub(in crate::search) fn finished(changed: Value) -> TrialFinished {
        let mut trial = json!({
            "trial": "1", "point": {}, "repetition": 0, "seed": 1, "guarantee": "at least once",
            "target": "test", "metrics": {}, "samples": { "response_time_ns": 3000 },
            "doubts": [], "granted": {},
            "ledger": Ledger {
                messages: 3000, scheduled: 3000, sent: 3000, delivered: Some(3000), lost: Some(0),
                ..Ledger::default()
            },
            "histograms": {},
        });
        for (key, value) in changed.as_object().unwrap() {
            trial[key] = value.clone();
        }
        serde_json::from_value(trial).unwrap()
    }

    /// Ten intervals of 100 ms after half a second of warm-up, with this number of answers each.
    pub(in crate::search) fn intervals(answers: u64) -> Vec<Interval> {
        let interval = |number: u64| Interval {
            at_ns: (number + 1) * 100_000_000,
            length_ns: Some(100_000_000),
            warmup: number < 5,
            acknowledged: answers,
            ..Interval::default()
        };
        // Answers after the window's end do not count.
        (0..20).map(interval).collect()
    }

    fn end(trial: &TrialFinished, goal: &str) -> TrialEnd {
        end_of(trial, goal, &intervals(300))
    }

    fn end_of(trial: &TrialFinished, goal: &str, intervals: &[Interval]) -> TrialEnd {
        told(trial, goal, intervals, |over, goals| over.result(goals).end)
    }

    fn told<T>(
        trial: &TrialFinished,
        goal: &str,
        intervals: &[Interval],
        of: impl FnOnce(&Over<'_>, &[Goal]) -> T,
    ) -> T {
        let conditions = vec![goal.parse().unwrap()];
        let goals = [Goal { conditions, ..Goal::quick() }];
        let duration = Nanos::from_secs(1);
        let purpose = Purpose::Search;
        let request = TrialRequest { load: 3000.0, duration, goal: 0, purpose, restart: false };
        let load = load();
        let (elapsed, usual) = (duration, Usual::default());
        let over =
            Over { request: &request, load: &load, finished: trial, intervals, elapsed, usual };
        of(&over, &goals)
    }

    #[test]
    fn a_quantile_without_its_messages_asks_for_a_longer_trial() {
        let with = |samples: u64, lost: u64| {
            let ledger = Ledger {
                scheduled: 400,
                sent: 400,
                delivered: Some(400 - lost),
                lost: Some(lost),
                ..Ledger::default()
            };
            let metrics = json!({ "response_time_ns.p99": 8e6 });
            let samples = json!({ "response_time_ns": samples });
            let trial = json!({ "metrics": metrics, "samples": samples, "ledger": ledger });
            let named = end(&finished(trial.clone()), "response_time_ns.p99 < 9ms");
            assert_eq!(end(&finished(trial), "p99 < 9ms"), named, "the headline latency");
            named
        };
        assert_eq!(with(400, 0), TrialEnd::Completed);
        let metric = "response_time_ns.p99".to_owned();
        assert_eq!(with(120, 0), TrialEnd::TooFew { metric, had: 120, needed: 368 });
        assert_eq!(with(120, 200), TrialEnd::Completed, "it is missed by its loss anyway");
    }

    /// A lag of 1 ms at a p99 of 8 ms decides only if the limit is between 7 and 8 ms.
    #[test]
    fn a_late_generator_makes_only_times_with_its_lag_invalid() {
        let metrics = json!({ "response_time_ns.p99": 8e6, "response_time_lag_ns.p99": 1e6,
            "send_lag_ns.p999": 5e6 });
        let trial = finished(json!({ "metrics": metrics }));
        for goal in ["p99 < 9ms", "p99 < 6ms", "loss == 0"] {
            let goal = goal.replace("p99", "response_time_ns.p99");
            assert_eq!(end(&trial, &goal), TrialEnd::Completed, "{goal}");
        }
        let decided_by_lag = end(&trial, "response_time_ns.p99 < 7500us");
        let TrialEnd::Invalid(why) = decided_by_lag else { panic!("{decided_by_lag:?}") };
        assert!(why.contains("is 8.00 ms, and up to 1.00 ms of it is"), "{why}");
    }

    /// Messages that a late generator has not sent are not queued at the target, unless the target
    /// held them up.
    #[test]
    fn a_backlog_of_the_generator_says_nothing_about_the_target() {
        let piled_up = |held_up: f64, sent: u64| {
            let metrics = json!({ "held_up_ratio": held_up });
            let trial = finished(json!({ "metrics": metrics }));
            let mut intervals = intervals(270);
            intervals.iter_mut().for_each(|interval| interval.sent = sent);
            end_of(&trial, "backlog_ratio <= 0.01", &intervals)
        };
        assert!(matches!(piled_up(0.0, 270), TrialEnd::Invalid(why) if why.contains("not sent")));
        assert_eq!(piled_up(0.5, 270), TrialEnd::Completed);
        assert_eq!(piled_up(0.0, 300), TrialEnd::Completed);
        // Messages that could not be sent to a target that had ended are not the generator's fault.
        let died =
            json!({ "code": "target-died", "severity": "doubt", "text": "x", "advice": "y" });
        let trial = finished(json!({ "doubts": [died] }));
        let lag_warning = told(&trial, "backlog_ratio <= 0.01", &intervals(270), |over, goals| {
            over.lag_warning(goals)
        });
        assert_eq!(lag_warning, None);
    }

    #[test]
    fn what_says_nothing_about_the_target_is_invalid_and_death_is_a_result() {
        let warning = |code: &str, severity: &str| {
            let warning = json!({ "code": code, "severity": severity, "text": "x", "advice": "y" });
            finished(json!({ "doubts": [warning] }))
        };
        let limited = warning("generator-limited", "invalid");
        assert_eq!(end(&limited, "loss == 0"), TrialEnd::Invalid("x; y".to_owned()));
        let died = warning("target-died", "doubt");
        assert_eq!(end(&died, "loss == 0"), TrialEnd::TargetDied("x".to_owned()));
        let mut unknown = finished(json!({}));
        (unknown.ledger.delivered, unknown.ledger.lost) = (None, None);
        assert!(matches!(end(&unknown, "loss == 0"), TrialEnd::Invalid(_)));
    }
}
