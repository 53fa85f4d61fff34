//! Counting messages by identity: one bit each, so that 10 million messages from one producer
//! cost 1.25 MB. Consumers in the generator and the reference servers use the same tally.

use crate::mark::{Mark, Reading};

/// What arrived at one consumer, by producer.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    lanes: Vec<Lane>,
    /// Everything that arrived, of whatever kind, warm-up left out.
    pub received: u64,
    /// Messages that arrived more than once, each further arrival counted.
    pub duplicates: u64,
    /// Messages that arrived after one with a higher number of the same producer (RFC 4737,
    /// type-P-reordered), first arrivals only.
    pub reordered: u64,
    /// Messages with our mark and a failing check.
    pub corrupt: u64,
    /// Damaged messages whose identity could not be read any more.
    pub corrupt_unknown: u64,
    /// Messages without our mark.
    pub foreign: u64,
    /// Messages of the warm-up, counted nowhere else.
    pub warmup: u64,
}

/// What arrived from one producer.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    seen: Bits,
    late: Bits,
    corrupt: Bits,
    next_expected: u64,
}

/// What an arrival was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// A message for the first time and in time.
    First,
    /// A message for the first time, after Tmax.
    Late,
    /// A message that was here before.
    Duplicate,
    /// Damaged, foreign, or of the warm-up: counted, but no delivery.
    Nothing,
}

impl Tally {
    /// Counts the arrival of a body that reads as `reading`; `is_late` tells whether a whole
    /// message is past Tmax.
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
                        self.lane_mut(mark.producer).corrupt.set(mark.sequence);
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
        let lane = self.lane_mut(mark.producer);
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
        self.lanes.get(producer as usize).unwrap_or(&EMPTY)
    }

    fn lane_mut(&mut self, producer: u32) -> &mut Lane {
        let index = producer as usize;
        if index >= self.lanes.len() {
            self.lanes.resize_with(index + 1, Lane::default);
        }
        &mut self.lanes[index]
    }

    /// Puts another consumer's tally into this one, for consumers that share their messages: what
    /// both got is a duplicate.
    pub fn absorb(&mut self, other: &Tally) {
        self.received += other.received;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.corrupt += other.corrupt;
        self.corrupt_unknown += other.corrupt_unknown;
        self.foreign += other.foreign;
        self.warmup += other.warmup;
        for (producer, theirs) in other.lanes.iter().enumerate() {
            let ours = self.lane_mut(producer as u32);
            let known = ours.seen.absorb(&theirs.seen);
            ours.late.absorb(&theirs.late);
            ours.corrupt.absorb(&theirs.corrupt);
            self.duplicates += known;
        }
    }

    /// Different messages that arrived, in time or late.
    pub fn unique(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.seen.count()).sum()
    }

    /// Different messages that arrived late.
    pub fn late(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.late.count()).sum()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let lanes = self.lanes.iter().map(|lane| {
            lane.seen.memory_bytes() + lane.late.memory_bytes() + lane.corrupt.memory_bytes()
        });
        self.lanes.capacity() * size_of::<Lane>() + lanes.sum::<usize>()
    }
}

impl Lane {
    /// True if the message arrived, in time or late.
    pub fn has(&self, sequence: u64) -> bool {
        self.seen.get(sequence)
    }

    /// True if the message first arrived after Tmax.
    pub fn was_late(&self, sequence: u64) -> bool {
        self.late.get(sequence)
    }

    /// True if a damaged copy of the message arrived.
    pub fn was_corrupt(&self, sequence: u64) -> bool {
        self.corrupt.get(sequence)
    }
}

/// A growing set of small numbers, one bit each.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    const EMPTY: Bits = Bits { words: Vec::new() };

    /// Puts `number` in; false if it was there already.
    pub fn set(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }

    /// True if `number` is in.
    pub fn get(&self, number: u64) -> bool {
        self.words.get((number / 64) as usize).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Puts all numbers of `other` in; how many were there already.
    fn absorb(&mut self, other: &Bits) -> u64 {
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        let mut known = 0;
        for (ours, theirs) in self.words.iter_mut().zip(&other.words) {
            known += u64::from((*ours & theirs).count_ones());
            *ours |= theirs;
        }
        known
    }

    /// How many numbers are in.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    fn whole(producer: u32, sequence: u64) -> Reading {
        let (due, lag) = (Nanos(0), Nanos(0));
        Reading::Whole(Mark { tag: 1, warmup: false, producer, sequence, due, lag })
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
    }

    #[test]
    fn ten_million_messages_cost_little_more_than_a_bit_each() {
        let mut tally = Tally::default();
        for sequence in 0..10_000_000 {
            tally.note(whole(0, sequence), false);
        }
        assert_eq!(tally.unique(), 10_000_000);
        assert!(tally.memory_bytes() < 4_000_000, "{}", tally.memory_bytes());
    }
}
