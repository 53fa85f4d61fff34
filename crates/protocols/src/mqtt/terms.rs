//! Limits of a session: those a client requests in CONNECT, and those a server grants in CONNACK.

use super::codec::{Disconnect, Id, Packet, Section, words};
use super::plan::Plan;

/// Terms that a client requests in CONNECT (MQTT 5.0, section 3.1.2.11).
pub(super) fn connect_properties(plan: &Plan, section: &mut Section) {
    if plan.session.expiry_s > 0 {
        section.number(Id::SessionExpiryInterval, plan.session.expiry_s);
    }
    if plan.session.receive_maximum < u16::MAX {
        section.number(Id::ReceiveMaximum, u32::from(plan.session.receive_maximum));
    }
    if plan.session.maximum_packet_size > 0 {
        section.number(Id::MaximumPacketSize, plan.session.maximum_packet_size);
    }
    if plan.uses_aliases {
        section.number(Id::TopicAliasMaximum, ALIASES_TAKEN);
    }
}

/// Why a server ends a session, in words.
pub(super) fn ended(disconnect: &Disconnect<'_>) -> String {
    let words = words(disconnect.reason);
    match disconnect.properties.text(Id::ReasonString) {
        Some(text) => format!("{words}: {text}"),
        None => words.to_owned(),
    }
}

/// Name of a packet in the standard.
pub(super) fn name_of(packet: &Packet<'_>) -> &'static str {
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

/// Limits that a CONNACK may grant, with their names in the journal.
pub(super) const GRANTS: [(Id, &str); 7] = [
    (Id::ReceiveMaximum, "receive_maximum"),
    (Id::MaximumQos, "maximum_qos"),
    (Id::TopicAliasMaximum, "topic_alias_maximum"),
    (Id::ServerKeepAlive, "server_keep_alive_s"),
    (Id::MaximumPacketSize, "maximum_packet_size"),
    (Id::RetainAvailable, "retain_available"),
    (Id::SessionExpiryInterval, "session_expiry_s"),
];

/// Topic aliases a client takes if its plan uses aliases.
pub(super) const ALIASES_TAKEN: u32 = 16;
