//! Messages that a reference server received, by identity. A server receives marks of any trial and
//! any peer, so unlike the generator's tally its set of seen marks is sparse: it grows with the
//! messages received and not with the numbers they carry.

use std::collections::HashMap;

use weigh_model::mark::{Mark, Reading};
use weigh_model::server::ServerReport;

/// Counts connections and messages, and knows each message again.
#[derive(Clone, Debug, Default)]
pub struct ServerCounts {
    seen: HashMap<Stretch, [u64; WORDS]>,
    report: ServerReport,
}

/// Names [`STRETCH`] neighbouring messages of one producer in one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stretch {
    tag: u16,
    producer: u32,
    number: u64,
}

impl ServerCounts {
    /// Counts a connection.
    pub fn note_connection(&mut self) {
        self.report.connections += 1;
    }

    /// Counts a message by its body.
    pub fn note(&mut self, body: &[u8]) {
        self.note_reading(Mark::read_any(body));
    }

    /// Counts a message by the mark read from its body.
    pub fn note_reading(&mut self, reading: Reading) {
        self.report.received += 1;
        match reading {
            Reading::Whole(mark) | Reading::Corrupt(Some(mark)) if mark.warmup => {
                self.report.warmup += 1;
            }
            Reading::Whole(mark) if self.put(&mark) => self.report.unique += 1,
            Reading::Whole(_) => self.report.duplicates += 1,
            Reading::Corrupt(_) => self.report.corrupt += 1,
            Reading::Foreign => self.report.foreign += 1,
        }
    }

    /// Counts copies that were handed to consumers.
    pub fn note_forwarded(&mut self, copies: u64) {
        self.report.forwarded += copies;
    }

    /// Counts a message that was dropped.
    pub fn note_dropped(&mut self, cause: &str) {
        match self.report.dropped.get_mut(cause) {
            Some(count) => *count += 1,
            None => {
                self.report.dropped.insert(cause.to_owned(), 1);
            }
        }
    }

    /// Counts `count` dropped messages.
    pub fn note_dropped_many(&mut self, cause: &str, count: u64) {
        if count > 0 {
            *self.report.dropped.entry(cause.to_owned()).or_default() += count;
        }
    }

    /// Messages taken in so far, of whatever kind.
    pub fn received(&self) -> u64 {
        self.report.received
    }

    /// Everything counted so far.
    pub fn report(&self) -> ServerReport {
        self.report.clone()
    }

    /// Remembers a message; false if it was known.
    fn put(&mut self, mark: &Mark) -> bool {
        let stretch =
            Stretch { tag: mark.tag, producer: mark.producer, number: mark.sequence / STRETCH };
        let place = (mark.sequence % STRETCH) as usize;
        let word = &mut self.seen.entry(stretch).or_insert([0; WORDS])[place / 64];
        let bit = 1 << (place % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// Messages in one entry: 80 bytes for 512 of them, so 10 million cost about 3 MB.
const STRETCH: u64 = WORDS as u64 * 64;
const WORDS: usize = 8;

#[cfg(test)]
mod tests {
    use weigh_model::Nanos;
    use weigh_model::mark::MARK_BYTES;

    use super::*;

    fn body(tag: u16, warmup: bool, producer: u32, sequence: u64) -> Vec<u8> {
        let mut body = vec![b'x'; 10 + MARK_BYTES];
        let (due, lag) = (Nanos(0), Nanos(0));
        Mark { tag, warmup, producer, sequence, due, lag, own_lag: lag }.seal(&mut body, 10);
        body
    }

    #[test]
    fn every_message_is_counted_once_and_for_what_it_is() {
        let mut census = ServerCounts::default();
        for sequence in 0..2000 {
            census.note(&body(1, false, 0, sequence));
        }
        census.note(&body(1, false, 0, 1999));
        census.note(&body(2, false, 0, 1999));
        census.note(&body(1, true, 0, 5));
        census.note(b"hello");
        let mut damaged = body(1, false, 0, 2000);
        damaged[0] ^= 1;
        census.note(&damaged);
        let report = census.report();
        assert_eq!((report.received, report.unique, report.duplicates), (2005, 2001, 1));
        assert_eq!((report.corrupt, report.foreign, report.warmup), (1, 1, 1));
    }

    #[test]
    fn the_greatest_numbers_cost_no_more_than_small_ones() {
        let mut census = ServerCounts::default();
        census.note(&body(1, false, (1 << 24) - 1, (1 << 40) - 1));
        assert_eq!((census.report().unique, census.seen.len()), (1, 1));
    }
}
