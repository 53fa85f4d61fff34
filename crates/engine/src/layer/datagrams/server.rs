//! A server's end: any reference server, inside a layer over datagrams.

use std::collections::BTreeSet;

use weigh_model::Nanos;
use weigh_model::connection::{Fault, Outbox};
use weigh_model::protocol::{Host, Transport};
use weigh_model::server::{ById, ConnectionId, Outboxes, Record, Server, ServerReport};

use super::session::{Begin, DatagramSession};

/// Wraps this server.
pub(in crate::layer) fn secured<S>(host: Host, begin: Begin<S>) -> Host
where
    S: DatagramSession + Send + 'static,
{
    let make = move |shard| {
        let server: Box<dyn Server> = Box::new(SecuredServer {
            inner: (host.make)(shard),
            begin: Begin::clone(&begin),
            lines: Lines::default(),
            now: Nanos(0),
            inner_wake: Some(Nanos(0)),
        });
        server
    };
    Host { transport: Transport::Datagram, make: Box::new(make) }
}

struct SecuredServer<S> {
    inner: Box<dyn Server>,
    begin: Begin<S>,
    lines: Lines<S>,
    /// Time of the last call.
    now: Nanos,
    /// When the inner server asked to be woken.
    inner_wake: Option<Nanos>,
}

/// All peers, by their number.
struct Lines<S> {
    lines: ById<Box<Line<S>>>,
    /// Those with something to seal, or an end to make.
    dirty: Vec<ConnectionId>,
    /// When sessions are to be woken.
    timers: BTreeSet<(Nanos, ConnectionId)>,
    /// Takes what is staged for peers that are gone.
    nowhere: Vec<u8>,
}

struct Line<S> {
    session: S,
    /// Datagrams that the inner server wants to send.
    staged: Outbox,
    /// The time of it in `timers`.
    timer: Option<Nanos>,
    is_accepted: bool,
    is_closing: bool,
    is_dirty: bool,
    /// True if the inner server wants to know when all of its bytes are sent.
    awaits_drain: bool,
}

impl<S: DatagramSession> SecuredServer<S> {
    /// Lets a session hear or speak, hands what it took to the inner server, and sends what
    /// follows.
    fn with_session(
        &mut self,
        of: ConnectionId,
        out: &mut dyn Outboxes,
        call: impl FnOnce(&mut S, &mut Outbox, &mut Outbox) -> Result<bool, S::Wrong>,
    ) -> Result<(), Fault> {
        let Some(line) = self.lines.line(of) else { return Ok(()) };
        let (mut heard, mut wire) = (Outbox::default(), Outbox::default());
        let called = call(&mut line.session, &mut heard, &mut wire);
        stage(out, of, &mut wire);
        self.lines.set_timer(of);
        let has_begun = called.map_err(S::fault_of_server)?;
        let now = self.now;
        if has_begun {
            if let Some(line) = self.lines.line(of) {
                line.is_accepted = true;
            }
            self.inner.accepted(of, now, &mut self.lines.outboxes(out));
        }
        let mut result = Ok(());
        for input in heard.frames().after(0) {
            match self.inner.receive(of, input, now, &mut self.lines.outboxes(out)) {
                Ok(taken) if taken < input.len() => {
                    if let Some(line) = self.lines.line(of) {
                        line.session.left_over(&input[taken..]);
                    }
                }
                Ok(_) => {}
                Err(fault) => {
                    result = Err(fault);
                    break;
                }
            }
        }
        self.lines.settle(now, out);
        let has_ended =
            self.lines.line(of).is_some_and(|line| line.session.peer_closed().is_some());
        if result.is_err() || has_ended {
            self.lines.goodbye(of, now, out);
        }
        if has_ended {
            out.close(of);
        }
        self.tell_drained(of, out);
        result
    }

    fn next_inner_wake(&self) -> Option<Nanos> {
        self.inner_wake.into_iter().chain(self.inner.next_wake()).min()
    }

    /// Calls the inner server if it waits until all of its bytes are sent, and they are.
    fn tell_drained(&mut self, of: ConnectionId, out: &mut dyn Outboxes) {
        let Some(line) = self.lines.line(of).filter(|line| line.awaits_drain) else { return };
        if line.session.waiting_bytes() > 0 {
            return;
        }
        line.awaits_drain = false;
        self.inner.drained(of, self.now, &mut self.lines.outboxes(out));
        self.lines.settle(self.now, out);
    }
}

/// Stages datagrams for a peer, and clears them.
fn stage(out: &mut dyn Outboxes, to: ConnectionId, wire: &mut Outbox) {
    for datagram in wire.frames().after(0) {
        out.stage(to).extend_from_slice(datagram);
        out.frame(to);
    }
    wire.clear();
}

impl<S: DatagramSession + Send> Server for SecuredServer<S> {
    fn accepted(&mut self, connection: ConnectionId, now: Nanos, _out: &mut dyn Outboxes) {
        self.now = now;
        self.lines.put(connection, Line::new((self.begin)(now)));
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        self.now = now;
        let feed = |session: &mut S, plain: &mut Outbox, wire: &mut Outbox| {
            session.feed(input, now, plain, wire)
        };
        self.with_session(connection, out, feed).map(|()| input.len())
    }

    fn drained(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.now = now;
        self.inner.drained(connection, now, &mut self.lines.outboxes(out));
        self.lines.settle(now, out);
    }

    fn closed(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.now = now;
        let Some(line) = self.lines.remove(connection) else { return };
        if line.is_accepted {
            self.inner.closed(connection, now, &mut self.lines.outboxes(out));
            self.lines.settle(now, out);
        }
    }

    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        self.now = now;
        while let Some((_, of)) = self.lines.timers.first().copied().filter(|(at, _)| *at <= now) {
            let wake = |session: &mut S, plain: &mut Outbox, wire: &mut Outbox| {
                session.wake(now, plain, wire)
            };
            // A client that did not finish its handshake is forgotten.
            if self.with_session(of, out, wake).is_err() {
                out.close(of);
            }
        }
        if self.next_inner_wake().is_some_and(|at| at <= now) {
            self.inner_wake = self.inner.wake(now, &mut self.lines.outboxes(out));
            self.lines.settle(now, out);
        }
        self.next_wake()
    }

    fn next_wake(&self) -> Option<Nanos> {
        let own = self.lines.timers.first().map(|(at, _)| *at);
        own.into_iter().chain(self.next_inner_wake()).min()
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        self.now = now;
        self.inner.notified(now, &mut self.lines.outboxes(out));
        self.lines.settle(now, out);
    }

    fn report(&self) -> ServerReport {
        self.inner.report()
    }
}

impl<S: DatagramSession> Line<S> {
    fn new(session: S) -> Box<Line<S>> {
        Box::new(Line {
            session,
            staged: Outbox::default(),
            timer: None,
            is_accepted: false,
            is_closing: false,
            is_dirty: false,
            awaits_drain: false,
        })
    }
}

impl<S> Default for Lines<S> {
    fn default() -> Lines<S> {
        Lines {
            lines: ById::default(),
            dirty: Vec::new(),
            timers: BTreeSet::new(),
            nowhere: Vec::new(),
        }
    }
}

impl<S: DatagramSession> Lines<S> {
    fn put(&mut self, of: ConnectionId, line: Box<Line<S>>) {
        self.remove(of);
        self.lines.put(of, line);
    }

    fn line(&mut self, of: ConnectionId) -> Option<&mut Line<S>> {
        self.lines.get_mut(of).map(|own| &mut **own)
    }

    fn remove(&mut self, of: ConnectionId) -> Option<Box<Line<S>>> {
        let line = self.lines.remove(of)?;
        if let Some(at) = line.timer {
            self.timers.remove(&(at, of));
        }
        Some(line)
    }

    /// Notes when the session of a peer is to be woken.
    fn set_timer(&mut self, of: ConnectionId) {
        let Some(line) = self.lines.get_mut(of) else { return };
        let next = line.session.next_wake();
        if line.timer == next {
            return;
        }
        if let Some(at) = line.timer.take() {
            self.timers.remove(&(at, of));
        }
        if let Some(at) = next {
            self.timers.insert((at, of));
            line.timer = Some(at);
        }
    }

    fn outboxes<'l>(&'l mut self, out: &'l mut dyn Outboxes) -> SecuredOutboxes<'l, S> {
        SecuredOutboxes { lines: self, out }
    }

    /// Seals what was staged, and closes what was to be closed.
    fn settle(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        while let Some(of) = self.dirty.pop() {
            let Some(line) = self.line(of) else { continue };
            line.is_dirty = false;
            let (mut wire, mut is_broken) = (Outbox::default(), false);
            for datagram in line.staged.frames().after(0) {
                is_broken |= line.session.say(datagram, now, &mut wire).is_err();
            }
            line.staged.clear();
            let is_closing = line.is_closing;
            stage(out, of, &mut wire);
            self.set_timer(of);
            if is_broken {
                out.abort(of);
            } else if is_closing {
                self.goodbye(of, now, out);
                out.close(of);
            }
        }
    }

    fn goodbye(&mut self, of: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        if let Some(line) = self.line(of) {
            line.is_closing = true;
            let mut wire = Outbox::default();
            line.session.goodbye(now, &mut wire);
            stage(out, of, &mut wire);
            self.set_timer(of);
        }
    }
}

/// The engine's side as the inner server sees it.
struct SecuredOutboxes<'l, S> {
    lines: &'l mut Lines<S>,
    out: &'l mut dyn Outboxes,
}

impl<S: DatagramSession> SecuredOutboxes<'_, S> {
    fn mark(&mut self, which: ConnectionId) {
        if let Some(line) = self.lines.line(which)
            && !line.is_dirty
        {
            line.is_dirty = true;
            self.lines.dirty.push(which);
        }
    }
}

impl<S: DatagramSession> Outboxes for SecuredOutboxes<'_, S> {
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8> {
        self.mark(to);
        let Lines { lines, nowhere, .. } = &mut *self.lines;
        match lines.get_mut(to) {
            Some(line) if !line.is_closing => line.staged.buffer(),
            _ => {
                nowhere.clear();
                nowhere
            }
        }
    }

    fn frame(&mut self, to: ConnectionId) {
        if let Some(line) = self.lines.line(to) {
            line.staged.frame();
        }
    }

    fn pending_bytes(&self, of: ConnectionId) -> usize {
        let own = self.lines.lines.get(of);
        let own = own.map_or(0, |line| line.staged.len() + line.session.waiting_bytes());
        self.out.pending_bytes(of) + own
    }

    fn notify_drained(&mut self, of: ConnectionId) {
        match self.lines.line(of) {
            Some(line) if S::HOLDS => line.awaits_drain = true,
            _ => self.out.notify_drained(of),
        }
        self.mark(of);
    }

    fn hold(&mut self, which: ConnectionId) {
        match self.lines.line(which) {
            Some(line) if S::HOLDS => line.session.hold(true),
            _ => self.out.hold(which),
        }
    }

    fn release(&mut self, which: ConnectionId) {
        match self.lines.line(which) {
            Some(line) if S::HOLDS => line.session.hold(false),
            _ => self.out.release(which),
        }
        self.mark(which);
    }

    fn close(&mut self, which: ConnectionId) {
        self.mark(which);
        if let Some(line) = self.lines.line(which) {
            line.is_closing = true;
        }
    }

    fn abort(&mut self, which: ConnectionId) {
        self.out.abort(which);
    }

    fn notify_shard(&mut self, shard: u16) {
        self.out.notify_shard(shard);
    }

    fn store(&mut self, record: Record<'_>) {
        self.out.store(record);
    }

    fn stores(&self) -> bool {
        self.out.stores()
    }
}
