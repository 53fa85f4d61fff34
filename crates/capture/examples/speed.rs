//! What the probe costs: packets at a steady rate over the loopback interface, with and without it.
//!
//! ```text
//! unshare --map-root-user --net sh -c 'ip link set lo mtu 1500 up; \
//!     target/release/examples/speed 50000 10'
//! ```

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use weigh_capture::{Capture, Filter, Options, Settings, WireError};

fn main() -> Result<(), WireError> {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().unwrap_or(1));
    let (rate, seconds) = (words.next().unwrap_or(50_000), words.next().unwrap_or(10));
    for content_bytes in [64, 1400] {
        let mut senders = [const { Vec::new() }; 3];
        let mut probes = [const { Vec::new() }; 3];
        // One after another, and again: a busy machine is busy with all of them.
        for _ in 0..REPETITIONS {
            senders[0].push(steady(rate, seconds, content_bytes));
            for (at, snap_bytes) in [(1, u32::MAX), (2, 128)] {
                let settings = Settings { filter: Filter::port(PORT), ..Settings::default() };
                let options = Options { snap_bytes, ..Options::new("lo", settings) };
                let capture = Capture::start(options)?;
                senders[at].push(steady(rate, seconds, content_bytes));
                let account = capture.stop()?;
                let packets = account.packets_captured;
                let (cpu_ns, dropped) = (account.own_cpu_ns, account.packets_dropped);
                println!(
                    "  {} packets/s, {dropped} dropped, {} ns a packet, {}",
                    packets / seconds,
                    cpu_ns / packets.max(1),
                    percent(cpu_ns, seconds)
                );
                probes[at].push(cpu_ns);
                for warning in account.warnings() {
                    println!("  warning: {}", warning.text());
                }
            }
        }
        let names = ["no probe", "whole packets", "headers"];
        for ((name, senders), probes) in names.iter().zip(&mut senders).zip(&mut probes) {
            println!(
                "{content_bytes} B, {name}: the sender {}, the probe's thread {} (medians)",
                percent(median(senders), seconds),
                percent(median(probes), seconds)
            );
        }
    }
    Ok(())
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Sends `rate` messages a second over TCP and reads them at the other end; processor time of the
/// sender, into which the kernel puts the delivery too.
fn steady(rate: u64, seconds: u64, content_bytes: usize) -> u64 {
    let listener = TcpListener::bind(("127.0.0.1", PORT)).expect("the port is free");
    let reader = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        let mut sink = vec![0; 1 << 20];
        while socket.read(&mut sink).expect("content") > 0 {}
    });
    let mut socket = TcpStream::connect(("127.0.0.1", PORT)).expect("a listener");
    socket.set_nodelay(true).expect("an option of every TCP socket");
    let content = vec![7; content_bytes];
    let start = Instant::now();
    let cpu_before = thread_cpu_ns();
    // 50 packets a millisecond, as a generator with a quantum of a millisecond sends them.
    for tick in 0..seconds * 1000 {
        for _ in 0..rate / 1000 {
            socket.write_all(&content).expect("room");
        }
        let next = start + Duration::from_millis(tick + 1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let cpu_ns = thread_cpu_ns() - cpu_before;
    drop(socket);
    reader.join().expect("the reader ends with the connection");
    cpu_ns
}

fn thread_cpu_ns() -> u64 {
    let cpu = clock_gettime(ClockId::ThreadCPUTime);
    cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64
}

fn percent(cpu_ns: u64, seconds: u64) -> String {
    format!("{:.1} % of a core", cpu_ns as f64 / (seconds as f64 * 1e9) * 100.0)
}

const PORT: u16 = 7999;
const REPETITIONS: usize = 5;
