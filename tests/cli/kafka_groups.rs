//! Consumer groups of Kafka end to end: at the reference server, at Apache Kafka, and with the
//! consumers of another program.

use std::net::TcpListener;

use crate::foreign::python;
use crate::kafka::has_kafka;
use crate::rig::{Place, cells, figure};
use crate::serving::Server;

const SHARED: &[&str] = &[
    "--pattern",
    "deliver",
    "--topology",
    "shared",
    "--set",
    "kafka.group=weigh-{trial}",
    "--set",
    "kafka.partitioner=round-robin",
];

/// Every message is delivered once.
#[test]
fn a_group_shares_its_messages() {
    let place = Place::new("kafka-group");
    let words = ["kafka", "-n", "300", "--window", "4", "-x", "2", "-y", "3"];
    let acks = ["--set", "kafka.acks=all", "--set", "kafka.commit=50ms"];
    place.compare(&[&words[..], SHARED, &acks].concat()).with(0);
    for cell in cells(&place.summary()) {
        let ledger = &cell["ledger"];
        assert_eq!((&ledger["delivered"], &ledger["lost"]), (&300.into(), &0.into()), "{ledger}");
        assert_eq!(ledger["duplicates"], 0, "{ledger}");
        assert!(cell["metrics"]["rebalances"].is_null(), "{cell:#}");
    }
    place.nobody_is_left();
}

#[test]
fn loads_without_sharing_are_refused() {
    let place = Place::new("kafka-group-refused");
    let group = ["--set", "kafka.group=g"];
    for (topology, consumers) in [("fan-out", "2"), ("pairs", "2"), ("fan-in", "2")] {
        let words = ["kafka", "-n", "5", "--topology", topology, "-x", "2", "-y", consumers];
        let pattern = ["--pattern", "deliver"];
        let refused = place.compare(&[&words[..], &pattern, &group].concat());
        refused.with(2).saying(&["kafka.group", "--topology shared"]);
    }
    let words = ["kafka", "-n", "5", "-x", "1", "-y", "2", "--set", "kafka.session_timeout=2s"];
    let refused = place.compare(&[&words[..], SHARED].concat());
    refused.with(2).saying(&["kafka.session_timeout", "kafka.heartbeat"]);
}

/// The coordinator of Apache Kafka: messages are delivered once, and nothing is left in the group.
#[test]
fn the_real_server_coordinates_the_group() {
    let place = Place::new("kafka-group-server");
    if !has_kafka(&place, "the_real_server_coordinates_the_group") {
        return;
    }
    let words = ["kafka-server", "-n", "400", "--window", "4", "-x", "2", "-y", "3"];
    let more = ["--set", "kafka.acks=all", "--set", "kafka.commit=100ms", "--timeout", "10s"];
    place.compare(&[&words[..], SHARED, &more].concat()).with(0);
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    let ledger = &cell["ledger"];
    assert_eq!((&ledger["delivered"], &ledger["lost"]), (&400.into(), &0.into()), "{ledger}");
    assert_eq!(ledger["duplicates"], 0, "{ledger}");
    assert!(cell["metrics"]["rebalances"].is_null(), "{cell:#}");
    assert!(figure(cell, "connect_time_ns.max") > 1e9, "the broker waits for members for 3 s");
    place.nobody_is_left();
}

/// Consumers of kafka-python share the partitions, commit, and take over from one that leaves.
#[test]
fn a_group_of_kafka_python_is_served() {
    let Some(python) = python("WEIGH_KAFKA_PYTHON", "kafka") else { return };
    let place = Place::new("kafka-python-group");
    place.write("consumers.py", CONSUMERS);
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it has one");
    let server = Server::start(&place, &["kafka", "--listen", &free.to_string()]);
    let address = server.url.trim_start_matches("kafka://").to_owned();
    let output = place.program(&python, &["consumers.py", &address]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let expected = "shares: 2 2\nread: 8 once\ncommitted: 2 2 2 2\nalone: 0 1 2 3\nread: 4 once\n\
                    new: 0 1 2 3 reads 4\n";
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.end("TERM").0, Some(0));
}

const CONSUMERS: &str = r#"
import sys, threading, time
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import RebalanceInProgressError

at = sys.argv[1]
admin = KafkaAdminClient(bootstrap_servers=at)
admin.create_topics([NewTopic("farm", num_partitions=4, replication_factor=1)])
admin.close()
producer = KafkaProducer(bootstrap_servers=at, acks="all", enable_idempotence=False)

# A member joins within its poll, which waits for the others: each has a thread of its own.
class Member(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.read, self.task, self.own = [], None, KafkaConsumer(
            bootstrap_servers=at, group_id="herd", auto_offset_reset="earliest",
            enable_auto_commit=False, session_timeout_ms=6000, heartbeat_interval_ms=200,
        )
        # A leader that does not know the partitions yet assigns none, and keeps to that.
        until(lambda: len(self.own.partitions_for_topic("farm") or ()) == 4)
        self.own.subscribe(["farm"])
        self.start()

    def run(self):
        while self.own is not None:
            # If the time of a poll ends within a join, kafka-python 3.0.12 may end its heartbeats.
            for records in self.own.poll(timeout_ms=500).values():
                self.read.extend(record.value for record in records)
            try:
                if self.task is not None:
                    self.task()
                    self.task = None
            except RebalanceInProgressError:
                pass  # The next poll ends it.

    def do(self, task):
        self.task = task
        until(lambda: self.task is None)

    def leave(self):
        def close():
            own, self.own = self.own, None
            own.close(autocommit=False)
        self.do(close)

    def places(self):
        return sorted(place.partition for place in self.own.assignment())

def until(is_so):
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end, [own.places() for own in members if own.own]
        time.sleep(0.02)

def send(count):
    for number in range(count):
        producer.send("farm", b"%d" % number, partition=number % 4).get(10)

def shares():
    return sorted(len(own.places()) for own in members)

def taken(count):
    until(lambda: sum(len(own.read) for own in members) >= count)
    read = [value for own in members for value in own.read]
    for own in members:
        own.read.clear()
    return f"{len(read)} {'once' if len(set(read)) == len(read) else 'not once'}"

members = [Member(), Member()]
until(lambda: shares() == [2, 2])
print("shares:", *shares())
send(8)
print("read:", taken(8))
for own in members:
    own.do(own.own.commit)
first, kept = members[0], []
first.do(lambda: kept.extend(first.own.committed(TopicPartition("farm", own)) for own in range(4)))
print("committed:", *kept)
members.pop().leave()
until(lambda: shares() == [4])
print("alone:", *first.places())
send(4)
print("read:", taken(4))
members.pop().leave()
members.append(Member())
until(lambda: len(members[0].read) >= 4)
print("new:", *members[0].places(), "reads", len(members[0].read))
members[0].leave()
producer.close()
"#;
