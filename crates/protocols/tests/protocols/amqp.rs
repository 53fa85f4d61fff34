//! AMQP 0-9-1, both ends in memory: set-up, confirmations, returns, prefetch, acknowledgements and
//! queues.

use crate::amqp_world::{consumer, names, producer, put, seated, world};
use crate::rig::{Client, Heard, Shard, exchange};
use proptest::prelude::*;
use weigh_model::Nanos;
use weigh_model::connection::{Fault, Reply};
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role};
use weigh_protocols::amqp::Amqp;
use weigh_protocols::amqp::codec::{Header, Method, Short, bits, put_body};

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

/// Messages that come back are distinguished by their bodies, whatever is confirmed with them.
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

/// Publishers wait while messages fill the memory, and continue when a tenth is free.
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
