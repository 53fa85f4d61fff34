//! A client's session at the reference broker: the state that outlives its connection, and the
//! delivery of messages to it. A subscriber that keeps up is written to directly; only messages
//! that
//! it cannot accept wait in its queue.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::server::ConnectionId;

use super::codec::{
    Ack, AckKind, Id, PACKET_BYTES_MAX, Properties, Publish, Qos, Section, Version,
};
use super::message::{Message, Publication, seconds_left};
use super::overload::{Overload, SENDS_PER_CHECK};
use super::slots::{IdSet, Slots};
use crate::broker_core::{Place, Turn};

/// One connected client during one call.
pub(super) struct Party {
    pub(super) key: u32,
    pub(super) version: Version,
    pub(super) attached: Place,
}

/// State of a client at the broker, connected or not.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client_id: Box<str>,
    pub(super) version: Version,
    /// The connection it has now.
    pub(super) attached: Option<Place>,
    /// Time for which it outlives its connection, in seconds; `u32::MAX` means for ever.
    pub(super) expiry_s: u32,
    /// Filters it subscribes to.
    pub(super) filters: Vec<Box<str>>,
    pub(super) will: Option<Box<StoredWill>>,
    /// Time at which a due will is sent, while there is no connection.
    pub(super) will_due: Nanos,
    /// When the session ends, while there is no connection.
    pub(super) ends_at: Nanos,
    /// QoS 2 messages taken from the client and not yet released.
    pub(super) unreleased: IdSet,
    /// Topics by alias, as the client set them; index 0 is alias 1.
    pub(super) aliases_in: Vec<Box<str>>,
    /// True if its shard was notified to look at the queue.
    pub(super) is_mailed: bool,
    limits: SessionLimits,
    aliases_out: HashMap<Box<str>, u16>,
    in_flight: Slots<Sent>,
    sent_serial: u32,
    queue: VecDeque<Waiting>,
    awaits_drain: bool,
    sends_until_check: u8,
}

/// Limits of the client of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionLimits {
    pub(super) receive_maximum: u16,
    pub(super) packet_bytes_max: u32,
    pub(super) topic_alias_maximum: u16,
}

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits {
            receive_maximum: u16::MAX,
            packet_bytes_max: PACKET_BYTES_MAX,
            topic_alias_maximum: 0,
        }
    }
}

/// A last will, kept.
#[derive(Debug)]
pub(super) struct StoredWill {
    pub(super) topic: Box<str>,
    pub(super) properties: Box<[u8]>,
    pub(super) body: Box<[u8]>,
    pub(super) qos: Qos,
    pub(super) retain: bool,
    pub(super) delay_s: u32,
    /// Life of the message once published; `None` if it does not age.
    pub(super) expiry_s: Option<u32>,
}

/// A message that waits for its subscriber.
#[derive(Debug)]
struct Waiting {
    message: Arc<Message>,
    manner: SessionOptions,
}

/// Delivery of a message to one subscriber.
#[derive(Clone, Debug)]
pub(super) struct SessionOptions {
    pub(super) qos: Qos,
    pub(super) retain: bool,
    /// Subscription identifiers.
    pub(super) ids: Box<[u32]>,
}

/// A message that was sent and is not yet acknowledged.
#[derive(Debug)]
struct Sent {
    /// Kept only if the session may be resumed.
    again: Option<Box<Waiting>>,
    serial: u32,
    /// PUBREC came, PUBREL is out.
    is_released: bool,
}

/// Counts of the broker about forwarding.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) forwarded: u64,
    pub(super) dropped: BTreeMap<&'static str, u64>,
    pub(super) disconnects: u64,
    pub(super) queued: u64,
    pub(super) queued_bytes: u64,
}

impl Counts {
    pub(super) fn drop(&mut self, cause: &'static str, count: u64) {
        if count > 0 {
            *self.dropped.entry(cause).or_default() += count;
        }
    }
}

/// Shared state of the broker, lent to a session that sends.
pub(super) struct Replies<'a> {
    pub(super) counts: &'a mut Counts,
    pub(super) scratch: &'a mut Section,
    pub(super) overload: Overload,
}

/// Result of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was sent, queued or dropped.
    Settled,
    /// It waits for another shard to send it.
    ForShard(u16),
    /// The subscriber is too far behind and must go.
    Overloaded,
}

impl Session {
    pub(super) fn new(client_id: &str) -> Session {
        Session {
            client_id: client_id.into(),
            version: Version::V311,
            attached: None,
            expiry_s: 0,
            filters: Vec::new(),
            will: None,
            will_due: Nanos::NEVER,
            ends_at: Nanos::NEVER,
            unreleased: IdSet::default(),
            aliases_in: Vec::new(),
            is_mailed: false,
            limits: SessionLimits::default(),
            aliases_out: HashMap::new(),
            in_flight: Slots::default(),
            sent_serial: 0,
            queue: VecDeque::new(),
            awaits_drain: false,
            sends_until_check: SENDS_PER_CHECK,
        }
    }

    /// Gives the session a connection.
    pub(super) fn attach(&mut self, attached: Place, version: Version, limits: SessionLimits) {
        self.attached = Some(attached);
        self.version = version;
        self.limits = limits;
        self.will_due = Nanos::NEVER;
        self.ends_at = Nanos::NEVER;
        self.aliases_in = Vec::new();
        self.aliases_out = HashMap::new();
        self.awaits_drain = false;
        self.is_mailed = false;
        self.sends_until_check = SENDS_PER_CHECK;
    }

    /// Brings a message to the subscriber, now or later.
    pub(super) fn deliver(
        &mut self,
        publication: &mut Publication<'_>,
        manner: SessionOptions,
        turn: &mut Turn<'_>,
        desk: &mut Replies<'_>,
    ) -> Outcome {
        let Some(attached) = self.attached else {
            if manner.qos == Qos::AtMostOnce {
                desk.counts.drop("offline_qos0", 1);
            } else {
                self.enqueue(publication.keep(), manner, desk);
            }
            return Outcome::Settled;
        };
        if attached.shard != turn.shard {
            self.enqueue(publication.keep(), manner, desk);
            return Outcome::ForShard(attached.shard);
        }
        if self.queue.is_empty() && self.may_send(manner.qos, attached.connection, turn) {
            let keeps = manner.qos > Qos::AtMostOnce && self.expiry_s > 0;
            let again = keeps
                .then(|| Box::new(Waiting { message: publication.keep(), manner: manner.clone() }));
            self.transmit(publication, &manner, again, attached.connection, turn, desk);
            return self.check(desk.overload);
        }
        self.enqueue(publication.keep(), manner, desk);
        self.await_drain(attached.connection, turn);
        Outcome::Settled
    }

    /// Sends waiting messages, as far as the client and its socket accept them.
    pub(super) fn pump(&mut self, turn: &mut Turn<'_>, desk: &mut Replies<'_>) -> Outcome {
        let Some(attached) = self.attached.filter(|attached| attached.shard == turn.shard) else {
            return Outcome::Settled;
        };
        while let Some(front) = self.queue.front() {
            if front.message.expires > turn.now
                && !self.may_send(front.manner.qos, attached.connection, turn)
            {
                self.await_drain(attached.connection, turn);
                break;
            }
            let Some(waiting) = self.dequeue(desk.counts) else { break };
            if waiting.message.expires <= turn.now {
                desk.counts.drop("expired", 1);
                continue;
            }
            let Waiting { message, manner } = waiting;
            let keeps = manner.qos > Qos::AtMostOnce && self.expiry_s > 0;
            let again = keeps.then(|| {
                Box::new(Waiting { message: Arc::clone(&message), manner: manner.clone() })
            });
            let publication = Publication::of(&message, manner.retain);
            self.transmit(&publication, &manner, again, attached.connection, turn, desk);
            if self.check(desk.overload) == Outcome::Overloaded {
                return Outcome::Overloaded;
            }
        }
        if self.queue.is_empty() && self.queue.capacity() > QUEUE_KEPT {
            self.queue = VecDeque::new();
        }
        Outcome::Settled
    }

    /// The socket took everything.
    pub(super) fn drained(&mut self, turn: &mut Turn<'_>, desk: &mut Replies<'_>) -> Outcome {
        self.awaits_drain = false;
        self.pump(turn, desk)
    }

    /// Handles an acknowledgement of a sent message (section 4.3).
    pub(super) fn acknowledged(
        &mut self,
        ack: &Ack<'_>,
        turn: &mut Turn<'_>,
        desk: &mut Replies<'_>,
    ) -> Outcome {
        match (ack.kind, ack.reason) {
            (AckKind::Pubrec, ..0x80) => {
                let Some(attached) = self.attached else { return Outcome::Settled };
                let reason = match self.in_flight.get_mut(ack.packet_id) {
                    Some(sent) => {
                        sent.is_released = true;
                        sent.again = None;
                        0
                    }
                    None => ID_NOT_FOUND,
                };
                let pubrel = Ack::new(AckKind::Pubrel, ack.packet_id, reason);
                pubrel.encode(self.version, turn.out.stage(attached.connection));
                Outcome::Settled
            }
            _ => {
                self.in_flight.remove(ack.packet_id);
                if self.queue.is_empty() { Outcome::Settled } else { self.pump(turn, desk) }
            }
        }
    }

    /// Sends again, in the old order, what an earlier connection left open, and then the messages
    /// that wait
    /// (section 4.4).
    pub(super) fn resume(&mut self, turn: &mut Turn<'_>, desk: &mut Replies<'_>) -> Outcome {
        let Some(attached) = self.attached else { return Outcome::Settled };
        let mut open: Vec<(u32, u16)> =
            self.in_flight.iter().map(|(id, sent)| (sent.serial, id)).collect();
        open.sort_unstable();
        for (_, id) in open {
            let Some(sent) = self.in_flight.get_mut(id) else { continue };
            let staged = turn.out.stage(attached.connection);
            if sent.is_released {
                Ack::new(AckKind::Pubrel, id, 0).encode(self.version, staged);
                continue;
            }
            let Some(again) = &sent.again else { continue };
            let publication = Publication::of(&again.message, again.manner.retain);
            compose(&publication, &again.manner, turn.now, desk.scratch);
            let publish = Publish {
                dup: true,
                qos: again.manner.qos,
                retain: again.manner.retain,
                topic: publication.topic,
                packet_id: id,
                properties: desk.scratch.properties(),
                body: publication.body,
            };
            publish.encode(self.version, staged);
        }
        self.pump(turn, desk)
    }

    /// Discards waiting messages, for `cause`.
    pub(super) fn drop_queue(&mut self, cause: &'static str, counts: &mut Counts) {
        let mut dropped = 0;
        while self.dequeue(counts).is_some() {
            dropped += 1;
        }
        counts.drop(cause, dropped);
        self.queue = VecDeque::new();
    }

    fn may_send(&self, qos: Qos, connection: ConnectionId, turn: &Turn<'_>) -> bool {
        let is_in_window = qos == Qos::AtMostOnce
            || self.in_flight.len() < usize::from(self.limits.receive_maximum);
        is_in_window && turn.out.pending_bytes(connection) < PENDING_BYTES_MAX
    }

    fn await_drain(&mut self, connection: ConnectionId, turn: &mut Turn<'_>) {
        if !self.awaits_drain && turn.out.pending_bytes(connection) >= PENDING_BYTES_MAX {
            self.awaits_drain = true;
            turn.out.notify_drained(connection);
        }
    }

    fn transmit(
        &mut self,
        publication: &Publication<'_>,
        manner: &SessionOptions,
        again: Option<Box<Waiting>>,
        connection: ConnectionId,
        turn: &mut Turn<'_>,
        desk: &mut Replies<'_>,
    ) {
        let mut publish = Publish {
            dup: false,
            qos: manner.qos,
            retain: manner.retain,
            topic: publication.topic,
            packet_id: 0,
            properties: Properties::NONE,
            body: publication.body,
        };
        if self.version == Version::V5 {
            compose(publication, manner, turn.now, desk.scratch);
            if publish_size(&publish, desk.scratch) + ALIAS_BYTES
                <= self.limits.packet_bytes_max as usize
                && let Some((alias, is_known)) = self.alias(publication.topic)
            {
                desk.scratch.number(Id::TopicAlias, u32::from(alias));
                if is_known {
                    publish.topic = "";
                }
            }
            publish.properties = desk.scratch.properties();
        }
        if publish.size(self.version) > self.limits.packet_bytes_max as usize {
            desk.counts.drop("packet_too_large", 1);
            return;
        }
        if manner.qos > Qos::AtMostOnce {
            self.sent_serial = self.sent_serial.wrapping_add(1);
            let sent = Sent { again, serial: self.sent_serial, is_released: false };
            let Some(id) = self.in_flight.insert(sent) else { return };
            publish.packet_id = id;
        }
        publish.encode(self.version, turn.out.stage(connection));
        desk.counts.forwarded += 1;
        self.sends_until_check = self.sends_until_check.saturating_sub(1);
    }

    /// Begins to send a message of which only the head is here, and whose body of `body_bytes`
    /// follows as it comes. False, and dropped, if it would have to wait: it is never complete.
    pub(super) fn pass(
        &mut self,
        publication: &Publication<'_>,
        manner: &SessionOptions,
        body_bytes: usize,
        turn: &mut Turn<'_>,
        desk: &mut Replies<'_>,
    ) -> bool {
        let Some(attached) = self.attached.filter(|attached| attached.shard == turn.shard) else {
            desk.counts.drop("too_large_to_keep", 1);
            return false;
        };
        let is_in_window = manner.qos == Qos::AtMostOnce
            || self.in_flight.len() < usize::from(self.limits.receive_maximum);
        if !self.queue.is_empty() || !is_in_window {
            desk.counts.drop("too_large_to_keep", 1);
            return false;
        }
        compose(publication, manner, turn.now, desk.scratch);
        let mut publish = Publish {
            dup: false,
            qos: manner.qos,
            retain: manner.retain,
            topic: publication.topic,
            packet_id: 0,
            properties: match self.version {
                Version::V5 => desk.scratch.properties(),
                Version::V311 => Properties::NONE,
            },
            body: b"",
        };
        if publish.size(self.version) + body_bytes > self.limits.packet_bytes_max as usize {
            desk.counts.drop("packet_too_large", 1);
            return false;
        }
        if manner.qos > Qos::AtMostOnce {
            self.sent_serial = self.sent_serial.wrapping_add(1);
            let sent = Sent { again: None, serial: self.sent_serial, is_released: false };
            let Some(id) = self.in_flight.insert(sent) else { return false };
            publish.packet_id = id;
        }
        publish.encode_head(self.version, body_bytes, turn.out.stage(attached.connection));
        true
    }

    /// The alias of `topic` and whether the client knows it already; `None` if there is none
    /// left (section 3.3.2.3.4).
    fn alias(&mut self, topic: &str) -> Option<(u16, bool)> {
        let maximum = self.limits.topic_alias_maximum;
        if maximum == 0 {
            return None;
        }
        let aliases = &mut self.aliases_out;
        if let Some(&alias) = aliases.get(topic) {
            return Some((alias, true));
        }
        let alias = aliases.len() as u16 + 1;
        (aliases.len() < usize::from(maximum)).then(|| {
            aliases.insert(topic.into(), alias);
            (alias, false)
        })
    }

    /// Sends after which some policies check the queue.
    fn check(&mut self, overload: Overload) -> Outcome {
        if self.sends_until_check > 0 {
            return Outcome::Settled;
        }
        self.sends_until_check = SENDS_PER_CHECK;
        match overload {
            Overload::Disconnect(limit) if self.queue.len() > limit as usize => Outcome::Overloaded,
            _ => Outcome::Settled,
        }
    }

    fn enqueue(&mut self, message: Arc<Message>, manner: SessionOptions, desk: &mut Replies<'_>) {
        let is_full = |limit: u32| self.queue.len() >= limit as usize;
        match desk.overload {
            Overload::DropNewest(limit) if is_full(limit) => {
                desk.counts.drop("queue_full", 1);
                return;
            }
            Overload::DropOldest(limit) if is_full(limit) => {
                self.dequeue(desk.counts);
                desk.counts.drop("queue_full", 1);
            }
            Overload::Disconnect(limit) if self.attached.is_none() && is_full(limit) => {
                self.dequeue(desk.counts);
                desk.counts.drop("queue_full", 1);
            }
            _ => {}
        }
        let waiting = Waiting { message, manner };
        desk.counts.queued += 1;
        desk.counts.queued_bytes += waiting.memory_bytes();
        self.queue.push_back(waiting);
    }

    fn dequeue(&mut self, counts: &mut Counts) -> Option<Waiting> {
        let waiting = self.queue.pop_front()?;
        counts.queued -= 1;
        counts.queued_bytes -= waiting.memory_bytes();
        Some(waiting)
    }
}

impl Waiting {
    fn memory_bytes(&self) -> u64 {
        self.message.memory_bytes() + size_of::<Waiting>() as u64
    }
}

/// Writes the properties of an outgoing PUBLISH, but for the alias, into `section`.
fn compose(
    publication: &Publication<'_>,
    manner: &SessionOptions,
    now: Nanos,
    section: &mut Section,
) {
    section.clear();
    section.raw(publication.properties);
    if let Some(seconds) = seconds_left(publication.expires, now) {
        section.number(Id::MessageExpiryInterval, seconds);
    }
    for id in &manner.ids {
        section.number(Id::SubscriptionIdentifier, *id);
    }
}

fn publish_size(publish: &Publish<'_>, section: &Section) -> usize {
    Publish { properties: section.properties(), ..*publish }.size(Version::V5)
}

/// A subscriber with this much in its socket's way gets no more until the socket took it.
const PENDING_BYTES_MAX: usize = 64 * 1024;

/// Room for this many entries is kept in a queue that ran empty.
const QUEUE_KEPT: usize = 1024;

/// Bytes that a topic alias can add to a packet: the property, and longer lengths.
const ALIAS_BYTES: usize = 5;

const ID_NOT_FOUND: u8 = 0x92;
