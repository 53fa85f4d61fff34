//! The rules of RFC 9113: what each end does when its peer follows or breaks one.

use crate::rig::{Client, Heard, Shard, exchange, kind};
use weigh_protocols::grpc::Grpc;
use weigh_protocols::http2::Http2;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const WITH_PRIORITY: u8 = 0x20;

const PROTOCOL_ERROR: u8 = 1;
const FLOW_CONTROL_ERROR: u8 = 3;
const STREAM_CLOSED: u8 = 5;
const FRAME_SIZE_ERROR: u8 = 6;
const COMPRESSION_ERROR: u8 = 9;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = (payload.len() as u32).to_be_bytes();
    [&[high, middle, low, kind, flags, 0, 0, 0, stream][..], payload].concat()
}

/// POST http /messages by the static table and a literal without indexing.
const POST: &[u8] = b"\x83\x86\x04\x09/messages";
/// GET http / by the static table.
const GET: &[u8] = b"\x82\x86\x84";

fn headers(stream: u8, ends: u8, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | ends, stream, block)
}

/// Types, flags, streams and payloads of frames.
fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let [high, middle, low, kind, flags, _, _, _, stream, rest @ ..] = bytes {
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        let (payload, after) = rest.split_at(length);
        frames.push((*kind, *flags, *stream, payload.to_vec()));
        bytes = after;
    }
    assert!(bytes.is_empty());
    frames
}

/// A server with an open connection, and what it answered so far removed.
fn server() -> Shard {
    let mut shard = Shard::of(&Http2, &[]);
    shard.accept(0);
    shard.feed(0, &[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).unwrap();
    shard.staged(0);
    shard
}

/// What a server does with frames, in words: `goaway 1`, `reset 1 5` (stream, code), `head 1`,
/// `data 1`, `nothing`.
fn reaction(shard: &mut Shard, input: &[u8]) -> String {
    let result = shard.feed(0, input);
    let sent = frames(&shard.staged(0));
    let words: Vec<String> = sent
        .iter()
        .filter_map(|(kind, _, stream, payload)| match *kind {
            GOAWAY => Some(format!("goaway {}", payload[7])),
            RST_STREAM => Some(format!("reset {stream} {}", payload[3])),
            HEADERS => Some(format!("head {stream}")),
            DATA => Some(format!("data {stream}")),
            PING => Some("ping".to_owned()),
            SETTINGS => Some("settings".to_owned()),
            _ => None,
        })
        .collect();
    let says_goodbye = words.iter().any(|word| word.starts_with("goaway"));
    assert_eq!(result.is_err(), says_goodbye, "{result:?}: {words:?}");
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

/// Cases: a name with its section, the frames, and the reaction.
fn check(cases: &[(&str, Vec<u8>, String)]) {
    for (name, input, due) in cases {
        assert_eq!(&reaction(&mut server(), input), due, "{name}");
        // In single bytes the same.
        let mut shard = server();
        let mut words: Vec<String> = Vec::new();
        for byte in input {
            let word = reaction(&mut shard, &[*byte]);
            words.extend(Some(word).filter(|word| word != "nothing"));
            if words.iter().any(|word| word.contains("goaway")) {
                break;
            }
        }
        let words = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
        assert_eq!(&words, due, "{name}, byte by byte");
    }
}

fn goaway(code: u8) -> String {
    format!("goaway {code}")
}

fn reset(stream: u8, code: u8) -> String {
    format!("reset {stream} {code}")
}

#[test]
fn frames_that_break_the_connection() {
    let large = [&[0, 0x40, 1, DATA, 0, 0, 0, 0, 1][..], &[0; 16_385]].concat();
    let open = headers(1, 0, POST);
    let after = |frame: Vec<u8>| [open.clone(), frame].concat();
    let part = frame(HEADERS, END_STREAM, 1, GET);
    let inside = |frame: Vec<u8>| [part.clone(), frame].concat();
    check(&[
        ("4.2 a frame that is too large", after(large), goaway(FRAME_SIZE_ERROR)),
        ("4.3 an invalid block", headers(1, END_STREAM, &[0xff]), goaway(COMPRESSION_ERROR)),
        ("4.3 a frame in a block", inside(frame(PING, 0, 0, &[0; 8])), goaway(PROTOCOL_ERROR)),
        ("5.5 an unknown frame there", inside(frame(99, 0, 0, &[])), goaway(PROTOCOL_ERROR)),
        (
            "6.10 another stream",
            inside(frame(CONTINUATION, END_HEADERS, 3, &[])),
            goaway(PROTOCOL_ERROR),
        ),
        ("6.10 alone", after(frame(CONTINUATION, END_HEADERS, 1, &[])), goaway(PROTOCOL_ERROR)),
        ("5.1 DATA, idle", frame(DATA, END_STREAM, 1, b"x"), goaway(PROTOCOL_ERROR)),
        ("5.1 RST_STREAM, idle", frame(RST_STREAM, 0, 1, &[0; 4]), goaway(PROTOCOL_ERROR)),
        ("5.1 WINDOW_UPDATE, idle", frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]), goaway(1)),
        ("5.1.1 an even stream", headers(2, END_STREAM, GET), goaway(PROTOCOL_ERROR)),
        (
            "5.1.1 a lower stream",
            [headers(5, 0, POST), headers(3, 0, POST)].concat(),
            goaway(PROTOCOL_ERROR),
        ),
        ("6.1 DATA without a stream", frame(DATA, 0, 0, b"x"), goaway(PROTOCOL_ERROR)),
        ("6.1 more padding", after(frame(DATA, PADDED, 1, &[9, 1])), goaway(PROTOCOL_ERROR)),
        ("6.1 no padding", after(frame(DATA, PADDED, 1, &[])), goaway(FRAME_SIZE_ERROR)),
        ("6.2 HEADERS without a stream", headers(0, 0, GET), goaway(PROTOCOL_ERROR)),
        ("6.3 PRIORITY", frame(PRIORITY, 0, 0, &[0; 5]), goaway(PROTOCOL_ERROR)),
        ("6.4 RST_STREAM", frame(RST_STREAM, 0, 0, &[0; 4]), goaway(PROTOCOL_ERROR)),
        ("6.4 of 3 bytes", after(frame(RST_STREAM, 0, 1, &[0; 3])), goaway(FRAME_SIZE_ERROR)),
        ("6.5 an ACK with content", frame(SETTINGS, ACK, 0, &[0; 6]), goaway(FRAME_SIZE_ERROR)),
        ("6.5 SETTINGS on a stream", frame(SETTINGS, 0, 1, &[]), goaway(PROTOCOL_ERROR)),
        ("6.5 of 5 bytes", frame(SETTINGS, 0, 0, &[0; 5]), goaway(FRAME_SIZE_ERROR)),
        ("6.5.2 push", frame(SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 2]), goaway(PROTOCOL_ERROR)),
        ("6.5.2 window", frame(SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]), goaway(FLOW_CONTROL_ERROR)),
        ("6.5.2 small", frame(SETTINGS, 0, 0, &[0, 5, 0, 0, 0x3f, 0xff]), goaway(PROTOCOL_ERROR)),
        ("6.5.2 large", frame(SETTINGS, 0, 0, &[0, 5, 1, 0, 0, 0]), goaway(PROTOCOL_ERROR)),
        ("6.6 PUSH_PROMISE", after(frame(PUSH_PROMISE, 4, 1, &[0; 4])), goaway(PROTOCOL_ERROR)),
        ("6.7 PING on a stream", frame(PING, 0, 1, &[0; 8]), goaway(PROTOCOL_ERROR)),
        ("6.7 of 7 bytes", frame(PING, 0, 0, &[0; 7]), goaway(FRAME_SIZE_ERROR)),
        ("6.8 GOAWAY on a stream", frame(GOAWAY, 0, 1, &[0; 8]), goaway(PROTOCOL_ERROR)),
        ("6.9 of 3 bytes", frame(WINDOW_UPDATE, 0, 0, &[0; 3]), goaway(FRAME_SIZE_ERROR)),
        ("6.9 by nothing", frame(WINDOW_UPDATE, 0, 0, &[0; 4]), goaway(PROTOCOL_ERROR)),
        (
            "6.9.1 above the maximum",
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            goaway(FLOW_CONTROL_ERROR),
        ),
    ]);
}

#[test]
fn frames_that_break_a_stream() {
    let open = headers(1, 0, POST);
    let after = |frame: Vec<u8>| [open.clone(), frame].concat();
    let update = |by: u32| frame(WINDOW_UPDATE, 0, 1, &by.to_be_bytes());
    let whole = after(frame(DATA, END_STREAM, 1, b"x"));
    let block = |field: &[u8]| headers(1, END_STREAM, &[GET, field].concat());
    let with_length = [POST, b"\x0f\x0d\x01\x32"].concat();
    let circular = [&[0, 0, 0, 1, 16][..], POST].concat();
    let closed = format!("head 1, {}", goaway(STREAM_CLOSED));
    check(&[
        ("6.9 by nothing", after(update(0)), reset(1, PROTOCOL_ERROR)),
        ("6.9.1 too much", after(update(0x7fff_ffff)), reset(1, FLOW_CONTROL_ERROR)),
        ("6.3 PRIORITY", after(frame(PRIORITY, 0, 1, &[0; 4])), reset(1, FRAME_SIZE_ERROR)),
        (
            "5.3.1 of RFC 7540, a stream depends on itself",
            frame(HEADERS, END_HEADERS | WITH_PRIORITY, 1, &circular),
            reset(1, PROTOCOL_ERROR),
        ),
        ("8.1 fields behind content", after(headers(1, 0, b"")), reset(1, PROTOCOL_ERROR)),
        ("8.1 trailers with :method", after(headers(1, 1, GET)), reset(1, PROTOCOL_ERROR)),
        ("8.2.1 upper case", block(b"\0\x01A\x01b"), reset(1, PROTOCOL_ERROR)),
        ("8.2.2 connection", block(b"\0\x0aconnection\x01a"), reset(1, PROTOCOL_ERROR)),
        ("8.3 behind others", headers(1, 1, b"\0\x01a\x01b\x82\x86\x84"), reset(1, 1)),
        ("8.3.1 without a path", headers(1, 1, b"\x82\x86"), reset(1, PROTOCOL_ERROR)),
        (
            "8.1.1 longer than its length",
            [headers(1, 0, &with_length), frame(DATA, END_STREAM, 1, b"xyz")].concat(),
            reset(1, PROTOCOL_ERROR),
        ),
        (
            "8.1.1 shorter than its length",
            [headers(1, 0, &with_length), frame(DATA, END_STREAM, 1, b"x")].concat(),
            reset(1, PROTOCOL_ERROR),
        ),
        ("8.1.1 without content", headers(1, END_STREAM, &with_length), reset(1, 1)),
        ("5.1 DATA, closed", [&whole[..], &frame(DATA, 0, 1, b"x")].concat(), closed.clone()),
        ("5.1 HEADERS, closed", [&whole[..], &headers(1, 1, GET)].concat(), closed),
        // What was in transit when a stream was reset is ignored.
        (
            "5.4.2 behind a reset",
            [after(update(0)), frame(DATA, 0, 1, b"x"), headers(1, 1, b"")].concat(),
            reset(1, PROTOCOL_ERROR),
        ),
    ]);
}

#[test]
fn frames_that_break_nothing() {
    let open = headers(1, 0, POST);
    let end = frame(DATA, END_STREAM, 1, b"x");
    let closed = [&open[..], &end].concat();
    let after_end = |frame: Vec<u8>| [&closed[..], &frame].concat();
    let padded = [&[2, 0, 0, 0, 0, 9][..], POST, &[0, 0]].concat();
    let in_pieces = [
        frame(HEADERS, 0, 1, &POST[..5]),
        frame(CONTINUATION, 0, 1, b""),
        frame(CONTINUATION, END_HEADERS, 1, &POST[5..]),
        end.clone(),
    ];
    let head = "head 1".to_owned();
    check(&[
        ("4.1 an unknown type", frame(99, 0xff, 0x7f, b"x"), "nothing".to_owned()),
        ("4.1 unknown flags", frame(PING, 0xfe, 0, &[1; 8]), "ping".to_owned()),
        ("6.7 an answered PING", frame(PING, ACK, 0, &[1; 8]), "nothing".to_owned()),
        (
            "6.5.2 an unknown parameter",
            frame(SETTINGS, 0, 0, &[9, 9, 0, 0, 0, 0]),
            "settings".into(),
        ),
        ("6.8 GOAWAY", [&frame(GOAWAY, 0, 0, &[0; 9])[..], &closed].concat(), head.clone()),
        ("6.3 PRIORITY, idle", frame(PRIORITY, 0, 9, &[0; 5]), "nothing".to_owned()),
        (
            "6.2 padding and priority",
            [
                frame(HEADERS, END_HEADERS | PADDED | WITH_PRIORITY, 1, &padded),
                frame(DATA, PADDED | END_STREAM, 1, &[1, b'x', 0]),
            ]
            .concat(),
            head.clone(),
        ),
        ("6.10 pieces", in_pieces.concat(), head.clone()),
        ("8.1 trailers", [&open[..], &headers(1, 1, b"\0\x01a\x01b")].concat(), head.clone()),
        ("5.1 RST_STREAM, closed", after_end(frame(RST_STREAM, 0, 1, &[0; 4])), head.clone()),
        ("5.1 WINDOW_UPDATE, closed", after_end(frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])), head),
        (
            "5.1 RST_STREAM",
            [&open[..], &frame(RST_STREAM, 0, 1, &[9; 4])].concat(),
            "nothing".into(),
        ),
    ]);
}

#[test]
fn a_server_waits_for_the_preface_and_settings() {
    for (input, due) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "goaway 1"),
        (b"PRI * HTTP/2.0\r\n\r\nSX", "goaway 1"),
        (b"PRI * HTTP/2.0\r\n", "nothing"),
        (&[PREFACE, &frame(PING, 0, 0, &[0; 8])].concat(), "goaway 1"),
        (&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat(), "settings"),
    ] {
        let mut shard = Shard::of(&Http2, &[]);
        shard.accept(0);
        shard.staged(0);
        assert_eq!(reaction(&mut shard, input), due, "{}", input.escape_ascii());
    }
}

/// Section 6.9.2: the window of a stream may become negative, and its data waits.
#[test]
fn answers_wait_for_the_clients_window() {
    let mut shard = server();
    let window = |bytes: u8| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, bytes]);
    assert_eq!(reaction(&mut shard, &window(2)), "settings");
    // The answer is "ok" and a line end.
    assert_eq!(reaction(&mut shard, &headers(1, END_STREAM, GET)), "head 1, data 1");
    assert_eq!(reaction(&mut shard, &window(1)), "settings");
    let update = frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
    assert_eq!(reaction(&mut shard, &update), "nothing");
    shard.feed(0, &update).unwrap();
    let sent = frames(&shard.staged(0));
    assert_eq!(sent, [(DATA, END_STREAM, 1, b"\n".to_vec())]);
    // With a window of nothing the head is sent, and a reset forgets the data.
    assert_eq!(reaction(&mut shard, &window(0)), "settings");
    assert_eq!(reaction(&mut shard, &headers(3, END_STREAM, GET)), "head 3");
    assert_eq!(reaction(&mut shard, &frame(RST_STREAM, 0, 3, &[0; 4])), "nothing");
    assert_eq!(reaction(&mut shard, &window(9)), "settings");
}

/// A client that is ready, and what it sent so far removed.
fn client(settings: &[u8]) -> Client {
    let mut client = Client::of(&Http2, "h2c://127.0.0.1:8080", &[]);
    client.sent();
    client.feed(&frame(SETTINGS, 0, 0, settings)).unwrap();
    client.sent();
    client
}

/// `:status 200`.
const OK: &[u8] = b"\x88";

#[test]
fn a_client_names_what_a_server_did_wrong() {
    for (name, input, says, code) in [
        ("even", headers(2, 0, OK), "never opened", PROTOCOL_ERROR),
        ("idle", headers(9, 0, OK), "never opened", PROTOCOL_ERROR),
        ("push", frame(PUSH_PROMISE, 4, 1, &[0; 4]), "PUSH_PROMISE", PROTOCOL_ERROR),
        ("push allowed", frame(SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 1]), "ENABLE_PUSH", 1),
        ("block", headers(1, 0, &[0xbf]), "index", COMPRESSION_ERROR),
        ("status", headers(1, 1, b"\0\x01a\x01b"), "no :status", PROTOCOL_ERROR),
        ("interim", headers(1, 1, b"\x08\x03100"), "interim", PROTOCOL_ERROR),
        ("content", frame(DATA, 0, 1, b"x"), "before its head", PROTOCOL_ERROR),
        ("late", [headers(1, 0, OK), headers(1, 1, OK)].concat(), "trailers", PROTOCOL_ERROR),
        ("short", headers(1, 1, b"\x88\x0f\x0d\x01\x32"), "shorter", PROTOCOL_ERROR),
        ("window", frame(WINDOW_UPDATE, 0, 0, &[0; 4]), "nothing", PROTOCOL_ERROR),
    ] {
        let mut client = client(&[]);
        client.send(0, b"body");
        client.sent();
        let fault = client.feed(&input);
        assert_eq!(kind(&fault), "malformed", "{name}");
        let text = fault.unwrap_err().to_string();
        assert!(text.contains(says), "{name}: {text}");
        let sent = frames(&client.sent());
        let last = sent.last().expect(name);
        assert_eq!((last.0, last.3[7]), (GOAWAY, code), "{name}");
    }
}

#[test]
fn a_client_follows_the_servers_limits() {
    // A window of 10 bytes, and two streams.
    let mut client = client(&[0, 4, 0, 0, 0, 10, 0, 3, 0, 0, 0, 2]);
    assert_eq!(client.connection.room(), 2);
    client.send(0, &[b'x'; 25]);
    client.send(1, &[b'y'; 10]);
    assert_eq!(client.connection.room(), 0);
    let data = |client: &mut Client| -> Vec<(u8, u8, usize)> {
        let sent = frames(&client.sent());
        let data = sent.iter().filter(|frame| frame.0 == DATA);
        data.map(|(_, flags, stream, payload)| (*stream, *flags, payload.len())).collect()
    };
    assert_eq!(data(&mut client), [(1, 0, 10), (3, END_STREAM, 10)]);
    client.feed(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 5])).unwrap();
    assert_eq!(data(&mut client), [(1, 0, 5)]);
    client.feed(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 99, 0, 3, 0, 0, 0, 3])).unwrap();
    assert_eq!(data(&mut client), [(1, END_STREAM, 10)]);
    assert_eq!(client.connection.room(), 1);
    // An answer before the whole request was sent.
    client.feed(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])).unwrap();
    client.send(2, b"more");
    client.sent();
    client.feed(&headers(5, END_STREAM, b"\x8d")).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Refused(2, 404)));
    assert_eq!(frames(&client.sent()), [(RST_STREAM, 0, 5, vec![0, 0, 0, 8])]);
}

/// Bodies that a reset stream has not sent are not counted as written.
#[test]
fn what_a_reset_stream_did_not_send_is_not_counted() {
    let mut client = client(&[0, 4, 0, 0, 0, 2]);
    client.send(0, b"body");
    client.feed(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 7])).unwrap();
    client.feed(&frame(PING, 0, 0, &[0; 8])).unwrap();
    client.send(1, b"x");
    client.sent();
    let counts = client.connection.metered().unwrap().counts().unwrap();
    assert_eq!(counts.sent.messages.payload, 2 + 1);
}

#[test]
fn interim_answers_padding_and_trailers_are_no_answers() {
    let mut client = client(&[]);
    client.send(0, b"body");
    client.sent();
    client.feed(&headers(1, 0, b"\x08\x03103")).unwrap();
    client.feed(&headers(1, 0, OK)).unwrap();
    client.feed(&frame(DATA, PADDED, 1, &[1, b'x', 0])).unwrap();
    client.feed(&frame(PING, 0, 0, &[7; 8])).unwrap();
    assert_eq!(frames(&client.sent()), [(PING, ACK, 0, vec![7; 8])]);
    assert!(!client.heard.contains(&Heard::Done(0)));
    client.feed(&headers(1, END_STREAM, b"\0\x01a\x01b")).unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Done(0)));
    // Content counts as payload, and padding does not.
    let counts = client.connection.metered().unwrap().counts().unwrap();
    assert_eq!(counts.received.messages.payload, 1);
    assert_eq!(counts.sent.messages.payload, 4);
}

/// Section 6.8: what the server will not answer is lost with the connection, and its reason named.
#[test]
fn streams_above_the_last_one_are_not_answered() {
    let mut client = client(&[]);
    client.send(0, b"a");
    client.send(1, b"b");
    client.sent();
    let goaway = [&[0, 0, 0, 1, 0, 0, 0, 11][..], b"too many"].concat();
    client.feed(&frame(GOAWAY, 0, 0, &goaway)).unwrap();
    assert_eq!(client.connection.room(), 0);
    let fault = client.feed(&headers(1, END_STREAM, OK)).unwrap_err().to_string();
    assert!(fault.contains("ENHANCE_YOUR_CALM") && fault.contains("too many"), "{fault}");
    assert_eq!(client.heard.last(), Some(&Heard::Done(0)));
    let mut client = self::client(&[]);
    client.send(0, b"a");
    client.sent();
    let ended = client.end().unwrap_err().to_string();
    assert!(ended.contains("before it answered a request"), "{ended}");
}

/// gRPC, "Responses": what makes a status other than OK.
#[test]
fn calls_end_with_their_status() {
    let grpc = b"\x88\x5f\x10application/grpc";
    let status = |code: u8| {
        let digits = [b'0' + code / 10, b'0' + code % 10];
        [&b"\0\x0bgrpc-status\x02"[..], &digits].concat()
    };
    let message = [0, 0, 0, 0, 0];
    for (name, input, due) in [
        (
            "ok",
            vec![
                headers(1, 0, grpc),
                frame(DATA, 0, 1, &message),
                headers(1, END_STREAM, &status(0)),
            ],
            Heard::Done(0),
        ),
        (
            "without a message",
            vec![headers(1, 0, grpc), headers(1, END_STREAM, &status(0))],
            Heard::Refused(0, 13),
        ),
        (
            "without a status",
            vec![headers(1, 0, grpc), frame(DATA, END_STREAM, 1, &message)],
            Heard::Refused(0, 2),
        ),
        (
            "compressed",
            vec![
                headers(1, 0, grpc),
                frame(DATA, 0, 1, &[1, 0, 0, 0, 0]),
                headers(1, END_STREAM, &status(0)),
            ],
            Heard::Refused(0, 12),
        ),
        (
            "trailers alone",
            vec![headers(1, END_STREAM, &[&grpc[..], &status(14)[..]].concat())],
            Heard::Refused(0, 14),
        ),
        (
            "a status that is none",
            vec![headers(1, END_STREAM, &[&grpc[..], &status(99)[..]].concat())],
            Heard::Refused(0, 2),
        ),
        ("a proxy's error", vec![headers(1, END_STREAM, b"\x08\x03503")], Heard::Refused(0, 503)),
    ] {
        let mut client = Client::of(&Grpc, "grpc://127.0.0.1:1", &[]);
        client.sent();
        client.feed(&frame(SETTINGS, 0, 0, &[])).unwrap();
        client.send(0, b"body");
        client.sent();
        client.feed(&input.concat()).unwrap();
        assert_eq!(client.heard.last(), Some(&due), "{name}");
        client.sent();
    }
}

/// A server that takes no dynamic table gets none.
#[test]
fn tables_follow_the_peers_limit() {
    let mut shard = Shard::of(&Http2, &[]);
    shard.accept(0);
    let mut client = Client::of(&Http2, "h2c://127.0.0.1:8080", &[]);
    exchange(&mut client, &mut shard, 0, &[]);
    let size = |client: &mut Client, ticket| {
        client.send(ticket, &[b'x'; 64]);
        let sent = client.sent();
        let length = frames(&sent)[0].3.len();
        (sent, length)
    };
    for (ticket, limit, due) in [(0, None, 20..60), (1, None, 6..7), (2, Some([0; 2]), 20..60)] {
        if let Some([high, low]) = limit {
            client.feed(&frame(SETTINGS, 0, 0, &[0, 1, 0, 0, high, low])).unwrap();
            client.sent();
        }
        let (sent, length) = size(&mut client, ticket);
        assert!(due.contains(&length), "{ticket}: {length}");
        shard.feed(0, &sent).unwrap();
        client.feed(&shard.staged(0)).unwrap();
        assert_eq!(client.heard.last(), Some(&Heard::Done(ticket)));
    }
}
