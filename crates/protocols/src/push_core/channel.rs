//! One channel: how many subscribers it has on each shard, and its newest events.

use std::collections::VecDeque;
use std::sync::Arc;

/// A message as it leaves for subscribers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Number of its channel.
    pub(crate) channel: u32,
    /// Number in its channel, from 1.
    pub(crate) id: u64,
    /// Its bytes in the protocol.
    pub(crate) bytes: Vec<u8>,
}

/// A channel.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    /// Number of the newest event.
    pub(crate) last: u64,
    /// Subscribers by shard.
    pub(crate) subscribers: Vec<u32>,
    /// The newest events, oldest first.
    history: VecDeque<Arc<Event>>,
    held_bytes: usize,
}

impl Channel {
    /// Adds an event to the history, which keeps at most `events_max`.
    pub(crate) fn keep(&mut self, event: &Arc<Event>, events_max: usize) {
        if events_max == 0 {
            return;
        }
        self.held_bytes += event.bytes.len();
        self.history.push_back(Arc::clone(event));
        while self.history.len() > events_max || self.held_bytes > HELD_BYTES_MAX {
            let Some(oldest) = self.history.pop_front() else { return };
            self.held_bytes -= oldest.bytes.len();
        }
    }

    /// The kept events behind `after`, and the number of those that are no longer kept. A number
    /// that the channel never gave is of an earlier server: nothing follows it.
    pub(crate) fn since(&self, after: u64) -> (Vec<Arc<Event>>, u64) {
        if after >= self.last {
            return (Vec::new(), 0);
        }
        let events = self.history.iter().filter(|event| event.id > after);
        let events: Vec<Arc<Event>> = events.cloned().collect();
        let missed = (self.last - after).saturating_sub(events.len() as u64);
        (events, missed)
    }

    /// Counts a subscriber of a shard in or out.
    pub(crate) fn count(&mut self, shard: u16, is_in: bool) {
        let shard = usize::from(shard);
        if self.subscribers.len() <= shard {
            self.subscribers.resize(shard + 1, 0);
        }
        let own = &mut self.subscribers[shard];
        *own = if is_in { *own + 1 } else { own.saturating_sub(1) };
    }

    /// True if nothing is lost when it is forgotten.
    pub(crate) fn is_empty(&self) -> bool {
        self.history.is_empty() && self.subscribers.iter().all(|count| *count == 0)
    }
}

/// Memory of the history of one channel.
const HELD_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u64, bytes: usize) -> Arc<Event> {
        Arc::new(Event { channel: 0, id, bytes: vec![b'x'; bytes] })
    }

    #[test]
    fn the_newest_events_are_kept_and_missed_ones_counted() {
        let mut channel = Channel::default();
        for id in 1..=5 {
            channel.last = id;
            channel.keep(&event(id, 10), 3);
        }
        let since = |after| {
            let (events, missed) = channel.since(after);
            (events.iter().map(|event| event.id).collect::<Vec<_>>(), missed)
        };
        assert_eq!(since(0), (vec![3, 4, 5], 2));
        assert_eq!(since(2), (vec![3, 4, 5], 0));
        assert_eq!(since(4), (vec![5], 0));
        assert_eq!(since(5), (vec![], 0));
        assert_eq!(since(99), (vec![], 0), "of an earlier server");
    }

    #[test]
    fn the_history_has_a_limit_in_bytes_too() {
        let mut channel = Channel::default();
        for id in 1..=10 {
            channel.last = id;
            channel.keep(&event(id, 16 << 20), 1000);
        }
        assert_eq!((channel.history.len(), channel.since(0).1), (4, 6));
        assert!(!channel.is_empty());
    }

    #[test]
    fn subscribers_are_counted_by_shard() {
        let mut channel = Channel::default();
        channel.count(2, true);
        channel.count(2, true);
        assert_eq!(channel.subscribers, [0, 0, 2]);
        channel.count(2, false);
        assert!(!channel.is_empty());
        channel.count(2, false);
        channel.count(2, false);
        assert!(channel.is_empty());
    }
}
