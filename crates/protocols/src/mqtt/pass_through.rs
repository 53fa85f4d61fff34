//! Messages above 16 MiB that pass through the reference broker: the head goes to all subscribers
//! and the body follows as it arrives. They are never retained, queued or sent again.

use weigh_model::Nanos;
use weigh_model::connection;
use weigh_model::server::{ConnectionId, Outboxes};

use super::broker::Broker;
use super::broker::Passing;
use super::broker::resolve;
use super::broker_state::BrokerState;
use super::codec::{self, Ack, AckKind, Id, Limits, Publish, Qos, Version};
use super::message::{Publication, forwarded_properties};
use super::session::Party;
use crate::broker_core::Turn;
use crate::pass_through::WHOLE_BYTES_MAX;

/// Result of the beginning of a message.
pub(super) enum Begun {
    /// It is none that passes.
    Not,
    /// Its subscribers are busy: try again later.
    Waits,
    /// It passes; its head had this number of bytes.
    Passes(usize),
}

impl Broker {
    /// Begins to pass on a message of which `input` is the beginning, if it is too large to be
    /// waited for.
    pub(super) fn begin_passage(
        &mut self,
        party: &Party,
        input: &[u8],
        hub: &mut BrokerState,
        turn: &mut Turn<'_>,
    ) -> Result<Begun, codec::Fault> {
        let head = codec::decode_head(input, party.version, &Limits::default())?;
        let Some((publish, head_bytes, body_bytes)) = head else { return Ok(Begun::Not) };
        if (head_bytes + body_bytes) as u64 <= WHOLE_BYTES_MAX {
            return Ok(Begun::Not);
        }
        super::server::check_publish(party, &publish, hub)?;
        let Some(session) = hub.session_of(party.key, party.attached) else {
            return Ok(Begun::Not);
        };
        let mut name = publish.topic;
        if let Some(alias) = publish.properties.number(Id::TopicAlias) {
            resolve(&mut session.aliases_in, alias as usize, publish.topic, &mut self.topic)?;
            name = &self.topic;
        }
        let wanted = hub.listeners(name, party.key);
        if wanted.iter().any(|listener| self.passages.is_listener(*listener)) {
            return Ok(Begun::Waits);
        }
        let Some(session) = hub.session_of(party.key, party.attached) else {
            return Ok(Begun::Not);
        };
        let is_repeated =
            publish.qos == Qos::ExactlyOnce && !session.unreleased.insert(publish.packet_id);
        let (mut to, mut is_wanted) = (Vec::new(), false);
        if !is_repeated {
            self.forwarded.clear();
            let expires = forwarded_properties(&publish.properties, turn.now, &mut self.forwarded);
            let (properties, qos) = (&self.forwarded[..], publish.qos);
            let whole = Publication::new(name, properties, b"", qos, publish.retain, expires);
            (to, is_wanted) = hub.pass(&whole, Some(party.key), body_bytes, turn);
        }
        let Publish { qos, packet_id, .. } = publish;
        let (key, version) = (party.key, party.version);
        let passing = Passing { key, version, qos, packet_id, is_wanted, is_repeated };
        self.passages.begin(party.attached.connection, to, body_bytes as u64, passing);
        Ok(Begun::Passes(head_bytes))
    }

    /// Passes on the available part of a message. Returns its number of bytes, and whether it was
    /// all.
    pub(super) fn pass_on(
        &mut self,
        from: ConnectionId,
        input: &[u8],
        hub: &mut BrokerState,
        out: &mut dyn Outboxes,
    ) -> (usize, bool) {
        let taken = self.passages.take(from, input, out);
        let Some(passed) = self.passages.finish(from, out) else { return (taken, false) };
        let Passing { version, qos, packet_id, is_wanted, is_repeated, .. } = passed.about;
        if !is_repeated {
            hub.census.note_reading(passed.reading);
            hub.note_forwarded(passed.to.len() as u64);
        }
        let kind = match qos {
            Qos::AtMostOnce => return (taken, true),
            Qos::AtLeastOnce => AckKind::Puback,
            Qos::ExactlyOnce => AckKind::Pubrec,
        };
        let is_told = !is_wanted && !is_repeated && version == Version::V5;
        let reason = if is_told { super::server::NO_SUBSCRIBERS } else { 0 };
        Ack::new(kind, packet_id, reason).encode(version, out.stage(from));
        (taken, true)
    }

    /// A connection is gone: its passing messages will not arrive, and may be sent again.
    pub(super) fn end_passage(
        &mut self,
        connection: ConnectionId,
        hub: &mut BrokerState,
        out: &mut dyn Outboxes,
    ) {
        if let Some(passing) = self.passages.closed(connection, out)
            && passing.qos == Qos::ExactlyOnce
            && !passing.is_repeated
        {
            hub.forget_unreleased(passing.key, passing.packet_id);
        }
    }

    /// Handles input while messages pass, or lets one begin to pass.
    pub(super) fn receive_passing(
        &mut self,
        id: ConnectionId,
        input: &[u8],
        now: Nanos,
        hub: &mut BrokerState,
        out: &mut dyn Outboxes,
    ) -> Result<usize, connection::Fault> {
        let mut used = 0;
        loop {
            if self.passages.is_sender(id) {
                let (taken, is_over) = self.pass_on(id, &input[used..], hub, out);
                used += taken;
                if !is_over {
                    return Ok(used);
                }
            }
            used += self.turn(now, hub, out, |own, hub, turn| {
                own.take_all(id, &input[used..], hub, turn)
            })?;
            let rest = &input[used..];
            if !may_pass(rest) {
                return Ok(used);
            }
            let Some(party) = self.party(id, hub) else { return Ok(used) };
            let mut turn = Turn::new(&mut *out, now, party.attached.shard);
            match self.begin_passage(&party, rest, hub, &mut turn) {
                Ok(Begun::Not) => return Ok(used),
                Ok(Begun::Waits) => {
                    self.passages.wait(id, out);
                    return Ok(used);
                }
                Ok(Begun::Passes(head_bytes)) => used += head_bytes,
                Err(fault) => {
                    self.give_up(&party, fault.reason, hub, &mut turn);
                    return Err(connection::Fault::Malformed(fault.to_string()));
                }
            }
        }
    }

    /// Runs `action` while messages may pass: output to their listeners is kept.
    pub(super) fn turn<T>(
        &mut self,
        now: Nanos,
        hub: &mut BrokerState,
        out: &mut dyn Outboxes,
        action: impl FnOnce(&mut Broker, &mut BrokerState, &mut Turn<'_>) -> T,
    ) -> T {
        let shard = self.connections.shard;
        if self.passages.is_idle() {
            return action(self, hub, &mut Turn::new(out, now, shard));
        }
        let mut passages = std::mem::take(&mut self.passages);
        let result = action(self, hub, &mut Turn::new(&mut passages.outboxes(out), now, shard));
        self.passages = passages;
        result
    }
}

/// True for the beginning of a PUBLISH whose remaining length has four bytes, as all have that
/// pass: 2 MiB and more (section 1.5.5).
pub(super) fn may_pass(input: &[u8]) -> bool {
    let goes_on = |byte: &u8| byte & 0x80 != 0;
    matches!(input, [first, length @ ..]
        if first >> 4 == PUBLISH && length.len() >= 3 && length[..3].iter().all(goes_on))
}

const PUBLISH: u8 = 3;
