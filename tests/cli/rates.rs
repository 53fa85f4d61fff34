//! Rates that a target or a load does not reach: what is said of them, and what would lift them.

use serde_json::Value;

use crate::rig::Place;

fn cell(place: &Place, words: &[&str]) -> Value {
    let document = place.compare(words).with(0).json();
    document["cells"][0].clone()
}

fn metric(cell: &Value, name: &str) -> Option<f64> {
    cell["metrics"][name]["value"].as_f64()
}

/// The warning of this code.
fn warning<'c>(cell: &'c Value, code: &str) -> Option<&'c Value> {
    let warnings = cell["doubts"].as_array().expect("doubts");
    warnings.iter().find(|warning| warning["code"] == code)
}

/// Two connections with one request each are bound by their round trip: that is said with the
/// number of connections, and the generator is not blamed.
#[test]
fn two_connections_are_named_as_the_limit_and_not_the_generator() {
    let place = Place::new("two-connections");
    let words = ["http", "-c", "2", "-R", "200k/s", "-d", "500ms", "--timeout", "300ms", "--json"];
    let cell = cell(&place, &words);
    assert_eq!(warning(&cell, "generator-limited"), None, "{cell}");
    let short = warning(&cell, "rate-not-reached").expect("200,000/s cannot be reached");
    let text = short["text"].as_str().expect("text");
    assert!(text.contains("200,000/s offered"), "{text}");
    assert!(text.contains("2 connections x 1 in flight /"), "{text}");
    let advice = short["advice"].as_str().expect("advice");
    assert!(advice.starts_with("for 200,000/s use at least "), "{advice}");
    assert!(advice.contains("connections (-c "), "{advice}");
    let (offered, sent) = (200_000.0, metric(&cell, "throughput_in_per_s").expect("in/s"));
    let needed: f64 =
        advice.split(' ').nth(5).and_then(|n| n.replace(',', "").parse().ok()).unwrap();
    assert_eq!(needed, (2.0 * offered / sent).ceil(), "{advice}");
}

/// Where nobody but the reference server sees what arrives, it is asked when the load ends.
#[test]
fn what_only_the_server_sees_is_counted_when_the_load_ends() {
    let place = Place::new("unheard");
    let words = ["mqtt", "-q", "0", "--pattern", "publish", "-R", "2k/s", "-d", "2s", "--json"];
    let cell = cell(&place, &words);
    let (taken_in, out) =
        (metric(&cell, "throughput_in_per_s"), metric(&cell, "throughput_out_per_s"));
    let (taken_in, out) = (taken_in.expect("in/s"), out.expect("out/s"));
    assert!(out <= taken_in * 1.001 && out > 0.9 * taken_in, "in {taken_in}/s, out {out}/s");
}

/// All that is answered within the time are messages of the warm-up: it is no server that does not
/// answer, and what was never answered was not dropped by it either.
#[test]
fn a_rate_far_beyond_both_ends_is_not_blamed_on_the_server() {
    for words in [&["http"][..], &["mqtt", "-q", "0"]] {
        let place = Place::new("beyond");
        let load = ["-R", "4M/s", "-d", "300ms", "--warmup", "500ms", "--timeout", "300ms"];
        let all = [&["compare"], words, &load, &["--reps", "1", "--json"]].concat();
        let ended = place.weigh(&all).with(98).saying(&["nothing was measured"]);
        assert!(!ended.stderr.contains("check protocol"), "{}", ended.stderr);
        let ledger = &ended.json()["cells"][0]["ledger"];
        let count = |key: &str| ledger[key].as_u64().unwrap_or(0);
        assert_eq!((count("messages"), count("delivered")), (1_200_000, 0), "{words:?}: {ledger}");
        assert_eq!(count("sent") + count("not_sent"), count("messages"), "{words:?}: {ledger}");
        let causes = ledger["causes"].as_object().expect("causes");
        assert!(causes.keys().all(|cause| cause == "timeout"), "{words:?}: {ledger}");
    }
}
