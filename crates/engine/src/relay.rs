//! A relay: accepts connections, makes one to the target for each, and copies bytes in both
//! directions. It is the control experiment for a broker or proxy, which adds a second hop: a relay
//! costs only the hop itself.
//!
//! It knows no protocol and keeps nothing: an end that is behind makes the other one wait.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use weigh_model::Nanos;

use crate::io::epoll::EpollIo;
use crate::io::sim::{Party, SimIo};
use crate::io::{Close, Io, IoEvent, IoFault, Token, Waker};

/// Counts of a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayCounts {
    /// Connections taken.
    pub connections: u64,
    /// Of these, those that could not be made to the target or broke.
    pub broken: u64,
    /// Bytes carried to the target.
    pub up_bytes: u64,
    /// Bytes carried from the target.
    pub down_bytes: u64,
    /// The most bytes that waited for one end.
    pub waiting_bytes_max: u64,
}

impl RelayCounts {
    /// Returns the counts after `before`; the maximum that waited is that of the whole time.
    pub fn since(&self, before: &RelayCounts) -> RelayCounts {
        RelayCounts {
            connections: self.connections.saturating_sub(before.connections),
            broken: self.broken.saturating_sub(before.broken),
            up_bytes: self.up_bytes.saturating_sub(before.up_bytes),
            down_bytes: self.down_bytes.saturating_sub(before.down_bytes),
            waiting_bytes_max: self.waiting_bytes_max,
        }
    }
}

/// A relay on any [`Io`]; it must always be stepped with the same one. The owner of both makes the
/// listening socket.
pub struct Relay {
    to: SocketAddr,
    ends: Vec<Option<End>>,
    accepted: Vec<Token>,
    dirty: Vec<Token>,
    counts: RelayCounts,
}

/// One of the two connections of a pair.
struct End {
    /// The other one.
    pub(crate) peer: Token,
    /// True for the one that was made to the target.
    is_target: bool,
    /// Bytes for this end, and how many of them its socket took.
    out: Vec<u8>,
    sent: usize,
    /// False until the connection stands.
    stands: bool,
    is_blocked: bool,
    /// Nothing more comes from this end.
    has_ended: bool,
    /// True if this end was sent the end of the stream.
    is_shut: bool,
    /// Nothing is read from this end until the other one took what it has.
    is_held: bool,
    has_failed: bool,
    is_dirty: bool,
}

impl End {
    fn new(peer: Token, is_target: bool) -> End {
        End {
            peer,
            is_target,
            out: Vec::new(),
            sent: 0,
            stands: !is_target,
            is_blocked: false,
            has_ended: false,
            is_shut: false,
            is_held: false,
            has_failed: false,
            is_dirty: false,
        }
    }

    fn waiting(&self) -> usize {
        self.out.len() - self.sent
    }
}

impl Relay {
    /// A relay towards `to`.
    pub fn new(to: SocketAddr) -> Relay {
        let counts = RelayCounts::default();
        Relay { to, ends: Vec::new(), accepted: Vec::new(), dirty: Vec::new(), counts }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> RelayCounts {
        self.counts
    }

    /// One turn: waits for something to happen, at the longest until `until`, and carries on
    /// what came.
    pub fn step(&mut self, io: &mut dyn Io, until: Nanos) {
        io.turn(until, &mut |_, event| self.on_event(event));
        for client in std::mem::take(&mut self.accepted) {
            self.pair(client, io);
        }
        for token in std::mem::take(&mut self.dirty) {
            self.carry_on(token, io);
        }
    }

    fn on_event(&mut self, event: IoEvent<'_>) {
        match event {
            IoEvent::Accepted { connection } => {
                self.counts.connections += 1;
                self.accepted.push(connection);
                // Bytes that it sends before the turn is over must not be lost.
                self.put(connection, End::new(NOBODY, false));
            }
            IoEvent::Connected(token) => self.change(token, |end| end.stands = true),
            IoEvent::Writable(token) => self.change(token, |end| end.is_blocked = false),
            IoEvent::Received(token, bytes) => self.received(token, bytes),
            IoEvent::Ended(token) => self.change(token, |end| end.has_ended = true),
            IoEvent::Failed(token, _) => self.change(token, |end| end.has_failed = true),
            IoEvent::Woken => {}
        }
    }

    fn end(&mut self, token: Token) -> Option<&mut End> {
        self.ends.get_mut(token.0 as usize)?.as_mut()
    }

    fn put(&mut self, token: Token, end: End) {
        let place = token.0 as usize;
        if place >= self.ends.len() {
            self.ends.resize_with(place + 1, || None);
        }
        self.ends[place] = Some(end);
    }

    fn change(&mut self, token: Token, change: impl FnOnce(&mut End)) {
        let Some(end) = self.end(token) else { return };
        change(end);
        self.mark(token);
    }

    fn mark(&mut self, token: Token) {
        let Some(end) = self.end(token) else { return };
        if !std::mem::replace(&mut end.is_dirty, true) {
            self.dirty.push(token);
        }
    }

    fn received(&mut self, token: Token, bytes: &[u8]) {
        let Some(end) = self.end(token) else { return };
        let (peer, is_target) = (end.peer, end.is_target);
        let count = bytes.len() as u64;
        let way = if is_target { &mut self.counts.down_bytes } else { &mut self.counts.up_bytes };
        *way += count;
        if peer == NOBODY {
            // Its other half is made after this turn: until then it keeps its bytes itself.
            if let Some(end) = self.end(token) {
                end.out.extend_from_slice(bytes);
            }
            return;
        }
        let Some(other) = self.end(peer) else { return };
        other.out.extend_from_slice(bytes);
        let waiting = other.waiting() as u64;
        self.counts.waiting_bytes_max = self.counts.waiting_bytes_max.max(waiting);
        self.mark(peer);
    }

    /// Makes the other half of a connection that came in.
    fn pair(&mut self, client: Token, io: &mut dyn Io) {
        match io.connect(self.to, None) {
            Ok(target) => {
                let mut new = End::new(client, true);
                if let Some(end) = self.end(client) {
                    end.peer = target;
                    new.out = std::mem::take(&mut end.out);
                }
                self.put(target, new);
                self.mark(client);
            }
            Err(_) => {
                self.counts.broken += 1;
                self.ends[client.0 as usize] = None;
                io.close(client, Close::Abort);
            }
        }
    }

    /// Writes what an end has, holds or releases who feeds it, and ends what is over.
    fn carry_on(&mut self, token: Token, io: &mut dyn Io) {
        let Some(end) = self.end(token) else { return };
        end.is_dirty = false;
        let peer = end.peer;
        if end.has_failed {
            return self.end_both(token, peer, Close::Abort, io);
        }
        if end.stands && !end.is_blocked && end.waiting() > 0 {
            match io.write(token, &end.out[end.sent..]) {
                Ok(taken) => {
                    end.sent += taken;
                    end.is_blocked = end.waiting() > 0;
                }
                // What came in before is reported first, then how the connection ended.
                Err(_) => end.is_blocked = true,
            }
        }
        let waiting = end.waiting();
        if waiting == 0 {
            end.out.clear();
            end.sent = 0;
        }
        let stands = end.stands;
        let Some(other) = self.end(peer) else { return };
        let (holds, has_ended) = (waiting > 0, other.has_ended);
        if holds != other.is_held {
            other.is_held = holds;
            match holds {
                true => io.hold(peer),
                false => io.release(peer),
            }
        }
        if has_ended && !holds && stands {
            let Some(end) = self.end(token) else { return };
            if !std::mem::replace(&mut end.is_shut, true) {
                io.shutdown(token);
            }
        }
        let is_over = |end: Option<&mut End>| end.is_some_and(|end| end.has_ended && end.is_shut);
        if is_over(self.end(token)) && is_over(self.end(peer)) {
            self.end_both(token, peer, Close::Graceful, io);
        } else if self.end(token).is_some_and(|end| end.has_ended) {
            self.mark_unless_shut(peer);
        }
    }

    /// Marks the other end of one that has ended, so that the end is passed on.
    fn mark_unless_shut(&mut self, token: Token) {
        if self.end(token).is_some_and(|end| !end.is_shut && end.stands && end.waiting() == 0) {
            self.mark(token);
        }
    }

    fn end_both(&mut self, token: Token, peer: Token, how: Close, io: &mut dyn Io) {
        self.counts.broken += u64::from(how == Close::Abort);
        for end in [token, peer] {
            if self.ends.get_mut(end.0 as usize).and_then(Option::take).is_some() {
                io.close(end, how);
            }
        }
    }
}

/// A relay on a thread of its own. Dropping it stops it.
pub struct Relaying {
    address: SocketAddr,
    questions: Sender<Sender<RelayCounts>>,
    is_over: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Relaying {
    /// Listens on `on` (port 0: a free one) and relays to `to`.
    ///
    /// # Errors
    /// If it cannot listen or has no thread.
    pub fn start(on: SocketAddr, to: SocketAddr) -> Result<Relaying, IoFault> {
        let (questions, asked) = channel();
        let (ready, started) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || match listen(on) {
                Ok((mut io, address)) => {
                    let _ = ready.send(Ok((address, io.waker())));
                    serve(&mut io, to, &asked, &over);
                }
                Err(fault) => drop(ready.send(Err(fault))),
            })
            .map_err(|error| IoFault::Other(error.raw_os_error().unwrap_or(0)))?;
        let (address, waker) = started.recv().unwrap_or(Err(IoFault::Other(0)))?;
        Ok(Relaying { address, questions, is_over, waker, thread: Some(thread) })
    }

    /// Returns the address of the relay.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> RelayCounts {
        let (answer, told) = channel();
        if self.questions.send(answer).is_err() {
            return RelayCounts::default();
        }
        self.waker.wake();
        told.recv().unwrap_or_default()
    }
}

impl Drop for Relaying {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.waker.wake();
        // A relay that panicked has said so already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn listen(on: SocketAddr) -> Result<(EpollIo, SocketAddr), IoFault> {
    let mut io = EpollIo::new(Instant::now())?;
    let address = io.listen(on, BACKLOG)?;
    Ok((io, address))
}

fn serve(
    io: &mut EpollIo,
    to: SocketAddr,
    asked: &Receiver<Sender<RelayCounts>>,
    is_over: &AtomicBool,
) {
    let mut relay = Relay::new(to);
    while !is_over.load(Ordering::Acquire) {
        let until = if relay.dirty.is_empty() { Nanos::NEVER } else { Nanos(0) };
        relay.step(io, until);
        for answer in asked.try_iter() {
            let _ = answer.send(relay.counts());
        }
    }
}

/// A relay as a party of the simulated world.
pub struct SimulatedRelay {
    relay: Relay,
    io: SimIo,
}

impl SimulatedRelay {
    /// Listens on `on` in the world of `io`, and relays to `to`.
    ///
    /// # Errors
    /// If the address is taken.
    pub fn start(on: SocketAddr, to: SocketAddr, mut io: SimIo) -> Result<SimulatedRelay, IoFault> {
        io.listen(on, BACKLOG)?;
        Ok(SimulatedRelay { relay: Relay::new(to), io })
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> RelayCounts {
        self.relay.counts()
    }
}

impl Party for SimulatedRelay {
    fn step(&mut self) -> bool {
        let until = if self.relay.dirty.is_empty() { Nanos::NEVER } else { Nanos(0) };
        self.relay.step(&mut self.io, until);
        true
    }

    fn serves(&self) -> bool {
        true
    }
}

/// The peer of an end whose other half is not made yet.
const NOBODY: Token = Token(u32::MAX);

/// As many as the kernel will queue: it lowers this to net.core.somaxconn.
const BACKLOG: u32 = 65_535;
