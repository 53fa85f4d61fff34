//! The reference server: the connections of one shard, their frames, and their end.

mod consuming;
mod declaring;
mod greeting;
mod publishing;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};

use super::codec::{
    Flaw, Frame, FrameKind, Method, PROTOCOL_HEADER, Short, code, put_heartbeat, read_frame,
};
use super::hub::{Hub, Mail};
use super::peer::{Channel, ContentStage, Peer, Stage};
use super::refusal::Refusal;
use crate::broker_core::{Peers, Place, Shared, Turn};

/// One shard of the server.
pub(super) struct Broker {
    hub: Shared<Hub>,
    peers: Peers<Box<Peer>>,
    /// Scratch space for the queues of a message.
    routes: Vec<u32>,
}

impl Broker {
    pub(super) fn new(hub: Shared<Hub>, shard: u16) -> Broker {
        Broker { hub, peers: Peers::new(shard), routes: Vec::new() }
    }

    fn peer(&mut self, id: ConnectionId) -> Option<&mut Peer> {
        self.peers.get(id).map(|peer| &mut **peer)
    }

    fn channel(&mut self, id: ConnectionId, number: u16) -> Option<&mut Channel> {
        self.peer(id)?.channel(number)
    }

    /// Appends a method to what a connection gets.
    fn say(&mut self, id: ConnectionId, channel: u16, method: &Method<'_>, turn: &mut Turn<'_>) {
        if let Some(peer) = self.peer(id) {
            peer.last_sent = turn.now;
            method.put(channel, turn.out.stage(id));
        }
    }

    /// One call from the engine, with the hub locked.
    fn turn<T>(
        &mut self,
        now: Nanos,
        out: &mut dyn Outboxes,
        act: impl FnOnce(&mut Broker, &mut Hub, &mut Turn<'_>) -> T,
    ) -> T {
        let (hub, shard) = (self.hub.clone(), self.peers.shard);
        act(self, &mut hub.lock(), &mut Turn::new(out, now, shard))
    }

    fn take_all(
        &mut self,
        id: ConnectionId,
        input: &[u8],
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<usize, Fault> {
        let mut used = 0;
        loop {
            let Some(peer) = self.peer(id) else { return Ok(input.len()) };
            let rest = &input[used..];
            match peer.stage {
                Stage::Over => return Ok(input.len()),
                Stage::Header => {
                    let seen = &rest[..rest.len().min(PROTOCOL_HEADER.len())];
                    if !PROTOCOL_HEADER.starts_with(seen) {
                        // Section 4.2.2: the version that the server has.
                        peer.stage = Stage::Over;
                        turn.out.stage(id).extend_from_slice(&PROTOCOL_HEADER);
                        let what = "it does not begin with the header of AMQP 0-9-1".to_owned();
                        return Err(Fault::OtherProtocol(what));
                    }
                    if seen.len() < PROTOCOL_HEADER.len() {
                        return Ok(used);
                    }
                    used += PROTOCOL_HEADER.len();
                    self.start(id, turn);
                }
                _ => match read_frame(rest, peer.frame_max) {
                    Ok(None) => return Ok(used),
                    Ok(Some((frame, size))) => {
                        used += size;
                        if let Err((refusal, ids)) = self.take(id, &frame, hub, turn) {
                            self.refuse(id, frame.channel, &refusal, ids, hub, turn);
                        }
                    }
                    Err(flaw) => {
                        let refusal = Refusal::from(flaw);
                        self.refuse(id, 0, &refusal, (0, 0), hub, turn);
                        // Where the next frame begins is not known.
                        self.end(id, turn);
                    }
                },
            }
        }
    }

    fn take(
        &mut self,
        id: ConnectionId,
        frame: &Frame<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), (Refusal, (u16, u16))> {
        let unknown = |refusal: Refusal| (refusal, (0, 0));
        match frame.kind {
            FrameKind::Heartbeat => Ok(()),
            FrameKind::Header => {
                self.take_header(id, frame, hub).map_err(|refusal| (refusal, PUBLISH))?;
                self.publish_if_whole(id, frame.channel, hub, turn)
                    .map_err(|refusal| (refusal, PUBLISH))
            }
            FrameKind::Body => {
                self.take_body(id, frame).map_err(|refusal| (refusal, PUBLISH))?;
                self.publish_if_whole(id, frame.channel, hub, turn)
                    .map_err(|refusal| (refusal, PUBLISH))
            }
            FrameKind::Method => {
                let method = Method::read(frame.payload);
                let method = method.map_err(|flaw: Flaw| unknown(flaw.into()))?;
                self.take_method(id, frame.channel, &method, hub, turn)
                    .map_err(|refusal| (refusal, method.ids()))
            }
        }
    }

    fn take_method(
        &mut self,
        id: ConnectionId,
        number: u16,
        method: &Method<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Some(peer) = self.peer(id) else { return Ok(()) };
        let stage = peer.stage;
        match (stage, method) {
            (Stage::Closing, Method::ConnectionCloseOk {}) => {
                self.end(id, turn);
                return Ok(());
            }
            (
                Stage::Start | Stage::Tune | Stage::Tuned | Stage::Open | Stage::Closing,
                Method::ConnectionClose { .. },
            ) => {
                self.say(id, 0, &Method::ConnectionCloseOk {}, turn);
                self.leave(id, hub, turn);
                self.end(id, turn);
                return Ok(());
            }
            (Stage::Closing | Stage::Over, _) => return Ok(()),
            (Stage::Open, _) if number > 0 => {}
            _ if number > 0 => return Err(Refusal::unexpected("a channel before it is open")),
            _ => return self.greet(id, method, hub, turn),
        }
        let Some(channel) = peer.channel(number) else {
            return self.open_channel(id, number, method, hub, turn);
        };
        match method {
            Method::ChannelCloseOk {} if channel.is_closing => {
                peer.channels.retain(|channel| channel.number != number);
                return Ok(());
            }
            Method::ChannelClose { .. } => {
                self.end_channel(id, number, hub, turn);
                if let Some(peer) = self.peer(id) {
                    peer.channels.retain(|channel| channel.number != number);
                }
                self.say(id, number, &Method::ChannelCloseOk {}, turn);
                return Ok(());
            }
            _ if channel.is_closing => return Ok(()),
            _ if channel.content.stage != ContentStage::Nothing => {
                return Err(Refusal::unexpected("a method inside a message"));
            }
            _ => {}
        }
        match method.ids().0 {
            EXCHANGE | QUEUE => self.declare(id, number, method, hub, turn),
            _ => self.take_session_method(id, number, method, hub, turn),
        }
    }

    fn take_session_method(
        &mut self,
        id: ConnectionId,
        number: u16,
        method: &Method<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        match *method {
            Method::Publish { exchange, routing_key, bits, .. } => {
                return self.begin_publish(id, number, (exchange.0, routing_key.0), bits);
            }
            Method::ConfirmSelect { bits } => {
                if let Some(channel) = self.channel(id, number) {
                    channel.confirms.get_or_insert(0);
                }
                if bits & super::codec::bits::NO_WAIT == 0 {
                    self.say(id, number, &Method::ConfirmSelectOk {}, turn);
                }
            }
            Method::Flow { active: 1 } => {
                self.say(id, number, &Method::FlowOk { active: 1 }, turn);
            }
            Method::Flow { .. } => return Err(Refusal::missing("channel.flow to stop")),
            Method::FlowOk { .. } => {}
            Method::TxSelect {} => return Err(Refusal::missing("tx")),
            _ => return self.consume(id, number, method, hub, turn),
        }
        Ok(())
    }

    fn open_channel(
        &mut self,
        id: ConnectionId,
        number: u16,
        method: &Method<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        if !matches!(method, Method::ChannelOpen { .. }) {
            let text = format!("{} on a channel that is not open", method.name());
            return Err(Refusal::connection(code::CHANNEL_ERROR, text));
        }
        if number > hub.rules.channel_max {
            let text = format!("channel {number} is above {}", hub.rules.channel_max);
            return Err(Refusal::connection(code::CHANNEL_ERROR, text));
        }
        if let Some(peer) = self.peer(id) {
            peer.channels.push(Channel::new(number));
        }
        let reserved_1 = super::codec::Long(b"");
        self.say(id, number, &Method::ChannelOpenOk { reserved_1 }, turn);
        Ok(())
    }

    /// Closes the channel or the connection of a refused method.
    fn refuse(
        &mut self,
        id: ConnectionId,
        number: u16,
        refusal: &Refusal,
        ids: (u16, u16),
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) {
        let (class_id, method_id) = ids;
        let (reply_code, reply_text) = (refusal.code, Short(&refusal.text));
        if refusal.ends_connection || number == 0 {
            let close = Method::ConnectionClose { reply_code, reply_text, class_id, method_id };
            self.say(id, 0, &close, turn);
            self.leave(id, hub, turn);
            if let Some(peer) = self.peer(id) {
                peer.stage = Stage::Closing;
            }
            return;
        }
        let close = Method::ChannelClose { reply_code, reply_text, class_id, method_id };
        self.end_channel(id, number, hub, turn);
        if let Some(channel) = self.channel(id, number) {
            channel.is_closing = true;
        }
        self.say(id, number, &close, turn);
    }

    /// Ends what a connection has: channels, consumers, and queues of its own.
    fn leave(&mut self, id: ConnectionId, hub: &mut Hub, turn: &mut Turn<'_>) {
        let Some(peer) = self.peer(id) else { return };
        let (place, channels) = (peer.place, peer.channels.len());
        let numbers: Vec<u16> = peer.channels.iter().map(|channel| channel.number).collect();
        debug_assert_eq!(numbers.len(), channels);
        for number in numbers {
            self.end_channel(id, number, hub, turn);
        }
        if let Some(peer) = self.peer(id) {
            peer.channels.clear();
        }
        hub.memory.forget(place);
        for queue in hub.owned_by(place) {
            self.delete_queue(queue, hub, turn);
        }
    }

    /// Closes a connection once its output is sent, and ignores its later input.
    fn end(&mut self, id: ConnectionId, turn: &mut Turn<'_>) {
        if let Some(peer) = self.peer(id) {
            peer.stage = Stage::Over;
        }
        turn.out.close(id);
    }

    /// Lets publishers continue for whom there is memory again, and lets those wait that do not
    /// read their answers.
    fn settle(&mut self, hub: &mut Hub, turn: &mut Turn<'_>) {
        for place in hub.memory.take_unblocked() {
            match place.shard == turn.shard {
                true => self.unblock(place, turn),
                false => hub.mail.post(place.shard, Mail::Unblocked(place), turn.out),
            }
        }
    }

    fn unblock(&mut self, place: Place, turn: &mut Turn<'_>) {
        let id = place.connection;
        let Some(peer) = self.peer(id).filter(|peer| peer.place == place) else { return };
        peer.is_blocked = false;
        let (is_free, hears) = (!peer.is_behind, peer.hears_blocked);
        if is_free {
            turn.out.release(id);
        }
        if hears {
            self.say(id, 0, &Method::Unblocked {}, turn);
        }
    }

    /// Lets a peer wait that does not read its answers.
    fn check_behind(&mut self, id: ConnectionId, turn: &mut Turn<'_>) {
        if turn.out.pending_bytes(id) < ANSWER_BYTES_MAX {
            return;
        }
        if let Some(peer) = self.peer(id).filter(|peer| !peer.is_behind) {
            peer.is_behind = true;
            turn.out.hold(id);
            turn.out.notify_drained(id);
        }
    }

    /// Sends heartbeats, and ends connections that have been silent for too long.
    fn beat(&mut self, hub: &mut Hub, turn: &mut Turn<'_>) {
        for id in self.peers.ids() {
            let Some(peer) = self.peer(id) else { continue };
            if turn.now >= peer.deadline() {
                self.leave(id, hub, turn);
                self.end(id, turn);
            } else if peer.stage == Stage::Open
                && peer.beat.0 > 0
                && turn.now >= peer.last_sent + peer.beat
            {
                peer.last_sent = turn.now;
                put_heartbeat(turn.out.stage(id));
            }
        }
    }
}

impl Server for Broker {
    fn accepted(&mut self, connection: ConnectionId, now: Nanos, _out: &mut dyn Outboxes) {
        let mut hub = self.hub.lock();
        hub.census.note_connection();
        let frame_max = hub.rules.frame_max;
        self.peers.accept(connection, |place| Box::new(Peer::new(place, frame_max, now)));
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        if let Some(peer) = self.peer(connection) {
            peer.last_received = now;
        }
        self.turn(now, out, |own, hub, turn| {
            let used = own.take_all(connection, input, hub, turn);
            own.settle(hub, turn);
            own.check_behind(connection, turn);
            used
        })
    }

    fn drained(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.turn(now, out, |own, hub, turn| {
            let Some(peer) = own.peer(connection) else { return };
            if std::mem::replace(&mut peer.is_behind, false) && !peer.is_blocked {
                turn.out.release(connection);
            }
            let consumers = peer.channels.iter().flat_map(|channel| &channel.consumers);
            let consumers: Vec<u32> = consumers.copied().collect();
            for consumer in consumers {
                let queue = hub.consumers.get(consumer).map(|consumer| consumer.queue);
                if let Some(queue) = queue {
                    own.dispatch(queue, hub, turn);
                }
            }
            own.settle(hub, turn);
        });
    }

    fn closed(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.turn(now, out, |own, hub, turn| {
            own.leave(connection, hub, turn);
            own.peers.remove(connection);
            own.settle(hub, turn);
        });
    }

    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        self.turn(now, out, |own, hub, turn| {
            own.beat(hub, turn);
            for queue in hub.expired(now) {
                own.delete_queue(queue, hub, turn);
            }
            own.settle(hub, turn);
        });
        Some(now + WAKE_EVERY)
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        self.turn(now, out, |own, hub, turn| {
            for mail in hub.mail.take(own.peers.shard) {
                match mail {
                    Mail::Deliver(consumer) => {
                        while let Some(waiting) = hub.take_left(consumer) {
                            own.deliver(consumer, waiting, hub, turn);
                        }
                        let queue = hub.consumers.get(consumer).map(|consumer| consumer.queue);
                        if let Some(queue) = queue {
                            own.dispatch(queue, hub, turn);
                        }
                    }
                    Mail::Cancelled(consumer) => own.cancelled(&consumer, turn),
                    Mail::Unblocked(place) => own.unblock(place, turn),
                }
            }
            own.settle(hub, turn);
        });
    }

    /// Everything is common and reported by shard 0 only, so that reports add up.
    fn report(&self) -> ServerReport {
        match self.peers.shard {
            0 => self.hub.lock().report(),
            _ => ServerReport::default(),
        }
    }
}

/// With this many bytes of answers in its socket's way, a peer is not read from.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Heartbeats and unused queues are looked at this often.
const WAKE_EVERY: Nanos = Nanos::from_secs(1);

const PUBLISH: (u16, u16) = (60, 40);
const EXCHANGE: u16 = 40;
const QUEUE: u16 = 50;
