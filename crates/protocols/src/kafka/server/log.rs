//! The log of a partition: batches as they came, in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::place::Place;
use crate::kafka::codec::batch::{self, Batch, Producer};

/// A partition.
#[derive(Debug, Default)]
pub(super) struct Log {
    batches: VecDeque<Stored>,
    /// Offset of the first message that is there.
    pub(super) start: i64,
    /// Offset of the next message.
    pub(super) next: i64,
    /// Fetches that wait for messages.
    pub(super) waiting: BTreeSet<Place>,
    producers: BTreeMap<i64, Known>,
}

#[derive(Debug)]
struct Stored {
    base: i64,
    next: i64,
    bytes: Box<[u8]>,
}

/// An idempotent producer: its last batches, oldest first.
#[derive(Debug)]
struct Known {
    epoch: i16,
    batches: VecDeque<Numbers>,
}

/// Numbers of a batch of an idempotent producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    first: i32,
    last: i32,
    offset: i64,
}

/// What the numbers of a batch say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It is the next one, or has no numbers.
    Next,
    /// It is in the log already, at this offset.
    Known(i64),
    /// A batch before it is missing.
    Gap,
    /// A newer producer has its identity.
    OldEpoch,
}

/// What was read from a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) bytes: usize,
    pub(super) messages: u64,
}

impl Log {
    /// Judges the numbers of a batch.
    pub(super) fn order(&self, producer: Producer, count: i32) -> Order {
        if producer.id < 0 {
            return Order::Next;
        }
        let Some(known) = self.producers.get(&producer.id) else {
            return if producer.sequence == 0 { Order::Next } else { Order::Gap };
        };
        let last = last_of(producer.sequence, count);
        let is_it = |own: &&Numbers| own.first == producer.sequence && own.last == last;
        match (producer.epoch.cmp(&known.epoch), known.batches.back()) {
            (std::cmp::Ordering::Less, _) => Order::OldEpoch,
            (std::cmp::Ordering::Greater, _) if producer.sequence == 0 => Order::Next,
            (std::cmp::Ordering::Greater, _) => Order::Gap,
            (_, Some(newest)) if last_of(newest.last, 2) == producer.sequence => Order::Next,
            _ => match known.batches.iter().find(is_it) {
                Some(own) => Order::Known(own.offset),
                None => Order::Gap,
            },
        }
    }

    /// Appends a batch; returns the offset of its first message.
    pub(super) fn append(&mut self, found: &Batch<'_>) -> i64 {
        let base = self.next;
        let mut bytes: Box<[u8]> = found.bytes.into();
        batch::place(&mut bytes, base, 0);
        self.next = base + i64::from(found.last_offset_delta) + 1;
        self.batches.push_back(Stored { base, next: self.next, bytes });
        self.note(found.producer, found.count, base);
        base
    }

    fn note(&mut self, producer: Producer, count: i32, offset: i64) {
        if producer.id < 0 {
            return;
        }
        let new = || Known { epoch: producer.epoch, batches: VecDeque::new() };
        let known = self.producers.entry(producer.id).or_insert_with(new);
        if known.epoch != producer.epoch {
            *known = new();
        }
        if known.batches.len() == BATCHES_REMEMBERED {
            known.batches.pop_front();
        }
        let (first, last) = (producer.sequence, last_of(producer.sequence, count));
        known.batches.push_back(Numbers { first, last, offset });
        if self.producers.len() > PRODUCERS_MAX {
            self.producers.pop_first();
        }
    }

    /// Removes the oldest batch; returns its bytes, and the number of its messages.
    pub(super) fn trim(&mut self) -> Option<Taken> {
        let oldest = self.batches.pop_front()?;
        self.start = oldest.next;
        Some(Taken { bytes: oldest.bytes.len(), messages: (oldest.next - oldest.base) as u64 })
    }

    /// Bytes from an offset on, up to `bytes_max`, and the first batch whatever its size if
    /// `takes_first`; appends them to `out` if there is one.
    pub(super) fn read(
        &self,
        offset: i64,
        bytes_max: usize,
        takes_first: bool,
        mut out: Option<&mut Vec<u8>>,
    ) -> Taken {
        let first = self.batches.partition_point(|own| own.next <= offset);
        let mut taken = Taken::default();
        for stored in self.batches.range(first..) {
            let bytes = taken.bytes + stored.bytes.len();
            if bytes > bytes_max && !(takes_first && taken.bytes == 0) {
                break;
            }
            taken.bytes = bytes;
            taken.messages += (stored.next - stored.base.max(offset)) as u64;
            if let Some(out) = out.as_deref_mut() {
                out.extend_from_slice(&stored.bytes);
            }
        }
        taken
    }
}

/// Number of the last of `count` messages from `first` on; behind the highest comes 0.
fn last_of(first: i32, count: i32) -> i32 {
    ((i64::from(first) + i64::from(count) - 1) & i64::from(i32::MAX)) as i32
}

/// `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`.
const BATCHES_REMEMBERED: usize = 5;

const PRODUCERS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_of(producer: Producer, bodies: &[&[u8]]) -> Vec<u8> {
        let (mut records, mut bytes) = (Vec::new(), Vec::new());
        for (index, body) in bodies.iter().enumerate() {
            batch::put_record(&mut records, index as i32, body);
        }
        batch::put(&mut bytes, producer, bodies.len() as i32, &records);
        bytes
    }

    fn append(log: &mut Log, producer: Producer, bodies: &[&[u8]]) -> i64 {
        let bytes = batch_of(producer, bodies);
        log.append(&batch::read(&bytes).unwrap().unwrap())
    }

    #[test]
    fn batches_come_back_whole_and_from_any_offset() {
        let mut log = Log::default();
        assert_eq!(append(&mut log, Producer::NONE, &[b"a", b"b", b"c"]), 0);
        assert_eq!(append(&mut log, Producer::NONE, &[b"d"]), 3);
        let mut out = Vec::new();
        let taken = log.read(1, 1000, true, Some(&mut out));
        assert_eq!((taken.bytes, taken.messages), (out.len(), 3));
        let first = batch::read(&out).unwrap().unwrap();
        assert_eq!((first.base_offset, first.next_offset(), first.count), (0, 3, 3));
        let second = batch::read(&out[first.bytes.len()..]).unwrap().unwrap();
        assert_eq!((second.base_offset, second.next_offset()), (3, 4));
        assert_eq!(log.read(4, 1000, true, None), Taken::default());
        assert_eq!(log.read(0, 1, false, None), Taken::default());
        assert_eq!(log.read(0, 1, true, None).messages, 3);
        assert_eq!(log.trim().map(|taken| taken.messages), Some(3));
        assert_eq!((log.start, log.next), (3, 4));
    }

    #[test]
    fn numbers_say_what_is_next_known_or_missing() {
        let mut log = Log::default();
        let at = |sequence: i32| Producer { id: 7, epoch: 0, sequence };
        assert_eq!(log.order(at(5), 1), Order::Gap);
        assert_eq!(log.order(at(0), 2), Order::Next);
        append(&mut log, at(0), &[b"a", b"b"]);
        assert_eq!(log.order(at(0), 2), Order::Known(0));
        assert_eq!(log.order(at(2), 1), Order::Next);
        assert_eq!(log.order(at(3), 1), Order::Gap);
        assert_eq!(log.order(Producer { epoch: 1, ..at(0) }, 1), Order::Next);
        append(&mut log, Producer { epoch: 1, ..at(0) }, &[b"c"]);
        assert_eq!(log.order(at(2), 1), Order::OldEpoch);
        for sequence in 1..=5 {
            append(&mut log, Producer { epoch: 1, ..at(sequence) }, &[b"x"]);
        }
        assert_eq!(log.order(Producer { epoch: 1, ..at(0) }, 1), Order::Gap, "forgotten");
        assert_eq!(last_of(i32::MAX, 2), 0);
    }
}
