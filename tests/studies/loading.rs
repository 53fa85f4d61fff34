//! All experiments and claims of the five papers are there, and every plan has cases at each scale.

use std::collections::BTreeSet;

use weigh_study::quantity::{Quantity, Source, Statistic};
use weigh_study::{Scale, Study};

use crate::world::studies;

/// The papers: the study, its experiments, and how many claims it has, from C01.
const PAPERS: [(&str, &[&str], usize); 5] = [
    (
        "hydroponics",
        &["E1-http", "E1-mqtt", "E2-http", "E2-mqtt", "E3", "E4", "E5", "E6", "E7"],
        21,
    ),
    ("flespi", &["T0", "T1", "T2", "T3"], 11),
    ("tcp-mqtt", &["F4-F5", "F6-F7"], 13),
    ("rpc-lab", &["HTTP", "RPC", "HTTP+RPC", "MQTT"], 13),
    ("jmeter-lab", &["HTTP", "RPC", "MQTT"], 14),
];

fn named<'s>(studies: &'s [Study], name: &str) -> &'s Study {
    let found = studies.iter().find(|study| study.name == name);
    found.unwrap_or_else(|| panic!("the study {name} is not there"))
}

#[test]
fn all_22_experiments_and_all_72_claims_are_there() {
    let studies = studies();
    let (mut experiments, mut claims) = (0, 0);
    for (name, ids, count) in PAPERS {
        let study = named(&studies, name);
        let own: BTreeSet<&str> = study.experiments.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(own, ids.iter().copied().collect(), "the experiments of {name}");
        let own: BTreeSet<String> = study.claims.iter().map(|claim| claim.id.clone()).collect();
        let expected = (1..=count).map(|number| format!("C{number:02}"));
        assert_eq!(own, expected.collect(), "the claims of {name}");
        experiments += ids.len();
        claims += count;
    }
    assert_eq!((experiments, claims), (22, 72));
}

#[test]
fn every_plan_has_cases_at_each_scale_and_no_more_in_shorter_ones() {
    for study in studies() {
        for plan in &study.plans {
            let cases = Scale::ALL.map(|scale| plan.at(scale).resolved.plan.cases.len());
            let place = format!("{}: {}", study.name, plan.name);
            assert!(cases[0] > 0, "{place}: {cases:?}");
            assert!(cases.is_sorted(), "{place}: mini, quick, full have {cases:?} cases");
        }
    }
}

/// One repetition has no interval: a claim that rests on it would be open before it is run.
#[test]
fn what_claims_rest_on_is_repeated() {
    let mut single = Vec::new();
    for study in studies() {
        for claim in &study.claims {
            for (name, quantity) in &claim.quantities {
                let is_exact = match quantity {
                    Quantity::Cell { source, statistic, .. } => {
                        let is_seen = matches!(statistic, Statistic::Least | Statistic::Most);
                        is_seen || matches!(source, Source::Ledger(_))
                    }
                    Quantity::Along { source, .. } => matches!(source, Source::Ledger(_)),
                    Quantity::Interference { .. } => false,
                    _ => true,
                };
                let Some(run) = quantity.run().filter(|_| !is_exact) else { continue };
                let plan = study.plan(run).expect("it was read");
                for scale in [Scale::Quick, Scale::Full] {
                    if plan.at(scale).resolved.plan.repeat.at_least < 2 {
                        let place = format!("{} {}", study.name, claim.id);
                        single.push(format!("{place} {name}: {run} at {scale}"));
                    }
                }
            }
        }
    }
    assert!(single.is_empty(), "repeated once only:\n{}", single.join("\n"));
}

/// The runs that a claim, a picture or the question of how many a server carries rests on.
fn used(study: &Study) -> BTreeSet<&str> {
    let claims = study.claims.iter().flat_map(|claim| claim.quantities.values());
    let claims = claims.filter_map(Quantity::run);
    let figures = study.figures.iter().flat_map(|figure| &figure.ours);
    let figures = figures.map(|series| series.run.as_str());
    let carried = study.carry.iter().flat_map(|asked| asked.runs()).map(String::as_str);
    claims.chain(figures).chain(carried).collect()
}

/// What is not run says why, and what is run is used by a claim or seen in a picture.
#[test]
fn every_run_is_for_something() {
    for study in studies() {
        for experiment in &study.experiments {
            let runs = experiment.published.iter().chain(&experiment.right);
            let is_run = runs.count() > 0;
            assert!(is_run != experiment.not_run.is_some(), "{}: {}", study.name, experiment.id);
        }
        let used = used(&study);
        let plans: BTreeSet<&str> = study.plans.iter().map(|plan| plan.name.as_str()).collect();
        let idle: Vec<_> = plans.difference(&used).collect();
        assert!(idle.is_empty(), "{}: no claim, picture or answer rests on {idle:?}", study.name);
        assert!(!study.finding.is_empty(), "{} teaches nothing", study.name);
        assert!(study.question.ends_with('?'), "{}: {}", study.name, study.question);
        assert!(study.readme.len() > 200, "{} has no README", study.name);
    }
}
