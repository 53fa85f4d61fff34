//! State shared by the shards of the reference server: nodes, queues, consumers, and the count of
//! everything. A shard locks it once per call from the engine; what is for a connection of another
//! shard waits here until that shard is notified.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::server::{Outboxes, ServerReport};

use super::codec::Header;
use super::queue::{Message, Parts, Place, Queue, Waiting};
use super::settings::Rules;
use crate::broker_core::{Mailboxes, Memory};
use crate::server_counts::ServerCounts;

/// The common part of all shards.
pub(super) struct Hub {
    pub(super) rules: Rules,
    pub(super) census: ServerCounts,
    /// Numbers of nodes, queues and consumers are not used again.
    nodes: Vec<Option<Box<Node>>>,
    by_name: HashMap<Box<str>, u32>,
    queues: Vec<Option<Box<Queue>>>,
    consumers: Vec<Option<Box<Consumer>>>,
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

/// One call from the engine.
pub(super) struct Turn<'a> {
    pub(super) out: &'a mut dyn Outboxes,
    pub(super) now: Nanos,
    pub(super) shard: u16,
}

/// The end of a link at a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) place: Place,
    pub(super) channel: u16,
    pub(super) handle: u32,
}

impl Hub {
    pub(super) fn new(rules: Rules) -> Hub {
        Hub {
            memory: Memory::new(rules.memory_bytes_max),
            rules,
            census: ServerCounts::default(),
            nodes: Vec::new(),
            by_name: HashMap::new(),
            queues: Vec::new(),
            consumers: Vec::new(),
            mail: Mailboxes::new(),
        }
    }

    /// Attaches a link to the node of this name, which is made if there is none; `None` if it is of
    /// the other type.
    pub(super) fn attach(&mut self, name: &str, is_topic: Option<bool>, now: Nanos) -> Option<u32> {
        let known = self.by_name.get(name).copied();
        let key = match known.and_then(|key| Some((key, self.node(key)?))) {
            Some((_, node)) if is_topic.is_some_and(|wanted| wanted != node.is_topic) => {
                return None;
            }
            Some((key, _)) => key,
            None => self.make_node(name, is_topic.unwrap_or(false), now),
        };
        if let Some(node) = self.node_mut(key) {
            node.links += 1;
        }
        Some(key)
    }

    fn make_node(&mut self, name: &str, is_topic: bool, now: Nanos) -> u32 {
        let key = self.nodes.len() as u32;
        let queues = match is_topic {
            true => Vec::new(),
            false => vec![self.make_queue(true)],
        };
        let node = Node { name: name.into(), is_topic, queues, links: 0, last_used: now };
        self.nodes.push(Some(Box::new(node)));
        self.by_name.insert(name.into(), key);
        key
    }

    fn make_queue(&mut self, is_durable: bool) -> u32 {
        self.queues.push(Some(Box::new(Queue { is_durable, ..Queue::default() })));
        self.queues.len() as u32 - 1
    }

    fn node(&self, key: u32) -> Option<&Node> {
        self.nodes.get(key as usize)?.as_deref()
    }

    fn node_mut(&mut self, key: u32) -> Option<&mut Node> {
        self.nodes.get_mut(key as usize)?.as_deref_mut()
    }

    /// A link of a node is gone.
    pub(super) fn detach(&mut self, key: u32, now: Nanos) {
        if let Some(node) = self.node_mut(key) {
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
        for place in &mut self.nodes {
            if let Some(node) = place.take_if(|node| is_over(node)) {
                self.by_name.remove(&node.name);
                for queue in node.queues {
                    self.queues[queue as usize] = None;
                }
            }
        }
    }

    /// Name of a node.
    pub(super) fn name(&self, key: u32) -> &str {
        self.node(key).map_or("", |node| &node.name)
    }

    /// Appends the queues of a node.
    pub(super) fn route(&self, node: u32, queues: &mut Vec<u32>) {
        queues.extend(self.node(node).into_iter().flat_map(|node| &node.queues));
    }

    pub(super) fn queue(&self, key: u32) -> Option<&Queue> {
        self.queues.get(key as usize)?.as_deref()
    }

    pub(super) fn queue_mut(&mut self, key: u32) -> Option<&mut Queue> {
        self.queues.get_mut(key as usize)?.as_deref_mut()
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
        most > 0 && self.queue(key).is_some_and(|queue| queue.ready.len() as u64 >= most)
    }

    pub(super) fn consumer(&self, key: u32) -> Option<&Consumer> {
        self.consumers.get(key as usize)?.as_deref()
    }

    pub(super) fn consumer_mut(&mut self, key: u32) -> Option<&mut Consumer> {
        self.consumers.get_mut(key as usize)?.as_deref_mut()
    }

    /// Adds a consumer to a node; returns its key. A subscription of a topic has its own queue.
    pub(super) fn add_consumer(
        &mut self,
        node: u32,
        seat: Seat,
        is_settled: bool,
        is_durable: bool,
    ) -> u32 {
        let is_topic = self.node(node).is_some_and(|node| node.is_topic);
        let queue = match (is_topic, self.node(node).and_then(|node| node.queues.first())) {
            (false, Some(queue)) => *queue,
            _ => {
                let queue = self.make_queue(is_durable);
                self.node_mut(node).into_iter().for_each(|node| node.queues.push(queue));
                queue
            }
        };
        let key = self.consumers.len() as u32;
        let Seat { place, channel, handle } = seat;
        self.consumers.push(Some(Box::new(Consumer {
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
        })));
        if let Some(queue) = self.queue_mut(queue) {
            queue.consumers.push_back(key);
        }
        key
    }

    /// Removes a consumer; what waited for it alone goes back to its queue, which goes with it if
    /// it is a subscription. Returns the queue that stays.
    pub(super) fn remove_consumer(&mut self, key: u32, now: Nanos) -> Option<u32> {
        let consumer = self.consumers.get_mut(key as usize)?.take()?;
        self.detach(consumer.node, now);
        let (own, node) = (consumer.queue, self.node_mut(consumer.node)?);
        if node.is_topic {
            node.queues.retain(|queue| *queue != own);
            self.queues[own as usize] = None;
            return None;
        }
        let queue = self.queue_mut(own)?;
        queue.consumers.retain(|other| *other != key);
        queue.put_back(consumer.inbox.into_iter());
        Some(own)
    }

    /// The next consumer of a queue that can take a message, if there is a message.
    pub(super) fn next_consumer(&mut self, key: u32, turn: &mut Turn<'_>) -> Option<u32> {
        let queue = self.queues.get_mut(key as usize)?.as_deref_mut()?;
        if queue.ready.is_empty() {
            return None;
        }
        for _ in 0..queue.consumers.len() {
            queue.consumers.rotate_left(1);
            let last = *queue.consumers.back()?;
            let Some(Some(consumer)) = self.consumers.get(last as usize) else { continue };
            if consumer.credit == 0 {
                continue;
            }
            if consumer.place.shard != turn.shard {
                if consumer.inbox.len() < INBOX_MAX {
                    return Some(last);
                }
                continue;
            }
            if turn.out.pending_bytes(consumer.place.connection) < PENDING_BYTES_MAX {
                return Some(last);
            }
            turn.out.notify_drained(consumer.place.connection);
        }
        None
    }

    /// Leaves a message in the inbox of a consumer, and notifies its shard if it is another one.
    pub(super) fn leave(&mut self, key: u32, waiting: Waiting, turn: &mut Turn<'_>) {
        let Some(consumer) = self.consumer_mut(key) else { return };
        let (shard, is_first) = (consumer.place.shard, consumer.inbox.is_empty());
        consumer.inbox.push_back(waiting);
        if is_first && shard != turn.shard {
            self.mail.post(shard, Mail::Deliver(key), turn.out);
        }
    }

    /// Takes the next message of a consumer's inbox.
    pub(super) fn take_left(&mut self, key: u32) -> Option<Waiting> {
        self.consumer_mut(key)?.inbox.pop_front()
    }

    /// True if a consumer used up its queue and its inbox, and has to use up its credit.
    pub(super) fn is_drained(&self, key: u32) -> bool {
        let Some(consumer) = self.consumer(key).filter(|consumer| consumer.is_draining) else {
            return false;
        };
        let is_empty = self.queue(consumer.queue).is_none_or(|queue| queue.ready.is_empty());
        consumer.inbox.is_empty() && (is_empty || consumer.credit == 0)
    }

    /// Counts of the server.
    pub(super) fn report(&self) -> ServerReport {
        let mut report = self.census.report();
        report.queued = self.queues.iter().flatten().map(|queue| queue.ready.len() as u64).sum();
        report.queued_bytes = self.memory.bytes();
        report
    }
}

/// A consumer with this much in its socket's way gets no more until the socket took it.
const PENDING_BYTES_MAX: usize = 64 * 1024;

/// Messages that another shard may leave for a consumer at once.
const INBOX_MAX: usize = 1000;
