//! What a confirmation means: reference servers store what they confirm, and nothing confirmed is
//! missing after `kill -9` of the server; a full disk is named; durability is a swept key, and
//! only equal durability is compared. The end of a process is tested, a power cut is not.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use weigh_engine::storage::messages;
use weigh_model::mark::{Mark, Reading};

use crate::rig::{Place, has};
use crate::serving::Server;

/// Bodies of all whole messages in the store of a server.
fn stored(folder: &Path) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the store's folder") {
        let file = std::fs::read(entry.expect("an entry").path()).expect("a file of the store");
        messages(&file, |_, body| bodies.push(body.to_vec())).expect("a store's file");
    }
    bodies
}

/// Numbers of the messages that a load sent, by producer.
fn marks(bodies: &[Vec<u8>]) -> BTreeSet<(u32, u64)> {
    let mark = |body: &Vec<u8>| match Mark::read_any(body) {
        Reading::Whole(mark) => (mark.producer, mark.sequence),
        other => panic!("{other:?}"),
    };
    bodies.iter().map(mark).collect()
}

fn cell<'s>(summary: &'s Value, name: &str) -> &'s Value {
    let cells = summary["cells"].as_array().unwrap();
    let named = |cell: &&Value| cell["name"].as_str().unwrap().contains(name);
    cells.iter().find(named).unwrap_or_else(|| panic!("no cell {name}: {summary:#}"))
}

/// Quorum queues store transient messages too.
const QUORUM: &[&str] = &[
    "--set",
    "amqp.queue_type=quorum",
    "--set",
    "amqp.delivery_mode=transient",
    "--set",
    "amqp.confirms=true",
];

#[test]
fn every_protocol_stores_exactly_what_it_confirmed() {
    let place = Place::new("stores");
    for (protocol, words) in [
        ("mqtt", &["-q", "1"][..]),
        ("mqtt", &["-q", "2"]),
        ("http", &[]),
        ("tcp", &[]),
        #[cfg(feature = "tls")]
        ("http", &["--tls"]),
        ("coap", &[]),
        ("nats", &["--set", "nats.confirm=jetstream"]),
        ("redis", &["--set", "redis.command=xadd"]),
        ("websocket", &["--set", "websocket.confirm=reply"]),
        ("sse", &["--pattern", "publish"]),
        ("kafka", &["--set", "kafka.acks=all"]),
        ("http2", &[]),
        ("grpc", &[]),
        ("amqp", &["--set", "amqp.confirms=true", "--set", "amqp.delivery_mode=persistent"]),
        ("amqp", QUORUM),
        ("amqp1", &["--set", "amqp1.transfers=unsettled", "--set", "amqp1.durable=true"]),
        #[cfg(feature = "library")]
        ("http2", &["--set", "http2.implementation=hosted"]),
        #[cfg(feature = "library")]
        ("grpc", &["--set", "grpc.implementation=hosted"]),
    ] {
        let folder = format!("store-{protocol}-{}", words.join(""));
        let is_secure = words.contains(&"--tls");
        let mut serve = vec![protocol, "--durability", "page-cache", "--store", &folder];
        if is_secure {
            serve.extend(["--set", "http1.tls=on", "--certificates", "certificates"]);
        }
        if words.first() == Some(&"--set") {
            serve.extend(words);
        }
        let mut server = Server::start(&place, &serve);
        let mut load = vec![&*server.url, "-n", "200", "-s", "64B", "--json"];
        load.extend(words.iter().filter(|word| **word != "--tls"));
        if is_secure {
            load.extend(["--insecure"]);
        }
        let summary = place.compare(&load).with(0).json();
        let ledger = &summary["cells"][0]["ledger"];
        assert_eq!(ledger["acknowledged"], 200, "{protocol}: {ledger}");
        server.child.kill().expect("SIGKILL");
        server.child.wait().expect("it is gone");
        let bodies = stored(&place.folder().join(&folder));
        assert_eq!((bodies.len(), marks(&bodies).len()), (200, 200), "{protocol} {words:?}");
    }
}

#[test]
fn a_large_message_is_stored_whole_before_it_is_confirmed() {
    let place = Place::new("large");
    let words = ["http", "--durability", "fsync", "--store", "large"];
    let mut server = Server::start(&place, &words);
    let load = [&*server.url, "-n", "3", "-s", "3MB", "-c", "2", "--json"];
    let summary = place.compare(&load).with(0).json();
    assert_eq!(summary["cells"][0]["ledger"]["acknowledged"], 3);
    server.child.kill().expect("SIGKILL");
    server.child.wait().expect("it is gone");
    let bodies = stored(&place.folder().join("large"));
    assert!(bodies.iter().all(|body| body.len() == 3_000_000));
    assert_eq!(marks(&bodies).len(), 3);
}

/// Posts numbered bodies on one connection, and returns how many were confirmed when it broke.
/// `confirmed` counts all connections' while it runs.
fn post_until_it_breaks(address: &str, client: usize, confirmed: &AtomicU64) -> u64 {
    let Ok(mut stream) = TcpStream::connect(address) else { return 0 };
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    for number in 0.. {
        let body = body(client, number);
        let request = format!(
            "POST /messages HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut line = String::new();
        let is_confirmed = stream.write_all(request.as_bytes()).is_ok()
            && reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0)
            && line.starts_with("HTTP/1.1 201");
        if !is_confirmed {
            return number;
        }
        confirmed.fetch_add(1, Ordering::Relaxed);
        while line != "\r\n" {
            line.clear();
            if !reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                // The confirmation had begun, and what it confirms must be there.
                return number + 1;
            }
        }
    }
    unreachable!("it ends when the server does")
}

fn body(client: usize, number: u64) -> String {
    format!("{client} {number} {}", "x".repeat(500))
}

fn address(server: &Server) -> String {
    server.url.trim_start_matches("http://").trim_end_matches('/').to_owned()
}

/// The server is killed while four clients post: each of them knows what was confirmed.
#[test]
fn what_was_confirmed_before_sigkill_is_in_the_file() {
    for durability in ["page-cache", "fsync", "fsync=5ms"] {
        let place = Place::new("killed");
        let words = ["http", "--durability", durability, "--store", "killed"];
        let mut server = Server::start(&place, &words);
        let address = address(&server);
        let all = AtomicU64::new(0);
        let confirmed: Vec<u64> = std::thread::scope(|scope| {
            let post = |client| {
                let (address, all) = (&address, &all);
                scope.spawn(move || post_until_it_breaks(address, client, all))
            };
            let clients: Vec<_> = (0..4).map(post).collect();
            while all.load(Ordering::Relaxed) < 200 {
                std::thread::yield_now();
            }
            server.child.kill().expect("SIGKILL");
            clients.into_iter().map(|client| client.join().expect("a client")).collect()
        });
        server.child.wait().expect("it is gone");
        let bodies: BTreeSet<Vec<u8>> =
            stored(&place.folder().join("killed")).into_iter().collect();
        for (client, number) in confirmed.iter().enumerate() {
            for number in 0..*number {
                let body = body(client, number).into_bytes();
                assert!(bodies.contains(&body), "{durability}: {client} {number} was confirmed");
            }
        }
        // Besides those, at most one message of each client was on its way.
        let known: u64 = confirmed.iter().sum();
        assert!(known >= 200 && bodies.len() as u64 <= known + 4, "{known} and {}", bodies.len());
    }
}

#[test]
fn a_full_disk_is_named_and_nothing_is_confirmed_after_it() {
    if !has("sh") {
        return;
    }
    let place = Place::new("full");
    // A limit on the size of files (setrlimit(2)), whose signal is ignored, so that write(2) fails.
    let weigh = env!("CARGO_BIN_EXE_weigh");
    let line = format!(
        "trap '' XFSZ; ulimit -f 8; exec '{weigh}' serve http --durability page-cache --store full"
    );
    let mut command = place.program("sh", &["-c", &line]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("sh starts");
    let mut out = BufReader::new(child.stdout.take().expect("its stdout"));
    let mut first = String::new();
    out.read_line(&mut first).expect("its first line");
    let address = first.trim().trim_start_matches("listening on http://").trim_end_matches('/');
    let confirmed = post_until_it_breaks(address, 0, &AtomicU64::new(0));
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
    let mut said = String::new();
    child.stderr.take().expect("its stderr").read_to_string(&mut said).expect("its words");
    assert!(said.contains("cannot write to full/store-0-0.log: "), "{said}");
    assert!(said.contains("help: make room there"), "{said}");
    let bodies = stored(&place.folder().join("full"));
    assert!(confirmed > 0 && bodies.len() as u64 >= confirmed, "{confirmed}, {}", bodies.len());
    for (number, own) in (0..confirmed).zip(&bodies) {
        assert_eq!(*own, body(0, number).into_bytes());
    }
}

#[test]
fn one_comparison_answers_what_durability_costs() {
    let place = Place::new("cost");
    let words = ["mqtt", "http", "-q", "1", "--pattern", "publish", "--durability", "memory,fsync"];
    let mut words = words.to_vec();
    words.extend(["-n", "60", "-c", "2", "--reps", "3", "--warmup", "0s", "--json"]);
    words.insert(0, "compare");
    let summary = place.weigh(&words).with(0).json();
    for (name, durability) in [
        ("mqtt qos=1 memory", "memory"),
        ("mqtt qos=1 fsync", "fsync"),
        ("http1 memory", "memory"),
        ("http1 fsync", "fsync"),
    ] {
        let cell = cell(&summary, name);
        assert_eq!(cell["durability"], durability);
        let counter = |name: &str| cell["metrics"][format!("counter.{name}")]["value"].as_f64();
        match durability {
            "memory" => assert_eq!(counter("store_syncs"), None),
            _ => {
                assert_eq!(counter("store_records"), Some(60.0), "{name}");
                let syncs = counter("store_syncs").expect("syncs");
                assert!((1.0..=60.0).contains(&syncs) && counter("store_sync_ns") > Some(0.0));
            }
        }
    }
    let refused = |left: &str, right: &str| {
        let comparisons = summary["comparisons"].as_array().unwrap().iter();
        let of = |own: &&Value| {
            let names = [&own["left"], &own["right"]].map(|name| name.as_str().unwrap());
            let has = |name: &str| names.iter().any(|own| own.starts_with(name));
            has(left) && has(right)
        };
        let reasons: Vec<&str> =
            comparisons.filter(of).map(|own| own["reason"].as_str().unwrap_or("")).collect();
        assert!(!reasons.is_empty(), "{left} and {right} are a pair");
        reasons.iter().all(|reason| reason.ends_with("(L21)"))
    };
    assert!(refused("mqtt qos=1 memory", "http1 fsync"));
    assert!(!refused("mqtt qos=1 memory", "mqtt qos=1 fsync"), "the question itself");
    assert!(!refused("mqtt qos=1 fsync", "http1 fsync"));
    let table = place.weigh(&["report", "latest"]);
    assert!(table.stdout.contains("at least once, fsync, reference"), "{}", table.stdout);
    // Its files are as large as what was sent: they end with the server.
    let left: Vec<_> =
        walk(&place.run()).into_iter().filter(|path| path.ends_with(".log")).collect();
    assert!(!left.iter().any(|path| path.contains("store-")), "{left:?}");
    place.nobody_is_left();
}

fn walk(folder: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => paths.extend(walk(&path)),
            path => paths.push(path.display().to_string()),
        }
    }
    paths
}

#[test]
fn a_url_is_unknown_until_it_is_stated_and_is_compared_all_the_same() {
    let place = Place::new("stated");
    let server = Server::start(&place, &["http"]);
    let words = ["http", &server.url, "-s", "64B", "-n", "20", "--json"];
    let summary = place.compare(&words).with(0).json();
    let own = cell(&summary, &server.url);
    assert_eq!(own["durability"], "unknown");
    let codes = |cell: &Value| {
        let warnings = cell["doubts"].as_array().unwrap().iter();
        warnings.map(|own| own["code"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(codes(own).contains(&"L21".to_owned()), "{:?}", codes(own));
    let reasons = summary["comparisons"].to_string();
    assert!(!reasons.contains("durability differs"), "{reasons}");
    let words = ["http", &server.url, "-s", "64B", "-n", "20", "--durability", "page-cache"];
    let summary = place.compare(&[&words[..], &["--json"]].concat()).with(0).json();
    assert_eq!(cell(&summary, &server.url)["durability"], "page-cache");
    assert!(!codes(cell(&summary, &server.url)).contains(&"L21".to_owned()));
}

#[test]
fn what_cannot_be_is_refused_with_what_to_type() {
    let place = Place::new("refused");
    for (words, expected) in [
        (&["compare", "http", "--durability", "disk"][..], "unknown durability \"disk\""),
        (&["compare", "http", "--durability", "replicated=3"], "a reference server cannot be"),
        (&["compare", "mqtt", "-q", "0", "--durability", "fsync"], "none is measured"),
        (&["limit", "http", "--durability", "memory,fsync"], "type one value"),
        (
            &["compare", "http://127.0.0.1:9", "--durability", "memory,fsync"],
            "has one durability, and several were given",
        ),
        (&["serve", "http", "--durability", "none"], "a reference server cannot be none"),
        (&["serve", "http", "--store", "x"], "nothing is stored in memory"),
    ] {
        let ended = place.weigh(words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
    }
    if Path::new("/dev/shm").is_dir() {
        let folder = format!("/dev/shm/{}", place.mark());
        let ended = place.weigh(&["serve", "http", "--durability", "fsync", "--store", &folder]);
        let _ = std::fs::remove_dir(&folder);
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        assert!(ended.stderr.contains("is in memory (tmpfs)"), "{}", ended.stderr);
    }
}
