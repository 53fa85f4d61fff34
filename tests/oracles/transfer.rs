//! Objects piece by piece: sizes by the specifications, content by its check, the books when a
//! connection breaks in the middle, and the relay that is the control for a second hop.

use std::sync::Arc;
use std::time::Duration;

use weigh_engine::io::sim::{Cut, Link, World};
use weigh_engine::relay::{RelayCounts, Relaying, SimulatedRelay};
use weigh_engine::serving::{Serving, SimulatedServing};
use weigh_model::connection::{Connection, Emit, Fault, Op, Outbox, Reply, Transfer};
use weigh_model::ledger::Cause;
use weigh_model::protocol::Seat;
use weigh_model::units::Bytes;
use weigh_model::{Nanos, Pattern};

use crate::rig::{Seen, Setup, any_port, assert_near, simulated_address};

const SIZES: [u64; 6] = [1, 10, 44, 100_000, 500_000, 1_000_000];
const TOPIC: &str = "farm/tank";

type Given = &'static [(&'static str, &'static str)];

const HTTP: Given = &[];
const CHUNKED: Given = &[("chunked", "true")];
const MQTT: [Given; 3] = [
    &[("qos", "0"), ("topic", TOPIC), ("client_id", "scale-%r%i")],
    &[("qos", "1"), ("topic", TOPIC), ("client_id", "scale-%r%i")],
    &[("qos", "2"), ("topic", TOPIC), ("client_id", "scale-%r%i")],
];

fn transfer(protocol: &str, given: Given, size: u64, objects: u64) -> Setup {
    let mut setup = Setup::new(protocol, given, Pattern::Transfer, objects);
    setup.load.size = Some(Bytes(size));
    setup.load.window = Some(1);
    setup.load.timeout = Nanos::from_secs(60);
    setup.load.subscribers = u32::from(protocol == "mqtt");
    setup
}

/// Bytes of the variable byte integer `value` (MQTT 3.1.1, section 2.2.3).
fn varint(value: u64) -> u64 {
    [128, 16_384, 2_097_152].iter().filter(|limit| value >= **limit).count() as u64 + 1
}

/// Bytes up and down of a whole session with `n` objects of `size` bytes, by the specification.
fn expected(protocol: &str, given: Given, size: u64, n: u64) -> (u64, u64) {
    match (protocol, given) {
        // Nine bytes before each body (crates/protocols/src/tcp/README.md), nine for each answer.
        ("tcp", _) => (n * (9 + size), n * 9),
        ("http1", HTTP) => {
            (n * (http_head(&format!("Content-Length: {size}")) + size), n * CREATED)
        }
        ("http1", _) => {
            // RFC 9112, section 7.1: size in hexadecimal, CRLF, data, CRLF; then an empty chunk.
            let whole = size / PIECE;
            let chunk = |bytes: u64| match bytes {
                0 => 0,
                _ => format!("{bytes:x}").len() as u64 + 4 + bytes,
            };
            let body = whole * chunk(PIECE) + chunk(size % PIECE) + 5;
            (n * (http_head("Transfer-Encoding: chunked") + body), n * CREATED)
        }
        _ => {
            let qos = given[0].1.parse::<u64>().unwrap();
            let packet_id = if qos > 0 { 2 } else { 0 };
            let remaining = 2 + TOPIC.len() as u64 + packet_id + size;
            let publish = 1 + varint(remaining) + remaining;
            let (acks_up, acks_down) = [(0, 0), (4, 4), (12, 12)][qos as usize];
            // CONNECT 14 bytes and the client's name, SUBSCRIBE 7 and the topic, DISCONNECT 2;
            // CONNACK 4, SUBACK 5 (MQTT 3.1.1, chapter 3).
            let up = 2 * (14 + 8) + 7 + TOPIC.len() as u64 + 2 * 2;
            (up + n * (publish + acks_up), 2 * 4 + 5 + n * (publish + acks_down))
        }
    }
}

fn http_head(framing: &str) -> u64 {
    let head = format!(
        "POST /messages HTTP/1.1\r\nHost: 127.0.0.1:7\r\nContent-Type: application/json\r\n\
         {framing}\r\n\r\n"
    );
    head.len() as u64
}

const CREATED: u64 = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n".len() as u64;
const PIECE: u64 = 65_536;

const WAYS: [(&str, Given); 6] = [
    ("tcp", &[]),
    ("http1", HTTP),
    ("http1", CHUNKED),
    ("mqtt", MQTT[0]),
    ("mqtt", MQTT[1]),
    ("mqtt", MQTT[2]),
];

/// Every byte of the session is one of the specification, direct and through a relay, whatever
/// the pieces it comes in; and everything arrives whole.
#[test]
fn sizes_are_those_of_the_specifications() {
    for (protocol, given) in WAYS {
        for size in SIZES {
            let mut setup = transfer(protocol, given, size, 5);
            let expected = expected(protocol, given, size, 5);
            for in_pieces in [false, true] {
                setup.link.in_pieces = in_pieces;
                setup.link.buffer_bytes = 40_000;
                let seen = setup.on_virtual_time();
                check_whole(&seen, 5);
                assert_eq!(seen.outcome.shards.bytes, expected, "{protocol} {given:?} {size} B");
            }
            let (seen, relayed) = through_relay(&setup, Link::default());
            check_whole(&seen, 5);
            assert_eq!(seen.outcome.shards.bytes, expected, "{protocol} {given:?} {size} B, relay");
            assert_eq!((relayed.up_bytes, relayed.down_bytes), expected);
            assert_eq!(relayed.broken, 0);
        }
    }
}

fn check_whole(seen: &Seen, objects: u64) {
    let ledger = seen.ledger();
    assert_eq!((ledger.sent, ledger.delivered, ledger.lost), (objects, Some(objects), Some(0)));
    assert_eq!((seen.server.corrupt, ledger.corrupt), (0, 0));
    let is_marked = seen.outcome.is_marked;
    let counted = if is_marked { seen.server.unique } else { seen.server.foreign };
    assert_eq!(counted, objects, "marked: {is_marked}");
}

/// The trial of `setup` through a relay whose way to the server is `second`.
fn through_relay(setup: &Setup, second: Link) -> (Seen, RelayCounts) {
    let mut world = World::new(setup.seed);
    let mut target = simulated_address();
    target.set_port(8);
    world.link(simulated_address(), setup.link);
    world.link(target, second);
    let mut server = SimulatedServing::start(&setup.host(), target, world.party()).unwrap();
    let mut relay = SimulatedRelay::start(simulated_address(), target, world.party()).unwrap();
    let (outcome, log_hash) =
        setup.among(&mut world, vec![&mut server, &mut relay], simulated_address());
    let counts = relay.counts();
    (Seen { outcome, server: server.report().server, log_hash }, counts)
}

/// Each hop's delay appears exactly once each way: the control for a broker's second hop.
#[test]
fn a_relay_costs_its_hop_and_nothing_else() {
    let mut setup = transfer("tcp", &[], 1_000, 50);
    setup.link.delay = Nanos::from_millis(10);
    let direct = setup.on_virtual_time();
    let second = Link { delay: Nanos::from_millis(7), ..Link::default() };
    let (relayed, _) = through_relay(&setup, second);
    // The first object waits for the second connection to be made, all others for nothing.
    let median = |seen: &Seen| seen.outcome.shards.recorder.response.quantile(0.5).unwrap() as f64;
    assert_near("direct, ns", median(&direct), 20e6, 20e3);
    assert_near("through the relay, ns", median(&relayed), 34e6, 34e3);
}

/// A slow second hop makes the first one wait: the relay keeps what one turn read, not an object.
#[test]
fn a_relay_is_as_slow_as_its_slower_hop_and_keeps_little() {
    let setup = transfer("tcp", &[], 4_000_000, 2);
    let second = Link { bytes_per_s: Some(1_000_000), buffer_bytes: 64 * 1024, ..Link::default() };
    let (seen, counts) = through_relay(&setup, second);
    check_whole(&seen, 2);
    assert!(counts.waiting_bytes_max <= 512 * 1024, "{counts:?}");
    let mean = seen.outcome.shards.recorder.response.mean().unwrap();
    assert_near("4 MB at 1 MB/s, ns", mean, 4e9, 0.1e9);
}

#[test]
fn a_relay_on_sockets_carries_every_byte() {
    for (protocol, given) in WAYS {
        let setup = transfer(protocol, given, 3_000_000, 4);
        let serving = Serving::start(&setup.host(), any_port(), 1).unwrap();
        let relay = Relaying::start(any_port(), serving.address()).unwrap();
        let outcome = setup.against(relay.address());
        let carried = || {
            let counts = relay.counts();
            (counts.up_bytes, counts.down_bytes)
        };
        // The generator does not wait for its goodbye to be carried.
        for _ in 0..1000 {
            if carried() == outcome.shards.bytes {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(carried(), outcome.shards.bytes, "{protocol}");
        drop(relay);
        let server = serving.stop().server;
        check_whole(&Seen { outcome, server, log_hash: 0 }, 4);
    }
}

/// Above 16 MiB nothing is whole anywhere: what comes in goes on at once, one sender after the
/// other, and the slow way to the subscriber makes the sender wait.
#[test]
fn what_is_never_whole_passes_through() {
    let tcp: (&str, Given) = ("tcp", &[]);
    for (protocol, given) in
        [tcp, ("mqtt", &[("qos", "0")]), ("mqtt", &[("qos", "1")]), ("mqtt", &[("qos", "2")])]
    {
        let in_turn: &[u32] = if given == [("qos", "2")] { &[1, 2] } else { &[1] };
        for &connections in in_turn {
            let mut setup =
                transfer(protocol, given, (16 << 20) + 70_000, 2).connections(connections);
            setup.load.subscribers = 1;
            setup.load.timeout = Nanos::from_secs(600);
            setup.link.bytes_per_s = Some(100_000_000);
            let seen = setup.on_virtual_time();
            check_whole(&seen, 2);
            assert_eq!(seen.server.forwarded, 2, "{protocol} {given:?}");
            assert_eq!(seen.server.dropped.values().sum::<u64>(), 0);
        }
    }
}

/// A publisher that is lost in the middle takes what it began to pass with it, and the books say
/// where every pair went.
#[test]
fn the_books_are_exact_when_a_passing_object_breaks() {
    let mut setup = transfer("mqtt", &[("qos", "1")], 20 << 20, 2);
    setup.load.timeout = Nanos::from_secs(5);
    setup.link.bytes_per_s = Some(100_000_000);
    // The subscriber connects first.
    let to = simulated_address();
    setup.cuts.push(Cut { to, connection: 1, from_listener: false, after_bytes: 5 << 20 });
    let seen = setup.on_virtual_time();
    let ledger = seen.ledger();
    assert_eq!(ledger.scheduled, 2, "{ledger:#?}");
    assert_eq!(ledger.delivered, Some(0));
    assert_eq!(ledger.lost, Some(ledger.sent));
    assert_eq!(seen.server.corrupt + seen.server.foreign, 0);
}

/// A connection that breaks in the middle of an object loses that object and no other.
#[test]
fn the_books_are_exact_when_a_connection_breaks() {
    for (protocol, given) in WAYS {
        let mut setup = transfer(protocol, given, 300_000, 6);
        setup.load.timeout = Nanos::from_secs(5);
        let to = simulated_address();
        let connection = u64::from(setup.load.subscribers);
        for after_bytes in [1_000, 299_000, 450_000] {
            setup.cuts = vec![Cut { to, connection, from_listener: false, after_bytes }];
            let seen = setup.on_virtual_time();
            let ledger = seen.ledger();
            let name = format!("{protocol} {given:?} cut after {after_bytes}: {ledger:#?}");
            assert_eq!(ledger.messages, 6, "{name}");
            assert_eq!(ledger.sent, 6, "{name}");
            assert_eq!((ledger.delivered, ledger.lost), (Some(5), Some(1)), "{name}");
            assert_eq!(ledger.causes, [(Cause::ConnectionClosed, 1)].into(), "{name}");
            assert_eq!((seen.server.unique, seen.server.corrupt), (5, 0), "{name}");
        }
    }
}

/// One wrong byte anywhere in an object is seen by the server and by the subscriber.
#[test]
fn a_wrong_byte_is_seen() {
    for (protocol, given) in WAYS {
        for place in [0, 100_000, 199_950, 199_990] {
            let mut setup = transfer(protocol, given, 200_000, 3);
            setup.load.timeout = Nanos::from_secs(5);
            setup.wrap = Some(Arc::new(move |_: Seat, inner| {
                Box::new(Flipping { inner, place, at: 0, is_done: false })
            }));
            let seen = setup.on_virtual_time();
            let ledger = seen.ledger();
            let name = format!("{protocol} {given:?} byte {place}: {ledger:#?}");
            assert_eq!((seen.server.unique, seen.server.corrupt), (2, 1), "{name}");
            if protocol == "mqtt" {
                assert_eq!((ledger.delivered, ledger.corrupt), (Some(2), 1), "{name}");
                assert_eq!(ledger.causes, [(Cause::Corrupt, 1)].into(), "{name}");
            }
        }
    }
}

/// Flips one bit of the first object that passes.
struct Flipping {
    inner: Box<dyn Connection>,
    place: u64,
    at: u64,
    is_done: bool,
}

impl Flipping {
    fn flipped(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut piece = piece.to_vec();
        let end = self.at + piece.len() as u64;
        if !self.is_done && (self.at..end).contains(&self.place) {
            piece[(self.place - self.at) as usize] ^= 0x04;
            self.is_done = true;
        }
        self.at = end;
        piece
    }
}

impl Connection for Flipping {
    fn open(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        self.inner.open(now, out, emit);
    }

    fn room(&self) -> u32 {
        self.inner.room()
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        self.inner.send(op, now, out)
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        self.inner.receive(input, now, out, emit)
    }

    fn end(&mut self, rest: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        self.inner.end(rest, emit)
    }

    fn close(&mut self, out: &mut Outbox) {
        self.inner.close(out);
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        Some(self)
    }
}

impl Transfer for Flipping {
    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        let body = self.flipped(op.body);
        let op = Op { ticket: op.ticket, body: &body };
        self.inner.transfer().unwrap().begin(&op, rest, now, out)
    }

    fn more(&mut self, piece: &[u8], now: Nanos, out: &mut Outbox) {
        let piece = self.flipped(piece);
        self.inner.transfer().unwrap().more(&piece, now, out);
    }
}

/// The first bytes of an object come a path's delay after it was due, the last ones when the rate
/// of the path has let them through.
#[test]
fn first_and_last_byte_come_when_the_path_says() {
    let mut setup = transfer("mqtt", MQTT[0], 1_000_000, 5);
    setup.link.delay = Nanos::from_millis(20);
    setup.link.bytes_per_s = Some(10_000_000);
    // More than the path holds, so that it is never empty.
    setup.link.buffer_bytes = 4 << 20;
    let seen = setup.on_virtual_time();
    check_whole(&seen, 5);
    let recorder = &seen.outcome.shards.recorder;
    // Up and down, 20 ms each; the broker waits for the whole object, 0.1 s at 10 MB/s, and its
    // first segment of 16 KiB takes 1.6 ms on the way down.
    assert_near("first byte, ns", recorder.first_byte.mean().unwrap(), 141.6e6, 2e6);
    assert_near("delivered, ns", recorder.delivery.mean().unwrap(), 240e6, 2e6);
}
