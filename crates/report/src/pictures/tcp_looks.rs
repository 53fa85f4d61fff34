//! What TCP knew of the path over time, combined from the rows of its connections.

use std::collections::BTreeMap;

use weigh_model::event::{Event, TcpSample};

/// All connections of a trial at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Look {
    at_ns: u64,
    connections: u64,
    round_trip_us_sum: f64,
    window_segments_sum: f64,
    retransmitted_segments: u64,
}

/// The samples of every trial, in the order of time.
pub(super) fn by_trial(events: &[Event]) -> BTreeMap<&str, Vec<Look>> {
    let mut all: BTreeMap<&str, Vec<Look>> = BTreeMap::new();
    for event in events {
        let Event::TcpSample(sample) = event else { continue };
        let looks = all.entry(sample.trial.as_str()).or_default();
        match looks.last_mut() {
            // Rows of one sample are as far apart as reading the table of sockets takes.
            Some(last) if sample.at_ns.abs_diff(last.at_ns) < ONE_LOOK_NS => last.add(sample),
            last => {
                // A trial that was repeated after a crash starts over.
                if last.is_some_and(|last| sample.at_ns < last.at_ns) {
                    looks.clear();
                }
                let mut look = Look { at_ns: sample.at_ns, ..Look::default() };
                look.add(sample);
                looks.push(look);
            }
        }
    }
    all
}

/// The last sample before this moment: its values hold until the next one.
pub(super) fn at(looks: &[Look], at_ns: u64) -> Option<&Look> {
    looks.iter().rev().find(|look| look.at_ns <= at_ns)
}

impl Look {
    fn add(&mut self, row: &TcpSample) {
        let count = row.connections as f64;
        self.connections += row.connections;
        self.round_trip_us_sum += row.round_trip_us * count;
        self.window_segments_sum += row.congestion_window_segments * count;
        self.retransmitted_segments += row.retransmitted_segments;
    }

    /// Smoothed round-trip time, the mean over all connections, nanoseconds.
    pub(super) fn round_trip_ns(&self) -> f64 {
        1e3 * self.round_trip_us_sum / self.connections.max(1) as f64
    }

    /// Congestion window in segments, the mean over all connections.
    pub(super) fn window_segments(&self) -> f64 {
        self.window_segments_sum / self.connections.max(1) as f64
    }

    /// Segments retransmitted so far, on all connections that are open.
    pub(super) fn retransmitted_segments(&self) -> f64 {
        self.retransmitted_segments as f64
    }
}

/// Samples are half a second apart.
const ONE_LOOK_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_moment_are_one_look() {
        let row = |at_ms: u64, connections, round_trip_us| {
            Event::TcpSample(TcpSample {
                trial: "t".into(),
                at_ns: at_ms * 1_000_000,
                connections,
                round_trip_us,
                congestion_window_segments: 10.0,
                retransmitted_segments: 3,
                ..TcpSample::default()
            })
        };
        let events = [row(0, 1, 100.0), row(1, 3, 200.0), row(500, 1, 50.0)];
        let all = by_trial(&events);
        let looks = &all["t"];
        assert_eq!(looks.len(), 2);
        assert_eq!(looks[0].round_trip_ns(), 175_000.0);
        assert_eq!((looks[0].window_segments(), looks[0].retransmitted_segments()), (10.0, 6.0));
        assert_eq!(at(looks, 499_000_000), Some(&looks[0]));
        assert_eq!(at(looks, 600_000_000), Some(&looks[1]));
    }
}
