//! A dialogue: one request carries all messages of a connection, and its answer an answer to each
//! of them, in their order.

use weigh_model::connection::{Emit, Fault, Op, Outbox, Reply, Signal};

use super::super::frame::{ErrorCode, put_headers, put_reset};
use super::{Call, Caller, Exchange, Stop};

impl<X: Exchange> Caller<X> {
    /// Messages that may be sent now.
    pub(super) fn room_of_dialogue(&self) -> u32 {
        let unanswered = self.streams.get(self.dialogue).map_or(0, |call| call.more.len());
        self.exchange.streams().saturating_sub(unanswered as u32)
    }

    /// Sends a message in the dialogue, which the first one opens.
    #[inline]
    pub(super) fn say(&mut self, op: &Op<'_>, out: &mut Outbox) -> Reply {
        let before = out.len();
        if self.dialogue == 0 {
            self.begin_dialogue(out.buffer());
        }
        let (stream, exchange) = (self.dialogue, &self.exchange);
        let shape = exchange.shape(op.body);
        let put = |out: &mut Vec<u8>| exchange.put(op.body, &shape, out);
        if self.outflow.send_kept(stream, shape.bytes, put, out.buffer()) {
            self.pump(out.buffer());
        }
        if let Some(call) = self.streams.get_mut(stream) {
            call.more.push_back(op.ticket);
        }
        self.count_request(before, shape.payload, out);
        Reply::Awaited
    }

    fn begin_dialogue(&mut self, out: &mut Vec<u8>) {
        let stream = self.next_stream;
        self.next_stream += 2;
        self.dialogue = stream;
        let template = self.exchange.template(false);
        let (block, encoder) = (&mut self.blocks[0], &mut self.encoder);
        put_headers(out, stream, false, self.outflow.frame_bytes_max(), |out| {
            block.put(template, encoder, &[], 0, out);
        });
        self.outflow.keep(stream, self.outflow.initial());
        self.streams.insert(stream, Call { is_dialogue: true, ..Call::default() });
    }

    /// Ends the messages that were answered since the last call.
    #[inline]
    pub(super) fn hear(
        &mut self,
        stream: u32,
        out: &mut Vec<u8>,
        emit: Emit<'_>,
    ) -> Result<(), Stop> {
        let Some(call) = self.streams.get_mut(stream) else { return Ok(()) };
        for _ in 0..self.exchange.answered(&mut call.answer) {
            let Some(ticket) = call.more.pop_front() else {
                let what = "it sent more answers than it was sent messages: streaming = bidi \
                            needs a method with an answer to each message";
                return Err(Stop::Fault(Fault::Malformed(what.to_owned())));
            };
            emit(Signal::Done(ticket));
        }
        let is_over = self.is_leaving && call.more.is_empty();
        if let Some(code) = self.exchange.flaw(&call.answer) {
            let call = self.streams.remove(stream).unwrap_or_default();
            self.forget(stream);
            put_reset(out, stream, ErrorCode::Cancel);
            call.refuse(code, emit);
        } else if is_over {
            self.end_dialogue(out);
        }
        Ok(())
    }

    /// Reports to the server that no more messages follow.
    pub(super) fn end_dialogue(&mut self, out: &mut Vec<u8>) {
        if self.dialogue != 0 {
            self.outflow.end_kept(self.dialogue, None, out, |_, never, _| match never {});
        }
    }
}
