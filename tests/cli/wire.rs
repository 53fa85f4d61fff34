//! Every byte on the wire by layer, held against tshark, the kernel's counters and the formulas of
//! the specifications; what offloads hide; and a path that lets nothing through.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::rig::{Place, cells, figure, has, has_hosts, warnings};

/// All layers as a metric's end, without content that no codec has split.
const LAYERS: [&str; 8] =
    ["link", "ip", "transport", "tls_handshake", "tls_record", "protocol", "payload", "repeated"];

/// Sessions of one message, and messages of several sizes, plain and inside TLS 1.3 and 1.2: tshark
/// reads the same file and finds the same, and so does the kernel in its sockets.
#[test]
fn tshark_and_the_kernel_count_the_same() {
    let test = "tshark_and_the_kernel_count_the_same";
    if !has_hosts(test) || !has("tshark") {
        return;
    }
    for (pattern, size, tls, count) in [
        (Some("session"), "100B", "both", 6),
        (Some("session"), "100B", "1.2", 3),
        (None, "1B", "both", 4),
        (None, "1000B", "1.2", 10),
        (None, "100KB", "both", 3),
        (Some("transfer"), "1B", "both", 2),
        (Some("transfer"), "100KB", "both", 2),
        (Some("transfer"), "1MB", "both", 1),
    ] {
        let place = Place::new("tshark");
        let count = count.to_string();
        let mut words = vec!["compare", "tcp", "http", "mqtt", "-q", "1", "-s", size, "-n", &count];
        words.extend(["--tls", tls, "--wire", "--pcap", "-Q"]);
        words.extend(["--reps", "1", "--warmup", "0s", "-c", "1"]);
        words.extend(pattern.iter().flat_map(|pattern| ["--pattern", pattern]));
        let keys = place.folder().join("keys");
        let output = place.command(&words).env("SSLKEYLOGFILE", &keys).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary = place.summary();
        for cell in cells(&summary) {
            let (name, all) = (&cell["name"], &cell["doubts"]);
            assert!(!warnings(cell).contains(&"wire"), "{size} {name}: {all}");
            assert_eq!(figure(cell, "wire.kernel.differences"), 0.0, "{name}");
            let compared = figure(cell, "wire.kernel.sockets_compared");
            assert_eq!(compared, figure(cell, "wire.connections"), "{name}");
        }
        check_journal(&place);
    }
}

fn check_journal(place: &Place) {
    let of = |kind| place.of_kind(kind).into_iter();
    for (finished, connections) in of("trial_finished").zip(of("connections")) {
        assert_eq!(finished["trial"], connections["trial"]);
        let metrics = &finished["metrics"];
        let metric = |name: &str| metrics[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
        let rows = connections["rows"].as_array().expect("rows");
        let of_rows = |name: &str| {
            rows.iter().filter_map(|row| row["figures"][name].as_u64()).sum::<u64>() as f64
        };
        let file = place.pcap(&finished);
        let remote = rows[0]["remote"].as_str().expect("an address");
        let port: u16 = remote.rsplit(':').next().unwrap().parse().expect("a port");
        check_hosts(rows);
        let add = record_adds(&finished["point"]);
        let seen = seen_by_tshark(&file, port, add);
        for (way, seen) in ["sent", "received"].into_iter().zip(seen) {
            let layer = |name: &str| metric(&format!("wire.{way}.layers.{name}_bytes"));
            let what = format!("{} {way}", finished["point"]);
            assert_eq!(metric(&format!("wire.{way}.packets")), seen.packets, "{what}");
            assert_eq!(metric(&format!("wire.{way}.bytes")), seen.bytes, "{what}");
            assert_eq!(layer("ip"), seen.ip, "{what}");
            assert_eq!(layer("transport"), seen.transport, "{what}");
            assert_eq!(layer("link"), 14.0 * seen.packets, "{what}");
            let stream: f64 = LAYERS[3..].iter().map(|name| layer(name)).sum();
            assert_eq!(stream, seen.stream, "{what}");
            assert_eq!(metric(&format!("wire.{way}.ack_only_packets")), seen.ack_only, "{what}");
            if let Some(add) = add {
                assert!(seen.records > 0.0, "{what}");
                let content = layer("protocol") + layer("payload");
                assert_eq!(content, seen.content, "{what}: decrypted by tshark");
                // A ticket is part of the handshake, the record that carries it is a record.
                let hidden = seen.handshake - layer("tls_handshake");
                assert!(hidden >= 0.0 && hidden % (5.0 + add) == 0.0, "{what}: {hidden}");
                let once = seen.stream - layer("repeated");
                let of_records = once - seen.handshake - seen.content;
                assert_eq!(layer("tls_record"), of_records + hidden, "{what}");
            }
            for name in ["packets", "bytes"] {
                let name = format!("{way}.{name}");
                assert_eq!(of_rows(&name), metric(&format!("wire.{name}")), "{what}: the rows");
            }
        }
        let phases = ["set_up", "messages", "tear_down"];
        for name in LAYERS {
            let of_phases = phases.map(|p| metric(&format!("wire.phases.{p}.layers.{name}_bytes")));
            let whole = metric(&format!("wire.layers.{name}_bytes"));
            assert_eq!(of_phases.iter().sum::<f64>(), whole, "{name}");
        }
    }
}

/// Publishers and subscribers are on hosts of their own, apart from the target and each other.
fn check_hosts(rows: &[Value]) {
    let host = |end: &Value| {
        let (address, _) = end.as_str().expect("an end").rsplit_once(':').expect("a port");
        address.to_owned()
    };
    for row in rows {
        assert_ne!(host(&row["local"]), host(&row["remote"]));
        for other in rows {
            let are_alike = row["hop"] == other["hop"];
            assert_eq!(host(&row["local"]) == host(&other["local"]), are_alike, "{row} {other}");
        }
    }
}

/// Sums over the packets of one direction.
#[derive(Default)]
struct Sums {
    packets: f64,
    bytes: f64,
    ip: f64,
    transport: f64,
    stream: f64,
    ack_only: f64,
    records: f64,
    handshake: f64,
    content: f64,
}

/// What tshark finds on the way to `port`, and on the way from it; in the records of TLS if they
/// `add` something to what is in them.
fn seen_by_tshark(file: &Path, port: u16, add: Option<f64>) -> [Sums; 2] {
    let mut sums = [Sums::default(), Sums::default()];
    let fields = ["tcp.srcport", "frame.len", "ip.hdr_len", "tcp.hdr_len", "tcp.len", "tcp.flags"];
    for row in tshark(file, "tcp", &fields, &[]) {
        let number = |at: usize| row[at].parse::<f64>().unwrap_or(0.0);
        let flags = u32::from_str_radix(row[5].trim_start_matches("0x"), 16).expect("flags");
        let sum = &mut sums[usize::from(row[0] == port.to_string())];
        sum.packets += 1.0;
        sum.bytes += number(1);
        sum.ip += number(2);
        sum.transport += number(3);
        sum.stream += number(4);
        // FIN, SYN and RST are the three lowest flags.
        sum.ack_only += f64::from(u8::from(number(4) == 0.0 && flags & 7 == 0));
    }
    let Some(add) = add else { return sums };
    let decode = format!("tcp.port=={port},tls");
    // The keys are in the file.
    let more = ["-d", &decode];
    let fields = ["tcp.srcport", "tls.record.content_type", "tls.record.length"];
    for row in tshark(file, "tls.record", &fields, &more) {
        let sum = &mut sums[usize::from(row[0] == port.to_string())];
        for (kind, length) in row[1].split(',').zip(row[2].split(',')) {
            let length: f64 = length.parse().expect("a length");
            sum.records += 1.0;
            match kind {
                "20" | "22" => sum.handshake += 5.0 + length,
                "23" => sum.content += length - add,
                _ => {}
            }
        }
    }
    sums
}

/// What a record of TLS adds to what is in it. RFC 8446, section 5.2: a tag of 16 bytes and a type;
/// RFC 5288, section 3: eight bytes of nonce and the tag. `None` without TLS.
fn record_adds(point: &Value) -> Option<f64> {
    let protocol = point["protocol"].as_str().expect("a protocol");
    match point[format!("{protocol}.tls")].as_str() {
        None | Some("off") => None,
        Some("1.2") => Some(24.0),
        Some(_) => Some(17.0),
    }
}

/// The values of `fields` in every packet that the display filter admits.
pub fn tshark(file: &Path, filter: &str, fields: &[&str], more: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-Y", filter, "-T", "fields"]).args(more);
    command.args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    // Nobody's settings, and none that may not be read.
    command.env("WIRESHARK_CONFIG_DIR", std::env::temp_dir()).env("HOME", std::env::temp_dir());
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.output().expect("tshark starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// MQTT 3.1.1 and 5.0, sections 3.1 to 3.14: sizes of packets with a topic of three bytes and
/// client identifiers of two, over both hops of a broker.
#[test]
fn mqtt_is_as_large_as_its_specification_says() {
    if !has_hosts("mqtt_is_as_large_as_its_specification_says") {
        return;
    }
    for (version, of_5) in [("3.1.1", 0.0), ("5", 1.0)] {
        let place = Place::new("mqtt-sizes");
        let version = format!("mqtt.version={version}");
        let words =
            ["mqtt", "--wire", "-Q", "-n", "20", "-s", "100B", "-c", "1", "--set", &version];
        let names = ["--set", "mqtt.topic=t/%i", "--set", "mqtt.client_id=%r%i"];
        place.compare(&[&words[..], &names[..]].concat()).with(0);
        let summary = place.summary();
        assert_eq!(cells(&summary).len(), 3, "a lane for each QoS");
        for cell in cells(&summary) {
            let qos = cell["point"]["mqtt.qos"].as_f64().expect("a QoS");
            // Type, length, topic, packet identifier above QoS 0; in 5.0 the length of properties.
            let publish = 2.0 + (2.0 + 3.0) + if qos > 0.0 { 2.0 } else { 0.0 } + of_5;
            let answers = [0.0, 4.0, 12.0][qos as usize];
            let messages = 20.0 * 2.0 * (publish + answers);
            let layer = |phase: &str, layer: &str| {
                figure(cell, &format!("wire.phases.{phase}.layers.{layer}_bytes"))
            };
            assert_eq!(layer("messages", "protocol"), messages, "{version} QoS {qos}");
            assert_eq!(layer("messages", "payload"), 20.0 * 2.0 * 100.0);
            assert_eq!(layer("tear_down", "protocol"), 2.0 * 2.0, "two DISCONNECTs");
            let connects = 2.0 * (2.0 + 10.0 + of_5 + 2.0 + 2.0);
            let subscribe = 2.0 + 2.0 + of_5 + 2.0 + 3.0 + 1.0;
            let (connacks, suback) = (2.0 * 4.0, 2.0 + 2.0 + of_5 + 1.0);
            let set_up = layer("set_up", "protocol");
            let least = connects + subscribe + connacks + suback;
            if of_5 == 0.0 {
                assert_eq!(set_up, least, "CONNECT, CONNACK, SUBSCRIBE, SUBACK");
            } else {
                // What a server of 5.0 announces is its own choice.
                assert!(set_up >= least, "{set_up}");
            }
            let hops = ["publishers", "subscribers"];
            let of_hops = hops.map(|hop| figure(cell, &format!("wire.hops.{hop}.bytes")));
            let both = figure(cell, "wire.sent.bytes") + figure(cell, "wire.received.bytes");
            assert_eq!(of_hops.iter().sum::<f64>(), both);
            assert!(!warnings(cell).contains(&"wire"), "{cell}");
        }
    }
}

/// RFC 9112, sections 3 and 4: a request is its line, its fields and its body, an answer without
/// content its line and its fields. Frames of the protocol tcp have a head of nine bytes.
#[test]
fn http_and_frames_are_as_large_as_their_formats_say() {
    if !has_hosts("http_and_frames_are_as_large_as_their_formats_say") {
        return;
    }
    let place = Place::new("http-sizes");
    let load = ["-n", "20", "-s", "1234B", "-c", "2", "--pattern", "session"];
    place.compare(&[&["http", "tcp", "--wire", "-Q"][..], &load[..]].concat()).with(0);
    let summary = place.summary();
    let events = place.journal();
    let mut checked = BTreeMap::new();
    for connections in events.iter().filter(|event| event["event"] == "connections") {
        for row in connections["rows"].as_array().expect("rows") {
            let host = row["remote"].as_str().expect("an address");
            let request = format!(
                "POST /messages HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
                 Content-Type: application/json\r\nContent-Length: 1234\r\n\r\n"
            );
            let answer = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let of = |name: &str| row["figures"][name].as_u64().unwrap_or(0);
            let [sent, received] =
                ["sent", "received"].map(|way| of(&format!("{way}.layers.protocol_bytes")));
            assert_eq!(of("sent.layers.payload_bytes"), 1234);
            let is_http = sent > 9;
            let sizes = if is_http { (request.len(), answer.len()) } else { (9, 9) };
            assert_eq!((sent as usize, received as usize), sizes, "{row}");
            *checked.entry(is_http).or_insert(0) += 1;
        }
    }
    assert_eq!(checked, BTreeMap::from([(true, 20), (false, 20)]), "a session for each message");
    for cell in cells(&summary) {
        assert_eq!(figure(cell, "wire.connections"), 20.0);
        assert_eq!(figure(cell, "wire.payload.bytes_per_session"), 1234.0);
        let (message, session) = ("wire.bytes_per_message", "wire.bytes_per_session");
        assert_eq!(figure(cell, message), figure(cell, session));
        assert_eq!(figure(cell, "wire.dropped_packets"), 0.0);
    }
    place.nobody_is_left();
}

/// Study 002's trap: with offloads on a capture sees a megabyte in a few super-packets, and most of
/// the headers are missing: 19 times as many were there in that study. One command shows it.
#[test]
fn offloads_hide_most_headers_and_the_result_says_so() {
    if !has_hosts("offloads_hide_most_headers_and_the_result_says_so") {
        return;
    }
    let place = Place::new("trap");
    let words = ["tcp", "-s", "1MB", "-n", "1", "-c", "1", "--wire", "--offload", "both", "-Q"];
    let ended = place.compare(&words).with(0);
    // Lines of a terminal may break anywhere.
    let plain = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains("as captured"), "{}", ended.stdout);
    let summary = place.summary();
    let of = |state: &str| {
        let found = cells(&summary).iter().find(|cell| cell["point"]["offload"] == state);
        found.unwrap_or_else(|| panic!("no {state} in {summary}"))
    };
    let (off, on) = (of("off"), of("on"));
    let headers = |cell: &Value| figure(cell, "wire.sent.layers.transport_bytes");
    // 1,000,009 bytes in segments of 1,448: 691, each with at least 32 bytes of header.
    assert!(headers(off) >= 691.0 * 32.0, "{}", headers(off));
    assert!(headers(off) > 10.0 * headers(on), "{} and {}", headers(off), headers(on));
    assert_eq!(figure(off, "wire.kernel.sent_packets"), figure(off, "wire.sent.packets"));
    assert!(figure(on, "wire.kernel.sent_packets") >= 691.0, "the kernel counts segments");
    assert!(warnings(on).contains(&"wire") && !warnings(off).contains(&"wire"), "{summary}");
    let label = on["scene"]["offloads"].as_str().expect("a state");
    assert!(label.contains("TSO on") && label.ends_with("as captured"), "{label}");
    for (words, told) in [
        (&["tcp", "--offload", "on"][..], "add --wire"),
        (&["tcp", "--wire", "--offload", "on", "--path", "internet"][..], "leave the path out"),
        (&["tcp", "--wire", "--offload", "maybe"][..], "off, on or both"),
    ] {
        Place::new("trap-refused").compare(words).with(2).saying(&[told]);
    }
}

/// The goodbye of a broker that still has to release messages is heard: nothing comes to a socket
/// that is closed already.
#[test]
fn a_broker_that_still_talks_at_the_end_is_counted_whole() {
    let test = "a_broker_that_still_talks_at_the_end_is_counted_whole";
    if !has_hosts(test) || !has("mosquitto") {
        return;
    }
    let place = Place::new("qos-2");
    let load = ["-n", "500", "-s", "100B", "-c", "4", "-q", "2"];
    place.compare(&[&["mosquitto", "--wire", "-Q"][..], &load[..]].concat()).with(0);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert!(!warnings(cell).contains(&"wire"), "{cell}");
    assert_eq!(figure(cell, "wire.layers.payload_bytes"), 2.0 * 500.0 * 100.0);
}

/// A path that lets nothing through is no target that is not there: the trial ends by its time
/// limit, and every message has its place.
#[test]
fn behind_a_path_that_loses_everything_every_message_has_its_place() {
    if !has_hosts("behind_a_path_that_loses_everything_every_message_has_its_place") {
        return;
    }
    let place = Place::new("void");
    place.write("void.toml", VOID);
    let words = ["tcp", "mqtt", "-q", "1", "--path", "void.toml", "-Q", "-d", "200ms"];
    let ended = place.compare(&[&words[..], &["-R", "50/s", "--timeout", "1s"]].concat());
    ended.with(98).saying(&["NOTHING WAS MEASURED"]);
    let summary = place.summary();
    for cell in cells(&summary) {
        let ledger = &cell["ledger"];
        assert_eq!(ledger["scheduled"], 10, "{cell}");
        assert_eq!(ledger["not_sent"], 10, "{cell}");
        assert_eq!(ledger["not_sent_causes"]["connection_closed"], 10, "{cell}");
        assert!(warnings(cell).contains(&"path-dropped"), "{cell}");
    }
    place.nobody_is_left();
}

const VOID: &str = r#"
name = "void"
title = "Void"
about = "Nothing arrives."
mtu = 1500
[up]
loss = "100%"
[down]
loss = "100%"
[sources]
mtu = "chosen"
"up.loss" = "chosen"
"down.loss" = "chosen"
"#;
