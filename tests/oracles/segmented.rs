//! Datagrams that the kernel cuts and joins: the wire between two hosts does not show who cut them,
//! and what it carries is what was handed over.

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use weigh_capture::{Account, Capture, Filter, Options, Settings};
use weigh_engine::io::epoll::EpollIo;
use weigh_engine::io::{Io, IoEvent, Token};
use weigh_model::Nanos;
use weigh_model::connection::Outbox;
use weigh_testbed::hosts::{HostSpec, NamespaceRights, Offloads, Scene, SceneSpec};

/// Sizes of the datagrams of a round: runs, single ones, and a last one that is shorter.
const ROUND: [usize; 12] =
    [1_200, 1_200, 1_200, 1_200, 1_200, 1_200, 1_200, 700, 60, 60, 1_000, 1_452];
const ROUNDS: usize = 50;
/// Ethernet, IP and UDP.
const HEADERS: usize = 14 + 20 + 8;

/// Offloads off, as in every trial over a path or with a capture: the kernel cuts in software.
#[test]
fn the_wire_carries_the_same_packets_whoever_cuts_them() {
    let Some(ground) = ground("the_wire_carries_the_same_packets_whoever_cuts_them") else {
        return;
    };
    let bytes: usize = ROUND.iter().map(|size| size + HEADERS).sum();
    let scene = scene(ground, Offloads::Off);
    for cuts in [false, true] {
        let account = echoed(&scene, cuts);
        for way in [account.sent.total(), account.received.total()] {
            assert_eq!(way.packets, (ROUND.len() * ROUNDS) as u64, "{cuts}: {way:?}");
            assert_eq!(way.packets_captured, way.packets, "{cuts}");
            assert_eq!(way.bytes(), (bytes * ROUNDS) as u64, "{cuts}");
        }
        assert_eq!(account.largest_packet_bytes, 1_452 + HEADERS as u32, "{cuts}");
        assert_eq!(account.warnings(), [], "{cuts}");
    }
}

/// With offloads on, runs pass as super-packets, and the ring says into what they are cut.
#[test]
fn super_packets_count_as_the_packets_that_a_wire_would_carry() {
    let test = "super_packets_count_as_the_packets_that_a_wire_would_carry";
    let Some(ground) = ground(test) else { return };
    let bytes: usize = ROUND.iter().map(|size| size + HEADERS).sum();
    let account = echoed(&scene(ground, Offloads::AsCaptured), true);
    for way in [account.sent.total(), account.received.total()] {
        assert_eq!(way.packets, (ROUND.len() * ROUNDS) as u64, "{way:?}");
        assert!(way.packets_captured < way.packets, "{way:?}");
        assert_eq!(way.bytes(), (bytes * ROUNDS) as u64);
    }
    assert_eq!(account.warnings(), []);
}

/// What the client's wire carried while rounds of datagrams went to the server and back.
fn echoed(scene: &Scene, cuts: bool) -> Account {
    let (client, server) = (scene.host("client").unwrap(), scene.host("server").unwrap());
    let (listens, listening) = channel();
    let (door, on) = (server.door(), SocketAddr::from((server.address(), 0)));
    let answering = thread::spawn(move || {
        door.enter().unwrap();
        let mut io = io_that(cuts);
        listens.send(io.listen_datagrams(on).unwrap()).unwrap();
        answer(&mut io);
    });
    let on = listening.recv().unwrap();
    let settings = Settings { filter: Filter::port(on.port()), ..Settings::default() };
    let capture = client.inside(|| Ok(Capture::start(Options::new("weigh0", settings)))).unwrap();
    let capture = capture.unwrap();
    let door = client.door();
    let asking = thread::spawn(move || {
        door.enter().unwrap();
        ask(&mut io_that(cuts), on);
    });
    asking.join().unwrap();
    answering.join().unwrap();
    capture.stop().unwrap()
}

/// Sends round after round, each when the last one has come back whole.
fn ask(io: &mut EpollIo, on: SocketAddr) {
    let token = io.connect_datagrams(on, None).unwrap();
    for _ in 0..ROUNDS {
        let mut out = Outbox::default();
        for (at, size) in ROUND.iter().enumerate() {
            out.put(&vec![at as u8; *size]);
            out.frame();
        }
        assert_eq!(io.send(token, out.frames(), 0), Ok(out.len()));
        let back = next(io, ROUND.len());
        assert!(back.iter().all(|(from, _)| *from == token));
        let sent: Vec<&[u8]> = out.frames().after(0).collect();
        assert!(back.iter().map(|(_, datagram)| &datagram[..]).eq(sent));
    }
    assert_eq!(io.uncut(), 0, "cut by the kernel, or never asked to");
}

/// Sends every round back.
fn answer(io: &mut EpollIo) {
    for _ in 0..ROUNDS {
        let mut out = Outbox::default();
        let round = next(io, ROUND.len());
        for (_, datagram) in &round {
            out.put(datagram);
            out.frame();
        }
        assert_eq!(io.send(round[0].0, out.frames(), 0), Ok(out.len()));
    }
    assert_eq!(io.uncut(), 0, "cut by the kernel, or never asked to");
}

/// The next datagrams, and from where.
fn next(io: &mut EpollIo, count: usize) -> Vec<(Token, Vec<u8>)> {
    let (mut seen, until) = (Vec::new(), io.now() + Nanos::from_secs(10));
    while seen.len() < count {
        assert!(io.now() < until, "{} of {count} came", seen.len());
        io.turn(until, &mut |_, event| {
            if let IoEvent::Received(from, bytes) = event {
                seen.push((from, bytes.to_vec()));
            }
        });
    }
    seen
}

/// Sockets of the calling thread's host.
fn io_that(cuts: bool) -> EpollIo {
    let mut io = EpollIo::new(Instant::now()).unwrap();
    if cuts {
        io.let_kernel_cut();
    }
    io
}

/// The right to make hosts; `None`, and said, where there is none, or where it is for programs with
/// one thread, which tests are not.
fn ground(test: &str) -> Option<NamespaceRights> {
    let looked = NamespaceRights::look();
    let must = std::env::var("CI").is_ok_and(|value| value == "true");
    if let Err(error) = &looked {
        assert!(!must, "{error}, and CI=true");
    }
    if !matches!(looked, Ok(NamespaceRights::Privileged)) {
        eprintln!("SKIPPED {test}: only root may make hosts beside other tests");
        return None;
    }
    Some(NamespaceRights::take().unwrap())
}

fn scene(ground: NamespaceRights, offloads: Offloads) -> Scene {
    let host = |name: &str| HostSpec { name: name.to_owned(), path: None };
    let hosts = vec![host("client"), host("server")];
    Scene::set(ground, &SceneSpec { offloads, ..SceneSpec::of(hosts) }).unwrap()
}
