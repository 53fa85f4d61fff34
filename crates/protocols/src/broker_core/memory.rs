//! The memory that messages take, and the connections that wait until there is some again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::place::Place;

/// The memory of all messages of a server.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes: Arc<AtomicU64>,
    bytes_max: u64,
    /// Connections whose producers wait.
    blocked: Vec<Place>,
}

impl Memory {
    /// None taken yet of `bytes_max`.
    pub(crate) fn new(bytes_max: u64) -> Memory {
        Memory { bytes: Arc::default(), bytes_max, blocked: Vec::new() }
    }

    /// The count that a message adds itself to, and leaves when nothing refers to it any more.
    pub(crate) fn counter(&self) -> &Arc<AtomicU64> {
        &self.bytes
    }

    /// Bytes that messages take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// True if messages take all that they may: producers have to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() >= self.bytes_max
    }

    /// A producer waits, or its connection is not read.
    pub(crate) fn note_blocked(&mut self, place: Place) {
        self.blocked.push(place);
    }

    /// Those that need not wait any longer: a tenth of the memory is free again.
    pub(crate) fn take_unblocked(&mut self) -> Vec<Place> {
        match self.blocked.is_empty() || self.bytes() > self.bytes_max / 10 * 9 {
            true => Vec::new(),
            false => std::mem::take(&mut self.blocked),
        }
    }

    /// A connection is gone.
    pub(crate) fn forget(&mut self, place: Place) {
        self.blocked.retain(|own| *own != place);
    }
}
