//! Super-packets of UDP against their datagrams: the kernel cuts them by the size that it names.

use etherparse::PacketBuilder;
use proptest::prelude::*;
use weigh_capture::{Account, Accounting, Counting, Link, Packet, Settings, Warning};

/// Ethernet 14, IP 20, UDP 8.
const HEADERS: u64 = 42;

/// The account of packets from one port to another: contents, and the sizes of the datagrams that
/// are in them, or 0.
fn account(counting: Counting, packets: &[(&[u8], u16)], kept_bytes: usize) -> Account {
    let mut accounting = Accounting::new(Settings { counting, ..Settings::default() });
    for (at, (content, segment_bytes)) in packets.iter().enumerate() {
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let builder = builder.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(40_000, 4_433);
        builder.write(&mut bytes, content).unwrap();
        accounting.packet(&Packet {
            at_ns: at as u64 * 1_000,
            length: bytes.len() as u32,
            bytes: &bytes[..bytes.len().min(kept_bytes)],
            link: Link::Ethernet,
            segment_bytes: *segment_bytes,
        });
    }
    accounting.finish()
}

/// What is the same however the datagrams were captured.
fn on_the_wire(account: &Account) -> impl PartialEq + std::fmt::Debug + use<> {
    let total = account.sent.total();
    let set_up = account.sent.set_up;
    (total.packets, total.data_packets, total.layers, (set_up.packets, set_up.layers))
}

#[test]
fn a_run_of_datagrams_is_cut_into_them() {
    let content = [7; 10_000];
    let whole = account(Counting::OnTheWire, &[(&content, 1_200)], usize::MAX);
    let wire = whole.sent.total();
    // Eight of 1,200 bytes and one of 400.
    assert_eq!((wire.packets, wire.packets_captured, wire.data_packets), (9, 1, 9));
    assert_eq!(wire.bytes(), 10_000 + 9 * HEADERS);
    assert_eq!((wire.bytes_captured, whole.packets_captured), (10_000 + HEADERS, 1));
    let captured = account(Counting::AsCaptured, &[(&content, 1_200)], usize::MAX);
    let seen = captured.sent.total();
    assert_eq!((seen.packets, seen.data_packets, seen.bytes()), (1, 1, 10_000 + HEADERS));
    let bytes = (10_000 + HEADERS) as u32;
    assert_eq!(captured.warnings(), [Warning::SuperPackets { bytes }]);
}

/// A packet with a short header ends its datagram, not the run.
#[test]
fn each_datagram_of_a_run_of_quic_is_split_by_itself() {
    // RFC 9001, appendix A.2: the header of the client's Initial.
    let head =
        [0xc3, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 8, 0, 0, 0x44, 0x9e, 0, 0];
    let mut initial = head.to_vec();
    initial.resize(1_200, 0x5a);
    // A Handshake of 20 bytes, and 40 behind a short header; a Handshake of 60; 30 behind a short
    // header.
    let mut run = vec![0xe0, 0, 0, 0, 1, 0, 2, 7, 7, 10];
    run.resize(20, 1);
    run.resize(60, 0x41);
    run.extend([0xe0, 0, 0, 0, 1, 0, 2, 7, 7, 50]);
    run.resize(120, 1);
    run.resize(150, 0x41);
    for counting in [Counting::OnTheWire, Counting::AsCaptured] {
        let found = account(counting, &[(&initial, 0), (&run, 60)], usize::MAX);
        let layers = found.sent.total().layers;
        assert_eq!((layers.tls_handshake, layers.application), (1_200 + 80, 70), "{counting:?}");
    }
    let found = account(Counting::OnTheWire, &[(&initial, 0), (&run, 60)], usize::MAX);
    // The Initial and the second of the run hold nothing but the handshake.
    assert_eq!((found.sent.set_up.packets, found.sent.messages.packets), (2, 2));
}

proptest! {
    #[test]
    fn a_run_counts_as_its_datagrams_do(
        is_quic in any::<bool>(),
        size in 1_200_usize..3_000,
        firsts in proptest::collection::vec(any::<u8>(), 1..20),
        last in 1_usize..1_200,
        kept_bytes in prop_oneof![Just(usize::MAX), 42_usize..9_000],
    ) {
        let mut content = Vec::new();
        for (at, first) in firsts.iter().enumerate() {
            let start = content.len();
            content.extend([if at == 0 && is_quic { 0xc3 } else { *first }, 0, 0, 0, 1, 0, 0]);
            content.resize(start + if at + 1 == firsts.len() { last.max(7) } else { size }, *first);
        }
        let run = account(Counting::OnTheWire, &[(&content, size as u16)], usize::MAX);
        let datagrams: Vec<(&[u8], u16)> = content.chunks(size).map(|one| (one, 0)).collect();
        let single = account(Counting::OnTheWire, &datagrams, usize::MAX);
        prop_assert_eq!(format!("{:?}", on_the_wire(&run)), format!("{:?}", on_the_wire(&single)));
        // However much of it was kept, no byte is counted twice.
        let short = account(Counting::OnTheWire, &[(&content, size as u16)], kept_bytes);
        prop_assert_eq!(short.sent.total().bytes(), single.sent.total().bytes());
    }
}
