//! Reads that wait for entries.

use std::collections::{HashMap, VecDeque};

use super::place::{Key, Place};
use crate::redis::codec::Id;

/// A read of streams.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) place: Place,
    pub(super) is_resp3: bool,
    pub(super) by: By,
    /// Most entries of each stream.
    pub(super) count: usize,
    pub(super) streams: Vec<Wanted>,
}

/// Who reads.
#[derive(Clone, Debug)]
pub(super) enum By {
    /// XREAD.
    Plain,
    /// XREADGROUP.
    Group { group: Box<[u8]>, consumer: Box<[u8]>, acknowledges: bool },
}

/// A stream of a read.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) key: Key,
    pub(super) after: After,
}

/// Entries that a read wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Those with a higher ID; of a group, those pending at its consumer.
    Id(Id),
    /// Those that the group has not delivered (`>`).
    New,
}

/// All blocked reads.
#[derive(Default)]
pub(super) struct Blocked {
    reads: HashMap<Place, Read>,
    /// Who waits for a key, first come first served.
    by_key: HashMap<Key, VecDeque<Place>>,
}

impl Blocked {
    pub(super) fn insert(&mut self, read: Read) {
        for stream in &read.streams {
            self.by_key.entry(stream.key.clone()).or_default().push_back(read.place);
        }
        self.reads.insert(read.place, read);
    }

    /// Takes the read of a place; `None` if it does not wait.
    pub(super) fn remove(&mut self, place: Place) -> Option<Read> {
        let read = self.reads.remove(&place)?;
        for stream in &read.streams {
            if let Some(places) = self.by_key.get_mut(&stream.key) {
                places.retain(|other| *other != place);
                if places.is_empty() {
                    self.by_key.remove(&stream.key);
                }
            }
        }
        Some(read)
    }

    /// Those that wait for a key.
    pub(super) fn of(&self, key: &Key) -> Vec<Place> {
        self.by_key.get(key).map_or_else(Vec::new, |places| places.iter().copied().collect())
    }

    pub(super) fn read(&self, place: Place) -> Option<&Read> {
        self.reads.get(&place)
    }

    pub(super) fn len(&self) -> usize {
        self.reads.len()
    }
}
