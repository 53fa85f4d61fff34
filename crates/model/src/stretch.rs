//! Values by number, for numbers that are close together: memory holds those from the first to the
//! last that was used. One that holds a single high number takes the memory of one value.

use crate::portable::{Portable, Reader, Unreadable};

/// Values by number; those that were never used have their default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch<T> {
    /// Number of the first value.
    first: u32,
    values: Vec<T>,
}

impl<T: Default> Stretch<T> {
    /// The value of `number`; `None` if it is outside the stretch.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        self.values.get(self.place(number))
    }

    /// The value of `number`, which may be changed. The stretch grows to it. A number before the
    /// first lets it begin at 0, so that numbers in falling order do not move the others each time.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> &mut T {
        if self.place(number) >= self.values.len() {
            self.grow(number);
        }
        let place = self.place(number);
        &mut self.values[place]
    }

    /// All values of the stretch and their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (self.first..).zip(&self.values)
    }

    /// Bytes of memory held, without what values hold elsewhere.
    pub fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>()
    }

    /// Where the value of `number` is; beyond the end for numbers before the first.
    #[inline]
    fn place(&self, number: u32) -> usize {
        number.wrapping_sub(self.first) as usize
    }

    #[cold]
    fn grow(&mut self, number: u32) {
        if self.values.is_empty() {
            // Often the only one.
            self.values.reserve_exact(1);
            self.first = number;
        } else if number < self.first {
            let before = std::iter::repeat_with(T::default).take(self.first as usize);
            self.values.splice(0..0, before);
            self.first = 0;
        }
        let end = self.place(number) + 1;
        self.values.resize_with(end.max(self.values.len()), T::default);
    }
}

impl<T: Portable> Portable for Stretch<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.first.put(out);
        self.values.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Result<Stretch<T>, Unreadable> {
        let (first, values) = (u32::take(from)?, Vec::take(from)?);
        // Two that are put together take memory for everything between them.
        if first as usize + values.len() > END_READ_MAX {
            return Err(Unreadable::Wrong("a number beyond 24 bits"));
        }
        Ok(Stretch { first, values })
    }
}

/// End of a stretch that is read: far beyond the clients of any trial.
const END_READ_MAX: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weigh_stats::random::Random;

    use super::*;

    /// Against a map of the standard library, from every first number and in every order.
    #[test]
    fn a_stretch_is_a_map() {
        let mut random = Random::new(4);
        for _ in 0..200 {
            let (mut stretch, mut map) = (Stretch::<u64>::default(), BTreeMap::new());
            let (from, length) = (random.below(50) as u32, 1 + random.below(40));
            for value in 1..random.below(60) {
                let number = from + random.below(length) as u32;
                *stretch.get_mut(number) = value;
                map.insert(number, value);
            }
            for number in 0..100 {
                let known = map.get(&number).copied().unwrap_or(0);
                assert_eq!(stretch.get(number).copied().unwrap_or(0), known);
            }
            let used = stretch.iter().filter(|(_, value)| **value > 0);
            assert!(used.eq(map.iter().map(|(number, value)| (*number, value))));
        }
    }

    /// The only value of a high number takes as much as that of 0, in falling order too.
    #[test]
    fn memory_is_that_of_the_numbers_used() {
        let (mut low, mut high) = (Stretch::<u64>::default(), Stretch::<u64>::default());
        *low.get_mut(0) = 1;
        *high.get_mut(1_000_000) = 1;
        assert_eq!((low.memory_bytes(), high.memory_bytes()), (8, 8));
        let mut falling = Stretch::<u64>::default();
        (0..100_000).rev().for_each(|number| *falling.get_mut(number) = 1);
        assert!(falling.memory_bytes() <= 2 * 8 * 100_000, "{}", falling.memory_bytes());
    }

    #[test]
    fn a_stretch_without_end_is_refused() {
        let mut out = Vec::new();
        (u32::MAX, vec![1_u64]).put(&mut out);
        let read = Stretch::<u64>::take(&mut Reader::new(&out));
        assert!(matches!(read, Err(Unreadable::Wrong(_))));
    }
}
