//! The services of the storage pipeline, as a user starts them, and what becomes of readings in
//! them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};

use rusqlite::Connection;
use serde_json::Value;
use weigh_model::hop::{HOP_BYTES, Hop, HopStage};

use crate::rig::{Place, cells, signal, until};
use crate::serving::Server;

/// A process of `weigh serve`, and what it says.
struct Stage {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Stage {
    fn start(place: &Place, words: &[&str]) -> Stage {
        let mut all = vec!["serve"];
        all.extend(words);
        let mut child = place.spawn(&all);
        let out = BufReader::new(child.stdout.take().expect("its stdout"));
        Stage { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Lines up to that of this stage, by their first word.
    fn lines_to(&mut self, last: &str) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            let (word, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
            lines.push((word.to_owned(), rest.to_owned()));
            if word == last {
                return lines;
            }
        }
    }

    /// Ends it; what it counted.
    fn end(mut self) -> Value {
        signal("TERM", self.child.id());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("its last line");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0), "{rest}");
        let last = rest.lines().last().expect("a last line");
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{last}: {error}"))
    }
}

/// The URL and the pid in `api http://127.0.0.1:1 pid 2`.
fn place_of(lines: &[(String, String)], name: &str) -> (String, u32) {
    let (_, rest) = lines.iter().find(|(word, _)| word == name).expect(name);
    let (url, pid) = rest.rsplit_once(" pid ").expect("a pid");
    (url.to_owned(), pid.parse().expect("a number"))
}

/// Status and body of one request, by a client that knows nothing but HTTP/1.1.
fn ask(url: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let at = url.strip_prefix("http://").expect("an address");
    let mut stream = TcpStream::connect(at).expect("a connection");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{answer}: {error}")))
}

fn rows(database: &std::path::Path, question: &str) -> i64 {
    let database = Connection::open(database).expect("the database");
    database.query_row(question, [], |row| row.get(0)).expect("a number")
}

fn hops(file: &std::path::Path) -> Vec<Hop> {
    let bytes = std::fs::read(file).unwrap_or_default();
    let whole = bytes.chunks_exact(HOP_BYTES);
    whole.map(|one| Hop::decode(one.try_into().expect("40 bytes")).expect("a hop")).collect()
}

const ALL: &str = "SELECT count(*) FROM readings";

const READING: &str =
    r#"{"sensor":"farm1/tank2","time":"2026-01-31T12:00:00Z","values":{"ph":6.1,"ec":1.8}}"#;

/// What a load sends so that it is a reading; the mark comes last.
const BODY: &str =
    r#"template:{"sensor":"farm1/tank{client}","time":"2026-01-31T12:00:00Z","values":{"ph":6.1}}"#;

/// The whole by HTTP: what goes in comes out, in order, by cursor and by sensor, and stands in a
/// file of SQLite that anybody may read.
#[test]
fn readings_go_in_and_come_out() {
    let place = Place::new("pipeline-http");
    let file = place.folder().join("readings.db");
    let words =
        ["pipeline", "--stages", "api,store", "--database", "readings.db", "--hops", "hops"];
    let mut whole = Stage::start(&place, &words);
    let lines = whole.lines_to("api");
    let named: Vec<&str> = lines.iter().map(|(word, _)| word.as_str()).collect();
    assert_eq!(named, ["store", "database", "durable", "api"]);
    assert_eq!((&*lines[1].1, &*lines[2].1), ("readings.db", "on"));
    let (api, _) = place_of(&lines, "api");
    let (store, _) = place_of(&lines, "store");
    assert!(store.starts_with("grpc://127.0.0.1:"), "{store}");

    assert_eq!(ask(&api, "POST", "/readings", READING), (201, serde_json::json!({"stored": 1})));
    let other = READING.replace("tank2", "tank3");
    let two = format!("[{other},{READING}]");
    assert_eq!(ask(&api, "POST", "/readings", &two), (201, serde_json::json!({"stored": 2})));
    for (body, reason) in [
        ("hello", "line 1 column 1"),
        (r#"{"sensor":"a"}"#, "missing field `time`"),
        (&*READING.replace("2026-01-31T12:00:00Z", "noon"), "RFC 3339"),
        ("[]", "at least one"),
    ] {
        let (status, said) = ask(&api, "POST", "/readings", body);
        assert!(status == 400 && said["error"].as_str().unwrap().contains(reason), "{said}");
    }

    let (status, first) = ask(&api, "GET", "/readings?limit=2", "");
    assert_eq!((status, first["readings"].as_array().unwrap().len()), (200, 2));
    assert_eq!(first["readings"][0], serde_json::from_str::<Value>(READING).unwrap());
    let next = first["next"].as_str().expect("a cursor");
    let (_, rest) = ask(&api, "GET", &format!("/readings?since={next}&limit=9"), "");
    assert_eq!(rest["readings"].as_array().unwrap().len(), 1);
    let (_, of_it) = ask(&api, "GET", "/readings/farm1/tank3", "");
    assert_eq!(
        of_it["readings"],
        serde_json::json!([serde_json::from_str::<Value>(&other).unwrap()])
    );
    for path in ["/readings?since=x", "/readings?limit=0", "/readings?limit=10001"] {
        assert_eq!(ask(&api, "GET", path, "").0, 400, "{path}");
    }
    assert_eq!(ask(&api, "GET", "/elsewhere", "").0, 404);
    assert_eq!(
        ask(&api, "GET", "/healthz", ""),
        (200, serde_json::json!({"status": "ok", "readings": 3}))
    );

    // The store takes the calls of any client; what is no reading has no sensor.
    place.compare(&[&store, "-n", "40", "--body", "text:x"]).with(0);
    let counts = whole.end();
    assert_eq!(counts["api"]["refused"], 4, "{counts}");
    assert_eq!((&counts["api"]["stored"], &counts["store"]["rows"]), (&3.into(), &43.into()));
    assert_eq!(rows(&file, ALL), 43);
    assert_eq!(rows(&file, "SELECT count(*) FROM readings WHERE sensor = 'farm1/tank2'"), 2);
    assert_eq!(hops(&place.folder().join("hops/store.hops")).len(), 40);
    assert_eq!(hops(&place.folder().join("hops/api.hops")).len(), 0, "they carry no mark");
    place.nobody_is_left();
}

/// The gateway is killed again and again in the middle of a load at QoS 1, and started again: every
/// message that the broker confirmed is in the database, what came twice is counted as that, and
/// hops tell its way.
#[test]
fn a_killed_gateway_loses_nothing() {
    let place = Place::new("pipeline-kill");
    let file = place.folder().join("readings.db");
    let words = [
        "pipeline",
        "--database",
        "readings.db",
        "--durable",
        "off",
        "--hops",
        "hops",
        "--batch",
        "50",
    ];
    let mut whole = Stage::start(&place, &words);
    let lines = whole.lines_to("gateway");
    let (broker, _) = place_of(&lines, "broker");
    let (_, mut gateway) = place_of(&lines, "gateway");
    let load = [
        "compare",
        &broker,
        "-q",
        "1",
        "--pattern",
        "publish",
        "-c",
        "4",
        "--window",
        "50",
        "-R",
        "1k/s",
        "-d",
        "3s",
        "--warmup",
        "0s",
        "--reps",
        "1",
        "--body",
        BODY,
    ];
    let program = place.spawn(&load);
    let stored = || if file.exists() { rows(&file, ALL) } else { 0 };
    for kill in 1..=3 {
        until("readings come on", || stored() > 500 * kill);
        signal("KILL", gateway);
        gateway = whole.lines_to("gateway").pop().map(|(_, rest)| pid_in(&rest)).expect("again");
    }
    crate::rig::wait(program).with(0);
    let summary = place.summary();
    let ledger = &cells(&summary)[0]["ledger"];
    // Every message was handed to the broker, which keeps it for the gateway's session.
    let confirmed = ledger["sent"].as_u64().expect("a count") as i64;
    assert_eq!((confirmed, &ledger["lost"]), (3_000, &0.into()), "{ledger}");
    let identities = "SELECT count(DISTINCT body) FROM readings";
    until("all are stored", || rows(&file, identities) >= confirmed);
    let counts = whole.end();
    assert_eq!(rows(&file, identities), confirmed, "{counts}");
    assert_eq!(counts["store"]["rows"], rows(&file, ALL));

    hops_tell_the_way(&place.folder().join("hops"), rows(&file, ALL), confirmed);
    place.nobody_is_left();
}

/// The store has a hop a row, so that what came twice shows there as well; and a message that went
/// through all stages left each of them after the next one had it.
fn hops_tell_the_way(folder: &std::path::Path, rows: i64, confirmed: i64) {
    let store = hops(&folder.join("store.hops"));
    assert_eq!(store.len() as i64, rows);
    let mut seen: Vec<(u32, u64)> = store.iter().map(|hop| (hop.producer, hop.sequence)).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len() as i64, confirmed);
    // A message left each stage after the next one had it; one that came late, so that no kill took
    // its hops, and once.
    let api = hops(&folder.join("api.hops"));
    let at_gateway = hops(&folder.join("gateway.hops"));
    let way = |hop: &Hop| (hop.producer, hop.sequence);
    let times = |of: &Hop| store.iter().filter(|hop| way(hop) == way(of)).count();
    let stored = store.iter().rev().find(|hop| times(hop) == 1).expect("one that came once");
    let of_it = |hop: &&Hop| way(hop) == way(stored);
    let (api, at_gateway) = (api.iter().find(of_it), at_gateway.iter().find(of_it));
    let (api, at_gateway) = (api.expect("its hop"), at_gateway.expect("its hop"));
    assert_eq!((at_gateway.stage, api.stage), (HopStage::Gateway, HopStage::Api));
    assert!(at_gateway.arrived <= api.arrived && api.arrived <= stored.arrived);
    assert!(stored.left <= api.left && api.left <= at_gateway.left);
}

fn pid_in(rest: &str) -> u32 {
    rest.rsplit_once(" pid ").expect("a pid").1.parse().expect("a number")
}

/// QoS 2, straight to the store, which goes away for a while: nothing is lost, nothing comes twice,
/// and the gateway says that it waits.
#[test]
fn a_store_that_goes_away_holds_the_gateway_up() {
    let place = Place::new("pipeline-away");
    let broker = Server::start(&place, &["mqtt"]);
    let store = ["store", "--database", "readings.db", "--unique"];
    // Nobody else listens at this address, so that its port is free when the store comes back.
    let first = Server::start(&place, &[&store[..], &["--listen", "127.0.0.77:0"]].concat());
    let at = first.url.strip_prefix("grpc://").expect("an address").to_owned();
    let words = ["gateway", "--broker", &broker.url, "--to", &first.url, "--qos", "2"];
    let mut gateway = Stage::start(&place, &words);
    assert_eq!(gateway.line(), format!("forwarding from {} to {}", broker.url, first.url));
    // Another seed, so that its messages are others to a store that keeps each once.
    let send = |seed: &str| {
        let load = ["-q", "2", "--pattern", "publish", "-n", "300", "--seed", seed];
        place.compare(&[&[&*broker.url][..], &load].concat()).with(0);
    };
    let stored = || {
        rows(&place.folder().join("readings.db"), "SELECT count(DISTINCT identity) FROM readings")
    };
    send("1");
    until("the first are stored", || stored() == 300);
    let (code, last) = first.end("TERM");
    assert_eq!(code, Some(0), "{last}");
    assert_eq!(serde_json::from_str::<Value>(last.trim()).expect("JSON")["synchronous"], "FULL");
    send("2");
    let mut again = store.to_vec();
    again.extend(["--listen", &at]);
    let second = Server::start(&place, &again);
    until("the others are stored", || stored() == 600);
    let counts = gateway.end();
    assert_eq!(counts["received"], 600, "{counts}");
    assert_eq!((&counts["forwarded"], &counts["acknowledged"]), (&600.into(), &600.into()));
    second.end("TERM");
    broker.end("TERM");
    place.nobody_is_left();
}

/// What no api will have is thrown away with the reason, and nothing behind it waits for it.
#[test]
fn what_is_no_reading_does_not_stop_the_gateway() {
    let place = Place::new("pipeline-poison");
    let mut whole = Stage::start(&place, &["pipeline", "--stages", "gateway,api"]);
    let lines = whole.lines_to("gateway");
    let (broker, _) = place_of(&lines, "broker");
    let (api, _) = place_of(&lines, "api");
    for body in ["text:no reading", "readings", BODY] {
        let words = ["-q", "1", "--pattern", "publish", "-n", "20", "--body", body];
        place.compare(&[&[&*broker][..], &words].concat()).with(0);
    }
    until("readings are there", || ask(&api, "GET", "/healthz", "").1["readings"] == 20);
    let counts = whole.end();
    assert_eq!(
        (&counts["gateway"]["refused"], &counts["gateway"]["forwarded"]),
        (&40.into(), &20.into())
    );
    assert_eq!(counts["api"]["refused"], 0, "{counts}");
    place.nobody_is_left();
}

/// A pipeline that is killed leaves nobody, and one whose process may not start again ends with it.
#[test]
fn a_pipeline_that_is_killed_leaves_nobody() {
    let place = Place::new("pipeline-orphans");
    let mut whole = Stage::start(&place, &["pipeline"]);
    whole.lines_to("gateway");
    assert_eq!(place.processes().len(), 5);
    signal("KILL", whole.child.id());
    whole.child.wait().expect("it ends");
    place.nobody_is_left();
    let words = ["pipeline", "--stages", "api,store", "--restart", "off"];
    let mut whole = Stage::start(&place, &words);
    let lines = whole.lines_to("api");
    signal("KILL", place_of(&lines, "store").1);
    let ended = crate::rig::wait(whole.child).with(3);
    ended.saying(&["store (pid", "signal 9"]);
    place.nobody_is_left();
}

#[test]
fn what_cannot_be_is_named() {
    let place = Place::new("pipeline-refused");
    let user = ["--set", "mqtt.broker_user=ada", "--set", "mqtt.broker_password=x"];
    let broker = Server::start(&place, &[&["mqtt"][..], &user].concat());
    let (http, http2) = (Server::start(&place, &["http"]), Server::start(&place, &["http2"]));
    let no_store = http2.url.replace("h2c", "grpc");
    let taken = http.url.trim_start_matches("http://").to_owned();
    place.write("diary.txt", &"dear diary, ".repeat(100));
    for (words, code, says) in [
        (vec!["store", "--database", "nowhere/readings.db"], 3, "its folder must exist"),
        (vec!["store", "--database", "diary.txt"], 3, "not an SQLite database"),
        (vec!["store", "--hops", "diary.txt"], 3, "it is not a file of hops"),
        (vec!["store", "--durable", "on"], 2, "memory is not durable"),
        (vec!["store", "--linger", "5"], 2, "has no unit"),
        (vec!["store", "--listen", &taken], 3, "port 0 for a free one"),
        (vec!["api", "--listen", &taken], 3, "port 0 for a free one"),
        (vec!["api", "--store", "grpc://127.0.0.1:1"], 3, "no store at grpc://127.0.0.1:1"),
        (vec!["api", "--store", &no_store], 3, "type the address of a store"),
        (vec!["api", "--store", "http://127.0.0.1:1"], 2, "type grpc://HOST:PORT"),
        (vec!["gateway", "--broker", &broker.url, "--to", &http.url], 3, "refused the session"),
        (vec!["gateway", "--broker", &broker.url, "--to", "http://127.0.0.1:1"], 3, "no api at"),
        (vec!["gateway", "--broker", "mqtt://127.0.0.1:1", "--to", &http.url], 3, "no session"),
        (
            vec!["gateway", "--broker", "mqtts://127.0.0.1:1", "--to", &http.url],
            2,
            "is not supported here",
        ),
        (vec!["pipeline", "--stages", "store,api"], 2, "in the order of a message"),
        (vec!["pipeline", "--stages", "gateway"], 2, "needs a next stage"),
        (vec!["pipeline", "--stages", "api", "--broker", "mqtt://h"], 2, "without a gateway"),
        (vec!["pipeline", "--database", "nowhere/readings.db"], 3, "its folder must exist"),
    ] {
        let ended = place.weigh(&[&["serve"][..], &words].concat());
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{words:?}: {}", ended.stderr);
    }
    for server in [broker, http, http2] {
        server.end("TERM");
    }
    place.nobody_is_left();
}

/// A stage whose stdin is a pipe of whoever started it answers there, and ends with it.
#[test]
fn a_controlled_stage_tells_its_counts_and_ends_with_its_stdin() {
    let place = Place::new("pipeline-control");
    let mut command = place.command(&["serve", "api", "--control"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("its stdin");
    let out = BufReader::new(child.stdout.take().expect("its stdout"));
    let mut stage = Stage { child, out };
    let url = stage.line().strip_prefix("listening on ").expect("where it listens").to_owned();
    assert_eq!(ask(&url, "POST", "/readings", READING).0, 201);
    writeln!(stdin, "report").expect("it listens");
    let told: Value = serde_json::from_str(&stage.line()).expect("its counts are JSON");
    assert_eq!([&told["received"], &told["stored"], &told["failed"]], [1, 1, 0], "{told}");
    writeln!(stdin, "repport").expect("it listens");
    assert_eq!(stage.line(), "error: unknown request \"repport\": type report");
    drop(stdin);
    let last: Value = serde_json::from_str(&stage.line()).expect("its last line is JSON");
    assert_eq!(last["stored"], 1);
    assert_eq!(stage.child.wait().expect("it ends").code(), Some(0));
    place.nobody_is_left();
}
