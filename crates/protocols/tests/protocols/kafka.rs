//! Kafka in memory: what a client does about each answer, batches by linger and size, and both ends
//! with each other.

use crate::rig::{Client, Heard, Shard, exchange, trial};
use proptest::prelude::*;
use weigh_model::connection::{Fault, Op, Outbox, Reply, Ticket};
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Invalid, Protocol, Role, Seat};
use weigh_model::units::Bytes;
use weigh_model::{Guarantee, Nanos};
use weigh_protocols::kafka::Kafka;

const URL: &str = "kafka://127.0.0.1:9092";

fn clients(
    pattern: Pattern,
    topology: Topology,
    given: &[(&str, &str)],
) -> impl Fn(u32, Role) -> Client {
    let mut trial = trial(&Kafka, pattern, topology, URL, given).unwrap();
    (trial.load.connections, trial.load.subscribers) = (4, 2);
    let dial = Kafka.dial(&trial).unwrap_or_else(|invalid| panic!("{invalid}"));
    move |index, role| Client::new((dial.make)(Seat { index, role }))
}

fn is_ready(client: &Client) -> bool {
    client.heard.contains(&Heard::Ready)
}

fn shard() -> Shard {
    Shard::of(&Kafka, &[])
}

/// A client at the server, ready.
fn connected(client: Client, shard: &mut Shard, connection: u32) -> Client {
    let mut client = client;
    shard.accept(connection);
    exchange(&mut client, shard, connection, &[]);
    assert!(is_ready(&client), "{:?}", client.heard);
    client.heard.clear();
    client
}

fn producer(given: &[(&str, &str)], shard: &mut Shard) -> Client {
    let client = clients(Pattern::Publish, Topology::FanIn, given)(0, Role::Producer);
    connected(client, shard, 1)
}

/// The APIs of requests, in their order.
fn apis(mut bytes: &[u8]) -> Vec<u16> {
    let mut all = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        all.push(u16::from_be_bytes([rest[0], rest[1]]));
        bytes = &rest[u32::from_be_bytes(*length) as usize..];
    }
    all
}

/// The APIs that a client asks for until it is ready.
fn asked_until_ready(client: &mut Client, shard: &mut Shard, connection: u32) -> Vec<u16> {
    shard.accept(connection);
    let mut asked = Vec::new();
    while !is_ready(client) {
        let sent = client.sent();
        assert!(!sent.is_empty(), "{:?}", client.heard);
        asked.extend(apis(&sent));
        shard.feed(connection, &sent).unwrap();
        client.feed(&shard.staged(connection)).unwrap();
    }
    asked
}

/// An answer with these fields.
fn answer(correlation: i32, fields: &[u8]) -> Vec<u8> {
    let length = (4 + fields.len()) as u32;
    [&length.to_be_bytes()[..], &correlation.to_be_bytes(), fields].concat()
}

/// The answer of Produce for partition 0 of the topic `weigh-0001`.
fn produced(correlation: i32, error: i16) -> Vec<u8> {
    let mut fields = vec![0, 0, 0, 1, 0, 10];
    fields.extend_from_slice(b"weigh-0001");
    fields.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0]);
    fields.extend_from_slice(&error.to_be_bytes());
    fields.extend_from_slice(&[0; 28]);
    answer(correlation, &fields)
}

#[test]
fn the_first_client_creates_the_topic_and_the_others_do_not_ask_again() {
    let make = clients(Pattern::Publish, Topology::FanIn, &[("acks", "idempotent")]);
    let mut shard = shard();
    let mut first = make(0, Role::Producer);
    let asked = asked_until_ready(&mut first, &mut shard, 1);
    assert_eq!(asked, [18, 19, 3, 2, 22], "versions, topic, leaders, offsets, number");
    assert!(first.heard.contains(&Heard::Granted("partitions", 1)), "{:?}", first.heard);
    let mut second = make(1, Role::Producer);
    assert_eq!(asked_until_ready(&mut second, &mut shard, 2), [18, 3, 22]);
}

/// That one partition has its leader says nothing about the others.
#[test]
fn with_several_partitions_each_producer_waits_for_its_own_leader() {
    let make = clients(Pattern::Publish, Topology::FanIn, &[("partitions", "2")]);
    let mut shard = shard();
    let (mut first, mut second) = (make(0, Role::Producer), make(1, Role::Producer));
    assert_eq!(asked_until_ready(&mut first, &mut shard, 1), [18, 19, 3, 2]);
    assert_eq!(asked_until_ready(&mut second, &mut shard, 2), [18, 3, 2]);
}

#[test]
fn a_batch_is_confirmed_as_one_and_refused_as_one() {
    let mut shard = shard();
    let mut client = producer(&[("max_in_flight", "1")], &mut shard);
    assert_eq!(client.send(1, b"a"), Reply::Awaited);
    let first = client.sent();
    assert_eq!(apis(&first), [0], "without linger a message leaves at once");
    assert_eq!(first[6..8], [0, 5], "the version of Produce that Kafka 1.0 has");
    assert_eq!((client.send(2, b"b"), client.send(3, b"c")), (Reply::Awaited, Reply::Awaited));
    assert!(client.sent().is_empty(), "the slot is taken");
    shard.feed(1, &first).unwrap();
    client.feed(&shard.staged(1)).unwrap();
    assert_eq!(client.heard, [Heard::Done(1)]);
    let second = client.sent();
    assert_eq!(apis(&second), [0], "what gathered meanwhile is one batch");
    let number = i32::from_be_bytes(second[8..12].try_into().unwrap());
    client.heard.clear();
    client.feed(&produced(number, 6)).unwrap();
    assert_eq!(client.heard, [Heard::Refused(2, 6), Heard::Refused(3, 6)]);
    assert_eq!(Kafka.error(6).name, "NOT_LEADER_OR_FOLLOWER");
    let fault = client.feed(&produced(number, 0)).unwrap_err();
    assert!(matches!(fault, Fault::Malformed(_)), "{fault}");
}

#[test]
fn linger_and_size_decide_when_a_batch_leaves() {
    let mut shard = shard();
    let mut client = producer(&[("linger", "5ms"), ("batch_size", "200")], &mut shard);
    client.now = Nanos::from_millis(1);
    client.send(1, &[b'x'; 50]);
    assert!(client.sent().is_empty());
    assert_eq!(client.connection.next_wake(), Some(Nanos::from_millis(6)));
    client.now = Nanos::from_millis(3);
    client.send(2, &[b'x'; 50]);
    assert_eq!(client.connection.next_wake(), Some(Nanos::from_millis(6)), "from the first on");
    client.wake(Nanos::from_millis(6)).unwrap();
    assert_eq!(apis(&client.sent()), [0]);
    assert_eq!(client.connection.next_wake(), None);
    client.send(3, &[b'x'; 90]);
    assert!(client.sent().is_empty());
    client.send(4, &[b'x'; 90]);
    assert_eq!(apis(&client.sent()), [0], "61 bytes of the batch and twice 98 are more than 200");
    client.send(5, b"last");
    let (now, out) = (client.now, &mut client.out);
    assert!(now > Nanos(0) && out.is_empty());
    client.connection.close(&mut client.out);
    assert_eq!(apis(&client.sent()), [0], "the last batch leaves before the end");
}

#[test]
fn a_full_batch_without_a_slot_takes_no_more() {
    let mut shard = shard();
    let given = [("max_in_flight", "1"), ("batch_size", "200")];
    let mut client = producer(&given, &mut shard);
    client.send(1, b"a");
    let first = client.sent();
    client.send(2, &[b'x'; 100]);
    assert_eq!(client.connection.room(), 1);
    client.send(3, &[b'x'; 100]);
    assert_eq!(client.connection.room(), 0);
    shard.feed(1, &first).unwrap();
    client.feed(&shard.staged(1)).unwrap();
    assert!(client.connection.room() > 0);
    exchange(&mut client, &mut shard, 1, &[]);
    assert_eq!(client.heard, [Heard::Done(1), Heard::Done(2), Heard::Done(3)]);
}

/// A gap in the numbers of an idempotent producer cannot be closed: another connection begins anew.
#[test]
fn an_idempotent_producer_ends_with_its_first_error() {
    let mut shard = shard();
    let mut client = producer(&[("acks", "idempotent")], &mut shard);
    (1..=7).for_each(|ticket| _ = client.send(ticket, b"x"));
    let sent = client.sent();
    assert_eq!(apis(&sent), [0; 5], "five in flight, and two that wait");
    let number = i32::from_be_bytes(sent[8..12].try_into().unwrap());
    client.feed(&produced(number, 0)).unwrap();
    assert_eq!(client.heard, [Heard::Done(1)]);
    client.heard.clear();
    client.feed(&produced(number + 1, 10)).unwrap();
    assert_eq!((client.heard.clone(), client.connection.room()), (vec![Heard::Refused(2, 10)], 0));
    client.heard.clear();
    (2..=4).for_each(|later| client.feed(&produced(number + later, 45)).unwrap());
    client.feed(&produced(number + 5, 45)).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Closing));
    let refused = client.heard.iter().filter(|heard| matches!(heard, Heard::Refused(..))).count();
    assert_eq!(refused, 5, "{:?}", client.heard);
}

/// Without acks no request is in flight, so that none makes messages share a batch: linger does.
#[test]
fn without_acks_only_linger_makes_batches() {
    let mut shard = shard();
    let mut client = producer(&[("acks", "0"), ("linger", "5ms")], &mut shard);
    (1..=20).for_each(|ticket| assert_eq!(client.send(ticket, b"x"), Reply::None));
    assert!(client.sent().is_empty());
    client.wake(Nanos::from_millis(5)).unwrap();
    assert_eq!(apis(&client.sent()), [0]);
}

#[test]
fn without_acks_nothing_is_awaited() {
    let mut shard = shard();
    let mut client = producer(&[("acks", "0")], &mut shard);
    (1..=20).for_each(|ticket| assert_eq!(client.send(ticket, b"x"), Reply::None));
    let sent = client.sent();
    assert_eq!(apis(&sent), [0; 20]);
    shard.feed(1, &sent).unwrap();
    assert!(shard.staged(1).is_empty());
    assert_eq!(shard.server.report().received, 20);
    assert!(shard.desk.stored.is_empty(), "what is not confirmed is not stored");
    // A batch that cannot be appended ends the connection, since it has no answer.
    client.send(21, &vec![b'x'; 2_000_000]);
    shard.feed(1, &client.sent()).unwrap();
    assert_eq!(shard.desk.closed, [1]);
}

#[test]
fn messages_of_one_exchange_are_one_batch() {
    let mut shard = shard();
    let mut client = producer(&[("linger", "1s"), ("batch_size", "64")], &mut shard);
    let ops = [8, 9].map(|ticket| Op { ticket: Ticket(ticket), body: b"yyyyyyyy" });
    let mut out = Outbox::default();
    let batch = client.connection.batch().expect("a record batch holds several messages");
    assert!(batch.room_together() > 1);
    assert_eq!(batch.send_together(&ops, Nanos(0), &mut out), Reply::Awaited);
    assert_eq!(apis(out.bytes()), [0]);
    client.out.put(out.bytes());
    exchange(&mut client, &mut shard, 1, &[]);
    assert_eq!(client.heard, [Heard::Done(8), Heard::Done(9)]);
    assert_eq!(shard.desk.stored.len(), 2);
}

#[test]
fn a_consumer_begins_at_the_end_and_continues_where_it_ended() {
    let make = clients(Pattern::Deliver, Topology::FanIn, &[]);
    let mut shard = shard();
    let mut producer = connected(make(0, Role::Producer), &mut shard, 1);
    let tell = |producer: &mut Client, shard: &mut Shard, ticket: u32, body: &[u8]| {
        producer.send(ticket, body);
        exchange(producer, shard, 1, &[]);
    };
    tell(&mut producer, &mut shard, 1, b"before");
    let mut consumer = connected(make(0, Role::Consumer), &mut shard, 2);
    assert!(consumer.heard.is_empty());
    tell(&mut producer, &mut shard, 2, b"one");
    consumer.feed(&shard.staged(2)).unwrap();
    let message = |body: &[u8]| Heard::Message(b"weigh-0001/0".to_vec(), body.to_vec());
    assert_eq!(consumer.heard, [message(b"one")]);
    drop(consumer);
    shard.close(2);
    tell(&mut producer, &mut shard, 3, b"two");
    let mut consumer = make(0, Role::Consumer);
    assert!(consumer.connection.resumes());
    shard.accept(3);
    exchange(&mut consumer, &mut shard, 3, &[]);
    consumer.heard.retain(|heard| matches!(heard, Heard::Message(..)));
    assert_eq!(consumer.heard, [message(b"two")]);
}

/// A fetch is held until its time is over, and requests behind it wait.
#[test]
fn a_fetch_is_held_until_its_time_is_over() {
    let make = clients(Pattern::Deliver, Topology::FanIn, &[("fetch_wait", "500ms")]);
    let mut shard = shard();
    let mut consumer = connected(make(0, Role::Consumer), &mut shard, 2);
    assert!(consumer.sent().is_empty() && shard.staged(2).is_empty());
    shard.pass(Nanos::from_millis(499));
    assert!(shard.staged(2).is_empty());
    shard.pass(Nanos::from_millis(500));
    consumer.feed(&shard.staged(2)).unwrap();
    assert_eq!(apis(&consumer.sent()), [1], "it asks again");
}

/// A broker fills an answer in the order of the partitions in the fetch.
#[test]
fn each_fetch_begins_with_the_next_partition() {
    let given = [("partitions", "3"), ("fetch_wait", "500ms")];
    let make = clients(Pattern::Deliver, Topology::FanOut, &given);
    let mut shard = shard();
    let mut consumer = connected(make(0, Role::Consumer), &mut shard, 2);
    let mut orders: Vec<Vec<u8>> = Vec::new();
    for round in 1..=3 {
        shard.pass(Nanos::from_millis(500 * round));
        consumer.feed(&shard.staged(2)).unwrap();
        let sent = consumer.sent();
        // A head of 19 bytes, 27 and the topic of Fetch, and 16 for each partition.
        orders.push(sent[19 + 27 + 10..].chunks(16).map(|own| own[3]).collect());
        shard.feed(2, &sent).unwrap();
    }
    assert_eq!(orders, [[1u8, 2, 0], [2, 0, 1], [0, 1, 2]]);
}

#[test]
fn topologies_assign_partitions() {
    for (topology, expected) in [
        (Topology::Pairs, vec![vec![2], vec![0], vec![1]]),
        (Topology::Shared, vec![vec![0, 2], vec![1]]),
        (Topology::FanOut, vec![vec![0, 1, 2, 3], vec![0, 1, 2, 3]]),
    ] {
        let is_shared = topology == Topology::Shared;
        let given: &[(&str, &str)] = &[("partitions", "4"), ("partitioner", "round-robin")];
        let given = if topology == Topology::Pairs { &[][..] } else { given };
        let make = clients(Pattern::Deliver, topology, given);
        let mut shard = shard();
        let mut producer = connected(make(2, Role::Producer), &mut shard, 9);
        let mut consumers: Vec<Client> =
            (0..2).map(|seat| connected(make(seat, Role::Consumer), &mut shard, seat)).collect();
        if topology == Topology::Pairs {
            consumers.push(connected(make(2, Role::Consumer), &mut shard, 2));
        }
        for ticket in 0..4 {
            producer.send(ticket, &[b'0' + ticket as u8]);
            exchange(&mut producer, &mut shard, 9, &[]);
            for (seat, consumer) in consumers.iter_mut().enumerate() {
                exchange(consumer, &mut shard, seat as u32, &[]);
                consumer.feed(&shard.staged(seat as u32)).unwrap();
                exchange(consumer, &mut shard, seat as u32, &[]);
            }
        }
        let bodies = |client: &Client| client.heard.len();
        let counts: Vec<usize> = consumers.iter().map(bodies).collect();
        match topology {
            Topology::Pairs => assert_eq!(counts, [0, 0, 4]),
            Topology::Shared => assert_eq!(counts, [2, 2]),
            _ => assert_eq!(counts, [4, 4], "{expected:?}"),
        }
        assert_eq!(is_shared, counts.iter().sum::<usize>() == 4 && counts[0] == 2);
    }
}

#[test]
fn what_a_cluster_cannot_do_is_said_with_its_place() {
    let versions = |produce: (u8, u8)| {
        let mut fields = vec![0, 0, 0, 0, 0, 5];
        let all = [(0, produce), (1, (4, 17)), (2, (1, 10)), (3, (0, 13)), (19, (2, 7))];
        for (key, (lowest, highest)) in all {
            fields.extend_from_slice(&[0, key, 0, lowest, 0, highest]);
        }
        answer(0, &fields)
    };
    let make = clients(Pattern::Publish, Topology::FanIn, &[]);
    let mut client = make(0, Role::Producer);
    client.sent();
    let text = client.feed(&versions((9, 13))).unwrap_err().to_string();
    assert!(text.contains("Produce in versions 9 to 13") && text.contains("Kafka 1.0"), "{text}");

    let mut client = make(0, Role::Producer);
    client.sent();
    client.feed(&versions((3, 13))).unwrap();
    client.feed(&answer(1, b"\0\0\0\0\0\0\0\x01\0\x01t\0\x1d\xff\xff")).unwrap_err();
    let mut client = make(0, Role::Producer);
    client.sent();
    client.feed(&versions((3, 13))).unwrap();
    client.feed(&answer(1, b"\0\0\0\0\0\0\0\x01\0\x01t\0\x24\xff\xff")).unwrap();
    assert_eq!(apis(&client.sent()), [19, 3], "a topic that is there is used");
    let two = b"\0\0\0\0\0\0\0\x02\
        \0\0\0\x01\0\x01a\0\0\x23\x84\xff\xff\0\0\0\x02\0\x01b\0\0\x23\x85\xff\xff\
        \xff\xff\0\0\0\x01\0\0\0\x01\0\0\0\x01t\0\0\0\0\x01\
        \0\0\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\0\0\x01\0\0\0\x02";
    let text = client.feed(&answer(2, two)).unwrap_err().to_string();
    assert!(text.contains("2 brokers") && text.contains("kafka://b:9093"), "{text}");

    let mut client = make(0, Role::Producer);
    let fault = client.feed(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err();
    assert!(matches!(&fault, Fault::OtherProtocol(text) if text.contains("HTTP")), "{fault}");
    let mut client = make(0, Role::Producer);
    assert!(client.end().unwrap_err().to_string().contains("--tls on"));
}

/// A broker that has just started has no numbers for producers yet.
#[test]
fn a_number_is_waited_for() {
    let make = clients(Pattern::Publish, Topology::FanIn, &[("acks", "idempotent")]);
    let mut shard = shard();
    let mut client = make(0, Role::Producer);
    shard.accept(1);
    for expected in [18, 19, 3, 2] {
        let sent = client.sent();
        assert_eq!(apis(&sent), [expected]);
        shard.feed(1, &sent).unwrap();
        client.feed(&shard.staged(1)).unwrap();
    }
    assert_eq!(apis(&client.sent()), [22]);
    let mut loading = vec![0, 0, 0, 0, 0, 14];
    loading.extend_from_slice(&[0xff; 10]);
    client.feed(&answer(4, &loading)).unwrap();
    assert!(!is_ready(&client) && client.sent().is_empty());
    client.pass(Nanos::from_millis(100)).unwrap();
    exchange(&mut client, &mut shard, 1, &[]);
    assert!(is_ready(&client));
}

/// A topic that has just been created has no leader: the client asks again, for ten seconds.
#[test]
fn a_leader_is_waited_for() {
    let make = clients(Pattern::Publish, Topology::FanIn, &[("create", "false")]);
    let mut shard = shard();
    let mut client = make(0, Role::Producer);
    shard.accept(1);
    exchange(&mut client, &mut shard, 1, &[]);
    assert!(!is_ready(&client));
    client.pass(Nanos::from_millis(50)).unwrap();
    assert!(client.sent().is_empty());
    client.pass(Nanos::from_millis(100)).unwrap();
    assert_eq!(apis(&client.sent()), [3]);
    let mut client = make(0, Role::Producer);
    shard.accept(2);
    exchange(&mut client, &mut shard, 2, &[]);
    let text = (1..=200)
        .find_map(|step| {
            let passed = client.pass(Nanos::from_millis(100 * step));
            passed.err().or_else(|| {
                exchange(&mut client, &mut shard, 2, &[]);
                None
            })
        })
        .expect("it gives up")
        .to_string();
    assert!(text.contains("UNKNOWN_TOPIC_OR_PARTITION") && text.contains("kafka.create"), "{text}");
    assert!(text.contains("weigh-0001 after 10"), "{text}");
}

#[test]
fn trials_that_cannot_work_are_refused() {
    let refusal = |topology: Topology, given: &[(&str, &str)]| -> Invalid {
        let mut trial = trial(&Kafka, Pattern::Deliver, topology, URL, given).unwrap();
        (trial.load.connections, trial.load.subscribers) = (4, 2);
        trial.load.size = Some(Bytes(100));
        Kafka.dial(&trial).err().unwrap_or_else(|| panic!("{given:?} is accepted"))
    };
    for (topology, given, place, fix) in [
        (Topology::Pairs, ("partitions", "3"), "kafka.partitions", "at least 4"),
        (Topology::Shared, ("partitions", "1"), "kafka.partitions", "at least 2"),
        (Topology::Pairs, ("partitioner", "round-robin"), "kafka.partitioner", "client"),
        (Topology::FanIn, ("topic", "a b"), "kafka.topic", "letters"),
        (Topology::FanIn, ("fetch_wait", "0s"), "kafka.fetch_wait", "1ms"),
    ] {
        let refused = refusal(topology, &[given]);
        assert_eq!(refused.place, place);
        assert!(refused.fix.contains(fix), "{refused}");
    }
    let refused = refusal(Topology::FanIn, &[("acks", "idempotent"), ("max_in_flight", "6")]);
    assert!(refused.fix.contains("at most 5"), "{refused}");
    let guarantees = ["0", "1", "all", "idempotent"].map(|acks| {
        let trial = trial(&Kafka, Pattern::Publish, Topology::FanIn, URL, &[("acks", acks)]);
        Kafka.guarantee(&trial.unwrap().settings)
    });
    assert_eq!(guarantees[0], Guarantee::AtMostOnce);
    assert_eq!(guarantees[1..], [Guarantee::AtLeastOnce; 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Cut anywhere, the same messages arrive in the same order.
    #[test]
    fn bytes_in_any_pieces_are_the_same_messages(
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
        bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..12),
    ) {
        let make = clients(Pattern::Deliver, Topology::FanIn, &[("max_in_flight", "2")]);
        let mut shard = shard();
        let mut consumer = make(0, Role::Consumer);
        let mut producer = make(0, Role::Producer);
        for (number, client) in [(1, &mut producer), (2, &mut consumer)] {
            shard.accept(number);
            exchange(client, &mut shard, number, &cuts);
            prop_assert!(is_ready(client));
            client.heard.clear();
        }
        for (ticket, body) in bodies.iter().enumerate() {
            producer.send(ticket as u32, body);
        }
        exchange(&mut producer, &mut shard, 1, &cuts);
        let done: Vec<Heard> = (0..bodies.len()).map(|own| Heard::Done(own as u32)).collect();
        prop_assert_eq!(&producer.heard, &done);
        consumer.feed_cut(&shard.staged(2), &cuts).unwrap();
        exchange(&mut consumer, &mut shard, 2, &cuts);
        let heard: Vec<Vec<u8>> = consumer.heard.iter().map(|heard| match heard {
            Heard::Message(_, body) => body.clone(),
            other => panic!("{other:?}"),
        }).collect();
        prop_assert_eq!(&heard, &bodies);
        prop_assert_eq!(&shard.desk.stored, &bodies);
    }

    #[test]
    fn any_bytes_are_taken_without_a_panic(
        noise in proptest::collection::vec(any::<u8>(), 0..100),
        at in any::<usize>(),
    ) {
        let make = clients(Pattern::Deliver, Topology::FanIn, &[]);
        let mut shard = shard();
        let mut client = make(0, Role::Producer);
        let said = client.sent();
        shard.accept(1);
        let mut input = said.clone();
        input.splice(at % said.len().., noise.clone());
        let _ = shard.feed(1, &input);
        let _ = client.feed(&noise);
        let _ = client.end();
    }
}
