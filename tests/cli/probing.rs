//! `weigh probe`, and plans that are held against what it found.

use std::io::{BufRead, BufReader};

use crate::rig::{Place, signal, wait};
use crate::serving::Server;

/// Flags that make a probe short.
const SHORT: [&str; 6] = ["--payload-to", "20KB", "--queue-to", "100", "--patience", "1s"];

#[test]
fn what_was_found_refuses_a_plan_at_the_key_that_asks_for_it() {
    let place = Place::new("probe");
    let limits = ["--set", "mqtt.broker_maximum_qos=1", "--set", "mqtt.overload=drop-newest:9"];
    let mut words = vec!["probe", "mqtt", "-o", "found.toml", "--json"];
    words.extend(SHORT.iter().chain(&limits));
    let found = place.weigh(&words).with(0).json();
    assert_eq!(
        (&found["schema"], &found["protocol"]),
        (&"weigh/abilities/1".into(), &"mqtt".into())
    );
    let abilities = found["abilities"].as_array().expect("a list");
    let ability = |name: &str| abilities.iter().find(|own| own["name"] == name).expect(name);
    assert_eq!(ability("qos_max")["value"], 1);
    assert_eq!(ability("qos_max")["how"], "tried");
    let queue = ability("queue_offline");
    assert_eq!((&queue["value"], &queue["unit"]), (&9.into(), &"messages".into()));
    assert_eq!(queue["how"], "found by search");

    let kept = std::fs::read_to_string(place.folder().join("found.toml")).expect("a file");
    assert!(kept.contains("name = \"qos_max\""), "{kept}");
    let ended = place.compare(&["mqtt", "-q", "2", "--abilities", "found.toml"]).with(2);
    ended.saying(&["mqtt.qos", "grants at most 1", "probed 20", "choose 1"]);
    let plan = "[target]\nname = \"reference\"\nabilities = \"found.toml\"\n\n\
                [mqtt]\nqos = 2\n\n[load]\nmessages = 10\n";
    place.write("plan.toml", &format!("protocol = \"mqtt\"\n{plan}"));
    let ended = place.weigh(&["run", "plan.toml"]).with(2);
    ended.saying(&[
        "plan.toml:7",
        "mqtt.qos",
        "grants at most 1",
        "choose 1",
        "nothing was started",
    ]);
    assert!(place.runs().is_empty());
    place.compare(&["mqtt", "-q", "1", "-n", "20", "--abilities", "found.toml"]).with(0);
}

#[test]
fn files_that_are_no_abilities_are_named() {
    let place = Place::new("abilities");
    let ended = place.compare(&["mqtt", "--abilities", "none.toml"]).with(2);
    ended.saying(&["--abilities", "none.toml", "cannot be read", "weigh probe -o"]);
    place.write("wrong.toml", "schema = 7\n");
    let ended = place.compare(&["mqtt", "--abilities", "wrong.toml"]).with(2);
    ended.saying(&["--abilities", "wrong.toml", "line 1"]);
    let found = "schema = \"weigh/abilities/1\"\ntarget = \"x\"\nprotocol = \"http1\"\n\
                 probed_at = \"2026-11-21T12:00:00Z\"\nweigh = \"0.1.0\"\nabilities = []\n";
    place.write("http.toml", found);
    let ended = place.compare(&["mqtt", "--abilities", "http.toml"]).with(2);
    ended.saying(&["http.toml is about http1, not mqtt"]);
    let ended = place.weigh(&["probe", "mqtt", "-o", "/proc/x/y.toml", "--within", "1ms"]);
    assert!(matches!(ended.code, Some(3 | 4)), "{}", ended.stderr);
}

/// Where a server says what a confirmation means, a file of its probe states it for its URL.
#[test]
fn a_probed_durability_is_that_of_the_url() {
    let place = Place::new("probed-durability");
    let server = Server::start(&place, &["redis"]);
    let words = ["probe", &*server.url, "-o", "redis.toml", "--payload-to", "20KB"];
    place.weigh(&words).with(0);
    let kept = std::fs::read_to_string(place.folder().join("redis.toml")).expect("a file");
    assert!(kept.contains("appendonly=no"), "{kept}");
    let load = [&*server.url, "-n", "20", "--set", "redis.command=set", "--pattern", "publish"];
    let probed = ["--abilities", "redis.toml"];
    for (more, durability) in [
        (&[][..], "unknown"),
        (&probed, "memory"),
        (&["--abilities", "redis.toml", "--durability", "fsync"], "fsync"),
    ] {
        let summary = place.compare(&[&load[..], more, &["--json"]].concat()).with(0).json();
        assert_eq!(summary["cells"][0]["durability"], durability);
    }
    // In a plan too, and a run that is resumed does not need the file.
    let target = format!("target = \"{}\"\n\"target.abilities\" = \"redis.toml\"", server.url);
    let load =
        "\"load.messages\" = 20\n\"load.pattern\" = \"publish\"\n\"redis.command\" = \"set\"";
    place.write("p.toml", &format!("[repeat]\nat_least = 1\n[[case]]\n{target}\n{load}\n"));
    let summary = place.weigh(&["run", "p.toml", "--json"]).with(0).json();
    assert_eq!(summary["cells"][0]["durability"], "memory");
    assert_eq!(summary["cells"][0]["point"]["target.durability"], "memory");
    server.end("TERM");
    place.nobody_is_left();
}

/// Each reference server is asked everything, also inside QUIC.
#[test]
fn reference_servers_of_newer_protocols_are_asked() {
    let place = Place::new("probed-newer");
    let mut protocols = vec!["amqp", "amqp1", "kafka", "nats", "redis", "sse", "websocket"];
    if cfg!(feature = "quic") {
        protocols.push("http3");
    }
    for protocol in protocols {
        let words = ["probe", protocol, "--json", "--payload-to", "20KB", "--patience", "1s"];
        let found = place.weigh(&words).with(0).json();
        assert_eq!((&found["protocol"], &found["target"]), (&protocol.into(), &"reference".into()));
        assert!(found["abilities"].as_array().expect("a list").len() >= 10, "{found}");
    }
    place.nobody_is_left();
}

#[test]
fn words_that_mean_nobody_are_told_who_there_is() {
    let place = Place::new("nobody");
    for (words, parts) in [
        (&["mosquito"][..], &["unknown target", "mosquitto", "mqtt"][..]),
        (&["tcp"], &["tcp has no abilities", "a broker of MQTT"]),
        (&["mqtt://192.0.2.1:1883"], &["not this machine", "--i-may-load-this"]),
        (&["mqtt://127.0.0.1:1", "--set", "mqtt.qos=1"], &["--set", "reference servers"]),
        (&["mqtt", "--user", "ada"], &["--user", "server given by URL"]),
        (&["mqtt", "--set", "http1.store=1"], &["http1.store", "not a key of mqtt"]),
        (&["http://127.0.0.1:1", "--insecure"], &["--insecure", "does not use TLS"]),
    ] {
        let all: Vec<&str> = ["probe"].iter().chain(words).copied().collect();
        place.weigh(&all).with(2).saying(parts);
    }
    let ended = place.weigh(&["probe", "mqtt://127.0.0.1:1"]).with(3);
    ended.saying(&["127.0.0.1:1", "no process listens", "check host and port"]);
}

/// Ctrl-C ends it soon, with what was found before, and nothing is left at the broker.
#[test]
fn an_interrupted_probe_shows_what_it_has() {
    let place = Place::new("interrupted");
    let server = Server::start(&place, &["mqtt"]);
    let mut words = vec!["probe", &*server.url, "--queue-to", "1000000"];
    words.extend(["--patience", "1s", "--json"]);
    let mut program = place.spawn(&words);
    // It tells every ability on stderr as soon as it is known.
    let mut told = BufReader::new(program.stderr.take().expect("its stderr"));
    told.read_line(&mut String::new()).expect("its first line");
    signal("INT", program.id());
    let ended = wait(program).with(130);
    drop(told);
    assert!(ended.stdout.contains("the time of the probe was over"), "{}", ended.stdout);
    server.end("TERM");
    place.nobody_is_left();
}
