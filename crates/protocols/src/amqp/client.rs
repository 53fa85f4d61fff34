//! The client: one connection with one channel, of a producer or a consumer, as a state machine.
//!
//! It is small, because tens of thousands of connections may be idle at the same time: strings are
//! made when they are needed, and the state of messages is made when the session stands.

mod confirms;
mod greeting;
mod incoming;

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, Metered, Op, Outbox, Poll, Reply, Signal, Timing, Transfer,
};
use weigh_model::content::{Meter, Phase};
use weigh_model::protocol::{Role, Seat};

use super::codec::{
    Flaw, Frame, FrameKind, Method, PROTOCOL_HEADER, Short, bits, code, put_body, put_heartbeat,
    read_frame,
};
use super::plan::{CHANNEL, Manner, MessageHead, Plan};
pub(super) use confirms::NACKED;
use confirms::{Confirms, check_of};
use incoming::{Incoming, Purpose};

/// A client connection.
#[derive(Debug)]
pub(super) struct Client {
    plan: Arc<Plan>,
    seat: Seat,
    state: State,
    /// Largest frame of both directions, once it is agreed on.
    frame_max: u32,
    /// Heartbeat timeout in force; 0 for none.
    heartbeat_s: u16,
    last_sent: Nanos,
    last_received: Nanos,
    /// State of messages; none if connections are only held.
    flow: Option<Box<Flow>>,
    meter: Meter,
}

/// State of messages.
#[derive(Debug, Default)]
struct Flow {
    /// What comes before the body of each message of this producer.
    head: MessageHead,
    confirms: Confirms,
    /// Queue of this consumer.
    queue: Box<str>,
    incoming: Incoming,
    /// Deliveries that are not acknowledged, and the tag of the last.
    owed: u16,
    last_tag: u64,
    /// Messages that the current request may still take.
    asked: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before [`Connection::open`].
    New,
    /// The protocol header is out.
    Header,
    /// The credentials are out.
    Tune,
    /// The virtual host is asked for.
    Open,
    /// The channel is asked for.
    Channel,
    /// The method of this step is out.
    Step(Step),
    /// Messages may flow.
    Ready,
    /// `connection.close` is out, after which nothing may follow (section 2.2.4 of the reference).
    Leaving,
}

/// What a client does on its channel before messages flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Exchange,
    Queue,
    Bind,
    Qos,
    Consume,
    Confirm,
}

impl Flow {
    /// Once for each client, apart from what every message goes through.
    #[cold]
    fn made() -> Box<Flow> {
        Box::default()
    }
}

impl Client {
    pub(super) fn new(plan: Arc<Plan>, seat: Seat) -> Client {
        Client {
            seat,
            state: State::New,
            frame_max: plan.tuning.frame_max,
            heartbeat_s: 0,
            last_sent: Nanos(0),
            last_received: Nanos(0),
            flow: None,
            meter: Meter::default(),
            plan,
        }
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Ready => Phase::Messages,
            State::Leaving => Phase::TearDown,
            _ => Phase::SetUp,
        }
    }

    fn hear(&mut self, input: &[u8], out: &mut Outbox, emit: Emit<'_>) -> Result<usize, Fault> {
        if self.state == State::Header && !input.is_empty() && !self.check_greeting(input)? {
            return Ok(0);
        }
        let mut used = 0;
        while let Some((frame, size)) =
            read_frame(&input[used..], self.frame_max).map_err(malformed)?
        {
            used += size;
            let (phase, before) = (self.phase(), out.len());
            let payload = if frame.kind == FrameKind::Body { frame.payload.len() } else { 0 };
            self.meter.read(phase, size, payload);
            let taken = self.take(&frame, out, emit);
            self.meter.wrote(phase, out.len() - before, 0);
            taken?;
        }
        Ok(used)
    }

    fn take(&mut self, frame: &Frame<'_>, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        if self.state == State::Leaving || frame.kind == FrameKind::Heartbeat {
            return Ok(());
        }
        match frame.kind {
            FrameKind::Method => {
                let method = Method::read(frame.payload).map_err(malformed)?;
                self.take_method(frame.channel, &method, out, emit)
            }
            _ if frame.channel != CHANNEL => Err(not_now("a content on another channel")),
            FrameKind::Header => self.take_header(frame.payload, out, emit),
            _ => self.take_body(frame.payload, out, emit),
        }
    }

    fn take_method(
        &mut self,
        channel: u16,
        method: &Method<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        match *method {
            Method::ConnectionClose { reply_code, reply_text, class_id, method_id }
            | Method::ChannelClose { reply_code, reply_text, class_id, method_id } => {
                return Err(self.closed((reply_code, reply_text.0), (class_id, method_id)));
            }
            // The socket makes the sender wait; messages in flight keep their places.
            Method::Blocked { .. } => emit(Signal::Granted("connection_blocked", 1)),
            Method::Unblocked {} => {}
            _ if self.state != State::Ready => return self.greeted(method, out, emit),
            _ if channel != CHANNEL => return Err(not_now(method.name())),
            _ => return self.take_session_method(method, out, emit),
        }
        Ok(())
    }

    fn take_session_method(
        &mut self,
        method: &Method<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let is_consumer = self.seat.role == Role::Consumer;
        let is_polling = matches!(self.plan.consuming.manner, Manner::Get(_));
        let Some(flow) = &mut self.flow else { return Err(not_now(method.name())) };
        flow.incoming.check_idle()?;
        match *method {
            Method::Deliver { delivery_tag, routing_key, .. } if is_consumer && !is_polling => {
                flow.incoming.begin(Purpose::Deliver, delivery_tag, routing_key.0)
            }
            Method::GetOk { delivery_tag, routing_key, message_count, .. }
                if flow.asked.is_some() =>
            {
                let purpose = Purpose::Get(message_count > 0);
                flow.incoming.begin(purpose, delivery_tag, routing_key.0)
            }
            Method::GetEmpty { .. } if flow.asked.is_some() => {
                self.answered(out, emit);
                Ok(())
            }
            Method::Return { routing_key, .. } if self.plan.is_mandatory && !is_consumer => {
                flow.incoming.begin(Purpose::Return, 0, routing_key.0)
            }
            Method::Ack { delivery_tag, bits } if self.plan.confirms && !is_consumer => {
                let is_multiple = bits & bits::MULTIPLE != 0;
                flow.confirms.end(delivery_tag, is_multiple, true, emit)
            }
            Method::Nack { delivery_tag, bits } if self.plan.confirms && !is_consumer => {
                let is_multiple = bits & bits::MULTIPLE != 0;
                flow.confirms.end(delivery_tag, is_multiple, false, emit)
            }
            Method::Cancel { .. } if is_consumer => {
                Err(Fault::Ended("it cancelled the consumer: the queue is gone".to_owned()))
            }
            _ => Err(not_now(method.name())),
        }
    }

    fn take_header(
        &mut self,
        payload: &[u8],
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let is_in_pieces = self.is_in_pieces();
        let Some(flow) = &mut self.flow else { return Err(not_now("a content header")) };
        let bytes = flow.incoming.header(payload)?;
        if is_in_pieces && flow.incoming.purpose == Purpose::Deliver {
            emit(Signal::Head { topic: flow.incoming.topic.as_bytes(), bytes });
        }
        if bytes == 0 {
            self.arrived(&[], out, emit);
        }
        Ok(())
    }

    fn take_body(&mut self, part: &[u8], out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        let is_in_pieces = self.is_in_pieces();
        let Some(flow) = &mut self.flow else { return Err(not_now("a body")) };
        let is_last = flow.incoming.part(part)?;
        if is_in_pieces {
            if !part.is_empty() && flow.incoming.purpose == Purpose::Deliver {
                emit(Signal::Piece(part));
            }
            if is_last {
                self.arrived(&[], out, emit);
            }
        } else if !is_last {
            flow.incoming.keep(part);
        } else if let Some(whole) = flow.incoming.whole(part) {
            self.arrived(&whole, out, emit);
            self.flow.as_mut().map(|flow| flow.incoming.give_back(whole)).unwrap_or_default();
        } else {
            self.arrived(part, out, emit);
        }
        Ok(())
    }

    fn is_in_pieces(&self) -> bool {
        self.plan.consuming.manner == Manner::Pieces
    }

    /// Handles a content that is complete; `body` is empty where it was passed on in pieces.
    fn arrived(&mut self, body: &[u8], out: &mut Outbox, emit: Emit<'_>) {
        let is_in_pieces = self.is_in_pieces();
        let Some(flow) = &mut self.flow else { return };
        let Incoming { purpose, tag, topic, .. } = &flow.incoming;
        let (purpose, tag) = (*purpose, *tag);
        match purpose {
            Purpose::Return => {
                return flow.confirms.returned((!is_in_pieces).then(|| check_of(body)));
            }
            Purpose::Deliver if is_in_pieces => {}
            _ => emit(Signal::Message { topic: topic.as_bytes(), body }),
        }
        self.acknowledge(tag, out);
        if let Purpose::Get(has_more) = purpose {
            self.ask_on(has_more, out, emit);
        }
    }

    fn acknowledge(&mut self, tag: u64, out: &mut Outbox) {
        let consuming = self.plan.consuming;
        let Some(flow) = &mut self.flow else { return };
        if consuming.is_acknowledged {
            flow.owed += 1;
            flow.last_tag = tag;
            if flow.owed >= consuming.ack_every {
                flow.put_ack(out);
            }
        }
    }

    /// Asks for the next message of a request, or ends the request.
    fn ask_on(&mut self, has_more: bool, out: &mut Outbox, emit: Emit<'_>) {
        let Some(flow) = &mut self.flow else { return };
        let left = flow.asked.map_or(0, |left| left.saturating_sub(1));
        if !has_more || left == 0 {
            return self.answered(out, emit);
        }
        flow.asked = Some(left);
        self.put_get(out);
    }

    fn answered(&mut self, out: &mut Outbox, emit: Emit<'_>) {
        if let Some(flow) = &mut self.flow {
            flow.asked = None;
            flow.put_ack(out);
        }
        emit(Signal::Answered(Ok(())));
    }

    fn put_get(&self, out: &mut Outbox) {
        let Some(flow) = &self.flow else { return };
        let bits = if self.plan.consuming.is_acknowledged { 0 } else { bits::GET_NO_ACK };
        Method::Get { reserved_1: 0, queue: Short(&flow.queue), bits }.put(CHANNEL, out.buffer());
    }

    /// Encodes a message of which `rest` bytes follow.
    fn publish(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        let Some(flow) = &mut self.flow else { return Reply::None };
        let (at, before) = (out.len(), out.len());
        let buffer = out.buffer();
        buffer.extend_from_slice(&flow.head.bytes);
        let bytes = op.body.len() as u64 + rest;
        let size_at = at + flow.head.size_at;
        buffer[size_at..size_at + 8].copy_from_slice(&bytes.to_be_bytes());
        put_body(op.body, CHANNEL, self.frame_max, buffer);
        self.meter.wrote(Phase::Messages, out.len() - before, op.body.len());
        self.last_sent = now;
        if !self.plan.confirms {
            return Reply::None;
        }
        let check = if self.plan.is_mandatory && rest == 0 { check_of(op.body) } else { 0 };
        flow.confirms.sent(op.ticket, check);
        Reply::Awaited
    }

    /// Half of the heartbeat timeout: a peer that hears nothing for two of the whole gives up
    /// (section 4.2.7).
    fn beat(&self) -> Nanos {
        Nanos(u64::from(self.heartbeat_s) * 500_000_000)
    }
}

impl Flow {
    /// Acknowledges what is owed.
    fn put_ack(&mut self, out: &mut Outbox) {
        if self.owed > 0 {
            let bits = if self.owed > 1 { bits::MULTIPLE } else { 0 };
            Method::Ack { delivery_tag: self.last_tag, bits }.put(CHANNEL, out.buffer());
            self.owed = 0;
        }
    }
}

impl Connection for Client {
    fn open(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) {
        out.put(&PROTOCOL_HEADER);
        self.meter.wrote(Phase::SetUp, PROTOCOL_HEADER.len(), 0);
        self.state = State::Header;
        self.last_sent = now;
        self.last_received = now;
    }

    fn room(&self) -> u32 {
        match (self.state, self.seat.role) {
            (State::Ready, Role::Producer) => u32::MAX,
            _ => 0,
        }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        self.publish(op, 0, now, out)
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        self.last_received = now;
        let before = out.len();
        let taken = self.hear(input, out, emit);
        if out.len() > before {
            self.last_sent = now;
        }
        taken
    }

    fn end(&mut self, _rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        let what = match self.state {
            State::New | State::Ready | State::Leaving => return Ok(()),
            State::Header => "instead of answering the protocol header",
            State::Tune => "after the credentials: the user or the password may be wrong",
            State::Open => "after connection.open: the virtual host may be wrong",
            State::Channel | State::Step(_) => "before the session was ready",
        };
        Err(Fault::Ended(format!("it closed the connection {what}")))
    }

    fn timing(&self) -> Timing {
        Timing::KeepAlive
    }

    fn next_wake(&self) -> Option<Nanos> {
        let beat = self.beat();
        match self.state {
            State::New | State::Leaving => None,
            _ if beat.0 == 0 => None,
            _ => Some((self.last_sent + beat).min(self.last_received + Nanos(beat.0 * 4))),
        }
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        if self.next_wake().is_none_or(|due| now < due) {
            return Ok(());
        }
        let beat = self.beat();
        if now >= self.last_received + Nanos(beat.0 * 4) {
            let silence = now.since(self.last_received);
            return Err(Fault::Ended(format!(
                "it was silent for {silence}, twice the heartbeat timeout of {} s",
                self.heartbeat_s
            )));
        }
        if now >= self.last_sent + beat {
            // It may stand between the frames of a message, since it is on channel 0.
            let before = out.len();
            put_heartbeat(out.buffer());
            self.meter.wrote(self.phase(), out.len() - before, 0);
            self.last_sent = now;
            // Heartbeats have no answer: silence of the server ends the connection.
            emit(Signal::Alive);
        }
        Ok(())
    }

    fn close(&mut self, out: &mut Outbox) {
        let before = out.len();
        let is_open = matches!(self.state, State::Channel | State::Step(_) | State::Ready);
        if self.state == State::Ready && self.plan.deletes(self.seat) {
            let queue = self.plan.routing.queue(self.seat);
            let bits = bits::QUEUE_DELETE_NO_WAIT;
            Method::QueueDelete { reserved_1: 0, queue: Short(&queue), bits }
                .put(CHANNEL, out.buffer());
        }
        if is_open {
            let close = Method::ConnectionClose {
                reply_code: code::SUCCESS,
                reply_text: Short(""),
                class_id: 0,
                method_id: 0,
            };
            close.put(0, out.buffer());
        }
        self.meter.wrote(Phase::TearDown, out.len() - before, 0);
        if self.state != State::New {
            self.state = State::Leaving;
        }
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        Some(self)
    }

    fn poll(&mut self) -> Option<&mut dyn Poll> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

impl Transfer for Client {
    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        self.publish(op, rest, now, out)
    }

    fn more(&mut self, piece: &[u8], now: Nanos, out: &mut Outbox) {
        let before = out.len();
        put_body(piece, CHANNEL, self.frame_max, out.buffer());
        self.meter.wrote(Phase::Messages, out.len() - before, piece.len());
        self.last_sent = now;
    }
}

impl Poll for Client {
    fn ask(&mut self, now: Nanos, out: &mut Outbox) {
        let Manner::Get(limit) = self.plan.consuming.manner else { return };
        if let Some(flow) = &mut self.flow {
            flow.asked = Some(limit);
        }
        let before = out.len();
        self.put_get(out);
        self.meter.wrote(Phase::Messages, out.len() - before, 0);
        self.last_sent = now;
    }
}

fn malformed(flaw: Flaw) -> Fault {
    Fault::Malformed(flaw.to_string())
}

fn not_now(what: &str) -> Fault {
    Fault::Malformed(format!("a server must not send {what} now"))
}
