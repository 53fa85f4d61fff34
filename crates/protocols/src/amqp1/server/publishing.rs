//! Messages that come to the reference server: their transfers, the queues they go to, and their
//! outcome.

use std::sync::Arc;

use weigh_model::server::{ConnectionId, Record};

use super::super::codec::{
    Disposition, Flow, Message, Performative, Problem, Role, State, Transfer, condition,
};
use super::super::hub::Hub;
use super::super::peer::{End, Peer, Producer};
use super::super::queue::Waiting;
use super::super::refusal::Refusal;
use super::Broker;
use super::linking::unattached;
use crate::broker_core::Turn;

impl Broker {
    pub(super) fn take_transfer(
        &mut self,
        id: ConnectionId,
        channel: u16,
        transfer: &Transfer<'_>,
        payload: &[u8],
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let handle = transfer.handle;
        let link = self.session(id, channel).and_then(|session| session.link(handle));
        let Some(link) = link else { return Err(unattached(handle)) };
        let producer = match &mut link.end {
            // What was on its way when the link was refused or ended.
            _ if link.is_detaching => return Ok(()),
            End::Producer(producer) => producer,
            _ => {
                let text = "a transfer to a link that sends";
                return Err(Refusal::link(handle, condition::NOT_ALLOWED, text));
            }
        };
        if let Some(refusal) = note(producer, transfer, handle) {
            return Err(refusal);
        }
        if transfer.aborted {
            producer.current = None;
            drop(producer.parts.take());
            return Ok(());
        }
        let most = hub.rules.message_bytes_max;
        if (producer.parts.len() + payload.len()) as u64 > most {
            let text = format!("a message of more than {most} bytes");
            return Err(Refusal::link(handle, condition::MESSAGE_SIZE, text));
        }
        if transfer.more || producer.parts.len() > 0 {
            producer.parts.push(payload);
        }
        if transfer.more {
            return Ok(());
        }
        let (node, current) = (producer.node, producer.current.take());
        let parts = producer.parts.take();
        let bytes = if parts.is_empty() { payload } else { &parts };
        let (delivery, is_settled) = current.unwrap_or_default();
        let mut routes = std::mem::take(&mut self.routes);
        routes.clear();
        hub.route(node, &mut routes);
        let state = publish(node, bytes, is_settled, &routes, hub, turn)?;
        for queue in &routes {
            self.dispatch(*queue, hub, turn);
        }
        self.routes = routes;
        if !is_settled {
            let (role, first) = (Role::Receiver, delivery);
            let own = Disposition { role, first, last: None, settled: true, state: Some(state) };
            self.say(id, channel, &Performative::Disposition(own), turn);
        }
        self.renew_credit(id, channel, handle, hub, turn);
        self.hold_if_full(id, hub, turn);
        Ok(())
    }

    /// Reads nothing more from a connection while messages fill the memory: what it has credit for
    /// waits at the client. It is read all the same where only its input frees memory.
    fn hold_if_full(&mut self, id: ConnectionId, hub: &mut Hub, turn: &mut Turn<'_>) {
        if !hub.memory.is_full() {
            return;
        }
        let Some(peer) = self.peer(id).filter(|peer| peer.may_wait() && !peer.is_held) else {
            return;
        };
        peer.is_held = true;
        note_blocked(peer, hub);
        turn.out.hold(id);
    }

    /// Gives a producer all of its credit anew once half of it is used, unless messages fill the
    /// memory.
    pub(super) fn renew_credit(
        &mut self,
        id: ConnectionId,
        channel: u16,
        handle: u32,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) {
        let full = hub.rules.credit;
        let Some(peer) = self.peer(id) else { return };
        let Some(session) = peer.session(channel) else { return };
        let state = session.windows.state();
        let Some(End::Producer(producer)) = session.link(handle).map(|link| &mut link.end) else {
            return;
        };
        if producer.credit > full / 2 {
            return;
        }
        if hub.memory.is_full() {
            return note_blocked(peer, hub);
        }
        producer.credit = full;
        let flow = Flow {
            handle: Some(handle),
            delivery_count: Some(producer.count),
            link_credit: Some(full),
            ..state
        };
        self.say(id, channel, &Performative::Flow(flow), turn);
    }
}

/// Notes a connection that waits until there is memory again.
fn note_blocked(peer: &mut Peer, hub: &mut Hub) {
    if !std::mem::replace(&mut peer.is_blocked, true) {
        hub.memory.note_blocked(peer.place);
    }
}

/// Notes a transfer: the first of a delivery uses credit.
fn note(producer: &mut Producer, transfer: &Transfer<'_>, handle: u32) -> Option<Refusal> {
    let wrong = |text: &str| Some(Refusal::session(condition::INVALID_FIELD, text));
    match (&mut producer.current, transfer.delivery_id) {
        (None, Some(delivery)) => {
            let Some(credit) = producer.credit.checked_sub(1) else {
                let text = "a delivery without credit for it";
                return Some(Refusal::link(handle, condition::TRANSFER_LIMIT, text));
            };
            producer.credit = credit;
            producer.count = producer.count.wrapping_add(1);
            producer.current = Some((delivery, transfer.settled));
            None
        }
        (None, None) => wrong("a delivery without a number"),
        (Some((own, _)), Some(delivery)) if *own != delivery => {
            wrong("a delivery inside another one")
        }
        (Some((_, is_settled)), _) => {
            *is_settled |= transfer.settled;
            None
        }
    }
}

/// Puts a message into its queues, and returns its outcome.
fn publish(
    node: u32,
    bytes: &[u8],
    is_settled: bool,
    routes: &[u32],
    hub: &mut Hub,
    turn: &mut Turn<'_>,
) -> Result<State<'static>, Refusal> {
    let message = Message::read(bytes)?;
    let mut room = Vec::new();
    let body = message.body.bytes(&message, &mut room);
    hub.census.note(body);
    if routes.is_empty() {
        hub.census.note_dropped(UNROUTABLE);
        return Ok(State::Accepted);
    }
    if routes.iter().any(|queue| hub.is_queue_full(*queue)) {
        hub.census.note_dropped(QUEUE_FULL);
        let description = Some("a queue has as many messages as it may have");
        let problem = Problem { condition: condition::RESOURCE_LIMIT, description, info: None };
        return Ok(State::Rejected(Some(problem)));
    }
    let kept = hub.message(message.header, message.bare);
    let mut is_stored = false;
    for queue in routes {
        if let Some(queue) = hub.queues.get_mut(*queue) {
            queue.ready.push_back(Waiting { message: Arc::clone(&kept), failures: 0 });
            is_stored |= queue.is_durable && message.header.durable;
        }
    }
    // What is confirmed is stored in the same turn.
    if is_stored && !is_settled {
        turn.out.store(Record::Message { name: hub.name(node).as_bytes(), body });
    }
    Ok(State::Accepted)
}

/// Cause of a message to a topic without a subscription.
const UNROUTABLE: &str = "unroutable";

/// Cause of a message that a full queue rejected.
const QUEUE_FULL: &str = "queue_full";
