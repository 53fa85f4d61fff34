//! The counters of servers that are given by URL: found where they are offered, attributed where
//! nobody else used the server, and never spoken of as looked at where nobody has looked.

use serde_json::Value;

use crate::foreign::Installed;
use crate::rig::{Place, cells, until, wait};
use crate::serving::Server as Reference;

/// Mosquitto that forgets early, so that a broker drops.
fn mosquitto(place: &Place) -> Option<Installed> {
    let lines = "persistence false\nuser root\nmax_queued_messages 100\nsys_interval 1\n";
    Installed::mosquitto(place, lines)
}

/// Subscribers that read nothing, so that a broker with a short queue drops.
const STALLED: [&str; 8] =
    ["-q", "1", "--stalled-subscriber=1s", "-d", "2s", "--reps", "1", "--warmup=100ms"];

fn counters(summary: &Value) -> (Value, String) {
    let cell = &cells(summary)[0];
    let words = cell["scene"]["counters"].as_str().unwrap_or_default().to_owned();
    (cell["metrics"]["counter.dropped"]["value"].clone(), words)
}

#[test]
fn a_broker_behind_a_url_says_itself_what_it_dropped() {
    let place = Place::new("sys-mosquitto");
    let Some(broker) = mosquitto(&place) else { return };
    let url = broker.url("mqtt");
    let words = [&["compare", &*url], &STALLED[..]].concat();
    let ended = place.weigh(&[&words[..], &["--json"]].concat()).with(0);
    let summary = ended.json();
    ended.saying(&["counters of mqtt://127.0.0.1:", "$SYS counters, as mosquitto has them"]);
    let ledger = &cells(&summary)[0]["ledger"];
    let lost = ledger["lost"].as_u64().expect("it is known");
    assert!(lost > 0, "{ledger}");
    assert_eq!(ledger["causes"]["server_dropped"].as_u64(), Some(lost), "{ledger}");
    let (dropped, said) = counters(&summary);
    assert_eq!(dropped.as_f64(), Some(lost as f64), "{said}");
    assert!(said.contains("which counts all clients"), "{said}");
    let text = place.weigh(&["report", "latest"]).with(0).stdout;
    assert!(text.contains("its own counter reports"), "{text}");
    // A second trial there takes nothing of the first for its own.
    let again = place.weigh(&[&words[..], &["--json"]].concat()).with(0).json();
    let lost = cells(&again)[0]["ledger"]["lost"].as_f64();
    assert_eq!(counters(&again).0.as_f64(), lost);
    let off = place.weigh(&[&words[..], &["--sys", "off", "--json"]].concat()).with(0).json();
    assert_eq!(counters(&off), (Value::Null, "not asked (--sys off)".to_owned()));
    let text = place.weigh(&["report", "latest"]).with(0).stdout;
    assert!(text.contains("its own counters: not asked (--sys off)"), "{text}");
    assert!(!text.contains("nothing says so"), "{text}");
}

/// Its counters are of all of its clients: beside others nothing is this run's.
#[test]
fn what_others_do_at_the_same_broker_is_not_attributed() {
    let place = Place::new("sys-others");
    let Some(broker) = mosquitto(&place) else { return };
    let url = broker.url("mqtt");
    let other_place = Place::new("sys-beside");
    let load = ["-q", "0", "-R", "50/s", "-d", "60s", "--reps", "1", "--warmup", "0s"];
    let other = other_place.spawn(&[&["compare", &*url, "--sys", "off", "-Q"], &load[..]].concat());
    until("the other one has begun", || {
        other_place.runs().first().is_some_and(|run| run.join("journal.jsonl").exists())
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    let words = [&["compare", &*url], &STALLED[..], &["--json", "-Q"]].concat();
    let summary = place.weigh(&words).with(0).json();
    crate::rig::signal("INT", other.id());
    drop(wait(other));
    let (dropped, said) = counters(&summary);
    assert_eq!(dropped, Value::Null, "{said}");
    assert!(said.contains("other clients used the server, so nothing is attributed"), "{said}");
    let causes = &cells(&summary)[0]["ledger"]["causes"];
    assert!(causes["server_dropped"].is_null(), "{causes}");
}

#[test]
fn a_server_without_counters_is_said_to_offer_none() {
    let place = Place::new("sys-none");
    let server = Reference::start(&place, &["mqtt", "--overload", "drop-newest:50"]);
    let words = [&["compare", &*server.url], &STALLED[..], &["--sys"]].concat();
    let summary = place.weigh(&[&words[..], &["auto", "--json", "-Q"]].concat()).with(0).json();
    assert_eq!(counters(&summary), (Value::Null, "the server offers none".to_owned()));
    assert!(cells(&summary)[0]["ledger"]["lost"].as_u64() > Some(0));
    let text = place.weigh(&["report", "latest"]).with(0).stdout;
    assert!(text.contains("its own counters: the server offers none"), "{text}");
    let refused = place.weigh(&[&words[..], &["on"]].concat()).with(3);
    refused.saying(&["--sys on: mqtt://127.0.0.1:", "offers no counters", "leave --sys out"]);
    server.end("TERM");
}

#[test]
fn the_status_page_of_nginx_is_found_on_the_port_of_the_url() {
    let place = Place::new("sys-nginx");
    let http = "server { listen 127.0.0.1:PORT; location /nginx_status { stub_status; }\n\
                location / { return 200; } }";
    let Some(nginx) = Installed::nginx(&place, http) else { return };
    let words = ["-R", "200/s", "-d", "1s", "--reps", "2", "--warmup", "500ms", "--json", "-Q"];
    let url = nginx.url("http");
    let summary = place.weigh(&[&["compare", &*url], &words[..]].concat()).with(0).json();
    let cell = &cells(&summary)[0];
    let said = cell["scene"]["counters"].as_str().expect("what was asked");
    assert!(said.contains("/nginx_status, which counts all clients (as nginx"), "{said}");
    // The warm-up's requests are requests too; Weighbridge's own looks are not counted.
    assert_eq!(cell["metrics"]["counter.received"]["value"], 300.0, "{cell}");
    assert_eq!(cell["metrics"]["counter.accepted"]["value"], 2.0, "{cell}");
    let off = [&["compare", &*url, "--sys", "off"], &words[..]].concat();
    let summary = place.weigh(&off).with(0).json();
    assert_eq!(cells(&summary)[0]["scene"]["counters"], "not asked (--sys off)");
    assert!(cells(&summary)[0]["metrics"]["counter.received"].is_null());
}

/// As a key of a plan, and refused where it is no word.
#[test]
fn a_plan_says_whether_counters_are_asked_for() {
    let place = Place::new("sys-plan");
    let server = Reference::start(&place, &["http"]);
    let plan = |word: &str| {
        format!(
            "name = \"sys\"\ntarget = {:?}\nload = {{ rate = \"50/s\", duration = \"500ms\" }}\n\
             repeat = {{ at_least = 1 }}\nobserve = {{ sys = {word:?} }}\n",
            server.url
        )
    };
    place.write("off.toml", &plan("off"));
    let summary = place.weigh(&["run", "off.toml", "--json", "-Q"]).with(0).json();
    assert_eq!(cells(&summary)[0]["scene"]["counters"], "not asked (--sys off)");
    place.write("wrong.toml", &plan("perhaps"));
    let refused = place.weigh(&["run", "wrong.toml"]).with(2);
    refused.saying(&["observe.sys", "type one of auto, on, off"]);
    server.end("TERM");
}

/// A burst that a broker's queue cannot hold: the search waits for the counters of the trials that
/// say where the limit is, and knows what ended it.
#[test]
fn a_search_by_url_knows_the_queue_of_the_broker() {
    let place = Place::new("sys-limit");
    let Some(broker) = mosquitto(&place) else { return };
    let url = broker.url("mqtt");
    let words = ["limit", &*url, "-q", "1", "--axis", "burst", "--from", "50", "--to", "200000"];
    let more = ["-c", "16", "--goal", "loss == 0", "--warmup", "0s", "--timeout", "1s", "--width"];
    let ended = place.weigh(&[&words[..], &more, &["30%", "--json", "-Q"]].concat());
    let limit = &ended.json()["limits"][0];
    let goal = &limit["goals"][0];
    assert!(goal["passed"].is_number() || goal["failed"].is_number(), "{goal}");
    let Some(by) = goal["ended_by"]["sentence"].as_str() else { return };
    assert!(!by.contains("not observed: the target's queue"), "{by}");
    if goal["missed_by"].as_str().is_some_and(|why| why.contains("lost")) {
        assert!(by.contains("the target's queue: the target reported "), "{by}");
    }
}
