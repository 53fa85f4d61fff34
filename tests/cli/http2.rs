//! HTTP/2 and gRPC as a user measures them: foreign clients, servers and decoders agree, the record
//! names the implementation, and a server of something else is named.

use std::process::Command;

use serde_json::Value;

use crate::foreign::Installed;
use crate::rig::{Place, cells, figure, has, has_hosts};
use crate::serving::Server;
use crate::wire::tshark;

#[test]
fn the_record_names_the_libraries_that_were_asked_for() {
    let place = Place::new("http2-implementations");
    let words = ["http2", "grpc", "tcp", "-c", "2", "--window", "8", "-n", "400", "--json"];
    let summary = place.compare(&words).with(0).json();
    for cell in cells(&summary) {
        assert_eq!(cell["ledger"]["delivered"], 400, "{cell}");
        assert!(cell["scene"]["library"].is_null(), "{cell}");
    }
    if !cfg!(feature = "library") {
        return;
    }
    for (protocol, library) in [("http2", "hyper"), ("grpc", "tonic")] {
        let set = format!("{protocol}.implementation=hosted");
        let words = [protocol, "--set", &set, "-c", "2", "--window", "8", "-n", "400", "--json"];
        let place = Place::new(&format!("{protocol}-hosted"));
        let summary = place.compare(&words).with(0).json();
        let cell = &cells(&summary)[0];
        assert_eq!(cell["ledger"]["delivered"], 400, "{cell}");
        assert!(cell["scene"]["library"].as_str().expect("a library").starts_with(library));
        let journal = place.journal();
        let kinds = journal[0]["null_path"].as_array().expect("the baselines");
        let is_named =
            |kind: &Value| kind["library"].as_str().is_some_and(|named| named.starts_with(library));
        assert!(kinds.iter().any(is_named), "{kinds:?}");
    }
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
    let place = Place::new("http2-wire");
    let load = ["-n", "20", "-s", "100B", "-c", "2"];
    let words = [&["http2", "grpc", "--wire", "--pcap", "-Q"][..], &load].concat();
    place.compare(&words).with(0);
    let summary = place.summary();
    for trial in place.of_kind("trial_finished") {
        let protocol = &trial["point"]["protocol"];
        let of_it = |cell: &&Value| cell["point"]["protocol"] == *protocol;
        let cell = cells(&summary).iter().find(of_it).expect("its cell");
        let is_grpc = protocol == "grpc";
        assert!(!cell["doubts"].to_string().contains("\"wire\""), "{}", cell["doubts"]);
        let mut rows = place.of_kind("connections").into_iter();
        let rows = rows.find(|event| event["trial"] == trial["trial"]).expect("connections");
        let remote = rows["rows"][0]["remote"].as_str().unwrap().to_owned();
        let port = remote.rsplit(':').next().unwrap();
        let file = place.pcap(&trial);
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
    let place = Place::new("http2-h2load");
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

/// curl and nghttp as strangers: small bodies, and one that is larger than the windows at first.
#[test]
fn curl_and_nghttp_are_served() {
    if !has("curl") || !has("nghttp") {
        return;
    }
    let place = Place::new("http2-curl");
    let server = Server::start(&place, &["http2"]);
    let url = server.url.replace("h2c", "http") + "/messages";
    for (name, bytes) in [("small", 64), ("large", 1_000_000)] {
        place.write(name, &"x".repeat(bytes));
        let file = place.folder().join(name);
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--http2-prior-knowledge", "-o", "/dev/null", "-w"]);
        curl.args(["%{http_code} %{http_version}", "--data-binary"]);
        curl.arg(format!("@{}", file.display())).arg(&url);
        let output = curl.output().expect("curl starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "201 2", "{name}");
        let output = Command::new("nghttp").arg("-nv").arg("-d").arg(&file).arg(&url).output();
        let said = output.expect("nghttp starts").stdout;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(":status: 201") && !said.contains("RST_STREAM"), "{said}");
    }
    let (code, last) = server.end("INT");
    assert_eq!(code, Some(0));
    let report: Value = serde_json::from_str(last.trim()).expect("a report");
    assert_eq!((&report["connections"], &report["received"]), (&4.into(), &4.into()));
}

/// nginx as a foreign server: bodies up to four times its window, and an error answer.
#[test]
fn nginx_is_a_server_of_http2() {
    let place = Place::new("http2-nginx");
    let Some(nginx) = nginx(&place, "") else { return };
    let url = |path: &str| format!("{}{path}", nginx.url("h2c"));
    for size in ["64B", "256KB"] {
        let words = [&*url("/messages"), "-c", "2", "--window", "4", "-n", "200", "-s", size];
        let summary = place.compare(&[&words[..], &["--json"]].concat()).with(0).json();
        let ledger = &cells(&summary)[0]["ledger"];
        assert_eq!((&ledger["delivered"], &ledger["lost"]), (&200.into(), &0.into()), "{ledger}");
    }
    let ended = place.compare(&[&url("/busy"), "-n", "20", "--undecided", "pass"]).with(0);
    assert!(ended.stderr.contains("status 503"), "{}", ended.stderr);
}

/// RFC 9113, section 6.8: nginx closes a connection after 100 requests, with GOAWAY, and does not
/// process what the client had sent behind them. It is sent again, and nothing is lost.
#[test]
fn what_nginx_does_not_process_is_sent_again() {
    let place = Place::new("http2-goaway");
    let Some(nginx) = nginx(&place, "keepalive_requests 100;") else { return };
    let url = nginx.url("h2c") + "/messages";
    for further in [&["--window", "16"][..], &["-R", "20k/s"]] {
        let load = ["-c", "2", "-n", "4000", "-s", "64B", "--json"];
        let words = [&[&*url][..], &load, further].concat();
        let summary = place.compare(&words).with(0).json();
        let cell = &cells(&summary)[0];
        let ledger = &cell["ledger"];
        assert_eq!((&ledger["delivered"], &ledger["lost"]), (&4000.into(), &0.into()), "{ledger}");
        assert!(figure(cell, "sent_again") >= 1.0, "{further:?}");
    }
}

/// As the server of HTTP/1.1: without a path of its own it stores what is posted anywhere.
#[test]
fn the_server_stores_a_post_at_any_path() {
    if !has("curl") {
        return;
    }
    let place = Place::new("http2-any-path");
    let ask = |server: &Server, words: &[&str], path: &str| {
        let url = server.url.replace("h2c", "http") + path;
        let fixed = ["-sS", "--http2-prior-knowledge", "-o", "/dev/null", "-w", "%{http_code}"];
        let output = Command::new("curl").args(fixed).args(words).arg(&url).output();
        String::from_utf8_lossy(&output.expect("curl starts").stdout).into_owned()
    };
    let ways: &[&[&str]] = match cfg!(feature = "library") {
        true => &[&[], &["--set", "http2.implementation=hosted"]],
        false => &[&[]],
    };
    for words in ways {
        let server = Server::start(&place, &[&["http2"], *words].concat());
        for path in ["/", "/any/where", "/messages"] {
            assert_eq!(ask(&server, &["-d", "x"], path), "201", "{path}");
        }
        for (path, status) in [("/", "200"), ("/healthz", "200"), ("/none", "404")] {
            assert_eq!(ask(&server, &[], path), status, "{path}");
        }
        assert_eq!(ask(&server, &["-d", "x"], "/healthz"), "405");
        let (_, last) = server.end("INT");
        assert!(last.contains("\"received\":3"), "{last}");
        let own = ["http2", "--set", "http2.path=/only"];
        let server = Server::start(&place, &[&own, *words].concat());
        assert_eq!(ask(&server, &["-d", "x"], "/other"), "404");
        assert_eq!(ask(&server, &["-d", "x"], "/only"), "201");
        server.end("INT");
    }
}

/// nginx with HTTP/2 by prior knowledge, and a further line of settings.
fn nginx(place: &Place, further: &str) -> Option<Installed> {
    let http = format!(
        "client_max_body_size 1m; client_body_temp_path .;\n{further}\n\
         server {{ listen 127.0.0.1:PORT http2; location / {{ return 200; }}\n\
         location = /busy {{ return 503; }} }}"
    );
    Installed::nginx(place, &http)
}

#[test]
fn servers_of_something_else_are_named() {
    let place = Place::new("http2-refused");
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
        ("http3://127.0.0.1:1", "unknown scheme \"http3\"\nhelp: did you mean h3://?"),
    ] {
        let ended = place.compare(&[url, "-n", "5"]).with(2);
        assert!(ended.stderr.contains(says), "{url}: {}", ended.stderr);
    }
    place.nobody_is_left();
}

/// Any service needs a part of the build that `full` has.
#[cfg(not(feature = "proto"))]
#[test]
fn a_build_without_definitions_says_how_to_get_them() {
    let place = Place::new("grpc-unbuilt");
    let words = ["grpc://127.0.0.1:1", "--method", "a.B/C", "-n", "5"];
    place.compare(&words).with(2).saying(&["--features full"]);
}
