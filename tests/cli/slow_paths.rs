//! Paths whose round trip is long: the timeout follows from them, nothing that arrives is lost, and
//! a device that reports over them now and then is modelled with all it takes.

use crate::rig::{Place, cells, figure, has_hosts};

const NB_IOT: [&str; 12] = [
    "compare",
    "http",
    "mqtt",
    "-q",
    "1",
    "--pattern",
    "session",
    "--tls",
    "on",
    "--path",
    "nb-iot",
    "--dry",
];

#[test]
fn the_default_timeout_is_ten_times_what_the_path_takes() {
    let place = Place::new("patience");
    let load = ["-c", "1", "-n", "4"];
    let saved = ["--save-plan", "plan.toml"];
    let ended = place.weigh(&[&NB_IOT[..], &load, &saved].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // TCP, two for TLS, CONNECT and the message: 5 of 1.6 s, ten times; the bytes of a handshake.
    let said = "timeout 1 min 26 s: mqtt needs 1 min 26 s on its path (10 x 5 round trips of 1.6 s";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    // Both lanes have one timeout, or they could not be compared.
    assert!(
        ended.stdout.contains("timeout 1 min 26 s: http1 needs 1 min 10 s"),
        "{}",
        ended.stdout
    );
    let plan = std::fs::read_to_string(place.folder().join("plan.toml")).unwrap();
    assert!(plan.contains("timeout = \"1m 26s\""), "{plan}");
    assert!(!plan.contains("load.timeout"), "cases differ in it: {plan}");
    let again = place.weigh(&["run", "plan.toml", "--dry"]);
    assert!(again.stdout.contains("timeout 1 min 26 s: mqtt"), "{}", again.stdout);
}

#[test]
fn a_plan_without_a_timeout_gets_it_too_and_one_that_is_given_stands_with_a_warning() {
    let place = Place::new("patience-given");
    let plan = |timeout: &str| {
        format!("protocol = \"http1\"\npath = \"satellite\"\nload.pattern = \"session\"\n{timeout}")
    };
    place.write("plan.toml", &plan(""));
    let ended = place.weigh(&["run", "plan.toml", "--dry"]);
    // TCP and the request: two round trips of 558 ms, ten times.
    assert!(ended.stdout.contains("timeout 12 s: http1 needs 12 s"), "{}", ended.stdout);
    place.write("plan.toml", &plan("load.timeout = \"5s\"\n"));
    let ended = place.weigh(&["run", "plan.toml", "--dry"]);
    let said = "warning: --timeout 5s is shorter than http1 needs on its path";
    assert!(ended.stdout.contains(said) && ended.stdout.contains("type --timeout 12s"), "{said}");
    let quick = place.weigh(&["compare", "http", "--path", "lte", "--dry"]);
    assert!(!quick.stdout.contains("timeout"), "5 s are enough: {}", quick.stdout);
}

/// Four round trips of 2.4 s are longer than the usual timeout; the first packet is sent again
/// after 1 s, and nothing was lost.
#[test]
fn a_session_that_takes_longer_than_five_seconds_is_delivered() {
    if !has_hosts("a_session_that_takes_longer_than_five_seconds_is_delivered") {
        return;
    }
    let place = Place::new("slow-session");
    let load = ["http", "--pattern", "session", "--tls", "on", "-c", "1", "-n", "1"];
    let ended = place.compare(&[&load[..], &["--path", "delay=1200ms", "--wire"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert_eq!((&cell["ledger"]["delivered"], &cell["ledger"]["late"]), (&1.into(), &0.into()));
    assert!(figure(cell, "response_time_ns.max") > 5e9, "{cell}");
    assert_eq!(figure(cell, "path.up.lost_packets"), 0.0);
    let early = figure(cell, "wire.too_early_packets");
    assert!(early >= 1.0 && early == figure(cell, "wire.retransmitted_packets"), "{cell}");
    assert!(ended.stdout.contains("retransmitted too early; the path dropped none"), "lost");
}

/// The link layer of the radio in place of Ethernet's, packet by packet; the capture stays.
#[test]
fn a_radio_has_its_own_link_layer() {
    if !has_hosts("a_radio_has_its_own_link_layer") {
        return;
    }
    let place = Place::new("radio-link");
    let ended = place.compare(&["tcp", "-c", "1", "-n", "20", "--path", "wifi", "--wire"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    let of = |name: &str| figure(cell, &format!("wire.{name}"));
    assert_eq!(of("radio.link_bytes"), 54.0 * of("packets"));
    assert_eq!(of("radio.bytes"), of("bytes") - of("layers.link_bytes") + 54.0 * of("packets"));
    assert!(of("layers.link_bytes") >= 14.0 * of("packets"), "the capture is of Ethernet");
    assert!(ended.stdout.contains("MAC 26, LLC 8, CCMP 16, FCS 4: 54 B a packet"), "no note");
}

/// 50 B and 1,000 B an hour had the same battery life, and so had MQTT and HTTP.
#[test]
fn bytes_and_keep_alives_shorten_the_life_of_a_charge() {
    if !has_hosts("bytes_and_keep_alives_shorten_the_life_of_a_charge") {
        return;
    }
    let days = |name: &str, words: &[&str]| {
        let place = Place::new(name);
        let device = ["--device", "nrf9160", "--radio", "nb-iot", "--battery", "300mAh@3.7V"];
        let rest = ["--every", "1h", "-c", "1", "-n", "10", "--path", "delay=5ms"];
        let ended = place.compare(&[words, &device[..], &rest].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let summary = place.summary();
        let days = figure(&cells(&summary)[0], "modelled_days_per_charge");
        (days, ended.stdout)
    };
    let publish = ["mqtt", "-q", "1", "--pattern", "publish"];
    let (short, text) = days("bytes-50", &[&publish[..], &["-s", "50B"]].concat());
    let (long, _) = days("bytes-1000", &[&publish[..], &["-s", "1000B"]].concat());
    assert!(short > 1.01 * long, "{short} and {long} days");
    assert!(text.contains("keep-alives between two messages take"), "{text}");
    assert!(text.contains("keep-alive of 1 min"), "{text}");
    // 59 pings of MQTT in an hour; over HTTP one probe of TCP, because gateways forget.
    let (http, _) = days("bytes-http", &["http", "-s", "50B"]);
    assert!(http > 5.0 * short, "{http} and {short} days");
}
