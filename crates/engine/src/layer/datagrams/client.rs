//! A client's end: any protocol, inside a layer over datagrams.

use weigh_model::Nanos;
use weigh_model::connection::{
    Batch, Connection, Emit, Fault, Metered, Op, Outbox, Poll, Reply, Signal, Timing, Transfer,
};
use weigh_model::content::StreamCounts;
use weigh_model::protocol::{Dial, Transport};

use super::session::{Begin, DatagramSession};

/// Wraps the connections of these clients in sessions.
pub(in crate::layer) fn secured<S>(dial: Dial, begin: Begin<S>) -> Dial
where
    S: DatagramSession + 'static,
{
    let make = dial.make;
    let make = move |seat| {
        let connection: Box<dyn Connection> = Box::new(SecuredConnection {
            inner: make(seat),
            begin: Begin::clone(&begin),
            session: None,
            fault: None,
            now: Nanos(0),
            plain: Outbox::default(),
            has_ended: false,
        });
        connection
    };
    // No end of the peer could be awaited after the close notice.
    Dial { transport: Transport::Datagram, make: Box::new(make), ..dial }
}

struct SecuredConnection<S> {
    inner: Box<dyn Connection>,
    begin: Begin<S>,
    session: Option<S>,
    /// Fault that could not be reported when it happened.
    fault: Option<Fault>,
    /// Time of the last call that named one.
    now: Nanos,
    /// Datagrams between the two: those that came in, or those to be sent.
    plain: Outbox,
    /// True if the server closed the session and the inner connection knows it.
    has_ended: bool,
}

impl<S: DatagramSession> SecuredConnection<S> {
    fn stands(&self) -> bool {
        self.session.as_ref().is_some_and(S::stands)
    }

    /// True if the inner connection may say more.
    fn has_room(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|own| own.stands() && !own.is_full()) && self.fault.is_none()
    }

    /// Lets the inner connection write, and seals each of its datagrams.
    fn relay<T>(&mut self, out: &mut Outbox, speak: impl FnOnce(&mut Self, &mut Outbox) -> T) -> T {
        let mut said = std::mem::take(&mut self.plain);
        let result = speak(self, &mut said);
        self.seal(&mut said, out);
        self.plain = said;
        result
    }

    /// Seals datagrams of the inner connection, and clears them.
    fn seal(&mut self, said: &mut Outbox, out: &mut Outbox) {
        if let Some(session) = &mut self.session {
            for datagram in said.frames().after(0) {
                if let Err(wrong) = session.say(datagram, self.now, out) {
                    self.fault = Some(S::fault_of_client(wrong));
                    break;
                }
            }
        }
        said.clear();
    }

    /// Hands what the session took out of its datagrams to the inner connection.
    fn pass_on(
        &mut self,
        has_begun: bool,
        heard: &mut Outbox,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let (now, mut said) = (self.now, Outbox::default());
        if has_begun {
            self.inner.open(now, &mut said, emit);
        }
        let mut result = Ok(());
        for input in heard.frames().after(0) {
            match self.inner.receive(input, now, &mut said, emit) {
                Ok(taken) if taken < input.len() => {
                    if let Some(session) = &mut self.session {
                        session.left_over(&input[taken..]);
                    }
                }
                Ok(_) => {}
                Err(fault) => {
                    result = Err(fault);
                    break;
                }
            }
        }
        self.seal(&mut said, out);
        let Some(session) = &mut self.session else { return result };
        if result.is_err() {
            session.goodbye(now, out);
        }
        match session.peer_closed() {
            Some(why) if result.is_ok() && !self.has_ended => {
                self.has_ended = true;
                self.inner.end(&[], emit)?;
                Err(Fault::Ended(why))
            }
            _ => result,
        }
    }

    /// Lets the session speak or hear, and passes on what follows.
    fn with_session(
        &mut self,
        out: &mut Outbox,
        emit: Emit<'_>,
        call: impl FnOnce(&mut S, Nanos, &mut Outbox, &mut Outbox) -> Result<bool, S::Wrong>,
    ) -> Result<(), Fault> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let mut heard = std::mem::take(&mut self.plain);
        let called = call(session, self.now, &mut heard, out);
        let result = match called {
            Ok(has_begun) => self.pass_on(has_begun, &mut heard, out, emit),
            Err(wrong) => Err(S::fault_of_client(wrong)),
        };
        heard.clear();
        self.plain = heard;
        result
    }
}

impl<S: DatagramSession> Connection for SecuredConnection<S> {
    fn open(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        self.now = now;
        self.session = Some((self.begin)(now));
        self.fault = self.with_session(out, emit, S::wake).err();
    }

    fn room(&self) -> u32 {
        if self.has_room() { self.inner.room() } else { 0 }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        self.now = now;
        self.relay(out, |own, said| own.inner.send(op, now, said))
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        self.now = now;
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let feed = |session: &mut S, now, plain: &mut Outbox, wire: &mut Outbox| {
            session.feed(input, now, plain, wire)
        };
        self.with_session(out, emit, feed)?;
        Ok(input.len())
    }

    fn timing(&self) -> Timing {
        Timing::Exact
    }

    fn next_wake(&self) -> Option<Nanos> {
        if self.fault.is_some() {
            return Some(Nanos(0));
        }
        let own = self.session.as_ref().and_then(S::next_wake);
        let inner = self.inner.next_wake().filter(|_| self.stands());
        own.into_iter().chain(inner).min()
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        self.now = now;
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let is_due = |at: Option<Nanos>| at.is_some_and(|at| at <= now);
        if is_due(self.session.as_ref().and_then(S::next_wake)) {
            self.with_session(out, emit, S::wake)?;
        }
        if self.stands() && is_due(self.inner.next_wake()) {
            let has_spoken = self.relay(out, |own, said| {
                own.inner.wake(now, said, emit).map(|()| !said.is_empty())
            })?;
            if has_spoken && self.inner.timing() == Timing::KeepAlive {
                emit(Signal::KeptAlive);
            }
        }
        Ok(())
    }

    fn close(&mut self, out: &mut Outbox) {
        if self.stands() {
            self.relay(out, |own, said| own.inner.close(said));
        }
        if let Some(session) = &mut self.session {
            session.goodbye(self.now, out);
        }
    }

    fn times_its_handshake(&self) -> bool {
        S::TIMES_ITS_HANDSHAKE
    }

    fn is_parting(&self) -> bool {
        self.session.as_ref().is_some_and(S::is_parting)
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

impl<S: DatagramSession> Transfer for SecuredConnection<S> {
    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        self.now = now;
        self.relay(out, |own, said| match own.inner.transfer() {
            Some(transfer) => transfer.begin(op, rest, now, said),
            None => Reply::None,
        })
    }

    fn more(&mut self, piece: &[u8], now: Nanos, out: &mut Outbox) {
        self.now = now;
        self.relay(out, |own, said| {
            if let Some(transfer) = own.inner.transfer() {
                transfer.more(piece, now, said);
            }
        });
    }

    fn takes_more(&mut self) -> bool {
        !self.session.as_ref().is_some_and(S::is_full)
            && self.inner.transfer().is_none_or(|transfer| transfer.takes_more())
    }
}

impl<S: DatagramSession> Batch for SecuredConnection<S> {
    fn room_together(&mut self) -> u32 {
        let has_room = self.has_room();
        self.inner.batch().filter(|_| has_room).map_or(0, |batch| batch.room_together())
    }

    fn send_together(&mut self, ops: &[Op<'_>], now: Nanos, out: &mut Outbox) -> Reply {
        self.now = now;
        self.relay(out, |own, said| match own.inner.batch() {
            Some(batch) => batch.send_together(ops, now, said),
            None => Reply::None,
        })
    }
}

impl<S: DatagramSession> Poll for SecuredConnection<S> {
    fn ask(&mut self, now: Nanos, out: &mut Outbox) {
        self.now = now;
        self.relay(out, |own, said| {
            if let Some(poll) = own.inner.poll() {
                poll.ask(now, said);
            }
        });
    }
}

impl<S: DatagramSession> Metered for SecuredConnection<S> {
    fn meter(&mut self) {
        if let Some(metered) = self.inner.metered() {
            metered.meter();
        }
    }

    fn counts(&mut self) -> Option<StreamCounts> {
        self.inner.metered()?.counts()
    }
}
