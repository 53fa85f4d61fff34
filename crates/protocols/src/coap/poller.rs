//! A consumer of the pattern `poll`: requests new messages (GET with `since` and `limit`), block by
//! block where an answer is large (RFC 7959, section 2.4), and continues from the cursor in the
//! answer. To set up its session it goes to the end of the list, so that it gets only later
//! messages, like an observer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, IDENTIFIERS_USED_UP, Metered, Outbox, Poll, Signal, Timing,
};
use weigh_model::content::{Meter, Phase, StreamCounts};
use weigh_model::protocol::Seat;

use super::client::RESET;
use super::codec::{Block, Code, Kind, Message, Token, code, number};
use super::hearing::Hearing;
use super::ids::{IDS, MessageIds};
use super::oscore::{Binding, Heard, Scratch, Session};
use super::plan::Plan;
use super::repeats::{Due, Key, Repeats};
use crate::readings_core::Page;

/// Cursors of the clients whose connections have ended, by seat.
pub(super) type Cursors = Arc<Mutex<HashMap<u32, String>>>;

/// A consumer's connection.
pub(super) struct CoapPoller {
    plan: Arc<Plan>,
    cursors: Cursors,
    seat: u32,
    limit: u32,
    cursor: Option<String>,
    step: Step,
    is_open: bool,
    asked: Option<Asked>,
    ids: MessageIds,
    next_token: u64,
    repeats: Repeats,
    hearing: Hearing,
    session: Session,
    scratch: Scratch,
    meter: Meter,
}

/// Purpose of the next answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Find the end of the list.
    FindEnd,
    /// Confirm the end: messages in transit are old.
    ReachEnd,
    /// Read new messages.
    Session,
    /// Every message ID was used: another endpoint replaces this one.
    UsedUp,
}

/// A request in progress.
struct Asked {
    token: Token,
    id: u16,
    /// The blocks so far.
    body: Vec<u8>,
    /// The block that is expected next.
    next: Block,
    /// The representation that the blocks belong to.
    etag: Vec<u8>,
    /// When the request is given up; those of the set-up are repeated until their last repetition.
    deadline: Nanos,
    /// What protected answers are bound to.
    binding: Binding,
}

impl CoapPoller {
    pub(super) fn new(plan: Arc<Plan>, cursors: Cursors, limit: u32, seat: Seat) -> CoapPoller {
        let mut chance = plan.chance(seat);
        let cursor = cursors.lock().unwrap_or_else(PoisonError::into_inner).remove(&seat.index);
        let lifetime = plan.parameters.exchange_lifetime();
        CoapPoller {
            step: if cursor.is_some() { Step::Session } else { Step::FindEnd },
            cursor,
            cursors,
            seat: seat.index,
            limit,
            is_open: false,
            asked: None,
            ids: MessageIds::new(chance.next() as u16, lifetime),
            next_token: chance.next(),
            repeats: Repeats::new(plan.parameters, chance),
            hearing: Hearing::default(),
            session: plan.session(seat),
            scratch: Scratch::default(),
            meter: Meter::default(),
            plan,
        }
    }

    fn phase(&self) -> Phase {
        if self.step == Step::Session { Phase::Messages } else { Phase::SetUp }
    }

    /// Requests what is new.
    fn put_question(&mut self, now: Nanos, out: &mut Outbox) {
        let token = self.plan.token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1);
        let deadline = match self.step {
            Step::Session => now + Nanos(self.plan.patience.0 - self.plan.patience.0 / 20),
            _ => Nanos::NEVER,
        };
        let next = Block { index: 0, has_more: false, szx: self.plan.szx() };
        let (body, etag) = (Vec::new(), Vec::new());
        let binding = Binding::default();
        self.asked = Some(Asked { token, id: 0, body, next, etag, deadline, binding });
        self.put_block_question(now, out);
    }

    /// Requests the block that is expected next.
    fn put_block_question(&mut self, now: Nanos, out: &mut Outbox) {
        let phase = self.phase();
        let limit = match self.step {
            Step::FindEnd => 0,
            Step::ReachEnd => SET_UP_LIMIT,
            Step::Session | Step::UsedUp => self.limit,
        };
        let Some(asked) = &mut self.asked else { return };
        // Without a free ID the request is given up at its deadline.
        let Some(id) = self.ids.take(now) else { return };
        asked.id = id;
        let before = out.len();
        let cursor = self.cursor.as_deref();
        self.plan.put_poll(out.buffer(), id, asked.token, (cursor, limit), asked.next);
        asked.binding = self.session.protect(out.buffer(), before);
        out.frame();
        let message = &out.bytes()[before..];
        self.meter.wrote(phase, message.len(), 0);
        self.repeats.hold(Key { peer: 0, id }, asked.token, message, now);
    }

    /// Removes the protection of a message and handles it; returns how much of it became part of an
    /// answer.
    fn unwrap(
        &mut self,
        outer: Message<'_>,
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let asked = self.asked.as_ref().filter(|asked| asked.token == outer.token);
        let binding = asked.map(|asked| asked.binding);
        let part = match self.session.open(outer, binding, None, &mut scratch) {
            Heard::Verified(message) | Heard::Unprotected(message) => {
                self.hear(&message, now, out, emit)?
            }
            Heard::Unverified => {
                let before = out.len();
                self.hearing.confirm_unverified(&outer, out);
                self.meter.wrote(self.phase(), out.len() - before, 0);
                0
            }
        };
        self.scratch = scratch;
        Ok(part)
    }

    /// Handles a message; returns how much of it became part of an answer.
    fn hear(
        &mut self,
        message: &Message<'_>,
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let is_own = self.asked.as_ref().is_some_and(|asked| asked.token == message.token);
        match message.kind {
            Kind::Acknowledgement if message.code == code::EMPTY => {
                self.repeats.take(Key { peer: 0, id: message.id });
                return Ok(0);
            }
            Kind::Reset => {
                let token = self.repeats.take(Key { peer: 0, id: message.id });
                return match token {
                    Some(_) => self.refused(RESET, now, out, emit).map(|()| 0),
                    None => Ok(0),
                };
            }
            Kind::Acknowledgement => {
                let id = self.asked.as_ref().map(|asked| asked.id);
                if !is_own || id != Some(message.id) || !message.code.is_response() {
                    return Ok(0);
                }
            }
            Kind::NonConfirmable if !is_own || !message.code.is_response() => return Ok(0),
            Kind::NonConfirmable => {}
            Kind::Confirmable => {
                let lifetime = self.plan.parameters.exchange_lifetime();
                let before = out.len();
                let is_new = self.hearing.confirm(message, is_own, now, lifetime, out);
                self.meter.wrote(self.phase(), out.len() - before, 0);
                if !is_new {
                    return Ok(0);
                }
            }
        }
        self.answered(message, now, out, emit)
    }

    /// Takes a response, or a block of it; returns how much of it became part of an answer.
    fn answered(
        &mut self,
        message: &Message<'_>,
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let Some(asked) = &mut self.asked else { return Ok(0) };
        if !message.code.is_success() {
            return self.refused(message.code.number(), now, out, emit).map(|()| 0);
        }
        let block = message.options.first(number::BLOCK2).and_then(Block::read);
        if let Some(block) = block {
            let from = block.index as usize * block.bytes();
            // A copy of a block that is known.
            if from != asked.body.len() {
                return Ok(0);
            }
            let etag = message.options.first(number::ETAG).unwrap_or_default();
            if block.index > 0 && asked.etag != etag {
                let what = "the blocks of an answer have different ETags".to_owned();
                return Err(Fault::Malformed(what));
            }
            asked.etag = etag.to_vec();
        }
        self.repeats.take(Key { peer: 0, id: asked.id });
        if asked.body.len() + message.payload.len() > ANSWER_BYTES_MAX {
            return Err(Fault::Malformed(format!("an answer above {ANSWER_BYTES_MAX} bytes")));
        }
        asked.body.extend_from_slice(message.payload);
        match block {
            Some(block) if block.has_more => {
                asked.next = Block { index: block.index + 1, ..block };
                self.put_block_question(now, out);
            }
            _ => self.finish(now, out, emit)?,
        }
        Ok(message.payload.len())
    }

    /// Handles a complete answer.
    fn finish(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        let Some(asked) = self.asked.take() else { return Ok(()) };
        let page = Page::read(&asked.body).map_err(Fault::Malformed)?;
        if self.step == Step::Session {
            let bytes = page.each(|body| emit(Signal::Message { topic: b"", body }));
            self.meter.read(Phase::Messages, asked.body.len(), bytes);
            self.cursor = Some(page.next());
            emit(Signal::Answered(Ok(())));
            self.renew(emit);
            return Ok(());
        }
        self.meter.read(Phase::SetUp, asked.body.len(), 0);
        let next = page.next();
        let moves = self.cursor.as_ref() != Some(&next);
        if self.step == Step::ReachEnd && page.len() > 0 && !moves {
            let what = format!("its next cursor {next:?} returns the same readings again");
            return Err(Fault::Malformed(what));
        }
        let is_at_end = self.step == Step::ReachEnd && page.len() == 0;
        self.cursor = Some(next);
        if is_at_end {
            self.step = Step::Session;
            emit(Signal::Ready);
        } else {
            self.step = Step::ReachEnd;
            self.put_question(now, out);
        }
        Ok(())
    }

    /// The request was answered with an error.
    fn refused(
        &mut self,
        code: u16,
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        self.discard();
        match self.step {
            Step::Session => {
                emit(Signal::Answered(Err(code)));
                self.renew(emit);
            }
            // A server that does not take a limit of 0 is read from the beginning.
            Step::FindEnd if code != RESET => {
                self.step = Step::ReachEnd;
                self.put_question(now, out);
            }
            _ => {
                let words = Code::new((code / 100) as u8, (code % 100) as u8);
                let reason = format!("it answers {words} to a request for readings");
                return Err(Fault::Refused { code, reason });
            }
        }
        Ok(())
    }

    /// Drops the request in progress.
    fn discard(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.repeats.take(Key { peer: 0, id: asked.id });
            self.meter.read(self.phase(), asked.body.len(), 0);
        }
    }

    /// Asks for another endpoint when half of the IDs are in use: one answer takes as many as it
    /// has blocks.
    fn renew(&mut self, emit: Emit<'_>) {
        if self.ids.free() < IDS / 2 {
            self.step = Step::UsedUp;
            emit(Signal::Granted(IDENTIFIERS_USED_UP, (IDS - self.ids.free()).into()));
            emit(Signal::Closing);
        }
    }
}

impl Drop for CoapPoller {
    /// Cursor for the next connection of this seat.
    fn drop(&mut self) {
        if matches!(self.step, Step::Session | Step::UsedUp)
            && let Some(cursor) = self.cursor.take()
        {
            let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
            cursors.insert(self.seat, cursor);
        }
    }
}

impl Connection for CoapPoller {
    fn open(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        self.is_open = true;
        if self.step == Step::Session {
            emit(Signal::Ready);
        } else {
            self.put_question(now, out);
        }
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let (phase, before) = (self.phase(), out.len());
        let outer = self.hearing.read(input, out)?;
        self.meter.wrote(phase, out.len() - before, 0);
        let part = match outer {
            Some(outer) => self.unwrap(outer, now, out, emit)?,
            None => 0,
        };
        // What became part of an answer counts when the answer is complete.
        self.meter.read(phase, input.len() - part, 0);
        Ok(input.len())
    }

    fn timing(&self) -> Timing {
        Timing::Exact
    }

    fn next_wake(&self) -> Option<Nanos> {
        let deadline = self.asked.as_ref().map(|asked| asked.deadline);
        let deadline = deadline.filter(|at| *at < Nanos::NEVER);
        let times = [self.repeats.next(), deadline];
        times.into_iter().flatten().min().filter(|_| self.is_open)
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        let phase = self.phase();
        if self.asked.as_ref().is_some_and(|asked| asked.deadline <= now) {
            self.discard();
            emit(Signal::Answered(Err(UNANSWERED)));
        }
        while let Some(due) = self.repeats.due(now) {
            match due {
                Due::Again { message, .. } => {
                    out.put(message);
                    out.frame();
                    self.meter.wrote(phase, message.len(), 0);
                }
                Due::GivenUp(..) if self.step == Step::Session => {
                    self.discard();
                    emit(Signal::Answered(Err(UNANSWERED)));
                }
                Due::GivenUp(..) => {
                    let what = "it did not answer a request for readings";
                    return Err(Fault::Ended(what.to_owned()));
                }
            }
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<&mut dyn Poll> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(self)
    }
}

impl Poll for CoapPoller {
    fn ask(&mut self, now: Nanos, out: &mut Outbox) {
        if self.step == Step::Session && self.asked.is_none() {
            self.put_question(now, out);
        }
    }
}

impl Metered for CoapPoller {
    fn meter(&mut self) {
        self.meter.start();
    }

    /// Counts of complete answers, and the part of an incomplete one.
    fn counts(&mut self) -> Option<StreamCounts> {
        let mut counts = self.meter.counts()?;
        let held = self.asked.as_ref().map_or(0, |asked| asked.body.len());
        counts.received.add(self.phase(), held, 0);
        Some(counts)
    }
}

/// Readings in one answer while the session is set up.
const SET_UP_LIMIT: u32 = 1000;

/// The largest answer that is taken: as many blocks as half of the message IDs.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// The error of [`Signal::Answered`] for a request that is not answered within Tmax.
pub(super) const UNANSWERED: u16 = 3;
