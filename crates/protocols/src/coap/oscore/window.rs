//! The replay window (RFC 8613, section 7.4): which numbers of a sender were received. Numbers
//! below the window count as received.

/// The numbers that were received, up to `size` below the newest.
#[derive(Clone, Debug)]
pub struct Window {
    /// One more than the newest number; 0 if there is none.
    end: u64,
    size: u64,
    /// One bit for each number of the window, at the number modulo the bits.
    bits: Vec<u64>,
}

impl Window {
    /// A window of this many numbers, at least 1.
    pub fn new(size: u32) -> Window {
        let size = u64::from(size.max(1));
        Window { end: 0, size, bits: vec![0; size.div_ceil(64) as usize] }
    }

    /// True if nothing was received.
    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// True if the number was not received, and is not too old to know.
    pub fn is_new(&self, number: u64) -> bool {
        let is_ahead = number >= self.end;
        let is_within = number + self.size >= self.end;
        is_ahead || is_within && !self.has(number)
    }

    /// A message with a new number was verified.
    pub fn note(&mut self, number: u64) {
        let places = 64 * self.bits.len() as u64;
        if number >= self.end {
            let passed = (number - self.end).min(places);
            (number - passed..number).for_each(|skipped| self.set(skipped, false));
            self.end = number + 1;
        }
        self.set(number, true);
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = self.place(number);
        self.bits[word] >> bit & 1 == 1
    }

    fn set(&mut self, number: u64, is_known: bool) {
        let (word, bit) = self.place(number);
        self.bits[word] = self.bits[word] & !(1 << bit) | u64::from(is_known) << bit;
    }

    fn place(&self, number: u64) -> (usize, u64) {
        let place = number % (64 * self.bits.len() as u64);
        ((place / 64) as usize, place % 64)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set of all numbers ever received.
        #[test]
        fn a_number_is_taken_once_and_not_when_it_is_too_old(
            size in 1u32..100,
            steps in proptest::collection::vec((0u64..400, 0u64..3), 1..200),
        ) {
            let (mut window, mut known, mut newest) = (Window::new(size), HashSet::new(), None);
            for (step, base) in steps {
                let number = step + base * 1_000_000;
                let is_old = newest.is_some_and(|newest| number + u64::from(size) <= newest);
                let is_new = !is_old && !known.contains(&number);
                prop_assert_eq!(window.is_new(number), is_new, "{} of {:?}", number, newest);
                if is_new {
                    window.note(number);
                    known.insert(number);
                    newest = newest.max(Some(number));
                }
            }
        }
    }

    /// The default of section 3.2.2 is 32: the newest number and the 31 before it.
    #[test]
    fn thirty_two_numbers_are_remembered() {
        let mut window = Window::new(32);
        window.note(100);
        assert!(!window.is_new(100) && window.is_new(69) && !window.is_new(68));
        window.note(69);
        assert!(!window.is_new(69) && window.is_new(101) && window.is_new(u64::from(u32::MAX)));
    }
}
