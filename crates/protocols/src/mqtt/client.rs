//! The client: one connection of a producer or a consumer as a state machine.
//!
//! It is small, because tens of thousands of connections may be idle at the same time: strings are
//! made when they are needed, and the state of messages is made with the first one.

mod greeting;
mod partial;
mod pieces;

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{
    Connection, Emit, Fault, Metered, Op, Outbox, Reply, Signal, Ticket, Timing, Transfer,
};
use weigh_model::content::{Meter, Phase};
use weigh_model::protocol::{Role, Seat};

use super::codec::{self, Ack, AckKind, Disconnect, Id, Limits, Packet, Publish, Qos, Version};
use super::plan::Plan;
use super::slots::{IdSet, Slots};
use super::terms::{ALIASES_TAKEN, ended, name_of};

/// A client connection.
#[derive(Debug)]
pub(super) struct Client {
    plan: Arc<Plan>,
    seat: Seat,
    state: State,
    /// QoS in force: the requested one, or less if the server grants less.
    qos: Qos,
    retain: bool,
    /// True if the server takes topic aliases and the plan uses them.
    may_alias: bool,
    /// True once the server knows the alias.
    is_aliased: bool,
    /// Most messages in flight.
    window: u16,
    /// Largest packet the server takes, in bytes.
    packet_bytes_max: u32,
    /// Added to the numbers of [`Flow::in_flight`] to give packet identifiers.
    id_base: u16,
    keep_alive_s: u16,
    says_qos_was_lowered: bool,
    last_sent: Nanos,
    last_received: Nanos,
    /// When a ping went out that nothing has answered; [`Nanos::NEVER`] if none did.
    pinged: Nanos,
    /// State of messages; none if connections are only held.
    flow: Option<Box<Flow>>,
    meter: Meter,
}

/// State of messages, and what is open on a connection.
#[derive(Debug, Default)]
struct Flow {
    /// Topic of this producer.
    topic: Box<str>,
    in_flight: Slots<InFlight>,
    /// QoS 2 messages received and not yet released.
    unreleased: IdSet,
    /// Topics by alias, as the server set them; index 0 is alias 1.
    aliases: Vec<Box<str>>,
    /// Operations that could not be sent, with the reason.
    unsendable: Vec<(Ticket, u16)>,
    /// The message that is being sent in pieces.
    outgoing: Option<Box<partial::Outgoing>>,
    /// The message that is coming in in pieces.
    incoming: Option<Box<partial::Incoming>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before [`Connection::open`].
    New,
    /// CONNECT is out.
    Connecting,
    /// CONNACK is in, SUBSCRIBE is out.
    Subscribing,
    /// Messages may flow.
    Ready,
    /// DISCONNECT is out: nothing may follow it (section 3.14.4).
    Leaving,
}

/// A published message that is not yet confirmed.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    ticket: Ticket,
    has_no_subscriber: bool,
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
            qos: plan.qos,
            retain: plan.retain,
            may_alias: false,
            is_aliased: false,
            window: plan.session.window,
            packet_bytes_max: codec::PACKET_BYTES_MAX,
            id_base: 0,
            keep_alive_s: plan.session.keep_alive_s,
            says_qos_was_lowered: false,
            last_sent: Nanos(0),
            last_received: Nanos(0),
            pinged: Nanos::NEVER,
            flow: None,
            meter: Meter::default(),
            plan,
        }
    }

    #[inline]
    fn flow(&mut self) -> &mut Flow {
        self.flow.get_or_insert_with(Flow::made)
    }

    fn take(&mut self, packet: Packet<'_>, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        match (self.state, packet) {
            (State::Leaving, _) => Ok(()),
            (State::Connecting, Packet::Connack(connack)) => self.connected(&connack, out, emit),
            (State::New | State::Connecting, _) => {
                Err(Fault::OtherProtocol("an MQTT packet other than CONNACK".to_owned()))
            }
            (_, Packet::Publish(publish)) => self.message(&publish, out, emit),
            (_, Packet::Ack(ack)) => {
                self.acknowledged(&ack, out, emit);
                Ok(())
            }
            (State::Subscribing, Packet::Suback(suback)) => self.subscribed(&suback, emit),
            (_, Packet::Pingresp) => {
                emit(Signal::Alive);
                Ok(())
            }
            (_, Packet::Disconnect(disconnect)) => Err(Fault::Ended(ended(&disconnect))),
            (_, other) => Err(Fault::Malformed(format!(
                "a server must not send {} now (MQTT section 4.13)",
                name_of(&other)
            ))),
        }
    }

    fn message(
        &mut self,
        publish: &Publish<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let (is_new, topic) = self.admit(publish)?;
        if is_new {
            emit(Signal::Message { topic: topic.as_bytes(), body: publish.body });
        }
        self.acknowledge(publish.qos, publish.packet_id, out);
        Ok(())
    }

    /// Whether a message is for this consumer and was not here before, and its topic.
    fn admit<'p>(&'p mut self, publish: &Publish<'p>) -> Result<(bool, &'p str), Fault> {
        let alias = publish.properties.number(Id::TopicAlias);
        if let Some(alias) = alias {
            self.learn(alias as usize, publish.topic)?;
        }
        let is_new = match publish.qos {
            Qos::ExactlyOnce => self.flow().unreleased.insert(publish.packet_id),
            _ => true,
        };
        let topic = match (publish.topic, alias) {
            ("", Some(alias)) => {
                let aliases = self.flow.as_ref().map_or(&[][..], |flow| &flow.aliases);
                aliases.get(alias as usize - 1).map_or("", |topic| topic)
            }
            (topic, _) => topic,
        };
        Ok((is_new && self.seat.role == Role::Consumer, topic))
    }

    /// Acknowledges a message as its QoS asks (section 4.3).
    fn acknowledge(&self, qos: Qos, packet_id: u16, out: &mut Outbox) {
        let kind = match qos {
            Qos::AtMostOnce => return,
            Qos::AtLeastOnce => AckKind::Puback,
            Qos::ExactlyOnce => AckKind::Pubrec,
        };
        Ack::new(kind, packet_id, 0).encode(self.plan.version, out.buffer());
    }

    /// Stores what `alias` stands for, or checks that it is known (section 3.3.2.3.4).
    fn learn(&mut self, alias: usize, topic: &str) -> Result<(), Fault> {
        let maximum = if self.plan.uses_aliases { ALIASES_TAKEN as usize } else { 0 };
        let aliases = &mut self.flow().aliases;
        let is_known = aliases.get(alias - 1).is_some_and(|known| !known.is_empty());
        if alias > maximum || (topic.is_empty() && !is_known) {
            let what = format!("unknown topic alias {alias} (MQTT section 3.3.2.3.4)");
            return Err(Fault::Malformed(what));
        }
        if !topic.is_empty() {
            if aliases.len() < alias {
                aliases.resize(alias, Box::default());
            }
            aliases[alias - 1] = topic.into();
        }
        Ok(())
    }

    fn acknowledged(&mut self, ack: &Ack<'_>, out: &mut Outbox, emit: Emit<'_>) {
        let version = self.plan.version;
        let id = self.slot_of(ack.packet_id);
        match ack.kind {
            AckKind::Puback => {
                let Some(done) = self.flow().in_flight.remove(id) else { return };
                if self.qos == Qos::ExactlyOnce && !self.says_qos_was_lowered {
                    // RabbitMQ answers QoS 2 with the acknowledgement of QoS 1.
                    self.says_qos_was_lowered = true;
                    emit(Signal::Granted("maximum_qos", 1));
                }
                emit(outcome(done.ticket, ack.reason, ack.reason == NO_SUBSCRIBER));
            }
            AckKind::Pubrec if ack.reason >= 0x80 => {
                let Some(done) = self.flow().in_flight.remove(id) else { return };
                emit(outcome(done.ticket, ack.reason, false));
            }
            AckKind::Pubrec => {
                let reason = match self.flow().in_flight.get_mut(id) {
                    Some(entry) => {
                        entry.has_no_subscriber |= ack.reason == NO_SUBSCRIBER;
                        0
                    }
                    None => ID_NOT_FOUND,
                };
                Ack::new(AckKind::Pubrel, ack.packet_id, reason).encode(version, out.buffer());
            }
            AckKind::Pubcomp => {
                let Some(done) = self.flow().in_flight.remove(id) else { return };
                emit(outcome(done.ticket, ack.reason, done.has_no_subscriber));
            }
            AckKind::Pubrel => {
                let is_known = self.flow().unreleased.remove(ack.packet_id);
                let reason = if is_known { 0 } else { ID_NOT_FOUND };
                Ack::new(AckKind::Pubcomp, ack.packet_id, reason).encode(version, out.buffer());
            }
        }
    }

    fn slot_of(&self, packet_id: u16) -> u16 {
        ((u32::from(packet_id) - 1 + 65_535 - u32::from(self.id_base)) % 65_535 + 1) as u16
    }

    /// Refuses an operation that cannot be sent. The refusal is reported with the next bytes from
    /// the server, so the server is asked for some.
    fn refuse(&mut self, ticket: Ticket, reason: u16, out: &mut Outbox) -> Reply {
        self.flow().unsendable.push((ticket, reason));
        self.ping(out);
        Reply::Awaited
    }

    fn ping(&mut self, out: &mut Outbox) {
        let before = out.len();
        codec::encode_pingreq(out.buffer());
        self.meter.wrote(Phase::Messages, out.len() - before, 0);
    }

    fn limits(&self) -> Limits {
        match self.plan.session.maximum_packet_size {
            0 => Limits::default(),
            packet_bytes_max => Limits { packet_bytes_max },
        }
    }

    fn is_setting_up(&self) -> bool {
        matches!(self.state, State::New | State::Connecting | State::Subscribing)
    }

    /// True while part of a message has arrived.
    fn is_in_message(&self) -> bool {
        self.flow.as_ref().is_some_and(|flow| flow.incoming.is_some())
    }

    /// Handles complete packets, and messages in pieces where they arrive so.
    fn hear(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        if input.is_empty() {
            return Ok(0);
        }
        self.last_received = now;
        self.pinged = Nanos::NEVER;
        if let Some(flow) = &mut self.flow {
            for (ticket, reason) in flow.unsendable.drain(..) {
                emit(Signal::Refused(ticket, reason));
            }
        }
        if self.state == State::Connecting {
            self.check_greeting(input)?;
        }
        let staged = out.len();
        let limits = self.limits();
        let mut used = 0;
        loop {
            let rest = &input[used..];
            if self.plan.in_pieces && self.seat.role == Role::Consumer {
                let pieces = self.take_pieces(rest, &limits, out, emit)?;
                used += pieces;
                if pieces > 0 {
                    continue;
                }
            }
            let packet = codec::decode(rest, self.plan.version, &limits);
            match packet.map_err(|fault| Fault::Malformed(fault.to_string()))? {
                Some((packet, size)) if !self.is_in_message() => {
                    used += size;
                    let (is_set_up, before) = (self.is_setting_up(), out.len());
                    let (phase, payload) = match &packet {
                        Packet::Publish(publish) => (Phase::Messages, publish.body.len()),
                        Packet::Disconnect(_) => (Phase::TearDown, 0),
                        _ if is_set_up => (Phase::SetUp, 0),
                        _ => (Phase::Messages, 0),
                    };
                    self.meter.read(phase, size, payload);
                    let taken = self.take(packet, out, emit);
                    // The answer to CONNACK is SUBSCRIBE.
                    let phase = if is_set_up { Phase::SetUp } else { Phase::Messages };
                    self.meter.wrote(phase, out.len() - before, 0);
                    taken?;
                }
                _ => break,
            }
        }
        if out.len() > staged {
            self.last_sent = now;
        }
        Ok(used)
    }

    /// Encodes a message of which `rest` bytes follow.
    fn publish(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        let plan = &self.plan;
        let Flow { topic, in_flight, .. } = &mut **self.flow.get_or_insert_with(Flow::made);
        let numbered = plan.numbers_topics.then(|| plan.numbered(topic, op.body));
        let mut publish = plan.publish(numbered.as_deref().unwrap_or(topic), op.body);
        publish.qos = self.qos;
        publish.retain = self.retain;
        if self.may_alias {
            publish.properties = plan.publish_properties(true);
            if self.is_aliased {
                publish.topic = "";
            }
        }
        let size = publish.size(plan.version) as u64 + rest;
        if size > u64::from(self.packet_bytes_max) {
            return self.refuse(op.ticket, PACKET_TOO_LARGE, out);
        }
        let reply = match self.qos {
            Qos::AtMostOnce => Reply::None,
            _ => {
                let entry = InFlight { ticket: op.ticket, has_no_subscriber: false };
                let Some(slot) = in_flight.insert(entry) else {
                    return self.refuse(op.ticket, RECEIVE_MAXIMUM_EXCEEDED, out);
                };
                let id = (u32::from(slot) - 1 + u32::from(self.id_base)) % 65_535 + 1;
                publish.packet_id = id as u16;
                Reply::Awaited
            }
        };
        let before = out.len();
        publish.encode_head(plan.version, rest as usize, out.buffer());
        out.put(op.body);
        self.meter.wrote(Phase::Messages, out.len() - before, op.body.len());
        self.is_aliased = self.may_alias;
        self.last_sent = now;
        reply
    }
}

impl Client {
    /// The keep-alive in force; 0 for none.
    fn keep_alive(&self) -> Nanos {
        Nanos::from_secs(u64::from(self.keep_alive_s))
    }
}

impl Connection for Client {
    fn open(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) {
        let before = out.len();
        self.connect(out);
        self.meter.wrote(Phase::SetUp, out.len() - before, 0);
        self.state = State::Connecting;
        self.last_sent = now;
        self.last_received = now;
    }

    fn room(&self) -> u32 {
        match (self.state, self.seat.role, self.qos) {
            (State::Ready, Role::Producer, Qos::AtMostOnce) => u32::MAX,
            (State::Ready, Role::Producer, _) => {
                let in_flight = self.flow.as_ref().map_or(0, |flow| flow.in_flight.len());
                u32::from(self.window).saturating_sub(in_flight as u32)
            }
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
        // Nothing may stand between the pieces of a message: it is kept until they are all out.
        let outgoing = self.flow.as_mut().and_then(|flow| flow.outgoing.take());
        if let Some(mut outgoing) = outgoing {
            let result = self.hear(input, now, &mut outgoing.kept, emit);
            self.flow().outgoing = Some(outgoing);
            return result;
        }
        self.hear(input, now, out, emit)
    }

    fn end(&mut self, _rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        match (self.state, self.plan.version) {
            (State::Ready | State::Leaving, _) => Ok(()),
            (State::Connecting, Version::V5) => Err(Fault::Ended(
                "it closed the connection instead of answering CONNECT; if it speaks only 3.1.1, \
                 set mqtt.version to 3.1.1"
                    .to_owned(),
            )),
            _ => Err(Fault::Ended("it closed the connection before it was ready".to_owned())),
        }
    }

    fn timing(&self) -> Timing {
        Timing::KeepAlive
    }

    fn next_wake(&self) -> Option<Nanos> {
        let interval = self.keep_alive();
        match self.state {
            State::New | State::Leaving => None,
            _ if interval.0 == 0 => None,
            _ if self.pinged != Nanos::NEVER => Some(self.pinged + Nanos(interval.0 / 2)),
            _ => {
                let ahead = PING_AHEAD.min(Nanos(interval.0 / PING_AHEAD_SHARE));
                let is_sending = self.flow.as_ref().is_some_and(|flow| flow.outgoing.is_some());
                // A message in pieces shows as well as a ping that the client is there.
                let since = match is_sending {
                    true => self.last_sent,
                    false => self.last_sent.min(self.last_received),
                };
                Some(since + interval - ahead)
            }
        }
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) -> Result<(), Fault> {
        if self.next_wake().is_none_or(|due| now < due) {
            return Ok(());
        }
        if self.pinged != Nanos::NEVER {
            let silence = now.since(self.last_received);
            return Err(Fault::Ended(format!(
                "it was silent for {silence}, more than 1.5 times the keep-alive of {} s",
                self.keep_alive_s
            )));
        }
        if self.flow.as_ref().is_some_and(|flow| flow.outgoing.is_some()) {
            // The sender stands still in the middle of a message, where no ping may stand.
            self.last_sent = now;
        } else if self.state == State::Connecting {
            // Nothing may follow CONNECT before its answer but what the session needs; an
            // unanswered CONNECT counts as the ping.
            self.pinged = self.last_sent + self.keep_alive();
        } else {
            self.ping(out);
            self.last_sent = now;
            self.pinged = now;
        }
        Ok(())
    }

    fn close(&mut self, out: &mut Outbox) {
        if !matches!(self.state, State::New | State::Leaving) {
            let before = out.len();
            Disconnect::new(0).encode(self.plan.version, out.buffer());
            self.meter.wrote(Phase::TearDown, out.len() - before, 0);
            self.state = State::Leaving;
        }
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        Some(self)
    }

    fn metered(&mut self) -> Option<&mut dyn Metered> {
        Some(&mut self.meter)
    }
}

impl Transfer for Client {
    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply {
        let staged = out.len();
        let reply = self.publish(op, rest, now, out);
        let is_refused = out.len() - staged <= op.body.len();
        if rest > 0 {
            self.flow().outgoing = Some(Box::new(partial::Outgoing::new(rest, is_refused)));
        }
        reply
    }

    fn more(&mut self, piece: &[u8], now: Nanos, out: &mut Outbox) {
        self.last_sent = now;
        let Some(flow) = &mut self.flow else { return };
        let Some(outgoing) = &mut flow.outgoing else { return };
        let payload = if outgoing.is_refused { 0 } else { piece.len() };
        // What was kept meanwhile has been counted.
        self.meter.wrote(Phase::Messages, payload, payload);
        if outgoing.put(piece, out) {
            flow.outgoing = None;
        }
    }
}

fn outcome(ticket: Ticket, reason: u8, has_no_subscriber: bool) -> Signal<'static> {
    match (reason, has_no_subscriber) {
        (0x80.., _) => Signal::Refused(ticket, u16::from(reason)),
        (_, true) => Signal::NoSubscriber(ticket),
        _ => Signal::Done(ticket),
    }
}

/// How long before the keep-alive is over a ping leaves, and which share of it at most: the
/// silence must not be longer (section 3.1.2.10), and the client may be woken late.
const PING_AHEAD: Nanos = Nanos::from_millis(200);
const PING_AHEAD_SHARE: u64 = 50;

const NO_SUBSCRIBER: u8 = 0x10;
const ID_NOT_FOUND: u8 = 0x92;
const RECEIVE_MAXIMUM_EXCEEDED: u16 = 0x93;
const PACKET_TOO_LARGE: u16 = 0x95;

/// Idle loads hold a hundred thousand clients, of which this is all.
const _: () = assert!(size_of::<Client>() <= 72);
