//! Exchanges, queues and bindings that clients of the reference server declare and delete.

use weigh_model::server::ConnectionId;

use super::super::codec::{Method, Short, Table, bits, code};
use super::super::exchange::ExchangeKind;
use super::super::hub::Hub;
use super::super::queue::QueueTerms;
use super::super::refusal::Refusal;
use super::Broker;
use crate::broker_core::Turn;

impl Broker {
    /// Takes a method of the classes exchange and queue.
    pub(super) fn declare(
        &mut self,
        id: ConnectionId,
        number: u16,
        method: &Method<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let (answer, is_silent) = match *method {
            Method::ExchangeDeclare { exchange, kind, bits, arguments, .. } => {
                declare_exchange(exchange.0, kind.0, bits, &arguments, hub)?;
                (Method::ExchangeDeclareOk {}, bits & bits::DECLARE_NO_WAIT != 0)
            }
            Method::ExchangeDelete { exchange, bits, .. } => {
                delete_exchange(exchange.0, bits, hub)?;
                (Method::ExchangeDeleteOk {}, bits & bits::EXCHANGE_DELETE_NO_WAIT != 0)
            }
            Method::QueueDeclare { .. } => {
                return self.declare_queue(id, number, method, hub, turn);
            }
            Method::QueueBind { queue, exchange, routing_key, bits, .. } => {
                let queue = self.named_queue(id, number, queue.0, hub)?;
                if exchange.0.is_empty() {
                    let text = "the default exchange has its bindings";
                    return Err(Refusal::channel(code::ACCESS_REFUSED, text));
                }
                hub.exchange(exchange.0)?.bind(routing_key.0, queue);
                (Method::QueueBindOk {}, bits & bits::NO_WAIT != 0)
            }
            Method::QueueUnbind { queue, exchange, routing_key, .. } => {
                let queue = self.named_queue(id, number, queue.0, hub)?;
                hub.exchange(exchange.0)?.unbind(routing_key.0, queue);
                (Method::QueueUnbindOk {}, false)
            }
            Method::QueuePurge { queue, bits, .. } => {
                let queue = self.named_queue(id, number, queue.0, hub)?;
                let ready = hub.queues.get_mut(queue).map(|queue| std::mem::take(&mut queue.ready));
                let message_count = ready.map_or(0, |ready| ready.len()) as u32;
                (Method::QueuePurgeOk { message_count }, bits & bits::NO_WAIT != 0)
            }
            Method::QueueDelete { queue, bits, .. } => {
                let message_count = self.remove_queue(id, number, queue.0, bits, hub, turn)?;
                let is_silent = bits & bits::QUEUE_DELETE_NO_WAIT != 0;
                (Method::QueueDeleteOk { message_count }, is_silent)
            }
            _ => {
                let text = format!("a client must not send {}", method.name());
                return Err(Refusal::connection(code::COMMAND_INVALID, text));
            }
        };
        if !is_silent {
            self.say(id, number, &answer, turn);
        }
        Ok(())
    }

    /// The queue of this name; an empty name means the one that the channel declared last.
    pub(super) fn named_queue(
        &mut self,
        id: ConnectionId,
        number: u16,
        name: &str,
        hub: &Hub,
    ) -> Result<u32, Refusal> {
        let Some(peer) = self.peer(id) else { return Err(Refusal::no_queue(name, "")) };
        let place = peer.place;
        let last = peer.channel(number).map(|channel| channel.last_queue.as_str());
        let name = if name.is_empty() { last.unwrap_or_default() } else { name };
        hub.find_queue(name, place)
    }

    fn declare_queue(
        &mut self,
        id: ConnectionId,
        number: u16,
        method: &Method<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Method::QueueDeclare { queue, bits, arguments, .. } = method else { return Ok(()) };
        let (name, bits) = (queue.0, *bits);
        let Some(peer) = self.peer(id) else { return Ok(()) };
        let place = peer.place;
        let key = if bits & bits::PASSIVE != 0 {
            hub.find_queue(name, place)?
        } else {
            let mut terms = QueueTerms::read(arguments).map_err(Refusal::precondition)?;
            terms.is_durable = bits & bits::DURABLE != 0;
            terms.is_auto_deleted = bits & bits::QUEUE_AUTO_DELETE != 0;
            terms.owner = (bits & bits::EXCLUSIVE != 0).then_some(place);
            let is_odd = !terms.is_durable || terms.is_auto_deleted || terms.owner.is_some();
            if terms.is_quorum && is_odd {
                let text = "a quorum queue is durable, and neither exclusive nor auto-delete";
                return Err(Refusal::precondition(text.to_owned()));
            }
            if let Err(locked) = hub.find_queue(name, place)
                && locked.code == code::RESOURCE_LOCKED
            {
                return Err(locked);
            }
            if name.starts_with(RESERVED) {
                let text = format!("queue name '{name}' contains the reserved prefix '{RESERVED}'");
                return Err(Refusal::channel(code::ACCESS_REFUSED, text));
            }
            let made = if name.is_empty() { hub.make_name() } else { name.to_owned() };
            hub.declare_queue(&made, terms, turn.now)?
        };
        let Some(queue) = hub.queues.get_mut(key) else { return Ok(()) };
        queue.last_used = turn.now;
        let (name, messages) = (queue.name.clone(), queue.ready.len() as u32);
        let consumers = queue.consumers.len() as u32;
        if let Some(channel) = self.channel(id, number) {
            channel.last_queue = name.to_string();
        }
        if bits & bits::DECLARE_NO_WAIT == 0 {
            let declared = Method::QueueDeclareOk {
                queue: Short(&name),
                message_count: messages,
                consumer_count: consumers,
            };
            self.say(id, number, &declared, turn);
        }
        Ok(())
    }

    fn remove_queue(
        &mut self,
        id: ConnectionId,
        number: u16,
        name: &str,
        bits: u8,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<u32, Refusal> {
        let key = match self.named_queue(id, number, name, hub) {
            Ok(key) => key,
            // As in RabbitMQ, what is not there counts as deleted.
            Err(refusal) if refusal.code == code::NOT_FOUND => return Ok(0),
            Err(refusal) => return Err(refusal),
        };
        let Some(queue) = hub.queues.get(key) else { return Ok(0) };
        if bits & bits::IF_UNUSED != 0 && !queue.consumers.is_empty() {
            return Err(Refusal::precondition(format!("queue '{name}' is in use")));
        }
        if bits & bits::IF_EMPTY != 0 && !queue.ready.is_empty() {
            return Err(Refusal::precondition(format!("queue '{name}' is not empty")));
        }
        let messages = queue.ready.len() as u32;
        self.delete_queue(key, hub, turn);
        Ok(messages)
    }
}

fn declare_exchange(
    name: &str,
    kind: &str,
    bits: u8,
    arguments: &Table<'_>,
    hub: &mut Hub,
) -> Result<(), Refusal> {
    if bits & bits::PASSIVE != 0 {
        return hub.exchange(name).map(|_| ());
    }
    let Some(kind) = ExchangeKind::of(kind) else {
        let text = format!("unknown exchange type '{kind}'");
        return Err(Refusal::connection(code::COMMAND_INVALID, text));
    };
    if bits & (bits::EXCHANGE_AUTO_DELETE | bits::INTERNAL) != 0 {
        return Err(Refusal::missing("an exchange that is internal or deletes itself"));
    }
    if let Some((argument, _)) = arguments.entries().next() {
        return Err(Refusal::precondition(format!("unknown argument {argument}")));
    }
    if hub.exchange(name).is_err() && (name.is_empty() || name.starts_with(RESERVED)) {
        let text = format!("exchange name '{name}' is reserved");
        return Err(Refusal::channel(code::ACCESS_REFUSED, text));
    }
    hub.declare_exchange(name, kind, bits & bits::DURABLE != 0)
}

fn delete_exchange(name: &str, bits: u8, hub: &mut Hub) -> Result<(), Refusal> {
    if name.is_empty() || name.starts_with(RESERVED) {
        let text = format!("exchange '{name}' is predeclared");
        return Err(Refusal::channel(code::ACCESS_REFUSED, text));
    }
    let Ok(exchange) = hub.exchange(name) else { return Ok(()) };
    if bits & bits::IF_UNUSED != 0 && !exchange.is_unused() {
        return Err(Refusal::precondition(format!("exchange '{name}' is in use")));
    }
    hub.delete_exchange(name);
    Ok(())
}

/// Names that belong to the server (section 3.1.4).
const RESERVED: &str = "amq.";
