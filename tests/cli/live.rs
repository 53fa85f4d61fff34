//! A run's journal while a trial runs: its intervals are there before its result, and stay there
//! where the program is killed.

use std::path::Path;
use std::process::Child;

use serde_json::Value;

use crate::rig::{Place, cells, signal, until, wait};

/// A trial of two threads, long enough to be looked at, of which nothing is over yet.
const LONG: [&str; 10] =
    ["compare", "tcp", "-d", "12s", "--warmup", "500ms", "-c", "4", "--shards", "2"];

impl Place {
    /// Whole lines of the only run's journal of this kind, up to now.
    fn lines(&self, kind: &str) -> Vec<Value> {
        let runs = self.runs();
        let text = runs.first().and_then(|run| std::fs::read_to_string(run.join(JOURNAL)).ok());
        let text = text.unwrap_or_default();
        let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
        let events = whole.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        events.filter(|event: &Value| event["event"] == kind).collect()
    }

    /// A trial that has left this many intervals, and has no result.
    fn trial_with(&self, intervals: usize, words: &[&str]) -> Child {
        let child = self.spawn(words);
        until("intervals of a trial", || self.lines("interval").len() >= intervals);
        assert!(self.lines("trial_finished").is_empty(), "the trial runs");
        child
    }
}

#[test]
fn a_journal_shows_a_trial_while_it_runs() {
    let place = Place::new("live");
    let child = place.trial_with(3, &[&LONG[..], &["--reps", "1"]].concat());
    let before = place.lines("interval");
    until("more intervals", || place.lines("interval").len() > before.len());
    signal("INT", child.id());
    wait(child).with(130);
    let intervals = place.lines("interval");
    assert_eq!(intervals[..before.len()], before, "what was written stays");
    let (finished, id) = (&place.lines("trial_finished")[0], &intervals[0]["trial"]);
    assert!(intervals.iter().all(|own| own["trial"] == *id) && finished["trial"] == *id);
    let kinds: Vec<String> = place.journal().iter().map(|own| own["event"].to_string()).collect();
    let place_of = |kind: &str| kinds.iter().position(|own| own.contains(kind)).expect(kind);
    let begun = place_of("trial_started");
    let all_between = &kinds[begun + 1..=begun + intervals.len()];
    assert!(all_between.iter().all(|kind| kind == "\"interval\""), "{kinds:?}");
    assert!(place_of("trial_finished") > begun + intervals.len());
    let ends: Vec<u64> = intervals.iter().filter_map(|own| own["at_ns"].as_u64()).collect();
    assert!(ends.windows(2).all(|pair| pair[0] < pair[1]), "{ends:?}");
    assert!(intervals[0]["warmup"] == true && intervals.last().unwrap()["warmup"] == false);
    // Each has what both threads did, and what was seen of the target.
    let sum = |key: &str, is_warmup: bool| -> u64 {
        let own = intervals.iter().filter(|own| own["warmup"] == is_warmup);
        own.filter_map(|own| own[key].as_u64()).sum()
    };
    let ledger = &finished["ledger"];
    assert!(sum("sent", true) > 0);
    let acknowledged = sum("acknowledged", true) + sum("acknowledged", false);
    assert!(acknowledged >= ledger["acknowledged"].as_u64().unwrap(), "{ledger}");
    let watched = intervals.iter().filter(|own| own["target_cpu_percent"].is_number()).count();
    assert!(watched + 2 >= intervals.len(), "{watched} of {}", intervals.len());
    assert!(intervals.iter().rev().skip(1).all(|own| own["connections"] == 4), "{intervals:?}");
    place.nobody_is_left();
}

/// What a killed trial left is read, and counts no more once its repetition has a result: all is as
/// if it had never been there.
#[test]
fn a_killed_trial_leaves_its_intervals_and_they_are_not_mixed_with_those_of_the_next() {
    let place = Place::new("live-killed");
    let words = ["compare", "tcp", "-d", "1500ms", "--warmup", "0s", "-c", "2", "--reps", "2"];
    let child = place.trial_with(5, &words);
    signal("KILL", child.id());
    wait(child);
    let (left, started) = (place.lines("interval"), place.lines("trial_started"));
    assert!(left.len() >= 5 && place.lines("trial_finished").is_empty());
    assert!(started.len() == 1 && left.iter().all(|own| own["trial"] == started[0]["trial"]));
    let run = place.run();
    let report = |run: &Path| -> Value {
        let words = ["report", &*run.to_string_lossy(), "--json"];
        let mut document = place.weigh(&words).json();
        document["run"]["id"] = Value::Null;
        document
    };
    assert!(cells(&report(&run)).is_empty(), "nothing was measured whole");
    let resumed = place.weigh(&["run", "--resume", "latest", "--json"]).with(0).json();
    assert_eq!((&resumed["run"]["outcome"], cells(&resumed).len()), (&"done".into(), 1));
    assert_eq!(cells(&resumed)[0]["repetitions"], 2);
    let text = std::fs::read_to_string(run.join(JOURNAL)).expect("a journal");
    let lines: Vec<&str> = text.lines().collect();
    let is_begin = |line: &&&str| line.contains("\"trial_started\"");
    assert_eq!(lines.iter().filter(is_begin).count(), 3, "one of them twice");
    let is_resumed = |line: &&str| line.contains("\"run_resumed\"");
    let resumed_at = lines.iter().position(is_resumed).expect("it was resumed");
    let begin = lines.iter().position(|line| is_begin(&line)).expect("it was begun");
    let unscathed = [&lines[..begin], &lines[resumed_at..]].concat().join("\n") + "\n";
    let copy = place.folder().join("copy");
    std::fs::create_dir(&copy).expect("a folder");
    std::fs::write(copy.join(JOURNAL), unscathed).expect("a journal");
    assert_eq!(report(&run), report(&copy));
    let series = |run: &Path| {
        let words = ["export", &*run.to_string_lossy(), "--format", "intervals"];
        place.weigh(&words).with(0).stdout
    };
    assert_eq!(series(&run), series(&copy));
    assert!(series(&run).lines().count() > 2 * 12, "{}", series(&run));
    place.nobody_is_left();
}

const JOURNAL: &str = "journal.jsonl";
