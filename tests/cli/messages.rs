//! The record of single messages, and the formats of other tools that need it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::exports::{export, rows};
use crate::rig::Place;

/// The rows of `weigh export --format messages` by cell and state.
fn states(place: &Place) -> BTreeMap<(String, String), u64> {
    let mut states = BTreeMap::new();
    for row in rows(&export(place, "messages")) {
        *states.entry((row["cell"].clone(), row["state"].clone())).or_default() += 1;
    }
    states
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Every row of every trial, by state, is what the ledger says: two protocols, three guarantees.
#[test]
fn single_messages_add_up_to_the_ledger() {
    let place = Place::new("messages");
    let ended = place.compare(&["mqtt", "http", "-n", "3000", "--keep-messages"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let states = states(&place);
    let summary = place.summary();
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let name = cell["name"].as_str().unwrap().to_owned();
        let delivered = states[&(name, "delivered".to_owned())];
        assert_eq!(delivered, count(&cell["ledger"]["delivered"]), "{cell}");
        assert_eq!(delivered, 3000);
    }
    assert_eq!(states.values().sum::<u64>(), 12_000);
}

/// What an overloaded broker drops stands in the record one by one, to every subscriber.
#[test]
fn lost_messages_are_named_one_by_one() {
    let place = Place::new("lost");
    let arguments = ["mqtt", "-q", "0", "-x", "1", "-y", "3", "-n", "4000", "--arrival", "burst"];
    let more = ["--overload", "drop-newest:20", "--timeout", "1s", "--keep-messages"];
    let ended = place.compare(&[&arguments[..], &more[..]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ledger = place.summary()["cells"][0]["ledger"].clone();
    let rows = rows(&export(&place, "messages"));
    let with = |state: &str| rows.iter().filter(|row| row["state"] == state).count() as u64;
    assert_eq!(rows.len() as u64, count(&ledger["scheduled"]));
    assert_eq!(with("delivered"), count(&ledger["delivered"]));
    assert_eq!(with("lost"), count(&ledger["lost"]));
    assert!(with("lost") > 0, "{ledger}");
    let mut pairs: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["sequence"].as_str(), row["consumer"].as_str())).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs.len(), 12_000, "every pair has exactly one row");
    let lost = rows.iter().find(|row| row["state"] == "lost").unwrap();
    assert_eq!((lost["delivered_ns"].as_str(), lost["body_bytes"].as_str()), ("", "126"));
    assert!(!lost["due_ns"].is_empty() && !lost["cause"].is_empty(), "{lost:?}");
}

#[test]
fn jmeter_results_have_a_line_for_each_message_that_was_sent() {
    let place = Place::new("jtl");
    let ended = place.compare(&["tcp", "-n", "500", "--keep-messages"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let rows = rows(&export(&place, "jtl"));
    assert_eq!(rows.len(), 500);
    for row in rows {
        let started = row["timeStamp"].parse::<u64>().unwrap();
        assert!(started > 1_700_000_000_000, "milliseconds since 1970: {started}");
        assert_eq!((row["success"].as_str(), row["responseCode"].as_str()), ("true", "200"));
        assert_eq!(row["allThreads"], "4");
    }
}

/// A disk that was full for one trial costs that trial's messages and no other's.
#[test]
fn a_trial_without_a_file_is_left_out_and_named() {
    let place = Place::new("one-missing");
    let arguments = ["compare", "tcp", "-c", "2", "-n", "50", "--reps", "2", "--warmup", "0s"];
    let ended = place.weigh(&[&arguments[..], &["--keep-messages"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let run = place.run();
    let file = std::fs::read_dir(run.join("messages")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&file).unwrap();
    let ended = place.weigh(&["export", &run.to_string_lossy(), "--format", "messages"]);
    assert_eq!((ended.code, rows(&ended.stdout).len()), (Some(0), 50), "{}", ended.stderr);
    let trial = file.file_stem().unwrap().to_string_lossy().into_owned();
    assert!(ended.stderr.contains(&trial), "{}", ended.stderr);
}

#[test]
fn without_a_record_the_fix_is_said() {
    let place = Place::new("no-messages");
    place.compare(&["tcp", "-n", "10"]);
    let run = place.run();
    let ended = place.weigh(&["export", &run.to_string_lossy(), "--format", "jtl"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("--keep-messages"), "{}", ended.stderr);
    let ended = place.weigh(&["export", "nothing", "--format", "jtl"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(!run.join("messages").exists());
}
