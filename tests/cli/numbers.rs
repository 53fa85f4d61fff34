//! `weigh stats` on files of numbers whose answers are known.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::rig::{Place, wait};

fn with_file(name: &str, text: &str) -> Place {
    let place = Place::new("numbers");
    std::fs::write(place.folder().join(name), text).expect("a file");
    place
}

/// Lines `group,value` whose values are `base` times small steps about 1.
fn group(name: &str, base: f64) -> String {
    let steps = [0.98, 1.01, 1.0, 0.99, 1.02, 1.0, 0.97, 1.03, 1.005, 0.995];
    steps.iter().map(|step| format!("{name},{}\n", base * step)).collect()
}

#[test]
fn two_groups_are_compared_by_their_ratio() {
    let text = format!("server,ms\n{}{}", group("slow", 30.0), group("quick", 20.0));
    let place = with_file("times.csv", &text);
    let shown = place.weigh(&["stats", "times.csv"]).with(0).stdout;
    for part in ["slow, n = 10", "± 0.", "slow is 1.500 ± 0.0", "times quick", ": higher\n"] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let json = place.weigh(&["stats", "times.csv", "--json"]).with(0).json();
    let pair = &json["comparisons"][0];
    assert_eq!((&json["schema"], &pair["verdict"]), (&"weigh/stats/1".into(), &"higher".into()));
    assert!((pair["ratio"].as_f64().expect("a ratio") - 1.5).abs() < 1e-12);
    // Ties make the test a normal approximation; all 100 pairs are on one side.
    assert!(pair["mann_whitney_p"].as_f64().expect("p") < 0.001);
    let method = &json["groups"][0]["interval"]["method"];
    assert_eq!(method, "t over runs, corrected for skewness");
}

#[test]
fn levels_show_where_to_repeat() {
    let mut text = "host,run,ms\n".to_owned();
    for host in 0..4 {
        for run in 0..3 {
            text += &format!("h{host},r{run},{}\n", 100 + 10 * host + run);
        }
    }
    let place = with_file("levels.csv", &text);
    let shown = place.weigh(&["stats", "levels.csv", "--costs", "60,10,1"]).with(0).stdout;
    assert!(shown.contains("levels host > run > ms") && shown.contains("repeat here"), "{shown}");
    assert!(shown.contains("not repeated"), "each run has one value:\n{shown}");
    place.weigh(&["stats", "levels.csv", "--costs", "60"]).with(2).saying(&["one for each"]);
    let json = place.weigh(&["stats", "levels.csv", "--json"]).with(0).json();
    let group = &json["groups"][0];
    assert_eq!((&group["mean"], &group["levels"][0]["members"]), (&116.0.into(), &4.into()));
    assert_eq!(group["levels"][2]["variance"], Value::Null);
}

#[test]
fn what_the_numbers_cannot_carry_is_refused_with_the_reason() {
    let place = with_file("two.txt", "1.5\n2.5\n");
    let shown = place.weigh(&["stats", "two.txt"]).with(0).stdout;
    assert!(shown.contains("at least 3 repetitions are needed, 2 given"), "{shown}");
    let text: String = (0..200).map(|i| format!("{}\n", i * 7919 % 200)).collect();
    let mut child = {
        let mut command = place.command(&["stats", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    };
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("the numbers");
    drop(input);
    let shown = wait(child).with(0).stdout;
    assert!(shown.contains("p90") && !shown.contains("p99 "), "{shown}");
    assert!(
        shown.contains("0.99 needs at least 368 values in each repetition, there were 200"),
        "{shown}"
    );
}

#[test]
fn a_file_that_is_none_is_refused_with_line_and_fix() {
    let place = with_file("bad.csv", "a,1\nb,2ms\n");
    place.weigh(&["stats", "bad.csv"]).with(2).saying(&["bad.csv: line 2", "without units"]);
    place.weigh(&["stats", "none.csv"]).with(2).saying(&["none.csv"]);
    let many: String = (0..21).map(|run| format!("r{run},1\nr{run},2\n")).collect();
    std::fs::write(place.folder().join("runs.csv"), many).expect("a file");
    place.weigh(&["stats", "runs.csv"]).with(2).saying(&["21 groups", "--levels"]);
    place.weigh(&["stats", "runs.csv", "--levels"]).with(0);
    std::fs::write(place.folder().join("one.txt"), "1\n2\n3\n").expect("a file");
    place.weigh(&["stats", "one.txt", "--costs", "3"]).with(2).saying(&["no levels"]);
}
