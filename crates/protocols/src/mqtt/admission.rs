//! Accepts sessions at the reference broker, and announces the broker's limits.

use super::broker_state::BrokerState;
use super::codec::{Connect, Id, Qos, Section, Version};

/// Why a CONNECT is refused, as return code of 3.1.1 and reason code of 5 (section 3.2.2.2).
pub(super) fn refusal(connect: &Connect<'_>, hub: &BrokerState) -> Option<(u8, u8)> {
    if connect.properties.has(Id::AuthenticationMethod) {
        return Some((5, 0x8C));
    }
    if connect.client_id.is_empty() && connect.version == Version::V311 && !connect.clean {
        return Some((2, 0x85));
    }
    if let Some((user, password)) = &hub.rules.login {
        let is_right = connect.user == Some(user)
            && connect.password.unwrap_or_default() == password.as_bytes();
        if connect.user.is_none() {
            return Some((5, 0x87));
        }
        if !is_right {
            return Some((4, 0x86));
        }
    }
    let is_v5 = connect.version == Version::V5;
    let will_qos = connect.will.map_or(Qos::AtMostOnce, |will| will.qos);
    (is_v5 && will_qos > hub.rules.maximum_qos).then_some((5, 0x9B))
}

/// The properties of a CONNACK: only what differs from the defaults (section 3.2.2.3).
pub(super) fn announce(hub: &BrokerState, assigned: Option<&str>, section: &mut Section) {
    let rules = &hub.rules;
    if rules.receive_maximum < u16::MAX {
        section.number(Id::ReceiveMaximum, u32::from(rules.receive_maximum));
    }
    if rules.maximum_qos < Qos::ExactlyOnce {
        section.number(Id::MaximumQos, u32::from(rules.maximum_qos as u8));
    }
    if rules.topic_alias_maximum > 0 {
        section.number(Id::TopicAliasMaximum, u32::from(rules.topic_alias_maximum));
    }
    if let Some(client_id) = assigned {
        section.text(Id::AssignedClientIdentifier, client_id);
    }
    if rules.keep_alive_s > 0 {
        section.number(Id::ServerKeepAlive, u32::from(rules.keep_alive_s));
    }
}
