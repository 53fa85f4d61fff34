//! A datagram for each message; a number of its own tells its echo from a late echo of another.

use std::collections::BTreeMap;

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Op, Outbox, Reply, Signal, Ticket, Timing};

use super::codec;

pub struct Client {
    /// After which time a message is sent again; 0 for never.
    patience: Nanos,
    is_ready: bool,
    next: u32,
    in_flight: BTreeMap<u32, InFlight>,
}

struct InFlight {
    ticket: Ticket,
    body: Vec<u8>,
    again_at: Nanos,
}

impl Client {
    pub fn new(patience: Nanos) -> Client {
        Client { patience, is_ready: false, next: 0, in_flight: BTreeMap::new() }
    }
}

impl Connection for Client {
    fn open(&mut self, _now: Nanos, _out: &mut Outbox, emit: Emit<'_>) {
        self.is_ready = true;
        emit(Signal::Ready);
    }

    fn room(&self) -> u32 {
        if self.is_ready { u32::MAX } else { 0 }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        codec::put(out.buffer(), self.next, op.body);
        out.frame();
        let (body, again_at) = (op.body.to_vec(), now + self.patience);
        self.in_flight.insert(self.next, InFlight { ticket: op.ticket, body, again_at });
        self.next += 1;
        Reply::Awaited
    }

    /// Anybody may send anything to a socket: what is no echo is not for this connection.
    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        _out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let echo = codec::read(input).and_then(|(number, body)| {
            let is_whole = self.in_flight.get(&number).is_some_and(|sent| sent.body == body);
            is_whole.then(|| self.in_flight.remove(&number)).flatten()
        });
        if let Some(sent) = echo {
            emit(Signal::Done(sent.ticket));
        }
        Ok(input.len())
    }

    fn timing(&self) -> Timing {
        if self.patience.0 > 0 { Timing::Exact } else { Timing::Untimed }
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.in_flight.values().map(|sent| sent.again_at).min()
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) -> Result<(), Fault> {
        for (number, sent) in self.in_flight.iter_mut().filter(|(_, sent)| sent.again_at <= now) {
            codec::put(out.buffer(), *number, &sent.body);
            out.frame();
            sent.again_at = now + self.patience;
        }
        Ok(())
    }
}
