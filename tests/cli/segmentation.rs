//! Datagrams of QUIC that the kernel cuts and joins, as a user measures it: every ledger is exact,
//! with and without lost packets and against a server of another make, and tshark sees the same
//! datagrams.

use serde_json::Value;

use crate::foreign::{Installed, python};
use crate::http3::{aioquic, ledgers_are_whole};
use crate::mqtt_quic::front;
use crate::rig::{Place, cells, figure, has, has_hosts, warnings};
use crate::wire::tshark;

const HTTP3: [&str; 3] = ["http3", "--set", "http3.segmentation=kernel"];
const MQTT: [&str; 7] =
    ["mqtt", "-q", "1", "--set", "mqtt.quic=true", "--set", "mqtt.segmentation=kernel"];

#[test]
fn it_is_a_key_of_protocols_inside_quic_and_part_of_the_point() {
    let place = Place::new("segmentation-both");
    place.write("plan.toml", BOTH);
    place.weigh(&["run", "plan.toml", "-Q"]).with(0);
    ledgers_are_whole(&place, 40);
    let summary = place.summary();
    let chosen = cells(&summary).iter().map(|cell| &cell["point"]["http3.segmentation"]);
    assert_eq!(chosen.collect::<Vec<_>>(), ["off", "kernel"]);
    let names = cells(&summary).iter().map(|cell| cell["name"].as_str().expect("a name"));
    assert!(names.clone().any(|name| name.contains("kernel")), "{:?}", names.collect::<Vec<_>>());
    let refused = |words: &[&str], told: &[&str]| {
        Place::new("segmentation-refused").compare(words).with(2).saying(told);
    };
    refused(
        &["http3", "--set", "http3.segmentation=on"],
        &["segmentation", "type one of off, kernel"],
    );
    refused(&["http2", "--set", "http2.segmentation=kernel"], &["segmentation"]);
    place.nobody_is_left();
}

const BOTH: &str = r#"
protocol = "http3"
load.connections = 2
load.messages = 40
load.size = "30kB"
load.warmup = "0s"
repeat.at_least = 1
[vary]
"http3.segmentation" = ["off", "kernel"]
"#;

#[test]
fn every_message_arrives_once() {
    for lane in [&HTTP3[..], &MQTT] {
        for (size, messages) in [("64B", 600_u64), ("100kB", 60), ("1MB", 6)] {
            let place = Place::new(&format!("segmentation-{}-{size}", lane[0]));
            let count = messages.to_string();
            let load = ["-s", size, "-n", &count, "-c", "3"];
            place.compare(&[lane, &load].concat()).with(0);
            ledgers_are_whole(&place, messages);
            for cell in cells(&place.summary()) {
                assert!(!warnings(cell).contains(&"segmentation-refused"), "{cell}");
            }
            place.nobody_is_left();
        }
    }
}

/// Runs of which the path loses single datagrams.
#[test]
fn every_message_arrives_once_over_a_path_that_loses_packets() {
    if !has_hosts("every_message_arrives_once_over_a_path_that_loses_packets") {
        return;
    }
    for lane in [&HTTP3[..], &MQTT] {
        let place = Place::new(&format!("segmentation-lossy-{}", lane[0]));
        let load = ["-s", "50kB", "-n", "60", "-c", "3", "--path", "delay=5ms,loss=5%", "--wire"];
        place.compare(&[lane, &load].concat()).with(0);
        ledgers_are_whole(&place, 60);
        for cell in cells(&place.summary()) {
            assert!(figure(cell, "path.up.lost_packets") > 0.0, "{cell}");
        }
        place.nobody_is_left();
    }
}

/// A server that knows nothing of it.
#[test]
fn the_ledger_agrees_with_the_counts_of_aioquic_and_of_mosquitto() {
    let Some(python) = python("WEIGH_AIOQUIC", "aioquic") else { return };
    let place = Place::new("segmentation-aioquic");
    let (server, url, ca) = aioquic(python.clone(), &place);
    let words = [&url, "-n", "20", "-s", "200kB", "--cacert", &ca];
    place.compare(&[&words[..], &HTTP3[1..]].concat()).with(0);
    ledgers_are_whole(&place, 20);
    let counted: Value = serde_json::from_str(&server.end()).expect("its counts");
    assert_eq!((&counted["requests"], &counted["large"]), (&20.into(), &20.into()), "{counted}");

    let place = Place::new("segmentation-mosquitto");
    let Some(mosquitto) = Installed::mosquitto(&place, "") else { return };
    let (front, ca) = front(&place, &python, mosquitto.port, &[]);
    let url = front.url("mqtt-quic");
    let words = [&url, "-q", "1", "-n", "40", "-s", "50kB", "-c", "3", "--cacert", &ca];
    let place = Place::new("segmentation-mosquitto-run");
    let kernel = ["--set", "mqtt.segmentation=kernel"];
    place.compare(&[&words[..], &kernel].concat()).with(0);
    ledgers_are_whole(&place, 40);
    front.end();
}

/// A capture between hosts sees what the kernel has cut: no datagram above 1,200 bytes, and as many
/// bytes in each layer as tshark finds.
#[test]
fn the_wire_carries_datagrams_and_no_runs() {
    if !has_hosts("the_wire_carries_datagrams_and_no_runs") || !has("tshark") {
        return;
    }
    let mut payloads = Vec::new();
    for choice in ["off", "kernel"] {
        let place = Place::new(&format!("segmentation-wire-{choice}"));
        let set = format!("http3.segmentation={choice}");
        let words = ["http3", "--set", &set, "--wire", "--pcap", "-Q", "-n", "30", "-s", "50kB"];
        place.compare(&[&words[..], &["-c", "1"]].concat()).with(0);
        ledgers_are_whole(&place, 30);
        let trial = &place.of_kind("trial_finished")[0];
        let rows = place.of_kind("connections");
        let remote = rows[0]["rows"][0]["remote"].as_str().expect("an address");
        let port = remote.rsplit(':').next().expect("a port");
        let metric = |name: &str| trial["metrics"][name].as_f64().unwrap_or(0.0);
        for (way, filter) in [("sent", "dstport"), ("received", "srcport")] {
            let filter = format!("udp.{filter}=={port}");
            let seen = tshark(&place.pcap(trial), &filter, &["frame.len", "udp.length"], &[]);
            let sum = |at: usize| seen.iter().map(|row| row[at].parse::<f64>().unwrap()).sum();
            let bytes: f64 = sum(0);
            let longest = seen.iter().map(|row| row[1].parse::<u32>().unwrap()).max();
            assert!(longest <= Some(1_208), "{choice} {way}: {longest:?}");
            assert_eq!(metric(&format!("wire.{way}.packets")), seen.len() as f64, "{choice}");
            assert_eq!(metric(&format!("wire.{way}.bytes")), bytes, "{choice} {way}");
        }
        let summary = place.summary();
        let cell = &cells(&summary)[0];
        assert!(!warnings(cell).contains(&"wire"), "{cell}");
        assert_eq!(metric("wire.dropped_packets"), 0.0);
        payloads.push((metric("wire.sent.layers.payload_bytes"), metric("wire.sent.packets")));
    }
    let [(payload, packets), (payload_cut, packets_cut)] = payloads[..] else { panic!() };
    assert_eq!((payload, payload_cut), (1_500_000.0, 1_500_000.0));
    // Acknowledgements and what is repeated depend on the moment; the runs do not show.
    let change = (packets_cut / packets - 1.0).abs();
    assert!(change < 0.1, "{packets} and {packets_cut} packets");
}

/// Datagrams above the MTU are cut into fragments by IP, so the kernel refuses runs of them.
#[test]
fn what_the_kernel_refuses_to_cut_arrives_and_is_a_warning() {
    if !has_hosts("what_the_kernel_refuses_to_cut_arrives_and_is_a_warning") {
        return;
    }
    for (bytes, is_refused) in [("1472", false), ("1473", true), ("8000", true)] {
        let place = Place::new(&format!("segmentation-{bytes}"));
        let set = format!("http3.datagram_bytes={bytes}");
        let load = ["--set", &set, "-s", "100kB", "-n", "20", "-c", "2", "--wire"];
        place.compare(&[&HTTP3[..], &load].concat()).with(0);
        ledgers_are_whole(&place, 20);
        let summary = place.summary();
        let found = warnings(&cells(&summary)[0]);
        assert_eq!(found.contains(&"segmentation-refused"), is_refused, "{bytes}: {found:?}");
        place.nobody_is_left();
    }
}

/// With offloads on a capture sees runs, and the result says so.
#[test]
fn runs_as_captured_are_a_warning() {
    if !has_hosts("runs_as_captured_are_a_warning") {
        return;
    }
    let place = Place::new("segmentation-captured");
    let load = ["-s", "100kB", "-n", "10", "-c", "1", "--wire", "--offload", "both", "-Q"];
    place.compare(&[&HTTP3[..], &load].concat()).with(0);
    ledgers_are_whole(&place, 10);
    let summary = place.summary();
    let of = |state: &str| {
        let found = cells(&summary).iter().find(|cell| cell["point"]["offload"] == state);
        found.unwrap_or_else(|| panic!("no {state} in {summary}"))
    };
    let (off, on) = (of("off"), of("on"));
    assert!(warnings(on).contains(&"wire") && !warnings(off).contains(&"wire"), "{summary}");
    let packets = |cell: &Value| figure(cell, "wire.sent.packets");
    // 10 bodies of 100,000 bytes in datagrams of 1,200.
    assert!(packets(off) >= 833.0 && packets(off) > 3.0 * packets(on), "{summary}");
    for cell in [off, on] {
        assert_eq!(figure(cell, "wire.sent.layers.payload_bytes"), 1_000_000.0, "{cell}");
    }
}
