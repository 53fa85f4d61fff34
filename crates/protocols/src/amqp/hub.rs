//! State shared by the shards of the reference server: exchanges, queues, consumers, and the count
//! of everything. A shard locks it once per call from the engine; what is for a connection of
//! another shard waits here until that shard is notified.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::server::ServerReport;

use super::exchange::{Exchange, ExchangeKind};
use super::queue::{Message, Queue, QueueTerms, Waiting};
use super::refusal::Refusal;
use super::settings::Rules;
use crate::broker_core::{Consuming, Mailboxes, Memory, Numbered, Place, Turn};
use crate::server_counts::ServerCounts;

/// The common part of all shards.
pub(super) struct Hub {
    pub(super) rules: Rules,
    pub(super) census: ServerCounts,
    exchanges: HashMap<Box<str>, Exchange>,
    /// Numbers of queues and consumers are not used again.
    pub(super) queues: Numbered<Queue>,
    by_name: HashMap<Box<str>, u32>,
    pub(super) consumers: Numbered<Consumer>,
    pub(super) mail: Mailboxes<Mail>,
    pub(super) memory: Memory,
    names_made: u64,
}

/// A consumer of a queue.
#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) queue: u32,
    pub(super) place: Place,
    pub(super) channel: u16,
    pub(super) tag: Box<str>,
    /// Messages count as acknowledged when they are sent.
    pub(super) is_automatic: bool,
    pub(super) is_exclusive: bool,
    /// 0 means no limit.
    pub(super) prefetch: u32,
    pub(super) unacknowledged: u32,
    /// Messages that its shard has to send.
    inbox: VecDeque<Waiting>,
}

/// Work that one shard leaves for another.
#[derive(Debug)]
pub(super) enum Mail {
    /// Send the inbox of this consumer.
    Deliver(u32),
    /// This consumer is gone, with its queue.
    Cancelled(Consumer),
    /// This publisher may continue.
    Unblocked(Place),
}

impl Consumer {
    pub(super) fn new(queue: u32, place: Place, channel: u16, tag: &str) -> Consumer {
        Consumer {
            queue,
            place,
            channel,
            tag: tag.into(),
            is_automatic: false,
            is_exclusive: false,
            prefetch: 0,
            unacknowledged: 0,
            inbox: VecDeque::new(),
        }
    }
}

impl Consuming for Consumer {
    fn place(&self) -> Place {
        self.place
    }

    fn takes_more(&self) -> bool {
        self.prefetch == 0 || self.unacknowledged < self.prefetch
    }

    fn left(&self) -> usize {
        self.inbox.len()
    }
}

impl Hub {
    pub(super) fn new(rules: Rules) -> Hub {
        let predeclared = [
            ("amq.direct", ExchangeKind::Direct),
            ("amq.fanout", ExchangeKind::Fanout),
            ("amq.topic", ExchangeKind::Topic),
        ];
        let exchanges = predeclared.map(|(name, kind)| (name.into(), Exchange::new(kind, true)));
        Hub {
            memory: Memory::new(rules.memory_bytes_max),
            rules,
            census: ServerCounts::default(),
            exchanges: exchanges.into(),
            queues: Numbered::new(),
            by_name: HashMap::new(),
            consumers: Numbered::new(),
            mail: Mailboxes::new(),
            names_made: 0,
        }
    }

    /// The exchange of this name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn exchange(&mut self, name: &str) -> Result<&mut Exchange, Refusal> {
        let vhost = &self.rules.vhost;
        self.exchanges.get_mut(name).ok_or_else(|| Refusal::no_exchange(name, vhost))
    }

    /// Makes an exchange, or checks that the existing one is the same.
    pub(super) fn declare_exchange(
        &mut self,
        name: &str,
        kind: ExchangeKind,
        is_durable: bool,
    ) -> Result<(), Refusal> {
        match self.exchanges.get(name) {
            Some(own) if own.kind == kind && own.is_durable == is_durable => Ok(()),
            Some(_) => Err(Refusal::precondition(format!(
                "inequivalent type or durability of exchange '{name}'"
            ))),
            None => {
                self.exchanges.insert(name.into(), Exchange::new(kind, is_durable));
                Ok(())
            }
        }
    }

    pub(super) fn delete_exchange(&mut self, name: &str) {
        self.exchanges.remove(name);
    }

    /// Makes a queue, or checks that the existing one is the same; returns its key.
    pub(super) fn declare_queue(
        &mut self,
        name: &str,
        terms: QueueTerms,
        now: Nanos,
    ) -> Result<u32, Refusal> {
        if let Some(key) = self.by_name.get(name).copied()
            && let Some(queue) = self.queues.get_mut(key)
        {
            if queue.terms != terms {
                let text = format!("inequivalent arguments of queue '{name}'");
                return Err(Refusal::precondition(text));
            }
            queue.last_used = now;
            return Ok(key);
        }
        let key = self.queues.add(Queue::new(name, terms, now));
        self.by_name.insert(name.into(), key);
        Ok(key)
    }

    /// A name for a queue that has none.
    pub(super) fn make_name(&mut self) -> String {
        self.names_made += 1;
        format!("amq.gen-{}", self.names_made)
    }

    /// The queue of this name, which `from` may use.
    ///
    /// # Errors
    /// There is none, or another connection has it for itself.
    pub(super) fn find_queue(&self, name: &str, from: Place) -> Result<u32, Refusal> {
        let known = self.by_name.get(name).copied();
        let key = known.ok_or_else(|| Refusal::no_queue(name, &self.rules.vhost))?;
        match self.queues.get(key).and_then(|queue| queue.terms.owner) {
            Some(owner) if owner != from => Err(Refusal::locked(name)),
            _ => Ok(key),
        }
    }

    /// Removes a queue; returns it and its consumers.
    pub(super) fn delete_queue(&mut self, key: u32) -> Option<(Box<Queue>, Vec<Consumer>)> {
        let queue = self.queues.remove(key)?;
        self.by_name.remove(&queue.name);
        self.exchanges.values_mut().for_each(|exchange| exchange.forget(key));
        let gone = queue.consumers.iter().filter_map(|key| self.consumers.remove(*key));
        let gone = gone.map(|consumer| *consumer).collect();
        Some((queue, gone))
    }

    /// Queues that only this connection may use.
    pub(super) fn owned_by(&self, place: Place) -> Vec<u32> {
        let queues = self.queues.iter().filter(|queue| queue.terms.owner == Some(place));
        queues.filter_map(|queue| self.by_name.get(&queue.name).copied()).collect()
    }

    /// Queues that nothing has used for as long as they were declared for.
    pub(super) fn expired(&self, now: Nanos) -> Vec<u32> {
        let is_over = |queue: &Queue| {
            let expires = queue.terms.expires;
            expires.0 > 0 && queue.consumers.is_empty() && now >= queue.last_used + expires
        };
        let queues = self.queues.iter().filter(|queue| is_over(queue));
        queues.filter_map(|queue| self.by_name.get(&queue.name).copied()).collect()
    }

    /// Appends the queues of a message.
    ///
    /// # Errors
    /// There is no such exchange.
    pub(super) fn route(
        &self,
        exchange: &str,
        key: &str,
        queues: &mut Vec<u32>,
    ) -> Result<(), Refusal> {
        if exchange.is_empty() {
            queues.extend(self.by_name.get(key));
            return Ok(());
        }
        let known = self.exchanges.get(exchange);
        known.ok_or_else(|| Refusal::no_exchange(exchange, &self.rules.vhost))?.route(key, queues);
        Ok(())
    }

    /// A message that is to be kept.
    pub(super) fn message(
        &self,
        exchange: &str,
        key: &str,
        properties: &[u8],
        body: &[u8],
    ) -> Arc<Message> {
        Arc::new(Message::new(exchange, key, properties, body, self.memory.counter()))
    }

    /// Puts a message into a queue; false if it refuses it.
    pub(super) fn enqueue(&mut self, key: u32, message: Arc<Message>) -> bool {
        let Some(queue) = self.queues.get_mut(key) else { return true };
        let (is_taken, dropped) = queue.put(Waiting { message, is_redelivered: false });
        if dropped.is_some() {
            self.census.note_dropped(QUEUE_FULL);
        }
        is_taken
    }

    /// Adds a consumer to its queue; returns its key.
    pub(super) fn add_consumer(&mut self, consumer: Consumer) -> u32 {
        let queue = consumer.queue;
        let key = self.consumers.add(consumer);
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.consumers.push_back(key);
        }
        key
    }

    /// Removes a consumer; what waited for it alone goes back to its queue. Returns the queue, and
    /// true if that is to be deleted now.
    pub(super) fn remove_consumer(&mut self, key: u32, now: Nanos) -> Option<(u32, bool)> {
        let consumer = self.consumers.remove(key)?;
        let queue = self.queues.get_mut(consumer.queue)?;
        queue.consumers.retain(|own| *own != key);
        queue.last_used = now;
        queue.put_back(consumer.inbox.into_iter());
        Some((consumer.queue, queue.terms.is_auto_deleted && queue.consumers.is_empty()))
    }

    /// The next consumer of a queue that can take a message, if there is a message.
    pub(super) fn next_consumer(&mut self, key: u32, turn: &mut Turn<'_>) -> Option<u32> {
        let queue = self.queues.get_mut(key).filter(|queue| !queue.ready.is_empty())?;
        self.consumers.next(&mut queue.consumers, turn)
    }

    /// Leaves a message for a consumer of another shard.
    pub(super) fn leave(&mut self, key: u32, waiting: Waiting, turn: &mut Turn<'_>) {
        let Some(consumer) = self.consumers.get_mut(key) else { return };
        let (shard, is_first) = (consumer.place.shard, consumer.inbox.is_empty());
        consumer.inbox.push_back(waiting);
        if is_first {
            self.mail.post(shard, Mail::Deliver(key), turn.out);
        }
    }

    /// Takes the next message of a consumer's inbox.
    pub(super) fn take_left(&mut self, key: u32) -> Option<Waiting> {
        self.consumers.get_mut(key)?.inbox.pop_front()
    }

    /// Counts of the server.
    pub(super) fn report(&self) -> ServerReport {
        let mut report = self.census.report();
        report.queued = self.queues.iter().map(|queue| queue.ready.len() as u64).sum();
        report.queued_bytes = self.memory.bytes();
        report
    }
}

/// Cause of a message that a full queue dropped.
const QUEUE_FULL: &str = "queue_full";
