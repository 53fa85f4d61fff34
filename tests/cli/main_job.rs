//! `weigh compare` without arguments: what it measures, that MQTT, HTTP and TCP are compared with
//! each other, and what it does where packets cannot be captured.

use serde_json::Value;

use crate::rig::{Place, has, has_hosts};
use crate::widths::fits;

/// Cases of the dry plan as their keys, without those of Mosquitto.
fn planned(place: &Place, more: &[&str]) -> (Value, Vec<Value>) {
    let words = ["compare", "--dry", "--force", "--save-plan", "plan.toml"];
    place.weigh(&[&words[..], more].concat()).with(0);
    let text = std::fs::read_to_string(place.folder().join("plan.toml")).unwrap();
    let plan: toml::Table = text.parse().unwrap();
    let plan = serde_json::to_value(plan).unwrap();
    let cases = plan["case"].as_array().expect("cases").clone();
    let of_reference = |case: &Value| case["target"].as_str() != Some("mosquitto");
    let cases = cases.into_iter().filter(of_reference).collect();
    (plan, cases)
}

#[test]
fn without_arguments_every_protocol_publishes_at_one_rate() {
    let place = Place::new("main-job-plan");
    let (_, cases) = planned(&place, &[]);
    let lane = |case: &Value| {
        let own = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
        let setting = |key: &str| case.get(key).map_or(String::new(), |own| format!(" {own}"));
        let settings = setting("mqtt.qos") + &setting("http1.keep_alive");
        format!("{} {}{settings}", own("protocol"), own("load.pattern"))
    };
    let expected = vec![
        "mqtt publish 0",
        "mqtt publish 1",
        "mqtt publish 2",
        "http1 publish",
        "http1 publish false",
        "tcp publish",
        "coap publish",
        "coap publish",
        "http2 publish",
        "grpc publish",
        "mqtt deliver 1",
    ];
    assert_eq!(cases.iter().map(lane).collect::<Vec<_>>(), expected);
    for case in &cases {
        assert_eq!(case["load.rate"], "2000/s", "{case}");
        assert_eq!(case["load.connections"], 100, "{case}");
    }
}

#[test]
fn flags_change_the_main_job() {
    let place = Place::new("main-job-flags");
    let (plan, cases) = planned(&place, &["-R", "50/s", "-n", "70", "-c", "3", "-q", "1"]);
    let qos: Vec<&Value> = cases.iter().filter_map(|case| case.get("mqtt.qos")).collect();
    assert_eq!(qos, [1, 1], "publish and deliver");
    assert!(cases.iter().all(|case| case["load.rate"] == "50/s"), "{cases:?}");
    assert_eq!(plan["load"]["messages"], 70);
    let (_, held) = planned(&place, &["--pattern", "hold"]);
    assert!(held.iter().all(|case| case["load.pattern"] == "hold"), "{held:?}");
    let named = ["mqtt", "http", "tcp"];
    let (_, named) = planned(&place, &named);
    let patterns: Vec<&str> =
        named.iter().filter_map(|case| case["load.pattern"].as_str()).collect();
    assert_eq!(patterns, ["deliver", "deliver", "deliver", "request", "request"]);
}

#[test]
fn mqtt_http_and_tcp_are_compared_with_each_other() {
    let place = Place::new("main-job");
    let words = ["compare", "-d", "300ms", "--warmup", "0s", "-R", "300/s", "-Q"];
    place.weigh(&words).with(0);
    let summary = place.summary();
    let comparisons = summary["comparisons"].as_array().expect("comparisons");
    let is_of = |one: &Value, name: &str| [&one["left"], &one["right"]].iter().any(|o| **o == name);
    let at_least_once = [
        "mqtt publish qos=1 on reference",
        "http1 publish on reference",
        "http1 publish keep_alive=false on reference",
        "tcp publish on reference",
    ];
    for (at, left) in at_least_once.iter().enumerate() {
        for right in &at_least_once[at + 1..] {
            let mut both = comparisons.iter().filter(|one| is_of(one, left) && is_of(one, right));
            let cost = both.find(|one| one["metric"] == "target_cpu_us_per_message");
            let cost = cost.unwrap_or_else(|| panic!("{left} and {right}: {comparisons:?}"));
            let reason = cost["reason"].as_str().unwrap_or_default();
            assert!(!reason.contains("patterns") && !reason.contains("guarantees"), "{cost}");
        }
    }
    let cells = summary["cells"].as_array().expect("cells");
    let is_counted = has_hosts("the main job");
    for cell in cells {
        let metric = |name: &str| cell["metrics"][name]["value"].as_f64();
        let name = cell["name"].as_str().unwrap_or_default();
        assert_eq!(metric("wire.bytes_per_message").is_some(), is_counted, "{name}");
        let is_kept = !name.contains("keep_alive=false");
        let memory = metric("target_memory_bytes_per_connection");
        assert_eq!(memory.is_some(), is_kept && has_proc(), "{name}: {memory:?}");
    }
    let on_mosquitto = |cell: &&Value| cell["target"].as_str().unwrap().contains("osquitto");
    assert_eq!(cells.iter().any(|cell| on_mosquitto(&cell)), has("mosquitto"));
    place.nobody_is_left();
    let names = cells.iter().map(|cell| {
        let name = cell["name"].as_str().unwrap_or_default().replace(" on reference", "");
        format!(" {} ", name.replace(" publish", "").replace(" deliver", ""))
    });
    let names: Vec<String> = names.collect();
    fits(&place, &["report", "latest"], &names);
    let shown = place.command(&["report", "latest"]).env("COLUMNS", "100").output();
    is_one_table(&String::from_utf8_lossy(&shown.expect("the program starts").stdout));
}

/// Messages that are published are the first group, those that are delivered another, and all
/// figures are in one table of at most 100 columns.
fn is_one_table(shown: &str) {
    let is_title = |line: &&str| line.contains("once, re") || matches!(*line, PUBLISH | DELIVER);
    let titles: Vec<&str> = shown.lines().filter(is_title).collect();
    let delivered = titles.iter().position(|title| *title == DELIVER).expect("deliveries");
    assert_eq!(titles[0], PUBLISH, "{titles:?}");
    assert!(titles[1..delivered].contains(&"at least once, reference"), "{titles:?}");
    assert!(titles[delivered..].contains(&"at least once, reference"), "{titles:?}");
    assert_eq!(shown.matches("protocol, target").count(), 1, "{shown}");
}

/// Where namespaces are forbidden, all else is measured, and one line says what is missing.
#[test]
fn without_namespaces_bytes_are_left_out_with_one_note() {
    let place = Place::new("main-job-forbidden");
    let forbidden = "echo 0 > /proc/sys/user/max_net_namespaces";
    let words = "compare --dry --save-plan plan.toml";
    let namespaces = ["--user", "--map-root-user"];
    let Some(ended) = place.weigh_after("main-job", &namespaces, forbidden, words) else { return };
    let ended = ended.with(0);
    let flat = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(flat.matches("bytes per message are left out").count(), 1, "{flat}");
    let plan = std::fs::read_to_string(place.folder().join("plan.toml")).unwrap();
    assert!(!plan.contains("wire = true"), "{plan}");
}

const PUBLISH: &str = "publish";

const DELIVER: &str = "deliver";

/// True if the kernel reports the memory of processes.
fn has_proc() -> bool {
    std::path::Path::new("/proc/self/smaps_rollup").exists()
}
