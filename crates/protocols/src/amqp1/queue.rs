//! Queues of the reference server, and the messages in them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::codec::Header;

/// A message that is kept. It counts in the memory of the server until nothing refers to it.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) header: Header,
    /// Everything behind the header, as it came.
    pub(super) bare: Box<[u8]>,
    memory: Arc<AtomicU64>,
}

/// The bytes so far of a message that comes in several transfers. They count in the memory of the
/// server as messages do.
#[derive(Debug, Default)]
pub(super) struct Parts {
    bytes: Vec<u8>,
    memory: Arc<AtomicU64>,
}

/// A message in a queue.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) message: Arc<Message>,
    /// Deliveries of it that failed.
    pub(super) failures: u32,
}

/// A queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) ready: VecDeque<Waiting>,
    /// Consumers; the first one is next.
    pub(super) consumers: VecDeque<u32>,
    /// It stores durable messages.
    pub(super) is_durable: bool,
}

impl Message {
    pub(super) fn new(header: Header, bare: &[u8], memory: &Arc<AtomicU64>) -> Message {
        let message = Message { header, bare: bare.into(), memory: Arc::clone(memory) };
        memory.fetch_add(message.memory_bytes(), Ordering::Relaxed);
        message
    }

    fn memory_bytes(&self) -> u64 {
        (self.bare.len() + size_of::<Message>() + size_of::<Waiting>()) as u64
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.memory.fetch_sub(self.memory_bytes(), Ordering::Relaxed);
    }
}

impl Parts {
    pub(super) fn new(memory: &Arc<AtomicU64>) -> Parts {
        Parts { bytes: Vec::new(), memory: Arc::clone(memory) }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.memory.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }

    /// Takes all bytes, which count no longer.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.bytes);
        self.memory.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
        bytes
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.memory.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

impl Queue {
    /// Puts messages back, the first one first.
    pub(super) fn put_back(&mut self, waiting: impl DoubleEndedIterator<Item = Waiting>) {
        for waiting in waiting.rev() {
            self.ready.push_front(waiting);
        }
    }
}
