//! The client of a producer: one endpoint, which is one UDP socket. Requests are matched to
//! responses by their token, and to acknowledgements by their message ID.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, IDENTIFIERS_USED_UP, Metered, Op, Outbox, Reply, Signal, Ticket,
    Timing, Transfer,
};
use weigh_model::content::{Meter, Phase};
use weigh_model::protocol::Seat;

use super::blocks::{self, Blocks};
use super::codec::{Block, Kind, Message, Token, code, number};
use super::hearing::Hearing;
use super::ids::{IDS, MessageIds};
use super::oscore::{Binding, Heard, Scratch, Session};
use super::plan::{BLOCKS_MAX, Plan};
use super::repeats::{Due, Key, Repeats};

/// A client connection.
pub(super) struct CoapClient {
    plan: Arc<Plan>,
    state: State,
    ids: MessageIds,
    repeats: Repeats,
    next_token: u64,
    /// Requests whose answer is expected: they count towards NSTART (section 4.7).
    outstanding: u32,
    /// True while a body is sent block-wise: other requests wait (RFC 7959, section 2.5).
    is_in_blocks: bool,
    /// The request whose body comes in pieces.
    in_pieces: Option<Token>,
    /// A message that is larger than an endpoint can send.
    oversized: Option<Ticket>,
    /// By tokens of this client, so that a peer cannot choose colliding keys.
    requests: FxHashMap<Token, Request>,
    /// Requests that are not repeated: until when their response is expected, in order.
    expected: VecDeque<(Nanos, Token)>,
    /// Requests that are no longer expected to be answered: when they are forgotten, in order.
    overdue: VecDeque<(Nanos, Token)>,
    hearing: Hearing,
    session: Session,
    scratch: Scratch,
    meter: Meter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unopened,
    Open,
    /// Every message ID was used: another endpoint replaces this one.
    UsedUp,
}

/// A request without a response.
struct Request {
    ticket: Ticket,
    id: u16,
    is_expected: bool,
    /// Until when a response is expected, if the message is not repeated.
    deadline: Nanos,
    blocks: Option<Box<Blocks>>,
    /// Bytes of a body in its message.
    payload: usize,
    /// What protected responses to it are bound to.
    binding: Binding,
}

impl Request {
    fn new(ticket: Ticket, blocks: Option<Box<Blocks>>) -> Request {
        Request {
            ticket,
            id: 0,
            is_expected: true,
            deadline: Nanos(0),
            blocks,
            payload: 0,
            binding: Binding::default(),
        }
    }
}

impl CoapClient {
    pub(super) fn new(plan: Arc<Plan>, seat: Seat) -> CoapClient {
        let mut chance = plan.chance(seat);
        let lifetime = match plan.kind {
            Kind::Confirmable => plan.parameters.exchange_lifetime(),
            _ => plan.parameters.non_lifetime(),
        };
        CoapClient {
            state: State::Unopened,
            ids: MessageIds::new(chance.next() as u16, lifetime),
            next_token: chance.next(),
            repeats: Repeats::new(plan.parameters, chance),
            outstanding: 0,
            is_in_blocks: false,
            in_pieces: None,
            oversized: None,
            requests: FxHashMap::default(),
            expected: VecDeque::new(),
            overdue: VecDeque::new(),
            hearing: Hearing::default(),
            session: plan.session(seat),
            scratch: Scratch::default(),
            meter: Meter::default(),
            plan,
        }
    }

    /// Repeats a message, or waits for its response, whichever its type demands.
    fn await_answer(&mut self, id: u16, token: Token, message: &[u8], now: Nanos) {
        match self.plan.kind {
            Kind::Confirmable => self.repeats.hold(Key { peer: 0, id }, token, message, now),
            _ => self.expect(token, now),
        }
    }

    /// Expects the response to a request that is not repeated, or no longer.
    fn expect(&mut self, token: Token, now: Nanos) {
        let deadline = now + self.plan.patience;
        if let Some(request) = self.requests.get_mut(&token) {
            request.deadline = deadline;
        }
        self.expected.push_back((deadline, token));
    }

    /// Begins a request whose body is sent block-wise; returns how much of it was sent.
    fn begin_blocks(
        &mut self,
        ticket: Ticket,
        token: Token,
        blocks: Blocks,
        now: Nanos,
        out: &mut Outbox,
    ) -> usize {
        self.requests.insert(token, Request::new(ticket, Some(Box::new(blocks))));
        (self.outstanding, self.is_in_blocks) = (self.outstanding + 1, true);
        self.send_block(token, now, out)
    }

    /// Sends the block of a request that is in progress, if all of it is known; returns its bytes.
    fn send_block(&mut self, token: Token, now: Nanos, out: &mut Outbox) -> usize {
        let Some(request) = self.requests.get_mut(&token) else { return 0 };
        let Some(blocks) = &request.blocks else { return 0 };
        let Some(payload) = blocks.block().map(<[u8]>::len) else { return 0 };
        let Some(id) = self.ids.take(now) else { return 0 };
        let before = out.len();
        self.plan.put_block(out.buffer(), id, token, blocks);
        (request.id, request.payload) = (id, payload);
        request.binding = self.session.protect(out.buffer(), before);
        out.frame();
        self.await_answer(id, token, &out.bytes()[before..], now);
        payload
    }

    /// A message whose acknowledgement carries no response was received: the response follows.
    fn acknowledged(&mut self, id: u16, now: Nanos) {
        if let Some(token) = self.repeats.take(Key { peer: 0, id }) {
            self.expect(token, now);
        }
    }

    /// The peer rejects a message (section 4.2).
    fn rejected(&mut self, id: u16, emit: Emit<'_>) {
        let token = self.repeats.take(Key { peer: 0, id });
        let by_id = || self.requests.iter().find(|(_, own)| own.id == id).map(|(own, _)| *own);
        let Some(token) = token.or_else(by_id) else { return };
        if let Some(request) = self.end(token) {
            emit(Signal::Refused(request.ticket, RESET));
        }
    }

    /// A response was received. Returns the bytes of a body that were sent next.
    fn answered(
        &mut self,
        message: &Message<'_>,
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> usize {
        let token = message.token;
        let Some(request) = self.requests.get_mut(&token) else { return 0 };
        // A separate response stands for the acknowledgement that it overtook (section 5.2.2).
        self.repeats.take(Key { peer: 0, id: request.id });
        if let Some(blocks) = &mut request.blocks
            && message.code.is_success()
            && blocks.at().has_more
        {
            let wanted = message.options.first(number::BLOCK1).and_then(Block::read);
            if wanted.is_some_and(|wanted| wanted.index != blocks.at().index) {
                return 0;
            }
            blocks.advance(wanted);
            return self.send_block(token, now, out);
        }
        let Some(request) = self.end(token) else { return 0 };
        emit(match message.code.is_success() {
            true => Signal::Done(request.ticket),
            false => Signal::Refused(request.ticket, message.code.number()),
        });
        0
    }

    /// A request is over.
    fn end(&mut self, token: Token) -> Option<Request> {
        let request = self.requests.remove(&token)?;
        self.outstanding -= u32::from(request.is_expected);
        self.is_in_blocks &= request.blocks.is_none();
        while self.expected.front().is_some_and(|(_, token)| !self.requests.contains_key(token)) {
            self.expected.pop_front();
        }
        Some(request)
    }

    /// The response to a request is no longer expected; if it comes all the same, it counts.
    fn give_up(&mut self, token: Token, now: Nanos) {
        let Some(request) = self.requests.get_mut(&token) else { return };
        if !std::mem::take(&mut request.is_expected) {
            return;
        }
        self.outstanding -= 1;
        self.is_in_blocks &= request.blocks.is_none();
        if self.in_pieces == Some(token) {
            // Pieces that follow are discarded, so that nothing could complete it.
            self.requests.remove(&token);
            return;
        }
        self.overdue.push_back((now + self.plan.parameters.exchange_lifetime(), token));
    }

    /// Asks for another endpoint once the IDs of this one are used up and nothing is in progress.
    fn renew(&mut self, emit: Emit<'_>) {
        let is_used_up = self.ids.free() < self.plan.ids_per_message;
        if is_used_up && self.outstanding == 0 && self.state == State::Open {
            self.state = State::UsedUp;
            emit(Signal::Granted(IDENTIFIERS_USED_UP, IDS.into()));
            emit(Signal::Closing);
        }
    }

    /// Handles a message. Returns the bytes of a body that were sent next.
    fn hear(
        &mut self,
        message: &Message<'_>,
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> usize {
        let is_response = match (message.kind, message.code) {
            (Kind::Acknowledgement, code::EMPTY) => {
                self.acknowledged(message.id, now);
                false
            }
            (Kind::Reset, _) => {
                self.rejected(message.id, emit);
                false
            }
            (Kind::Acknowledgement, code) => {
                let own = self.requests.get(&message.token);
                code.is_response() && own.is_some_and(|own| own.id == message.id)
            }
            (Kind::NonConfirmable, code) => code.is_response(),
            (Kind::Confirmable, _) => {
                let is_known = self.requests.contains_key(&message.token);
                let lifetime = self.plan.parameters.exchange_lifetime();
                self.hearing.confirm(message, is_known, now, lifetime, out)
            }
        };
        if is_response { self.answered(message, now, out, emit) } else { 0 }
    }
}

impl Connection for CoapClient {
    fn open(&mut self, _now: Nanos, _out: &mut Outbox, emit: Emit<'_>) {
        self.state = State::Open;
        emit(Signal::Ready);
    }

    fn room(&self) -> u32 {
        if self.state != State::Open || self.is_in_blocks {
            return 0;
        }
        let by_ids = self.ids.free() / self.plan.ids_per_message;
        match self.plan.is_answered {
            true => self.plan.nstart.saturating_sub(self.outstanding).min(by_ids),
            false => by_ids,
        }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        let token = self.plan.token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1);
        if self.plan.carries() && op.body.len() > self.plan.block_bytes() {
            let blocks = Blocks::new(op.body, 0, self.plan.szx());
            let before = out.len();
            let payload = self.begin_blocks(op.ticket, token, blocks, now, out);
            self.meter.wrote(Phase::Messages, out.len() - before, payload);
            return Reply::Awaited;
        }
        // The engine sends nothing without room, and without a free ID there is none.
        let id = self.ids.take(now).unwrap_or_default();
        let before = out.len();
        self.plan.put_request(out.buffer(), id, token, op.body);
        let binding = self.session.protect(out.buffer(), before);
        out.frame();
        let payload = if self.plan.carries() { op.body.len() } else { 0 };
        self.meter.wrote(Phase::Messages, out.len() - before, payload);
        if !self.plan.is_answered {
            return Reply::None;
        }
        self.outstanding += 1;
        let request = Request { id, payload, binding, ..Request::new(op.ticket, None) };
        self.requests.insert(token, request);
        self.await_answer(id, token, &out.bytes()[before..], now);
        Reply::Awaited
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let before = out.len();
        // What comes back is no message of the trial.
        self.meter.read(Phase::Messages, input.len(), 0);
        let mut payload = 0;
        if let Some(outer) = self.hearing.read(input, out)? {
            let mut scratch = std::mem::take(&mut self.scratch);
            let binding = self.requests.get(&outer.token).map(|request| request.binding);
            payload = match self.session.open(outer, binding, None, &mut scratch) {
                Heard::Verified(message) | Heard::Unprotected(message) => {
                    self.hear(&message, now, out, emit)
                }
                Heard::Unverified => {
                    self.hearing.confirm_unverified(&outer, out);
                    0
                }
            };
            self.scratch = scratch;
            self.renew(emit);
        }
        self.meter.wrote(Phase::Messages, out.len() - before, payload);
        Ok(input.len())
    }

    fn timing(&self) -> Timing {
        Timing::Exact
    }

    fn next_wake(&self) -> Option<Nanos> {
        let is_used_up = self.ids.free() < self.plan.ids_per_message;
        let is_due = is_used_up && self.outstanding == 0 || self.oversized.is_some();
        let now = is_due.then_some(Nanos(0));
        let first = |times: &VecDeque<(Nanos, Token)>| times.front().map(|(at, _)| *at);
        let times = [now, self.repeats.next(), first(&self.expected), first(&self.overdue)];
        times.into_iter().flatten().min().filter(|_| self.state == State::Open)
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        while let Some(due) = self.repeats.due(now) {
            match due {
                Due::Again { token, message, .. } => {
                    out.put(message);
                    out.frame();
                    let payload = self.requests.get(&token).map_or(0, |own| own.payload);
                    self.meter.wrote(Phase::Messages, message.len(), payload);
                }
                Due::GivenUp(_, token) => self.give_up(token, now),
            }
        }
        while let Some((_, token)) = self.expected.pop_front_if(|(at, _)| *at <= now) {
            // A later block of the same body has a later deadline.
            if self.requests.get(&token).is_some_and(|request| request.deadline <= now) {
                self.give_up(token, now);
            }
        }
        while let Some((_, token)) = self.overdue.pop_front_if(|(at, _)| *at <= now) {
            self.requests.remove(&token);
        }
        if let Some(ticket) = self.oversized.take() {
            emit(Signal::Refused(ticket, OVERSIZED));
        }
        self.ids.release(now);
        self.renew(emit);
        Ok(())
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        self.plan.carries().then_some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

impl Transfer for CoapClient {
    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        if rest == 0 {
            return self.send(op, now, out);
        }
        let token = self.plan.token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1);
        self.in_pieces = Some(token);
        let whole = op.body.len() as u64 + rest;
        if blocks::count(whole, self.plan.szx()) > u64::from(BLOCKS_MAX) {
            self.oversized = Some(op.ticket);
            return Reply::Awaited;
        }
        let blocks = Blocks::new(op.body, rest, self.plan.szx());
        let before = out.len();
        let payload = self.begin_blocks(op.ticket, token, blocks, now, out);
        self.meter.wrote(Phase::Messages, out.len() - before, payload);
        Reply::Awaited
    }

    fn more(&mut self, piece: &[u8], now: Nanos, out: &mut Outbox) {
        let Some(token) = self.in_pieces else { return };
        let request = self.requests.get_mut(&token);
        let Some(blocks) = request.and_then(|request| request.blocks.as_mut()) else { return };
        let is_awaited = blocks.block().is_none();
        blocks.take(piece);
        if is_awaited {
            let before = out.len();
            let payload = self.send_block(token, now, out);
            self.meter.wrote(Phase::Messages, out.len() - before, payload);
        }
    }

    /// The next piece is needed when the next block is not all there. The pieces of a request that
    /// is over are discarded.
    fn takes_more(&mut self) -> bool {
        let request = self.in_pieces.and_then(|token| self.requests.get(&token));
        let blocks = request.and_then(|request| request.blocks.as_ref());
        blocks.is_none_or(|blocks| blocks.block().is_none())
    }
}

/// The code of [`Signal::Refused`] for a reset; below those of responses.
pub(super) const RESET: u16 = 1;

/// The code of [`Signal::Refused`] for a body of more blocks than an endpoint has message IDs for.
pub(super) const OVERSIZED: u16 = 2;
