//! Connections as a capture sees them: segments of TCP that come twice, out of order, cut, or not
//! at all, and datagrams, with what any peer may have sent in them as TLS, DTLS or QUIC. Every byte
//! is in one place of the account.
#![no_main]

use etherparse::PacketBuilder;
use libfuzzer_sys::fuzz_target;
use weigh_capture::account::{Notes, Session, Unit};
use weigh_capture::stream::{dtls, quic, tls::Side};
use weigh_capture::{Accounting, Counting, Filter, Link, Packet, Settings};
use weigh_fuzz::accounted;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, mut rest)) = data.split_first() else { return };
    let port = [1883, 8883, 443, 5684][usize::from(choice & 3)];
    let filter = Filter { ports: vec![port], ..Filter::default() };
    let counting = if choice & 4 == 0 { Counting::AsCaptured } else { Counting::OnTheWire };
    let notes = Notes { connections: 2, packets: 8 };
    let mut accounting =
        Accounting::new(Settings { filter, counting, notes, ..Settings::default() });
    let (mut next, mut bytes, mut packets) = ([1_000_u32, 2_000], 0, 0);
    let mut session = dtls::Session::default();
    while let Some((&[kind, how, high, low], after)) = rest.split_first_chunk() {
        let (own, after) =
            after.split_at(usize::from(u16::from_be_bytes([high, low])).min(after.len()));
        rest = after;
        let from = usize::from(kind & 1);
        if kind & 2 != 0 {
            datagram(own, from, &mut session);
        }
        let made = match kind & 2 {
            0 => segment(from, port, &mut next, how, own),
            _ => udp(from, port, own),
        };
        // The capture may have cut the end.
        let kept =
            if how & 0x80 != 0 { made.len() - made.len().min(own.len()) / 2 } else { made.len() };
        packets += 1;
        bytes += made.len() as u64;
        accounting.packet(&Packet {
            at_ns: packets,
            bytes: &made[..kept],
            length: made.len() as u32,
            link: Link::Ethernet,
            segment_bytes: 0,
        });
    }
    let account = accounting.finish();
    accounted(&account, bytes, packets);
    let _ = Session::of(&account, 8, &|_, head| {
        let first = *head.first()?;
        Some(Unit { name: first.to_string(), length: Some(u64::from(first)), subscribes: false })
    });
});

/// What a datagram is split into adds up to it, whatever of it was captured.
fn datagram(bytes: &[u8], from: usize, session: &mut dtls::Session) {
    let side = [Side::Client, Side::Server][from];
    for kept in [bytes.len(), bytes.len() / 2] {
        let length = bytes.len() as u64;
        let _ = dtls::may_be_client_hello(&bytes[..kept]);
        let _ = quic::may_be_initial(&bytes[..kept], length);
        let splits =
            [session.take(side, &bytes[..kept], length), quic::split(&bytes[..kept], length)];
        for split in splits {
            assert_eq!(split.handshake + split.record + split.content, length);
        }
    }
}

/// A segment; `how` sends it again, leaves a hole before it, or ends the stream.
fn segment(from: usize, port: u16, next: &mut [u32; 2], how: u8, own: &[u8]) -> Vec<u8> {
    let length = own.len() as u32;
    let sequence = match how & 3 {
        1 => next[from].wrapping_sub(length / 2 + 1),
        2 => next[from].wrapping_add(u32::from(how)),
        3 => next[from].wrapping_sub(length),
        _ => next[from],
    };
    let ends = [(CLIENT, 40_000), (SERVER, port)];
    let ((source, sport), (destination, dport)) = (ends[from], ends[1 - from]);
    let mut tcp = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(source, destination, 64)
        .tcp(sport, dport, sequence, 65_000);
    if how & 4 != 0 {
        tcp = tcp.syn();
    }
    if how & 0x38 == 0x08 {
        tcp = tcp.fin();
    }
    if how & 0x38 == 0x18 {
        tcp = tcp.rst();
    }
    if how & 0x40 == 0 {
        tcp = tcp.ack(next[1 - from]);
    }
    let marks = u32::from(how & 4 != 0) + u32::from(how & 0x38 == 0x08);
    next[from] = sequence.wrapping_add(length).wrapping_add(marks);
    let mut made = Vec::new();
    tcp.write(&mut made, own).expect("a segment below 64 KiB");
    made
}

fn udp(from: usize, port: u16, own: &[u8]) -> Vec<u8> {
    let ends = [(CLIENT, 40_001), (SERVER, port)];
    let ((source, sport), (destination, dport)) = (ends[from], ends[1 - from]);
    let own = &own[..own.len().min(60_000)];
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(source, destination, 64);
    let mut made = Vec::new();
    builder.udp(sport, dport).write(&mut made, own).expect("a datagram below 64 KiB");
    made
}

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];
