//! A client's end: any protocol's connection, inside a layer.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{
    Batch, Connection, Emit, Fault, Metered, Op, Outbox, Poll, Reply, Timing, Transfer,
};
use weigh_model::content::{Phase, StreamCounts};
use weigh_model::protocol::Dial;

use super::session::{Begin, Scratch, Session};

/// Wraps the connections of these clients in the layer.
pub(super) fn layered<S: Session + 'static>(dial: Dial, begin: Begin<S>) -> Dial {
    let make = dial.make;
    let make = move |seat| {
        let connection: Box<dyn Connection> = Box::new(LayeredConnection {
            inner: make(seat),
            begin: Arc::clone(&begin),
            session: None,
            fault: None,
            carry: Vec::new(),
            has_ended: false,
        });
        connection
    };
    Dial { make: Box::new(make), is_answered: true, ..dial }
}

struct LayeredConnection<S> {
    inner: Box<dyn Connection>,
    begin: Begin<S>,
    session: Option<S>,
    /// Fault that could not be reported when it happened.
    fault: Option<Fault>,
    /// Bytes that the inner connection left over.
    carry: Vec<u8>,
    /// True if the server closed the session and the inner connection knows it.
    has_ended: bool,
}

impl<S: Session> LayeredConnection<S> {
    fn stands(&self) -> bool {
        self.session.as_ref().is_some_and(S::stands)
    }

    /// Lets the inner connection write, and wraps its bytes.
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

impl<S: Session> Connection for LayeredConnection<S> {
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

    fn timing(&self) -> Timing {
        self.inner.timing().max(Timing::KeepAlive)
    }

    fn next_wake(&self) -> Option<Nanos> {
        match self.fault {
            Some(_) => Some(Nanos(0)),
            None if self.stands() => self.inner.next_wake(),
            None => None,
        }
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        self.relay(out, |own, said| own.inner.wake(now, said, emit))
    }

    fn close(&mut self, out: &mut Outbox) {
        if self.stands() {
            self.relay(out, |own, said| own.inner.close(said));
        }
        if let Some(session) = &mut self.session {
            session.goodbye(out.buffer());
        }
    }

    fn resumes(&self) -> bool {
        self.inner.resumes()
    }

    fn opens_within(&self) -> Option<Nanos> {
        self.inner.opens_within()
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        self.inner.transfer().is_some().then_some(self)
    }

    fn batch(&mut self) -> Option<&mut dyn Batch> {
        self.inner.batch().is_some().then_some(self)
    }

    fn poll(&mut self) -> Option<&mut dyn Poll> {
        self.inner.poll().is_some().then_some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        self.inner.metered().is_some().then_some(self)
    }
}

impl<S: Session> Batch for LayeredConnection<S> {
    fn room_together(&mut self) -> u32 {
        match self.inner.batch() {
            Some(batch) if self.session.as_ref().is_some_and(S::stands) && !self.has_ended => {
                batch.room_together()
            }
            _ => 0,
        }
    }

    fn send_together(&mut self, ops: &[Op<'_>], now: Nanos, out: &mut Outbox) -> Reply {
        self.relay(out, |own, said| match own.inner.batch() {
            Some(batch) => batch.send_together(ops, now, said),
            None => Reply::None,
        })
    }
}

impl<S: Session> Poll for LayeredConnection<S> {
    fn ask(&mut self, now: Nanos, out: &mut Outbox) {
        self.relay(out, |own, said| {
            if let Some(poll) = own.inner.poll() {
                poll.ask(now, said);
            }
        });
    }
}

impl<S: Session> Transfer for LayeredConnection<S> {
    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        self.relay(out, |own, said| match own.inner.transfer() {
            Some(transfer) => transfer.begin(op, rest, now, said),
            None => Reply::None,
        })
    }

    fn more(&mut self, piece: &[u8], now: Nanos, out: &mut Outbox) {
        self.relay(out, |own, said| {
            if let Some(transfer) = own.inner.transfer() {
                transfer.more(piece, now, said);
            }
        });
    }

    fn takes_more(&mut self) -> bool {
        self.inner.transfer().is_none_or(|transfer| transfer.takes_more())
    }
}

impl<S: Session> Metered for LayeredConnection<S> {
    fn meter(&mut self) {
        if let Some(metered) = self.inner.metered() {
            metered.meter();
        }
    }

    /// Returns the counts of the inner connection, and the bytes of the layer that look like
    /// content.
    fn counts(&mut self) -> Option<StreamCounts> {
        let mut counts = self.inner.metered()?.counts()?;
        counts.received.add(Phase::Messages, self.carry.len(), 0);
        if let Some(session) = &self.session {
            counts.absorb(&session.added());
        }
        Some(counts)
    }
}
