//! Load from several processes: agents of the built program meet on a real NATS server, and load
//! servers that are given by URL.

use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use weigh_model::live::{LIVE, Second};
use weigh_report::Summary;

use crate::foreign::{Installed, Process};
use crate::rig::{Ended, Place, cells, figure, has, signal, until, wait, warnings};
use crate::serving::Server;

/// A NATS server with JetStream, which ends with its test.
pub struct Bus {
    _process: Process,
    pub url: String,
}

impl Bus {
    /// `None`, and said, if there is no NATS server.
    pub fn start(place: &Place) -> Option<Bus> {
        Bus::with(place, "")
    }

    /// A bus with these lines in its configuration.
    pub fn with(place: &Place, lines: &str) -> Option<Bus> {
        if !has("nats-server") {
            return None;
        }
        let folder = place.folder().join("nats");
        std::fs::create_dir_all(&folder).expect("a folder of the bus");
        let shown = folder.display().to_string();
        let mut server = Command::new("nats-server");
        server.env("PATH", std::env::var("PATH").unwrap_or_default() + ":/usr/sbin");
        let text = format!("listen: 127.0.0.1:-1\n{lines}\n");
        std::fs::write(folder.join("nats.conf"), text).expect("a configuration");
        server.args(["-js", "-sd", &shown, "-c", &format!("{shown}/nats.conf")]);
        let process = Process::quiet(server.args(["--ports_file_dir", &shown]));
        let ports = folder.join(format!("nats-server_{}.ports", process.id()));
        let mut url = None;
        until("the port of the bus", || {
            let text = std::fs::read_to_string(&ports).unwrap_or_default();
            let known: Option<Value> = serde_json::from_str(&text).ok();
            url = known.and_then(|own| Some(own["nats"][0].as_str()?.to_owned()));
            url.is_some()
        });
        Some(Bus { _process: process, url: url.expect("it is known") })
    }

    /// Number of objects in the store of the fleet `default`, as the server lists them.
    pub fn objects(&self) -> usize {
        let address = self.url.trim_start_matches("nats://");
        let mut bus = std::net::TcpStream::connect(address).expect("a connection");
        let filter = "{\"subjects_filter\":\"$O.weigh_default.M.>\"}";
        let ask = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB raw 1\r\n\
             PUB $JS.API.STREAM.INFO.OBJ_weigh_default raw {}\r\n{filter}\r\n",
            filter.len()
        );
        bus.write_all(ask.as_bytes()).expect("it asks");
        let mut lines = BufReader::new(bus).lines().map_while(Result::ok);
        lines.find(|line| line.starts_with("MSG raw")).expect("an answer");
        let answer: Value = serde_json::from_str(&lines.next().expect("its body")).expect("JSON");
        assert!(answer["state"].is_object(), "{answer}");
        answer["state"]["subjects"].as_object().map_or(0, |subjects| subjects.len())
    }
}

/// An agent, and what it printed so far. It ends with its test.
pub struct Agent {
    child: Process,
    said: Arc<Mutex<String>>,
}

impl Agent {
    pub fn start(place: &Place, bus: &Bus, rank: u32, may_load: &str) -> Agent {
        Agent::with(place, bus, rank, may_load, &[])
    }

    /// With more options.
    pub fn with(place: &Place, bus: &Bus, rank: u32, may_load: &str, more: &[&str]) -> Agent {
        let rank = rank.to_string();
        let words = ["agent", "--bus", &bus.url, "--may-load", may_load, "--rank", &rank];
        let mut child = place.spawn(&[&words[..], more].concat());
        let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                *heard.lock().unwrap() += &(line + "\n");
            }
        });
        Agent { child: Process(child), said }
    }

    /// Waits until it has printed `text`.
    #[track_caller]
    pub fn has_said(&self, text: &str) {
        until(text, || self.said.lock().unwrap().contains(text));
    }

    /// Waits until it has ended by itself; its exit code.
    pub fn ended(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    /// Ends it by a signal; its exit code and what it printed.
    pub fn end(mut self, name: &str) -> (Option<i32>, String) {
        signal(name, self.child.id());
        let code = self.child.wait().expect("it ends").code();
        (code, self.said.lock().unwrap().clone())
    }
}

/// A bus with this number of agents, which may load every server of this host.
pub fn fleet(place: &Place, agents: u32) -> Option<(Bus, Vec<Agent>)> {
    let bus = Bus::start(place)?;
    let agents = (0..agents).map(|rank| Agent::start(place, &bus, rank, "127.0.0.1:*")).collect();
    Some((bus, agents))
}

#[track_caller]
pub fn is_exact(cell: &Value, messages: u64) {
    let ledger = &cell["ledger"];
    for key in ["messages", "scheduled", "sent", "delivered"] {
        assert_eq!(ledger[key], messages, "{key}: {ledger}");
    }
    for key in ["not_sent", "lost", "late", "duplicates", "foreign", "corrupt"] {
        assert_eq!(ledger[key], 0, "{key}: {ledger}");
    }
}

#[test]
fn one_run_over_several_agents_has_one_exact_ledger_and_names_its_hosts() {
    let place = Place::new("fleet");
    let Some((bus, agents)) = fleet(&place, 2) else { return };
    let Some(mosquitto) = Installed::mosquitto(&place, "") else { return };
    let reference = Server::start(&place, &["mqtt"]);
    let words = [&*reference.url, &mosquitto.url("mqtt"), "--fleet", &bus.url, "--agents", "2"];
    let load = ["--pattern", "deliver", "--qos", "1", "-R", "500/s", "-n", "600", "-c", "4"];
    let ended = place.compare(&[&words[..], &load].concat()).with(0);
    assert!(ended.stdout.contains("load from 2 hosts, started within "), "{}", ended.stdout);
    assert!(ended.stdout.contains("agent 1 "), "{}", ended.stdout);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 2);
    cells(&summary).iter().for_each(|cell| is_exact(cell, 600));
    let hosts = summary["run"]["hosts"].as_array().expect("hosts");
    let ranks: Vec<&Value> = hosts.iter().map(|host| &host["rank"]).collect();
    assert_eq!(ranks, [0, 1]);
    for host in hosts {
        assert!(host["clock_bound_ns"].as_u64().unwrap() > 0, "{host}");
        assert!(host["start_slack_ns"].as_u64().unwrap() > 0, "{host}");
        assert!(host["cpu_percent"].as_f64().unwrap() > 0.0, "{host}");
        assert!(host["send_lag_ns_p99"].as_u64().unwrap() > 0, "{host}");
    }
    assert!(summary["run"]["start_skew_bound_ns"].as_u64().unwrap() > 0);
    let text = std::fs::read(place.run().join("summary.json")).expect("a summary");
    assert!(Summary::from_json(&text).is_ok());
    let [placed] = &place.of_kind("fleet_placed")[..] else { panic!("one line on its hosts") };
    assert_eq!((&placed["shards"], placed["hosts"].as_array().unwrap().len()), (&2.into(), 2));
    let ran = place.of_kind("fleet_ran");
    assert_eq!(ran.len(), 2);
    let sent = |own: &Value| -> u64 {
        own["hosts"].as_array().unwrap().iter().map(|host| host["sent"].as_u64().unwrap()).sum()
    };
    assert!(ran.iter().all(|own| sent(own) == 600), "{ran:?}");
    for agent in agents {
        assert_eq!(agent.end("TERM").0, Some(0));
    }
}

#[test]
fn plans_and_searches_run_over_several_agents() {
    let place = Place::new("fleet-plan");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    let hosts = ["--fleet", &bus.url, "--agents", "2"];
    place.write("plan.toml", PLAN);
    place.weigh(&[&["run", "plan.toml"], &hosts[..]].concat()).with(0);
    let summary = place.summary();
    assert_eq!(summary["run"]["hosts"].as_array().map(Vec::len), Some(2));
    let sent: Vec<&Value> = cells(&summary).iter().map(|cell| &cell["ledger"]["sent"]).collect();
    assert_eq!(sent, [200, 200]);

    let place = Place::new("fleet-search");
    let goal = ["--goal", "loss <= 1%", "--width", "50%", "--trial", "300ms", "--sum", "600ms"];
    let words = ["limit", "tcp", "--from", "200/s", "--to", "400/s", "--warmup", "0s", "-Q"];
    let ended = place.weigh(&[&words[..], &goal, &hosts].concat());
    // 98: on a busy machine the search may end without proof.
    assert!(matches!(ended.code, Some(0 | 98)), "{}", ended.stderr);
    let (ran, told) = (place.of_kind("fleet_ran"), place.of_kind("search_told"));
    assert!(!told.is_empty() && ran.len() == told.len(), "{} of {}", ran.len(), told.len());
    for host in ran.iter().flat_map(|own| own["hosts"].as_array().expect("hosts")) {
        assert!(host["sent"].as_u64() > Some(0), "{host}");
    }
}

const PLAN: &str = "\
[load]
pattern = \"publish\"
connections = 4
messages = 200
rate = \"400/s\"
warmup = \"0s\"
[[case]]
protocol = \"tcp\"
[[case]]
protocol = \"mqtt\"
mqtt.qos = 1
[repeat]
at_least = 1
";

/// All publishers to one subscriber: half of the messages begin on another host than they end.
#[test]
fn a_time_between_two_hosts_carries_the_bound_of_their_clocks() {
    let place = Place::new("fleet-between");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    let words = ["mqtt", "--fleet", &bus.url, "--agents", "2", "--topology", "fan-in"];
    let load = ["--pattern", "deliver", "--qos", "1", "-R", "400/s", "-n", "400", "-c", "4"];
    place.compare(&[&words[..], &load].concat()).with(0);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    is_exact(cell, 400);
    let bound = figure(cell, "clock_bound_ns");
    assert!(bound > 0.0 && figure(cell, "start_skew_bound_ns") > 0.0);
    match cell["metrics"]["delivery_time_ns.p50"]["value"].as_f64() {
        Some(median) => assert!(median >= bound && !warnings(cell).contains(&"L20"), "{cell}"),
        None => assert!(warnings(cell).contains(&"L20"), "{cell}"),
    }
}

/// The error of the clocks is known after the trial only, and intervals are written before.
#[test]
fn intervals_have_no_times_between_two_hosts() {
    for (qos, has_times) in [("0", false), ("1", true)] {
        let place = Place::new(&format!("fleet-intervals-{qos}"));
        let Some((bus, _agents)) = fleet(&place, 2) else { return };
        let words = ["mqtt", "--fleet", &bus.url, "--agents", "2", "--topology", "fan-in"];
        let load = ["--pattern", "deliver", "--qos", qos, "-R", "400/s", "-n", "400", "-c", "4"];
        place.compare(&[&words[..], &load].concat()).with(0);
        let intervals = place.of_kind("interval");
        assert!(!intervals.is_empty());
        let mut times = intervals.iter().filter_map(|own| own.get("response_time_ns_p50"));
        assert_eq!(times.next().is_some(), has_times, "QoS {qos}");
    }
}

#[test]
fn four_agents_with_networks_and_clocks_of_their_own_give_one_exact_result() {
    if has("nats-server") && has("mosquitto") && has("ip") && has("nsenter") {
        four_agents_apart("fleet-four", "", "-Urnpf");
    }
}

/// Runs the script that makes four networks and four clocks, hours apart, and measures Mosquitto
/// and the reference broker in one run. `apart` are the namespaces around all of it.
pub fn four_agents_apart(name: &str, option: &str, apart: &str) {
    let place = Place::new(name);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fleet/four-agents.sh");
    let line = format!("'{script}' {option} '{}'", env!("CARGO_BIN_EXE_weigh"));
    let load = "--pattern deliver --qos 1 -c 8 -R 200/s -n 400 --reps 1";
    // Time namespaces are newer than network namespaces.
    let apart = [apart, "-T", "--monotonic=9", "--mount-proc"];
    let ended = place.script_after(name, &apart, "true", "true").map(|_| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{line} {load}")]).current_dir(place.folder());
        Ended::from(shell.output().expect("a shell"))
    });
    let Some(ended) = ended else { return };
    let ended = ended.with(0);
    assert!(ended.stdout.contains("load from 4 hosts, started within "), "{}", ended.stdout);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 2);
    cells(&summary).iter().for_each(|cell| is_exact(cell, 400));
    let [first, second] = &place.of_kind("fleet_ran")[..] else { panic!("two trials") };
    for (ran, rank) in [(first, 0), (second, 3)] {
        let offset_s = ran["hosts"][rank]["clock_offset_ns"].as_f64().unwrap() / 1e9;
        let made = [10.0, 300.0, 2_000.0, 50_000.0][rank];
        let bound_s = ran["hosts"][rank]["clock_bound_ns"].as_f64().unwrap() / 1e9;
        assert!((offset_s - made).abs() <= bound_s, "{offset_s} s is not {made} s: {ran}");
    }
}

#[test]
fn a_lost_agent_fails_its_trial_and_a_new_one_makes_it_whole() {
    let place = Place::new("fleet-lost");
    let Some((bus, mut agents)) = fleet(&place, 2) else { return };
    let words = ["compare", "mqtt", "--fleet", &bus.url, "--agents", "2", "--reps", "1"];
    let load = ["-R", "200/s", "-d", "3s", "--warmup", "0s", "-c", "4", "--qos", "1"];
    let child = place.spawn(&[&words[..], &load].concat());
    until("a load", || place.intervals() > 2);
    agents.remove(1).end("KILL");
    let _new = Agent::start(&place, &bus, 1, "127.0.0.1:*");
    wait(child).with(0).saying(&["agent 1", "repeating the trial"]);
    let [failed] = &place.of_kind("trial_failed")[..] else { panic!("one attempt failed") };
    assert_eq!(failed["is_repeated"], true);
    assert!(failed["error"].as_str().unwrap().contains("agent 1"), "{failed}");
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    is_exact(cell, cell["ledger"]["messages"].as_u64().unwrap());
    assert_eq!(
        (cell["ledger"]["sent"].as_u64() > Some(500), &cell["repetitions"]),
        (true, &1.into())
    );
    assert_eq!(summary["failures"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_trial_never_has_a_result_from_fewer_agents() {
    let place = Place::new("fleet-fewer");
    let Some((bus, mut agents)) = fleet(&place, 2) else { return };
    let words = ["compare", "tcp", "--fleet", &bus.url, "--agents", "2", "--reps", "1"];
    let load =
        ["-R", "200/s", "-d", "60s", "-c", "4", "--fleet-wait", "1s", "--fleet-retries", "1"];
    let child = place.spawn(&[&words[..], &load].concat());
    until("a load", || place.intervals() > 2);
    agents.remove(1).end("KILL");
    wait(child).with(5).saying(&["agent 1"]);
    assert!(place.of_kind("trial_finished").is_empty());
    let failures = &place.summary()["failures"];
    assert!(failures[0]["error"].as_str().unwrap().contains("rank 1"), "{failures}");
    assert_eq!(place.of_kind("trial_failed").len(), 2, "it was tried again once");
}

#[test]
fn ctrl_c_ends_the_trial_on_all_agents_and_a_resumed_run_is_whole() {
    let place = Place::new("fleet-interrupted");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    let words = ["compare", "tcp", "--fleet", &bus.url, "--agents", "2", "--reps", "2"];
    let load = ["-R", "300/s", "-d", "2s", "--warmup", "0s", "-c", "4"];
    let child = place.spawn(&[&words[..], &load].concat());
    until("a load", || place.intervals() > 2);
    let live = place.run().join(LIVE);
    until("a live second", || {
        let text = std::fs::read(&live).unwrap_or_default();
        let seconds = Second::newest_last(&text);
        seconds.iter().any(|own| own.counts.as_ref().is_some_and(|counts| counts.sent > 0))
    });
    signal("INT", child.id());
    wait(child).with(130);
    place.weigh(&["run", "--resume", "latest"]).with(2).saying(&["2 agents", "--agents 2"]);
    let resumed = ["run", "--resume", "latest", "--fleet", &bus.url, "--agents"];
    place.weigh(&[&resumed[..], &["1"]].concat()).with(2).saying(&["--agents 2"]);
    place.weigh(&[&resumed[..], &["2"]].concat()).with(0);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert_eq!((&cell["repetitions"], cell["ledger"]["lost"].as_u64()), (&2.into(), Some(0)));
    assert!(!warnings(cell).contains(&"interrupted"), "{cell}");
    assert_eq!(place.of_kind("fleet_placed").len(), 2);
}

/// Without its bus no agent can be reached: the run ends, and its other trials are left to a
/// resumed one.
#[test]
fn a_run_whose_bus_is_gone_ends_and_is_resumed() {
    let place = Place::new("fleet-bus-gone");
    let Some((bus, agents)) = fleet(&place, 2) else { return };
    let words = ["compare", "tcp", "--fleet", &bus.url, "--agents", "2", "--reps", "8"];
    let load = ["-R", "300/s", "-d", "1s", "--warmup", "0s", "-c", "4"];
    let child = place.spawn(&[&words[..], &load].concat());
    until("a second trial", || place.of_kind_so_far("trial_started").len() > 1);
    drop(bus);
    wait(child).with(5).saying(&["the bus of the fleet is gone", "help: start it again"]);
    drop(agents);
    let begun = place.of_kind("trial_finished").len();
    assert!((1..8).contains(&begun) && place.of_kind("trial_failed").is_empty(), "{begun}");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    place.weigh(&["run", "--resume", "latest", "--fleet", &bus.url, "--agents", "2"]).with(0);
    assert_eq!(place.of_kind("trial_finished").len(), 8);
}

/// The agents finish the trial of a coordinator that is gone, and the resumed run takes it.
#[test]
fn a_trial_that_agents_finished_without_their_coordinator_is_taken() {
    let place = Place::new("fleet-coordinator");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    let server = Server::start(&place, &["mqtt"]);
    let words = ["compare", &server.url, "--fleet", &bus.url, "--agents", "2", "--reps", "2"];
    let load = ["-R", "300/s", "-d", "3s", "--warmup", "0s", "-c", "4", "--qos", "1"];
    let child = place.spawn(&[&words[..], &load].concat());
    until("a load", || place.intervals() > 2);
    signal("KILL", child.id());
    wait(child);
    let [begun] = &place.of_kind("trial_started")[..] else { panic!("one trial has begun") };
    assert_eq!(begun["attempt"], 1);
    let resumed = ["run", "--resume", "latest", "--fleet", &bus.url, "--agents", "2"];
    place.weigh(&resumed).with(0).saying(&["the agents finished it without this program"]);
    // The first trial has not begun again, and is whole.
    let finished = place.of_kind("trial_finished");
    assert_eq!((place.of_kind("trial_started").len(), finished.len()), (2, 2));
    assert_eq!(finished[0]["trial"], begun["trial"]);
    for own in &finished {
        let ledger = &own["ledger"];
        let sent = ledger["sent"].as_u64().expect("a count");
        assert!(sent > 800 && ledger["scheduled"] == sent, "{ledger}");
        assert_eq!(
            (&ledger["acknowledged"], &ledger["lost"]),
            (&sent.into(), &0.into()),
            "{ledger}"
        );
        assert!(own["metrics"]["response_time_ns.p50"].as_f64() > Some(0.0), "{own}");
    }
    // Its target was not observed, and that is said.
    let names = finished[0]["metrics"].as_object().expect("figures");
    assert!(!names.keys().any(|name| name.starts_with("target_")), "{names:?}");
    let codes = |own: &Value| own["doubts"].to_string();
    assert!(codes(&finished[0]).contains("taken-over"), "{}", finished[0]);
    assert!(!codes(&finished[1]).contains("taken-over"), "{}", finished[1]);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert_eq!((&cell["repetitions"], cell["ledger"]["lost"].as_u64()), (&2.into(), Some(0)));
    assert_eq!(place.of_kind("fleet_ran").len(), 2);
    assert_eq!(bus.objects(), 0, "nothing is left in the object store");
    assert!(place.processes().iter().filter(|(_, line)| line.contains(" agent ")).count() == 2);
}

/// A server that the killed program had started ended with it: its trial is repeated.
#[test]
fn a_trial_whose_target_died_with_the_coordinator_is_repeated() {
    let place = Place::new("fleet-managed");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    let words = ["compare", "tcp", "--fleet", &bus.url, "--agents", "2", "--reps", "1"];
    let load = ["-R", "300/s", "-d", "3s", "--warmup", "0s", "-c", "4"];
    let child = place.spawn(&[&words[..], &load].concat());
    until("a load", || place.intervals() > 2);
    signal("KILL", child.id());
    wait(child);
    let resumed = ["run", "--resume", "latest", "--fleet", &bus.url, "--agents", "2"];
    place.weigh(&resumed).with(0);
    let started = place.of_kind("trial_started");
    let attempts: Vec<&Value> = started.iter().map(|own| &own["attempt"]).collect();
    assert_eq!(attempts, [1, 2]);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert_eq!((&cell["repetitions"], cell["ledger"]["lost"].as_u64()), (&1.into(), Some(0)));
    assert!(!warnings(cell).contains(&"taken-over"), "{cell}");
    assert_eq!(bus.objects(), 0, "nothing is left in the object store");
}

impl Place {
    /// Intervals in the journal of the only run so far.
    pub fn intervals(&self) -> usize {
        self.of_kind_so_far("interval").len()
    }
}
