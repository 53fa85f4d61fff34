//! Redis end to end: compared with MQTT and HTTP, against redis-server, and with foreign clients at
//! the reference server.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use crate::foreign::python;
use crate::rig::{Place, cells, figure, has, has_hosts};
use crate::serving::Server;
use crate::wire::tshark;

/// The cell of a command.
fn of<'s>(summary: &'s Value, command: &str) -> &'s Value {
    let found = cells(summary).iter().find(|cell| cell["point"]["redis.command"] == command);
    found.unwrap_or_else(|| panic!("{command} was not measured: {summary:#}"))
}

/// Each command has the guarantee of its lane, and PUBLISH without subscribers says so.
#[test]
fn it_is_compared_with_the_same_guarantee_of_others() {
    let place = Place::new("redis-compare");
    let words = ["redis", "mqtt", "http", "--pattern", "publish", "-n", "200", "-s", "120B"];
    place.compare(&words).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 6);
    for (command, guarantee, durability, no_subscriber) in
        [("publish", "at most once", "none", 200), ("xadd", "at least once", "memory", 0)]
    {
        let cell = of(&summary, command);
        assert_eq!(
            (&cell["guarantee"], &cell["durability"]),
            (&guarantee.into(), &durability.into())
        );
        let ledger = &cell["ledger"];
        assert_eq!((&ledger["acknowledged"], &ledger["delivered"]), (&200.into(), &200.into()));
        assert_eq!(ledger["no_subscriber"], no_subscriber, "{ledger}");
    }
    for finished in place.of_kind("trial_finished") {
        assert_eq!(finished["server"]["unique"], 200, "{}", finished["point"]);
    }
}

/// Subscribers and consumers of streams get every message, in every way of reading.
#[test]
fn consumers_are_delivered_to() {
    for (pattern, more) in [
        ("deliver", &[][..]),
        ("deliver", &["--set", "redis.resp=3", "--set", "redis.read=plain"]),
        ("deliver", &["--topology", "pairs", "-x", "4", "-y", "4", "--set", "redis.ack=false"]),
        ("deliver", &["--topology", "shared", "-x", "4", "-y", "3", "--set", "redis.command=xadd"]),
        ("poll", &["--set", "redis.command=xadd", "-R", "500/s"]),
    ] {
        let place = Place::new("redis-deliver");
        let words = ["redis", "--pattern", pattern, "-n", "300", "--window", "4"];
        place.compare(&[&words[..], more].concat()).with(0);
        for cell in cells(&place.summary()) {
            assert_eq!(cell["ledger"]["delivered"], 300, "{more:?}: {}", cell["ledger"]);
            assert_eq!(cell["ledger"]["no_subscriber"], 0, "{more:?}");
        }
    }
}

/// redis-server counts the messages that the ledger has, with both versions of RESP.
#[test]
fn the_real_server_is_measured_and_its_counters_agree() {
    if !has("redis-server") {
        return;
    }
    for resp in ["2", "3"] {
        let place = Place::new("redis-server");
        let version = format!("redis.resp={resp}");
        let words = ["redis-server", "-n", "400", "--pattern", "deliver", "--set", &version];
        place.compare(&words).with(0);
        let summary = place.summary();
        assert_eq!(cells(&summary).len(), 2);
        for cell in cells(&summary) {
            assert_eq!(cell["ledger"]["delivered"], 400, "{}", cell["ledger"]);
            assert_eq!(figure(cell, "counter.received"), 400.0, "{cell}");
            assert_eq!(figure(cell, "counter.refused"), 0.0, "{cell}");
        }
        let acknowledged = figure(of(&summary, "xadd"), "counter.acknowledged");
        assert!((1.0..=400.0).contains(&acknowledged), "{acknowledged}");
        place.nobody_is_left();
    }
}

/// A server given by URL shows its counters too, as long as no other client uses it.
#[test]
fn the_counters_of_a_url_are_read() {
    let place = Place::new("redis-url");
    let server = Server::start(&place, &["redis"]);
    let words = [&*server.url, "--set", "redis.command=xadd", "--pattern", "publish", "-n", "150"];
    place.compare(&[&words[..], &["--sys", "on"]].concat()).with(0);
    let summary = place.summary();
    assert_eq!(figure(&cells(&summary)[0], "counter.received"), 150.0, "{summary:#}");
}

/// A subscriber that stops reading is cut off: what it loses was acknowledged, and has a cause.
#[test]
fn a_subscriber_that_stops_is_cut_off_with_a_cause() {
    let place = Place::new("redis-stall");
    let real = has("redis-server").then_some(STALL_OF_REDIS);
    place.write("plan.toml", &[STALL, real.unwrap_or_default()].concat());
    place.weigh(&["run", "plan.toml"]).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 1 + usize::from(real.is_some()));
    for cell in cells(&summary) {
        let count = |name: &str| cell["ledger"][name].as_u64().unwrap_or(0);
        let lost = &cell["ledger"]["causes"]["subscriber_disconnected"];
        assert_eq!(count("acknowledged"), count("sent"), "{}", cell["ledger"]);
        assert!(count("lost") > 0 && count("no_subscriber") > 0, "{}", cell["ledger"]);
        assert_eq!(lost.as_u64(), Some(count("lost")), "{}", cell["ledger"]);
    }
}

/// The server's buffers and those of both kernels hold less than the load of the stalled time.
const STALL: &str = r#"
[load]
pattern = "deliver"
rate = "3000/s"
size = "16KB"
duration = "3s"
warmup = "0s"
stall = "2s"
connections = 2
subscribers = 1
[repeat]
at_least = 1
[[case]]
protocol = "redis"
redis.command = "publish"
target = "reference"
redis.server_output_buffer = 1000000
"#;

/// The same load of the real server, with its own limit.
const STALL_OF_REDIS: &str = r#"
[[case]]
protocol = "redis"
redis.command = "publish"
target = "redis-server"
"#;

/// What a confirmation survives depends on the profile, and only equals are compared.
#[test]
fn the_profiles_of_the_real_server_have_their_durability() {
    if !has("redis-server") {
        return;
    }
    for (target, durability) in [
        ("redis-server", "memory"),
        ("redis-server@aof-no", "page-cache"),
        ("redis-server@aof-everysec", "fsync=1s"),
        ("redis-server@aof-always", "fsync"),
    ] {
        let place = Place::new("redis-durability");
        let words = [target, "-n", "50", "--pattern", "publish"];
        place.compare(&words).with(0);
        let summary = place.summary();
        assert_eq!(of(&summary, "publish")["durability"], "none");
        assert_eq!(of(&summary, "xadd")["durability"], durability, "{target}");
        assert_eq!(of(&summary, "xadd")["ledger"]["delivered"], 50);
    }
}

/// TLS by the layer that all protocols share: the reference server and the real one.
#[cfg(feature = "tls")]
#[test]
fn it_runs_inside_tls() {
    let place = Place::new("redis-tls");
    let real = if has("redis-server") { &["redis-server"][..] } else { &[] };
    let words = ["redis", "--pattern", "deliver", "-n", "100", "--tls", "on"];
    place.compare(&[real, &words[..]].concat()).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 2 + 2 * real.len());
    for cell in cells(&summary) {
        assert_eq!(cell["ledger"]["delivered"], 100, "{}", cell["ledger"]);
        assert_eq!(cell["point"]["redis.tls"], "on");
    }
    place.nobody_is_left();
}

/// A server that is full refuses, and the result says what to do.
#[test]
fn refusals_of_the_server_are_errors_with_advice() {
    let place = Place::new("redis-full");
    let words = ["redis", "--set", "redis.server_maxmemory=65536"];
    let server = Server::start(&place, &words);
    let load = [&*server.url, "--set", "redis.command=xadd", "-n", "400", "-s", "1KB"];
    let ended = place.compare(&[&load[..], &["--pattern", "publish"]].concat());
    let summary = place.summary();
    let ledger = &cells(&summary)[0]["ledger"];
    let errors = ledger["causes"]["error_answer"].as_u64().expect("errors");
    assert!(errors > 300 && errors < 400, "{ledger}");
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("error OOM") && said.contains("redis.maxlen"), "{said}");
}

/// A password, in the URL or beside it; without it the run ends before it measures anything.
#[test]
fn credentials_are_asked_for() {
    let place = Place::new("redis-login");
    let server = Server::start(&place, &["redis", "--set", "redis.server_password=secret"]);
    let load = ["-n", "20", "--reps", "1", "-c", "2", "--set", "redis.command=xadd"];
    for resp in ["2", "3"] {
        let version = format!("redis.resp={resp}");
        let words = ["compare", &*server.url, "--set", &version, "--runs", resp];
        let all = [&words[..], &load].concat();
        place.weigh(&all).with(3).saying(&["NOAUTH"]);
        let given = [&all[..], &["--user", "default"]].concat();
        let output = place.command(&given).env("WEIGH_PASSWORD", "guessed").output();
        let said = String::from_utf8_lossy(&output.expect("it starts").stderr).into_owned();
        assert!(said.contains("WRONGPASS"), "{said}");
        let output = place.command(&given).env("WEIGH_PASSWORD", "secret").output();
        assert_eq!(output.expect("it starts").status.code(), Some(0));
    }
}

#[test]
fn what_is_not_redis_is_named() {
    let place = Place::new("redis-nowhere");
    let refused = place.compare(&["redis://127.0.0.1:1", "-n", "5"]);
    refused.with(3).saying(&["redis://127.0.0.1:1", "connection refused"]);
    for (protocol, said) in [("http", "HTTP/1.1"), ("tcp", "redis")] {
        let server = Server::start(&place, &[protocol]);
        let port = server.url.rsplit(':').next().expect("a port").to_owned();
        let url = format!("redis://127.0.0.1:{port}");
        let ended = place.compare(&[&url, "-n", "5", "--timeout", "1s"]);
        assert_ne!(ended.code, Some(0), "{protocol}: {}", ended.stdout);
        let text = format!("{}{}", ended.stdout, ended.stderr);
        assert!(text.contains(said), "{protocol}: {text}");
    }
    // A server that greets in another protocol, then a length above every limit.
    for (answer, said) in
        [(&b"220 mail ESMTP\r\n"[..], "another protocol"), (b"$99999999999\r\n", "bulk_bytes_max")]
    {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("redis://{}", listener.local_addr().expect("its address"));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.write_all(answer);
                let _ = stream.read(&mut [0; 4096]);
            }
        });
        let ended = place.compare(&[&url, "-n", "5", "--timeout", "1s", "--pattern", "publish"]);
        assert_ne!(ended.code, Some(0), "{}", ended.stdout);
        let text = format!("{}{}", ended.stdout, ended.stderr);
        assert!(text.contains(said), "{text}");
    }
}

/// redis-cli stores, reads, waits and subscribes, and redis-benchmark loads.
#[test]
fn the_clients_of_redis_are_served() {
    if !has("redis-cli") || !has("redis-benchmark") {
        return;
    }
    let place = Place::new("redis-cli");
    let server = Server::start(&place, &["redis"]);
    let port = server.url.rsplit(':').next().expect("a port").to_owned();
    let ask = |version: &str, words: &[&str]| {
        let output = place
            .program("redis-cli", &[&["-p", &*port, version], words].concat())
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    for version in ["-2", "-3"] {
        assert_eq!(ask(version, &["PING"]), "PONG");
        assert_eq!(ask(version, &["SET", "k", "v"]), "OK");
        assert_eq!(ask(version, &["GET", "k"]), "v");
        assert!(ask(version, &["XADD", "s", "*", "f", "first"]).contains('-'));
        assert!(ask(version, &["XRANGE", "s", "-", "+"]).contains("first"));
        assert_eq!(ask(version, &["PUBLISH", "c", "x"]), "0");
        assert!(ask(version, &["INFO"]).contains("redis_version:7"));
        assert_eq!(ask(version, &["DEL", "s"]), "1");
    }
    let load = ["-p", &*port, "-q", "-n", "2000", "-P", "8", "-t", "set,get"];
    let output = place.program("redis-benchmark", &load).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("requests per second"), "{said}");
    let load = ["-p", &*port, "-q", "-n", "500", "XADD", "b", "*", "f", "value"];
    let output = place.program("redis-benchmark", &load).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(ask("-2", &["XLEN", "b"]), "500");
    let (code, last) = server.end("TERM");
    assert_eq!(code, Some(0), "{last}");
    let report: Value = serde_json::from_str(last.trim()).expect("the last line is JSON");
    // 2 SET, 2 XADD and 2 PUBLISH of redis-cli, 2,000 SET and 500 XADD of redis-benchmark.
    assert!(report.to_string().contains("\"received\":2506"), "{report}");
}

/// redis-py subscribes, publishes, and reads a group, with both versions of RESP.
#[test]
fn the_client_of_redis_py_is_served() {
    let Some(python) = python("WEIGH_REDIS_PY", "redis") else { return };
    let place = Place::new("redis-py");
    place.write("client.py", REDIS_PY);
    let server = Server::start(&place, &["redis"]);
    let port = server.url.rsplit(':').next().expect("a port").to_owned();
    for version in ["2", "3"] {
        let output = place
            .program(&python, &["-W", "ignore", "client.py", &port, version])
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(said.trim(), "1 b'hello' [b'one', b'two'] pending 0 length 2", "RESP {version}");
    }
    assert_eq!(server.end("TERM").0, Some(0));
}

const REDIS_PY: &str = r#"
import sys
import redis

client = redis.Redis(port=int(sys.argv[1]), protocol=int(sys.argv[2]))
client.delete('stream')
pubsub = client.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe('news')
pubsub.get_message(timeout=5)
receivers = client.publish('news', 'hello')
heard = None
while heard is None:
    heard = pubsub.get_message(timeout=5)
client.xgroup_create('stream', 'g', '$', mkstream=True)
for body in ('one', 'two'):
    client.xadd('stream', {'data': body}, maxlen=100)
answer = client.xreadgroup('g', 'c', {'stream': '>'}, count=10, block=1000)
# Versions of redis-py differ in the form of this answer.
entries = list(answer.values())[0] if isinstance(answer, dict) else answer[0][1]
entries = entries[0] if isinstance(entries[0], list) else entries
bodies = [fields[b'data'] for _, fields in entries]
acknowledged = client.xack('stream', 'g', *[entry for entry, _ in entries])
assert acknowledged == 2, acknowledged
pending = client.execute_command('XPENDING', 'stream', 'g')
count = pending['pending'] if isinstance(pending, dict) else pending[0]
print(receivers, heard['data'], bodies, 'pending', count, 'length', client.xlen('stream'))
client.close()
"#;

/// Every byte of a message by layer, as the specification has it; tshark finds the same requests.
#[test]
fn bytes_are_counted_by_layer_and_tshark_agrees() {
    let test = "bytes_are_counted_by_layer_and_tshark_agrees";
    if !has_hosts(test) || !has("tshark") {
        return;
    }
    let place = Place::new("redis-wire");
    let words = ["compare", "redis", "--pattern", "publish", "-s", "100B", "-n", "10"];
    let more = ["--wire", "--pcap", "-Q", "--reps", "1", "--warmup", "0s", "-c", "1"];
    place.weigh(&[&words[..], &more].concat()).with(0);
    let summary = place.summary();
    // Words with their lengths and line ends: 3 of PUBLISH, 8 of XADD.
    for (command, protocol) in
        [("publish", 4 + 13 + 20 + 6 + 2), ("xadd", 4 + 10 + 19 + 12 + 7 + 12 + 7 + 10 + 6 + 2)]
    {
        let cell = of(&summary, command);
        let metric = |name: &str| figure(cell, &format!("wire.sent.layers.{name}_bytes"));
        assert_eq!(metric("payload"), 1000.0, "{command}");
        assert_eq!(metric("protocol"), 10.0 * f64::from(protocol), "{command}");
    }
    for finished in place.of_kind("trial_finished") {
        let file = place.pcap(&finished);
        let command = finished["point"]["redis.command"].as_str().expect("a command");
        let decode = ["-d", "tcp.port==1-65535,resp"];
        let rows = tshark(&file, "resp", &["resp.bulk_string.value"], &decode);
        let hex: String =
            command.to_uppercase().bytes().map(|byte| format!("{byte:02x}")).collect();
        let requests = rows.iter().filter(|row| row[0].to_lowercase().starts_with(&hex)).count();
        assert_eq!(requests, 10, "{command}: {rows:?}");
    }
}
