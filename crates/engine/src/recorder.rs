//! What a shard records while it runs: every time of every message, and the counts of each
//! interval. Nothing is sampled but the send lag of the series.

use weigh_model::Nanos;
use weigh_model::event::Interval;
use weigh_stats::histogram::Histogram;

use crate::interval_times::IntervalTimes;
use crate::lag_free::LagFree;
use crate::times::Times;
use crate::window::WindowCount;

/// The recorded times and counts of one shard, or of all shards merged.
#[derive(Clone, Debug, Default)]
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
    /// Due to sent: the generator's own error, or the wait for a free slot. Complete once settled.
    pub send_lag: Times,
    /// Due to sent of those messages that a slot was free for: the generator's own error alone.
    pub own_lag: Times,
    /// What the responses would have been without the generator's own lateness.
    pub response_lag: LagFree,
    /// The same of the deliveries.
    pub delivery_lag: LagFree,
    /// Due to error answer.
    pub error: Times,
    /// Due of the first message of an exchange of several to the confirmation of the last.
    pub batch: Times,
    /// Due to the request that fetched the message; 0 where that was made before.
    pub poll_wait: Times,
    /// That request, or the due time if it is later, to the answer.
    pub poll_round_trip: Times,
    /// The answer to the message taken out of it and known.
    pub handling: Times,
    /// A request's due time to its sending.
    pub poll_lag: Times,
    /// Requests of consumers in the measured window.
    pub polls: u64,
    /// Those whose answers held no message.
    pub empty_polls: u64,
    /// Messages that answers to them held, of whatever kind.
    pub polled_messages: u64,
    /// Those that were due and not made, because the last one was not answered.
    pub polls_skipped: u64,
    /// Those that were answered with an error.
    pub polls_refused: u64,
    /// Due to the first arrival of the slowest late message, nanoseconds; 0 where none was late.
    pub late_ns_max: u64,
    /// When the first measured message was handed to a transport.
    pub first_sent: Option<Nanos>,
    /// When the last measured message was handed to a transport.
    pub last_sent: Option<Nanos>,
    /// Writes to sockets that measured messages left in; of those that joined others in one, only
    /// the first counts.
    pub writes: u64,
    /// Bytes of the bodies of all measured messages.
    pub body_bytes: u64,
    /// When the last measured message was completed: confirmed or delivered.
    pub last_done: Option<Nanos>,
    /// First and last due time of the measured window.
    pub due_span: Option<(Nanos, Nanos)>,
    /// What happened within the measured window, and after it.
    pub window: WindowCount,
    interval: Interval,
    interval_times: IntervalTimes,
    /// Send lags that were equal one after another and are not in their histogram yet.
    lag_run: LagRun,
    /// The latest time that a message was stamped with. Where nobody answers, messages that leave
    /// in one write share one, and the first of them, which waited longest, stands for all in the
    /// series: at 150 ns a message one more record each would be felt.
    last_stamp: Nanos,
    is_settled: bool,
    /// True where nothing confirms: then an interval's response time is its delivery time.
    responds_by_delivery: bool,
}

/// When a message left, and why not before.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// When it was due.
    pub due: Nanos,
    /// When it was handed to the transport.
    pub sent: Nanos,
    /// How much of the time that it took too long was the generator's own lateness.
    pub own_lag: Nanos,
}

impl Recorder {
    /// An empty record; `confirms` tells whether the protocol confirms messages.
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
            &mut self.send_lag,
            &mut self.own_lag,
            &mut self.error,
        ];
        times.into_iter().for_each(Times::prepare);
        self.response_lag.prepare();
        self.delivery_lag.prepare();
    }

    /// Takes the memory for the times of consumers that ask.
    pub fn prepare_for_polls(&mut self) {
        let times = [
            &mut self.poll_wait,
            &mut self.poll_round_trip,
            &mut self.handling,
            &mut self.poll_lag,
        ];
        times.into_iter().for_each(Times::prepare);
    }

    /// A message due at `due` was handed to the transport at `sent`; `was_held_up` if the
    /// window was full when it became due.
    pub fn sent(&mut self, due: Nanos, sent: Nanos, warmup: bool, was_held_up: bool) {
        self.interval.sent += 1;
        self.window.note_sent(sent, warmup);
        if UNRECORDED {
            return self.span(due, sent, warmup);
        }
        if sent != self.last_stamp {
            self.last_stamp = sent;
            self.interval_times.sent((sent - due).0);
        }
        if !warmup {
            let lag = LagRun { lag_ns: (sent - due).0, was_held_up, count: 1 };
            if lag.is_like(&self.lag_run) {
                self.lag_run.count += 1;
            } else {
                self.end_lag_run(lag);
            }
        }
        self.span(due, sent, warmup);
    }

    /// Puts the lags that were equal into their histogram and begins with another one.
    fn end_lag_run(&mut self, next: LagRun) {
        let LagRun { lag_ns, was_held_up, count } = std::mem::replace(&mut self.lag_run, next);
        if count > 0 {
            // Those of the others are added to these when all is over: one record for each.
            let lags = if was_held_up { &mut self.send_lag } else { &mut self.own_lag };
            lags.record_n(lag_ns, count);
        }
    }

    /// Ends the record: nothing is sent any more.
    pub fn settle(&mut self) {
        self.end_lag_run(LagRun::default());
        if !self.is_settled {
            self.send_lag.merge(&self.own_lag);
            self.is_settled = true;
        }
    }

    /// Widens the window that rates are counted over.
    fn span(&mut self, due: Nanos, sent: Nanos, warmup: bool) {
        if !warmup {
            self.first_sent.get_or_insert(sent);
            self.last_sent = Some(sent);
            self.due_span = match self.due_span {
                None => Some((due, due)),
                Some((first, last)) => Some((first.min(due), last.max(due))),
            };
        }
    }

    /// A message was confirmed at `now`.
    pub fn confirmed(&mut self, sending: Sending, now: Nanos, warmup: bool) {
        let Sending { due, sent, own_lag } = sending;
        self.interval.acknowledged += 1;
        self.window.note_confirmed(due, sent, now, warmup);
        if UNRECORDED {
            return self.done_unless(warmup, now);
        }
        self.interval_times.responded((now - due).0);
        if !warmup {
            self.response.record((now - due).0);
            self.service.record((now - sent).0);
            self.response_lag.record((now - sent).0, (now - due).0.saturating_sub(own_lag.0));
            self.done(now);
        }
    }

    /// A message was answered with an error at `now`.
    pub fn refused(&mut self, due: Nanos, sent: Nanos, now: Nanos, warmup: bool) {
        self.interval.errors += 1;
        self.window.note_refused(sent, now, warmup);
        if !warmup {
            self.error.record((now - due).0);
            self.done(now);
        }
    }

    /// A message arrived at a consumer for the first time.
    pub fn delivered(&mut self, sending: Sending, now: Nanos, warmup: bool) {
        let Sending { due, sent, own_lag } = sending;
        self.interval.delivered += 1;
        self.window.note_delivered(due, sent, now, warmup);
        if UNRECORDED {
            return self.done_unless(warmup, now);
        }
        if self.responds_by_delivery {
            self.interval_times.responded((now - due).0);
        }
        if !warmup {
            self.delivery.record((now - due).0);
            self.one_way.record((now - sent).0);
            self.delivery_lag.record((now - sent).0, (now - due).0.saturating_sub(own_lag.0));
            self.done(now);
        }
    }

    /// A measured message without a mark, which nobody knows the times of, arrived at a consumer
    /// for the first time.
    pub fn delivered_unmarked(&mut self, now: Nanos, warmup: bool) {
        self.window.note_delivered(Nanos(0), Nanos(0), now, warmup);
        self.done_unless(warmup, now);
    }

    /// A measured message arrived for the first time `after` its due time, later than Tmax.
    pub fn late(&mut self, after: Nanos) {
        self.late_ns_max = self.late_ns_max.max(after.0);
    }

    /// A measured message, due at `due`, was in the answer that came at `answered` to a request
    /// made at `asked`, and was taken out of it at `handled`. The three parts add up to its
    /// delivery time.
    pub fn polled(&mut self, due: Nanos, asked: Nanos, answered: Nanos, handled: Nanos) {
        self.poll_wait.record(asked.since(due).0);
        self.poll_round_trip.record(answered.since(asked.max(due)).0);
        self.handling.record(handled.since(answered).0);
    }

    /// A measured message was completed at `now`.
    pub fn done(&mut self, now: Nanos) {
        self.last_done = Some(self.last_done.map_or(now, |last| last.max(now)));
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

    /// Adds another shard's record; both are settled.
    pub fn merge(&mut self, other: &Recorder) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.delivery.merge(&other.delivery);
        self.one_way.merge(&other.one_way);
        self.first_byte.merge(&other.first_byte);
        self.connect.merge(&other.connect);
        self.session.merge(&other.session);
        self.send_lag.merge(&other.send_lag);
        self.own_lag.merge(&other.own_lag);
        self.response_lag.merge(&other.response_lag);
        self.delivery_lag.merge(&other.delivery_lag);
        self.error.merge(&other.error);
        self.batch.merge(&other.batch);
        self.poll_wait.merge(&other.poll_wait);
        self.poll_round_trip.merge(&other.poll_round_trip);
        self.handling.merge(&other.handling);
        self.poll_lag.merge(&other.poll_lag);
        self.polls += other.polls;
        self.empty_polls += other.empty_polls;
        self.polled_messages += other.polled_messages;
        self.polls_skipped += other.polls_skipped;
        self.polls_refused += other.polls_refused;
        self.late_ns_max = self.late_ns_max.max(other.late_ns_max);
        self.first_sent = earliest(self.first_sent, other.first_sent);
        self.last_sent = self.last_sent.max(other.last_sent);
        self.window.merge(&other.window);
        self.writes += other.writes;
        self.body_bytes += other.body_bytes;
        self.last_done = self.last_done.max(other.last_done);
        self.due_span = match (self.due_span, other.due_span) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (span, None) | (None, span) => span,
        };
    }

    /// The recorded times by metric name, empty ones left out.
    pub fn times(&self) -> Vec<(&'static str, &Histogram)> {
        let all: [(_, &Histogram); 14] = [
            ("response_time_ns", &self.response),
            ("service_time_ns", &self.service),
            ("delivery_time_ns", &self.delivery),
            ("one_way_time_ns", &self.one_way),
            ("first_byte_time_ns", &self.first_byte),
            ("connect_time_ns", &self.connect),
            ("session_time_ns", &self.session),
            ("send_lag_ns", &self.send_lag),
            ("error_time_ns", &self.error),
            ("batch_time_ns", &self.batch),
            ("poll_wait_time_ns", &self.poll_wait),
            ("poll_round_trip_time_ns", &self.poll_round_trip),
            ("handling_time_ns", &self.handling),
            ("poll_lag_ns", &self.poll_lag),
        ];
        all.into_iter().filter(|(_, histogram)| histogram.count() > 0).collect()
    }
}

/// Equal send lags, one after another: in a burst all that is due together and stamped together.
#[derive(Clone, Copy, Debug, Default)]
struct LagRun {
    lag_ns: u64,
    was_held_up: bool,
    count: u64,
}

impl LagRun {
    fn is_like(&self, other: &LagRun) -> bool {
        (self.lag_ns, self.was_held_up) == (other.lag_ns, other.was_held_up)
    }
}

/// True in a binary that is only there to tell what recording costs.
const UNRECORDED: bool = cfg!(feature = "unrecorded");

fn earliest(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (some, None) | (None, some) => some,
    }
}
