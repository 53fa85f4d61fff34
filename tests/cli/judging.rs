//! Several runs of a study judged together on the command line, and runs that are not what they
//! should be: of an older version, of another machine, without a server, interrupted.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::rig::{Ended, Place, signal, until, wait};
use crate::studies::{TINY, holds, part, replayed, results};

impl Place {
    /// Two runs of the tiny study's first experiment, seconds each.
    pub fn two_runs(name: &str) -> (Place, [String; 2]) {
        let place = Place::tiny(name);
        for _ in 0..2 {
            place.study("run", &["--scale", "mini", "--only", "E1", "--quiet"]).with(0);
        }
        let id = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let runs: Vec<String> = place.runs().iter().map(id).collect();
        let runs = runs.try_into().expect("two runs");
        (place, runs)
    }

    pub fn judge(&self, runs: &[String], more: &[&str]) -> Ended {
        let names: Vec<&str> = runs.iter().map(String::as_str).collect();
        self.weigh(&[&["study", "judge"], &names[..], more].concat())
    }
}

/// Puts `new` for `old` wherever a file has it; it must have it.
fn replace(path: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    assert!(text.contains(old), "{old:?} is not in {path:?}");
    fs::write(path, text.replace(old, new)).expect("it can be written");
}

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).expect("JSON")
}

/// The setup in the first line of a journal.
fn setup(run: &Path) -> Value {
    let text = fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
    let line: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    line["setup"].clone()
}

#[test]
fn several_runs_have_answers_together() {
    let (place, runs) = Place::two_runs("judged");
    let ended = place.judge(&runs, &[]).with(0);
    for part in ["judged from 2 runs", "in one boot", "of 2 runs", "judged-tiny/report.html"] {
        assert!(ended.stdout.contains(part), "{part:?} is not in:\n{}", ended.stdout);
    }
    let out = place.folder().join("runs/judged-tiny");
    let document = json(&out.join("judged.json"));
    let occasions = document["occasions"].as_array().expect("occasions");
    assert_eq!(occasions.iter().map(|own| &own["run"]).collect::<Vec<_>>(), [&*runs[0], &*runs[1]]);
    let hash = document["judged_hash"].as_str().expect("a hash");
    for own in occasions {
        assert_eq!((&own["is_same_study"], &own["study_hash"]), (&true.into(), &hash.into()));
        assert_eq!(own["boot"], occasions[0]["boot"]);
    }
    let first = &document["claims"][0]["agreement"];
    assert_eq!((&first["of"], first["answers"].as_array().map(Vec::len)), (&2.into(), Some(2)));
    // Links lead from the page to both runs.
    let text = document["claims"][0]["conditions"].to_string();
    for run in &runs {
        assert!(text.contains(&format!("../{run}/published-E1")), "{text}");
    }
    // The hash is that of the file, and stands in every journal from its beginning.
    for run in place.runs().iter().filter(|run| run.join("study.json").is_file()) {
        let file = fs::read(run.join("study/study.toml")).expect("the study's file");
        assert_eq!(weigh_report::journal::digest::sha256(&file), hash);
        for own in ["published-E1", "right-cost"] {
            let setup = setup(&run.join(own));
            assert_eq!(
                (setup["study_hash"].as_str(), setup["boot"].is_string()),
                (Some(hash), true)
            );
        }
    }
    // What was judged is no run, and comes out the same again.
    let latest = place.weigh(&["report", "latest", "--json"]).with(0).json();
    assert_eq!(latest["id"], *runs[1]);
    assert_eq!(place.weigh(&["runs", "--json"]).with(0).json().as_array().map(Vec::len), Some(2));
    let again = place.judge(&runs, &["--json", "--out", "elsewhere/page"]).with(0).json();
    assert_eq!(again["claims"][0]["replays"], document["claims"][0]["replays"]);
    assert!(place.folder().join("elsewhere/page/report.html").is_file());
}

#[test]
fn what_cannot_be_judged_together_is_said() {
    let (place, runs) = Place::two_runs("judged-wrong");
    let twice = [runs[0].clone(), runs[0].clone()];
    place.judge(&twice, &[]).with(2).saying(&["is named twice"]);
    place.judge(&[], &[]).with(2).saying(&["STUDYRUN"]);
    place.judge(&["nowhere".to_owned()], &[]).with(2).saying(&["nowhere", &runs[1]]);
    // Another study.
    replace(&place.runs()[1].join("study.json"), "\"study\": \"tiny\"", "\"study\": \"other\"");
    place.judge(&runs, &[]).with(2).saying(&["name runs of one study", "other"]);
    replace(&place.runs()[1].join("study.json"), "\"study\": \"other\"", "\"study\": \"tiny\"");
    // Another machine.
    for own in ["published-E1", "right-cost"] {
        let journal = place.runs()[1].join(own).join("journal.jsonl");
        replace(&journal, "\"virtualisation\":\"", "\"virtualisation\":\"another ");
    }
    let refused = place.judge(&runs, &[]).with(2);
    refused.saying(&["different machines", &runs[0], &runs[1], "help: ", "--across-machines"]);
    let across = place.judge(&runs, &["--across-machines"]).with(0);
    assert!(across.stdout.contains("warning: The runs were made on different machines"));
}

/// Conditions that changed after a run are said to be younger; those kept with it are not.
#[test]
fn conditions_that_are_younger_than_a_run_are_said_to_be() {
    let (place, runs) = Place::two_runs("judged-younger");
    let file = place.folder().join("data/studies/tiny/study.toml");
    replace(&file, "two / one > 1.5", "two / one > 1.6");
    let judged = place.judge(&runs, &[]).with(0).stdout;
    let said = format!("These conditions are newer than the run {}", runs[0]);
    // Lines of a terminal may break anywhere.
    let plain = judged.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains(&said), "{judged}");
    let kept = place.judge(&runs, &["--kept"]).with(0).stdout;
    assert!(!kept.contains("are newer than"), "{kept}");
    // Files that were changed within the run are no longer those it was started with.
    let own = place.runs()[1].join("study/study.toml");
    replace(&own, "two / one > 1.5", "two / one > 1.7");
    let report = place.weigh(&["report", &runs[1]]).with(0).stdout;
    assert!(report.contains("newer than the run"), "{report}");
}

/// What version 0.1.0 left: one verdict for each claim, other words in the study's file, and no
/// hash.
#[test]
fn a_run_of_an_older_version_is_listed_and_judged_anew() {
    let (place, runs) = Place::two_runs("judged-older");
    let folder = place.runs()[0].clone();
    let mut document = json(&folder.join("study.json"));
    let all = document.as_object_mut().expect("an object");
    for key in ["occasions", "paper", "judged_hash", "warnings"] {
        all.remove(key);
    }
    let verdict =
        |id: &str| serde_json::json!({ "id": id, "source": "Table 1", "verdict": "contradicted" });
    all.insert("claims".to_owned(), vec![verdict("C1"), verdict("C9")].into());
    let old = document.to_string();
    fs::write(folder.join("study.json"), &old).expect("it can be written");
    replace(&folder.join("study/study.toml"), "replayed = [", "truth = [");
    for own in ["published-E1", "right-cost"] {
        replace(&folder.join(own).join("journal.jsonl"), "\"study_hash\":", "\"unknown\":");
    }
    let listed = place.weigh(&["runs"]).with(0).stdout;
    let line = listed.lines().find(|line| line.contains(&runs[0])).expect("it is listed");
    assert!(line.contains('–') && !listed.contains("contradicted"), "{listed}");
    let report = place.weigh(&["report", &runs[0]]).with(0);
    let report = report.saying(&["cannot read the study files", "no file was written"]).stdout;
    assert!(report.contains("C1") && report.contains("does not record"), "{report}");
    assert_eq!(fs::read_to_string(folder.join("study.json")).expect("it is there"), old);
    let judged = place.judge(&runs, &["--json"]).with(0).json();
    assert_eq!(judged["claims"].as_array().map(Vec::len), Some(5));
    assert!(judged["occasions"][0].get("is_same_study").is_none());
    let words = ["study", "run", "--resume", &runs[0]];
    place.weigh(&words).with(2).saying(&["help: start a new run", "weigh study judge"]);
}

/// A server that is there and does not start leaves its own claims open: said as it happens, in the
/// exit code, and in the answers. The rest is judged.
#[test]
fn a_server_that_does_not_start_costs_only_its_own_claims() {
    let place = Place::with_target("judged-failing", "never-starts", "false");
    let parts = ["published/E2 is not run", "before it was ready"];
    let ended = place.study("run", &["--json"]).with(3).saying(&parts);
    let document = ended.json();
    assert_eq!(document["state"], "done");
    holds(&document, "C1");
    let (answer, reasons) = replayed(&document, "C3");
    assert_eq!(answer, "not run", "{reasons}");
    assert!(reasons.contains("before it was ready"), "{reasons}");
    place.nobody_is_left();
}

/// A full-scale run that was interrupted is judged as far as it came, and resumed to its end.
#[test]
fn half_of_a_full_scale_run_is_judged_and_resumed() {
    let place = Place::tiny("judged-half");
    let arguments =
        [&["study", "run"], &TINY[..], &["--only", "E1", "--scale", "full", "--quiet"]].concat();
    let child = place.spawn(&arguments);
    let has_result = || {
        let journal = place.runs().first().map(|run| run.join("published-E1/journal.jsonl"));
        let text = journal.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        text.contains("trial_finished")
    };
    until("a result", has_result);
    signal("INT", child.id());
    wait(child).with(130);
    let id = place.run().file_name().unwrap().to_string_lossy().into_owned();
    let judged = place.judge(&[id], &[]).with(0).stdout;
    let plain = judged.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains("is not complete (interrupted)"), "{judged}");
    fs::remove_dir_all(place.folder().join("runs/judged-tiny")).expect("it was written");
    place.weigh(&["study", "run", "--resume", "latest", "--quiet"]).with(0);
    let document = place.document();
    assert_eq!((&document["state"], &document["scale"]), (&"done".into(), &"full".into()));
    assert_eq!(results(&part(&place, "published-E1")), [1; 20]);
    holds(&document, "C5");
    place.nobody_is_left();
}
