//! Every flag that describes a load, in a run that uses it.

use serde_json::Value;

use crate::rig::Place;

/// Runs it and gives the only cell.
fn cell(place: &Place, words: &[&str]) -> Value {
    let mut words = words.to_vec();
    words.push("--json");
    let document = place.compare(&words).with(0).json();
    assert_eq!(document["cells"].as_array().map(Vec::len), Some(1), "{document}");
    document["cells"][0].clone()
}

fn count(cell: &Value, name: &str) -> u64 {
    cell["ledger"][name].as_u64().unwrap_or(u64::MAX)
}

#[test]
fn every_arrival_is_made() {
    let place = Place::new("arrivals");
    place.write("trace.txt", "# due times\n0\n0.010\n0.020\n0.1\n");
    for (words, sent) in [
        (vec!["--arrival", "closed", "-n", "50"], Some(50)),
        (vec!["--arrival", "closed", "-n", "50", "--window", "4", "--think", "1ms"], Some(50)),
        (vec!["--arrival", "burst", "-n", "50"], Some(50)),
        (vec!["-R", "500/s", "-n", "50"], Some(50)),
        (vec!["--arrival", "constant", "-R", "50/100ms", "-d", "200ms"], Some(100)),
        (vec!["--arrival", "poisson", "-R", "500/s", "-n", "50"], Some(50)),
        (vec!["--arrival", "periodic", "-R", "20/s/client", "-d", "200ms"], Some(16)),
        (vec!["--arrival", "ramp:100ms", "-d", "200ms"], None),
        (vec!["--arrival", "steps:100/s@100ms,300/s@100ms"], Some(40)),
        (vec!["--arrival", "trace:trace.txt"], Some(4)),
    ] {
        let mut all = vec!["http", "--warmup", "0s"];
        all.extend(&words);
        if words[1].starts_with("steps") || words[1].starts_with("trace") {
            // They end by themselves: the rig would add a duration.
            all.splice(0..0, ["compare"]);
            all.extend(["-c", "4", "--reps", "1", "--json"]);
            let document = place.weigh(&all).with(0).json();
            assert_eq!(Some(count(&document["cells"][0], "sent")), sent, "{words:?}");
            continue;
        }
        let cell = cell(&place, &all);
        match sent {
            Some(sent) => assert_eq!(count(&cell, "sent"), sent, "{words:?}"),
            None => assert!(count(&cell, "sent") > 0, "{words:?}"),
        }
        assert_eq!(count(&cell, "lost"), 0, "{words:?}");
    }
}

#[test]
fn every_pattern_is_carried() {
    let place = Place::new("patterns");
    for (protocol, pattern) in [
        ("http", "request"),
        ("http", "publish"),
        ("http", "session"),
        ("tcp", "request"),
        ("tcp", "publish"),
        ("tcp", "session"),
        ("mqtt", "publish"),
        ("mqtt", "deliver"),
        ("mqtt", "session"),
    ] {
        let mut words = vec![protocol, "--pattern", pattern, "-n", "40"];
        if protocol == "mqtt" {
            words.extend(["-q", "1"]);
        }
        let cell = cell(&place, &words);
        assert_eq!(count(&cell, "sent"), 40, "{protocol} {pattern}");
        assert_eq!(count(&cell, "delivered"), 40, "{protocol} {pattern}");
        assert_eq!(cell["point"]["load.pattern"], pattern);
    }
    for protocol in ["mqtt", "http", "tcp"] {
        let words = [protocol, "--pattern", "hold", "-c", "20", "-d", "200ms", "--json"];
        let document = place.compare(&words).with(0).json();
        let held = &document["cells"][0]["metrics"]["connections_held"]["value"];
        assert_eq!(held.as_f64(), Some(20.0), "{protocol}");
    }
}

#[test]
fn every_topology_counts_its_pairs() {
    let place = Place::new("topologies");
    for (words, copies) in [
        (["-x", "4", "-y", "1"], 1),
        (["-x", "1", "-y", "4"], 4),
        (["-x", "4", "-y", "4"], 1),
        (["-x", "2", "-y", "3"], 3),
    ] {
        let mut all = vec!["mqtt", "-q", "1", "-n", "24"];
        all.extend(words);
        let cell = cell(&place, &all);
        assert_eq!(count(&cell, "messages"), 24, "{words:?}");
        assert_eq!(count(&cell, "delivered"), 24 * copies, "{words:?}");
    }
    let words = ["mqtt", "-q", "1", "-n", "24", "-x", "4", "-y", "4", "--topology", "fan-out"];
    assert_eq!(count(&cell(&place, &words), "delivered"), 96);
}

#[test]
fn every_body_is_sent() {
    let place = Place::new("bodies");
    place.write("lines.csv", "ph,ec\n6.1,1.8\n6.2,1.9\n");
    place.write("lines.jsonl", "{\"ph\": 6.1}\n{\"ph\": 6.2}\n");
    place.write("body.bin", "\u{1}\u{2}\u{3}binary");
    for body in [
        "readings",
        "text:hello",
        "template:{seq} of {client} at {time}, and some more text to make room for a mark of it",
        "lines:lines.csv",
        "lines:lines.jsonl",
        "file:body.bin",
    ] {
        let cell = cell(&place, &["mqtt", "-q", "1", "-n", "40", "--body", body]);
        assert_eq!(count(&cell, "delivered"), 40, "{body}");
        assert_eq!(count(&cell, "foreign"), 0, "{body}");
    }
    let cell = cell(&place, &["mqtt", "-q", "0", "-n", "40", "--body", "filler", "-s", "200B"]);
    assert_eq!(cell["metrics"]["body_bytes"]["value"].as_f64(), Some(200.0));
}

#[test]
fn bodies_too_small_for_a_mark_are_told_apart_by_order() {
    let place = Place::new("small");
    let cell = cell(&place, &["mqtt", "-q", "1", "-n", "40", "-s", "8B"]);
    assert_eq!(count(&cell, "delivered"), 40);
    let warnings = cell["doubts"].as_array().expect("doubts");
    assert!(warnings.iter().any(|warning| warning["code"] == "identity-by-order"), "{warnings:?}");
}

#[test]
fn totals_are_split_as_asked() {
    let place = Place::new("split");
    let words = ["tcp", "-n", "10", "-c", "4"];
    assert_eq!(count(&cell(&place, &words), "sent"), 10);
    let mut ceil = words.to_vec();
    ceil.extend(["--split", "ceil"]);
    assert_eq!(count(&cell(&place, &ceil), "sent"), 12);
}

#[test]
fn a_warm_up_is_in_no_figure() {
    let place = Place::new("warm-up");
    let words = ["tcp", "-R", "200/s", "-n", "20", "--warmup", "200ms"];
    assert_eq!(count(&cell(&place, &words), "sent"), 20);
}

#[test]
fn settings_are_set_and_recorded() {
    let place = Place::new("settings");
    let words = ["mqtt", "-q", "1", "-n", "40", "--set", "mqtt.version=5"];
    let cell = cell(&place, &words);
    assert_eq!(cell["point"]["mqtt.version"].to_string().trim_matches('"'), "5");
    let plan = std::fs::read_to_string(place.run().join("plan.toml")).expect("plan.toml");
    assert!(plan.contains("mqtt.version"), "{plan}");
}
