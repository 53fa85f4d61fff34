//! Links that clients of the reference server attach and detach.

use weigh_model::server::ConnectionId;

use super::super::codec::{Attach, Detach, Performative, Role, Symbols, Terminus, condition};
use super::super::hub::{Hub, Seat};
use super::super::nodes::{QUEUE, TOPIC};
use super::super::peer::{End, Link, Producer};
use super::super::refusal::Refusal;
use super::{Broker, HANDLE_MAX};
use crate::broker_core::Turn;

impl Broker {
    /// Attaches a link. A refused one is attached without its node and detached again (part 2,
    /// section 2.6.3).
    pub(super) fn attach(
        &mut self,
        id: ConnectionId,
        channel: u16,
        attach: &Attach<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Some(session) = self.session(id, channel) else { return Ok(()) };
        let handle = attach.handle;
        if handle > HANDLE_MAX {
            let text = format!("handle {handle} is above {HANDLE_MAX}");
            return Err(Refusal::session(condition::NOT_ALLOWED, text));
        }
        if session.link(handle).is_some() {
            let text = format!("handle {handle} has a link");
            return Err(Refusal::session(condition::HANDLE_IN_USE, text));
        }
        let is_consumer = attach.role == Role::Receiver;
        let found = find(attach, hub, turn);
        let end = match found {
            Ok(node) if is_consumer => self.add_consumer(id, channel, attach, node, hub),
            Ok(node) => End::Producer(Producer {
                node,
                count: attach.initial_delivery_count.unwrap_or(0),
                parts: hub.parts(),
                ..Producer::default()
            }),
            Err(_) => End::Nothing,
        };
        if let Some(session) = self.session(id, channel) {
            session.links.push(Link { handle, is_detaching: false, end });
        }
        self.answer(id, channel, attach, found.is_ok(), hub, turn);
        found?;
        if !is_consumer {
            self.renew_credit(id, channel, handle, hub, turn);
        }
        Ok(())
    }

    fn add_consumer(
        &mut self,
        id: ConnectionId,
        channel: u16,
        attach: &Attach<'_>,
        node: u32,
        hub: &mut Hub,
    ) -> End {
        let Some(peer) = self.peer(id) else { return End::Nothing };
        let seat = Seat { place: peer.place, channel, handle: attach.handle };
        let is_settled = attach.snd_settle_mode == SETTLED;
        let is_durable = attach.source.is_some_and(|source| source.durable > 0);
        End::Consumer(hub.add_consumer(node, seat, is_settled, is_durable))
    }

    fn answer(
        &mut self,
        id: ConnectionId,
        channel: u16,
        attach: &Attach<'_>,
        is_taken: bool,
        hub: &Hub,
        turn: &mut Turn<'_>,
    ) {
        let is_consumer = attach.role == Role::Receiver;
        let (source, target) = (attach.source.map(had), attach.target.map(had));
        let answer = Attach {
            name: attach.name,
            handle: attach.handle,
            role: if is_consumer { Role::Sender } else { Role::Receiver },
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: 0,
            source: source.filter(|_| is_taken || !is_consumer),
            target: target.filter(|_| is_taken || is_consumer),
            initial_delivery_count: is_consumer.then_some(0),
            max_message_size: (!is_consumer).then_some(hub.rules.message_bytes_max),
        };
        self.say(id, channel, &Performative::Attach(answer), turn);
    }

    /// The client detached a link.
    pub(super) fn detached(
        &mut self,
        id: ConnectionId,
        channel: u16,
        detach: &Detach<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Detach { handle, closed, .. } = *detach;
        let link = self.session(id, channel).and_then(|session| session.link(handle));
        let Some(link) = link else { return Err(unattached(handle)) };
        let is_answer = link.is_detaching;
        self.end_link(id, channel, handle, hub, turn);
        if let Some(session) = self.session(id, channel) {
            session.links.retain(|link| link.handle != handle);
        }
        if !is_answer {
            let answer = Detach { handle, closed, error: None };
            self.say(id, channel, &Performative::Detach(answer), turn);
        }
        Ok(())
    }

    /// Ends what a link has: a consumer's deliveries go back to their queue.
    pub(super) fn end_link(
        &mut self,
        id: ConnectionId,
        channel: u16,
        handle: u32,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) {
        let Some(session) = self.session(id, channel) else { return };
        let Some(link) = session.link(handle) else { return };
        match std::mem::replace(&mut link.end, End::Nothing) {
            End::Producer(producer) => hub.detach(producer.node, turn.now),
            End::Consumer(key) => {
                session.held = session.held.take().filter(|held| held.handle != handle);
                let given = session.given.take_of(key);
                let queue = hub.remove_consumer(key, turn.now);
                self.give_back(given, hub);
                if let Some(queue) = queue {
                    self.dispatch(queue, hub, turn);
                }
            }
            End::Nothing => {}
        }
    }
}

/// The node of a link.
fn find(attach: &Attach<'_>, hub: &mut Hub, turn: &Turn<'_>) -> Result<u32, Refusal> {
    let handle = attach.handle;
    let is_consumer = attach.role == Role::Receiver;
    let missing = |what: &str| Err(Refusal::missing(handle, what));
    let Some(node) = (if is_consumer { attach.source } else { attach.target }) else {
        let text = "a link without a source or target";
        return Err(Refusal::link(handle, condition::INVALID_FIELD, text));
    };
    if node.is_coordinator {
        return missing("a coordinator of transactions");
    }
    if node.dynamic {
        return missing("a dynamic node");
    }
    if node.is_filtered {
        return missing("a filter");
    }
    let Some(address) = node.address.filter(|address| !address.is_empty()) else {
        return missing("a link without an address");
    };
    let is_topic = match (node.capabilities.contains(TOPIC), node.capabilities.contains(QUEUE)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    };
    hub.attach(address, is_topic, turn.now).ok_or_else(|| {
        let other = if is_topic == Some(true) { "queue" } else { "topic" };
        let text = format!("{address} is a {other}");
        Refusal::link(handle, condition::NOT_ALLOWED, text)
    })
}

/// What the server has of a node, and not all that the client asked for.
fn had(node: Terminus<'_>) -> Terminus<'_> {
    let durable = node.durable.min(1);
    let capabilities = Symbols::None;
    Terminus { expiry_policy: None, timeout_s: 0, capabilities, durable, ..node }
}

pub(super) fn unattached(handle: u32) -> Refusal {
    let text = format!("handle {handle} has no link");
    Refusal::session(condition::UNATTACHED_HANDLE, text)
}

/// `sender-settle-mode` (part 2, section 2.8.2).
const SETTLED: u8 = 1;
