//! SUBSCRIBE and UNSUBSCRIBE at the reference broker.

use super::broker_state::BrokerState;
use super::codec::{Fault, Id, Properties, Suback, Subscribe, Unsuback, Unsubscribe, Version};
use super::session::Party;
use super::topic;
use super::trie::is_shallow;
use crate::broker_core::Turn;

/// Subscribes, answers, and sends what is retained (MQTT 5.0, sections 3.8 and 3.9).
pub(super) fn take_subscribe(
    party: &Party,
    subscribe: &Subscribe<'_>,
    hub: &mut BrokerState,
    turn: &mut Turn<'_>,
) -> Result<(), Fault> {
    let id = subscribe.properties.number(Id::SubscriptionIdentifier).unwrap_or(0);
    let mut codes = Vec::new();
    let mut wants_retained = Vec::new();
    for filter in subscribe.filters() {
        let is_shared = filter.filter.starts_with("$share/");
        if is_shared && filter.options.no_local {
            return Err(Fault::protocol("no local on a shared subscription", "3.8.3.1"));
        }
        if !topic::is_filter(filter.filter) || !is_shallow(filter.filter) {
            codes.push(if party.version == Version::V5 { 0x8F } else { 0x80 });
            continue;
        }
        let qos = filter.options.qos.min(hub.rules.maximum_qos);
        let is_new = hub.subscribe(party.key, &filter, qos, id);
        codes.push(qos as u8);
        let wants = match filter.options.retain_handling {
            0 => true,
            1 => is_new,
            _ => false,
        };
        if wants && !is_shared {
            wants_retained.push((filter.filter, qos));
        }
    }
    let (packet_id, properties) = (subscribe.packet_id, Properties::NONE);
    let suback = Suback { packet_id, properties, codes: &codes };
    suback.encode(party.version, turn.out.stage(party.attached.connection));
    for (filter, qos) in wants_retained {
        hub.send_retained(party.key, filter, qos, id, turn);
    }
    hub.settle(turn);
    Ok(())
}

/// Ends subscriptions and answers (MQTT 5.0, sections 3.10 and 3.11).
pub(super) fn take_unsubscribe(
    party: &Party,
    unsubscribe: &Unsubscribe<'_>,
    hub: &mut BrokerState,
    turn: &mut Turn<'_>,
) {
    let codes: Vec<u8> = unsubscribe
        .filters()
        .map(|filter| if hub.unsubscribe(party.key, filter) { 0 } else { NO_SUBSCRIPTION })
        .collect();
    let (packet_id, properties) = (unsubscribe.packet_id, Properties::NONE);
    let unsuback = Unsuback { packet_id, properties, codes: &codes };
    unsuback.encode(party.version, turn.out.stage(party.attached.connection));
}

/// Reason code of an UNSUBACK (section 3.11.3).
const NO_SUBSCRIPTION: u8 = 0x11;
