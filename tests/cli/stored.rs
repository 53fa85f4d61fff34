//! Runs that an earlier version left are read, and their summaries are the same byte for byte but
//! for the version. `tests/stored` holds one folder of every kind of run, with what the version
//! that measured it printed (`expected.json`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::rig::Place;

#[test]
fn a_stored_comparison_has_the_same_summary() {
    same_report("compare");
}

#[test]
fn a_stored_search_has_the_same_summary() {
    same_report("limit");
}

#[test]
fn a_stored_study_has_the_same_document() {
    same_report("study");
}

#[test]
fn a_stored_battery_test_has_the_same_report() {
    let place = Place::new("stored-rundown");
    copy(&stored("rundown").join("rundown"), &place.folder().join("rundown"));
    let shown = place.weigh(&["energy", "rundown", "--read", "--json"]).with(0).stdout;
    same(&shown, &stored("rundown").join("expected.json"));
}

/// What `weigh report` prints of the stored run of this kind is what it printed then.
fn same_report(kind: &str) {
    let place = Place::new(&format!("stored-{kind}"));
    let run = fs::read_dir(stored(kind)).expect("stored runs").next().expect("a run");
    let run = run.expect("its folder").path();
    let name = run.file_name().expect("a name").to_string_lossy().into_owned();
    copy(&run, &place.folder().join("runs").join(&name));
    let shown = place.weigh(&["report", &name, "--json"]).with(0).stdout;
    same(&shown, &run.join("expected.json"));
}

pub fn stored(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored").join(kind)
}

/// Fails at the first line that differs.
fn same(shown: &str, expected: &Path) {
    let expected = fs::read_to_string(expected).expect("what was printed then");
    let is_version = |line: &str| line.trim_start().starts_with("\"version\":");
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !is_version(line)).map(str::to_owned).collect()
    };
    let (shown, expected) = (lines(shown), lines(&expected));
    for (at, (now, then)) in shown.iter().zip(&expected).enumerate() {
        assert_eq!(now, then, "line {}", at + 1);
    }
    assert_eq!(shown.len(), expected.len());
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(fs::copy(&path, &to).expect("a copy")),
        }
    }
}
