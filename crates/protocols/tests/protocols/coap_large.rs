//! The protocol `coap`: objects that are sent piece by piece, and consumers that poll.

use crate::rig::{Client, Heard, Shard, kind, trial};
use weigh_model::Nanos;
use weigh_model::connection::{Op, Reply, Ticket};
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_model::units::Bytes;
use weigh_protocols::coap::Coap;
use weigh_protocols::coap::codec::{self, Block, Kind, code, number};

const URL: &str = "coap://127.0.0.1";

fn seated(pattern: Pattern, role: Role, given: &[(&str, &str)]) -> Client {
    let mut trial = trial(&Coap, pattern, Topology::FanIn, URL, given).unwrap();
    if pattern == Pattern::Poll {
        trial.load.poll.period = Some(Nanos::from_secs(1));
        trial.load.poll.limit = Some(1000);
        trial.load.subscribers = 1;
    }
    Client::new((Coap.dial(&trial).unwrap().make)(Seat { index: 0, role }))
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

fn begin(client: &mut Client, ticket: u32, first: &[u8], rest: u64) {
    let op = Op { ticket: Ticket(ticket), body: first };
    let transfer = client.connection.transfer().expect("it sends pieces");
    assert_eq!(transfer.begin(&op, rest, client.now, &mut client.out), Reply::Awaited);
}

fn more(client: &mut Client, piece: &[u8]) {
    let transfer = client.connection.transfer().expect("it sends pieces");
    transfer.more(piece, client.now, &mut client.out);
}

fn takes_more(client: &mut Client) -> bool {
    client.connection.transfer().expect("it sends pieces").takes_more()
}

/// Pieces of 1,500 bytes into blocks of 1,024: a piece is taken when the next block needs it, and
/// never before.
#[test]
fn an_object_is_sent_piece_by_piece() {
    for given in [&[][..], &[("type", "non")], &[("block_bytes", "64")]] {
        // What is not confirmed is not stored.
        let is_stored = given != [("type", "non")];
        let body: Vec<u8> = (0..20_000u32).map(|at| (at / 7) as u8).collect();
        let mut client = seated(Pattern::Transfer, Role::Producer, given);
        let mut shard = Shard::of(&Coap, given);
        shard.accept(0);
        begin(&mut client, 3, &body[..1_500], 18_500);
        assert_eq!(client.connection.room(), 0);
        let mut given = 1_500;
        while given < body.len() {
            assert!(!takes_more(&mut client), "a block is in progress");
            exchange(&mut client, &mut shard, 0);
            assert!(takes_more(&mut client), "at {given}");
            let piece = &body[given..(given + 1_500).min(body.len())];
            given += piece.len();
            more(&mut client, piece);
        }
        exchange(&mut client, &mut shard, 0);
        assert_eq!(client.heard, [Heard::Ready, Heard::Done(3)]);
        assert_eq!((shard.server.report().received, client.connection.room()), (1, 1));
        assert_eq!(shard.desk.stored.last(), is_stored.then_some(&body));
    }
}

/// A block that is never acknowledged ends its object: what follows of it is discarded, and the
/// next object begins anew.
#[test]
fn an_object_that_is_given_up_leaves_room_for_the_next() {
    let mut client = seated(Pattern::Transfer, Role::Producer, &[]);
    let mut shard = Shard::of(&Coap, &[]);
    shard.accept(0);
    begin(&mut client, 1, &[b'a'; 2_000], 2_000);
    client.datagrams();
    client.pass(Nanos::from_secs(100)).unwrap();
    client.datagrams();
    assert_eq!((client.connection.room(), takes_more(&mut client)), (1, true));
    more(&mut client, &[b'a'; 2_000]);
    assert!(client.datagrams().is_empty());
    begin(&mut client, 2, &[b'b'; 2_000], 500);
    exchange(&mut client, &mut shard, 0);
    more(&mut client, &[b'b'; 500]);
    exchange(&mut client, &mut shard, 0);
    assert_eq!(client.heard.last(), Some(&Heard::Done(2)));
    assert_eq!(shard.desk.stored, [vec![b'b'; 2_500]]);
}

#[test]
fn a_server_that_takes_no_more_is_reported() {
    let mut client = seated(Pattern::Transfer, Role::Producer, &[]);
    let mut shard = Shard::of(&Coap, &[("body_bytes_max", "1500")]);
    shard.accept(0);
    begin(&mut client, 1, &[b'a'; 3_000], 3_000);
    exchange(&mut client, &mut shard, 0);
    assert_eq!(client.heard.last(), Some(&Heard::Refused(1, 413)));
    assert!(takes_more(&mut client));
    more(&mut client, &[b'a'; 3_000]);
    assert!(client.datagrams().is_empty());
}

/// A file of more blocks than an endpoint has message IDs.
#[test]
fn what_no_endpoint_can_send_is_refused() {
    let mut client = seated(Pattern::Transfer, Role::Producer, &[("block_bytes", "16")]);
    begin(&mut client, 1, &[0; 65_536], 16 * 32_768);
    assert!(client.datagrams().is_empty());
    client.pass(Nanos(1)).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Refused(1, 2)));
    let mut trial = trial(&Coap, Pattern::Transfer, Topology::FanIn, URL, &[]).unwrap();
    trial.load.subscribers = 1;
    assert!(Coap.dial(&trial).err().unwrap().to_string().contains("one block"));
    trial.load.pattern = Pattern::Deliver;
    trial.load.size = Some(Bytes(1_025));
    assert_eq!(Coap.dial(&trial).err().unwrap().place, "load.size");
}

fn ask(client: &mut Client) {
    let poll = client.connection.poll().expect("it polls");
    poll.ask(client.now, &mut client.out);
}

fn send_all(producer: &mut Client, shard: &mut Shard, bodies: &[&[u8]]) {
    for (ticket, body) in bodies.iter().enumerate() {
        producer.send(ticket as u32, body);
        exchange(producer, shard, 1);
    }
}

/// A consumer begins at the end, gets every message once, and continues where it was after its
/// endpoint was replaced.
#[test]
fn consumers_get_what_is_new() {
    let mut shard = Shard::of(&Coap, &[]);
    let mut trial = trial(&Coap, Pattern::Poll, Topology::FanIn, URL, &[]).unwrap();
    trial.load.poll.period = Some(Nanos::from_secs(1));
    trial.load.subscribers = 1;
    let dial = Coap.dial(&trial).unwrap();
    let make = |role| Client::new((dial.make)(Seat { index: 0, role }));
    let mut producer = make(Role::Producer);
    (0..3).for_each(|connection| shard.accept(connection));
    send_all(&mut producer, &mut shard, &[b"{\"old\":1}"]);
    let mut consumer = make(Role::Consumer);
    assert_eq!(consumer.heard, []);
    let first = consumer.datagrams();
    let message = codec::parse(&first[0]).unwrap();
    let values = |wanted| {
        let of = message.options.iter().filter(move |own| own.number == wanted);
        of.map(|own| own.value.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!((message.kind, message.code), (Kind::Confirmable, code::GET));
    assert_eq!(values(number::URI_PATH), [b"readings"]);
    assert_eq!(values(number::URI_QUERY), [b"limit=0"]);
    shard.feed(0, &first[0]).unwrap();
    shard.datagrams(0).iter().for_each(|datagram| consumer.feed(datagram).unwrap());
    exchange(&mut consumer, &mut shard, 0);
    assert_eq!(consumer.heard, [Heard::Ready]);
    send_all(&mut producer, &mut shard, &[b"{\"n\":1}", b"two", b"\xff\x00"]);
    let body = |body: &[u8]| Heard::Message(vec![], body.to_vec());
    for answers in [&[body(b"{\"n\":1}"), body(b"two"), body(b"\xff\x00")][..], &[]] {
        let before = consumer.heard.len();
        ask(&mut consumer);
        exchange(&mut consumer, &mut shard, 0);
        assert_eq!(&consumer.heard[before..], &[answers, &[Heard::Answered(Ok(()))]].concat());
    }
    drop(consumer);
    send_all(&mut producer, &mut shard, &[b"between"]);
    let mut again = make(Role::Consumer);
    assert_eq!(again.heard, [Heard::Ready]);
    ask(&mut again);
    exchange(&mut again, &mut shard, 2);
    assert_eq!(again.heard[1..], [body(b"between"), Heard::Answered(Ok(()))]);
    let report = shard.server.report();
    assert_eq!((report.received, report.forwarded), (5, 4));
}

/// RFC 7959, section 2.4: a page of several blocks is one page, also if readings arrive between
/// its blocks or one of its datagrams is lost.
#[test]
fn a_large_page_comes_block_by_block() {
    for given in [&[][..], &[("block_bytes", "64")]] {
        let mut shard = Shard::of(&Coap, &[]);
        let mut producer = seated(Pattern::Poll, Role::Producer, given);
        let mut consumer = seated(Pattern::Poll, Role::Consumer, given);
        (0..2).for_each(|connection| shard.accept(connection));
        exchange(&mut consumer, &mut shard, 0);
        let large = [b'x'; 900];
        send_all(&mut producer, &mut shard, &[&large, &large, &large]);
        ask(&mut consumer);
        let mut blocks = 0;
        while !consumer.heard.contains(&Heard::Answered(Ok(()))) {
            let sent = consumer.datagrams();
            assert_eq!(sent.len(), 1);
            // The answer to the first copy is lost.
            shard.feed(0, &sent[0]).unwrap();
            shard.datagrams(0);
            consumer.pass(consumer.now + Nanos::from_secs(1)).unwrap();
            send_all(&mut producer, &mut shard, &[b"later"]);
            shard.feed(0, &sent[0]).unwrap();
            let answer = shard.datagrams(0);
            let message = codec::parse(&answer[0]).unwrap();
            let block = message.options.first(number::BLOCK2).and_then(Block::read).unwrap();
            let has_etag = message.options.first(number::ETAG).is_some();
            assert_eq!((block.index, has_etag), (blocks, true));
            blocks += 1;
            // A copy of an answer changes nothing.
            consumer.feed(&answer[0]).unwrap();
            consumer.feed(&answer[0]).unwrap();
            consumer.now = Nanos(0);
        }
        let messages =
            consumer.heard.iter().filter(|heard| matches!(heard, Heard::Message(..))).count();
        assert_eq!(messages, 3);
        ask(&mut consumer);
        exchange(&mut consumer, &mut shard, 0);
        let later = consumer
            .heard
            .iter()
            .filter(|heard| matches!(heard, Heard::Message(_, body) if body == b"later"));
        assert_eq!(later.count() as u32, blocks);
    }
}

/// Errors are counted, and a request without an answer is given up before Tmax.
#[test]
fn requests_that_fail_are_reported() {
    let answered = |answer: u8| {
        let mut shard = Shard::of(&Coap, &[]);
        let mut consumer = seated(Pattern::Poll, Role::Consumer, &[]);
        shard.accept(0);
        exchange(&mut consumer, &mut shard, 0);
        ask(&mut consumer);
        let sent = consumer.datagrams();
        if answer > 0 {
            consumer.feed(&[&[0x64, answer], &sent[0][2..8]].concat()).unwrap();
        } else {
            consumer.pass(Nanos::from_secs(5)).unwrap();
            consumer.feed(&[&[0x64, 0x45], &sent[0][2..8]].concat()).unwrap();
        }
        consumer.heard.last().cloned()
    };
    assert_eq!(answered(0x84), Some(Heard::Answered(Err(404))));
    assert_eq!(answered(0xa3), Some(Heard::Answered(Err(503))));
    assert_eq!(answered(0), Some(Heard::Answered(Err(3))));
    // A server without readings, before the session stands.
    let mut consumer = seated(Pattern::Poll, Role::Consumer, &[]);
    for expected in ["ok", "refused"] {
        let sent = consumer.datagrams();
        let result = consumer.feed(&[&[0x64, 0x84], &sent[0][2..8]].concat());
        assert_eq!(kind(&result), expected);
    }
    let mut silent = seated(Pattern::Poll, Role::Consumer, &[]);
    assert_eq!(kind(&silent.pass(Nanos::from_secs(100))), "ended");
    let mut other = seated(Pattern::Poll, Role::Consumer, &[]);
    let sent = other.datagrams();
    let result = other.feed(&[&[0x64, 0x45], &sent[0][2..8], b"\xffhello"].concat());
    assert_eq!(kind(&result), "malformed");
}

#[test]
fn what_poll_cannot_do_is_named() {
    let wrong = |change: &dyn Fn(&mut weigh_model::Load), given: &[(&str, &str)]| {
        let mut trial = trial(&Coap, Pattern::Poll, Topology::FanIn, URL, given).unwrap();
        trial.load.poll.period = Some(Nanos::from_secs(1));
        trial.load.subscribers = 1;
        change(&mut trial.load);
        Coap.dial(&trial).err().map(|invalid| invalid.place)
    };
    assert_eq!(wrong(&|_| {}, &[]), None);
    let held = wrong(&|load| load.poll.wait = Some(Nanos::from_secs(30)), &[]);
    assert_eq!(held.as_deref(), Some("load.poll.wait"));
    let small = wrong(&|load| (load.size, load.connections) = (Some(Bytes(5)), 2), &[]);
    assert_eq!(small.as_deref(), Some("load.size"));
    assert_eq!(wrong(&|_| {}, &[("method", "GET")]).as_deref(), Some("coap.method"));
    let path = wrong(&|_| {}, &[("poll_path", "readings")]);
    assert_eq!(path.as_deref(), Some("coap.poll_path"));
}
