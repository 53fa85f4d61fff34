//! Records of a shard while it runs: every time of every message, and the counts of each interval.
//! Nothing is sampled except the send lag of the series.

use weigh_model::Nanos;
use weigh_model::event::Interval;
use weigh_model::portable_fields;
use weigh_stats::histogram::Histogram;

use crate::interval_times::IntervalTimes;
use crate::lag_free::LagFree;
use crate::polls::Polls;
use crate::send_lags::SendLags;
use crate::span::Span;
use crate::times::Times;
use crate::window::WindowCount;

/// The recorded times and counts of one shard, or of all shards merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorder {
    /// Due to confirmed.
    pub response: Times,
    /// Sent to confirmed.
    pub service: Times,
    /// Due to delivered.
    pub delivery: Times,
    /// Sent to delivered.
    pub one_way: Times,
    /// Due to the first bytes of an object at a consumer.
    pub first_byte: Times,
    /// Connect started to session ready.
    pub connect: Times,
    /// Connect started to closed by us, where a connection lives for one message.
    pub session: Times,
    /// Due to sent.
    pub lags: SendLags,
    /// Response times without the generator's own lateness.
    pub response_lag: LagFree,
    /// Delivery times without the generator's own lateness.
    pub delivery_lag: LagFree,
    /// Due to error answer.
    pub error: Times,
    /// Due of the first message of an exchange of several to the confirmation of the last.
    pub batch: Times,
    /// The requests of consumers that ask.
    pub polls: Polls,
    /// Due to the first arrival of the slowest late message, nanoseconds; 0 where none was late.
    pub late_ns_max: u64,
    /// From the first measured message to the last.
    pub span: Span,
    /// Writes to sockets that measured messages left in; of those that joined others in one, only
    /// the first counts.
    pub writes: u64,
    /// Bytes of the bodies of all measured messages.
    pub body_bytes: u64,
    /// Counts within the measured window, and after it.
    pub window: WindowCount,
    series: Series,
    /// True where nothing confirms: then an interval's response time is its delivery time.
    responds_by_delivery: bool,
}

/// Counts since the last interval ended.
#[derive(Clone, Debug, Default, PartialEq)]
struct Series {
    interval: Interval,
    times: IntervalTimes,
    /// The latest time stamp of a message. Without answers, messages that leave in one write share
    /// one time stamp, and the series records the first of them, which waited longest: one more
    /// record for each, at 150 ns a message, would be noticeable.
    last_stamp: Nanos,
}

/// Send time of a message, and the causes of a delay.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Due time.
    pub due: Nanos,
    /// Time at which it was handed to the transport.
    pub sent: Nanos,
    /// Part of the delay that was the generator's own lateness.
    pub own_lag: Nanos,
}

impl Recorder {
    /// Creates an empty record; `confirms` is true if the protocol confirms messages.
    pub fn new(confirms: bool) -> Recorder {
        Recorder { responds_by_delivery: !confirms, ..Recorder::default() }
    }

    /// Takes the memory for the times of messages before the first of them.
    pub fn prepare(&mut self) {
        let times = [
            &mut self.response,
            &mut self.service,
            &mut self.delivery,
            &mut self.one_way,
            &mut self.first_byte,
            &mut self.session,
            &mut self.lags.all,
            &mut self.lags.own,
            &mut self.error,
        ];
        times.into_iter().for_each(Times::prepare);
        self.response_lag.prepare();
        self.delivery_lag.prepare();
    }

    /// Takes the memory for the times of consumers that ask.
    pub fn prepare_for_polls(&mut self) {
        self.polls.prepare();
    }

    /// A message due at `due` was handed to the transport at `sent`; `was_held_up` if the
    /// window was full when it became due.
    pub fn sent(&mut self, due: Nanos, sent: Nanos, warmup: bool, was_held_up: bool) {
        self.series.interval.sent += 1;
        self.window.note_sent(sent, warmup);
        if UNRECORDED {
            return self.widen(due, sent, warmup);
        }
        if sent != self.series.last_stamp {
            self.series.last_stamp = sent;
            self.series.times.sent((sent - due).0);
        }
        if !warmup {
            self.lags.record((sent - due).0, was_held_up);
        }
        self.widen(due, sent, warmup);
    }

    /// Ends the record: nothing is sent any more.
    pub fn settle(&mut self) {
        self.lags.settle();
    }

    /// Widens the window that rates are counted over.
    fn widen(&mut self, due: Nanos, sent: Nanos, warmup: bool) {
        if !warmup {
            self.span.sent(due, sent);
        }
    }

    /// A message was confirmed at `now`.
    pub fn confirmed(&mut self, sending: Sending, now: Nanos, warmup: bool) {
        let Sending { due, sent, own_lag } = sending;
        self.series.interval.acknowledged += 1;
        self.window.note_confirmed(due, sent, now, warmup);
        if UNRECORDED {
            return self.done_unless(warmup, now);
        }
        self.series.times.responded((now - due).0);
        if !warmup {
            self.response.record((now - due).0);
            self.service.record((now - sent).0);
            self.response_lag.record((now - sent).0, (now - due).0.saturating_sub(own_lag.0));
            self.done(now);
        }
    }

    /// A message was answered with an error at `now`.
    pub fn refused(&mut self, due: Nanos, sent: Nanos, now: Nanos, warmup: bool) {
        self.series.interval.errors += 1;
        self.window.note_refused(sent, now, warmup);
        if !warmup {
            self.error.record((now - due).0);
            self.done(now);
        }
    }

    /// A message arrived at a consumer for the first time.
    pub fn delivered(&mut self, sending: Sending, now: Nanos, warmup: bool) {
        let Sending { due, sent, own_lag } = sending;
        self.series.interval.delivered += 1;
        self.window.note_delivered(due, sent, now, warmup);
        if UNRECORDED {
            return self.done_unless(warmup, now);
        }
        if self.responds_by_delivery {
            self.series.times.responded((now - due).0);
        }
        if !warmup {
            self.delivery.record((now - due).0);
            self.one_way.record((now - sent).0);
            self.delivery_lag.record((now - sent).0, (now - due).0.saturating_sub(own_lag.0));
            self.done(now);
        }
    }

    /// Records that a measured message without a mark, whose times are unknown, arrived at a
    /// consumer for the first time.
    pub fn delivered_unmarked(&mut self, now: Nanos, warmup: bool) {
        self.window.note_delivered(Nanos(0), Nanos(0), now, warmup);
        self.done_unless(warmup, now);
    }

    /// A measured message arrived for the first time `after` its due time, later than Tmax.
    pub fn late(&mut self, after: Nanos) {
        self.late_ns_max = self.late_ns_max.max(after.0);
    }

    /// A measured message was completed at `now`.
    pub fn done(&mut self, now: Nanos) {
        self.span.last_done = Some(self.span.last_done.map_or(now, |last| last.max(now)));
    }

    fn done_unless(&mut self, warmup: bool, now: Nanos) {
        if !warmup {
            self.done(now);
        }
    }

    /// Ends the interval and starts the next.
    pub fn take_interval(
        &mut self,
        now: Nanos,
        warmup: bool,
        connections: u64,
    ) -> (Interval, IntervalTimes) {
        let mut interval = std::mem::take(&mut self.series.interval);
        interval.at_ns = now.0;
        interval.warmup = warmup;
        interval.connections = connections;
        (interval, self.series.times.take())
    }

    /// True if nothing was counted since the last interval.
    pub fn is_interval_empty(&self) -> bool {
        self.series.interval == Interval::default()
    }

    /// Adds another shard's record; both are settled.
    pub fn merge(&mut self, other: &Recorder) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.delivery.merge(&other.delivery);
        self.one_way.merge(&other.one_way);
        self.first_byte.merge(&other.first_byte);
        self.connect.merge(&other.connect);
        self.session.merge(&other.session);
        self.lags.merge(&other.lags);
        self.response_lag.merge(&other.response_lag);
        self.delivery_lag.merge(&other.delivery_lag);
        self.error.merge(&other.error);
        self.batch.merge(&other.batch);
        self.polls.merge(&other.polls);
        self.late_ns_max = self.late_ns_max.max(other.late_ns_max);
        self.span.merge(&other.span);
        self.window.merge(&other.window);
        self.writes += other.writes;
        self.body_bytes += other.body_bytes;
    }

    /// The recorded times by metric name, empty ones left out.
    pub fn times(&self) -> Vec<(&'static str, &Histogram)> {
        let all: [&Histogram; Recorder::TIMES.len()] = [
            &self.response,
            &self.service,
            &self.delivery,
            &self.one_way,
            &self.first_byte,
            &self.connect,
            &self.session,
            &self.lags.all,
            &self.error,
            &self.batch,
            &self.polls.wait,
            &self.polls.round_trip,
            &self.polls.handling,
            &self.polls.lag,
        ];
        let named = Recorder::TIMES.into_iter().zip(all);
        named.filter(|(_, histogram)| histogram.count() > 0).collect()
    }

    /// Names of all times, in the order of [`Recorder::times`].
    pub const TIMES: [&'static str; 14] = [
        "response_time_ns",
        "service_time_ns",
        "delivery_time_ns",
        "one_way_time_ns",
        "first_byte_time_ns",
        "connect_time_ns",
        "session_time_ns",
        "send_lag_ns",
        "error_time_ns",
        "batch_time_ns",
        "poll_wait_time_ns",
        "poll_round_trip_time_ns",
        "handling_time_ns",
        "poll_lag_ns",
    ];
}

// The last interval was reported when a shard hands its record over: the series is left out.
portable_fields!(Recorder {
    response,
    service,
    delivery,
    one_way,
    first_byte,
    connect,
    session,
    lags,
    response_lag,
    delivery_lag,
    error,
    batch,
    polls,
    late_ns_max,
    span,
    writes,
    body_bytes,
    window,
    responds_by_delivery;
    series
});

/// True in a binary that is only there to tell what recording costs.
const UNRECORDED: bool = cfg!(feature = "unrecorded");
