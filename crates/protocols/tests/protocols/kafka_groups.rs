//! Consumer groups of Kafka in memory: the way of a member into its group, its life there, and what
//! it does about a coordinator that does not behave.

use crate::rig::{Client, Heard, Shard, exchange, trial};
use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_protocols::kafka::Kafka;
use weigh_protocols::kafka::codec::embedded::put_assignment;
use weigh_protocols::kafka::codec::put_bytes;

const URL: &str = "kafka://127.0.0.1:9092";

/// Makes the clients of a trial with this number of consumers, who share their messages in a group.
fn clients(consumers: u32, given: &[(&str, &str)]) -> impl Fn(u32, Role) -> Client {
    let given = [&[("group", "g-{trial}"), ("partitioner", "round-robin")], given].concat();
    let mut trial = trial(&Kafka, Pattern::Deliver, Topology::Shared, URL, &given).unwrap();
    (trial.load.connections, trial.load.subscribers) = (1, consumers);
    let dial = Kafka.dial(&trial).unwrap_or_else(|invalid| panic!("{invalid}"));
    move |index, role| Client::new((dial.make)(Seat { index, role }))
}

fn is_ready(client: &Client) -> bool {
    client.heard.contains(&Heard::Ready)
}

/// The bodies that a client got.
fn bodies(client: &Client) -> Vec<u8> {
    let body = |heard: &Heard| match heard {
        Heard::Message(_, body) => Some(body[0]),
        _ => None,
    };
    client.heard.iter().filter_map(body).collect()
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

/// A server and clients that are connected to it by their places.
struct World {
    shard: Shard,
    clients: Vec<Client>,
    now: Nanos,
}

impl World {
    fn new(clients: Vec<Client>) -> World {
        let mut shard = Shard::of(&Kafka, &[("server_partitions", "1")]);
        (0..clients.len()).for_each(|place| shard.accept(place as u32));
        let mut world = World { shard, clients, now: Nanos(0) };
        world.settle();
        world
    }

    /// Carries bytes until none has more to say.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for (place, client) in self.clients.iter_mut().enumerate() {
                let there = client.sent();
                let _ = self.shard.feed(place as u32, &there);
                let back = self.shard.staged(place as u32);
                client.feed(&back).unwrap();
                moved |= !there.is_empty() || !back.is_empty();
            }
            if !moved {
                return;
            }
        }
    }

    /// Lets time pass in steps of 10 ms, as long as none of the clients in `asleep` is looked at.
    fn pass(&mut self, time: Nanos, asleep: &[usize]) {
        let until = self.now + time;
        while self.now < until {
            self.now = (self.now + Nanos::from_millis(10)).min(until);
            self.shard.pass(self.now);
            for (place, client) in self.clients.iter_mut().enumerate() {
                if asleep.contains(&place) {
                    continue;
                }
                client.pass(self.now).unwrap();
                let there = client.sent();
                self.shard.feed(place as u32, &there).unwrap();
                client.feed(&self.shard.staged(place as u32)).unwrap();
            }
        }
    }

    fn publish(&mut self, place: usize, bodies: &[u8]) {
        for body in bodies {
            self.clients[place].send((*body).into(), &[*body]);
            let there = self.clients[place].sent();
            self.shard.feed(place as u32, &there).unwrap();
            self.clients[place].feed(&self.shard.staged(place as u32)).unwrap();
        }
    }

    fn are_ready(&self, places: std::ops::Range<usize>) -> bool {
        self.clients[places].iter().all(is_ready)
    }

    fn regroupings(&self, place: usize) -> usize {
        let heard = self.clients[place].heard.iter();
        heard.filter(|heard| matches!(heard, Heard::Regrouped(_))).count()
    }
}

#[test]
fn a_member_asks_for_all_it_needs_and_is_alone_ready_in_a_group_of_one() {
    let make = clients(1, &[]);
    let mut shard = Shard::of(&Kafka, &[]);
    let mut client = make(0, Role::Consumer);
    shard.accept(1);
    let mut asked = Vec::new();
    while !is_ready(&client) {
        let sent = client.sent();
        assert!(!sent.is_empty(), "{asked:?}");
        asked.extend(apis(&sent));
        shard.feed(1, &sent).unwrap();
        client.feed(&shard.staged(1)).unwrap();
    }
    let expected = [18, 19, 3, 10, 11, 11, 14, 2, 8];
    assert_eq!(asked, expected, "JoinGroup twice: with the id that the first answer brings");
    assert_eq!(apis(&client.sent()), [1]);
    assert_eq!(client.connection.opens_within(), Some(Nanos::from_secs(30)));
    assert_eq!(make(0, Role::Producer).connection.opens_within(), None);
}

/// None is ready before all members have their partitions.
#[test]
fn a_group_is_complete_before_its_members_are_ready() {
    let make = clients(3, &[("partitions", "6")]);
    let mut world = World::new(vec![make(0, Role::Consumer), make(1, Role::Consumer)]);
    world.pass(Nanos::from_secs(1), &[]);
    assert!(!world.clients.iter().any(is_ready));
    world.shard.accept(2);
    world.clients.push(make(2, Role::Consumer));
    world.pass(Nanos::from_secs(1), &[]);
    assert!(world.are_ready(0..3));
    world.shard.accept(3);
    world.clients.push(make(0, Role::Producer));
    world.settle();
    world.publish(3, &[0, 1, 2, 3, 4, 5]);
    world.pass(Nanos::from_millis(100), &[]);
    let mut all: Vec<Vec<u8>> = world.clients[..3].iter().map(bodies).collect();
    all.sort();
    assert_eq!(all, [[0, 1], [2, 3], [4, 5]]);
    assert_eq!((0..3).map(|place| world.regroupings(place)).sum::<usize>(), 0);
}

/// A second member takes its partitions over where the first had committed, after a rebalance.
#[test]
fn a_silent_member_is_removed_and_its_messages_are_read_by_another() {
    let given = [
        ("partitions", "2"),
        ("session_timeout", "1s"),
        ("heartbeat", "100ms"),
        ("fetch_wait", "50ms"),
        ("commit", "300ms"),
    ];
    let make = clients(2, &given);
    let mut world = World::new(vec![make(0, Role::Consumer), make(1, Role::Consumer)]);
    world.pass(Nanos::from_secs(1), &[]);
    world.shard.accept(2);
    world.clients.push(make(0, Role::Producer));
    world.settle();
    assert!(world.are_ready(0..3));
    world.publish(2, &[0, 1]);
    world.pass(Nanos::from_millis(400), &[]);
    world.publish(2, &[2, 3]);
    world.pass(Nanos::from_millis(60), &[]);
    let (first, second) = (bodies(&world.clients[0]), bodies(&world.clients[1]));
    assert_eq!((first.len(), second.len()), (2, 2), "each has one of both rounds");
    // Client 1 says nothing more: what it read since its last commit comes again.
    world.pass(Nanos::from_secs(3), &[1]);
    world.publish(2, &[4, 5]);
    world.pass(Nanos::from_millis(200), &[1]);
    let mut got = bodies(&world.clients[0])[first.len()..].to_vec();
    got.sort_unstable();
    let mut expected = vec![second[1], 4, 5];
    expected.sort_unstable();
    assert_eq!(got, expected, "the last message of the other is doubled, and none is lost");
    assert_eq!(world.regroupings(0), 1);
    // It wakes up, learns that it was removed, and joins again.
    world.pass(Nanos::from_secs(2), &[]);
    world.publish(2, &[6, 7]);
    world.pass(Nanos::from_millis(200), &[]);
    assert_eq!(world.regroupings(1), 1);
    let last = |place: usize| bodies(&world.clients[place]).iter().filter(|own| **own > 5).count();
    assert_eq!((last(0), last(1)), (1, 1));
}

/// What was read is committed before a member joins again, so that nothing is read twice.
#[test]
fn a_member_commits_before_it_joins_again() {
    let given = [("partitions", "2"), ("heartbeat", "100ms"), ("fetch_wait", "50ms")];
    let (make, other) = (clients(1, &given), clients(2, &given));
    let mut world = World::new(vec![make(0, Role::Consumer), make(0, Role::Producer)]);
    assert!(world.are_ready(0..2));
    world.publish(1, &[0, 1]);
    world.pass(Nanos::from_millis(60), &[]);
    assert_eq!(bodies(&world.clients[0]).len(), 2);
    // Another program comes into the group; this load has begun, so that it takes what it gets.
    world.shard.accept(2);
    world.clients.push(other(1, Role::Consumer));
    world.pass(Nanos::from_secs(1), &[]);
    assert_eq!(world.regroupings(0), 1);
    assert!(is_ready(&world.clients[2]), "its group has the two members that it is to have");
    world.publish(1, &[2, 3]);
    world.pass(Nanos::from_millis(100), &[]);
    assert_eq!(bodies(&world.clients[0]).len(), 3);
    assert_eq!(bodies(&world.clients[2]).len(), 1);
}

/// A connection that is lost is not a rebalance: the next one is the same member, where it was.
#[test]
fn the_next_connection_is_the_same_member() {
    let given = [("heartbeat", "100ms"), ("fetch_wait", "50ms")];
    let make = clients(1, &given);
    let mut world = World::new(vec![make(0, Role::Consumer), make(0, Role::Producer)]);
    world.publish(1, &[0]);
    world.pass(Nanos::from_millis(60), &[]);
    assert_eq!(bodies(&world.clients[0]), [0]);
    let lost = world.clients.remove(0);
    drop(lost);
    world.shard.close(0);
    let mut producer = world.clients.remove(0);
    producer.send(1, &[1]);
    exchange(&mut producer, &mut world.shard, 1, &[]);
    let mut again = make(0, Role::Consumer);
    world.shard.accept(5);
    let mut asked = Vec::new();
    while !is_ready(&again) {
        let sent = again.sent();
        asked.extend(apis(&sent));
        world.shard.feed(5, &sent).unwrap();
        again.feed(&world.shard.staged(5)).unwrap();
    }
    assert_eq!(asked, [18, 3, 10, 12], "a heartbeat and no JoinGroup");
    assert_eq!(apis(&again.sent()), [1]);
}

#[test]
fn a_member_leaves_after_a_last_commit() {
    let make = clients(1, &[("commit", "0s")]);
    let mut world = World::new(vec![make(0, Role::Consumer), make(0, Role::Producer)]);
    world.publish(1, &[0, 1]);
    world.pass(Nanos::from_secs(20), &[]);
    let consumer = &mut world.clients[0];
    consumer.connection.close(&mut consumer.out);
    let last = consumer.sent();
    assert_eq!(apis(&last), [8, 13]);
    world.shard.feed(0, &last).unwrap();
    world.shard.pass(world.now + Nanos::from_secs(1));
    world.clients.remove(0);
    // The next member of the group is alone in it at once.
    let mut next = clients(1, &[])(0, Role::Consumer);
    world.shard.accept(7);
    exchange(&mut next, &mut world.shard, 7, &[]);
    assert!(is_ready(&next));
}

/// An answer with these fields.
fn answer(correlation: i32, fields: &[u8]) -> Vec<u8> {
    let length = (4 + fields.len()) as u32;
    [&length.to_be_bytes()[..], &correlation.to_be_bytes(), fields].concat()
}

/// A client before the answer to FindCoordinator, and the number of that request.
fn before_the_coordinator(consumers: u32) -> (Client, i32) {
    let make = clients(consumers, &[]);
    let mut shard = Shard::of(&Kafka, &[]);
    let mut client = make(0, Role::Consumer);
    shard.accept(1);
    loop {
        let sent = client.sent();
        if apis(&sent) == [10] {
            return (client, i32::from_be_bytes(sent[8..12].try_into().unwrap()));
        }
        shard.feed(1, &sent).unwrap();
        client.feed(&shard.staged(1)).unwrap();
    }
}

const FOUND: &[u8] = b"\0\0\0\0\0\0\xff\xff\0\0\0\x01\0\x01h\0\0\x23\x84";
const JOINED: &[u8] = b"\0\0\0\0\0\0\0\0\0\x01\0\x05range\0\x01x\0\x01m\0\0\0\0";

/// The answer to SyncGroup with this assignment.
fn synced(correlation: i32, assignment: &[u8]) -> Vec<u8> {
    let mut fields = vec![0; 6];
    put_bytes(&mut fields, assignment);
    answer(correlation, &fields)
}

/// The error after which a client has waited for this long, without an answer.
fn given_up(client: &mut Client) -> String {
    for step in 1..=400 {
        if let Err(fault) = client.pass(Nanos::from_millis(100 * step)) {
            assert!(matches!(fault, Fault::Refused { .. }), "{fault}");
            assert!(step <= 300, "after {step} steps of 100 ms");
            return fault.to_string();
        }
    }
    panic!("it waits for ever");
}

#[test]
fn a_coordinator_that_never_completes_the_group_is_given_up() {
    let (mut client, number) = before_the_coordinator(1);
    let text = given_up(&mut client);
    assert!(text.contains("group g-0001") && text.contains("FindCoordinator"), "{text}");
    let (mut client, number_again) = before_the_coordinator(1);
    assert_eq!(number, number_again);
    client.feed(&answer(number, FOUND)).unwrap();
    assert_eq!(apis(&client.sent()), [11]);
    let text = given_up(&mut client);
    assert!(text.contains("the broker did not answer JoinGroup"), "{text}");
    let (mut client, number) = before_the_coordinator(1);
    client.feed(&answer(number, FOUND)).unwrap();
    client.feed(&answer(number + 1, JOINED)).unwrap();
    let text = given_up(&mut client);
    assert!(text.contains("did not answer SyncGroup"), "{text}");
}

/// Another program leads the group, or is in it, as long as this one waits.
#[test]
fn a_group_of_others_is_given_up_by_name() {
    for (members, expected) in [(0, "another program leads it"), (3, "it has 3 members")] {
        let (mut client, number) = before_the_coordinator(2);
        client.feed(&answer(number, FOUND)).unwrap();
        client.feed(&answer(number + 1, JOINED)).unwrap();
        let mut assignment = Vec::new();
        match members {
            0 => assignment.extend_from_slice(b"\0\0\0\0\0\0\xff\xff\xff\xff"),
            _ => put_assignment(&mut assignment, b"weigh-0001", &[0], members),
        }
        client.feed(&synced(number + 2, &assignment)).unwrap();
        client.sent();
        let mut next = number + 3;
        let text = loop {
            let step = client.now + Nanos::from_millis(100);
            if let Err(fault) = client.pass(step) {
                break fault.to_string();
            }
            if !client.sent().is_empty() {
                client.feed(&answer(next, &[0; 6])).unwrap();
                next += 1;
            }
        };
        assert!(text.contains(expected) && text.contains("kafka.group"), "{text}");
        assert!(client.now <= Nanos::from_secs(21), "{}", client.now);
    }
}

#[test]
fn errors_of_a_coordinator_have_their_names() {
    let with = |fields: &[u8]| {
        let (mut client, number) = before_the_coordinator(1);
        client.feed(&answer(number, fields)).map(|()| (client, number))
    };
    let text = with(b"\0\0\0\0\0\x1e\xff\xff\xff\xff\xff\xff\0\0\xff\xff\xff\xff");
    let text = text.err().unwrap().to_string();
    assert!(text.contains("GROUP_AUTHORIZATION_FAILED"), "{text}");
    let text =
        with(b"\0\0\0\0\0\0\xff\xff\0\0\0\x07\0\x01b\0\0\x23\x85").err().unwrap().to_string();
    assert!(text.contains("kafka://b:9093") && text.contains("kafka.group"), "{text}");
    // A member that is not known gets another id, a moment later.
    let (mut client, number) = with(FOUND).unwrap();
    assert_eq!(apis(&client.sent()), [11]);
    let unknown = b"\0\0\0\0\0\x19\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0";
    client.feed(&answer(number + 1, unknown)).unwrap();
    assert!(client.sent().is_empty());
    client.pass(Nanos::from_millis(100)).unwrap();
    assert_eq!(apis(&client.sent()), [11]);
    // A strategy that others do not know does not pass by itself.
    let other = b"\0\0\0\0\0\x17\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0";
    let text = client.feed(&answer(number + 2, other)).unwrap_err().to_string();
    assert!(text.contains("INCONSISTENT_GROUP_PROTOCOL"), "{text}");
}

#[test]
fn an_assignment_that_cannot_be_is_an_error() {
    let mut not_led = Vec::new();
    put_assignment(&mut not_led, b"weigh-0001", &[9], 1);
    let mut other_topic = Vec::new();
    put_assignment(&mut other_topic, b"other", &[0], 1);
    for (assignment, expected) in [
        (&not_led[..], "partition 9 of weigh-0001"),
        (&other_topic, "an assignment of other partitions"),
        (b"\0\0\x7f\xff\xff\xff", "a number of elements"),
        (b"\0", "a field that ends behind"),
    ] {
        let (mut client, number) = before_the_coordinator(1);
        client.feed(&answer(number, FOUND)).unwrap();
        client.feed(&answer(number + 1, JOINED)).unwrap();
        let fault = client.feed(&synced(number + 2, assignment)).unwrap_err();
        assert!(matches!(&fault, Fault::Malformed(text) if text.contains(expected)), "{fault}");
    }
}

/// A broker that asks for ids without end is given up too.
#[test]
fn a_broker_that_only_gives_ids_is_given_up() {
    let (mut client, number) = before_the_coordinator(1);
    client.feed(&answer(number, FOUND)).unwrap();
    let required = b"\0\0\0\0\0\x4f\xff\xff\xff\xff\0\0\0\0\0\x01m\0\0\0\0";
    let mut next = number + 1;
    let text = loop {
        if !client.sent().is_empty() {
            if let Err(fault) = client.feed(&answer(next, required)) {
                break fault.to_string();
            }
            next += 1;
        }
        if let Err(fault) = client.pass(client.now + Nanos::from_millis(100)) {
            break fault.to_string();
        }
    };
    assert!(text.contains("MEMBER_ID_REQUIRED"), "{text}");
    assert!(next < number + 300 && client.now <= Nanos::from_secs(21), "{next}");
}

#[test]
fn loads_that_a_group_cannot_carry_are_refused() {
    let refusal = |topology: Topology, consumers: u32, given: &[(&str, &str)]| {
        let given = [&[("group", "g")], given].concat();
        let mut trial = trial(&Kafka, Pattern::Deliver, topology, URL, &given).unwrap();
        (trial.load.connections, trial.load.subscribers) = (consumers, consumers);
        Kafka.dial(&trial).err().map(|invalid| (invalid.place.to_string(), invalid.fix.to_string()))
    };
    let silent = [("session_timeout", "1s"), ("heartbeat", "600ms"), ("fetch_wait", "400ms")];
    for (topology, consumers, given, place, fix) in [
        (Topology::FanOut, 2, &[][..], "kafka.group", "--topology shared"),
        (Topology::Pairs, 2, &[], "kafka.group", "--topology shared"),
        (Topology::FanIn, 2, &[], "kafka.group", "--topology shared"),
        (Topology::Shared, 129, &[], "load.subscribers", "at most 128"),
        (Topology::Shared, 2, &silent, "kafka.session_timeout", "kafka.heartbeat"),
        (Topology::Shared, 2, &[("heartbeat", "1ms")], "kafka.heartbeat", "10"),
    ] {
        let refused = refusal(topology, consumers, given).expect("it is refused");
        assert_eq!(refused.0, place, "{topology:?} {given:?}");
        assert!(refused.1.contains(fix), "{refused:?}");
    }
    assert_eq!(refusal(Topology::FanIn, 1, &[]), None);
    assert_eq!(
        refusal(Topology::Shared, 2, &silent[..1]),
        Some((
            "kafka.session_timeout".into(),
            "type more than kafka.heartbeat and kafka.fetch_wait together".into(),
        ))
    );
}
