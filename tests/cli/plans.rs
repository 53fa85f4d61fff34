//! `weigh run`: plans from files, and the plan that `weigh compare` makes.

use std::path::Path;

use serde_json::Value;

use crate::rig::Place;

/// Four cases of a moment each.
const SMALL: &str = r#"
question = "Does it run?"

[load]
pattern = "publish"
duration = "100ms"
warmup = "0s"

[vary]
protocol = ["mqtt", "http"]
mqtt.qos = [0, 1]
load.connections = [1, 2]

[repeat]
at_least = 1
"#;

#[test]
fn a_plan_is_weighed_case_by_case() {
    let place = Place::new("plan");
    place.write("small.toml", SMALL);
    let ended = place.weigh(&["run", "small.toml"]).with(0);
    assert!(ended.stdout.contains("run: runs/"), "{}", ended.stdout);
    let summary = place.summary();
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6, "http has no QoS to be multiplied by");
    for cell in cells {
        let is_mqtt = cell["point"]["protocol"] == "mqtt";
        assert_eq!(cell["point"]["mqtt.qos"].is_u64(), is_mqtt, "{}", cell["point"]);
        assert!(cell["point"]["load.connections"].is_u64(), "{}", cell["point"]);
    }
    assert_eq!(summary["run"]["plan"]["question"], "Does it run?");
    assert_eq!(summary["run"]["plan"]["name"], "small");
    place.nobody_is_left();
}

#[test]
fn a_dry_run_tells_all_and_starts_nothing() {
    let place = Place::new("dry");
    place.write("small.toml", SMALL);
    let ended = place.weigh(&["run", "small.toml", "--dry"]).with(0);
    for part in
        ["6 cases", "6 trials", "mqtt.qos=1", "http1 publish", "about 1 s", "target reference"]
    {
        assert!(ended.stdout.contains(part), "{part} is not in\n{}", ended.stdout);
    }
    let dry = place.weigh(&["run", "small.toml", "--dry", "--json"]).with(0).json();
    assert_eq!(dry["cases"].as_array().map(Vec::len), Some(6));
    assert_eq!(dry["trials"]["most"], 6);
    let dry = place.weigh(&["compare", "mqtt", "--dry", "--json"]).with(0).json();
    assert_eq!(dry["trials"]["least"], 9);
    assert!(place.runs().is_empty());
}

#[test]
fn the_plan_of_a_comparison_can_be_run_again() {
    let place = Place::new("again");
    let words = ["mqtt", "tcp", "-q", "1", "-n", "20", "--name", "c", "--save-plan", "plan.toml"];
    place.compare(&words).with(0);
    let first = place.summary();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let saved = read(&place.folder().join("plan.toml"));
    let (heading, plan) = saved.split_once("\n\n").expect("a heading for editors");
    assert!(heading.starts_with("#:schema "), "{heading}");
    assert_eq!(plan, read(&place.run().join("plan.toml")), "it is the plan of the run");
    let again = place.folder().join("again.toml");
    let line = ["run", "plan.toml", "--dry", "--save-plan", "again.toml"];
    place.weigh(&line).with(0);
    assert_eq!(read(&again), saved, "a resolved plan resolves to itself");
    let second = place.weigh(&["run", "plan.toml", "--json", "--runs", "others"]).with(0).json();
    let points = |summary: &Value| -> Vec<Value> {
        summary["cells"].as_array().unwrap().iter().map(|cell| cell["point"].clone()).collect()
    };
    assert_eq!(points(&first), points(&second));
    place.nobody_is_left();
}

#[test]
fn the_same_plan_has_the_same_trials() {
    let place = Place::new("trials");
    place.write("small.toml", SMALL);
    let trials = |runs: &str| -> Vec<String> {
        let ended = place.weigh(&["run", "small.toml", "--quiet", "--runs", runs]).with(0);
        let folder = ended.stdout.lines().find_map(|line| line.strip_prefix("run: ")).unwrap();
        let journal = place.folder().join(folder).join("journal.jsonl");
        let text = std::fs::read_to_string(journal).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .filter(|line| line["event"] == "trial_started")
            .map(|line| line["trial"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(trials("one"), trials("two"));
}

#[test]
fn what_is_wrong_with_a_plan_is_shown_where_it_stands() {
    let place = Place::new("wrong-plan");
    for (name, plan, parts) in [
        (
            "keys.toml",
            "protocol = \"mqtt\"\n[load]\nsize = 64\nconections = 5\n",
            &[
                "2 errors",
                "nothing was started",
                "keys.toml:3:8",
                "type 64B",
                "keys.toml:4:1",
                "did you mean load.connections?",
                "^^^^^^^^^^",
            ][..],
        ),
        (
            "protocols.toml",
            "protocol = \"mqtt\"\nload.topology = \"pairs\"\nload.connections = 2\n\
             load.subscribers = 2\nmqtt.share = \"group\"\n",
            &["protocols.toml:5:14", "--topology shared"],
        ),
        (
            "files.toml",
            "protocol = \"tcp\"\nload.body = \"lines:none.csv\"\n",
            &["files.toml:2:13", "none.csv cannot be read"],
        ),
        (
            "sizes.toml",
            "protocol = \"tcp\"\nload.body = \"template:{seq}-is-long\"\nload.size = \"4B\"\n",
            &["sizes.toml:3:13", "more than the size of 4", "leave the size out"],
        ),
        (
            "filler.toml",
            "protocol = \"tcp\"\nload.body = \"filler\"\n",
            &["filler.toml:2:13", "load.size: a filler body needs a size", "give 64B"],
        ),
        ("far.toml", "target = \"mqtt://192.0.2.1\"\n", &["not this machine", "--i-may-load-this"]),
        (
            "ours.toml",
            "target = \"mqtt\"\n",
            &["\"mqtt\" is a protocol", "type protocol = \"mqtt\""],
        ),
        (
            "many.toml",
            "protocol = \"tcp\"\n[vary]\nload.connections = \"1..100 step 1\"\n\
             load.window = \"1..100 step 1\"\n[repeat]\nat_least = 100\n",
            &["1,000,000 trials", "--dry", "--yes"],
        ),
    ] {
        place.write(name, plan);
        let ended = place.weigh(&["run", name]);
        assert_eq!(ended.code, Some(2), "{name}: {}{}", ended.stdout, ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{name}: {part} is not in\n{}", ended.stderr);
        }
    }
    let ended = place.weigh(&["run", "nowhere.toml"]).with(2);
    assert!(ended.stderr.contains("nowhere.toml: cannot be read"), "{}", ended.stderr);
    place.write("ours.toml", "protocol = \"tcp\"");
    let ended = place.weigh(&["run", "ours.toml", "--user", "me"]).with(2);
    assert!(ended.stderr.contains("--user"), "{}", ended.stderr);
    assert!(place.runs().is_empty(), "nothing was run, so nothing is kept");
    place.nobody_is_left();
}

/// A sentence about a figure that trials have must never be refused as one about none.
#[test]
fn every_figure_of_a_summary_may_stand_in_a_threshold() {
    let place = Place::new("figures");
    place.compare(&["mqtt", "-q", "1", "-d", "300ms"]).with(0);
    let summary = place.summary();
    let metrics = summary["cells"][0]["metrics"].as_object().unwrap();
    let names: Vec<String> =
        metrics.keys().map(|name| format!("\"{name} >= 0{}\"", unit(name))).collect();
    assert!(names.len() > 20, "{names:?}");
    let plan = format!("protocol = \"mqtt\"\nthresholds = [{}]\n", names.join(", "));
    place.write("all.toml", &plan);
    place.weigh(&["run", "all.toml", "--dry"]).with(0);
}

/// The unit that a limit of this figure is written with.
fn unit(metric: &str) -> &'static str {
    let quantity = metric.split('.').next().unwrap_or_default();
    if quantity.ends_with("_ns") || quantity.ends_with("_time_s") { "s" } else { "" }
}

#[test]
fn secrets_are_neither_printed_nor_kept() {
    let place = Place::new("secret-plan");
    let plan = "protocol = \"mqtt\"\nload.duration = \"100ms\"\nload.warmup = \"0s\"\n\
                [mqtt]\nbroker_user = \"me\"\nbroker_password = \"hush-hush\"\nqos = 1\n\
                [repeat]\nat_least = 1\n";
    place.write("secret.toml", plan);
    let ended = place.weigh(&["run", "secret.toml"]).with(0);
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("hush-hush"));
    for name in ["plan.toml", "journal.jsonl", "summary.json"] {
        let text = std::fs::read_to_string(place.run().join(name)).unwrap();
        assert!(text.contains("broker_user") && !text.contains("hush-hush"), "{name}");
    }
    place.nobody_is_left();
}

#[test]
fn an_example_runs_as_it_stands() {
    let place = Place::new("example");
    let example = include_str!("../../examples/until-it-breaks.toml");
    place.write("until-it-breaks.toml", example);
    place.weigh(&["run", "until-it-breaks.toml"]).with(0);
    let summary = place.summary();
    let question = summary["run"]["plan"]["question"].as_str().unwrap();
    assert!(question.contains("How large a burst"), "{question}");
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells[0]["ledger"]["lost"], 0, "1,000 messages fit into a queue of 2,000");
    place.nobody_is_left();
}
