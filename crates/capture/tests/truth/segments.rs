//! Runs of datagrams that leave with one call (UDP_SEGMENT): the ring says how the kernel cuts
//! them, also where the offloads that ethtool(8) lists first are off.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

use weigh_capture::{Account, Capture, Counting, Filter, Options, Settings, Warning};

use crate::world::{Offload, inside};

/// Bytes of a run, and of its datagrams: eight of 1,200 and one of 400.
const RUN_BYTES: usize = 10_000;
const DATAGRAM_BYTES: u16 = 1_200;
const RUNS: u64 = 20;
const DATAGRAMS: u64 = 9 * RUNS;

#[test]
fn runs_count_as_the_datagrams_that_arrive() {
    inside("segments::runs_count_as_the_datagrams_that_arrive", Offload::On, || counts(7601));
}

#[test]
fn runs_count_as_the_datagrams_that_arrive_with_offloads_off() {
    let name = "segments::runs_count_as_the_datagrams_that_arrive_with_offloads_off";
    inside(name, Offload::Off, || counts(7611));
}

#[test]
fn as_captured_they_are_super_packets_and_the_account_says_so() {
    let name = "segments::as_captured_they_are_super_packets_and_the_account_says_so";
    inside(name, Offload::On, || {
        let account = captured(7621, Counting::AsCaptured, DATAGRAM_BYTES);
        let sent = account.sent.total();
        assert_eq!((sent.packets, sent.data_packets), (RUNS, RUNS));
        let bytes = RUN_BYTES as u32 + 42;
        assert_eq!(account.warnings(), [Warning::SuperPackets { bytes }]);
    });
}

fn counts(port: u16) {
    let cut = captured(port, Counting::OnTheWire, DATAGRAM_BYTES);
    let single = captured(port + 1, Counting::OnTheWire, 0);
    let (sent, expected) = (cut.sent.total(), single.sent.total());
    assert_eq!((expected.packets, expected.packets_captured), (DATAGRAMS, DATAGRAMS));
    assert_eq!((sent.packets, sent.data_packets), (DATAGRAMS, DATAGRAMS));
    assert_eq!(sent.layers, expected.layers);
    assert_eq!(sent.layers.application, RUNS * RUN_BYTES as u64);
    // Ethernet, IP and UDP for each datagram.
    assert_eq!(sent.bytes(), RUNS * RUN_BYTES as u64 + DATAGRAMS * (14 + 20 + 8));
    assert_eq!((cut.warnings(), single.warnings()), (vec![], vec![]));
    assert_eq!((cut.packets_dropped, single.packets_dropped), (0, 0));
}

/// Sends runs, or their datagrams one by one, and returns their account once all have arrived.
fn captured(port: u16, counting: Counting, cut_bytes: u16) -> Account {
    let settings = Settings { filter: Filter::port(port), counting, ..Settings::default() };
    let capture = Capture::start(Options::new("lo", settings)).unwrap();
    let receiver = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    set_segment(&sender, i32::from(cut_bytes));
    let body: Vec<u8> = (0..RUN_BYTES).map(|at| at as u8).collect();
    let piece = if cut_bytes > 0 { RUN_BYTES } else { usize::from(DATAGRAM_BYTES) };
    let mut buffer = [0; 2_000];
    for _ in 0..RUNS {
        for piece in body.chunks(piece) {
            assert_eq!(sender.send(piece).unwrap(), piece.len());
        }
        for expected in body.chunks(usize::from(DATAGRAM_BYTES)) {
            let length = receiver.recv(&mut buffer).unwrap();
            assert!(buffer[..length] == *expected);
        }
    }
    capture.stop().unwrap()
}

/// Sets the size into which the kernel cuts what is sent at a socket.
fn set_segment(socket: &UdpSocket, bytes: libc::c_int) {
    #[expect(unsafe_code, reason = "no safe crate here sets options of UDP")]
    // SAFETY: the kernel reads an int, which lives until the call returns.
    let answer = unsafe {
        let length = size_of_val(&bytes) as libc::socklen_t;
        let (socket, value) = (socket.as_raw_fd(), (&raw const bytes).cast());
        libc::setsockopt(socket, libc::SOL_UDP, libc::UDP_SEGMENT, value, length)
    };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}
