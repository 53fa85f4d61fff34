//! The client: one connection of a producer or a subscriber. Answers arrive in the order of the
//! messages, so a queue of messages in flight finds the message of an answer.

use std::collections::VecDeque;
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, Metered, Op, Outbox, Reply, Signal, Ticket, Timing,
};
use weigh_model::content::{Meter, Phase};
use weigh_model::protocol::{Role, Seat};
use weigh_websocket::upgrade::{self, Refusal, Upgrade};
use weigh_websocket::{Broken, Header, Messages, Opcode, close, put_frame};

use super::codec;
use super::plan::Plan;
use super::settings::Confirm;
use crate::chance::Chance;
use crate::requests;

/// A client connection.
pub(super) struct Client {
    plan: Arc<Plan>,
    seat: Seat,
    stage: Stage,
    /// Key of the upgrade.
    key: [u8; 16],
    chance: Chance,
    last_sent: Nanos,
    last_received: Nanos,
    /// When a ping was sent that nothing has answered; [`Nanos::NEVER`] if none was.
    pinged: Nanos,
    /// State of messages, made with the first one.
    flow: Option<Box<Flow>>,
    meter: Meter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before [`Connection::open`].
    New,
    /// The request for the upgrade is sent.
    Upgrading,
    /// Messages may flow.
    Ready,
    /// This end has sent a close frame, or will send nothing more.
    Closed,
}

#[derive(Default)]
struct Flow {
    in_flight: VecDeque<InFlight>,
    messages: Messages,
    /// A message in several frames so far.
    partial: Vec<u8>,
}

struct InFlight {
    ticket: Ticket,
    /// CRC-32 of the body, if it will be echoed.
    check: u32,
}

impl Client {
    pub(super) fn new(plan: Arc<Plan>, seat: Seat) -> Client {
        let mut chance = plan.next_chance();
        let mut key = [0; 16];
        for half in key.chunks_mut(8) {
            half.copy_from_slice(&chance.next().to_be_bytes());
        }
        Client {
            plan,
            seat,
            stage: Stage::New,
            key,
            chance,
            last_sent: Nanos(0),
            last_received: Nanos(0),
            pinged: Nanos::NEVER,
            flow: None,
            meter: Meter::default(),
        }
    }

    fn flow(&mut self) -> &mut Flow {
        self.flow.get_or_insert_default()
    }

    fn mask(&mut self) -> Option<[u8; 4]> {
        Some((self.chance.next() as u32).to_be_bytes())
    }

    /// Sends a control frame.
    fn control(&mut self, opcode: Opcode, payload: &[u8], phase: Phase, out: &mut Outbox) {
        let (before, mask) = (out.len(), self.mask());
        put_frame(out.buffer(), opcode, mask, payload);
        self.meter.wrote(phase, out.len() - before, 0);
    }

    /// Closes with a code, once.
    fn close_with(&mut self, code: Option<u16>, out: &mut Outbox) {
        if std::mem::replace(&mut self.stage, Stage::Closed) != Stage::Closed {
            let payload = code.map(u16::to_be_bytes);
            let payload = payload.as_ref().map_or(&[][..], |bytes| &bytes[..]);
            self.control(Opcode::Close, payload, Phase::TearDown, out);
        }
    }

    /// Sends the violated rule, and nothing afterwards.
    fn broken(&mut self, broken: &Broken, out: &mut Outbox) -> Fault {
        self.close_with(Some(broken.code), out);
        let fix = match broken.code {
            close::TOO_BIG => ": raise websocket.message_bytes_max",
            _ => "",
        };
        Fault::Malformed(format!("WebSocket: {broken}{fix}"))
    }

    /// Takes the answer to the upgrade; 0 if it is not all there.
    fn take_upgrade(&mut self, input: &[u8]) -> Result<usize, Fault> {
        match upgrade::read_answer(input, self.key, &self.plan.subprotocol) {
            Ok(Upgrade::Unfinished) => Ok(0),
            Ok(Upgrade::Done(length, ())) => {
                self.meter.read(Phase::SetUp, length, 0);
                self.stage = Stage::Ready;
                Ok(length)
            }
            Err(refusal) => Err(refused(refusal, input)),
        }
    }

    /// Takes the frame at the start of `input`; `None` if it is not all there.
    fn take_frame(
        &mut self,
        input: &[u8],
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<Option<usize>, Fault> {
        let (header, head_bytes) = match Header::read(input, false) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(broken) => return Err(self.broken(&broken, out)),
        };
        let rules = self.plan.rules;
        if let Err(broken) = self.flow().messages.check(&header, &rules) {
            return Err(self.broken(&broken, out));
        }
        let length = usize::try_from(header.length).unwrap_or(usize::MAX);
        let bytes = head_bytes.saturating_add(length);
        let Some(payload) = input.get(head_bytes..bytes) else { return Ok(None) };
        let is_content = !header.opcode.is_control() && self.seat.role == Role::Consumer;
        let phase = match header.opcode {
            Opcode::Close => Phase::TearDown,
            _ => Phase::Messages,
        };
        self.meter.read(phase, bytes, if is_content { length } else { 0 });
        match header.opcode {
            Opcode::Ping => self.control(Opcode::Pong, payload, Phase::Messages, out),
            Opcode::Pong => self.ponged(payload, emit),
            Opcode::Close => return Err(self.closed_by_server(payload, out)),
            Opcode::Text | Opcode::Binary | Opcode::Continuation => {
                self.take_part(&header, payload, out, emit)?;
            }
        }
        Ok(Some(bytes))
    }

    fn take_part(
        &mut self,
        header: &Header,
        payload: &[u8],
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let flow = self.flow();
        let kind = flow.messages.pass(header);
        if !flow.partial.is_empty() || kind.is_none() {
            flow.partial.extend_from_slice(payload);
        }
        let Some(kind) = kind else { return Ok(()) };
        let whole = std::mem::take(&mut flow.partial);
        let body = if whole.is_empty() { payload } else { &whole[..] };
        if kind == Opcode::Text && std::str::from_utf8(body).is_err() {
            let what = "a text message that is not UTF-8".to_owned();
            return Err(self.broken(&Broken { code: close::ENCODING, what }, out));
        }
        match self.seat.role {
            Role::Producer => self.answered(body, emit),
            Role::Consumer if self.plan.is_in_pairs() => {
                let topic = self.seat.index.to_string();
                emit(Signal::Message { topic: topic.as_bytes(), body });
                Ok(())
            }
            Role::Consumer => {
                emit(Signal::Message { topic: b"", body });
                Ok(())
            }
        }
    }

    /// A message of the server to a producer.
    fn answered(&mut self, body: &[u8], emit: Emit<'_>) -> Result<(), Fault> {
        let confirm = self.plan.confirm;
        // A server that sends every message to every client also sends them to producers.
        if matches!(confirm, Confirm::Nothing | Confirm::Pong) {
            return Ok(());
        }
        let Some(sent) = self.flow().in_flight.pop_front() else {
            let text = "a message that answers none: if the server sends its messages to producers \
                        too, type --set websocket.confirm=pong or none";
            return Err(Fault::Malformed(text.to_owned()));
        };
        if confirm == Confirm::Echo && sent.check != crc32fast::hash(body) {
            let text = "an echo that is not what was sent: type --set websocket.confirm=reply if \
                        any message answers";
            return Err(Fault::Malformed(text.to_owned()));
        }
        let has_none = confirm == Confirm::Reply && self.plan.delivers;
        emit(match has_none && codec::says_no_subscriber(body) {
            true => Signal::NoSubscriber(sent.ticket),
            false => Signal::Done(sent.ticket),
        });
        Ok(())
    }

    /// A pong answers its ping and all earlier ones (RFC 6455, section 5.5.3). One that no ping
    /// asked for is allowed.
    fn ponged(&mut self, payload: &[u8], emit: Emit<'_>) {
        if payload.is_empty() && self.pinged != Nanos::NEVER {
            self.pinged = Nanos::NEVER;
            emit(Signal::Alive);
        }
        if self.plan.confirm != Confirm::Pong {
            return;
        }
        let Some(ticket) = payload.as_array().map(|bytes| Ticket(u32::from_be_bytes(*bytes)))
        else {
            return;
        };
        let in_flight = &mut self.flow().in_flight;
        let Some(place) = in_flight.iter().position(|sent| sent.ticket == ticket) else { return };
        in_flight.drain(..=place).for_each(|sent| emit(Signal::Done(sent.ticket)));
    }

    fn closed_by_server(&mut self, payload: &[u8], out: &mut Outbox) -> Fault {
        match close::read(payload) {
            Ok((code, why)) => {
                let words = close::words(code, why);
                self.close_with(code, out);
                Fault::Ended(words)
            }
            Err(broken) => self.broken(&broken, out),
        }
    }
}

impl Connection for Client {
    fn open(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) {
        let request = self.plan.request(self.seat, self.key);
        out.put(request.as_bytes());
        self.meter.wrote(Phase::SetUp, request.len(), 0);
        self.stage = Stage::Upgrading;
        (self.last_sent, self.last_received) = (now, now);
    }

    /// Messages may follow each other without waiting: what is in flight is the load's window.
    fn room(&self) -> u32 {
        match (self.stage, self.seat.role) {
            (Stage::Ready, Role::Producer) => {
                let in_flight = self.flow.as_ref().map_or(0, |flow| flow.in_flight.len());
                u32::MAX.saturating_sub(in_flight as u32)
            }
            _ => 0,
        }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        let before = out.len();
        let (plan, chance) = (Arc::clone(&self.plan), &mut self.chance);
        let mask = || Some((chance.next() as u32).to_be_bytes());
        codec::put_message(out.buffer(), plan.kind, plan.fragment_bytes, op.body, mask);
        self.meter.wrote(Phase::Messages, out.len() - before, op.body.len());
        self.last_sent = now;
        let check = match plan.confirm {
            Confirm::Nothing => return Reply::None,
            Confirm::Reply => 0,
            Confirm::Echo => crc32fast::hash(op.body),
            Confirm::Pong => {
                self.control(Opcode::Ping, &op.ticket.0.to_be_bytes(), Phase::Messages, out);
                0
            }
        };
        self.flow().in_flight.push_back(InFlight { ticket: op.ticket, check });
        Reply::Awaited
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
        if self.stage == Stage::Closed {
            self.meter.read(Phase::TearDown, input.len(), 0);
            return Ok(input.len());
        }
        self.last_received = now;
        let mut taken = 0;
        if self.stage != Stage::Ready {
            taken = self.take_upgrade(input)?;
            if taken == 0 {
                return Ok(0);
            }
            emit(Signal::Ready);
        }
        while let Some(bytes) = self.take_frame(&input[taken..], out, emit)? {
            taken += bytes;
        }
        Ok(taken)
    }

    fn end(&mut self, rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        let is_inside = self.flow.as_ref().is_some_and(|flow| flow.messages.is_inside());
        let text = match self.stage {
            Stage::Closed => return Ok(()),
            Stage::Ready if is_inside || !rest.is_empty() => "in the middle of a WebSocket message",
            Stage::Ready => "without a WebSocket close frame",
            Stage::New | Stage::Upgrading => {
                "without an answer to the WebSocket upgrade; check port and path, and whether it \
                 speaks WebSocket there"
            }
        };
        Err(Fault::Ended(text.to_owned()))
    }

    fn close(&mut self, out: &mut Outbox) {
        match self.stage {
            Stage::Ready => self.close_with(Some(close::NORMAL), out),
            _ => self.stage = Stage::Closed,
        }
    }

    fn timing(&self) -> Timing {
        Timing::KeepAlive
    }

    fn next_wake(&self) -> Option<Nanos> {
        let interval = self.plan.keep_alive;
        match self.stage {
            _ if interval.0 == 0 => None,
            Stage::New | Stage::Upgrading | Stage::Closed => None,
            Stage::Ready if self.pinged != Nanos::NEVER => {
                Some(self.pinged.max(self.last_received) + interval)
            }
            Stage::Ready => Some(self.last_sent.min(self.last_received) + interval),
        }
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) -> Result<(), Fault> {
        if self.next_wake().is_none_or(|due| now < due) {
            return Ok(());
        }
        if self.pinged != Nanos::NEVER {
            let silence = now.since(self.last_received);
            let text = format!("it answered no WebSocket ping and was silent for {silence}");
            return Err(Fault::Ended(text));
        }
        self.control(Opcode::Ping, b"", Phase::Messages, out);
        (self.pinged, self.last_sent) = (now, now);
        Ok(())
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

fn refused(refusal: Refusal, input: &[u8]) -> Fault {
    match refusal {
        Refusal::OtherProtocol(_) => {
            let start = input[..input.len().min(SHOWN_BYTES_MAX)].escape_ascii();
            let text = || {
                format!(
                    "the answer to the WebSocket upgrade starts with \"{start}\"; check the port, \
                     and whether it speaks WebSocket there"
                )
            };
            Fault::OtherProtocol(requests::answers_in_tls(input).unwrap_or_else(text))
        }
        Refusal::Status(status, reason) => {
            let fix = match status {
                400 => "it may need a subprotocol: type --set websocket.subprotocol=NAME",
                401 | 403 => "it wants credentials or a header before the upgrade: --user, or -H",
                404 => "check the path of the URL, websocket.path and websocket.subscribe_path",
                _ => "check port and path, and whether it speaks WebSocket there",
            };
            let reason = format!("WebSocket upgrade answered {status} {reason}; {fix}");
            Fault::Refused { code: status, reason }
        }
        Refusal::Malformed(what) => Fault::Malformed(format!("WebSocket upgrade: {what}")),
    }
}

const SHOWN_BYTES_MAX: usize = 16;

/// Idle loads hold a hundred thousand clients, of which this is all until they send.
const _: () = assert!(size_of::<Client>() <= 96);
