//! The world on trial: exact times, equal runs, full buffers, scripted faults, and one scenario
//! on both kinds of `Io`.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Instant;

use weigh_stats::random::Random;

use super::*;
use crate::io::epoll::EpollIo;

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 1))
}

/// A event that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Connected,
    Accepted,
    Received(Vec<u8>),
    Writable,
    Ended,
    Failed(IoFault),
    Woken,
}

impl Seen {
    fn of(event: IoEvent<'_>) -> (Option<Token>, Seen) {
        match event {
            IoEvent::Connected(token) => (Some(token), Seen::Connected),
            IoEvent::Accepted { connection } => (Some(connection), Seen::Accepted),
            IoEvent::Received(token, bytes) => (Some(token), Seen::Received(bytes.to_vec())),
            IoEvent::Writable(token) => (Some(token), Seen::Writable),
            IoEvent::Ended(token) => (Some(token), Seen::Ended),
            IoEvent::Failed(token, fault) => (Some(token), Seen::Failed(fault)),
            IoEvent::Woken => (None, Seen::Woken),
        }
    }
}

type React = Box<dyn FnMut(&mut SimIo, Nanos, Option<Token>, &Seen)>;

/// A party that notes what it sees and reacts to it by a closure.
struct Actor {
    io: SimIo,
    react: React,
    seen: Vec<(Nanos, Seen)>,
    over_after: usize,
    serves: bool,
}

impl Actor {
    fn new(
        io: SimIo,
        react: impl FnMut(&mut SimIo, Nanos, Option<Token>, &Seen) + 'static,
    ) -> Self {
        Actor {
            io,
            react: Box::new(react),
            seen: Vec::new(),
            over_after: usize::MAX,
            serves: false,
        }
    }

    fn over_after(mut self, events: usize) -> Self {
        self.over_after = events;
        self
    }

    fn serves(mut self) -> Self {
        self.serves = true;
        self
    }

    fn received(&self) -> Vec<u8> {
        let bytes = self.seen.iter().filter_map(|(_, seen)| match seen {
            Seen::Received(bytes) => Some(bytes.clone()),
            _ => None,
        });
        bytes.flatten().collect()
    }
}

impl Party for Actor {
    fn step(&mut self) -> bool {
        let mut heard = Vec::new();
        self.io.turn(Nanos::NEVER, &mut |now, event| heard.push((now, Seen::of(event))));
        for (now, (token, seen)) in heard {
            (self.react)(&mut self.io, now, token, &seen);
            self.seen.push((now, seen));
        }
        self.seen.len() < self.over_after
    }

    fn serves(&self) -> bool {
        self.serves
    }
}

/// Sends back what it receives, closes what has ended.
fn echo(mut io: SimIo) -> Actor {
    io.listen(address(), 64).unwrap();
    Actor::new(io, |io, _, token, seen| match (token, seen) {
        (Some(token), Seen::Received(bytes)) => {
            let taken = io.write(token, bytes);
            // A reset may already stand behind the bytes.
            assert!(taken == Ok(bytes.len()) || taken == Err(IoFault::Reset), "{taken:?}");
        }
        (Some(token), Seen::Ended | Seen::Failed(_)) => io.close(token, Close::Graceful),
        _ => {}
    })
    .serves()
}

/// Connects and sends `say`.
fn caller(mut io: SimIo, say: &'static [u8]) -> Actor {
    io.connect(address(), None).unwrap();
    Actor::new(io, move |io, _, token, seen| {
        if let (Some(token), Seen::Connected) = (token, seen) {
            assert_eq!(io.write(token, say), Ok(say.len()));
        }
    })
}

fn with_delay(delay: Nanos) -> Link {
    Link { delay, ..Link::default() }
}

#[test]
fn times_are_exact_to_the_nanosecond() {
    let mut world = World::new(1);
    let link = Link { bytes_per_s: Some(1_000_000), ..with_delay(Nanos(12_345)) };
    world.link(address(), link);
    let mut server = echo(world.party());
    let mut client = caller(world.party(), b"0123456789").over_after(2);
    world.run(&mut [&mut server, &mut client], Nanos::NEVER);
    let takes = 10_000; // 10 bytes at one a microsecond
    let bytes = Seen::Received(b"0123456789".to_vec());
    assert_eq!(
        client.seen,
        [(Nanos(2 * 12_345), Seen::Connected), (Nanos(4 * 12_345 + 2 * takes), bytes.clone()),]
    );
    assert_eq!(
        server.seen,
        [(Nanos(3 * 12_345), Seen::Accepted), (Nanos(3 * 12_345 + takes), bytes)]
    );
    assert_eq!(world.now(), Nanos(4 * 12_345 + 2 * takes));
    assert_eq!(client.io.bytes(), (10, 10));
}

/// Many callers over a link with jitter and pieces; the log's check value.
fn busy_world(seed: u64) -> (u64, u64) {
    let mut world = World::new(seed);
    let jitter = Nanos::from_micros(700);
    world.link(address(), Link { jitter, in_pieces: true, ..with_delay(Nanos(1_000)) });
    let mut server = echo(world.party());
    let mut callers: Vec<Actor> =
        (0..20).map(|_| caller(world.party(), b"some bytes that may come in pieces")).collect();
    let mut parties: Vec<&mut dyn Party> = vec![&mut server];
    parties.extend(callers.iter_mut().map(|caller| caller as &mut dyn Party));
    world.run(&mut parties, Nanos::from_secs(1));
    for caller in &callers {
        assert_eq!(caller.received(), b"some bytes that may come in pieces");
    }
    (world.log_hash(), world.events())
}

#[test]
fn one_seed_is_one_history() {
    let first = busy_world(7);
    assert_eq!(first, busy_world(7));
    assert_ne!(first.0, busy_world(8).0);
    assert!(first.1 > 20 * 4, "pieces make more events: {}", first.1);
}

#[test]
fn a_full_buffer_stops_the_writer_until_the_reader_reads() {
    let mut world = World::new(1);
    let delay = Nanos::from_micros(50);
    world.link(address(), Link { buffer_bytes: 1_000, ..with_delay(delay) });
    let mut server_io = world.party();
    let lasts = Nanos::from_millis(9);
    world.pause(0, Pause { from: Nanos::from_micros(120), lasts, every: None });
    server_io.listen(address(), 1).unwrap();
    let mut server = Actor::new(server_io, |_, _, _, _| {}).serves();
    let mut rest = 5_000;
    let mut client_io = world.party();
    client_io.connect(address(), None).unwrap();
    let mut client = Actor::new(client_io, move |io, _, token, _| {
        if let Some(token) = token {
            let taken = io.write(token, &vec![b'x'; rest]).unwrap();
            assert!(taken <= 1_000);
            rest -= taken;
            if rest == 0 {
                io.close(token, Close::Graceful);
            }
        }
    });
    world.run(&mut [&mut server, &mut client], Nanos::NEVER);
    assert_eq!(server.received().len(), 5_000);
    assert_eq!(server.seen.last().unwrap().1, Seen::Ended);
    let room = client.seen.iter().filter(|(_, seen)| *seen == Seen::Writable).count();
    assert_eq!(room, 4, "five writes of 1,000 bytes");
    assert!(client.seen[1].0 > lasts, "the first room comes after the pause");
}

#[test]
fn a_stopped_party_finds_its_input_later() {
    let mut world = World::new(1);
    world.link(address(), with_delay(Nanos::from_millis(1)));
    let second = Nanos::from_secs(1);
    let shut = Pause { from: Nanos(0), lasts: Nanos::from_millis(100), every: Some(second) };
    let mut server = echo(world.party());
    world.pause(0, shut);
    let mut client = caller(world.party(), b"hello").over_after(2);
    world.run(&mut [&mut server, &mut client], Nanos::NEVER);
    // The kernel answers the handshake; the bytes wait for the party.
    assert_eq!(client.seen[0], (Nanos::from_millis(2), Seen::Connected));
    assert_eq!(client.seen[1].0, Nanos::from_millis(101));
    assert_eq!(shut.resumes(Nanos::from_millis(1_050)), Some(Nanos::from_millis(1_100)));
    assert_eq!(shut.resumes(Nanos::from_millis(1_100)), None);
}

#[test]
fn refusals_and_cuts_come_as_scripted() {
    let mut world = World::new(1);
    world.link(address(), with_delay(Nanos(1_000)));
    world.refuse(address(), Nanos(500), Nanos(1_500));
    let mut server = echo(world.party());
    let mut client = caller(world.party(), b"hello").over_after(1);
    world.run(&mut [&mut server, &mut client], Nanos::NEVER);
    assert_eq!(client.seen, [(Nanos(2_000), Seen::Failed(IoFault::Refused))]);

    let mut world = World::new(1);
    let cut = Cut { to: address(), connection: 0, from_listener: true, after_bytes: 3 };
    world.link(address(), with_delay(Nanos(1_000)));
    world.cut(cut);
    let mut server = echo(world.party());
    let mut client = caller(world.party(), b"hello").over_after(3);
    world.run(&mut [&mut server, &mut client], Nanos::NEVER);
    assert_eq!(client.received(), b"hel");
    assert_eq!(client.seen[2], (Nanos(4_000), Seen::Failed(IoFault::Reset)));

    // The other way round: the server hears two bytes, then both ends fail.
    let mut world = World::new(1);
    world.link(address(), with_delay(Nanos(1_000)));
    world.cut(Cut { from_listener: false, after_bytes: 2, ..cut });
    let mut server = echo(world.party());
    let mut client = caller(world.party(), b"hello").over_after(3);
    world.run(&mut [&mut server, &mut client], Nanos::NEVER);
    assert_eq!(server.received(), b"he");
    assert_eq!(server.seen[2], (Nanos(3_000), Seen::Failed(IoFault::Reset)));
    assert_eq!(client.seen.last(), Some(&(Nanos(4_000), Seen::Failed(IoFault::Reset))));
}

#[test]
fn nobody_listening_and_nobody_left() {
    let mut world = World::new(1);
    let mut client = caller(world.party(), b"").over_after(1);
    world.run(&mut [&mut client], Nanos::NEVER);
    assert_eq!(client.seen, [(Nanos(0), Seen::Failed(IoFault::Refused))]);

    // A listener that leaves resets connections that it has not accepted.
    let mut world = World::new(1);
    world.link(address(), with_delay(Nanos(10)));
    let mut io = world.party();
    io.listen(address(), 1).unwrap();
    world.pause(0, Pause { from: Nanos(0), lasts: Nanos(100), every: None });
    let mut client = caller(world.party(), b"x").over_after(2);
    world.run(&mut [&mut Leaver, &mut client], Nanos::NEVER);
    assert_eq!(client.seen[1], (Nanos(110), Seen::Failed(IoFault::Reset)));
}

/// Ends as soon as it is stepped.
struct Leaver;

impl Party for Leaver {
    fn step(&mut self) -> bool {
        false
    }
}

/// A server with one clerk who takes exactly `takes` for each byte: the D/1 of M/D/1.
struct Clerk {
    io: SimIo,
    takes: Nanos,
    free_at: Nanos,
    queue: VecDeque<(Nanos, Token)>,
}

impl Party for Clerk {
    fn step(&mut self) -> bool {
        let now = self.io.now();
        while let Some((_, token)) = self.queue.pop_front_if(|(due, _)| *due <= now) {
            assert_eq!(self.io.write(token, b"."), Ok(1));
        }
        let until = self.queue.front().map_or(Nanos::NEVER, |(due, _)| *due);
        let (takes, free_at, queue) = (self.takes, &mut self.free_at, &mut self.queue);
        self.io.turn(until, &mut |now, event| {
            if let IoEvent::Received(token, bytes) = event {
                for _ in bytes {
                    *free_at = now.max(*free_at) + takes;
                    queue.push_back((*free_at, token));
                }
            }
        });
        true
    }

    fn serves(&self) -> bool {
        true
    }
}

/// Sends a byte at random moments and measures how long each answer takes.
struct Customer {
    io: SimIo,
    token: Token,
    random: Random,
    mean_ns: f64,
    next: Nanos,
    asked: VecDeque<Nanos>,
    left: u32,
    waits_ns: Vec<u64>,
}

impl Party for Customer {
    fn step(&mut self) -> bool {
        let now = self.io.now();
        if now >= self.next && self.left > 0 {
            assert_eq!(self.io.write(self.token, b"?"), Ok(1));
            self.asked.push_back(now);
            self.left -= 1;
            self.next = now + Nanos(self.random.exponential(self.mean_ns) as u64 + 1);
        }
        let until = if self.left > 0 { self.next } else { Nanos::NEVER };
        let (asked, waits) = (&mut self.asked, &mut self.waits_ns);
        self.io.turn(until, &mut |now, event| {
            if let IoEvent::Received(_, bytes) = event {
                for _ in bytes {
                    waits.push(now.since(asked.pop_front().unwrap()).0);
                }
            }
        });
        self.left > 0 || !self.asked.is_empty()
    }
}

#[test]
fn a_full_backlog_makes_callers_ask_again() {
    let mut world = World::new(1);
    world.link(address(), with_delay(Nanos::from_millis(1)));
    let mut io = world.party();
    io.listen(address(), 1).unwrap();
    let away = Pause { from: Nanos(0), lasts: Nanos::from_millis(500), every: None };
    world.pause(0, away);
    let mut server = Actor::new(io, |_, _, _, _| {}).serves();
    let mut callers: Vec<Actor> =
        (0..3).map(|_| caller(world.party(), b"x").over_after(1)).collect();
    let mut parties: Vec<&mut dyn Party> = vec![&mut server];
    parties.extend(callers.iter_mut().map(|caller| caller as &mut dyn Party));
    world.run(&mut parties, Nanos::NEVER);
    let connected: Vec<u64> = callers.iter().map(|caller| caller.seen[0].0.0).collect();
    assert_eq!(connected, [2_000_000, 2_000_000, 1_002_000_000]);
}

#[test]
fn a_queue_waits_as_theory_says() {
    let mut world = World::new(1);
    let mut io = world.party();
    io.listen(address(), 1).unwrap();
    let takes = Nanos::from_micros(100);
    let mut clerk = Clerk { io, takes, free_at: Nanos(0), queue: VecDeque::new() };
    let mut io = world.party();
    let token = io.connect(address(), None).unwrap();
    let mut customer = Customer {
        io,
        token,
        random: Random::new(3),
        mean_ns: 125_000.0, // the clerk is busy four fifths of the time
        next: Nanos::from_millis(1),
        asked: VecDeque::new(),
        left: 60_000,
        waits_ns: Vec::new(),
    };
    world.run(&mut [&mut clerk, &mut customer], Nanos::NEVER);
    let mean = customer.waits_ns.iter().sum::<u64>() as f64 / 60_000.0;
    // Pollaczek and Khinchine: service + rho * service / (2 (1 - rho)) = 100 + 200 us.
    assert!((mean / 300_000.0 - 1.0).abs() < 0.05, "mean {mean} ns");
    assert!(customer.waits_ns.iter().all(|wait| *wait >= 100_000));
}

/// Two connections in one `Io`, a few words each way, an end and a reset: what happened, by
/// connection. Times differ between the two kinds of `Io`, and so does the order between
/// connections; the order on each does not.
fn dialogue(io: &mut dyn Io, mut pass: impl FnMut()) -> [Vec<Seen>; 4] {
    let on = io.listen(any(), 8).unwrap();
    let mut seen: [Vec<Seen>; 4] = Default::default();
    let mut tokens = Vec::new();
    let mut wait = |io: &mut dyn Io, tokens: &mut Vec<Token>, seen: &mut [Vec<Seen>; 4]| {
        let mut any = false;
        while !any {
            pass();
            io.turn(Nanos::NEVER, &mut |_, event| {
                any = true;
                if let (Some(token), event) = Seen::of(event) {
                    if event == Seen::Accepted {
                        tokens.push(token);
                    }
                    let place = tokens.iter().position(|known| *known == token).unwrap();
                    match (seen[place].last_mut(), event) {
                        (Some(Seen::Received(before)), Seen::Received(more)) => before.extend(more),
                        (_, event) => seen[place].push(event),
                    }
                }
            });
        }
    };
    for pair in 0..2 {
        tokens.push(io.connect(on, None).unwrap());
        while seen.iter().map(Vec::len).sum::<usize>() < 2 * pair + 2 {
            wait(io, &mut tokens, &mut seen);
        }
    }
    let received = |seen: &[Seen], bytes: &[u8]| seen.contains(&Seen::Received(bytes.to_vec()));
    assert_eq!(io.write(tokens[0], b"over there"), Ok(10));
    while !received(&seen[1], b"over there") {
        wait(io, &mut tokens, &mut seen);
    }
    assert_eq!(io.write(tokens[1], b"and back"), Ok(8));
    io.close(tokens[1], Close::Graceful);
    while !seen[0].contains(&Seen::Ended) {
        wait(io, &mut tokens, &mut seen);
    }
    assert_eq!(io.write(tokens[2], b"last words"), Ok(10));
    while !received(&seen[3], b"last words") {
        wait(io, &mut tokens, &mut seen);
    }
    io.close(tokens[2], Close::Abort);
    while !seen[3].contains(&Seen::Failed(IoFault::Reset)) {
        wait(io, &mut tokens, &mut seen);
    }
    seen
}

#[test]
fn both_kinds_of_io_tell_the_same_story() {
    let mut real = EpollIo::new(Instant::now()).unwrap();
    let real = dialogue(&mut real, || {});
    let mut world = World::new(1);
    world.link(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000)), with_delay(Nanos(1_000)));
    let mut io = world.party();
    let state = io.state.clone();
    let simulated = dialogue(&mut io, || {
        let mut state = state.borrow_mut();
        if let Some(moment) = state.next_moment() {
            state.advance(moment);
        }
    });
    assert_eq!(real, simulated);
    assert_eq!(
        simulated,
        [
            vec![Seen::Connected, Seen::Received(b"and back".into()), Seen::Ended],
            vec![Seen::Accepted, Seen::Received(b"over there".into())],
            vec![Seen::Connected],
            vec![
                Seen::Accepted,
                Seen::Received(b"last words".into()),
                Seen::Failed(IoFault::Reset)
            ],
        ]
    );
}

/// A party that reads nothing: two of three answers wait in its queue, which holds no more.
#[test]
fn held_datagrams_wait_and_those_beyond_the_queue_are_dropped() {
    let send = |io: &mut SimIo, to: Token, bytes: &[u8]| {
        let ends = [bytes.len() as u32];
        assert_eq!(io.send(to, Frames { bytes, ends: &ends }, 0), Ok(bytes.len()));
    };
    let mut world = World::new(1);
    world.link(address(), Link { buffer_bytes: 1_000, ..Link::default() });
    let (mut server, mut client) = (world.party(), world.party());
    server.listen_datagrams(address()).unwrap();
    let token = client.connect_datagrams(address(), None).unwrap();
    let mut server = Actor::new(server, move |io, _, token, seen| {
        if let (Some(peer), Seen::Received(_)) = (token, seen) {
            (0..3).for_each(|_| send(io, peer, &[7; 400]));
        }
    });
    let mut client = Actor::new(client, move |io, _, token, seen| {
        if let (Some(token), Seen::Connected) = (token, seen) {
            send(io, token, b"hello");
            io.hold(token);
        }
    });
    let received = |client: &Actor| {
        client.seen.iter().filter(|(_, seen)| matches!(seen, Seen::Received(_))).count()
    };
    world.run(&mut [&mut server, &mut client], Nanos::from_secs(1));
    assert_eq!((received(&client), client.io.dropped()), (0, 1));
    client.io.release(token);
    world.run(&mut [&mut server, &mut client], Nanos::from_secs(2));
    assert_eq!((received(&client), client.io.dropped()), (2, 1));
}
