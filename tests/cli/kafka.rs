//! Kafka end to end: compared with MQTT and HTTP, against Apache Kafka, and with a foreign client
//! at the reference server.

use std::io::Write;
use std::net::TcpListener;

use serde_json::Value;

use crate::foreign::python;
use crate::rig::{Place, cells, figure, has, has_hosts};
use crate::serving::Server;
use crate::wire::tshark;

/// The cell of a value of `acks`.
fn of<'s>(summary: &'s Value, acks: &str) -> &'s Value {
    let is_it = |cell: &&Value| value(&cell["point"]["kafka.acks"]) == acks;
    let found = cells(summary).iter().find(is_it);
    found.unwrap_or_else(|| panic!("{acks} was not measured: {summary:#}"))
}

/// A value of a key: those that are digits are numbers.
fn value(own: &Value) -> String {
    own.to_string().trim_matches('"').to_owned()
}

/// True if `weigh targets install kafka-server` has been called. `.ci/run` does not call it, so the
/// text is written past the capture of the test runner. With WEIGH_KAFKA=required it must be there.
pub fn has_kafka(place: &Place, test: &str) -> bool {
    let listed = place.weigh(&["targets"]).with(0).stdout;
    let line = listed.lines().find(|line| line.split(' ').next() == Some("kafka-server"));
    let is_there = !line.expect("it is listed").contains("not installed");
    if !is_there {
        assert_ne!(std::env::var("WEIGH_KAFKA").as_deref(), Ok("required"), "it is missing");
        let fix = "weigh targets install kafka-server --yes";
        let text = format!("SKIPPED {test}: Apache Kafka is not installed: {fix}\n");
        std::io::stderr().write_all(text.as_bytes()).expect("standard error is open");
    }
    is_there
}

/// Each value has the guarantee and the durability of its lane.
#[test]
fn it_is_compared_with_the_same_guarantee_of_others() {
    let place = Place::new("kafka-compare");
    let words = ["kafka", "mqtt", "http", "--pattern", "publish", "-n", "200", "-s", "120B"];
    place.compare(&words).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 6);
    for (acks, guarantee, durability, acknowledged) in
        [("0", "at most once", "none", 0), ("all", "at least once", "memory", 200)]
    {
        let cell = of(&summary, acks);
        assert_eq!(
            (&cell["guarantee"], &cell["durability"]),
            (&guarantee.into(), &durability.into())
        );
        let ledger = &cell["ledger"];
        assert_eq!(ledger["acknowledged"], acknowledged, "{ledger}");
        assert_eq!(ledger["delivered"], 200, "{ledger}");
    }
    for finished in place.of_kind("trial_finished") {
        assert_eq!(finished["server"]["unique"], 200, "{}", finished["point"]);
    }
}

/// Consumers get every message once, in every topology and with every way of making batches.
#[test]
fn consumers_are_delivered_to() {
    for more in [
        &[][..],
        &["--set", "kafka.linger=5ms", "--set", "kafka.acks=idempotent", "--set", "kafka.acks=1"],
        &["--topology", "pairs", "-x", "4", "-y", "4"],
        &["--topology", "shared", "-x", "4", "-y", "3", "--set", "kafka.partitioner=round-robin"],
        &["--topology", "fan-out", "-x", "1", "-y", "3", "--set", "kafka.partitions=5"],
        &["-R", "2000/s", "--set", "kafka.max_in_flight=1", "--set", "kafka.fetch_min=2000"],
    ] {
        let place = Place::new("kafka-deliver");
        let words = ["kafka", "--pattern", "deliver", "-n", "300"];
        let is_open = more.first() == Some(&"-R");
        let window: &[&str] = if is_open { &[] } else { &["--window", "4"] };
        place.compare(&[&words[..], window, more].concat()).with(0);
        for cell in cells(&place.summary()) {
            let copies: u64 = if more.contains(&"fan-out") { 3 } else { 1 };
            assert_eq!(cell["ledger"]["delivered"], 300 * copies, "{more:?}: {}", cell["ledger"]);
            assert_eq!(cell["ledger"]["lost"], 0, "{more:?}: {}", cell["ledger"]);
            assert_eq!(cell["ledger"]["duplicates"], 0, "{more:?}: {}", cell["ledger"]);
        }
    }
}

/// Apache Kafka counts the messages that the ledger has.
#[test]
fn the_real_server_is_measured_and_its_counters_agree() {
    let test = "the_real_server_is_measured_and_its_counters_agree";
    if !has_kafka(&Place::new("kafka-listed"), test) {
        return;
    }
    for acks in ["0", "1", "all", "idempotent"] {
        let place = Place::new("kafka-server");
        let key = format!("kafka.acks={acks}");
        let words = ["kafka-server", "-n", "400", "--pattern", "deliver", "--window", "4"];
        place.compare(&[&words[..], &["--set", &key]].concat()).with(0);
        let summary = place.summary();
        let (cell, ledger) = (of(&summary, acks), &of(&summary, acks)["ledger"]);
        assert_eq!(ledger["delivered"], 400, "{acks}: {ledger}");
        assert_eq!((&ledger["lost"], &ledger["duplicates"]), (&0.into(), &0.into()), "{acks}");
        assert_eq!(figure(cell, "counter.received"), 400.0, "{acks}");
        assert_eq!(figure(cell, "counter.refused"), 0.0, "{acks}");
        let batches = figure(cell, "counter.produce_requests");
        assert!((1.0..=400.0).contains(&batches), "{acks}: {batches} batches");
        let expected = if acks == "0" { "none" } else { "page-cache" };
        assert_eq!(cell["durability"], expected, "{acks}");
        place.nobody_is_left();
    }
}

/// The other profile syncs each batch.
#[test]
fn the_profile_that_syncs_has_its_durability() {
    let place = Place::new("kafka-flush");
    if !has_kafka(&place, "the_profile_that_syncs_has_its_durability") {
        return;
    }
    let words = ["kafka-server@flush-each", "-n", "50", "--pattern", "publish"];
    place.compare(&[&words[..], &["--set", "kafka.acks=all"]].concat()).with(0);
    let summary = place.summary();
    assert_eq!(of(&summary, "all")["durability"], "fsync");
    assert_eq!(of(&summary, "all")["ledger"]["acknowledged"], 50);
    // What the broker says of itself is what the file of its target says.
    for (target, durability) in
        [("kafka-server@flush-each", "fsync"), ("kafka-server", "page-cache")]
    {
        let found = place.weigh(&["probe", target, "--json"]).with(0).json();
        let all = found["abilities"].as_array().expect("a list");
        let ability = |name: &str| all.iter().find(|own| own["name"] == name).expect(name);
        assert_eq!(ability("durability")["value"], durability, "{found}");
        for name in ["versions", "topic_creation", "idempotent_producers", "consumer_groups"] {
            assert_eq!(ability(name)["value"], true, "{found}");
        }
        assert_eq!(ability("in_sync_replicas")["value"], 1, "{found}");
    }
    place.nobody_is_left();
}

/// TLS by the layer that all protocols share: the reference server and the real one.
#[cfg(feature = "tls")]
#[test]
fn it_runs_inside_tls() {
    let place = Place::new("kafka-tls");
    let has_it = has_kafka(&place, "it_runs_inside_tls with Apache Kafka");
    let real = if has_it { &["kafka-server"][..] } else { &[] };
    let words = ["kafka", "--pattern", "deliver", "-n", "100", "--tls", "on"];
    place.compare(&[real, &words[..]].concat()).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 2 + 2 * real.len());
    for cell in cells(&summary) {
        assert_eq!(cell["ledger"]["delivered"], 100, "{}", cell["ledger"]);
        assert_eq!(cell["point"]["kafka.tls"], "on");
    }
    place.nobody_is_left();
    let server = Server::start(
        &place,
        &["kafka", "--set", "kafka.tls=on", "--certificates", "certificates"],
    );
    let plain = server.url.replace("tls+kafka://", "kafka://");
    place.compare(&[&plain, "-n", "5"]).with(3).saying(&["TLS", "--tls on"]);
    server.end("TERM");
}

/// A client of kafka-python, where Python has it, makes a topic, publishes and reads, and is given
/// the address at which the server listens.
#[test]
fn the_client_of_kafka_python_is_served() {
    let Some(python) = python("WEIGH_KAFKA_PYTHON", "kafka") else { return };
    let place = Place::new("kafka-python");
    place.write("client.py", KAFKA_PYTHON);
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it has one");
    let server = Server::start(&place, &["kafka", "--listen", &free.to_string()]);
    let address = server.url.trim_start_matches("kafka://").to_owned();
    let output = place.program(&python, &["client.py", &address]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let expected = "topic: farm 3\nacks 0: True\nacks 1: 0 0\nacks all: 0 1\nidempotent: 0 2\n\
                    batch: 50\nread: 53 one two three\nagain: 5\nlast: 53\nlarge: \
                    MessageSizeTooLargeError\n";
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&output.stderr));
    let (code, last) = server.end("TERM");
    assert_eq!(code, Some(0), "{last}");
    let report: Value = serde_json::from_str(last.trim()).expect("the last line is JSON");
    assert!(report.to_string().contains("\"received\":54"), "{report}");
}

const KAFKA_PYTHON: &str = r#"
import sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

at = sys.argv[1]
admin = KafkaAdminClient(bootstrap_servers=at)
admin.create_topics([NewTopic("farm", num_partitions=3, replication_factor=1)])
admin.close()

def producer(**more):
    return KafkaProducer(bootstrap_servers=at, max_request_size=4 << 20, **more)

with_none = producer(acks=0, enable_idempotence=False)
print("topic: farm", len(with_none.partitions_for("farm")))
print("acks 0:", with_none.send("farm", b"zero", partition=2).get(10) is not None)
with_none.close()
for name, more, body in [
    ("acks 1", {"acks": 1, "enable_idempotence": False}, b"one"),
    ("acks all", {"acks": "all", "enable_idempotence": False}, b"two"),
    ("idempotent", {"acks": "all", "enable_idempotence": True}, b"three"),
]:
    own = producer(**more)
    made = own.send("farm", body, partition=0).get(10)
    print(f"{name}:", made.partition, made.offset)
    own.close()
own = producer(acks="all", linger_ms=50, enable_idempotence=False)
sent = [own.send("farm", b"%d" % number, partition=0) for number in range(50)]
own.flush(10)
print("batch:", sum(1 for one in sent if one.get(10).offset >= 3))
consumer = KafkaConsumer(
    bootstrap_servers=at, group_id=None, auto_offset_reset="earliest", consumer_timeout_ms=10000
)
place = TopicPartition("farm", 0)
consumer.assign([place])
read = [next(consumer).value for _ in range(53)]
print("read:", len(read), *(body.decode() for body in read[:3]))
consumer.seek(place, 48)
print("again:", len([next(consumer) for _ in range(5)]))
print("last:", consumer.end_offsets([place])[place])
consumer.close()
try:
    own.send("farm", b"x" * (2 << 20), partition=0).get(10)
except Exception as error:
    print("large:", type(error).__name__)
own.close()
"#;

/// Every byte of a message above TCP: 115 and the topic of Produce and its batch, 52 and the topic
/// of the answer.
#[test]
fn bytes_are_counted_by_layer() {
    if !has_hosts("bytes_are_counted_by_layer") {
        return;
    }
    for (acks, expected) in [("0", 115.0 + 1.0), ("all", 115.0 + 1.0 + 52.0 + 1.0)] {
        let place = Place::new("kafka-wire");
        let acks = format!("kafka.acks={acks}");
        let words = ["compare", "kafka", "--pattern", "publish", "-s", "100B", "-n", "10"];
        let more = ["--wire", "-Q", "--reps", "1", "--warmup", "0s", "-c", "1"];
        let set = ["--set", "kafka.topic=t", "--set", &acks];
        place.weigh(&[&words[..], &more, &set].concat()).with(0);
        let summary = place.summary();
        let cell = &cells(&summary)[0];
        let of = |layer: &str| figure(cell, &format!("wire.phases.messages.layers.{layer}_bytes"));
        assert_eq!(of("payload"), 1000.0, "{acks}");
        assert_eq!(of("protocol"), 10.0 * expected, "{acks}");
        assert_eq!(figure(cell, "wire.kernel.differences"), 0.0, "{acks}");
    }
}

/// tshark finds as many requests as messages, and the same bytes.
#[test]
fn tshark_agrees_with_the_bytes() {
    let test = "tshark_agrees_with_the_bytes";
    if !has_hosts(test) || !has("tshark") {
        return;
    }
    let place = Place::new("kafka-tshark");
    let words = ["compare", "kafka", "--pattern", "deliver", "-s", "100B", "-n", "10"];
    let more = ["--wire", "--pcap", "-Q", "--reps", "1", "--warmup", "0s", "-c", "1"];
    place.weigh(&[&words[..], &more, &["--set", "kafka.acks=all"]].concat()).with(0);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    let layer = |name: &str| figure(cell, &format!("wire.layers.{name}_bytes"));
    let file = place.pcap(&place.of_kind("trial_finished")[0]);
    let decode = ["-d", "tcp.port==1-65535,kafka"];
    let rows = tshark(&file, "kafka", &["kafka.len", "kafka.request_key"], &decode);
    let (mut bytes, mut produced) = (0.0, 0);
    for columns in &rows {
        let numbers = |column: usize| columns[column].split(',').map(str::to_owned);
        bytes += numbers(0).map(|length| 4.0 + length.parse::<f64>().unwrap()).sum::<f64>();
        produced += numbers(1).filter(|key| key == "0").count();
    }
    assert_eq!(produced, 10, "{rows:?}");
    assert_eq!(bytes, layer("protocol") + layer("payload"), "{rows:?}");
}

/// A server that is full refuses by name, and the result says what to do.
#[test]
fn refusals_of_the_server_are_errors_with_advice() {
    let place = Place::new("kafka-large");
    let server = Server::start(&place, &["kafka", "--set", "kafka.server_message_max_bytes=1000"]);
    let load = [&*server.url, "--set", "kafka.acks=all", "-n", "20", "-s", "2KB"];
    let ended = place.compare(&[&load[..], &["--pattern", "publish"]].concat());
    let summary = place.summary();
    let ledger = &cells(&summary)[0]["ledger"];
    assert_eq!(ledger["causes"]["error_answer"], 20, "{ledger}");
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("MESSAGE_TOO_LARGE") && said.contains("kafka.batch_size"), "{said}");
    server.end("TERM");
}

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new("kafka-nowhere");
    let refused = place.compare(&["kafka://127.0.0.1:1", "-n", "5"]);
    refused.with(3).saying(&["kafka://127.0.0.1:1", "connection refused"]);
    let server = Server::start(&place, &["http"]);
    let url = server.url.replace("http://", "kafka://");
    place.compare(&[&url, "-n", "5"]).with(3).saying(&["kafka"]);
    server.end("TERM");
    let mut words = vec!["kafka", "-n", "5", "--set", "kafka.topic=a b"];
    place.compare(&words).with(2).saying(&["kafka.topic", "cannot name a topic"]);
    words[4] = "kafka.acks=2";
    place.compare(&words).with(2).saying(&["kafka.acks", "idempotent"]);
}
