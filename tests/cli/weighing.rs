//! `weigh compare`: what it shows, prints and keeps.

use serde_json::Value;

use crate::rig::{Place, has, of_kind};

#[test]
fn the_main_job_weighs_every_lane_and_accounts_for_every_message() {
    let place = Place::new("main-job");
    let words = ["mqtt", "http", "tcp"];
    let ended = place.compare(&words).with(0);
    let title = ["at most once, reference", "at least once, reference", "exactly once, reference"];
    for text in title.iter().chain(&[
        "\ndeliver\n",
        " mqtt qos=2",
        "\nrequest\n",
        " http1",
        " tcp",
        "run: ",
    ]) {
        assert!(ended.stdout.contains(text), "{text} is not in\n{}", ended.stdout);
    }
    let summary = place.summary();
    let cells = summary["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 5);
    for cell in cells {
        let ledger = &cell["ledger"];
        let count = |name: &str| ledger[name].as_u64().unwrap_or(u64::MAX);
        assert_eq!(count("scheduled"), count("sent") + count("not_sent"), "{ledger}");
        assert_eq!(count("sent"), count("delivered") + count("late") + count("lost"), "{ledger}");
        assert!(count("sent") > 0 && count("lost") == 0, "{ledger}");
        for name in ["throughput_in_per_s", "target_memory_bytes.max", "send_lag_ns.max"] {
            let metric = &cell["metrics"][name];
            assert!(metric["value"].as_f64().is_some_and(|value| value >= 0.0), "{name}: {cell}");
            assert!(metric["low"].is_null() && metric["high"].is_null(), "{name}: {metric}");
        }
    }
    place.nobody_is_left();
}

#[test]
fn json_is_one_document_and_the_same_as_the_file() {
    let place = Place::new("json");
    let ended = place.compare(&["mqtt", "-q", "1", "--json"]).with(0);
    let document = ended.json();
    assert_eq!(document["schema"], "weigh/summary/1");
    assert_eq!(document["cells"].as_array().map(Vec::len), Some(1));
    let file = std::fs::read_to_string(place.run().join("summary.json")).expect("summary.json");
    assert_eq!(ended.stdout, file);
    assert!(
        ended.stderr.contains("weigh: trial 1 of 1"),
        "progress stays on stderr: {}",
        ended.stderr
    );
}

#[test]
fn quiet_is_quiet() {
    let place = Place::new("quiet");
    let ended = place.compare(&["tcp", "--quiet", "--json"]).with(0);
    assert_eq!(ended.stderr, "");
}

#[test]
fn the_table_knows_no_colour_where_nobody_sees_it() {
    let place = Place::new("colour");
    let mut command = place.command(&["compare", "tcp", "-n", "20", "--reps", "1"]);
    let ended = command.env("NO_COLOR", "1").output().expect("the program starts");
    assert!(!ended.stdout.contains(&0x1b) && !ended.stderr.contains(&0x1b));
}

#[test]
fn a_real_broker_stands_apart_from_the_reference() {
    if !has("mosquitto") {
        return;
    }
    let place = Place::new("mosquitto");
    let ended = place.compare(&["mqtt", "mosquitto", "-q", "1", "-n", "200"]).with(0);
    assert!(ended.stdout.contains("at least once, real"), "{}", ended.stdout);
    let summary = place.summary();
    let real = &summary["cells"][1];
    assert_eq!(real["point"]["target"], "mosquitto");
    assert!(real["target"].as_str().is_some_and(|title| title.starts_with("Mosquitto ")));
    let finished = place.of_kind("trial_finished");
    let trial = finished.iter().find(|trial| trial["point"]["target"] == "mosquitto");
    let counters = &trial.expect("the trial of the real broker")["counters"];
    assert!(counters["received"].as_f64().is_some_and(|n| n >= 200.0), "{counters}");
    place.nobody_is_left();
}

#[test]
fn nginx_is_weighed_by_its_name() {
    if !has("nginx") {
        return;
    }
    let place = Place::new("nginx");
    place.compare(&["http", "nginx", "-n", "100"]).with(0);
    assert_eq!(place.summary()["cells"].as_array().map(Vec::len), Some(2));
    place.nobody_is_left();
}

#[test]
fn the_overload_policy_is_the_cause_of_the_loss() {
    let place = Place::new("overload");
    let burst = ["-q", "0", "-x", "60", "-n", "20000", "--arrival", "burst", "-s", "1KiB"];
    let weigh = |policy: &str| {
        let mut words = vec!["mqtt", "--json", "--overload", policy, "--timeout", "2s"];
        words.extend(burst);
        place.compare(&words).with(0).json()
    };
    let kept = weigh("unlimited");
    assert_eq!(kept["cells"][0]["ledger"]["lost"], 0);
    let cut = weigh("drop-newest:1");
    let ledger = &cut["cells"][0]["ledger"];
    assert_eq!(ledger["lost"], ledger["causes"]["server_dropped"], "{ledger}");
    assert_eq!(cut["cells"][0]["point"]["mqtt.overload"], "drop-newest:1");
}

#[test]
fn a_seed_repeats_the_order_and_names_the_trials() {
    let place = Place::new("seed");
    let weigh = |runs: &str, seed: &str| {
        let words = ["http", "tcp", "--runs", runs, "--seed", seed, "-n", "20"];
        place.compare(&words).with(0);
        let runs = std::fs::read_dir(place.folder().join(runs)).expect("runs");
        let run = runs.flatten().next().expect("a run").path();
        let text = std::fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let started = of_kind(&lines, "trial_started");
        started.iter().map(|trial| trial["trial"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(weigh("one", "7"), weigh("two", "7"));
    assert_ne!(weigh("three", "7"), weigh("four", "8"));
}
