//! The storage pipeline as a target: every entry traced through its stages, counted where readings
//! are kept, and told when a stage dies.

use serde_json::Value;

use crate::rig::{Place, cells, figure, has_hosts, signal, until, wait, warnings};

/// The pieces of a message's way by the entry of this cell.
fn pieces(cell: &Value) -> Vec<String> {
    let stages: &[&str] = match cell["point"]["protocol"].as_str() {
        Some("mqtt") => &["generator.hop", "broker.hop", "gateway.hop", "api.hop", "store.hop"],
        Some("http1") => &["generator.hop", "api.gap", "api.hop", "store.hop"],
        _ => &["generator.hop", "store.gap", "store.hop"],
    };
    stages.iter().map(|stage| format!("stage.{stage}_time_ns.mean")).collect()
}

#[test]
fn every_entry_is_traced_to_the_store() {
    let place = Place::new("stages");
    let words = ["pipeline", "--set", "target.store=memory", "-n", "300", "-R", "600/s", "--json"];
    let summary = place.compare(&words).with(0).json();
    let protocols: Vec<&Value> =
        cells(&summary).iter().map(|cell| &cell["point"]["protocol"]).collect();
    assert_eq!(protocols, ["mqtt", "http1", "grpc"]);
    for cell in cells(&summary) {
        let ledger = &cell["ledger"];
        assert_eq!((&ledger["delivered"], &ledger["lost"]), (&300.into(), &0.into()), "{cell}");
        assert_eq!(ledger["acknowledged"], 300);
        assert_eq!(cell["guarantee"], "at least once");
        for code in ["stored-count-differs", "confirmed-not-stored", "ways-broken"] {
            assert!(!warnings(cell).contains(&code), "{}", cell["doubts"]);
        }
        assert_eq!(figure(cell, "stored_rows"), 300.0);
        // What it is made of is the whole: the ways of all messages are known.
        let whole = figure(cell, "delivery_time_ns.mean");
        let parts: f64 = pieces(cell).iter().map(|piece| figure(cell, piece)).sum();
        assert!((parts - whole).abs() < 0.002 * whole, "{parts} and {whole}: {cell}");
        assert!(figure(cell, "stage.store.cpu_us_per_message") > 0.0);
        assert!(figure(cell, "stage.store.memory_bytes.max") > 1e6);
        let stages: f64 = ["broker", "gateway", "api", "store"]
            .iter()
            .filter_map(|s| {
                cell["metrics"][format!("stage.{s}.cpu_us_per_message")]["value"].as_f64()
            })
            .sum();
        let all = figure(cell, "target_cpu_us_per_message");
        assert!((stages - all).abs() < 0.5 * all, "stages {stages} us, together {all} us");
    }
    place.nobody_is_left();
}

/// The rows of the database are what was delivered, warm-up and all.
#[test]
fn a_database_is_counted() {
    let place = Place::new("stages-rows");
    let words = ["pipeline@http", "-n", "200", "-R", "1000/s", "--warmup", "100ms", "--json"];
    let summary = place.compare(&words).with(0).json();
    let cell = &cells(&summary)[0];
    assert_eq!(cell["ledger"]["delivered"], 200, "{cell}");
    assert!(!warnings(cell).contains(&"stored-count-differs"), "{}", cell["doubts"]);
    assert_eq!(figure(cell, "stored_rows"), 300.0, "a tenth of a second before, at 1000/s");
    assert!(cell["scene"]["pipeline"].as_str().unwrap().ends_with("SQLite, durable"), "{cell}");
    place.nobody_is_left();
}

/// A path that delays is on the way to the first stage, and nowhere else.
#[test]
fn a_delay_is_told_where_it_is() {
    let test = "a_delay_is_told_where_it_is";
    if !has_hosts(test) {
        return;
    }
    let place = Place::new("stages-path");
    let words = ["pipeline@http", "--set", "target.store=memory", "--path", "delay=40ms"];
    let load = ["-n", "40", "-R", "100/s", "--json"];
    let summary = place.compare(&[&words[..], &load].concat()).with(0).json();
    let cell = &cells(&summary)[0];
    assert!(figure(cell, "stage.api.gap_time_ns.p50") >= 40e6, "{cell}");
    assert!(figure(cell, "stage.api.hop_time_ns.p50") < 40e6, "{cell}");
    assert!(figure(cell, "stage.store.hop_time_ns.p50") < 40e6, "{cell}");
    place.nobody_is_left();
}

/// The first process of this stage.
fn stage(place: &Place, name: &str) -> u32 {
    let mut found = None;
    until(name, || {
        let of_it = |line: &str| line.contains(&format!(" serve {name} "));
        found = place.processes().into_iter().find(|(_, line)| of_it(line)).map(|(pid, _)| pid);
        found.is_some()
    });
    found.expect("it was found")
}

#[test]
fn a_gateway_that_dies_is_named_and_what_it_owed_was_seen_last_at_the_broker() {
    let place = Place::new("stages-killed");
    let words = ["compare", "pipeline@mqtt", "--set", "target.store=memory", "-R", "200/s"];
    let load = ["-d", "2s", "--warmup", "0s", "--timeout", "1s", "--reps", "1", "--json"];
    let weighing = place.spawn(&[&words[..], &load].concat());
    let gateway = stage(&place, "gateway");
    let hops = || place.files_of_the_run().into_iter().find(|file| file.ends_with("store/hops"));
    until("something is stored", || {
        !place.runs().is_empty()
            && hops().is_some_and(|file| file.metadata().is_ok_and(|found| found.len() > 0))
    });
    signal("KILL", gateway);
    let summary = wait(weighing).with(0).json();
    let cell = &cells(&summary)[0];
    let died = cell["doubts"].as_array().unwrap().iter().find(|d| d["code"] == "target-died");
    let died = died.expect("it is told")["text"].as_str().unwrap().to_owned();
    assert!(died.contains("its gateway with signal 9"), "{died}");
    let ledger = &cell["ledger"];
    let lost = ledger["lost"].as_u64().unwrap();
    assert!(lost > 0 && ledger["delivered"].as_u64() > Some(0), "{ledger}");
    assert_eq!(ledger["last_seen"]["broker"], lost, "{ledger}");
    assert_eq!(ledger["causes"]["subscriber_disconnected"], lost, "{ledger}");
    assert_eq!(ledger["acked_not_delivered"], lost, "{ledger}");
    place.nobody_is_left();
}

#[test]
fn nobody_is_left_of_a_pipeline_whose_owner_is_killed() {
    let place = Place::new("stages-orphans");
    let words = ["compare", "pipeline@mqtt", "--set", "target.store=memory", "-R", "100/s"];
    let mut weighing = place.spawn(&[&words[..], &["-d", "60s"]].concat());
    stage(&place, "gateway");
    signal("KILL", weighing.id());
    weighing.wait().expect("it is gone");
    place.nobody_is_left();
}

#[test]
fn what_no_pipeline_can_be_is_refused_with_the_fix() {
    let place = Place::new("stages-refused");
    for (words, says) in [
        (&["pipeline@tcp"][..], "pipeline@mqtt, pipeline@http1, pipeline@grpc"),
        (&["pipeline@grpc", "--set", "target.batch=5"], "target.batch"),
        (&["pipeline@http", "--set", "target.stages=api", "--set", "target.batch=5"], "batches"),
        (&["pipeline@http", "--set", "target.stages=gateway,store"], "api,store"),
        (&["pipeline@grpc", "--set", "target.store=disk"], "sqlite"),
        (&["pipeline@mqtt", "--set", "target.broker=nginx"], "not an MQTT broker"),
        (&["pipeline", "-s", "64B"], "--body readings"),
        (&["pipeline@http", "--pattern", "hold"], "hold"),
        (&["mqtt", "--set", "target.store=memory"], "target.store"),
    ] {
        let ended = place.compare(words).with(2);
        assert!(ended.stderr.contains(says), "{words:?}: {}", ended.stderr);
    }
    place.nobody_is_left();
}
