//! The client: one connection of a producer or a consumer as a state machine.
//!
//! It is small, because tens of thousands of connections may be idle at the same time: the state
//! of messages is made with the first one.

mod answers;
mod flow;
mod greeting;
mod requests;

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{
    Batch, Connection, Emit, Fault, Metered, Op, Outbox, Poll, Reply, Signal, Timing,
};
use weigh_model::content::{Meter, Phase};
use weigh_model::protocol::{Role, Seat};

use super::codec::{self, FromServer, Limits, Message, Publish, headers};
use super::errors;
use super::plan::Plan;
use super::settings::{Confirm, Consume};
use flow::{Flow, Pong};

/// A client connection.
#[derive(Debug)]
pub(super) struct Client {
    plan: Arc<Plan>,
    seat: Seat,
    stage: Stage,
    /// Largest payload that the server accepts, in bytes.
    payload_bytes_max: u32,
    /// Number of this connection, for its inbox.
    number: u32,
    last_sent: Nanos,
    last_received: Nanos,
    /// When a PING went out that nothing has answered; [`Nanos::NEVER`] if none did.
    pinged: Nanos,
    /// True once the server said that it is about to shut down.
    is_lame_duck: bool,
    flow: Option<Box<Flow>>,
    meter: Meter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Before [`Connection::open`].
    New,
    /// The server speaks first: its INFO is due.
    Expecting,
    /// CONNECT and PING are out.
    Greeting,
    /// The stream is being created.
    Stream,
    /// The consumer of JetStream is being created.
    Consumer,
    /// Messages may flow.
    Ready,
    /// The engine closes it.
    Leaving,
}

impl Client {
    pub(super) fn new(plan: Arc<Plan>, seat: Seat) -> Client {
        Client {
            seat,
            stage: Stage::New,
            payload_bytes_max: u32::MAX,
            number: 0,
            last_sent: Nanos(0),
            last_received: Nanos(0),
            pinged: Nanos::NEVER,
            is_lame_duck: false,
            flow: None,
            meter: Meter::default(),
            plan,
        }
    }

    #[inline]
    fn flow(&mut self) -> &mut Flow {
        self.flow.get_or_insert_with(Flow::made)
    }

    fn take(
        &mut self,
        line: FromServer<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        match line {
            FromServer::Info(json) => self.informed(json, out, emit),
            _ if self.stage <= Stage::Expecting => {
                Err(Fault::OtherProtocol("a line of NATS other than INFO".to_owned()))
            }
            FromServer::Message(message) => self.message(&message, out, emit),
            FromServer::Okay => self.confirmed(emit),
            FromServer::Ping => {
                out.put(codec::PONG);
                Ok(())
            }
            FromServer::Pong => self.ponged(out, emit),
            FromServer::Error(text) => self.failed(text, emit),
        }
    }

    /// `+OK` answers each line of a verbose client in turn.
    fn confirmed(&mut self, emit: Emit<'_>) -> Result<(), Fault> {
        match self.flow().okays.pop_front() {
            Some(Some(ticket)) => emit(Signal::Done(ticket)),
            Some(None) => {}
            None => return Err(Fault::Malformed("a +OK that answers nothing".to_owned())),
        }
        Ok(())
    }

    /// A PONG answers each PING in turn.
    fn ponged(&mut self, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        match self.flow().pongs.pop_front() {
            Some(Pong::Greeting) => self.greeted(out, emit),
            Some(Pong::Alive) => {
                emit(Signal::Alive);
                Ok(())
            }
            Some(Pong::Flush { messages, refused, code }) => {
                for index in 0..messages {
                    let Some(ticket) = self.flow().flushed.pop_front() else { break };
                    match index < refused {
                        true => emit(Signal::Refused(ticket, code)),
                        false => emit(Signal::Done(ticket)),
                    }
                }
                Ok(())
            }
            None => Err(Fault::Malformed("a PONG that answers nothing".to_owned())),
        }
    }

    /// `-ERR`. Most end the connection; a refused message does not, and takes the place of its
    /// confirmation.
    fn failed(&mut self, text: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        let text = String::from_utf8_lossy(text);
        let code = errors::code_of_line(&text);
        if self.stage < Stage::Ready {
            let mut reason = text.into_owned();
            if code == errors::AUTHORIZATION {
                reason.push_str("; type --user NAME:PASSWORD, or nats://TOKEN@HOST");
            }
            return Err(Fault::Refused { code, reason });
        }
        if errors::is_about_a_message(code) {
            let flow = self.flow();
            match (flow.okays.pop_front(), flow.pongs.iter_mut().find(|pong| pong.is_flush())) {
                (Some(Some(ticket)), _) => {
                    emit(Signal::Refused(ticket, code));
                    return Ok(());
                }
                // The PONG that follows says which messages it was about.
                (_, Some(pong)) => {
                    pong.refuse(code);
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(Fault::Ended(text.into_owned()))
    }

    fn message(
        &mut self,
        message: &Message<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        match message.sid {
            flow::INBOX_SID => self.answered(message, out, emit),
            flow::INTEREST_SID => {
                self.deliver(message, out, emit);
                Ok(())
            }
            flow::SERVICE_SID => {
                let answer = Publish { subject: message.reply, ..NOTHING };
                answer.put(out.buffer());
                Ok(())
            }
            _ => Err(Fault::Malformed("a message for an unknown subscription".to_owned())),
        }
    }

    /// Passes a message on, and acknowledges it where JetStream waits for that.
    fn deliver(&mut self, message: &Message<'_>, out: &mut Outbox, emit: Emit<'_>) {
        if headers::status(message.headers).is_some_and(|(code, _)| code == headers::CONTROL) {
            // An idle heartbeat, or a question of flow control, which is answered.
            if !message.reply.is_empty() {
                Publish { subject: message.reply, ..NOTHING }.put(out.buffer());
            }
            return;
        }
        if self.seat.role == Role::Consumer {
            emit(Signal::Message { topic: message.subject, body: message.body });
        }
        let is_kept = self.plan.consume != Consume::Core;
        if is_kept && self.plan.acknowledges && !message.reply.is_empty() {
            Publish { subject: message.reply, body: b"+ACK", ..NOTHING }.put(out.buffer());
        }
    }

    /// The first bytes of a server must be those of INFO.
    fn judged(&self, fault: Fault, input: &[u8]) -> Fault {
        match fault {
            Fault::Malformed(_) if self.stage <= Stage::Expecting => {
                let start = &input[..input.len().min(SHOWN_BYTES_MAX)];
                let text = || format!("it starts with \"{}\"", start.escape_ascii());
                Fault::OtherProtocol(crate::requests::answers_in_tls(input).unwrap_or_else(text))
            }
            fault => fault,
        }
    }

    fn ping(&mut self, pong: Pong, now: Nanos, out: &mut Outbox) {
        out.put(codec::PING);
        self.flow().pongs.push_back(pong);
        self.last_sent = now;
    }

    fn phase(&self) -> Phase {
        if self.stage < Stage::Ready { Phase::SetUp } else { Phase::Messages }
    }
}

impl Connection for Client {
    fn open(&mut self, now: Nanos, _out: &mut Outbox, _emit: Emit<'_>) {
        self.stage = Stage::Expecting;
        self.last_sent = now;
        self.last_received = now;
    }

    fn room(&self) -> u32 {
        match (self.stage, self.seat.role) {
            (Stage::Ready, Role::Producer) => {
                let in_flight = self.flow.as_ref().map_or(0, |flow| flow.in_flight());
                u32::MAX.saturating_sub(in_flight as u32)
            }
            _ => 0,
        }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        if op.body.len() > self.payload_bytes_max as usize {
            return self.refuse(op.ticket, errors::MAXIMUM_PAYLOAD, now, out);
        }
        let before = out.len();
        self.publish(op, out);
        self.last_sent = now;
        let reply = match self.plan.confirm {
            _ if self.is_requesting() => Reply::Awaited,
            Confirm::Nothing => Reply::None,
            Confirm::Flush => {
                self.flow().flushed.push_back(op.ticket);
                self.ping(Pong::flush(1), now, out);
                Reply::Awaited
            }
            Confirm::Okay | Confirm::JetStream => Reply::Awaited,
        };
        self.meter.wrote(Phase::Messages, out.len() - before, op.body.len());
        reply
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        if input.is_empty() {
            return Ok(0);
        }
        if self.stage == Stage::Leaving {
            self.meter.read(Phase::TearDown, input.len(), 0);
            return Ok(input.len());
        }
        self.last_received = now;
        self.pinged = Nanos::NEVER;
        self.report_unsendable(emit);
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let read = codec::read_server(rest, &Limits::CLIENT);
            let read = read.map_err(|flaw| self.judged(flaw.into(), rest))?;
            let Some((line, bytes)) = read else { break };
            used += bytes;
            let payload = match &line {
                FromServer::Message(message) if self.brings(message) => message.body.len(),
                _ => 0,
            };
            let (phase, before) = (self.phase(), out.len());
            self.meter.read(phase, bytes, payload);
            let taken = self.take(line, out, emit);
            if out.len() > before {
                self.last_sent = now;
            }
            self.meter.wrote(phase, out.len() - before, 0);
            taken?;
        }
        Ok(used)
    }

    fn end(&mut self, _rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        match self.stage {
            Stage::Ready if self.is_lame_duck => Err(Fault::Ended(LAME_DUCK.to_owned())),
            Stage::Ready | Stage::Leaving => Ok(()),
            Stage::New | Stage::Expecting => {
                Err(Fault::Ended("it closed the connection instead of sending INFO".to_owned()))
            }
            _ => Err(Fault::Ended("it closed the connection before it was ready".to_owned())),
        }
    }

    fn close(&mut self, _out: &mut Outbox) {
        self.stage = Stage::Leaving;
    }

    fn timing(&self) -> Timing {
        Timing::KeepAlive
    }

    fn next_wake(&self) -> Option<Nanos> {
        let interval = self.plan.keep_alive;
        match self.stage {
            Stage::New | Stage::Leaving => None,
            Stage::Expecting => Some(self.last_sent + GREETING_WITHIN),
            _ if interval.0 == 0 => None,
            _ if self.pinged != Nanos::NEVER => Some(self.pinged + interval),
            _ => Some(self.last_sent.min(self.last_received) + interval),
        }
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) -> Result<(), Fault> {
        if self.next_wake().is_none_or(|due| now < due) {
            return Ok(());
        }
        if self.stage == Stage::Expecting {
            let text = format!("it sends no INFO within {GREETING_WITHIN}; a NATS server does");
            return Err(Fault::OtherProtocol(text));
        }
        if self.pinged != Nanos::NEVER {
            let silence = now.since(self.last_received);
            let text = format!("stale: it answered no PING and was silent for {silence}");
            return Err(Fault::Ended(text));
        }
        let before = out.len();
        self.ping(Pong::Alive, now, out);
        self.pinged = now;
        self.meter.wrote(self.phase(), out.len() - before, 0);
        Ok(())
    }

    fn batch(&mut self) -> Option<&mut dyn Batch> {
        let is_flushed = self.plan.confirm == Confirm::Flush && !self.is_requesting();
        is_flushed.then_some(self)
    }

    fn poll(&mut self) -> Option<&mut dyn Poll> {
        let polls = self.plan.polling.is_some() && self.seat.role == Role::Consumer;
        polls.then_some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

/// Several messages and one PING behind them: its PONG confirms all.
impl Batch for Client {
    fn room_together(&mut self) -> u32 {
        self.room()
    }

    fn send_together(&mut self, ops: &[Op<'_>], now: Nanos, out: &mut Outbox) -> Reply {
        let mut messages = 0;
        for op in ops {
            if op.body.len() > self.payload_bytes_max as usize {
                self.flow().unsendable.push((op.ticket, errors::MAXIMUM_PAYLOAD));
                continue;
            }
            let before = out.len();
            self.publish(op, out);
            self.meter.wrote(Phase::Messages, out.len() - before, op.body.len());
            self.flow().flushed.push_back(op.ticket);
            messages += 1;
        }
        self.ping(Pong::flush(messages), now, out);
        self.meter.wrote(Phase::Messages, codec::PING.len(), 0);
        Reply::Awaited
    }
}

impl Poll for Client {
    fn ask(&mut self, now: Nanos, out: &mut Outbox) {
        let limit = self.plan.polling.map_or(1, |polling| u64::from(polling.limit));
        let before = out.len();
        self.request_messages(limit, out);
        self.last_sent = now;
        self.meter.wrote(Phase::Messages, out.len() - before, 0);
    }
}

/// A message without anything.
const NOTHING: Publish<'static> = Publish { subject: b"", reply: b"", headers: b"", body: b"" };

/// A load stays with the server it was given, to its end.
const LAME_DUCK: &str = "it closed the connection after it had said that it shuts down (lame duck \
                         mode); other servers are not tried: type the URL of another one";

/// A server sends INFO at once; on the slowest path it is here by then.
const GREETING_WITHIN: Nanos = Nanos::from_secs(10);

const SHOWN_BYTES_MAX: usize = 24;

/// Idle loads hold a hundred thousand clients, of which this is all until they send.
const _: () = assert!(size_of::<Client>() <= 80);
