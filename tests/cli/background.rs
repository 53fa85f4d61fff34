//! A background load: it covers the window, its figures stand apart, and
//! where it was not there that is said.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::rig::{Place, cells, figure, has, of_kind, signal, until, wait, warnings};

/// A small load of requests, above what is said of its background.
fn plan(place: &Place, protocol: &str, background: &str, repetitions: u32) {
    place.write(
        "plan.toml",
        &format!(
            "protocol = \"{protocol}\"\n[load]\npattern = \"request\"\nconnections = 2\n\
             rate = \"200/s\"\nduration = \"500ms\"\nwarmup = \"100ms\"\n[background]\n\
             lead = \"200ms\"\n{background}\n[repeat]\nat_least = {repetitions}\n"
        ),
    );
}

/// A server of another protocol on the same cores: every case with it and without, the background
/// there before the window and after it, and nothing of it in what was measured.
#[test]
fn every_case_is_weighed_with_it_and_without_and_its_figures_stand_apart() {
    let place = Place::new("background");
    let load = "protocol = \"mqtt\"\nload = { publishers = 20, rate = \"50/s/client\", \
                pattern = \"publish\", size = \"64B\" }";
    plan(&place, "tcp", load, 2);
    place.weigh(&["run", "plan.toml", "--quiet"]).with(0);
    let summary = place.summary();
    let [off, on] = &cells(&summary)[..] else { panic!("{summary}") };
    assert_eq!(
        (&off["point"]["background"], &on["point"]["background"]),
        (&"off".into(), &"on".into())
    );
    let of_background = |cell: &Value| -> Vec<String> {
        let names = cell["metrics"].as_object().expect("metrics").keys();
        names.filter(|name| name.starts_with("background.")).cloned().collect()
    };
    assert_eq!(of_background(off), Vec::<String>::new());
    assert!(of_background(on).contains(&"background.sent_per_s".to_owned()));
    assert!(figure(on, "background.overlap_ratio") > 0.0);
    for cell in [off, on] {
        // Two trials of half a second at 200 a second; the background sent ten times as much.
        assert_eq!(cell["ledger"]["scheduled"], 200, "{}", cell["ledger"]);
        assert!(!warnings(cell).contains(&"server-count-differs"));
    }
    let told = &summary["interference"][0];
    assert_eq!((&told["cell"], &told["baseline"]), (&on["name"], &off["name"]));
    assert_eq!(told["offered_per_s"], 1_000.0);
    assert!(told["ledger"]["sent"].as_u64() > Some(1_000), "{told}");
    let paired = summary["comparisons"].as_array().expect("comparisons").iter();
    let paired: Vec<&Value> = paired.filter(|own| own["factor"] == "background").collect();
    assert!(!paired.is_empty());
    assert!(paired.iter().all(|own| own["left"] == on["name"] && own["right"] == off["name"]));
    let journal = place.journal();
    let ran = of_kind(&journal, "background_ran");
    assert_eq!(ran.len(), 2);
    for own in ran {
        let intervals = own["intervals"].as_array().expect("intervals");
        let at = |interval: Option<&Value>, key: &str| interval.and_then(|own| own[key].as_i64());
        assert!(at(intervals.first(), "from_ns") < Some(0), "{own}");
        assert!(at(intervals.last(), "to_ns") >= own["window_ns"].as_i64(), "{own}");
    }
    let report = place.weigh(&["report", "latest"]).with(0);
    assert!(report.stdout.contains("with a background, minus the baseline"), "{}", report.stdout);
    place.nobody_is_left();
}

/// At the measured server itself: its own counts are of both, and say nothing of one.
#[test]
fn at_the_measured_target_the_ledger_stays_that_of_what_was_measured() {
    let place = Place::new("background-same");
    let load = "target = \"same\"\nprotocol = \"http1\"\nbaseline = false\n\
                load = { connections = 3, rate = \"300/s\" }";
    plan(&place, "http1", load, 1);
    place.weigh(&["run", "plan.toml", "--quiet"]).with(0);
    let summary = place.summary();
    let [on] = &cells(&summary)[..] else { panic!("{summary}") };
    assert_eq!((&on["ledger"]["scheduled"], &on["ledger"]["foreign"]), (&100.into(), &0.into()));
    assert!(!warnings(on).contains(&"server-count-differs"), "{on}");
    assert!(on["metrics"].get("target_cpu_us_per_message").is_none());
    assert_eq!(summary["interference"][0]["baseline"], Value::Null);
    assert!(summary["interference"][0]["ledger"]["sent"].as_u64() > Some(100), "{summary}");
    place.nobody_is_left();
}

/// Its server answers so many requests and then none: the background was there for a part of the
/// window, which is said, and what was measured is kept.
#[test]
fn a_background_that_ends_early_is_a_warning() {
    let place = Place::new("background-early");
    let address = answers(60);
    let load = format!(
        "protocol = \"http1\"\ntarget = \"http://{address}\"\nbaseline = false\n\
         load = {{ connections = 1, rate = \"100/s\", timeout = \"500ms\" }}"
    );
    plan(&place, "tcp", &load, 1);
    place.weigh(&["run", "plan.toml", "--quiet"]).with(0);
    let summary = place.summary();
    let [on] = &cells(&summary)[..] else { panic!("{summary}") };
    assert!(figure(on, "background.overlap_ratio") < 0.99, "{on}");
    let told = warnings(on);
    assert!(told.contains(&"background-overlap") && told.contains(&"background-rate"), "{told:?}");
    assert_eq!(on["ledger"]["lost"], 0);
    place.nobody_is_left();
}

/// It ends by its own number of messages, long before the window does: how much of the window it
/// covered is told, and all of its messages are in its own ledger.
#[test]
fn a_background_of_so_many_messages_is_over_before_the_window() {
    let place = Place::new("background-counted");
    let load = "protocol = \"http1\"\nbaseline = false\n\
                load = { connections = 1, rate = \"200/s\", messages = 90 }";
    plan(&place, "tcp", load, 1);
    place.weigh(&["run", "plan.toml", "--quiet"]).with(0);
    let summary = place.summary();
    let [on] = &cells(&summary)[..] else { panic!("{summary}") };
    let covered = figure(on, "background.overlap_ratio");
    assert!(covered < 0.99, "{on}");
    assert!(warnings(on).contains(&"background-overlap"), "{on}");
    let journal = place.journal();
    let [ran] = &of_kind(&journal, "background_ran")[..] else { panic!("{journal:?}") };
    assert_eq!(ran["ledger"]["sent"], 90, "{ran}");
    assert!(ran["words"].as_str().unwrap().ends_with("over after 90 messages"), "{ran}");
    place.nobody_is_left();
}

/// An HTTP server that answers this many requests, and then closes and takes nobody any more.
fn answers(count: u32) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let left = Arc::new(AtomicU32::new(count));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (mut stream, mut seen) = (stream, Vec::new());
            let mut block = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut block) {
                seen.extend_from_slice(&block[..length]);
                // Bodies are readings: of the request only its head has an empty line.
                while let Some(at) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
                    let head = String::from_utf8_lossy(&seen[..at]).to_lowercase();
                    let length = head
                        .split("content-length: ")
                        .nth(1)
                        .and_then(|rest| rest.split("\r\n").next()?.trim().parse::<usize>().ok());
                    let end = at + 4 + length.unwrap_or(0);
                    if seen.len() < end {
                        break;
                    }
                    seen.drain(..end);
                    if left.fetch_sub(1, Ordering::SeqCst) <= 1 {
                        return;
                    }
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
                }
            }
        }
    });
    address
}

/// Nothing listens where it shall go: the trial is not done, and the reason names the background.
#[test]
fn a_background_that_cannot_begin_is_named() {
    let place = Place::new("background-nobody");
    plan(
        &place,
        "tcp",
        "protocol = \"http1\"\ntarget = \"http://127.0.0.1:9\"\nbaseline = false",
        1,
    );
    let ended = place.weigh(&["run", "plan.toml", "--quiet"]).with(3);
    ended.saying(&["the background: ", "127.0.0.1:9"]);
    let journal = place.journal();
    assert_eq!(of_kind(&journal, "trial_failed").len(), 1);
    place.nobody_is_left();
}

/// Refused before anything starts, at its line.
#[test]
fn an_impossible_background_is_refused_at_its_place() {
    let place = Place::new("background-refused");
    plan(&place, "tcp", "protocol = \"mqtt\"\nmqtt.qos = 3", 1);
    place.weigh(&["run", "plan.toml"]).with(2).saying(&["plan.toml:11:", "background.mqtt.qos"]);
    plan(&place, "tcp", "protocol = \"mqtt\"\nload.pattern = \"publish\"", 1);
    let text = std::fs::read_to_string(place.folder().join("plan.toml")).expect("the plan");
    place.write("plan.toml", &format!("path = \"internet\"\n{text}"));
    let said = ["a background cannot use an emulated path", "leave path"];
    place.weigh(&["run", "plan.toml"]).with(2).saying(&said);
    if has("mosquitto") {
        let quic = "protocol = \"mqtt\"\ntarget = \"mosquitto\"\nmqtt.quic = true";
        plan(&place, "tcp", quic, 1);
        let said = ["background.mqtt.quic", "mosquitto is not started with QUIC"];
        place.weigh(&["run", "plan.toml"]).with(2).saying(&said);
    }
    assert!(place.runs().is_empty());
}

/// The same in the words of a command line; what is wrong with them is told as a plan tells it.
#[test]
fn compare_takes_a_background_in_words() {
    let place = Place::new("background-words");
    let asked = |words: &str| place.weigh(&["compare", "tcp", "--dry", "--background", words]);
    let dry = asked("mqtt publishers=100 rate=10/s/client size=64B mqtt.qos=1").with(0).stdout;
    assert!(dry.contains("background=off") && dry.contains("background=on"), "{dry}");
    for (words, said) in [
        ("mqtt rat=10/s", "rate"),
        ("mqtt rate", "KEY=VALUE"),
        ("mqqt", "unknown protocol"),
        ("mqtt arrival=burst", "closed, constant"),
        ("mqtt duration=3s", "lasts as long as"),
    ] {
        asked(words).with(2).saying(&["--background", said]);
    }
    assert!(place.runs().is_empty());
}

/// Ctrl-C while both run: what was measured is kept, nobody is left, and the rest is done later.
#[test]
fn interrupted_above_a_background_it_is_resumed() {
    let place = Place::new("background-interrupted");
    let load = "protocol = \"http1\"\nload = { rate = \"200/s\" }";
    plan(&place, "tcp", load, 2);
    let program = place.spawn(&["run", "plan.toml", "--quiet"]);
    let pid = program.id();
    until("a background runs", || {
        place.processes().iter().any(|(_, line)| line.contains(" background "))
    });
    signal("INT", pid);
    wait(program).with(130);
    place.nobody_is_left();
    place.weigh(&["run", "--resume", "latest", "--quiet"]).with(0);
    let summary = place.summary();
    let repetitions: Vec<&Value> = cells(&summary).iter().map(|own| &own["repetitions"]).collect();
    assert_eq!(repetitions, [&Value::from(2), &Value::from(2)]);
    assert_eq!(summary["failures"].as_array().map(Vec::len), Some(0));
    assert!(!has_targets(&place.run()), "what targets left is of no interest");
    place.nobody_is_left();
}

fn has_targets(run: &Path) -> bool {
    run.join("targets").exists()
}
