//! One session packet by packet, as the journal tells it, against tshark on the same capture: every
//! packet, its time, its sizes and flags, and what the protocol calls it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::rig::{Place, has, has_hosts};

/// False, and said, where there are no hosts or there is nobody to compare with.
fn can_compare(test: &str) -> bool {
    has_hosts(test) && has("tshark")
}

#[test]
fn a_session_is_what_tshark_sees() {
    if !can_compare("a_session_is_what_tshark_sees") {
        return;
    }
    for (words, parties, names) in [
        (
            &["mqtt", "-q", "2", "-y", "1", "--pattern", "deliver"][..],
            &["producer", "reference server", "subscriber"][..],
            MQTT,
        ),
        (&["http", "--pattern", "request"], &["generator", "reference server"], HTTP),
    ] {
        let place = Place::new("packets");
        let load = ["-c", "1", "-n", "9", "-s", "500B", "--warmup", "0s", "--wire", "--pcap", "-Q"];
        let ended = place.compare(&[words, &load].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let of = |event: &str| {
            let [found] = &place.of_kind(event)[..] else { panic!("one {event}") };
            found.clone()
        };
        let (session, finished) = (of("session_packets"), of("trial_finished"));
        assert_eq!(session["trial"], finished["trial"]);
        assert_eq!(session["parties"], serde_json::json!(parties));
        let file = place.pcap(&finished);
        let told: Vec<Packet> =
            session["packets"].as_array().expect("packets").iter().map(told).collect();
        assert_eq!(told, seen(&file, names), "{words:?}");
        assert!(told.iter().filter(|packet| !packet.names.is_empty()).count() >= 18, "{told:?}");
        let bytes: u64 = told.iter().map(|packet| packet.bytes).sum();
        let metric = |name: &str| finished["metrics"][name].as_f64().expect(name);
        assert_eq!(bytes as f64, metric("wire.sent.bytes") + metric("wire.received.bytes"));
        let exported = place.weigh(&["export", trial_run(&place).as_str(), "--format", "packets"]);
        assert_eq!(exported.stdout.lines().count(), told.len() + 1, "{}", exported.stderr);
        place.nobody_is_left();
    }
}

fn trial_run(place: &Place) -> String {
    place.run().display().to_string()
}

#[derive(Debug, PartialEq, Eq)]
struct Packet {
    at_us: u64,
    bytes: u64,
    stream_bytes: u64,
    flags: String,
    names: Vec<String>,
}

fn told(packet: &Value) -> Packet {
    let number = |key: &str| packet[key].as_u64().expect(key);
    let names = packet["names"].as_array().cloned().unwrap_or_default();
    // The first word is the type of the packet: tshark has flags and numbers in other fields.
    let word = |name: &Value| {
        let text = name.as_str().expect("a text");
        let words: Vec<&str> = text.split(' ').collect();
        if words[0] == "HTTP" { words[1].to_owned() } else { words[0].to_owned() }
    };
    Packet {
        at_us: number("at_ns") / 1000,
        bytes: number("bytes"),
        stream_bytes: number("stream_bytes"),
        flags: packet["flags"].as_str().expect("flags").to_owned(),
        names: names.iter().map(word).collect(),
    }
}

/// A dissector, the fields in which it names packets, and the names of its numbers.
type Names = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const MQTT: Names = (
    "mqtt",
    &["mqtt.msgtype"],
    &[
        ("1", "CONNECT"),
        ("2", "CONNACK"),
        ("3", "PUBLISH"),
        ("4", "PUBACK"),
        ("5", "PUBREC"),
        ("6", "PUBREL"),
        ("7", "PUBCOMP"),
        ("8", "SUBSCRIBE"),
        ("9", "SUBACK"),
        ("14", "DISCONNECT"),
    ],
);

const HTTP: Names = ("http", &["http.request.method", "http.response.code"], &[]);

/// All packets of the file in the eyes of tshark.
fn seen(file: &Path, (dissector, fields, words): Names) -> Vec<Packet> {
    let port = rows(file, &[], &["tcp.dstport"])[0][0].clone();
    let decode = format!("tcp.port=={port},{dissector}");
    let more = ["-d", &decode];
    let flags = ["tcp.flags.syn", "tcp.flags.fin", "tcp.flags.reset", "tcp.flags.ack"];
    let all = [&["frame.time_relative", "frame.len", "tcp.len"][..], &flags, fields].concat();
    let packet = |row: Vec<String>| {
        let is_set = |at: usize| matches!(row[at].as_str(), "1" | "True");
        let names = [(3, "SYN"), (4, "FIN"), (5, "RST"), (6, "ACK")];
        let flags: Vec<&str> =
            names.iter().filter(|(at, _)| is_set(*at)).map(|(_, flag)| *flag).collect();
        let called = row[7..].iter().flat_map(|field| field.split(','));
        let called = called.filter(|text| !text.is_empty()).map(|text| {
            let known = words.iter().find(|(number, _)| *number == text);
            known.map_or(text, |(_, word)| word).to_owned()
        });
        Packet {
            at_us: (row[0].parse::<f64>().expect("seconds") * 1e9).round() as u64 / 1000,
            bytes: row[1].parse().expect("a length"),
            stream_bytes: row[2].parse().expect("a length"),
            flags: flags.join(", "),
            names: called.collect(),
        }
    };
    rows(file, &more, &all).into_iter().map(packet).collect()
}

fn rows(file: &Path, more: &[&str], fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-T", "fields"]).args(more);
    command.env("WIRESHARK_CONFIG_DIR", std::env::temp_dir()).env("HOME", std::env::temp_dir());
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().expect("tshark");
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}
