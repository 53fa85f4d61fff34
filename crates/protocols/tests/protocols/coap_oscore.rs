//! The protocol `coap` inside OSCORE (RFC 8613): both ends together, what is sent twice, and what
//! does not verify.

use crate::rig::{Client, Heard, Shard, kind, trial};
use proptest::prelude::*;
use weigh_model::Nanos;
use weigh_model::connection::Reply;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Dial, Protocol, Role, Seat};
use weigh_model::server::ServerReport;
use weigh_protocols::coap::Coap;
use weigh_protocols::coap::codec::{self, Code, Kind, code, number};
use weigh_protocols::coap::oscore::{
    Binding, Header, Id, Nonce, PartialIv, Secrets, SecurityContext, put_protected,
};

const URL: &str = "coap://127.0.0.1";

fn dial(pattern: Pattern, topology: Topology, given: &[(&str, &str)]) -> Dial {
    let given = [&[("oscore", "on")], given].concat();
    let mut trial = trial(&Coap, pattern, topology, URL, &given).unwrap();
    trial.load.connections = 2;
    trial.load.subscribers = 2;
    if pattern == Pattern::Poll {
        trial.load.poll.period = Some(Nanos::from_secs(1));
        trial.load.poll.limit = Some(1000);
    }
    Coap.dial(&trial).unwrap()
}

fn seated(dial: &Dial, role: Role, index: u32) -> Client {
    Client::new((dial.make)(Seat { index, role }))
}

fn client(given: &[(&str, &str)]) -> Client {
    seated(&dial(Pattern::Publish, Topology::FanIn, given), Role::Producer, 0)
}

/// A server with one connection.
fn shard(given: &[(&str, &str)]) -> Shard {
    let mut shard = Shard::of(&Coap, &[&[("oscore", "on")], given].concat());
    shard.accept(0);
    shard
}

/// Carries datagrams both ways until neither end has more to say.
fn exchange(client: &mut Client, shard: &mut Shard, connection: u32) {
    loop {
        let there = client.datagrams();
        shard.now = shard.now.max(client.now);
        there.iter().for_each(|datagram| shard.feed(connection, datagram).unwrap());
        let back = shard.datagrams(connection);
        back.iter().for_each(|datagram| client.feed(datagram).unwrap());
        if there.is_empty() && back.is_empty() {
            return;
        }
    }
}

/// The only answer of the server to a datagram.
fn answer(shard: &mut Shard, datagram: &[u8]) -> Vec<u8> {
    shard.feed(0, datagram).unwrap();
    let answers = shard.datagrams(0);
    assert_eq!(answers.len(), 1, "{answers:02x?}");
    answers[0].clone()
}

fn oscore(datagram: &[u8]) -> Option<Vec<u8>> {
    codec::parse(datagram).unwrap().options.first(number::OSCORE).map(<[u8]>::to_vec)
}

fn partial_iv(datagram: &[u8]) -> Option<u64> {
    let value = oscore(datagram).expect("it is protected");
    Header::read(&value).unwrap().partial_iv.map(|own| own.number())
}

fn dropped(report: &ServerReport, cause: &str) -> u64 {
    report.dropped.get(cause).copied().unwrap_or(0)
}

/// A request of 20 bytes and its body has 36: option 1 + 1 + 1 + 3, code 1, marker 1, tag 8. An
/// answer of 8 has 19: option 1, marker 1, code 1, tag 8. From number 256 on a request has one
/// more.
#[test]
fn a_request_has_sixteen_bytes_more_and_its_answer_eleven() {
    let (mut client, mut shard) = (client(&[]), shard(&[]));
    assert_eq!(client.send(7, b"hello"), Reply::Awaited);
    let sent = client.datagrams();
    assert_eq!(sent[0].len(), 25 + 16);
    let message = codec::parse(&sent[0]).unwrap();
    assert_eq!((message.code, message.options.iter().count()), (code::POST, 1));
    assert!(!sent[0].windows(5).any(|part| part == b"hello" || part == b"messa"));
    let back = answer(&mut shard, &sent[0]);
    assert_eq!((back.len(), oscore(&back)), (8 + 11, Some(Vec::new())));
    assert_eq!(codec::parse(&back).unwrap().code, code::CHANGED);
    client.feed(&back).unwrap();
    assert_eq!(client.heard, [Heard::Ready, Heard::Done(7)]);
    assert_eq!(shard.server.report().received, 1);
    for number in 1..300u64 {
        client.send(number as u32, b"hello");
        let sent = client.datagrams();
        assert_eq!(partial_iv(&sent[0]), Some(number));
        assert_eq!(sent[0].len(), 41 + usize::from(number > 255));
        client.feed(&answer(&mut shard, &sent[0])).unwrap();
    }
    assert_eq!((client.heard.len(), shard.server.report().received), (301, 300));
}

/// Every kind of request and response, with every way of answering.
#[test]
fn all_patterns_are_protected() {
    for given in [&[][..], &[("type", "non")], &[("response", "separate")]] {
        let (mut client, mut shard) = (client(given), shard(given));
        client.send(1, b"small");
        exchange(&mut client, &mut shard, 0);
        // Blocks are inside (section 4.1.3.4.1): each is protected by itself.
        let body: Vec<u8> = (0..2_500u32).map(|at| at as u8).collect();
        client.send(2, &body);
        exchange(&mut client, &mut shard, 0);
        assert_eq!(client.heard, [Heard::Ready, Heard::Done(1), Heard::Done(2)], "{given:?}");
        assert_eq!((shard.server.report().received, client.connection.room()), (2, 1));
    }
    let (mut silent, mut shard) = (client(&[("type", "non"), ("no_response", "true")]), shard(&[]));
    assert_eq!(silent.send(1, b"x"), Reply::None);
    exchange(&mut silent, &mut shard, 0);
    assert_eq!((silent.heard.len(), shard.server.report().received), (1, 1));
}

#[test]
fn readings_are_polled_block_by_block() {
    let dial = dial(Pattern::Poll, Topology::FanIn, &[]);
    let mut shard = shard(&[]);
    let (mut producer, mut poller) =
        (seated(&dial, Role::Producer, 0), seated(&dial, Role::Consumer, 0));
    shard.accept(1);
    exchange(&mut poller, &mut shard, 1);
    assert_eq!(poller.heard, [Heard::Ready]);
    for ticket in 0..20 {
        producer.send(ticket, &[b'a' + ticket as u8; 200]);
        exchange(&mut producer, &mut shard, 0);
    }
    poller.connection.poll().unwrap().ask(poller.now, &mut poller.out);
    exchange(&mut poller, &mut shard, 1);
    assert_eq!(poller.heard.len(), 22, "{:?}", poller.heard);
    assert_eq!(poller.heard.last(), Some(&Heard::Answered(Ok(()))));
}

/// Observers: FETCH and 2.05 outside, Observe inside and outside, and a number of the server in
/// every notification (section 4.1.3.5). They leave by what is bound to their registration.
#[test]
fn notifications_have_numbers_of_the_server() {
    for given in [&[][..], &[("type", "non")]] {
        let dial = dial(Pattern::Deliver, Topology::FanOut, given);
        let mut shard = shard(given);
        let mut observers = [0, 1].map(|index| seated(&dial, Role::Consumer, index));
        let registration = observers[0].datagrams();
        let outer = codec::parse(&registration[0]).unwrap();
        assert_eq!(
            (outer.code, outer.options.first(number::OBSERVE)),
            (code::FETCH, Some(&[][..]))
        );
        let registered = answer(&mut shard, &registration[0]);
        assert_eq!(codec::parse(&registered).unwrap().code, code::CONTENT);
        assert_eq!(partial_iv(&registered), Some(0));
        observers[0].feed(&registered).unwrap();
        shard.accept(1);
        exchange(&mut observers[1], &mut shard, 1);
        let mut producer = seated(&dial, Role::Producer, 0);
        shard.accept(2);
        for (ticket, body) in [b"a", b"b"].into_iter().enumerate() {
            producer.send(ticket as u32, body);
            exchange(&mut producer, &mut shard, 2);
            let notification = shard.datagrams(0);
            assert_eq!(partial_iv(&notification[0]), Some(1 + ticket as u64));
            let message = codec::parse(&notification[0]).unwrap();
            assert_eq!(message.code, code::CONTENT);
            assert!(message.options.first(number::OBSERVE).is_some());
            observers[0].feed(&notification[0]).unwrap();
            // A copy is acknowledged and is no message; so is one with another message ID.
            observers[0].feed(&notification[0]).unwrap();
            let mut copy = notification[0].clone();
            copy[2] ^= 1;
            observers[0].feed(&copy).unwrap();
            exchange(&mut observers[0], &mut shard, 0);
            exchange(&mut observers[1], &mut shard, 1);
        }
        let message = |body: &[u8]| Heard::Message(vec![], body.to_vec());
        for observer in &observers {
            assert_eq!(observer.heard, [Heard::Ready, message(b"a"), message(b"b")]);
        }
        for (connection, observer) in observers.iter_mut().enumerate() {
            observer.connection.close(&mut observer.out);
            exchange(observer, &mut shard, connection as u32);
        }
        producer.send(8, b"late");
        exchange(&mut producer, &mut shard, 2);
        assert!(shard.datagrams(0).is_empty() && shard.datagrams(1).is_empty());
        assert_eq!(shard.server.report().dropped.len(), 0);
    }
}

/// The copy of a message is known by its message ID and not taken for a replay. Its answer has a
/// nonce of its own: two texts under one nonce would give both away.
#[test]
fn copies_are_answered_with_another_nonce() {
    let (mut client, mut shard) = (client(&[]), shard(&[]));
    client.send(1, b"x");
    let sent = client.datagrams();
    let first = answer(&mut shard, &sent[0]);
    let second = answer(&mut shard, &sent[0]);
    assert_eq!((partial_iv(&first), partial_iv(&second)), (None, Some(0)));
    // The first one was lost.
    client.feed(&second).unwrap();
    assert_eq!(client.heard, [Heard::Ready, Heard::Done(1)]);
    let report = shard.server.report();
    assert_eq!((report.received, report.dropped.len()), (2, 0));
    // The copy of a registration registers once, and is answered again.
    let dial = dial(Pattern::Deliver, Topology::FanIn, &[]);
    let mut observer = seated(&dial, Role::Consumer, 0);
    shard.accept(1);
    let registration = observer.datagrams();
    for number in 0..2 {
        shard.feed(1, &registration[0]).unwrap();
        let answers = shard.datagrams(1);
        assert_eq!(partial_iv(&answers[0]), Some(number));
        observer.feed(&answers[0]).unwrap();
    }
    assert_eq!(observer.heard, [Heard::Ready]);
    client.send(2, b"y");
    exchange(&mut client, &mut shard, 0);
    assert_eq!(shard.datagrams(1).len(), 1);
}

/// Section 8.2: every refusal has its code and its words, is not protected, and is counted by its
/// cause; no proxy may keep it (Max-Age 0).
#[test]
fn requests_that_do_not_verify_are_refused_by_cause() {
    let (mut client, mut shard) = (client(&[]), shard(&[]));
    client.send(1, b"x");
    let sent = client.datagrams();
    client.feed(&answer(&mut shard, &sent[0])).unwrap();
    let refused = |shard: &mut Shard, datagram: &[u8], words: &str, result: Code, cause: &str| {
        let before = dropped(&shard.server.report(), cause);
        let back = answer(shard, datagram);
        let message = codec::parse(&back).unwrap();
        assert_eq!(message.code, result, "{words}");
        assert_eq!(message.payload, words.as_bytes());
        assert_eq!(message.options.first(number::MAX_AGE), Some(&[][..]), "{words}");
        assert_eq!((oscore(&back), message.id), (None, codec::parse(datagram).unwrap().id));
        let report = shard.server.report();
        assert_eq!(dropped(&report, cause), before + 1, "{report:?}");
        assert_eq!(report.received, 1, "{words}");
    };
    let next_id = |datagram: &[u8], more: u8| {
        let mut other = datagram.to_vec();
        other[3] = other[3].wrapping_add(more);
        other
    };
    // The same request under another message ID, and from another address.
    let replayed = ("Replay detected", code::UNAUTHORIZED, "oscore_replayed");
    refused(&mut shard, &next_id(&sent[0], 1), replayed.0, replayed.1, replayed.2);
    // A changed bit of the partial IV, of the kid, of the ciphertext, of the tag, and a cut one.
    let forged = ("Decryption failed", code::BAD_REQUEST, "oscore_forged");
    client.send(2, b"y");
    let sent = client.datagrams();
    let last = sent[0].len() - 1;
    for (at, bit) in [(10, 4), (12, 1), (15, 1), (20, 1), (last, 1)] {
        let mut changed = sent[0].clone();
        changed[at] ^= bit;
        refused(&mut shard, &changed, forged.0, forged.1, forged.2);
    }
    for length in [16, 20, last] {
        refused(&mut shard, &sent[0][..length], forged.0, forged.1, forged.2);
    }
    // An ID that no endpoint can have, and an ID context.
    let header = |bytes: &[u8], option: &[u8]| {
        let head = [&bytes[..8], &[0x90 | option.len() as u8], option];
        [&head.concat()[..], &bytes[14..]].concat()
    };
    let unknown = ("Security context not found", code::UNAUTHORIZED, "oscore_unknown");
    let long = header(&sent[0], b"\x09\x01abcdefg");
    refused(&mut shard, &long, unknown.0, unknown.1, unknown.2);
    let context = header(&sent[0], b"\x19\x01\x01cabc");
    refused(&mut shard, &context, unknown.0, unknown.1, unknown.2);
    // No partial IV, no kid, reserved flags, more bytes than the flags say.
    let malformed = ("Failed to decode COSE", code::BAD_OPTION, "oscore_malformed");
    for option in [&b""[..], b"\x08abc", b"\x01\x05", b"\x29\x01abc", b"\x0e\x01abc", b"\x01\x05a"]
    {
        let wrong = header(&sent[0], option);
        refused(&mut shard, &wrong, malformed.0, malformed.1, malformed.2);
    }
    let missing = ("OSCORE is required", code::UNAUTHORIZED, "oscore_missing");
    let plain = b"\x40\x02\x00\x01\xb8messages\xffhello";
    refused(&mut shard, plain, missing.0, missing.1, missing.2);
    // After all that the request itself is served.
    client.feed(&answer(&mut shard, &sent[0])).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Done(2)));
    // A server without OSCORE does not understand the option, which is critical.
    let mut other = Shard::of(&Coap, &[]);
    other.accept(0);
    assert_eq!(codec::parse(&answer(&mut other, &sent[0])).unwrap().code, code::BAD_OPTION);
}

/// Section 7.4: 32 numbers, in any order; what is older is refused.
#[test]
fn requests_may_overtake_each_other_within_the_window() {
    for (given, is_taken) in [("32", false), ("64", true)] {
        let mut client = client(&[("nstart", "40")]);
        let mut shard = shard(&[("oscore_window", given)]);
        for ticket in 0..40 {
            client.send(ticket, b"x");
        }
        let sent = client.datagrams();
        client.feed(&answer(&mut shard, &sent[39])).unwrap();
        client.feed(&answer(&mut shard, &sent[8])).unwrap();
        client.feed(&answer(&mut shard, &sent[7])).unwrap();
        let last = if is_taken { Heard::Done(7) } else { Heard::Refused(7, 401) };
        assert_eq!(client.heard, [Heard::Ready, Heard::Done(39), Heard::Done(8), last]);
    }
}

/// Section 8.4: what does not verify does not answer, and the request is repeated. An error that is
/// not protected does, since a server that cannot open a request can give no other.
#[test]
fn answers_that_do_not_verify_are_not_processed() {
    let (mut client, mut shard) = (client(&[]), shard(&[]));
    client.send(1, b"x");
    let sent = client.datagrams();
    let back = answer(&mut shard, &sent[0]);
    for at in [1, 8, 10, back.len() - 1] {
        let mut changed = back.clone();
        // Of the option only a length that fits is left.
        changed[at] ^= if at == 8 { 0x10 } else { 1 };
        let is_code = at == 1;
        if !is_code {
            client.feed(&changed).unwrap();
            assert_eq!(client.heard, [Heard::Ready], "byte {at}");
        }
    }
    // Without the key nothing is confirmed.
    client.feed(&[&[0x64, 0x44], &sent[0][2..8]].concat()).unwrap();
    client.feed(&[&[0x64, 0x44], &sent[0][2..8], &[0x90, 0xff, 1, 2, 3]].concat()).unwrap();
    let confirmable = [&[0x44, 0x44, 9, 9], &sent[0][4..8]].concat();
    client.feed(&confirmable).unwrap();
    assert_eq!(client.datagrams(), [[0x60, 0, 9, 9]]);
    assert_eq!(client.heard, [Heard::Ready]);
    client.pass(Nanos::from_secs(4)).unwrap();
    assert_eq!(client.datagrams(), sent, "it is repeated as it was");
    // The outer code says nothing (section 4.2).
    let mut other = back.clone();
    other[1] = code::CONTENT.0;
    client.feed(&other).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Done(1)));
    // The answer to one request is none to another.
    client.send(2, b"y");
    let second = client.datagrams();
    client.feed(&[&back[..2], &second[0][2..8], &back[8..]].concat()).unwrap();
    assert_eq!(client.heard.len(), 2);
    client.feed(&[&[0x64, 0x81], &second[0][2..8]].concat()).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Refused(2, 401)));
}

/// An error of a stranger ends a registration that waits, and no observation.
#[test]
fn a_stranger_ends_no_observation() {
    let dial = dial(Pattern::Deliver, Topology::FanIn, &[]);
    let mut waiting = seated(&dial, Role::Consumer, 0);
    let sent = waiting.datagrams();
    let result = waiting.feed(&[&[0x64, 0x81], &sent[0][2..8]].concat());
    assert_eq!(kind(&result), "refused");
    let (mut observer, mut shard) = (seated(&dial, Role::Consumer, 1), shard(&[]));
    let sent = observer.datagrams();
    observer.feed(&answer(&mut shard, &sent[0])).unwrap();
    observer.feed(&[&[0x54, 0x84, 1, 1], &sent[0][4..8]].concat()).unwrap();
    observer
        .feed(&[&[0x54, 0x45, 1, 2], &sent[0][4..8], b"\x60\x30\xff12345678"].concat())
        .unwrap();
    assert_eq!(observer.heard, [Heard::Ready]);
}

/// An endpoint keeps its context and its numbers when its socket is replaced; others have other
/// IDs.
#[test]
fn an_endpoint_continues_on_its_next_socket() {
    let kid = |datagram: &[u8]| Header::read(&oscore(datagram).unwrap()).unwrap().kid.unwrap();
    let dial = dial(Pattern::Session, Topology::FanIn, &[]);
    let mut shard = shard(&[]);
    let mut ids = Vec::new();
    for (index, number) in [(0, 0), (0, 1), (1, 0), (0, 2)] {
        let mut client = seated(&dial, Role::Producer, index);
        client.send(1, b"x");
        let sent = client.datagrams();
        assert_eq!(partial_iv(&sent[0]), Some(number));
        client.feed(&answer(&mut shard, &sent[0])).unwrap();
        assert_eq!(client.heard, [Heard::Ready, Heard::Done(1)]);
        ids.push(kid(&sent[0]));
    }
    assert!(ids[0] == ids[1] && ids[0] != ids[2] && ids[0] == ids[3]);
    // Another trial at the same server has other IDs, which its runner chooses.
    let mut other = client(&[("oscore_first_id", "9")]);
    other.send(1, b"x");
    let sent = other.datagrams();
    assert!(!ids.contains(&kid(&sent[0])));
    other.feed(&answer(&mut shard, &sent[0])).unwrap();
    assert_eq!(other.heard.last(), Some(&Heard::Done(1)));
}

/// IDs that a real server knows: they count up, and their numbers continue in the next trial.
#[test]
fn given_ids_count_up_and_their_numbers_continue() {
    let given = [
        ("oscore_secret", "a secret of this test"),
        ("oscore_salt", ""),
        ("oscore_id_context", "trial"),
        ("oscore_sender_id", "hex:0a"),
        ("oscore_recipient_id", "hex:8a"),
        ("oscore_sequence", "1000"),
    ];
    let mut shard = shard(&given);
    for (index, first) in [(0, 1000), (1, 1000), (0, 1001)] {
        let dial = dial(Pattern::Publish, Topology::FanIn, &given);
        let mut client = seated(&dial, Role::Producer, index);
        client.send(1, b"x");
        let sent = client.datagrams();
        let value = oscore(&sent[0]).unwrap();
        let header = Header::read(&value).unwrap();
        assert_eq!(header.kid, Id::of(&[0x0a + index as u8]));
        assert_eq!((partial_iv(&sent[0]), header.kid_context), (Some(first), Some(&b"trial"[..])));
        client.feed(&answer(&mut shard, &sent[0])).unwrap();
        assert_eq!(client.heard, [Heard::Ready, Heard::Done(1)]);
    }
    // Each key counts: another one is refused as forged.
    for (key, value) in
        [("oscore_secret", "another"), ("oscore_salt", "s"), ("oscore_recipient_id", "hex:9a")]
    {
        let mut other = given.to_vec();
        other.iter_mut().filter(|(own, _)| *own == key).for_each(|own| own.1 = value);
        other
            .iter_mut()
            .filter(|(own, _)| *own == "oscore_sequence")
            .for_each(|own| own.1 = "2000");
        let mut client = client(&other);
        client.send(1, b"x");
        let back = answer(&mut shard, &client.datagrams()[0]);
        let is_refused = codec::parse(&back).unwrap().code == code::BAD_REQUEST;
        client.feed(&back).unwrap();
        // The ID of the server is not in a request: only its answer does not verify.
        let heard = if is_refused { 2 } else { 1 };
        assert_eq!((is_refused, client.heard.len()), (key != "oscore_recipient_id", heard));
    }
}

/// A client that binds the end of an observation to itself, as aiocoap does, is understood too.
#[test]
fn an_observation_ends_for_a_client_that_does_not_know_section_5_4() {
    let (mut shard, secrets) = (shard(&[]), secrets());
    let (kid, server) = (Id::of(b"abc").unwrap(), Id::of(b"Sabc").unwrap());
    let context = SecurityContext::derive(&secrets, kid, server);
    let ask = |shard: &mut Shard, number: u64, observe: u32| {
        let mut plain = Vec::new();
        let id = 100 + number as u16;
        codec::put_head(&mut plain, Kind::Confirmable, code::GET, id, codec::Token::of(b"t"));
        let mut writer = codec::OptionWriter::default();
        writer.put_unsigned(&mut plain, number::OBSERVE, observe);
        writer.put(&mut plain, number::URI_PATH, b"messages");
        let partial_iv = PartialIv::of(number).unwrap();
        let binding = Binding { kid, partial_iv, is_fetch: true };
        let mut out = Vec::new();
        let plain = codec::parse(&plain).unwrap();
        put_protected(&context, &plain, &binding, Nonce::Own(partial_iv), &mut out);
        shard.feed(0, &out).unwrap();
        codec::parse(&shard.datagrams(0)[0]).unwrap().code
    };
    let mut producer = client(&[]);
    shard.accept(1);
    for (observe, notified) in [(0, 1), (1, 0)] {
        assert_eq!(ask(&mut shard, observe.into(), observe), code::CONTENT);
        producer.send(observe, b"x");
        exchange(&mut producer, &mut shard, 1);
        assert_eq!(shard.datagrams(0).len(), notified);
    }
    assert_eq!(shard.server.report().dropped.len(), 0);
}

fn secrets() -> Secrets {
    let salt = vec![0x9e, 0x7c, 0xa9, 0x22, 0x23, 0x78, 0x63, 0x40];
    Secrets { secret: (1..=16).collect(), salt, id_context: None }
}

/// An endpoint that moves to another shard keeps its window there.
#[test]
fn shards_share_what_they_know_of_an_endpoint() {
    let settings = Coap.settings();
    let settings =
        weigh_model::trial::Settings::new("coap", settings, Some(("oscore", "on"))).unwrap();
    let host = Coap.host(&settings).unwrap();
    let (mut left, mut right) = (Shard::new((host.make)(0)), Shard::new((host.make)(1)));
    left.accept(0);
    right.accept(0);
    let mut client = client(&[]);
    client.send(1, b"x");
    let sent = client.datagrams();
    client.feed(&answer(&mut left, &sent[0])).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Done(1)));
    let back = answer(&mut right, &sent[0]);
    assert_eq!(codec::parse(&back).unwrap().payload, b"Replay detected");
}

proptest! {
    /// Any change of what goes either way: nothing panics, no message ends twice, and nothing is
    /// stored that was not sent.
    #[test]
    fn no_datagram_on_the_wire_causes_a_panic(
        is_non in any::<bool>(),
        changes in prop::collection::vec((0..4u8, any::<u16>(), any::<u8>()), 0..80),
    ) {
        let kind = if is_non { "non" } else { "con" };
        let mut client = client(&[("type", kind), ("nstart", "4")]);
        let mut shard = shard(&[("type", kind)]);
        let mut changes = changes.into_iter();
        let mut changed = |datagram: &[u8]| {
            let mut datagram = datagram.to_vec();
            match changes.next() {
                Some((0, at, with)) => {
                    let at = usize::from(at) % datagram.len();
                    datagram[at] ^= with;
                }
                Some((1, at, _)) => datagram.truncate(usize::from(at) % (datagram.len() + 1)),
                _ => {}
            }
            datagram
        };
        let mut tickets = 0;
        for step in 0..100u64 {
            let now = Nanos::from_millis(step * 500);
            client.pass(now).unwrap();
            shard.pass(now);
            if client.connection.room() > 0 && tickets < 30 {
                client.send(tickets, format!("message {tickets}").as_bytes());
                tickets += 1;
            }
            for datagram in client.datagrams() {
                shard.feed(0, &changed(&datagram)).unwrap();
            }
            for datagram in shard.datagrams(0) {
                // The very first datagram may be of another protocol: that ends the connection.
                if client.feed(&changed(&datagram)).is_err() {
                    return Ok(());
                }
            }
        }
        let mut ended = client.heard.iter().map(|own| format!("{own:?}")).collect::<Vec<_>>();
        let all = ended.len();
        ended.sort();
        ended.dedup();
        prop_assert_eq!(ended.len(), all, "something ended twice");
        // What is confirmed is stored: as it was sent, and once.
        let mut stored = shard.desk.stored.clone();
        let all = stored.len();
        stored.sort();
        stored.dedup();
        prop_assert_eq!(stored.len(), all, "something was stored twice");
        let sent: Vec<Vec<u8>> =
            (0..tickets).map(|ticket| format!("message {ticket}").into_bytes()).collect();
        prop_assert!(stored.iter().all(|body| sent.contains(body)), "{stored:?}");
    }
}
