//! A connection between the engine and the real one, from which a test takes something away.

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Op, Outbox, Reply, Timing};

pub struct Wrapped {
    pub inner: Box<dyn Connection>,
    /// Input that it does not hear.
    pub unheard: Option<&'static [u8]>,
    /// False: it is never woken, and sends no ping.
    pub is_woken: bool,
    /// Called with every message that is sent.
    pub note: Box<Note>,
}

type Note = dyn FnMut(Nanos, &Op<'_>);

impl Wrapped {
    /// Takes nothing away yet.
    pub fn new(inner: Box<dyn Connection>) -> Wrapped {
        Wrapped { inner, unheard: None, is_woken: true, note: Box::new(|_, _| ()) }
    }
}

impl Connection for Wrapped {
    fn open(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        self.inner.open(now, out, emit);
    }

    fn room(&self) -> u32 {
        self.inner.room()
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        (self.note)(now, op);
        self.inner.send(op, now, out)
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        if self.unheard == Some(input) {
            return Ok(input.len());
        }
        self.inner.receive(input, now, out, emit)
    }

    fn timing(&self) -> Timing {
        if self.is_woken { self.inner.timing() } else { Timing::Untimed }
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.inner.next_wake().filter(|_| self.is_woken)
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        self.inner.wake(now, out, emit)
    }
}
