//! The parties of the world and its clock; what travels between them is in [`super::network`].

use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weigh_model::Nanos;
use weigh_stats::random::Random;

use super::ends::{End, EndId, LinkState, Listener, Travel};
use super::flows::{FlowId, FlowNews, Flows};
use super::{Cut, Link, Pause};
use crate::io::{Close, IoEvent, IoFault, Token};

pub(super) struct State {
    pub(super) now: Nanos,
    pub(super) random: Random,
    pub(super) parties: Vec<PartyState>,
    pub(super) ends: Vec<End>,
    pub(super) links: Vec<LinkState>,
    pub(super) link_of: BTreeMap<SocketAddr, usize>,
    pub(super) listeners: BTreeMap<SocketAddr, Listener>,
    pub(super) travels: BinaryHeap<Travel>,
    pub(super) order: u64,
    pub(super) flows: Flows,
    pub(super) refusals: Vec<(SocketAddr, Nanos, Nanos)>,
    pub(super) cuts: Vec<Cut>,
    pub(super) log: u64,
    pub(super) events: u64,
}

/// One party as the world sees it.
pub(super) struct PartyState {
    pub(super) over: bool,
    pub(super) pauses: Vec<Pause>,
    /// Time at which it is stepped even if nothing arrived.
    pub(super) wake: Nanos,
    is_woken: Arc<AtomicBool>,
    pub(super) inbox: VecDeque<Notice>,
    /// Payload each token is.
    pub(super) tokens: Vec<Option<Socket>>,
    pub(super) free: Vec<u32>,
    pub(super) bytes: (u64, u64),
}

/// Use of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Socket {
    Connection(EndId),
    Listener(SocketAddr),
    /// One end of a flow of datagrams.
    Flow(FlowId),
    /// A server's socket for datagrams.
    Datagrams(SocketAddr),
}

/// Notice that a party gets in its next turn.
#[derive(Clone, Copy)]
pub(super) enum Notice {
    Connected(EndId),
    Accepted(EndId),
    Writable(EndId),
    /// Look what there is to read, and whether it has ended.
    Readable(EndId),
    /// Something about a flow of datagrams.
    Flow(FlowId, FlowNews),
}

/// A event that owns its bytes.
pub(super) enum Report {
    Plain(IoEvent<'static>),
    Received(Token, Vec<u8>),
}

impl Report {
    pub(super) fn event(&self) -> IoEvent<'_> {
        match self {
            Report::Plain(event) => *event,
            Report::Received(token, bytes) => IoEvent::Received(*token, bytes),
        }
    }
}

impl PartyState {
    fn resumes(&self, at: Nanos) -> Option<Nanos> {
        self.pauses.iter().find_map(|pause| pause.resumes(at))
    }

    fn has_news(&self) -> bool {
        !self.inbox.is_empty() || self.is_woken.load(Ordering::Acquire)
    }

    pub(super) fn new_token(&mut self, socket: Socket) -> Token {
        match self.free.pop() {
            Some(index) => {
                self.tokens[index as usize] = Some(socket);
                Token(index)
            }
            None => {
                self.tokens.push(Some(socket));
                Token(self.tokens.len() as u32 - 1)
            }
        }
    }

    pub(super) fn flow(&self, token: Token) -> Option<FlowId> {
        match self.tokens.get(token.0 as usize) {
            Some(Some(Socket::Flow(flow))) => Some(*flow),
            _ => None,
        }
    }

    pub(super) fn connection(&self, token: Token) -> Option<EndId> {
        match self.tokens.get(token.0 as usize) {
            Some(Some(Socket::Connection(end))) => Some(*end),
            _ => None,
        }
    }
}

impl State {
    pub(super) fn new(seed: u64) -> State {
        State {
            now: Nanos(0),
            random: Random::new(seed),
            parties: Vec::new(),
            ends: Vec::new(),
            links: vec![LinkState::new(Link::default())],
            link_of: BTreeMap::new(),
            listeners: BTreeMap::new(),
            travels: BinaryHeap::new(),
            order: 0,
            flows: Flows::default(),
            refusals: Vec::new(),
            cuts: Vec::new(),
            log: FNV_OFFSET,
            events: 0,
        }
    }

    pub(super) fn add_party(&mut self, is_woken: Arc<AtomicBool>) -> usize {
        self.parties.push(PartyState {
            over: false,
            pauses: Vec::new(),
            wake: Nanos(0),
            is_woken,
            inbox: VecDeque::new(),
            tokens: Vec::new(),
            free: Vec::new(),
            bytes: (0, 0),
        });
        self.parties.len() - 1
    }

    /// Returns true if a party has something to do now.
    pub(super) fn is_ready(&self, number: usize) -> bool {
        let party = &self.parties[number];
        !party.over
            && (party.wake <= self.now || party.has_news())
            && party.resumes(self.now).is_none()
    }

    /// Returns the time of the next thing to do, if there is one.
    pub(super) fn next_moment(&self) -> Option<Nanos> {
        let wakes = self.parties.iter().filter(|party| !party.over).map(|party| {
            let due = if party.has_news() { self.now } else { party.wake.max(self.now) };
            party.resumes(due).unwrap_or(due)
        });
        let travel = self.travels.peek().map(|travel| travel.at);
        wakes.chain(travel).min().filter(|moment| *moment < Nanos::NEVER)
    }

    /// Moves the clock and lets arrive what arrives then.
    pub(super) fn advance(&mut self, moment: Nanos) {
        self.now = self.now.max(moment);
        while self.travels.peek().is_some_and(|travel| travel.at <= self.now) {
            if let Some(travel) = self.travels.pop() {
                self.arrive(travel.payload);
            }
        }
    }

    /// Returns the notices of a party. If there are none, it sleeps until `until`; else it is
    /// stepped again at once, since a notice may change its plans.
    pub(super) fn turn(
        &mut self,
        number: usize,
        until: Nanos,
        is_woken: bool,
    ) -> (Nanos, Vec<Report>) {
        let mut reports = Vec::new();
        if is_woken {
            reports.push(Report::Plain(IoEvent::Woken));
        }
        for notice in std::mem::take(&mut self.parties[number].inbox) {
            self.tell(number, notice, &mut reports);
        }
        self.parties[number].wake = if reports.is_empty() { until } else { self.now };
        for report in &reports {
            self.note(number, &report.event());
        }
        (self.now, reports)
    }

    /// The party has left: its sockets close as those of a process that exits.
    pub(super) fn end_party(&mut self, number: usize) {
        self.parties[number].over = true;
        for index in 0..self.parties[number].tokens.len() {
            self.close(number, Token(index as u32), Close::Graceful);
        }
        self.parties[number].inbox.clear();
    }

    fn tell(&mut self, number: usize, notice: Notice, reports: &mut Vec<Report>) {
        let id = match notice {
            Notice::Connected(id)
            | Notice::Accepted(id)
            | Notice::Writable(id)
            | Notice::Readable(id) => id,
            Notice::Flow(id, news) => return self.tell_of_flow(id, news, reports),
        };
        if self.ends[id].closed {
            return;
        }
        let token = self.ends[id].token;
        match notice {
            Notice::Connected(_) => reports.push(Report::Plain(IoEvent::Connected(token))),
            Notice::Writable(_) => reports.push(Report::Plain(IoEvent::Writable(token))),
            Notice::Accepted(id) => {
                let token = self.take_accepted(number, id);
                reports.push(Report::Plain(IoEvent::Accepted { connection: token }));
            }
            Notice::Readable(id) => self.read(number, id, reports),
            Notice::Flow(..) => {}
        }
    }

    /// Reads what is there, whole or in random pieces, and the end of it.
    fn read(&mut self, number: usize, id: EndId, reports: &mut Vec<Report>) {
        self.ends[id].readable_noted = false;
        if self.ends[id].held {
            return;
        }
        let (token, in_pieces) =
            (self.ends[id].token, self.links[self.ends[id].link].link.in_pieces);
        let mut read = 0;
        while !self.ends[id].received.is_empty() {
            let mut length = self.ends[id].received.len().min(READ_BYTES);
            if in_pieces {
                if read > 0 && self.random.below(2) == 0 {
                    break;
                }
                length = 1 + self.random.below(length as u64) as usize;
            }
            read += length;
            reports.push(Report::Received(token, self.ends[id].received.drain(..length).collect()));
        }
        self.parties[number].bytes.1 += read as u64;
        self.acknowledge(id, read);
        if !self.ends[id].received.is_empty() {
            return self.note_readable(id);
        }
        let end = &mut self.ends[id];
        if let Some(fault) = end.failure
            && !end.failure_told
        {
            end.failure_told = true;
            reports.push(Report::Plain(IoEvent::Failed(token, fault)));
        } else if end.finished && !end.finish_told && end.failure.is_none() {
            end.finish_told = true;
            reports.push(Report::Plain(IoEvent::Ended(token)));
        }
    }

    /// Adds a event to the check value of the log.
    fn note(&mut self, number: usize, event: &IoEvent<'_>) {
        let (kind, token, bytes): (u8, u32, &[u8]) = match event {
            IoEvent::Connected(token) => (0, token.0, &[]),
            IoEvent::Accepted { connection } => (1, connection.0, &[]),
            IoEvent::Received(token, bytes) => (2, token.0, bytes),
            IoEvent::Writable(token) => (3, token.0, &[]),
            IoEvent::Ended(token) => (4, token.0, &[]),
            IoEvent::Failed(token, IoFault::Refused) => (5, token.0, &[]),
            IoEvent::Failed(token, _) => (6, token.0, &[]),
            IoEvent::Woken => (7, 0, &[]),
        };
        self.events += 1;
        let mut add = |bytes: &[u8]| {
            for byte in bytes {
                self.log = (self.log ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
            }
        };
        add(&self.now.0.to_le_bytes());
        add(&(number as u64).to_le_bytes());
        add(&[kind]);
        add(&token.to_le_bytes());
        add(&(bytes.len() as u64).to_le_bytes());
        add(bytes);
    }
}

/// Payload one read takes at most, as on real sockets.
const READ_BYTES: usize = 64 * 1024;

/// FNV-1a with 64 bits (Fowler, Noll and Vo; RFC 9923).
const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;
