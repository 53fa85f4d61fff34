//! `http2` and `grpc` by both implementations: what is on the wire, to the byte, and what every
//! answer means.

use crate::rig;
use crate::rig::{Client, Heard, Shard, exchange, kind};
use proptest::collection::vec;
use proptest::prelude::*;
use weigh_model::connection::{Op, STREAM_ERROR, Ticket};
use weigh_model::mark::{MARK_BYTES, Mark};
use weigh_model::{Nanos, Protocol};
use weigh_protocols::grpc::Grpc;
use weigh_protocols::http2::Http2;

const HTTP2: &str = "h2c://127.0.0.1:8080";
const GRPC: &str = "grpc://127.0.0.1:8080";

/// A protocol, its URL, and the setting that chooses an implementation.
type Way = (&'static dyn Protocol, &'static str, &'static [(&'static str, &'static str)]);

const WAYS: &[Way] = &[
    (&Http2, HTTP2, &[]),
    (&Grpc, GRPC, &[]),
    #[cfg(feature = "library")]
    (&Http2, HTTP2, HOSTED),
    #[cfg(feature = "library")]
    (&Grpc, GRPC, HOSTED),
];
#[cfg(feature = "library")]
const HOSTED: &[(&str, &str)] = &[("implementation", "hosted")];

/// A frame as RFC 9113, section 4.1, has it.
#[derive(Debug, PartialEq)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    bytes = bytes.strip_prefix(PREFACE).unwrap_or(bytes);
    let mut frames = Vec::new();
    while let [high, middle, low, kind, flags, a, b, c, d, rest @ ..] = bytes {
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        let (payload, after) = rest.split_at(length);
        let stream = u32::from_be_bytes([*a, *b, *c, *d]);
        frames.push(Frame { kind: *kind, flags: *flags, stream, payload: payload.to_vec() });
        bytes = after;
    }
    assert!(bytes.is_empty());
    frames
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let head = [0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
    [&head[..], payload].concat()
}

/// SETTINGS that allow three streams.
fn settings() -> Vec<u8> {
    frame(4, 0, 0, &[0, 3, 0, 0, 0, 3])
}

fn body(sequence: u64) -> Vec<u8> {
    let mut body = vec![b'x'; 64];
    let (tag, warmup, producer, due, lag) = (1, false, 0, Nanos(0), Nanos(0));
    let mark = Mark { tag, warmup, producer, sequence, due, lag, own_lag: lag };
    mark.seal(&mut body, 64 - MARK_BYTES);
    body
}

/// A client and the reference server, each knowing the other.
fn pair(protocol: &dyn Protocol, url: &str, given: &[(&str, &str)]) -> (Client, Shard) {
    let mut shard = Shard::of(protocol, given);
    shard.accept(0);
    let mut client = Client::of(protocol, url, given);
    exchange(&mut client, &mut shard, 0, &[]);
    assert!(client.heard.contains(&Heard::Ready), "{:?}", client.heard);
    (client, shard)
}

#[test]
fn many_calls_in_flight_are_answered_and_counted() {
    for (protocol, url, given) in WAYS {
        let (mut client, mut shard) = pair(*protocol, url, given);
        assert_eq!(client.connection.room(), 100, "the default of `streams`");
        for sequence in 0..100 {
            client.send(sequence, &body(sequence.into()));
        }
        assert_eq!(client.connection.room(), 0);
        exchange(&mut client, &mut shard, 0, &[]);
        for ticket in 0..100 {
            assert!(client.heard.contains(&Heard::Done(ticket)), "{ticket}");
        }
        let report = shard.server.report();
        assert_eq!((report.connections, report.received, report.unique), (1, 100, 100));
        assert_eq!(client.connection.room(), 100);
    }
}

/// RFC 7541: after the first request what does not change is one byte each by the dynamic table.
#[test]
fn a_second_request_of_http2_is_as_large_as_hpack_says() {
    let (mut client, mut shard) = pair(&Http2, HTTP2, &[]);
    client.send(0, &body(0));
    exchange(&mut client, &mut shard, 0, &[]);
    client.send(1, &body(1));
    let sent = client.sent();
    let all = frames(&sent);
    let [head, data] = &all[..] else { panic!("{all:?}") };
    // Method, scheme, authority, path, content type and length.
    assert_eq!((head.kind, head.payload.len()), (HEADERS, 6));
    assert_eq!((data.kind, data.flags, data.payload.len()), (DATA, END_STREAM, 64));
    assert_eq!(head.stream, 3, "the second stream of a client (RFC 9113, section 5.1.1)");
    shard.feed(0, &sent).unwrap();
    let answer = shard.staged(0);
    let all = frames(&answer);
    let head = all.iter().find(|frame| frame.kind == HEADERS).unwrap();
    assert_eq!((head.flags & END_STREAM, head.stream, head.payload.len()), (END_STREAM, 3, 1));
    client.feed(&answer).unwrap();
    // Another length is written out: an index of four bits, which takes two bytes, and the digits.
    client.send(2, &[&b"x"[..], &body(2)].concat());
    assert_eq!(frames(&client.sent())[0].payload.len(), 5 + 2 + 1 + 2);
}

/// Paths and lengths are not indexed by the library: their Huffman codes (appendix B) take 48 bits
/// for `/messages`, 12 for `64`, and 160 for `/weigh.store.v1.Store/Append`.
#[cfg(feature = "library")]
#[test]
fn second_requests_of_the_library_are_larger() {
    for (protocol, url, length) in [
        (&Http2 as &dyn Protocol, HTTP2, 4 + (1 + 1 + 48 / 8) + (2 + 1 + 2)),
        (&Grpc, GRPC, 5 + 1 + 1 + 160 / 8),
    ] {
        let (mut client, mut shard) = pair(protocol, url, HOSTED);
        client.send(0, &body(0));
        exchange(&mut client, &mut shard, 0, &[]);
        client.send(1, &body(1));
        assert_eq!(frames(&client.sent())[0].payload.len(), length);
    }
}

/// gRPC over HTTP/2, "Length-Prefixed-Message": five bytes, then the message; and inside it a tag,
/// a length and the body (Protocol Buffers, "Encoding").
#[test]
fn a_second_call_of_grpc_is_as_large_as_its_layers_say() {
    let (mut client, mut shard) = pair(&Grpc, GRPC, &[]);
    client.send(0, &body(0));
    exchange(&mut client, &mut shard, 0, &[]);
    client.send(1, &body(1));
    let sent = client.sent();
    let all = frames(&sent);
    assert_eq!(all[0].kind, HEADERS);
    // Method, scheme, authority, path, te and content type.
    assert_eq!(all[0].payload.len(), 6);
    let data: Vec<u8> = all[1..].iter().flat_map(|frame| frame.payload.clone()).collect();
    assert_eq!(data.len(), 5 + 1 + 1 + 64);
    assert_eq!(data[..7], [0, 0, 0, 0, 66, 0x0a, 64]);
    assert_eq!(all.last().unwrap().flags, END_STREAM);
    shard.feed(0, &sent).unwrap();
    let answer = shard.staged(0);
    // The head, an empty message with its prefix, and the status.
    let sizes: Vec<usize> = frames(&answer).iter().map(|frame| frame.payload.len()).collect();
    assert_eq!(sizes, [2, 5, 1]);
    client.feed(&answer).unwrap();
}

/// A batch is one stream of gRPC: one HEADERS frame, and a message for each body.
#[test]
fn a_batch_is_one_call() {
    for (protocol, url, given) in WAYS {
        let (client, shard) = pair(*protocol, url, given);
        match protocol.name() {
            "grpc" => one_call_carries_a_batch(client, shard),
            _ => {
                let (mut client, _shard) = (client, shard);
                let room = client.connection.batch().unwrap().room_together();
                assert_eq!(room, 100, "a request for every message");
            }
        }
    }
}

fn one_call_carries_a_batch(mut client: Client, mut shard: Shard) {
    let bodies: Vec<Vec<u8>> = (0..5).map(body).collect();
    let op = |(ticket, body)| Op { ticket: Ticket(ticket), body };
    let ops: Vec<Op<'_>> = (0..).zip(bodies.iter().map(Vec::as_slice)).map(op).collect();
    assert_eq!(client.connection.batch().unwrap().room_together(), u32::MAX);
    client.connection.batch().unwrap().send_together(&ops, Nanos(0), &mut client.out);
    assert_eq!(client.connection.room(), 99, "one call of a hundred");
    let sent = client.sent();
    let all = frames(&sent);
    assert_eq!(all.iter().filter(|frame| frame.kind == HEADERS).count(), 1);
    let data: usize =
        all.iter().filter(|frame| frame.kind == DATA).map(|frame| frame.payload.len()).sum();
    assert_eq!(data, 5 * (5 + 2 + 64));
    shard.feed(0, &sent).unwrap();
    exchange(&mut client, &mut shard, 0, &[]);
    assert_eq!(client.heard[client.heard.len() - 5..], [0, 1, 2, 3, 4].map(Heard::Done));
    assert_eq!(shard.server.report().unique, 5);
}

#[test]
fn error_answers_are_told_with_their_codes() {
    for (protocol, url, given) in WAYS {
        // OUT_OF_RANGE is 11.
        let (nowhere, wrong, limit, code) = match protocol.name() {
            "grpc" => (None, "message_bytes_max", "60", 11),
            _ => (Some("h2c://127.0.0.1:8080/nowhere"), "body_bytes_max", "63", 413),
        };
        if let Some(nowhere) = nowhere {
            // With a path of its own the server stores at no other.
            let given = [given, &[("path", "/only")][..]].concat();
            let (mut client, mut shard) = pair(*protocol, nowhere, &given);
            client.send(0, &body(0));
            exchange(&mut client, &mut shard, 0, &[]);
            assert_eq!(client.heard.last(), Some(&Heard::Refused(0, 404)));
        }
        let given = [given, &[(wrong, limit)][..]].concat();
        let (mut client, mut shard) = pair(*protocol, url, &given);
        client.send(0, &body(0));
        exchange(&mut client, &mut shard, 0, &[]);
        assert_eq!(client.heard.last(), Some(&Heard::Refused(0, code)));
        assert_eq!(shard.server.report().received, 0);
    }
}

/// RFC 9113, sections 6.4 and 6.8.
#[test]
fn resets_and_goodbyes_of_the_server_are_heeded() {
    for (protocol, url, given) in WAYS {
        let mut client = Client::of(*protocol, url, given);
        client.sent();
        client.feed(&settings()).unwrap();
        let granted = Heard::Granted("max_concurrent_streams", 3);
        assert_eq!(client.heard, [granted, Heard::Ready]);
        assert_eq!(client.connection.room(), 3);
        client.send(7, &body(0));
        client.send(8, &body(1));
        // REFUSED_STREAM on the first stream.
        client.feed(&frame(3, 0, 1, &[0, 0, 0, 7])).unwrap();
        assert_eq!(client.heard.last(), Some(&Heard::Refused(7, STREAM_ERROR + 7)));
        // GOAWAY: the second stream will be answered, no others.
        client.feed(&frame(7, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0])).unwrap();
        assert_eq!(client.connection.room(), 0);
        assert!(!client.heard.contains(&Heard::Closing));
        // INTERNAL_ERROR on the second: it is the last.
        client.feed(&frame(3, 0, 3, &[0, 0, 0, 2])).unwrap();
        assert_eq!(client.heard[3..], [Heard::Refused(8, STREAM_ERROR + 2), Heard::Closing]);
        client.sent();
    }
}

#[test]
fn a_connection_that_breaks_says_why() {
    for (protocol, url, given) in WAYS {
        let mut client = Client::of(*protocol, url, given);
        client.sent();
        client.feed(&settings()).unwrap();
        client.send(0, &body(0));
        // DATA on stream 0 is a connection error (RFC 9113, section 6.1). The library does not say
        // whose error it is.
        let broken = client.feed(&frame(DATA, 0, 0, b"x"));
        let due = if given.is_empty() { "malformed" } else { "ended" };
        assert_eq!(kind(&broken), due, "{broken:?}");
        client.sent();
        let mut client = Client::of(*protocol, url, given);
        let other = client.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
        assert!(other.to_string().contains("it answers in HTTP/1"), "{other}");
    }
}

#[test]
fn a_server_without_the_service_is_named() {
    for (protocol, url, given) in WAYS.iter().filter(|(protocol, ..)| protocol.name() == "grpc") {
        // With a path of its own the server stores at no other.
        let mut shard = Shard::of(&Http2, &[&[("path", "/only")], *given].concat());
        shard.accept(0);
        let mut client = Client::of(*protocol, url, given);
        exchange(&mut client, &mut shard, 0, &[]);
        client.send(0, &body(0));
        shard.feed(0, &client.sent()).unwrap();
        let answer = client.feed(&shard.staged(0));
        let fault = answer.expect_err(&format!("{:?}", client.heard)).to_string();
        assert!(fault.contains("weigh.store.v1.Store"), "{fault}");
        assert!(fault.contains("HTTP status 404"), "{fault}");
    }
}

/// Each implementation as the stranger of the other.
#[cfg(feature = "library")]
#[test]
fn both_implementations_speak_with_each_other() {
    for (protocol, url) in [(&Http2 as &dyn Protocol, HTTP2), (&Grpc, GRPC)] {
        for (of_client, of_server) in [(&[][..], HOSTED), (HOSTED, &[])] {
            let mut shard = Shard::of(protocol, of_server);
            shard.accept(0);
            let mut client = Client::of(protocol, url, of_client);
            exchange(&mut client, &mut shard, 0, &[]);
            for round in 0..20 {
                for ticket in 0..30 {
                    let large = vec![b'x'; 40_000 * usize::from(ticket == 7)];
                    client.send(ticket, &[large, body((round * 30 + ticket).into())].concat());
                }
                exchange(&mut client, &mut shard, 0, &[]);
            }
            let done = client.heard.iter().filter(|heard| matches!(heard, Heard::Done(_)));
            assert_eq!((done.count(), shard.server.report().received), (600, 600));
        }
    }
}

/// UNIMPLEMENTED, as a server of gRPC says it that has other services: trailers alone, with
/// `:status 200`, the content type, and `grpc-status: 12` (RFC 7541, literals without indexing).
#[test]
fn a_server_of_other_services_is_named() {
    let mut client = Client::of(&Grpc, GRPC, &[]);
    client.sent();
    client.feed(&settings()).unwrap();
    client.send(0, &body(0));
    let field = |name: &str, value: &str| {
        let lengths = (name.len() as u8, value.len() as u8);
        [&[0, lengths.0], name.as_bytes(), &[lengths.1], value.as_bytes()].concat()
    };
    let fields = [
        vec![0x88],
        field("content-type", "application/grpc"),
        field("grpc-status", "12"),
        field("grpc-message", "unknown service"),
    ];
    let fault = client.feed(&frame(HEADERS, 5, 1, &fields.concat())).unwrap_err().to_string();
    assert!(fault.contains("no such method of weigh.store.v1.Store"), "{fault}");
    assert!(fault.contains("unknown service") && fault.contains("(12)"), "{fault}");
    client.sent();
}

#[test]
fn trials_that_cannot_be_are_refused() {
    let refused = |protocol, url, given| {
        let pattern = weigh_model::Pattern::Request;
        let trial =
            rig::trial(protocol, pattern, weigh_model::Topology::FanIn, url, given).unwrap();
        protocol.dial(&trial).err().map(|invalid| invalid.to_string()).unwrap_or_default()
    };
    let said = refused(&Http2 as &dyn Protocol, "h2c://127.0.0.1", &[("path", "messages")]);
    assert!(said.contains("http2.path") && said.contains("starts with /"), "{said}");
    let said = refused(&Http2, "h2c://127.0.0.1", &[("path", "/a b")]);
    assert!(said.contains("%20"), "{said}");
    let said = refused(&Http2, "h2c://127.0.0.1", &[("content_type", "a\nb")]);
    assert!(said.contains("http2.content_type"), "{said}");
    let said = refused(&Grpc, "grpc://127.0.0.1:1/Service", &[]);
    assert!(said.contains("the URL has the path /Service"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In whatever pieces bytes come, all of it comes out alike.
    #[test]
    fn pieces_change_nothing(cuts in vec(0_usize..400, 0..6), calls in 1_u32..6) {
        for (protocol, url, given) in WAYS {
            let mut shard = Shard::of(*protocol, given);
            shard.accept(0);
            let mut client = Client::of(*protocol, url, given);
            exchange(&mut client, &mut shard, 0, &cuts);
            for ticket in 0..calls {
                client.send(ticket, &body(ticket.into()));
            }
            exchange(&mut client, &mut shard, 0, &cuts);
            let mut done: Vec<u32> = client.heard.iter().filter_map(|heard| match heard {
                Heard::Done(ticket) => Some(*ticket),
                _ => None,
            }).collect();
            done.sort_unstable();
            prop_assert_eq!(done, (0..calls).collect::<Vec<_>>());
            prop_assert_eq!(shard.server.report().unique, u64::from(calls));
        }
    }

    /// Bytes from a network panic neither end.
    #[test]
    fn no_bytes_make_either_end_panic(
        bytes in vec(any::<u8>(), 0..200), cuts in vec(0_usize..200, 0..4), valid in any::<bool>()
    ) {
        for (protocol, url, given) in WAYS {
            let mut client = Client::of(*protocol, url, given);
            client.sent();
            let start = if valid { settings() } else { Vec::new() };
            let input = [&start[..], &bytes].concat();
            let fed = client.feed_cut(&input, &cuts);
            if valid && fed.is_ok() && client.connection.room() > 0 {
                client.send(0, b"body");
            }
            let mut shard = Shard::of(*protocol, given);
            shard.accept(0);
            let start = if valid { PREFACE } else { b"" };
            let _ = shard.feed_cut(0, &[start, &frame(4, 0, 0, &[]), &bytes].concat(), &cuts);
            shard.close(0);
        }
    }
}
