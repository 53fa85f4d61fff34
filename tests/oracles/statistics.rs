//! What a summary says of runs whose truth is known: its intervals hold it, equals are seldom
//! called different, and a slower target is found. From the events of a run to the reported
//! figures, nothing in between is left out.

use std::collections::BTreeMap;

use weigh_engine::record::{Observations, put_together};
use weigh_model::event::{Event, HostFacts, JOURNAL_SCHEMA, RunStarted, TrialFinished};
use weigh_model::ledger::Ledger;
use weigh_model::load::Pattern;
use weigh_model::plan::{Observe, Plan, Repeat};
use weigh_model::{Guarantee, Nanos};
use weigh_report::Summary;
use weigh_report::summary::Verdict;
use weigh_stats::random::Random;

use crate::rig::{Setup, simulated_address};

/// Intervals as they stand in a summary, of 4,000 cells of each kind: 93.5 to 96.5 of 100 hold the
/// true mean. The values of runs vary by 3 % unless said otherwise; the last two kinds are means of
/// 30 windows that differ from run to run, and of 200 that hang together.
#[test]
fn reported_intervals_hold_the_truth_as_often_as_they_say() {
    type Draw = fn(&mut Random) -> f64;
    let kinds: [(&str, Draw, f64); 5] = [
        ("normal", |random| 1e6 * (1.0 + 0.03 * random.normal()), 1e6),
        ("log-normal 0.25", |random| 1e6 * (0.25 * random.normal()).exp(), 1e6 * LOG_NORMAL_MEAN),
        ("two modes", |random| 1e6 + 3e4 * (random.normal() + two_modes(random)), 1e6),
        ("hierarchical", hierarchical, 1e6),
        ("AR(1), 0.9", autoregressive, 1e6),
    ];
    for (name, draw, truth) in kinds {
        for repetitions in [5, 10] {
            let (given, held) = coverage(draw, truth, repetitions);
            let share = f64::from(held) / f64::from(given);
            println!("{name}, {repetitions} runs: {given} given, {:.1} % hold", 100.0 * share);
            assert_eq!(given, SETS, "{name}: every interval of so mild data is given");
            // Two modes err on the wide side, see docs/decisions/0007.
            let most = if name == "two modes" { 0.975 } else { 0.965 };
            assert!((0.935..=most).contains(&share), "{name}, {repetitions} runs: {share}");
        }
    }
}

/// Where there is no interval, the reason stands in its place.
#[test]
fn what_the_data_cannot_carry_is_refused_with_its_reason() {
    let metric = |values: &[f64], samples: u64| {
        let trials = values.iter().enumerate().map(|(repetition, value)| {
            let mut trial = told("lane", repetition as u32, *value);
            trial.samples.insert("response_time_ns".to_owned(), samples);
            trial
        });
        summary(trials.collect()).cells[0].metrics[METRIC].clone()
    };
    let two = metric(&[1e6, 2e6], 1_000);
    assert_eq!((two.low, two.high, two.method), (None, None, None));
    assert!(two.refused.unwrap().contains("at least 3 repetitions"));
    let thin = metric(&[1e6, 1.1e6, 0.9e6, 1e6, 1e6], 200);
    assert!(thin.low.is_none() && thin.refused.unwrap().contains("needs at least 368"));
    let lost = metric(&[1e6, f64::INFINITY, 1e6], 1_000);
    assert!(lost.value.is_none() && lost.refused.unwrap().contains("lost share"));
    let wild = metric(&[1e6, 1.02e6, 0.98e6, 1.01e6, 3e6], 1_000);
    assert_eq!(wild.outliers, [4]);
    assert!(wild.value.unwrap() > 1.3e6, "it stays in every figure");
    assert!(wild.high.unwrap() - wild.value.unwrap() > wild.value.unwrap() - wild.low.unwrap());
}

/// Two hundred pairs of equal simulated targets over a path whose delay varies, five repetitions
/// a side, each with a delay of its own (2 % from repetition to repetition): at most 5 in 100
/// comparisons call them different.
#[test]
fn equals_are_called_different_in_at_most_five_of_a_hundred() {
    let mut random = Random::new(2026);
    let (mut compared, mut called) = (0, 0);
    for pair in 0..200 {
        let summary = simulated_pair(&mut random, pair, 1.0, 5);
        for comparison in &summary.comparisons {
            compared += u32::from(comparison.verdict != Verdict::Refused);
            called += u32::from(matches!(comparison.verdict, Verdict::Lower | Verdict::Higher));
        }
    }
    println!("A/A: {called} of {compared} comparisons called different");
    assert!(compared >= 400, "{compared} comparisons");
    assert!(20 * called <= compared, "{called} of {compared}");
}

/// A target that takes 5 % longer, with 2 % from repetition to repetition and ten repetitions a
/// side, is found in at least 95 of 100 pairs.
#[test]
fn a_slowdown_of_five_percent_is_found() {
    let mut random = Random::new(2027);
    let found = (0..100)
        .filter(|pair| {
            let summary = simulated_pair(&mut random, 1_000 + pair, 1.05, 10);
            let median = summary.comparisons.iter().find(|c| c.metric == "response_time_ns.p50");
            median.is_some_and(|comparison| comparison.verdict == Verdict::Lower)
        })
        .count();
    println!("slowdown of 5 %: found in {found} of 100");
    assert!(found >= 95, "{found} of 100");
}

/// Of intervals over so many repetitions, how many are given, and how many of those hold `truth`.
fn coverage(draw: fn(&mut Random) -> f64, truth: f64, repetitions: u32) -> (u32, u32) {
    let mut random = Random::new(u64::from(repetitions));
    let (mut given, mut held) = (0, 0);
    for _ in 0..SETS / SETS_OF_A_RUN {
        let mut trials = Vec::new();
        for cell in 0..SETS_OF_A_RUN {
            for repetition in 0..repetitions {
                trials.push(told(&format!("lane-{cell}"), repetition, draw(&mut random)));
            }
        }
        for cell in summary(trials).cells {
            let metric = &cell.metrics[METRIC];
            if let (Some(low), Some(high)) = (metric.low, metric.high) {
                given += 1;
                held += u32::from(low <= truth && truth <= high);
            }
        }
    }
    (given, held)
}

/// Half of the runs three standard deviations above the others, 0 on average.
fn two_modes(random: &mut Random) -> f64 {
    if random.next_f64() < 0.5 { 1.5 } else { -1.5 }
}

/// 3 % from run to run, and the mean of 30 windows that vary by 20 %.
fn hierarchical(random: &mut Random) -> f64 {
    let level = 1.0 + 0.03 * random.normal();
    let windows: f64 = (0..30).map(|_| level + 0.2 * random.normal()).sum();
    1e6 * windows / 30.0
}

/// The mean of 200 windows, each like the one before it (correlation 0.9).
fn autoregressive(random: &mut Random) -> f64 {
    let mut apart = random.normal();
    let mut window = || {
        apart = 0.9 * apart + 0.19f64.sqrt() * random.normal();
        1.0 + 0.1 * apart
    };
    1e6 * (0..200).map(|_| window()).sum::<f64>() / 200.0
}

/// A trial in which one figure is known and nothing went wrong.
fn told(lane: &str, repetition: u32, value: f64) -> TrialFinished {
    let ledger = Ledger {
        messages: 1_000,
        scheduled: 1_000,
        sent: 1_000,
        acknowledged: 1_000,
        delivered: Some(1_000),
        received: 1_000,
        ..Ledger::zero()
    };
    TrialFinished {
        trial: format!("{lane}-{repetition}"),
        point: BTreeMap::from([
            ("protocol".to_owned(), lane.into()),
            ("target".to_owned(), "reference".into()),
        ]),
        repetition,
        seed: 1,
        guarantee: Guarantee::AtLeastOnce,
        durability: None,
        target: "told".to_owned(),
        metrics: BTreeMap::from([(METRIC.to_owned(), value)]),
        samples: BTreeMap::from([("response_time_ns".to_owned(), 1_000)]),
        ledger,
        warnings: Vec::new(),
        granted: BTreeMap::new(),
        server: None,
        counters: BTreeMap::new(),
        scene: BTreeMap::new(),
        histograms: BTreeMap::new(),
    }
}

/// Two lanes against simulated targets, the second with a path that takes `factor` times as long.
fn simulated_pair(random: &mut Random, pair: u64, factor: f64, repetitions: u32) -> Summary {
    let mut trials = Vec::new();
    for (lane, factor) in [("left", 1.0), ("right", factor)] {
        for repetition in 0..repetitions {
            let of_run = factor * (1.0 + 0.02 * random.normal());
            let number = pair * 100 + u64::from(repetition) * 2 + u64::from(lane == "left");
            trials.push(simulated(lane, repetition, number, of_run));
        }
    }
    summary(trials)
}

fn simulated(lane: &str, repetition: u32, seed: u64, factor: f64) -> TrialFinished {
    let mut setup = setup().seed(seed);
    setup.link.delay = Nanos((200_000.0 * factor) as u64);
    setup.link.jitter = Nanos((60_000.0 * factor) as u64);
    let mut seen = setup.on_virtual_time();
    // Virtual time costs nothing: what a quiet generator would have used.
    (seen.outcome.shards.cpu, seen.outcome.cpu_max) = (Nanos(1000), Nanos(1000));
    let mut trial = setup.job(simulated_address()).trial.clone();
    trial.id = format!("{lane}-{repetition}");
    trial.repetition = repetition;
    trial.point = BTreeMap::from([
        ("protocol".to_owned(), trial.protocol.as_str().into()),
        ("target".to_owned(), lane.into()),
    ]);
    let mut observed = Observations::unwatched(Guarantee::AtLeastOnce, lane);
    observed.server = Some(seen.server);
    put_together(&trial, seen.outcome, observed, setup.protocol)
}

/// Enough messages for a p99, evenly spaced, over TCP frames that are acknowledged.
fn setup() -> Setup {
    Setup::new("tcp", &[], Pattern::Request, 400).connections(4).open("poisson", "2000/s")
}

fn summary(trials: Vec<TrialFinished>) -> Summary {
    let load = setup().load;
    let started = RunStarted {
        schema: JOURNAL_SCHEMA.to_owned(),
        id: "statistics".to_owned(),
        started: "2026-11-21T00:00:00Z".to_owned(),
        version: "0".to_owned(),
        host: HostFacts::default(),
        setup: weigh_model::event::Setup::default(),
        baseline: Vec::new(),
        energy: None,
        plan: Plan {
            name: "statistics".to_owned(),
            question: None,
            seed: 1,
            thresholds: Vec::new(),
            load,
            repeat: Repeat::exactly(5),
            stop: BTreeMap::new(),
            observe: Observe::default(),
            energy: None,
            background: None,
            cases: Vec::new(),
        },
    };
    let mut events = vec![Event::RunStarted(Box::new(started))];
    events.extend(trials.into_iter().map(|trial| Event::TrialFinished(Box::new(trial))));
    events.push(Event::RunFinished { outcome: "done".to_owned() });
    Summary::from_events(&events).unwrap()
}

const METRIC: &str = "response_time_ns.p99";
const SETS: u32 = 4_000;

/// Cells of one summary.
const SETS_OF_A_RUN: u32 = 100;

/// exp(sigma^2 / 2) with sigma 0.25.
const LOG_NORMAL_MEAN: f64 = 1.031_743_407_499_103;
