//! The trap of study 002: "header bytes" of one and the same transfer of 1 MB differ by an order of
//! magnitude, depending on a setting of the driver that the paper does not mention.

use weigh_capture::kernel::agreement;
use weigh_capture::{Account, Capture, Counting, Filter, Options, Settings, Warning};

use crate::session::exchange;
use crate::world::{Offload, inside, prepare};

const BYTES: usize = 1_000_000;
/// MTU 1500 without 20 for IP, 20 for TCP, 12 for timestamps.
const SEGMENT_BYTES: u64 = 1448;

#[test]
fn with_offloads_off_the_headers_are_there() {
    inside("trap::with_offloads_off_the_headers_are_there", Offload::Off, || {
        let port = 7101;
        let captured = Capture::start(options(port, Counting::AsCaptured)).unwrap();
        exchange(port, BYTES, 1);
        let account = captured.stop().unwrap();
        let headers = header_bytes(&account);
        let segments = (BYTES as u64).div_ceil(SEGMENT_BYTES);
        eprintln!("offloads off: {headers} bytes of TCP headers");
        assert_eq!(account.warnings(), []);
        assert!(account.sent.total().data_packets >= segments);
        assert!(headers >= segments * 32, "{headers}");
    });
}

#[test]
fn with_offloads_on_they_seem_to_be_gone_unless_they_are_counted_as_on_the_wire() {
    let name = "trap::with_offloads_on_they_seem_to_be_gone_unless_they_are_counted_as_on_the_wire";
    inside(name, Offload::On, || {
        let port = 7102;
        let naive = Capture::start(options(port, Counting::AsCaptured)).unwrap();
        let right = Capture::start(options(port, Counting::OnTheWire)).unwrap();
        let views = exchange(port, BYTES, 1);
        let (naive, right) = (naive.stop().unwrap(), right.stop().unwrap());
        let segments = (BYTES as u64).div_ceil(SEGMENT_BYTES);

        // What a paper would print.
        let seen = header_bytes(&naive);
        eprintln!(
            "offloads on: {seen} bytes of TCP headers as captured in {} data packets, {} as on the \
             wire in {}",
            naive.sent.total().data_packets,
            header_bytes(&right),
            right.sent.total().data_packets,
        );
        // Below what the segments alone need: the rule by which `weigh audit` finds it in papers.
        assert!(seen < 20 * segments, "{seen}");
        assert!(
            matches!(naive.warnings()[..], [Warning::SuperPackets { bytes }] if bytes > 10_000)
        );

        // The same packets, cut as the kernel says it will cut them.
        let sent = right.sent.total();
        assert!(sent.data_packets >= segments);
        assert_eq!(sent.packets_captured, naive.sent.total().packets);
        assert_eq!(sent.bytes_captured, naive.sent.total().bytes());
        assert_eq!(right.warnings(), []);
        // The sender's data headers alone are as without offloads.
        assert!(sent.layers.transport >= 32 * segments, "{:?}", sent.layers);
        assert!(sent.layers.transport > 10 * naive.sent.total().layers.transport);

        // The kernel counted segments all along.
        let found = agreement(&right, &views);
        assert_eq!((found.compared, found.differences), (2, vec![]));
        let found = agreement(&naive, &views);
        assert_eq!(found.compared, 0, "as captured is not comparable, and says so");
    });
}

#[test]
fn the_same_transfer_differs_by_an_order_of_magnitude() {
    let name = "trap::the_same_transfer_differs_by_an_order_of_magnitude";
    inside(name, Offload::Off, || {
        let mut headers = [Offload::Off, Offload::On].map(|offload| {
            prepare(offload).unwrap();
            let port = 7103;
            let capture = Capture::start(options(port, Counting::AsCaptured)).unwrap();
            exchange(port, BYTES, 1);
            header_bytes(&capture.stop().unwrap())
        });
        let fold = headers[0] as f64 / headers[1] as f64;
        eprintln!("1 MB: {headers:?} bytes of TCP headers, offloads off and on: {fold:.1}-fold");
        headers[1] *= 10;
        assert!(headers[0] > headers[1], "{fold}");
    });
}

fn options(port: u16, counting: Counting) -> Options {
    let settings = Settings { filter: Filter::port(port), counting, ..Settings::default() };
    Options::new("lo", settings)
}

fn header_bytes(account: &Account) -> u64 {
    (account.sent.total() + account.received.total()).layers.transport
}
