//! AMQP 0-9-1, both ends in memory: set-up, confirmations, returns, prefetch, acknowledgements,
//! queues, and what breaks the rules.

mod rig;

use proptest::prelude::*;
use rig::{Client, Heard, Shard, exchange, trial};
use weigh_model::Nanos;
use weigh_model::connection::{Fault, Reply};
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_protocols::amqp::Amqp;
use weigh_protocols::amqp::codec::{
    Header, Long, Method, PROTOCOL_HEADER, Short, Table, TableWriter, bits, put_body, read_frame,
};

const URL: &str = "amqp://127.0.0.1:5672";

fn seated(
    pattern: Pattern,
    topology: Topology,
    role: Role,
    index: u32,
    given: &[(&str, &str)],
) -> Client {
    let mut trial = trial(&Amqp, pattern, topology, URL, given).unwrap();
    trial.load.connections = 3;
    trial.load.subscribers = if pattern == Pattern::Publish { 0 } else { 3 };
    Client::new((Amqp.dial(&trial).unwrap().make)(Seat { index, role }))
}

fn producer(given: &[(&str, &str)]) -> Client {
    seated(Pattern::Deliver, Topology::FanIn, Role::Producer, 0, given)
}

fn consumer(index: u32, given: &[(&str, &str)]) -> Client {
    seated(Pattern::Deliver, Topology::FanIn, Role::Consumer, index, given)
}

/// A server with these clients on the connections 0, 1 ..., all ready.
fn world(given: &[(&str, &str)], clients: &mut [&mut Client]) -> Shard {
    let mut shard = Shard::of(&Amqp, given);
    for (number, client) in clients.iter_mut().enumerate() {
        shard.accept(number as u32);
        exchange(client, &mut shard, number as u32, &[]);
        assert_eq!(client.heard.last(), Some(&Heard::Ready), "{:?}", client.heard);
        client.heard.clear();
    }
    shard
}

/// Methods among the frames of `bytes`, by name.
fn names(bytes: &[u8]) -> Vec<&'static str> {
    let mut rest = bytes.strip_prefix(&PROTOCOL_HEADER).unwrap_or(bytes);
    let mut names = Vec::new();
    while let Some((frame, size)) = read_frame(rest, 1 << 20).unwrap() {
        if frame.payload.len() >= 4
            && let Ok(method) = Method::read(frame.payload)
        {
            names.push(method.name());
        }
        rest = &rest[size..];
    }
    names
}

fn put(methods: &[(u16, Method<'_>)]) -> Vec<u8> {
    let mut out = Vec::new();
    methods.iter().for_each(|(channel, method)| method.put(*channel, &mut out));
    out
}

/// What a client of the test sends until its channel 1 is open.
fn opened(shard: &mut Shard, connection: u32) {
    shard.accept(connection);
    let mut bytes = PROTOCOL_HEADER.to_vec();
    let start_ok = Method::StartOk {
        client_properties: Table::EMPTY,
        mechanism: Short("PLAIN"),
        response: Long(b"\0ann\0secret"),
        locale: Short("en_US"),
    };
    let tune_ok = Method::TuneOk { channel_max: 0, frame_max: 0, heartbeat_s: 0 };
    let open = Method::Open { virtual_host: Short("/"), reserved_1: Short(""), reserved_2: 0 };
    let channel = Method::ChannelOpen { reserved_1: Short("") };
    bytes.extend(put(&[(0, start_ok), (0, tune_ok), (0, open), (1, channel)]));
    shard.feed(connection, &bytes).unwrap();
    let said = shard.staged(connection);
    assert_eq!(names(&said).last(), Some(&"channel.open-ok"), "{:?}", names(&said));
}

fn declared(queue: &str, bits: u8, arguments: Table<'_>, shard: &mut Shard) -> Vec<&'static str> {
    let declare = Method::QueueDeclare { reserved_1: 0, queue: Short(queue), bits, arguments };
    shard.feed(0, &put(&[(1, declare)])).unwrap();
    names(&shard.staged(0))
}

fn message(queue: &str, body: &[u8]) -> Vec<u8> {
    let (exchange, routing_key) = (Short(""), Short(queue));
    let mut bytes = put(&[(1, Method::Publish { reserved_1: 0, exchange, routing_key, bits: 0 })]);
    Header { body_bytes: body.len() as u64, raw: &[0, 0] }.put(1, &mut bytes);
    put_body(body, 1, 131_072, &mut bytes);
    bytes
}

/// Every synchronous method waits for its answer, in the order of the specification.
#[test]
fn sessions_are_set_up_step_by_step() {
    let steps = |client: &mut Client, shard: &mut Shard| {
        let mut steps = Vec::new();
        loop {
            let there = client.sent();
            if there.is_empty() {
                return steps;
            }
            steps.extend(names(&there));
            shard.feed(0, &there).unwrap();
            let back = shard.staged(0);
            client.feed(&back).unwrap();
        }
    };
    let greeting = ["connection.start-ok", "connection.tune-ok", "connection.open", "channel.open"];
    // One server, in which the queue of an earlier consumer stays.
    let mut shard = Shard::of(&Amqp, &[]);
    let (none, named): (&[_], &[_]) = (&[], &[("exchange", "x"), ("prefetch", "0")]);
    for (role, given, rest) in [
        (Role::Producer, none, &["confirm.select"][..]),
        (Role::Producer, &[("confirms", "false")][..], &[]),
        (Role::Consumer, none, &["queue.declare", "queue.bind", "basic.qos", "basic.consume"]),
        (
            Role::Consumer,
            named,
            &["exchange.declare", "queue.declare", "queue.bind", "basic.consume"],
        ),
        (Role::Consumer, &[("acks", "auto"), ("declare", "false")], &["basic.consume"]),
    ] {
        shard.accept(0);
        let mut client = seated(Pattern::Deliver, Topology::FanIn, role, 0, given);
        let said = steps(&mut client, &mut shard);
        let expected = [&greeting[..], rest].concat();
        assert_eq!(said, expected, "{role:?} {given:?}");
        shard.close(0);
    }
}

/// README: a message of 100 bytes has 43 + 23 + 8 bytes before and after its body, its confirmation
/// 21; a delivery 65 + 23 + 8 and its acknowledgement 21.
#[test]
fn messages_have_the_size_of_the_specification() {
    let given = [("exchange", "x"), ("routing_key", "key"), ("queue", "q")];
    let (mut one, mut all) = (consumer(0, &given), producer(&given));
    let mut shard = world(&given, &mut [&mut one, &mut all]);
    assert_eq!(all.send(7, &[b'x'; 100]), Reply::Awaited);
    let sent = all.sent();
    let publish = 7 + 4 + 2 + 2 + 4 + 1 + 1;
    let header = 7 + 12 + 2 + 1 + 1;
    assert_eq!(sent.len(), publish + header + 100 + 8);
    shard.feed(1, &sent).unwrap();
    let confirmation = shard.staged(1);
    assert_eq!(confirmation.len(), 7 + 4 + 8 + 1 + 1);
    all.feed(&confirmation).unwrap();
    assert_eq!(all.heard, [Heard::Done(7)]);
    let delivery = shard.staged(0);
    let deliver = 7 + 4 + 6 + 8 + 1 + 2 + 4 + 1;
    assert_eq!(delivery.len(), deliver + header + 100 + 8);
    one.feed(&delivery).unwrap();
    assert_eq!(one.heard, [Heard::Message(b"key".to_vec(), vec![b'x'; 100])]);
    assert_eq!(one.sent().len(), 21);
}

/// A message that no queue takes comes back before it is confirmed, and is counted so.
#[test]
fn a_message_without_a_queue_has_no_subscriber() {
    let mut all = producer(&[]);
    let mut shard = world(&[], &mut [&mut all]);
    all.send(1, b"first");
    exchange(&mut all, &mut shard, 0, &[]);
    assert_eq!(all.heard, [Heard::NoSubscriber(1)]);
    let mut plain = producer(&[("mandatory", "false")]);
    shard.accept(1);
    exchange(&mut plain, &mut shard, 1, &[]);
    plain.heard.clear();
    plain.send(1, b"second");
    exchange(&mut plain, &mut shard, 1, &[]);
    assert_eq!(plain.heard, [Heard::Done(1)], "the trap: it is confirmed and gone");
    assert_eq!(shard.server.report().dropped["unroutable"], 1);
}

/// Two messages that come back are told apart by their bodies, whatever is confirmed with them.
#[test]
fn a_return_belongs_to_its_message() {
    let mut all = producer(&[]);
    let _shard = world(&[], &mut [&mut all]);
    for (ticket, body) in [(1, b"one"), (2, b"two"), (3, b"six")] {
        all.send(ticket, body);
    }
    let returned = Method::Return {
        reply_code: 312,
        reply_text: Short("NO_ROUTE"),
        exchange: Short("x"),
        routing_key: Short("k"),
    };
    let mut bytes = put(&[(1, returned)]);
    Header { body_bytes: 3, raw: &[0, 0] }.put(1, &mut bytes);
    put_body(b"two", 1, 4096, &mut bytes);
    bytes.extend(put(&[(1, Method::Ack { delivery_tag: 3, bits: bits::MULTIPLE })]));
    all.feed(&bytes).unwrap();
    assert_eq!(all.heard, [Heard::Done(1), Heard::NoSubscriber(2), Heard::Done(3)]);
}

#[test]
fn a_full_queue_refuses_or_drops() {
    let full = |overflow| {
        let given = [("max_length", "2"), ("overflow", overflow)];
        let mut all = seated(Pattern::Publish, Topology::FanIn, Role::Producer, 0, &given);
        let mut shard = world(&given, &mut [&mut all]);
        (1..=3).for_each(|ticket| _ = all.send(ticket, b"x"));
        exchange(&mut all, &mut shard, 0, &[]);
        (all.heard.clone(), shard.server.report())
    };
    let (heard, report) = full("reject-publish");
    assert_eq!(heard, [Heard::Done(1), Heard::Done(2), Heard::Refused(3, 0)]);
    assert_eq!((report.queued, report.dropped.len()), (2, 0));
    assert_eq!(Amqp.error(0).name, "basic.nack");
    let (heard, report) = full("drop-head");
    assert_eq!(heard, [Heard::Done(1), Heard::Done(2), Heard::Done(3)]);
    assert_eq!((report.queued, report.dropped["queue_full"]), (2, 1));
}

/// Prefetch limits what is unacknowledged; `ack_every` acknowledges several at once.
#[test]
fn prefetch_and_acknowledgements_pace_deliveries() {
    let given = [("prefetch", "3"), ("ack_every", "2")];
    let (mut one, mut all) = (consumer(0, &given), producer(&given));
    let mut shard = world(&given, &mut [&mut one, &mut all]);
    (0..5).for_each(|ticket| _ = all.send(ticket, b"x"));
    shard.feed(1, &all.sent()).unwrap();
    let first = shard.staged(0);
    assert_eq!(names(&first), ["basic.deliver"; 3]);
    one.feed(&first).unwrap();
    let acks = one.sent();
    assert_eq!(acks, put(&[(1, Method::Ack { delivery_tag: 2, bits: bits::MULTIPLE })]));
    shard.feed(0, &acks).unwrap();
    let second = shard.staged(0);
    assert_eq!(names(&second), ["basic.deliver"; 2]);
    one.feed(&second).unwrap();
    assert_eq!(one.sent(), put(&[(1, Method::Ack { delivery_tag: 4, bits: bits::MULTIPLE })]));
    assert_eq!(one.heard.len(), 5);
}

/// What a consumer has not acknowledged goes to the next one, marked as redelivered.
#[test]
fn what_is_not_acknowledged_is_delivered_again() {
    let given = [("prefetch", "2")];
    let seat = |index| seated(Pattern::Deliver, Topology::Shared, Role::Consumer, index, &given);
    let (mut one, mut other) = (seat(0), seat(1));
    let mut all = seated(Pattern::Deliver, Topology::Shared, Role::Producer, 0, &given);
    let mut shard = world(&given, &mut [&mut one, &mut other, &mut all]);
    (0..6).for_each(|ticket| _ = all.send(ticket, &[b'0' + ticket as u8]));
    shard.feed(2, &all.sent()).unwrap();
    assert_eq!(names(&shard.staged(0)).len(), 2);
    other.feed(&shard.staged(1)).unwrap();
    shard.close(0);
    exchange(&mut other, &mut shard, 1, &[]);
    let bodies: Vec<u8> = other
        .heard
        .iter()
        .filter_map(|heard| match heard {
            Heard::Message(_, body) => body.first().copied(),
            _ => None,
        })
        .collect();
    assert_eq!(bodies.len(), 6, "{bodies:?}");
    assert_eq!(shard.server.report().forwarded, 8);
    assert_eq!((shard.server.report().queued, shard.server.report().queued_bytes), (0, 0));
}

/// Each topology has its copies: all to each consumer, or each to one.
#[test]
fn topologies_have_their_queues() {
    for (topology, given, copies) in [
        (Topology::FanIn, &[][..], [1, 1]),
        (Topology::FanOut, &[("exchange_type", "topic")], [1, 1]),
        (Topology::Pairs, &[], [0, 1]),
        (Topology::Shared, &[("queue_type", "quorum")], [0, 1]),
        (Topology::Shared, &[("exchange", "x"), ("exchange_type", "topic")], [0, 1]),
    ] {
        let seat = |role, index| seated(Pattern::Deliver, topology, role, index, given);
        let (mut one, mut other) = (seat(Role::Consumer, 0), seat(Role::Consumer, 1));
        let mut all = seat(Role::Producer, 1);
        let mut shard = world(given, &mut [&mut one, &mut other, &mut all]);
        all.send(0, b"x");
        exchange(&mut all, &mut shard, 2, &[]);
        assert_eq!(all.heard, [Heard::Done(0)], "{topology:?}");
        for (number, client) in [(0, &mut one), (1, &mut other)] {
            exchange(client, &mut shard, number, &[]);
        }
        let mut got = [one.heard.len(), other.heard.len()];
        if topology == Topology::Shared {
            got.sort_unstable();
        }
        assert_eq!(got, copies, "{topology:?} {given:?}");
    }
}

/// `basic.get` until the queue is empty or the limit is reached.
#[test]
fn polling_takes_what_waits() {
    let given = [("ack_every", "2")];
    let mut one = seated(Pattern::Poll, Topology::FanIn, Role::Consumer, 0, &given);
    let mut all = seated(Pattern::Poll, Topology::FanIn, Role::Producer, 0, &given);
    let mut shard = world(&given, &mut [&mut one, &mut all]);
    (0..3).for_each(|ticket| _ = all.send(ticket, b"x"));
    exchange(&mut all, &mut shard, 1, &[]);
    one.connection.poll().unwrap().ask(Nanos(0), &mut one.out);
    exchange(&mut one, &mut shard, 0, &[]);
    assert_eq!((one.heard.len(), one.heard.last()), (4, Some(&Heard::Answered(Ok(())))));
    assert_eq!(shard.server.report().queued_bytes, 0, "all are acknowledged");
    one.heard.clear();
    one.connection.poll().unwrap().ask(Nanos(0), &mut one.out);
    exchange(&mut one, &mut shard, 0, &[]);
    assert_eq!(one.heard, [Heard::Answered(Ok(()))]);
}

/// Publishers wait while messages fill the memory, and go on when a tenth is free.
#[test]
fn publishers_are_blocked_while_memory_is_full() {
    let given = [("prefetch", "1"), ("broker_memory", "2000")];
    let (mut one, mut all) = (consumer(0, &given), producer(&given));
    let mut shard = world(&given, &mut [&mut one, &mut all]);
    all.send(0, &[b'x'; 1200]);
    all.send(1, &[b'x'; 1200]);
    shard.feed(1, &all.sent()).unwrap();
    let said = shard.staged(1);
    assert_eq!(names(&said), ["basic.ack", "basic.ack", "connection.blocked"]);
    all.feed(&said).unwrap();
    assert!(all.heard.contains(&Heard::Granted("connection_blocked", 1)));
    exchange(&mut one, &mut shard, 0, &[]);
    assert_eq!(names(&shard.staged(1)), ["connection.unblocked"]);
}

#[test]
fn only_confirmed_persistent_messages_are_stored() {
    for (given, stored) in [
        (&[][..], 1),
        (&[("delivery_mode", "transient")], 0),
        (&[("delivery_mode", "transient"), ("queue_type", "quorum")], 1),
        (&[("durable", "false")], 0),
        (&[("confirms", "false")], 0),
    ] {
        let mut all = seated(Pattern::Publish, Topology::FanIn, Role::Producer, 0, given);
        let mut shard = world(given, &mut [&mut all]);
        all.send(0, b"x");
        exchange(&mut all, &mut shard, 0, &[]);
        assert_eq!(shard.desk.stored.len(), stored, "{given:?}");
    }
}

/// Heartbeats leave after half of the timeout, and two of it without any byte end the session.
#[test]
fn silence_ends_a_session_and_heartbeats_prevent_it() {
    let mut all = producer(&[("heartbeat", "10s")]);
    let _shard = world(&[], &mut [&mut all]);
    all.pass(Nanos::from_secs(6)).unwrap();
    assert_eq!(all.sent(), b"\x08\0\0\0\0\0\0\xce");
    all.feed(b"\x08\0\0\0\0\0\0\xce").unwrap();
    let fault = all.pass(Nanos::from_secs(40)).unwrap_err();
    assert!(matches!(&fault, Fault::Ended(why) if why.contains("silent for 20 s")), "{fault}");
}

#[test]
fn a_client_names_what_a_server_refuses() {
    let fault = |greeting: &[u8]| {
        let mut client = producer(&[]);
        client.feed(greeting).unwrap_err().to_string()
    };
    assert!(fault(b"HTTP/1.1 400 Bad Request\r\n").contains("starts with \"HTTP/1.1 400"));
    assert!(fault(b"AMQP\0\x01\0\0").contains("version 1-0-0; Weighbridge speaks 0-9-1"));
    assert!(fault(b"AMQP\x03\x01\0\0").contains("protocol 3, version 1-0-0"));
    assert!(fault(b"\x15\x03\x01\0\x02\x02\x46").contains("answers in TLS"));
    let start = |mechanisms| Method::Start {
        major: 0,
        minor: 9,
        server_properties: Table::EMPTY,
        mechanisms: Long(mechanisms),
        locales: Long(b"en_US"),
    };
    let said = fault(&put(&[(0, start(b"EXTERNAL"))]));
    assert!(said.contains("it offers EXTERNAL"), "{said}");
    let close = |reply_code, text| Method::ConnectionClose {
        reply_code,
        reply_text: Short(text),
        class_id: 10,
        method_id: 40,
    };
    let said = fault(&put(&[(0, start(b"PLAIN")), (0, close(530, "NOT_ALLOWED - vhost x"))]));
    assert!(said.contains("NOT_ALLOWED - vhost x, after connection.open (530)"), "{said}");
    let mut client = producer(&[]);
    let ended = client.end().unwrap_err().to_string();
    assert!(ended.contains("instead of answering the protocol header"), "{ended}");
}

/// A channel that the server closes with a reason ends the session, and the reason is passed on.
#[test]
fn a_closed_channel_says_why() {
    let given = [("exchange", "missing"), ("declare", "false")];
    let mut all = producer(&given);
    let mut shard = world(&given, &mut [&mut all]);
    all.send(0, b"x");
    shard.feed(0, &all.sent()).unwrap();
    let fault = all.feed(&shard.staged(0)).unwrap_err();
    let text = "NOT_FOUND - no exchange 'missing' in vhost '/' (404, after basic.publish)";
    assert_eq!(fault, Fault::Ended(text.to_owned()));
}

#[test]
fn a_server_refuses_wrong_credentials_and_hosts() {
    let login = [("broker_user", "ann"), ("broker_password", "secret")];
    let fault = |url: &str, server: &[(&str, &str)]| {
        let trial = trial(&Amqp, Pattern::Publish, Topology::FanIn, url, &[]).unwrap();
        let seat = Seat { index: 0, role: Role::Producer };
        let mut client = Client::new((Amqp.dial(&trial).unwrap().make)(seat));
        let mut shard = Shard::of(&Amqp, server);
        shard.accept(0);
        loop {
            let there = client.sent();
            shard.feed(0, &there).unwrap();
            match client.feed(&shard.staged(0)) {
                Ok(()) if client.heard.last() == Some(&Heard::Ready) => return String::new(),
                Ok(()) => {}
                Err(fault) => return fault.to_string(),
            }
        }
    };
    assert_eq!(fault("amqp://ann:secret@h", &login), "");
    assert!(fault("amqp://ann:wrong@h", &login).contains("ACCESS_REFUSED"));
    assert!(fault("amqp://h", &login).contains("after connection.start-ok (403)"));
    assert_eq!(fault("amqp://h/a%2Fb", &[("vhost", "a/b")]), "");
    assert!(fault("amqp://h/other", &[]).contains("vhost other not found"));
}

/// Errors of a channel leave the connection alone; errors of a connection end it.
#[test]
fn a_server_closes_what_breaks_its_rules() {
    let mut shard = Shard::of(&Amqp, &[]);
    opened(&mut shard, 0);
    let mut quorum = TableWriter::default();
    quorum.text("x-queue-type", "quorum");
    let durable = bits::DURABLE;
    assert_eq!(declared("q", durable, Table::EMPTY, &mut shard), ["queue.declare-ok"]);
    let again = Method::ChannelOpen { reserved_1: Short("") };
    let reopen = |shard: &mut Shard| {
        shard.feed(0, &put(&[(1, Method::ChannelCloseOk {}), (1, again)])).unwrap();
        shard.staged(0);
    };
    for (queue, bits, arguments) in [
        ("q", 0, Table::EMPTY),
        ("q", durable, quorum.as_table()),
        ("new", 0, quorum.as_table()),
        ("amq.mine", 0, Table::EMPTY),
        ("absent", bits::PASSIVE, Table::EMPTY),
    ] {
        assert_eq!(declared(queue, bits, arguments, &mut shard), ["channel.close"], "{queue}");
        reopen(&mut shard);
    }
    let mut unknown = TableWriter::default();
    unknown.number("x-message-ttl", 5);
    assert_eq!(declared("ttl", 0, unknown.as_table(), &mut shard), ["channel.close"]);
    reopen(&mut shard);
    let ack = Method::Ack { delivery_tag: 9, bits: 0 };
    shard.feed(0, &put(&[(1, ack)])).unwrap();
    assert_eq!(names(&shard.staged(0)), ["channel.close"], "an unknown tag");
    for bad in [
        put(&[(9, ack)]),
        put(&[(1, Method::TxSelect {})]),
        put(&[(0, Method::OpenOk { reserved_1: Short("") })]),
        b"\x03\0\x01\0\0\0\x01x\xce".to_vec(),
        b"\x09\0\x01\0\0\0\x01x\xce".to_vec(),
        b"\x01\0\x01\x7f\0\0\0".to_vec(),
    ] {
        let mut shard = Shard::of(&Amqp, &[]);
        opened(&mut shard, 0);
        shard.feed(0, &bad).unwrap();
        assert_eq!(names(&shard.staged(0)), ["connection.close"], "{bad:?}");
    }
    let mut shard = Shard::of(&Amqp, &[]);
    shard.accept(0);
    assert!(shard.feed(0, b"GET / HTTP/1.1\r\n").is_err());
    assert_eq!(shard.staged(0), PROTOCOL_HEADER, "section 4.2.2");
}

#[test]
fn large_messages_come_in_frames_and_too_large_ones_are_refused() {
    let given = [("frame_max", "4096"), ("broker_message_bytes_max", "20000")];
    let (mut one, mut all) = (consumer(0, &given), producer(&given));
    let mut shard = world(&given, &mut [&mut one, &mut all]);
    let body: Vec<u8> = (0..20_000u32).map(|number| number as u8).collect();
    all.send(0, &body);
    exchange(&mut all, &mut shard, 1, &[4000, 7000]);
    exchange(&mut one, &mut shard, 0, &[100, 5000]);
    assert_eq!(one.heard, [Heard::Message(b"weigh.1".to_vec(), body)]);
    all.send(1, &[0; 20_001]);
    shard.feed(1, &all.sent()).unwrap();
    let fault = all.feed(&shard.staged(1)).unwrap_err().to_string();
    assert!(fault.contains("CONTENT_TOO_LARGE") && fault.contains("(311,"), "{fault}");
}

#[test]
fn queues_and_consumers_of_other_clients_are_left_alone() {
    let mut shard = Shard::of(&Amqp, &[]);
    opened(&mut shard, 0);
    opened(&mut shard, 1);
    assert_eq!(declared("mine", bits::EXCLUSIVE, Table::EMPTY, &mut shard), ["queue.declare-ok"]);
    let get = Method::Get { reserved_1: 0, queue: Short("mine"), bits: 0 };
    shard.feed(1, &put(&[(1, get)])).unwrap();
    assert_eq!(names(&shard.staged(1)), ["channel.close"], "RESOURCE_LOCKED");
    // Messages of a deleted queue are gone, and an exclusive queue goes with its connection.
    shard.feed(0, &message("mine", b"x")).unwrap();
    assert_eq!(shard.server.report().queued, 1);
    shard.close(0);
    assert_eq!((shard.server.report().queued, shard.server.report().queued_bytes), (0, 0));
}

/// Queues that are declared, bound, emptied and deleted, as any client may.
#[test]
fn methods_of_queues_and_exchanges_are_answered() {
    let mut shard = Shard::of(&Amqp, &[]);
    opened(&mut shard, 0);
    let (exchange, queue, key) = (Short("e"), Short("q"), Short("k"));
    let (reserved_1, arguments) = (0, Table::EMPTY);
    let consumer_tag = Short("t");
    for (method, answer) in [
        (
            Method::ExchangeDeclare {
                reserved_1,
                exchange,
                kind: Short("fanout"),
                bits: 0,
                arguments,
            },
            "exchange.declare-ok",
        ),
        (Method::QueueDeclare { reserved_1, queue, bits: 0, arguments }, "queue.declare-ok"),
        (
            Method::QueueBind { reserved_1, queue, exchange, routing_key: key, bits: 0, arguments },
            "queue.bind-ok",
        ),
        (
            Method::Consume { reserved_1, queue: Short(""), consumer_tag, bits: 0, arguments },
            "basic.consume-ok",
        ),
        (Method::Cancel { consumer_tag, bits: 0 }, "basic.cancel-ok"),
        (Method::QueuePurge { reserved_1, queue, bits: 0 }, "queue.purge-ok"),
        (
            Method::QueueUnbind { reserved_1, queue, exchange, routing_key: key, arguments },
            "queue.unbind-ok",
        ),
        (Method::QueueDelete { reserved_1, queue, bits: 0 }, "queue.delete-ok"),
        (Method::ExchangeDelete { reserved_1, exchange, bits: 0 }, "exchange.delete-ok"),
        (Method::Flow { active: 1 }, "channel.flow-ok"),
        (Method::ConfirmSelect { bits: 0 }, "confirm.select-ok"),
    ] {
        shard.feed(0, &put(&[(1, method)])).unwrap();
        assert_eq!(names(&shard.staged(0)), [answer], "{}", method.name());
    }
    // A refused delivery goes back to its queue, or is dropped.
    declared("q", 0, Table::EMPTY, &mut shard);
    shard.feed(0, &message("q", b"x")).unwrap();
    shard.staged(0);
    let get = Method::Get { reserved_1, queue, bits: 0 };
    for (tag, bits, queued) in [(1, bits::REQUEUE, 1), (2, 0, 0)] {
        let reject = Method::Reject { delivery_tag: tag, bits };
        shard.feed(0, &put(&[(1, get), (1, reject)])).unwrap();
        assert_eq!(names(&shard.staged(0)), ["basic.get-ok"]);
        assert_eq!(shard.server.report().queued, queued);
    }
    assert_eq!(shard.server.report().dropped["rejected"], 1);
}

#[test]
fn settings_are_checked_against_each_other_and_the_load() {
    let invalid = |pattern, given: &[(&str, &str)]| {
        let mut trial = trial(&Amqp, pattern, Topology::FanIn, URL, given).unwrap();
        trial.load.duration = Some(Nanos::from_secs(60));
        Amqp.dial(&trial).err().map(|invalid| invalid.to_string()).unwrap_or_default()
    };
    assert_eq!(invalid(Pattern::Publish, &[]), "");
    for (pattern, given, place) in [
        (Pattern::Request, &[][..], "load.pattern"),
        (Pattern::Deliver, &[("ack_every", "200")], "amqp.ack_every"),
        (Pattern::Deliver, &[("ack_every", "2"), ("acks", "auto")], "amqp.ack_every"),
        (Pattern::Deliver, &[("queue_type", "quorum"), ("durable", "false")], "amqp.durable"),
        (Pattern::Publish, &[("queue_expires", "30s")], "amqp.queue_expires"),
        (Pattern::Deliver, &[("heartbeat", "30h")], "amqp.heartbeat"),
    ] {
        let said = invalid(pattern, given);
        assert!(said.starts_with(place), "{given:?}: {said}");
    }
}

proptest! {
    /// Both ends hear the same, however the stream is cut.
    #[test]
    fn pieces_of_any_size_change_nothing(
        cuts in proptest::collection::vec(1usize..5000, 0..12),
        sizes in proptest::collection::vec(0usize..6000, 1..8),
    ) {
        let given = [("frame_max", "4096"), ("prefetch", "2")];
        let (mut one, mut all) = (consumer(0, &given), producer(&given));
        let mut shard = world(&given, &mut [&mut one, &mut all]);
        for (ticket, size) in sizes.iter().enumerate() {
            all.send(ticket as u32, &vec![ticket as u8; *size]);
        }
        exchange(&mut all, &mut shard, 1, &cuts);
        exchange(&mut one, &mut shard, 0, &cuts);
        let done: Vec<Heard> = (0..sizes.len() as u32).map(Heard::Done).collect();
        prop_assert_eq!(&all.heard, &done);
        prop_assert_eq!(one.heard.len(), sizes.len());
        for (heard, (ticket, size)) in one.heard.iter().zip(sizes.iter().enumerate()) {
            let whole = Heard::Message(b"weigh.1".to_vec(), vec![ticket as u8; *size]);
            prop_assert_eq!(heard, &whole);
        }
    }

    /// No bytes make either end panic, before and after set-up.
    #[test]
    fn no_bytes_make_an_end_panic(
        noise in proptest::collection::vec(any::<u8>(), 0..120), class in 0..6usize,
        id in 0..13u8, is_open in any::<bool>(),
    ) {
        let class = [10u8, 20, 40, 50, 60, 85][class];
        let mut framed = vec![1, 0, u8::from(class > 10)];
        framed.extend_from_slice(&(noise.len() as u32 + 4).to_be_bytes());
        framed.extend_from_slice(&[0, class, 0, id * 10 + (noise.len() % 2) as u8]);
        framed.extend_from_slice(&noise);
        framed.push(0xCE);
        for bytes in [&noise[..], &framed[..]] {
            let (mut one, mut all) = (consumer(0, &[]), producer(&[]));
            let mut shard = Shard::of(&Amqp, &[]);
            if is_open {
                shard = world(&[], &mut [&mut one, &mut all]);
            } else {
                shard.accept(0);
            }
            let _ = one.feed(bytes);
            let _ = all.feed(bytes);
            let _ = shard.feed(0, bytes);
        }
    }
}
