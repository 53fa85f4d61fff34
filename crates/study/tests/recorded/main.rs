//! Every claim of every study that is built in, judged by recorded runs of the study: the answers
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
use weigh_study::{Occasion, Study};

use recording::Recording;

/// A study with its recorded runs, the oldest first.
struct Recorded {
    study: Study,
    recordings: Vec<Recording>,
}

impl Recorded {
    /// All that are built in. A study whose plans changed is run again on a quiet machine before
    /// the change lands: without a recording nothing would hold its answers.
    fn all() -> Vec<Recorded> {
        let mut studies: Vec<Recorded> = world::studies()
            .into_iter()
            .map(|study| Recorded { study, recordings: Vec::new() })
            .collect();
        for recording in Recording::all() {
            let is_it = |own: &&mut Recorded| own.study.name == recording.study;
            let own = studies.iter_mut().find(is_it);
            own.expect("a recording is of a study that is built in").recordings.push(recording);
        }
        for Recorded { study, recordings } in &studies {
            assert!(
                !recordings.is_empty(),
                "{0} has no recorded run: weigh study run {0}",
                study.name
            );
        }
        studies
    }

    /// The answers to the claims of `study`, which is this one or a part of it.
    fn judged(&self, study: &Study, occasions: &[Occasion]) -> Vec<ClaimOutcome> {
        let last = self.recordings.last().expect("it was recorded");
        let about = About {
            scale: last.scale,
            ways: last.ways.clone(),
            only: Vec::new(),
            data: None,
            runs: None,
            id: last.run.clone(),
            started: last.started.clone(),
            version: last.version.clone(),
            state: "done".to_owned(),
        };
        study.outcome(&about, occasions).claims
    }

    /// The study with only one of its claims.
    fn alone(&self, id: &str) -> Study {
        let mut alone = self.study.clone();
        alone.claims.retain(|claim| claim.id == id);
        alone.figures.clear();
        alone.carry.clear();
        alone.tools.clear();
        alone
    }
}

/// `consistent · reproduced / not run · cause shown`.
fn words(claim: &ClaimOutcome) -> String {
    let (printed, replays, why) = claim.words();
    let replays: Vec<&str> = replays.iter().map(|one| one.name()).collect();
    format!("{printed} \u{b7} {} \u{b7} {why}", replays.join(" / "))
}

#[test]
fn every_claim_has_the_answers_of_the_list() {
    let mut list = String::new();
    for recorded in Recorded::all() {
        let name = &recorded.study.name;
        let occasions: Vec<Occasion> =
            recorded.recordings.iter().map(Recording::occasion).collect();
        for claim in recorded.judged(&recorded.study, &occasions) {
            let agreement = claim.agreement.as_ref().map_or(String::new(), |agreement| {
                format!(" (in {} of {} runs)", agreement.same, agreement.of)
            });
            let _ = writeln!(list, "{name} {} {}{agreement}", claim.id, words(&claim));
        }
    }
    insta::assert_snapshot!(list);
}

/// No answer is a foregone conclusion: for each word that a run can lead to there is a claim that
/// would have another one if a single figure of the recorded run were a thousand times larger or
/// smaller.
#[test]
fn another_figure_makes_another_answer() {
    let (mut list, mut flipped, mut seen) = (String::new(), BTreeSet::new(), BTreeSet::new());
    for recorded in Recorded::all() {
        let name = &recorded.study.name;
        let occasion = recorded.recordings.last().expect("one").occasion();
        for claim in recorded.judged(&recorded.study, std::slice::from_ref(&occasion)) {
            let alone = recorded.alone(&claim.id);
            let judge = |occasion: &Occasion| {
                recorded.judged(&alone, std::slice::from_ref(occasion)).remove(0)
            };
            assert_eq!(words(&judge(&occasion)), words(&claim), "{name} {}: alone", claim.id);
            let decided = claim.replays[0].answer.name();
            seen.insert(decided);
            let changes = changes::all(&alone.claims[0], &claim);
            let other = changes.iter().find_map(|change| {
                let changed = Occasion { runs: change.of(&occasion.runs), ..occasion.clone() };
                let other = words(&judge(&changed));
                (other != words(&claim)).then(|| format!("{other} if {change}"))
            });
            if other.is_some() {
                flipped.insert(decided);
            }
            let other = other.unwrap_or_else(|| match changes.is_empty() {
                true => "rests on no figure of a run".to_owned(),
                false => "no single figure changes it".to_owned(),
            });
            let _ = writeln!(list, "{name} {} {}: {other}", claim.id, words(&claim));
        }
    }
    insta::assert_snapshot!(list);
    seen.remove("not run");
    assert!(flipped.is_superset(&seen), "a word that nothing can change: {flipped:?} of {seen:?}");
}
