//! The newest readings of a store in memory, by number.

use std::collections::VecDeque;

use bytes::Bytes;

/// Keeps the newest readings, up to a number, and counts all of them.
pub struct Shelf {
    kept: VecDeque<Bytes>,
    kept_max: usize,
    count: u64,
}

impl Shelf {
    /// An empty one for `kept_max` readings.
    pub fn new(kept_max: usize) -> Shelf {
        Shelf { kept: VecDeque::new(), kept_max, count: 0 }
    }

    /// Takes a reading in; of a large one only an empty place is kept. What is kept is a copy: a
    /// reading is often part of the buffer that a connection was read into, which is many times
    /// its size and would stay with it.
    pub fn put(&mut self, reading: &[u8]) {
        self.count += 1;
        if self.kept_max == 0 {
            return;
        }
        if self.kept.len() == self.kept_max {
            self.kept.pop_front();
        }
        let is_small = reading.len() <= KEPT_BYTES_MAX;
        self.kept.push_back(if is_small { Bytes::copy_from_slice(reading) } else { Bytes::new() });
    }

    /// At most `limit` readings after the first `since`, of those that are kept and wanted, and
    /// the number up to which was looked.
    pub fn read(
        &self,
        since: u64,
        limit: usize,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> (Vec<Bytes>, u64) {
        let first = self.count - self.kept.len() as u64;
        let mut next = since.clamp(first, self.count);
        let mut readings = Vec::new();
        for reading in self.kept.iter().skip((next - first) as usize) {
            if readings.len() == limit {
                break;
            }
            next += 1;
            if is_wanted(reading) {
                readings.push(reading.clone());
            }
        }
        (readings, next)
    }

    /// Readings that were taken in.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Largest reading that is kept.
const KEPT_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_goes_through_what_is_kept() {
        let mut shelf = Shelf::new(3);
        let all = |_: &[u8]| true;
        assert_eq!(shelf.read(0, 10, all), (vec![], 0));
        for number in 0..5_u8 {
            shelf.put(&[number]);
        }
        let of = |numbers: &[u8]| -> Vec<Bytes> {
            numbers.iter().map(|number| Bytes::copy_from_slice(&[*number])).collect()
        };
        assert_eq!(shelf.read(0, 2, all), (of(&[2, 3]), 4));
        assert_eq!(shelf.read(4, 2, all), (of(&[4]), 5));
        assert_eq!(shelf.read(5, 2, all), (vec![], 5));
        assert_eq!(shelf.read(u64::MAX, 2, all), (vec![], 5));
        let odd = |body: &[u8]| body[0] % 2 == 1;
        assert_eq!(shelf.read(0, 1, odd), (of(&[3]), 4));
        assert_eq!(shelf.read(0, 9, odd), (of(&[3]), 5));
        shelf.put(&[0; KEPT_BYTES_MAX + 1]);
        assert_eq!((shelf.read(5, 2, all), shelf.count()), ((vec![Bytes::new()], 6), 6));
    }

    #[test]
    fn a_shelf_without_room_counts_all_the_same() {
        let mut shelf = Shelf::new(0);
        shelf.put(b"x");
        assert_eq!((shelf.count(), shelf.read(0, 9, |_| true)), (1, (vec![], 1)));
    }
}
