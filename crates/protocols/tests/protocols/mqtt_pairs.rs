//! Our MQTT clients with our broker, in memory: every QoS and both versions, the bytes cut at
//! random, and every message accounted for on both sides.

use crate::mqtt_world::{Peer, Said, World, dial, keep, trial};
use weigh_model::connection::{Connection, Fault, Op, Outbox, Reply, Ticket};
use weigh_model::endpoint::Credentials;
use weigh_model::mark::{MARK_BYTES, Mark, Reading};
use weigh_model::protocol::{Dial, Lifetime, Protocol, Role, Seat};
use weigh_model::tally::Tally;
use weigh_model::{Nanos, Pattern, Topology};
use weigh_protocols::mqtt::Mqtt;
use weigh_stats::random::Random;

/// A connection with its link, its unread input and what it said.
struct Guest {
    connection: Box<dyn Connection>,
    peer: Peer,
    unread: Vec<u8>,
    said: Vec<Said>,
    fault: Option<Fault>,
}

impl Guest {
    fn join(dial: &Dial, role: Role, index: u32, shard: usize, world: &mut World) -> Guest {
        let connection = (dial.make)(Seat { index, role });
        let peer = world.open(shard);
        let mut guest =
            Guest { connection, peer, unread: Vec::new(), said: Vec::new(), fault: None };
        let mut out = Outbox::default();
        let said = &mut guest.said;
        guest.connection.open(world.now, &mut out, &mut |signal| keep(said, signal));
        assert_eq!(guest.connection.room(), 0, "no room before CONNACK");
        world.feed(peer, out.bytes());
        world.settle();
        guest
    }

    /// Takes what came, in pieces of random sizes, and answers in pieces of random sizes.
    fn listen(&mut self, world: &mut World, random: &mut Random) -> bool {
        let came = world.take(self.peer);
        let mut rest = &came[..];
        let mut out = Outbox::default();
        while !rest.is_empty() && self.fault.is_none() {
            let (piece, after) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
            rest = after;
            self.unread.extend_from_slice(piece);
            let said = &mut self.said;
            let result =
                self.connection.receive(&self.unread, world.now, &mut out, &mut |signal| {
                    keep(said, signal);
                });
            match result {
                Ok(used) => drop(self.unread.drain(..used)),
                Err(fault) => self.fault = Some(fault),
            }
        }
        pour(self.peer, out.bytes(), world, random);
        !came.is_empty()
    }

    fn publish(
        &mut self,
        ticket: u32,
        body: &[u8],
        world: &mut World,
        random: &mut Random,
    ) -> Reply {
        let mut out = Outbox::default();
        let reply = self.connection.send(&Op { ticket: Ticket(ticket), body }, world.now, &mut out);
        pour(self.peer, out.bytes(), world, random);
        reply
    }

    fn done(&self) -> usize {
        self.said.iter().filter(|said| matches!(said, Said::Done(_))).count()
    }
}

fn pour(peer: Peer, bytes: &[u8], world: &mut World, random: &mut Random) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
        world.feed(peer, piece);
        rest = after;
    }
    world.settle();
}

fn listen_all(guests: &mut [Guest], world: &mut World, random: &mut Random) {
    let mut is_moving = true;
    while is_moving {
        is_moving = false;
        for guest in guests.iter_mut() {
            is_moving |= guest.listen(world, random);
        }
    }
}

fn body(producer: u32, sequence: u64) -> Vec<u8> {
    let (due, lag) = (Nanos(5), Nanos(0));
    let mut body = vec![b'.'; MARK_BYTES + 20];
    Mark { tag: 0xBEEF, warmup: false, producer, sequence, due, lag, own_lag: lag }
        .seal(&mut body, 20);
    body
}

/// Publishes `count` messages from each producer to all consumers and checks both accounts.
fn deliver(given: &[(&str, &str)], shards: u16, seed: u64, count: u64) -> Vec<Guest> {
    let trial = trial(given, 3, 2);
    let dial = dial(&trial);
    let random = &mut Random::new(seed);
    let broker: Vec<(&str, &str)> =
        given.iter().copied().filter(|(key, _)| key.starts_with("broker_")).collect();
    let mut world = World::sharded(shards, &broker);
    let mut guests = Vec::new();
    for (role, seats) in [(Role::Consumer, 2), (Role::Producer, 3)] {
        for index in 0..seats {
            let shard = random.below(u64::from(shards)) as usize;
            guests.push(Guest::join(&dial, role, index, shard, &mut world));
        }
    }
    listen_all(&mut guests, &mut world, random);
    assert!(guests.iter().all(|guest| guest.said.contains(&Said::Ready)));
    let is_confirmed = dial.confirms;
    for sequence in 0..count {
        for producer in 0..3 {
            while guests[2 + producer].connection.room() == 0 {
                listen_all(&mut guests, &mut world, random);
            }
            let body = body(producer as u32, sequence);
            let reply = guests[2 + producer].publish(sequence as u32, &body, &mut world, random);
            assert_eq!(reply == Reply::Awaited, is_confirmed);
        }
        if random.below(3) == 0 {
            listen_all(&mut guests, &mut world, random);
        }
    }
    listen_all(&mut guests, &mut world, random);
    for guest in &guests {
        assert_eq!(guest.fault, None);
    }
    let producer_of = dial.producer_of.unwrap();
    for consumer in &guests[..2] {
        let mut tally = Tally::default();
        for said in &consumer.said {
            let Said::Message(topic, body) = said else { continue };
            let reading = Mark::read(body, 0xBEEF);
            let Reading::Whole(mark) = reading else { panic!("{reading:?}") };
            assert_eq!(producer_of(topic.as_bytes()), Some(mark.producer), "{topic}");
            tally.note(reading, false);
        }
        assert_eq!((tally.received, tally.unique()), (3 * count, 3 * count));
        assert_eq!((tally.reordered, tally.duplicates), (0, 0));
    }
    if is_confirmed {
        assert!(guests[2..].iter().all(|guest| guest.done() == count as usize));
    }
    let report = world.report();
    assert_eq!((report.received, report.unique, report.duplicates), (3 * count, 3 * count, 0));
    assert_eq!((report.forwarded, report.queued, report.connections), (6 * count, 0, 5));
    assert!(report.dropped.is_empty(), "{report:?}");
    guests
}

#[test]
fn every_qos_and_version_delivers_everything_once() {
    for version in ["3.1.1", "5"] {
        for qos in ["0", "1", "2"] {
            for seed in 0..5 {
                deliver(&[("version", version), ("qos", qos)], 1, seed, 60);
            }
        }
    }
}

#[test]
fn shards_deliver_to_each_other() {
    for qos in ["0", "1", "2"] {
        for seed in 0..5 {
            deliver(&[("version", "5"), ("qos", qos)], 3, 100 + seed, 60);
        }
    }
}

#[test]
fn grants_are_recorded_and_kept_to() {
    let given = [
        ("version", "5"),
        ("qos", "2"),
        ("topic_alias", "true"),
        ("receive_maximum", "3"),
        ("user_property", "site=farm1"),
        ("broker_receive_maximum", "2"),
        ("broker_keep_alive", "30s"),
    ];
    let guests = deliver(&given, 1, 9, 40);
    for guest in &guests {
        assert!(guest.said.contains(&Said::Granted("receive_maximum", 2)));
        assert!(guest.said.contains(&Said::Granted("server_keep_alive_s", 30)));
        assert!(guest.said.contains(&Said::Granted("topic_alias_maximum", 16)));
    }
    assert!(guests[0].said.contains(&Said::Granted("granted_qos", 2)));
}

#[test]
fn a_lower_maximum_qos_is_kept_to() {
    let given = [("version", "5"), ("qos", "2"), ("broker_maximum_qos", "1")];
    let guests = deliver(&given, 1, 3, 20);
    assert!(guests[0].said.contains(&Said::Granted("granted_qos", 1)));
    assert!(guests[2].said.contains(&Said::Granted("maximum_qos", 1)));
}

#[test]
fn a_topic_alias_saves_the_topic() {
    let size = |alias: &str| {
        let given = [("version", "5"), ("topic_alias", alias)];
        let dial = dial(&trial(&given, 1, 0));
        let mut world = World::new(&[]);
        let mut guests = [Guest::join(&dial, Role::Producer, 0, 0, &mut world)];
        listen_all(&mut guests, &mut world, &mut Random::new(1));
        let mut out = Outbox::default();
        let op = Op { ticket: Ticket(0), body: b"x" };
        (0..2)
            .map(|_| {
                out.clear();
                guests[0].connection.send(&op, world.now, &mut out);
                out.len()
            })
            .collect::<Vec<_>>()
    };
    let topic = "weigh/beef/0".len();
    assert_eq!(size("false"), [6 + topic, 6 + topic]);
    assert_eq!(size("true"), [9 + topic, 9]);
}

#[test]
fn nobody_listening_is_told_apart_in_version_5() {
    for (version, expected) in [("3.1.1", Said::Done(7)), ("5", Said::NoSubscriber(7))] {
        for qos in ["1", "2"] {
            let dial = dial(&trial(&[("version", version), ("qos", qos)], 1, 0));
            let random = &mut Random::new(4);
            let mut world = World::new(&[]);
            let mut guests = [Guest::join(&dial, Role::Producer, 0, 0, &mut world)];
            listen_all(&mut guests, &mut world, random);
            guests[0].publish(7, b"x", &mut world, random);
            listen_all(&mut guests, &mut world, random);
            assert_eq!(guests[0].said.last(), Some(&expected));
        }
    }
}

#[test]
fn credentials_are_checked_and_refusals_named() {
    let rules = [("broker_user", "me"), ("broker_password", "right")];
    for (version, password, expected) in [
        ("3.1.1", Some("right"), None),
        ("5", Some("right"), None),
        ("3.1.1", Some("wrong"), Some((4, "bad user name or password"))),
        ("5", Some("wrong"), Some((0x86, "bad user name or password"))),
        ("3.1.1", None, Some((5, "not authorized"))),
        ("5", None, Some((0x87, "not authorized"))),
    ] {
        let mut trial = trial(&[("version", version)], 1, 0);
        if let (Some(endpoint), Some(password)) = (&mut trial.endpoint, password) {
            let (user, password) = ("me".to_owned(), password.to_owned());
            endpoint.credentials = Some(Credentials { user, password });
        }
        let mut world = World::new(&rules);
        let mut guest = Guest::join(&dial(&trial), Role::Producer, 0, 0, &mut world);
        guest.listen(&mut world, &mut Random::new(1));
        let refusal = guest.fault.map(|fault| match fault {
            Fault::Refused { code, reason } => (code, reason),
            other => panic!("{other}"),
        });
        let expected = expected.map(|(code, reason)| (code, reason.to_owned()));
        assert_eq!(refusal, expected, "{version} {password:?}");
        assert_eq!(world.is_over(guest.peer), expected.is_some());
    }
}

#[test]
fn keep_alive_pings_and_notices_silence() {
    let dial = dial(&trial(&[("keep_alive", "10s")], 1, 0));
    let random = &mut Random::new(1);
    let mut world = World::new(&[]);
    let mut guests = [Guest::join(&dial, Role::Producer, 0, 0, &mut world)];
    listen_all(&mut guests, &mut world, random);
    let start = world.now;
    let mut out = Outbox::default();
    let at = |seconds: u64| start + Nanos::from_secs(seconds);
    // A fiftieth of the keep-alive early, so that the silence is never longer than it.
    let ping = |seconds: u64| at(seconds) - Nanos::from_millis(200);
    assert_eq!(wake(&mut guests[0], at(1), &mut out), Ok(Some(ping(10))));
    assert!(out.is_empty());
    assert_eq!(wake(&mut guests[0], ping(10), &mut out), Ok(Some(ping(15))));
    assert_eq!(out.bytes(), [0xC0, 0]);
    // The broker answers, so the next ping is due ten seconds later.
    world.now = ping(10);
    world.feed(guests[0].peer, out.bytes());
    world.settle();
    listen_all(&mut guests, &mut world, random);
    let second = ping(20) - Nanos::from_millis(200);
    assert_eq!(wake(&mut guests[0], ping(15), &mut out), Ok(Some(second)));
    out.clear();
    let silent = second + Nanos::from_secs(5);
    assert_eq!(wake(&mut guests[0], second, &mut out), Ok(Some(silent)));
    assert!(wake(&mut guests[0], silent, &mut out).unwrap_err().to_string().contains("silent"));
    out.clear();
    guests[0].connection.close(&mut out);
    assert_eq!(out.bytes(), [0xE0, 0]);
}

#[test]
fn topologies_sessions_and_placeholders() {
    let mut pairs = trial(&[("topic", "farm/%t/%c/s%i")], 2, 2);
    pairs.load.topology = Topology::Pairs;
    let dial = dial(&pairs);
    let random = &mut Random::new(1);
    let mut world = World::new(&[]);
    let mut guests: Vec<Guest> = [(Role::Consumer, 0), (Role::Consumer, 1), (Role::Producer, 1)]
        .map(|(role, index)| Guest::join(&dial, role, index, 0, &mut world))
        .into();
    listen_all(&mut guests, &mut world, random);
    guests[2].publish(0, b"hello", &mut world, random);
    listen_all(&mut guests, &mut world, random);
    let topic = "farm/beef/weigh-beef-p1/s1".to_owned();
    assert_eq!(guests[1].said.last(), Some(&Said::Message(topic, b"hello".to_vec())));
    assert!(!guests[0].said.iter().any(|said| matches!(said, Said::Message(..))));
    let mut session = trial(&[], 2, 0);
    session.load.pattern = Pattern::Session;
    let dial = Mqtt.dial(&session).map_err(|error| error.to_string()).unwrap();
    assert_eq!(dial.lifetime, Lifetime::PerMessage);
    // Two connections of one seat do not throw each other out.
    let mut both: Vec<Guest> =
        (0..2).map(|_| Guest::join(&dial, Role::Producer, 0, 0, &mut world)).collect();
    listen_all(&mut both, &mut world, random);
    assert!(both.iter().all(|guest| guest.connection.room() > 0 && !world.is_over(guest.peer)));
}

/// Wakes a client, and asks when it wants to be woken again.
fn wake(guest: &mut Guest, now: Nanos, out: &mut Outbox) -> Result<Option<Nanos>, Fault> {
    guest.connection.wake(now, out, &mut |_| {})?;
    Ok(guest.connection.next_wake())
}
