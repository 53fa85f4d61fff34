//! Consumers that ask and messages that leave together, as a user asks for them: against push
//! across a path, with a server of other people's, and refused where it means nothing.

use serde_json::Value;

use crate::foreign::Counting;
use crate::rig::{Place, has, has_hosts};

fn value(cell: &Value, metric: &str) -> f64 {
    cell["metrics"][metric]["value"].as_f64().unwrap_or_else(|| panic!("{metric}: {cell:#}"))
}

fn cell<'s>(summary: &'s Value, name: &str) -> &'s Value {
    let cells = summary["cells"].as_array().unwrap();
    let named = |cell: &&Value| cell["name"].as_str().unwrap().contains(name);
    cells.iter().find(named).unwrap_or_else(|| panic!("no cell {name}: {summary:#}"))
}

/// 30 ms each way. A subscriber waits for both; a consumer that asks every 200 ms waits for half of
/// that besides. Nothing may come before its time, however busy the machine is.
#[test]
fn polling_is_late_by_half_a_period_and_push_by_the_path() {
    if !has_hosts("polling_is_late_by_half_a_period_and_push_by_the_path") {
        return;
    }
    let place = Place::new("late");
    place.write(
        "late.toml",
        "path.delay = \"30ms\"\n[load]\nconnections = 8\nsubscribers = 2\ntopology = \"fan-out\"\n\
         rate = \"97/s\"\nduration = \"1s\"\nwarmup = \"200ms\"\n[[case]]\nprotocol = \"http\"\n\
         load.pattern = \"poll\"\npoll.period = \"200ms\"\n[[case]]\nprotocol = \"mqtt\"\n\
         load.pattern = \"deliver\"\nmqtt.qos = 1\n[repeat]\nat_least = 1\n",
    );
    place.weigh(&["run", "late.toml"]).with(0);
    let summary = place.summary();
    let (poll, push) = (cell(&summary, "http1"), cell(&summary, "mqtt"));
    for cell in [poll, push] {
        assert_eq!(cell["ledger"]["lost"], 0, "{cell:#}");
    }
    let mean = |cell: &Value, metric: &str| value(cell, &format!("{metric}.mean")) / 1e6;
    let (late, soon) = (mean(poll, "delivery_time_ns"), mean(push, "delivery_time_ns"));
    println!("delay: {late:.1} ms of 160 by polling, {soon:.1} ms of 60 by push");
    assert!(value(push, "delivery_time_ns.p50") >= 59.9e6 && soon < 110.0, "{soon}");
    assert!((late - soon - 100.0).abs() < 40.0, "{late} and {soon}");
    let parts = ["poll_wait_time_ns", "poll_round_trip_time_ns", "handling_time_ns"];
    let sum: f64 = parts.iter().map(|part| mean(poll, part)).sum();
    assert!((sum - late).abs() < 0.002 * late, "{sum} is not {late}");
    let comparisons = summary["comparisons"].as_array().unwrap();
    let delays = |c: &&Value| c["metric"].as_str().unwrap().starts_with("delivery_time_ns");
    assert!(comparisons.iter().any(|c| delays(&c)), "poll and deliver are not compared");
    place.nobody_is_left();
}

/// A server in Python that takes every reading apart and writes it anew, spaces and all.
#[test]
fn a_server_of_others_is_polled() {
    if !has("python3") {
        return;
    }
    let place = Place::new("foreign");
    place.write("server.py", SERVER);
    let server = Counting::start(place.program("python3", &["server.py"]));
    let url = server.url("http") + "/readings";
    let words = ["compare", &url, "--pattern", "poll", "--period", "50ms", "-y", "2", "-R"];
    let more = ["50/s", "-d", "600ms", "--warmup", "100ms", "--reps", "2", "--json"];
    let ended = place.weigh(&[&words[..], &more[..]].concat());
    let summary = ended.with(0).json();
    let ledger = &summary["cells"][0]["ledger"];
    // The second trial finds the readings of the first in the list, and begins behind them.
    assert_eq!(ledger["delivered"], 2 * 2 * 30, "{ledger:#}");
    assert_eq!((&ledger["corrupt"], &ledger["foreign"]), (&0.into(), &0.into()), "{ledger:#}");
}

/// One POST with everything stands beside 300 with one each.
#[test]
fn a_batch_is_compared_with_its_messages_one_by_one() {
    let place = Place::new("batch");
    place.write(
        "batch.toml",
        "protocol = \"http\"\n[load]\nconnections = 1\nmessages = 300\nwindow = 10\n\
         warmup = \"0s\"\nsize = \"120B\"\n[[case]]\nload.pattern = \"publish\"\n[[case]]\n\
         load.pattern = \"batch\"\nload.batch = 300\n[repeat]\nat_least = 3\n",
    );
    place.weigh(&["run", "batch.toml"]).with(0);
    let summary = place.summary();
    let batch = cell(&summary, "batch");
    assert_eq!(batch["ledger"]["delivered"], 900);
    assert!(value(batch, "batch_time_ns.max") >= value(batch, "response_time_ns.p50"));
    let compared = summary["comparisons"].as_array().unwrap();
    // Noise may refuse a verdict; a pair that may not be compared has no ratio either.
    assert!(compared.iter().any(|c| c["ratio"]["value"].is_number()), "{compared:#?}");
}

#[test]
fn what_means_nothing_is_refused_with_the_fix() {
    let place = Place::new("no-poll");
    for (words, said) in [
        (&["http", "--pattern", "poll", "--period", "10us"][..], "at least --period 1ms"),
        (&["http", "--pattern", "poll", "--wait", "1h"], "at most --wait 5m"),
        (&["http", "--pattern", "poll", "-y", "0"], "poll needs a subscriber"),
        (&["http", "--pattern", "poll", "--topology", "shared"], "type --topology fan-in"),
        (&["http", "--pattern", "poll", "--set", "http1.method=GET"], "http1.method at POST"),
        (&["http", "--pattern", "poll", "-s", "20B"], "-s: bodies without room"),
        (&["http", "--pattern", "publish", "--period", "1s"], "type --pattern poll"),
        (&["http", "--pattern", "publish", "--batch", "3"], "type --pattern batch"),
        (&["http", "--pattern", "batch", "--batch", "100000", "-s", "1KiB"], "fewer messages"),
        (&["mqtt", "--pattern", "poll"], "mqtt has no pattern poll"),
    ] {
        let ended = place.weigh(&[&["compare"], words].concat()).with(2);
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
    }
    place.write("wrong.toml", "protocol = \"http\"\n[poll]\nperiode = \"1s\"\n");
    place.weigh(&["run", "wrong.toml"]).with(2).saying(&["poll.period"]);
    assert!(place.runs().is_empty());
}

const SERVER: &str = r#"
import json, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse, parse_qs
readings, lock = [], threading.Lock()
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def log_message(self, *_): pass
    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with lock: readings.append(json.loads(body))
        self.answer(201, b"")
    def do_GET(self):
        query = parse_qs(urlparse(self.path).query)
        since = int(query.get("since", ["c0"])[0][1:])
        with lock: part = readings[since:since + int(query.get("limit", ["100"])[0])]
        page = {"readings": part, "next": "c%d" % (since + len(part))}
        self.answer(200, json.dumps(page, indent=1, sort_keys=True).encode())
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;
