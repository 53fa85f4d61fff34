//! `weigh runs`: the history, and the index that it makes for itself.

use crate::rig::{Place, signal, until, wait};

#[test]
fn the_history_of_a_metric_is_shown_run_by_run() {
    let place = Place::new("history");
    for name in ["nightly", "nightly", "other"] {
        place.compare(&["tcp", "http", "-n", "200", "--name", name]).with(0);
    }
    let listed = |arguments: &[&str]| -> Vec<serde_json::Value> {
        let all = [&["runs", "--json"], arguments].concat();
        place.weigh(&all).with(0).json().as_array().expect("a list").clone()
    };
    assert_eq!((listed(&[]).len(), listed(&["--name", "nightly"]).len()), (3, 2));
    assert_eq!(listed(&["-n", "1"])[0]["name"], "other");
    assert_eq!(
        (listed(&["--since", "1h"]).len(), listed(&["--since", "2999-01-01"]).len()),
        (3, 0)
    );
    assert_eq!((&listed(&[])[0]["trials"], &listed(&[])[0]["cells"]), (&2.into(), &2.into()));
    let metric = ["runs", "--metric", "response_time p(99)", "--name", "nightly"];
    let history = place.weigh(&[&metric[..], &["--json"]].concat()).with(0).json();
    let cells = history["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2);
    assert!(cells.iter().all(|cell| cell["figures"].as_array().is_some_and(|f| f.len() == 2)));
    let text = place.weigh(&metric).with(0).stdout;
    assert!(text.contains("tcp on reference: response_time_ns.p99"), "{text}");
    place
        .weigh(&["runs", "--metric", "response_time_ns.p98"])
        .with(2)
        .saying(&["no run has this metric", "p99"]);
    place.weigh(&["runs", "--metric", "response_time"]).with(2).saying(&["p(95)"]);
    place.weigh(&["runs", "--since", "yesterday"]).with(2).saying(&["2026-11-01"]);
}

#[cfg(feature = "index")]
#[test]
fn the_index_may_be_deleted_or_broken() {
    let place = Place::new("history-index");
    place.compare(&["tcp", "-n", "50"]).with(0);
    let first = place.weigh(&["runs"]).with(0);
    assert_eq!(first.stderr, "");
    let index = place.folder().join("runs/index.sqlite");
    std::fs::remove_file(&index).expect("there is an index");
    assert_eq!(place.weigh(&["runs"]).with(0).stdout, first.stdout);
    std::fs::write(&index, "no database".repeat(100)).expect("a file");
    let ended = place.weigh(&["runs"]).with(0).saying(&["index.sqlite", "rebuilt from the runs"]);
    assert_eq!(ended.stdout, first.stdout);
    assert_eq!(place.weigh(&["runs"]).with(0).stderr, "");
}

#[test]
fn a_run_in_progress_is_told_from_one_that_crashed() {
    let place = Place::new("history-progress");
    let child = place.spawn(&["compare", "tcp", "-d", "60s", "--warmup", "0s", "-c", "1", "-Q"]);
    let listed = || place.weigh(&["runs"]).stdout;
    until("the run is listed", || listed().contains("in progress"));
    signal("KILL", child.id());
    wait(child);
    until("the run has crashed", || listed().contains("crashed"));
    place.nobody_is_left();
}
