//! Four methods make a connection.

use std::collections::VecDeque;

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Op, Outbox, Reply, Signal, Ticket};

use super::codec;

#[derive(Default)]
pub struct Client {
    is_ready: bool,
    in_flight: VecDeque<Ticket>,
}

impl Connection for Client {
    fn open(&mut self, _now: Nanos, _out: &mut Outbox, emit: Emit<'_>) {
        self.is_ready = true;
        emit(Signal::Ready);
    }

    fn room(&self) -> u32 {
        if self.is_ready { u32::MAX } else { 0 }
    }

    fn send(&mut self, op: &Op<'_>, _now: Nanos, out: &mut Outbox) -> Reply {
        codec::put(out.buffer(), op.body);
        self.in_flight.push_back(op.ticket);
        Reply::Awaited
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        _out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some((_, bytes)) = codec::read(&input[taken..])? {
            let unasked = || Fault::Malformed("an answer that nobody asked for".to_owned());
            emit(Signal::Done(self.in_flight.pop_front().ok_or_else(unasked)?));
            taken += bytes;
        }
        Ok(taken)
    }
}
