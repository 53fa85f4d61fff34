//! Protocols for which libraries speak, as a user weighs them: the record says so, foreign clients
//! and decoders agree, and a server of something else is named.

use std::process::Command;

use serde_json::Value;

use crate::rig::{Place, cells, figure, has, has_hosts};
use crate::serving::Server;
use crate::wire::tshark;

#[test]
fn the_record_says_that_a_library_speaks() {
    let place = Place::new("library");
    let words = ["http2", "grpc", "tcp", "-c", "2", "--window", "8", "-n", "400", "--json"];
    let summary = place.compare(&words).with(0).json();
    for (cell, library) in cells(&summary).iter().zip(["hyper", "tonic", ""]) {
        assert_eq!(cell["ledger"]["delivered"], 400, "{cell}");
        let told = cell["scene"]["library"].as_str().unwrap_or_default();
        assert!(told.starts_with(library) && told.is_empty() == library.is_empty(), "{told}");
    }
    let begun = &place.journal()[0];
    let kinds = begun["null_path"].as_array().expect("the baselines");
    let of = |load: &str| kinds.iter().find(|kind| kind["load"] == load).expect(load);
    assert!(of("grpc request")["library"].as_str().expect("a library").contains("tonic"));
    assert!(of("tcp request")["library"].is_null());
    place.nobody_is_left();
}

/// RFC 9113, section 4.1: every frame has a head of nine bytes; a client begins with a preface of
/// 24 (section 3.4). What tshark decodes as frames is what was counted, and what it decodes as DATA
/// holds the bodies, behind 5 + 2 bytes in each message of gRPC.
#[test]
fn frames_are_as_tshark_decodes_them() {
    let test = "frames_are_as_tshark_decodes_them";
    if !has_hosts(test) || !has("tshark") {
        return;
    }
    let place = Place::new("library-wire");
    let load = ["-n", "20", "-s", "100B", "-c", "2"];
    let words = [&["http2", "grpc", "--wire", "--pcap", "-Q"][..], &load].concat();
    place.compare(&words).with(0);
    let summary = place.summary();
    let journal = place.journal();
    for trial in journal.iter().filter(|event| event["event"] == "trial_finished") {
        let protocol = &trial["point"]["protocol"];
        let of_it = |cell: &&Value| cell["point"]["protocol"] == *protocol;
        let cell = cells(&summary).iter().find(of_it).expect("its cell");
        let is_grpc = protocol == "grpc";
        assert!(!cell["doubts"].to_string().contains("\"wire\""), "{}", cell["doubts"]);
        let rows = journal
            .iter()
            .find(|event| event["event"] == "connections" && event["trial"] == trial["trial"]);
        let remote = rows.expect("connections")["rows"][0]["remote"].as_str().unwrap().to_owned();
        let port = remote.rsplit(':').next().unwrap();
        let file = format!("{}.pcapng", trial["trial"].as_str().unwrap());
        let file = place.run().join("pcap").join(file);
        let (decode, filter) =
            (format!("tcp.port=={port},http2"), format!("http2 && tcp.dstport=={port}"));
        let fields = ["http2.type", "http2.length"];
        let (mut frame_bytes, mut data_bytes) = (0.0, 0.0);
        for row in tshark(&file, &filter, &fields, &["-d", &decode]) {
            for (kind, length) in row[0].split(',').zip(row[1].split(',')) {
                let length: f64 = length.parse().expect("a length");
                frame_bytes += 9.0 + length;
                data_bytes += if kind == "0" { length } else { 0.0 };
            }
        }
        let layer = |name: &str| figure(cell, &format!("wire.sent.layers.{name}_bytes"));
        let prefix = if is_grpc { 5.0 + 2.0 } else { 0.0 };
        assert_eq!(data_bytes, 20.0 * (100.0 + prefix), "{}", cell["name"]);
        assert_eq!(layer("payload"), 20.0 * 100.0);
        assert_eq!(layer("protocol") + layer("payload"), 2.0 * 24.0 + frame_bytes);
    }
    place.nobody_is_left();
}

/// h2load as a stranger: what it counts as answered is what the server counts.
#[test]
fn h2load_is_served() {
    if !has("h2load") {
        return;
    }
    let place = Place::new("library-h2load");
    let server = Server::start(&place, &["http2"]);
    place.write("body", &"x".repeat(64));
    let url = server.url.replace("h2c", "http") + "/messages";
    let mut command = Command::new("h2load");
    command.args(["-n", "500", "-c", "3", "-m", "20", "-d"]).arg(place.folder().join("body"));
    let output = command.arg(&url).output().expect("h2load starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("500 succeeded, 0 failed"), "{said}");
    let (code, last) = server.end("INT");
    assert_eq!(code, Some(0));
    let report: Value = serde_json::from_str(last.trim()).expect("a report");
    let counted = (&report["connections"], &report["received"], &report["foreign"]);
    assert_eq!(counted, (&3.into(), &500.into(), &500.into()));
}

#[test]
fn servers_of_something_else_are_named() {
    let place = Place::new("library-refused");
    for (serves, from, says) in [
        ("http1", "http", "it answers in HTTP/1"),
        ("http2", "h2c", "check that it has weigh.store.v1.Store"),
        ("tcp", "tcp", "grpc"),
    ] {
        let server = Server::start(&place, &[serves]);
        let url = server.url.replace(from, "grpc");
        let ended = place.compare(&[&url, "-n", "5"]).with(3);
        assert!(ended.stderr.contains(says), "{serves}: {}", ended.stderr);
        server.end("TERM");
    }
    for (url, says) in [
        ("grpc://127.0.0.1", "has no port\nhelp: type grpc://127.0.0.1:PORT"),
        ("grpc://127.0.0.1:1/Store", "the URL has the path /Store"),
        ("http3://127.0.0.1:1", "unknown scheme \"http3\"\nhelp: type mqtt://, http://"),
    ] {
        let ended = place.compare(&[url, "-n", "5"]).with(2);
        assert!(ended.stderr.contains(says), "{url}: {}", ended.stderr);
    }
    place.nobody_is_left();
}
