//! The client: one connection of a producer or a consumer as a state machine.
//!
//! It is small, because tens of thousands of them stand idle at once: strings are made when
//! they are needed, and tables grow with the first message.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::protocol::{Role, Seat};
use weigh_model::wire::{Emit, Fault, Op, Outbox, Reply, Signal, Ticket, Wire};

use super::codec::{
    self, Ack, AckKind, Connack, Connect, Disconnect, Filter, Id, Limits, Options, Packet,
    Properties, Publish, Qos, Section, Suback, Subscribe, Version, Will, connack_words, words,
};
use super::plan::Plan;
use super::slots::{IdSet, Slots};

/// A client connection.
#[derive(Debug)]
pub(super) struct Client {
    plan: Arc<Plan>,
    seat: Seat,
    state: State,
    /// What this producer publishes to.
    topic: Box<str>,
    /// QoS in force: the one asked for, or less if the server says so.
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
    in_flight: Slots<InFlight>,
    /// Added to the numbers of `in_flight` to give packet identifiers.
    id_base: u16,
    /// QoS 2 messages received and not yet released.
    unreleased: IdSet,
    /// Topics by alias, as the server set them; index 0 is alias 1.
    aliases: Vec<Box<str>>,
    /// Operations that could not be sent, with the reason.
    unsendable: Vec<(Ticket, u16)>,
    keep_alive_s: u16,
    last_sent: Nanos,
    last_received: Nanos,
    pinged: Option<Nanos>,
    says_qos_was_lowered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before [`Wire::open`].
    New,
    /// CONNECT is out.
    Connecting,
    /// CONNACK is in, SUBSCRIBE is out.
    Subscribing,
    /// Messages may flow.
    Ready,
}

/// A published message that is not yet confirmed.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    ticket: Ticket,
    has_no_subscriber: bool,
}

impl Client {
    pub(super) fn new(plan: Arc<Plan>, seat: Seat) -> Client {
        Client {
            seat,
            state: State::New,
            topic: Box::default(),
            qos: plan.qos,
            retain: plan.retain,
            may_alias: false,
            is_aliased: false,
            window: plan.window,
            packet_bytes_max: codec::PACKET_BYTES_MAX,
            in_flight: Slots::default(),
            id_base: 0,
            unreleased: IdSet::default(),
            aliases: Vec::new(),
            unsendable: Vec::new(),
            keep_alive_s: plan.keep_alive_s,
            last_sent: Nanos(0),
            last_received: Nanos(0),
            pinged: None,
            says_qos_was_lowered: false,
            plan,
        }
    }

    fn connect(&mut self, out: &mut Outbox) {
        let plan = &self.plan;
        let client_id = plan.next_client_id(self.seat);
        let will_topic = plan.will_topic(self.seat, &client_id);
        let mut section = Section::default();
        if plan.version == Version::V5 {
            connect_properties(plan, &mut section);
        }
        let will = will_topic.as_deref().map(|topic| Will {
            properties: Properties::NONE,
            topic,
            body: plan.will_body.as_bytes(),
            qos: plan.qos,
            retain: false,
        });
        let connect = Connect {
            version: plan.version,
            clean: plan.clean,
            keep_alive_s: plan.keep_alive_s,
            properties: section.properties(),
            client_id: &client_id,
            will,
            user: plan.user.as_deref(),
            password: Some(plan.password.as_bytes()).filter(|password| !password.is_empty()),
        };
        connect.encode(out.buffer());
        if self.seat.role == Role::Producer {
            self.topic = plan.topic(self.seat.index, &client_id).into();
        }
    }

    fn take(&mut self, packet: Packet<'_>, out: &mut Outbox, emit: Emit<'_>) -> Result<(), Fault> {
        match (self.state, packet) {
            (State::Connecting, Packet::Connack(connack)) => self.connected(&connack, out, emit),
            (State::New | State::Connecting, _) => {
                Err(Fault::OtherProtocol("an MQTT packet that is no CONNACK".to_owned()))
            }
            (_, Packet::Publish(publish)) => self.message(&publish, out, emit),
            (_, Packet::Ack(ack)) => {
                self.acknowledged(&ack, out, emit);
                Ok(())
            }
            (State::Subscribing, Packet::Suback(suback)) => self.subscribed(&suback, emit),
            (_, Packet::Pingresp) => Ok(()),
            (_, Packet::Disconnect(disconnect)) => Err(Fault::Ended(ended(&disconnect))),
            (_, other) => Err(Fault::Malformed(format!(
                "a server must not send {} now (MQTT section 4.13)",
                name_of(&other)
            ))),
        }
    }

    fn connected(
        &mut self,
        connack: &Connack<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let version = self.plan.version;
        if connack.code != 0 {
            let mut reason = connack_words(connack.code, version).to_owned();
            if let Some(text) = connack.properties.text(Id::ReasonString) {
                reason.push_str(": ");
                reason.push_str(text);
            }
            return Err(Fault::Refused { code: u16::from(connack.code), reason });
        }
        if connack.session_present && self.plan.clean {
            let what = "a session is present after a clean start (MQTT section 3.2.2.1.1)";
            return Err(Fault::Malformed(what.to_owned()));
        }
        self.obey(&connack.properties, emit);
        if connack.session_present {
            emit(Signal::Granted("session_present", 1));
            self.id_base = self.plan.resumed_base();
        }
        match self.seat.role {
            Role::Producer => self.ready(emit),
            Role::Consumer => self.subscribe(out),
        }
        Ok(())
    }

    /// Keeps to what the server announced (section 3.2.2.3), and records it.
    fn obey(&mut self, properties: &Properties<'_>, emit: Emit<'_>) {
        for (id, name) in GRANTS {
            if let Some(number) = properties.number(id) {
                emit(Signal::Granted(name, u64::from(number)));
            }
        }
        if let Some(maximum) = properties.number(Id::ReceiveMaximum) {
            self.window = maximum as u16;
        }
        if let Some(maximum) = properties.number(Id::MaximumQos) {
            self.qos = self.qos.min(Qos::from_bits(maximum as u8).unwrap_or(Qos::AtMostOnce));
        }
        if let Some(seconds) = properties.number(Id::ServerKeepAlive) {
            self.keep_alive_s = seconds as u16;
        }
        if let Some(bytes) = properties.number(Id::MaximumPacketSize) {
            self.packet_bytes_max = bytes;
        }
        if properties.number(Id::RetainAvailable) == Some(0) {
            self.retain = false;
        }
        let alias_maximum = properties.number(Id::TopicAliasMaximum).unwrap_or(0);
        self.may_alias = self.plan.uses_aliases && alias_maximum > 0;
    }

    fn subscribe(&mut self, out: &mut Outbox) {
        let filter = self.plan.filter(self.seat.index);
        let mut raw_filters = Vec::with_capacity(filter.len() + 3);
        Filter { filter: &filter, options: Options::plain(self.plan.qos) }.put(&mut raw_filters);
        let properties = Properties::NONE;
        let subscribe =
            Subscribe { packet_id: SUBSCRIBE_ID, properties, raw_filters: &raw_filters };
        subscribe.encode(self.plan.version, out.buffer());
        self.state = State::Subscribing;
    }

    fn subscribed(&mut self, suback: &Suback<'_>, emit: Emit<'_>) -> Result<(), Fault> {
        let &[code] = suback.codes else {
            let what = "one filter was asked for, the SUBACK has several codes";
            return Err(Fault::Malformed(what.to_owned()));
        };
        if code >= 0x80 {
            let filter = self.plan.filter(self.seat.index);
            let reason = format!("the subscription to {filter}: {}", words(code));
            return Err(Fault::Refused { code: u16::from(code), reason });
        }
        emit(Signal::Granted("granted_qos", u64::from(code)));
        self.ready(emit);
        Ok(())
    }

    fn ready(&mut self, emit: Emit<'_>) {
        self.state = State::Ready;
        if self.seat.role == Role::Producer && self.plan.window < u16::MAX {
            emit(Signal::Granted("receive_maximum_assumed", u64::from(self.plan.window)));
        }
        emit(Signal::Ready);
    }

    fn message(
        &mut self,
        publish: &Publish<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let alias = publish.properties.number(Id::TopicAlias);
        if let Some(alias) = alias {
            self.learn(alias as usize, publish.topic)?;
        }
        let is_new = match publish.qos {
            Qos::ExactlyOnce => self.unreleased.insert(publish.packet_id),
            _ => true,
        };
        if is_new && self.seat.role == Role::Consumer {
            let topic = match (publish.topic, alias) {
                ("", Some(alias)) => &self.aliases[alias as usize - 1],
                (topic, _) => topic,
            };
            emit(Signal::Message { topic: topic.as_bytes(), body: publish.body });
        }
        let kind = match publish.qos {
            Qos::AtMostOnce => return Ok(()),
            Qos::AtLeastOnce => AckKind::Puback,
            Qos::ExactlyOnce => AckKind::Pubrec,
        };
        Ack::new(kind, publish.packet_id, 0).encode(self.plan.version, out.buffer());
        Ok(())
    }

    /// Stores what `alias` stands for, or checks that it is known (section 3.3.2.3.4).
    fn learn(&mut self, alias: usize, topic: &str) -> Result<(), Fault> {
        let maximum = if self.plan.uses_aliases { ALIASES_TAKEN as usize } else { 0 };
        let is_known = self.aliases.get(alias - 1).is_some_and(|known| !known.is_empty());
        if alias > maximum || (topic.is_empty() && !is_known) {
            let what = format!("the topic alias {alias} is not known (MQTT section 3.3.2.3.4)");
            return Err(Fault::Malformed(what));
        }
        if !topic.is_empty() {
            if self.aliases.len() < alias {
                self.aliases.resize(alias, Box::default());
            }
            self.aliases[alias - 1] = topic.into();
        }
        Ok(())
    }

    fn acknowledged(&mut self, ack: &Ack<'_>, out: &mut Outbox, emit: Emit<'_>) {
        let version = self.plan.version;
        let id = self.slot_of(ack.packet_id);
        match ack.kind {
            AckKind::Puback => {
                let Some(done) = self.in_flight.remove(id) else { return };
                if self.qos == Qos::ExactlyOnce && !self.says_qos_was_lowered {
                    // RabbitMQ answers QoS 2 with the acknowledgement of QoS 1.
                    self.says_qos_was_lowered = true;
                    emit(Signal::Granted("maximum_qos", 1));
                }
                emit(outcome(done.ticket, ack.reason, ack.reason == NO_SUBSCRIBER));
            }
            AckKind::Pubrec if ack.reason >= 0x80 => {
                let Some(done) = self.in_flight.remove(id) else { return };
                emit(outcome(done.ticket, ack.reason, false));
            }
            AckKind::Pubrec => {
                let reason = match self.in_flight.get_mut(id) {
                    Some(entry) => {
                        entry.has_no_subscriber |= ack.reason == NO_SUBSCRIBER;
                        0
                    }
                    None => ID_NOT_FOUND,
                };
                Ack::new(AckKind::Pubrel, ack.packet_id, reason).encode(version, out.buffer());
            }
            AckKind::Pubcomp => {
                let Some(done) = self.in_flight.remove(id) else { return };
                emit(outcome(done.ticket, ack.reason, done.has_no_subscriber));
            }
            AckKind::Pubrel => {
                let reason = if self.unreleased.remove(ack.packet_id) { 0 } else { ID_NOT_FOUND };
                Ack::new(AckKind::Pubcomp, ack.packet_id, reason).encode(version, out.buffer());
            }
        }
    }

    fn packet_id(&self, slot: u16) -> u16 {
        ((u32::from(slot) - 1 + u32::from(self.id_base)) % 65_535 + 1) as u16
    }

    fn slot_of(&self, packet_id: u16) -> u16 {
        ((u32::from(packet_id) - 1 + 65_535 - u32::from(self.id_base)) % 65_535 + 1) as u16
    }

    /// Refuses an operation that cannot be sent. The refusal is told with the next bytes from
    /// the server, so the server is asked for some.
    fn refuse(&mut self, ticket: Ticket, reason: u16, out: &mut Outbox) -> Reply {
        self.unsendable.push((ticket, reason));
        codec::encode_pingreq(out.buffer());
        Reply::Awaited
    }

    fn limits(&self) -> Limits {
        match self.plan.maximum_packet_size {
            0 => Limits::default(),
            packet_bytes_max => Limits { packet_bytes_max },
        }
    }

    /// The first bytes of a server must be those of a CONNACK.
    fn check_greeting(&self, input: &[u8]) -> Result<(), Fault> {
        if input.first().is_some_and(|first| *first != CONNACK_FIRST) {
            let shown: String = input
                .iter()
                .take(24)
                .flat_map(|byte| std::ascii::escape_default(*byte))
                .map(char::from)
                .collect();
            return Err(Fault::OtherProtocol(format!("it begins with \"{shown}\"")));
        }
        // A 3.1.1 server refuses MQTT 5 in its own format, two bytes long.
        match (self.plan.version, input) {
            (Version::V5, [CONNACK_FIRST, 2, _, code, ..]) if *code != 0 => {
                let words = connack_words(*code, Version::V311);
                let reason = format!("{words}; it speaks 3.1.1: set mqtt.version to 3.1.1");
                Err(Fault::Refused { code: u16::from(*code), reason })
            }
            _ => Ok(()),
        }
    }
}

impl Wire for Client {
    fn open(&mut self, now: Nanos, out: &mut Outbox, _emit: Emit<'_>) {
        self.connect(out);
        self.state = State::Connecting;
        self.last_sent = now;
        self.last_received = now;
    }

    fn room(&self) -> u32 {
        match (self.state, self.seat.role, self.qos) {
            (State::Ready, Role::Producer, Qos::AtMostOnce) => u32::MAX,
            (State::Ready, Role::Producer, _) => {
                u32::from(self.window).saturating_sub(self.in_flight.len() as u32)
            }
            _ => 0,
        }
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        let plan = &self.plan;
        let mut publish = plan.publish(&self.topic, op.body);
        publish.qos = self.qos;
        publish.retain = self.retain;
        if self.may_alias {
            publish.properties = plan.publish_properties(true);
            if self.is_aliased {
                publish.topic = "";
            }
        }
        if publish.size(plan.version) > self.packet_bytes_max as usize {
            return self.refuse(op.ticket, PACKET_TOO_LARGE, out);
        }
        let reply = match self.qos {
            Qos::AtMostOnce => Reply::None,
            _ => {
                let entry = InFlight { ticket: op.ticket, has_no_subscriber: false };
                let Some(slot) = self.in_flight.insert(entry) else {
                    return self.refuse(op.ticket, RECEIVE_MAXIMUM_EXCEEDED, out);
                };
                publish.packet_id = self.packet_id(slot);
                Reply::Awaited
            }
        };
        publish.encode(plan.version, out.buffer());
        self.is_aliased = self.may_alias;
        self.last_sent = now;
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
        self.last_received = now;
        self.pinged = None;
        for (ticket, reason) in self.unsendable.drain(..) {
            emit(Signal::Refused(ticket, reason));
        }
        if self.state == State::Connecting {
            self.check_greeting(input)?;
        }
        let staged = out.len();
        let limits = self.limits();
        let mut used = 0;
        while let Some((packet, size)) = codec::decode(&input[used..], self.plan.version, &limits)
            .map_err(|fault| Fault::Malformed(fault.to_string()))?
        {
            used += size;
            self.take(packet, out, emit)?;
        }
        if out.len() > staged {
            self.last_sent = now;
        }
        Ok(used)
    }

    fn end(&mut self, _rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        match (self.state, self.plan.version) {
            (State::Ready, _) => Ok(()),
            (State::Connecting, Version::V5) => Err(Fault::Ended(
                "it closed the connection instead of answering CONNECT; if it speaks only 3.1.1, \
                 set mqtt.version to 3.1.1"
                    .to_owned(),
            )),
            _ => Err(Fault::Ended("it closed the connection before it was ready".to_owned())),
        }
    }

    fn wake(&mut self, now: Nanos, out: &mut Outbox) -> Result<Option<Nanos>, Fault> {
        let is_settled = matches!(self.state, State::Ready);
        let interval = Nanos::from_secs(u64::from(self.keep_alive_s));
        let again = |at: Nanos| Some(if is_settled { at } else { at.min(now + UNSETTLED_WAKE) });
        if interval.0 == 0 {
            return Ok(if is_settled { None } else { again(Nanos::NEVER) });
        }
        if let Some(pinged) = self.pinged {
            let deadline = pinged + Nanos(interval.0 / 2);
            if now >= deadline {
                let silence = now.since(self.last_received);
                return Err(Fault::Ended(format!(
                    "it was silent for {silence}, more than 1.5 times the keep-alive of {}s",
                    self.keep_alive_s
                )));
            }
            return Ok(again(deadline));
        }
        let due = self.last_sent.min(self.last_received) + interval;
        if now < due {
            return Ok(again(due));
        }
        if self.state == State::Connecting {
            // Nothing may follow CONNECT before its answer but what the session needs; an
            // unanswered CONNECT counts as the ping.
            self.pinged = Some(self.last_sent + interval);
            return Ok(again(self.last_sent + interval + Nanos(interval.0 / 2)));
        }
        codec::encode_pingreq(out.buffer());
        self.last_sent = now;
        self.pinged = Some(now);
        Ok(again(now + Nanos(interval.0 / 2)))
    }

    fn close(&mut self, out: &mut Outbox) {
        if self.state != State::New {
            Disconnect::new(0).encode(self.plan.version, out.buffer());
        }
    }
}

fn connect_properties(plan: &Plan, section: &mut Section) {
    if plan.session_expiry_s > 0 {
        section.number(Id::SessionExpiryInterval, plan.session_expiry_s);
    }
    if plan.receive_maximum < u16::MAX {
        section.number(Id::ReceiveMaximum, u32::from(plan.receive_maximum));
    }
    if plan.maximum_packet_size > 0 {
        section.number(Id::MaximumPacketSize, plan.maximum_packet_size);
    }
    if plan.uses_aliases {
        section.number(Id::TopicAliasMaximum, ALIASES_TAKEN);
    }
}

fn outcome(ticket: Ticket, reason: u8, has_no_subscriber: bool) -> Signal<'static> {
    match (reason, has_no_subscriber) {
        (0x80.., _) => Signal::Refused(ticket, u16::from(reason)),
        (_, true) => Signal::NoSubscriber(ticket),
        _ => Signal::Done(ticket),
    }
}

fn ended(disconnect: &Disconnect<'_>) -> String {
    let words = words(disconnect.reason);
    match disconnect.properties.text(Id::ReasonString) {
        Some(text) => format!("{words}: {text}"),
        None => words.to_owned(),
    }
}

fn name_of(packet: &Packet<'_>) -> &'static str {
    match packet {
        Packet::Connect(_) => "CONNECT",
        Packet::Connack(_) => "CONNACK",
        Packet::Subscribe(_) => "SUBSCRIBE",
        Packet::Suback(_) => "SUBACK",
        Packet::Unsubscribe(_) => "UNSUBSCRIBE",
        Packet::Unsuback(_) => "UNSUBACK",
        Packet::Pingreq => "PINGREQ",
        Packet::Auth(_) => "AUTH",
        _ => "this packet",
    }
}

/// What a CONNACK may grant, and the names it is recorded by.
const GRANTS: [(Id, &str); 7] = [
    (Id::ReceiveMaximum, "receive_maximum"),
    (Id::MaximumQos, "maximum_qos"),
    (Id::TopicAliasMaximum, "topic_alias_maximum"),
    (Id::ServerKeepAlive, "server_keep_alive_s"),
    (Id::MaximumPacketSize, "maximum_packet_size"),
    (Id::RetainAvailable, "retain_available"),
    (Id::SessionExpiryInterval, "session_expiry_s"),
];

/// Topic aliases a client takes if its plan uses aliases.
const ALIASES_TAKEN: u32 = 16;

/// A consumer publishes nothing, so this identifier is free.
const SUBSCRIBE_ID: u16 = 1;

const CONNACK_FIRST: u8 = 0x20;

/// Until the session stands the keep-alive may still change, so the client looks this often.
const UNSETTLED_WAKE: Nanos = Nanos::from_secs(1);

const NO_SUBSCRIBER: u8 = 0x10;
const ID_NOT_FOUND: u8 = 0x92;
const RECEIVE_MAXIMUM_EXCEEDED: u16 = 0x93;
const PACKET_TOO_LARGE: u16 = 0x95;

/// Idle loads hold tens of thousands of clients: its own bytes, without the heap.
const _: () = assert!(size_of::<Client>() <= 256);
