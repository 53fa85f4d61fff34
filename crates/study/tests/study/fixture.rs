//! A small made-up study with a claim for every kind of answer, and recorded runs of it: real ones,
//! made with `weigh run` and `weigh limit`, of which only what is asked for was kept.

use weigh_model::Protocol;
use weigh_model::protocol::Invalid;
use weigh_plan::Case;
use weigh_plan::world::{REFERENCE, TargetWord, World};
use weigh_study::study::About;
use weigh_study::{Occasion, Outcome, RunMade, RunState, Runs, Scale, Study, StudyTexts, Way};

pub struct TestWorld;

impl World for TestWorld {
    fn protocols(&self) -> &'static [&'static dyn Protocol] {
        weigh_protocols::PROTOCOLS
    }

    fn target(&self, word: &str) -> Result<TargetWord, String> {
        let speaks = match word {
            REFERENCE => None,
            "mosquitto" => Some(vec!["mqtt".to_owned()]),
            _ => return Err(format!("{word:?} is no target: type reference or mosquitto")),
        };
        Ok(TargetWord { name: word.to_owned(), speaks })
    }

    fn target_names(&self) -> Vec<String> {
        ["reference", "mosquitto"].map(str::to_owned).to_vec()
    }

    fn is_secret(&self, key: &str, _value: &str) -> bool {
        key.ends_with(".broker_password")
    }

    fn check(&self, _case: &Case) -> Result<(), Invalid> {
        Ok(())
    }
}

/// The files of the study.
pub fn texts() -> StudyTexts {
    let files = [
        ("study.toml", include_str!("fixture/study.toml")),
        ("plan-published.toml", include_str!("fixture/plan-published.toml")),
        ("plan-right.toml", include_str!("fixture/plan-right.toml")),
        ("published.csv", include_str!("fixture/published.csv")),
    ];
    let files = files.map(|(file, text)| (file, text.to_owned()));
    StudyTexts::of("fixture", "studies/fixture", files)
}

/// The study.
pub fn study() -> Study {
    let texts = texts();
    Study::read(&texts, &TestWorld)
        .unwrap_or_else(|wrong| panic!("{}", wrong.render(&texts, false)))
}

/// What is wrong with the study after `change`.
pub fn wrong(change: impl FnOnce(&mut StudyTexts)) -> String {
    let mut texts = texts();
    change(&mut texts);
    match Study::read(&texts, &TestWorld) {
        Ok(_) => panic!("nothing is wrong with it"),
        Err(wrong) => wrong.render(&texts, false),
    }
}

/// Puts `new` in the place of `old`, which must be there.
pub fn replace(text: &mut String, old: &str, new: &str) {
    assert!(text.contains(old), "{old:?} is not there");
    *text = text.replacen(old, new, 1);
}

/// The recorded runs with twice their repetitions and without warnings: evidence that may decide.
pub fn runs() -> Runs {
    let mut runs = recorded();
    for state in runs.values_mut() {
        let RunState::Made(made) = state else { continue };
        for cell in &mut made.summary.cells {
            cell.repetitions *= 2;
            cell.warnings.retain(|warning| warning.code != "disturbed");
            for metric in cell.metrics.values_mut() {
                let again = metric.values.clone();
                metric.values.extend(again);
            }
        }
        for pair in &mut made.summary.interference {
            pair.overlap_ratio = pair.overlap_ratio.max(1.0);
        }
    }
    runs
}

/// The recorded runs, three repetitions each.
pub fn recorded() -> Runs {
    let recorded = [
        ("published/clients", include_str!("recorded/published-clients.json")),
        ("published/burst", include_str!("recorded/published-burst.json")),
        ("right/cost", include_str!("recorded/right-cost.json")),
        ("right/beneath", include_str!("recorded/right-beneath.json")),
        ("right/burst-limit", include_str!("recorded/right-burst-limit.json")),
    ];
    let run = |(name, text): (&str, &str)| {
        let summary = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let folder = weigh_study::runs::folder(name);
        let made = RunMade { folder, summary, trials: Default::default() };
        (name.to_owned(), RunState::Made(Box::new(made)))
    };
    recorded.into_iter().map(run).collect()
}

/// What comes of the study with these runs.
pub fn outcome(study: &Study, runs: &Runs, scale: Scale) -> Outcome {
    let about = About {
        scale,
        ways: Way::ALL.to_vec(),
        only: Vec::new(),
        data: None,
        runs: None,
        id: "2026-01-01T00-00-00-study-fixture".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        version: "0.1.0".to_owned(),
        state: "done".to_owned(),
    };
    study.outcome(&about, &[Occasion { scale, ..occasion(runs) }])
}

/// One occasion with these runs.
pub fn occasion(runs: &Runs) -> Occasion {
    Occasion {
        run: "2026-01-01T00-00-00-study-fixture".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        version: "0.1.0".to_owned(),
        state: "done".to_owned(),
        runs: runs.clone(),
        ..Occasion::default()
    }
}
