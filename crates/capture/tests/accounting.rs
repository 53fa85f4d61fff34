//! The accounting against packets whose account is known, because they are made here.

use std::net::{IpAddr, SocketAddr};

use etherparse::{PacketBuilder, TcpOptionElement};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use weigh_capture::account::{
    Account, CodecCount, ContentBytes, Ending, Notes, Phase, Session, Step, StreamCounts, Unit,
};
use weigh_capture::{Accounting, Counting, Filter, Link, Packet, Settings, Warning};

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "10.0.0.2:1883";

/// One segment to be made.
#[derive(Clone, Debug)]
struct Made {
    from_client: bool,
    sequence: u32,
    acknowledgement: Option<u32>,
    flags: &'static str,
    content: Vec<u8>,
}

impl Made {
    fn client(sequence: u32, acknowledgement: u32, flags: &'static str, content: &[u8]) -> Made {
        let acknowledgement = (!flags.contains("alone")).then_some(acknowledgement);
        Made { from_client: true, sequence, acknowledgement, flags, content: content.to_vec() }
    }

    fn server(sequence: u32, acknowledgement: u32, flags: &'static str, content: &[u8]) -> Made {
        let acknowledgement = Some(acknowledgement);
        Made { from_client: false, sequence, acknowledgement, flags, content: content.to_vec() }
    }

    fn bytes(&self) -> Vec<u8> {
        let (client, server) = (CLIENT.parse().unwrap(), SERVER.parse().unwrap());
        let (from, to): (SocketAddr, SocketAddr) =
            if self.from_client { (client, server) } else { (server, client) };
        let (IpAddr::V4(one), IpAddr::V4(other)) = (from.ip(), to.ip()) else { panic!("IPv4") };
        let mut tcp = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(one.octets(), other.octets(), 64)
            .tcp(from.port(), to.port(), self.sequence, 65_000)
            .options(&[
                TcpOptionElement::Noop,
                TcpOptionElement::Noop,
                TcpOptionElement::Timestamp(1, 2),
            ])
            .unwrap();
        if let Some(number) = self.acknowledgement {
            tcp = tcp.ack(number);
        }
        if self.flags.contains("syn") {
            tcp = tcp.syn();
        }
        if self.flags.contains("fin") {
            tcp = tcp.fin();
        }
        if self.flags.contains("rst") {
            tcp = tcp.rst();
        }
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, &self.content).unwrap();
        bytes
    }
}

/// Ethernet 14, IP 20, TCP 20 and timestamps 12.
const HEADERS: u64 = 66;

fn account(made: &[Made], settings: Settings) -> Account {
    let mut accounting = Accounting::new(settings);
    for (at, made) in made.iter().enumerate() {
        let bytes = made.bytes();
        let length = bytes.len() as u32;
        let at_ns = at as u64 * 1000;
        let link = Link::Ethernet;
        accounting.packet(&Packet { at_ns, bytes: &bytes, length, link, segment_bytes: 0 });
    }
    accounting.finish()
}

fn on_the_port() -> Settings {
    Settings { filter: Filter::port(1883), ..Settings::default() }
}

fn opening(client: u32, server: u32) -> Vec<Made> {
    vec![
        Made::client(client, 0, "alone syn", b""),
        Made::server(server, client.wrapping_add(1), "syn", b""),
        Made::client(client.wrapping_add(1), server.wrapping_add(1), "", b""),
    ]
}

#[test]
fn a_session_falls_into_its_phases() {
    let mut made = opening(100, 500);
    made.extend([
        Made::client(101, 501, "", b"CONNECT"),
        Made::server(501, 108, "", b"OK"),
        Made::client(108, 503, "", b"hello, world"),
        Made::server(503, 120, "", b""),
        // The peer's last acknowledgement of a message comes with its farewell.
        Made::client(120, 503, "fin", b""),
        Made::server(503, 121, "fin", b""),
        Made::client(121, 504, "", b""),
    ]);
    let notes = Notes { connections: 1, packets: 9 };
    let settings = Settings { notes, ..on_the_port() };
    let mut found = account(&made, settings);
    assert_eq!(found.warnings(), []);
    assert_eq!(found.connections[0].ending, Ending::Finished);
    let content = |protocol, payload| ContentBytes { protocol, payload };
    let counts = StreamCounts {
        sent: CodecCount {
            set_up: content(7, 0),
            messages: content(7, 5),
            ..CodecCount::default()
        },
        received: CodecCount { set_up: content(2, 0), ..CodecCount::default() },
    };
    assert_eq!(found.attribute(&|_| Some(counts)), []);
    let sizes = |phases: &weigh_capture::account::Phases| {
        Phase::ALL.map(|phase| (phases[phase].packets, phases[phase].bytes()))
    };
    assert_eq!(sizes(&found.sent), [(3, 3 * HEADERS + 7), (1, HEADERS + 12), (2, 2 * HEADERS)]);
    assert_eq!(sizes(&found.received), [(2, 2 * HEADERS + 2), (1, HEADERS), (1, HEADERS)]);
    assert_eq!(found.sent.total().ack_only_packets, 2);
    assert_eq!(found.received.total().ack_only_packets, 1);

    let drawn: Vec<_> = found.connections[0]
        .notes
        .iter()
        .map(|note| (note.at_ns, note.from_initiator, note.bytes, note.phase))
        .collect();
    assert_eq!(drawn.len(), 9, "the tenth was not asked for");
    assert_eq!(drawn[3], (3000, true, HEADERS + 7, Phase::SetUp));
    assert_eq!(drawn[4], (4000, false, HEADERS + 2, Phase::SetUp));
    assert_eq!(drawn[5], (6000, false, HEADERS, Phase::Messages), "one between first and last");
    assert_eq!(drawn[7], (8000, false, HEADERS, Phase::TearDown));

    // It goes through a journal unchanged.
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Account>(&text).unwrap(), found);
    let metrics = found.metrics(Some(1));
    let metric = |name: &str| metrics.iter().find(|(found, _)| found == name).unwrap().1;
    assert_eq!(metric("wire.sent.packets"), 6.0);
    assert_eq!(metric("wire.received.packets"), 4.0);
    assert_eq!(metric("wire.layers.protocol_bytes"), 16.0);
    assert_eq!(metric("wire.layers.payload_bytes"), 5.0);
    assert_eq!(metric("wire.layers.link_bytes"), 140.0);
    assert_eq!(metric("wire.header_bytes"), 660.0);
    assert_eq!(metric("wire.bytes_per_message"), 681.0);
    assert_eq!(metric("wire.phases.tear_down.packets"), 3.0);
    assert_eq!(metric("wire.connections"), 1.0);
    assert_eq!(metric("wire.bytes_per_session"), 681.0);
    assert_eq!(metric("wire.phases.set_up.bytes_per_session"), 339.0);
    assert_eq!(metric("wire.phases.set_up.layers.protocol_bytes"), 9.0);
    let sums = |end: &str| sum_of_phases(&metrics, end);
    assert_eq!(sums(".bytes"), 681.0, "phases are whole");
    assert_eq!((sums(".bytes_per_message"), sums(".bytes_per_session")), (681.0, 681.0));
    assert_eq!(metric("wire.retransmitted_packets"), 0.0);
}

/// Nobody knew beforehand how long the greetings would be: the codec's count puts their packets,
/// and those that acknowledge them, where they belong.
#[test]
fn a_codecs_count_moves_the_packets_of_greeting_and_goodbye() {
    let mut made = opening(100, 500);
    made.extend([
        Made::client(101, 501, "", b"CONNECT"),
        Made::server(501, 108, "", b""),
        Made::server(501, 108, "", b"OK"),
        Made::client(108, 503, "", b"hello, world"),
        Made::server(503, 120, "", b""),
        Made::client(120, 503, "", b"BYE"),
        Made::server(503, 123, "", b""),
        Made::client(123, 503, "fin", b""),
        Made::server(503, 124, "fin", b""),
        Made::client(124, 504, "", b""),
    ]);
    let mut found = account(&made, on_the_port());
    let sizes = |phases: &weigh_capture::account::Phases| {
        Phase::ALL.map(|phase| (phases[phase].packets, phases[phase].bytes()))
    };
    let before = [sizes(&found.sent), sizes(&found.received)];
    assert_eq!(before[0], [(2, 2 * HEADERS), (3, 3 * HEADERS + 22), (2, 2 * HEADERS)]);
    let content = |protocol, payload| ContentBytes { protocol, payload };
    let counts = StreamCounts {
        sent: CodecCount {
            set_up: content(7, 0),
            messages: content(2, 10),
            tear_down: content(3, 0),
        },
        received: CodecCount { set_up: content(2, 0), ..CodecCount::default() },
    };
    assert_eq!(found.attribute(&|_| Some(counts)), []);
    let sent = [(3, 3 * HEADERS + 7), (1, HEADERS + 12), (3, 3 * HEADERS + 3)];
    assert_eq!(sizes(&found.sent), sent);
    let received = [(3, 3 * HEADERS + 2), (1, HEADERS), (2, 2 * HEADERS)];
    assert_eq!(sizes(&found.received), received);
    assert_eq!(found.received.set_up.ack_only_packets, 1);
    assert_eq!(found.connections[0].sent, found.sent);
}

fn sum_of_phases(metrics: &[(String, f64)], end: &str) -> f64 {
    let is_meant = |name: &str| name.starts_with("wire.phases.") && name.ends_with(end);
    metrics.iter().filter(|(name, _)| is_meant(name)).map(|(_, value)| value).sum()
}

#[test]
fn unsplit_content_is_no_payload() {
    let mut made = opening(1, 1);
    made.push(Made::client(2, 2, "", b"12345"));
    let metrics = account(&made, on_the_port()).metrics(None);
    let has = |name: &str| metrics.iter().any(|(found, _)| found == name);
    assert!(has("wire.layers.application_bytes") && !has("wire.layers.payload_bytes"));
    assert!(!has("wire.layers.protocol_bytes") && !has("wire.bytes_per_message"));
}

#[test]
fn what_is_sent_again_is_counted_as_that() {
    let top = u32::MAX - 5;
    let mut made = opening(top.wrapping_sub(1), 500);
    made.insert(1, made[0].clone());
    made.extend([
        // Ten bytes across the wrap of the sequence numbers.
        Made::client(top, 501, "", b"0123456789"),
        // All of them again.
        Made::client(top, 501, "", b"0123456789"),
        // Four of them again, and two new ones.
        Made::client(top.wrapping_add(6), 501, "", b"6789ab"),
        Made::server(501, top.wrapping_add(12), "", b""),
        // A keep-alive without and with a byte.
        Made::client(top.wrapping_add(11), 501, "", b""),
        Made::client(top.wrapping_add(11), 501, "", b"b"),
        Made::client(top.wrapping_add(12), 501, "fin", b""),
        Made::client(top.wrapping_add(12), 501, "fin", b""),
        Made::server(501, top.wrapping_add(13), "rst", b""),
    ]);
    let found = account(&made, on_the_port());
    let sent = found.sent.total();
    assert_eq!(sent.packets, 10);
    assert_eq!((sent.layers.application, sent.layers.repeated), (12, 15));
    // SYN, ten bytes, four bytes, FIN.
    assert_eq!(sent.retransmitted_packets, 4);
    assert_eq!(sent.keep_alive_packets, 2);
    assert_eq!((sent.syn_packets, sent.fin_packets, sent.ack_only_packets), (2, 2, 1));
    assert_eq!(found.received.total().rst_packets, 1);
    assert_eq!(found.connections[0].ending, Ending::Reset);
    assert_eq!(sent.bytes(), 10 * HEADERS + 12 + 15);
}

#[test]
fn a_single_byte_that_nobody_acknowledged_is_no_keep_alive() {
    let mut made = opening(100, 500);
    made.extend([Made::client(101, 501, "", b"x"), Made::client(101, 501, "", b"x")]);
    let sent = account(&made, on_the_port()).sent.total();
    assert_eq!((sent.keep_alive_packets, sent.retransmitted_packets), (0, 1));
}

#[test]
fn ports_that_are_used_again_make_another_connection() {
    let mut made = opening(100, 500);
    made.extend([
        Made::client(101, 501, "fin", b"one"),
        Made::server(501, 105, "fin", b""),
        Made::client(105, 502, "", b""),
    ]);
    made.extend(opening(9000, 7000));
    made.push(Made::client(9001, 7001, "", b"other"));
    let found = account(&made, on_the_port());
    let content: Vec<u64> =
        found.connections.iter().map(|c| c.sent.total().layers.application).collect();
    assert_eq!(content, [3, 5]);
    assert_eq!(found.sent.total().retransmitted_packets, 0);

    // With room for one, the other is in the totals alone.
    let folded = account(&made, Settings { connections_kept_max: 0, ..on_the_port() });
    assert_eq!((folded.connections.len(), folded.connections_folded), (1, 1));
    assert_eq!((folded.sent, folded.received), (found.sent, found.received));
}

#[test]
fn a_connection_without_its_opening_is_marked() {
    let made = [
        Made::server(5000, 777, "", b"answer"),
        // A probe from behind the first byte that follows.
        Made::client(776, 5006, "", b""),
        Made::client(777, 5006, "", b"more"),
    ];
    let found = account(&made, on_the_port());
    assert_eq!(found.warnings(), [Warning::OpeningUnseen { connections: 1 }]);
    let connection = &found.connections[0];
    assert_eq!(connection.initiator, CLIENT.parse().unwrap(), "the port tells who serves");
    assert_eq!(connection.sent.messages.layers.application, 4);
    assert_eq!(connection.received.messages.layers.application, 6);
    assert_eq!(connection.unseen_bytes, 0);
    assert_eq!(connection.sent.set_up.packets, 0);
}

#[test]
fn a_super_packet_is_cut_into_what_goes_over_the_wire() {
    let content = vec![1; 10_000];
    let bytes = Made::client(101, 501, "", &content).bytes();
    let length = bytes.len() as u32;
    let (at_ns, link) = (0, Link::Ethernet);
    let count = |counting| {
        let mut accounting = Accounting::new(Settings { counting, ..on_the_port() });
        accounting.packet(&Packet { at_ns, bytes: &bytes, length, link, segment_bytes: 1448 });
        accounting.finish()
    };
    let wire = count(Counting::OnTheWire).sent.total();
    // 6 segments of 1,448 bytes and one of 1,312.
    assert_eq!((wire.packets, wire.packets_captured, wire.data_packets), (7, 1, 7));
    assert_eq!(wire.bytes(), 10_000 + 7 * HEADERS);
    let captured = count(Counting::AsCaptured);
    assert_eq!(captured.sent.total().bytes(), 10_000 + HEADERS);
    assert!(captured.warnings().contains(&Warning::SuperPackets { bytes: length }));
}

#[test]
fn datagrams_and_other_packets_are_counted_too() {
    let datagram = |from: [u8; 4], to: [u8; 4], ports: (u16, u16), content: &[u8]| {
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from, to, 64);
        builder.udp(ports.0, ports.1).write(&mut bytes, content).unwrap();
        // A short frame is padded to 60 bytes.
        bytes.resize(bytes.len().max(60), 0);
        bytes
    };
    let (one, other) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    let packets = [
        datagram(one, other, (5683, 4000), b"question"),
        datagram(other, one, (4000, 5683), b"an answer that is not padded"),
        arp,
    ];
    let count = |filter: Filter| {
        let mut accounting = Accounting::new(Settings { filter, ..Settings::default() });
        for bytes in &packets {
            let (length, link) = (bytes.len() as u32, Link::Ethernet);
            accounting.packet(&Packet { at_ns: 0, bytes, length, link, segment_bytes: 0 });
        }
        accounting.finish()
    };
    let found = count(Filter::default());
    let (sent, received) = (found.sent.total().layers, found.received.total().layers);
    // 14 + 20 + 8 + 8 = 50, and 10 of padding.
    assert_eq!((sent.link, sent.ip, sent.transport, sent.application), (24, 20, 8, 8));
    assert_eq!((received.link, received.application), (14, 28));
    assert_eq!((found.other.packets, found.other.bytes), (1, 60));
    let found = count(Filter::port(4000));
    // Whoever is asked on the port of the filter is the server.
    assert_eq!(found.connections[0].responder, "10.0.0.2:4000".parse().unwrap());
    assert_eq!((found.other.packets, found.packets_captured), (0, 2));
}

/// A session of DTLS 1.2 with a pre-shared key: records are split by their types, and datagrams of
/// the handshake alone belong to the set-up.
#[test]
fn datagrams_of_dtls_are_split_by_their_records() {
    let record = |kind: u8, epoch: u8, body: &[u8]| {
        let head = [kind, 254, 253, 0, epoch, 0, 0, 0, 0, 0, 1, 0, body.len() as u8];
        [&head[..], body].concat()
    };
    let message = |kind: u8, body: &[u8]| {
        let length = body.len() as u8;
        let head = [kind, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, length];
        record(22, 0, &[&head[..], body].concat())
    };
    let chosen = [&[254, 253][..], &[7; 32], &[0, 0xC0, 0xA8, 0]].concat();
    let sealed = |content: usize| record(23, 1, &vec![0; 16 + content]);
    let (client, server) = (([10, 0, 0, 1], 4000), ([10, 0, 0, 2], 5684));
    let last = [record(20, 0, &[1]), record(22, 1, &[0; 40])].concat();
    let all = [
        (client, server, message(1, &[0; 50])),
        (server, client, message(2, &chosen)),
        (client, server, last.clone()),
        (server, client, last),
        (client, server, sealed(30)),
        (server, client, sealed(8)),
        (client, server, record(21, 1, &[0; 18])),
    ];
    let filter = Filter::port(5684);
    let mut accounting = Accounting::new(Settings { filter, ..Settings::default() });
    for (from, to, content) in &all {
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from.0, to.0, 64);
        builder.udp(from.1, to.1).write(&mut bytes, content).unwrap();
        let (length, link) = (bytes.len() as u32, Link::Ethernet);
        accounting.packet(&Packet { at_ns: 0, bytes: &bytes, length, link, segment_bytes: 0 });
    }
    let found = accounting.finish();
    let (sent, received) = (found.sent, found.received);
    assert_eq!(sent.total().layers.tls_handshake, (13 + 12 + 50) + 14 + 53);
    assert_eq!((sent.total().layers.tls_record, sent.total().layers.application), (29 + 31, 30));
    assert_eq!(received.total().layers.tls_handshake, (13 + 12 + 38) + 14 + 53);
    assert_eq!((received.total().layers.tls_record, received.messages.layers.application), (29, 8));
    assert_eq!((sent.set_up.packets, sent.messages.packets), (2, 2));
    let tls = found.connections[0].tls.expect("it is DTLS");
    assert_eq!((tls.version, tls.suite, tls.overhead_exact), (Some(0x0303), Some(0xC0A8), true));
    let bytes: usize = all.iter().map(|(.., content)| content.len() + 42).sum();
    assert_eq!((sent.total().bytes() + received.total().bytes()) as usize, bytes);
}

/// What a stream of `length` bytes looks like after any kind of trouble on the way.
fn troubled(length: usize) -> impl Strategy<Value = Vec<(usize, usize)>> {
    (vec(any::<Index>(), 0..30), vec((any::<Index>(), 1..2000_usize), 0..20)).prop_map(
        move |(cuts, again)| {
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(length)).collect();
            places.extend([0, length]);
            places.sort_unstable();
            places.dedup();
            let mut parts: Vec<(usize, usize)> = places.windows(2).map(|w| (w[0], w[1])).collect();
            for (start, count) in again {
                let start = start.index(length);
                let at = (start * 7) % (parts.len() + 1);
                parts.insert(at, (start, (start + count).min(length)));
            }
            parts
        },
    )
}

proptest! {
    #[test]
    fn every_byte_is_in_one_layer_and_one_phase(
        parts in troubled(9000),
        client in any::<u32>(),
        server in any::<u32>(),
    ) {
        let content: Vec<u8> = (0..9000_usize).map(|at| (at % 251) as u8).collect();
        let mut made = opening(client, server);
        let start = client.wrapping_add(1);
        let next = server.wrapping_add(1);
        for (from, to) in &parts {
            let number = start.wrapping_add(*from as u32);
            made.push(Made::client(number, next, "", &content[*from..*to]));
        }
        made.push(Made::client(start.wrapping_add(9000), next, "fin", b""));
        let total: u64 = made.iter().map(|made| made.bytes().len() as u64).sum();
        let found = account(&made, on_the_port());
        let sent = found.sent.total();
        let sum = sent + found.received.total();
        prop_assert_eq!(sum.bytes(), total);
        prop_assert_eq!(sum.bytes_captured, total);
        prop_assert_eq!(sum.packets, made.len() as u64);
        prop_assert_eq!(sent.layers.application, 9000);
        let carried: usize = parts.iter().map(|(from, to)| to - from).sum();
        prop_assert_eq!(sent.layers.repeated, carried as u64 - 9000);
        prop_assert_eq!(found.connections[0].unseen_bytes, 0);
    }

    #[test]
    fn no_bytes_can_make_it_panic_or_lose_a_byte(
        packets in vec((vec(any::<u8>(), 0..200), 0..300_u32, 0..4_usize, any::<u16>()), 1..20),
        valid in vec(
            (any::<bool>(), any::<u32>(), any::<u32>(), 0..4_usize, vec(any::<u8>(), 0..90)),
            0..20,
        ),
    ) {
        let links = [Link::Ethernet, Link::Raw, Link::Cooked, Link::Null];
        let flags = ["", "syn", "fin", "rst"];
        let mut accounting = Accounting::new(Settings::default());
        let mut total = 0;
        for (bytes, more, link, segment_bytes) in &packets {
            let length = bytes.len() as u32 + more;
            total += u64::from(length);
            let (link, segment_bytes) = (links[*link], *segment_bytes);
            accounting.packet(&Packet { at_ns: 1, bytes, length, link, segment_bytes });
        }
        for (from_client, sequence, number, flag, content) in &valid {
            let mut content = content.clone();
            // Some of it begins as TLS does.
            if content.len() > 9 {
                content[..6].copy_from_slice(&[22, 3, 1, 0, 60, 1]);
            }
            let made = Made {
                from_client: *from_client,
                sequence: *sequence,
                acknowledgement: Some(*number),
                flags: flags[*flag],
                content,
            };
            let bytes = made.bytes();
            let length = bytes.len() as u32;
            total += u64::from(length);
            let link = Link::Ethernet;
            accounting.packet(&Packet { at_ns: 1, bytes: &bytes, length, link, segment_bytes: 0 });
        }
        let found = accounting.finish();
        let sum = found.sent.total() + found.received.total();
        prop_assert_eq!(sum.bytes_captured + found.other.bytes, total);
        prop_assert!(!found.metrics(Some(1)).is_empty());
    }
}

/// Letters as packets of a protocol: `Pxyz.` is a P with three bytes behind it, up to the point.
fn letters(_: bool, head: &[u8]) -> Option<Unit> {
    let first = head.first().filter(|letter| letter.is_ascii_uppercase())?;
    let end = head.iter().position(|byte| *byte == b'.');
    let length = end.map(|end| end as u64 + 1);
    Some(Unit { name: char::from(*first).to_string(), length, subscribes: *first == b'S' })
}

fn names(session: &Session) -> Vec<String> {
    let of = |step: &Step| step.units.iter().map(|unit| unit.name.as_str()).collect::<String>();
    session.steps.iter().map(of).collect()
}

fn noted(packets: usize) -> Settings {
    Settings { notes: Notes { connections: 4, packets }, ..on_the_port() }
}

#[test]
fn a_session_tells_its_packets_and_what_begins_in_them() {
    let mut made = opening(100, 500);
    made.extend([
        // Two in one, and the beginning of a third.
        Made::client(101, 501, "", b"Ca.Pbc.Pd"),
        Made::client(110, 501, "", b"ef.Q."),
        Made::client(101, 501, "", b"Ca.Pbc.Pd"),
        Made::server(501, 115, "", b"A."),
        Made::client(115, 503, "fin", b""),
        Made::server(503, 116, "fin", b""),
        Made::client(116, 504, "", b""),
    ]);
    let found = account(&made, noted(200));
    let session = Session::of(&found, 200, &letters).unwrap();
    assert_eq!(
        (session.connections.len(), session.gap, session.steps.len()),
        (1, None, made.len())
    );
    assert_eq!(names(&session), ["", "", "", "CPP", "Q", "CPP", "A", "", "", ""]);
    let total = found.sent.total() + found.received.total();
    let bytes: u64 = session.steps.iter().map(|step| step.note.bytes).sum();
    assert_eq!(bytes, total.bytes());
    let marked = |is_meant: fn(&Step) -> bool| -> Vec<usize> {
        (0..session.steps.len()).filter(|at| is_meant(&session.steps[*at])).collect()
    };
    assert_eq!(marked(|step| step.is_repeated_later), [3]);
    assert_eq!(marked(|step| step.note.is_again), [5]);
}

#[test]
fn of_a_long_session_beginning_and_end_are_kept() {
    let mut made = opening(100, 500);
    for number in 0..50u32 {
        made.push(Made::client(101 + 2 * number, 501, "", b"P."));
        made.push(Made::server(501, 103 + 2 * number, "", b""));
    }
    made.push(Made::client(201, 501, "fin", b""));
    made.push(Made::server(501, 202, "fin", b""));
    made.push(Made::client(202, 502, "", b""));
    let found = account(&made, noted(20));
    let session = Session::of(&found, 20, &letters).unwrap();
    let times: Vec<u64> = session.steps.iter().map(|step| step.note.at_ns / 1000).collect();
    let last = made.len() as u64 - 10;
    assert_eq!(times, (0..10).chain(last..last + 10).collect::<Vec<_>>());
    let gap = session.gap.unwrap();
    assert_eq!((gap.before, gap.packets), (10, made.len() as u64 - 20));
    let total = (found.sent.total() + found.received.total()).bytes();
    let shown: u64 = session.steps.iter().map(|step| step.note.bytes).sum();
    assert_eq!(gap.bytes, total - shown);
    assert!(names(&session)[10..].iter().any(|name| name == "P"), "named behind the gap too");
}

#[test]
fn a_connection_that_stays_open_is_no_session() {
    let mut made = opening(100, 500);
    made.push(Made::client(101, 501, "", b"P."));
    assert_eq!(Session::of(&account(&made, noted(200)), 200, &letters), None);
    assert_eq!(Session::of(&account(&made, on_the_port()), 200, &letters), None, "nothing noted");
}
