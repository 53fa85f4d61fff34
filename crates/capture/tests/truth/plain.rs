//! Plain TCP of all sizes: 0 packets and 0 bytes difference to every other witness.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weigh_capture::account::{
    Account, CodecCount, ContentBytes, Ending, Phase, Phases, StreamCounts,
};
use weigh_capture::files::account_of;
use weigh_capture::kernel::{KernelWatch, Role, agreement};
use weigh_capture::{Capture, Counting, Filter, Options, Settings};

use crate::session::exchange;
use crate::tshark::{self, Sums};
use crate::world::{Offload, Scratch, has, inside};

/// Bytes that the client sends and gets, and how many of each.
const SIZES: [(usize, usize); 7] =
    [(1, 1), (10, 10), (1000, 1000), (1000, 3000), (100_000, 1), (1_000_000, 10), (10, 1_000_000)];

#[test]
fn sessions_and_transfers_agree_with_every_witness() {
    inside("plain::sessions_and_transfers_agree_with_every_witness", Offload::Off, || {
        for (at, (request, answer)) in SIZES.into_iter().enumerate() {
            // The other capture takes seconds to be sure of; every third size gets it.
            one_size(7001 + at as u16, (request, answer), at.is_multiple_of(3));
        }
    });
}

fn one_size(port: u16, (request, answer): (usize, usize), with_dumpcap: bool) {
    let file = Scratch::new(&format!("{port}.pcapng"));
    let foreign = Scratch::new(&format!("{port}.dumpcap"));
    let settings = Settings { filter: Filter::port(port), ..Settings::default() };
    let options = Options { file: Some(file.0.clone()), ..Options::new("lo", settings.clone()) };
    let dumpcap = with_dumpcap.then(|| Dumpcap::start(&foreign.0, port)).flatten();
    let watch = KernelWatch::start(&[port], None).unwrap();
    let capture = Capture::start(options).unwrap();
    let before = segments_of_the_namespace();
    let views = exchange(port, request, answer);
    let after = segments_of_the_namespace();
    let mut account = capture.stop().unwrap();
    let kernel = watch.stop(2).unwrap();
    if let Some(dumpcap) = dumpcap {
        dumpcap.stop();
    }
    eprintln!(
        "{request} B out, {answer} B in: {} + {} packets, {} bytes, {:?}",
        account.sent.total().packets,
        account.received.total().packets,
        (account.sent.total() + account.received.total()).bytes(),
        (account.sent.total() + account.received.total()).layers,
    );

    // The capture knows what was asked for.
    assert_eq!(account.warnings(), []);
    assert_eq!(account.connections.len(), 1);
    assert_eq!(account.connections[0].ending, Ending::Finished);
    assert_eq!(account.sent.total().layers.stream(), request as u64);
    assert_eq!(account.received.total().layers.stream(), answer as u64);
    check_phases(&account);

    // The kernel's counters, of both ends and by both ways to them.
    let found = agreement(&account, &views);
    assert_eq!((found.compared, found.unfinished, found.differences), (2, 0, vec![]));
    let found = agreement(&account, &kernel.sockets);
    assert_eq!((found.compared, found.unfinished, found.differences), (2, 0, vec![]));
    // Both ends are in this namespace: what one sent, the other received.
    let packets = account.sent.total().packets + account.received.total().packets;
    assert_eq!([after[0] - before[0], after[1] - before[1]], [packets; 2]);
    for view in views {
        let total = match view.role {
            Role::Opened => account.sent.total(),
            Role::Accepted => account.received.total(),
        };
        let ip_bytes = total.layers.total() - total.layers.link;
        let expected = view.figures.ip_bytes_out(view.role, false);
        if is_undisturbed(&account) {
            assert_eq!(expected, ip_bytes);
        } else {
            // Acknowledgements of gaps are longer than the kernel's counters tell.
            assert!(expected <= ip_bytes, "{expected} {ip_bytes}");
        }
    }

    // The same packets through the file, and through dumpcap's file.
    check_file(&file.0, &settings, &account);
    if foreign.0.exists() {
        check_file(&foreign.0, &settings, &account);
    }
    if has("tshark") {
        assert_eq!(tshark::sums(&file.0, port), both(&account));
    }

    check_counts(&mut account, request, answer);
}

/// The codec's counts, right and wrong.
fn check_counts(account: &mut Account, request: usize, answer: usize) {
    let count = |bytes: usize| {
        let (protocol, payload) = (0, bytes as u64);
        CodecCount { messages: ContentBytes { protocol, payload }, ..CodecCount::default() }
    };
    let right = StreamCounts { sent: count(request), received: count(answer) };
    let wrong = StreamCounts { sent: count(request + 1), received: count(answer) };
    let total = account.sent.total().layers.total();
    assert_eq!(account.attribute(&|_| Some(wrong)).len(), 1);
    assert!(!account.attributed);
    assert_eq!(account.attribute(&|_| Some(right)), []);
    assert!(account.attributed);
    assert_eq!(account.sent.total().layers.payload, request as u64);
    assert_eq!(account.sent.total().layers.total(), total);
}

/// Handshake and farewell of TCP have the sizes that RFC 9293 and RFC 7323 give them.
fn check_phases(account: &Account) {
    let sizes = |phases: &Phases, phase: Phase| (phases[phase].packets, phases[phase].bytes());
    // SYN with 20 bytes of options, and an acknowledgement with 12.
    assert_eq!(sizes(&account.sent, Phase::SetUp), (2, 74 + 66));
    assert_eq!(sizes(&account.received, Phase::SetUp), (1, 74));
    // FIN, and the acknowledgement of the other's.
    assert_eq!(sizes(&account.sent, Phase::TearDown), (2, 66 + 66));
    let (packets, bytes) = sizes(&account.received, Phase::TearDown);
    // FIN and acknowledgement in one packet or in two.
    assert!(packets == 1 || packets == 2, "{packets}");
    assert_eq!(bytes, 66 * packets);
    let total = account.sent.total() + account.received.total();
    assert_eq!((total.syn_packets, total.fin_packets, total.rst_packets), (2, 2, 0));
}

/// True if every segment came once and in its turn. On a busy machine the loopback interface does
/// not always deliver so.
fn is_undisturbed(account: &Account) -> bool {
    let total = account.sent.total() + account.received.total();
    total.retransmitted_packets == 0 && total.out_of_order_packets == 0
}

/// TcpInSegs and TcpOutSegs (RFC 4022) of the own network namespace, retransmissions included.
fn segments_of_the_namespace() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let mut words = || lines.next().unwrap().split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (names, values) = (words(), words());
    let number = |name: &str| {
        let at = names.iter().position(|found| found == name).unwrap();
        values[at].parse::<u64>().unwrap()
    };
    [number("InSegs"), number("OutSegs") + number("RetransSegs")]
}

fn check_file(file: &Path, settings: &Settings, live: &Account) {
    let settings = Settings { counting: Counting::AsCaptured, ..settings.clone() };
    let stored = account_of(file, settings).unwrap();
    assert_eq!((stored.sent, stored.received), (live.sent, live.received), "{}", file.display());
    assert_eq!(stored.warnings(), []);
}

fn both(account: &Account) -> [Sums; 2] {
    [&account.sent, &account.received].map(|phases| {
        let total = phases.total();
        Sums {
            packets: total.packets,
            bytes: total.bytes(),
            ip: total.layers.ip,
            tcp: total.layers.transport,
            stream: total.layers.stream() + total.layers.repeated,
            ack_only: total.ack_only_packets,
            retransmissions: total.retransmitted_packets,
            keep_alives: total.keep_alive_packets,
        }
    })
}

/// A capture by somebody else at the same time: the one that Wireshark is made with.
struct Dumpcap(Child);

impl Dumpcap {
    fn start(file: &Path, port: u16) -> Option<Dumpcap> {
        if !has("dumpcap") {
            return None;
        }
        // Both kinds of file get their turn: pcap and pcapng.
        let kind = if port.is_multiple_of(2) { "-P" } else { "-n" };
        let mut child = Command::new("dumpcap")
            .args([kind, "-i", "lo", "-B", "16", "-f", &format!("tcp port {port}"), "-w"])
            .arg(file)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It names the file once it listens.
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut text = String::new();
        while !text.contains("File:") {
            let read = errors.read_line(&mut text).unwrap();
            assert!(read > 0, "dumpcap ended before it listened: {text}");
        }
        child.stderr = Some(errors.into_inner());
        Some(Dumpcap(child))
    }

    fn stop(mut self) {
        // Its ring is handed over now and then; there is no way to ask it.
        std::thread::sleep(Duration::from_millis(1500));
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.0.wait().unwrap();
    }
}
