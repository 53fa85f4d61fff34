//! The ring itself: other namespaces, drops, interfaces that go away, files that cannot be written.

use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use weigh_capture::files::account_of;
use weigh_capture::kernel::{KernelWatch, agreement};
use weigh_capture::{Capture, Filter, Link, Options, Settings, Warning, WireError};

use crate::session::exchange;
use crate::world::{Offload, Scratch, inside, loopback_down, prepare};

fn options(port: u16) -> Options {
    let settings = Settings { filter: Filter::port(port), ..Settings::default() };
    Options::new("lo", settings)
}

#[test]
fn a_capture_listens_in_the_namespace_it_was_started_in() {
    inside("ring::a_capture_listens_in_the_namespace_it_was_started_in", Offload::Off, || {
        let (started, there_too) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let there = std::thread::spawn(move || {
            #[expect(
                deprecated,
                reason = "only this thread changes its namespace, and ends there"
            )]
            rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNET).unwrap();
            prepare(Offload::Off).unwrap();
            let capture = Capture::start(options(7401)).unwrap();
            started.send((capture, KernelWatch::start(&[7401], None).unwrap())).unwrap();
            wait.recv().unwrap();
            exchange(7401, 1000, 1000);
        });
        let (capture, watch) = there_too.recv().unwrap();
        let here = Capture::start(options(7401)).unwrap();
        let watch_here = KernelWatch::start(&[7401], None).unwrap();
        go.send(()).unwrap();
        there.join().unwrap();
        let account = capture.stop().unwrap();
        assert_eq!(account.sent.total().layers.application, 1000);
        let found = agreement(&account, &watch.stop(2).unwrap().sockets);
        assert_eq!((found.compared, found.differences), (2, vec![]));
        assert_eq!(watch_here.stop(0).unwrap().sockets, []);
        let interface = account.interface.unwrap();
        assert_eq!((interface.link, interface.mtu_bytes), (Link::Loopback, 1500));
        assert_eq!(interface.offloads.tso, Some(false));
        assert_eq!(interface.offloads.gro, Some(false));
        assert_eq!(here.stop().unwrap().packets_captured, 0, "that is another loopback");
    });
}

#[test]
fn every_packet_that_finds_no_room_is_counted() {
    inside("ring::every_packet_that_finds_no_room_is_counted", Offload::Off, || {
        let pipe = Scratch::new("pipe");
        assert!(Command::new("mkfifo").arg(&pipe.0).status().unwrap().success());
        let (go, wait) = mpsc::channel::<()>();
        let path = pipe.0.clone();
        // The file is a pipe that nobody reads, so the probe stands still and its ring fills.
        let reader = std::thread::spawn(move || {
            let mut pipe = File::open(path).unwrap();
            wait.recv().unwrap();
            let mut sink = vec![0; 1 << 20];
            while pipe.read(&mut sink).unwrap() > 0 {}
        });
        let file = Some(pipe.0.clone());
        let options = Options { ring_bytes: 4 << 20, file, ..options(7411) };
        let capture = Capture::start(options).unwrap();
        let receiver = UdpSocket::bind("127.0.0.1:7411").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..20_000 {
            sender.send_to(&[1; 1400], receiver.local_addr().unwrap()).unwrap();
        }
        go.send(()).unwrap();
        let account = capture.stop().unwrap();
        reader.join().unwrap();
        assert!(account.packets_dropped > 1000, "{}", account.packets_dropped);
        let packets = account.packets_dropped;
        assert_eq!(account.packets_captured + packets, 20_000);
        assert_eq!(account.warnings(), [Warning::Dropped { packets }]);
        // What a UDP socket cannot take is lost after the wire.
        assert_eq!(account.sent.total().layers.application, account.packets_captured * 1400);
    });
}

#[test]
fn an_interface_that_goes_down_is_a_warning() {
    inside("ring::an_interface_that_goes_down_is_a_warning", Offload::Off, || {
        let capture = Capture::start(options(7421)).unwrap();
        exchange(7421, 10, 10);
        loopback_down().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let account = capture.stop().unwrap();
        assert_eq!(account.sent.total().layers.application, 10);
        let warnings = account.warnings();
        assert!(matches!(&warnings[..], [Warning::CaptureBroke { .. }]), "{warnings:?}");
    });
}

#[test]
fn headers_alone_give_the_same_account_of_what_is_not_tls() {
    inside("ring::headers_alone_give_the_same_account_of_what_is_not_tls", Offload::Off, || {
        let whole = Capture::start(options(7431)).unwrap();
        let short = Options { snap_bytes: 96, ..options(7431) };
        let short = Capture::start(short).unwrap();
        exchange(7431, 50_000, 5000);
        let (whole, short) = (whole.stop().unwrap(), short.stop().unwrap());
        assert_eq!((short.sent, short.received), (whole.sent, whole.received));
        assert_eq!(short.warnings(), []);
    });
}

#[test]
fn what_cannot_be_captured_is_an_error_with_its_reason() {
    inside("ring::what_cannot_be_captured_is_an_error_with_its_reason", Offload::Off, || {
        let missing = Options::new("no-such-card", Settings::default());
        let error = Capture::start(missing).unwrap_err();
        assert!(matches!(&error, WireError::NoInterface { name, .. } if name == "no-such-card"));
        let file = Some("/no/such/folder/a.pcapng".into());
        let error = Capture::start(Options { file, ..options(1) }).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/folder/a.pcapng: "), "{error}");
    });
}

#[test]
fn a_file_that_is_no_capture_is_an_error_with_its_place() {
    let file = Scratch::new("broken");
    let read = |bytes: &[u8]| {
        std::fs::write(&file.0, bytes).unwrap();
        account_of(&file.0, Settings::default()).unwrap_err().to_string()
    };
    let name = file.0.display();
    assert_eq!(read(b"abc"), format!("{name}: not a capture file: it has fewer than 4 bytes"));
    let found = read(b"GIF89a..");
    assert!(found.contains("begins with 0x47494638, as no pcap"), "{found}");
    // A header of pcap and half a packet.
    let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    pcap.extend([1, 0, 0, 0]);
    pcap.extend([0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 100, 0, 0, 0, 1, 2, 3]);
    let found = read(&pcap);
    assert!(found.contains("packet 1: the file ends within it"), "{found}");
    // An unknown link header: USB.
    pcap[20] = 189;
    let found = read(&pcap);
    assert!(found.contains("link headers of type 189 are not supported"), "{found}");
}
