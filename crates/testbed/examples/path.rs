//! Measures the paths of this machine: how long hosts take to be there, what a path with nothing
//! in it costs, how exact its delay and its rate are, and how many packets it carries.
//!
//! `cargo run --release -p weigh-testbed --example path [tap|ring|router|PRESET ...]`; use a quiet
//! machine. The name of a preset gives round trips across it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use weigh_model::path::{PRESETS, Path, preset};
use weigh_model::units::Nanos;
use weigh_testbed::hosts::{Carrier, HostSpec, NamespaceRights, Scene, SceneSpec};
use weigh_testbed::link::counts::PathCounts;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let ground = NamespaceRights::take()?;
    let asked: Vec<String> = std::env::args().skip(1).collect();
    for (name, _) in PRESETS.iter().filter(|(name, _)| asked.iter().any(|asked| asked == name)) {
        println!("== {name}");
        Bench { ground, carrier: Carrier::Best }.round_trips_across(preset(name)?)?;
    }
    for name in ["router", "tap", "ring"] {
        if !asked.is_empty() && !asked.iter().any(|asked| asked == name) {
            continue;
        }
        let carrier = match name {
            "tap" => Carrier::Tap,
            "ring" => Carrier::Ring,
            _ => Carrier::Best,
        };
        let bench = Bench { ground, carrier };
        println!("== {name}");
        bench.set_up()?;
        bench.round_trips("", 80)?;
        if name == "router" {
            continue;
        }
        bench.round_trips("", 0)?;
        for spin in [0, 80] {
            bench.round_trips("up = { delay = \"30ms\" }\ndown = { delay = \"30ms\" }", spin)?;
            bench.round_trips("up = { delay = \"1ms\" }\ndown = { delay = \"1ms\" }", spin)?;
        }
        bench.tcp("up = { rate = \"10Mbit/s\", queue = \"64KB\" }", 5_000_000, 10e6)?;
        bench.tcp("up = { rate = \"100Mbit/s\", queue = \"256KB\" }", 50_000_000, 100e6)?;
        bench.backlogged("up = { rate = \"10Mbit/s\", queue = \"64KB\" }", 10e6)?;
        bench.backlogged("up = { rate = \"100Mbit/s\", queue = \"256KB\" }", 100e6)?;
        bench.flood("", 1472, 400_000)?;
        bench.flood("", 36, 400_000)?;
        bench.flood("up = { delay = \"30ms\" }", 1472, 400_000)?;
        bench.flood("up = { loss = \"1%\" }", 1472, 50_000)?;
    }
    Ok(())
}

struct Bench {
    ground: NamespaceRights,
    carrier: Carrier,
}

impl Bench {
    fn scene(&self, text: &str, spin: u64) -> Outcome<Scene> {
        let head = "name = \"t\"\ntitle = \"t\"\nabout = \"t\"\nmtu = 1500\n";
        self.scene_with(Path::parse("t.toml", &format!("{head}{text}"))?, spin)
    }

    fn scene_with(&self, path: Path, spin: u64) -> Outcome<Scene> {
        let host = |name: &str, path| HostSpec { name: name.to_owned(), path };
        let hosts = vec![host("client", Some(path)), host("server", None)];
        let mut spec = SceneSpec { carrier: self.carrier, ..SceneSpec::of(hosts) };
        spec.forwarder.spin = Nanos::from_micros(spin);
        let scene = Scene::set(self.ground, &spec)?;
        scene.begin(1);
        Ok(scene)
    }

    fn set_up(&self) -> Outcome {
        let mut times = Vec::new();
        for _ in 0..21 {
            let began = Instant::now();
            let scene = self.scene("", 0)?;
            times.push(began.elapsed());
            drop(scene);
        }
        times.sort();
        println!("set up: median {:?}, longest {:?}", times[10], times[20]);
        Ok(())
    }

    fn round_trips(&self, text: &str, spin: u64) -> Outcome {
        let scene = self.scene(text, spin)?;
        let number = if text.contains("30ms") { 100 } else { 500 };
        let mut times = round_trips(&scene, number)?;
        times.sort();
        let at = |q: f64| times[((times.len() - 1) as f64 * q) as usize];
        let (p50, p90, p99) = (at(0.5), at(0.9), at(0.99));
        let priority = scene.has_priority();
        println!("round trip {text:?}, spin {spin} us, before others {priority:?}:");
        println!("    p50 {p50:?}, p90 {p90:?}, p99 {p99:?}");
        if let Some(counts) = scene.path_counts() {
            println!("    {}", told(&counts));
        }
        Ok(())
    }

    /// As ping prints it, which is how study 001 gives it.
    fn round_trips_across(&self, path: Path) -> Outcome {
        println!("up {}; down {}", path.up, path.down);
        let scene = self.scene_with(path, 80)?;
        let times = round_trips(&scene, 200)?;
        let millis: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        let mean = millis.iter().sum::<f64>() / millis.len() as f64;
        let square = millis.iter().map(|t| t * t).sum::<f64>() / millis.len() as f64;
        let least = millis.iter().copied().fold(f64::INFINITY, f64::min);
        let most = millis.iter().copied().fold(0.0, f64::max);
        let deviation = (square - mean * mean).max(0.0).sqrt();
        println!("round trip min/avg/max/mdev = {least:.3}/{mean:.3}/{most:.3}/{deviation:.3} ms");
        Ok(())
    }

    fn tcp(&self, text: &str, bytes: usize, bits_per_second: f64) -> Outcome {
        let scene = self.scene(text, 80)?;
        let (client, server) = (scene.host("client")?, scene.host("server")?);
        let listener = server.inside(|| TcpListener::bind((server.address(), 0)))?;
        let to = listener.local_addr()?;
        let receiver = std::thread::spawn(move || -> std::io::Result<(Instant, Instant, usize)> {
            let (mut stream, _) = listener.accept()?;
            let mut buffer = vec![0; 1 << 16];
            let (mut total, mut first, mut skipped) = (0, Instant::now(), 0);
            loop {
                let read = stream.read(&mut buffer)?;
                if read == 0 {
                    return Ok((first, Instant::now(), total - skipped));
                }
                total += read;
                // Slow start is not the rate: the first tenth does not count.
                if skipped == 0 && total > bytes / 10 {
                    (first, skipped) = (Instant::now(), total);
                }
            }
        });
        let mut stream = client.inside(|| TcpStream::connect(to))?;
        stream.write_all(&vec![0; bytes])?;
        drop(stream);
        let (first, last, counted) = receiver.join().map_err(|_| "the receiver panicked")??;
        let found = counted as f64 * 8.0 / (last - first).as_secs_f64();
        // 1,448 bytes of body in 1,500 of IP and 14 of Ethernet.
        let expected = bits_per_second * 1448.0 / 1514.0;
        let percent = (found / expected - 1.0) * 100.0;
        println!("rate {text:?}: {:.4} Mbit/s, {percent:+.2} % of what it should be", found / 1e6);
        if let Some(counts) = scene.path_counts() {
            println!("    {}; queue full {}", told(&counts), counts.ports[0].up.queue_full);
        }
        Ok(())
    }

    /// What a link carries that always has something to carry: datagrams at twice its rate. TCP
    /// beside it depends on when the machine lets the sender run.
    fn backlogged(&self, text: &str, bits_per_second: f64) -> Outcome {
        let scene = self.scene(text, 80)?;
        let (client, server) = (scene.host("client")?, scene.host("server")?);
        let receiving = server.inside(|| UdpSocket::bind((server.address(), 0)))?;
        let sending = client.inside(|| UdpSocket::bind((client.address(), 0)))?;
        sending.connect(receiving.local_addr()?)?;
        receiving.set_read_timeout(Some(Duration::from_millis(500)))?;
        let receiver = std::thread::spawn(move || {
            let mut times = Vec::new();
            while receiving.recv(&mut [0; 2000]).is_ok() {
                times.push(Instant::now());
            }
            times
        });
        let gap = Duration::from_secs_f64(1514.0 * 8.0 / (2.0 * bits_per_second));
        let began = Instant::now();
        let mut number = 0;
        while began.elapsed() < Duration::from_secs(2) {
            if began.elapsed() >= gap * number {
                let _ = sending.send(&[0; 1472]);
                number += 1;
            } else {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        let times = receiver.join().map_err(|_| "the receiver panicked")?;
        let (Some(first), Some(last)) = (times.first(), times.last()) else {
            return Err("nothing arrived".into());
        };
        let found = (times.len() - 1) as f64 * 1514.0 * 8.0 / (*last - *first).as_secs_f64();
        let percent = (found / bits_per_second - 1.0) * 100.0;
        println!("backlogged {text:?}: {:.4} Mbit/s, {percent:+.3} %", found / 1e6);
        if let Some(counts) = scene.path_counts() {
            let (full, written) = (counts.ports[0].up.queue_full, counts.ports[1].written);
            println!("    {}; queue full {full}", told(&counts));
            println!("    received {} of {written} written", times.len());
        }
        Ok(())
    }

    fn flood(&self, text: &str, bytes: usize, packets: u64) -> Outcome {
        let scene = self.scene(text, 80)?;
        let host = |name: &str| scene.host(name);
        let (client, server) = (host("client")?, host("server")?);
        let receiving = server.inside(|| UdpSocket::bind((server.address(), 0)))?;
        let sending = client.inside(|| UdpSocket::bind((client.address(), 0)))?;
        sending.connect(receiving.local_addr()?)?;
        let body = vec![0; bytes];
        let before = scene.path_counts().unwrap_or_default();
        let cpu = || clock_gettime(ClockId::ThreadCPUTime);
        let (began, cpu_before) = (Instant::now(), cpu());
        for _ in 0..packets {
            let _ = sending.send(&body);
        }
        let used = cpu() - cpu_before;
        let used = (used.tv_sec as f64 * 1e6 + used.tv_nsec as f64 / 1e3) / packets as f64;
        let offered = packets as f64 / began.elapsed().as_secs_f64();
        let mut written = 0;
        let mut ended = Instant::now();
        let counts = loop {
            let counts = scene.path_counts().unwrap_or_default();
            if counts.written() != written {
                (written, ended) = (counts.written(), Instant::now());
            } else if ended.elapsed() > Duration::from_millis(100) {
                break counts;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let rate = written as f64 / (ended - began).as_secs_f64();
        let cost = (counts.cpu_ns - before.cpu_ns) as f64 / 1e3 / written as f64;
        println!("flood of {packets} packets of {} bytes of IP, {text:?}:", bytes + 28);
        println!("    the sender: {offered:.0}/s, {used:.2} us each");
        println!("    the path: written {written} at {rate:.0}/s, {cost:.2} us each");
        println!("    {}; lost {}", told(&counts), counts.ports[0].up.lost);
        Ok(())
    }
}

/// The times of so many round trips of a small datagram, one after another.
fn round_trips(scene: &Scene, number: usize) -> Outcome<Vec<Duration>> {
    let socket = |name: &str| -> Outcome<UdpSocket> {
        let host = scene.host(name)?;
        Ok(host.inside(|| UdpSocket::bind((host.address(), 0)))?)
    };
    let (asking, answering) = (socket("client")?, socket("server")?);
    let to = answering.local_addr()?;
    asking.set_read_timeout(Some(Duration::from_secs(30)))?;
    std::thread::spawn(move || {
        let mut buffer = [0; 100];
        while let Ok((length, from)) = answering.recv_from(&mut buffer) {
            let _ = answering.send_to(&buffer[..length], from);
        }
    });
    let mut times = Vec::new();
    for _ in 0..number {
        let sent = Instant::now();
        asking.send_to(&[0; 64], to)?;
        asking.recv_from(&mut [0; 100])?;
        times.push(sent.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(times)
}

fn told(counts: &PathCounts) -> String {
    let sum = |of: fn(&weigh_testbed::link::counts::PortCounts) -> u64| -> u64 {
        counts.ports.iter().map(of).sum()
    };
    format!(
        "late {}, lateness mean {:.1} us, longest {:.0} us, overruns {}, overflowed {}, refused {}",
        counts.late,
        counts.lateness_ns_mean() / 1e3,
        counts.lateness_ns_max as f64 / 1e3,
        counts.overruns,
        sum(|port| port.overflowed),
        sum(|port| port.refused),
    )
}
