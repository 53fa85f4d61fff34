//! The client of a consumer: registers for notifications (RFC 7641), acknowledges and passes on
//! each one.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Metered, Outbox, Signal, Timing};
use weigh_model::content::{Meter, Phase};
use weigh_model::protocol::Seat;

use super::codec::{Kind, Message, Token, code, number};
use super::hearing::Hearing;
use super::oscore::{Binding, Heard, Scratch, Session, Window};
use super::plan::Plan;
use super::repeats::{Due, Key, Repeats};
use super::seen::{Known, Seen};

/// A consumer's connection.
pub(super) struct CoapObserver {
    plan: Arc<Plan>,
    state: State,
    token: Token,
    id: u16,
    repeats: Repeats,
    hearing: Hearing,
    /// Notifications that are not confirmable, to find duplicates.
    seen: Seen,
    session: Session,
    /// What protected notifications are bound to, and which were received.
    binding: Binding,
    window: Window,
    scratch: Scratch,
    meter: Meter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unopened,
    Registering,
    Registered,
    Leaving,
}

impl CoapObserver {
    pub(super) fn new(plan: Arc<Plan>, seat: Seat) -> CoapObserver {
        let mut chance = plan.chance(seat);
        let session = plan.session(seat);
        CoapObserver {
            state: State::Unopened,
            id: chance.next() as u16,
            token: plan.token(chance.next()),
            repeats: Repeats::new(plan.parameters, chance),
            hearing: Hearing::default(),
            seen: Seen::default(),
            binding: Binding::default(),
            window: session.window(),
            session,
            scratch: Scratch::default(),
            meter: Meter::default(),
            plan,
        }
    }

    /// Removes the protection of a message and handles it; returns the bytes of a body in it.
    fn unwrap(
        &mut self,
        outer: Message<'_>,
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let binding = (outer.token == self.token).then_some(self.binding);
        let is_registering = self.state == State::Registering;
        let payload = match self.session.open(outer, binding, Some(&mut self.window), &mut scratch)
        {
            Heard::Verified(message) => self.hear(&message, now, out, emit)?,
            Heard::Unprotected(message) if is_registering => self.hear(&message, now, out, emit)?,
            // An error that anyone may have sent does not end the observation.
            Heard::Unprotected(_) | Heard::Unverified => {
                self.hearing.confirm_unverified(&outer, out);
                0
            }
        };
        self.scratch = scratch;
        Ok(payload)
    }

    /// Handles a message; returns the bytes of a body in it.
    fn hear(
        &mut self,
        message: &Message<'_>,
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let lifetime = self.plan.parameters.exchange_lifetime();
        let is_own = message.token == self.token;
        match message.kind {
            Kind::Acknowledgement | Kind::Reset => {
                let key = Key { peer: 0, id: message.id };
                let was_pending = self.repeats.take(key).is_some();
                if was_pending && message.kind == Kind::Reset {
                    let reason = "it rejected the registration (RST)".to_owned();
                    return Err(Fault::Refused { code: super::client::RESET, reason });
                }
                // Only the response to the registration comes in an acknowledgement.
                let is_again = self.state != State::Registering;
                if message.code == code::EMPTY || !is_own || is_again {
                    return Ok(0);
                }
            }
            Kind::Confirmable => {
                let is_known = is_own && self.state != State::Leaving;
                if !self.hearing.confirm(message, is_known, now, lifetime, out) {
                    return Ok(0);
                }
            }
            Kind::NonConfirmable => {
                let Message { id, token, code, .. } = *message;
                if !is_own || self.seen.known(id, token, now, lifetime).is_some() {
                    return Ok(0);
                }
                self.seen.note(id, token, Known { code, partial_iv: 0 }, now, lifetime);
            }
        }
        self.take(message, emit)
    }

    /// Takes the response to the registration, or a notification.
    fn take(&mut self, message: &Message<'_>, emit: Emit<'_>) -> Result<usize, Fault> {
        let is_observed = message.options.first(number::OBSERVE).is_some();
        match self.state {
            State::Registering if message.code.is_success() && is_observed => {
                // What the resource was before is no message of this load.
                self.repeats.take(Key { peer: 0, id: self.id });
                self.state = State::Registered;
                emit(Signal::Ready);
                Ok(0)
            }
            State::Registering | State::Registered if !message.code.is_success() => {
                let reason = format!("{} to the registration for notifications", message.code);
                Err(Fault::Refused { code: message.code.number(), reason })
            }
            State::Registering => {
                let reason = "the resource cannot be observed (RFC 7641)".to_owned();
                Err(Fault::Refused { code: message.code.number(), reason })
            }
            State::Registered => {
                emit(Signal::Message { topic: b"", body: message.payload });
                Ok(message.payload.len())
            }
            State::Unopened | State::Leaving => Ok(0),
        }
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Unopened | State::Registering => Phase::SetUp,
            State::Registered => Phase::Messages,
            State::Leaving => Phase::TearDown,
        }
    }
}

impl Connection for CoapObserver {
    fn open(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) {
        let before = out.len();
        self.plan.put_observe(out.buffer(), self.id, self.token, REGISTER);
        self.binding = self.session.protect(out.buffer(), before);
        out.frame();
        let key = Key { peer: 0, id: self.id };
        self.repeats.hold(key, self.token, &out.bytes()[before..], now);
        self.meter.wrote(Phase::SetUp, out.len() - before, 0);
        self.state = State::Registering;
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let (phase, before) = (self.phase(), out.len());
        let payload = match self.hearing.read(input, out)? {
            Some(outer) => self.unwrap(outer, now, out, emit)?,
            None => 0,
        };
        self.meter.read(phase, input.len(), payload);
        self.meter.wrote(phase, out.len() - before, 0);
        Ok(input.len())
    }

    fn close(&mut self, out: &mut Outbox) {
        if self.state == State::Registered {
            let before = out.len();
            self.plan.put_observe(out.buffer(), self.id.wrapping_add(1), self.token, DEREGISTER);
            self.session.protect_end(out.buffer(), before, self.binding);
            out.frame();
            self.meter.wrote(Phase::TearDown, out.len() - before, 0);
        }
        self.state = State::Leaving;
    }

    fn timing(&self) -> Timing {
        Timing::Exact
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.repeats.next().filter(|_| self.state == State::Registering)
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) -> Result<(), Fault> {
        while let Some(due) = self.repeats.due(now) {
            match due {
                Due::Again { message, .. } => {
                    out.put(message);
                    out.frame();
                    self.meter.wrote(Phase::SetUp, message.len(), 0);
                }
                Due::GivenUp(..) => {
                    let what = "it did not answer the registration for notifications";
                    return Err(Fault::Ended(what.to_owned()));
                }
            }
        }
        Ok(())
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

/// Values of Observe (RFC 7641, section 2).
const REGISTER: u32 = 0;
const DEREGISTER: u32 = 1;
