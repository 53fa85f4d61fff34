//! `weigh serve` in the foreground, and what a client sees of it.

use std::io::{BufRead, BufReader, Read};
use std::process::ChildStdout;

use serde_json::Value;

use crate::foreign::Process;
use crate::rig::{Place, signal};

/// A server that runs, with the URL it says it listens on. It ends with its test.
pub struct Server {
    pub child: Process,
    pub url: String,
    out: BufReader<ChildStdout>,
}

impl Server {
    pub fn start(place: &Place, words: &[&str]) -> Server {
        Server::begin(place, &[&["serve"], words].concat())
    }

    /// Whatever command of ours says first where it listens.
    pub fn begin(place: &Place, words: &[&str]) -> Server {
        let mut child = place.spawn(words);
        let mut out = BufReader::new(child.stdout.take().expect("its stdout"));
        let mut line = String::new();
        out.read_line(&mut line).expect("its first line");
        let url = line.trim().strip_prefix("listening on ").expect("where it listens").to_owned();
        Server { child: Process(child), url, out }
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Ends it by a signal; its exit code and its last line.
    pub fn end(mut self, name: &str) -> (Option<i32>, String) {
        signal(name, self.child.id());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("its last line");
        (self.child.wait().expect("it ends").code(), rest)
    }
}

#[test]
fn every_reference_server_serves_until_it_is_told_to_end() {
    let place = Place::new("serve");
    for (protocol, scheme, name) in [
        ("mqtt", "mqtt", "TERM"),
        ("http", "http", "INT"),
        ("tcp", "tcp", "TERM"),
        ("coap", "coap", "TERM"),
        ("nats", "nats", "INT"),
        ("redis", "redis", "TERM"),
        ("http2", "h2c", "TERM"),
        ("grpc", "grpc", "INT"),
        ("amqp", "amqp", "TERM"),
        ("amqp1", "amqp1", "INT"),
        ("websocket", "websocket", "TERM"),
        ("sse", "sse", "TERM"),
        ("kafka", "kafka", "INT"),
    ] {
        // Its stdin is /dev/null, as in the background of a script: it must not end by that.
        let server = Server::start(&place, &[protocol]);
        assert!(server.url.starts_with(&format!("{scheme}://127.0.0.1:")), "{}", server.url);
        let mut words = vec![&*server.url, "-n", "40", "-s", "64B", "--json"];
        if protocol == "mqtt" {
            words.extend(["-q", "1"]);
        }
        if protocol == "coap" {
            words.extend(["--set", "coap.type=con"]);
        }
        if protocol == "nats" {
            words.extend(["--set", "nats.confirm=jetstream"]);
        }
        if protocol == "kafka" {
            words.extend(["--set", "kafka.acks=all"]);
        }
        if protocol == "redis" {
            words.extend(["--set", "redis.command=xadd"]);
        }
        if protocol == "websocket" {
            words.extend(["--set", "websocket.confirm=reply"]);
        }
        if protocol == "amqp1" {
            words.extend(["--set", "amqp1.transfers=unsettled", "--set", "amqp1.durable=true"]);
        }
        if protocol == "amqp" {
            words.extend(["--set", "amqp.delivery_mode=persistent"]);
        }
        let summary = place.compare(&words).with(0).json();
        assert_eq!(summary["cells"][0]["ledger"]["delivered"], 40);
        let (code, last) = server.end(name);
        assert_eq!(code, Some(0), "{last}");
        let report: Value = serde_json::from_str(last.trim()).expect("the last line is JSON");
        assert!(report.to_string().contains("40"), "{report}");
    }
    place.nobody_is_left();
}

#[test]
fn a_port_in_use_is_named_with_the_fix() {
    let place = Place::new("in-use");
    let server = Server::start(&place, &["mqtt"]);
    let address = server.url.trim_start_matches("mqtt://").to_owned();
    let ended = place.weigh(&["serve", "tcp", "--listen", &address]).with(3);
    ended.saying(&[&address, "in use", "port 0 for a free one"]);
    server.end("TERM");
}

#[test]
fn credentials_are_asked_for_and_never_kept() {
    let place = Place::new("credentials");
    let secret = "open-sesame-4711";
    let password = format!("mqtt.broker_password={secret}");
    let words = ["mqtt", "--set", "mqtt.broker_user=ada", "--set", &password];
    let server = Server::start(&place, &words);
    let load = ["-q", "1", "-n", "10", "--reps", "1", "-c", "2"];

    let mut all = vec!["compare", &server.url, "--runs", "wrong"];
    all.extend(load);
    place.weigh(&all).with(3).saying(&["refused", "credentials"]);
    all.extend(["--user", "ada"]);
    let wrong = place.command(&all).env("WEIGH_PASSWORD", "guessed").output().expect("it starts");
    assert_eq!(wrong.status.code(), Some(3));

    all[3] = "right";
    let right = place.command(&all).env("WEIGH_PASSWORD", secret).output().expect("it starts");
    assert_eq!(right.status.code(), Some(0), "{}", String::from_utf8_lossy(&right.stderr));
    let url = server.url.replace("mqtt://", &format!("mqtt://ada:{secret}@"));
    let mut in_url = vec!["compare", &url, "--runs", "url"];
    in_url.extend(load);
    let by_url = place.weigh(&in_url).with(0);
    let mut asked = vec!["compare", "--runs", "own"];
    asked.extend(words);
    asked.extend(load);
    let own = place.weigh(&asked).with(0);

    for text in [&by_url.stdout, &by_url.stderr, &own.stdout, &own.stderr] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(!String::from_utf8_lossy(&right.stdout).contains(secret));
    let found = holding(place.folder(), secret.as_bytes());
    assert!(found.is_empty(), "the password stands in {found:?}");
    server.end("TERM");
    place.nobody_is_left();
}

/// Files below `folder` that hold `text`.
fn holding(folder: &std::path::Path, text: &[u8]) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if std::fs::read(&path).is_ok_and(|all| all.windows(text.len()).any(|w| w == text)) {
            found.push(path);
        }
    }
    found
}
