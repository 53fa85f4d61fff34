//! NATS in memory: what a client writes, to the byte; what it does about each answer; and both ends
//! with each other.

use crate::rig::{Client, Heard, Shard, exchange, kind, trial};
use weigh_model::connection::{Fault, Op, Outbox, Reply, Ticket};
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_model::{Guarantee, Nanos};
use weigh_protocols::nats::Nats;

const URL: &str = "nats://127.0.0.1:4222";
const INFO: &[u8] =
    b"INFO {\"server_id\":\"x\",\"headers\":true,\"max_payload\":100,\"jetstream\":true}\r\n";
const ACCEPTED: &[u8] = b"PONG\r\n";

fn client_of(url: &str, pattern: Pattern, role: Role, given: &[(&str, &str)]) -> Client {
    let topology = Topology::FanIn;
    let trial = trial(&Nats, pattern, topology, url, given).unwrap();
    let dial = Nats.dial(&trial).unwrap_or_else(|invalid| panic!("{invalid}"));
    Client::new((dial.make)(Seat { index: 0, role }))
}

fn client(pattern: Pattern, role: Role, given: &[(&str, &str)]) -> Client {
    client_of(URL, pattern, role, given)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_ready(client: &Client) -> bool {
    client.heard.contains(&Heard::Ready)
}

/// A producer whose session stands.
fn producer(given: &[(&str, &str)]) -> Client {
    let mut client = client(Pattern::Publish, Role::Producer, given);
    client.feed(INFO).unwrap();
    client.sent();
    client.feed(ACCEPTED).unwrap();
    assert!(is_ready(&client));
    client.heard.clear();
    client
}

/// The head of a message is `PUB`, the subject, its size and two line ends.
#[test]
fn a_core_message_has_the_bytes_of_the_documentation() {
    let mut client = client(Pattern::Publish, Role::Producer, &[("subject", "farm.tank")]);
    assert_eq!((client.connection.room(), client.sent()), (0, vec![]), "the server speaks first");
    client.feed(INFO).unwrap();
    let greeting = text(&client.sent());
    assert!(greeting.starts_with("CONNECT {\"verbose\":false,\"pedantic\":false"), "{greeting}");
    assert!(greeting.ends_with("}\r\nPING\r\n"), "{greeting}");
    assert!(greeting.contains("\"no_responders\":true") && !greeting.contains("user"));
    assert!(!is_ready(&client));
    client.feed(ACCEPTED).unwrap();
    assert!(is_ready(&client) && client.heard.contains(&Heard::Granted("max_payload", 100)));
    assert_eq!(client.send(1, b"hello"), Reply::None);
    assert_eq!(text(&client.sent()), "PUB farm.tank 5\r\nhello\r\n");
}

#[test]
fn okay_and_pong_confirm_in_turn() {
    let mut client = client(Pattern::Publish, Role::Producer, &[("confirm", "ok")]);
    client.feed(INFO).unwrap();
    assert!(text(&client.sent()).contains("\"verbose\":true"));
    client.feed(b"+OK\r\nPONG\r\n").unwrap();
    client.heard.clear();
    (1..=3).for_each(|ticket| assert_eq!(client.send(ticket, b"x"), Reply::Awaited));
    assert_eq!(text(&client.sent()), "PUB weigh.1.0 1\r\nx\r\n".repeat(3));
    let refused = b"-ERR 'Permissions Violation for Publish to \"weigh.1.0\"'\r\n";
    client.feed(&[b"+OK\r\n", &refused[..], b"+OK\r\n"].concat()).unwrap();
    assert_eq!(client.heard, [Heard::Done(1), Heard::Refused(2, 3), Heard::Done(3)]);
    assert_eq!(Nats.error(3).name, "-ERR \"Permissions Violation for Publish\"");
    assert!(matches!(client.feed(b"+OK\r\n"), Err(Fault::Malformed(_))), "it answers nothing");

    let mut client = producer(&[("confirm", "flush")]);
    assert_eq!(client.send(7, b"x"), Reply::Awaited);
    assert_eq!(text(&client.sent()), "PUB weigh.1.0 1\r\nx\r\nPING\r\n");
    let ops = [8, 9].map(|ticket| Op { ticket: Ticket(ticket), body: b"y" });
    let mut out = Outbox::default();
    let batch = client.connection.batch().expect("one PING may stand behind several messages");
    assert_eq!(batch.send_together(&ops, Nanos(0), &mut out), Reply::Awaited);
    assert_eq!(text(out.bytes()), "PUB weigh.1.0 1\r\ny\r\nPUB weigh.1.0 1\r\ny\r\nPING\r\n");
    client.out.put(out.bytes());
    client.feed(b"PONG\r\n").unwrap();
    client.feed(&[&refused[..], b"PONG\r\n"].concat()).unwrap();
    assert_eq!(client.heard, [Heard::Done(7), Heard::Refused(8, 3), Heard::Done(9)]);
}

/// The first client makes sure that the stream is there; the others of the trial do not ask again.
#[test]
fn jetstream_confirms_by_number() {
    let given = [("confirm", "jetstream"), ("message_id", "true"), ("storage", "memory")];
    let trial = trial(&Nats, Pattern::Publish, Topology::FanIn, URL, &given).unwrap();
    let dial = Nats.dial(&trial).unwrap();
    let mut client = Client::new((dial.make)(Seat { index: 4, role: Role::Producer }));
    client.feed(INFO).unwrap();
    let greeting = text(&client.sent());
    assert!(greeting.ends_with("}\r\nSUB _INBOX.weigh.1.p4.0.* 1\r\nPING\r\n"), "{greeting}");
    client.feed(ACCEPTED).unwrap();
    let create = text(&client.sent());
    let head = "PUB $JS.API.STREAM.CREATE.weigh-1 _INBOX.weigh.1.p4.0.stream ";
    assert!(create.starts_with(head), "{create}");
    assert!(create.contains("\"subjects\":[\"weigh.1.*\"]"), "{create}");
    assert!(create.contains("\"storage\":\"memory\""), "{create}");
    let answer = |inbox: &str, body: &str| {
        format!("MSG _INBOX.weigh.1.p4.0.{inbox} 1 {}\r\n{body}\r\n", body.len()).into_bytes()
    };
    client.feed(&answer("stream", "{\"type\":\"x\",\"config\":{}}")).unwrap();
    assert!(is_ready(&client));
    client.heard.clear();
    (0..5).for_each(|ticket| assert_eq!(client.send(ticket, b"x"), Reply::Awaited));
    let first = "HPUB weigh.1.4 _INBOX.weigh.1.p4.0.0 40 41\r\nNATS/1.0\r\nNats-Msg-Id: \
                 weigh-1-4-0-0\r\n\r\nx\r\n";
    let sent = text(&client.sent());
    assert!(sent.starts_with(first), "{sent}");
    // In any order, with errors, and one that comes twice.
    client.feed(&answer("3", "{\"stream\":\"weigh-1\", \"seq\":9}")).unwrap();
    client.feed(&answer("0", "{\"stream\":\"weigh-1\", \"seq\":6, \"duplicate\":true}")).unwrap();
    client.feed(&answer("0", "{\"stream\":\"weigh-1\", \"seq\":6}")).unwrap();
    let error = "{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"full\"},\
                 \"stream\":\"weigh-1\",\"seq\":0}";
    client.feed(&answer("1", error)).unwrap();
    let nobody = b"HMSG _INBOX.weigh.1.p4.0.2 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n";
    client.feed(nobody).unwrap();
    let expected =
        [Heard::Done(3), Heard::Done(0), Heard::Refused(1, 10_077), Heard::Refused(2, 503)];
    assert_eq!(client.heard, expected);
    assert!(matches!(client.feed(&answer("4", "no JSON")), Err(Fault::Malformed(_))));

    let mut next = Client::new((dial.make)(Seat { index: 5, role: Role::Producer }));
    next.feed(INFO).unwrap();
    next.sent();
    next.feed(ACCEPTED).unwrap();
    assert!(is_ready(&next), "the stream is known");
}

/// What the server announces is obeyed: no message above `max_payload` leaves.
#[test]
fn what_is_too_large_is_refused_before_it_leaves() {
    let mut client = producer(&[]);
    assert_eq!(client.send(1, &[b'x'; 101]), Reply::Awaited);
    assert_eq!(text(&client.sent()), "PING\r\n");
    client.feed(b"PONG\r\n").unwrap();
    assert_eq!(client.heard, [Heard::Refused(1, 5), Heard::Alive]);
    assert_eq!(Nats.error(5).name, "-ERR \"Maximum Payload Violation\"");
    // A later INFO may raise it, and tell of a shutdown, whose other servers are ignored.
    client.heard.clear();
    let news = b"INFO {\"max_payload\":200,\"ldm\":true,\"connect_urls\":[\"10.0.0.1:4222\"]}\r\n";
    client.feed(news).unwrap();
    let heard = [Heard::Granted("max_payload", 200), Heard::Granted("lame_duck", 1)];
    assert_eq!(client.heard, heard);
    assert_eq!(client.send(2, &[b'x'; 101]), Reply::None);
    let end = client.end().unwrap_err().to_string();
    assert!(end.contains("lame duck mode") && end.contains("URL of another"), "{end}");
}

/// What a server sends, the settings, and how the connection ends: its kind and a part of the text.
type Case = (&'static [u8], &'static [(&'static str, &'static str)], &'static str, &'static str);

#[test]
fn a_server_that_cannot_do_it_is_refused_with_what_to_do() {
    let cases: [Case; 7] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", &[], "other protocol", "starts with \"HTTP/1.1"),
        (b"\x15\x03\x01\x00\x02\x02\x28", &[], "other protocol", "answers in TLS"),
        (b"INFO x\r\n", &[], "other protocol", "INFO"),
        (b"PING\r\n", &[], "other protocol", "other than INFO"),
        (b"INFO {\"tls_required\":true,\"max_payload\":1}\r\n", &[], "refused", "tls+nats://"),
        (
            b"INFO {\"max_payload\":1,\"headers\":true}\r\n",
            &[("confirm", "jetstream")],
            "refused",
            "-js",
        ),
        (
            b"INFO {\"max_payload\":1,\"jetstream\":true}\r\n",
            &[("confirm", "jetstream")],
            "refused",
            "headers",
        ),
    ];
    for (input, given, expected, words) in cases {
        let mut client = client(Pattern::Publish, Role::Producer, given);
        let result = client.feed(input);
        assert_eq!(kind(&result), expected, "{}", input.escape_ascii());
        let said = result.unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    }
    let mut client = client(Pattern::Publish, Role::Producer, &[]);
    client.feed(INFO).unwrap();
    let said = client.feed(b"-ERR 'Authorization Violation'\r\n").unwrap_err().to_string();
    assert!(said.contains("Authorization Violation") && said.contains("nats://TOKEN"), "{said}");
    // One that says nothing speaks something else.
    let mut silent = self::client(Pattern::Publish, Role::Producer, &[]);
    let said = silent.pass(Nanos::from_secs(11)).unwrap_err().to_string();
    assert!(said.contains("no INFO within"), "{said}");
}

#[test]
fn credentials_are_user_and_password_or_a_token() {
    for (url, has, has_not) in [
        ("nats://u:p@127.0.0.1", "\"user\":\"u\",\"pass\":\"p\"", "auth_token"),
        ("nats://s3cret@127.0.0.1", "\"auth_token\":\"s3cret\"", "user"),
    ] {
        let mut client = client_of(url, Pattern::Publish, Role::Producer, &[]);
        client.feed(INFO).unwrap();
        let greeting = text(&client.sent());
        assert!(greeting.contains(has) && !greeting.contains(has_not), "{greeting}");
    }
    for (given, wrong, right) in [
        (&[("server_user", "u"), ("server_password", "p")][..], "nats://u:q@h", "nats://u:p@h"),
        (&[("server_token", "t")], "nats://u@h", "nats://t@h"),
        (&[("server_token", "t")], "nats://h", "nats://t@h"),
    ] {
        let mut shard = Shard::of(&Nats, given);
        shard.accept(0);
        let mut client = client_of(wrong, Pattern::Publish, Role::Producer, &[]);
        client.feed(&shard.staged(0)).unwrap();
        shard.feed(0, &client.sent()).unwrap();
        assert_eq!(text(&shard.staged(0)), "-ERR 'Authorization Violation'\r\n");
        assert_eq!(shard.desk.closed, [0]);
        shard.accept(1);
        let mut client = client_of(right, Pattern::Publish, Role::Producer, &[]);
        exchange(&mut client, &mut shard, 1, &[]);
        assert!(is_ready(&client), "{right}");
    }
}

/// Keep-alive: a PING after the silence, and one that nothing answers ends the connection.
#[test]
fn silence_is_broken_by_a_ping() {
    let mut client = producer(&[("keep_alive", "10s")]);
    client.pass(Nanos::from_secs(10)).unwrap();
    assert_eq!(client.sent(), b"PING\r\n");
    client.feed(b"PONG\r\n").unwrap();
    assert_eq!(client.heard, [Heard::Alive]);
    client.feed(b"PING\r\n").unwrap();
    assert_eq!(client.sent(), b"PONG\r\n");
    client.pass(Nanos::from_secs(20)).unwrap();
    let fault = client.pass(Nanos::from_secs(40)).unwrap_err().to_string();
    assert!(fault.contains("stale"), "{fault}");
}

/// Producer, consumer and server; in any pieces.
fn both(given: &[(&str, &str)], cuts: &[usize]) -> (Client, Client, Shard) {
    let mut shard = Shard::of(&Nats, given);
    let trial = trial(&Nats, Pattern::Deliver, Topology::FanIn, URL, given).unwrap();
    let dial = Nats.dial(&trial).unwrap();
    let mut of = |number, role| {
        shard.accept(number);
        let mut client = Client::new((dial.make)(Seat { index: 0, role }));
        exchange(&mut client, &mut shard, number, cuts);
        assert!(is_ready(&client), "{given:?}");
        client.heard.clear();
        client
    };
    let consumer = of(0, Role::Consumer);
    let producer = of(1, Role::Producer);
    (producer, consumer, shard)
}

fn bodies(client: &Client) -> Vec<String> {
    let body = |heard: &Heard| match heard {
        Heard::Message(_, body) => Some(text(body)),
        _ => None,
    };
    client.heard.iter().filter_map(body).collect()
}

#[test]
fn every_way_of_consuming_delivers() {
    for given in [
        &[("confirm", "none")][..],
        &[("confirm", "flush"), ("consume", "core")],
        &[("confirm", "jetstream")],
        &[("confirm", "jetstream"), ("ack", "none")],
        &[("confirm", "jetstream"), ("consume", "pull"), ("pull_batch", "3")],
        &[("confirm", "jetstream"), ("consume", "core")],
        &[("confirm", "jetstream"), ("max_ack_pending", "1")],
    ] {
        for cuts in [&[][..], &[1, 7, 30, 31, 90]] {
            let (mut producer, mut consumer, mut shard) = both(given, cuts);
            for number in 0..10 {
                producer.send(number, format!("body {number}").as_bytes());
            }
            exchange(&mut producer, &mut shard, 1, cuts);
            exchange(&mut consumer, &mut shard, 0, cuts);
            let expected: Vec<String> = (0..10).map(|number| format!("body {number}")).collect();
            assert_eq!(bodies(&consumer), expected, "{given:?}");
            let done = producer.heard.iter().filter(|heard| matches!(heard, Heard::Done(_)));
            let confirms = given[0].1 != "none";
            assert_eq!(done.count(), if confirms { 10 } else { 0 }, "{given:?}");
            let report = shard.server.report();
            assert_eq!((report.received, report.forwarded), (10, 10), "{given:?}");
            let stored = if given[0].1 == "jetstream" { 10 } else { 0 };
            assert_eq!(shard.desk.stored.len(), stored, "{given:?}");
        }
    }
}

/// What is not acknowledged comes again, and what JetStream has seen it does not keep twice.
#[test]
fn jetstream_delivers_again_and_finds_duplicates() {
    let given = [("confirm", "jetstream"), ("ack_wait", "2s"), ("message_id", "true")];
    let (mut producer, mut consumer, mut shard) = both(&given, &[]);
    producer.send(0, b"once");
    let message = producer.sent();
    shard.feed(1, &message).unwrap();
    shard.feed(1, &message).unwrap();
    let answers = text(&shard.staged(1));
    assert!(answers.contains("\"seq\":1}") && answers.contains("\"duplicate\": true"), "{answers}");
    assert_eq!(shard.desk.stored.len(), 1);
    consumer.feed(&shard.staged(0)).unwrap();
    // The acknowledgement is lost.
    assert!(text(&consumer.sent()).contains("$JS.ACK.weigh-1.weigh-c0.1.1.1."));
    shard.pass(Nanos::from_secs(1));
    assert_eq!(text(&shard.staged(0)), "");
    shard.pass(Nanos::from_secs(3));
    consumer.feed(&shard.staged(0)).unwrap();
    assert_eq!(bodies(&consumer), ["once", "once"]);
    let ack = consumer.sent();
    assert!(text(&ack).contains("$JS.ACK.weigh-1.weigh-c0.2.1.2."), "{}", text(&ack));
    shard.feed(0, &ack).unwrap();
    shard.pass(Nanos::from_secs(10));
    assert_eq!(text(&shard.staged(0)), "");
}

/// A consumer that does not read is disconnected, and the server counts it.
#[test]
fn a_slow_consumer_has_to_go() {
    let given = [("confirm", "none"), ("server_max_pending", "1024")];
    let (mut producer, _consumer, mut shard) = both(&given, &[]);
    (0..40).for_each(|number| assert_eq!(producer.send(number, &[b'x'; 90]), Reply::None));
    shard.feed(1, &producer.sent()).unwrap();
    assert_eq!(shard.desk.closed, [0]);
    let report = shard.server.report();
    assert_eq!(report.disconnects, 1);
    let dropped = report.dropped["slow_consumer"];
    assert!(dropped > 0 && report.forwarded + dropped == 40, "{report:?}");
    assert!(text(&shard.staged(0)).ends_with("-ERR 'Slow Consumer'\r\n"));
}

#[test]
fn the_server_names_what_breaks_the_protocol() {
    for (input, error) in [
        (&b"GET / HTTP/1.1\r\n"[..], "Unknown Protocol Operation"),
        (b"CONNECT {}\r\nPUB a 2000000\r\n", "Maximum Payload Violation"),
        (b"CONNECT {}\r\nPUB a x\r\n", "Parser Error"),
        (&[&b"CONNECT {}\r\nPUB "[..], &[b'a'; 4096]].concat(), "Maximum Control Line Exceeded"),
    ] {
        let mut shard = Shard::of(&Nats, &[]);
        shard.accept(0);
        shard.staged(0);
        assert!(shard.feed(0, input).is_err(), "{}", input.escape_ascii());
        let said = text(&shard.staged(0));
        assert!(said.ends_with(&format!("-ERR '{error}'\r\n")), "{said}");
    }
    let mut shard = Shard::of(&Nats, &[]);
    let said = text(&shard.answer(b"CONNECT {\"verbose\":true}\r\nSUB a..b 1\r\nPING\r\n"));
    assert!(said.ends_with("+OK\r\n-ERR 'Invalid Subject'\r\nPONG\r\n"), "{said}");
    // Silence before CONNECT, and unanswered PINGs.
    let mut shard = Shard::of(&Nats, &[("server_ping_interval", "10s")]);
    shard.accept(0);
    shard.accept(1);
    shard.feed(1, b"CONNECT {\"verbose\":false}\r\n").unwrap();
    shard.pass(Nanos::from_secs(6));
    assert!(text(&shard.staged(0)).ends_with("-ERR 'Authentication Timeout'\r\n"));
    shard.staged(1);
    shard.pass(Nanos::from_secs(26));
    assert_eq!(text(&shard.staged(1)), "PING\r\nPING\r\n");
    shard.pass(Nanos::from_secs(36));
    assert_eq!(text(&shard.staged(1)), "-ERR 'Stale Connection'\r\n");
    assert_eq!(shard.desk.closed, [0, 1]);
}

/// Queue groups share; others get everything; UNSUB with a number ends after it.
#[test]
fn subscriptions_share_and_end() {
    let mut shard = Shard::of(&Nats, &[]);
    for connection in 0..4 {
        shard.accept(connection);
        shard.feed(connection, b"CONNECT {\"verbose\":false,\"headers\":true}\r\n").unwrap();
    }
    shard.feed(0, b"SUB a.* g 7\r\n").unwrap();
    shard.feed(1, b"SUB a.> g 7\r\n").unwrap();
    shard.feed(2, b"SUB a.b 9\r\nUNSUB 9 2\r\n").unwrap();
    (0..4).for_each(|connection| drop(shard.staged(connection)));
    shard.feed(3, &b"PUB a.b 1\r\nx\r\n".repeat(4)).unwrap();
    let of = |shard: &mut Shard, connection| text(&shard.staged(connection)).matches("MSG").count();
    assert_eq!([0, 1, 2].map(|connection| of(&mut shard, connection)), [2, 2, 2]);
    assert_eq!(shard.server.report().forwarded, 6);
    shard.feed(0, b"UNSUB 7\r\n").unwrap();
    shard.close(1);
    shard.feed(3, b"PUB a.b 1\r\nx\r\n").unwrap();
    assert_eq!(shard.desk.staged.len(), 0, "there is no subscriber any more");
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let fan_in = Topology::FanIn;
    for (pattern, topology, given, words) in [
        (Pattern::Transfer, fan_in, &[][..], "does not support the pattern"),
        (Pattern::Poll, fan_in, &[("consume", "push")], "only a pull consumer"),
        (Pattern::Request, fan_in, &[("confirm", "ok")], "answered by its responder"),
        (Pattern::Deliver, Topology::Pairs, &[("subject", "a.b")], "put {client} into it"),
        (Pattern::Publish, fan_in, &[("message_id", "true")], "only JetStream finds duplicates"),
        (Pattern::Publish, fan_in, &[("subject", "a..b")], "cannot be published to"),
        (Pattern::Publish, fan_in, &[("stream", "a.b")], "cannot name a stream"),
        (Pattern::Publish, fan_in, &[("stream", "s-{client}")], "one stream"),
        (Pattern::Deliver, fan_in, &[("queue", "g")], "names a group"),
        (Pattern::Deliver, Topology::Shared, &[("queue", "a b")], "cannot name a queue group"),
    ] {
        let trial = trial(&Nats, pattern, topology, URL, given).unwrap();
        let said = match Nats.dial(&trial) {
            Ok(_) => panic!("{given:?}"),
            Err(invalid) => invalid.to_string(),
        };
        assert!(said.contains(words), "{said}");
    }
    let settings = trial(&Nats, Pattern::Publish, fan_in, URL, &[]).unwrap().settings;
    assert_eq!(Nats.guarantee(&settings), Guarantee::AtMostOnce);
}
