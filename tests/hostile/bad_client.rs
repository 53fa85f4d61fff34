//! Bad clients: each is an honest client whose bytes are tampered with. They run over any `Io`, so
//! the same kinds are tried on virtual time and on sockets.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weigh_engine::io::sim::{Party, SimIo};
use weigh_engine::io::{Close, Io, IoEvent, Token};
use weigh_model::Nanos;
use weigh_model::connection::{Connection, Frames, Op, Outbox, Signal, Ticket};
use weigh_model::protocol::{Dial, Role, Seat, Transport};

use crate::kind::End;
use crate::speaker::Rehearsal;
use crate::tamper::{Flood, Passed, Tamper};

/// Clients of one party.
pub struct BadClients {
    to: SocketAddr,
    transport: Transport,
    talks: Vec<Talk>,
    has_begun: bool,
}

/// One connection.
struct Talk {
    token: Option<Token>,
    connection: Box<dyn Connection>,
    tamper: Tamper,
    carry: Vec<u8>,
    out: Outbox,
    /// Bytes to be sent; over datagrams, a datagram each.
    pending: VecDeque<Vec<u8>>,
    flood: Option<Flood>,
    end: Option<End>,
    is_ready: bool,
    is_blocked: bool,
    drips: bool,
    next_drip: Nanos,
    messages_sent: u32,
    /// Bytes that honest sides have said: when the session stood, and so far.
    said: (u64, u64),
    heard: (u64, u64),
}

impl BadClients {
    /// One client for each tamper, made by `dial`, in the role that its number says.
    pub fn new(dial: &Dial, to: SocketAddr, tampers: Vec<(Role, Tamper)>) -> BadClients {
        let talk = |(index, (role, tamper)): (usize, (Role, Tamper))| {
            Talk::new((dial.make)(Seat { index: index as u32, role }), tamper)
        };
        let talks = tampers.into_iter().enumerate().map(talk).collect();
        BadClients { to, transport: dial.transport, talks, has_begun: false }
    }

    /// What an honest client and its server said: only without a tamper.
    pub fn rehearsal(&self) -> Rehearsal {
        let Talk { said, heard, is_ready, .. } = &self.talks[0];
        assert!(is_ready, "the session never stood");
        Rehearsal { client: *said, server: *heard }
    }

    /// True if nothing waits to be sent, but for those that send slowly.
    pub fn are_quiet(&self) -> bool {
        let is_quiet = |talk: &Talk| {
            let waits = talk.pending.is_empty() && talk.flood.is_none();
            talk.token.is_none() || talk.drips || talk.is_blocked || waits
        };
        self.has_begun && self.talks.iter().all(is_quiet)
    }

    /// One turn, until something happens or `until` has come.
    pub fn step(&mut self, io: &mut dyn Io, until: Nanos) {
        if !self.has_begun {
            self.has_begun = true;
            for talk in &mut self.talks {
                let connected = match self.transport {
                    Transport::Stream => io.connect(self.to, None),
                    Transport::Datagram | Transport::DatagramRuns | Transport::Streams => {
                        io.connect_datagrams(self.to, None)
                    }
                };
                talk.token = Some(connected.unwrap());
            }
        }
        let drips = self.talks.iter().filter(|talk| talk.is_dripping());
        let next = drips.map(|talk| talk.next_drip).min().unwrap_or(Nanos::NEVER);
        let (talks, transport) = (&mut self.talks, self.transport);
        let mut over = Vec::new();
        io.turn(until.min(next), &mut |now, event| {
            let token = match event {
                IoEvent::Connected(token)
                | IoEvent::Received(token, _)
                | IoEvent::Writable(token)
                | IoEvent::Ended(token)
                | IoEvent::Failed(token, _) => token,
                IoEvent::Accepted { .. } | IoEvent::Woken => return,
            };
            let Some(talk) = talks.iter_mut().find(|talk| talk.token == Some(token)) else {
                return;
            };
            match event {
                IoEvent::Connected(_) => talk.connected(now, transport),
                IoEvent::Received(_, bytes) => talk.received(bytes, now, transport),
                IoEvent::Writable(_) => talk.is_blocked = false,
                // The server has given it up.
                _ => over.extend(talk.token.take()),
            }
        });
        over.into_iter().for_each(|token| io.close(token, Close::Abort));
        let now = io.now();
        for talk in &mut self.talks {
            talk.speak(now, transport);
            talk.wake(now, transport);
            talk.flush(io, now, transport);
        }
    }
}

impl Talk {
    fn new(connection: Box<dyn Connection>, tamper: Tamper) -> Talk {
        Talk {
            token: None,
            connection,
            tamper,
            carry: Vec::new(),
            out: Outbox::default(),
            pending: VecDeque::new(),
            flood: None,
            end: None,
            is_ready: false,
            is_blocked: false,
            drips: false,
            next_drip: Nanos(0),
            messages_sent: 0,
            said: (0, 0),
            heard: (0, 0),
        }
    }

    fn is_dripping(&self) -> bool {
        let has_more = !self.pending.is_empty() || self.flood.is_some();
        self.drips && has_more && !self.is_blocked && self.token.is_some()
    }

    fn connected(&mut self, now: Nanos, transport: Transport) {
        let passed = self.tamper.begin();
        self.put(passed);
        let mut is_ready = false;
        self.connection.open(now, &mut self.out, &mut |signal| {
            is_ready |= matches!(signal, Signal::Ready);
        });
        self.pass(transport);
        self.note_ready(is_ready);
    }

    fn note_ready(&mut self, is_ready: bool) {
        if is_ready && !self.is_ready {
            self.is_ready = true;
            (self.said.0, self.heard.0) = (self.said.1, self.heard.1);
            self.tamper.greeted();
        }
    }

    fn received(&mut self, bytes: &[u8], now: Nanos, transport: Transport) {
        self.heard.1 += bytes.len() as u64;
        self.carry.extend_from_slice(bytes);
        let mut is_ready = false;
        let taken = self.connection.receive(&self.carry, now, &mut self.out, &mut |signal| {
            is_ready |= matches!(signal, Signal::Ready);
        });
        match (taken, transport) {
            (Ok(taken), Transport::Stream) => {
                drop(self.carry.drain(..taken.min(self.carry.len())));
            }
            // The honest half has understood that something is wrong: it says nothing more.
            (Err(_), _)
            | (Ok(_), Transport::Datagram | Transport::DatagramRuns | Transport::Streams) => {
                self.carry.clear();
            }
        }
        self.pass(transport);
        self.note_ready(is_ready);
    }

    /// Sends messages as long as the protocol lets it.
    fn speak(&mut self, now: Nanos, transport: Transport) {
        let has_room = |own: &Talk| own.is_ready && own.connection.room() > 0;
        while has_room(&*self) && self.messages_sent < MESSAGES && !self.tamper.is_muted() {
            let ticket = Ticket(self.messages_sent);
            self.messages_sent += 1;
            let op = Op { ticket, body: &[b'h'; 64] };
            self.connection.send(&op, now, &mut self.out);
            self.pass(transport);
        }
    }

    /// Lets a layer speak that says what it has at the end of a turn.
    fn wake(&mut self, now: Nanos, transport: Transport) {
        if self.token.is_none() || self.connection.next_wake() != Some(Nanos(0)) {
            return;
        }
        let mut is_ready = false;
        // What is wrong is for the honest half alone.
        let _ = self.connection.wake(now, &mut self.out, &mut |signal| {
            is_ready |= matches!(signal, Signal::Ready);
        });
        self.pass(transport);
        self.note_ready(is_ready);
    }

    /// Moves what the honest half has said through the tamper.
    fn pass(&mut self, transport: Transport) {
        let mut out = std::mem::take(&mut self.out);
        self.said.1 += out.len() as u64;
        let pieces: Vec<Vec<u8>> = match transport {
            Transport::Stream => vec![out.bytes().to_vec()],
            Transport::Datagram | Transport::DatagramRuns | Transport::Streams => {
                out.frames().after(0).map(<[u8]>::to_vec).collect()
            }
        };
        for piece in pieces {
            let passed = self.tamper.pass(&piece);
            self.put(passed);
        }
        out.clear();
        self.out = out;
    }

    fn put(&mut self, passed: Passed) {
        if !passed.bytes.is_empty() {
            self.pending.push_back(passed.bytes);
        }
        self.flood = passed.flood.or(self.flood);
        self.end = passed.end.or(self.end);
        self.drips |= passed.drips;
    }

    fn flush(&mut self, io: &mut dyn Io, now: Nanos, transport: Transport) {
        let Some(token) = self.token else { return };
        for _ in 0..PIECES_PER_TURN {
            if self.is_blocked || (self.drips && now < self.next_drip) {
                return;
            }
            if self.pending.is_empty() {
                let more = self.flood.as_mut().and_then(|flood| flood.next(transport));
                self.pending.extend(more);
            }
            let Some(front) = self.pending.front_mut() else { break };
            let sent = match transport {
                Transport::Stream => {
                    let length = if self.drips { 1 } else { front.len() };
                    io.write(token, &front[..length]).map(|taken| (taken, taken < length))
                }
                Transport::Datagram | Transport::DatagramRuns | Transport::Streams => {
                    let ends = [front.len() as u32];
                    let frames = Frames { bytes: front, ends: &ends };
                    io.send(token, frames, 0).map(|taken| (taken, taken < front.len()))
                }
            };
            // The connection is broken; its end is reported.
            let Ok((taken, is_short)) = sent else { return self.forget() };
            front.drain(..taken);
            if front.is_empty() {
                self.pending.pop_front();
            }
            self.is_blocked = is_short;
            self.next_drip = now + DRIP;
        }
        let has_more = !self.pending.is_empty() || self.flood.is_some_and(|flood| flood.left > 0);
        if has_more {
            return;
        }
        self.flood = None;
        match self.end.take() {
            Some(End::Finish) => io.shutdown(token),
            Some(End::Deaf) => io.hold(token),
            Some(End::Reset) => {
                io.close(token, Close::Abort);
                self.token = None;
            }
            Some(End::Stay) | None => {}
        }
    }

    fn forget(&mut self) {
        self.pending.clear();
        self.flood = None;
    }
}

/// Bad clients as a party of the simulated world. It does not keep the world going.
pub struct BadParty {
    pub clients: BadClients,
    pub io: SimIo,
}

impl Party for BadParty {
    fn step(&mut self) -> bool {
        self.clients.step(&mut self.io, Nanos::NEVER);
        true
    }

    fn serves(&self) -> bool {
        true
    }
}

/// Messages that each sends, if it comes to that.
const MESSAGES: u32 = 8;

/// Time between the bytes of one that is slow.
const DRIP: Nanos = Nanos::from_millis(50);

const PIECES_PER_TURN: u32 = 64;
