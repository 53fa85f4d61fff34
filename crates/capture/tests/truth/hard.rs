//! Trouble: loss, resets, probes, IPv6, late captures, and what the kernel's last words leave out.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::net::sockopt;
use weigh_capture::account::{Ending, Phase};
use weigh_capture::kernel::agreement::Figure;
use weigh_capture::kernel::{KernelWatch, Role, Source, agreement};
use weigh_capture::{Capture, Filter, Options, Settings, Warning};

use crate::session::{exchange, exchange_with, view};
use crate::tshark;
use crate::world::{Offload, Scratch, has, inside};

fn settings(port: u16) -> Settings {
    Settings { filter: Filter::port(port), ..Settings::default() }
}

#[test]
fn what_is_lost_and_sent_again_agrees_with_the_kernel() {
    inside("hard::what_is_lost_and_sent_again_agrees_with_the_kernel", Offload::Off, || {
        let mut again = 0;
        for port in 7301..7307 {
            let file = Scratch::new(&format!("{port}.pcapng"));
            let options =
                Options { file: Some(file.0.clone()), ..Options::new("lo", settings(port)) };
            let capture = Capture::start(options).unwrap();
            let (request, answer) = if port % 2 == 0 { (300_000, 10) } else { (10, 300_000) };
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            // The sockets lose them after the capture has seen them.
            let views = exchange_with(address, request, answer, &|socket| lose_some(socket));
            let account = capture.stop().unwrap();
            assert_eq!(account.warnings(), []);
            let found = agreement(&account, &views);
            assert_eq!(found.compared, 2);
            for difference in &found.differences {
                // What a socket's own filter drops, the socket does not count; and a FIN that comes
                // again is acknowledged out of TIME_WAIT, which counts nothing.
                let is_expected = match difference.figure {
                    Figure::PacketsIn => true,
                    Figure::PacketsOut => account.received.total().fin_packets > 1,
                    _ => false,
                };
                assert!(is_expected && difference.captured > difference.kernel, "{difference:?}");
            }
            for view in views {
                let total = match view.role {
                    Role::Opened => account.sent.total(),
                    Role::Accepted => account.received.total(),
                };
                assert_eq!(total.layers.repeated, view.figures.bytes_retransmitted);
                again += total.retransmitted_packets;
            }
            if has("tshark") {
                let seen = tshark::rows(&file.0, REPEATED, &["frame.number"], &[]).len() as u64;
                let total = account.sent.total() + account.received.total();
                // tshark takes a retransmission that fills no gap it knows for out of order, and
                // the other way round; together they are what both call not in its turn.
                let ours = total.retransmitted_packets + total.out_of_order_packets;
                eprintln!("{port}: {} again, tshark {seen}, {ours}", total.retransmitted_packets);
                assert!(seen >= total.retransmitted_packets && seen <= ours, "{seen} {ours}");
            }
        }
        assert!(again > 10, "nothing was lost: {again}");
    });
}

const REPEATED: &str = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || \
                        tcp.analysis.spurious_retransmission || tcp.analysis.out_of_order";

#[test]
fn a_reset_is_seen_though_no_counter_of_the_kernel_has_it() {
    inside("hard::a_reset_is_seen_though_no_counter_of_the_kernel_has_it", Offload::Off, || {
        let port = 7311;
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let capture = Capture::start(Options::new("lo", settings(port))).unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"half a message").unwrap();
        server.read_exact(&mut [0; 14]).unwrap();
        let mine = view(&client, address, Role::Opened);
        sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
        drop(client);
        assert!(server.read(&mut [0; 1]).is_err());
        let account = capture.stop().unwrap();
        assert_eq!(account.connections[0].ending, Ending::Reset);
        assert_eq!(account.sent.tear_down.rst_packets, 1);
        let found = agreement(&account, &[mine]);
        assert_eq!((found.compared, found.differences), (1, vec![]));
    });
}

#[test]
fn keep_alives_are_told_from_acknowledgements() {
    inside("hard::keep_alives_are_told_from_acknowledgements", Offload::Off, || {
        let port = 7321;
        let file = Scratch::new("keep-alive.pcapng");
        let options = Options { file: Some(file.0.clone()), ..Options::new("lo", settings(port)) };
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let capture = Capture::start(options).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"a message").unwrap();
        server.read_exact(&mut [0; 9]).unwrap();
        let second = Duration::from_secs(1);
        sockopt::set_tcp_keepidle(&client, second).unwrap();
        sockopt::set_tcp_keepintvl(&client, second).unwrap();
        sockopt::set_socket_keepalive(&client, true).unwrap();
        std::thread::sleep(Duration::from_millis(2600));
        drop((client, server));
        let account = capture.stop().unwrap();
        let sent = account.sent.total();
        assert!(sent.keep_alive_packets >= 1, "{sent:?}");
        assert_eq!(account.sent.messages.keep_alive_packets, sent.keep_alive_packets);
        assert_eq!(sent.retransmitted_packets, 0);
        if has("tshark") {
            let [theirs, _] = tshark::sums(&file.0, port);
            assert_eq!(theirs.keep_alives, sent.keep_alive_packets);
            assert_eq!(theirs.ack_only, sent.ack_only_packets);
        }
    });
}

#[test]
fn internet_protocol_six_is_counted_as_the_kernel_counts_it() {
    inside("hard::internet_protocol_six_is_counted_as_the_kernel_counts_it", Offload::Off, || {
        let port = 7331;
        let file = Scratch::new("six.pcapng");
        let options = Options { file: Some(file.0.clone()), ..Options::new("lo", settings(port)) };
        let capture = Capture::start(options).unwrap();
        let address = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port);
        let views = exchange_with(address, 100_000, 3000, &|_| {});
        let account = capture.stop().unwrap();
        assert_eq!(account.warnings(), []);
        let found = agreement(&account, &views);
        assert_eq!((found.compared, found.differences), (2, vec![]));
        let [sent, received] = [account.sent.total(), account.received.total()];
        assert_eq!(sent.layers.ip, sent.packets * 40);
        for (view, layers) in views.iter().zip([sent.layers, received.layers]) {
            let ip_bytes = layers.total() - layers.link;
            let disturbed = sent.retransmitted_packets + sent.out_of_order_packets > 0;
            assert!(disturbed || view.figures.ip_bytes_out(view.role, true) == ip_bytes);
        }
        if has("tshark") {
            let theirs = tshark::sums(&file.0, port);
            let bytes = theirs.map(|sum| (sum.packets, sum.bytes, sum.tcp, sum.stream));
            let ours = [sent, received].map(|traffic| {
                let layers = traffic.layers;
                (traffic.packets, traffic.bytes(), layers.transport, layers.stream())
            });
            assert_eq!(bytes, ours);
        }
    });
}

#[test]
fn a_capture_that_comes_late_says_so() {
    inside("hard::a_capture_that_comes_late_says_so", Offload::Off, || {
        let port = 7341;
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"before").unwrap();
        server.read_exact(&mut [0; 6]).unwrap();
        let capture = Capture::start(Options::new("lo", settings(port))).unwrap();
        client.write_all(&[1; 5000]).unwrap();
        server.read_exact(&mut [0; 5000]).unwrap();
        server.write_all(b"answer").unwrap();
        client.read_exact(&mut [0; 6]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(server.read(&mut [0; 1]).unwrap(), 0);
        let account = capture.stop().unwrap();
        assert_eq!(account.warnings(), [Warning::OpeningUnseen { connections: 1 }]);
        let connection = &account.connections[0];
        assert_eq!(connection.responder.port(), port);
        assert_eq!(connection.sent.messages.layers.application, 5000);
        assert_eq!(connection.received.messages.layers.application, 6);
        assert_eq!(connection.sent[Phase::SetUp].packets, 0);
        assert_eq!(connection.ending, Ending::Open);
    });
}

/// After its peer has acknowledged its FIN, the end that closed first is replaced by a small socket
/// that counts nothing. If the peer closes later, its FIN and the acknowledgement of that are in no
/// counter: [`Source::Freed`] says so, and this is why.
#[test]
fn last_words_leave_out_what_comes_after_them() {
    inside("hard::last_words_leave_out_what_comes_after_them", Offload::Off, || {
        let port = 7351;
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let watch = KernelWatch::start(&[port], Some(Duration::from_millis(50))).unwrap();
        let capture = Capture::start(Options::new("lo", settings(port))).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"a message").unwrap();
        std::thread::sleep(Duration::from_millis(200));
        // Closed, not shut down: nobody will read any more.
        drop(client);
        assert_eq!(server.read(&mut [0; 16]).unwrap(), 9);
        assert_eq!(server.read(&mut [0; 16]).unwrap(), 0);
        std::thread::sleep(Duration::from_millis(200));
        drop(server);
        let account = capture.stop().unwrap();
        let kernel = watch.stop(2).unwrap();
        assert!(!kernel.notices_lost);
        assert!(kernel.sockets.iter().all(|view| view.source == Source::Freed));
        let found = agreement(&account, &kernel.sockets);
        assert_eq!(found.compared, 2);
        // One packet more each way than the freed socket knows, and the comparison knows why.
        assert_eq!(found.differences, []);
        let of_client = kernel.sockets.iter().find(|view| view.role == Role::Opened).unwrap();
        let captured = (account.sent.total().packets, account.received.total().packets);
        let counted = &of_client.figures;
        let by_kernel = (counted.packets_out(Role::Opened), counted.segments_in);
        assert_eq!((captured.0 - by_kernel.0, captured.1 - by_kernel.1), (1, 1));

        // While they lived, both ends were sampled.
        assert!(kernel.samples.len() >= 4, "{}", kernel.samples.len());
        assert!(kernel.samples.iter().any(|sample| sample.role == Role::Opened));
        let sample = kernel.samples.iter().find(|sample| sample.role == Role::Opened).unwrap();
        assert_eq!(sample.bytes_sent, 9);
        assert!(sample.congestion_window_segments >= 10 && sample.round_trip_us > 0);
    });
}

#[test]
fn two_hundred_short_sessions_are_all_there() {
    inside("hard::two_hundred_short_sessions_are_all_there", Offload::Off, || {
        let port = 7361;
        let watch = KernelWatch::start(&[port], None).unwrap();
        let capture = Capture::start(Options::new("lo", settings(port))).unwrap();
        let mut views = Vec::new();
        for _ in 0..200 {
            views.extend(exchange(port, 100, 100));
        }
        let account = capture.stop().unwrap();
        let kernel = watch.stop(400).unwrap();
        assert_eq!((account.connections.len(), account.packets_dropped), (200, 0));
        assert_eq!(kernel.sockets.len(), 400);
        for sockets in [&views, &kernel.sockets] {
            let found = agreement(&account, sockets);
            assert_eq!((found.compared, found.differences), (400, vec![]));
        }
        let sent = account.sent.total();
        // SYN, its acknowledgement, the message, the answer's, FIN, the other FIN's.
        assert_eq!((sent.packets, sent.layers.application), (200 * 6, 200 * 100));
        assert_eq!(account.sent.set_up.packets, 400);
    });
}

#[test]
fn sockets_that_are_still_open_are_listed_with_what_they_have() {
    inside(
        "hard::sockets_that_are_still_open_are_listed_with_what_they_have",
        Offload::Off,
        || {
            let port = 7371;
            let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
            let watch = KernelWatch::start(&[port], None).unwrap();
            let capture = Capture::start(Options::new("lo", settings(port))).unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            client.write_all(b"a message").unwrap();
            server.read_exact(&mut [0; 9]).unwrap();
            let account = capture.stop().unwrap();
            let kernel = watch.stop(2).unwrap();
            assert!(kernel.sockets.iter().all(|view| view.source == Source::Listed));
            let found = agreement(&account, &kernel.sockets);
            assert_eq!((found.compared, found.unfinished, found.differences), (2, 2, vec![]));
            assert_eq!(account.connections[0].ending, Ending::Open);
            assert_eq!(account.connections[0].sent.messages.layers.application, 9);
        },
    );
}

/// Makes a socket drop one segment in 25 that comes in, after any capture has seen it: a filter of
/// the classic packet filter that draws lots (SKF_AD_RANDOM, linux/filter.h).
fn lose_some(socket: &TcpStream) {
    let one = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filters = [
        one(0x20, 0, 0, 0xffff_f000_u32.wrapping_add(56)),
        // Above 4 % of all numbers it passes.
        one(0x25, 0, 1, u32::MAX / 25),
        one(0x06, 0, 0, u32::MAX),
        one(0x06, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: 4, filter: filters.as_mut_ptr() };
    #[expect(unsafe_code, reason = "no safe crate here attaches filters to sockets")]
    // SAFETY: setsockopt(2) reads one `struct sock_fprog` and the four instructions behind its
    // pointer, and copies them before it returns.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as u32,
        )
    };
    assert_eq!(answer, 0);
}
