//! Connections and servers in memory: bytes in arbitrary pieces, signals as they come out.
#![allow(dead_code, unreachable_pub, reason = "every test binary uses its own part of it")]

use std::collections::{BTreeMap, BTreeSet};

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Fault, Frames, Op, Outbox, Reply, Signal, Ticket, end_frame,
};
use weigh_model::load::{Load, Pattern, Topology};
use weigh_model::protocol::{Invalid, Protocol, Role, Seat};
use weigh_model::server::{ConnectionId, Outboxes, Record, Server};
use weigh_model::trial::{Settings, Trial};

/// A signal that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    Ready,
    Done(u32),
    Refused(u32, u16),
    Unprocessed(u32),
    NoSubscriber(u32),
    Message(Vec<u8>, Vec<u8>),
    Answered(Result<(), u16>),
    Granted(&'static str, u64),
    Alive,
    Regrouped(Nanos),
    Closing,
}

impl From<Signal<'_>> for Heard {
    fn from(signal: Signal<'_>) -> Heard {
        match signal {
            Signal::Ready => Heard::Ready,
            Signal::Done(ticket) => Heard::Done(ticket.0),
            Signal::Refused(ticket, status) => Heard::Refused(ticket.0, status),
            Signal::Unprocessed(ticket) => Heard::Unprocessed(ticket.0),
            Signal::NoSubscriber(ticket) => Heard::NoSubscriber(ticket.0),
            Signal::Message { topic, body } => Heard::Message(topic.to_vec(), body.to_vec()),
            Signal::Answered(result) => Heard::Answered(result),
            Signal::Granted(what, value) => Heard::Granted(what, value),
            Signal::Alive => Heard::Alive,
            Signal::KeptAlive => unreachable!("only layers report it"),
            Signal::Regrouped(pause) => Heard::Regrouped(pause),
            Signal::Head { .. } | Signal::Piece(_) => unreachable!("no transfer is tested here"),
            Signal::Closing => Heard::Closing,
        }
    }
}

/// A trial of `protocol` with these settings.
pub fn trial(
    protocol: &dyn Protocol,
    pattern: Pattern,
    topology: Topology,
    url: &str,
    given: &[(&str, &str)],
) -> Result<Trial, Invalid> {
    Ok(Trial {
        id: String::new(),
        point: BTreeMap::new(),
        repetition: 0,
        seed: 1,
        protocol: protocol.name().to_owned(),
        target: "reference".to_owned(),
        endpoint: Some(weigh_protocols::urls::endpoint(url).expect("a URL")),
        load: Load { topology, messages: Some(1), ..Load::closed(pattern, 1) },
        settings: Settings::new(protocol.name(), protocol.settings(), given.iter().copied())?,
    })
}

/// A client's end and everything that came out of it.
pub struct Client {
    pub connection: Box<dyn Connection>,
    pub out: Outbox,
    pub heard: Vec<Heard>,
    /// The time that it is given.
    pub now: Nanos,
    carry: Vec<u8>,
    /// Bytes taken out of `out`, and bytes fed; `None` after a fault.
    moved: (usize, Option<usize>),
}

/// Whatever a test does with a client: its codec has counted every byte.
impl Drop for Client {
    fn drop(&mut self) {
        let counts = self.connection.metered().unwrap().counts();
        let Some(counts) = counts.filter(|_| !std::thread::panicking()) else { return };
        let (sent, fed) = (self.moved.0 + self.out.len(), self.moved.1);
        assert_eq!(counts.sent.total(), sent as u64, "written");
        if let Some(fed) = fed {
            assert_eq!(counts.received.total(), (fed - self.carry.len()) as u64, "read");
        }
    }
}

impl Client {
    pub fn new(mut connection: Box<dyn Connection>) -> Client {
        connection.metered().unwrap().meter();
        let (out, heard, carry) = (Outbox::default(), Vec::new(), Vec::new());
        let now = Nanos(0);
        let mut client = Client { connection, out, heard, now, carry, moved: (0, Some(0)) };
        let heard = &mut client.heard;
        client.connection.open(Nanos(0), &mut client.out, &mut |signal| heard.push(signal.into()));
        client
    }

    /// A client of the pattern `request`.
    pub fn of(protocol: &dyn Protocol, url: &str, given: &[(&str, &str)]) -> Client {
        let trial = trial(protocol, Pattern::Request, Topology::FanIn, url, given).unwrap();
        let dial = protocol.dial(&trial).unwrap();
        Client::new((dial.make)(Seat { index: 0, role: Role::Producer }))
    }

    pub fn send(&mut self, ticket: u32, body: &[u8]) -> Reply {
        assert!(self.connection.room() > 0);
        let op = Op { ticket: Ticket(ticket), body };
        self.connection.send(&op, self.now, &mut self.out)
    }

    /// Lets time pass until `now`, with every wake-up on the way at its own time.
    pub fn pass(&mut self, now: Nanos) -> Result<(), Fault> {
        while let Some(at) = self.connection.next_wake().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            self.wake(self.now)?;
        }
        self.now = now;
        Ok(())
    }

    /// Datagrams sent since the last call.
    pub fn datagrams(&mut self) -> Vec<Vec<u8>> {
        let datagrams = self.out.frames().after(0).map(<[u8]>::to_vec).collect();
        self.sent();
        datagrams
    }

    /// Wakes the connection if its time has come by `now`.
    pub fn wake(&mut self, now: Nanos) -> Result<(), Fault> {
        if self.connection.next_wake().is_none_or(|at| at > now) {
            return Ok(());
        }
        let heard = &mut self.heard;
        self.connection.wake(now, &mut self.out, &mut |signal| heard.push(signal.into()))
    }

    /// Bytes sent since the last call.
    pub fn sent(&mut self) -> Vec<u8> {
        let bytes = self.out.bytes().to_vec();
        self.moved.0 += bytes.len();
        self.out.clear();
        bytes
    }

    /// Feeds one piece as the engine does: with what the connection left over before it.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), Fault> {
        self.carry.extend_from_slice(piece);
        let fed = self.moved.1.take();
        let heard = &mut self.heard;
        let mut emit = |signal: Signal<'_>| heard.push(signal.into());
        let taken = self.connection.receive(&self.carry, self.now, &mut self.out, &mut emit)?;
        assert!(taken <= self.carry.len());
        self.carry.drain(..taken);
        self.moved.1 = fed.map(|fed| fed + piece.len());
        Ok(())
    }

    pub fn end(&mut self) -> Result<(), Fault> {
        let heard = &mut self.heard;
        self.connection.end(&self.carry, &mut |signal| heard.push(signal.into()))
    }

    /// Feeds `input` in pieces that end at `cuts`.
    pub fn feed_cut(&mut self, input: &[u8], cuts: &[usize]) -> Result<(), Fault> {
        pieces(input, cuts).try_for_each(|piece| self.feed(piece))
    }
}

/// What a server staged, per connection.
#[derive(Default)]
pub struct Desk {
    pub staged: BTreeMap<u32, Vec<u8>>,
    pub closed: Vec<u32>,
    /// Connections that are not read.
    pub held: BTreeSet<u32>,
    pub notified: Vec<u16>,
    /// Bodies of the records that the server stored, pieces included.
    pub stored: Vec<Vec<u8>>,
    /// True if nothing is stored, as in a server without a store.
    pub is_forgetful: bool,
    /// Ends of datagrams in what is staged.
    pub ends: BTreeMap<u32, Vec<u32>>,
}

impl Outboxes for Desk {
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8> {
        self.staged.entry(to.0).or_default()
    }

    fn frame(&mut self, to: ConnectionId) {
        let staged = self.staged.entry(to.0).or_default();
        end_frame(staged, self.ends.entry(to.0).or_default());
    }

    fn pending_bytes(&self, of: ConnectionId) -> usize {
        self.staged.get(&of.0).map_or(0, Vec::len)
    }

    fn notify_drained(&mut self, _of: ConnectionId) {}

    fn hold(&mut self, which: ConnectionId) {
        self.held.insert(which.0);
    }

    fn release(&mut self, which: ConnectionId) {
        self.held.remove(&which.0);
    }

    fn close(&mut self, which: ConnectionId) {
        self.closed.push(which.0);
    }

    fn abort(&mut self, which: ConnectionId) {
        self.closed.push(which.0);
    }

    fn notify_shard(&mut self, shard: u16) {
        self.notified.push(shard);
    }

    fn store(&mut self, record: Record<'_>) {
        if let Record::Message { body, .. } | Record::Piece { body, .. } = record {
            self.stored.push(body.to_vec());
        }
    }

    fn stores(&self) -> bool {
        !self.is_forgetful
    }
}

/// A server's shard, its connections and what it staged.
pub struct Shard {
    pub server: Box<dyn Server>,
    pub desk: Desk,
    /// The time that it is given.
    pub now: Nanos,
    carry: BTreeMap<u32, Vec<u8>>,
}

impl Shard {
    pub fn new(server: Box<dyn Server>) -> Shard {
        Shard { server, desk: Desk::default(), now: Nanos(0), carry: BTreeMap::new() }
    }

    /// The only shard of the reference server with these settings.
    pub fn of(protocol: &dyn Protocol, given: &[(&str, &str)]) -> Shard {
        let given = given.iter().copied();
        let settings = Settings::new(protocol.name(), protocol.settings(), given).unwrap();
        Shard::new((protocol.host(&settings).unwrap().make)(0))
    }

    pub fn accept(&mut self, connection: u32) {
        self.carry.insert(connection, Vec::new());
        self.server.accepted(ConnectionId(connection), Nanos(0), &mut self.desk);
    }

    pub fn close(&mut self, connection: u32) {
        self.carry.remove(&connection);
        self.server.closed(ConnectionId(connection), Nanos(0), &mut self.desk);
    }

    /// Feeds one piece as the engine does; nothing more is read after a close.
    pub fn feed(&mut self, connection: u32, piece: &[u8]) -> Result<(), Fault> {
        if self.desk.closed.contains(&connection) {
            return Ok(());
        }
        let carry = self.carry.get_mut(&connection).expect("an open connection");
        carry.extend_from_slice(piece);
        let id = ConnectionId(connection);
        let taken = self.server.receive(id, carry, self.now, &mut self.desk)?;
        assert!(taken <= carry.len());
        carry.drain(..taken);
        Ok(())
    }

    pub fn feed_cut(&mut self, connection: u32, input: &[u8], cuts: &[usize]) -> Result<(), Fault> {
        pieces(input, cuts).try_for_each(|piece| self.feed(connection, piece))
    }

    /// Datagrams staged for a connection since the last call.
    pub fn datagrams(&mut self, connection: u32) -> Vec<Vec<u8>> {
        let ends = self.desk.ends.remove(&connection).unwrap_or_default();
        let bytes = self.staged(connection);
        Frames { bytes: &bytes, ends: &ends }.after(0).map(<[u8]>::to_vec).collect()
    }

    /// Lets time pass until `now`, with every wake-up on the way at its own time.
    pub fn pass(&mut self, now: Nanos) {
        while let Some(at) = self.server.next_wake().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            self.server.wake(self.now, &mut self.desk);
        }
        self.now = now;
    }

    /// Bytes staged for a connection since the last call.
    pub fn staged(&mut self, connection: u32) -> Vec<u8> {
        self.desk.staged.remove(&connection).unwrap_or_default()
    }

    /// The answer of a fresh connection to `input`.
    pub fn answer(&mut self, input: &[u8]) -> Vec<u8> {
        self.desk.closed.clear();
        self.accept(0);
        self.feed(0, input).unwrap();
        let answer = self.staged(0);
        self.close(0);
        answer
    }
}

/// `input` in pieces that end at `cuts`, in any order and with repetitions.
pub fn pieces<'a>(input: &'a [u8], cuts: &[usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    ends.push(input.len());
    ends.sort_unstable();
    let mut from = 0;
    ends.into_iter().map(move |end| {
        let piece = &input[from..end];
        from = end;
        piece
    })
}

/// Carries bytes both ways, cut at `cuts`, until neither end has more to say.
pub fn exchange(client: &mut Client, shard: &mut Shard, connection: u32, cuts: &[usize]) {
    loop {
        let there = client.sent();
        shard.feed_cut(connection, &there, cuts).unwrap();
        let back = shard.staged(connection);
        client.feed_cut(&back, cuts).unwrap();
        if there.is_empty() && back.is_empty() {
            return;
        }
    }
}

/// Kinds of faults, for comparisons in which the words may differ.
pub fn kind(result: &Result<(), Fault>) -> &'static str {
    match result {
        Ok(()) => "ok",
        Err(Fault::Refused { .. }) => "refused",
        Err(Fault::OtherProtocol(_)) => "other protocol",
        Err(Fault::Malformed(_)) => "malformed",
        Err(Fault::Ended(_)) => "ended",
        Err(Fault::Untrusted(_)) => "untrusted",
    }
}
