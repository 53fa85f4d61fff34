//! Both ends in memory on virtual time: streams arrive whole and in order whatever happens to
//! datagrams, and refusals have a cause.

mod tail;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{Fault, Outbox};
use weigh_model::streams::{self, Piece};
use weigh_stats::random::Random;

use super::choice::{self, Congestion, Streams, Tuning};
use super::session::{Session, Wrong};
use crate::layer::datagrams::DatagramSession;
use crate::layer::tls::{
    Certificates, ClientChoice, Identity, MadeFor, ServerChoice, Tally, Versions,
};

/// What one end heard of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
struct Heard {
    bytes: Vec<u8>,
    has_ended: bool,
    reset: Option<u64>,
    stopped: Option<u64>,
}

/// Both ends and what is between them.
struct Pair {
    ends: [Session; 2],
    now: Nanos,
    /// From one end to the other.
    delay: Nanos,
    /// Datagrams under way, with the time of their arrival and their receiver.
    under_way: Vec<(Nanos, usize, Vec<u8>)>,
    /// Datagrams sent so far, by either end.
    sent: u64,
    heard: [BTreeMap<u64, Heard>; 2],
    opened: u64,
    faults: [Option<Fault>; 2],
    tally: Arc<Tally>,
    /// Delays datagrams by up to 4 ms more, so that they overtake each other.
    jitter: Option<Random>,
}

struct Made {
    folder: PathBuf,
    made: Certificates,
}

const TUNING: Tuning =
    Tuning { congestion: Congestion::Cubic, datagram_bytes: 1_200, is_cut_by_kernel: false };

impl Made {
    fn new(name: &str) -> Made {
        let folder = std::env::temp_dir().join(format!("weigh-quic-{name}-{}", std::process::id()));
        let made = Certificates::make(&folder).unwrap();
        Made { folder, made }
    }

    fn client(&self) -> ClientChoice {
        ClientChoice {
            versions: Versions::Both,
            authority: Some(self.made.authority()),
            identity: None,
            name: "localhost".to_owned(),
            alpn: vec![b"h3".to_vec()],
            resumes: false,
            verifies: true,
        }
    }

    fn server(&self) -> ServerChoice {
        let (certificate, key) = self.made.of(MadeFor::Server);
        ServerChoice {
            versions: Versions::Both,
            identity: Identity { certificate, key },
            clients: None,
            alpn: vec![b"h3".to_vec()],
            resumes: false,
        }
    }

    fn pair(&self) -> Pair {
        Pair::new(&self.client(), &self.server(), &TUNING)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Pair {
    fn new(client: &ClientChoice, server: &ServerChoice, tuning: &Tuning) -> Pair {
        let tally = Arc::default();
        let now = Nanos::from_secs(1);
        Pair {
            ends: [
                choice::client(client, Streams::Many, tuning, &tally).unwrap()(now),
                choice::server(server, Streams::Many, tuning, &Arc::default()).unwrap()(now),
            ],
            now,
            delay: Nanos::from_millis(1),
            under_way: Vec::new(),
            sent: 0,
            heard: Default::default(),
            opened: 0,
            faults: [None, None],
            tally,
            jitter: None,
        }
    }

    /// Lets both ends act until neither has anything to do before `until`, or one has failed.
    /// `fate` says how often each datagram arrives.
    fn run(&mut self, until: Nanos, fate: &mut dyn FnMut(u64) -> usize) {
        loop {
            let timers = self.ends.iter().filter_map(DatagramSession::next_wake);
            let arrivals = self.under_way.iter().map(|(at, ..)| *at);
            let Some(next) = timers.chain(arrivals).min().filter(|at| *at <= until) else { break };
            self.now = self.now.max(next);
            if let Some(place) = self.under_way.iter().position(|(at, ..)| *at <= self.now) {
                let (_, to, datagram) = self.under_way.remove(place);
                self.call(to, fate, |own, now, plain, wire| own.feed(&datagram, now, plain, wire));
                continue;
            }
            let is_due = |own: &Session| own.next_wake().is_some_and(|at| at <= self.now);
            if let Some(side) = self.ends.iter().position(is_due) {
                self.call(side, fate, |own, now, plain, wire| own.wake(now, plain, wire));
            }
        }
        self.now = self.now.max(until);
    }

    fn run_well(&mut self) {
        self.run(self.now + Nanos::from_secs(5), &mut |_| 1);
        assert_eq!(self.faults, [None, None]);
    }

    fn call(
        &mut self,
        side: usize,
        fate: &mut dyn FnMut(u64) -> usize,
        call: impl FnOnce(&mut Session, Nanos, &mut Outbox, &mut Outbox) -> Result<bool, Wrong>,
    ) {
        let (mut plain, mut wire) = (Outbox::default(), Outbox::default());
        if let Err(wrong) = call(&mut self.ends[side], self.now, &mut plain, &mut wire) {
            let of = if side == 0 { Session::fault_of_client } else { Session::fault_of_server };
            self.faults[side].get_or_insert(of(wrong));
        }
        self.hear(side, plain.bytes());
        self.post(side, &mut wire, fate);
    }

    fn post(&mut self, side: usize, wire: &mut Outbox, fate: &mut dyn FnMut(u64) -> usize) {
        for datagram in wire.frames().after(0) {
            for _ in 0..fate(self.sent) {
                let more = self.jitter.as_mut().map_or(0, |random| random.below(4_000_000));
                let at = self.now + self.delay + Nanos(more);
                self.under_way.push((at, 1 - side, datagram.to_vec()));
            }
            self.sent += 1;
        }
    }

    fn hear(&mut self, side: usize, plain: &[u8]) {
        let mut rest = plain;
        while let Some((piece, bytes)) = streams::next(rest) {
            rest = &rest[bytes..];
            let all = &mut self.heard[side];
            match piece {
                Piece::Bytes { stream, bytes, is_last } => {
                    let heard = all.entry(stream).or_default();
                    assert!(!heard.has_ended, "bytes behind the end");
                    heard.bytes.extend_from_slice(bytes);
                    heard.has_ended = is_last;
                }
                Piece::Reset { stream, code } => {
                    all.entry(stream).or_default().reset = Some(code);
                }
                Piece::Stop { stream, code } => {
                    all.entry(stream).or_default().stopped = Some(code);
                }
                Piece::Opened(streams) => self.opened = streams,
                Piece::Close(_) => panic!("only the protocol inside closes"),
            }
        }
        assert!(rest.is_empty());
    }

    fn say(&mut self, side: usize, put: impl FnOnce(&mut Vec<u8>)) -> Result<(), Wrong> {
        let (mut pieces, now) = (Vec::new(), self.now);
        put(&mut pieces);
        let mut wire = Outbox::default();
        let said = self.ends[side].say(&pieces, now, &mut wire);
        assert!(wire.is_empty(), "what is said leaves when the loop wakes the session");
        said
    }

    fn send(&mut self, side: usize, stream: u64, bytes: &[u8], ends: bool) {
        let put = |out: &mut Vec<u8>| {
            streams::put_bytes(out, stream, ends, |out| out.extend_from_slice(bytes));
        };
        assert!(self.say(side, put).is_ok());
    }

    fn stands(&self) -> bool {
        self.ends.iter().all(Session::stands)
    }

    /// Requests and answers in many streams, and in both directions.
    fn check_streams(&mut self, fate: &mut dyn FnMut(u64) -> usize) {
        for index in 0..20_u64 {
            self.send(0, index * 4, &[index as u8; 3_000], true);
        }
        self.send(0, 2, b"one way", false);
        self.send(1, 3, b"and back", false);
        self.run(self.now + Nanos::from_secs(20), fate);
        for index in 0..20_u64 {
            let heard = &self.heard[1][&(index * 4)];
            assert_eq!((heard.bytes.len(), heard.has_ended), (3_000, true), "{index}");
            assert!(heard.bytes.iter().all(|byte| *byte == index as u8));
            self.send(1, index * 4, b"an answer", true);
        }
        self.run(self.now + Nanos::from_secs(20), fate);
        for index in 0..20_u64 {
            let heard = &self.heard[0][&(index * 4)];
            assert_eq!((&heard.bytes[..], heard.has_ended), (&b"an answer"[..], true));
        }
        assert_eq!(self.heard[1][&2].bytes, b"one way");
        assert_eq!(self.heard[0][&3].bytes, b"and back");
        assert_eq!(self.faults, [None, None]);
    }
}

#[test]
fn streams_arrive_whole_in_both_directions() {
    let made = Made::new("whole");
    for congestion in [Congestion::Cubic, Congestion::Reno, Congestion::Bbr] {
        for datagram_bytes in [1_200, 1_452, 9_000] {
            let tuning = Tuning { congestion, datagram_bytes, ..TUNING };
            let mut pair = Pair::new(&made.client(), &made.server(), &tuning);
            let mut largest = 0;
            pair.run(pair.now + Nanos::from_millis(500), &mut |_| 1);
            assert!(pair.stands() && pair.opened >= 20);
            pair.check_streams(&mut |_| 1);
            pair.send(0, 80, &[1; 60_000], true);
            while pair.ends[0].next_wake().is_some_and(|at| at <= pair.now) {
                pair.call(0, &mut |_| 1, |own, now, plain, wire| {
                    let woken = own.wake(now, plain, wire);
                    largest =
                        wire.frames().after(0).map(<[u8]>::len).max().unwrap_or(0).max(largest);
                    woken
                });
            }
            assert_eq!(largest, usize::from(datagram_bytes), "{tuning:?}");
            let figures = pair.tally.figures();
            assert_eq!((figures.full, figures.resumed), (1, 0));
            assert!(figures.handshake_sent_bytes >= 1_200, "a padded Initial: {figures:?}");
            assert_eq!(figures.negotiated.as_deref(), Some("QUICv1 TLSv1_3 h3"));
        }
    }
}

/// What is said in one turn of the loop leaves together.
#[test]
fn messages_of_one_turn_share_a_datagram() {
    let mut pair = Made::new("together").pair();
    pair.run_well();
    let before = pair.sent;
    for index in 0..10 {
        pair.send(0, index * 4, &[0; 64], true);
    }
    assert_eq!(pair.sent, before);
    pair.call(0, &mut |_| 1, |own, now, plain, wire| own.wake(now, plain, wire));
    assert_eq!(pair.sent, before + 1);
}

/// Any one datagram of the handshake may be lost or doubled.
#[test]
fn the_handshake_survives_a_loss_anywhere() {
    let made = Made::new("loss");
    for copies in [0, 2] {
        for which in 0..8 {
            let mut pair = made.pair();
            let mut fate = |number| if number == which { copies } else { 1 };
            pair.run(pair.now + Nanos::from_secs(20), &mut fate);
            assert!(pair.stands(), "datagram {which} {copies} times: {:?}", pair.faults);
        }
    }
}

/// A tenth is lost, a tenth comes twice, and with `jitter` they overtake each other.
#[test]
fn lost_doubled_and_reordered_datagrams_change_nothing_that_arrives() {
    let made = Made::new("impaired");
    for (seed, jitter) in (0..5).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut random = Random::new(seed);
        let mut fate = |_| match random.below(10) {
            0 => 0,
            1 => 2,
            _ => 1,
        };
        let mut pair = made.pair();
        pair.jitter = jitter.then(|| Random::new(seed + 100));
        pair.run(pair.now + Nanos::from_secs(20), &mut fate);
        pair.check_streams(&mut fate);
    }
}

/// The peer's limit of streams is the client's credit, and grows as streams end.
#[test]
fn more_streams_are_opened_as_they_are_used() {
    let mut pair = Made::new("credit").pair();
    pair.run_well();
    let mut sent = 0;
    for _ in 0..400 {
        while sent < pair.opened {
            pair.send(0, sent * 4, b"a", true);
            sent += 1;
        }
        pair.run(pair.now + Nanos::from_millis(20), &mut |_| 1);
        let unanswered: Vec<u64> = pair.heard[1].keys().copied().collect();
        for stream in unanswered {
            pair.send(1, stream, b"b", true);
        }
        pair.heard[1].clear();
    }
    assert!(sent > 4_000, "{sent}");
    let refused = pair.say(0, |out| {
        streams::put_bytes(out, 1 << 40, true, |_| {});
    });
    assert!(matches!(refused, Err(Wrong::Stream(_))));
}

/// A body that is larger than all windows arrives whole; a server that reads nothing holds it back.
#[test]
fn flow_control_holds_a_sender_back_and_lets_it_continue() {
    let mut pair = Made::new("flow").pair();
    pair.run_well();
    pair.ends[1].hold(true);
    let body: Vec<u8> = (0..12_000_000_u32).map(|at| (at / 7) as u8).collect();
    pair.send(0, 0, &body, true);
    pair.run(pair.now + Nanos::from_secs(5), &mut |_| 1);
    assert!(pair.heard[1].is_empty());
    let waiting = pair.ends[0].waiting_bytes();
    assert!(waiting > 6_000_000, "{waiting}");
    pair.ends[1].hold(false);
    pair.run(pair.now + Nanos::from_secs(20), &mut |_| 1);
    assert_eq!(pair.ends[0].waiting_bytes(), 0);
    assert!(pair.heard[1][&0].has_ended && pair.heard[1][&0].bytes == body);
}

/// What waits is sent in the order in which it came: ten bodies of 1 MB are more than an end keeps
/// unacknowledged.
#[test]
fn the_oldest_stream_does_not_wait_for_newer_ones() {
    let mut pair = Made::new("order").pair();
    pair.run_well();
    let body = vec![7; 1_000_000];
    (0..10).for_each(|at| pair.send(0, at * 4, &body, true));
    let mut ended: Vec<u64> = Vec::new();
    for _ in 0..10_000 {
        pair.run(pair.now + Nanos::from_millis(1), &mut |_| 1);
        let new = pair.heard[1].iter().filter(|(_, heard)| heard.has_ended);
        let new: Vec<u64> = new.map(|(stream, _)| *stream / 4).collect();
        ended.extend(new.iter().filter(|stream| !ended.contains(stream)).collect::<Vec<_>>());
        if ended.len() == 10 {
            break;
        }
    }
    assert_eq!(ended.len(), 10, "{ended:?}");
    // Those within the first window share it; none behind it is ready before them.
    assert!(ended[..4].iter().all(|stream| *stream < 4), "{ended:?}");
}

/// A stream that the peer stops is abandoned, so that its place is free again.
#[test]
fn a_stream_that_is_stopped_takes_no_place_for_ever() {
    let mut pair = Made::new("stop").pair();
    pair.run_well();
    let mut sent = 0;
    for _ in 0..400 {
        while sent < pair.opened {
            pair.send(0, sent * 4, b"begun", false);
            sent += 1;
        }
        pair.run(pair.now + Nanos::from_millis(20), &mut |_| 1);
        for stream in std::mem::take(&mut pair.heard[1]).into_keys() {
            pair.say(1, |out| streams::put_stop(out, stream, 1)).ok().unwrap();
            pair.send(1, stream, b"no", true);
        }
        pair.run(pair.now + Nanos::from_millis(20), &mut |_| 1);
        pair.heard[1].clear();
    }
    assert!(sent > 4_000, "{sent}");
}

#[test]
fn streams_are_abandoned_and_refused_with_their_codes() {
    let mut pair = Made::new("reset").pair();
    pair.run_well();
    pair.send(0, 0, b"begun", false);
    pair.send(0, 4, b"begun", false);
    pair.run_well();
    assert!(pair.say(0, |out| streams::put_reset(out, 0, 0x10c)).is_ok());
    assert!(pair.say(1, |out| streams::put_stop(out, 4, 0x10b)).is_ok());
    pair.run_well();
    assert_eq!(pair.heard[1][&0].reset, Some(0x10c));
    assert_eq!(pair.heard[0][&4].stopped, Some(0x10b));
    // A stream that only the other end may open, or send on.
    assert!(pair.say(0, |out| streams::put_bytes(out, 3, false, |_| {})).is_err());
    assert!(pair.say(1, |out| streams::put_reset(out, 2, 1)).is_err());
    assert!(pair.say(0, |out| streams::put_stop(out, 2, 1)).is_err());
}

#[test]
fn the_code_of_a_close_arrives() {
    let mut pair = Made::new("close").pair();
    pair.run_well();
    pair.send(0, 0, b"last words", true);
    assert!(pair.say(0, |out| streams::put_close(out, 0x100)).is_ok());
    let (mut wire, now) = (Outbox::default(), pair.now);
    pair.ends[0].goodbye(now, &mut wire);
    assert_eq!(pair.ends[0].next_wake(), None);
    pair.post(0, &mut wire, &mut |_| 1);
    pair.run(pair.now + Nanos::from_secs(1), &mut |_| 1);
    assert_eq!(pair.heard[1][&0].bytes, b"last words");
    let closed = pair.ends[1].peer_closed().unwrap();
    assert!(closed.contains("0x100"), "{closed}");
}

#[test]
fn a_silent_peer_is_given_up() {
    let mut pair = Made::new("silent").pair();
    pair.run(pair.now + Nanos::from_secs(120), &mut |_| 0);
    let fault = pair.faults[0].as_ref().unwrap().to_string();
    assert!(fault.contains("did not answer the QUIC handshake"), "{fault}");
    // A peer of the server that begins nothing is forgotten.
    assert!(pair.faults[1].is_some());
    // One that falls silent later is given up too; until then PING keeps the connection.
    let mut pair = Made::new("silent-later").pair();
    pair.run(pair.now + Nanos::from_secs(300), &mut |_| 1);
    assert!(pair.stands() && pair.faults == [None, None]);
    pair.run(pair.now + Nanos::from_secs(120), &mut |_| 0);
    let fault = pair.faults[0].as_ref().unwrap().to_string();
    assert!(fault.contains("idle time"), "{fault}");
}

/// Anyone may send anything to a socket.
#[test]
fn foreign_datagrams_are_ignored() {
    let mut random = Random::new(9);
    let mut pair = Made::new("foreign").pair();
    let mut noise = |pair: &mut Pair| {
        for round in 0..60_u64 {
            let mut bytes: Vec<u8> =
                (0..random.below(1_400)).map(|_| random.below(256) as u8).collect();
            if round % 2 == 0 && bytes.len() > 12 {
                // The head of an Initial of version 1.
                bytes[..6].copy_from_slice(&[0xc0, 0, 0, 0, 1, 8]);
            }
            for side in [0, 1] {
                pair.call(side, &mut |_| 0, |own, now, plain, wire| {
                    own.feed(&bytes, now, plain, wire)
                });
            }
        }
        assert_eq!(pair.faults, [None, None]);
    };
    noise(&mut pair);
    pair.run_well();
    assert!(pair.stands());
    noise(&mut pair);
    pair.check_streams(&mut |_| 1);
}

/// A server that has other versions answers with their list (RFC 9000, section 6).
#[test]
fn a_server_without_version_1_is_named() {
    let mut pair = Made::new("version").pair();
    let mut initial = Vec::new();
    pair.call(0, &mut |_| 0, |own, now, plain, wire| {
        let woken = own.wake(now, plain, wire);
        initial = wire.frames().after(0).next().expect("an Initial").to_vec();
        woken
    });
    // Behind the version: the ID of the server and that of the client, each behind its length.
    let to = usize::from(initial[5]);
    let from = usize::from(initial[6 + to]);
    let (own, other) = (&initial[7 + to..7 + to + from], &initial[6..6 + to]);
    let versions = [0x6b, 0x33, 0x43, 0xcf, 0x1a, 0x2a, 0x3a, 0x4a];
    let head = [0x80, 0, 0, 0, 0, own.len() as u8];
    let answer = [&head[..], own, &[other.len() as u8], other, &versions].concat();
    pair.call(0, &mut |_| 0, |own, now, plain, wire| own.feed(&answer, now, plain, wire));
    let fault = pair.faults[0].as_ref().expect("a fault").to_string();
    assert!(fault.contains("QUIC without version 1"), "{fault}");
}

fn refusal(client: &ClientChoice, server: &ServerChoice) -> String {
    let mut pair = Pair::new(client, server, &TUNING);
    pair.run(pair.now + Nanos::from_secs(5), &mut |_| 1);
    let [client, server] = &pair.faults;
    client.as_ref().or(server.as_ref()).expect("a fault").to_string()
}

#[test]
fn who_is_not_who_he_says_is_refused() {
    let (made, other) = (Made::new("refused"), Made::new("other"));
    let said = refusal(&made.client(), &other.server());
    assert!(said.contains("authority is not known"), "{said}");
    let named = ClientChoice { name: "elsewhere".to_owned(), ..made.client() };
    let said = refusal(&named, &made.server());
    assert!(said.contains("certificate"), "{said}");
    let alpn = ServerChoice { alpn: vec![b"other".to_vec()], ..made.server() };
    let said = refusal(&made.client(), &alpn);
    assert!(said.contains("ALPN"), "{said}");
    let strict = ServerChoice { clients: Some(made.made.authority()), ..made.server() };
    let said = refusal(&made.client(), &strict);
    assert!(said.contains("requires a client certificate"), "{said}");
    // Unchecked, it is accepted, and what was wrong is recorded.
    let blind = ClientChoice { verifies: false, ..made.client() };
    let mut pair = Pair::new(&blind, &other.server(), &TUNING);
    pair.run_well();
    assert!(pair.stands() && pair.tally.figures().unchecked.is_some());
}
