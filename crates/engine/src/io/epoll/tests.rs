//! Real loopback sockets; both ends in one `EpollIo`, or one end on the standard library's.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use super::*;

/// Event without bytes and times.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Connected(Token),
    Accepted(Token),
    Received(Token, Vec<u8>),
    Writable(Token),
    Ended(Token),
    Failed(Token, IoFault),
    Woken,
}

fn io() -> EpollIo {
    EpollIo::new(Instant::now()).unwrap()
}

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn one_turn(io: &mut EpollIo, until: Nanos, seen: &mut Vec<Seen>) {
    let before = io.now();
    let mut last = Nanos(0);
    io.turn(until, &mut |now, event| {
        assert!(now >= before && now >= last);
        last = now;
        seen.push(match event {
            IoEvent::Connected(token) => Seen::Connected(token),
            IoEvent::Accepted { connection } => Seen::Accepted(connection),
            IoEvent::Received(token, bytes) => Seen::Received(token, bytes.to_vec()),
            IoEvent::Writable(token) => Seen::Writable(token),
            IoEvent::Ended(token) => Seen::Ended(token),
            IoEvent::Failed(token, fault) => Seen::Failed(token, fault),
            IoEvent::Woken => Seen::Woken,
        });
    });
}

/// Turns until `enough`; every event so far.
fn turns(io: &mut EpollIo, enough: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
    let mut seen = Vec::new();
    while !enough(&seen) {
        one_turn(io, Nanos::NEVER, &mut seen);
    }
    seen
}

/// A pair in one `Io`: the connecting and the accepted end.
fn pair(io: &mut EpollIo) -> (Token, Token) {
    let address = io.listen(any(), 8).unwrap();
    let client = io.connect(address, None).unwrap();
    let seen = turns(io, |seen| seen.len() == 2);
    assert!(seen.contains(&Seen::Connected(client)));
    let accepted = seen.iter().find_map(|seen| match seen {
        Seen::Accepted(token) => Some(*token),
        _ => None,
    });
    (client, accepted.unwrap())
}

#[test]
fn bytes_cross_and_the_end_is_told_once() {
    let mut io = io();
    let (client, server) = pair(&mut io);
    assert_eq!(io.write(client, b"hello"), Ok(5));
    assert_eq!(turns(&mut io, |seen| !seen.is_empty()), [Seen::Received(server, b"hello".into())]);
    assert_eq!(io.write(server, b"bye"), Ok(3));
    io.close(server, Close::Graceful);
    let seen = turns(&mut io, |seen| seen.contains(&Seen::Ended(client)));
    assert_eq!(seen, [Seen::Received(client, b"bye".into()), Seen::Ended(client)]);
    let mut later = Vec::new();
    let soon = io.now() + Nanos::from_millis(5);
    one_turn(&mut io, soon, &mut later);
    assert_eq!(later, []);
    assert_eq!(io.bytes(), (8, 8));
    io.close(client, Close::Abort);
    assert_eq!(io.open(), 1, "the listener");
    assert_eq!(io.write(client, b"x"), Err(CLOSED));
}

#[test]
fn an_abort_fails_the_other_end() {
    let mut io = io();
    let (client, server) = pair(&mut io);
    io.close(client, Close::Abort);
    let seen = turns(&mut io, |seen| !seen.is_empty());
    assert_eq!(seen, [Seen::Failed(server, IoFault::Reset)]);
}

#[test]
fn nobody_listening_is_a_refusal_in_a_later_turn() {
    let listener = TcpListener::bind(any()).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut io = io();
    let token = io.connect(address, None).unwrap();
    let seen = turns(&mut io, |seen| !seen.is_empty());
    assert_eq!(seen, [Seen::Failed(token, IoFault::Refused)]);
    io.close(token, Close::Graceful);
    assert_eq!(io.open(), 0);
    let again = io.connect(address, None).unwrap();
    assert_eq!(again, token, "numbers are used again");
}

#[test]
fn the_local_address_is_the_one_asked_for() {
    let listener = TcpListener::bind(any()).unwrap();
    let from = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
    let mut io = io();
    io.connect(listener.local_addr().unwrap(), Some(from)).unwrap();
    assert_eq!(listener.accept().unwrap().1.ip(), from);
    let foreign = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let error = io.connect(listener.local_addr().unwrap(), Some(foreign)).unwrap_err();
    assert_eq!(error, IoFault::Other(Errno::ADDRNOTAVAIL.raw_os_error()));
    assert_eq!(io.open(), 1);
}

#[test]
fn short_writes_are_followed_by_room() {
    let mut io = io();
    let (client, server) = pair(&mut io);
    let chunk = vec![7; 1 << 20];
    let mut written = 0;
    loop {
        let taken = io.write(client, &chunk).unwrap();
        written += taken;
        if taken < chunk.len() {
            break;
        }
    }
    let mut read = 0;
    let mut room = false;
    while read < written || !room {
        let mut seen = Vec::new();
        one_turn(&mut io, Nanos::NEVER, &mut seen);
        let mut this_turn = 0;
        for seen in seen {
            match seen {
                Seen::Received(token, bytes) => {
                    assert_eq!(token, server);
                    this_turn += bytes.len();
                }
                Seen::Writable(token) => {
                    assert_eq!(token, client);
                    room = true;
                }
                other => panic!("{other:?}"),
            }
        }
        // Once from its edge, once from the list of those to read again.
        assert!(this_turn <= 2 * FILLS_PER_TURN as usize * BUFFER_BYTES, "{this_turn}");
        read += this_turn;
    }
    assert_eq!(read, written);
}

#[test]
fn pokes_wake_and_merge() {
    let mut io = io();
    let waker = io.waker();
    waker.wake();
    waker.wake();
    assert_eq!(turns(&mut io, |seen| !seen.is_empty()), [Seen::Woken]);
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        waker.wake();
    });
    assert_eq!(turns(&mut io, |seen| !seen.is_empty()), [Seen::Woken]);
    other.join().unwrap();
}

#[test]
fn a_turn_waits_until_its_time() {
    let mut io = io();
    let until = io.now() + Nanos::from_micros(300);
    let mut seen = Vec::new();
    while io.now() < until {
        one_turn(&mut io, until, &mut seen);
    }
    one_turn(&mut io, Nanos(0), &mut seen);
    assert_eq!(seen, []);
}

#[test]
fn thousands_connect_and_are_heard() {
    const MANY: usize = 2_000;
    let mut io = io();
    let address = io.listen(any(), 4_096).unwrap();
    let clients: Vec<Token> = (0..MANY).map(|_| io.connect(address, None).unwrap()).collect();
    turns(&mut io, |seen| seen.len() == 2 * MANY);
    for client in &clients {
        assert_eq!(io.write(*client, &client.0.to_be_bytes()), Ok(4));
    }
    let seen = turns(&mut io, |seen| seen.len() == MANY);
    let mut heard: Vec<u32> = seen
        .iter()
        .map(|seen| match seen {
            Seen::Received(_, bytes) => u32::from_be_bytes(bytes[..].try_into().unwrap()),
            other => panic!("{other:?}"),
        })
        .collect();
    heard.sort_unstable();
    let mut expected: Vec<u32> = clients.iter().map(|token| token.0).collect();
    expected.sort_unstable();
    assert_eq!(heard, expected);
    clients.iter().for_each(|client| io.close(*client, Close::Abort));
    let seen = turns(&mut io, |seen| seen.len() == MANY);
    assert!(seen.iter().all(|seen| matches!(seen, Seen::Failed(_, IoFault::Reset))));
}

#[test]
fn a_listener_made_elsewhere_is_adopted() {
    let listener = TcpListener::bind(any()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut io = io();
    io.adopt_listener(listener.into()).unwrap();
    let _client = TcpStream::connect(address).unwrap();
    assert!(matches!(turns(&mut io, |seen| !seen.is_empty())[..], [Seen::Accepted(_)]));
}

/// Frames of `text`, cut at commas.
fn framed(text: &str) -> (Vec<u8>, Vec<u32>) {
    let mut out = weigh_model::connection::Outbox::default();
    for part in text.split(',') {
        out.put(part.as_bytes());
        out.frame();
    }
    let frames = out.frames();
    (frames.bytes.to_vec(), frames.ends.to_vec())
}

fn send(io: &mut EpollIo, to: Token, text: &str) {
    let (bytes, ends) = framed(text);
    let frames = Frames { bytes: &bytes, ends: &ends };
    assert_eq!(io.send(to, frames, 0), Ok(bytes.len()));
}

#[test]
fn peers_of_one_datagram_socket_are_told_apart_and_answered() {
    let mut server = io();
    let on = server.listen_datagrams(any()).unwrap();
    let mut clients = io();
    let tokens = [0, 1].map(|_| clients.connect_datagrams(on, None).unwrap());
    let seen = turns(&mut clients, |seen| seen.len() == 2);
    assert!(tokens.iter().all(|token| seen.contains(&Seen::Connected(*token))));
    send(&mut clients, tokens[0], "one,two");
    send(&mut clients, tokens[1], "three");
    let seen = turns(&mut server, |seen| seen.len() == 5);
    let [Seen::Accepted(first), ..] = seen[..] else { panic!("{seen:?}") };
    let Seen::Accepted(second) = seen[3] else { panic!("{seen:?}") };
    let received = |token, text: &str| Seen::Received(token, text.into());
    assert_eq!(seen[1..3], [received(first, "one"), received(first, "two")]);
    assert_eq!(seen[4], received(second, "three"));
    send(&mut server, second, "to the second");
    send(&mut server, first, "to,the first");
    let seen = turns(&mut clients, |seen| seen.len() == 3);
    for expected in [
        received(tokens[1], "to the second"),
        received(tokens[0], "to"),
        received(tokens[0], "the first"),
    ] {
        assert!(seen.contains(&expected), "{seen:?}");
    }
    // A peer that was closed is a new one when it speaks again.
    server.close(first, Close::Graceful);
    send(&mut clients, tokens[0], "again");
    let seen = turns(&mut server, |seen| seen.len() == 2);
    assert!(matches!(seen[0], Seen::Accepted(_)), "{seen:?}");
    assert_eq!((server.dropped(), clients.dropped()), (0, 0));
}

#[test]
fn what_a_full_receive_queue_drops_is_counted_exactly() {
    let mut server = io();
    let on = server.listen_datagrams(any()).unwrap();
    let mut client = io();
    let token = client.connect_datagrams(on, None).unwrap();
    turns(&mut client, |seen| seen.len() == 1);
    let body = "x".repeat(1_000);
    let sent = 30_000;
    for _ in 0..sent {
        send(&mut client, token, &body);
    }
    let mut received = 0;
    let mut silent = 0;
    while silent < 3 {
        let until = server.now() + Nanos::from_millis(20);
        let before = received;
        server.turn(until, &mut |_, event| {
            received += u64::from(matches!(event, IoEvent::Received(..)));
        });
        silent = if received == before { silent + 1 } else { 0 };
    }
    assert!(server.dropped() > 0, "a queue of {received} datagrams");
    assert_eq!(received + server.dropped(), sent);
}

#[test]
fn nobody_takes_these_datagrams() {
    let mut io = io();
    let closed = std::net::UdpSocket::bind(any()).unwrap().local_addr().unwrap();
    let token = io.connect_datagrams(closed, None).unwrap();
    turns(&mut io, |seen| seen.len() == 1);
    send(&mut io, token, "hello");
    let seen = turns(&mut io, |seen| !seen.is_empty());
    assert_eq!(seen, [Seen::Failed(token, IoFault::Refused)]);
}

#[test]
fn datagrams_wait_while_their_socket_is_held() {
    let mut server = io();
    let on = server.listen_datagrams(any()).unwrap();
    let mut client = io();
    let token = client.connect_datagrams(on, None).unwrap();
    turns(&mut client, |seen| seen.len() == 1);
    send(&mut client, token, "hello");
    let seen = turns(&mut server, |seen| seen.len() == 2);
    let Seen::Accepted(peer) = seen[0] else { panic!("{seen:?}") };
    client.hold(token);
    send(&mut server, peer, "one,two");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let soon = client.now() + Nanos::from_millis(5);
        one_turn(&mut client, soon, &mut seen);
    }
    assert_eq!(seen, []);
    client.release(token);
    let received = |text: &str| Seen::Received(token, text.into());
    assert_eq!(turns(&mut client, |seen| seen.len() == 2), [received("one"), received("two")]);
}

/// One edge reports all of them; a turn reads 64.
#[test]
fn datagrams_beyond_the_share_of_a_turn_are_read_in_later_ones() {
    let mut server = io();
    let on = server.listen_datagrams(any()).unwrap();
    let mut client = io();
    let token = client.connect_datagrams(on, None).unwrap();
    turns(&mut client, |seen| seen.len() == 1);
    (0..20).for_each(|_| send(&mut client, token, "1,2,3,4,5,6,7,8,9,10"));
    let share = FILLS_PER_TURN as usize * crate::io::datagrams::BATCH;
    let mut seen = Vec::new();
    one_turn(&mut server, Nanos::NEVER, &mut seen);
    assert_eq!(seen.len(), 1 + share, "the peer and its datagrams");
    let rest = turns(&mut server, |seen| seen.len() == 200 - share);
    assert!(rest.iter().all(|seen| matches!(seen, Seen::Received(..))));
}

/// A kernel that takes no datagrams cannot be had on loopback: what it would have left is set.
#[test]
fn room_at_a_server_socket_is_reported_to_its_own_peers_that_wait() {
    let mut server = io();
    let addresses = [0, 1].map(|_| server.listen_datagrams(any()).unwrap());
    let mut clients = io();
    let mut peers = Vec::new();
    for on in [addresses[0], addresses[0], addresses[1]] {
        let token = clients.connect_datagrams(on, None).unwrap();
        turns(&mut clients, |seen| seen.len() == 1);
        send(&mut clients, token, "hello");
        let seen = turns(&mut server, |seen| seen.len() == 2);
        let Seen::Accepted(peer) = seen[0] else { panic!("{seen:?}") };
        peers.push(peer);
    }
    let (first, other) = (Token(0), Token(1));
    for blocked in [first, other, peers[0], peers[2]] {
        server.slots[blocked.0 as usize].state |= BLOCKED;
    }
    let mut writable = |socket: Token, flags: EventFlags| {
        let mut seen = Vec::new();
        let event = Event { flags, data: EventData::new_u64(u64::from(socket.0)) };
        server.handle(event, &mut |_, event| {
            if let IoEvent::Writable(token) = event {
                seen.push(token);
            }
        });
        seen
    };
    assert_eq!(writable(first, EventFlags::IN), []);
    assert_eq!(writable(first, EventFlags::OUT), [peers[0]]);
    assert_eq!(writable(first, EventFlags::OUT), []);
    assert_eq!(writable(other, EventFlags::IN | EventFlags::OUT), [peers[2]]);
}

/// The datagrams of `bytes` with these sizes go to a server and back; all events of both.
fn echoed(sizes: &[usize], sender_cuts: bool, server_cuts: bool) -> (Vec<Seen>, Vec<Seen>) {
    let (mut server, mut client) = (io(), io());
    if server_cuts {
        server.let_kernel_cut();
    }
    if sender_cuts {
        client.let_kernel_cut();
    }
    let on = server.listen_datagrams(any()).unwrap();
    let token = client.connect_datagrams(on, None).unwrap();
    turns(&mut client, |seen| seen.len() == 1);
    let mut out = weigh_model::connection::Outbox::default();
    for (at, size) in sizes.iter().enumerate() {
        out.put(&vec![at as u8; *size]);
        out.frame();
    }
    let length = out.len();
    assert_eq!(client.send(token, out.frames(), 0), Ok(length));
    let there = turns(&mut server, |seen| seen.len() == sizes.len() + 1);
    let Seen::Accepted(peer) = there[0] else { panic!("{there:?}") };
    assert_eq!(server.send(peer, out.frames(), 0), Ok(length));
    let back = turns(&mut client, |seen| seen.len() == sizes.len());
    assert_eq!((client.uncut(), server.uncut()), (0, 0));
    let moved = (length as u64, length as u64);
    assert_eq!([client.bytes(), server.bytes()], [moved; 2]);
    (there, back)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]
    /// Whoever cuts and joins: the same datagrams in the same order.
    #[test]
    fn the_loop_does_not_see_who_cuts_datagrams(
        sizes in proptest::collection::vec(
            proptest::prop_oneof![3 => proptest::strategy::Just(1_200_usize), 1 => 1_usize..1_400],
            1..60,
        ),
    ) {
        let expected = echoed(&sizes, false, false);
        for (sender_cuts, server_cuts) in [(true, true), (true, false), (false, true)] {
            proptest::prop_assert_eq!(&echoed(&sizes, sender_cuts, server_cuts), &expected);
        }
    }
}

/// A socket whose runs are refused is not asked again, and is counted once.
#[test]
fn a_socket_that_may_not_cut_is_counted_once() {
    let (mut server, mut client) = (io(), io());
    let on = server.listen_datagrams(any()).unwrap();
    client.let_kernel_cut();
    let token = client.connect_datagrams(on, None).unwrap();
    turns(&mut client, |seen| seen.len() == 1);
    let socket = client.slots[token.0 as usize].socket.as_ref().unwrap();
    crate::io::segmentation::tests::without_checksums(socket);
    for round in 1..=3 {
        send(&mut client, token, "one,two,six,4");
        let seen = turns(&mut server, |seen| seen.len() >= 4 + usize::from(round == 1));
        let texts = ["one", "two", "six", "4"].map(|text| text.as_bytes().to_vec());
        let got = seen.into_iter().filter_map(|seen| match seen {
            Seen::Received(_, bytes) => Some(bytes),
            _ => None,
        });
        assert_eq!(got.collect::<Vec<_>>(), texts);
        assert_eq!(client.uncut(), 1);
    }
}
