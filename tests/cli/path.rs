//! Generator and target as hosts of their own: a path that appears exactly once in response times,
//! a wire whose every byte is counted, packets that can be counted again. As an ordinary user or as
//! root; where the machine forbids namespaces all but the refusals is skipped, loudly.

use serde_json::Value;
use weigh_capture::Counting;
use weigh_capture::files::account_of;

use crate::rig::{Place, cells, figure, has_hosts, warnings};

#[test]
fn the_delay_of_a_path_is_in_response_times_exactly_once() {
    if !has_hosts("the_delay_of_a_path_is_in_response_times_exactly_once") {
        return;
    }
    let place = Place::new("delay");
    place.write("plan.toml", DELAYS);
    let ended = place.weigh(&["run", "plan.toml", "-Q"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 4, "two lanes on two paths");
    for cell in cells(&summary) {
        let delay = cell["point"]["path.delay"].as_str().expect("a delay");
        let round_trip_ms = if delay == "10ms" { 20.0 } else { 60.0 };
        assert!(cell["name"].as_str().unwrap().contains(delay), "rows tell apart: {cell}");
        // To the broker and on to the subscriber is once up and once down.
        let time = if cell["metrics"]["service_time_ns.p50"].is_null() {
            "delivery_time_ns"
        } else {
            "service_time_ns"
        };
        // A forwarder never sends before its time; late it is on a busy machine, but never by a
        // whole delay in half of the messages.
        let median_ms = figure(cell, &format!("{time}.p50")) / 1e6;
        let band = round_trip_ms..round_trip_ms * 1.5;
        assert!(band.contains(&median_ms), "{time} {median_ms} ms over {round_trip_ms} ms: {cell}");
        assert_eq!(cell["ledger"]["lost"], 0, "{cell}");
    }
    place.nobody_is_left();
}

const DELAYS: &str = r#"
load.rate = "100/s"
load.connections = 4
load.duration = "1s"
load.warmup = "200ms"
repeat.at_least = 1
mqtt.qos = 1
[vary]
protocol = ["tcp", "mqtt"]
path.delay = ["10ms", "30ms"]
"#;

#[test]
fn every_byte_on_the_wire_is_counted_and_can_be_counted_again() {
    if !has_hosts("every_byte_on_the_wire_is_counted_and_can_be_counted_again") {
        return;
    }
    let place = Place::new("wire");
    let load = ["-n", "200", "-s", "100B", "-c", "4"];
    let words = [&["tcp", "http", "--wire", "--pcap", "-Q"][..], &load[..]].concat();
    let ended = place.compare(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("TSO off, GSO off"), "{}", ended.stdout);
    let wide = place.weigh(&["report", "latest", "--wide"]).with(0).stdout;
    assert!(wide.contains("content") && wide.contains("set-up"), "{wide}");
    let summary = place.summary();
    for cell in cells(&summary) {
        let both = |part: &str| {
            figure(cell, &format!("wire.sent.{part}"))
                + figure(cell, &format!("wire.received.{part}"))
        };
        let layers = ["link", "ip", "transport", "protocol", "payload", "repeated"];
        let of_layers: f64 =
            layers.iter().map(|l| figure(cell, &format!("wire.layers.{l}_bytes"))).sum();
        assert_eq!(both("bytes"), of_layers, "{cell}");
        assert_eq!(figure(cell, "wire.layers.link_bytes"), 14.0 * both("packets"), "Ethernet II");
        assert_eq!(figure(cell, "wire.layers.payload_bytes"), 200.0 * 100.0, "the bodies");
        // The kernel counts each socket's segments itself, and agrees.
        assert_eq!(figure(cell, "wire.kernel.sockets_compared"), 4.0, "{cell}");
        assert_eq!(figure(cell, "wire.kernel.differences"), 0.0, "{cell}");
        // The codecs count their bytes themselves, and agree.
        assert!(!warnings(cell).contains(&"wire"), "{cell}");
        assert_eq!(cell["scene"]["mtu_bytes"], "1500");
    }
    for event in place.of_kind("trial_finished") {
        let file = place.pcap(&event);
        let counting = Counting::AsCaptured;
        let settings = weigh_capture::Settings { counting, ..weigh_capture::Settings::default() };
        let again = account_of(&file, settings).expect("a capture that can be read");
        let recorded = |metric: &str| event["metrics"][metric].as_f64();
        let (sent, received) = (again.sent.total(), again.received.total());
        assert_eq!(recorded("wire.sent.packets"), Some(sent.packets as f64));
        assert_eq!(recorded("wire.received.packets"), Some(received.packets as f64));
        assert_eq!(recorded("wire.sent.bytes"), Some(sent.bytes() as f64));
        assert_eq!(recorded("wire.received.bytes"), Some(received.bytes() as f64));
    }
    place.nobody_is_left();
}

#[test]
fn without_a_path_nothing_is_captured_and_nothing_is_said() {
    let place = Place::new("no-path");
    let ended = place.compare(&["tcp", "-Q"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stdout.contains("wire") && !ended.stdout.contains("path"), "{}", ended.stdout);
    let summary = place.summary();
    assert!(cells(&summary)[0].get("scene").is_none(), "{summary}");
}

#[test]
fn a_path_that_is_none_is_refused_before_anything_starts() {
    let place = Place::new("no-such-path");
    for (words, told) in [
        (&["tcp", "--path", "moon"][..], "internet"),
        (&["tcp", "--path", "moon.toml"][..], "cannot be read"),
        (&["tcp", "--path", "delay=5ms,mtu=575"][..], "from 576 to 1500"),
        (&["tcp", "--path", "lte,los=1%"][..], "unknown number \"los\""),
        (&["tcp", "--path", "loss=5"][..], "type 5"),
        (&["tcp", "--path", "steps=1s loss"][..], "is not a step"),
        (&["http://127.0.0.1:9", "--path", "internet"][..], "leave path"),
        (&["http://127.0.0.1:9", "--wire"][..], "leave path"),
    ] {
        let ended = place.compare(words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{words:?}: {}", ended.stderr);
    }
    assert!(place.runs().is_empty());
}

#[test]
fn a_path_of_one_line_changes_over_time_and_tcp_tells_of_it() {
    if !has_hosts("a_path_of_one_line_changes_over_time_and_tcp_tells_of_it") {
        return;
    }
    let place = Place::new("one-line");
    let path = "delay=5ms,rate=10Mbit,up_jitter=normal:100us,mtu=1400,steps=700ms loss=100%";
    let load = ["-R", "50/s", "-d", "1200ms", "--timeout", "500ms", "-c", "20", "--wire", "-Q"];
    let words = [&["tcp", "--path", path][..], &load].concat();
    place.compare(&words).with(0);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    let scene = &cell["scene"];
    assert_eq!(scene["path.up"], "5 ms ± normal 100 µs, 10 Mbit/s (queue 125,000 B)");
    assert_eq!(
        (&scene["mtu_bytes"], &scene["path.steps"]),
        (&"1400".into(), &"1 changes over time".into())
    );
    // Some before the step, none after it; nobody is forgotten.
    let count = |key: &str| cell["ledger"][key].as_u64().expect("a count");
    assert!(count("delivered") > 0 && count("lost") > 0, "{cell}");
    assert_eq!(count("sent"), count("delivered") + count("late") + count("lost"), "{cell}");
    let journal = place.journal();
    let samples: Vec<&Value> =
        journal.iter().filter(|event| event["event"] == "tcp_sample").collect();
    let has_own = |event: &&&Value| event["connection"].is_string();
    assert!(samples.iter().filter(has_own).count() >= 16, "{samples:?}");
    let rest = samples.iter().find(|event| event["connection"].is_null()).expect("all others");
    assert_eq!(rest["connections"], 4, "16 have rows of their own: {rest}");
    assert!(samples.iter().all(|event| event["round_trip_us"].as_f64() >= Some(0.0)));
    assert!(figure(cell, "tcp.retransmitted_segments") > 0.0, "what was lost was sent again");
    place.nobody_is_left();
}

/// 400 messages of 500 bytes in a second, with headers and what acknowledges: some 1.85 Mbit/s, too
/// much for one line and a tenth of what another carries.
#[test]
fn a_full_line_is_told_by_what_is_asked_of_it() {
    if !has_hosts("a_full_line_is_told_by_what_is_asked_of_it") {
        return;
    }
    let load = ["-s", "500B", "-d", "1s", "-R", "400/s", "-c", "8", "-Q"];
    for (path, from, to) in [("rate=1Mbit/s", 1.7, 4.0), ("rate=20Mbit/s", 0.08, 0.12)] {
        let place = Place::new("full-line");
        place.compare(&[&["tcp", "--path", path][..], &load].concat()).with(0);
        let summary = place.summary();
        let asked = figure(&cells(&summary)[0], "path.up.asked_ratio");
        assert!((from..to).contains(&asked), "{path}: {asked}");
    }
}

/// In a user namespace of its own the test may forbid what an administrator may.
#[test]
fn where_hosts_are_forbidden_every_figure_has_a_warning_that_names_the_setting() {
    let test = "where_hosts_are_forbidden_every_figure_has_a_warning_that_names_the_setting";
    let place = Place::new("forbidden");
    let load = "-Q --reps 1 -d 200ms --warmup 0s -c 4";
    let words = format!("compare tcp --path internet --wire {load}");
    let forbid = "echo 0 > /proc/sys/user/max_net_namespaces";
    let Some(ended) = place.weigh_after(test, &["--user", "--map-root-user"], forbid, &words)
    else {
        return;
    };
    ended.with(0).saying(&["sysctl -w user.max_net_namespaces"]);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert!(warnings(cell).contains(&"path-forbidden"), "{cell}");
    assert!(cell["metrics"].get("wire.bytes_per_message").is_none(), "{cell}");
}
