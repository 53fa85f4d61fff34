//! AMQP 1.0, both ends in memory: set-up, outcomes, credit, windows, settlement and queues.

use crate::amqp1_world::{consumer, names, producer, put, said, seated, world};
use crate::rig::{Client, Heard, Shard, exchange};
use proptest::prelude::*;
use weigh_model::Nanos;
use weigh_model::connection::{Fault, Reply};
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role};
use weigh_protocols::amqp1::Amqp1;
use weigh_protocols::amqp1::codec::{
    self, Disposition, Flow, Performative, Problem, State, Transfer,
};

/// SASL waits for each answer; everything up to the link leaves in one go.
#[test]
fn sessions_are_set_up_in_three_round_trips() {
    let steps = |client: &mut Client, shard: &mut Shard| {
        let mut steps = Vec::new();
        loop {
            let there = client.sent();
            if there.is_empty() {
                return steps;
            }
            steps.push(names(&there).join(" "));
            shard.feed(0, &there).unwrap();
            let back = shard.staged(0);
            client.feed(&back).unwrap();
        }
    };
    let mut shard = Shard::of(&Amqp1, &[]);
    let first = ["SASL", "sasl-init", "AMQP open begin attach"];
    let (none, plain): (&[_], &[_]) = (&[], &[("sasl", "none")]);
    for (pattern, role, given, expected) in [
        (Pattern::Deliver, Role::Producer, none, &first[..]),
        (Pattern::Deliver, Role::Producer, plain, &["AMQP open begin attach"]),
        (Pattern::Deliver, Role::Consumer, none, &["SASL", first[1], first[2], "flow"]),
        (Pattern::Poll, Role::Consumer, none, &first),
        (Pattern::Hold, Role::Producer, none, &["SASL", first[1], "AMQP open begin"]),
    ] {
        shard.accept(0);
        let mut client = seated(pattern, Topology::FanIn, role, 0, given);
        assert_eq!(steps(&mut client, &mut shard), expected, "{role:?} {given:?}");
        assert!(client.heard.contains(&Heard::Ready), "{:?}", client.heard);
        client.connection.close(&mut client.out);
        shard.feed(0, &client.sent()).unwrap();
        assert!(names(&shard.staged(0)).contains(&"close"));
        shard.desk.closed.clear();
        shard.close(0);
    }
}

/// README: a message of 100 bytes has 28 bytes of frame and transfer and 12 of its sections, its
/// disposition 22.
#[test]
fn messages_have_the_size_of_the_specification() {
    let (mut one, mut all) = (consumer(0, &[]), producer(&[]));
    let mut shard = world(&[], &mut [&mut one, &mut all]);
    assert_eq!(all.send(7, &[b'x'; 100]), Reply::Awaited);
    let sent = all.sent();
    // Head 8; descriptor 3, list 3, handle 1, number 1, tag 6, format 1; header 7, data 5.
    let transfer = 8 + 3 + 3 + 1 + 1 + 6 + 1;
    let sections = 7 + 5;
    assert_eq!(sent.len(), transfer + sections + 100);
    shard.feed(1, &sent).unwrap();
    let confirmation = shard.staged(1);
    // Head 8; descriptor 3, list 3, role 1, first 1, no last 1, settled 1, accepted 4.
    assert_eq!(confirmation.len(), 8 + 3 + 3 + 1 + 1 + 1 + 1 + 4);
    all.feed(&confirmation).unwrap();
    assert_eq!(all.heard, [Heard::Done(7)]);
    let delivery = shard.staged(0);
    assert_eq!(delivery.len(), transfer + sections + 100);
    one.feed(&delivery).unwrap();
    assert_eq!(one.heard, [Heard::Message(b"weigh.1".to_vec(), vec![b'x'; 100])]);
    assert_eq!(one.sent().len(), 22);
    let settled = [("transfers", "settled"), ("durable", "false")];
    let mut plain = producer(&settled);
    shard.accept(2);
    exchange(&mut plain, &mut shard, 2, &[]);
    assert_eq!(plain.send(1, &[b'x'; 100]), Reply::None);
    assert_eq!(plain.sent().len(), transfer + 1 + 5 + 100, "settled, without a header");
}

/// The server says by credit what it takes; producers wait for it.
#[test]
fn producers_send_as_far_as_their_credit_goes() {
    let given = [("broker_credit", "4"), ("transfers", "settled")];
    let mut all = producer(&given);
    let mut shard = world(&given, &mut [&mut all]);
    assert_eq!(all.connection.room(), 4);
    (0..4).for_each(|ticket| _ = all.send(ticket, b"x"));
    assert_eq!(all.connection.room(), 0);
    shard.feed(0, &all.sent()).unwrap();
    let back = shard.staged(0);
    assert_eq!(names(&back), ["flow"; 2], "renewed after each half");
    all.feed(&back).unwrap();
    assert_eq!(all.connection.room(), 4, "counted from what the server had seen");
    (0..2).for_each(|ticket| _ = all.send(ticket, b"x"));
    exchange(&mut all, &mut shard, 0, &[]);
    assert_eq!(all.connection.room(), 4);
    assert_eq!(shard.server.report().received, 6);
}

/// A consumer's credit limits what is on its way, and one flow renews it.
#[test]
fn credit_and_settlement_pace_deliveries() {
    let given = [("credit", "3"), ("credit_every", "3"), ("settle_every", "2")];
    let (mut one, mut all) = (consumer(0, &given), producer(&given));
    let mut shard = world(&given, &mut [&mut one, &mut all]);
    (0..5).for_each(|ticket| _ = all.send(ticket, b"x"));
    shard.feed(1, &all.sent()).unwrap();
    let first = shard.staged(0);
    assert_eq!(names(&first), ["transfer"; 3]);
    one.feed(&first).unwrap();
    let back = one.sent();
    assert_eq!(names(&back), ["disposition", "flow"]);
    assert!(said(&back)[0].contains("first: 0, last: Some(1), settled: true"), "{:?}", said(&back));
    shard.feed(0, &back).unwrap();
    let second = shard.staged(0);
    assert_eq!(names(&second), ["transfer"; 2]);
    one.feed(&second).unwrap();
    assert_eq!(one.heard.len(), 5);
    assert_eq!(names(&one.sent()), ["disposition"]);
    one.connection.close(&mut one.out);
    assert_eq!(names(&one.sent()), ["disposition", "detach", "close"], "what is owed, too");
}

/// What a consumer has not accepted goes to the next one.
#[test]
fn what_is_not_settled_is_delivered_again() {
    let given = [("credit", "2")];
    let seat = |index| seated(Pattern::Deliver, Topology::Shared, Role::Consumer, index, &given);
    let (mut one, mut other) = (seat(0), seat(1));
    let mut all = seated(Pattern::Deliver, Topology::Shared, Role::Producer, 0, &given);
    let mut shard = world(&given, &mut [&mut one, &mut other, &mut all]);
    (0..6).for_each(|ticket| _ = all.send(ticket, &[b'0' + ticket as u8]));
    shard.feed(2, &all.sent()).unwrap();
    assert_eq!(names(&shard.staged(0)).len(), 2);
    exchange(&mut other, &mut shard, 1, &[]);
    shard.close(0);
    exchange(&mut other, &mut shard, 1, &[]);
    let messages = other.heard.iter().filter(|heard| matches!(heard, Heard::Message(..))).count();
    assert_eq!(messages, 6, "{:?}", other.heard);
    let report = shard.server.report();
    assert_eq!((report.forwarded, report.queued, report.queued_bytes), (8, 0, 0));
}

/// Where the server settles deliveries, it forgets them, and the consumer says nothing.
#[test]
fn settled_deliveries_are_at_most_once() {
    let given = [("deliveries", "settled")];
    let (mut one, mut all) = (consumer(0, &given), producer(&given));
    let mut shard = world(&given, &mut [&mut one, &mut all]);
    all.send(0, b"x");
    exchange(&mut all, &mut shard, 1, &[]);
    let delivery = shard.staged(0);
    assert!(said(&delivery)[0].contains("settled: true"), "{:?}", said(&delivery));
    one.feed(&delivery).unwrap();
    assert_eq!((one.heard.len(), one.sent().len()), (1, 0));
    assert_eq!(shard.server.report().queued_bytes, 0);
}

/// Each topology has its copies: all to each consumer, or each to one.
#[test]
fn topologies_have_their_nodes() {
    for (topology, copies) in [
        (Topology::FanIn, [1, 1]),
        (Topology::FanOut, [1, 1]),
        (Topology::Pairs, [0, 1]),
        (Topology::Shared, [0, 1]),
    ] {
        let seat = |role, index| seated(Pattern::Deliver, topology, role, index, &[]);
        let (mut one, mut other) = (seat(Role::Consumer, 0), seat(Role::Consumer, 1));
        let mut all = seat(Role::Producer, 1);
        let mut shard = world(&[], &mut [&mut one, &mut other, &mut all]);
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
        assert_eq!(got, copies, "{topology:?}");
    }
}

/// The trap of a topic: without a subscription a message is accepted and gone.
#[test]
fn a_topic_without_a_subscription_accepts_and_forgets() {
    let mut all = producer(&[]);
    let mut shard = world(&[], &mut [&mut all]);
    all.send(1, b"x");
    exchange(&mut all, &mut shard, 0, &[]);
    assert_eq!(all.heard, [Heard::Done(1)]);
    assert_eq!(shard.server.report().dropped["unroutable"], 1);
}

#[test]
fn a_full_queue_rejects() {
    let given = [("broker_queue_messages", "2")];
    let mut all = seated(Pattern::Publish, Topology::FanIn, Role::Producer, 0, &given);
    let mut shard = world(&given, &mut [&mut all]);
    (1..=3).for_each(|ticket| _ = all.send(ticket, b"x"));
    exchange(&mut all, &mut shard, 0, &[]);
    assert_eq!(all.heard, [Heard::Done(1), Heard::Done(2), Heard::Refused(3, 12)]);
    assert_eq!(Amqp1.error(12).name, "rejected: amqp:resource-limit-exceeded");
    let report = shard.server.report();
    assert_eq!((report.queued, report.dropped["queue_full"]), (2, 1));
}

/// Every outcome but `accepted` is an error answer, and an outcome that is not settled is settled
/// by the producer.
#[test]
fn outcomes_end_messages() {
    let mut all = producer(&[]);
    let _shard = world(&[], &mut [&mut all]);
    (0..5).for_each(|ticket| _ = all.send(ticket, b"x"));
    all.sent();
    let problem = Problem { condition: "amqp:not-allowed", description: None, info: None };
    let ended = |first, settled, state| {
        let role = codec::Role::Receiver;
        let own = Disposition { role, first, last: None, settled, state };
        put(&[Performative::Disposition(own)])
    };
    for (first, settled, state) in [
        (4, false, Some(State::Received)),
        (3, true, Some(State::Released)),
        (2, true, Some(State::Modified { failed: true, undeliverable: false })),
        (1, true, Some(State::Rejected(Some(problem)))),
        (0, true, None),
        (4, false, Some(State::Accepted)),
    ] {
        all.feed(&ended(first, settled, state)).unwrap();
    }
    assert_eq!(
        all.heard,
        [
            Heard::Refused(3, 2),
            Heard::Refused(2, 3),
            Heard::Refused(1, 13),
            Heard::Refused(0, 2),
            Heard::Done(4)
        ]
    );
    let answer = said(&all.sent());
    assert!(answer[0].contains("role: Sender, first: 4") && answer.len() == 1, "{answer:?}");
    let fault = all.feed(&ended(5, true, Some(State::Accepted))).unwrap_err().to_string();
    assert!(fault.contains("deliveries 5 to 5 of 5"), "{fault}");
}

/// A drained link takes what is there, until the queue is empty or the limit is reached.
#[test]
fn polling_takes_what_waits() {
    let mut one = seated(Pattern::Poll, Topology::FanIn, Role::Consumer, 0, &[]);
    let mut all = seated(Pattern::Poll, Topology::FanIn, Role::Producer, 0, &[]);
    let mut shard = world(&[], &mut [&mut one, &mut all]);
    (0..3).for_each(|ticket| _ = all.send(ticket, b"x"));
    exchange(&mut all, &mut shard, 1, &[]);
    for expected in [4, 1, 1] {
        one.heard.clear();
        one.connection.poll().unwrap().ask(Nanos(0), &mut one.out);
        exchange(&mut one, &mut shard, 0, &[]);
        assert_eq!(one.heard.len(), expected, "{:?}", one.heard);
        assert_eq!(one.heard.last(), Some(&Heard::Answered(Ok(()))));
    }
    assert_eq!(shard.server.report().queued_bytes, 0, "all are settled");
}

/// A drain uses up the count of the link, whatever the credit was; the next delivery has the next
/// number of the session.
#[test]
fn a_drained_producer_continues_with_the_next_number() {
    let mut all = producer(&[]);
    let _shard = world(&[], &mut [&mut all]);
    all.send(0, b"x");
    all.sent();
    let flow = |delivery_count, link_credit, drain| {
        put(&[Performative::Flow(Flow {
            next_incoming_id: Some(1),
            incoming_window: 100,
            handle: Some(0),
            delivery_count: Some(delivery_count),
            link_credit: Some(link_credit),
            drain,
            ..Flow::default()
        })])
    };
    all.feed(&flow(1, u32::MAX, true)).unwrap();
    let answer = said(&all.sent());
    assert!(answer[0].contains("delivery_count: Some(0), link_credit: Some(0)"), "{answer:?}");
    assert_eq!(all.connection.room(), 0);
    all.feed(&flow(0, 5, false)).unwrap();
    assert_eq!(all.connection.room(), 5);
    all.send(1, b"y");
    let sent = said(&all.sent());
    assert!(sent[0].contains("delivery_id: Some(1)"), "{sent:?}");
}

/// Producers get no new credit while messages fill the memory and are not read; they are again when
/// a tenth is free.
#[test]
fn producers_wait_while_memory_is_full() {
    let given = [("credit", "1"), ("broker_memory", "2000"), ("broker_credit", "2")];
    let (mut one, mut all) = (consumer(0, &given), producer(&given));
    let mut shard = world(&given, &mut [&mut one, &mut all]);
    all.send(0, &[b'x'; 1200]);
    all.send(1, &[b'x'; 1200]);
    shard.feed(1, &all.sent()).unwrap();
    all.feed(&shard.staged(1)).unwrap();
    assert_eq!(
        (all.heard.len(), all.connection.room()),
        (2, 1),
        "renewed once, before it was full"
    );
    assert!(shard.desk.held.contains(&1), "what it has credit for waits, too");
    all.send(2, &[b'x'; 1200]);
    exchange(&mut all, &mut shard, 1, &[]);
    assert_eq!((all.heard.len(), all.connection.room()), (3, 0));
    exchange(&mut one, &mut shard, 0, &[]);
    all.feed(&shard.staged(1)).unwrap();
    assert_eq!(all.connection.room(), 2);
    assert!(shard.desk.held.is_empty());
}

#[test]
fn only_confirmed_durable_messages_are_stored() {
    for (pattern, given, stored) in [
        (Pattern::Publish, &[][..], 1),
        (Pattern::Publish, &[("durable", "false")], 0),
        (Pattern::Publish, &[("transfers", "settled")], 0),
        (Pattern::Deliver, &[], 1),
        (Pattern::Deliver, &[("durable", "false")], 0),
    ] {
        let mut one = seated(pattern, Topology::FanIn, Role::Consumer, 0, given);
        let mut all = seated(pattern, Topology::FanIn, Role::Producer, 0, given);
        let mut shard = world(given, &mut [&mut one, &mut all]);
        all.send(0, b"x");
        exchange(&mut all, &mut shard, 1, &[]);
        assert_eq!(shard.desk.stored.len(), stored, "{pattern:?} {given:?}");
    }
}

/// Empty frames leave in half of the time after which the server would miss them; a silent server
/// is given up.
#[test]
fn silence_ends_a_session_and_empty_frames_prevent_it() {
    let mut all = producer(&[("idle_timeout", "50s")]);
    let shard = world(&[("broker_idle_timeout", "40s")], &mut [&mut all]);
    all.pass(Nanos::from_secs(9)).unwrap();
    assert_eq!(all.sent(), b"", "the server asked for 20 s");
    all.pass(Nanos::from_secs(11)).unwrap();
    assert_eq!(names(&all.sent()), ["empty"]);
    all.feed(b"\0\0\0\x08\x02\0\0\0").unwrap();
    let fault = all.pass(Nanos::from_secs(70)).unwrap_err();
    assert!(matches!(&fault, Fault::Ended(why) if why.contains("silent for 50 s")), "{fault}");
    drop(shard);
}

/// A client that misses the server after less than a second gets its empty frames in time.
#[test]
fn idle_clients_with_a_short_timeout_stay() {
    let mut one = consumer(0, &[("idle_timeout", "1s")]);
    let mut shard = world(&[], &mut [&mut one]);
    let mut frames = 0;
    for now in (1..=50).map(|tenth| Nanos::from_millis(tenth * 100)) {
        shard.pass(now);
        let sent = shard.staged(0);
        if !sent.is_empty() {
            frames += names(&sent).len();
            one.feed(&sent).unwrap();
        }
        one.pass(now).unwrap();
    }
    assert!((10..=20).contains(&frames), "{frames} in 5 s, one is due after 250 ms of silence");
}

#[test]
fn large_messages_come_in_frames_and_too_large_ones_are_refused() {
    let given = [("max_frame_size", "512"), ("broker_message_bytes_max", "20100")];
    let (mut one, mut all) = (consumer(0, &given), producer(&given));
    let mut shard = world(&given, &mut [&mut one, &mut all]);
    let body: Vec<u8> = (0..20_000u32).map(|number| number as u8).collect();
    all.send(0, &body);
    exchange(&mut all, &mut shard, 1, &[4000, 7000]);
    exchange(&mut one, &mut shard, 0, &[100, 5000]);
    assert_eq!(one.heard, [Heard::Message(b"weigh.1".to_vec(), body)]);
    all.send(1, &[0; 20_101]);
    shard.feed(1, &all.sent()).unwrap();
    let fault = all.feed(&shard.staged(1)).unwrap_err().to_string();
    assert!(fault.contains("amqp:link:message-size-exceeded"), "{fault}");
}

/// A message waits in parts where the window of the session ends, at both ends.
#[test]
fn windows_of_sessions_are_kept() {
    let mut all = producer(&[]);
    let _shard = world(&[], &mut [&mut all]);
    let state = |next_incoming_id, incoming_window| {
        let own =
            Flow { next_incoming_id: Some(next_incoming_id), incoming_window, ..Flow::default() };
        put(&[Performative::Flow(own)])
    };
    all.feed(&state(0, 2)).unwrap();
    all.send(0, b"one");
    assert_eq!((names(&all.sent()).len(), all.connection.room() > 0), (1, true));
    all.send(1, &[b'x'; 300_000]);
    assert_eq!((names(&all.sent()).len(), all.connection.room()), (1, 0), "the first part");
    all.feed(&state(2, 1)).unwrap();
    assert_eq!((names(&all.sent()).len(), all.connection.room()), (1, 0), "the second");
    all.feed(&state(3, 5)).unwrap();
    let last = all.sent();
    assert!(said(&last)[0].contains("more: false"), "{:?}", said(&last));
    assert!(all.connection.room() > 0);
}

/// What a server must not send ends the connection, with the reason.
#[test]
fn servers_that_break_the_protocol_are_named() {
    let transfer = |change: &dyn Fn(&mut Transfer<'static>)| {
        let mut own = Transfer { delivery_id: Some(0), ..Transfer::default() };
        change(&mut own);
        put(&[Performative::Transfer(own)])
    };
    for (bytes, what) in [
        (transfer(&|own| own.handle = 3), "not attached"),
        (transfer(&|own| own.delivery_id = None), "without a number"),
        (put(&[Performative::End(None)]), "end without a reason"),
        (b"\0\0\0\x08\x02\x01\0\0".to_vec(), "another type"),
        (b"\0\0\0\x0c\x02\0\0\0\0\x53\x7f\x45".to_vec(), "unknown performative"),
    ] {
        let mut one = consumer(0, &[]);
        let _shard = world(&[], &mut [&mut one]);
        let fault = one.feed(&bytes).unwrap_err().to_string();
        assert!(fault.contains(what), "{fault}");
    }
    let mut one = seated(Pattern::Poll, Topology::FanIn, Role::Consumer, 0, &[]);
    let _shard = world(&[], &mut [&mut one]);
    let fault = one.feed(&transfer(&|_| {})).unwrap_err().to_string();
    assert!(fault.contains("without credit"), "{fault}");
}

/// A list or a map of one byte each for size and count, or a string behind its code and length.
fn sized(code: u8, count: Option<u8>, items: &[u8]) -> Vec<u8> {
    let length = items.len() as u8 + u8::from(count.is_some());
    let head = [code, length].into_iter().chain(count);
    head.chain(items.iter().copied()).collect()
}

/// Redirects (part 2, sections 2.8.16 and 2.8.18) are not followed, and the place is named.
#[test]
fn redirects_are_named_with_their_place() {
    let symbol = |text: &str| sized(0xA3, None, text.as_bytes());
    let string = |text: &str| sized(0xA1, None, text.as_bytes());
    let port = vec![0x60, 0x16, 0x29];
    let pairs = [
        [symbol("network-host"), string("b2.example")].concat(),
        [symbol("port"), port].concat(),
        [symbol("address"), string("q")].concat(),
    ];
    let info = sized(0xC1, Some(6), &pairs.concat());
    let error = |condition: &str| {
        let fields = [symbol(condition), vec![0x40], info.clone()].concat();
        [vec![0, 0x53, 0x1D], sized(0xC0, Some(3), &fields)].concat()
    };
    let framed = |code: u8, count: u8, fields: &[u8]| {
        let body = [vec![0, 0x53, code], sized(0xC0, Some(count), fields)].concat();
        let size = (body.len() as u32 + 8).to_be_bytes();
        [&size[..], &[2, 0, 0, 0], &body].concat()
    };
    let detach = [vec![0x43, 0x41], error("amqp:link:redirect")].concat();
    for (bytes, what) in [
        (framed(0x16, 3, &detach), "amqp:link:redirect to b2.example:5673/q"),
        (framed(0x18, 1, &error("amqp:connection:redirect")), "amqp:connection:redirect to b2"),
    ] {
        let mut one = consumer(0, &[]);
        let _shard = world(&[], &mut [&mut one]);
        let fault = one.feed(&bytes).unwrap_err().to_string();
        assert!(fault.contains(what) && fault.contains("are not followed"), "{fault}");
    }
}

proptest! {
    /// Both ends hear the same, however the stream is cut.
    #[test]
    fn pieces_of_any_size_change_nothing(
        cuts in proptest::collection::vec(1usize..5000, 0..12),
        sizes in proptest::collection::vec(0usize..6000, 1..8),
    ) {
        let given = [("max_frame_size", "1024"), ("broker_max_frame_size", "700"), ("credit", "2")];
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
        noise in proptest::collection::vec(any::<u8>(), 0..120), code in 0x10..0x19u8,
        is_sasl in any::<bool>(), is_open in any::<bool>(),
    ) {
        let body = [&[0, 0x53, code, 0xc0, noise.len() as u8 + 1, 5][..], &noise].concat();
        let mut framed = (body.len() as u32 + 8).to_be_bytes().to_vec();
        framed.extend_from_slice(&[2, u8::from(is_sasl), 0, 0]);
        framed.extend_from_slice(&body);
        for bytes in [&noise[..], &framed[..]] {
            let (mut one, mut all) = (consumer(0, &[]), producer(&[]));
            let mut shard = Shard::of(&Amqp1, &[]);
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
