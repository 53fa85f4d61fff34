//! A client's connection of HTTP/2 (RFC 9113): requests in streams of their own, for `http2` and
//! for protocols inside HTTP/2.

mod dialogue;
mod ends;
mod together;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{
    Batch, Connection, Emit, Fault, Metered, Op, Outbox, Reply, STREAM_ERROR, Signal, Ticket,
    Timing,
};
use weigh_model::content::{Meter, Phase};
use weigh_model::load::Pattern;
use weigh_model::protocol::{Dial, Lifetime, Transport};

use super::decoder::{BlockReader, LIST_BYTES_MAX};
use super::encoder::Encoder;
use super::events::{Event, Events, STREAM_MAX};
use super::exchange::Exchange;
use super::fields::AnswerHead;
use super::flow::{Inflow, OWN_WINDOW, Outflow};
use super::frame::{
    self, ACK, Breach, ErrorCode, PING, PREFACE, SETTINGS, code_name, put_go_away, put_headers,
    put_reset, put_settings, put_window_update,
};
use super::peer::{
    ENABLE_PUSH, INITIAL_WINDOW_SIZE, MAX_HEADER_LIST_SIZE, PeerSettings, WINDOW_DEFAULT,
};
use super::recognise::recognise;
use super::request::RequestBlock;
use super::streams::Streams;

/// Makes clients that exchange requests and answers in this way.
pub(crate) fn dial<X: Exchange>(exchange: X, pattern: Pattern) -> Dial {
    let exchange = Arc::new(exchange);
    Dial {
        transport: Transport::Stream,
        lifetime: Lifetime::of(pattern),
        confirms: true,
        is_answered: false,
        producer_of: None,
        make: Box::new(move |_seat| Box::new(Caller::new(Arc::clone(&exchange)))),
    }
}

/// A connection.
struct Caller<X: Exchange> {
    exchange: Arc<X>,
    encoder: Encoder,
    /// Blocks of the requests of one message and of several.
    blocks: [RequestBlock; 2],
    reader: BlockReader<AnswerHead<X::Fields>>,
    events: Events,
    peer: PeerSettings,
    outflow: Outflow<Infallible>,
    inflow: Inflow,
    streams: Streams<Call<X::Answer>>,
    next_stream: u32,
    /// The stream of a dialogue; 0 if none is open.
    dialogue: u32,
    /// Deadlines of streams, the earliest first; streams that have ended may be among them.
    deadlines: VecDeque<(Nanos, u32)>,
    stage: Stage,
    /// True once the server said GOAWAY.
    is_leaving: bool,
    /// Why requests got no answer, if the server said GOAWAY because of an error.
    failure: Option<String>,
    /// Bytes of bodies that wait to be written.
    owed: usize,
    meter: Meter,
}

/// A request whose answer is not complete.
#[derive(Debug, Default)]
struct Call<A> {
    ticket: u32,
    /// Tickets of the further messages of the request; in a dialogue of all that are unanswered.
    more: VecDeque<Ticket>,
    /// True in a dialogue.
    is_dialogue: bool,
    has_head: bool,
    /// Bytes of content that have to follow, if the answer named them.
    left: Option<u64>,
    inflow: Inflow,
    answer: A,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The server's SETTINGS have not arrived.
    Opening,
    /// Requests may be sent.
    Ready,
    /// No more requests, and the engine has been informed.
    Closing,
    /// Closed by this end.
    Closed,
}

/// Why a connection ends.
enum Stop {
    /// The server broke a rule of HTTP/2.
    Breach(Breach),
    /// Anything else.
    Fault(Fault),
}

impl<X: Exchange> Caller<X> {
    fn new(exchange: Arc<X>) -> Caller<X> {
        Caller {
            exchange,
            encoder: Encoder::new(),
            blocks: [RequestBlock::default(), RequestBlock::default()],
            reader: BlockReader::new(),
            events: Events::default(),
            peer: PeerSettings::INITIAL,
            outflow: Outflow::new(),
            inflow: Inflow::default(),
            streams: Streams::new(),
            next_stream: 1,
            dialogue: 0,
            deadlines: VecDeque::new(),
            stage: Stage::Opening,
            is_leaving: false,
            failure: None,
            owed: 0,
            meter: Meter::default(),
        }
    }

    /// True if a stream has never been opened. Clients open odd ones (section 5.1.1).
    fn is_idle(&self, stream: u32) -> bool {
        stream.is_multiple_of(2) || stream >= self.next_stream
    }

    /// Writes a request with `length` bytes of data, which `put` appends.
    #[inline]
    fn request(
        &mut self,
        call: Call<X::Answer>,
        first: &[u8],
        length: usize,
        put: impl FnOnce(&X, &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) {
        let stream = self.next_stream;
        self.next_stream += 2;
        let is_together = !call.more.is_empty();
        let template = self.exchange.template(is_together);
        let (block, encoder) = (&mut self.blocks[usize::from(is_together)], &mut self.encoder);
        put_headers(out, stream, length == 0, self.outflow.frame_bytes_max(), |out| {
            block.put(template, encoder, first, length, out);
        });
        let window = self.outflow.initial();
        if length > 0 && self.outflow.begin(stream, window, length, true, out) {
            put(&self.exchange, out);
        } else if length > 0 {
            let mut data = Vec::with_capacity(length);
            put(&self.exchange, &mut data);
            self.outflow.send(stream, window, data, None, out, |_, never, _| match never {});
        }
        self.streams.insert(stream, call);
    }

    /// Counts what a request wrote since `before`: bodies of `payload` bytes, as far as they do not
    /// wait.
    #[inline]
    fn count_request(&mut self, before: usize, payload: usize, out: &Outbox) {
        self.owed += payload;
        let written = self.owed.saturating_sub(self.outflow.waiting_bytes());
        self.owed -= written;
        self.meter.wrote(Phase::Messages, out.len() - before, written);
    }

    /// Takes one event. Returns how many bytes of it are payload.
    fn take(&mut self, event: Event<'_>, out: &mut Vec<u8>, emit: Emit<'_>) -> Result<usize, Stop> {
        match event {
            Event::Head { stream, block, ends, .. } => {
                self.take_head(stream, &block, ends, out, emit)?;
            }
            Event::Data { stream, data, flow_bytes, ends } => {
                self.inflow.take(0, flow_bytes, out)?;
                return self.take_data(stream, data, flow_bytes, ends, out, emit);
            }
            Event::Reset { stream, code } => {
                let code = STREAM_ERROR + code.min(0xf) as u16;
                match self.streams.remove(stream) {
                    Some(call) => {
                        self.forget(stream);
                        call.refuse(code, emit);
                    }
                    None if self.is_idle(stream) => return Err(idle("RST_STREAM")),
                    None => {}
                }
            }
            Event::Window { stream, by } => {
                match stream {
                    0 => self.outflow.grow(by)?,
                    _ if self.is_idle(stream) => return Err(idle("WINDOW_UPDATE")),
                    _ => {
                        let grown = self.outflow.grow_stream(stream, by.max(1));
                        let is_wrong = by == 0 && self.streams.get_mut(stream).is_some();
                        if is_wrong || grown.is_err() {
                            let what = "a WINDOW_UPDATE that is not allowed";
                            let code = grown.err().unwrap_or(ErrorCode::Protocol);
                            return Err(Breach::new(code, what).into());
                        }
                    }
                }
                self.pump(out);
            }
            Event::Settings(payload) => self.take_settings(payload, out, emit)?,
            Event::Ping(data) => frame::put(out, PING, ACK, 0, data),
            Event::GoAway { last, code, words } => {
                self.take_go_away(last, code, words, out, emit);
            }
            Event::Priority { .. } | Event::Nothing => {}
        }
        Ok(0)
    }

    #[inline]
    fn take_head(
        &mut self,
        stream: u32,
        block: &[u8],
        ends: bool,
        out: &mut Vec<u8>,
        emit: Emit<'_>,
    ) -> Result<(), Stop> {
        // Blocks of streams that are closed are read too: they may change the table.
        let head = AnswerHead::read(&mut self.reader, block)
            .map_err(|flaw| Breach::new(ErrorCode::Compression, flaw.0))?;
        let Some(call) = self.streams.get_mut(stream) else {
            return if self.is_idle(stream) { Err(idle("HEADERS")) } else { Ok(()) };
        };
        if let Some(wrong) = head.malformed {
            return Err(malformed(wrong));
        }
        if call.has_head {
            if !ends || !head.is_trailers() {
                return Err(malformed("fields behind its content are not its trailers"));
            }
            self.exchange.trailers(&mut call.answer, &head.own);
        } else {
            match (head.status, ends) {
                (0, _) => return Err(malformed("it has no :status")),
                (101, _) | (100..=199, true) => return Err(malformed("it is an interim answer")),
                (100..=199, false) => return Ok(()),
                _ => {}
            }
            call.has_head = true;
            let has_content = !self.exchange.is_bodiless() && !matches!(head.status, 204 | 304);
            call.left = head.length.filter(|_| has_content);
            self.exchange.head(&mut call.answer, head).map_err(Stop::Fault)?;
            if ends {
                self.exchange.trailers(&mut call.answer, &head.own);
            }
        }
        if ends { self.finish(stream, out, emit) } else { Ok(()) }
    }

    #[inline]
    fn take_data(
        &mut self,
        stream: u32,
        data: &[u8],
        flow_bytes: usize,
        ends: bool,
        out: &mut Vec<u8>,
        emit: Emit<'_>,
    ) -> Result<usize, Stop> {
        let Some(call) = self.streams.get_mut(stream) else {
            return if self.is_idle(stream) { Err(idle("DATA")) } else { Ok(0) };
        };
        if !call.has_head {
            return Err(malformed("its content stands before its head"));
        }
        if let Some(left) = &mut call.left {
            let after = left.checked_sub(data.len() as u64);
            *left = after.ok_or_else(|| malformed("it is longer than its content-length"))?;
        }
        let payload = self.exchange.data(&mut call.answer, data);
        if !ends {
            call.inflow.take(stream, flow_bytes, out)?;
        }
        if call.is_dialogue {
            self.hear(stream, out, emit)?;
        }
        if ends {
            self.finish(stream, out, emit)?;
        }
        Ok(payload)
    }

    /// An answer is complete.
    #[inline]
    fn finish(&mut self, stream: u32, out: &mut Vec<u8>, emit: Emit<'_>) -> Result<(), Stop> {
        let Some(call) = self.streams.remove(stream) else { return Ok(()) };
        if call.left.is_some_and(|left| left > 0) {
            return Err(malformed("it is shorter than its content-length"));
        }
        if call.is_dialogue || self.owed > 0 && self.outflow.is_waiting(stream) {
            // Section 8.1: the server answered without waiting for the whole request.
            self.forget(stream);
            put_reset(out, stream, ErrorCode::Cancel);
        }
        match self.exchange.end(&call.answer, call.messages()).map_err(Stop::Fault)? {
            Ok(()) => call.tickets().for_each(|ticket| emit(Signal::Done(ticket))),
            Err(code) => call.refuse(code, emit),
        }
        Ok(())
    }

    fn take_settings(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
        emit: Emit<'_>,
    ) -> Result<(), Stop> {
        self.peer.take(payload, true)?;
        self.encoder.limit(self.peer.table_bytes_max);
        self.outflow.limit_frames(self.peer.frame_bytes_max);
        self.outflow.set_initial(self.peer.window)?;
        frame::put(out, SETTINGS, ACK, 0, &[]);
        self.pump(out);
        if self.stage == Stage::Opening {
            self.stage = Stage::Ready;
            if let Some(streams) = self.peer.streams_max {
                emit(Signal::Granted("max_concurrent_streams", streams.into()));
            }
            emit(Signal::Ready);
        }
        Ok(())
    }

    /// Drops what waits of a stream: its bodies will not be written.
    fn forget(&mut self, stream: u32) {
        if stream == self.dialogue {
            self.dialogue = 0;
        }
        self.outflow.forget(stream);
        self.owed = self.owed.min(self.outflow.waiting_bytes());
    }

    fn pump(&mut self, out: &mut Vec<u8>) {
        self.outflow.pump(out, |_, never, _| match never {});
    }

    /// Ends the connection: with GOAWAY where the server broke a rule.
    fn stop(&mut self, stop: Stop, out: &mut Vec<u8>) -> Fault {
        match stop {
            Stop::Fault(fault) => fault,
            Stop::Breach(Breach { code, what }) => {
                put_go_away(out, 0, code);
                Fault::Malformed(format!("{what} ({})", code_name(code as u32)))
            }
        }
    }
}

impl<A> Call<A> {
    /// Number of messages that are unanswered.
    fn messages(&self) -> usize {
        usize::from(!self.is_dialogue) + self.more.len()
    }

    /// Their tickets.
    fn tickets(self) -> impl Iterator<Item = Ticket> {
        (!self.is_dialogue).then_some(Ticket(self.ticket)).into_iter().chain(self.more)
    }

    fn refuse(self, code: u16, emit: Emit<'_>) {
        self.tickets().for_each(|ticket| emit(Signal::Refused(ticket, code)));
    }
}

impl From<Breach> for Stop {
    fn from(breach: Breach) -> Stop {
        Stop::Breach(breach)
    }
}

impl<X: Exchange> Connection for Caller<X> {
    /// Sections 3.3 and 3.4: prior knowledge.
    fn open(&mut self, _now: Nanos, out: &mut Outbox, _emit: Emit<'_>) {
        let out = out.buffer();
        let before = out.len();
        out.extend_from_slice(PREFACE);
        let own = [
            (ENABLE_PUSH, 0),
            (INITIAL_WINDOW_SIZE, OWN_WINDOW),
            (MAX_HEADER_LIST_SIZE, LIST_BYTES_MAX as u32),
        ];
        put_settings(out, &own);
        put_window_update(out, 0, OWN_WINDOW - WINDOW_DEFAULT);
        self.meter.wrote(Phase::SetUp, out.len() - before, 0);
    }

    #[inline]
    fn room(&self) -> u32 {
        if self.stage != Stage::Ready || self.is_leaving || self.next_stream > STREAM_MAX {
            return 0;
        }
        let granted = self.peer.streams_max.unwrap_or(u32::MAX);
        if self.exchange.is_dialogue() {
            return if granted == 0 { 0 } else { self.room_of_dialogue() };
        }
        self.exchange.streams().min(granted).saturating_sub(self.streams.len() as u32)
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        if self.exchange.is_dialogue() {
            return self.say(op, out);
        }
        let before = out.len();
        self.note_deadline(now);
        let call = Call { ticket: op.ticket.0, ..Call::default() };
        let shape = self.exchange.shape(op.body);
        let put = |exchange: &X, out: &mut Vec<u8>| exchange.put(op.body, &shape, out);
        self.request(call, op.body, shape.bytes, put, out.buffer());
        self.count_request(before, shape.payload, out);
        Reply::Awaited
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        if self.stage == Stage::Closed {
            self.meter.read(Phase::TearDown, input.len(), 0);
            return Ok(input.len());
        }
        if self.stage == Stage::Opening && !recognise(input).map_err(Fault::OtherProtocol)? {
            return Ok(0);
        }
        let mut taken = 0;
        loop {
            let before = out.len();
            let next = self.events.next(&input[taken..]).map_err(Stop::from);
            let (result, bytes, phase) = match next {
                Ok(None) => break,
                Ok(Some((event, bytes))) => {
                    let is_set_up = self.stage == Stage::Opening || input[taken + 3] == SETTINGS;
                    let phase = if is_set_up { Phase::SetUp } else { Phase::Messages };
                    (self.take(event, out.buffer(), &mut *emit), bytes, phase)
                }
                Err(stop) => (Err(stop), 0, Phase::Messages),
            };
            let result = result.map_err(|stop| self.stop(stop, out.buffer()));
            if out.len() > before {
                let written = self.owed.saturating_sub(self.outflow.waiting_bytes());
                self.owed -= written;
                self.meter.wrote(phase, out.len() - before, written);
            }
            self.meter.read(phase, bytes, result?);
            taken += bytes;
            if self.streams.is_empty() {
                self.settle(&mut *emit)?;
            }
        }
        self.drop_deadlines();
        Ok(taken)
    }

    fn end(&mut self, _rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        if let Some(why) = self.failure.take() {
            return Err(Fault::Ended(why));
        }
        let mut unanswered = 0;
        self.streams.for_each(|_, call| unanswered += call.messages());
        match unanswered {
            0 => Ok(()),
            1 => Err(Fault::Ended("before it answered a request".to_owned())),
            many => Err(Fault::Ended(format!("before it answered {many} requests"))),
        }
    }

    fn close(&mut self, out: &mut Outbox) {
        self.stage = Stage::Closed;
        let before = out.len();
        self.end_dialogue(out.buffer());
        put_go_away(out.buffer(), 0, ErrorCode::None);
        self.meter.wrote(Phase::TearDown, out.len() - before, 0);
    }

    fn timing(&self) -> Timing {
        if self.exchange.deadline().is_some() { Timing::Exact } else { Timing::Untimed }
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.deadlines.front().map(|(at, _)| *at)
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        let before = out.len();
        self.end_overdue(now, out.buffer(), &mut *emit);
        self.meter.wrote(Phase::Messages, out.len() - before, 0);
        if self.streams.is_empty() { self.settle(emit) } else { Ok(()) }
    }

    fn batch(&mut self) -> Option<&mut dyn Batch> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

fn idle(name: &str) -> Stop {
    Breach::protocol(format!("{name} on a stream that was never opened")).into()
}

fn malformed(what: &str) -> Stop {
    Breach::protocol(format!("an answer is malformed: {what}")).into()
}
