//! The oracle O14: a token bucket at 3,000/s with a finite queue, on virtual time. Its limit is
//! known beforehand, so the two bounds can be held against it. `--nocapture` prints the table of
//! `docs/guide/capacity.md`.

mod simulated;

use simulated::{Bucket, Noise, bisected, result, searched, searched_bucket};
use weigh_limit::burst::Rates;
use weigh_limit::{Answer, Axis, AxisKind, Goal, Outcome, Search, Stop};
use weigh_model::units::Nanos;

const CAPACITY: f64 = 3000.0;
const QUEUE: f64 = 10.0;

fn axis() -> Axis {
    Axis::new(AxisKind::Rate, 100.0, 100_000.0, 1.0).unwrap()
}

/// Whether the truth lies between the bounds, widened by a share on both sides.
fn brackets(answer: &Answer, goal: usize, truth: f64, share: f64) -> bool {
    let found = &answer.goals[goal];
    let (lower, upper) = (found.lower.unwrap().load, found.upper.unwrap().load);
    lower * (1.0 - share) <= truth && truth <= upper * (1.0 + share)
}

/// How many of `seeds` searches have bounds around the truth, each widened by `allowed`; all of
/// them must end with bounds as close as asked.
fn around_the_truth(goal: &Goal, noise: f64, allowed: f64, seeds: u64) -> u64 {
    let (mut within, mut exact, mut trials, mut seconds, mut squares) = (0, 0, 0, 0.0, 0.0);
    for seed in 0..seeds {
        let mut bucket = Bucket::new(CAPACITY, QUEUE, Noise::OfTrials(noise), seed);
        let truth = bucket.limit(goal.final_trial_duration.as_secs_f64(), goal.loss_ratio);
        let answer = searched_bucket(Search::new(axis(), vec![goal.clone()]), &mut bucket);
        let found = &answer.goals[0];
        assert_eq!(answer.stop, Stop::Complete);
        assert_eq!(found.outcome, Outcome::Decided, "{found}");
        assert!(found.is_regular && found.width.unwrap() <= goal.width, "{found}");
        if goal.loss_ratio == 0.0 && goal.exceed_ratio == 0.0 {
            // The draft, section 4.10.2: here the two are the same, and are RFC 2544's throughput.
            assert_eq!(found.conditional_throughput, found.lower.map(|bound| bound.load));
        }
        within += u64::from(brackets(&answer, 0, truth, allowed));
        exact += u64::from(brackets(&answer, 0, truth, 0.0));
        trials += answer.trials.len();
        seconds += answer.time_used.as_secs_f64();
        let middle = (found.lower.unwrap().load + found.upper.unwrap().load) / 2.0;
        squares += (middle / truth - 1.0).powi(2);
    }
    println!(
        "| {} | {} | {:.0} % | {within} of {seeds} within {:.1} % | {exact} | {:.2} % | {:.0} | \
         {:.0} s |",
        goal.name,
        goal.duration_sum,
        noise * 100.0,
        allowed * 100.0,
        (squares / seeds as f64).sqrt() * 100.0,
        trials as f64 / seeds as f64,
        seconds / seeds as f64,
    );
    within
}

/// The allowances of `docs/methodology.md`: 0.8 % and 1.6 % for noise of 1 % and 3 % that no trial
/// averages out. With sums of 21 s they are about two standard errors of a median of 21 trials,
/// so 95 in 100 must keep them; with sums of 61 s 99 in 100.
#[test]
fn bounds_are_as_close_as_asked_and_around_the_truth() {
    let steady =
        Goal { name: "61 s".to_owned(), duration_sum: Nanos::from_secs(61), ..Goal::quick() };
    assert_eq!(around_the_truth(&Goal::quick(), 0.0, 0.0, 20), 20);
    for (noise, allowed) in [(0.01, 0.008), (0.03, 0.016)] {
        assert!(around_the_truth(&Goal::quick(), noise, allowed, 200) >= 190);
        assert!(around_the_truth(&steady, noise, allowed, 200) >= 198);
        assert_eq!(around_the_truth(&steady, noise, allowed, 20), 20);
    }
}

#[test]
fn a_quiet_target_is_bracketed_by_every_preset() {
    for name in Goal::PRESETS {
        assert_eq!(around_the_truth(&Goal::preset(name).unwrap(), 0.0, 0.0, 20), 20);
    }
}

/// Nothing may be lost in RFC 2544: the worst of all trials decides, so noise pulls its answer
/// down, and by how much depends on how many trials there were. That is the reason for exceed
/// ratios (the draft, section 2.4); here it is seen.
#[test]
fn noise_pulls_a_goal_without_tolerance_down() {
    let mut below = 0;
    for seed in 0..20 {
        let mut bucket = Bucket::new(CAPACITY, QUEUE, Noise::OfTrials(0.03), seed);
        let answer = searched_bucket(Search::new(axis(), vec![Goal::rfc2544()]), &mut bucket);
        assert_eq!(answer.goals[0].outcome, Outcome::Decided);
        below += u32::from(answer.goals[0].upper.unwrap().load < CAPACITY);
    }
    assert!(below >= 16, "{below}");
}

/// The conditional throughput is what the target forwards, not what was offered: with a goal that
/// tolerates loss the lower bound lies above the capacity (the draft, section 5.6.1).
#[test]
fn conditional_throughput_is_what_is_forwarded() {
    let goal = Goal { loss_ratio: 0.1, width: 0.1, ..Goal::quick() };
    let mut bucket = Bucket::new(CAPACITY, QUEUE, Noise::OfTrials(0.0), 1);
    let answer = searched_bucket(Search::new(axis(), vec![goal]), &mut bucket);
    let throughput = answer.goals[0].conditional_throughput.unwrap();
    let forwards = CAPACITY + QUEUE;
    assert!((throughput / forwards - 1.0).abs() < 0.001, "{throughput}");
}

/// Two goals in one search find what they find alone, in less time than one after the other.
#[test]
fn goals_share_their_trials() {
    let strict = Goal { name: "none lost".to_owned(), loss_ratio: 0.0, ..Goal::quick() };
    let goals = vec![strict, Goal::quick()];
    let time = |goals: Vec<Goal>, noise: f64| {
        let mut bucket = Bucket::new(CAPACITY, QUEUE, Noise::OfTrials(noise), 5);
        let answer = searched_bucket(Search::new(axis(), goals.clone()), &mut bucket);
        for (index, goal) in goals.iter().enumerate() {
            assert_eq!(answer.goals[index].outcome, Outcome::Decided);
            let truth = bucket.limit(1.0, goal.loss_ratio);
            assert!(brackets(&answer, index, truth, 0.8 * noise), "{}", answer.goals[index]);
        }
        answer.time_used
    };
    for noise in [0.0, 0.01] {
        let apart = time(goals[..1].to_vec(), noise) + time(goals[1..].to_vec(), noise);
        let together = time(goals.clone(), noise);
        println!("together {together}, one after the other {apart}");
        assert!(together < apart, "{together} {apart}");
    }
}

/// A disturbed moment loses messages that a queue of ten cannot hold, so a target whose rate
/// scatters from moment to moment has a lower limit than its mean rate: the search finds that one.
#[test]
fn a_disturbed_moment_lowers_the_limit() {
    let found = |noise| {
        let mut bucket = Bucket::new(CAPACITY, QUEUE, noise, 3);
        let answer = searched_bucket(Search::new(axis(), vec![Goal::quick()]), &mut bucket);
        assert_eq!(answer.goals[0].outcome, Outcome::Decided);
        answer.goals[0].upper.unwrap().load
    };
    let quiet = found(Noise::OfMoments(0.0));
    let disturbed = found(Noise::OfMoments(0.05));
    assert!(disturbed < 0.985 * quiet && disturbed > 0.95 * quiet, "{disturbed} {quiet}");
}

/// The largest burst, searched like any other limit: it is the one that the formula gives, to the
/// message.
#[test]
fn the_largest_burst_is_the_formulas() {
    let axis = Axis::new(AxisKind::Burst, 10.0, 1_000_000.0, 1.0).unwrap();
    for (queue, arrival, drain) in [(1000, 10_000.0, 3000.0), (100, 3300.0, 3000.0)] {
        let bucket = Bucket::new(drain, queue as f64, Noise::OfTrials(0.0), 1);
        let settle = Nanos::from_secs(2);
        let goal = Goal {
            width: 1e-6,
            loss_ratio: 0.0,
            exceed_ratio: 0.0,
            initial_trial_duration: settle,
            final_trial_duration: settle,
            duration_sum: Nanos::from_secs(6),
            coarser_stages: 1,
            ..Goal::quick()
        };
        let answer = searched(Search::new(axis, vec![goal]), |request| {
            let seconds = request.load / arrival;
            let (taken, refused) = bucket.clone().offer(arrival, seconds);
            result(request, taken, refused)
        });
        let found = &answer.goals[0];
        let rates = Rates::new(arrival, drain).unwrap();
        // The formula that the module gives, see its sources.
        let largest = 1 + ((queue - 1) as f64 / rates.waiting_share() + 1e-9).floor() as u64;
        assert_eq!(found.outcome, Outcome::AtGranularity, "{found}");
        let (lower, upper) = (found.lower.unwrap(), found.upper.unwrap());
        assert_eq!((lower.load, upper.load), (largest as f64, largest as f64 + 1.0));
        assert_eq!(lower.trials, 3);
        assert_eq!(
            rates.implied_queue(lower.load as u64, Some(upper.load as u64)),
            (queue, Some(queue + 1))
        );
        assert_eq!(found.conditional_throughput, None);
    }
}

/// The search beside the classical one over targets of all sizes: virtual time, so the figures
/// are the same everywhere.
#[test]
fn it_takes_less_time_than_halving_whatever_the_capacity() {
    let goal = Goal::rfc2544();
    let seconds = goal.final_trial_duration.as_secs_f64();
    let (mut ours, mut halving) = ((0, 0.0), (0, 0.0));
    let capacities = [150.0, 400.0, 1000.0, 3000.0, 9000.0, 30_000.0, 80_000.0];
    for capacity in capacities {
        let mut bucket = Bucket::new(capacity, QUEUE, Noise::OfTrials(0.0), 1);
        let answer = searched_bucket(Search::new(axis(), vec![goal.clone()]), &mut bucket);
        let is_met = |load: f64| bucket.offer(load, seconds).1 == 0;
        let (_, _, trials, time) =
            bisected(100.0, 100_000.0, goal.width, goal.final_trial_duration, is_met);
        assert!(answer.time_used < time, "{capacity}: {} {time}", answer.time_used);
        ours = (ours.0 + answer.trials.len(), ours.1 + answer.time_used.as_secs_f64());
        halving = (halving.0 + trials, halving.1 + time.as_secs_f64());
    }
    println!("{} targets: {ours:?} trials and seconds, halving {halving:?}", capacities.len());
    assert!(3.0 * ours.1 < halving.1, "{ours:?} {halving:?}");
}

/// Bounds so far: with a budget that ends in the coarse stages there is no bound of the goal yet,
/// but what short trials let expect is said.
#[test]
fn a_spent_budget_leaves_what_is_to_be_expected() {
    let budget = Nanos::from_secs(12);
    let search = Search { budget: Some(budget), ..Search::new(axis(), vec![Goal::quick()]) };
    let mut bucket = Bucket::new(CAPACITY, QUEUE, Noise::OfTrials(0.0), 1);
    let answer = searched_bucket(search, &mut bucket);
    let found = &answer.goals[0];
    assert_eq!((&answer.stop, &found.outcome), (&Stop::Budget, &Outcome::Undecided));
    assert!(answer.time_used <= budget);
    let (lower, upper) = found.expected;
    let truth = bucket.limit(1.0, 0.005);
    assert!(lower.unwrap() <= truth && truth <= upper.unwrap(), "{found}");
    let sentence = found.to_string();
    assert!(sentence.contains("not proven: ") && sentence.contains(", failed at "), "{sentence}");
}

/// The search for RFC 2544's throughput beside the classical one, in detail.
#[test]
fn it_takes_less_time_than_halving() {
    let goal = Goal::rfc2544();
    let mut bucket = Bucket::new(CAPACITY, QUEUE, Noise::OfTrials(0.0), 1);
    let answer = searched_bucket(Search::new(axis(), vec![goal.clone()]), &mut bucket);
    let seconds = goal.final_trial_duration.as_secs_f64();
    let is_met = |load: f64| bucket.offer(load, seconds).1 == 0;
    let (lower, upper, trials, time) =
        bisected(100.0, 100_000.0, goal.width, goal.final_trial_duration, is_met);
    let found = &answer.goals[0];
    println!(
        "rfc2544: {} trials, {}; halving: {trials} trials, {time}",
        answer.trials.len(),
        answer.time_used
    );
    assert!(answer.time_used.0 * 2 < time.0, "{} {time}", answer.time_used);
    // Both are right: their intervals have a load in common.
    assert!(found.lower.unwrap().load < upper && lower < found.upper.unwrap().load);
    assert!(found.upper.unwrap().time <= Nanos::from_secs(60) + goal.duration_sum);
}
