//! A server's end: any reference server, inside a layer.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::protocol::{Host, Transport};
use weigh_model::server::{ById, ConnectionId, Outboxes, Record, Server, ServerReport};

use super::session::{Begin, Scratch, Session};

/// Wraps this server in the layer.
pub(super) fn layered<S: Session + Send + 'static>(host: Host, begin: Begin<S>) -> Host {
    let make = move |shard| {
        let server: Box<dyn Server> = Box::new(LayeredServer {
            inner: (host.make)(shard),
            begin: Arc::clone(&begin),
            lines: Lines::default(),
        });
        server
    };
    Host { transport: Transport::Stream, make: Box::new(make) }
}

struct LayeredServer<S> {
    inner: Box<dyn Server>,
    begin: Begin<S>,
    lines: Lines<S>,
}

impl<S: Session> LayeredServer<S> {
    fn take_in(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
        scratch: &mut Scratch,
    ) -> Result<(), Fault> {
        let Some(line) = self.lines.line(connection) else { return Ok(()) };
        // What was left over may be the beginning of something large: it is not copied each time.
        std::mem::swap(&mut scratch.heard, &mut line.carry);
        let carried = scratch.heard.len();
        let fed = line.session.feed(input, now, &mut scratch.heard, out.stage(connection));
        let stands = line.session.stands();
        let is_new = stands && !line.is_accepted;
        line.is_accepted |= stands;
        if is_new {
            self.inner.accepted(connection, now, &mut self.lines.outboxes(out));
        }
        let mut inner = Ok(());
        if scratch.heard.len() > carried {
            let mut outboxes = self.lines.outboxes(out);
            match self.inner.receive(connection, &scratch.heard, now, &mut outboxes) {
                Ok(taken) => drop(scratch.heard.drain(..taken.min(scratch.heard.len()))),
                Err(fault) => {
                    inner = Err(fault);
                    scratch.heard.clear();
                }
            }
        }
        if let Some(line) = self.lines.line(connection).filter(|_| !scratch.heard.is_empty()) {
            line.carry = std::mem::take(&mut scratch.heard);
        }
        self.lines.settle(out);
        let has_peer_closed =
            self.lines.line(connection).is_some_and(|line| line.session.has_peer_closed());
        if inner.is_err() || has_peer_closed {
            self.lines.goodbye(connection, out);
        }
        if has_peer_closed {
            out.close(connection);
        }
        inner.and(fed.map(|_| ()))
    }
}

impl<S: Session + Send> Server for LayeredServer<S> {
    fn accepted(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        match (self.begin)(now) {
            Ok(session) => {
                let speaks_first = session.speaks_first();
                let mut line = Line::new(session);
                line.is_accepted = speaks_first;
                self.lines.lines.put(connection, line);
                if speaks_first {
                    self.inner.accepted(connection, now, &mut self.lines.outboxes(out));
                    self.lines.settle(out);
                }
            }
            // Only a configuration that contradicts itself could be the cause.
            Err(_) => out.abort(connection),
        }
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let mut scratch = Scratch::take();
        let result = self.take_in(connection, input, now, out, &mut scratch);
        scratch.give_back();
        result.map(|()| input.len())
    }

    fn drained(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.inner.drained(connection, now, &mut self.lines.outboxes(out));
        self.lines.settle(out);
    }

    fn closed(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        let Some(line) = self.lines.lines.remove(connection) else { return };
        if line.is_accepted {
            if !line.session.has_peer_closed() && !line.is_closing {
                // It is counted; whose fault it is, the client knows.
                let _ = line.session.cut_off();
            }
            self.inner.closed(connection, now, &mut self.lines.outboxes(out));
            self.lines.settle(out);
        }
    }

    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        let next = self.inner.wake(now, &mut self.lines.outboxes(out));
        self.lines.settle(out);
        next
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.inner.next_wake()
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        self.inner.notified(now, &mut self.lines.outboxes(out));
        self.lines.settle(out);
    }

    fn report(&self) -> ServerReport {
        self.inner.report()
    }
}

/// All connections, by their number.
struct Lines<S> {
    lines: ById<Box<Line<S>>>,
    /// Those with something to wrap, or an end to make.
    dirty: Vec<ConnectionId>,
    /// Takes what is staged for connections that are gone.
    nowhere: Vec<u8>,
}

struct Line<S> {
    session: S,
    /// Bytes that the inner server wants to send.
    staged: Vec<u8>,
    /// Bytes that it left over of its input.
    carry: Vec<u8>,
    is_accepted: bool,
    is_closing: bool,
    is_dirty: bool,
}

impl<S> Default for Lines<S> {
    fn default() -> Lines<S> {
        Lines { lines: ById::default(), dirty: Vec::new(), nowhere: Vec::new() }
    }
}

impl<S> Line<S> {
    fn new(session: S) -> Box<Line<S>> {
        Box::new(Line {
            session,
            staged: Vec::new(),
            carry: Vec::new(),
            is_accepted: false,
            is_closing: false,
            is_dirty: false,
        })
    }
}

impl<S: Session> Lines<S> {
    fn line(&mut self, of: ConnectionId) -> Option<&mut Line<S>> {
        self.lines.get_mut(of).map(|own| &mut **own)
    }

    fn outboxes<'l>(&'l mut self, out: &'l mut dyn Outboxes) -> LayerOutboxes<'l, S> {
        LayerOutboxes { lines: self, out }
    }

    /// Wraps what was staged, and closes what was to be closed.
    fn settle(&mut self, out: &mut dyn Outboxes) {
        while let Some(of) = self.dirty.pop() {
            let Some(line) = self.line(of) else { continue };
            line.is_dirty = false;
            let said = line.session.say(&line.staged, out.stage(of));
            line.staged.clear();
            line.staged.shrink_to(STAGED_BYTES_KEPT);
            if said.is_err() {
                out.abort(of);
            } else if line.is_closing {
                self.goodbye(of, out);
                out.close(of);
            }
        }
    }

    fn goodbye(&mut self, of: ConnectionId, out: &mut dyn Outboxes) {
        if let Some(line) = self.line(of) {
            line.is_closing = true;
            line.session.goodbye(out.stage(of));
        }
    }
}

/// The engine's side as the inner server sees it.
struct LayerOutboxes<'l, S> {
    lines: &'l mut Lines<S>,
    out: &'l mut dyn Outboxes,
}

impl<S: Session> LayerOutboxes<'_, S> {
    fn mark(&mut self, which: ConnectionId) {
        if let Some(line) = self.lines.line(which)
            && !line.is_dirty
        {
            line.is_dirty = true;
            self.lines.dirty.push(which);
        }
    }
}

impl<S: Session> Outboxes for LayerOutboxes<'_, S> {
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8> {
        self.mark(to);
        let Lines { lines, nowhere, .. } = &mut *self.lines;
        match lines.get_mut(to) {
            Some(line) if !line.is_closing => &mut line.staged,
            _ => {
                nowhere.clear();
                nowhere
            }
        }
    }

    /// Layers are for streams.
    fn frame(&mut self, _to: ConnectionId) {}

    fn pending_bytes(&self, of: ConnectionId) -> usize {
        let line = self.lines.lines.get(of);
        self.out.pending_bytes(of) + line.map_or(0, |line| line.staged.len())
    }

    fn notify_drained(&mut self, of: ConnectionId) {
        self.out.notify_drained(of);
    }

    fn hold(&mut self, which: ConnectionId) {
        self.out.hold(which);
    }

    fn release(&mut self, which: ConnectionId) {
        self.out.release(which);
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

/// Memory that an idle connection keeps for its next output.
const STAGED_BYTES_KEPT: usize = 1024;
