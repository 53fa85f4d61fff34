//! The client: one connection with one session and one link, of a producer or a consumer, as a
//! state machine.
//!
//! It is small, because tens of thousands of connections may be idle at the same time: strings are
//! made when they are needed, and the state of messages is made when the session stands.

mod greeting;
mod receiving;
mod sending;

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, Metered, Op, Outbox, Poll, Reply, Signal, Timing,
};
use weigh_model::content::{Meter, Phase};
use weigh_model::protocol::{Role, Seat};

use super::codec::{
    self, AMQP_HEADER, Flaw, Frame, FrameKind, Performative, SASL_HEADER, Sasl, put_empty,
    read_frame,
};
use super::errors;
use super::plan::{CHANNEL, HANDLE, Login, Plan};
use super::window::Windows;
use receiving::{Arrived, Receiving};
use sending::Sending;

/// A client connection.
#[derive(Debug)]
pub(super) struct Client {
    plan: Arc<Plan>,
    seat: Seat,
    stage: Stage,
    /// Largest frame that the server takes.
    frame_max: u32,
    /// Time without output after which an empty frame is due; 0 is never.
    beat: Nanos,
    last_sent: Nanos,
    last_received: Nanos,
    /// State of the session and its link; none before they are there.
    flow: Option<Box<Flow>>,
    meter: Meter,
}

/// State of the session and of its link.
#[derive(Debug, Default)]
struct Flow {
    session: Windows,
    sending: Sending,
    receiving: Receiving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Before [`Connection::open`].
    New,
    /// The header of SASL is out.
    SaslHeader,
    /// The server's mechanisms are due.
    Mechanisms,
    /// The mechanism and its response are out.
    Outcome,
    /// The header of AMQP is out, with everything up to the link.
    Header,
    /// The server's `open` is due.
    Open,
    /// The server's `begin` is due.
    Begin,
    /// The server's `attach` is due.
    Attach,
    /// The first credit of a producer is due.
    Credit,
    /// Messages may flow.
    Ready,
    /// `close` is out, after which nothing may follow (section 2.4.3).
    Leaving,
}

/// Bytes of bodies that one frame brought, and that were sent because of it.
#[derive(Clone, Copy, Debug, Default)]
struct Payload {
    read: usize,
    written: usize,
}

impl Client {
    pub(super) fn new(plan: Arc<Plan>, seat: Seat) -> Client {
        Client {
            seat,
            stage: Stage::New,
            frame_max: codec::FRAME_MIN,
            beat: Nanos(0),
            last_sent: Nanos(0),
            last_received: Nanos(0),
            flow: None,
            meter: Meter::default(),
            plan,
        }
    }

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Ready => Phase::Messages,
            Stage::Leaving => Phase::TearDown,
            _ => Phase::SetUp,
        }
    }

    fn flow(&mut self) -> &mut Flow {
        self.flow.get_or_insert_with(Flow::made)
    }

    fn hear(&mut self, input: &[u8], out: &mut Outbox, emit: Emit<'_>) -> Result<usize, Fault> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            if matches!(self.stage, Stage::SaslHeader | Stage::Header) {
                if !self.take_header(rest)? {
                    return Ok(used);
                }
                self.meter.read(Phase::SetUp, AMQP_HEADER.len(), 0);
                used += AMQP_HEADER.len();
                continue;
            }
            let frame = read_frame(rest, self.plan.frame_max).map_err(malformed)?;
            let Some((frame, size)) = frame else { return Ok(used) };
            used += size;
            let (phase, before) = (self.phase(), out.len());
            let taken = self.take(&frame, out, emit);
            let payload = taken.as_ref().map_or(0, |payload| payload.written);
            self.meter.wrote(phase, out.len() - before, payload);
            self.meter.read(phase, size, taken?.read);
        }
    }

    fn take(
        &mut self,
        frame: &Frame<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<Payload, Fault> {
        if self.stage == Stage::Leaving {
            return Ok(Payload::default());
        }
        let is_sasl = matches!(self.stage, Stage::Mechanisms | Stage::Outcome);
        match (frame.kind, is_sasl) {
            (FrameKind::Sasl, true) => {
                let sasl = Sasl::read(frame.body).map_err(malformed)?;
                self.take_sasl(&sasl, out)?;
                return Ok(Payload::default());
            }
            (FrameKind::Amqp, false) => {}
            _ => return Err(not_now("a frame of another type")),
        }
        if frame.body.is_empty() {
            return Ok(Payload::default());
        }
        let (performative, payload) = Performative::read(frame.body).map_err(malformed)?;
        if self.stage == Stage::Ready {
            return self.take_performative(frame.channel, &performative, payload, out, emit);
        }
        self.take_setup(&performative, out, emit)?;
        Ok(Payload::default())
    }

    fn take_performative(
        &mut self,
        channel: u16,
        performative: &Performative<'_>,
        payload: &[u8],
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<Payload, Fault> {
        let (plan, seat) = (&*self.plan, self.seat);
        let is_close = matches!(performative, Performative::Close(_));
        if channel != CHANNEL && !is_close {
            return Err(not_now("a frame on another channel"));
        }
        let Some(flow) = self.flow.as_deref_mut() else {
            return self.ended(performative).map(|()| Payload::default());
        };
        match performative {
            Performative::Flow(own) if own.handle.is_none_or(|handle| handle == HANDLE) => {
                flow.session.heard(own);
                if own.handle.is_none() {
                    if own.echo {
                        let state = Performative::Flow(flow.session.state());
                        state.put(CHANNEL, out.buffer());
                    }
                } else if seat.role == Role::Producer {
                    flow.sending.heard(own, &flow.session, out);
                } else {
                    flow.receiving.heard(own, &flow.session, out, emit);
                }
                let (sending, session) = (&mut flow.sending, &mut flow.session);
                let written = sending.resume(session, self.frame_max, out);
                return Ok(Payload { read: 0, written });
            }
            Performative::Transfer(own) if seat.role == Role::Consumer => {
                flow.session.received();
                let read = match flow.receiving.take(own, payload, plan)? {
                    Arrived::Part(bytes) => bytes,
                    // What came before was counted as a whole.
                    Arrived::Whole(earlier) => flow
                        .receiving
                        .arrived(payload, plan, &flow.session, out, emit)?
                        .saturating_sub(earlier),
                };
                return Ok(Payload { read, written: 0 });
            }
            Performative::Disposition(own) => match own.role {
                codec::Role::Receiver if seat.role == Role::Producer => {
                    flow.sending.ended(own, out, emit)?;
                }
                codec::Role::Sender if seat.role == Role::Consumer => {}
                _ => return Err(not_now("a disposition of that role")),
            },
            _ => self.ended(performative)?,
        }
        Ok(Payload::default())
    }

    /// The end of a link, session or connection; anything else must not come now.
    fn ended(&self, performative: &Performative<'_>) -> Result<(), Fault> {
        let is_set_up = self.stage < Stage::Ready;
        Err(match performative {
            Performative::Detach(own) => errors::ended("detach", own.error, is_set_up),
            Performative::End(error) => errors::ended("end", *error, is_set_up),
            Performative::Close(error) => errors::ended("close", *error, is_set_up),
            other => not_now(other.name()),
        })
    }

    /// Encodes one message; notes it where it is to be confirmed.
    fn publish(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        let frame_max = self.frame_max;
        let Some(flow) = self.flow.as_deref_mut() else { return Reply::None };
        let before = out.len();
        let payload = flow.sending.send(op, &self.plan, &mut flow.session, frame_max, out);
        self.meter.wrote(Phase::Messages, out.len() - before, payload);
        self.last_sent = now;
        if self.plan.is_settled { Reply::None } else { Reply::Awaited }
    }
}

impl Flow {
    /// Once for each client, apart from what every message goes through.
    #[cold]
    fn made() -> Box<Flow> {
        Box::default()
    }
}

impl Connection for Client {
    fn open(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) {
        (self.last_sent, self.last_received) = (now, now);
        let before = out.len();
        if self.plan.login == Login::None {
            self.put_connection(out);
        } else {
            out.put(&SASL_HEADER);
            self.stage = Stage::SaslHeader;
        }
        self.meter.wrote(Phase::SetUp, out.len() - before, 0);
    }

    fn room(&self) -> u32 {
        match (&self.flow, self.stage, self.seat.role) {
            (Some(flow), Stage::Ready, Role::Producer) => flow.sending.room(&flow.session),
            _ => 0,
        }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        self.publish(op, now, out)
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
        let what = match self.stage {
            Stage::New | Stage::Ready | Stage::Leaving => return Ok(()),
            Stage::SaslHeader => "instead of answering the header of SASL",
            Stage::Mechanisms => "instead of offering mechanisms of SASL",
            Stage::Outcome => "after the credentials: the user or the password may be wrong",
            Stage::Header => "instead of answering the header of AMQP 1.0",
            _ => "before the link was ready",
        };
        Err(Fault::Ended(format!("it closed the connection {what}")))
    }

    fn timing(&self) -> Timing {
        Timing::KeepAlive
    }

    fn next_wake(&self) -> Option<Nanos> {
        if matches!(self.stage, Stage::New | Stage::Leaving) {
            return None;
        }
        let beat = (self.beat.0 > 0).then(|| self.last_sent + self.beat);
        let idle = (self.plan.idle.0 > 0).then(|| self.last_received + self.plan.idle);
        beat.into_iter().chain(idle).min()
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        if self.next_wake().is_none_or(|due| now < due) {
            return Ok(());
        }
        let idle = self.plan.idle;
        if idle.0 > 0 && now >= self.last_received + idle {
            let silence = now.since(self.last_received);
            let what = format!("it was silent for {silence}; amqp1.idle_timeout is {idle}");
            return Err(Fault::Ended(what));
        }
        if self.beat.0 > 0 && now >= self.last_sent + self.beat {
            let before = out.len();
            put_empty(out.buffer());
            self.meter.wrote(self.phase(), out.len() - before, 0);
            self.last_sent = now;
            // Empty frames have no answer: silence of the server ends the connection.
            emit(Signal::Alive);
        }
        Ok(())
    }

    fn close(&mut self, out: &mut Outbox) {
        let before = out.len();
        if self.stage == Stage::Ready {
            self.put_detach(out);
        }
        if self.stage >= Stage::Header && self.stage < Stage::Leaving {
            Performative::Close(None).put(0, out.buffer());
        }
        self.meter.wrote(Phase::TearDown, out.len() - before, 0);
        if self.stage != Stage::New {
            self.stage = Stage::Leaving;
        }
    }

    fn poll(&mut self) -> Option<&mut dyn Poll> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

impl Poll for Client {
    fn ask(&mut self, now: Nanos, out: &mut Outbox) {
        let Some(limit) = self.plan.consuming.asks_for else { return };
        let before = out.len();
        if let Some(flow) = self.flow.as_deref_mut() {
            flow.receiving.ask(limit, &flow.session, out);
        }
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
