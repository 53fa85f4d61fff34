//! Messages that leave the reference server: deliveries, credit, and their outcomes.

use std::sync::Arc;

use weigh_model::server::ConnectionId;

use super::super::codec::{
    self, Disposition, Flow, Header, Performative, Role, State, put_delivery,
};
use super::super::hub::Hub;
use super::super::peer::{Delivery, End, Held, Session};
use super::super::queue::Waiting;
use super::super::refusal::Refusal;
use super::Broker;
use super::linking::unattached;
use crate::broker_core::{Turn, take_first};

impl Broker {
    /// The consumers of a connection.
    pub(super) fn consumers_of(&mut self, id: ConnectionId) -> Vec<u32> {
        let sessions = self.peer(id).map(|peer| &peer.sessions[..]).unwrap_or_default();
        let links = sessions.iter().flat_map(|session| &session.links);
        let keys = links.filter_map(|link| match link.end {
            End::Consumer(key) => Some(key),
            _ => None,
        });
        keys.collect()
    }

    /// Sends a consumer of this shard what was left for it and what waits in its queue.
    pub(super) fn serve(&mut self, key: u32, hub: &mut Hub, turn: &mut Turn<'_>) {
        self.send_left(key, hub, turn);
        let queue = hub.consumers.get(key).map(|consumer| consumer.queue);
        if let Some(queue) = queue {
            self.dispatch(queue, hub, turn);
        }
        self.finish_drain(key, hub, turn);
    }

    /// Takes the state of a session, and of a link.
    pub(super) fn take_flow(
        &mut self,
        id: ConnectionId,
        channel: u16,
        flow: &Flow,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Some(session) = self.session(id, channel) else { return Ok(()) };
        session.windows.heard(flow);
        self.resume(id, channel, turn);
        let Some(handle) = flow.handle else {
            if flow.echo {
                self.put_state(id, channel, turn);
            }
            self.send_all_left(id, hub, turn);
            return Ok(());
        };
        let link = self.session(id, channel).and_then(|session| session.link(handle));
        match link.map(|link| (link.is_detaching, &link.end)) {
            None => return Err(unattached(handle)),
            Some((false, End::Consumer(key))) => {
                let key = *key;
                self.take_credit(key, flow, hub, turn);
            }
            Some((false, End::Producer(_))) if flow.echo => self.put_state(id, channel, turn),
            _ => {}
        }
        self.send_all_left(id, hub, turn);
        Ok(())
    }

    fn take_credit(&mut self, key: u32, flow: &Flow, hub: &mut Hub, turn: &mut Turn<'_>) {
        let Some(consumer) = hub.consumers.get_mut(key) else { return };
        let unseen = codec::distance(flow.delivery_count.unwrap_or(0), consumer.count);
        consumer.credit = flow.link_credit.unwrap_or(0).saturating_sub(unseen);
        consumer.is_draining = flow.drain;
        self.serve(key, hub, turn);
        let Some(consumer) = hub.consumers.get(key) else { return };
        if flow.echo && !flow.drain {
            let (place, channel) = (consumer.place, consumer.channel);
            let (handle, count) = (Some(consumer.handle), Some(consumer.count));
            let credit = Some(consumer.credit);
            let Some(session) = self.session(place.connection, channel) else { return };
            let state = session.windows.state();
            let own = Flow { handle, delivery_count: count, link_credit: credit, ..state };
            self.say(place.connection, channel, &Performative::Flow(own), turn);
        }
    }

    /// Uses up the credit of a link that is drained, and says so.
    fn finish_drain(&mut self, key: u32, hub: &mut Hub, turn: &mut Turn<'_>) {
        if !hub.is_drained(key) {
            return;
        }
        let Some(consumer) = hub.consumers.get_mut(key) else { return };
        let id = consumer.place.connection;
        let session = self.peers.get(id).and_then(|peer| peer.session(consumer.channel));
        let Some(session) = session.filter(|session| session.held.is_none()) else { return };
        consumer.is_draining = false;
        consumer.count = consumer.count.wrapping_add(consumer.credit);
        consumer.credit = 0;
        let flow = Flow {
            handle: Some(consumer.handle),
            delivery_count: Some(consumer.count),
            link_credit: Some(0),
            available: Some(0),
            drain: true,
            ..session.windows.state()
        };
        let channel = consumer.channel;
        self.say(id, channel, &Performative::Flow(flow), turn);
    }

    fn put_state(&mut self, id: ConnectionId, channel: u16, turn: &mut Turn<'_>) {
        let Some(session) = self.session(id, channel) else { return };
        let state = session.windows.state();
        self.say(id, channel, &Performative::Flow(state), turn);
    }

    /// Sends the messages of a queue as far as its consumers take them.
    pub(super) fn dispatch(&mut self, queue: u32, hub: &mut Hub, turn: &mut Turn<'_>) {
        while let Some(key) = hub.next_consumer(queue, turn) {
            let Some(waiting) =
                hub.queues.get_mut(queue).and_then(|queue| take_first(&mut queue.ready))
            else {
                return;
            };
            let Some(consumer) = hub.consumers.get_mut(key) else { return };
            consumer.credit = consumer.credit.saturating_sub(1);
            consumer.count = consumer.count.wrapping_add(1);
            let is_own = consumer.place.shard == turn.shard;
            hub.leave(key, waiting, turn);
            if is_own {
                self.send_left(key, hub, turn);
            }
        }
    }

    /// Sends what is in the inboxes of the consumers of a connection.
    fn send_all_left(&mut self, id: ConnectionId, hub: &mut Hub, turn: &mut Turn<'_>) {
        for key in self.consumers_of(id) {
            self.send_left(key, hub, turn);
            self.finish_drain(key, hub, turn);
        }
    }

    /// Sends the inbox of a consumer of this shard, as far as the window of its session allows.
    pub(super) fn send_left(&mut self, key: u32, hub: &mut Hub, turn: &mut Turn<'_>) {
        let Some(consumer) = hub.consumers.get(key) else { return };
        let (id, channel) = (consumer.place.connection, consumer.channel);
        let (handle, is_settled, queue) = (consumer.handle, consumer.is_settled, consumer.queue);
        loop {
            let Some(peer) = self.peer(id) else { return };
            let (frame_max, now) = (peer.frame_max, turn.now);
            let Some(session) = peer.session(channel) else { return };
            if session.held.is_some() || session.windows.window() == 0 {
                return;
            }
            let Some(waiting) = hub.take_left(key) else { return };
            let Waiting { message, failures } = waiting.clone();
            let delivery = Delivery { consumer: key, queue, waiting };
            let number = session.given.note((!is_settled).then_some(delivery));
            let mut head = Vec::new();
            Header { delivery_count: failures, ..message.header }.put(&mut head);
            let held = Held { handle, id: number, is_settled, head, message, sent: 0 };
            session.held = put(held, session, channel, frame_max, turn.out.stage(id));
            peer.last_sent = now;
            hub.census.note_forwarded(1);
        }
    }

    /// Sends more of the delivery that waits for the window.
    fn resume(&mut self, id: ConnectionId, channel: u16, turn: &mut Turn<'_>) {
        let Some(peer) = self.peer(id) else { return };
        let (frame_max, now) = (peer.frame_max, turn.now);
        let Some(session) = peer.session(channel) else { return };
        let Some(held) = session.held.take() else { return };
        session.held = put(held, session, channel, frame_max, turn.out.stage(id));
        peer.last_sent = now;
    }

    /// Ends deliveries as the client says.
    pub(super) fn take_disposition(
        &mut self,
        id: ConnectionId,
        channel: u16,
        disposition: &Disposition<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) {
        // What a producer says about its own deliveries: they are settled already.
        if disposition.role == Role::Sender {
            return;
        }
        let state = match disposition.state {
            Some(state) if state.is_outcome() => state,
            None if disposition.settled => State::Released,
            _ => return,
        };
        let (first, last) = (disposition.first, disposition.last());
        let Some(session) = self.session(id, channel) else { return };
        let mut ended = session.given.take(first, last);
        match state {
            State::Accepted => {}
            State::Rejected(_) => hub.census.note_dropped_many(REJECTED, ended.len() as u64),
            State::Modified { failed, .. } => {
                for delivery in &mut ended {
                    delivery.waiting.failures += u32::from(failed);
                }
            }
            _ => {}
        }
        if matches!(state, State::Released | State::Modified { .. }) {
            let queues: Vec<u32> = ended.iter().map(|delivery| delivery.queue).collect();
            self.give_back(ended, hub);
            for queue in queues {
                self.dispatch(queue, hub, turn);
            }
        }
        if !disposition.settled {
            let (role, last, state) = (Role::Sender, disposition.last, Some(state));
            let own = Disposition { role, first, last, settled: true, state };
            self.say(id, channel, &Performative::Disposition(own), turn);
        }
    }

    /// Puts deliveries back into their queues, in their order.
    pub(super) fn give_back(&mut self, ended: Vec<Delivery>, hub: &mut Hub) {
        for delivery in ended.into_iter().rev() {
            if let Some(queue) = hub.queues.get_mut(delivery.queue) {
                queue.put_back(std::iter::once(delivery.waiting));
            }
        }
    }
}

/// Sends a delivery as far as the window allows, and gives back what is left of it.
fn put(
    mut held: Held,
    session: &mut Session,
    channel: u16,
    frame_max: u32,
    out: &mut Vec<u8>,
) -> Option<Held> {
    let message = Arc::clone(&held.message);
    let delivery = codec::Delivery {
        handle: held.handle,
        id: held.id,
        is_settled: held.is_settled,
        parts: [&held.head, &message.bare],
    };
    let progress =
        put_delivery(&delivery, held.sent, channel, frame_max, session.windows.window(), out);
    session.windows.sent(progress.transfers);
    held.sent = progress.bytes;
    (!progress.is_whole).then_some(held)
}

/// Cause of a message that its consumer refused.
const REJECTED: &str = "rejected";
