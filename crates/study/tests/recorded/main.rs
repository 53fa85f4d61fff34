//! Every claim of every study that is built in, judged by a recorded run of the study: the verdicts
//! are those of the list, and other figures would make others.
//!
//! Where conditions change, the lists are written anew by
//! `INSTA_UPDATE=always cargo test -p weigh-study --test recorded`; where plans change, so that the
//! recordings no longer fit, new ones are taken first: `weigh study run --all`, then
//! `cargo run -p weigh-study --example record -- runs/*-study-*`.

mod changes;
mod recording;
#[path = "../../../../tests/studies/world.rs"]
mod world;

use std::collections::BTreeSet;
use std::fmt::Write;

use weigh_study::outcome::ClaimOutcome;
use weigh_study::study::About;
use weigh_study::{Runs, Study, Verdict};

use recording::Recording;

/// A study with its recorded run.
struct Recorded {
    study: Study,
    recording: Recording,
}

impl Recorded {
    /// All that are built in; one that was never recorded is a failure.
    fn all() -> Vec<Recorded> {
        let mut recordings = Recording::all();
        let with = |study: Study| {
            let recording = recordings.remove(&study.name);
            let name = &study.name;
            let recording = recording.unwrap_or_else(|| {
                panic!(
                    "{name} has no recorded run: weigh study run {name}, then cargo run -p \
                     weigh-study --example record -- RUN"
                )
            });
            Recorded { study, recording }
        };
        world::studies().into_iter().map(with).collect()
    }

    /// What comes of the claims of `study`, which is this one or a part of it.
    fn judged(&self, study: &Study, runs: &Runs) -> Vec<ClaimOutcome> {
        let about = About {
            scale: self.recording.scale,
            ways: self.recording.ways.clone(),
            only: Vec::new(),
            data: None,
            runs: None,
            id: format!("recorded-study-{}", study.name),
            started: "2026-01-01T00:00:00Z".to_owned(),
            version: "0.1.0".to_owned(),
            state: "done".to_owned(),
        };
        study.outcome(&about, runs).claims
    }

    /// The study with only one of its claims.
    fn alone(&self, id: &str) -> Study {
        let mut alone = self.study.clone();
        alone.claims.retain(|claim| claim.id == id);
        alone.figures.clear();
        alone.carry.clear();
        alone
    }
}

#[test]
fn every_claim_has_the_verdict_of_the_list() {
    let (mut list, mut count) = (String::new(), 0);
    for recorded in Recorded::all() {
        let name = &recorded.study.name;
        for claim in recorded.judged(&recorded.study, &recorded.recording.runs()) {
            let _ = writeln!(list, "{name} {} {}", claim.id, claim.verdict);
            count += 1;
        }
    }
    assert!(count >= 49, "{count} claims");
    insta::assert_snapshot!(list);
}

/// No verdict is a foregone conclusion: for each of the four there is a claim that would have
/// another one if a single figure of the recorded run were a thousand times larger or smaller.
#[test]
fn another_figure_makes_another_verdict() {
    let (mut list, mut flipped) = (String::new(), BTreeSet::new());
    for recorded in Recorded::all() {
        let name = &recorded.study.name;
        let runs = recorded.recording.runs();
        for claim in recorded.judged(&recorded.study, &runs) {
            let alone = recorded.alone(&claim.id);
            let judge = |runs: &Runs| recorded.judged(&alone, runs).remove(0).verdict;
            assert_eq!(judge(&runs), claim.verdict, "{name} {}: judged alone", claim.id);
            let changes = changes::all(&alone.claims[0], &claim);
            let other = changes.iter().find_map(|change| {
                let verdict = judge(&change.of(&runs));
                (verdict != claim.verdict).then(|| format!("{verdict} if {change}"))
            });
            if other.is_some() {
                flipped.insert(claim.verdict);
            }
            let other = other.unwrap_or_else(|| match changes.is_empty() {
                true => "rests on no figure of a run".to_owned(),
                false => "no single figure changes it".to_owned(),
            });
            let _ = writeln!(list, "{name} {} {}: {other}", claim.id, claim.verdict);
        }
    }
    insta::assert_snapshot!(list);
    assert_eq!(flipped, Verdict::ALL.into(), "a verdict that nothing can change");
}
