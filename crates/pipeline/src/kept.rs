//! What a store says of the readings that it was given, and of those that it gives.

use bytes::Bytes;
use weigh_model::mark::{Mark, Reading as Marked};

/// What became of a batch that was kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Which of them were there before and are no second row; empty where nobody looks.
    pub(crate) repeated: Vec<bool>,
}

impl Kept {
    /// True if the one of this number was there before.
    pub(crate) fn is_repeated(&self, number: usize) -> bool {
        self.repeated.get(number).copied().unwrap_or(false)
    }

    /// How many were.
    pub(crate) fn repeats(&self) -> u64 {
        self.repeated.iter().filter(|is_repeated| **is_repeated).count() as u64
    }
}

/// Readings after a cursor.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) readings: Vec<Bytes>,
    /// The cursor behind them.
    pub(crate) next: u64,
}

/// Who a message is: the tag, the producer and the sequence of its mark.
pub(crate) type Identity = [u8; 14];

/// That of a body with a whole mark.
pub(crate) fn identity(body: &[u8]) -> Option<Identity> {
    let Marked::Whole(mark) = Mark::read_any(body) else { return None };
    let mut identity = [0; 14];
    identity[..2].copy_from_slice(&mark.tag.to_be_bytes());
    identity[2..6].copy_from_slice(&mark.producer.to_be_bytes());
    identity[6..].copy_from_slice(&mark.sequence.to_be_bytes());
    Some(identity)
}
