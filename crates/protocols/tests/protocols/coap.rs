//! The protocol `coap`: datagrams byte by byte, both ends together, timers, duplicates, message
//! IDs, and what breaks the rules.

use crate::rig::{Client, Heard, Shard, kind, trial};
use proptest::prelude::*;
use weigh_model::Nanos;
use weigh_model::connection::Reply;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Guarantee, Lifetime, Protocol, Role, Seat, Transport};
use weigh_model::trial::Settings;
use weigh_model::units::Bytes;
use weigh_protocols::coap::Coap;
use weigh_protocols::coap::codec::{self, Kind, code, number};

const URL: &str = "coap://127.0.0.1";

fn client(given: &[(&str, &str)]) -> Client {
    let trial = trial(&Coap, Pattern::Publish, Topology::FanIn, URL, given).unwrap();
    Client::new((Coap.dial(&trial).unwrap().make)(Seat { index: 0, role: Role::Producer }))
}

fn consumer(topology: Topology, index: u32) -> Client {
    let trial = trial(&Coap, Pattern::Deliver, topology, URL, &[]).unwrap();
    Client::new((Coap.dial(&trial).unwrap().make)(Seat { index, role: Role::Consumer }))
}

/// Carries datagrams both ways until neither end has more to say.
fn exchange(client: &mut Client, shard: &mut Shard, connection: u32) {
    loop {
        let (there, now) = (client.datagrams(), client.now);
        shard.now = shard.now.max(now);
        there.iter().for_each(|datagram| shard.feed(connection, datagram).unwrap());
        let back = shard.datagrams(connection);
        back.iter().for_each(|datagram| client.feed(datagram).unwrap());
        if there.is_empty() && back.is_empty() {
            return;
        }
    }
}

fn secs(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

/// Header 4, token 4, Uri-Path 1 + 8, Content-Format 1 + 1, marker 1: 20 bytes before the body.
#[test]
fn a_post_is_twenty_bytes_and_the_body_and_its_answer_eight() {
    let mut client = client(&[]);
    assert_eq!(client.heard, [Heard::Ready]);
    assert_eq!(client.send(7, b"hello"), Reply::Awaited);
    let sent = client.datagrams();
    assert_eq!((sent.len(), sent[0].len()), (1, 20 + 5));
    assert_eq!(sent[0][..2], [0x44, 0x02]);
    assert_eq!(&sent[0][8..], b"\xb8messages\x11\x32\xffhello");
    let mut shard = Shard::of(&Coap, &[]);
    shard.accept(0);
    shard.feed(0, &sent[0]).unwrap();
    let answer = shard.datagrams(0);
    assert_eq!(answer, [[&[0x64, 0x44], &sent[0][2..8]].concat()]);
    client.feed(&answer[0]).unwrap();
    assert_eq!(client.heard, [Heard::Ready, Heard::Done(7)]);
    assert_eq!((client.connection.room(), shard.server.report().received), (1, 1));
}

#[test]
fn a_non_confirmable_request_gets_such_a_response() {
    let mut client = client(&[("type", "non"), ("content_format", "")]);
    let mut shard = Shard::of(&Coap, &[]);
    shard.accept(0);
    assert_eq!(client.send(1, b"x"), Reply::Awaited);
    let sent = client.datagrams();
    assert_eq!(sent[0][0], 0x54);
    shard.feed(0, &sent[0]).unwrap();
    let answer = shard.datagrams(0);
    assert_eq!((answer[0][0], answer[0][1], answer[0].len()), (0x54, 0x44, 8));
    client.feed(&answer[0]).unwrap();
    client.feed(&answer[0]).unwrap();
    assert_eq!(client.heard, [Heard::Ready, Heard::Done(1)]);
}

#[test]
fn without_a_response_nothing_is_awaited() {
    let mut client = client(&[("type", "non"), ("no_response", "true")]);
    let mut shard = Shard::of(&Coap, &[]);
    shard.accept(0);
    for ticket in 0..10 {
        assert_eq!(client.send(ticket, b"x"), Reply::None);
    }
    exchange(&mut client, &mut shard, 0);
    assert_eq!((client.heard.len(), shard.server.report().received), (1, 10));
}

/// Section 5.2.2: an empty acknowledgement, then a confirmable response that the client confirms.
#[test]
fn separate_responses_are_confirmed() {
    let mut client = client(&[]);
    let mut shard = Shard::of(&Coap, &[("response", "separate")]);
    shard.accept(0);
    client.send(1, b"x");
    let sent = client.datagrams();
    shard.feed(0, &sent[0]).unwrap();
    let answers = shard.datagrams(0);
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0], [0x60, 0, sent[0][2], sent[0][3]]);
    assert_eq!(answers[1][..2], [0x44, 0x44]);
    client.feed(&answers[0]).unwrap();
    // The message is acknowledged: it is not repeated, and its response is awaited.
    client.pass(secs(4)).unwrap();
    assert_eq!((client.connection.room(), client.datagrams().len()), (0, 0));
    client.feed(&answers[1]).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Done(1)));
    let confirmation = client.datagrams();
    assert_eq!(confirmation, [[0x60, 0, answers[1][2], answers[1][3]]]);
    // Its confirmation was lost: the response comes again, and is confirmed again.
    shard.pass(secs(4));
    let again = shard.datagrams(0);
    assert_eq!(again, [answers[1].clone()]);
    client.feed(&again[0]).unwrap();
    assert_eq!((client.datagrams(), client.heard.len()), (confirmation.clone(), 2));
    shard.feed(0, &confirmation[0]).unwrap();
    shard.pass(secs(200));
    assert!(shard.datagrams(0).is_empty());
}

/// A separate response that overtakes the acknowledgement stands for it.
#[test]
fn responses_may_overtake_acknowledgements() {
    let mut client = client(&[]);
    let mut shard = Shard::of(&Coap, &[("response", "separate")]);
    shard.accept(0);
    client.send(1, b"x");
    let sent = client.datagrams();
    shard.feed(0, &sent[0]).unwrap();
    let answers = shard.datagrams(0);
    client.feed(&answers[1]).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Done(1)));
    client.datagrams();
    client.pass(secs(100)).unwrap();
    assert!(client.datagrams().is_empty(), "it is repeated");
    client.feed(&answers[0]).unwrap();
    assert_eq!(client.heard.len(), 2);
}

/// Sections 4.2 and 4.8: repeated after 2 to 3 s, 4 to 6, 8 to 12 and 16 to 24, and given up after
/// 62 to 93 s; the connection is then free for the next message.
#[test]
fn what_is_not_acknowledged_is_repeated_and_then_given_up() {
    let mut client = client(&[]);
    client.send(1, b"x");
    let first = client.datagrams();
    let mut times = Vec::new();
    for tenth in 1..1000u64 {
        client.pass(Nanos::from_millis(tenth * 100)).unwrap();
        for again in client.datagrams() {
            assert_eq!(again, first[0]);
            times.push(tenth as f64 / 10.0);
        }
        if client.connection.room() > 0 {
            times.push(tenth as f64 / 10.0);
            break;
        }
    }
    assert_eq!(times.len(), 5, "{times:?}");
    let first = times[0];
    assert!((2.0..=3.1).contains(&first), "{first}");
    for (time, share) in times.iter().zip([1.0, 3.0, 7.0, 15.0, 31.0]) {
        assert!((time / first - share).abs() < 0.05 * share, "{times:?}");
    }
    assert_eq!(client.heard, [Heard::Ready]);
}

/// Section 4.5: what arrives twice is handled once, and answered as before.
#[test]
fn duplicates_are_answered_and_not_handled() {
    let mut client = client(&[]);
    let mut shard = Shard::of(&Coap, &[]);
    shard.accept(0);
    client.send(1, b"x");
    let sent = client.datagrams();
    shard.feed(0, &sent[0]).unwrap();
    let answer = shard.datagrams(0);
    shard.now = secs(246);
    shard.feed(0, &sent[0]).unwrap();
    assert_eq!(shard.datagrams(0), answer);
    // Another message with the ID of the first: its sender has lost its memory.
    let mut other = sent[0].clone();
    other[7] ^= 1;
    shard.feed(0, &other).unwrap();
    assert_eq!(shard.datagrams(0)[0][7], other[7]);
    let mut non = sent[0].clone();
    non[0] |= 0x10;
    non[3] ^= 1;
    shard.feed(0, &non).unwrap();
    assert_eq!(shard.datagrams(0).len(), 1);
    shard.feed(0, &non).unwrap();
    assert!(shard.datagrams(0).is_empty(), "a duplicate of NON is answered");
}

#[test]
fn errors_and_resets_end_their_message() {
    for (answer, heard) in [
        (&[0x64, 0x84][..], Heard::Refused(5, 404)),
        (&[0x64, 0xa3], Heard::Refused(5, 503)),
        (&[0x64, 0x5f], Heard::Done(5)),
    ] {
        let mut client = client(&[]);
        client.send(5, b"x");
        let sent = client.datagrams();
        client.feed(&[answer, &sent[0][2..8]].concat()).unwrap();
        assert_eq!(client.heard.last(), Some(&heard));
    }
    for given in [&[][..], &[("type", "non")]] {
        let mut client = client(given);
        client.send(5, b"x");
        let sent = client.datagrams();
        client.feed(&[0x70, 0, sent[0][2], sent[0][3]]).unwrap();
        assert_eq!(client.heard.last(), Some(&Heard::Refused(5, 1)));
        assert_eq!(client.connection.room(), 1);
    }
    assert_eq!(Coap.error(404).name, "4.04 Not Found");
    assert_eq!(Coap.error(1).name, "a reset (RST)");
}

/// Responses are matched by token, and what was not asked for is rejected.
#[test]
fn what_is_not_expected_is_rejected_or_ignored() {
    let mut client = client(&[]);
    client.send(5, b"x");
    let sent = client.datagrams();
    let (id, token) = ([sent[0][2], sent[0][3]], &sent[0][4..8]);
    let wrong = [token[0] ^ 1, token[1], token[2], token[3]];
    client.feed(&[&[0x64, 0x44], &id[..], &wrong].concat()).unwrap();
    client.feed(&[&[0x54, 0x44, 1, 1], &wrong[..]].concat()).unwrap();
    client.feed(&[0x60, 0, id[0] ^ 1, id[1]]).unwrap();
    assert!(client.datagrams().is_empty());
    client.feed(&[&[0x44, 0x44, 9, 9], &wrong[..]].concat()).unwrap();
    client.feed(&[0x40, 0, 9, 8]).unwrap();
    client.feed(&[0x40, 0x44, 9, 7, 0xff]).unwrap();
    let resets: Vec<Vec<u8>> = [9u8, 8, 7].iter().map(|low| vec![0x70, 0, 9, *low]).collect();
    assert_eq!(client.datagrams(), resets);
    assert_eq!(client.heard, [Heard::Ready]);
}

#[test]
fn another_protocol_is_named() {
    for bytes in [&b"HTTP/1.1 400 Bad Request"[..], b"\0", b"\x81\x80"] {
        assert_eq!(kind(&client(&[]).feed(bytes)), "other protocol");
    }
}

/// Section 4.7: NSTART requests in progress, and no more.
#[test]
fn nstart_and_window_bound_what_is_in_progress() {
    assert_eq!(client(&[]).connection.room(), 1);
    assert_eq!(client(&[("nstart", "7")]).connection.room(), 7);
    let mut trial = trial(&Coap, Pattern::Publish, Topology::FanIn, URL, &[]).unwrap();
    trial.load.window = Some(9);
    let connection = (Coap.dial(&trial).unwrap().make)(Seat { index: 0, role: Role::Producer });
    assert_eq!(Client::new(connection).connection.room(), 9);
    let mut two = client(&[("nstart", "2"), ("type", "non")]);
    two.send(1, b"x");
    two.send(2, b"y");
    assert_eq!(two.connection.room(), 0);
    // Without a response within Tmax it is no longer expected, and counts if it comes.
    let sent = two.datagrams();
    two.pass(secs(6)).unwrap();
    assert_eq!(two.connection.room(), 2);
    two.feed(&[&[0x54, 0x44, 1, 1], &sent[0][4..8]].concat()).unwrap();
    assert_eq!((two.connection.room(), two.heard.last()), (2, Some(&Heard::Done(1))));
}

/// Section 4.4: 65,536 IDs in 247 s. When they are used up the endpoint is replaced by another,
/// and never is an ID used twice.
#[test]
fn an_endpoint_without_message_ids_is_replaced() {
    let mut client = client(&[]);
    let mut shard = Shard::of(&Coap, &[]);
    shard.accept(0);
    let mut ids = std::collections::BTreeSet::new();
    for number in 0..65_536u32 {
        assert_eq!(client.connection.room(), 1, "{number}");
        client.send(number, b"x");
        let sent = client.datagrams();
        assert!(ids.insert([sent[0][2], sent[0][3]]));
        shard.feed(0, &sent[0]).unwrap();
        client.feed(&shard.datagrams(0)[0]).unwrap();
    }
    assert_eq!((client.connection.room(), client.heard.last()), (0, Some(&Heard::Closing)));
    assert_eq!(shard.server.report().received, 65_536);
    // Without answers it is asked for at the next wake-up.
    let mut silent = self::client(&[("type", "non"), ("no_response", "true")]);
    while silent.connection.room() > 0 {
        silent.send(0, b"x");
    }
    silent.pass(Nanos(1)).unwrap();
    let used_up = Heard::Granted("identifiers_used_up", 65_536);
    assert_eq!(silent.heard, [Heard::Ready, used_up, Heard::Closing]);
}

/// At a lower rate IDs come back in time, and the endpoint stays.
#[test]
fn a_slow_endpoint_keeps_its_socket() {
    let mut client = client(&[("type", "non")]);
    for number in 0..200_000u64 {
        client.pass(Nanos::from_millis(number * 4)).unwrap();
        client.send(number as u32, b"x");
        let sent = client.datagrams();
        client.feed(&[&[0x54, 0x44, 1, 1], &sent[0][4..8]].concat()).unwrap();
    }
    assert!(!client.heard.contains(&Heard::Closing));
}

/// RFC 7959, section 3.2: blocks of 1,024 bytes, each answered before the next.
#[test]
fn large_bodies_go_block_by_block() {
    for given in [&[][..], &[("type", "non")]] {
        let mut client = client(given);
        let mut shard = Shard::of(&Coap, &[]);
        shard.accept(0);
        let body: Vec<u8> = (0..2_500u32).map(|at| at as u8).collect();
        client.send(3, &body);
        assert_eq!(client.connection.room(), 0);
        let first = client.datagrams();
        let message = codec::parse(&first[0]).unwrap();
        assert_eq!(message.payload, &body[..1024]);
        assert_eq!(message.options.first(number::BLOCK1), Some(&[0x0e][..]));
        assert_eq!(message.options.first(number::SIZE1), Some(&[0x09, 0xc4][..]));
        shard.feed(0, &first[0]).unwrap();
        let answer = shard.datagrams(0);
        assert_eq!(codec::parse(&answer[0]).unwrap().code, code::CONTINUE);
        client.feed(&answer[0]).unwrap();
        exchange(&mut client, &mut shard, 0);
        assert_eq!(client.heard.last(), Some(&Heard::Done(3)));
        assert_eq!((shard.server.report().received, client.connection.room()), (1, 1));
    }
}

/// RFC 7959, section 2.3: a server may ask for smaller blocks.
#[test]
fn blocks_become_as_small_as_the_server_asks() {
    let mut client = client(&[("block_bytes", "64")]);
    let body: Vec<u8> = (0..100u8).collect();
    client.send(3, &body);
    let mut whole = Vec::new();
    let mut answers = 0;
    while client.heard.len() == 1 {
        let sent = client.datagrams();
        let message = codec::parse(&sent[0]).unwrap();
        let at = message.options.first(number::BLOCK1).and_then(codec::Block::read).unwrap();
        assert_eq!(whole.len(), at.index as usize * at.bytes());
        whole.extend_from_slice(message.payload);
        let mut answer = Vec::new();
        let result = if at.has_more { code::CONTINUE } else { code::CHANGED };
        codec::put_head(&mut answer, Kind::Acknowledgement, result, message.id, message.token);
        let asked = codec::Block { szx: 1, ..at };
        codec::OptionWriter::default().put_unsigned(&mut answer, number::BLOCK1, asked.number());
        client.feed(&answer).unwrap();
        answers += 1;
    }
    assert_eq!((whole, answers), (body, 3));
}

#[test]
fn observers_hear_what_they_registered_for() {
    for (topology, heard) in [(Topology::Pairs, [1, 1]), (Topology::FanOut, [2, 2])] {
        let mut shard = Shard::of(&Coap, &[]);
        let mut load = trial(&Coap, Pattern::Deliver, topology, URL, &[]).unwrap();
        load.load.connections = 2;
        let dial = Coap.dial(&load).unwrap();
        let make = |role, index| Client::new((dial.make)(Seat { index, role }));
        let mut consumers: Vec<Client> = (0..2).map(|index| make(Role::Consumer, index)).collect();
        for (connection, consumer) in consumers.iter_mut().enumerate() {
            assert_eq!(consumer.heard, []);
            shard.accept(connection as u32);
            exchange(consumer, &mut shard, connection as u32);
            assert_eq!(consumer.heard, [Heard::Ready]);
        }
        for index in 0..2u32 {
            let mut producer = make(Role::Producer, index);
            shard.accept(10 + index);
            producer.send(7, &[b'a' + index as u8]);
            exchange(&mut producer, &mut shard, 10 + index);
            assert_eq!(producer.heard, [Heard::Ready, Heard::Done(7)]);
            for (connection, consumer) in consumers.iter_mut().enumerate() {
                exchange(consumer, &mut shard, connection as u32);
            }
        }
        for (index, consumer) in consumers.iter_mut().enumerate() {
            assert_eq!(consumer.heard.len() - 1, heard[index], "{topology:?} {index}");
        }
        let message = Heard::Message(vec![], b"b".to_vec());
        assert_eq!(consumers[1].heard.last(), Some(&message));
        assert_eq!(shard.server.report().forwarded, heard.iter().sum::<usize>() as u64);
        // They leave, and nothing more is sent to them.
        for (connection, consumer) in consumers.iter_mut().enumerate() {
            consumer.connection.close(&mut consumer.out);
            exchange(consumer, &mut shard, connection as u32);
        }
        let mut producer = make(Role::Producer, 0);
        producer.send(8, b"late");
        exchange(&mut producer, &mut shard, 10);
        assert!(shard.datagrams(0).is_empty() && shard.datagrams(1).is_empty());
    }
}

/// RFC 7641, section 4.5.2: one confirmable notification is in progress, and only the newest state
/// waits. What was replaced is counted.
#[test]
fn notifications_that_are_overtaken_are_counted() {
    let mut shard = Shard::of(&Coap, &[]);
    let mut observer = consumer(Topology::FanIn, 0);
    shard.accept(0);
    exchange(&mut observer, &mut shard, 0);
    let mut producer = client(&[]);
    shard.accept(1);
    for (ticket, body) in [b"a", b"b", b"c"].iter().enumerate() {
        producer.send(ticket as u32, *body);
        exchange(&mut producer, &mut shard, 1);
    }
    let first = shard.datagrams(0);
    assert_eq!(first.len(), 1);
    observer.feed(&first[0]).unwrap();
    // A duplicate is confirmed again, and is no message.
    observer.feed(&first[0]).unwrap();
    exchange(&mut observer, &mut shard, 0);
    let message = |body: &[u8]| Heard::Message(vec![], body.to_vec());
    assert_eq!(observer.heard, [Heard::Ready, message(b"a"), message(b"c")]);
    let report = shard.server.report();
    assert_eq!((report.forwarded, report.dropped["superseded"]), (2, 1));
    // An observer that rejects a notification is removed (section 3.6).
    producer.send(9, b"d");
    exchange(&mut producer, &mut shard, 1);
    let notification = shard.datagrams(0);
    shard.feed(0, &[0x70, 0, notification[0][2], notification[0][3]]).unwrap();
    producer.send(10, b"e");
    exchange(&mut producer, &mut shard, 1);
    assert!(shard.datagrams(0).is_empty());
}

#[test]
fn a_registration_that_fails_is_named() {
    let answered = |code: u8, options: &[u8]| {
        let mut observer = consumer(Topology::FanIn, 0);
        let sent = observer.datagrams();
        let result = observer.feed(&[&[0x64, code], &sent[0][2..8], options].concat());
        kind(&result)
    };
    assert_eq!(answered(0x84, b""), "refused");
    assert_eq!(answered(0x45, b""), "refused", "the resource is not observable");
    assert_eq!(answered(0x45, b"\x60"), "ok");
    let mut silent = consumer(Topology::FanIn, 0);
    assert_eq!(kind(&silent.pass(secs(100))), "ended");
}

#[test]
fn shards_hand_messages_to_each_other() {
    let settings = Settings::new("coap", Coap.settings(), None).unwrap();
    let host = Coap.host(&settings).unwrap();
    let (mut left, mut right) = (Shard::new((host.make)(0)), Shard::new((host.make)(1)));
    let mut observer = consumer(Topology::FanIn, 0);
    right.accept(0);
    exchange(&mut observer, &mut right, 0);
    let mut producer = client(&[]);
    left.accept(0);
    producer.send(1, b"x");
    exchange(&mut producer, &mut left, 0);
    assert_eq!(left.desk.notified, [1]);
    right.server.notified(Nanos(0), &mut right.desk);
    exchange(&mut observer, &mut right, 0);
    assert_eq!(observer.heard.last(), Some(&Heard::Message(vec![], b"x".to_vec())));
}

/// What a foreign client may ask of the reference server.
#[test]
fn the_reference_server_answers_as_its_readme_says() {
    let mut shard = Shard::of(&Coap, &[]);
    shard.accept(0);
    let mut ask = |datagram: &[u8]| {
        shard.feed(0, datagram).unwrap();
        let answers = shard.datagrams(0);
        answers.first().cloned().unwrap_or_default()
    };
    assert_eq!(ask(b"\x40\x02\x00\x01\xb8messages\xffhello"), [0x60, 0x44, 0, 1]);
    assert_eq!(ask(b"\x40\x03\x00\x02\xb8messages\xffworld"), [0x60, 0x44, 0, 2]);
    assert_eq!(ask(b"\x40\x01\x00\x03\xb8messages"), b"\x60\x45\x00\x03\xffworld");
    assert_eq!(ask(b"\x40\x01\x00\x04\xb5other"), [0x60, 0x84, 0, 4]);
    assert_eq!(ask(b"\x40\x04\x00\x05\xb8messages"), [0x60, 0x85, 0, 5]);
    assert_eq!(ask(b"\x40\x02\x00\x06\x90\x28messages"), [0x60, 0x82, 0, 6], "critical option 9");
    let core = ask(b"\x40\x01\x00\x07\xbb.well-known\x04core");
    assert_eq!(core, b"\x60\x45\x00\x07\xc1\x28\xff</messages>;obs,</readings>");
    assert_eq!(ask(b"\x40\x00\x00\x08"), [0x70, 0, 0, 8], "a ping");
    assert_eq!(ask(b"\x40\x02\x00\x09\xff"), [0x70, 0, 0, 9], "malformed");
    assert_eq!(ask(b"\x50\x02\x00\x0a\xff"), b"", "malformed and not confirmable");
    assert_eq!(ask(b"hello"), b"");
    assert_eq!(
        ask(b"\x40\x02\x00\x0b\xb8messages\xd1\x03\x10\xffx"),
        b"\x60\x88\x00\x0b\xd1\x0e\x10"
    );
}

#[test]
fn guarantees_and_settings_follow_the_type() {
    let settings = |given| Settings::new("coap", Coap.settings(), given).unwrap();
    assert_eq!(Coap.guarantee(&settings(None)), Guarantee::AtLeastOnce);
    assert_eq!(Coap.guarantee(&settings(Some(("type", "non")))), Guarantee::AtMostOnce);
    let dial = |pattern, given: &[(&str, &str)]| {
        Coap.dial(&trial(&Coap, pattern, Topology::FanIn, URL, given).unwrap())
    };
    let plain = dial(Pattern::Publish, &[]).unwrap();
    assert_eq!((plain.transport, plain.lifetime), (Transport::Datagram, Lifetime::Kept));
    assert!(plain.confirms);
    let silent = [("type", "non"), ("no_response", "true")];
    assert!(!dial(Pattern::Publish, &silent).unwrap().confirms);
    assert_eq!(dial(Pattern::Session, &[]).unwrap().lifetime, Lifetime::PerMessage);
    for (given, place) in [
        (&[("no_response", "true")][..], "coap.no_response"),
        (&[("path", "messages")], "coap.path"),
        (&[("block_bytes", "100")], "coap.block_bytes"),
        (&[("content_format", "json")], "coap.content_format"),
        (&[("ack_random_factor", "0.9")], "coap.ack_random_factor"),
    ] {
        let error = dial(Pattern::Publish, given).err().map(|invalid| invalid.place);
        assert_eq!(error.as_deref(), Some(place));
    }
    let sized = |bytes, given: &[(&str, &str)]| {
        let mut trial = trial(&Coap, Pattern::Publish, Topology::FanIn, URL, given).unwrap();
        trial.load.size = Some(Bytes(bytes));
        Coap.dial(&trial).err().map(|invalid| invalid.to_string())
    };
    assert_eq!(sized(1 << 25, &[]), None);
    assert!(sized((1 << 25) + 1, &[]).unwrap().contains("type -s 33554432B or less"));
    assert!(sized(2000, &silent).unwrap().contains("several blocks"));
}

proptest! {
    /// Whatever is lost, doubled and late: no message ends twice, and a confirmable one is given up
    /// only after five losses of its own.
    #[test]
    fn both_ends_agree_over_a_bad_link(
        is_non in any::<bool>(),
        is_separate in any::<bool>(),
        fates in prop::collection::vec(0..10u8, 0..60),
    ) {
        let kind = if is_non { "non" } else { "con" };
        let mut client = client(&[("type", kind), ("nstart", "4")]);
        let response = if is_separate { "separate" } else { "piggybacked" };
        let mut shard = Shard::of(&Coap, &[("response", response)]);
        shard.accept(0);
        let mut fates = fates.into_iter();
        let (mut late, mut tickets, mut lost) = (Vec::new(), 0, 0);
        for step in 0..400u64 {
            let now = Nanos::from_millis(step * 500);
            client.pass(now).unwrap();
            shard.pass(now);
            if client.connection.room() > 0 && tickets < 20 {
                client.send(tickets, format!("message {tickets}").as_bytes());
                tickets += 1;
            }
            let mut there = client.datagrams();
            if !late.is_empty() {
                there.push(late.remove(0));
            }
            for datagram in there {
                match fates.next() {
                    Some(0..=1) => lost += 1,
                    Some(2) => late.push(datagram),
                    Some(3) => {
                        shard.feed(0, &datagram).unwrap();
                        shard.feed(0, &datagram).unwrap();
                    }
                    _ => shard.feed(0, &datagram).unwrap(),
                }
            }
            for datagram in shard.datagrams(0) {
                match fates.next() {
                    Some(0..=1) => lost += 1,
                    Some(2..=3) => {
                        client.feed(&datagram).unwrap();
                        client.feed(&datagram).unwrap();
                    }
                    _ => client.feed(&datagram).unwrap(),
                }
            }
        }
        let done = client.heard.iter().filter(|heard| matches!(heard, Heard::Done(_))).count();
        let mut different = client.heard.iter().map(|own| format!("{own:?}")).collect::<Vec<_>>();
        different.sort();
        let all = different.len();
        different.dedup();
        prop_assert_eq!(different.len(), all, "something ended twice");
        if !is_non {
            prop_assert_eq!(tickets, 20);
            prop_assert!(20 - done <= lost / 5, "{done} of 20 ended, {lost} datagrams were lost");
        }
    }
}
