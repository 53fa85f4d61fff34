//! Calls of gRPC besides `Append`: dialogues (a stream of messages with an answer to each),
//! deadlines, messages of other services, and requests that a server did not process.

use crate::rig::{Client, Heard, Shard, exchange, trial};
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_model::{Nanos, Trial};
use weigh_protocols::grpc::Grpc;
use weigh_protocols::grpc::method::{CompiledMethod, Streaming};
use weigh_protocols::grpc::template::{MessageTemplate, Part};

const URL: &str = "grpc://127.0.0.1:8080";
const BIDI: &[(&str, &str)] = &[("streaming", "bidi")];

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags, 0, 0, 0, stream];
    [&head[..], payload].concat()
}

/// Kinds, flags and streams of the frames in `bytes`, behind a preface if there is one.
fn frames(bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut rest = bytes.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(bytes);
    let mut all = Vec::new();
    while let [a, b, c, kind, flags, s, t, u, v, after @ ..] = rest {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let stream = u32::from_be_bytes([*s, *t, *u, *v]);
        all.push((*kind, *flags, stream, after[..length].to_vec()));
        rest = &after[length..];
    }
    all
}

fn client_of(trial: &Trial) -> Client {
    let dial = Grpc.dial(trial).map_err(|wrong| wrong.to_string()).unwrap();
    Client::new((dial.make)(Seat { index: 0, role: Role::Producer }))
}

fn pair(given: &[(&str, &str)]) -> (Client, Shard) {
    let mut shard = Shard::of(&Grpc, &[]);
    shard.accept(0);
    let mut client = Client::of(&Grpc, URL, given);
    exchange(&mut client, &mut shard, 0, &[]);
    assert!(client.heard.contains(&Heard::Ready), "{:?}", client.heard);
    (client, shard)
}

fn done(client: &Client) -> Vec<u32> {
    let ticket = |heard: &Heard| match heard {
        Heard::Done(ticket) => Some(*ticket),
        _ => None,
    };
    client.heard.iter().filter_map(ticket).collect()
}

/// One call carries all messages; each is answered by itself, in its order.
#[test]
fn a_dialogue_is_one_call_with_an_answer_to_each_message() {
    let (mut client, mut shard) = pair(BIDI);
    assert_eq!(client.connection.room(), 100);
    for ticket in 0..100 {
        client.send(ticket, &[b'x'; 64]);
    }
    assert_eq!(client.connection.room(), 0);
    let sent = client.sent();
    let kinds: Vec<u8> = frames(&sent).iter().map(|frame| frame.0).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == HEADERS).count(), 1);
    assert!(frames(&sent).iter().all(|frame| frame.1 & END_STREAM == 0), "it continues");
    shard.feed(0, &sent).unwrap();
    let answer = shard.staged(0);
    assert!(frames(&answer).iter().all(|frame| frame.1 & END_STREAM == 0), "it continues");
    client.feed(&answer).unwrap();
    assert_eq!(done(&client), (0..100).collect::<Vec<_>>());
    assert_eq!(client.connection.room(), 100);
    assert_eq!(shard.server.report().received, 100);
    // A further message has a head of a frame, a prefix, a tag and a length: nothing else.
    client.send(100, &[b'x'; 64]);
    let further = client.sent();
    assert_eq!(further.len(), 9 + 5 + 2 + 64);
    // At the end the stream is ended, and the server answers with its status.
    let mut out = weigh_model::connection::Outbox::default();
    client.connection.close(&mut out);
    let last = frames(out.bytes());
    assert_eq!((last[0].0, last[0].1, last[0].3.len()), (DATA, END_STREAM, 0));
    assert_eq!(last[1].0, GOAWAY);
    let counted = client.connection.metered().unwrap().counts().unwrap();
    assert_eq!(counted.sent.messages.payload, 101 * 64);
    shard.feed(0, &[&further[..], out.bytes()].concat()).unwrap();
    let answer = shard.staged(0);
    let end = frames(&answer);
    let end = end.iter().find(|frame| frame.0 == HEADERS).expect("trailers");
    assert_eq!(end.1 & END_STREAM, END_STREAM);
    client.out = weigh_model::connection::Outbox::default();
    std::mem::forget(client);
}

/// Messages beyond every window: they wait, in their order, cut anywhere.
#[test]
fn a_dialogue_waits_for_windows() {
    for cuts in [&[][..], &[1, 9, 30_000, 70_000]] {
        let (mut client, mut shard) = pair(BIDI);
        for round in 0..5 {
            for ticket in 0..40 {
                client.send(round * 40 + ticket, &vec![b'x'; 1_000_000]);
            }
            exchange(&mut client, &mut shard, 0, cuts);
        }
        assert_eq!(done(&client), (0..200).collect::<Vec<_>>());
        assert_eq!(shard.server.report().received, 200);
    }
}

/// A server that ends the call ends what it has not answered, and the next message opens another.
#[test]
fn a_dialogue_that_the_server_ends_begins_anew() {
    let grpc = b"\x88\x5f\x10application/grpc";
    let status = |code: u8| [b"\0\x0bgrpc-status\x01", &[b'0' + code][..]].concat();
    let mut client = Client::of(&Grpc, URL, BIDI);
    client.feed(&frame(SETTINGS, 0, 0, &[])).unwrap();
    for ticket in 0..3 {
        client.send(ticket, b"x");
    }
    client.sent();
    client.feed(&frame(HEADERS, END_HEADERS, 1, grpc)).unwrap();
    client.feed(&frame(DATA, 0, 1, &[0; 5])).unwrap();
    client.feed(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &status(8))).unwrap();
    let heard = [Heard::Done(0), Heard::Refused(1, 8), Heard::Refused(2, 8)];
    assert_eq!(client.heard[client.heard.len() - 3..], heard);
    client.send(3, b"x");
    let again = frames(&client.sent());
    let last = again.iter().rev().find(|frame| frame.0 == HEADERS).expect("another call");
    assert_eq!(last.2, 3);
    // OK before an answer is no answer.
    client.feed(&frame(HEADERS, END_HEADERS, 3, grpc)).unwrap();
    client.feed(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &status(0))).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Refused(3, 15)));
    client.sent();
    // More answers than messages: the method is not one for this.
    client.send(4, b"x");
    client.feed(&frame(HEADERS, END_HEADERS, 5, grpc)).unwrap();
    let fault = client.feed(&frame(DATA, 0, 5, &[0; 10])).unwrap_err().to_string();
    assert!(fault.contains("more answers than"), "{fault}");
    client.sent();
}

/// RFC 9113, section 6.8: with NO_ERROR, streams above the last one are to be sent again.
#[test]
fn what_a_leaving_server_did_not_process_is_reported() {
    for (given, last, unprocessed) in [(&[][..], 3, 2_u32), (BIDI, 0, 0)] {
        let mut client = Client::of(&Grpc, URL, given);
        client.feed(&frame(SETTINGS, 0, 0, &[])).unwrap();
        for ticket in 0..4 {
            client.send(ticket, b"x");
        }
        client.sent();
        client.feed(&frame(GOAWAY, 0, 0, &[0, 0, 0, last, 0, 0, 0, 0])).unwrap();
        assert_eq!(client.connection.room(), 0);
        let again: Vec<Heard> = (unprocessed..4).map(Heard::Unprocessed).collect();
        let heard: Vec<Heard> = client
            .heard
            .iter()
            .filter(|heard| matches!(heard, Heard::Unprocessed(_)))
            .cloned()
            .collect();
        assert_eq!(heard, again);
        let is_closing = client.heard.contains(&Heard::Closing);
        assert_eq!(is_closing, last == 0, "the first two are still open");
        client.sent();
    }
}

/// A dialogue on which nothing is open is ended, so that the server can end it too.
#[test]
fn a_leaving_server_ends_a_dialogue_gracefully() {
    let (mut client, mut shard) = pair(BIDI);
    client.send(0, b"x");
    exchange(&mut client, &mut shard, 0, &[]);
    client.feed(&frame(GOAWAY, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0])).unwrap();
    let end = client.sent();
    assert_eq!((frames(&end)[0].0, frames(&end)[0].1), (DATA, END_STREAM));
    shard.feed(0, &end).unwrap();
    client.feed(&shard.staged(0)).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Closing));
    assert_eq!(done(&client), [0]);
    client.sent();
}

/// gRPC over HTTP/2, "Requests", Timeout; the client cancels a call whose deadline has passed.
#[test]
fn deadlines_are_sent_and_kept() {
    let given = &[("deadline", "250ms")][..];
    let mut client = Client::of(&Grpc, URL, given);
    client.sent();
    client.feed(&frame(SETTINGS, 0, 0, &[])).unwrap();
    client.now = Nanos::from_millis(10);
    client.send(0, b"x");
    client.now = Nanos::from_millis(20);
    client.send(1, b"x");
    let sent = client.sent();
    assert_eq!(client.connection.next_wake(), Some(Nanos::from_millis(260)));
    // The second is answered in time.
    let answer = b"\x88\x5f\x10application/grpc\0\x0bgrpc-status\x010";
    let message = [frame(HEADERS, END_HEADERS, 3, &answer[..19]), frame(DATA, 0, 3, &[0; 5])];
    client.feed(&message.concat()).unwrap();
    client.feed(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &answer[19..])).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Done(1)));
    client.pass(Nanos::from_millis(259)).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Done(1)));
    client.pass(Nanos::from_millis(261)).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Refused(0, 4)), "DEADLINE_EXCEEDED");
    assert_eq!(client.connection.next_wake(), None);
    let reset = frames(&client.sent());
    assert!(reset.iter().any(|frame| (frame.0, frame.2) == (RST_STREAM, 1)), "{reset:?}");
    // The server reads what was sent: 250,000 µs or the like, at most eight digits.
    let head = frames(&sent).into_iter().find(|frame| frame.0 == HEADERS).unwrap();
    assert!(!head.3.is_empty());
    let words = Grpc.error(4);
    assert!(words.name.contains("DEADLINE_EXCEEDED") && words.advice.contains("deadline"));
}

fn compiled(streaming: Streaming, parts: Vec<Part>) -> CompiledMethod {
    CompiledMethod {
        name: "weigh.store.v1.Store/Append".to_owned(),
        streaming,
        message: MessageTemplate(parts),
        has_text_body: false,
    }
}

fn trial_of(method: &CompiledMethod, pattern: Pattern, given: &[(&str, &str)]) -> Trial {
    let mut trial = trial(&Grpc, pattern, Topology::FanIn, URL, given).unwrap();
    method.enter(&mut trial.settings);
    trial
}

/// A message of another service, here the store as one: what the template says is on the wire.
#[test]
fn messages_are_made_of_their_template() {
    let reading = vec![Part::Bytes(vec![0x0a]), Part::Sized(vec![Part::Body])];
    for (parts, payload) in [(reading, 64), (vec![Part::Bytes(vec![0x0a, 1, b'y'])], 0)] {
        let method = compiled(Streaming::None, parts);
        let trial = trial_of(&method, Pattern::Request, &[]);
        assert_eq!(Grpc.carries(&trial.settings), payload > 0);
        let mut client = client_of(&trial);
        let mut shard = Shard::of(&Grpc, &[]);
        shard.accept(0);
        exchange(&mut client, &mut shard, 0, &[]);
        for ticket in 0..50 {
            client.send(ticket, &[b'x'; 64]);
        }
        exchange(&mut client, &mut shard, 0, &[]);
        assert_eq!(done(&client).len(), 50);
        let stored = if payload > 0 { vec![b'x'; 64] } else { b"y".to_vec() };
        assert_eq!(shard.desk.stored, vec![stored; 50]);
        let counts = client.connection.metered().unwrap().counts().unwrap();
        assert_eq!(counts.sent.messages.payload, 50 * payload);
    }
}

#[test]
fn calls_that_cannot_be_are_refused() {
    let refused = |method: &CompiledMethod, pattern, given: &[(&str, &str)]| {
        let trial = trial_of(method, pattern, given);
        Grpc.dial(&trial).map(|_| ()).unwrap_err().to_string()
    };
    let unary = compiled(Streaming::None, vec![]);
    let said = refused(&unary, Pattern::Batch, &[]);
    assert!(said.contains("load.pattern") && said.contains("stream of the client"), "{said}");
    let said = refused(&unary, Pattern::Request, BIDI);
    assert!(said.contains("grpc.streaming") && said.contains("none"), "{said}");
    let bidi = compiled(Streaming::Bidi, vec![]);
    let said = refused(&bidi, Pattern::Request, &[("deadline", "1s")]);
    assert!(said.contains("grpc.deadline"), "{said}");
    let file = CompiledMethod { has_text_body: true, ..unary };
    let mut trial = trial_of(&file, Pattern::Request, &[]);
    trial.load.body = "file:picture.png".parse().unwrap();
    let said = Grpc.dial(&trial).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("grpc.message") && said.contains("field of bytes"), "{said}");
    let of = |given: &[(&str, &str)]| {
        let trial = self::trial(&Grpc, Pattern::Request, Topology::FanIn, URL, given).unwrap();
        Grpc.dial(&trial).map(|_| ()).unwrap_err().to_string()
    };
    assert!(of(&[("proto", "a.proto")]).contains("grpc.method"));
    assert!(of(&[("method", "a.B/C")]).contains("compiled"));
    assert!(of(&[("headers", "x-bin: *")]).contains("base64"));
}
