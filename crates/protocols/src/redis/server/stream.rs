//! A stream: entries in the order of their IDs, and the groups that read them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::redis::codec::Id;

/// Entries and groups of one key.
#[derive(Default)]
pub(super) struct Stream {
    entries: VecDeque<Entry>,
    /// The highest ID that was ever added.
    pub(super) last: Id,
    bytes: usize,
    groups: HashMap<Box<[u8]>, Group>,
}

/// One entry.
pub(super) struct Entry {
    pub(super) id: Id,
    /// ID and fields as RESP, which is the same in both versions.
    pub(super) encoded: Box<[u8]>,
}

/// A consumer group.
pub(super) struct Group {
    /// The last entry that was delivered.
    pub(super) last: Id,
    /// Entries that were delivered and not acknowledged, with their consumer.
    pub(super) pending: BTreeMap<Id, Box<[u8]>>,
}

/// Entries that a trim removed.
#[derive(Default)]
pub(super) struct Trimmed {
    /// Those that a group had not read, counted for each group.
    pub(super) unread: u64,
    pub(super) entries: u64,
}

impl Stream {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Approximate memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the ID of an entry that is added now; `None` if IDs are used up.
    pub(super) fn next_id(&self, now_ms: u64) -> Option<Id> {
        match now_ms > self.last.ms {
            true => Some(Id { ms: now_ms, sequence: 0 }),
            false => self.last.next(),
        }
    }

    /// Adds an entry with a higher ID than the last.
    pub(super) fn add(&mut self, id: Id, encoded: &[u8]) {
        self.last = id;
        self.bytes += encoded.len() + ENTRY_BYTES;
        self.entries.push_back(Entry { id, encoded: encoded.into() });
    }

    /// Removes the oldest entries beyond `most`; not exactly means whole nodes of 100.
    pub(super) fn trim(&mut self, most: usize, is_exact: bool) -> Trimmed {
        let over = self.entries.len().saturating_sub(most);
        let count = if is_exact { over } else { over / NODE_ENTRIES * NODE_ENTRIES };
        let mut trimmed = Trimmed::default();
        for entry in self.entries.drain(..count) {
            self.bytes -= entry.encoded.len() + ENTRY_BYTES;
            trimmed.entries += 1;
            let unread = self.groups.values().filter(|group| group.last < entry.id);
            trimmed.unread += unread.count() as u64;
        }
        trimmed
    }

    /// Entries from one ID to another, both included.
    pub(super) fn range(&self, from: Id, to: Id) -> impl DoubleEndedIterator<Item = &Entry> {
        let first = self.entries.partition_point(|entry| entry.id < from);
        let end = self.entries.partition_point(|entry| entry.id <= to);
        self.entries.range(first..end.max(first))
    }

    /// Entries after an ID.
    pub(super) fn after(&self, id: Id) -> impl DoubleEndedIterator<Item = &Entry> {
        let first = self.entries.partition_point(|entry| entry.id <= id);
        self.entries.range(first..)
    }

    /// The entry of an ID.
    pub(super) fn entry(&self, id: Id) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
        self.entries.get(at)
    }

    /// Makes a group; false if there is one of this name.
    pub(super) fn create_group(&mut self, name: &[u8], last: Id) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        self.bytes += GROUP_BYTES;
        let group = Group { last, pending: BTreeMap::new() };
        self.groups.insert(name.into(), group).is_none()
    }

    /// Removes a group; false if there is none of this name.
    pub(super) fn destroy_group(&mut self, name: &[u8]) -> bool {
        let Some(group) = self.groups.remove(name) else { return false };
        self.bytes -= GROUP_BYTES + group.pending.len() * PENDING_BYTES;
        true
    }

    pub(super) fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    /// Delivers up to `count` new entries to a consumer of a group; without `acknowledges` they do
    /// not become pending.
    pub(super) fn deliver(
        &mut self,
        group: &[u8],
        consumer: &[u8],
        count: usize,
        acknowledges: bool,
    ) -> Vec<Id> {
        let Some(group) = self.groups.get_mut(group) else { return Vec::new() };
        let first = self.entries.partition_point(|entry| entry.id <= group.last);
        let new: Vec<Id> = self.entries.range(first..).take(count).map(|entry| entry.id).collect();
        if let Some(last) = new.last() {
            group.last = *last;
        }
        if acknowledges {
            self.bytes += new.len() * PENDING_BYTES;
            group.pending.extend(new.iter().map(|id| (*id, Box::<[u8]>::from(consumer))));
        }
        new
    }

    /// Takes an entry out of the pending ones; false if it was not there.
    pub(super) fn acknowledge(&mut self, group: &[u8], id: Id) -> bool {
        let group = self.groups.get_mut(group);
        let was_pending = group.is_some_and(|group| group.pending.remove(&id).is_some());
        self.bytes -= if was_pending { PENDING_BYTES } else { 0 };
        was_pending
    }
}

/// Entries of a node: `stream-node-max-entries` of Redis.
const NODE_ENTRIES: usize = 100;

/// Memory of an entry besides its bytes, of a pending entry, and of a group.
const ENTRY_BYTES: usize = 48;
const PENDING_BYTES: usize = 64;
const GROUP_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(count: u64) -> Stream {
        let mut stream = Stream::default();
        for ms in 1..=count {
            let id = stream.next_id(ms).unwrap();
            stream.add(id, b"entry");
        }
        stream
    }

    #[test]
    fn ids_rise_though_the_clock_stands() {
        let mut stream = filled(3);
        for sequence in 1..4 {
            let id = stream.next_id(3).unwrap();
            assert_eq!(id, Id { ms: 3, sequence });
            stream.add(id, b"");
        }
        assert_eq!(stream.next_id(4), Some(Id { ms: 4, sequence: 0 }));
    }

    #[test]
    fn a_trim_removes_nodes_or_exactly_and_counts_what_groups_have_not_read() {
        let mut stream = filled(250);
        assert!(stream.create_group(b"g", Id { ms: 130, sequence: 0 }));
        assert!(!stream.create_group(b"g", Id::MIN));
        let Trimmed { entries, unread } = stream.trim(100, false);
        assert_eq!((entries, unread, stream.len()), (100, 0, 150));
        let Trimmed { entries, unread } = stream.trim(100, true);
        assert_eq!((entries, unread, stream.len()), (50, 20, 100));
        let first = stream.after(Id::MIN).next().unwrap().id.ms;
        assert_eq!((first, stream.range(Id { ms: 160, sequence: 0 }, Id::MAX).count()), (151, 91));
        assert_eq!(stream.range(Id::MAX, Id::MIN).count(), 0);
        let bytes = stream.bytes();
        stream.trim(0, true);
        assert!(stream.bytes() < bytes && stream.bytes() == GROUP_BYTES);
    }
}
