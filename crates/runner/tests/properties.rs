//! Whatever the plan and whatever happens in the run: every case gets its repetitions, no trial is
//! done twice, and a run that crashed at any event continues as if it had not.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use weigh_model::Nanos;
use weigh_model::event::{Event, TrialFinished};
use weigh_model::ledger::Ledger;
use weigh_model::plan::Plan;
use weigh_model::protocol::Guarantee;
use weigh_model::trial::Point;
use weigh_model::warnings::Warning;
use weigh_runner::scheduler::{Next, Sequence, Step};

/// Order of a plan's trials.
#[derive(Clone, Debug)]
struct Shape {
    seed: u64,
    lanes: u32,
    values: u32,
    at_least: u32,
    at_most: u32,
    /// A percentage; 0 for no precision.
    within: u32,
    /// The load of the target above which the axis ends; 0 for no stop rule.
    stop_above: u32,
}

impl Shape {
    fn plan(&self) -> Plan {
        let mut text = format!(
            "name = \"p\"\nseed = {}\n[load]\npattern = \"request\"\nconnections = 1\n\
             subscribers = 0\ntopology = \"fan-in\"\nduration = \"1s\"\nwarmup = \"0s\"\n\
             arrival = \"closed\"\nthink = \"0s\"\nsplit = \"exact\"\nbody = \"filler\"\n\
             timeout = \"5s\"\n[repeat]\nat_least = {}\n",
            self.seed, self.at_least
        );
        if self.within > 0 {
            text += &format!(
                "at_most = {}\nuntil = [\"throughput_out_per_s within {} %\"]\n",
                self.at_most, self.within
            );
        }
        if self.stop_above > 0 {
            let above = self.stop_above;
            text += &format!(
                "[stop]\n\"load.connections\" = [\"target_cpu_percent.mean > {above}\"]\n"
            );
        }
        for lane in 0..self.lanes {
            for value in 1..=self.values {
                text += &format!(
                    "[[case]]\nprotocol = \"p{lane}\"\n\"load.connections\" = {}\n",
                    value * 10
                );
            }
        }
        toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let within = prop_oneof![Just(0_u32), 1_u32..30];
    let stop_above = prop_oneof![Just(0_u32), 5_u32..90];
    (any::<u64>(), 1..4_u32, 1..6_u32, 1..5_u32, 0..6_u32, within, stop_above).prop_map(
        |(seed, lanes, values, at_least, more, within, stop_above)| Shape {
            seed: seed >> 1,
            lanes,
            values,
            at_least,
            at_most: at_least + more,
            within,
            stop_above,
        },
    )
}

/// A run on paper: what each trial comes to is a function of its name and of `chance`.
struct Run {
    plan: Plan,
    chance: u64,
}

impl Run {
    fn point(&self, case: usize) -> Point {
        self.plan.cases[case].clone()
    }

    /// Chance in 0..1000 for a trial and a purpose.
    fn draw(&self, next: Next, purpose: u64) -> u64 {
        let seed = self.chance ^ (next.case as u64) << 20 ^ u64::from(next.repetition) << 8;
        weigh_stats::random::Random::stream(seed, purpose).below(1000)
    }

    fn started(&self, next: Next, at: Nanos) -> Event {
        Event::TrialStarted {
            trial: format!("{}-{}", next.case, next.repetition),
            point: self.point(next.case),
            repetition: next.repetition,
            at_ns: Some(at.0),
            attempt: None,
        }
    }

    /// One trial in ten fails. The target's load grows with the value of the axis.
    fn ended(&self, next: Next, is_cut_short: bool) -> Event {
        let trial = format!("{}-{}", next.case, next.repetition);
        let point = self.point(next.case);
        if !is_cut_short && self.draw(next, 1) < 100 {
            return Event::TrialFailed { trial, point, error: "no".to_owned(), is_repeated: false };
        }
        let value = point["load.connections"].as_f64().unwrap();
        let load = value + self.draw(next, 2) as f64 / 100.0;
        let rate = 100.0 + self.draw(next, 3) as f64 / 20.0;
        let metrics = BTreeMap::from([
            ("target_cpu_percent.mean".to_owned(), load),
            ("throughput_out_per_s".to_owned(), rate),
        ]);
        let warnings = if is_cut_short { vec![Warning::Interrupted.record()] } else { Vec::new() };
        Event::TrialFinished(Box::new(TrialFinished {
            trial,
            point,
            repetition: next.repetition,
            seed: 0,
            guarantee: Guarantee::AtLeastOnce,
            durability: None,
            target: "paper".to_owned(),
            metrics,
            samples: BTreeMap::new(),
            ledger: Ledger::zero(),
            warnings,
            granted: BTreeMap::new(),
            server: None,
            counters: BTreeMap::new(),
            scene: BTreeMap::new(),
            histograms: BTreeMap::new(),
        }))
    }

    /// Continues from `sequence` to the end; returns the trials in their order, and all events.
    fn finish(&self, mut sequence: Sequence, events: &mut Vec<Event>) -> Vec<Next> {
        let mut trials = Vec::new();
        let mut at = sequence.elapsed();
        while let Step::Trial(next) = sequence.next(at) {
            let left = sequence.remaining();
            assert!(left.least <= left.most && left.most > 0, "{left:?}");
            for event in [self.started(next, at), self.ended(next, false)] {
                let decisions = sequence.note(&event);
                events.push(event);
                events.extend(decisions);
            }
            trials.push(next);
            at = at + Nanos::from_secs(1);
            assert!(trials.len() < 1000, "it does not end");
        }
        assert_eq!(sequence.remaining().most, 0);
        trials
    }
}

fn run(shape: &Shape, chance: u64) -> (Run, Vec<Next>, Vec<Event>) {
    let run = Run { plan: shape.plan(), chance };
    let mut events = Vec::new();
    let trials = run.finish(Sequence::new(&run.plan), &mut events);
    (run, trials, events)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_case_gets_its_repetitions_and_no_trial_is_done_twice(
        shape in shapes(), chance in any::<u64>(),
    ) {
        let (run, trials, events) = run(&shape, chance);
        let unique: BTreeSet<Next> = trials.iter().copied().collect();
        prop_assert_eq!(unique.len(), trials.len());
        let ends: Vec<(String, f64)> = events.iter().filter_map(|event| match event {
            Event::AxisEnded(ended) => {
                Some((ended.lane["protocol"].to_string(), ended.at.as_f64().unwrap()))
            }
            _ => None,
        }).collect();
        for case in 0..run.plan.cases.len() {
            let point = run.point(case);
            let value = point["load.connections"].as_f64().unwrap();
            let lane = point["protocol"].to_string();
            let is_beyond = ends.iter().any(|(of, at)| *of == lane && value > *at);
            let count = trials.iter().filter(|next| next.case == case).count() as u32;
            if is_beyond {
                prop_assert_eq!(count, 0, "nothing beyond the end of an axis is measured");
            } else {
                let most = if shape.within > 0 { shape.at_most } else { shape.at_least };
                prop_assert!((shape.at_least..=most).contains(&count), "{} of {:?}", count, shape);
            }
        }
        let rounds: Vec<u32> = trials.iter().map(|next| next.repetition).collect();
        prop_assert!(rounds.is_sorted(), "round by round");
        let settled = events.iter().filter(|e| matches!(e, Event::CaseSettled { .. })).count();
        let weighed: BTreeSet<usize> = trials.iter().map(|next| next.case).collect();
        prop_assert_eq!(settled, if shape.within > 0 { weighed.len() } else { 0 });
    }

    #[test]
    fn the_same_seed_gives_the_same_order(shape in shapes(), chance in any::<u64>()) {
        prop_assert_eq!(run(&shape, chance).1, run(&shape, chance).1);
    }

    #[test]
    fn a_run_that_died_at_any_event_goes_on_as_if_it_had_not(
        shape in shapes(),
        chance in any::<u64>(),
        share in 0.0..1.0_f64,
        is_cut_short in any::<bool>(),
    ) {
        let (run, trials, events) = run(&shape, chance);
        let mut kept = events[..(share * events.len() as f64) as usize].to_vec();
        let is_end = |event: &&Event| {
            matches!(event, Event::TrialFinished(_) | Event::TrialFailed { .. })
        };
        let ended = kept.iter().filter(is_end).count();
        if is_cut_short && let Some(next) = trials.get(ended) {
            kept.push(run.started(*next, Nanos(0)));
            kept.push(run.ended(*next, true));
        }
        let (sequence, untold) = Sequence::resume(&run.plan, &kept);
        kept.extend(untold);
        let rest = run.finish(sequence, &mut kept);
        prop_assert_eq!(&rest[..], &trials[ended..]);
        let decisions = |events: &[Event]| -> Vec<String> {
            let is_one = |e: &&Event| matches!(e, Event::AxisEnded(_) | Event::CaseSettled { .. });
            let mut all: Vec<String> =
                events.iter().filter(is_one).map(|e| serde_json::to_string(e).unwrap()).collect();
            all.sort();
            all
        };
        prop_assert_eq!(decisions(&kept), decisions(&events), "each decision is returned once");
    }

    /// A line in the middle of a journal was damaged: the trial of that line is done again, and
    /// nothing else.
    #[test]
    fn a_lost_result_is_the_only_one_done_again(
        shape in shapes(), chance in any::<u64>(), which in any::<prop::sample::Index>(),
    ) {
        let (run, trials, mut events) = run(&shape, chance);
        let is_end = |event: &Event| {
            matches!(event, Event::TrialFinished(_) | Event::TrialFailed { .. })
        };
        let places: Vec<usize> = (0..events.len()).filter(|at| is_end(&events[*at])).collect();
        let lost = which.index(places.len());
        events.remove(places[lost]);
        let (sequence, _) = Sequence::resume(&run.plan, &events);
        let again = run.finish(sequence, &mut events);
        prop_assert_eq!(again, vec![trials[lost]]);
    }
}

/// Two lanes of three values: they climb together, and only then is the order free.
#[test]
fn lanes_climb_together_and_each_ends_where_its_condition_holds() {
    let shape =
        Shape { seed: 3, lanes: 2, values: 5, at_least: 2, at_most: 2, within: 0, stop_above: 30 };
    let run = Run { plan: shape.plan(), chance: 12 };
    let mut events = Vec::new();
    let mut sequence = Sequence::new(&run.plan);
    assert_eq!(sequence.remaining().most, 20);
    assert_eq!(sequence.remaining().least, 4);
    assert!(matches!(sequence.next(Nanos(0)), Step::Trial(Next { case: 0 | 5, repetition: 0 })));
    let trials = run.finish(sequence.clone(), &mut events);
    let first: Vec<f64> = trials
        .iter()
        .filter(|next| next.repetition == 0)
        .map(|next| run.point(next.case)["load.connections"].as_f64().unwrap())
        .collect();
    assert!(first.is_sorted(), "{first:?}");
    let ends: Vec<&Event> = events.iter().filter(|e| matches!(e, Event::AxisEnded(_))).collect();
    assert_eq!(ends.len(), 2);
    for end in ends {
        let Event::AxisEnded(ended) = end else { unreachable!("filtered above") };
        assert!(ended.figure > 30.0 && ended.condition == "target_cpu_percent.mean > 30");
        let last = ended.not_weighed.last().map(serde_json::Value::to_string);
        assert_eq!(last.as_deref(), Some("50"), "{ended:?}");
    }
    // A journal's own word is not decided anew.
    for event in &events {
        let _ = sequence.note(event);
    }
    assert_eq!(sequence.next(Nanos(0)), Step::Done);
}

/// A second each by the plan, and two as seen: of a budget of 7 s the third trial is the last to
/// end in time, for every caller.
#[test]
fn no_trial_begins_that_would_end_after_the_budget() {
    let shape =
        Shape { seed: 3, lanes: 1, values: 1, at_least: 9, at_most: 9, within: 0, stop_above: 0 };
    let mut plan = shape.plan();
    plan.repeat.budget = Some(Nanos::from_secs(7));
    let run = Run { plan, chance: 5 };
    let mut sequence = Sequence::new(&run.plan);
    let mut events = Vec::new();
    let mut count = 0;
    let left = loop {
        match sequence.next(Nanos::from_secs(2 * count)) {
            Step::Trial(next) => {
                for event in
                    [run.started(next, Nanos::from_secs(2 * count)), run.ended(next, false)]
                {
                    sequence.note(&event);
                    events.push(event);
                }
            }
            Step::OutOfTime(left) => break left,
            Step::Done => panic!("there was more to do"),
        }
        count += 1;
    };
    assert_eq!((count, left.least, left.most), (3, 6, 6));
    let (mut again, _) = Sequence::resume(&run.plan, &events);
    assert_eq!(again.elapsed(), Nanos::from_secs(6));
    assert!(matches!(again.next(again.elapsed()), Step::OutOfTime(_)));
}

#[test]
fn of_cases_that_cannot_be_told_apart_one_is_weighed() {
    let shape =
        Shape { seed: 3, lanes: 1, values: 2, at_least: 2, at_most: 2, within: 0, stop_above: 0 };
    let mut plan = shape.plan();
    plan.cases.push(plan.cases[0].clone());
    let run = Run { plan, chance: 5 };
    let mut trials = run.finish(Sequence::new(&run.plan), &mut Vec::new());
    trials.sort();
    let cases: Vec<usize> = trials.iter().map(|next| next.case).collect();
    assert_eq!(cases, [0, 0, 1, 1]);
}
