//! Times from the due time without the generator's own lateness. For a message that waited for
//! nothing else that is its time from the send time, which is recorded anyway: only messages that
//! waited for the window, a connection or a late request cost a record here.

use weigh_model::portable_fields;
use weigh_stats::histogram::Histogram;

use crate::times::Times;

/// The messages whose time without the generator's lateness is not their time from the send time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LagFree {
    /// Their times from the send time.
    from_sent: Times,
    /// Their times without the generator's lateness.
    without_lag: Times,
}

impl LagFree {
    /// Takes the memory before the first message.
    pub fn prepare(&mut self) {
        self.from_sent.prepare();
        self.without_lag.prepare();
    }

    /// Counts a message by both times, nanoseconds.
    #[inline]
    pub fn record(&mut self, from_sent_ns: u64, without_lag_ns: u64) {
        if from_sent_ns != without_lag_ns {
            self.from_sent.record(from_sent_ns);
            self.without_lag.record(without_lag_ns);
        }
    }

    /// Adds what another shard counted.
    pub fn merge(&mut self, other: &LagFree) {
        self.from_sent.merge(&other.from_sent);
        self.without_lag.merge(&other.without_lag);
    }

    /// The times of all messages without the generator's lateness, where `from_sent` are those of
    /// all from the send time.
    pub fn of_all(&self, from_sent: &Histogram) -> Histogram {
        let mut all = from_sent.clone();
        all.subtract(&self.from_sent);
        all.merge(&self.without_lag);
        all
    }
}

portable_fields!(LagFree { from_sent, without_lag });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_that_waited_for_something_else_are_counted_apart() {
        let (mut lag_free, mut from_sent) = (LagFree::default(), Times::default());
        for (sent, without) in [(100, 100), (200, 200), (300, 5_000), (300, 300)] {
            from_sent.record(sent);
            lag_free.record(sent, without);
        }
        let all: Vec<(u64, u64)> = lag_free.of_all(&from_sent).recorded().collect();
        assert_eq!(all, [(100, 1), (200, 1), (300, 1), (5_003, 1)]);
        assert_eq!(lag_free.from_sent.count(), 1);

        let mut both = LagFree::default();
        both.merge(&lag_free);
        both.merge(&lag_free);
        from_sent.merge(&from_sent.clone());
        assert_eq!(both.of_all(&from_sent).count(), 8);
    }
}
