//! Transfers and sessions as a user asks for them: any size in bounded memory, files that are no
//! objects, a file that shrinks while it is sent, the relay before a target.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::rig::{Place, cells, figure, has, has_hosts, signal, until};

/// The memory that the process of this id has of its own, bytes: its heap and stacks, without the
/// pages of the program's file, of which an unoptimised build alone has 50 MiB. 0 once it is gone.
fn own_memory_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn value(cell: &Value, metric: &str) -> f64 {
    cell["metrics"][metric]["value"].as_f64().unwrap_or_else(|| panic!("{metric}: {cell:#}"))
}

/// 256 MiB (for MQTT what its remaining length leaves of it) take no more memory than a few
/// pieces: below 24 MiB of the generator's own, below 32 MiB in a server with all that it is.
#[test]
fn a_large_object_takes_little_memory() {
    for (protocol, size) in [("tcp", "256MiB"), ("http", "256MiB"), ("mqtt", "268435400B")] {
        let place = Place::new("large");
        let words = ["compare", protocol, "-q", "1", "--pattern", "transfer", "-s", size];
        let words: Vec<&str> = match protocol {
            "mqtt" => words.to_vec(),
            _ => words.iter().copied().filter(|word| !["-q", "1"].contains(word)).collect(),
        };
        let more = ["-n", "1", "--reps", "1", "--timeout", "300s", "--json"];
        let mut command = place.command(&[&words[..], &more[..]].concat());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut own_bytes = 0;
        while child.try_wait().expect("a child").is_none() {
            own_bytes = own_bytes.max(own_memory_bytes(child.id()));
            std::thread::sleep(Duration::from_millis(20));
        }
        let summary = place.summary();
        let cell = &summary["cells"][0];
        assert_eq!(cell["ledger"]["delivered"], 1, "{protocol}: {cell:#}");
        assert_eq!(cell["ledger"]["corrupt"], 0, "{protocol}");
        assert!(value(cell, "body_bytes") > 268e6, "{protocol}");
        let target_bytes = value(cell, "target_memory_bytes.max");
        println!("{protocol} {size}: generator {own_bytes} B, server {target_bytes} B");
        // A tenth of the object, and what drawing the pictures of the report takes.
        assert!(0 < own_bytes && own_bytes < 48 << 20, "{protocol}: {own_bytes}");
        assert!(target_bytes < 32.0 * 1048576.0, "{protocol}: {target_bytes}");
        place.nobody_is_left();
    }
}

#[test]
fn what_is_no_object_is_refused_with_the_fix() {
    let place = Place::new("no-object");
    place.write("empty", "");
    place.write("small", "0123456789");
    std::fs::create_dir(place.folder().join("folder")).unwrap();
    let tcp = |more: &[&str]| {
        place.weigh(&[&["compare", "tcp", "--pattern", "transfer", "-n", "1"], more].concat())
    };
    for (more, said) in [
        (&["--body", "file:nothing"][..], "nothing cannot be read"),
        (&["--body", "file:empty"], "is empty"),
        (&["--body", "file:folder"], "is a directory"),
        (&["--body", "file:/dev/null"], "is a device"),
        (&["--body", "file:small", "-s", "5B"], "type -s 54B"),
        (&["-s", "0B"], "at least -s 1B"),
        (&["-s", "2GiB"], "raise tcp.frame_bytes_max"),
        (&["-s", "1KB", "--set", "tcp.echo=true"], "in one direction"),
        (&["-s", "1KB", "-y", "1", "--topology", "pairs", "-c", "2"], "make -c and -y equal"),
    ] {
        let ended = tcp(more).with(2);
        assert!(ended.stderr.contains(said), "{more:?}: {}", ended.stderr);
    }
    let words = ["compare", "mqtt", "-q", "1", "--pattern", "transfer", "-s", "256MiB"];
    let ended = place.weigh(&words).with(2);
    assert!(ended.stderr.contains("268435455") && ended.stderr.contains("type at most"));
    let words = ["compare", "http", "--pattern", "transfer", "-s", "1KB", "-y", "1"];
    let ended = place.weigh(&words).with(2);
    assert!(
        ended.stderr.contains("-y 1: only deliver and poll have subscribers"),
        "{}",
        ended.stderr
    );
    let ended = place.weigh(&["serve", "relay"]).with(2);
    assert!(ended.stderr.contains("type --to ADDR:PORT"), "{}", ended.stderr);
    assert!(place.runs().is_empty());
}

/// A file that is cut short while it is sent: the transfer is lost on our own side, and the result
/// names the file, what became of it, and the fix.
#[test]
fn a_file_that_shrinks_is_told_by_name() {
    for protocol in ["tcp", "mqtt"] {
        let place = Place::new("shrinks");
        let path = place.folder().join("object");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(1 << 30).unwrap();
        // MQTT carries a quarter of it.
        let bytes: u64 = if protocol == "mqtt" { 200 << 20 } else { 1 << 30 };
        file.set_len(bytes).unwrap();
        let mut words = vec!["compare", protocol, "--pattern", "transfer", "-n", "1"];
        if protocol == "mqtt" {
            words.extend(["-q", "0"]);
        }
        words.extend(["--body", "file:object", "--reps", "1", "--timeout", "5s"]);
        words.extend([
            "--set",
            if protocol == "tcp" {
                "tcp.frame_bytes_max=4294967299"
            } else {
                "mqtt.keep_alive=60s"
            },
        ]);
        let mut child = place.spawn(&words);
        // The first transfer has begun once the target has read from it.
        let is_sending = || {
            let io = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/io"));
            let text = io(child.id()).unwrap_or_default();
            let read = text.lines().find_map(|line| line.strip_prefix("rchar: "));
            read.and_then(|text| text.parse::<u64>().ok()).is_some_and(|bytes| bytes > 20 << 20)
        };
        while !is_sending() {
            std::thread::sleep(Duration::from_millis(2));
        }
        file.set_len(1_000_000).unwrap();
        child.wait().unwrap();
        let summary = place.summary();
        let cell = &summary["cells"][0];
        let ledger = &cell["ledger"];
        assert_eq!((&ledger["sent"], &ledger["delivered"]), (&1.into(), &0.into()), "{cell:#}");
        assert_eq!(ledger["causes"]["producer_dropped"], 1, "{ledger:#}");
        let warnings = cell["doubts"].as_array().unwrap();
        let told =
            warnings.iter().find(|warning| warning["code"] == "object-file").expect("a warning");
        let text = told["text"].as_str().unwrap();
        assert!(text.contains(&format!("object shrank from {bytes} to 1000000 bytes")), "{text}");
        assert!(text.contains("send a copy"), "{text}");
        place.nobody_is_left();
    }
}

/// The relay stands before any target, counts what it carried, and is one more server on the way:
/// a direct transfer is not compared with a relayed one, and a brokered one is.
#[test]
fn a_relay_is_the_control_for_a_second_hop() {
    let place = Place::new("relay");
    place.write(
        "relay.toml",
        "[load]\npattern = \"transfer\"\nsize = \"100KB\"\nmessages = 5\n[[case]]\n\
         protocol = \"tcp\"\n[[case]]\nprotocol = \"tcp\"\ntarget.relay = true\n[[case]]\n\
         protocol = \"mqtt\"\nmqtt.qos = 1\n[repeat]\nat_least = 3\n",
    );
    place.weigh(&["run", "relay.toml"]).with(0);
    let summary = place.summary();
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3, "{summary:#}");
    for cell in cells {
        assert_eq!(cell["ledger"]["delivered"], 15, "{cell:#}");
    }
    let relayed: Vec<&Value> =
        cells.iter().filter(|cell| cell["point"]["target.relay"] == true).collect();
    let [relayed] = relayed[..] else { panic!("{summary:#}") };
    assert_eq!(value(relayed, "relay.up_bytes"), 5.0 * 100_009.0);
    assert_eq!(value(relayed, "relay.down_bytes"), 5.0 * 9.0);
    assert_eq!(value(relayed, "relay.broken_connections"), 0.0);
    assert!(value(relayed, "relay.cpu_percent") >= 0.0);
    place.nobody_is_left();
}

/// Both hops are heard by one rule: inside TLS, and with offloads on.
#[test]
fn the_second_hop_is_heard_as_the_first_one() {
    if !has_hosts("the_second_hop_is_heard_as_the_first_one") {
        return;
    }
    for more in [["--tls", "on"], ["--offload", "on"]] {
        if more[0] == "--tls" && !cfg!(feature = "tls") {
            continue;
        }
        let place = Place::new("second-hop");
        let load = ["--pattern", "transfer", "-s", "100KB", "-n", "3", "--relay", "--wire", "-Q"];
        place.compare(&[&["tcp"][..], &load, &more].concat()).with(0);
        let summary = place.summary();
        let cell = &summary["cells"][0];
        let told = cell["doubts"].as_array().unwrap();
        let wire: Vec<&str> = told
            .iter()
            .filter(|warning| warning["code"] == "wire")
            .filter_map(|warning| warning["text"].as_str())
            .collect();
        let is_captured = more[0] == "--offload";
        assert_eq!(wire.is_empty(), !is_captured, "{wire:?}");
        // What of the stream is whose is the same on both hops.
        for layer in ["payload", "protocol"] {
            let [one, two] =
                ["", "relay."].map(|hop| value(cell, &format!("{hop}wire.layers.{layer}_bytes")));
            assert_eq!(one, two, "{more:?} {layer}");
        }
        if is_captured {
            assert!(wire.iter().any(|text| text.starts_with("behind the relay: ")), "{wire:?}");
        } else {
            let spoken = cell["scene"]["tls"].as_str().expect("what was spoken");
            assert!(spoken.starts_with("TLSv1_3 TLS13_"), "{spoken}");
        }
        place.nobody_is_left();
    }
}

/// What a relay that died takes with it is no fault of the target.
#[test]
fn a_relay_that_dies_is_said() {
    let place = Place::new("dead-relay");
    let load = ["-R", "100/s", "-d", "3s", "-c", "2", "--reps", "1", "--warmup", "0s", "-Q"];
    let mut program = place.spawn(&[&["compare", "tcp", "--relay"][..], &load].concat());
    let relay = || {
        let all = place.processes();
        all.into_iter().find(|(_, line)| line.contains("serve relay")).map(|(pid, _)| pid)
    };
    until("there is a relay", || relay().is_some());
    std::thread::sleep(Duration::from_millis(1500));
    signal("KILL", relay().expect("it runs"));
    program.wait().unwrap();
    let journal = place.journal();
    let finished = journal.iter().find(|event| event["event"] == "trial_finished");
    let warnings = finished.expect("a trial")["doubts"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["code"] == "relay-died"), "{warnings:?}");
    place.nobody_is_left();
}

/// Connect, one message, close: every protocol, inside TLS or not, resumed or not, with the time
/// of the whole and of its parts.
#[test]
fn sessions_have_their_parts() {
    let place = Place::new("sessions");
    let mut lanes = 0;
    let resumed = ["mqtt", "http1", "tcp"].map(|name| format!("{name}.tls_resume=true"));
    let fresh = ["mqtt", "http1", "tcp"].map(|name| format!("{name}.tls_resume=false"));
    let inside = [("off", None), ("on", Some(&resumed)), ("on", Some(&fresh))];
    for (tls, sets) in inside.into_iter().take(if cfg!(feature = "tls") { 3 } else { 1 }) {
        let mut all = vec!["compare", "mqtt", "http", "tcp", "--pattern", "session", "--json"];
        all.extend(["-n", "30", "-c", "2", "--reps", "1", "--warmup", "0s", "--tls", tls]);
        all.extend(sets.into_iter().flatten().flat_map(|set| ["--set", set]));
        let ended = place.weigh(&all).with(0);
        let summary: Value = serde_json::from_str(&ended.stdout).unwrap();
        for cell in summary["cells"].as_array().unwrap() {
            let name = format!("{} {tls}", cell["point"]);
            assert_eq!(cell["ledger"]["sent"], 30, "{name}");
            assert_eq!(cell["ledger"]["lost"], 0, "{name}");
            let session = value(cell, "session_time_ns.mean");
            let connect = value(cell, "connect_time_ns.mean");
            assert!(0.0 < connect && connect < session, "{name}: {connect} of {session}");
            lanes += 1;
            let Some(sets) = sets else { continue };
            let handshakes =
                ["full", "resumed"].map(|how| value(cell, &format!("tls_handshakes_{how}")));
            assert_eq!(handshakes[0] + handshakes[1], 30.0, "{name}");
            let is_resumed = sets[0].ends_with("true");
            assert_eq!(handshakes[1] > 0.0, is_resumed, "{name}: {handshakes:?}");
        }
    }
    assert_eq!(lanes, if cfg!(feature = "tls") { 15 } else { 5 });
    place.nobody_is_left();
}

/// A broker's own counters are messages, also where what it carries comes piece by piece.
#[test]
fn a_broker_that_carries_an_object_tells_its_counters() {
    if !has("mosquitto") {
        return;
    }
    let place = Place::new("transfer-counters");
    let words = ["mosquitto", "-q", "1", "--pattern", "transfer", "-s", "50KB", "-n", "3", "-y"];
    place.compare(&[&words[..], &["1", "-Q"]].concat()).with(0);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert_eq!(cell["ledger"]["delivered"], 3, "{cell}");
    assert!(figure(cell, "counter.received") >= 3.0, "{cell}");
    place.nobody_is_left();
}
