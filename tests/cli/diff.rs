//! `weigh diff` on real runs: what a job of continuous integration sees.

use crate::rig::{Ended, Place};

/// A run of five short repetitions; its folder's name.
fn weigh(place: &Place, size: &str) -> String {
    let before = place.runs();
    let words = ["compare", "tcp", "-n", "300", "-c", "2", "--warmup", "0s", "--reps", "5"];
    place.weigh(&[&words[..], &["-s", size, "-Q"]].concat()).with(0);
    let new = place.runs().into_iter().find(|run| !before.contains(run)).expect("a run");
    new.file_name().expect("a name").to_string_lossy().into_owned()
}

fn judgement(ended: &Ended, index: usize) -> String {
    ended.json()["judgements"][index]["holds"].as_str().expect("a judgement").to_owned()
}

#[test]
fn two_runs_are_compared_by_every_name_that_they_have() {
    let place = Place::new("diff-names");
    let (a, b) = (weigh(&place, "128B"), weigh(&place, "128B"));
    let by_id = place.weigh(&["diff", &a, &b, "--json"]).with(0).json();
    assert_eq!((&by_id["schema"], &by_id["a"]["id"]), (&"weigh/diff/1".into(), &a.as_str().into()));
    assert!(by_id["rows"].as_array().is_some_and(|rows| rows.len() >= 3), "{by_id}");
    assert_eq!(by_id["doubts"], serde_json::json!([]));
    let [folder, journal, summary] =
        ["", "/journal.jsonl", "/summary.json"].map(|file| format!("runs/{a}{file}"));
    for name in ["latest~1", &folder, &journal, &summary] {
        let other = place.weigh(&["diff", name, "latest", "--json"]).with(0).json();
        assert_eq!(other["rows"], by_id["rows"], "{name}");
    }
    // What continuous integration keeps may be a folder with a summary alone.
    std::fs::create_dir(place.folder().join("kept")).expect("a folder");
    std::fs::copy(place.folder().join(&summary), place.folder().join("kept/summary.json"))
        .expect("a copy");
    assert_eq!(place.weigh(&["diff", "kept", &b, "--json"]).with(0).json()["rows"], by_id["rows"]);
    let several =
        place.weigh(&["diff", "latest,latest~1", "latest,latest", "--json"]).with(0).json();
    assert_eq!(
        (&several["rows"][0]["a"]["n"], &several["rows"][0]["b"]["n"]),
        (&2.into(), &2.into())
    );
    let text = place.weigh(&["diff", &a, &b]).with(0).stdout;
    for part in ["tcp ", "response_time_ns.p99", "times A", "Mann-Whitney"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let markdown = place.weigh(&["diff", &a, &b, "--markdown"]).with(0).stdout;
    assert!(markdown.contains("| case"), "{markdown}");
}

/// Forty times the bytes: whatever else the machine does, more bytes a second pass for a message
/// of 40 KiB than for one of 1 KiB, and the load is not the same.
#[test]
fn a_condition_that_holds_ends_with_99() {
    let place = Place::new("diff-conditions");
    let (small, large) = (weigh(&place, "1KiB"), weigh(&place, "40KiB"));
    let grown = ["diff", &small, &large, "--fail-if", "body_bytes > +5%", "--json"];
    let ended = place.weigh(&grown).with(99);
    assert_eq!(judgement(&ended, 0), "holds");
    assert_eq!(ended.json()["doubts"][0]["code"], "plans-differ");
    let shrunk = ["diff", &large, &small, "--fail-if", "body_bytes > +5%", "--json"];
    assert_eq!(judgement(&place.weigh(&shrunk).with(0), 0), "does not hold");
    let value =
        ["diff", &small, &large, "--fail-if", "loss > 0", "--fail-if", "body_bytes > 20KiB"];
    let text = place.weigh(&value).with(99).stdout;
    assert!(text.contains("HOLDS: body_bytes > 20KiB"), "{text}");
    assert!(text.contains("does not hold: loss > 0"), "{text}");
}

#[test]
fn what_cannot_be_told_is_98_unless_a_flag_decides() {
    let place = Place::new("diff-strict");
    for _ in 0..2 {
        place.compare(&["tcp", "-n", "300"]).with(0);
    }
    let asked = ["diff", "latest~1", "latest", "--fail-if", "response_time p(99) > +5%", "--json"];
    let ended = place.weigh(&asked).with(98).saying(&["undecided (exit code 98)"]);
    assert_eq!(judgement(&ended, 0), "cannot tell");
    place.weigh(&[&asked[..], &["--undecided", "pass"]].concat()).with(0);
    place.weigh(&[&asked[..], &["--undecided", "fail"]].concat()).with(99);
    place.weigh(&[&asked[..], &["--strict"]].concat()).with(99);
}

#[test]
fn nonsense_is_refused_with_the_fix() {
    let place = Place::new("diff-nonsense");
    place.weigh(&["diff", "latest", "latest"]).with(2).saying(&["only 0 runs", "--runs DIR"]);
    place.compare(&["tcp", "-n", "300"]).with(0);
    place.weigh(&["diff", "latest", "latest~1"]).with(2).saying(&["only 1 runs"]);
    place.weigh(&["diff", "latest", "none"]).with(2).saying(&["no such run", "newest run"]);
    let fail_if =
        |text: &str| place.weigh(&["diff", "latest", "latest", "--fail-if", text]).with(2);
    fail_if("response_tim_ns.p99 > +5%").saying(&["did you mean response_time"]);
    fail_if("response_time > +5%").saying(&["p(95)"]);
    fail_if("throughput_out_per_s == +5%").saying(&["use < or >"]);
    place.weigh(&["diff", "latest", "latest", "--strict"]).with(2).saying(&["--fail-if"]);
    place.weigh(&["diff", "latest", "latest", "--aa-limit", "3"]).with(2).saying(&["such as 3%"]);
    let text = place.weigh(&["diff", "latest", "latest"]).with(0).stdout;
    assert!(text.contains("same-run"), "{text}");
    place.write("other.json", "{\"schema\": \"weigh/summary/7\"}");
    place.weigh(&["diff", "other.json", "latest"]).with(2).saying(&["weigh/summary/7", "version"]);
}
