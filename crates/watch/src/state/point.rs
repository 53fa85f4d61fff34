//! A point of a trial's course: an interval of the journal or a second of the live file.

use weigh_model::event::Interval;
use weigh_model::live::{QUANTILES, Second};

/// Rates and times of a trial over a short time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// End, seconds since the trial's clock was at 0.
    pub at_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// True before the measured window.
    pub is_warmup: bool,
    /// True while answers are awaited and nothing is sent.
    pub is_draining: bool,
    /// Messages handed to the transport, per second.
    pub sent_per_s: f64,
    /// Messages confirmed, per second.
    pub acknowledged_per_s: f64,
    /// Pairs of message and subscriber delivered, per second.
    pub delivered_per_s: f64,
    /// Error answers.
    pub errors: u64,
    /// Open connections.
    pub connections: u64,
    /// Quantiles of the response time, nanoseconds, in the order of [`QUANTILES`]. An interval of
    /// the journal has only the median and the 99 % quantile.
    pub response_ns: [Option<u64>; QUANTILES.len()],
    /// The 99 % quantile of the send lag, nanoseconds.
    pub send_lag_ns_p99: Option<u64>,
    /// Load of the target, percent of its cores.
    pub target_cpu_percent: Option<f64>,
    /// Memory of the target, bytes.
    pub target_memory_bytes: Option<u64>,
    /// Load of the generator's busiest thread, percent of a core.
    pub generator_cpu_percent: Option<f64>,
}

impl Point {
    /// The point of an interval.
    pub fn of(interval: &Interval) -> Point {
        let length_s = interval.length_ns.unwrap_or(0) as f64 / 1e9;
        let per_s = |count: u64| if length_s > 0.0 { count as f64 / length_s } else { 0.0 };
        let mut response_ns = [None; QUANTILES.len()];
        response_ns[P50] = interval.response_time_ns_p50;
        response_ns[P99] = interval.response_time_ns_p99;
        Point {
            at_s: interval.at_ns as f64 / 1e9,
            length_s,
            is_warmup: interval.warmup,
            is_draining: interval.draining,
            sent_per_s: per_s(interval.sent),
            acknowledged_per_s: per_s(interval.acknowledged),
            delivered_per_s: per_s(interval.delivered),
            errors: interval.errors,
            connections: interval.connections,
            response_ns,
            send_lag_ns_p99: interval.send_lag_ns_p99,
            target_cpu_percent: interval.target_cpu_percent,
            target_memory_bytes: interval.target_memory_bytes,
            generator_cpu_percent: interval.generator_cpu_percent,
        }
    }

    /// The point of a second of the live file; `None` if it has no counts.
    pub fn of_second(second: &Second) -> Option<Point> {
        let point = Point::of(second.counts.as_ref()?);
        let quantiles = second.quantiles.as_ref();
        let response_ns = quantiles.map_or(point.response_ns, |own| own.response_ns);
        Some(Point { response_ns, ..point })
    }

    /// Messages that arrived, per second: deliveries, or confirmations if nothing is delivered.
    pub fn arrived_per_s(&self) -> f64 {
        if self.delivered_per_s > 0.0 { self.delivered_per_s } else { self.acknowledged_per_s }
    }
}

/// Place of the median in [`QUANTILES`].
const P50: usize = 0;

/// Place of the 99 % quantile in [`QUANTILES`].
pub const P99: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_quantiles_are_those_of_their_names() {
        assert_eq!((QUANTILES[P50].1, QUANTILES[P99].1), ("p50", "p99"));
    }

    #[test]
    fn rates_are_counts_over_the_length() {
        let interval = Interval {
            sent: 50,
            delivered: 20,
            length_ns: Some(500_000_000),
            ..Interval::default()
        };
        let point = Point::of(&interval);
        assert_eq!((point.sent_per_s, point.arrived_per_s()), (100.0, 40.0));
        assert_eq!(Point::of(&Interval::default()).sent_per_s, 0.0, "a length may be absent");
    }
}
