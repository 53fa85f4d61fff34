//! The protocol `redis`: commands byte by byte, both ends together, consumers of channels and of
//! streams, waiting, limits, and what breaks the rules.

use crate::rig::{Client, Heard, Shard, exchange, kind, trial};
use proptest::prelude::*;
use weigh_model::Nanos;
use weigh_model::connection::{Fault, Reply};
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Guarantee, Protocol, Role, Seat};
use weigh_model::trial::Settings;
use weigh_model::units::Bytes;
use weigh_protocols::redis::Redis;

const URL: &str = "redis://127.0.0.1";
const PUBLISH: (&str, &str) = ("command", "publish");

fn client(
    pattern: Pattern,
    topology: Topology,
    role: Role,
    index: u32,
    given: &[(&str, &str)],
) -> Client {
    let trial = trial(&Redis, pattern, topology, URL, given).unwrap();
    Client::new((Redis.dial(&trial).unwrap().make)(Seat { index, role }))
}

fn producer(given: &[(&str, &str)]) -> Client {
    client(Pattern::Publish, Topology::FanIn, Role::Producer, 0, given)
}

fn deliverer(role: Role, index: u32, given: &[(&str, &str)]) -> Client {
    client(Pattern::Deliver, Topology::FanIn, role, index, given)
}

/// The bodies that a consumer got.
fn bodies(client: &Client) -> Vec<&[u8]> {
    let body = |heard: &'_ Heard| matches!(heard, Heard::Message(..));
    let messages = client.heard.iter().filter(|heard| body(heard));
    messages
        .map(|heard| match heard {
            Heard::Message(_, body) => &body[..],
            _ => unreachable!(),
        })
        .collect()
}

/// The bytes of a request: `*1\r\n$4\r\nPING\r\n`.
fn request(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    out
}

fn asked(shard: &mut Shard, connection: u32, words: &[&str]) -> String {
    shard.feed(connection, &request(words)).unwrap();
    String::from_utf8(shard.staged(connection)).unwrap()
}

#[test]
fn commands_are_as_the_readme_says() {
    for (given, expected) in [
        (
            &[][..],
            "*8\r\n$4\r\nXADD\r\n$12\r\nweigh:stream\r\n$6\r\nMAXLEN\r\n$1\r\n~\r\n$6\r\n100000\r\n\
             $1\r\n*\r\n$4\r\ndata\r\n$5\r\nhello\r\n",
        ),
        (
            &[("maxlen", "0"), ("field", "f"), ("key", "k")],
            "*5\r\n$4\r\nXADD\r\n$1\r\nk\r\n$1\r\n*\r\n$1\r\nf\r\n$5\r\nhello\r\n",
        ),
        (
            &[("maxlen", "5"), ("maxlen_exact", "true"), ("field", "f"), ("key", "k")],
            "*8\r\n$4\r\nXADD\r\n$1\r\nk\r\n$6\r\nMAXLEN\r\n$1\r\n=\r\n$1\r\n5\r\n$1\r\n*\r\n\
             $1\r\nf\r\n$5\r\nhello\r\n",
        ),
        (&[PUBLISH], "*3\r\n$7\r\nPUBLISH\r\n$13\r\nweigh:channel\r\n$5\r\nhello\r\n"),
        (&[("command", "set")], "*3\r\n$3\r\nSET\r\n$12\r\nweigh:string\r\n$5\r\nhello\r\n"),
    ] {
        let mut client = producer(given);
        assert_eq!(client.heard, [Heard::Ready]);
        assert!(client.sent().is_empty(), "nothing precedes the first message");
        assert_eq!(client.send(7, b"hello"), Reply::Awaited);
        assert_eq!(String::from_utf8(client.sent()).unwrap(), expected);
    }
}

/// Nothing, AUTH as servers before 6 know it, AUTH with a user, SELECT, and HELLO of RESP 3.
#[test]
fn greetings_depend_on_version_credentials_and_database() {
    for (url, resp, expected) in [
        ("redis://h", "2", vec![]),
        ("redis://:pw@h", "2", request(&["AUTH", "pw"])),
        (
            "redis://ann:pw@h/3",
            "2",
            [request(&["AUTH", "ann", "pw"]), request(&["SELECT", "3"])].concat(),
        ),
        ("redis://h/0", "3", request(&["HELLO", "3"])),
        ("redis://:pw@h", "3", request(&["HELLO", "3", "AUTH", "default", "pw"])),
    ] {
        let given = [("resp", resp)];
        let trial = trial(&Redis, Pattern::Publish, Topology::FanIn, url, &given).unwrap();
        let make = Redis.dial(&trial).unwrap().make;
        let mut client = Client::new(make(Seat { index: 0, role: Role::Producer }));
        assert_eq!(client.sent(), expected, "{url}");
        assert_eq!(client.heard.is_empty(), !expected.is_empty(), "{url}");
    }
    let wrong = trial(&Redis, Pattern::Publish, Topology::FanIn, "redis://h/x", &[]).unwrap();
    assert!(Redis.dial(&wrong).err().unwrap().to_string().contains("number of a database"));
}

#[test]
fn both_ends_agree_on_every_command_and_version() {
    for resp in ["2", "3"] {
        for command in ["xadd", "publish", "set"] {
            let given = [("resp", resp), ("command", command)];
            let mut shard = Shard::of(&Redis, &[]);
            let mut client = producer(&given);
            shard.accept(0);
            exchange(&mut client, &mut shard, 0, &[]);
            client.send(1, b"a");
            client.send(2, b"b");
            exchange(&mut client, &mut shard, 0, &[3, 5]);
            let ended = |ticket| match command {
                "publish" => Heard::NoSubscriber(ticket),
                _ => Heard::Done(ticket),
            };
            assert_eq!(client.heard, [Heard::Ready, ended(1), ended(2)], "{given:?}");
            assert_eq!(shard.server.report().received, 2);
            let stored: Vec<&[u8]> = shard.desk.stored.iter().map(Vec::as_slice).collect();
            let expected: &[&[u8]] = if command == "publish" { &[] } else { &[b"a", b"b"] };
            assert_eq!(stored, expected, "what is confirmed to be kept is stored");
        }
    }
}

/// The answer to PUBLISH is the number of receivers, which is the only thing that it confirms.
#[test]
fn a_publisher_hears_how_many_receive() {
    let mut shard = Shard::of(&Redis, &[]);
    let mut publisher = deliverer(Role::Producer, 0, &[PUBLISH]);
    shard.accept(9);
    publisher.send(1, b"x");
    exchange(&mut publisher, &mut shard, 9, &[]);
    let mut consumers = Vec::new();
    for (index, resp) in ["2", "3"].into_iter().enumerate() {
        let mut consumer = deliverer(Role::Consumer, index as u32, &[PUBLISH, ("resp", resp)]);
        assert_eq!(consumer.connection.room(), 0);
        shard.accept(index as u32);
        exchange(&mut consumer, &mut shard, index as u32, &[]);
        assert_eq!(consumer.heard, [Heard::Ready]);
        consumers.push(consumer);
    }
    publisher.send(2, b"y");
    publisher.send(3, b"z");
    exchange(&mut publisher, &mut shard, 9, &[]);
    let granted = |receivers| Heard::Granted("receivers", receivers);
    assert_eq!(
        publisher.heard,
        [
            Heard::Ready,
            granted(0),
            Heard::NoSubscriber(1),
            granted(2),
            Heard::Done(2),
            Heard::Done(3)
        ]
    );
    for (index, consumer) in consumers.iter_mut().enumerate() {
        exchange(consumer, &mut shard, index as u32, &[2, 9, 30]);
        assert_eq!(bodies(consumer), [b"y", b"z"]);
    }
    assert_eq!(shard.server.report().forwarded, 4);
}

/// Consumers of a stream in every way of reading: what was there before is not delivered, and what
/// comes is delivered once.
#[test]
fn streams_are_read_from_their_end_on() {
    for given in [
        &[][..],
        &[("resp", "3")],
        &[("read", "plain")],
        &[("read", "plain"), ("resp", "3")],
        &[("ack", "false")],
        &[("count", "1")],
    ] {
        let mut shard = Shard::of(&Redis, &[]);
        (0..3).for_each(|connection| shard.accept(connection));
        assert!(
            asked(&mut shard, 2, &["XADD", "weigh:stream", "*", "data", "old"]).starts_with('$')
        );
        let mut consumer = deliverer(Role::Consumer, 0, given);
        exchange(&mut consumer, &mut shard, 0, &[]);
        assert_eq!(consumer.heard, [Heard::Ready], "{given:?}");
        let mut producer = deliverer(Role::Producer, 0, &[]);
        for (ticket, body) in [b"a", b"b", b"c"].into_iter().enumerate() {
            producer.send(ticket as u32, body);
        }
        exchange(&mut producer, &mut shard, 1, &[]);
        exchange(&mut consumer, &mut shard, 0, &[1, 20, 50]);
        assert_eq!(bodies(&consumer), [b"a", b"b", b"c"], "{given:?}");
        let Heard::Message(topic, _) = &consumer.heard[1] else { panic!("a message") };
        assert_eq!(topic, b"weigh:stream");
        assert_eq!(asked(&mut shard, 2, &["XLEN", "weigh:stream"]), ":4\r\n");
    }
}

fn pending(shard: &mut Shard, group: &str) -> String {
    let answer = asked(shard, 2, &["XPENDING", "weigh:stream", group]);
    answer.lines().nth(1).unwrap_or_default().to_owned()
}

/// Entries that a lost connection had and had not acknowledged come again, and only those.
#[test]
fn a_group_continues_where_a_lost_connection_ended() {
    let mut shard = Shard::of(&Redis, &[]);
    (0..3).for_each(|connection| shard.accept(connection));
    let trial = trial(&Redis, Pattern::Deliver, Topology::FanIn, URL, &[]).unwrap();
    let dial = Redis.dial(&trial).unwrap();
    let seat = Seat { index: 0, role: Role::Consumer };
    let group = format!("weigh-{:04x}-0", trial.tag());
    let mut first = Client::new((dial.make)(seat));
    exchange(&mut first, &mut shard, 0, &[]);
    let mut producer = deliverer(Role::Producer, 0, &[]);
    producer.send(1, b"a");
    exchange(&mut producer, &mut shard, 1, &[]);
    // The entry is on its way, and the connection is lost before its acknowledgement.
    shard.staged(0);
    assert_eq!(pending(&mut shard, &group), ":1");
    shard.close(0);
    producer.send(2, b"b");
    exchange(&mut producer, &mut shard, 1, &[]);
    shard.accept(0);
    let mut second = Client::new((dial.make)(seat));
    exchange(&mut second, &mut shard, 0, &[]);
    assert_eq!(bodies(&second), [b"a", b"b"]);
    assert!(second.heard.contains(&Heard::Ready));
    assert_eq!(pending(&mut shard, &group), ":0");
}

/// Without a group the client remembers the last ID.
#[test]
fn plain_readers_continue_from_their_last_entry() {
    let mut shard = Shard::of(&Redis, &[]);
    (0..2).for_each(|connection| shard.accept(connection));
    let given = [("read", "plain")];
    let trial = trial(&Redis, Pattern::Deliver, Topology::FanIn, URL, &given).unwrap();
    let dial = Redis.dial(&trial).unwrap();
    let seat = Seat { index: 0, role: Role::Consumer };
    let mut first = Client::new((dial.make)(seat));
    exchange(&mut first, &mut shard, 0, &[]);
    drop(first);
    shard.close(0);
    let mut producer = deliverer(Role::Producer, 0, &[]);
    producer.send(1, b"a");
    exchange(&mut producer, &mut shard, 1, &[]);
    shard.accept(0);
    let mut second = Client::new((dial.make)(seat));
    assert_eq!(second.heard, [Heard::Ready]);
    exchange(&mut second, &mut shard, 0, &[]);
    assert_eq!(bodies(&second), [b"a"]);
}

#[test]
fn a_shared_group_gives_each_entry_to_one_consumer() {
    let mut shard = Shard::of(&Redis, &[]);
    (0..3).for_each(|connection| shard.accept(connection));
    let consumer = |index| {
        client(Pattern::Deliver, Topology::Shared, Role::Consumer, index, &[("count", "1")])
    };
    let mut consumers = [consumer(0), consumer(1)];
    for (index, consumer) in consumers.iter_mut().enumerate() {
        exchange(consumer, &mut shard, index as u32, &[]);
        assert_eq!(consumer.heard, [Heard::Ready]);
    }
    let mut producer = deliverer(Role::Producer, 0, &[]);
    for ticket in 0..6 {
        producer.send(ticket, &[b'a' + ticket as u8]);
        exchange(&mut producer, &mut shard, 2, &[]);
        for (index, consumer) in consumers.iter_mut().enumerate() {
            exchange(consumer, &mut shard, index as u32, &[]);
        }
    }
    let mut all: Vec<&[u8]> = consumers.iter().flat_map(bodies).collect();
    all.sort_unstable();
    assert_eq!(all, [b"a", b"b", b"c", b"d", b"e", b"f"]);
    assert!(consumers.iter().all(|consumer| bodies(consumer).len() == 3), "in turn");
}

/// A poll gets what is new, nothing if there is nothing, and waits if it is asked to.
#[test]
fn polls_are_answered_at_once_or_when_their_time_is_over() {
    for given in [&[][..], &[("read", "plain")], &[("resp", "3")]] {
        for wait_ms in [0u64, 500] {
            let mut shard = Shard::of(&Redis, &[]);
            (0..2).for_each(|connection| shard.accept(connection));
            let mut trial = trial(&Redis, Pattern::Poll, Topology::FanIn, URL, given).unwrap();
            trial.load.poll.wait = Some(Nanos::from_millis(wait_ms));
            trial.load.poll.limit = Some(2);
            let seat = Seat { index: 0, role: Role::Consumer };
            let mut consumer = Client::new((Redis.dial(&trial).unwrap().make)(seat));
            exchange(&mut consumer, &mut shard, 0, &[]);
            assert_eq!(consumer.heard, [Heard::Ready]);
            let ask = |consumer: &mut Client| {
                let poll = consumer.connection.poll().expect("it polls");
                poll.ask(Nanos(0), &mut consumer.out);
            };
            ask(&mut consumer);
            exchange(&mut consumer, &mut shard, 0, &[]);
            if wait_ms > 0 {
                assert_eq!(consumer.heard.len(), 1, "{given:?}");
                shard.pass(Nanos::from_millis(499));
                exchange(&mut consumer, &mut shard, 0, &[]);
                assert_eq!(consumer.heard.len(), 1, "{given:?}");
                shard.pass(Nanos::from_millis(501));
                exchange(&mut consumer, &mut shard, 0, &[]);
            }
            assert_eq!(consumer.heard[1..], [Heard::Answered(Ok(()))], "{given:?}");
            let mut producer = deliverer(Role::Producer, 0, &[]);
            (0..3).for_each(|ticket| _ = producer.send(ticket, b"x"));
            exchange(&mut producer, &mut shard, 1, &[]);
            for expected in [2, 3] {
                ask(&mut consumer);
                exchange(&mut consumer, &mut shard, 0, &[]);
                assert_eq!(bodies(&consumer).len(), expected, "{given:?}");
            }
        }
    }
}

#[test]
fn shards_share_keys_channels_and_waiting_clients() {
    let settings = Settings::new("redis", Redis.settings(), None).unwrap();
    let host = Redis.host(&settings).unwrap();
    let (mut left, mut right) = (Shard::new((host.make)(0)), Shard::new((host.make)(1)));
    right.accept(0);
    right.accept(1);
    left.accept(0);
    left.accept(1);
    let mut subscriber = deliverer(Role::Consumer, 0, &[PUBLISH]);
    exchange(&mut subscriber, &mut right, 0, &[]);
    let mut reader = deliverer(Role::Consumer, 0, &[]);
    exchange(&mut reader, &mut right, 1, &[]);
    let mut publisher = deliverer(Role::Producer, 0, &[PUBLISH]);
    publisher.send(1, b"p");
    exchange(&mut publisher, &mut left, 0, &[]);
    assert_eq!(publisher.heard.last(), Some(&Heard::Done(1)));
    let mut adder = deliverer(Role::Producer, 0, &[]);
    adder.send(1, b"s");
    exchange(&mut adder, &mut left, 1, &[]);
    assert_eq!(left.desk.notified, [1]);
    right.server.notified(Nanos(0), &mut right.desk);
    exchange(&mut subscriber, &mut right, 0, &[]);
    exchange(&mut reader, &mut right, 1, &[]);
    assert_eq!((bodies(&subscriber), bodies(&reader)), (vec![&b"p"[..]], vec![&b"s"[..]]));
    // Mail for a connection that is gone reaches no later one.
    publisher.send(2, b"q");
    exchange(&mut publisher, &mut left, 0, &[]);
    right.close(0);
    right.accept(0);
    right.server.notified(Nanos(0), &mut right.desk);
    assert_eq!(right.staged(0), b"");
    let (own, other) = (left.server.report(), right.server.report());
    assert_eq!((own.received, other.received, own.connections, other.connections), (3, 0, 2, 3));
}

#[test]
fn credentials_are_asked_for() {
    let given = [("server_password", "secret")];
    let mut shard = Shard::of(&Redis, &given);
    (0..3).for_each(|connection| shard.accept(connection));
    assert_eq!(asked(&mut shard, 0, &["PING"]), "-NOAUTH Authentication required.\r\n");
    assert!(asked(&mut shard, 0, &["HELLO", "3"]).starts_with("-NOAUTH HELLO must"));
    assert!(asked(&mut shard, 0, &["AUTH", "guessed"]).starts_with("-WRONGPASS"));
    assert_eq!(asked(&mut shard, 0, &["AUTH", "secret"]), "+OK\r\n");
    assert_eq!(asked(&mut shard, 0, &["PING"]), "+PONG\r\n");
    let connect = |url: &str, resp: &str| {
        let given = [("resp", resp)];
        let trial = trial(&Redis, Pattern::Publish, Topology::FanIn, url, &given).unwrap();
        Client::new((Redis.dial(&trial).unwrap().make)(Seat { index: 0, role: Role::Producer }))
    };
    for resp in ["2", "3"] {
        let mut right = connect("redis://:secret@h", resp);
        exchange(&mut right, &mut shard, 1, &[]);
        assert_eq!(right.heard, [Heard::Ready]);
        let mut wrong = connect("redis://:guessed@h", resp);
        shard.feed(2, &wrong.sent()).unwrap();
        let refused = wrong.feed(&shard.staged(2));
        assert!(matches!(refused, Err(Fault::Refused { .. })), "{refused:?}");
    }
    let mut without = connect("redis://h", "2");
    without.send(1, b"x");
    shard.close(2);
    shard.accept(2);
    shard.feed(2, &without.sent()).unwrap();
    assert_eq!(kind(&without.feed(&shard.staged(2))), "refused");
    let settings =
        Settings::new("redis", Redis.settings(), [("server_password", "x"), ("server_user", "")]);
    assert!(Redis.host(&settings.unwrap()).err().unwrap().to_string().contains("server_user"));
}

#[test]
fn settings_are_checked_against_each_other_and_the_load() {
    let invalid = |pattern, topology, given: &[(&str, &str)], size: Option<u64>| {
        let mut trial = trial(&Redis, pattern, topology, URL, given).unwrap();
        trial.load.size = size.map(Bytes);
        trial.load.connections = 2;
        Redis.dial(&trial).err().map(|invalid| invalid.to_string()).unwrap_or_default()
    };
    let (deliver, fan_in) = (Pattern::Deliver, Topology::FanIn);
    assert_eq!(invalid(deliver, fan_in, &[], Some(64)), "");
    assert!(invalid(deliver, fan_in, &[("command", "set")], None).contains("redis.command"));
    assert!(invalid(Pattern::Poll, fan_in, &[PUBLISH], None).contains("command=xadd"));
    assert!(invalid(deliver, Topology::Shared, &[PUBLISH], None).contains("consumer group"));
    assert!(invalid(deliver, Topology::Shared, &[("read", "plain")], None).contains("redis.read"));
    assert!(invalid(deliver, fan_in, &[], Some(8)).contains("load.size"));
    assert!(
        invalid(fan_in_publish(), fan_in, &[("bulk_bytes_max", "64")], Some(65)).contains("64B")
    );
    assert!(invalid(deliver, fan_in, &[("field", "")], None).contains("redis.field"));
    assert!(invalid(Pattern::Transfer, fan_in, &[], None).contains("load.pattern"));
    let settings =
        |command| Settings::new("redis", Redis.settings(), [("command", command)]).unwrap();
    assert_eq!(Redis.guarantee(&settings("publish")), Guarantee::AtMostOnce);
    assert_eq!(Redis.guarantee(&settings("xadd")), Guarantee::AtLeastOnce);
}

fn fan_in_publish() -> Pattern {
    Pattern::Publish
}

#[test]
fn errors_of_commands_are_refusals_and_those_of_the_session_faults() {
    for (answer, expected) in [
        ("-OOM command not allowed when used memory > 'maxmemory'.\r\n", "error OOM"),
        ("-MOVED 3999 127.0.0.1:6381\r\n", "error MOVED"),
        ("-LOADING Redis is loading the dataset in memory\r\n", "error LOADING"),
        ("-READONLY You can't write against a read only replica.\r\n", "error READONLY"),
        ("-SURPRISE\r\n", "an error"),
    ] {
        let mut client = producer(&[]);
        client.send(3, b"x");
        client.feed(answer.as_bytes()).unwrap();
        let Some(Heard::Refused(3, code)) = client.heard.last() else { panic!("{answer}") };
        assert_eq!(Redis.error(*code).name, expected);
        assert!(!Redis.error(*code).advice.is_empty());
    }
    for answer in ["-NOAUTH Authentication required.\r\n", "-ERR max number of clients reached\r\n"]
    {
        let mut client = producer(&[]);
        client.send(3, b"x");
        assert_eq!(kind(&client.feed(answer.as_bytes())), "refused", "{answer}");
    }
    // A server without the version that was asked for.
    let mut client = producer(&[("resp", "3")]);
    let fault = client.feed(b"-NOPROTO unsupported protocol version\r\n").unwrap_err();
    let Fault::Refused { code, .. } = fault else { panic!("{fault}") };
    assert!(Redis.error(code).advice.contains("redis.resp=2"));
}

#[test]
fn a_client_faults_on_what_breaks_the_rules() {
    for (input, fault) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], "other protocol"),
        (b"INFO {\"server_id\":\"x\"}\r\n", "other protocol"),
        (b"\x20\x02\x00\x05", "other protocol"),
        (b"*1\r\n:1\r\n", "malformed"),
        (b"$9999999999\r\n", "malformed"),
        (b":1\r\n", "malformed"),
        (b"$3\r\n1-1\r\n$3\r\n1-2\r\n", "malformed"),
    ] {
        let mut client = producer(&[]);
        client.send(1, b"x");
        assert_eq!(kind(&client.feed(input)), fault, "{}", input.escape_ascii());
    }
    let mut greeted = producer(&[PUBLISH]);
    assert_eq!(kind(&greeted.feed(b"+OK POP3 server ready\r\n")), "other protocol");
    let mut cut = producer(&[]);
    cut.send(1, b"x");
    cut.feed(b"$3\r\n1-").unwrap();
    assert_eq!(kind(&cut.end()), "ended");
    for input in [&b"*2\r\n$4\r\nnews\r\n$1\r\nc\r\n"[..], b"+OK\r\n", b":1\r\n"] {
        let mut subscriber = deliverer(Role::Consumer, 0, &[PUBLISH]);
        assert_ne!(kind(&subscriber.feed(input)), "ok", "{}", input.escape_ascii());
    }
    for input in [
        &b":1\r\n"[..],
        b"*1\r\n*2\r\n$1\r\ns\r\n:1\r\n",
        b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$1\r\nx\r\n*0\r\n",
    ] {
        let mut reader = deliverer(Role::Consumer, 0, &[]);
        reader.feed(b"+OK\r\n").unwrap();
        assert_eq!(kind(&reader.feed(input)), "malformed", "{}", input.escape_ascii());
    }
}

proptest! {
    #[test]
    fn both_ends_agree_however_the_bytes_are_cut(
        mode in 0..4usize,
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let given = [&[][..], &[PUBLISH], &[("command", "set")], &[("resp", "3")]][mode];
        let mut shard = Shard::of(&Redis, &[]);
        (0..2).for_each(|connection| shard.accept(connection));
        let mut client = producer(given);
        exchange(&mut client, &mut shard, 0, &cuts);
        let mut reader = deliverer(Role::Consumer, 0, &[]);
        exchange(&mut reader, &mut shard, 1, &cuts);
        for (ticket, body) in bodies.iter().enumerate() {
            client.send(ticket as u32, body);
        }
        exchange(&mut client, &mut shard, 0, &cuts);
        exchange(&mut reader, &mut shard, 1, &cuts);
        prop_assert_eq!(client.heard.len(), 1 + bodies.len());
        prop_assert_eq!(shard.server.report().received, bodies.len() as u64);
        let is_stream = mode == 0 || mode == 3;
        let sent: Vec<&[u8]> = bodies.iter().filter(|_| is_stream).map(Vec::as_slice).collect();
        prop_assert_eq!(self::bodies(&reader), sent);
    }

    #[test]
    fn arbitrary_bytes_give_the_same_signals_however_cut(
        role in 0..3usize,
        input in prop::collection::vec(
            prop_oneof![Just(b'*'), Just(b'$'), Just(b':'), Just(b'1'), Just(b'\r'),
                Just(b'\n'), any::<u8>()],
            0..60,
        ),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let run = |cuts: &[usize]| {
            let mut client = match role {
                0 => producer(&[]),
                1 => deliverer(Role::Consumer, 0, &[PUBLISH]),
                _ => deliverer(Role::Consumer, 0, &[]),
            };
            if role == 0 {
                client.send(5, b"x");
            }
            let end = client.feed_cut(&input, cuts);
            (client.heard.clone(), kind(&end))
        };
        prop_assert_eq!(run(&[]), run(&cuts));
    }
}
