//! Counts messages by identity: one bit each, and far less if none is missing, so that hours of
//! messages need little memory. Consumers in the generator and the reference servers use the same
//! tally.

use crate::mark::{Mark, Reading};
use crate::portable::{Portable, Reader, Unreadable};
use crate::portable_fields;
use crate::stretch::Stretch;

/// Messages that arrived at one consumer, by producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    lanes: Stretch<Lane>,
    /// All arrivals, of any kind, warm-up excluded.
    pub received: u64,
    /// Messages that arrived more than once, each further arrival counted.
    pub duplicates: u64,
    /// Messages that arrived after one with a higher number of the same producer (RFC 4737,
    /// type-P-reordered), first arrivals only.
    pub reordered: u64,
    /// Messages with a Weighbridge mark whose check fails.
    pub corrupt: u64,
    /// Damaged messages whose identity could not be read.
    pub corrupt_unknown: u64,
    /// Messages without a Weighbridge mark.
    pub foreign: u64,
    /// Messages of the warm-up, counted nowhere else.
    pub warmup: u64,
}

/// Messages that arrived from one producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    seen: Bits,
    late: Bits,
    corrupt: Bits,
    next_expected: u64,
}

/// Kind of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// A message for the first time and in time.
    First,
    /// A message for the first time, after Tmax.
    Late,
    /// A message that had arrived before.
    Duplicate,
    /// Damaged, foreign, or of the warm-up: counted, but not a delivery.
    Nothing,
}

impl Tally {
    /// Counts the arrival of a body that reads as `reading`; `is_late` is true if a whole message
    /// is past Tmax.
    pub fn note(&mut self, reading: Reading, is_late: bool) -> Arrived {
        match reading {
            Reading::Whole(mark) if mark.warmup => {
                self.warmup += 1;
                Arrived::Nothing
            }
            Reading::Whole(mark) => self.note_whole(&mark, is_late),
            Reading::Corrupt(Some(mark)) if mark.warmup => {
                self.warmup += 1;
                Arrived::Nothing
            }
            Reading::Corrupt(mark) => {
                self.received += 1;
                self.corrupt += 1;
                match mark {
                    Some(mark) => {
                        self.lanes.get_mut(mark.producer).corrupt.set(mark.sequence);
                    }
                    None => self.corrupt_unknown += 1,
                }
                Arrived::Nothing
            }
            Reading::Foreign => {
                self.received += 1;
                self.foreign += 1;
                Arrived::Nothing
            }
        }
    }

    fn note_whole(&mut self, mark: &Mark, is_late: bool) -> Arrived {
        self.received += 1;
        let lane = self.lanes.get_mut(mark.producer);
        if !lane.seen.set(mark.sequence) {
            self.duplicates += 1;
            return Arrived::Duplicate;
        }
        let is_reordered = mark.sequence < lane.next_expected;
        lane.next_expected = lane.next_expected.max(mark.sequence + 1);
        if is_late {
            lane.late.set(mark.sequence);
        }
        self.reordered += u64::from(is_reordered);
        if is_late { Arrived::Late } else { Arrived::First }
    }

    /// The lane of `producer`, empty if nothing came from it.
    pub fn lane(&self, producer: u32) -> &Lane {
        static EMPTY: Lane =
            Lane { seen: Bits::EMPTY, late: Bits::EMPTY, corrupt: Bits::EMPTY, next_expected: 0 };
        self.lanes.get(producer).unwrap_or(&EMPTY)
    }

    /// Merges another consumer's tally into this one, for consumers that share their messages: a
    /// message that both received is a duplicate, and late only if it was late at both.
    pub fn absorb(&mut self, other: &Tally) {
        self.received += other.received;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.corrupt += other.corrupt;
        self.corrupt_unknown += other.corrupt_unknown;
        self.foreign += other.foreign;
        self.warmup += other.warmup;
        for (producer, theirs) in other.lanes.iter() {
            let ours = self.lanes.get_mut(producer);
            ours.late = ours.late_with(theirs);
            let known = ours.seen.absorb(&theirs.seen);
            ours.corrupt.absorb(&theirs.corrupt);
            self.duplicates += known;
        }
    }

    /// Different messages that arrived, in time or late.
    pub fn unique(&self) -> u64 {
        self.lanes.iter().map(|(_, lane)| lane.seen.count()).sum()
    }

    /// Different messages that arrived late.
    pub fn late(&self) -> u64 {
        self.lanes.iter().map(|(_, lane)| lane.late.count()).sum()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let lanes = self.lanes.iter().map(|(_, lane)| {
            lane.seen.memory_bytes() + lane.late.memory_bytes() + lane.corrupt.memory_bytes()
        });
        self.lanes.memory_bytes() + lanes.sum::<usize>()
    }
}

impl Lane {
    /// True if the message arrived, in time or late.
    pub fn has(&self, sequence: u64) -> bool {
        self.seen.get(sequence)
    }

    /// The number after the highest that arrived; 0 if none did.
    pub fn end(&self) -> u64 {
        self.seen.end()
    }

    /// True if the message first arrived after Tmax.
    pub fn was_late(&self, sequence: u64) -> bool {
        self.late.get(sequence)
    }

    /// Messages that came late, if none of two consumers got them in time.
    fn late_with(&self, other: &Lane) -> Bits {
        let mut late = Bits::default();
        for (one, other) in [(self, other), (other, self)] {
            let numbers = one.late.numbers();
            for number in numbers.filter(|own| !other.has(*own) || other.was_late(*own)) {
                late.set(number);
            }
        }
        late
    }

    /// True if a damaged copy of the message arrived.
    pub fn was_corrupt(&self, sequence: u64) -> bool {
        self.corrupt.get(sequence)
    }
}

/// A growing set of numbers that mostly arrive in order: one bit each, and almost nothing for a
/// block of [`BLOCK_BITS`] that is complete. Messages arrive in this way, so that hours of them
/// need the memory of the last moment, plus a block around each lost one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    blocks: Vec<Block>,
}

/// One block of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Block {
    /// Some bits; words after the last one are 0.
    Some { words: Vec<u64>, count: u32 },
    /// All bits.
    All,
}

impl Bits {
    const EMPTY: Bits = Bits { blocks: Vec::new() };

    /// Adds `number`; false if it was already in the set.
    pub fn set(&mut self, number: u64) -> bool {
        let block = (number / BLOCK_BITS) as usize;
        if block >= self.blocks.len() {
            self.blocks.resize_with(block + 1, || Block::NONE);
        }
        self.blocks[block].set(number % BLOCK_BITS)
    }

    /// True if `number` is in the set.
    pub fn get(&self, number: u64) -> bool {
        let block = self.blocks.get((number / BLOCK_BITS) as usize);
        block.is_some_and(|block| block.get(number % BLOCK_BITS))
    }

    /// The number after its highest one; 0 if it is empty.
    pub fn end(&self) -> u64 {
        let last = self.blocks.iter().rposition(|block| block.count() > 0);
        last.map_or(0, |at| at as u64 * BLOCK_BITS + self.blocks[at].end())
    }

    /// Its numbers in rising order.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let some = self.blocks.iter().zip(0..).filter(|(block, _)| block.count() > 0);
        some.flat_map(|(block, at)| {
            let own = (0..BLOCK_BITS).filter(|number| block.get(*number));
            own.map(move |number| at * BLOCK_BITS + number)
        })
    }

    /// Adds all numbers of `other`; returns how many were already in the set.
    fn absorb(&mut self, other: &Bits) -> u64 {
        if other.blocks.len() > self.blocks.len() {
            self.blocks.resize_with(other.blocks.len(), || Block::NONE);
        }
        self.blocks.iter_mut().zip(&other.blocks).map(|(ours, theirs)| ours.absorb(theirs)).sum()
    }

    /// Number of members.
    pub fn count(&self) -> u64 {
        self.blocks.iter().map(Block::count).sum()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let words = |block: &Block| match block {
            Block::Some { words, .. } => words.capacity() * size_of::<u64>(),
            Block::All => 0,
        };
        self.blocks.capacity() * size_of::<Block>() + self.blocks.iter().map(words).sum::<usize>()
    }
}

impl Block {
    const NONE: Block = Block::Some { words: Vec::new(), count: 0 };

    fn set(&mut self, number: u64) -> bool {
        let Block::Some { words, count } = self else { return false };
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= words.len() {
            words.resize(word + 1, 0);
        }
        if words[word] & bit != 0 {
            return false;
        }
        words[word] |= bit;
        *count += 1;
        if u64::from(*count) == BLOCK_BITS {
            *self = Block::All;
        }
        true
    }

    fn get(&self, number: u64) -> bool {
        match self {
            Block::Some { words, .. } => words
                .get((number / 64) as usize)
                .is_some_and(|word| word & (1 << (number % 64)) != 0),
            Block::All => true,
        }
    }

    /// The number after the highest one; 0 if there is none.
    fn end(&self) -> u64 {
        match self {
            Block::Some { words, .. } => {
                let last = words.iter().rposition(|word| *word != 0);
                let end = |at: usize| 64 - u64::from(words[at].leading_zeros());
                last.map_or(0, |at| at as u64 * 64 + end(at))
            }
            Block::All => BLOCK_BITS,
        }
    }

    fn count(&self) -> u64 {
        match self {
            Block::Some { count, .. } => u64::from(*count),
            Block::All => BLOCK_BITS,
        }
    }

    fn absorb(&mut self, other: &Block) -> u64 {
        let before = self.count() + other.count();
        match (&mut *self, other) {
            (Block::All, _) => {}
            (_, Block::All) => *self = Block::All,
            (Block::Some { words, count }, Block::Some { words: others, .. }) => {
                if others.len() > words.len() {
                    words.resize(others.len(), 0);
                }
                words.iter_mut().zip(others).for_each(|(ours, theirs)| *ours |= theirs);
                *count = words.iter().map(|word| word.count_ones()).sum();
                if u64::from(*count) == BLOCK_BITS {
                    *self = Block::All;
                }
            }
        }
        before - self.count()
    }
}

portable_fields!(Tally {
    lanes,
    received,
    duplicates,
    reordered,
    corrupt,
    corrupt_unknown,
    foreign,
    warmup,
});
portable_fields!(Lane { seen, late, corrupt, next_expected });
portable_fields!(Bits { blocks });

/// The number of words and the words; one more than there can be for a block that is complete.
impl Portable for Block {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Block::All => (BLOCK_WORDS + 1).put(out),
            Block::Some { words, .. } => {
                (words.len() as u64).put(out);
                words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
            }
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Block, Unreadable> {
        let length = match u64::take(from)? {
            length if length <= BLOCK_WORDS => length,
            length if length == BLOCK_WORDS + 1 => return Ok(Block::All),
            _ => return Err(Unreadable::Wrong("a set of numbers")),
        };
        let words = (0..length).map(|_| from.array().map(u64::from_le_bytes));
        let words = words.collect::<Result<Vec<u64>, Unreadable>>()?;
        let count: u32 = words.iter().map(|word| word.count_ones()).sum();
        Ok(if u64::from(count) == BLOCK_BITS { Block::All } else { Block::Some { words, count } })
    }
}

/// Words of a block in memory.
const BLOCK_WORDS: u64 = BLOCK_BITS / 64;

/// Numbers of a block: 4 KiB if not all of them are set.
const BLOCK_BITS: u64 = 32_768;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::units::Nanos;

    fn whole(producer: u32, sequence: u64) -> Reading {
        let (due, lag) = (Nanos(0), Nanos(0));
        Reading::Whole(Mark { tag: 1, warmup: false, producer, sequence, due, lag, own_lag: lag })
    }

    #[test]
    fn every_arrival_is_counted_once_and_for_what_it_is() {
        let mut tally = Tally::default();
        assert_eq!(tally.note(whole(0, 0), false), Arrived::First);
        assert_eq!(tally.note(whole(0, 2), false), Arrived::First);
        assert_eq!(tally.note(whole(0, 1), false), Arrived::First);
        assert_eq!(tally.note(whole(0, 1), false), Arrived::Duplicate);
        assert_eq!(tally.note(whole(5, 9), true), Arrived::Late);
        assert_eq!(tally.note(Reading::Foreign, false), Arrived::Nothing);
        assert_eq!(tally.note(Reading::Corrupt(None), false), Arrived::Nothing);
        assert_eq!((tally.unique(), tally.late()), (4, 1));
        assert_eq!((tally.duplicates, tally.reordered), (1, 1));
        assert_eq!((tally.received, tally.corrupt, tally.foreign), (7, 1, 1));
        assert_eq!(
            tally.received,
            tally.unique() + tally.duplicates + tally.corrupt + tally.foreign
        );
        assert!(tally.lane(5).was_late(9) && !tally.lane(4).has(9));
        assert_eq!([0, 4, 5].map(|producer| tally.lane(producer).end()), [3, 0, 10]);
    }

    #[test]
    fn what_two_sharing_consumers_both_got_is_a_duplicate() {
        let (mut left, mut right) = (Tally::default(), Tally::default());
        for number in [0, 1, 2] {
            left.note(whole(0, number), false);
        }
        for number in [2, 3, 200] {
            right.note(whole(0, number), number == 3);
        }
        left.absorb(&right);
        assert_eq!((left.unique(), left.late(), left.duplicates, left.received), (5, 1, 1, 6));
        let mut again = Tally::default();
        for number in [3, 40_000, 2] {
            again.note(whole(0, number), true);
        }
        left.absorb(&again);
        assert!(left.lane(0).was_late(3) && left.lane(0).was_late(40_000));
        assert!(!left.lane(0).was_late(2), "the other one had got it in time");
        assert_eq!((left.unique(), left.late(), left.duplicates), (6, 2, 3));
    }

    /// Consumers in pairs hear one producer each: together they take as much memory as they are.
    #[test]
    fn a_consumer_takes_no_memory_for_producers_that_it_does_not_hear() {
        let of = |producer| {
            let mut tally = Tally::default();
            assert_eq!(tally.note(whole(producer, 7), false), Arrived::First);
            assert!(tally.lane(producer).has(7) && !tally.lane(0).has(6));
            tally
        };
        let (first, last) = (of(0), of(100_000));
        assert_eq!(first.memory_bytes(), last.memory_bytes());
        let mut both = last.clone();
        both.absorb(&first);
        both.absorb(&last);
        assert_eq!((both.unique(), both.duplicates), (2, 1));
    }

    #[test]
    fn hours_of_messages_cost_what_is_missing_of_them() {
        let mut tally = Tally::default();
        for sequence in 0..10_000_000 {
            tally.note(whole(0, sequence), false);
        }
        assert_eq!(tally.unique(), 10_000_000);
        let complete = tally.memory_bytes();
        assert!(complete < 30_000, "{complete}");
        // One in a million lost: each costs its stretch.
        let mut lossy = Tally::default();
        for sequence in (0..10_000_000).filter(|sequence| sequence % 1_000_000 != 500_000) {
            lossy.note(whole(0, sequence), false);
        }
        assert_eq!(lossy.unique(), 10_000_000 - 10);
        assert!(lossy.memory_bytes() < complete + 10 * 8192, "{}", lossy.memory_bytes());
        assert!(!lossy.lane(0).has(500_000) && lossy.lane(0).has(500_001));
    }

    /// Against a set of the standard library, at both ends of stretches and with many repeated.
    #[test]
    fn bits_are_a_set() {
        let mut random = weigh_stats::random::Random::new(3);
        let mut sets = [BTreeSet::new(), BTreeSet::new()];
        let mut bits = [Bits::default(), Bits::default()];
        for side in 0..2 {
            // Two whole stretches, the second only in one of the two, and numbers around them.
            let whole = (0..BLOCK_BITS * (1 + side as u64)).rev();
            let some = (0..20_000).map(|_| random.below(BLOCK_BITS * 4));
            for number in whole.chain(some.collect::<Vec<_>>()) {
                assert_eq!(bits[side].set(number), sets[side].insert(number), "{number}");
            }
            assert_eq!(bits[side].count(), sets[side].len() as u64);
        }
        let both = sets[0].intersection(&sets[1]).count() as u64;
        for (ours, theirs) in [(0, 1), (1, 0)] {
            let mut sum = bits[ours].clone();
            assert_eq!(sum.absorb(&bits[theirs]), both);
            let is_in = |number: &u64| sets.iter().any(|set| set.contains(number));
            assert!((0..BLOCK_BITS * 5).all(|number| sum.get(number) == is_in(&number)));
            assert_eq!(sum.count(), sets[0].union(&sets[1]).count() as u64);
        }
    }
}
