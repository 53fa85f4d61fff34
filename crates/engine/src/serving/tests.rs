//! Servers on real loopback sockets, clients on the standard library's; and one in the simulated
//! world.

mod storing;

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weigh_model::connection::Fault;
use weigh_model::server::{ConnectionId, Outboxes, ServerReport};

use super::*;
use crate::io::sim::{Link, Party, SimIo, World};
use crate::io::{Close, IoEvent, Token};

/// Sends back every line it gets; `bad` is a fault, `blast` asks for 1 MB, `stop` is answered by
/// a reset, `notify_shard` pokes every shard, `die` panics.
struct Echo {
    shards: u16,
    report: ServerReport,
    notified: Arc<AtomicU64>,
    closed: Arc<AtomicU64>,
}

impl Echo {
    fn new() -> Echo {
        Echo {
            shards: 1,
            report: ServerReport::default(),
            notified: Arc::default(),
            closed: Arc::default(),
        }
    }
}

impl Server for Echo {
    fn accepted(&mut self, _: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {
        self.report.connections += 1;
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some(length) = input[taken..].iter().position(|byte| *byte == b'\n') {
            let line = &input[taken..=taken + length];
            taken += length + 1;
            self.report.received += 1;
            match line {
                b"bad\n" => {
                    out.stage(connection).extend_from_slice(b"no\n");
                    return Err(Fault::Malformed("bad line".to_owned()));
                }
                b"blast\n" => out.stage(connection).extend_from_slice(&[b'x'; BLAST]),
                b"stop\n" => out.abort(connection),
                b"die\n" => panic!("told to die"),
                b"notify\n" => (0..self.shards).for_each(|shard| out.notify_shard(shard)),
                line => out.stage(connection).extend_from_slice(line),
            }
        }
        if out.pending_bytes(connection) > 0 {
            out.notify_drained(connection);
        }
        Ok(taken)
    }

    fn drained(&mut self, of: ConnectionId, _: Nanos, out: &mut dyn Outboxes) {
        assert_eq!(out.pending_bytes(of), 0);
        self.report.forwarded += 1;
    }

    fn closed(&mut self, _: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    fn notified(&mut self, _: Nanos, _: &mut dyn Outboxes) {
        self.notified.fetch_add(1, Ordering::Relaxed);
    }

    fn report(&self) -> ServerReport {
        self.report.clone()
    }
}

const BLAST: usize = 1_000_000;

struct Counts {
    notified: Arc<AtomicU64>,
    closed: Arc<AtomicU64>,
}

fn echo(shards: u16) -> (Serving, Counts) {
    let counts = Counts { notified: Arc::default(), closed: Arc::default() };
    let (notified, closed) = (counts.notified.clone(), counts.closed.clone());
    let make = move |_| -> Box<dyn Server> {
        Box::new(Echo {
            shards,
            report: ServerReport::default(),
            notified: notified.clone(),
            closed: closed.clone(),
        })
    };
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    (
        Serving::start(&Host { transport: Transport::Stream, make: Box::new(make) }, any, shards)
            .unwrap(),
        counts,
    )
}

fn read_line(stream: &mut TcpStream, expected: &[u8]) {
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, expected);
}

#[test]
fn lines_come_back_whole_or_in_pieces() {
    let (serving, counts) = echo(1);
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    stream.write_all(b"one\ntwo\nthr").unwrap();
    read_line(&mut stream, b"one\ntwo\n");
    stream.write_all(b"ee\n").unwrap();
    read_line(&mut stream, b"three\n");
    assert_eq!(serving.report().open_connections, 1);
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    let report = serving.stop();
    assert_eq!((report.server.connections, report.server.received), (1, 3));
    assert_eq!((report.open_connections, report.faults), (0, 0));
    assert_eq!((report.bytes_read, report.bytes_written), (14, 14));
    assert_eq!(counts.closed.load(Ordering::Relaxed), 1);
}

#[test]
fn a_fault_closes_after_what_was_staged() {
    let (serving, counts) = echo(1);
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    stream.write_all(b"first\nbad\nnever\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"first\nno\n");
    let report = serving.stop();
    assert_eq!(report.faults, 1);
    assert!(report.fault_reasons[0].contains("bad line"), "{:?}", report.fault_reasons);
    assert_eq!(counts.closed.load(Ordering::Relaxed), 1);
}

#[test]
fn an_abort_is_a_reset() {
    let (serving, counts) = echo(1);
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    stream.write_all(b"stop\n").unwrap();
    let error = stream.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    serving.stop();
    assert_eq!(counts.closed.load(Ordering::Relaxed), 1);
}

#[test]
fn a_slow_reader_gets_everything() {
    let (serving, _) = echo(1);
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    for _ in 0..10 {
        stream.write_all(b"blast\n").unwrap();
    }
    // Ten megabytes do not fit into socket buffers: the rest waits at the server, which must
    // serve others meanwhile.
    let mut other = TcpStream::connect(serving.address()).unwrap();
    other.write_all(b"still there\n").unwrap();
    read_line(&mut other, b"still there\n");
    let mut all = vec![0; 10 * BLAST];
    stream.read_exact(&mut all).unwrap();
    assert!(all.iter().all(|byte| *byte == b'x'));
    drop((stream, other));
    assert_eq!(serving.stop().bytes_written, 10 * BLAST as u64 + 12);
}

#[test]
fn shards_share_a_port_and_poke_each_other() {
    let (serving, counts) = echo(2);
    assert_eq!(serving.thread_ids().len(), 2);
    let mut streams: Vec<TcpStream> =
        (0..64).map(|_| TcpStream::connect(serving.address()).unwrap()).collect();
    for (index, stream) in streams.iter_mut().enumerate() {
        let line = format!("line {index}\n");
        stream.write_all(line.as_bytes()).unwrap();
        read_line(stream, line.as_bytes());
    }
    streams[0].write_all(b"notify\n").unwrap();
    while counts.notified.load(Ordering::Relaxed) < 2 {
        std::thread::yield_now();
    }
    drop(streams);
    let report = serving.stop();
    assert_eq!((report.server.connections, report.server.received), (64, 65));
    assert_eq!(counts.closed.load(Ordering::Relaxed), 64);
}

#[test]
fn a_panic_of_a_server_shows_when_it_is_stopped() {
    let (serving, _) = echo(1);
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    stream.write_all(b"die\n").unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap_or(0), 0);
    assert_eq!(serving.report(), ServingReport::default());
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| serving.stop()));
    assert_eq!(panic.unwrap_err().downcast_ref::<&str>(), Some(&"told to die"));
}

/// A server that echoes, without counts of its own.
fn echoing() -> Host {
    let make = |_| -> Box<dyn Server> { Box::new(Echo::new()) };
    Host { transport: Transport::Stream, make: Box::new(make) }
}

#[test]
fn a_taken_address_is_named() {
    let (serving, _) = echo(1);
    let error = Serving::start(&echoing(), serving.address(), 1);
    let fault = IoFault::AddressInUse;
    assert_eq!(error.err(), Some(ServeError::Listen { on: serving.address(), fault }));
}

/// Sends its line when connected and leaves when the answer has arrived.
struct Guest {
    io: SimIo,
    token: Token,
    answer: Vec<u8>,
    expects: usize,
    failed: bool,
}

impl Party for Guest {
    fn step(&mut self) -> bool {
        let mut connected = false;
        let (answer, failed) = (&mut self.answer, &mut self.failed);
        self.io.turn(Nanos::NEVER, &mut |_, event| match event {
            IoEvent::Connected(_) => connected = true,
            IoEvent::Received(_, bytes) => answer.extend_from_slice(bytes),
            IoEvent::Failed(..) => *failed = true,
            _ => {}
        });
        if connected {
            assert_eq!(self.io.write(self.token, b"hello\nblast\n"), Ok(12));
        }
        let over = self.answer.len() == self.expects;
        if over {
            self.io.close(self.token, Close::Graceful);
        }
        !over
    }
}

#[test]
fn the_same_server_runs_in_the_simulated_world() {
    let on = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let mut world = World::new(5);
    let delay = Nanos::from_micros(20);
    world.link(on, Link { delay, in_pieces: true, ..Link::default() });
    let mut server = SimulatedServing::start(&echoing(), on, world.party()).unwrap();
    let mut guests: Vec<Guest> = (0..3)
        .map(|_| {
            let mut io = world.party();
            let token = io.connect(server.address(), None).unwrap();
            Guest { io, token, answer: Vec::new(), expects: BLAST + 6, failed: false }
        })
        .collect();
    let mut parties: Vec<&mut dyn Party> = vec![&mut server];
    parties.extend(guests.iter_mut().map(|guest| guest as &mut dyn Party));
    world.run(&mut parties, Nanos::from_secs(10));
    let now = world.now();
    assert!(now < Nanos::from_secs(1), "the blasts got through their small buffers by {now}");
    for guest in &guests {
        assert!(guest.answer.starts_with(b"hello\nxxx") && !guest.failed);
    }
    let report = server.report();
    assert_eq!((report.server.connections, report.server.received), (3, 6));
    assert!(report.server.forwarded >= 3, "drained was told");
    assert_eq!(report.bytes_written, 3 * (BLAST as u64 + 6));
}

/// A peer that is still sending when it is answered and closed must get its answer: a close with
/// unread input would be a reset.
#[test]
fn an_answer_survives_the_close_though_the_peer_goes_on_sending() {
    let (serving, counts) = echo(1);
    for _ in 0..20 {
        let mut stream = TcpStream::connect(serving.address()).unwrap();
        stream.write_all(b"bad\n").unwrap();
        for _ in 0..64 {
            stream.write_all(&[b'x'; 65_536]).unwrap();
        }
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"no\n");
    }
    let report = serving.stop();
    assert_eq!((report.faults, report.open_connections), (20, 0));
    assert_eq!(counts.closed.load(Ordering::Relaxed), 20);
}

#[test]
fn a_peer_that_never_stops_sending_is_not_waited_for_for_ever() {
    let on = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let mut world = World::new(5);
    let mut server = SimulatedServing::start(&echoing(), on, world.party()).unwrap();
    let mut stubborn = Stubborn { io: world.party(), token: None, ended: None, gone: None };
    stubborn.token = Some(stubborn.io.connect(on, None).unwrap());
    world.run(&mut [&mut server, &mut stubborn], Nanos::from_secs(60));
    let (ended, gone) = (stubborn.ended.unwrap(), stubborn.gone.unwrap());
    assert!(ended < Nanos::from_millis(200), "half closed at {ended}");
    assert!(gone >= Nanos::from_secs(2) && gone < Nanos::from_secs(3), "reset at {gone}");
    let report = server.report();
    assert_eq!((report.server.received, report.faults), (1, 1));
}

/// Sends every 100 ms, whatever it receives, until it is reset.
struct Stubborn {
    io: SimIo,
    token: Option<Token>,
    ended: Option<Nanos>,
    gone: Option<Nanos>,
}

impl Party for Stubborn {
    fn step(&mut self) -> bool {
        let until = self.io.now() + Nanos::from_millis(100);
        let (ended, gone) = (&mut self.ended, &mut self.gone);
        self.io.turn(until, &mut |now, event| match event {
            IoEvent::Ended(_) => *ended = Some(now),
            IoEvent::Failed(..) => *gone = Some(now),
            _ => {}
        });
        if let Some(token) = self.token {
            let _ = self.io.write(token, b"bad\n");
        }
        self.gone.is_none()
    }
}

/// What a peer has to read is bounded: one that only sends is not read from, and gets all answers
/// once it reads.
#[test]
fn a_peer_that_does_not_read_has_to_wait() {
    let on = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let mut world = World::new(5);
    let mut server = SimulatedServing::start(&echoing(), on, world.party()).unwrap();
    let mut io = world.party();
    let token = io.connect(on, None).unwrap();
    let mut deaf = Deaf { io, token, sent: 0, got: 0, reads_from: Nanos::from_secs(5) };
    world.run(&mut [&mut server, &mut deaf], Nanos::from_secs(4));
    // Buffers of both directions, and the backlog with what was read in one turn.
    assert!(deaf.sent < 4 << 20, "{} bytes were taken", deaf.sent);
    assert_eq!(deaf.got, 0);
    world.run(&mut [&mut server, &mut deaf], Nanos::from_secs(60));
    assert_eq!((deaf.sent, deaf.got), (DEAF_BYTES, DEAF_BYTES));
}

const DEAF_BYTES: usize = 32 << 20;

/// Sends lines as fast as they are taken, and reads from a moment on.
struct Deaf {
    io: SimIo,
    token: Token,
    sent: usize,
    got: usize,
    reads_from: Nanos,
}

impl Party for Deaf {
    fn step(&mut self) -> bool {
        let (until, got) = (self.io.now() + Nanos::from_millis(10), &mut self.got);
        self.io.turn(until, &mut |_, event| {
            if let IoEvent::Received(_, bytes) = event {
                *got += bytes.len();
            }
        });
        match self.io.now() < self.reads_from {
            true => self.io.hold(self.token),
            false => self.io.release(self.token),
        }
        let line = [b"fifteen letters\n".as_slice(); 64].concat();
        while self.sent < DEAF_BYTES {
            // Lines may be cut anywhere: the rest is sent next.
            let from = self.sent % line.len();
            let rest = &line[from..line.len().min(from + DEAF_BYTES - self.sent)];
            match self.io.write(self.token, rest) {
                Ok(0) | Err(_) => break,
                Ok(taken) => self.sent += taken,
            }
        }
        self.got < DEAF_BYTES
    }
}
