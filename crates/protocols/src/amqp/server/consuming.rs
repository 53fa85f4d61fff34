//! Messages that leave the reference server: consumers, deliveries, and acknowledgements.

use weigh_model::server::ConnectionId;

use super::super::codec::{Method, Short, bits, code};
use super::super::hub::{Consumer, Hub, Mail};
use super::super::peer::Delivery;
use super::super::queue::Waiting;
use super::super::refusal::Refusal;
use super::Broker;
use crate::broker_core::{Turn, take_first};

impl Broker {
    /// Takes a method of the class basic other than `basic.publish`.
    pub(super) fn consume(
        &mut self,
        id: ConnectionId,
        number: u16,
        method: &Method<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        match *method {
            Method::Qos { prefetch_size: 0, prefetch_count, bits: 0 } => {
                if let Some(channel) = self.channel(id, number) {
                    channel.prefetch = u32::from(prefetch_count);
                }
                self.say(id, number, &Method::QosOk {}, turn);
                Ok(())
            }
            Method::Qos { .. } => Err(Refusal::missing("a prefetch in bytes or of a channel")),
            Method::Consume { queue, consumer_tag, bits, .. } => {
                self.begin_consumer(id, number, (queue.0, consumer_tag.0), bits, hub, turn)
            }
            Method::Cancel { consumer_tag, bits } => {
                self.cancel(id, number, consumer_tag.0, hub, turn);
                if bits & bits::NO_WAIT == 0 {
                    self.say(id, number, &Method::CancelOk { consumer_tag }, turn);
                }
                Ok(())
            }
            Method::Get { queue, bits, .. } => self.get(id, number, queue.0, bits, hub, turn),
            Method::Ack { delivery_tag, bits } => {
                let is_multiple = bits & bits::MULTIPLE != 0;
                self.end_deliveries(id, number, (delivery_tag, is_multiple), None, hub, turn)
            }
            Method::Nack { delivery_tag, bits } => {
                let is_multiple = bits & bits::MULTIPLE != 0;
                let is_back = bits & bits::NACK_REQUEUE != 0;
                let tag = (delivery_tag, is_multiple);
                self.end_deliveries(id, number, tag, Some(is_back), hub, turn)
            }
            Method::Reject { delivery_tag, bits } => {
                let is_back = bits & bits::REQUEUE != 0;
                self.end_deliveries(id, number, (delivery_tag, false), Some(is_back), hub, turn)
            }
            Method::Recover { .. } => Err(Refusal::missing("basic.recover")),
            _ => {
                let text = format!("a client must not send {}", method.name());
                Err(Refusal::connection(code::COMMAND_INVALID, text))
            }
        }
    }

    fn begin_consumer(
        &mut self,
        id: ConnectionId,
        number: u16,
        (queue, tag): (&str, &str),
        bits: u8,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let queue = self.named_queue(id, number, queue, hub)?;
        let Some(peer) = self.peer(id) else { return Ok(()) };
        let place = peer.place;
        let Some(channel) = peer.channel(number) else { return Ok(()) };
        let made = format!("amq.ctag-{}", hub.consumers.made());
        let tag = if tag.is_empty() { &made } else { tag };
        let is_known = |key: &u32| hub.consumers.get(*key).is_some_and(|own| &*own.tag == tag);
        if channel.consumers.iter().any(is_known) {
            let text = format!("the consumer tag '{tag}' is in use");
            return Err(Refusal::connection(code::NOT_ALLOWED, text));
        }
        let is_exclusive = bits & bits::CONSUME_EXCLUSIVE != 0;
        let others = hub.queues.get(queue).into_iter().flat_map(|queue| &queue.consumers);
        let has_exclusive = others
            .filter_map(|key| hub.consumers.get(*key))
            .any(|other| is_exclusive || other.is_exclusive);
        if has_exclusive {
            let text = "the queue has a consumer, and one of them is to be the only one";
            return Err(Refusal::channel(code::ACCESS_REFUSED, text));
        }
        let mut consumer = Consumer::new(queue, place, number, tag);
        consumer.is_automatic = bits & bits::NO_ACK != 0;
        consumer.is_exclusive = is_exclusive;
        // Section 1.8 of the reference: the limit does not apply without acknowledgements.
        consumer.prefetch = if consumer.is_automatic { 0 } else { channel.prefetch };
        let key = hub.add_consumer(consumer);
        channel.consumers.push(key);
        if bits & bits::CONSUME_NO_WAIT == 0 {
            let consumer_tag = Short(tag);
            self.say(id, number, &Method::ConsumeOk { consumer_tag }, turn);
        }
        self.dispatch(queue, hub, turn);
        Ok(())
    }

    fn cancel(
        &mut self,
        id: ConnectionId,
        number: u16,
        tag: &str,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) {
        let Some(channel) = self.channel(id, number) else { return };
        let is_it = |key: &u32| hub.consumers.get(*key).is_some_and(|own| &*own.tag == tag);
        let Some(at) = channel.consumers.iter().position(is_it) else { return };
        let key = channel.consumers.remove(at);
        self.remove_consumer(key, hub, turn);
    }

    fn remove_consumer(&mut self, key: u32, hub: &mut Hub, turn: &mut Turn<'_>) {
        match hub.remove_consumer(key, turn.now) {
            Some((queue, true)) => self.delete_queue(queue, hub, turn),
            Some((queue, false)) => self.dispatch(queue, hub, turn),
            None => {}
        }
    }

    fn get(
        &mut self,
        id: ConnectionId,
        number: u16,
        queue: &str,
        bits: u8,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let key = self.named_queue(id, number, queue, hub)?;
        let Some(queue) = hub.queues.get_mut(key) else { return Ok(()) };
        queue.last_used = turn.now;
        let Some(waiting) = take_first(&mut queue.ready) else {
            self.say(id, number, &Method::GetEmpty { reserved_1: Short("") }, turn);
            return Ok(());
        };
        let message_count = queue.ready.len() as u32;
        let Waiting { message, is_redelivered } = waiting.clone();
        let is_automatic = bits & bits::GET_NO_ACK != 0;
        let delivery = (!is_automatic).then_some(Delivery { queue: key, consumer: None, waiting });
        let Some(channel) = self.channel(id, number) else { return Ok(()) };
        let get_ok = Method::GetOk {
            delivery_tag: channel.given.note(delivery),
            bits: u8::from(is_redelivered),
            exchange: Short(message.exchange()),
            routing_key: Short(message.key()),
            message_count,
        };
        self.say(id, number, &get_ok, turn);
        self.put_content(id, number, message.properties(), message.body(), turn);
        hub.census.note_forwarded(1);
        Ok(())
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
            consumer.unacknowledged += u32::from(!consumer.is_automatic);
            match consumer.place.shard == turn.shard {
                true => self.deliver(key, waiting, hub, turn),
                false => hub.leave(key, waiting, turn),
            }
        }
    }

    /// Sends a message to a consumer of this shard.
    pub(super) fn deliver(
        &mut self,
        key: u32,
        waiting: Waiting,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) {
        let Some(consumer) = hub.consumers.get(key) else { return };
        let (id, number) = (consumer.place.connection, consumer.channel);
        let Some(channel) = self.channel(id, number) else { return };
        let Waiting { message, is_redelivered } = waiting.clone();
        let delivery = Delivery { queue: consumer.queue, consumer: Some(key), waiting };
        let deliver = Method::Deliver {
            consumer_tag: Short(&consumer.tag),
            delivery_tag: channel.given.note((!consumer.is_automatic).then_some(delivery)),
            bits: u8::from(is_redelivered),
            exchange: Short(message.exchange()),
            routing_key: Short(message.key()),
        };
        self.say(id, number, &deliver, turn);
        self.put_content(id, number, message.properties(), message.body(), turn);
        hub.census.note_forwarded(1);
    }

    /// Ends deliveries: acknowledged, or refused and put back (`Some(true)`) or dropped.
    fn end_deliveries(
        &mut self,
        id: ConnectionId,
        number: u16,
        (tag, is_multiple): (u64, bool),
        refused: Option<bool>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Some(channel) = self.channel(id, number) else { return Ok(()) };
        let Some(ended) = channel.given.take(tag, is_multiple) else {
            return Err(Refusal::precondition(format!("unknown delivery tag {tag}")));
        };
        if refused == Some(false) {
            hub.census.note_dropped_many(REJECTED, ended.len() as u64);
        }
        self.settle_deliveries(ended, refused == Some(true), hub, turn);
        Ok(())
    }

    /// Makes room at the consumers of deliveries that ended, and sends what waits.
    fn settle_deliveries(
        &mut self,
        ended: Vec<Delivery>,
        is_back: bool,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) {
        let mut queues: Vec<u32> = Vec::new();
        for delivery in ended.into_iter().rev() {
            let consumer = delivery.consumer.and_then(|key| hub.consumers.get_mut(key));
            if let Some(consumer) = consumer {
                consumer.unacknowledged = consumer.unacknowledged.saturating_sub(1);
            }
            if !queues.contains(&delivery.queue) {
                queues.push(delivery.queue);
            }
            if is_back && let Some(queue) = hub.queues.get_mut(delivery.queue) {
                queue.put_back(std::iter::once(delivery.waiting));
            }
        }
        for queue in queues {
            self.dispatch(queue, hub, turn);
        }
    }

    /// Ends what a channel has: its consumers, and its deliveries, which go back to their queues.
    pub(super) fn end_channel(
        &mut self,
        id: ConnectionId,
        number: u16,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) {
        let Some(channel) = self.channel(id, number) else { return };
        channel.content.stage = super::ContentStage::Nothing;
        channel.content.body = Vec::new();
        let consumers = std::mem::take(&mut channel.consumers);
        let given = channel.given.take_all();
        for consumer in consumers {
            self.remove_consumer(consumer, hub, turn);
        }
        self.settle_deliveries(given, true, hub, turn);
    }

    /// Deletes a queue and its consumers.
    pub(super) fn delete_queue(&mut self, key: u32, hub: &mut Hub, turn: &mut Turn<'_>) {
        let Some((_, consumers)) = hub.delete_queue(key) else { return };
        for consumer in consumers {
            match consumer.place.shard == turn.shard {
                true => self.cancelled(&consumer, turn),
                false => {
                    hub.mail.post(consumer.place.shard, Mail::Cancelled(consumer), turn.out);
                }
            }
        }
    }

    /// Reports to a client that its consumer is gone, if it wants to know.
    pub(super) fn cancelled(&mut self, consumer: &Consumer, turn: &mut Turn<'_>) {
        let id = consumer.place.connection;
        let peer = self.peer(id).filter(|peer| peer.place == consumer.place);
        if peer.is_some_and(|peer| peer.hears_cancelled) {
            let cancel = Method::Cancel { consumer_tag: Short(&consumer.tag), bits: 1 };
            self.say(id, consumer.channel, &cancel, turn);
        }
    }
}

/// Cause of a message that its consumer refused.
const REJECTED: &str = "rejected";
