//! What must hold of every search, whatever the target answers.

mod simulated;

use proptest::prelude::*;
use simulated::{Bucket, Noise, result, searched, searched_bucket};
use weigh_limit::{
    Answer, Axis, AxisKind, Goal, Outcome, Purpose, Search, Selector, Stop, TrialEnd,
};
use weigh_model::units::Nanos;
use weigh_stats::random::Random;

fn goals() -> impl Strategy<Value = Goal> {
    let goal = |(first, longer, sum, loss, exceed, width, stages, expansion): (
        u64,
        u64,
        u64,
        f64,
        f64,
        f64,
        u32,
        f64,
    )| Goal {
        name: "any".to_owned(),
        initial_trial_duration: Nanos::from_millis(first),
        final_trial_duration: Nanos::from_millis(first * longer),
        duration_sum: Nanos::from_millis(first * longer * sum),
        loss_ratio: loss,
        exceed_ratio: exceed,
        width,
        coarser_stages: stages,
        expansion,
        conditions: Vec::new(),
        sustain: None,
    };
    let numbers = (
        100..2000u64,
        1..20u64,
        1..10u64,
        prop_oneof![Just(0.0), 0.0..0.2],
        prop_oneof![Just(0.0), Just(0.5), 0.0..0.9],
        0.002..0.3f64,
        0..5u32,
        1.1..8.0f64,
    );
    numbers.prop_map(goal)
}

/// An upper limit for the trials of one search: loads of each stage, times trials of each load.
fn trials_bound(axis: &Axis, goal: &Goal) -> f64 {
    let range = (axis.max() / axis.min()).ln();
    let loads = 10.0 + range / 2f64.ln() + (range / goal.width).log2().max(0.0);
    let stages = f64::from(goal.coarser_stages + 1);
    let steps = range / (goal.expansion.ln() * goal.width).max(1e-3);
    let shortest = goal.final_trial_duration.min(goal.initial_trial_duration);
    let a_load = 2.0 + goal.duration_sum.as_secs_f64() / shortest.as_secs_f64();
    stages * (loads + steps.min(200.0)) * a_load
}

fn assert_sound(answer: &Answer, axis: &Axis) -> Result<(), TestCaseError> {
    for trial in &answer.trials {
        let load = trial.request.load;
        prop_assert!(axis.min() <= load && load <= axis.max());
        let steps = load / axis.granularity();
        prop_assert!((steps - steps.round()).abs() < 1e-6);
        for (lower, upper) in &trial.bounds {
            prop_assert!(lower.is_none_or(|lower| upper.is_none_or(|upper| lower < upper)));
        }
    }
    for goal in &answer.goals {
        if let Some((lower, upper)) = goal.lower.zip(goal.upper) {
            prop_assert!(lower.load < upper.load);
            let decided = goal.width.unwrap() <= goal.goal.width;
            prop_assert_eq!(goal.outcome == Outcome::Decided, decided && goal.is_regular);
        }
    }
    Ok(())
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// A target that keeps up with every load below its limit and with none above it.
    #[test]
    fn a_monotone_limit_is_found_within_the_width(
        goal in goals(),
        limit in 1.0..2e6f64,
        (min, max) in (1..500u64, 1000..1_000_000u64),
        granularity in 1..40u64,
        kind in prop::sample::select(AxisKind::ALL.to_vec()),
    ) {
        let axis = Axis::new(kind, min as f64, max as f64, granularity as f64).unwrap();
        let search = Search::new(axis, vec![goal.clone()]);
        let answer = searched(search, |request| match request.load <= limit {
            true => result(request, 1000, 0),
            false => result(request, 0, 1000),
        });
        assert_sound(&answer, &axis)?;
        // Never more than twice what it has taken before.
        let mut taken = axis.min() / 2.0;
        for trial in &answer.trials {
            let load = trial.request.load;
            prop_assert!(load <= 2.0 * taken + axis.granularity(), "{} {}", load, taken);
            if trial.missed[0].is_none() {
                taken = taken.max(load);
            }
        }
        prop_assert_eq!(&answer.stop, &Stop::Complete);
        prop_assert!((answer.trials.len() as f64) < trials_bound(&axis, &goal));
        let found = &answer.goals[0];
        match (found.lower, found.upper) {
            (Some(lower), Some(upper)) => {
                prop_assert!(lower.load <= limit && limit < upper.load);
                let neighbours = upper.load - lower.load <= axis.granularity() * 1.001;
                prop_assert!(found.width.unwrap() <= goal.width || neighbours);
            }
            (None, Some(upper)) => {
                prop_assert!(upper.load == axis.min() && limit < axis.min());
                prop_assert!(matches!(found.outcome, Outcome::NeverMet(_)));
            }
            (Some(lower), None) => {
                prop_assert!(lower.load == axis.max() && limit >= axis.max());
                prop_assert_eq!(&found.outcome, &Outcome::HoldsAtMax);
            }
            (None, None) => prop_assert!(false, "no bound at all"),
        }
    }

    /// A target that answers by chance has no limit to be found; the search must end all the same,
    /// with bounds that do not contradict each other.
    #[test]
    fn a_target_that_answers_by_chance_ends_too(
        goal in goals(),
        other in goals(),
        seed: u64,
        failing in 0.0..1.0f64,
    ) {
        let axis = Axis::new(AxisKind::Rate, 10.0, 100_000.0, 1.0).unwrap();
        let mut random = Random::new(seed);
        let second = Goal { name: "other".to_owned(), ..other.clone() };
        let search = Search::new(axis, vec![goal.clone(), second]);
        let answer = searched(search, |request| match random.next_f64() < failing {
            true => result(request, 500, 500),
            false => result(request, 1000, 0),
        });
        assert_sound(&answer, &axis)?;
        prop_assert_eq!(&answer.stop, &Stop::Complete);
    }

    /// The same seed gives the same search, trial by trial; and the results alone give it back.
    #[test]
    fn a_search_repeats_itself(goal in goals(), seed: u64, noise in 0.0..0.05f64) {
        let axis = Axis::new(AxisKind::Rate, 10.0, 5_000.0, 1.0).unwrap();
        let run = || {
            let mut bucket = Bucket::new(300.0, 5.0, Noise::OfTrials(noise), seed);
            searched_bucket(Search::new(axis, vec![goal.clone()]), &mut bucket)
        };
        let answer = run();
        prop_assert_eq!(&answer, &run());
        let json = serde_json::to_string(&Search::new(axis, vec![goal])).unwrap();
        let search: Search = serde_json::from_str(&json).unwrap();
        let results = answer.trials.iter().map(|trial| trial.result.clone());
        prop_assert_eq!(Selector::replay(search, results).unwrap().answer(), answer);
    }

    /// A budget is never overdrawn, whatever trials take beside their duration.
    #[test]
    fn a_budget_of_time_is_kept(goal in goals(), budget in 0..400u64, overhead in 0..5000u64) {
        let axis = Axis::new(AxisKind::Rate, 10.0, 100_000.0, 1.0).unwrap();
        let budget = Nanos::from_secs(budget);
        let search = Search { budget: Some(budget), ..Search::new(axis, vec![goal]) };
        let answer = searched(search, |request| {
            let lost = if request.load > 2500.0 { 100 } else { 0 };
            let elapsed = request.duration + Nanos::from_millis(overhead);
            weigh_limit::TrialResult { elapsed, ..result(request, 900, lost) }
        });
        assert_sound(&answer, &axis)?;
        // What the first trial takes beside its duration is not known before it.
        let first = Nanos::from_millis(overhead);
        prop_assert!(answer.time_used <= budget + first);
        if answer.stop == Stop::Budget {
            prop_assert_eq!(&answer.goals[0].outcome, &Outcome::Undecided);
        }
    }
}

fn axis() -> Axis {
    Axis::new(AxisKind::Rate, 100.0, 100_000.0, 1.0).unwrap()
}

#[test]
fn a_goal_that_cannot_be_met_is_said_after_the_smallest_load() {
    let goals = vec![Goal::quick(), Goal::rfc2544()];
    let answer = searched(Search::new(axis(), goals), |request| result(request, 0, 100));
    assert!(answer.trials.iter().all(|trial| trial.request.load == 100.0));
    // Eleven of 21 trials that lose are enough for the one goal, the first of them for the other.
    assert_eq!(answer.trials.len(), 11);
    assert_eq!((answer.goals[0].trials, answer.goals[1].trials), (11, 0));
    for goal in &answer.goals {
        assert!(matches!(&goal.outcome, Outcome::NeverMet(why) if why.contains("lost")));
        assert!(goal.to_string().contains("not met even at the smallest load, 100/s"), "{goal}");
    }
}

#[test]
fn a_target_that_holds_everything_has_a_lower_bound_only() {
    let answer = searched(Search::new(axis(), vec![Goal::quick()]), |r| result(r, 1000, 0));
    let found = &answer.goals[0];
    assert_eq!((found.outcome.clone(), found.upper), (Outcome::HoldsAtMax, None));
    assert!(!found.is_regular && found.lower.unwrap().load == 100_000.0);
    assert_eq!(found.conditional_throughput, Some(100_000.0));
    assert!(found.to_string().contains("at least 100,000/s, the largest load allowed"), "{found}");
}

#[test]
fn an_invalid_trial_stops_the_search_with_its_reason_and_is_not_counted() {
    let answer = searched(Search::new(axis(), vec![Goal::quick()]), |request| {
        let end = match request.load > 1000.0 {
            true => TrialEnd::Invalid("the generator used 99 % of its core".to_owned()),
            false => TrialEnd::Completed,
        };
        weigh_limit::TrialResult { end, ..result(request, 50, 0) }
    });
    assert_eq!(answer.stop, Stop::Invalid("the generator used 99 % of its core".to_owned()));
    let mut above = answer.trials.iter().filter(|trial| trial.request.load > 1000.0);
    assert!(above.next().unwrap().standings.is_empty() && above.next().is_none());
    assert_eq!((answer.goals[0].upper, &answer.goals[0].outcome), (None, &Outcome::Undecided));
}

/// A load that kills the target is an upper bound at once and is not repeated; the next trial asks
/// for a restart, and the search goes on below.
#[test]
fn a_target_that_dies_is_started_anew_and_its_load_is_an_upper_bound() {
    let mut alive = true;
    let answer = searched(Search::new(axis(), vec![Goal::quick()]), |request| {
        assert_eq!(request.restart, !alive, "{request:?}");
        alive = request.load < 5000.0;
        match alive {
            true => result(request, 1000, 0),
            false => weigh_limit::TrialResult {
                end: TrialEnd::TargetDied("signal 9".to_owned()),
                ..result(request, 1000, 0)
            },
        }
    });
    let found = &answer.goals[0];
    let upper = found.upper.unwrap();
    assert_eq!((found.outcome.clone(), upper.has_died, upper.trials), (Outcome::Decided, true, 1));
    assert!(found.lower.unwrap().load < 5000.0 && 5000.0 <= upper.load);
    let mut deadly: Vec<u64> = Vec::new();
    for trial in answer.trials.iter().filter(|trial| trial.missed[0].is_some()) {
        assert!(!deadly.contains(&(trial.request.load as u64)), "{}", trial.request.load);
        deadly.push(trial.request.load as u64);
    }
    assert!(answer.trials.iter().any(|t| t.missed == [Some("the target died: signal 9".into())]));
}

/// RFC 9411: what was found must hold for 300 s, else there is no capacity.
#[test]
fn a_bound_that_does_not_last_is_withdrawn() {
    for (leak, outcome) in [(false, "decided"), (true, "withdrawn")] {
        let answer = searched(Search::new(axis(), vec![Goal::sustained()]), |request| {
            let tired = leak && request.duration >= Nanos::from_secs(300);
            result(request, 100_000, if request.load > 3000.0 || tired { 5 } else { 0 })
        });
        let found = &answer.goals[0];
        let long: Vec<_> =
            answer.trials.iter().filter(|t| t.request.purpose == Purpose::Sustain).collect();
        assert_eq!(long.len(), 1);
        assert_eq!(long[0].request.load, found.lower.unwrap().load);
        assert_eq!(long[0].request.duration, Nanos::from_secs(300));
        match outcome {
            "decided" => assert!(found.outcome == Outcome::Decided && found.is_regular),
            _ => {
                assert!(matches!(&found.outcome, Outcome::Withdrawn(why) if why.contains("lost")));
                assert!(!found.is_regular && found.to_string().contains("withdrawn"), "{found}");
            }
        }
    }
}

/// Latency as the goal: the target loses nothing but queues from 2,000/s on.
#[test]
fn a_latency_goal_finds_where_latency_breaks_it() {
    let conditions = vec!["response_time p(99) < 5ms".parse().unwrap()];
    let goal = Goal { conditions, ..Goal::quick() };
    let answer = searched(Search::new(axis(), vec![goal, Goal::rfc2544()]), |request| {
        let mut trial = result(request, 1000, u64::from(request.load > 6000.0));
        let p99 = if request.load > 2000.0 { 9e6 } else { 2e6 };
        trial.figures.insert("response_time_ns.p99".to_owned(), p99);
        trial
    });
    let between = |goal: usize, truth: f64| {
        let found = &answer.goals[goal];
        found.lower.unwrap().load <= truth && truth < found.upper.unwrap().load
    };
    assert!(between(0, 2000.0) && between(1, 6000.0), "{} {}", answer.goals[0], answer.goals[1]);
}

#[test]
fn results_that_cannot_be_used_change_nothing() {
    let conditions = vec!["errors == 0".parse().unwrap()];
    let goal = Goal { conditions, ..Goal::quick() };
    let mut selector = Selector::new(Search::new(axis(), vec![goal])).unwrap();
    let early = result(&selector.clone().next_trial().unwrap(), 1, 0);
    assert!(selector.note(early).unwrap_err().to_string().contains("no trial was requested"));
    let request = selector.next_trial().unwrap();
    let missing = selector.note(result(&request, 100, 0)).unwrap_err().to_string();
    assert!(missing.contains("asks for errors_ratio"), "{missing}");
    let empty = selector.note(result(&request, 0, 0)).unwrap_err().to_string();
    assert!(empty.contains("no message was due"), "{empty}");
    let mut other = result(&request, 100, 0);
    other.load += 1.0;
    assert!(selector.note(other).unwrap_err().to_string().contains("was requested, this is one"));
    assert_eq!(selector.next_trial(), Some(request.clone()));
    let mut sound = result(&request, 100, 0);
    sound.figures.insert("errors_ratio".to_owned(), 0.0);
    selector.note(sound).unwrap();
    assert_eq!(selector.answer().trials.len(), 1);
}

/// A journal that was cut gives bounds so far; one with a trial missing in the middle is refused.
#[test]
fn a_cut_journal_is_read_and_a_wrong_one_is_refused() {
    let mut bucket = Bucket::new(3000.0, 10.0, Noise::OfTrials(0.0), 1);
    let search = Search::new(axis(), vec![Goal::quick()]);
    let answer = searched_bucket(search.clone(), &mut bucket);
    let results: Vec<_> = answer.trials.iter().map(|trial| trial.result.clone()).collect();
    let cut = Selector::replay(search.clone(), results[..9].to_vec()).unwrap().answer();
    assert_eq!((cut.stop, cut.trials.len()), (Stop::Running, 9));
    let mut gap = results.clone();
    gap.remove(3);
    let error = Selector::replay(search.clone(), gap).unwrap_err().to_string();
    assert!(error.starts_with("result 3: a trial at 800 for 1 s was requested"), "{error}");
    let mut more = results;
    more.push(more[0].clone());
    let error = Selector::replay(search, more).unwrap_err().to_string();
    assert!(error.contains("no trial was requested"), "{error}");
}

/// A target that forwards the less the more is offered: the guesses by its forwarding rate lead
/// astray, and halving takes over.
#[test]
fn a_target_that_collapses_under_overload_is_found_too() {
    let axis = Axis::new(AxisKind::Rate, 10.0, 1_000_000.0, 1.0).unwrap();
    for power in [1.0, 2.0, 4.0] {
        let answer = searched(Search::new(axis, vec![Goal::rfc2544()]), |request| {
            let forwarded = match request.load > 3000.0 {
                true => (1000.0 * (3000.0f64 / request.load).powf(power)) as u64,
                false => 1000,
            };
            result(request, forwarded, 1000 - forwarded)
        });
        let found = &answer.goals[0];
        assert_eq!(found.outcome, Outcome::Decided);
        assert!(found.lower.unwrap().load <= 3000.0 && found.upper.unwrap().load > 3000.0);
        // Nine to double from 10/s, three guesses, a dozen to halve; no more than two are long.
        assert!(answer.trials.len() < 30, "{}", answer.trials.len());
        assert!(answer.time_used < Nanos::from_secs(180), "{}", answer.time_used);
    }
}

#[test]
fn a_search_without_goals_or_with_two_of_one_name_is_refused() {
    let error = |goals| Selector::new(Search::new(axis(), goals)).unwrap_err().to_string();
    assert!(error(vec![]).contains("limit.goals: there is no goal"));
    assert!(error(vec![Goal::quick(), Goal::quick()]).contains("two goals are called"));
}

/// What is given to a picture is complete: every trial, with bounds that only its own result and
/// those before it know of; and it can be written into a journal.
#[test]
fn the_search_itself_is_in_the_answer() {
    let mut bucket = Bucket::new(3000.0, 10.0, Noise::OfTrials(0.01), 1);
    let answer = searched_bucket(Search::new(axis(), vec![Goal::quick()]), &mut bucket);
    let first = &answer.trials[0];
    assert_eq!(first.bounds, [(None, None)]);
    let last = answer.trials.last().unwrap().bounds[0];
    let found = &answer.goals[0];
    assert_eq!(last, (found.lower.map(|bound| bound.load), found.upper.map(|bound| bound.load)));
    let json = serde_json::to_value(&answer).unwrap();
    assert_eq!(json["trials"].as_array().unwrap().len(), answer.trials.len());
    assert_eq!(json["goals"][0]["outcome"], "decided");
    assert_eq!(json["stop"], "complete");
}
