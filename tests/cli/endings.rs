//! Runs that end early: by a signal, by the death of a target, by our own death.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr};

use crate::rig::{Ended, Place, has, signal, until, wait};
use crate::serving::Server;

/// A comparison whose load is running.
struct Weighing {
    child: Child,
    stderr: BufReader<ChildStderr>,
    heard: String,
}

/// Starts it and waits until messages flow.
fn begin(place: &Place, words: &[&str]) -> Weighing {
    let mut all = vec!["compare"];
    all.extend(words);
    all.extend(["-c", "2", "--reps", "1", "--warmup", "0s", "--think", "1ms", "--timeout", "1s"]);
    let mut child = place.spawn(&all);
    let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
    let mut weighing = Weighing { child, stderr, heard: String::new() };
    weighing.hear("sent/s");
    weighing
}

impl Weighing {
    fn hear(&mut self, text: &str) {
        let from = self.heard.len();
        while !self.heard[from..].contains(text) {
            let count = self.stderr.read_line(&mut self.heard).expect("its stderr");
            assert!(count > 0, "it ended before it said {text:?}:\n{}", self.heard);
        }
    }

    fn end(mut self) -> Ended {
        self.stderr.read_to_string(&mut self.heard).expect("its stderr");
        let mut ended = wait(self.child);
        ended.stderr = self.heard;
        ended
    }
}

#[test]
fn ctrl_c_once_finishes_the_record() {
    let place = Place::new("once");
    let weighing = begin(&place, &["tcp", "http", "-d", "60s"]);
    signal("INT", weighing.child.id());
    let ended = weighing.end().with(130).saying(&["finishing the record"]);
    assert!(ended.stdout.contains("run: "), "the table is shown: {}", ended.stdout);
    let summary = place.summary();
    assert_eq!(summary["run"]["outcome"], "interrupted");
    let cells = summary["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 1, "the trial in progress is kept, the next never began");
    assert!(cells[0]["ledger"]["delivered"].as_u64() > Some(0));
    let warnings = cells[0]["doubts"].as_array().expect("doubts");
    assert!(warnings.iter().any(|warning| warning["code"] == "interrupted"), "{warnings:?}");
    place.nobody_is_left();
}

#[test]
fn ctrl_c_twice_ends_now() {
    let place = Place::new("twice");
    let mut weighing = begin(&place, &["mqtt", "-q", "1", "-d", "60s", "--json"]);
    signal("INT", weighing.child.id());
    weighing.hear("finishing the record");
    // It may be done with the first one already.
    let _ = std::process::Command::new("sh")
        .args(["-c", &format!("kill -INT {} 2>/dev/null", weighing.child.id())])
        .status();
    weighing.end().with(130);
    place.nobody_is_left();
}

#[test]
fn sigterm_is_143() {
    let place = Place::new("terminated");
    let weighing = begin(&place, &["http", "-d", "60s", "--json"]);
    signal("TERM", weighing.child.id());
    let ended = weighing.end().with(143);
    assert_eq!(ended.json()["run"]["outcome"], "interrupted");
    place.nobody_is_left();
}

#[test]
fn our_own_death_leaves_nobody_behind() {
    let place = Place::new("killed");
    let mut targets = vec!["mqtt"];
    if has("mosquitto") {
        targets.push("mosquitto");
    }
    for target in targets {
        let runs = format!("runs-{target}");
        let weighing = begin(&place, &[target, "-q", "1", "-d", "60s", "--runs", &runs]);
        assert!(place.processes().len() >= 2, "the program and its target");
        signal("KILL", weighing.child.id());
        let ended = weighing.end();
        assert_eq!(ended.code, None);
        place.nobody_is_left();
        // What was there is in the journal, and can be reported.
        let list = place.weigh(&["runs", "--runs", &runs, "--json"]).with(0).json();
        let id = list[0]["id"].as_str().expect("an id");
        assert_eq!(list[0]["outcome"], "unfinished");
        place.weigh(&["report", id, "--runs", &runs]).with(0);
    }
}

#[test]
fn a_target_that_dies_is_a_result() {
    let place = Place::new("target-dies");
    let mut targets = vec![("mqtt", "mqtt"), ("http", "http1")];
    if has("mosquitto") {
        targets.push(("mosquitto", "mqtt"));
    }
    for (target, protocol) in targets {
        let runs = format!("runs-{target}");
        let mut words = vec![target, "-d", "3s", "-R", "200/s", "--runs", &runs, "--json"];
        if protocol == "mqtt" {
            words.extend(["-q", "1"]);
        }
        let think = ["-c", "2", "--reps", "1", "--warmup", "0s", "--timeout", "1s"];
        let mut all = vec!["compare"];
        all.extend(&words);
        all.extend(think);
        let mut child = place.spawn(&all);
        let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
        let mut weighing = Weighing { child, stderr, heard: String::new() };
        weighing.hear("sent/s");
        signal("KILL", place.target(&weighing.child));
        let summary = weighing.end().with(0).json();
        let cell = &summary["cells"][0];
        let ledger = &cell["ledger"];
        let count = |name: &str| ledger[name].as_u64().unwrap_or(0);
        assert!(count("delivered") > 0, "{target}: what was measured is kept: {ledger}");
        assert!(count("lost") + count("not_sent") > 0, "{target}: {ledger}");
        let warnings = cell["doubts"].as_array().expect("doubts");
        assert!(
            warnings.iter().any(|warning| warning["code"] == "target-died"),
            "{target}: {warnings:?}"
        );
        place.nobody_is_left();
    }
}

#[test]
fn a_foreign_server_that_dies_is_a_result_too() {
    let place = Place::new("foreign-dies");
    let server = Server::start(&place, &["http"]);
    let words = ["compare", &server.url, "-R", "200/s", "-d", "3s", "-c", "2", "--json"];
    let mut all = words.to_vec();
    all.extend(["--reps", "1", "--warmup", "0s", "--timeout", "1s"]);
    let mut child = place.spawn(&all);
    let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
    let mut weighing = Weighing { child, stderr, heard: String::new() };
    weighing.hear("sent/s");
    let (code, _) = server.end("KILL");
    assert_eq!(code, None);
    let summary = weighing.end().with(0).json();
    let ledger = &summary["cells"][0]["ledger"];
    assert!(ledger["delivered"].as_u64() > Some(0), "{ledger}");
    assert!(ledger["not_sent"].as_u64() > Some(0) || ledger["lost"].as_u64() > Some(0), "{ledger}");
    place.nobody_is_left();
}

#[test]
fn a_real_server_in_the_foreground_ends_with_us() {
    if !has("mosquitto") {
        return;
    }
    let place = Place::new("start");
    let mut child = place.spawn(&["targets", "start", "mosquitto"]);
    let mut out = BufReader::new(child.stdout.take().expect("its stdout"));
    let mut said = String::new();
    until("it listens", || {
        out.read_line(&mut said).expect("its stdout");
        said.contains("listening on mqtt://127.0.0.1:")
    });
    signal("INT", child.id());
    wait(child).with(0);
    place.nobody_is_left();
}
