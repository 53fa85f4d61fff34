//! AMQP 0-9-1: what breaks the rules, and what each end says then.

use crate::amqp_world::{URL, declared, message, names, opened, producer, put, world};
use crate::rig::{Client, Heard, Shard, trial};
use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_protocols::amqp::Amqp;
use weigh_protocols::amqp::codec::{
    Long, Method, PROTOCOL_HEADER, Short, Table, TableWriter, bits,
};

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
