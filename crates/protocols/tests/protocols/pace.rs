//! Nanoseconds per request and answer, printed; asserts nothing about time. Run it with
//! `cargo test --release -p weigh-protocols --test protocols pace -- --ignored --nocapture`.

use crate::rig;
use std::hint::black_box;
use std::time::Instant;

use crate::rig::{Desk, trial};
use weigh_model::Nanos;
use weigh_model::connection::{Connection, Op, Outbox, Ticket};
use weigh_model::load::{Pattern, Topology};
use weigh_model::mark::{MARK_BYTES, Mark};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_model::server::{ConnectionId, Server};
use weigh_model::trial::Settings;
use weigh_protocols::{grpc::Grpc, http1::Http1, http2::Http2, tcp::Tcp};

const ROUNDS: u32 = 1_000_000;

fn connections(protocol: &dyn Protocol, url: &str, count: u32) -> Vec<Box<dyn Connection>> {
    let trial = trial(protocol, Pattern::Request, Topology::FanIn, url, &[]).unwrap();
    let dial = protocol.dial(&trial).unwrap();
    let mut connections: Vec<Box<dyn Connection>> =
        (0..count).map(|index| (dial.make)(Seat { index, role: Role::Producer })).collect();
    for connection in &mut connections {
        connection.open(Nanos(0), &mut Outbox::default(), &mut |_| {});
    }
    connections
}

fn server(protocol: &dyn Protocol, connections: u32) -> (Box<dyn Server>, Desk) {
    let settings = Settings::new(protocol.name(), protocol.settings(), None).unwrap();
    let mut server = (protocol.host(&settings).unwrap().make)(0);
    let mut desk = Desk::default();
    for connection in 0..connections {
        server.accepted(ConnectionId(connection), Nanos(0), &mut desk);
    }
    (server, desk)
}

fn bodies() -> Vec<Vec<u8>> {
    (0..1000)
        .map(|sequence| {
            let mut body = vec![b'x'; 64];
            let (tag, warmup, producer, due, lag) = (1, false, 0, Nanos(0), Nanos(0));
            let mark = Mark { tag, warmup, producer, sequence, due, lag, own_lag: lag };
            mark.seal(&mut body, 64 - MARK_BYTES);
            body
        })
        .collect()
}

fn report(what: &str, since: Instant) {
    let nanoseconds = since.elapsed().as_nanos() as f64 / f64::from(ROUNDS);
    println!("{what}: {nanoseconds:.1} ns");
}

/// Sends and answers over `count` connections in turn.
fn client(what: &str, protocol: &dyn Protocol, url: &str, answers: &[Vec<u8>], count: u32) {
    let mut connections = connections(protocol, url, count);
    let mut out = Outbox::default();
    let mut done = 0;
    let since = Instant::now();
    for round in 0..ROUNDS {
        let connection = &mut connections[(round % count) as usize];
        out.clear();
        connection.send(&Op { ticket: Ticket(7), body: &[b'x'; 64] }, Nanos(0), &mut out);
        black_box(out.bytes());
        let answer = &answers[(round / count) as usize % answers.len()];
        connection.receive(answer, Nanos(0), &mut out, &mut |_| done += 1).unwrap();
    }
    report(&format!("{what}, {count} connections, send and receive"), since);
    assert_eq!(done, ROUNDS);
}

fn host(what: &str, protocol: &dyn Protocol, url: &str) {
    let mut connection = connections(protocol, url, 1).remove(0);
    let requests: Vec<Vec<u8>> = bodies()
        .iter()
        .map(|body| {
            let mut out = Outbox::default();
            connection.send(&Op { ticket: Ticket(7), body }, Nanos(0), &mut out);
            out.bytes().to_vec()
        })
        .collect();
    let (mut server, mut desk) = server(protocol, 1);
    let since = Instant::now();
    for round in 0..ROUNDS {
        let request = &requests[round as usize % requests.len()];
        server.receive(ConnectionId(0), request, Nanos(0), &mut desk).unwrap();
        desk.staged.get_mut(&0).unwrap().clear();
    }
    report(&format!("{what} server, receive, count, store and answer"), since);
    assert_eq!(server.report().received, u64::from(ROUNDS));
}

/// A message there and its answer back in streams of one connection, 64 in flight, in memory: what
/// both ends cost without a kernel.
fn both_ends(what: &str, protocol: &dyn Protocol, url: &str, given: &[(&str, &str)]) {
    let trial = trial(protocol, Pattern::Request, Topology::FanIn, url, given).unwrap();
    let dial = protocol.dial(&trial).unwrap();
    let mut client = rig::Client::new((dial.make)(Seat { index: 0, role: Role::Producer }));
    let mut shard = rig::Shard::of(protocol, given);
    shard.accept(0);
    rig::exchange(&mut client, &mut shard, 0, &[]);
    let bodies = bodies();
    let (mut at_client, mut at_server) = (0.0, 0.0);
    for round in 0..ROUNDS / 64 {
        client.heard.clear();
        let since = Instant::now();
        for ticket in 0..64 {
            client.send(ticket, &bodies[(round * 64 + ticket) as usize % bodies.len()]);
        }
        let there = client.sent();
        at_client += since.elapsed().as_secs_f64();
        let since = Instant::now();
        shard.feed(0, &there).unwrap();
        let back = shard.staged(0);
        at_server += since.elapsed().as_secs_f64();
        let since = Instant::now();
        client.feed(&back).unwrap();
        at_client += since.elapsed().as_secs_f64();
        rig::exchange(&mut client, &mut shard, 0, &[]);
        assert_eq!(client.heard.len(), 64);
    }
    let each = |seconds: f64| seconds * 1e9 / f64::from(ROUNDS / 64 * 64);
    println!("{what}: client {:.0} ns, server {:.0} ns", each(at_client), each(at_server));
}

#[test]
#[ignore = "measures, and is only meaningful in a release build"]
fn pace() {
    let http = "http://127.0.0.1:8080";
    let nginx = |second: u32| {
        format!(
            "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 00:36:{second:02} \
             GMT\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\
             \r\nok"
        )
        .into_bytes()
    };
    let created = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n".to_vec();
    for count in [1, 64, 1000] {
        client("http1, same head", &Http1, http, &[nginx(0)], count);
    }
    let dates: Vec<Vec<u8>> = (0..60).map(nginx).collect();
    client("http1, new head every time", &Http1, http, &dates, 64);
    client("http1, reference server's head", &Http1, http, &[created], 64);
    let acknowledged = b"\0\0\0\x05\x81\0\0\0\x07".to_vec();
    client("tcp", &Tcp, "tcp://127.0.0.1:7000", &[acknowledged], 64);
    host("http1", &Http1, http);
    host("tcp", &Tcp, "tcp://127.0.0.1:7000");
    both_ends("http2", &Http2, "h2c://127.0.0.1:8080", &[]);
    both_ends("grpc", &Grpc, "grpc://127.0.0.1:8080", &[]);
    if cfg!(feature = "library") {
        let hosted = [("implementation", "hosted")];
        both_ends("http2, hosted", &Http2, "h2c://127.0.0.1:8080", &hosted);
        both_ends("grpc, hosted", &Grpc, "grpc://127.0.0.1:8080", &hosted);
    }
    let bodies = bodies();
    let since = Instant::now();
    for round in 0..ROUNDS {
        black_box(Mark::read_any(&bodies[round as usize % bodies.len()]));
    }
    report("of these, reading a mark", since);
}
