//! What a shard records while it runs: every time of every message, and the counts of each
//! interval. Nothing is sampled but the send lag of the series.

use weigh_model::Nanos;
use weigh_model::event::Interval;
use weigh_stats::histogram::Histogram;

use crate::interval_times::IntervalTimes;

/// The recorded times and counts of one shard, or of all shards merged.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// Due to confirmed.
    pub response: Histogram,
    /// Sent to confirmed.
    pub service: Histogram,
    /// Due to delivered.
    pub delivery: Histogram,
    /// Sent to delivered.
    pub one_way: Histogram,
    /// Connect started to session ready.
    pub connect: Histogram,
    /// Due to sent: the generator's own error, or the wait for a free slot.
    pub send_lag: Histogram,
    /// Due to sent of those messages that a slot was free for: the generator's own error alone.
    pub own_lag: Histogram,
    /// Due to error answer.
    pub error: Histogram,
    /// When the first measured message was handed to a transport.
    pub first_sent: Option<Nanos>,
    /// When the last measured message was handed to a transport.
    pub last_sent: Option<Nanos>,
    /// Bytes of the bodies of all measured messages.
    pub body_bytes: u64,
    /// When the last measured message was completed: confirmed or delivered.
    pub last_done: Option<Nanos>,
    /// First and last due time of the measured window.
    pub due_span: Option<(Nanos, Nanos)>,
    interval: Interval,
    interval_times: IntervalTimes,
    /// The latest time that a message was stamped with. Where nobody answers, messages that leave
    /// in one write share one, and the first of them, which waited longest, stands for all in the
    /// series: at 150 ns a message one more record each would be felt.
    last_stamp: Nanos,
    /// True where nothing confirms: then an interval's response time is its delivery time.
    responds_by_delivery: bool,
}

impl Recorder {
    /// An empty record; `confirms` tells whether the protocol confirms messages.
    pub fn new(confirms: bool) -> Recorder {
        Recorder { responds_by_delivery: !confirms, ..Recorder::default() }
    }

    /// A message due at `due` was handed to the transport at `sent`; `was_held_up` if the
    /// window was full when it became due.
    pub fn sent(&mut self, due: Nanos, sent: Nanos, warmup: bool, was_held_up: bool) {
        self.interval.sent += 1;
        if sent != self.last_stamp {
            self.last_stamp = sent;
            self.interval_times.sent((sent - due).0);
        }
        if !warmup {
            self.send_lag.record((sent - due).0);
            if !was_held_up {
                self.own_lag.record((sent - due).0);
            }
            self.first_sent.get_or_insert(sent);
            self.last_sent = Some(sent);
            self.due_span = match self.due_span {
                None => Some((due, due)),
                Some((first, last)) => Some((first.min(due), last.max(due))),
            };
        }
    }

    /// A message was confirmed at `now`.
    pub fn confirmed(&mut self, due: Nanos, sent: Nanos, now: Nanos, warmup: bool) {
        self.interval.acknowledged += 1;
        self.interval_times.responded((now - due).0);
        if !warmup {
            self.response.record((now - due).0);
            self.service.record((now - sent).0);
            self.done(now);
        }
    }

    /// A message was answered with an error at `now`.
    pub fn refused(&mut self, due: Nanos, now: Nanos, warmup: bool) {
        self.interval.errors += 1;
        if !warmup {
            self.error.record((now - due).0);
            self.done(now);
        }
    }

    /// A message arrived at a consumer for the first time.
    pub fn delivered(&mut self, due: Nanos, sent: Nanos, now: Nanos, warmup: bool) {
        self.interval.delivered += 1;
        if self.responds_by_delivery {
            self.interval_times.responded((now - due).0);
        }
        if !warmup {
            self.delivery.record((now - due).0);
            self.one_way.record((now - sent).0);
            self.done(now);
        }
    }

    /// A measured message was completed at `now`.
    pub fn done(&mut self, now: Nanos) {
        self.last_done = Some(self.last_done.map_or(now, |last| last.max(now)));
    }

    /// Ends the interval and starts the next.
    pub fn take_interval(
        &mut self,
        now: Nanos,
        warmup: bool,
        connections: u64,
    ) -> (Interval, IntervalTimes) {
        let mut interval = std::mem::take(&mut self.interval);
        interval.at_ns = now.0;
        interval.warmup = warmup;
        interval.connections = connections;
        (interval, self.interval_times.take())
    }

    /// True if nothing was counted since the last interval.
    pub fn is_interval_empty(&self) -> bool {
        self.interval == Interval::default()
    }

    /// Adds another shard's record.
    pub fn merge(&mut self, other: &Recorder) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.delivery.merge(&other.delivery);
        self.one_way.merge(&other.one_way);
        self.connect.merge(&other.connect);
        self.send_lag.merge(&other.send_lag);
        self.own_lag.merge(&other.own_lag);
        self.error.merge(&other.error);
        self.first_sent = earliest(self.first_sent, other.first_sent);
        self.last_sent = self.last_sent.max(other.last_sent);
        self.body_bytes += other.body_bytes;
        self.last_done = self.last_done.max(other.last_done);
        self.due_span = match (self.due_span, other.due_span) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (span, None) | (None, span) => span,
        };
    }

    /// The recorded times by metric name, empty ones left out.
    pub fn times(&self) -> Vec<(&'static str, &Histogram)> {
        let all = [
            ("response_time_ns", &self.response),
            ("service_time_ns", &self.service),
            ("delivery_time_ns", &self.delivery),
            ("one_way_time_ns", &self.one_way),
            ("connect_time_ns", &self.connect),
            ("send_lag_ns", &self.send_lag),
            ("error_time_ns", &self.error),
        ];
        all.into_iter().filter(|(_, histogram)| histogram.count() > 0).collect()
    }
}

fn earliest(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (some, None) | (None, some) => some,
    }
}
