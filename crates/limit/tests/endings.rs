//! How a search ends on virtual time: whatever stops it, the best answer that it has is said, with
//! what is missing until it is proven.

mod simulated;

use simulated::{Bucket, Noise, result, searched, searched_bucket};
use weigh_limit::{
    Answer, Axis, AxisKind, Goal, Outcome, Quantity, Search, Selector, Stop, TrialEnd,
    TrialRequest, TrialResult,
};
use weigh_model::units::Nanos;

fn axis(min: f64, max: f64) -> Axis {
    Axis::new(AxisKind::Rate, min, max, 1.0).unwrap()
}

fn bucket(capacity: f64) -> Bucket {
    Bucket::new(capacity, 10.0, Noise::OfTrials(0.0), 1)
}

/// What trials on sockets take beside their load: a warm-up, a fresh target, its end.
const OVERHEAD: Nanos = Nanos::from_millis(700);

/// The result of a bucket, after which so much time was spent beside.
fn timed(bucket: &mut Bucket, request: &TrialRequest) -> TrialResult {
    let (taken, refused) = bucket.offer(request.load, request.duration.as_secs_f64());
    TrialResult { elapsed: request.duration + OVERHEAD, ..result(request, taken, refused) }
}

/// Whatever ends a search after its first trial, its sentence names what passed and what failed.
#[test]
fn a_spent_budget_leaves_the_best_answer_and_what_is_missing() {
    for (seconds, passed, failed) in [(2, true, false), (7, true, false), (16, true, true)] {
        let budget = Some(Nanos::from_secs(seconds));
        let search = Search { budget, ..Search::new(axis(100.0, 1e6), vec![Goal::minute()]) };
        let mut bucket = bucket(47_500.0);
        let answer = searched(search, |request| timed(&mut bucket, request));
        let found = &answer.goals[0];
        assert_eq!((&answer.stop, &found.outcome), (&Stop::Budget, &Outcome::Undecided));
        assert_eq!((found.best.0.is_some(), found.best.1.is_some()), (passed, failed), "{found}");
        let sentence = found.to_string();
        assert!(sentence.starts_with("minute: passed "), "{sentence}");
        assert!(sentence.contains("not proven: "), "{sentence}");
        assert!(sentence.contains(" more trials (about "), "{sentence}");
        assert!(!sentence.contains("no bound") && !sentence.contains("expect"), "{sentence}");
        let (low, high) = found.best;
        assert!(low.unwrap() <= 48_000.0 && high.is_none_or(|high| high > 47_500.0), "{sentence}");
    }
}

/// What is said to be missing is what is missing: with so much more time the search is complete.
#[test]
fn the_trials_that_are_said_to_be_missing_are_the_missing_ones() {
    let whole = Search::new(axis(100.0, 1e6), vec![Goal::minute()]);
    let mut target = bucket(47_500.0);
    let complete = searched(whole.clone(), |request| timed(&mut target, request));
    let budget = Some(Nanos(complete.time_used.0 * 2 / 3));
    let cut = Search { budget, ..whole };
    let mut target = bucket(47_500.0);
    let answer = searched(cut, |request| timed(&mut target, request));
    let remaining = answer.goals[0].remaining.expect("it is not proven");
    let missing = complete.trials.len() - answer.trials.len();
    assert!(remaining.trials.abs_diff(missing) <= 3, "{remaining:?} for {missing}");
    let time = complete.time_used.since(answer.time_used).as_secs_f64();
    let said = remaining.time.as_secs_f64();
    assert!((said / time - 1.0).abs() < 0.4, "{said} s for {time} s");
}

/// The preset of the command line proves its answer within a minute, wherever the limit lies, with
/// what a trial takes on sockets beside its load; and the forecast says so before.
#[test]
fn the_usual_goal_is_proven_within_a_minute() {
    for capacity in [150.0, 3_000.0, 47_500.0, 210_000.0, 800_000.0] {
        let minute = Some(Nanos::from_secs(60));
        let search =
            Search { budget: minute, ..Search::new(axis(100.0, 1e6), vec![Goal::minute()]) };
        let predicted = Selector::new(search.clone()).unwrap().forecast(capacity, OVERHEAD);
        let mut target = bucket(capacity);
        let answer = searched(search, |request| timed(&mut target, request));
        let found = &answer.goals[0];
        assert_eq!(found.outcome, Outcome::Decided, "{found}");
        let truth = target.limit(1.0, 0.005);
        assert!(found.lower.unwrap().load <= truth && truth <= found.upper.unwrap().load);
        assert!(found.unproven.is_none() && found.remaining.is_none());
        assert!(predicted.trials.abs_diff(answer.trials.len()) <= 4, "{predicted:?} {found}");
        assert!(predicted.time <= Nanos::from_secs(60), "{predicted:?}");
    }
}

/// A generator that is full at 60,000/s: nothing is said of the target above what it passed, and
/// what it passed is confirmed before the search ends.
fn limited_generator(capacity: f64, full_at: f64) -> Answer {
    let mut target = bucket(capacity);
    searched(Search::new(axis(100.0, 1e6), vec![Goal::minute()]), |request| {
        let end = match request.load >= full_at {
            true => TrialEnd::Invalid("the generator used 99 % of its core".to_owned()),
            false => TrialEnd::Completed,
        };
        TrialResult { end, ..timed(&mut target, request) }
    })
}

#[test]
fn a_full_generator_ends_with_what_the_target_has_proven() {
    let answer = limited_generator(1e9, 60_000.0);
    let found = &answer.goals[0];
    let why = "the generator used 99 % of its core";
    assert_eq!(answer.stop, Stop::Invalid(why.to_owned()));
    assert_eq!((&found.outcome, found.upper), (&Outcome::Undecided, None));
    assert_eq!(found.lower.map(|bound| bound.load), Some(51_200.0));
    assert_eq!(
        found.to_string(),
        format!("minute: at least 51,200/s (proven); no upper bound: {why}")
    );
    let above = answer.trials.iter().filter(|trial| trial.request.load >= 60_000.0).count();
    assert_eq!(above, 1, "what says nothing about the target is not offered again");
}

/// Where the target fails below what the generator can do, the generator is never asked.
#[test]
fn a_generator_that_is_full_beyond_the_limit_changes_nothing() {
    let found = &limited_generator(20_000.0, 60_000.0).goals[0];
    assert_eq!(found.outcome, Outcome::Decided, "{found}");
}

/// The generator gives up between what passed and what failed: both are said, and why.
#[test]
fn an_invalid_trial_between_both_ends_is_reported_with_them() {
    let mut target = bucket(40_000.0);
    let mut count = 0;
    let answer = searched(Search::new(axis(100.0, 1e6), vec![Goal::minute()]), |request| {
        count += 1;
        let end = match count {
            12 => TrialEnd::Invalid("the path lost its way".to_owned()),
            _ => TrialEnd::Completed,
        };
        TrialResult { end, ..timed(&mut target, request) }
    });
    let sentence = answer.goals[0].to_string();
    assert!(sentence.starts_with("minute: passed "), "{sentence}");
    assert!(sentence.contains(", failed at "), "{sentence}");
    assert!(sentence.ends_with(", not proven: the path lost its way"), "{sentence}");
}

#[test]
fn both_ends_of_the_axis_are_answers() {
    let never = searched_bucket(
        Search::new(axis(9_000.0, 30_000.0), vec![Goal::minute()]),
        &mut bucket(3_000.0),
    );
    let sentence = never.goals[0].to_string();
    assert!(sentence.contains("not met even at the smallest load, 9,000/s ("), "{sentence}");
    let always = searched_bucket(
        Search::new(axis(100.0, 2_000.0), vec![Goal::minute()]),
        &mut bucket(3_000.0),
    );
    let sentence = always.goals[0].to_string();
    assert!(sentence.contains("at least 2,000/s, the largest load allowed"), "{sentence}");
    assert!(always.goals[0].unproven.is_none() && never.goals[0].unproven.is_none());
}

/// Nobody ended it but the user: what there is, without a trial nothing.
#[test]
fn a_search_that_was_left_says_what_it_has() {
    let mut selector = Selector::new(Search::new(axis(100.0, 1e6), vec![Goal::minute()])).unwrap();
    let sentence = selector.answer().goals[0].to_string();
    assert!(sentence.starts_with("minute: no load passed, no load failed, not proven"));
    let mut target = bucket(47_500.0);
    for _ in 0..3 {
        let request = selector.next_trial().unwrap();
        selector.note(timed(&mut target, &request)).unwrap();
    }
    let sentence = selector.answer().goals[0].to_string();
    assert!(sentence.starts_with("minute: passed 400/s, no load failed, not proven: at least "));
}

/// A goal of a quantile: trials whose rate brings too few messages are as long as these take.
#[test]
fn a_quantile_lengthens_the_trials_that_are_too_small_for_it() {
    let quantity = Some(Quantity { messages: 368, per_s: 0.0, per_s_of_load: 1.0 });
    let search = Search { quantity, ..Search::new(axis(10.0, 1e5), vec![Goal::minute()]) };
    let answer = searched_bucket(search, &mut bucket(3_000.0));
    assert_eq!(answer.goals[0].outcome, Outcome::Decided);
    for trial in &answer.trials {
        let messages = trial.request.load * trial.request.duration.as_secs_f64();
        assert!(messages >= 368.0, "{:?}", trial.request);
    }
    assert!(answer.trials[0].request.duration > Nanos::from_secs(36));
}

/// Nobody knows beforehand how many messages a closed loop has: a trial that had too few is done
/// again, longer, and ends no search. The journal replays it alike.
#[test]
fn a_trial_with_too_few_messages_is_done_again_longer() {
    let search = Search::new(
        Axis::new(AxisKind::Connections, 1.0, 64.0, 1.0).unwrap(),
        vec![Goal::minute()],
    );
    let mut results = Vec::new();
    let run = |request: &TrialRequest| {
        // Twenty messages a second on each connection, and no more than 300 in all.
        let (had, lost) = bucket(300.0).offer(20.0 * request.load, request.duration.as_secs_f64());
        let end = match had + lost < 368 {
            true => TrialEnd::TooFew {
                metric: "response_time_ns.p99".to_owned(),
                had: had + lost,
                needed: 368,
            },
            false => TrialEnd::Completed,
        };
        let result = TrialResult { end, ..result(request, had, lost) };
        results.push(result.clone());
        result
    };
    let answer = searched(search.clone(), run);
    let found = &answer.goals[0];
    assert_eq!((&answer.stop, &found.outcome), (&Stop::Complete, &Outcome::AtGranularity));
    assert_eq!(found.lower.map(|bound| bound.load), Some(15.0), "{found}");
    let replayed = Selector::replay(search, results).unwrap().answer();
    assert_eq!(replayed, answer);
}

#[test]
fn a_trial_that_never_has_enough_messages_ends_the_search_with_the_reason() {
    let answer = searched(Search::new(axis(100.0, 1e6), vec![Goal::minute()]), |request| {
        let metric = "response_time_ns.p99".to_owned();
        let end = TrialEnd::TooFew { metric, had: 3, needed: 368 };
        TrialResult { end, ..result(request, 3, 0) }
    });
    let Stop::Invalid(why) = &answer.stop else { panic!("{:?}", answer.stop) };
    assert!(why.starts_with("response_time_ns.p99 needs 368 messages, and a trial of "), "{why}");
    assert!(why.ends_with(" at 100/s had 3"), "{why}");
    assert!(answer.trials.len() < 10);
}
