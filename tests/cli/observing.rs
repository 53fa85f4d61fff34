//! Targets that somebody else runs, and what they use: by a process, a control group, a container,
//! an agent. Without anybody who looks the figures are absent; a look that fails takes them away.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rig::{Place, cells, figure};
#[cfg(feature = "tls")]
use crate::rig::{signal, skip, until, wait, warnings};
use crate::serving::Server;

const OF_TARGETS: [&str; 4] = [
    "target_cpu_percent.mean",
    "target_cpu_us_per_message",
    "target_memory_bytes.max",
    "host_cpu_percent.mean",
];

fn compare(place: &Place, server: &Server, watched: &str) -> Value {
    let words = [&*server.url, "-d", "400ms", "--observe", watched, "--json", "-Q"];
    let summary = place.compare(&words).with(0).json();
    cells(&summary)[0].clone()
}

#[test]
fn what_nobody_looks_at_is_absent_and_a_process_is_seen() {
    let place = Place::new("observe-pid");
    let server = Server::start(&place, &["http"]);
    let summary = place.compare(&[&*server.url, "-n", "40", "--json"]).with(0).json();
    for metric in OF_TARGETS {
        let value = &cells(&summary)[0]["metrics"][metric];
        assert!(value.is_null(), "{metric} of a server that nobody looks at: {value}");
    }
    let port = server.url.rsplit(':').next().expect("a port").trim_end_matches('/');
    let pid = server.child.id();
    for watched in [format!("pid:{pid}"), format!("port:{port}")] {
        let cell = compare(&place, &server, &watched);
        OF_TARGETS.iter().for_each(|metric| assert!(figure(&cell, metric) > 0.0, "{metric}"));
        let told = cell["scene"]["target.watched"].as_str().expect("what was watched");
        assert!(told.contains(&format!("process {pid} (weigh)")), "{told}");
    }
    server.end("TERM");
    place.nobody_is_left();
}

/// A control group whose account somebody writes: half of a core, by the clock.
#[test]
fn the_share_of_a_control_group_is_the_one_that_it_has() {
    let place = Place::new("observe-cgroup");
    let folder = place.folder().join("fs/cgroup/farm/broker");
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |folder: &Path, used_us: u64| {
        let next = folder.join("cpu.stat.next");
        std::fs::write(&next, format!("usage_usec {used_us}\n")).expect("an account");
        std::fs::rename(next, folder.join("cpu.stat")).expect("an account");
    };
    write(&folder, 1_000_000);
    std::fs::write(folder.join("memory.current"), "7000000\n").expect("an account");
    std::fs::write(folder.join("memory.stat"), "inactive_file 2000000\n").expect("an account");
    std::fs::write(folder.join("cpu.max"), "100000 100000\n").expect("a quota");
    let is_over = Arc::new(AtomicBool::new(false));
    let (own, until_over) = (folder.clone(), Arc::clone(&is_over));
    let burner = std::thread::spawn(move || {
        let began = Instant::now();
        while !until_over.load(Ordering::Relaxed) {
            write(&own, 1_000_000 + began.elapsed().as_micros() as u64 / 2);
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let server = Server::start(&place, &["tcp"]);
    let words = ["compare", &*server.url, "--reps", "1", "-c", "1", "-R", "50/s", "-d", "3s", "-Q"];
    let watched = ["--observe", "cgroup:farm/broker", "--json"];
    let mut command = place.command(&[&words[..], &watched].concat());
    let output = command.env("WEIGH_SYSFS", place.folder()).output().expect("it starts");
    is_over.store(true, Ordering::Relaxed);
    burner.join().expect("it ends");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let cell = &cells(&summary)[0];
    let share = figure(cell, "target_cpu_percent.mean");
    assert!((40.0..60.0).contains(&share), "half of the one core that it is paid for: {share} %");
    assert_eq!(figure(cell, "target_memory_bytes.max"), 5e6);
    assert_eq!(cell["scene"]["target.watched.cores"], "1");
    server.end("TERM");
}

#[test]
fn a_container_is_found_by_its_engine() {
    let place = Place::new("observe-container");
    let server = Server::start(&place, &["http"]);
    let pid = server.child.id();
    let socket = place.folder().join("engine.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 512];
            let count = stream.read(&mut request).unwrap_or(0);
            let is_known = request[..count].starts_with(b"GET /containers/broker/json");
            let answer = match is_known {
                true => format!(
                    "HTTP/1.0 200 OK\r\n\r\n{{\"Id\":\"{}\",\"State\":{{\"Pid\":{pid}}}}}",
                    "ab".repeat(32)
                ),
                false => "HTTP/1.0 404 Not Found\r\n\r\n{}".to_owned(),
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let engine = format!("unix://{}", socket.display());
    let compare = |watched: &str| {
        let words = ["compare", &*server.url, "-n", "200", "--warmup", "0s", "--reps", "1"];
        let mut command = place.command(&[&words[..], &["--observe", watched, "--json"]].concat());
        command.env("DOCKER_HOST", &engine).output().expect("it starts")
    };
    let summary: Value = serde_json::from_slice(&compare("container:broker").stdout).expect("JSON");
    let cell = &cells(&summary)[0];
    assert!(figure(cell, "target_memory_bytes.max") > 0.0, "{cell}");
    assert!(cell["scene"]["target.watched"].as_str().expect("words").contains("container broker"));
    let refused = compare("container:other");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("cannot observe the container other") && said.contains("does not know it"),
        "{said}"
    );
    server.end("TERM");
}

#[cfg(feature = "tls")]
#[test]
fn an_agent_tells_those_who_know_it_and_nobody_records_its_token() {
    let place = Place::new("observe-agent");
    let server = Server::start(&place, &["http"]);
    let agent = agent_of(&place, &server);
    let url = agent.url.clone();
    let (address, token) = url.split_once('#').expect("a token");
    let cell = compare(&place, &server, &url);
    OF_TARGETS.iter().for_each(|metric| assert!(figure(&cell, metric) > 0.0, "{metric}"));
    let scene = &cell["scene"];
    assert!(scene["target.watched"].as_str().expect("words").contains("by weigh observe"));
    for key in ["target.watched.clock_bound", "target.watched.agent_cpu", "target.watched.cores"] {
        assert!(scene[key].is_string(), "{key}: {scene}");
    }
    assert!(place.files_of_the_run().iter().all(|file| {
        !String::from_utf8_lossy(&std::fs::read(file).expect("a file")).contains(token)
    }));
    let plan = std::fs::read_to_string(place.run().join("plan.toml")).expect("a plan");
    assert!(plan.contains(address), "{plan}");
    let refuse = |watched: &str, told: &[&str]| {
        place.compare(&[&*server.url, "-n", "4", "--observe", watched]).with(3).saying(told);
    };
    refuse(address, &["token is missing", "WEIGH_OBSERVE_TOKEN"]);
    refuse(&format!("{address}#{}", "0".repeat(32)), &["refuses", "wrong token"]);
    let (where_it_is, _) = address.rsplit_once('/').expect("a fingerprint");
    let other = format!("{where_it_is}/{}#{token}", "5a".repeat(32));
    refuse(&other, &["another agent", "restarted"]);
    let (_, port) = server.url.trim_end_matches('/').rsplit_once(':').expect("a port");
    let (_, pin) = address.rsplit_once('/').expect("a fingerprint");
    let stranger = format!("weigh-observe://127.0.0.1:{port}/{pin}#{token}");
    refuse(&stranger, &["not weigh observe"]);
    let (code, last) = agent.end("TERM");
    assert_eq!(code, Some(0), "{last}");
    assert!(last.contains("answered") && last.contains("refused 2 connections"), "{last}");
    refuse(&format!("{address}#{token}"), &["no agent answers"]);
    server.end("TERM");
    place.nobody_is_left();
}

#[cfg(feature = "tls")]
#[test]
fn an_agent_that_dies_midway_takes_the_figures_away_and_says_so() {
    let place = Place::new("observe-dies");
    let server = Server::start(&place, &["http"]);
    let mut agent = agent_of(&place, &server);
    let (where_it_is, token) = agent.url.split_once('#').expect("a token");
    let words = ["compare", &*server.url, "--reps", "1", "-c", "1", "-R", "100/s", "-d", "2s"];
    let mut command = place.command(&[&words[..], &["--observe", where_it_is, "-Q"]].concat());
    let program = command.env("WEIGH_OBSERVE_TOKEN", token).spawn().expect("it starts");
    until("the trial begins", || {
        let run = place.runs().pop();
        let journal = run.and_then(|run| std::fs::read_to_string(run.join("journal.jsonl")).ok());
        journal.is_some_and(|text| text.contains("\"trial_started\""))
    });
    // As a rule in the middle of its looks; earlier or later it must be told as well.
    std::thread::sleep(Duration::from_millis(300));
    signal("KILL", agent.child.id());
    agent.child.wait().expect("it ends");
    wait(program).with(0);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert!(warnings(cell).contains(&"target-unwatched"), "{cell}");
    for metric in OF_TARGETS {
        assert!(cell["metrics"][metric].is_null(), "{metric}: {cell}");
    }
    assert!(cell["ledger"]["delivered"].as_u64() > Some(0), "what was measured stays: {cell}");
    server.end("TERM");
    place.nobody_is_left();
}

#[cfg(feature = "tls")]
fn agent_of(place: &Place, server: &Server) -> Server {
    Server::begin(place, &["observe", "--pid", &server.child.id().to_string()])
}

#[test]
fn what_cannot_be_watched_is_named_before_anything_starts() {
    let place = Place::new("observe-errors");
    let server = Server::start(&place, &["tcp"]);
    let url = &*server.url;
    let second = format!("{url}=pid:1");
    for (words, code, told) in [
        (&[url, "--observe", "pid:4194303"][..], 2, "no process 4194303"),
        (&[url, "--observe", "port:1"], 2, "no process listens"),
        (&[url, "--observe", "cgroup:no/such"], 2, "no control group no/such"),
        (&[url, "--observe", "mosquitto"], 2, "type pid:N"),
        (&[url, "--observe", "mqtt://h:1=pid:1"], 2, "not a target of this plan"),
        (&[url, "--observe", "pid:1", "--observe", &second], 2, "observed already"),
        (&["tcp", "--observe", "pid:1"], 2, "targets given by URL"),
        (&[url, "http://127.0.0.1:9", "--observe", "pid:1"], 2, "several targets"),
    ] {
        place.compare(words).with(code).saying(&[told]);
    }
    place.weigh(&["observe", "--pid", "4194303"]).with(2).saying(&["--pid", "no process"]);
    place.weigh(&["observe"]).with(2);
    place.write("weak", "short\n");
    let own = std::process::id().to_string();
    let weak = ["observe", "--pid", &own, "--token-file", "weak"];
    place.weigh(&weak).with(2).saying(&["16 to 128"]);
    assert!(place.runs().is_empty());
    server.end("TERM");
}

/// Server and agent on a host of their own, in a network of its own behind a wire.
#[cfg(feature = "tls")]
#[test]
fn a_server_on_another_host_is_watched_there() {
    let test = "a_server_on_another_host_is_watched_there";
    let place = Place::new("observe-afar");
    place.write("afar.sh", AFAR);
    let apart = ["--user", "--map-root-user", "--net", "sh", "afar.sh"];
    let mut command = std::process::Command::new("unshare");
    command.args(apart).arg(env!("CARGO_BIN_EXE_weigh")).current_dir(place.folder());
    let try_it = ["--user", "--map-root-user", "--net", "true"];
    let may = || std::process::Command::new("unshare").args(try_it).output();
    let may = crate::rig::has("unshare") && may().is_ok_and(|output| output.status.success());
    let output = may.then(|| command.output().expect("unshare starts"));
    let Some(output) = output.filter(|output| output.status.code() != Some(77)) else {
        skip(&format!("{test}: there is no ip(8) or unshare(1), or they may not"));
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    OF_TARGETS.iter().for_each(|metric| assert!(figure(cell, metric) > 0.0, "{metric}"));
    assert!(cell["scene"]["target.watched"].as_str().expect("words").contains("weigh observe"));
    // Without leave nothing is sent there, and nothing was.
    assert!(said.contains("--i-may-load-this"), "{said}");
}

/// Two hosts, their wire, a server and an agent on the far one; 77 where that cannot be made.
#[cfg(feature = "tls")]
const AFAR: &str = r#"
weigh=$1
ip link set lo up || exit 77
unshare --net sh -c '
    while [ ! -e go ]; do sleep 0.05; done
    ip link set lo up && ip addr add 10.99.0.2/24 dev far && ip link set far up || exit 77
    '"'$weigh'"' serve http --listen 10.99.0.2:8080 > server.out & echo $! > server
    while [ ! -s server.out ]; do sleep 0.05; done
    exec '"'$weigh'"' observe --pid $(cat server) --listen 10.99.0.2:9990 > agent.out' &
far=$!
trap 'kill $far $(cat server)' EXIT
tries=0
while [ "$(readlink /proc/$far/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do
    sleep 0.05; tries=$((tries + 1)); [ $tries -lt 200 ] || exit 77
done
ip link add near type veth peer name far netns $far || exit 77
ip addr add 10.99.0.1/24 dev near && ip link set near up || exit 77
touch go
tries=0
while ! grep -q listening agent.out 2> /dev/null; do
    kill -0 $far 2> /dev/null || exit 77
    sleep 0.05; tries=$((tries + 1)); [ $tries -lt 600 ] || exit 1
done
load="--reps 1 -c 2 -d 300ms --warmup 0s -Q"
"$weigh" compare http://10.99.0.2:8080 $load && exit 1
agent=$(sed -n 's/^listening on //p' agent.out)
"$weigh" compare http://10.99.0.2:8080 $load --i-may-load-this --observe "$agent" > /dev/null
"#;
