//! Kafka's reference server in memory: requests in pieces, ends of waits, and limits of its memory.

use crate::rig::{Client, Heard, Shard, exchange, trial};
use weigh_model::Nanos;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_protocols::kafka::Kafka;
use weigh_protocols::kafka::codec::frame::{METADATA, begin_request, end_frame};
use weigh_protocols::kafka::codec::requests::put_metadata;

const URL: &str = "kafka://127.0.0.1:9092";

/// A client of this topic at the server, ready.
fn connected(role: Role, topic: &str, shard: &mut Shard, connection: u32) -> Client {
    let given = [("topic", topic), ("fetch_wait", "500ms")];
    let trial = trial(&Kafka, Pattern::Deliver, Topology::FanIn, URL, &given).unwrap();
    let dial = Kafka.dial(&trial).unwrap_or_else(|invalid| panic!("{invalid}"));
    let mut client = Client::new((dial.make)(Seat { index: 0, role }));
    shard.accept(connection);
    exchange(&mut client, shard, connection, &[]);
    assert!(client.heard.contains(&Heard::Ready), "{:?}", client.heard);
    client.heard.clear();
    client
}

/// A request for the metadata of topics by these names.
fn metadata_of(names: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let at = begin_request(&mut out, METADATA, 1);
    out.extend_from_slice(&(names.len() as u32).to_be_bytes());
    for name in names {
        out.extend_from_slice(&(name.len() as u16).to_be_bytes());
        out.extend_from_slice(name);
    }
    out.push(1);
    end_frame(&mut out, at);
    out
}

/// A request that is cut while a fetch holds it is answered once the remainder of it is there.
#[test]
fn a_request_in_pieces_behind_a_fetch_is_answered() {
    let mut shard = Shard::of(&Kafka, &[]);
    let _consumer = connected(Role::Consumer, "t", &mut shard, 2);
    let mut request = Vec::new();
    put_metadata(&mut request, 99, b"t");
    shard.feed(2, &request[..9]).unwrap();
    shard.pass(Nanos::from_millis(500));
    assert!(!shard.staged(2).is_empty(), "the fetch is over");
    shard.feed(2, &request[9..20]).unwrap();
    assert!(shard.staged(2).is_empty());
    shard.feed(2, &request[20..]).unwrap();
    assert_eq!(shard.staged(2)[4..8], 99i32.to_be_bytes());
}

/// Nothing remains of a fetch that was answered, nor of a connection that is gone.
#[test]
fn a_connection_has_one_deadline_at_most() {
    let mut shard = Shard::of(&Kafka, &[]);
    let mut producer = connected(Role::Producer, "t", &mut shard, 1);
    let mut consumer = connected(Role::Consumer, "t", &mut shard, 2);
    assert_eq!(shard.server.next_wake(), Some(Nanos::from_millis(500)));
    shard.now = Nanos::from_millis(100);
    producer.send(1, b"one");
    exchange(&mut producer, &mut shard, 1, &[]);
    assert_eq!(shard.server.next_wake(), None, "the fetch was answered");
    consumer.feed(&shard.staged(2)).unwrap();
    exchange(&mut consumer, &mut shard, 2, &[]);
    assert_eq!(shard.server.next_wake(), Some(Nanos::from_millis(600)), "that of the next fetch");
    shard.close(2);
    assert_eq!(shard.server.next_wake(), None);
}

/// The oldest batches of all topics make room for those of a new one.
#[test]
fn a_full_server_accepts_new_topics() {
    let mut shard = Shard::of(&Kafka, &[("server_log_bytes", "65536")]);
    let mut old = connected(Role::Producer, "old", &mut shard, 1);
    let mut new = connected(Role::Producer, "new", &mut shard, 2);
    for ticket in 1..=4 {
        old.send(ticket, &[b'x'; 30_000]);
        exchange(&mut old, &mut shard, 1, &[]);
    }
    new.send(5, &[b'x'; 30_000]);
    exchange(&mut new, &mut shard, 2, &[]);
    assert_eq!(new.heard, [Heard::Done(5)]);
    new.send(6, &[b'x'; 70_000]);
    exchange(&mut new, &mut shard, 2, &[]);
    assert_eq!(new.heard, [Heard::Done(5), Heard::Refused(6, 56)], "larger than all logs may be");
    old.send(7, b"x");
    exchange(&mut old, &mut shard, 1, &[]);
    assert_eq!(old.heard, [1, 2, 3, 4, 7].map(Heard::Done));
}

/// A request that names a topic several times has the answer of one that names it once.
#[test]
fn each_topic_of_metadata_is_answered_once() {
    let mut shard = Shard::of(&Kafka, &[]);
    let once = shard.answer(&metadata_of(&[b"t"]));
    assert_eq!(shard.answer(&metadata_of(&[&b"t"[..]; 1000])), once);
    let two = shard.answer(&metadata_of(&[b"u", b"t", b"u"]));
    assert_eq!(two, shard.answer(&metadata_of(&[b"t", b"u"])));
    assert!(two.len() > once.len());
}
