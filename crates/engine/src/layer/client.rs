//! A client's end: any wire, inside a layer.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::content::{Phase, StreamCounts};
use weigh_model::protocol::Dial;
use weigh_model::wire::{Emit, Fault, Op, Outbox, Reply, Wire};

use super::session::{Begin, Scratch, Session};

/// The same clients, each inside the layer.
pub(super) fn layered<S: Session + 'static>(dial: Dial, begin: Begin<S>) -> Dial {
    let make = dial.make;
    let make = move |seat| {
        let wire: Box<dyn Wire> = Box::new(LayeredWire {
            inner: make(seat),
            begin: Arc::clone(&begin),
            session: None,
            fault: None,
            carry: Vec::new(),
            has_ended: false,
        });
        wire
    };
    Dial { make: Box::new(make), is_answered: true, ..dial }
}

struct LayeredWire<S> {
    inner: Box<dyn Wire>,
    begin: Begin<S>,
    session: Option<S>,
    /// What could not be told when it happened.
    fault: Option<Fault>,
    /// What the inner wire left over.
    carry: Vec<u8>,
    /// The server said goodbye, and the inner wire knows.
    has_ended: bool,
}

impl<S: Session> LayeredWire<S> {
    fn stands(&self) -> bool {
        self.session.as_ref().is_some_and(S::stands)
    }

    /// Lets the inner wire say something and wraps it.
    fn relay<T>(&mut self, out: &mut Outbox, speak: impl FnOnce(&mut Self, &mut Outbox) -> T) -> T {
        let mut scratch = Scratch::take();
        let result = speak(self, &mut scratch.said);
        if let Some(session) = &mut self.session
            && let Err(fault) = session.say(scratch.said.bytes(), out.buffer())
        {
            self.fault = Some(fault);
        }
        scratch.give_back();
        result
    }

    fn take_in(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        scratch: &mut Scratch,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let Some(session) = &mut self.session else { return Ok(()) };
        // What was left over may be the beginning of something large: it is not copied each time.
        std::mem::swap(&mut scratch.heard, &mut self.carry);
        let carried = scratch.heard.len();
        let fed = session.feed(input, now, &mut scratch.heard, out.buffer());
        if matches!(fed, Ok(true)) {
            self.inner.open(now, &mut scratch.said, emit);
        }
        if scratch.heard.len() > carried {
            let taken = self.inner.receive(&scratch.heard, now, &mut scratch.said, emit)?;
            scratch.heard.drain(..taken.min(scratch.heard.len()));
        }
        if !scratch.heard.is_empty() {
            self.carry = std::mem::take(&mut scratch.heard);
        }
        fed?;
        session.say(scratch.said.bytes(), out.buffer())?;
        if session.has_peer_closed() && !self.has_ended {
            // Nothing more will come, whether or not the server now waits for our answer before
            // it closes the transport.
            self.has_ended = true;
            let rest = std::mem::take(&mut self.carry);
            self.inner.end(&rest, emit)?;
            session.goodbye(out.buffer());
        }
        Ok(())
    }
}

impl<S: Session> Wire for LayeredWire<S> {
    fn open(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        match (self.begin)(now) {
            Ok(session) => {
                self.session = Some(session);
                let mut scratch = Scratch::take();
                self.fault = self.take_in(&[], now, out, &mut scratch, emit).err();
                scratch.give_back();
            }
            Err(fault) => self.fault = Some(fault),
        }
    }

    fn room(&self) -> u32 {
        if self.stands() && !self.has_ended { self.inner.room() } else { 0 }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        self.relay(out, |own, said| own.inner.send(op, now, said))
    }

    fn room_together(&self) -> u32 {
        if self.stands() && !self.has_ended { self.inner.room_together() } else { 0 }
    }

    fn send_together(&mut self, ops: &[Op<'_>], now: Nanos, out: &mut Outbox) -> Reply {
        self.relay(out, |own, said| own.inner.send_together(ops, now, said))
    }

    fn ask(&mut self, now: Nanos, out: &mut Outbox) {
        self.relay(out, |own, said| own.inner.ask(now, said));
    }

    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        self.relay(out, |own, said| own.inner.begin(op, rest, now, said))
    }

    fn more(&mut self, piece: &[u8], now: Nanos, out: &mut Outbox) {
        self.relay(out, |own, said| own.inner.more(piece, now, said));
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let mut scratch = Scratch::take();
        let result = self.take_in(input, now, out, &mut scratch, emit);
        scratch.give_back();
        result.map(|()| input.len())
    }

    fn end(&mut self, _rest: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        let Some(session) = &self.session else { return self.inner.end(&[], emit) };
        if self.has_ended { Ok(()) } else { Err(session.cut_off()) }
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox) -> Result<Option<Nanos>, Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if !self.stands() {
            return Ok(Some(now + LOOK_EVERY));
        }
        self.relay(out, |own, said| own.inner.wake(now, said))
    }

    fn close(&mut self, out: &mut Outbox) {
        if self.stands() {
            self.relay(out, |own, said| own.inner.close(said));
        }
        if let Some(session) = &mut self.session {
            session.goodbye(out.buffer());
        }
    }

    fn meter(&mut self) {
        self.inner.meter();
    }

    /// What is inside, and what the layer adds that looks like content.
    fn counts(&self) -> Option<StreamCounts> {
        let mut counts = self.inner.counts()?;
        counts.received.add(Phase::Messages, self.carry.len(), 0);
        if let Some(session) = &self.session {
            counts.absorb(&session.added());
        }
        Some(counts)
    }
}

/// How often a wire asks whether its handshake is over, before the inner one's own time begins.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
