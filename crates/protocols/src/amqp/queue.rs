//! Queues of the reference server, and the messages in them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::broker_core::Place;
use weigh_model::Nanos;

use super::codec::{Table, Value};

/// A message that is kept. It counts in the memory of the server until nothing refers to it.
#[derive(Debug)]
pub(super) struct Message {
    /// Exchange, routing key, properties and body, one after the other.
    bytes: Box<[u8]>,
    key_at: u32,
    properties_at: u32,
    body_at: u32,
    memory: Arc<AtomicU64>,
}

/// A message in a queue.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) message: Arc<Message>,
    /// True if it was delivered before.
    pub(super) is_redelivered: bool,
}

/// What a queue was declared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueueTerms {
    pub(super) is_durable: bool,
    /// The only connection that may use it.
    pub(super) owner: Option<Place>,
    pub(super) is_auto_deleted: bool,
    pub(super) is_quorum: bool,
    /// Messages that may wait; 0 means no limit.
    pub(super) length_max: u64,
    /// A full queue refuses new messages; otherwise it drops its oldest.
    pub(super) refuses: bool,
    /// Time after which it is deleted if it is not used; 0 is never.
    pub(super) expires: Nanos,
}

/// A queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) name: Box<str>,
    pub(super) terms: QueueTerms,
    pub(super) ready: VecDeque<Waiting>,
    /// Consumers; the first one is next.
    pub(super) consumers: VecDeque<u32>,
    pub(super) last_used: Nanos,
}

impl Message {
    pub(super) fn new(
        exchange: &str,
        key: &str,
        properties: &[u8],
        body: &[u8],
        memory: &Arc<AtomicU64>,
    ) -> Message {
        let bytes = [exchange.as_bytes(), key.as_bytes(), properties, body].concat();
        let message = Message {
            bytes: bytes.into(),
            key_at: exchange.len() as u32,
            properties_at: (exchange.len() + key.len()) as u32,
            body_at: (exchange.len() + key.len() + properties.len()) as u32,
            memory: Arc::clone(memory),
        };
        memory.fetch_add(message.memory_bytes(), Ordering::Relaxed);
        message
    }

    pub(super) fn exchange(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.key_at as usize]).unwrap_or_default()
    }

    pub(super) fn key(&self) -> &str {
        let key = &self.bytes[self.key_at as usize..self.properties_at as usize];
        std::str::from_utf8(key).unwrap_or_default()
    }

    pub(super) fn properties(&self) -> &[u8] {
        &self.bytes[self.properties_at as usize..self.body_at as usize]
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[self.body_at as usize..]
    }

    fn memory_bytes(&self) -> u64 {
        (self.bytes.len() + size_of::<Message>() + size_of::<Waiting>()) as u64
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.memory.fetch_sub(self.memory_bytes(), Ordering::Relaxed);
    }
}

impl QueueTerms {
    /// Reads the arguments of a declaration.
    ///
    /// # Errors
    /// An argument that the reference server does not have: it would be ignored.
    pub(super) fn read(arguments: &Table<'_>) -> Result<QueueTerms, String> {
        let mut terms = QueueTerms {
            is_durable: false,
            owner: None,
            is_auto_deleted: false,
            is_quorum: false,
            length_max: 0,
            refuses: false,
            expires: Nanos(0),
        };
        for (name, value) in arguments.entries() {
            match (name, value) {
                ("x-queue-type", Value::Text(b"classic")) => {}
                ("x-queue-type", Value::Text(b"quorum")) => terms.is_quorum = true,
                ("x-max-length", Value::Number(most @ 1..)) => terms.length_max = most as u64,
                ("x-overflow", Value::Text(b"drop-head")) => {}
                ("x-overflow", Value::Text(b"reject-publish")) => terms.refuses = true,
                ("x-expires", Value::Number(time @ 1..)) => {
                    terms.expires = Nanos((time as u64).saturating_mul(1_000_000));
                }
                _ => return Err(format!("unknown argument {name} or value of it")),
            }
        }
        Ok(terms)
    }

    /// True if it stores messages of this delivery mode.
    pub(super) fn stores(&self, is_persistent: bool) -> bool {
        self.is_quorum || (self.is_durable && is_persistent)
    }
}

impl Queue {
    pub(super) fn new(name: &str, terms: QueueTerms, now: Nanos) -> Queue {
        Queue {
            name: name.into(),
            terms,
            ready: VecDeque::new(),
            consumers: VecDeque::new(),
            last_used: now,
        }
    }

    /// Puts a message at the end. False if the queue is full and refuses it; a full queue that does
    /// not drops its oldest one, which is given back.
    pub(super) fn put(&mut self, waiting: Waiting) -> (bool, Option<Waiting>) {
        let is_full = self.terms.length_max > 0 && self.ready.len() as u64 >= self.terms.length_max;
        if is_full && self.terms.refuses {
            return (false, None);
        }
        let dropped = if is_full { self.ready.pop_front() } else { None };
        self.ready.push_back(waiting);
        (true, dropped)
    }

    /// Puts messages back, the first one first.
    pub(super) fn put_back(&mut self, waiting: impl DoubleEndedIterator<Item = Waiting>) {
        for waiting in waiting.rev() {
            self.ready.push_front(Waiting { is_redelivered: true, ..waiting });
        }
    }
}
