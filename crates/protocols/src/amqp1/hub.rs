//! State shared by the shards of the reference server: nodes, queues, consumers, and the count of
//! everything. A shard locks it once per call from the engine; what is for a connection of another
//! shard waits here until that shard is notified.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::server::ServerReport;

use super::codec::Header;
use super::queue::{Message, Parts, Queue, Waiting};
use super::settings::Rules;
use crate::broker_core::{Consuming, Mailboxes, Memory, Numbered, Place, Turn};
use crate::server_counts::ServerCounts;

/// The common part of all shards.
pub(super) struct Hub {
    pub(super) rules: Rules,
    pub(super) census: ServerCounts,
    /// Numbers of nodes, queues and consumers are not used again.
    nodes: Numbered<Node>,
    by_name: HashMap<Box<str>, u32>,
    pub(super) queues: Numbered<Queue>,
    pub(super) consumers: Numbered<Consumer>,
    pub(super) mail: Mailboxes<Mail>,
    pub(super) memory: Memory,
}

/// What an address names.
#[derive(Debug)]
struct Node {
    name: Box<str>,
    is_topic: bool,
    /// The queue, or those of the subscriptions.
    queues: Vec<u32>,
    /// Links that are attached.
    links: u32,
    last_used: Nanos,
}

/// A consumer of a queue: a link to a client.
#[derive(Debug)]
pub(super) struct Consumer {
    node: u32,
    pub(super) queue: u32,
    pub(super) place: Place,
    pub(super) channel: u16,
    pub(super) handle: u32,
    /// Deliveries are settled when they are sent.
    pub(super) is_settled: bool,
    /// Deliveries that it takes.
    pub(super) credit: u32,
    /// Deliveries so far.
    pub(super) count: u32,
    /// The credit is used up once nothing waits.
    pub(super) is_draining: bool,
    /// Messages that its shard has to send.
    inbox: VecDeque<Waiting>,
}

/// Work that one shard leaves for another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mail {
    /// Send the inbox of this consumer.
    Deliver(u32),
    /// The links of this connection may get credit again.
    Unblocked(Place),
}

/// The end of a link at a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) place: Place,
    pub(super) channel: u16,
    pub(super) handle: u32,
}

impl Consuming for Consumer {
    fn place(&self) -> Place {
        self.place
    }

    fn takes_more(&self) -> bool {
        self.credit > 0
    }

    fn left(&self) -> usize {
        self.inbox.len()
    }
}

impl Hub {
    pub(super) fn new(rules: Rules) -> Hub {
        Hub {
            memory: Memory::new(rules.memory_bytes_max),
            rules,
            census: ServerCounts::default(),
            nodes: Numbered::new(),
            by_name: HashMap::new(),
            queues: Numbered::new(),
            consumers: Numbered::new(),
            mail: Mailboxes::new(),
        }
    }

    /// Attaches a link to the node of this name, which is made if there is none; `None` if it is of
    /// the other type.
    pub(super) fn attach(&mut self, name: &str, is_topic: Option<bool>, now: Nanos) -> Option<u32> {
        let known = self.by_name.get(name).copied();
        let key = match known.and_then(|key| Some((key, self.nodes.get(key)?))) {
            Some((_, node)) if is_topic.is_some_and(|wanted| wanted != node.is_topic) => {
                return None;
            }
            Some((key, _)) => key,
            None => self.make_node(name, is_topic.unwrap_or(false), now),
        };
        if let Some(node) = self.nodes.get_mut(key) {
            node.links += 1;
        }
        Some(key)
    }

    fn make_node(&mut self, name: &str, is_topic: bool, now: Nanos) -> u32 {
        let queues = match is_topic {
            true => Vec::new(),
            false => vec![self.make_queue(true)],
        };
        let node = Node { name: name.into(), is_topic, queues, links: 0, last_used: now };
        let key = self.nodes.add(node);
        self.by_name.insert(name.into(), key);
        key
    }

    fn make_queue(&mut self, is_durable: bool) -> u32 {
        self.queues.add(Queue { is_durable, ..Queue::default() })
    }

    /// A link of a node is gone.
    pub(super) fn detach(&mut self, key: u32, now: Nanos) {
        if let Some(node) = self.nodes.get_mut(key) {
            node.links = node.links.saturating_sub(1);
            node.last_used = now;
        }
    }

    /// Deletes nodes without links that nothing has used for long enough; topics without links at
    /// once, since nothing is in them.
    pub(super) fn expire(&mut self, now: Nanos) {
        let expires = self.rules.queue_expires;
        let is_over = |node: &Node| {
            let is_old = expires.0 > 0 && now >= node.last_used + expires;
            node.links == 0 && (is_old || node.is_topic)
        };
        for node in self.nodes.remove_if(is_over) {
            self.by_name.remove(&node.name);
            for queue in node.queues {
                self.queues.remove(queue);
            }
        }
    }

    /// Name of a node.
    pub(super) fn name(&self, key: u32) -> &str {
        self.nodes.get(key).map_or("", |node| &node.name)
    }

    /// Appends the queues of a node.
    pub(super) fn route(&self, node: u32, queues: &mut Vec<u32>) {
        queues.extend(self.nodes.get(node).into_iter().flat_map(|node| &node.queues));
    }

    /// A message that is to be kept.
    pub(super) fn message(&self, header: Header, bare: &[u8]) -> Arc<Message> {
        Arc::new(Message::new(header, bare, self.memory.counter()))
    }

    /// Room for a message that comes in several transfers.
    pub(super) fn parts(&self) -> Parts {
        Parts::new(self.memory.counter())
    }

    /// True if a queue has as many messages as it may have.
    pub(super) fn is_queue_full(&self, key: u32) -> bool {
        let most = self.rules.queue_messages_max;
        most > 0 && self.queues.get(key).is_some_and(|queue| queue.ready.len() as u64 >= most)
    }

    /// Adds a consumer to a node; returns its key. A subscription of a topic has its own queue.
    pub(super) fn add_consumer(
        &mut self,
        node: u32,
        seat: Seat,
        is_settled: bool,
        is_durable: bool,
    ) -> u32 {
        let is_topic = self.nodes.get(node).is_some_and(|node| node.is_topic);
        let queue = match (is_topic, self.nodes.get(node).and_then(|node| node.queues.first())) {
            (false, Some(queue)) => *queue,
            _ => {
                let queue = self.make_queue(is_durable);
                self.nodes.get_mut(node).into_iter().for_each(|node| node.queues.push(queue));
                queue
            }
        };
        let Seat { place, channel, handle } = seat;
        let key = self.consumers.add(Consumer {
            node,
            queue,
            place,
            channel,
            handle,
            is_settled,
            credit: 0,
            count: 0,
            is_draining: false,
            inbox: VecDeque::new(),
        });
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.consumers.push_back(key);
        }
        key
    }

    /// Removes a consumer; what waited for it alone goes back to its queue, which goes with it if
    /// it is a subscription. Returns the queue that stays.
    pub(super) fn remove_consumer(&mut self, key: u32, now: Nanos) -> Option<u32> {
        let consumer = self.consumers.remove(key)?;
        self.detach(consumer.node, now);
        let (own, node) = (consumer.queue, self.nodes.get_mut(consumer.node)?);
        if node.is_topic {
            node.queues.retain(|queue| *queue != own);
            self.queues.remove(own);
            return None;
        }
        let queue = self.queues.get_mut(own)?;
        queue.consumers.retain(|other| *other != key);
        queue.put_back(consumer.inbox.into_iter());
        Some(own)
    }

    /// The next consumer of a queue that can take a message, if there is a message.
    pub(super) fn next_consumer(&mut self, key: u32, turn: &mut Turn<'_>) -> Option<u32> {
        let queue = self.queues.get_mut(key).filter(|queue| !queue.ready.is_empty())?;
        self.consumers.next(&mut queue.consumers, turn)
    }

    /// Leaves a message in the inbox of a consumer, and notifies its shard if it is another one.
    pub(super) fn leave(&mut self, key: u32, waiting: Waiting, turn: &mut Turn<'_>) {
        let Some(consumer) = self.consumers.get_mut(key) else { return };
        let (shard, is_first) = (consumer.place.shard, consumer.inbox.is_empty());
        consumer.inbox.push_back(waiting);
        if is_first && shard != turn.shard {
            self.mail.post(shard, Mail::Deliver(key), turn.out);
        }
    }

    /// Takes the next message of a consumer's inbox.
    pub(super) fn take_left(&mut self, key: u32) -> Option<Waiting> {
        self.consumers.get_mut(key)?.inbox.pop_front()
    }

    /// True if a consumer used up its queue and its inbox, and has to use up its credit.
    pub(super) fn is_drained(&self, key: u32) -> bool {
        let Some(consumer) = self.consumers.get(key).filter(|consumer| consumer.is_draining) else {
            return false;
        };
        let is_empty = self.queues.get(consumer.queue).is_none_or(|queue| queue.ready.is_empty());
        consumer.inbox.is_empty() && (is_empty || consumer.credit == 0)
    }

    /// Counts of the server.
    pub(super) fn report(&self) -> ServerReport {
        let mut report = self.census.report();
        report.queued = self.queues.iter().map(|queue| queue.ready.len() as u64).sum();
        report.queued_bytes = self.memory.bytes();
        report
    }
}
