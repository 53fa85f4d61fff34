//! The reference broker: the connections of one shard, and the handling of each packet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weigh_model::Nanos;
use weigh_model::connection;
use weigh_model::server::{ConnectionId, Outboxes, Record, Server, ServerReport};

use super::admission::{announce, refusal};
use super::broker::{Broker, Connection, Stage};
pub(super) use super::broker::{NO_SUBSCRIBERS, check_publish, resolve};
use super::broker_state::{BrokerState, Mail, say_goodbye};
use super::codec::{
    self, Ack, AckKind, Connack, Connect, Disconnect, Fault, Id, Limits, Packet, Properties,
    Publish, Qos, Section, Version,
};
use super::message::{Publication, forwarded_properties};
use super::pass_through::may_pass;
use super::session::Party;
use super::subscriptions::{take_subscribe, take_unsubscribe};
use crate::broker_core::{Peers, Place, Shared, Turn};
use crate::pass_through::PassThroughs;

impl Broker {
    pub(super) fn new(hub: Shared<BrokerState>, shard: u16) -> Broker {
        Broker {
            hub,
            connections: Peers::new(shard),
            deadlines: BinaryHeap::new(),
            forwarded: Vec::new(),
            topic: String::new(),
            passages: PassThroughs::default(),
        }
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get(id)
    }

    /// The session of a connection, unless it was taken away.
    pub(super) fn party(&mut self, id: ConnectionId, hub: &mut BrokerState) -> Option<Party> {
        let shard = self.connections.shard;
        let connection = self.connection(id)?;
        let Stage::Connected(key) = connection.stage else { return None };
        let attached = Place { shard, connection: id, serial: connection.serial };
        let version = connection.version;
        hub.session_of(key, attached)?;
        Some(Party { key, version, attached })
    }

    pub(super) fn take_all(
        &mut self,
        id: ConnectionId,
        input: &[u8],
        hub: &mut BrokerState,
        turn: &mut Turn<'_>,
    ) -> Result<usize, connection::Fault> {
        let mut used = 0;
        loop {
            let Some(connection) = self.connection(id) else { return Ok(input.len()) };
            let rest = &input[used..];
            match connection.stage {
                Stage::Ending => return Ok(input.len()),
                Stage::Greeting => {
                    if rest.first().is_some_and(|first| *first != CONNECT_FIRST) {
                        let what = "the first packet is not CONNECT".to_owned();
                        return Err(connection::Fault::OtherProtocol(what));
                    }
                    match codec::decode(rest, Version::V311, &Limits::default()) {
                        Ok(None) => return Ok(used),
                        Ok(Some((Packet::Connect(connect), size))) => {
                            used += size;
                            self.connect(id, &connect, hub, turn);
                        }
                        Ok(Some(_)) => return Ok(input.len()),
                        Err(fault) => {
                            if fault.reason == UNSUPPORTED_VERSION {
                                turn.out.stage(id).extend_from_slice(&UNACCEPTABLE_VERSION);
                            }
                            return Err(connection::Fault::Malformed(fault.to_string()));
                        }
                    }
                }
                Stage::Connected(_) => {
                    let version = connection.version;
                    let Some(party) = self.party(id, hub) else { return Ok(input.len()) };
                    let result = match codec::decode(rest, version, &Limits::default()) {
                        Ok(None) => return Ok(used),
                        Ok(Some((packet, size))) => {
                            used += size;
                            self.take(&party, packet, hub, turn)
                        }
                        Err(fault) => Err(fault),
                    };
                    if let Err(fault) = result {
                        self.give_up(&party, fault.reason, hub, turn);
                        return Err(connection::Fault::Malformed(fault.to_string()));
                    }
                }
            }
        }
    }

    fn connect(
        &mut self,
        id: ConnectionId,
        connect: &Connect<'_>,
        hub: &mut BrokerState,
        turn: &mut Turn<'_>,
    ) {
        let version = connect.version;
        if let Some(code) = refusal(connect, hub) {
            let code = if version == Version::V311 { code.0 } else { code.1 };
            let connack = Connack { session_present: false, code, properties: Properties::NONE };
            connack.encode(version, turn.out.stage(id));
            self.end(id, turn);
            return;
        }
        let assigned = connect.client_id.is_empty().then(|| hub.assign_client_id());
        let client_id = assigned.as_deref().unwrap_or(connect.client_id);
        let keep_alive_s = match (version, hub.rules.keep_alive_s) {
            (Version::V5, imposed @ 1..) => imposed,
            _ => connect.keep_alive_s,
        };
        let Some(connection) = self.connection(id) else { return };
        let serial = connection.serial;
        let attached = Place { shard: turn.shard, connection: id, serial };
        let (key, session_present) = hub.attach(client_id, connect, attached, turn);
        let Some(connection) = self.connection(id) else { return };
        connection.version = version;
        connection.stage = Stage::Connected(key);
        // One and a half times the keep-alive (section 3.1.2.10).
        connection.allowance = Nanos(u64::from(keep_alive_s) * 1_500_000_000);
        connection.last_received = turn.now;
        connection.deadline = Nanos::NEVER;
        if connection.allowance.0 > 0 {
            connection.deadline = turn.now + connection.allowance;
            let deadline = connection.deadline;
            self.deadlines.push(Reverse((deadline, id.0, serial)));
        }
        let mut section = Section::default();
        if version == Version::V5 {
            announce(hub, assigned.as_deref(), &mut section);
        }
        let connack = Connack { session_present, code: 0, properties: section.properties() };
        connack.encode(version, turn.out.stage(id));
        if session_present {
            hub.resume(key, turn);
        }
        hub.settle(turn);
    }

    fn take(
        &mut self,
        party: &Party,
        packet: Packet<'_>,
        hub: &mut BrokerState,
        turn: &mut Turn<'_>,
    ) -> Result<(), Fault> {
        let id = party.attached.connection;
        match packet {
            Packet::Publish(publish) => self.publish(party, &publish, hub, turn)?,
            Packet::Ack(ack) if ack.kind == AckKind::Pubrel => {
                let Some(session) = hub.session_of(party.key, party.attached) else {
                    return Ok(());
                };
                let reason = if session.unreleased.remove(ack.packet_id) { 0 } else { 0x92 };
                let pubcomp = Ack::new(AckKind::Pubcomp, ack.packet_id, reason);
                pubcomp.encode(party.version, turn.out.stage(id));
            }
            Packet::Ack(ack) => hub.acknowledged(party.key, &ack, turn),
            Packet::Subscribe(subscribe) => take_subscribe(party, &subscribe, hub, turn)?,
            Packet::Unsubscribe(unsubscribe) => take_unsubscribe(party, &unsubscribe, hub, turn),
            Packet::Pingreq => codec::encode_pingresp(turn.out.stage(id)),
            Packet::Disconnect(disconnect) => self.disconnect(party, &disconnect, hub, turn)?,
            Packet::Connect(_) => {
                return Err(Fault::protocol("a second CONNECT on one connection", "3.1"));
            }
            Packet::Connack(_)
            | Packet::Suback(_)
            | Packet::Unsuback(_)
            | Packet::Pingresp
            | Packet::Auth(_) => {
                return Err(Fault::protocol("a client must not send this packet now", "2.1.2"));
            }
        }
        Ok(())
    }

    fn publish(
        &mut self,
        party: &Party,
        publish: &Publish<'_>,
        hub: &mut BrokerState,
        turn: &mut Turn<'_>,
    ) -> Result<(), Fault> {
        check_publish(party, publish, hub)?;
        let receive_maximum = usize::from(hub.rules.receive_maximum);
        let Some(session) = hub.session_of(party.key, party.attached) else { return Ok(()) };
        let mut name = publish.topic;
        if let Some(alias) = publish.properties.number(Id::TopicAlias) {
            resolve(&mut session.aliases_in, alias as usize, publish.topic, &mut self.topic)?;
            name = &self.topic;
        }
        if publish.qos == Qos::ExactlyOnce {
            if !session.unreleased.insert(publish.packet_id) {
                // It was here before and is not released yet: acknowledged, not forwarded.
                let pubrec = Ack::new(AckKind::Pubrec, publish.packet_id, 0);
                pubrec.encode(party.version, turn.out.stage(party.attached.connection));
                return Ok(());
            }
            if party.version == Version::V5 && session.unreleased.len() > receive_maximum {
                return Err(TOO_MANY);
            }
        }
        hub.census.note(publish.body);
        if publish.qos != Qos::AtMostOnce {
            turn.out.store(Record::Message { name: name.as_bytes(), body: publish.body });
        }
        self.forwarded.clear();
        let mut expires = Nanos::NEVER;
        if !publish.properties.is_empty() {
            expires = forwarded_properties(&publish.properties, turn.now, &mut self.forwarded);
        }
        let mut publication = Publication::new(
            name,
            &self.forwarded,
            publish.body,
            publish.qos,
            publish.retain,
            expires,
        );
        let is_wanted = hub.publish(&mut publication, Some(party.key), turn);
        let kind = match publish.qos {
            Qos::AtMostOnce => None,
            Qos::AtLeastOnce => Some(AckKind::Puback),
            Qos::ExactlyOnce => Some(AckKind::Pubrec),
        };
        if let Some(kind) = kind {
            let reason =
                if is_wanted || party.version == Version::V311 { 0 } else { NO_SUBSCRIBERS };
            let ack = Ack::new(kind, publish.packet_id, reason);
            ack.encode(party.version, turn.out.stage(party.attached.connection));
        }
        hub.settle(turn);
        Ok(())
    }

    fn disconnect(
        &mut self,
        party: &Party,
        disconnect: &Disconnect<'_>,
        hub: &mut BrokerState,
        turn: &mut Turn<'_>,
    ) -> Result<(), Fault> {
        let Some(session) = hub.session_of(party.key, party.attached) else { return Ok(()) };
        if let Some(expiry_s) = disconnect.properties.number(Id::SessionExpiryInterval) {
            if session.expiry_s == 0 && expiry_s > 0 {
                let what = "a session that ends with its connection cannot get a longer expiry";
                return Err(Fault::protocol(what, "3.14.2.2.2"));
            }
            session.expiry_s = expiry_s;
        }
        if disconnect.reason != DISCONNECT_WITH_WILL {
            session.will = None;
        }
        hub.detach(party.key, turn.now);
        self.end(party.attached.connection, turn);
        hub.settle(turn);
        Ok(())
    }

    /// Parts with a client that broke the protocol: the engine closes, the will is due.
    pub(super) fn give_up(
        &mut self,
        party: &Party,
        reason: u8,
        hub: &mut BrokerState,
        turn: &mut Turn<'_>,
    ) {
        let id = party.attached.connection;
        if party.version == Version::V5 {
            Disconnect::new(reason).encode(party.version, turn.out.stage(id));
        }
        if let Some(connection) = self.connection(id) {
            connection.stage = Stage::Ending;
        }
        if hub.session_of(party.key, party.attached).is_some() {
            hub.detach(party.key, turn.now);
        }
        hub.settle(turn);
    }

    /// Closes a connection and ignores its later input.
    fn end(&mut self, id: ConnectionId, turn: &mut Turn<'_>) {
        if let Some(connection) = self.connection(id) {
            connection.stage = Stage::Ending;
        }
        turn.out.close(id);
    }

    /// Ends connections that have been silent for too long; returns when to look again.
    fn end_silent(&mut self, hub: &mut BrokerState, turn: &mut Turn<'_>) -> Nanos {
        while let Some(&Reverse((due, number, serial))) = self.deadlines.peek() {
            if due > turn.now {
                return due;
            }
            self.deadlines.pop();
            let id = ConnectionId(number);
            let Some(connection) = self.connection(id) else { continue };
            let (stage, version) = (connection.stage, connection.version);
            let is_stale = connection.serial != serial || connection.deadline != due;
            if is_stale || stage == Stage::Ending {
                continue;
            }
            let deadline = connection.last_received + connection.allowance;
            if deadline > turn.now {
                connection.deadline = deadline;
                self.deadlines.push(Reverse((deadline, number, serial)));
                continue;
            }
            connection.stage = Stage::Ending;
            let Stage::Connected(key) = stage else {
                turn.out.close(id);
                continue;
            };
            let attached = Place { shard: turn.shard, connection: id, serial };
            // A connection that lost its session was told to go when it did.
            if hub.session_of(key, attached).is_some() {
                hub.detach(key, turn.now);
                say_goodbye(id, version, KEEP_ALIVE_TIMEOUT, turn);
            }
        }
        Nanos::NEVER
    }
}

impl Server for Broker {
    fn accepted(&mut self, connection: ConnectionId, now: Nanos, _out: &mut dyn Outboxes) {
        let deadline = now + CONNECT_ALLOWANCE;
        let place = self.connections.accept(connection, |place| Connection {
            serial: place.serial,
            stage: Stage::Greeting,
            version: Version::V311,
            last_received: now,
            allowance: CONNECT_ALLOWANCE,
            deadline,
        });
        self.deadlines.push(Reverse((deadline, connection.0, place.serial)));
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, connection::Fault> {
        if let Some(known) = self.connection(connection)
            && known.stage != Stage::Greeting
        {
            known.last_received = now;
        }
        let shared = self.hub.clone();
        let mut hub = shared.lock();
        if !self.passages.is_idle() {
            return self.receive_passing(connection, input, now, &mut hub, out);
        }
        let mut turn = Turn::new(&mut *out, now, self.connections.shard);
        let used = self.take_all(connection, input, &mut hub, &mut turn)?;
        match input.get(used..) {
            Some(rest) if may_pass(rest) => {
                let more = self.receive_passing(connection, rest, now, &mut hub, out)?;
                Ok(used + more)
            }
            _ => Ok(used),
        }
    }

    fn drained(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        let shared = self.hub.clone();
        let mut hub = shared.lock();
        self.passages.drained(connection, out);
        self.turn(now, &mut hub, out, |own, hub, turn| {
            if let Some(party) = own.party(connection, hub) {
                hub.drained(party.key, turn);
            }
        });
    }

    fn closed(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        let shared = self.hub.clone();
        let mut hub = shared.lock();
        self.end_passage(connection, &mut hub, out);
        self.turn(now, &mut hub, out, |own, hub, turn| {
            if let Some(party) = own.party(connection, hub) {
                hub.detach(party.key, now);
                hub.settle(turn);
            }
        });
        self.connections.remove(connection);
    }

    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        let shared = self.hub.clone();
        let mut hub = shared.lock();
        let next = self.turn(now, &mut hub, out, |own, hub, turn| {
            let silent = own.end_silent(hub, turn);
            silent.min(hub.wake(turn))
        });
        Some(next.min(now + WAKE_AT_LEAST))
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        let shared = self.hub.clone();
        let mut hub = shared.lock();
        self.turn(now, &mut hub, out, |own, hub, turn| {
            for mail in hub.mail.take(own.connections.shard) {
                match mail {
                    Mail::Pump(key) => hub.pump(key, turn),
                    Mail::TakenOver(id, serial, version) => {
                        if let Some(connection) = own.connection(id)
                            && connection.serial == serial
                            && connection.stage != Stage::Ending
                        {
                            connection.stage = Stage::Ending;
                            say_goodbye(id, version, SESSION_TAKEN_OVER, turn);
                        }
                    }
                }
            }
            hub.settle(turn);
        });
    }

    /// Connections are counted by shard; everything else is common and reported by shard 0 only,
    /// so that reports add up.
    fn report(&self) -> ServerReport {
        let mut report =
            ServerReport { connections: self.connections.accepted, ..ServerReport::default() };
        if self.connections.shard == 0 {
            self.hub.lock().add_to(&mut report);
        }
        report
    }
}

const TOO_MANY: Fault =
    Fault { reason: 0x93, what: "more messages in flight than announced", section: "3.3.4" };

/// Time limit of a connection without a CONNECT (section 3.1.4 asks for some limit).
const CONNECT_ALLOWANCE: Nanos = Nanos::from_secs(10);

/// A connection that comes later may need an earlier look, so the broker looks this often.
const WAKE_AT_LEAST: Nanos = Nanos::from_secs(1);

/// CONNACK of 3.1.1 with return code 1 (section 3.1.2.2 of 3.1.1).
const UNACCEPTABLE_VERSION: [u8; 4] = [0x20, 2, 0, 1];

const CONNECT_FIRST: u8 = 0x10;
const DISCONNECT_WITH_WILL: u8 = 0x04;
const UNSUPPORTED_VERSION: u8 = 0x84;
const KEEP_ALIVE_TIMEOUT: u8 = 0x8D;
const SESSION_TAKEN_OVER: u8 = 0x8E;
