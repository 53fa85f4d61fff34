//! Results of a store: for readings to store, and for requests of readings.

use bytes::Bytes;
use weigh_model::mark::{Mark, Reading as Marked};

/// Result of a stored batch.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// True for readings that were stored before and have no second row; empty if this is not
    /// checked.
    pub(crate) repeated: Vec<bool>,
}

impl Kept {
    /// True if the reading of this number was stored before.
    pub(crate) fn is_repeated(&self, number: usize) -> bool {
        self.repeated.get(number).copied().unwrap_or(false)
    }

    /// Number of repeated readings.
    pub(crate) fn repeats(&self) -> u64 {
        self.repeated.iter().filter(|is_repeated| **is_repeated).count() as u64
    }
}

/// Readings after a cursor.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) readings: Vec<Bytes>,
    /// The cursor after them.
    pub(crate) next: u64,
}

/// Identity of a message: tag, producer and sequence of its mark.
pub(crate) type Identity = [u8; 14];

/// Identity of a body with a complete mark.
pub(crate) fn identity(body: &[u8]) -> Option<Identity> {
    let Marked::Whole(mark) = Mark::read_any(body) else { return None };
    let mut identity = [0; 14];
    identity[..2].copy_from_slice(&mark.tag.to_be_bytes());
    identity[2..6].copy_from_slice(&mark.producer.to_be_bytes());
    identity[6..].copy_from_slice(&mark.sequence.to_be_bytes());
    Some(identity)
}
