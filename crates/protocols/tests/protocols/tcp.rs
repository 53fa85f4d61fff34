//! The protocol `tcp`: frames byte by byte, both ends together, and what breaks the rules.

use crate::rig::{Client, Heard, Shard, exchange, kind, trial};
use proptest::prelude::*;
use weigh_model::connection::Reply;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Guarantee, Lifetime, Protocol, Role, Seat};
use weigh_model::trial::Settings;
use weigh_protocols::tcp::Tcp;

const URL: &str = "tcp://127.0.0.1:7000";

fn client(given: &[(&str, &str)]) -> Client {
    Client::of(&Tcp, URL, given)
}

fn deliverer(topology: Topology, index: u32, role: Role) -> Client {
    let trial = trial(&Tcp, Pattern::Deliver, topology, URL, &[]).unwrap();
    Client::new((Tcp.dial(&trial).unwrap().make)(Seat { index, role }))
}

#[test]
fn frames_are_nine_bytes_and_the_body() {
    for (given, kind, reply) in [
        (&[][..], 2, Reply::Awaited),
        (&[("acknowledge", "false")], 1, Reply::None),
        (&[("echo", "true")], 3, Reply::Awaited),
    ] {
        let mut client = client(given);
        assert_eq!(client.heard, [Heard::Ready]);
        assert_eq!(client.send(0x0102_0304, b"hello"), reply);
        assert_eq!(client.sent(), [b"\0\0\0\x0a", &[kind][..], b"\x01\x02\x03\x04hello"].concat());
    }
}

#[test]
fn answers_are_as_the_readme_says() {
    let mut shard = Shard::of(&Tcp, &[]);
    shard.accept(3);
    shard
        .feed(3, b"\0\0\0\x07\x02\0\0\0\x09hi\0\0\0\x07\x03\0\0\0\x0ahi\0\0\0\x07\x01\0\0\0\x0bhi")
        .unwrap();
    assert_eq!(shard.staged(3), b"\0\0\0\x05\x81\0\0\0\x09\0\0\0\x07\x82\0\0\0\x0ahi");
    assert_eq!(shard.server.report().received, 3);
}

#[test]
fn settings_are_checked_against_each_other_and_the_load() {
    let invalid = |given: &[(&str, &str)], size: Option<u64>| {
        let mut trial = trial(&Tcp, Pattern::Request, Topology::FanIn, URL, given).unwrap();
        trial.load.size = size.map(weigh_model::units::Bytes);
        Tcp.dial(&trial).err().map(|invalid| invalid.to_string())
    };
    assert_eq!(invalid(&[], Some(64)), None);
    let echo = invalid(&[("acknowledge", "false"), ("echo", "true")], None).unwrap();
    assert!(echo.contains("tcp.echo"), "{echo}");
    let size = invalid(&[("frame_bytes_max", "64")], Some(56)).unwrap();
    assert!(size.contains("load.size") && size.contains("at most 55B"), "{size}");
    assert_eq!(invalid(&[("frame_bytes_max", "64")], Some(55)), None);
}

#[test]
fn guarantees_lifetimes_and_confirmation_follow_the_settings() {
    let settings = |given| Settings::new("tcp", Tcp.settings(), given).unwrap();
    assert_eq!(Tcp.guarantee(&settings(None)), Guarantee::AtLeastOnce);
    let plain = settings(Some(("acknowledge", "false")));
    assert_eq!(Tcp.guarantee(&plain), Guarantee::AtMostOnce);
    let dial = |pattern, given: &[(&str, &str)]| {
        Tcp.dial(&trial(&Tcp, pattern, Topology::FanIn, URL, given).unwrap()).unwrap()
    };
    assert!(dial(Pattern::Request, &[]).confirms);
    assert!(!dial(Pattern::Publish, &[("acknowledge", "false")]).confirms);
    assert_eq!(dial(Pattern::Request, &[]).lifetime, Lifetime::Kept);
    assert_eq!(dial(Pattern::Session, &[]).lifetime, Lifetime::PerMessage);
}

#[test]
fn pairs_hear_their_own_producer_and_fan_out_hears_everybody() {
    for (topology, heard) in [(Topology::Pairs, [1, 1, 0]), (Topology::FanOut, [2, 2, 2])] {
        let mut shard = Shard::of(&Tcp, &[]);
        let mut consumers: Vec<Client> =
            (0..3).map(|index| deliverer(topology, index, Role::Consumer)).collect();
        for (connection, consumer) in consumers.iter_mut().enumerate() {
            assert_eq!(consumer.connection.room(), 0);
            shard.accept(connection as u32);
            exchange(consumer, &mut shard, connection as u32, &[]);
            assert_eq!(consumer.heard, [Heard::Ready]);
        }
        for index in 0..2u32 {
            let mut producer = deliverer(topology, index, Role::Producer);
            shard.accept(10 + index);
            producer.send(7, &[b'a' + index as u8]);
            exchange(&mut producer, &mut shard, 10 + index, &[]);
            assert_eq!(producer.heard, [Heard::Ready, Heard::Done(7)]);
        }
        for (index, consumer) in consumers.iter_mut().enumerate() {
            exchange(consumer, &mut shard, index as u32, &[1, 5, 9]);
            assert_eq!(consumer.heard.len() - 1, heard[index], "{topology:?} {index}");
        }
        let message = Heard::Message(vec![0, 0, 0, 1], b"b".to_vec());
        assert_eq!(consumers[1].heard.last(), Some(&message));
        let report = shard.server.report();
        assert_eq!(report.forwarded, heard.iter().sum::<usize>() as u64);
    }
}

#[test]
fn a_producer_without_consumers_is_told() {
    let mut shard = Shard::of(&Tcp, &[]);
    let mut producer = deliverer(Topology::FanIn, 0, Role::Producer);
    shard.accept(0);
    producer.send(1, b"x");
    exchange(&mut producer, &mut shard, 0, &[]);
    assert_eq!(producer.heard, [Heard::Ready, Heard::NoSubscriber(1)]);
}

#[test]
fn shards_hand_messages_to_each_other() {
    let settings = Settings::new("tcp", Tcp.settings(), None).unwrap();
    let host = Tcp.host(&settings).unwrap();
    let (mut left, mut right) = (Shard::new((host.make)(0)), Shard::new((host.make)(1)));
    let mut consumer = deliverer(Topology::FanIn, 0, Role::Consumer);
    right.accept(0);
    exchange(&mut consumer, &mut right, 0, &[]);
    let mut producer = deliverer(Topology::FanIn, 4, Role::Producer);
    left.accept(0);
    producer.send(1, b"x");
    producer.send(2, b"y");
    exchange(&mut producer, &mut left, 0, &[]);
    assert_eq!(producer.heard, [Heard::Ready, Heard::Done(1), Heard::Done(2)]);
    assert_eq!(left.desk.notified, [1]);
    right.server.notified(weigh_model::Nanos(0), &mut right.desk);
    exchange(&mut consumer, &mut right, 0, &[]);
    let topic = vec![0, 0, 0, 4];
    let messages =
        [Heard::Message(topic.clone(), b"x".to_vec()), Heard::Message(topic, b"y".to_vec())];
    assert_eq!(consumer.heard[1..], messages);
    right.close(0);
    producer.send(3, b"z");
    exchange(&mut producer, &mut left, 0, &[]);
    assert_eq!(producer.heard.last(), Some(&Heard::NoSubscriber(3)));
}

#[test]
fn a_slow_consumer_loses_what_its_queue_does_not_hold() {
    let mut shard = Shard::of(&Tcp, &[("queue_bytes_max", "20")]);
    let mut consumer = deliverer(Topology::FanIn, 0, Role::Consumer);
    shard.accept(0);
    exchange(&mut consumer, &mut shard, 0, &[]);
    let mut producer = deliverer(Topology::FanIn, 0, Role::Producer);
    shard.accept(1);
    for ticket in 0..5 {
        producer.send(ticket, b"x");
    }
    exchange(&mut producer, &mut shard, 1, &[]);
    let report = shard.server.report();
    assert_eq!((report.received, report.forwarded, report.dropped["queue_full"]), (5, 2, 3));
}

#[test]
fn a_client_faults_on_what_breaks_the_rules() {
    for (input, fault) in [
        (&b"\0\0\0\x05\x81\0\0\0\x02"[..], "malformed"),
        (b"\0\0\0\x05\x82\0\0\0\x01", "malformed"),
        (b"\0\0\0\x05\x84\0\0\0\x01", "malformed"),
        (b"\0\0\0\x05\x00\0\0\0\x01", "malformed"),
        (b"\0\0\0\x04", "malformed"),
        (b"\xff\xff\xff\xff", "malformed"),
        (b"HTTP/1.1 400 Bad Request\r\n", "other protocol"),
        (b"\0\0\0\x05\x81\0\0\0\x01\0\0\0\x05\x81\0\0\0\x01", "malformed"),
    ] {
        let mut client = client(&[]);
        client.send(1, b"x");
        assert_eq!(kind(&client.feed(input)), fault, "{}", input.escape_ascii());
    }
    let mut echo = client(&[("echo", "true")]);
    echo.send(1, b"x");
    assert_eq!(kind(&echo.feed(b"\0\0\0\x06\x82\0\0\0\x01y")), "malformed");
    let mut cut = client(&[]);
    cut.feed(b"\0\0").unwrap();
    assert_eq!(kind(&cut.end()), "ended");
}

#[test]
fn a_server_faults_on_what_breaks_the_rules() {
    for input in [
        &b"\0\0\0\x05\x81\0\0\0\x01"[..],
        b"\0\0\0\0",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\x05\x04\0\0\0\x01\0\0\0\x05\x04\0\0\0\x01",
        b"\0\0\0\x05\x05\0\0\0\x01\0\0\0\x05\x05\0\0\0\x01",
        b"\0\0\0\x05\x04\xff\xff\xff\xff",
    ] {
        let mut shard = Shard::of(&Tcp, &[]);
        shard.accept(0);
        assert_eq!(kind(&shard.feed(0, input)), "malformed", "{}", input.escape_ascii());
    }
}

proptest! {
    #[test]
    fn both_ends_agree_however_the_bytes_are_cut(
        mode in 0..3usize,
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let given = [&[][..], &[("acknowledge", "false")], &[("echo", "true")]][mode];
        let mut shard = Shard::of(&Tcp, &[]);
        let mut client = client(given);
        shard.accept(0);
        for (ticket, body) in bodies.iter().enumerate() {
            client.send(ticket as u32, body);
        }
        exchange(&mut client, &mut shard, 0, &cuts);
        let awaited = if mode == 1 { 0 } else { bodies.len() as u32 };
        let due: Vec<Heard> =
            std::iter::once(Heard::Ready).chain((0..awaited).map(Heard::Done)).collect();
        prop_assert_eq!(&client.heard, &due);
        prop_assert_eq!(shard.server.report().received, bodies.len() as u64);
    }

    #[test]
    fn arbitrary_bytes_give_the_same_signals_however_cut(
        input in prop::collection::vec(
            prop_oneof![Just(0u8), Just(5), Just(0x81), any::<u8>()],
            0..60,
        ),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let run = |cuts: &[usize]| {
            let mut client = client(&[]);
            client.send(5, b"x");
            let end = client.feed_cut(&input, cuts);
            (client.heard.clone(), kind(&end))
        };
        prop_assert_eq!(run(&[]), run(&cuts));
    }
}
