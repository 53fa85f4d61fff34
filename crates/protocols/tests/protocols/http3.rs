//! `http3` without QUIC under it: what is in the streams, to the byte, and what every answer and
//! every broken rule means.

use crate::rig::{Heard, Shard, kind, trial};
use weigh_model::connection::{Connection, Fault, Op, Outbox, Ticket};
use weigh_model::load::{Pattern, Topology};
use weigh_model::mark::{MARK_BYTES, Mark};
use weigh_model::protocol::{Protocol, Role, Seat, Transport};
use weigh_model::streams::{self, Piece};
use weigh_model::{Nanos, quic};
use weigh_protocols::http3::Http3;

const URL: &str = "h3://127.0.0.1:8443";

struct Client {
    connection: Box<dyn Connection>,
    out: Outbox,
    heard: Vec<Heard>,
}

/// A piece that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Bytes(u64, Vec<u8>, bool),
    Reset(u64, u64),
    Stop(u64, u64),
    Close(u64),
}

impl Client {
    fn new(given: &[(&str, &str)]) -> Client {
        let trial = trial(&Http3, Pattern::Request, Topology::FanIn, URL, given).unwrap();
        let dial = Http3.dial(&trial).unwrap();
        assert_eq!(dial.transport, Transport::Streams);
        let mut connection = (dial.make)(Seat { index: 0, role: Role::Producer });
        connection.metered().unwrap().meter();
        Client { connection, out: Outbox::default(), heard: Vec::new() }
    }

    /// One whose connection stands, and that may open this number of streams.
    fn open(given: &[(&str, &str)], streams: u64) -> Client {
        let mut client = Client::new(given);
        assert_eq!(client.connection.room(), 0);
        let heard = &mut client.heard;
        client.connection.open(Nanos(0), &mut client.out, &mut |signal| heard.push(signal.into()));
        let mut opened = Vec::new();
        streams::put_opened(&mut opened, streams);
        client.feed(&opened).unwrap();
        assert_eq!(client.heard, [Heard::Ready]);
        client.heard.clear();
        client
    }

    fn send(&mut self, ticket: u32, body: &[u8]) {
        assert!(self.connection.room() > 0);
        self.connection.send(&Op { ticket: Ticket(ticket), body }, Nanos(0), &mut self.out);
    }

    fn feed(&mut self, input: &[u8]) -> Result<(), Fault> {
        let heard = &mut self.heard;
        let mut emit = |signal: weigh_model::connection::Signal<'_>| heard.push(signal.into());
        let taken = self.connection.receive(input, Nanos(0), &mut self.out, &mut emit)?;
        assert_eq!(taken, input.len());
        Ok(())
    }

    /// Bytes of a stream.
    fn feed_bytes(&mut self, stream: u64, bytes: &[u8], is_last: bool) -> Result<(), Fault> {
        self.feed(&piece(stream, bytes, is_last))
    }

    fn sent(&mut self) -> Vec<u8> {
        let bytes = self.out.bytes().to_vec();
        self.out.clear();
        bytes
    }
}

fn piece(stream: u64, bytes: &[u8], is_last: bool) -> Vec<u8> {
    let mut out = Vec::new();
    streams::put_bytes(&mut out, stream, is_last, |out| out.extend_from_slice(bytes));
    out
}

fn said(bytes: &[u8]) -> Vec<Said> {
    let (mut rest, mut all) = (bytes, Vec::new());
    while let Some((piece, bytes)) = streams::next(rest) {
        rest = &rest[bytes..];
        all.push(match piece {
            Piece::Bytes { stream, bytes, is_last } => Said::Bytes(stream, bytes.to_vec(), is_last),
            Piece::Reset { stream, code } => Said::Reset(stream, code),
            Piece::Stop { stream, code } => Said::Stop(stream, code),
            Piece::Close(code) => Said::Close(code),
            Piece::Opened(_) => panic!("only the layer says it"),
        });
    }
    assert!(rest.is_empty());
    all
}

fn body(sequence: u64) -> Vec<u8> {
    let mut body = vec![b'x'; 64];
    let (tag, warmup, producer, due, lag) = (1, false, 0, Nanos(0), Nanos(0));
    let mark = Mark { tag, warmup, producer, sequence, due, lag, own_lag: lag };
    mark.seal(&mut body, 64 - MARK_BYTES);
    body
}

/// HEADERS with `:status` 200, of the static table.
const OK: &[u8] = &[1, 3, 0, 0, 0xc0 | 25];

#[test]
fn many_requests_in_flight_are_answered_and_counted() {
    let (mut client, mut shard) = (Client::open(&[], 1_000), Shard::of(&Http3, &[]));
    shard.accept(0);
    assert_eq!(client.connection.room(), 100, "the default of `streams`");
    for sequence in 0..100 {
        client.send(sequence, &body(sequence.into()));
    }
    assert_eq!(client.connection.room(), 0);
    shard.feed(0, &client.sent()).unwrap();
    client.feed(&shard.staged(0)).unwrap();
    for ticket in 0..100 {
        assert!(client.heard.contains(&Heard::Done(ticket)), "{ticket}");
    }
    let report = shard.server.report();
    assert_eq!((report.connections, report.received, report.unique), (1, 100, 100));
    assert_eq!(client.connection.room(), 100);
    let counts = client.connection.metered().unwrap().counts().unwrap();
    assert_eq!(counts.sent.messages.payload, 6_400);
    assert_eq!(counts.sent.set_up.protocol, 8, "the control stream");
    // Each answer: a frame of 3 bytes, the prefix of 2, and `:status` 201 of 5.
    assert_eq!(counts.received.messages.protocol, 100 * (3 + 2 + 5));
    // QUIC lets no more streams be opened than the server allows.
    let mut narrow = Client::open(&[], 3);
    assert_eq!(narrow.connection.room(), 3);
    narrow.send(0, &body(0));
    assert_eq!(narrow.connection.room(), 2);
}

/// RFC 9114, sections 4.1, 6.2.1 and 7.2; RFC 9204, section 4.5.
#[test]
fn a_request_is_as_large_as_the_standards_say() {
    let mut client = Client::open(&[], 10);
    client.send(0, &body(0));
    let all = said(&client.sent());
    let [Said::Bytes(2, control, false), Said::Bytes(0, request, true)] = &all[..] else {
        panic!("{all:?}")
    };
    // Type of the stream; SETTINGS with MAX_FIELD_SECTION_SIZE 16,384.
    assert_eq!(control[..], [0, 4, 5, 6, 0x80, 0, 0x40, 0]);
    let head = usize::from(u16::from_be_bytes([request[1], request[2]]) & 0x3fff);
    assert_eq!((request[0], &request[3..5]), (1, &[0, 0][..]), "HEADERS, without a dynamic table");
    // Three indices; authority, path and content-length with a name of the static table each.
    assert_eq!(head, 2 + 3 + 24);
    let section = &request[5..3 + head];
    // `:method` POST and `:scheme` https are an index each.
    assert_eq!(section[..2], [0xc0 | 20, 0xc0 | 23]);
    assert!(section.contains(&(0xc0 | 46)), "content-type application/json is an index");
    let data = &request[3 + head..];
    assert_eq!((data[0], &data[1..3], data.len()), (0, &[0x40, 64][..], 3 + 64));
    assert_eq!(request.len(), 3 + head + 3 + 64);
}

#[test]
fn answers_come_in_any_pieces_with_trailers_and_interim_ones() {
    let mut answer = vec![1, 4, 0, 0, 0xff, 0];
    answer.extend_from_slice(OK);
    // Content of two frames, a frame of an unknown type, trailers.
    answer.extend_from_slice(&[0, 2, b'o', b'k', 0x21, 1, 9, 0, 1, b'!']);
    answer.extend_from_slice(&[1, 6, 0, 0, 0x21, b'a', 1, b'b']);
    for cut in 0..=answer.len() {
        let mut client = Client::open(&[], 10);
        client.send(7, b"body");
        client.feed_bytes(0, &answer[..cut], false).unwrap();
        client.feed_bytes(0, &answer[cut..], true).unwrap();
        assert_eq!(client.heard, [Heard::Done(7)], "{cut}");
        let counts = client.connection.metered().unwrap().counts().unwrap();
        assert_eq!(counts.received.messages.payload, 3);
    }
}

#[test]
fn statuses_and_resets_are_errors_with_names() {
    let mut client = Client::open(&[], 10);
    for ticket in 0..4 {
        client.send(ticket, b"body");
    }
    client.feed_bytes(0, &[1, 3, 0, 0, 0xc0 | 28], true).unwrap();
    let mut resets = Vec::new();
    streams::put_reset(&mut resets, 4, 0x10b);
    streams::put_reset(&mut resets, 8, 0x77777);
    client.feed(&resets).unwrap();
    let due = [Heard::Refused(0, 503), Heard::Refused(1, 0x10b), Heard::Refused(2, 0x11f)];
    assert_eq!(client.heard, due);
    assert_eq!(Http3.error(503).name, "status 503");
    assert_eq!(Http3.error(0x10b).name, "a reset of the stream (H3_REQUEST_REJECTED)");
    assert_eq!(Http3.error(0x11f).name, "a reset of the stream (another error)");
    // The last one is lost with its connection.
    let ended = client.connection.end(&[], &mut |_| {});
    assert_eq!(ended, Err(Fault::Ended("before it answered a request".to_owned())));
}

/// RFC 9114, section 5.2.
#[test]
fn requests_that_were_not_processed_are_sent_again() {
    let mut client = Client::open(&[], 10);
    for ticket in 0..3 {
        client.send(ticket, b"body");
    }
    // GOAWAY: from stream 4 on nothing was processed.
    client.feed_bytes(3, &[0, 4, 0, 7, 1, 4], false).unwrap();
    assert_eq!(client.heard, [Heard::Unprocessed(1), Heard::Unprocessed(2)]);
    assert_eq!(client.connection.room(), 0);
    client.feed_bytes(0, OK, true).unwrap();
    assert_eq!(client.heard[2..], [Heard::Done(0), Heard::Closing]);
    // Also if a frame that breaks a rule follows in the same piece.
    let mut client = Client::open(&[], 10);
    client.send(0, b"body");
    let result = client.feed_bytes(3, &[0, 4, 0, 7, 1, 0, 1, 0], false);
    assert_eq!(kind(&result), "malformed");
    assert_eq!(client.heard, [Heard::Unprocessed(0), Heard::Closing]);
}

#[test]
fn what_a_server_must_not_send_closes_the_connection_with_its_code() {
    for (stream, bytes, is_last, code) in [
        (0, &[0, 1, b'x'][..], false, 0x105),
        (0, &[1, 3, 0, 0, 0xc0 | 25, 4, 0], false, 0x105),
        (0, &[2, 0], false, 0x105),
        (0, &[1, 2, 0, 0], false, 0x10e),
        (0, &[], true, 0x10e),
        (0, &[1, 9, 0], true, 0x106),
        (0, &[1, 3, 0, 0, 0x80], false, 0x200),
        (0, &[1, 3, 1, 0, 0xc0 | 25], false, 0x200),
        // A content-length of 0, and content.
        (0, &[1, 4, 0, 0, 0xc0 | 25, 0xc0 | 4, 0, 1, b'x'], false, 0x10e),
        (1, &[0], false, 0x103),
        (3, &[1], false, 0x108),
        (3, &[0, 7, 1, 0], false, 0x10a),
        (3, &[0, 4, 0], true, 0x104),
        (3, &[2, 0x3f], false, 0x201),
    ] {
        let mut client = Client::open(&[], 10);
        client.send(0, b"body");
        client.sent();
        let result = client.feed_bytes(stream, bytes, is_last);
        assert_eq!(kind(&result), "malformed", "{stream}: {bytes:02x?}");
        assert_eq!(said(&client.sent()), [Said::Close(code)], "{stream}: {bytes:02x?}");
    }
}

#[test]
fn what_a_client_must_not_send_has_its_code_too() {
    let head = |more: &[u8]| {
        let mut section = vec![0, 0, 0xc0 | 20, 0xc0 | 23, 0x50, 1, b'h', 0xc0 | 1];
        section.extend_from_slice(more);
        [&[1, section.len() as u8][..], &section].concat()
    };
    let whole = head(&[]);
    for (stream, bytes, is_last, code) in [
        (0, &[0, 1, b'x'][..], false, 0x105),
        (0, &[9, 0], false, 0x105),
        (0, &[1, 3, 0, 0, 0x10], false, 0x200),
        (0, &whole[..4], true, 0x106),
        (2, &[1], false, 0x103),
        (2, &[0, 4, 2, 3, 0], false, 0x109),
        (2, &[0, 4, 0], true, 0x104),
    ] {
        let mut shard = Shard::of(&Http3, &[]);
        shard.accept(0);
        shard.staged(0);
        let result = shard.feed(0, &piece(stream, bytes, is_last));
        assert_eq!(kind(&result), "malformed", "{stream}: {bytes:02x?}");
        assert_eq!(said(&shard.staged(0)), [Said::Close(code)], "{stream}: {bytes:02x?}");
    }
    // A malformed request ends its stream only, and the others are served.
    let mut shard = Shard::of(&Http3, &[]);
    shard.accept(0);
    shard.staged(0);
    let of = |bytes: &[u8], is_last| piece(4, bytes, is_last);
    // No path; a length that is not that of the content; a stream without a head.
    for (bytes, code) in [
        (vec![1, 4, 0, 0, 0xc0 | 20, 0xc0 | 23], 0x10e),
        ([&head(&[0x54, 1, b'5'])[..], &[0, 1, b'x']].concat(), 0x10e),
        (Vec::new(), 0x10d),
    ] {
        shard.feed(0, &of(&bytes, true)).unwrap();
        let due = [Said::Stop(4, code), Said::Reset(4, code)];
        assert_eq!(said(&shard.staged(0)), due, "{bytes:02x?}");
    }
    shard
        .feed(0, &piece(8, &[&whole[..], &[0, 4, b'b', b'o', b'd', b'y']].concat(), true))
        .unwrap();
    let all = said(&shard.staged(0));
    assert!(matches!(&all[..], [Said::Bytes(8, answer, true)] if answer[0] == 1), "{all:?}");
    assert_eq!(shard.server.report().received, 1);
}

#[test]
fn paths_and_large_bodies_are_answered_as_by_the_other_versions() {
    let status = |given: &[(&str, &str)], served: &[(&str, &str)], bytes: usize| {
        let (mut client, mut shard) = (Client::open(given, 10), Shard::of(&Http3, served));
        shard.accept(0);
        client.send(0, &vec![b'x'; bytes]);
        shard.feed(0, &client.sent()).unwrap();
        client.feed(&shard.staged(0)).unwrap();
        client.heard.pop().unwrap()
    };
    assert_eq!(status(&[], &[], 40_000), Heard::Done(0));
    assert_eq!(status(&[("path", "/other")], &[], 9), Heard::Done(0));
    assert_eq!(status(&[], &[("path", "/other")], 9), Heard::Refused(0, 404));
    assert_eq!(status(&[("method", "GET")], &[], 9), Heard::Refused(0, 405));
    assert_eq!(status(&[("method", "GET"), ("path", "/healthz")], &[], 9), Heard::Done(0));
    assert_eq!(status(&[("method", "HEAD"), ("path", "/healthz")], &[], 9), Heard::Done(0));
    assert_eq!(status(&[], &[("body_bytes_max", "8")], 9), Heard::Refused(0, 413));
    assert_eq!(status(&[("path", "/m/{client}/{seq}")], &[], 64), Heard::Done(0));
}

#[test]
fn its_keys_are_those_of_quic() {
    let keys: Vec<&str> = Http3.settings().iter().map(|setting| setting.key).collect();
    let of_quic = [quic::CONGESTION.key, quic::DATAGRAM_BYTES.key, quic::SEGMENTATION.key];
    for key in of_quic.into_iter().chain(["tls", "tls_alpn"]) {
        assert!(keys.contains(&key), "{key}");
    }
    assert!(!keys.contains(&"tls_resume"));
    assert!(
        weigh_model::trial::Settings::new("http3", Http3.settings(), [("tls", "off")]).is_err()
    );
}
