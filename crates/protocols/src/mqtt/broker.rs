//! The connections of one shard of the reference broker.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weigh_model::Nanos;

use super::broker_state::BrokerState;
use super::codec::{Fault, Id, Publish, Qos, Version};
use super::session::Party;
use crate::broker_core::{Peers, Shared};
use crate::pass_through::PassThroughs;

/// One shard of the broker.
pub(super) struct Broker {
    pub(super) hub: Shared<BrokerState>,
    pub(super) connections: Peers<Connection>,
    /// When to look whether a connection has been silent for too long, by number and serial.
    pub(super) deadlines: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
    /// Scratch space for what a message forwards.
    pub(super) forwarded: Vec<u8>,
    pub(super) topic: String,
    /// Messages that are too large to be whole here.
    pub(super) passages: PassThroughs<Passing>,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) serial: u32,
    pub(super) stage: Stage,
    pub(super) version: Version,
    pub(super) last_received: Nanos,
    /// Silence that is allowed; 0 for any.
    pub(super) allowance: Nanos,
    /// The one entry of `deadlines` that counts; earlier ones are stale.
    pub(super) deadline: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No CONNECT yet.
    Greeting,
    /// It has this session.
    Connected(u32),
    /// The broker closes it; later input is ignored.
    Ending,
}

/// Facts needed when a message has passed completely.
pub(super) struct Passing {
    pub(super) key: u32,
    pub(super) version: Version,
    pub(super) qos: Qos,
    pub(super) packet_id: u16,
    pub(super) is_wanted: bool,
    /// It was here before and is not released: acknowledged, not forwarded.
    pub(super) is_repeated: bool,
}

pub(crate) fn check_publish(
    party: &Party,
    publish: &Publish<'_>,
    hub: &BrokerState,
) -> Result<(), Fault> {
    if party.version == Version::V311 {
        return Ok(());
    }
    if publish.qos > hub.rules.maximum_qos {
        let (what, section) = ("the QoS is above the maximum announced", "3.2.2.3.4");
        return Err(Fault { reason: 0x9B, what, section });
    }
    if publish.properties.is_empty() {
        return Ok(());
    }
    if publish.properties.has(Id::SubscriptionIdentifier) {
        let what = "a client must not send subscription identifiers";
        return Err(Fault::protocol(what, "3.3.4"));
    }
    let alias = publish.properties.number(Id::TopicAlias).unwrap_or(0);
    if alias > u32::from(hub.rules.topic_alias_maximum) {
        let what = "the topic alias is above the maximum announced";
        return Err(Fault { reason: 0x94, what, section: "3.3.2.3.4" });
    }
    Ok(())
}

/// Stores or looks up a topic alias of the client and leaves its topic in `name`.
pub(super) fn resolve(
    aliases: &mut Vec<Box<str>>,
    alias: usize,
    topic: &str,
    name: &mut String,
) -> Result<(), Fault> {
    name.clear();
    if topic.is_empty() {
        let known = aliases.get(alias - 1).filter(|known| !known.is_empty());
        name.push_str(known.ok_or(Fault::protocol("an unknown topic alias", "3.3.2.3.4"))?);
        return Ok(());
    }
    name.push_str(topic);
    if aliases.len() < alias {
        aliases.resize(alias, Box::default());
    }
    if *aliases[alias - 1] != *topic {
        aliases[alias - 1] = topic.into();
    }
    Ok(())
}

pub(crate) const NO_SUBSCRIBERS: u8 = 0x10;
