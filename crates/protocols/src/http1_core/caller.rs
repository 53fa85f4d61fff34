//! The client's end: requests as fast as a copy, answers matched to them in order.

use std::collections::VecDeque;
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{
    Batch, Connection, Emit, Fault, Metered, Op, Outbox, Reply, Signal, Ticket, Timing, Transfer,
};
use weigh_model::content::{Meter, Phase};

use super::answer::{self, Answer, Body};
use super::chunked::Chunked;
use super::framing::Memory;
use super::template::{Rendered, Template};

/// A client connection.
pub(crate) struct HttpConnection {
    template: Arc<Template>,
    in_flight: VecDeque<Ticket>,
    /// Messages of each request in flight, if a request holds several.
    #[expect(clippy::box_collection, reason = "a connection without batches stays small")]
    batches: Option<Box<VecDeque<u32>>>,
    memory: Memory<Answer>,
    state: State,
    /// Status of the answer whose body is coming in, and whether the connection outlives it.
    status: u16,
    keeps_alive: bool,
    has_heard: bool,
    held: Option<Box<Held>>,
    /// Bytes of the object that is sent in pieces which are still to come.
    rest: u64,
    meter: Meter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unopened,
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    /// No more operations; later input is discarded.
    Closing,
}

/// A body that waits for 100 (Continue).
struct Held {
    body: Vec<u8>,
    since: Nanos,
}

impl HttpConnection {
    pub(crate) fn new(template: Arc<Template>) -> HttpConnection {
        HttpConnection {
            template,
            in_flight: VecDeque::new(),
            batches: None,
            memory: Memory::new(Box::default()),
            state: State::Unopened,
            status: 0,
            keeps_alive: true,
            has_heard: false,
            held: None,
            rest: 0,
            meter: Meter::default(),
        }
    }

    /// Takes the head at the start of `input`; 0 if it is not all there.
    fn take_head(
        &mut self,
        input: &[u8],
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        if let Some((answer, head_bytes)) = self.memory.recall(input) {
            self.begin(answer, emit)?;
            return Ok(head_bytes);
        }
        if !self.has_heard {
            answer::recognise(input)?;
        }
        let Some((answer, head_bytes)) = answer::read(input, self.template.is_head())? else {
            return Ok(0);
        };
        self.has_heard = true;
        if answer.status < 200 {
            self.take_interim(answer.status, out)?;
            return Ok(head_bytes);
        }
        self.memory.keep(&input[..head_bytes], answer);
        self.begin(answer, emit)?;
        Ok(head_bytes)
    }

    /// RFC 9110, section 15.2: interim answers do not count; 100 releases a held body.
    fn take_interim(&mut self, status: u16, out: &mut Outbox) -> Result<(), Fault> {
        match status {
            _ if self.in_flight.is_empty() => Err(unasked(status)),
            101 => Err(Fault::Malformed("it switched protocols without a request".to_owned())),
            100 => {
                self.release(out);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, answer: Answer, emit: Emit<'_>) -> Result<(), Fault> {
        if self.in_flight.is_empty() {
            return Err(unasked(answer.status));
        }
        self.status = answer.status;
        // An answer before the body was requested leaves the server waiting for a body that will
        // not
        // come: such a connection is of no further use.
        self.keeps_alive = answer.keeps_alive && self.held.take().is_none();
        match answer.body {
            Body::Length(0) => self.finish(emit),
            Body::Length(length) => self.state = State::Length(length),
            Body::Chunked => self.state = State::Chunked(Chunked::START),
            Body::UntilClose => self.state = State::UntilClose,
        }
        Ok(())
    }

    fn finish(&mut self, emit: Emit<'_>) {
        let batch = self.batches.as_mut().and_then(|batches| batches.pop_front());
        for ticket in self.in_flight.drain(..self.in_flight.len().min(batch.unwrap_or(1) as usize))
        {
            match self.status {
                status if self.template.confirms(status) => emit(Signal::Done(ticket)),
                status => emit(Signal::Refused(ticket, status)),
            }
        }
        self.state = State::Head;
        if !self.keeps_alive {
            self.state = State::Closing;
            emit(Signal::Closing);
        }
    }

    fn release(&mut self, out: &mut Outbox) {
        if let Some(held) = self.held.take() {
            out.put(&held.body);
            self.meter.wrote(Phase::Messages, held.body.len(), held.body.len());
        }
    }
}

impl Connection for HttpConnection {
    fn open(&mut self, _now: Nanos, _out: &mut Outbox, emit: Emit<'_>) {
        self.state = State::Head;
        emit(Signal::Ready);
    }

    fn room(&self) -> u32 {
        match self.state {
            State::Unopened | State::Closing | State::UntilClose => 0,
            _ => {
                let batches = self.batches.as_ref().map(|batches| batches.len());
                let requests = batches.unwrap_or(self.in_flight.len());
                self.template.pipeline.saturating_sub(requests as u32)
            }
        }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        let before = out.len();
        let payload = match self.template.render(op.body, out.buffer()) {
            Rendered::Whole => op.body.len(),
            Rendered::WithoutBody => 0,
            Rendered::BodyHeld => {
                self.held = Some(Box::new(Held { body: op.body.to_vec(), since: now }));
                0
            }
        };
        self.meter.wrote(Phase::Messages, out.len() - before, payload);
        self.in_flight.push_back(op.ticket);
        Reply::Awaited
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while taken < input.len() {
            let rest = &input[taken..];
            let mut payload = 0;
            let here = match &mut self.state {
                State::Unopened | State::Head => match self.take_head(rest, out, emit)? {
                    0 => break,
                    head_bytes => head_bytes,
                },
                State::Length(length) => {
                    payload = rest.len().min(usize::try_from(*length).unwrap_or(usize::MAX));
                    *length -= payload as u64;
                    if *length == 0 {
                        self.finish(emit);
                    }
                    payload
                }
                State::Chunked(chunked) => {
                    let advance = chunked.advance(rest, &mut |piece| payload += piece.len());
                    let advance = advance.map_err(|flaw| Fault::Malformed(flaw.to_string()))?;
                    if advance.is_whole {
                        self.finish(emit);
                    } else if advance.taken == 0 {
                        break;
                    }
                    advance.taken
                }
                State::UntilClose => {
                    payload = rest.len();
                    payload
                }
                State::Closing => rest.len(),
            };
            self.meter.read(Phase::Messages, here, payload);
            taken += here;
        }
        Ok(taken)
    }

    fn end(&mut self, rest: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        match self.state {
            State::UntilClose => {
                self.finish(emit);
                Ok(())
            }
            State::Unopened | State::Head if rest.is_empty() => Ok(()),
            State::Closing => Ok(()),
            _ => Err(Fault::Ended("in the middle of an answer".to_owned())),
        }
    }

    fn timing(&self) -> Timing {
        if self.template.expects() { Timing::Exact } else { Timing::Untimed }
    }

    /// RFC 9110, section 10.1.1: a client does not wait for 100 (Continue) for ever.
    fn next_wake(&self) -> Option<Nanos> {
        self.held.as_ref().map(|held| held.since + CONTINUE_PATIENCE)
    }

    fn wake(&mut self, _now: Nanos, out: &mut Outbox, _emit: Emit<'_>) -> Result<(), Fault> {
        self.release(out);
        Ok(())
    }

    fn batch(&mut self) -> Option<&mut dyn Batch> {
        self.template.put_batch.is_some().then_some(self)
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

impl Batch for HttpConnection {
    /// Any number of messages goes into one request.
    fn room_together(&mut self) -> u32 {
        if self.room() > 0 { u32::MAX } else { 0 }
    }

    fn send_together(&mut self, ops: &[Op<'_>], _now: Nanos, out: &mut Outbox) -> Reply {
        let before = out.len();
        let mut batch = Vec::new();
        if let Some(put_batch) = self.template.put_batch {
            put_batch(&mut batch, &mut ops.iter().map(|op| op.body));
        }
        self.template.render(&batch, out.buffer());
        let payload = ops.iter().map(|op| op.body.len()).sum();
        self.meter.wrote(Phase::Messages, out.len() - before, payload);
        self.in_flight.extend(ops.iter().map(|op| op.ticket));
        self.batches.get_or_insert_default().push_back(ops.len() as u32);
        Reply::Awaited
    }
}

impl Transfer for HttpConnection {
    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        self.rest = rest + op.body.len() as u64;
        let before = out.len();
        self.template.render_head(self.rest, out.buffer());
        self.meter.wrote(Phase::Messages, out.len() - before, 0);
        self.more(op.body, now, out);
        self.in_flight.push_back(op.ticket);
        Reply::Awaited
    }

    fn more(&mut self, piece: &[u8], _now: Nanos, out: &mut Outbox) {
        self.rest = self.rest.saturating_sub(piece.len() as u64);
        let before = out.len();
        self.template.put_piece(piece, self.rest, out.buffer());
        self.meter.wrote(Phase::Messages, out.len() - before, piece.len());
    }
}

fn unasked(status: u16) -> Fault {
    match status {
        // RFC 9110, section 15.5.9: the server closes an idle connection.
        408 => Fault::Ended("it waited too long for a request (408)".to_owned()),
        _ => Fault::Malformed(format!("an answer ({status}) without a request")),
    }
}

const CONTINUE_PATIENCE: Nanos = Nanos::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<HttpConnection>() <= 192, "{}", size_of::<HttpConnection>());
    }
}
