//! Runs that ended early and go on: nothing is lost, nothing is done twice, nobody is left behind.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{Ended, Place, has, of_kind, signal, until, wait};

/// Trials of a few milliseconds, enough of them to be killed in between.
const TINY: [&str; 12] =
    ["compare", "tcp", "http", "-n", "200", "-c", "2", "--warmup", "0s", "--reps", "12", "--quiet"];

impl Place {
    fn resume(&self, more: &[&str]) -> Ended {
        let mut all = vec!["run", "--resume", "latest", "--json"];
        all.extend(more);
        self.weigh(&all)
    }

    /// A run of this plan that died before its first trial.
    fn begun(&self, plan: Value) -> PathBuf {
        let folder = self.folder().join("runs/2026-11-21T01-02-03-begun");
        std::fs::create_dir_all(&folder).expect("a folder of a run");
        let host = json!({
            "kernel": "", "cpu": "", "cores": 1, "memory_bytes": 1, "governor": "",
            "clock_source": "", "congestion_control": "", "virtualisation": "",
        });
        let line = json!({
            "event": "run_started", "schema": "weigh/journal/1", "id": "2026-11-21T01-02-03-begun",
            "started": "2026-11-21T01:02:03Z", "version": "0.1.0", "host": host, "plan": plan,
        });
        std::fs::write(folder.join("journal.jsonl"), format!("{line}\n")).expect("a journal");
        folder
    }
}

fn plan(load: Value, repeat: Value, cases: Value) -> Value {
    let mut whole = json!({
        "pattern": "request", "connections": 2, "subscribers": 0, "topology": "fan-in",
        "messages": 200, "warmup": "0s", "arrival": "closed", "think": "0s", "split": "exact",
        "body": "readings", "timeout": "1s",
    });
    for (key, value) in load.as_object().expect("a table") {
        whole[key] = value.clone();
    }
    json!({ "name": "begun", "seed": 7, "load": whole, "repeat": repeat, "case": cases })
}

fn case(protocol: &str, target: &str, pattern: &str) -> Value {
    json!({
        "protocol": protocol, "target": target, "load.pattern": pattern, "load.connections": 2,
        "load.arrival": "closed",
    })
}

/// How often each trial has a result.
fn results(journal: &[Value]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for event in of_kind(journal, "trial_finished") {
        *counts.entry(event["trial"].to_string()).or_default() += 1;
    }
    counts
}

/// Kills a run of 24 tiny trials after this long, resumes it, and looks at everything.
fn killed_after(wait_ms: u64) {
    let place = Place::new(&format!("kill-{wait_ms}"));
    let child = place.spawn(&TINY);
    std::thread::sleep(Duration::from_millis(wait_ms));
    // It may have ended by now: then there is nothing left to do, and that must hold as well.
    let _ = std::process::Command::new("sh")
        .args(["-c", &format!("kill -KILL {} 2>/dev/null", child.id())])
        .status();
    wait(child);
    let begun = !place.runs().is_empty() && place.run().join("journal.jsonl").is_file();
    if !begun {
        return;
    }
    let path = place.run().join("journal.jsonl");
    let before = std::fs::read_to_string(&path).expect("a journal");
    if !before.contains('\n') {
        return;
    }
    let ended = place.resume(&["--quiet"]).with(0);
    let after = std::fs::read_to_string(&path).expect("a journal");
    let whole = &before[..before.rfind('\n').map_or(0, |at| at + 1)];
    assert!(after.starts_with(whole), "what was written stays as it was");
    let counts = results(&place.journal());
    assert_eq!(counts.len(), 24, "killed after {wait_ms} ms: {counts:?}");
    assert!(counts.values().all(|count| *count == 1), "killed after {wait_ms} ms: {counts:?}");
    let summary = ended.json();
    assert_eq!(summary["run"]["outcome"], "done");
    for cell in summary["cells"].as_array().expect("cells") {
        assert_eq!((&cell["repetitions"], &cell["ledger"]["lost"]), (&json!(12), &json!(0)));
    }
    assert!(!place.run().join("targets").exists(), "nothing is left of the targets");
    place.nobody_is_left();
}

#[test]
fn a_killed_run_goes_on_and_nothing_is_lost_or_done_twice() {
    (0..8).for_each(|step| killed_after(30 + 90 * step));
}

/// The same at fifty moments.
#[test]
#[ignore = "takes a minute: cargo test --test cli -- --ignored fifty"]
fn fifty_killed_runs_go_on() {
    (0..50).for_each(|step| killed_after(10 + 17 * step));
}

#[test]
fn an_interrupted_trial_is_done_again_and_only_the_whole_one_counts() {
    let place = Place::new("redone");
    let words = ["compare", "tcp", "-d", "1500ms", "--warmup", "0s", "-c", "2", "--reps", "2"];
    let child = place.spawn(&words);
    until("messages flow", || {
        place.runs().first().is_some_and(|run| {
            let journal = std::fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
            journal.contains("trial_started")
        })
    });
    std::thread::sleep(Duration::from_millis(500));
    signal("INT", child.id());
    wait(child).with(130);
    let codes = |summary: &Value| summary["cells"][0]["doubts"].to_string();
    assert!(codes(&place.summary()).contains("\"interrupted\""));
    let summary = place.resume(&[]).with(0).json();
    assert_eq!(summary["cells"][0]["repetitions"], 2);
    assert!(!codes(&summary).contains("\"interrupted\""), "{}", codes(&summary));
    let journal = place.journal();
    assert_eq!(of_kind(&journal, "trial_finished").len(), 3);
    assert_eq!(of_kind(&journal, "run_resumed").len(), 1);
    let outcomes = of_kind(&journal, "run_finished");
    let outcomes: Vec<&str> = outcomes.iter().filter_map(|e| e["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["interrupted", "done"]);
    // A run that is done has nothing left to do.
    place.resume(&[]).with(0);
    assert_eq!(of_kind(&place.journal(), "trial_finished").len(), 3);
}

#[test]
fn a_damaged_journal_is_said_and_only_what_is_lost_is_done_again() {
    let place = Place::new("damaged");
    place.weigh(&["compare", "tcp", "-n", "50", "--warmup", "0s", "--reps", "3"]).with(0);
    let path = place.run().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).expect("a journal");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = lines.iter().position(|line| line.contains("trial_finished")).expect("a result");
    lines[at] = lines[at].replacen("\"metrics\"", "metrics", 1);
    std::fs::write(&path, format!("{}\n{{\"event\":\"tri", lines.join("\n"))).expect("a journal");
    std::fs::write(place.run().join("plan.toml"), "name = \"another\"").expect("a plan");
    let line = format!("line {} is damaged", at + 1);
    place.weigh(&["report", "latest"]).with(0).saying(&[&line, "trial_finished of trial"]);
    let ended = place.resume(&[]).with(0);
    let torn = format!("line {} is incomplete and was removed", lines.len() + 1);
    let ended =
        ended.saying(&[&line, "all other lines are kept", &torn, "the plan in its journal"]);
    assert_eq!(ended.json()["cells"][0]["repetitions"], 3);
    let text = std::fs::read_to_string(&path).expect("a journal");
    assert_eq!(text.matches("\"event\":\"trial_finished\"").count(), 4, "one damaged, one more");
    lines[0] = "{}".to_owned();
    std::fs::write(&path, lines.join("\n")).expect("a journal");
    place.resume(&[]).with(2).saying(&["line 1, which holds the plan", "start a new one"]);
}

#[test]
fn what_cannot_be_resumed_is_refused_with_the_fix() {
    let place = Place::new("refused");
    place.resume(&[]).with(2).saying(&["there is no such run"]);
    place.weigh(&["run"]).with(2);
    place.weigh(&["run", "plan.toml", "--resume", "latest"]).with(2);
    let mut child = place.spawn(&["compare", "tcp", "-d", "60s", "--warmup", "0s", "--reps", "1"]);
    until("a run", || place.runs().first().is_some_and(|run| run.join("journal.jsonl").is_file()));
    place.resume(&[]).with(2).saying(&["another weigh process records into this run"]);
    child.kill().expect("it runs");
    wait(child);
    place.resume(&["--shards", "2"]).with(2).saying(&["--shards", "leave it out"]);
    let path = place.run().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).expect("a journal");
    std::fs::write(&path, text.replace("weigh/journal/1", "weigh/journal/7")).expect("a journal");
    let words = ["weigh/journal/7", "weigh/journal/1", "or later"];
    place.resume(&[]).with(2).saying(&words);
    place.weigh(&["report", "latest"]).with(2).saying(&words);
}

#[test]
fn passwords_are_asked_for_again() {
    let place = Place::new("secrets");
    let secret = "hush-hush";
    let mut all = vec!["compare", "mqtt", "-q", "1", "-n", "20", "--warmup", "0s", "--reps", "1"];
    let set = format!("mqtt.broker_password={secret}");
    all.extend(["--set", "mqtt.broker_user=me", "--set", &set]);
    place.weigh(&all).with(0);
    let path = place.run().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).expect("a journal");
    assert!(!text.contains(secret), "no password is written down");
    place.resume(&[]).with(2).saying(&["--set mqtt.broker_password=PASSWORD"]);
    place.resume(&["--set", "mqtt.qos=2"]).with(2).saying(&["leave it out"]);
    place.resume(&["--set", &set]).with(0);
}

#[test]
fn bodies_that_have_changed_are_refused() {
    let place = Place::new("material");
    place.write("body.txt", "one body of a run, long enough for a mark at its end, is this one");
    let body = ["compare", "tcp", "-n", "20", "--warmup", "0s", "--reps", "1", "--body"];
    let mut all = body.to_vec();
    all.push("file:body.txt");
    place.weigh(&all).with(0);
    place.resume(&[]).with(0);
    place.write("body.txt", "another body, which must not be mixed with the first, is this one");
    place.resume(&[]).with(2).saying(&["have changed", "start a new run"]);
}

/// Where a disk is full in the middle of a trial's lines, what is there stays readable, and the run
/// goes on once there is room. A limit on the size of files fills up like a disk.
#[test]
fn a_journal_that_fills_up_ends_the_run_and_room_lets_it_go_on() {
    let place = Place::new("filled");
    let words = "compare tcp -n 50 -c 2 --warmup 0s --reps 200 --quiet --json";
    let script = format!("trap '' XFSZ; ulimit -f 256; exec \"$WEIGH\" {words}");
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]).current_dir(place.folder());
    command.env("WEIGH", env!("CARGO_BIN_EXE_weigh")).env("WEIGH_CLI_TEST", place.mark());
    let ended = Ended::from(command.output().expect("bash starts"));
    ended.with(4).saying(&["journal.jsonl", "the measured results"]);
    let before = results(&place.journal());
    assert!(!before.is_empty() && before.len() < 200, "{} results", before.len());
    let summary = place.resume(&["--quiet"]).with(0).json();
    assert_eq!(summary["cells"][0]["repetitions"], 200);
    assert!(results(&place.journal()).values().all(|count| *count == 1));
    place.nobody_is_left();
}

/// What a kept server counted is told trial by trial, with one process for all of them.
#[test]
fn a_kept_target_is_one_process_and_its_counts_are_differences() {
    let place = Place::new("kept");
    let mut cases = vec![case("tcp", "reference", "request"), case("mqtt", "reference", "publish")];
    if has("mosquitto") {
        let mut real = case("mqtt", "mosquitto", "deliver");
        (real["mqtt.qos"], real["load.subscribers"]) = (json!(1), json!(1));
        cases.push(real);
    }
    let repeat = json!({ "at_least": 3, "target": "kept" });
    place.begun(plan(json!({}), repeat, Value::Array(cases.clone())));
    place.resume(&[]).with(0);
    let journal = place.journal();
    let finished = of_kind(&journal, "trial_finished");
    assert_eq!(finished.len(), 3 * cases.len());
    for trial in finished {
        assert_eq!((&trial["ledger"]["lost"], &trial["ledger"]["foreign"]), (&json!(0), &json!(0)));
        match trial["point"]["target"].as_str() {
            Some("mosquitto") => assert_eq!(trial["counters"]["received"], 200.0, "{trial}"),
            _ => {
                let server = &trial["server"];
                assert_eq!((&server["unique"], &server["connections"]), (&json!(200), &json!(2)));
                assert_eq!((&server["duplicates"], &server["foreign"]), (&json!(0), &json!(0)));
            }
        }
    }
    place.nobody_is_left();
}

#[test]
fn a_kept_target_that_dies_is_started_anew() {
    let place = Place::new("kept-dies");
    let load = json!({ "messages": null, "duration": "1500ms", "think": "5ms" });
    let repeat = json!({ "at_least": 2, "target": "kept" });
    place.begun(plan(load, repeat, json!([case("tcp", "reference", "request")])));
    let child = place.spawn(&["run", "--resume", "latest"]);
    let path = place.run().join("journal.jsonl");
    let begun = || std::fs::read_to_string(&path).unwrap_or_default().contains("trial_started");
    until("a trial", begun);
    std::thread::sleep(Duration::from_millis(400));
    let server = place.processes().into_iter().find(|(_, line)| line.contains(" serve "));
    signal("KILL", server.expect("a server").0);
    wait(child).with(0);
    let journal = place.journal();
    let finished = of_kind(&journal, "trial_finished");
    assert!(finished[0]["doubts"].to_string().contains("target-died"), "{}", finished[0]);
    assert!(finished[1]["doubts"].to_string().contains("target-restarted"), "{}", finished[1]);
    assert_eq!(finished[1]["ledger"]["lost"], 0);
}

/// The first round climbs, and what a stop rule leaves out is never weighed; the decision stands in
/// the journal and beside the cell.
#[test]
fn an_axis_is_left_where_its_rule_holds() {
    let place = Place::new("axis");
    let value = |connections: u32| {
        let mut case = case("tcp", "reference", "request");
        case["load.connections"] = json!(connections);
        case
    };
    let mut plan = plan(json!({}), json!({ "at_least": 2 }), json!([4, 1, 2].map(value)));
    plan["stop"] = json!({ "load.connections": ["response_time p(50) > 1ns"] });
    place.begun(plan);
    let summary = place.resume(&[]).with(0).saying(&["load.connections ends at 1"]).json();
    let cells = summary["cells"].as_array().expect("cells");
    assert_eq!((cells.len(), &cells[0]["repetitions"]), (1, &json!(2)));
    assert!(cells[0]["doubts"].to_string().contains("axis-ended"));
    let journal = place.journal();
    let ended = of_kind(&journal, "axis_ended");
    assert_eq!((ended.len(), &ended[0]["not_weighed"]), (1, &json!([2, 4])));
}

#[test]
fn a_budget_ends_the_run_in_time_and_says_so() {
    let place = Place::new("budget");
    let load = json!({ "messages": null, "duration": "100ms" });
    let repeat = json!({ "at_least": 100, "budget": "1s" });
    place.begun(plan(load, repeat, json!([case("tcp", "reference", "request")])));
    let summary = place.resume(&[]).with(0).saying(&["the time budget is used"]).json();
    assert_eq!(summary["run"]["outcome"], "done");
    assert!(summary["cells"][0]["doubts"].to_string().contains("budget-spent"));
    let journal = place.journal();
    let spent = of_kind(&journal, "budget_spent");
    let done = results(&journal).len() as u64;
    assert!((1..=10).contains(&done), "{done} trials of 100 ms in a second");
    assert_eq!(spent[0]["left"].as_u64(), Some(100 - done));
}
