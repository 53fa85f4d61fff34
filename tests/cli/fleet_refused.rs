//! What is wrong with a fleet, a sentence and an exit code each: agents that cannot be used, a bus
//! that does not let in, targets that are not allowed, loads that need one host.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::fleet::{Agent, Bus, fleet};
use crate::rig::{Place, cells, has, wait};
use crate::serving::Server;

#[test]
fn an_agent_refuses_a_target_that_it_may_not_load() {
    let place = Place::new("fleet-refused");
    let Some((bus, _agents)) = fleet(&place, 1) else { return };
    let _other = Agent::start(&place, &bus, 1, "10.0.0.0/8:1883");
    let server = Server::start(&place, &["tcp"]);
    let words = [&*server.url, "--fleet", &bus.url, "--agents", "2", "-n", "100"];
    place.compare(&words).with(5).saying(&["agent 1", "--may-load", "127.0.0.1"]);
    assert_eq!(place.of_kind("trial_failed").len(), 1, "it is not repeated");
}

#[test]
fn a_wrong_token_is_named_and_an_agent_may_come_late() {
    let place = Place::new("fleet-token");
    let Some(mut bus) = Bus::with(&place, "authorization { token: \"right\" }") else { return };
    let may_load = ["--may-load", "127.0.0.1:*"];
    let wrong = bus.url.replace("://", "://wrong@");
    let agent = ["agent", "--bus", &wrong];
    place.weigh(&[&agent[..], &may_load].concat()).with(5).saying(&["refuses the credentials"]);
    let words = ["tcp", "--agents", "2", "-n", "100", "-R", "200/s", "-c", "4"];
    place
        .compare(&[&words[..], &["--fleet", &wrong]].concat())
        .with(5)
        .saying(&["refuses the credentials", "help: "]);
    assert!(place.runs().is_empty());
    bus.url = bus.url.replace("://", "://right@");
    let _first = Agent::start(&place, &bus, 0, "127.0.0.1:*");
    let started = [&["compare"], &words[..], &["--reps", "1", "--fleet", &bus.url]].concat();
    let child = place.spawn(&started);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let _late = Agent::start(&place, &bus, 1, "127.0.0.1:*");
    wait(child).with(0).saying(&["1 of 2 agents are there; waiting for rank 1"]);
    let summary = place.summary();
    let ledger = &cells(&summary)[0]["ledger"];
    assert_eq!((&ledger["sent"], &ledger["lost"]), (&100.into(), &0.into()), "{ledger}");
}

#[test]
fn a_full_object_store_is_named() {
    let place = Place::new("fleet-full");
    let lines = "jetstream { max_file_store: 300KB }";
    let Some(bus) = Bus::with(&place, lines) else { return };
    let _agent = Agent::start(&place, &bus, 0, "127.0.0.1:*");
    place.write("large.bin", &"weigh".repeat(200_000));
    let words = ["http", "--fleet", &bus.url, "--agents", "1", "-n", "10"];
    place
        .compare(&[&words[..], &["--body", "file:large.bin"]].concat())
        .with(5)
        .saying(&["the object store of the bus is full", "help: raise max_file_store"]);
    assert_eq!(place.of_kind("trial_failed").len(), 1, "it is not repeated");
}

/// The size of the file decides; this one has no contents on the disk.
#[test]
fn a_file_that_agents_cannot_hold_is_refused_before_anything_starts() {
    let place = Place::new("fleet-large");
    let file = std::fs::File::create(place.folder().join("large.bin")).expect("a file");
    let words = ["http", "--pattern", "transfer", "--body", "file:large.bin", "-n", "2"];
    let words = [&words[..], &["--fleet", "nats://127.0.0.1:1", "--agents", "2"]].concat();
    file.set_len((1 << 30) + 1).expect("a length");
    place.compare(&words).with(2).saying(&[
        "--fleet: http1",
        "a file of more than 1 GiB is not sent to the agents of a fleet: each holds it in memory",
        "help: name a smaller file, or leave --body out: every agent makes the object (--size)",
    ]);
    assert!(place.runs().is_empty());
    // The largest that is not refused: the next step is the bus, which is not there.
    file.set_len(1 << 30).expect("a length");
    place.compare(&words).with(5).saying(&["the bus at 127.0.0.1:1 cannot be reached", "\nhelp: "]);
    assert!(place.runs().is_empty());
}

#[test]
fn missing_agents_are_named_and_nothing_is_started() {
    let place = Place::new("fleet-missing");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    let words = ["tcp", "--fleet", &bus.url, "--agents", "3", "--fleet-wait", "2s", "-n", "10"];
    place.compare(&words).with(5).saying(&["2 of 3"]);
    assert!(place.runs().is_empty());
    drop(bus);
    place.compare(&["tcp", "--fleet", "nats://127.0.0.1:1", "--agents", "1"]).with(5);
}

/// An agent in a network of its own reaches the bus, and not what listens on loopback here.
#[test]
fn a_target_on_loopback_is_refused_for_an_agent_elsewhere() {
    let test = "a_target_on_loopback_is_refused_for_an_agent_elsewhere";
    if !(has("nats-server") && has("ip")) {
        return;
    }
    let place = Place::new("fleet-elsewhere");
    place.write("elsewhere.sh", ELSEWHERE);
    let apart = ["-Urnpf", "--mount-proc", "--kill-child"];
    let line = format!("weigh='{}' sh elsewhere.sh", env!("CARGO_BIN_EXE_weigh"));
    let Some(ended) = place.script_after(test, &apart, "true", &line) else { return };
    let ended = ended.with(0).saying(&[
        "tcp (reference) listens on loopback of this host, and agent 0 (",
        ") is elsewhere",
        "help: start the server where all agents reach it",
    ]);
    let codes: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("code ")).collect();
    assert_eq!(codes, ["code 2 by name", "code 0 by URL"], "{}\n{}", ended.stdout, ended.stderr);
    let summary = place.summary();
    let ledger = &cells(&summary)[0]["ledger"];
    assert_eq!((&ledger["sent"], &ledger["acknowledged"]), (&10.into(), &10.into()), "{ledger}");
}

const ELSEWHERE: &str = r#"
set -eu
export PATH=$PATH:/usr/sbin:/sbin weigh
answers() { grep -qi ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; }
ip link set lo up
nats-server -js -a 0.0.0.0 -p 4222 -sd nats >nats.log 2>&1 &
until answers 4222; do sleep 0.05; done
unshare -n sh -c '
    until ip link show load >/dev/null 2>&1; do sleep 0.02; done
    ip addr add 10.77.0.2/24 dev load && ip link set lo up && ip link set load up
    exec "$weigh" agent --bus nats://10.77.0.1:4222 --may-load 10.77.0.1:1884' >agent.log 2>&1 &
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link add port type veth peer name load
ip addr add 10.77.0.1/24 dev port
ip link set load netns $!
ip link set port up
"$weigh" serve tcp --listen 10.77.0.1:1884 >serve.log 2>&1 &
until answers 1884; do sleep 0.05; done
load='--fleet nats://10.77.0.1:4222 --agents 1 --reps 1 -n 10 --warmup 0s'
code=0
"$weigh" compare tcp $load || code=$?
echo "code $code by name"
code=0
"$weigh" compare tcp://10.77.0.1:1884 --i-may-load-this $load || code=$?
echo "code $code by URL"
"#;

const BACKGROUND: &str = "tcp publishers=2 rate=10/s/client size=64B";

#[test]
fn what_a_fleet_cannot_do_is_refused_before_anything_starts() {
    let place = Place::new("fleet-fitness");
    let fleet = ["--fleet", "nats://127.0.0.1:1", "--agents", "2"];
    for (words, problem, fix) in [
        (&["mqtt", "--relay"][..], "it stands between one generator", "leave --relay out"),
        (&["mqtt", "--path", "lte"], "two network namespaces of one host", "(tc netem)"),
        (&["mqtt", "--wire"], "a capture counts one network", "leave --wire and --pcap out"),
        (&["mqtt", "-s", "1KB", "--seal-to", "2"], "new keys", "leave --seal-to"),
        (&["mqtt", "--background", BACKGROUND], "one process makes it", "a second weigh compare"),
        (&["pipeline"], "send times in this process", "name another target"),
        (&["mqtt", "--tls", "on", "--set", "mqtt.tls_mutual=true"], "their keys", "its URL"),
        (&["tcp", "--shards", "1"], "--shards 1", "type --shards 2"),
        (&["mqtt", "--qos", "0"], "closed loop", "add a rate"),
    ] {
        place.compare(&[words, &fleet].concat()).with(2).saying(&[problem, fix]);
    }
    let dry = ["limit", "mqtt", "--relay", "--dry"];
    place.weigh(&[&dry[..], &fleet].concat()).with(2).saying(&["leave --relay out"]);
    let few = ["limit", "mqtt", "--dry", "--shards", "1"];
    place.weigh(&[&few[..], &fleet].concat()).with(2).saying(&["type --shards 2"]);
    let second = ["limit", "mqtt", "--second-generator"];
    let said = ["--second-generator: a fleet has several generators already", "leave out --fleet"];
    place.weigh(&[&second[..], &fleet].concat()).with(2).saying(&said);
    place.compare(&["tcp", "--agents", "2"]).with(2).saying(&["--fleet"]);
    assert!(place.runs().is_empty());
}

/// A client that speaks to the bus itself.
struct Raw(BufReader<TcpStream>);

impl Raw {
    fn connect(bus: &Bus, lines: &str) -> Raw {
        let address = bus.url.trim_start_matches("nats://");
        let stream = TcpStream::connect(address).expect("a connection");
        let mut raw = Raw(BufReader::new(stream));
        raw.say(&format!("CONNECT {{\"verbose\":false}}\r\n{lines}"));
        raw
    }

    fn say(&mut self, lines: &str) {
        self.0.get_mut().write_all(lines.as_bytes()).expect("the bus listens");
    }

    /// The next message: where its answer goes, and its body. `None` once the bus is gone.
    fn heard(&mut self) -> Option<(String, String)> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.starts_with("PING") {
                self.say("PONG\r\n");
            }
            if line.starts_with("MSG") {
                let words: Vec<&str> = line.split_whitespace().collect();
                let reply = if words.len() == 5 { words[3] } else { "" };
                let mut body = String::new();
                self.0.read_line(&mut body).ok()?;
                return Some((reply.to_owned(), body.trim_end().to_owned()));
            }
        }
    }
}

/// Kubernetes ends a pod by SIGTERM when it evicts it, and must not take the agent for one whose
/// run is over.
#[test]
fn an_agent_for_one_run_that_is_ended_before_it_has_failed() {
    let place = Place::new("fleet-once");
    let Some(bus) = Bus::start(&place) else { return };
    for (signal, once, code) in [("TERM", true, 143), ("INT", true, 130), ("TERM", false, 0)] {
        let more: &[&str] = if once { &["--once"] } else { &[] };
        let agent = Agent::with(&place, &bus, 0, "127.0.0.1:*", more);
        agent.has_said("registered as");
        assert_eq!(agent.end(signal).0, Some(code), "{signal} {once}");
    }
}

/// The baseline and the doctor's findings are said by the agent, seen on the bus, and recorded.
#[test]
fn an_agent_registers_with_what_its_host_reaches() {
    let place = Place::new("fleet-registered");
    let Some((bus, agents)) = fleet(&place, 1) else { return };
    agents[0].has_said("baseline of this machine, ");
    agents[0].has_said("registered as");
    let mut asking = Raw::connect(&bus, "SUB seen 1\r\nPUB $SRV.INFO.weigh seen 0\r\n\r\n");
    let (_, info) = asking.heard().expect("an answer");
    let info: Value = serde_json::from_str(&info).expect("JSON");
    let known = |key: &str| info["metadata"][key].as_str().expect(key).to_owned();
    for key in ["baseline_per_s", "cores", "memory_bytes", "descriptors", "ports"] {
        assert!(known(key).parse::<u64>().is_ok_and(|own| own > 0), "{key}: {info}");
    }
    assert_eq!((&*known("rank"), &*known("may_load")), ("0", "127.0.0.1:*"));
    place.compare(&["tcp", "--fleet", &bus.url, "--agents", "1", "-n", "10"]).with(0);
    let [placed] = &place.of_kind("fleet_placed")[..] else { panic!("one line on its hosts") };
    let baseline = placed["hosts"][0]["baseline_per_s"].as_f64().expect("a baseline");
    assert_eq!(format!("{baseline:.0}"), known("baseline_per_s"));
    let found = placed["hosts"][0]["findings"].as_array().expect("findings");
    let found: Vec<&str> = found.iter().filter_map(Value::as_str).collect();
    assert_eq!(found.join("; "), known("findings"));
    let summary = place.summary();
    let host = &summary["run"]["hosts"][0];
    assert_eq!(host["baseline_per_s"].as_f64(), Some(baseline));
    for key in ["memory_bytes", "descriptors", "ports"] {
        assert_eq!(host[key].to_string(), known(key), "{key}: {host}");
        assert_eq!(host[key], placed["hosts"][0][key], "{key}");
    }
}

/// An agent of another build says what this one says, with another version.
#[test]
fn an_agent_of_another_version_is_named_and_not_used() {
    let place = Place::new("fleet-version");
    let Some((bus, agents)) = fleet(&place, 1) else { return };
    agents[0].has_said("registered as");
    let mut asking = Raw::connect(&bus, "SUB copied 1\r\nPUB $SRV.INFO.weigh copied 0\r\n\r\n");
    let (_, info) = asking.heard().expect("an answer");
    agents.into_iter().for_each(|agent| drop(agent.end("TERM")));
    let mut foreign: Value = serde_json::from_str(&info).expect("JSON");
    let own = foreign["metadata"]["version"].as_str().expect("a version").to_owned();
    foreign["metadata"]["version"] = "0.0.1 (0123abcd)".into();
    let foreign = foreign.to_string();
    let mut agent = Raw::connect(&bus, "SUB $SRV.INFO.weigh 1\r\n");
    let answering = std::thread::spawn(move || {
        while let Some((reply, _)) = agent.heard() {
            agent.say(&format!("PUB {reply} {}\r\n{foreign}\r\n", foreign.len()));
        }
    });
    let words = ["tcp", "--fleet", &bus.url, "--agents", "1", "--fleet-wait", "2s", "-n", "10"];
    let said = format!("is of version 0.0.1 (0123abcd), this is {own}");
    place.compare(&words).with(5).saying(&["agent", &said, "missing: rank 0"]);
    assert!(place.runs().is_empty());
    drop(bus);
    answering.join().expect("it ends with the bus");
}
