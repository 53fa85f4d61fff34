//! Reports of shards on their way to the coordinator. They are kept until it has said that they
//! arrived, so that a bus that was cut loses none.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use weigh_engine::job::ShardInterval;

/// Reports that have not been seen to arrive.
#[derive(Default)]
pub struct Outbox {
    waiting: VecDeque<Waiting>,
    /// Number of the last report.
    last: u64,
    /// Number of the last one that was sent.
    sent: u64,
    /// Number of the last one that has arrived, and when that was heard.
    arrived: u64,
    heard: Option<Instant>,
}

/// A report.
pub struct Waiting {
    /// Its number, from 1.
    pub number: u64,
    /// The shard.
    pub shard: u32,
    /// The interval; `None` if there is none any more.
    pub interval: Option<Box<ShardInterval>>,
}

impl Outbox {
    /// Adds a report.
    pub fn add(&mut self, shard: u32, interval: Option<Box<ShardInterval>>) {
        self.last += 1;
        self.waiting.push_back(Waiting { number: self.last, shard, interval });
    }

    /// Number of the last report, 0 without one.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the reports to send now, after all up to `arrived` have arrived: those that were not
    /// sent, and all again if none has arrived for a while.
    pub fn next_to_send(&mut self, arrived: u64, now: Instant) -> Vec<&Waiting> {
        if arrived > self.arrived || self.sent <= self.arrived {
            self.arrived = self.arrived.max(arrived);
            self.heard = Some(now);
        }
        while self.waiting.front().is_some_and(|first| first.number <= self.arrived) {
            self.waiting.pop_front();
        }
        let silent = self.heard.map(|heard| now.saturating_duration_since(heard));
        if silent.is_some_and(|silent| silent >= PATIENCE) {
            self.sent = self.arrived;
            self.heard = Some(now);
        }
        let sent = self.sent;
        let unsent = self.waiting.iter().filter(|waiting| waiting.number > sent);
        let unsent: Vec<&Waiting> = unsent.take(AT_ONCE).collect();
        if let Some(last) = unsent.last() {
            self.sent = last.number;
        }
        unsent
    }
}

/// Time without news after which reports are sent again.
const PATIENCE: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(sent: Vec<&Waiting>) -> Vec<u64> {
        sent.iter().map(|waiting| waiting.number).collect()
    }

    #[test]
    fn reports_are_sent_until_they_have_arrived() {
        let (mut outbox, start) = (Outbox::default(), Instant::now());
        let at = |ms: u64| start + Duration::from_millis(ms);
        (0..3).for_each(|shard| outbox.add(shard, None));
        assert_eq!(numbers(outbox.next_to_send(0, at(0))), [1, 2, 3]);
        assert_eq!(numbers(outbox.next_to_send(0, at(900))), [0; 0]);
        outbox.add(3, None);
        assert_eq!(numbers(outbox.next_to_send(1, at(950))), [4]);
        assert_eq!(numbers(outbox.next_to_send(1, at(1_900))), [0; 0], "1 has arrived since");
        assert_eq!(numbers(outbox.next_to_send(1, at(1_950))), [2, 3, 4]);
        assert_eq!(numbers(outbox.next_to_send(4, at(2_000))), [0; 0]);
        assert_eq!(numbers(outbox.next_to_send(4, at(9_000))), [0; 0], "none is left");
        assert_eq!(outbox.last(), 4);
    }

    /// A quiet time before a report is no reason to send it twice.
    #[test]
    fn silence_begins_with_what_was_sent() {
        let (mut outbox, start) = (Outbox::default(), Instant::now());
        assert_eq!(numbers(outbox.next_to_send(0, start)), [0; 0]);
        outbox.add(0, None);
        assert_eq!(numbers(outbox.next_to_send(0, start + Duration::from_secs(60))), [1]);
        assert_eq!(numbers(outbox.next_to_send(0, start + Duration::from_millis(60_500))), [0; 0]);
    }
}
