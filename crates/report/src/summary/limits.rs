//! The limits of a run: the search of every lane is replayed with the results in the journal, so
//! the answer depends only on the events.

use std::collections::BTreeMap;

use serde_json::Value;
use weigh_limit::answer::TrialRecord;
use weigh_limit::attribution::{Attribution, Evidence, Resource, attribute};
use weigh_limit::trial::BACKLOG_RATIO;
use weigh_limit::{
    Answer, AxisKind, GoalAnswer, Search, Selector, Stop, TrialEnd, TrialRequest, TrialResult,
};
use weigh_model::event::{Event, TrialFinished};
use weigh_model::headroom::Observed;
use weigh_model::ledger::Cause;
use weigh_model::metrics::PARTS;
use weigh_model::trial::Point;
use weigh_model::units::Nanos;

use super::cell::COUNTERS_ASKED;
use super::ladder::HoldShown;
use super::limit::{Capacity, EndedBy, Limit, LimitGoal, LimitTrial};
use super::limit_checks::BurstShown;
use super::{limit_checks, limit_curve};

/// The limits of the run with these events, in the order in which their searches began. A damaged
/// journal ends a search at the damage.
pub(crate) fn from_events(events: &[Event]) -> Vec<Limit> {
    let begun = events.iter().filter_map(|event| match event {
        Event::SearchBegun { lane, search, .. } => Some((lane, search)),
        _ => None,
    });
    begun
        .filter_map(|(lane, search)| {
            let search: Search = serde_json::from_value(search.clone()).ok()?;
            Some(limit(lane, search, events))
        })
        .collect()
}

/// A result that a search received, and its trial.
struct Told<'e> {
    id: &'e str,
    result: TrialResult,
    finished: Option<&'e TrialFinished>,
    observed: Observed,
}

fn limit(lane: &Point, search: Search, events: &[Event]) -> Limit {
    let told = told(lane, events);
    let axis = search.axis;
    let answer = play(search, &told).answer();
    let target = told.iter().find_map(|told| told.finished).map(|trial| trial.target.clone());
    Limit {
        point: lane.clone(),
        target: target.unwrap_or_default(),
        axis: axis.kind().name().to_owned(),
        unit: axis.kind().unit().trim_start().to_owned(),
        allowed: (axis.min(), axis.max()),
        goals: (0..answer.goals.len()).map(|goal| goal_of(goal, &answer, &told)).collect(),
        stop: stop_word(&answer.stop).to_owned(),
        stopped: answer.stop.to_string(),
        trials: answer.trials.iter().zip(&told).map(trial_of).collect(),
        time_used_s: answer.time_used.as_secs_f64(),
        described: limit_curve::describe(axis.kind(), &curve(&told)),
        curve: seen(&told),
        second_generator: limit_checks::moved(lane, axis.kind(), events),
    }
}

fn told<'e>(lane: &Point, events: &'e [Event]) -> Vec<Told<'e>> {
    let finished: BTreeMap<&str, &TrialFinished> = events
        .iter()
        .filter_map(|event| match event {
            Event::TrialFinished(trial) => Some((trial.trial.as_str(), &**trial)),
            _ => None,
        })
        .collect();
    let of_lane = events.iter().filter_map(|event| match event {
        Event::SearchTold { lane: own, trial, result, observed, .. } if own == lane => {
            Some((trial, result, observed))
        }
        _ => None,
    });
    of_lane
        .filter_map(|(id, result, observed)| {
            let result = serde_json::from_value(result.clone()).ok()?;
            let observed = serde_json::from_value(observed.clone()).unwrap_or_default();
            Some(Told { id, result, finished: finished.get(id.as_str()).copied(), observed })
        })
        .collect()
}

/// The search after these results, or as far as they belong to it.
fn play(search: Search, told: &[Told<'_>]) -> Selector {
    let results = || told.iter().map(|told| told.result.clone());
    let mut count = told.len();
    loop {
        match Selector::replay(search.clone(), results().take(count)) {
            Ok(selector) => return selector,
            Err(weigh_limit::ReplayError::Result { index, .. }) if index < count => count = index,
            // The search was valid when it began; an invalid one has no trials.
            Err(_) => count = 0,
        }
    }
}

fn goal_of(index: usize, answer: &Answer, told: &[Told<'_>]) -> LimitGoal {
    let found = &answer.goals[index];
    let outcome = serde_json::to_value(&found.outcome).unwrap_or_default();
    let lower = found.lower.map(|bound| bound.load);
    let upper = found.upper.map(|bound| bound.load);
    let outcome = word(&outcome);
    let is_lost = outcome == "withdrawn";
    let capacity = lower.filter(|_| !is_lost).map(|low| Capacity { value: low, low, high: upper });
    let name = match answer.axis.name() {
        "rate" => "capacity_per_s".to_owned(),
        "message-size" => "capacity_bytes".to_owned(),
        axis => format!("capacity_{axis}"),
    };
    let ended_by = ended_by(index, found, answer, told);
    let has_died = found.upper.is_some_and(|bound| bound.has_died);
    let is_missed = upper.is_some() && !has_died;
    let of_ours = ended_by.as_ref().filter(|ended| ended.is_ours && is_missed);
    let of_ours = of_ours.and_then(|ended| ended.resource.as_ref());
    let of_ours = of_ours.map(|resource| format!("the limit is {resource}, not the target"));
    LimitGoal {
        name: found.goal.name.clone(),
        asked: serde_json::to_value(&found.goal).unwrap_or_default(),
        sentence: found.to_string(),
        metrics: capacity.map(|capacity| (name, capacity)).into_iter().collect(),
        lower,
        upper,
        width: found.width,
        conditional_throughput_per_s: found.conditional_throughput,
        expected: found.expected,
        passed: found.best.0,
        failed: found.best.1,
        unproven: found.unproven.clone().or(of_ours),
        trials_missing: found.remaining.map(|left| left.trials),
        time_missing_s: found.remaining.map(|left| left.time.as_secs_f64()),
        trials: found.trials,
        time_used_s: found.time_used.as_secs_f64(),
        missed_by: missed_by(index, upper, answer),
        burst: burst(found, answer, told),
        ended_by,
        outcome,
    }
}

fn missed_by(index: usize, upper: Option<f64>, answer: &Answer) -> Option<String> {
    let at_upper = answer.trials.iter().rev().filter(|record| Some(record.request.load) == upper);
    at_upper.filter_map(|record| record.missed.get(index)?.clone()).next()
}

/// The burst at the upper bound, or at the lower one if nothing larger was tried.
fn burst(found: &GoalAnswer, answer: &Answer, told: &[Told<'_>]) -> Option<BurstShown> {
    if answer.axis != AxisKind::Burst {
        return None;
    }
    let bounds = (found.lower.map(|bound| bound.load), found.upper.map(|bound| bound.load));
    let load = bounds.1.or(bounds.0)?;
    let trial = told.iter().rev().find(|told| told.result.load == load)?.finished?;
    let is_at_once = !trial.metrics.contains_key("window_s")
        || trial.point.get("load.arrival").is_some_and(|arrival| arrival == "burst");
    limit_checks::burst(trial, is_at_once, bounds)
}

/// The limiting resource: from the last trial that missed the goal at the upper bound, or the one
/// that stopped the search.
fn ended_by(
    index: usize,
    found: &GoalAnswer,
    answer: &Answer,
    told: &[Told<'_>],
) -> Option<EndedBy> {
    let upper = found.upper.map(|bound| bound.load);
    let is_it = |(record, _): &(&TrialRecord, &Told<'_>)| match &record.result.end {
        TrialEnd::Invalid(_) => true,
        _ => {
            let TrialRequest { load, .. } = record.request;
            Some(load) == upper && record.missed.get(index).is_some_and(Option::is_some)
        }
    };
    let pairs = || answer.trials.iter().zip(told).rev().filter(is_it);
    // Not every trial was long enough to wait for the target's counters.
    let has_counters = |(_, told): &(&TrialRecord, &Told<'_>)| {
        told.finished.is_some_and(|trial| trial.counters.contains_key("dropped"))
    };
    let last = pairs().next()?;
    let is_invalid = matches!(last.0.result.end, TrialEnd::Invalid(_));
    let (_, told) = pairs().find(has_counters).filter(|_| !is_invalid).unwrap_or(last);
    let trial = told.finished?;
    let speaks_of_times = found.goal.conditions.iter().any(|condition| {
        condition.metric.split('.').next().is_some_and(|family| family.ends_with("_time_ns"))
    });
    let evidence = evidence(told, answer.axis, speaks_of_times, &answer.stop)?;
    let attribution = attribute(&evidence);
    let first = match &attribution {
        Attribution::Causes(causes) => causes.first().map(|cause| cause.resource),
        Attribution::CannotTell { .. } => None,
    };
    Some(EndedBy {
        trial: told.id.to_owned(),
        sentence: attribution.to_string() + &unasked(&attribution, trial),
        resource: first.map(|resource| resource.name().to_owned()),
        is_ours: first.is_some_and(|resource| resource.is_ours()),
        evidence: serde_json::to_value(&evidence).unwrap_or_default(),
    })
}

/// The generator's lateness in the response time and that time, at the quantile with the largest
/// share. Records of earlier versions have the largest lag with the mean.
fn lateness(trial: &TrialFinished) -> Option<(Nanos, Nanos)> {
    let metric = |name: &str| trial.metrics.get(name).copied().filter(|value| value.is_finite());
    let pair = |part: &&str| {
        let time = metric(&format!("response_time_ns.{part}"))?;
        Some((metric(&format!("response_time_lag_ns.{part}"))?, time))
    };
    let share = |(lag, time): &(f64, f64)| lag / time.max(1.0);
    let largest = PARTS[1..].iter().filter_map(pair).max_by(|a, b| share(a).total_cmp(&share(b)));
    let old = || metric("send_lag_ns.p999").zip(metric("response_time_ns.mean"));
    largest.or_else(old).map(|(lag, time)| (Nanos(lag as u64), Nanos(time as u64)))
}

/// Why the target's queue was not observed, although its counters could have been read.
fn unasked(attribution: &Attribution, trial: &TrialFinished) -> String {
    let queue = &Resource::TargetQueue;
    let is_unknown = matches!(attribution, Attribution::CannotTell { not_observed, .. }
        if not_observed.contains(queue));
    match trial.scene.get(COUNTERS_ASKED).filter(|_| is_unknown) {
        Some(words) => format!(" (its own counters: {words})"),
        None => String::new(),
    }
}

/// Observations of a trial that has a record.
fn evidence(
    told: &Told<'_>,
    axis: AxisKind,
    speaks_of_times: bool,
    stop: &Stop,
) -> Option<Evidence> {
    let trial = told.finished?;
    let metric = |name: &str| trial.metrics.get(name).copied().filter(|value| value.is_finite());
    let time = |name: &str| metric(name).map(|value| Nanos(value as u64));
    // Without a goal on times, a late generator does not make the trial invalid.
    let is_timed = speaks_of_times && matches!(stop, Stop::Invalid(_));
    // Without losses nothing was dropped.
    let counts = trial.server.is_some()
        || trial.counters.contains_key("dropped")
        || trial.ledger.lost == Some(0);
    let said = |code: &str| {
        let mut warnings = trial.warnings.iter();
        warnings.find(|warning| warning.code == code).map(|warning| warning.text.clone())
    };
    let lost_by = |cause| trial.ledger.causes.get(&cause).copied().unwrap_or(0);
    let of_path = |part: &str| {
        let ways = ["up", "down"].iter();
        ways.filter_map(|way| metric(&format!("path.{way}.{part}"))).sum::<f64>()
    };
    let path_queue = metric("path.up.packets")
        .map(|_| (of_path("queue_full_packets") as u64, of_path("packets") as u64));
    let ways = [metric("path.up.asked_ratio"), metric("path.down.asked_ratio")];
    let path_asked = ways.into_iter().flatten().reduce(f64::max);
    let by_chance = path_queue.map(|_| of_path("lost_packets") as u64);
    Some(Evidence {
        target_cpu_percent: metric("target_cpu_percent.mean"),
        generator_cpu_percent: metric("generator_cpu_percent.max"),
        lateness: lateness(trial).filter(|_| is_timed),
        sends_at_will: axis == AxisKind::Burst,
        lost: trial.ledger.lost,
        path_drops: by_chance.or(told.observed.kernel_drops),
        path_queue,
        path_asked,
        queue_drops: counts.then_some(lost_by(Cause::ServerDropped)),
        refused: Some(lost_by(Cause::ErrorAnswer)),
        disturbance: said("disturbed"),
        piled_up: told.result.figures.get(BACKLOG_RATIO).copied(),
        held_up: metric("held_up_ratio"),
        service_time_mean: time("service_time_ns.mean"),
        answers_per_wakeup: metric("answers_per_wakeup"),
        asked_times: metric("throughput_in_per_s")
            .zip(metric("window_s"))
            .map(|(per_s, window_s)| trial.ledger.messages as f64 / window_s / per_s)
            .filter(|times| times.is_finite()),
        descriptors: told.observed.descriptors,
        ports: told.observed.ports,
    })
}

fn trial_of((record, told): (&TrialRecord, &Told<'_>)) -> LimitTrial {
    let end = serde_json::to_value(&record.result.end).unwrap_or_default();
    LimitTrial {
        trial: told.id.to_owned(),
        load: record.request.load,
        duration_s: record.request.duration.as_secs_f64(),
        forwarded: record.result.forwarded,
        lost: record.result.lost,
        throughput_out_per_s: throughput(told),
        missed: record.missed.clone(),
        bounds: record.bounds.clone(),
        end: word(&end),
    }
}

/// Messages per second of output, by load, ascending: one value for each trial.
fn curve(told: &[Told<'_>]) -> Vec<(f64, Vec<f64>)> {
    let mut curve: Vec<(f64, Vec<f64>)> = Vec::new();
    for told in told.iter().filter(|told| told.result.end == TrialEnd::Completed) {
        let (Some(out), load) = (throughput(told), told.result.load) else { continue };
        match curve.iter_mut().find(|(known, _)| *known == load) {
            Some((_, values)) => values.push(out),
            None => curve.push((load, vec![out])),
        }
    }
    curve.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    curve
}

/// Output and other figures, means over the trials of a load.
fn seen(told: &[Told<'_>]) -> Vec<HoldShown> {
    let mut loads: Vec<f64> = told.iter().map(|told| told.result.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let at = |load: f64| {
        let trials = told.iter().filter(|told| told.result.load == load);
        let trials: Vec<&TrialFinished> = trials.filter_map(|told| told.finished).collect();
        let mean = |names: &[&str]| {
            let figure = |trial: &&TrialFinished| {
                let of = |name: &&str| trial.metrics.get(*name).copied();
                names.iter().find_map(of).filter(|value| value.is_finite())
            };
            let values: Vec<f64> = trials.iter().filter_map(figure).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        HoldShown {
            offered: load,
            windows: trials.len(),
            input_per_s: mean(&["throughput_in_per_s"]),
            output_per_s: mean(&["throughput_out_per_s"]),
            time_ns_p99: mean(&["response_time_ns.p99", "delivery_time_ns.p99"]),
            errors_ratio: mean(&["errors_ratio"]),
            target_cpu_percent: mean(&["target_cpu_percent.mean"]),
        }
    };
    loads.into_iter().map(at).filter(|hold| hold.windows > 0).collect()
}

fn throughput(told: &Told<'_>) -> Option<f64> {
    told.finished?.metrics.get("throughput_out_per_s").copied().filter(|rate| rate.is_finite())
}

fn stop_word(stop: &Stop) -> &'static str {
    match stop {
        Stop::Running => "running",
        Stop::Complete => "complete",
        Stop::Budget => "budget",
        Stop::Invalid(_) => "invalid",
        Stop::TooManyTrials(_) => "too-many-trials",
    }
}

/// The name of a variant, with or without a value.
fn word(value: &Value) -> String {
    let key = || value.as_object().and_then(|object| object.keys().next());
    value.as_str().or_else(|| key().map(String::as_str)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_limit::{Axis, AxisKind, Goal};

    fn lane() -> Point {
        [("protocol".to_owned(), Value::from("tcp"))].into_iter().collect()
    }

    /// The events of a search of a target that takes `capacity` messages a second.
    fn searched(capacity: f64) -> (Vec<Event>, Answer) {
        let axis = Axis::new(AxisKind::Rate, 100.0, 1e5, 1.0).unwrap();
        let mut selector = Selector::new(Search::new(axis, vec![Goal::quick()])).unwrap();
        let search = serde_json::to_value(Search::new(axis, vec![Goal::quick()])).unwrap();
        let second_generator = false;
        let mut events = vec![Event::SearchBegun { lane: lane(), search, second_generator }];
        while let Some(request) = selector.next_trial() {
            let due = (request.load * request.duration.as_secs_f64()) as u64;
            let most = (capacity * request.duration.as_secs_f64()) as u64;
            let result = TrialResult {
                load: request.load,
                duration: request.duration,
                elapsed: request.duration,
                forwarded: due.min(most),
                lost: due.saturating_sub(most),
                figures: BTreeMap::new(),
                end: TrialEnd::Completed,
            };
            selector.note(result.clone()).unwrap();
            events.push(Event::SearchTold {
                lane: lane(),
                trial: format!("{:x}", events.len()),
                request: serde_json::to_value(&request).unwrap(),
                result: serde_json::to_value(&result).unwrap(),
                observed: Value::Null,
            });
        }
        (events, selector.answer())
    }

    #[test]
    fn the_answer_of_the_journal_is_that_of_the_search() {
        let (events, answer) = searched(3_000.0);
        let limits = from_events(&events);
        let [limit] = &limits[..] else { panic!("{limits:?}") };
        let (found, goal) = (&answer.goals[0], &limit.goals[0]);
        assert_eq!((&*limit.stop, &*goal.outcome), ("complete", "decided"));
        assert_eq!(goal.lower, found.lower.map(|bound| bound.load));
        assert_eq!(goal.sentence, found.to_string());
        let capacity = goal.metrics["capacity_per_s"];
        // Half a percent may be lost: 3,000 of 3,015.
        assert!(capacity.low <= 3_015.1 && 3_015.0 <= capacity.high.unwrap(), "{capacity:?}");
        assert_eq!(limit.trials.len(), answer.trials.len());
    }

    /// Whichever result is lost, the search is known up to there and no bound is made up.
    #[test]
    fn a_damaged_journal_tells_the_search_up_to_the_damage() {
        let (events, answer) = searched(3_000.0);
        for lost in 1..events.len() {
            let mut events = events.clone();
            events.remove(lost);
            let limits = from_events(&events);
            let known = limits[0].trials.len();
            assert!(known + 1 >= lost && known < answer.trials.len(), "{lost}: {known}");
        }
        assert_eq!(from_events(&events[1..]), []);
    }
}
