//! Several messages in one request.

use weigh_model::Nanos;
use weigh_model::connection::{Batch, Connection, Op, Outbox, Reply};

use super::{Call, Caller, Exchange};

impl<X: Exchange> Batch for Caller<X> {
    /// Any number of messages goes into one request, where the protocol has such requests.
    fn room_together(&mut self) -> u32 {
        match self.room() {
            0 => 0,
            _ if self.exchange.gathers() => u32::MAX,
            room => room,
        }
    }

    fn send_together(&mut self, ops: &[Op<'_>], now: Nanos, out: &mut Outbox) -> Reply {
        let [first, more @ ..] = ops else { return Reply::Awaited };
        if !self.exchange.gathers() {
            for op in ops {
                self.send(op, now, out);
            }
            return Reply::Awaited;
        }
        let before = out.len();
        self.note_deadline(now);
        let more = more.iter().map(|op| op.ticket).collect();
        let call = Call { ticket: first.ticket.0, more, ..Call::default() };
        let (mut length, mut payload) = (0, 0);
        for op in ops {
            let shape = self.exchange.shape(op.body);
            length += shape.bytes;
            payload += shape.payload;
        }
        let put = |exchange: &X, out: &mut Vec<u8>| {
            for op in ops {
                exchange.put(op.body, &exchange.shape(op.body), out);
            }
        };
        self.request(call, first.body, length, put, out.buffer());
        self.count_request(before, payload, out);
        Reply::Awaited
    }
}
