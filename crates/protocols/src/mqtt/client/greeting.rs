//! The start of a session: CONNECT and its answer, the limits granted by the server, the
//! subscription of a consumer.

use weigh_model::connection::{Emit, Fault, Outbox, Signal};
use weigh_model::protocol::Role;

use super::super::codec::{
    Connack, Connect, Filter, Id, Options, Properties, Qos, Section, Suback, Subscribe, Version,
    Will, connack_words, words,
};
use super::super::terms::{GRANTS, connect_properties};
use super::{Client, State};

impl Client {
    pub(super) fn connect(&mut self, out: &mut Outbox) {
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
            clean: plan.session.clean,
            keep_alive_s: plan.session.keep_alive_s,
            properties: section.properties(),
            client_id: &client_id,
            will,
            user: plan.user.as_deref(),
            password: Some(plan.password.as_bytes()).filter(|password| !password.is_empty()),
        };
        connect.encode(out.buffer());
        if self.seat.role == Role::Producer && plan.publishes {
            let topic = plan.topic(self.seat.index, &client_id, None).into();
            self.flow().topic = topic;
        }
    }

    pub(super) fn connected(
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
        if connack.session_present && self.plan.session.clean {
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

    /// Obeys the limits announced by the server (section 3.2.2.3), and records them.
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

    pub(super) fn subscribed(&mut self, suback: &Suback<'_>, emit: Emit<'_>) -> Result<(), Fault> {
        let &[code] = suback.codes else {
            let what = "the SUBACK has several codes for one filter";
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
        if self.seat.role == Role::Producer && self.plan.session.window < u16::MAX {
            emit(Signal::Granted("receive_maximum_assumed", u64::from(self.plan.session.window)));
        }
        emit(Signal::Ready);
    }

    /// The first bytes of a server must be those of a CONNACK.
    pub(super) fn check_greeting(&self, input: &[u8]) -> Result<(), Fault> {
        if input.first().is_some_and(|first| *first != CONNACK_FIRST) {
            return Err(crate::requests::starts_otherwise(input));
        }
        // A 3.1.1 server refuses MQTT 5 in its own format, two bytes long.
        match (self.plan.version, input) {
            (Version::V5, [CONNACK_FIRST, 2, _, code, ..]) if *code != 0 => {
                let words = connack_words(*code, Version::V311);
                let reason =
                    format!("{words}: the server speaks 3.1.1, so set mqtt.version to 3.1.1");
                Err(Fault::Refused { code: u16::from(*code), reason })
            }
            _ => Ok(()),
        }
    }
}

/// A consumer publishes nothing, so this identifier is free.
const SUBSCRIBE_ID: u16 = 1;

const CONNACK_FIRST: u8 = 0x20;
