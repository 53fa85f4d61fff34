//! Real brokers: those that are installed carry messages and leave nobody behind, and whatever is
//! wrong with one is named.

use serde_json::Value;

use crate::rig::{Ended, Place, cells, figure, has};

/// The brokers that continuous integration installs; others are weighed where somebody has them.
const IN_CI: [&str; 2] = ["mosquitto", "nats-mqtt"];

/// Every broker of `targets/` that some package client fetches, and Mosquitto.
const BROKERS: [&str; 10] = [
    "aedes",
    "artemis",
    "ejabberd",
    "hivemq",
    "mochi",
    "moquette",
    "mosquitto",
    "nats-mqtt",
    "rabbitmq",
    "rmqtt",
];

#[test]
fn every_installed_broker_carries_a_hundred_messages_and_leaves_nobody() {
    let place = Place::new("brokers");
    let listed = place.weigh(&["targets"]).with(0).stdout;
    let is_missing = |name: &str| {
        let line = listed.lines().find(|line| line.split(' ').next() == Some(name));
        line.expect("every broker is listed").contains("not installed")
    };
    let mut installed = Vec::new();
    for name in BROKERS {
        if is_missing(name) {
            let must_be_there = std::env::var("CI").as_deref() == Ok("true");
            assert!(!must_be_there || !IN_CI.contains(&name), "{name} is missing in CI");
            println!("SKIPPED: {name} is not installed: weigh targets install {name}");
        } else {
            installed.push(name);
        }
    }
    if installed.is_empty() {
        return;
    }
    let mut arguments = vec!["compare"];
    arguments.extend(&installed);
    arguments.extend(["-q", "1", "-n", "100", "--warmup", "0s", "--reps", "1"]);
    place.weigh(&arguments).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), installed.len());
    for cell in cells(&summary) {
        let (ledger, name) = (&cell["ledger"], &cell["point"]["target"]);
        assert_eq!(ledger["delivered"], 100, "{name}: {ledger}");
        assert_eq!(ledger["lost"], 0, "{name}: {ledger}");
        // What a broker counts of its own includes these.
        if let Some(received) = cell["metrics"]["counter.received"]["value"].as_f64() {
            assert!(received >= 100.0, "{name}: {received}");
        }
    }
    place.nobody_is_left();
}

/// Mosquitto, as a package client would bring it.
const OWN: &str = r#"
name = "mine"
title = "Mine"
about = "a test"
speaks = [{ protocol = "mqtt", scheme = "mqtt", can = { qos = ["0", "1"] } }]
[find]
binaries = ["mosquitto"]
folders = ["/usr/sbin", "/usr/local/sbin"]
install = "weigh targets install mine --yes"
[package]
version = "1.2"
megabytes = 1
holds = ["done"]
[[package.file]]
name = "what"
text = "one"
[[package.step]]
run = ["cp", "what", "done"]
[[file]]
name = "own.conf"
text = """
user {user}
listener {port} {address}
allow_anonymous true
log_dest stderr
"""
[start]
arguments = ["-c", "{dir}/own.conf"]
[ready]
within = "20s"
[stop]
signal = "TERM"
grace = "5s"
[[profile]]
name = "defaults"
about = "as it comes"
"#;

/// The same with one thing changed.
fn own(from: &str, to: &str) -> String {
    assert!(OWN.contains(from), "{from}");
    OWN.replace(from, to)
}

struct Shop {
    place: Place,
}

impl Shop {
    fn new(name: &str, text: &str) -> Shop {
        let place = Place::new(name);
        std::fs::create_dir_all(place.folder().join("data/targets")).expect("a folder");
        place.write("data/targets/mine.toml", text);
        Shop { place }
    }

    fn weigh(&self, arguments: &[&str]) -> Ended {
        let mut command = self.place.command(arguments);
        command.args(["--data", "data"]).env("XDG_CACHE_HOME", self.place.folder().join("cache"));
        Ended::from(command.output().expect("the program starts"))
    }

    /// What lies where packages lie, but for the lock.
    fn shelf(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.place.folder().join("cache/weigh/targets"));
        let names = entries.into_iter().flatten().flatten();
        let mut names: Vec<String> =
            names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| !name.ends_with(".lock"));
        names
    }
}

#[test]
fn an_installation_is_told_done_tried_and_not_repeated() {
    if !has("mosquitto") {
        return;
    }
    let shop = Shop::new("install", OWN);
    let told = shop.weigh(&["targets", "install", "mine"]).with(0).stdout;
    for part in [
        "Mine 1.2 takes about 1 MB in ",
        "/mine-1.2\n",
        "  cp what done",
        "--yes to run these commands",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    assert!(shop.shelf().is_empty());
    let missing = shop.weigh(&["compare", "mine", "-q", "1", "-n", "5"]).with(2);
    missing.saying(&["not installed", "weigh targets install mine --yes"]);
    let done = shop.weigh(&["targets", "install", "mine", "--yes"]).with(0).stdout;
    assert!(done.contains("> cp what done") && done.contains("Mine 1.2 starts"), "{done}");
    assert_eq!(shop.shelf(), ["mine-1.2"]);
    let again = shop.weigh(&["targets", "install", "mine", "--yes"]).with(0).stdout;
    assert!(again.starts_with("Mine 1.2 is installed: "), "{again}");
    let arguments = ["compare", "mine", "-q", "1", "-n", "50", "--warmup", "0s", "--reps", "1"];
    shop.weigh(&arguments).with(0);
    assert_eq!(cells(&shop.place.summary())[0]["ledger"]["delivered"], 50);
    // Made by other files it is another package, though its version is the same.
    shop.place.write("data/targets/mine.toml", &own("text = \"one\"", "text = \"two\""));
    let told = shop.weigh(&["targets"]).with(0).stdout;
    assert!(told.contains("Mine, not installed"), "{told}");
    shop.weigh(&["targets", "install", "mine", "--yes"]).with(0);
    assert_eq!(shop.shelf(), ["mine-1.2"]);
    shop.place.nobody_is_left();
}

#[test]
fn what_cannot_be_installed_leaves_nothing() {
    if !has("mosquitto") {
        return;
    }
    for (from, to, code, said) in [
        (
            "[\"cp\", \"what\", \"done\"]",
            "[\"no-such-client\"]",
            3,
            "no-such-client, which is not installed",
        ),
        (
            "[\"cp\", \"what\", \"done\"]",
            "[\"cp\", \"nothing\", \"done\"]",
            3,
            "cannot stat 'nothing'",
        ),
        ("[\"cp\", \"what\", \"done\"]", "[\"true\"]", 3, "done is missing"),
        ("megabytes = 1", "megabytes = 1000000000000", 4, "free some space"),
        ("allow_anonymous true", "no_such_option 1", 3, "does not start"),
    ] {
        let shop = Shop::new("not-installed", &own(from, to));
        shop.weigh(&["targets", "install", "mine", "--yes"]).with(code).saying(&[said]);
        let left = if said == "does not start" { vec!["mine-1.2"] } else { vec![] };
        assert_eq!(shop.shelf(), left, "{said}");
        shop.place.nobody_is_left();
    }
}

#[test]
fn what_a_broker_cannot_do_is_left_out_or_refused() {
    if !has("mosquitto") {
        return;
    }
    let shop = Shop::new("cannot", OWN);
    shop.weigh(&["targets", "install", "mine", "--yes"]).with(0);
    let refused = shop.weigh(&["compare", "mine", "-q", "2", "-n", "5"]).with(2);
    refused.saying(&["mqtt.qos", "Mine cannot do 2", "give 0 or 1, or leave mine out"]);
    let plan = "[load]\nmessages = 5\n[mqtt]\nqos = 2\n[vary]\nprotocol = [\"mqtt\"]\n\
                target = [\"mine\"]\n";
    shop.place.write("plan.toml", plan);
    shop.weigh(&["run", "plan.toml"]).with(2).saying(&["Mine cannot do 2"]);
    let ended =
        shop.weigh(&["compare", "mine", "-n", "20", "--warmup", "0s", "--reps", "1"]).with(0);
    ended.saying(&["mine is left out: it does not support mqtt.qos = 2"]);
    assert_eq!(cells(&shop.place.summary()).len(), 2);
}

#[test]
fn a_start_that_fails_is_named_and_leaves_nobody() {
    if !has("mosquitto") {
        return;
    }
    let steps = "[[prepare]]\nwithin = \"1s\"\nrun = ";
    for (from, to, said) in [
        ("[start]", format!("{steps}[\"sleep\", \"1000\"]\n[start]"), "was not done within 1 s"),
        ("[start]", format!("{steps}[\"no-such-step\"]\n[start]"), "needs no-such-step"),
        ("[start]", format!("{steps}[\"false\"]\n[start]"), "ended with exit status 1"),
        (
            "listener {port} {address}",
            "listener 0 idle.sock".to_owned(),
            "did not accept connections on 127.0.0.1:",
        ),
    ] {
        let text = own(from, &to).replace("within = \"20s\"", "within = \"500ms\"");
        let shop = Shop::new("start", &text);
        shop.weigh(&["targets", "install", "mine", "--yes"]).with(3);
        let ended = shop.weigh(&["compare", "mine", "-q", "1", "-n", "5", "--reps", "1"]).with(3);
        ended.saying(&[said]);
        shop.place.nobody_is_left();
    }
}

/// A wrapper script whose program hangs, both when it is asked for its version and when it is to
/// serve.
#[test]
fn a_wrapper_script_that_hangs_leaves_no_child() {
    let place = Place::new("wrapper");
    let bin = place.folder().join("bin");
    std::fs::create_dir(&bin).expect("a folder for the script");
    let wrapper = bin.join("mosquitto");
    std::fs::write(&wrapper, "#!/bin/sh\nsleep 300\n").expect("the script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&wrapper, mode).expect("the script runs");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = place.command(&["compare", "mosquitto", "-q", "1", "-n", "5", "--reps", "1"]);
    let ended = Ended::from(
        command.env("PATH", format!("{}:{path}", bin.display())).output().expect("weigh starts"),
    );
    ended.with(3).saying(&["did not accept connections on 127.0.0.1:", "within 10 s"]);
    place.nobody_is_left();
}

/// The reference broker drops what exceeds its queue and says so in its count; without a limit it
/// loses nothing.
#[test]
fn a_stalled_subscriber_shows_what_confirmations_are_worth() {
    let place = Place::new("stalled");
    // 30 MB in all, which is more than the kernel's buffers hold of a connection.
    let load = ["-n", "1500", "-s", "20KB", "--reps", "1", "--timeout", "6s"];
    for (overload, loses) in [("drop-newest:50", true), ("unlimited", false)] {
        let mut arguments = vec!["compare", "mqtt", "--stalled-subscriber=3s"];
        arguments.extend(["--overload", overload]);
        arguments.extend(load);
        let ended = place.weigh(&arguments).with(0);
        assert!(ended.stdout.contains("stalled subscribers"), "{}", ended.stdout);
        let summary = place.summary();
        let cell = &cells(&summary)[0];
        let ledger = &cell["ledger"];
        let lost = ledger["acked_not_delivered"].as_u64().expect("a count");
        assert_eq!(lost > 0, loses, "{overload}: {ledger}");
        assert_eq!(figure(cell, "subscriber_stall_s"), 3.0);
        assert!(figure(cell, "target_memory_bytes.before") > 0.0);
        let dropped = ledger["causes"].get("server_dropped").and_then(Value::as_u64).unwrap_or(0);
        assert_eq!(dropped, lost, "{overload}: {ledger}");
        let _ = std::fs::remove_dir_all(place.run());
    }
    let closed = ["compare", "mqtt", "-q", "0", "--stalled-subscriber"];
    place.weigh(&closed).with(2).saying(&["--stalled-subscriber", "add a rate"]);
    let elsewhere = ["compare", "http", "--stalled-subscriber"];
    place.weigh(&elsewhere).with(2).saying(&["http"]);
}
