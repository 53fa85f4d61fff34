//! The rules L01 to L21 on our own runs: a hundred clean ones raise none, and a fault planted in
//! the record of a clean one is caught by its own rule. (The same for foreign tables, with all
//! twenty rules: `crates/study/tests/planted.rs`.)

use std::collections::{BTreeMap, BTreeSet};

use weigh_engine::io::sim::Link;
use weigh_engine::outcome::Outcome;
use weigh_engine::record::{Observations, put_together};
use weigh_model::event::{Event, HostFacts, JOURNAL_SCHEMA, RunStarted, TrialFinished};
use weigh_model::load::{Load, Pattern};
use weigh_model::plan::{Observe, Plan, Repeat};
use weigh_model::{Guarantee, Nanos, Rule, units::parse_rate};
use weigh_report::Summary;
use weigh_report::summary::lint::saturation::AxisPoint;
use weigh_report::summary::lint::{saturation, verdict};

use crate::lint_plants::{conditions, figures};
use crate::rig::{Setup, simulated_address};

#[test]
fn a_hundred_clean_runs_raise_no_rule() {
    for seed in 0..100 {
        let setup = match seed % 5 {
            0 => small(seed),
            1 => on_loaded_path("tcp", &[], Pattern::Request, seed),
            2 => on_loaded_path("mqtt", &[("qos", "1")], Pattern::Publish, seed),
            3 => on_loaded_path("mqtt", &[("qos", "1")], Pattern::Deliver, seed),
            _ => on_loaded_path("mqtt", &[("qos", "2")], Pattern::Deliver, seed),
        };
        let run = match seed / 5 % 2 {
            0 => Run::new(setup.open("poisson", "2000/s"), "poisson", MESSAGES),
            _ => Run::new(setup, "closed", MESSAGES),
        };
        let summary = run.summary();
        assert_eq!(rules(&summary), [], "seed {seed}: {:#?}", summary.cells[0].warnings);
        assert!(summary.cells.iter().all(|cell| cell.valid), "seed {seed}");
        assert!(verdict::of(&summary, &[]).is_clean());
    }
}

/// With a p99.9, which short runs do not have.
#[test]
fn a_clean_run_of_many_messages_raises_no_rule() {
    for setup in [small(5).open("poisson", "2000/s"), small(6)] {
        let arrival = setup.load.arrival.to_string();
        let run = Run::new(setup, &arrival, 4000);
        assert!(run.trials.iter().all(|trial| trial.metrics["response_time_ns.p999"] > 0.0));
        assert_eq!(rules(&run.summary()), []);
    }
}

#[test]
fn a_fault_planted_in_the_record_is_caught_by_its_own_rule() {
    for (rule, arrivals, plant) in figures().into_iter().chain(conditions()) {
        let mut run = match arrivals {
            Arrivals::Open => open(7),
            Arrivals::Closed => closed(7),
        };
        plant(&mut run);
        let summary = run.summary();
        assert_eq!(rules(&summary), [rule], "{:#?}", summary.cells[0].warnings);
        let verdict = verdict::of(&summary, &[rule]);
        assert!(!verdict.is_clean() && verdict.to_text().contains(rule.means()));
        assert!(verdict::of(&summary, &[Rule::L20]).is_clean());
    }
}

/// A closed loop that pauses for 1 ms more, or less, than its plan says.
#[test]
fn a_closed_loop_that_does_not_add_up_breaks_littles_law() {
    let mut setup = small(11);
    (setup.load.messages, setup.load.duration) = (None, Some(Nanos::from_secs(1)));
    let outcome = setup.on_virtual_time().outcome;
    let codes = |load: &Load| -> Vec<String> {
        let warnings = outcome.warnings(load, true, &|code| setup.protocol.error(code));
        warnings.iter().map(|warning| warning.record().code).collect()
    };
    assert_eq!(codes(&setup.load), ["closed-loop"]);
    let pausing = Load { think: Nanos::from_millis(1), ..setup.load.clone() };
    assert_eq!(codes(&pausing), ["closed-loop", "L01"]);
}

/// HTTP/1.1 has one request in flight on a connection; what waits for it is known, and is unequal
/// beside a protocol that has many.
#[test]
fn windows_that_protocols_impose_are_seen() {
    let mut slow = small(13).connections(1).open("constant", "2000/s");
    let outcome = slow.on_virtual_time().outcome;
    assert_eq!(outcome.shards.granted["in_flight"], 1);
    let held_up = |outcome: &Outcome, load: &Load| outcome.metrics(load)["held_up_ratio"];
    // Half a millisecond between messages, and two fifths to three fifths for each of them.
    assert!((0.1..0.9).contains(&held_up(&outcome, &slow.load)));
    slow = slow.open("constant", "100/s");
    assert_eq!(held_up(&slow.on_virtual_time().outcome, &slow.load), 0.0);
    let mut free = Setup::new("tcp", &[], Pattern::Request, MESSAGES).open("constant", "2000/s");
    assert!(!free.on_virtual_time().outcome.shards.granted.contains_key("in_flight"));
    free.load.window = Some(64);
    assert_eq!(free.on_virtual_time().outcome.shards.granted["in_flight"], 64);
}

#[test]
fn too_small_a_sample_is_said() {
    let mut run = Run::new(small(7).open("constant", "1000/s"), "constant", 300);
    run.each(|trial| assert_eq!(trial.samples["response_time_ns"], 300));
    assert_eq!(rules(&run.summary()), [Rule::L17]);
}

#[test]
fn what_must_not_be_compared_is_refused_with_its_rule() {
    let reasons = |run: &Run, metric: &str| -> Vec<String> {
        let comparisons = run.summary().comparisons;
        let of_metric = comparisons.into_iter().filter(|comparison| comparison.metric == metric);
        of_metric.filter_map(|comparison| comparison.reason).collect()
    };
    let times = "response_time_ns.p99";
    let clean = open(3);
    assert!(reasons(&clean, times).is_empty());
    // Both sides reached the rate that was asked for: there is nothing to compare in it.
    assert!(reasons(&clean, "throughput_out_per_s")[0].contains("(L03)"));
    assert!(reasons(&closed(3), "throughput_out_per_s").is_empty());
    let second = clean.trials.last().unwrap().point.clone();
    let mut unconfirmed = clean.clone();
    unconfirmed.each(|trial| {
        if trial.point == second {
            trial.guarantee = Guarantee::AtMostOnce;
        }
    });
    assert!(reasons(&unconfirmed, times)[0].contains("(L08)"));
    let mut relayed = clean;
    relayed.each(|trial| {
        if trial.point == second {
            trial.point.insert("load.pattern".to_owned(), Pattern::Deliver.name().into());
        }
    });
    assert!(reasons(&relayed, times)[0].contains("(L18)"));
}

#[test]
fn a_limit_needs_narrow_steps_and_more_than_one_trial() {
    let point = |value, is_good, trials| AxisPoint { value, is_good, trials };
    let code = |points: &[AxisPoint]| {
        saturation::warning("load.rate", points).map(|warning| warning.record().code)
    };
    let search = [point(1000.0, true, 5), point(1020.0, true, 5), point(1040.0, false, 5)];
    assert_eq!(code(&search), None);
    let grid = [point(1625.0, true, 5), point(1750.0, false, 5)];
    assert_eq!(code(&grid).as_deref(), Some("L10"));
    let single = [point(1000.0, true, 1), point(1020.0, false, 1)];
    assert_eq!(code(&single).as_deref(), Some("L10"));
    assert_eq!(code(&[point(1.0, true, 1), point(2.0, true, 1)]), None);
}

/// Two places of an axis with a stop rule, 100 and 200 connections: the rule holds at the second,
/// so the limit lies somewhere in a step of half the answer.
#[test]
fn a_limit_read_off_a_coarse_axis_has_a_warning_in_the_summary() {
    let mut run = open(9);
    let second = run.trials.last().unwrap().point.clone();
    run.each(|trial| {
        let is_second = trial.point == second;
        trial.point.insert("target".to_owned(), "reference".into());
        let connections = if is_second { 200 } else { 100 };
        trial.point.insert("load.connections".to_owned(), connections.into());
        let memory = if is_second { 2e6 } else { 5e5 };
        trial.metrics.insert("target_memory_bytes.max".to_owned(), memory);
    });
    assert_eq!(rules(&run.summary()), [], "without a stop rule it is a survey");
    let rule = "target_memory_bytes.max > 1MB".parse().unwrap();
    run.plan.stop = BTreeMap::from([("load.connections".to_owned(), vec![rule])]);
    let summary = run.summary();
    assert_eq!(rules(&summary), [Rule::L10]);
    let warnings = |cell: usize| summary.cells[cell].warnings.iter().map(|d| d.code.as_str());
    assert!(warnings(1).any(|code| code == "L10") && !warnings(0).any(|code| code == "L10"));
    let along: Vec<&str> = summary.comparisons.iter().map(|c| c.factor.as_str()).collect();
    assert!(!along.is_empty() && along.iter().all(|factor| *factor == "load.connections"));
}

#[derive(Clone, Copy)]
pub enum Arrivals {
    Open,
    Closed,
}

/// A run of two cells, as a journal holds it.
#[derive(Clone)]
pub struct Run {
    pub plan: Plan,
    pub trials: Vec<TrialFinished>,
}

fn small(seed: u64) -> Setup {
    on_loaded_path("http1", &[], Pattern::Request, seed)
}

/// Four connections over a path whose delay varies.
fn on_loaded_path(protocol: &str, settings: &[(&str, &str)], pattern: Pattern, seed: u64) -> Setup {
    let mut setup = Setup::new(protocol, settings, pattern, MESSAGES).connections(4).seed(seed);
    let delay = Nanos::from_micros(200);
    setup.link = Link { delay, jitter: Nanos::from_micros(90), ..Link::default() };
    setup
}

fn open(seed: u64) -> Run {
    Run::new(small(seed).open("poisson", "2000/s"), "poisson", MESSAGES)
}

fn closed(seed: u64) -> Run {
    Run::new(small(seed), "closed", MESSAGES)
}

impl Run {
    /// Two cells of five repetitions each, run on virtual time.
    fn new(setup: Setup, arrival: &str, messages: u64) -> Run {
        let mut run = Run { plan: plan(&setup, arrival), trials: Vec::new() };
        for cell in ["reference", "other"] {
            for repetition in 0..5 {
                run.trials.push(trial(&setup, cell, arrival, repetition, messages));
            }
        }
        run
    }

    pub fn each(&mut self, change: impl FnMut(&mut TrialFinished)) {
        self.trials.iter_mut().for_each(change);
    }

    fn summary(&self) -> Summary {
        let started = RunStarted {
            schema: JOURNAL_SCHEMA.to_owned(),
            id: "lint".to_owned(),
            started: "2026-11-21T00:00:00Z".to_owned(),
            version: "0".to_owned(),
            host: HostFacts::default(),
            plan: self.plan.clone(),
            setup: weigh_model::event::Setup::default(),
            baseline: Vec::new(),
            energy: None,
        };
        let finished = self.trials.iter().cloned();
        let finished = finished.map(|trial| Event::TrialFinished(Box::new(trial)));
        let mut events = vec![Event::RunStarted(Box::new(started))];
        events.extend(finished);
        events.push(Event::RunFinished { outcome: "done".to_owned() });
        Summary::from_events(&events).unwrap()
    }
}

fn plan(setup: &Setup, arrival: &str) -> Plan {
    let mut load = setup.load.clone();
    load.arrival = arrival.parse().unwrap();
    load.rate = load.arrival.needs_rate().then(|| parse_rate("2000/s").unwrap());
    let repeat = Repeat::exactly(5);
    Plan {
        name: "lint".to_owned(),
        question: None,
        seed: setup.seed,
        thresholds: Vec::new(),
        load,
        repeat,
        stop: BTreeMap::new(),
        observe: Observe::default(),
        energy: None,
        background: None,
        cases: Vec::new(),
    }
}

fn trial(
    setup: &Setup,
    cell: &str,
    arrival: &str,
    repetition: u32,
    messages: u64,
) -> TrialFinished {
    let mut setup = setup.clone().seed(setup.seed * 1000 + u64::from(repetition));
    setup.load.messages = Some(messages);
    let mut seen = setup.on_virtual_time();
    // Virtual time costs nothing: what a quiet generator would have used.
    (seen.outcome.shards.cpu, seen.outcome.cpu_max) = (Nanos(1000), Nanos(1000));
    let mut trial = setup.job(simulated_address()).trial.clone();
    trial.id = format!("{cell}-{arrival}-{repetition}");
    trial.repetition = repetition;
    trial.point = BTreeMap::from([
        ("protocol".to_owned(), trial.protocol.as_str().into()),
        ("target".to_owned(), cell.into()),
    ]);
    let mut observed = Observations::unwatched(Guarantee::AtLeastOnce, cell);
    observed.server = Some(seen.server);
    put_together(&trial, seen.outcome, observed, setup.protocol)
}

/// The rules that any cell breaks.
fn rules(summary: &Summary) -> Vec<Rule> {
    let warnings = summary.cells.iter().flat_map(|cell| &cell.warnings);
    let rules: BTreeSet<Rule> = warnings.filter_map(|warning| warning.rule()).collect();
    rules.into_iter().collect()
}

/// Enough for a p99, and too few for a p99.9 to be given at all.
pub const MESSAGES: u64 = 600;
