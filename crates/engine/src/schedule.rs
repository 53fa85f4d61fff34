//! Due times of messages: a pure function of the load, the seed and the count, so that the same
//! trial offers the same messages at the same times on every machine and over any number of shards.
//! Times count from the moment the load starts; warm-up comes first.

use weigh_model::arrival::Step;
use weigh_model::{Arrival, Load, Nanos, Rate};
use weigh_stats::random::Random;

/// One entry of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Due time, since the load started.
    pub at: Nanos,
    /// True before the measured window.
    pub warmup: bool,
}

/// The measured messages of one or more streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Due time of the first message, since the load started.
    pub first: Nanos,
    /// Due time of the last message.
    pub last: Nanos,
    /// Number of messages.
    pub messages: u64,
}

impl Span {
    /// Both together.
    pub fn join(self, other: Span) -> Span {
        Span {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            messages: self.messages + other.messages,
        }
    }
}

/// The due times of one stream of messages, in order.
#[derive(Clone, Debug)]
pub struct Schedule {
    gaps: Gaps,
    warmup: Nanos,
    end: Nanos,
    measured_left: u64,
    produced: u64,
    share: (u64, u64),
    /// By how much everything is later, because its client comes later.
    late: Nanos,
}

/// Rule by which a due time follows from the number of the message.
#[derive(Clone, Debug)]
enum Gaps {
    /// Message k at `phase + k / rate`.
    Constant { per_second: f64, phase: Nanos },
    /// Exponential gaps.
    Poisson { mean_ns: f64, random: Random, at: f64 },
    /// Constant within each step; the first step also covers the warm-up.
    Steps(Vec<StepSpan>),
    /// As listed.
    Trace(Vec<Nanos>),
}

/// One step on the axis of the schedule.
#[derive(Clone, Copy, Debug)]
struct StepSpan {
    start: Nanos,
    end: Nanos,
    first: u64,
    per_second: f64,
}

impl Schedule {
    /// The stream that all clients share, as far as shard `shard` of `shards` sends it. `trace`
    /// holds the times of [`Arrival::Trace`]. `None` where each client has its own stream, or
    /// where messages are not due by the clock.
    pub fn shared(
        load: &Load,
        trace: &[Nanos],
        seed: u64,
        shard: u32,
        shards: u32,
    ) -> Option<Schedule> {
        let gaps = match (&load.arrival, load.rate) {
            (Arrival::Constant, Some(rate)) if !rate.per_client => {
                Gaps::Constant { per_second: rate.per_second, phase: Nanos(0) }
            }
            (Arrival::Poisson, Some(rate)) if !rate.per_client => {
                Gaps::poisson(rate.per_second, Random::stream(seed, SHARED_STREAM))
            }
            (Arrival::Steps(steps), _) => Gaps::steps(steps, load.warmup, load.connections),
            (Arrival::Trace(_), _) => Gaps::Trace(trace.to_vec()),
            _ => return None,
        };
        let total = load.messages.map(|total| load.split.total(total, load.connections));
        let share = (u64::from(shard), u64::from(shards));
        Some(Schedule::new(load, gaps, total, share))
    }

    /// The stream of client `index` where each has its own; `None` elsewhere.
    pub fn client(load: &Load, seed: u64, index: u32) -> Option<Schedule> {
        let rate = load.rate?;
        let own_rate = rate.total_per_second(load.connections) / f64::from(load.connections);
        let mut random = Random::stream(seed, u64::from(index));
        let gaps = match load.arrival {
            Arrival::Periodic => {
                let phase = Nanos::from_secs_f64(random.next_f64() / own_rate);
                Gaps::Constant { per_second: own_rate, phase }
            }
            Arrival::Constant if rate.per_client => {
                Gaps::Constant { per_second: own_rate, phase: Nanos(0) }
            }
            Arrival::Poisson if rate.per_client => Gaps::poisson(own_rate, random),
            _ => return None,
        };
        let total = load.messages.map(|total| load.split.share(total, load.connections, index));
        Some(Schedule { late: load.turn(index), ..Schedule::new(load, gaps, total, (0, 1)) })
    }

    fn new(load: &Load, gaps: Gaps, total: Option<u64>, share: (u64, u64)) -> Schedule {
        let end = load.duration.map_or(Nanos::NEVER, |duration| load.warmup + duration);
        let measured_left = total.unwrap_or(u64::MAX);
        let (warmup, late) = (load.warmup, Nanos(0));
        Schedule { gaps, warmup, end, measured_left, produced: 0, share, late }
    }

    /// The next due message of this shard; `None` at the end.
    pub fn next_due(&mut self) -> Option<Due> {
        loop {
            let number = self.produced;
            let at = self.late + self.gaps.at(number)?;
            let warmup = at < self.warmup;
            if at >= self.end || (!warmup && self.measured_left == 0) {
                return None;
            }
            self.produced += 1;
            self.measured_left -= u64::from(!warmup);
            let (shard, shards) = self.share;
            if number % shards == shard {
                return Some(Due { at, warmup });
            }
        }
    }
}

impl Schedule {
    /// The measured messages of a stream that nothing was taken of yet; `None` if there are none.
    /// It must end.
    pub fn measured(mut self) -> Option<Span> {
        let is_counted = self.end == Nanos::NEVER && self.measured_left < u64::MAX;
        if matches!(self.gaps, Gaps::Constant { .. }) && is_counted && self.measured_left > 0 {
            return self.evenly_measured();
        }
        let mut span: Option<Span> = None;
        while let Some(due) = self.next_due() {
            if !due.warmup {
                let own = Span { first: due.at, last: due.at, messages: 1 };
                span = Some(span.map_or(own, |span| span.join(own)));
            }
        }
        span
    }

    /// Returns the span without counting to the end.
    fn evenly_measured(mut self) -> Option<Span> {
        let messages = self.measured_left;
        let number = self.number_at(self.warmup)?;
        let first = self.late + self.gaps.at(number)?;
        Some(Span { first, last: self.late + self.gaps.at(number + messages - 1)?, messages })
    }
}

/// Remainder of a schedule, computed without making every message.
impl Schedule {
    /// Measured messages of this shard that are still due before `until`; they are passed over.
    /// Exact but for [`Arrival::Poisson`] beyond [`ONE_BY_ONE_MAX`] messages, whose rest is taken
    /// at its mean rate.
    pub fn pass(&mut self, until: Nanos) -> u64 {
        if let Some((first, end)) = self.measured_before(until) {
            self.produced = self.produced.max(end);
            self.measured_left -= end - first;
            return self.of_this_shard(first, end);
        }
        let (until, mut passed) = (until.min(self.end), 0);
        for _ in 0..ONE_BY_ONE_MAX {
            // Drawing is the only way to know: the copy is looked at first.
            let mut ahead = self.clone();
            let Some(due) = ahead.next_due().filter(|due| due.at < until) else { return passed };
            *self = ahead;
            passed += u64::from(!due.warmup);
        }
        let Gaps::Poisson { mean_ns, at, .. } = &self.gaps else { return passed };
        let left = (until.min(self.last_due()).0 as f64 - at).max(0.0) / mean_ns;
        let left = (left as u64).min(self.measured_left);
        self.measured_left -= left;
        passed + left / self.share.1
    }

    /// Returns the due time of the last message, at the latest; of [`Arrival::Poisson`] the mean.
    pub fn last_due(&self) -> Nanos {
        let left = self.measured_left as f64;
        let by_count = match &self.gaps {
            Gaps::Constant { per_second, phase } => {
                let messages = self.produced as f64 + left;
                *phase + self.warmup + Nanos::from_secs_f64(messages / per_second)
            }
            Gaps::Poisson { mean_ns, at, .. } => Nanos((at + left * mean_ns) as u64) + self.warmup,
            Gaps::Steps(spans) => spans.last().map_or(Nanos(0), |span| span.end),
            Gaps::Trace(times) => times.last().copied().unwrap_or_default(),
        };
        self.end.min(self.late + by_count)
    }

    /// The numbers of the measured messages of all shards that are still due before `until`: the
    /// first, and the one behind the last. `None` where that must be drawn.
    fn measured_before(&self, until: Nanos) -> Option<(u64, u64)> {
        let first = self.produced.max(self.number_at(self.warmup)?);
        let end = self.number_at(until.min(self.end))?.max(first);
        Some((first, end.min(first.saturating_add(self.measured_left))))
    }

    /// Returns how many messages of all shards are due before `until`.
    fn number_at(&self, until: Nanos) -> Option<u64> {
        let until = until - self.late;
        let mut number = match &self.gaps {
            Gaps::Constant { per_second, phase } => {
                ((until - *phase).as_secs_f64() * per_second) as u64
            }
            Gaps::Steps(spans) => {
                let last = spans.last()?;
                let span = spans.iter().rev().find(|span| span.start < until);
                let span = span.unwrap_or(&spans[0]);
                let within = (until.min(last.end).min(span.end) - span.start).as_secs_f64();
                span.first + (within * span.per_second) as u64
            }
            Gaps::Trace(times) => return Some(times.partition_point(|at| *at < until) as u64),
            Gaps::Poisson { .. } => return None,
        };
        // Due times are rounded to nanoseconds, and so may the border be off by some.
        let mut gaps = self.gaps.clone();
        let mut is_before = |number| gaps.at(number).is_some_and(|at| at < until);
        while number > 0 && !is_before(number - 1) {
            number -= 1;
        }
        while is_before(number) {
            number += 1;
        }
        Some(number)
    }

    /// Returns how many of these numbers this shard sends.
    fn of_this_shard(&self, first: u64, end: u64) -> u64 {
        let (shard, shards) = self.share;
        let below = |number: u64| (number + shards - 1 - shard) / shards;
        below(end) - below(first)
    }
}

impl Gaps {
    fn poisson(per_second: f64, random: Random) -> Gaps {
        Gaps::Poisson { mean_ns: 1e9 / per_second, random, at: 0.0 }
    }

    fn steps(steps: &[Step], warmup: Nanos, clients: u32) -> Gaps {
        let mut spans = Vec::with_capacity(steps.len());
        let mut start = Nanos(0);
        let mut first = 0;
        for (index, step) in steps.iter().enumerate() {
            let hold = if index == 0 { step.hold + warmup } else { step.hold };
            let per_second = step.rate.total_per_second(clients);
            spans.push(StepSpan { start, end: start + hold, first, per_second });
            first += (hold.as_secs_f64() * per_second).ceil() as u64;
            start = start + hold;
        }
        Gaps::Steps(spans)
    }

    fn at(&mut self, number: u64) -> Option<Nanos> {
        match self {
            Gaps::Constant { per_second, phase } => {
                Some(*phase + Nanos::from_secs_f64(number as f64 / *per_second))
            }
            Gaps::Poisson { mean_ns, random, at } => {
                *at += random.exponential(*mean_ns);
                Some(Nanos(at.round() as u64))
            }
            Gaps::Steps(spans) => {
                let span = spans.iter().rev().find(|span| span.first <= number)?;
                let offset = (number - span.first) as f64 / span.per_second;
                let at = span.start + Nanos::from_secs_f64(offset);
                (at < span.end).then_some(at)
            }
            Gaps::Trace(times) => times.get(number as usize).copied(),
        }
    }
}

/// The measured length that steps or a trace give themselves; `None` for other arrivals.
pub fn own_duration(arrival: &Arrival, trace: &[Nanos]) -> Option<Nanos> {
    match arrival {
        Arrival::Steps(steps) => Some(steps.iter().fold(Nanos(0), |total, step| total + step.hold)),
        Arrival::Trace(_) => trace.last().map(|last| *last + Nanos(1)),
        _ => None,
    }
}

/// The greatest rate a load asks for, messages per second; `None` where it has no rate.
pub fn rate_per_second_max(load: &Load) -> Option<f64> {
    let total = |rate: &Rate| rate.total_per_second(load.connections);
    match &load.arrival {
        Arrival::Steps(steps) => steps.iter().map(|step| total(&step.rate)).reduce(f64::max),
        _ => load.rate.as_ref().map(total),
    }
}

/// Messages of a drawn schedule that are passed over one by one.
const ONE_BY_ONE_MAX: u64 = 10_000_000;

/// The random stream of shared arrivals; clients have the streams of their indices.
const SHARED_STREAM: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::body::BodySource;
    use weigh_model::units::parse_rate;
    use weigh_model::{Pattern, Split};

    fn load(arrival: &str, rate: Option<&str>) -> Load {
        Load {
            duration: Some(Nanos::from_secs(10)),
            arrival: arrival.parse().unwrap(),
            rate: rate.map(|rate| parse_rate(rate).unwrap()),
            body: BodySource::Readings,
            ..Load::closed(Pattern::Request, 4)
        }
    }

    impl Schedule {
        /// Takes `count` messages.
        fn by_ref(&mut self, count: usize) {
            for _ in 0..count {
                self.next_due();
            }
        }
    }

    fn all(mut schedule: Schedule) -> Vec<Due> {
        std::iter::from_fn(|| schedule.next_due()).collect()
    }

    #[test]
    fn constant_is_even_and_warm_up_comes_first() {
        let mut load = load("constant", Some("100/s"));
        load.warmup = Nanos::from_secs(1);
        let dues = all(Schedule::shared(&load, &[], 1, 0, 1).unwrap());
        assert_eq!(dues.len(), 1100);
        assert_eq!(dues.iter().filter(|due| due.warmup).count(), 100);
        assert_eq!(dues[7].at, Nanos::from_millis(70));
    }

    /// The span of a stream of a number of messages equals the span found by counting it through.
    #[test]
    fn the_span_of_a_stream_is_that_of_its_messages() {
        for (arrival, rate) in [
            ("constant", Some("777/s")),
            ("periodic", Some("777/s")),
            ("constant", Some("3/s/client")),
            ("poisson", Some("777/s")),
        ] {
            let mut load = load(arrival, rate);
            (load.duration, load.messages) = (None, Some(1000));
            load.warmup = Nanos::from_millis(1300);
            let streams = || -> Vec<Schedule> {
                let shared = Schedule::shared(&load, &[], 3, 0, 1);
                let own = (0..4).filter_map(|n| Schedule::client(&load, 3, n));
                shared.into_iter().chain(own).collect()
            };
            let mut dues: Vec<Due> = streams().into_iter().flat_map(all).collect();
            dues.retain(|due| !due.warmup);
            dues.sort_by_key(|due| due.at);
            let span = streams().into_iter().filter_map(Schedule::measured).reduce(Span::join);
            let (first, last) = (dues[0].at, dues[999].at);
            assert_eq!(span, Some(Span { first, last, messages: 1000 }), "{arrival} {rate:?}");
        }
    }

    /// Four shards together must offer exactly what one offers, for every kind of stream.
    #[test]
    fn shards_share_one_stream() {
        for (arrival, rate) in [
            ("constant", Some("777/s")),
            ("poisson", Some("777/s")),
            ("steps:50/s@5s,90/s@5s", None),
        ] {
            let load = load(arrival, rate);
            let whole = all(Schedule::shared(&load, &[], 3, 0, 1).unwrap());
            let mut parts: Vec<Due> = (0..4)
                .flat_map(|shard| all(Schedule::shared(&load, &[], 3, shard, 4).unwrap()))
                .collect();
            parts.sort_by_key(|due| due.at);
            assert_eq!(parts, whole, "{arrival}");
        }
    }

    /// The gaps of a Poisson stream: mean, dispersion, and a Kolmogorov-Smirnov distance below
    /// the 1 % critical value, in at least 95 of 100 seeds (oracle O19).
    #[test]
    fn poisson_gaps_are_exponential() {
        let mut load = load("poisson", Some("1000/s"));
        load.duration = Some(Nanos::from_secs(5));
        let passed = (0..100)
            .filter(|seed| {
                let dues = all(Schedule::shared(&load, &[], *seed, 0, 1).unwrap());
                let mut gaps: Vec<f64> = dues
                    .windows(2)
                    .map(|pair| (pair[1].at - pair[0].at).as_secs_f64() * 1000.0)
                    .collect();
                gaps.sort_by(f64::total_cmp);
                let n = gaps.len() as f64;
                let distance = gaps
                    .iter()
                    .enumerate()
                    .map(|(index, gap)| {
                        let theory = 1.0 - (-gap).exp();
                        (theory - index as f64 / n)
                            .abs()
                            .max((theory - (index + 1) as f64 / n).abs())
                    })
                    .fold(0.0, f64::max);
                distance * n.sqrt() < 1.628
            })
            .count();
        assert!(passed >= 95, "{passed} of 100 seeds passed");
    }

    /// Skipping messages counts the same as making them, for every kind of schedule and any border.
    #[test]
    fn passing_over_messages_counts_what_making_them_would() {
        for (arrival, rate) in [
            ("constant", Some("777/s")),
            ("constant", Some("1M/s")),
            ("poisson", Some("777/s")),
            ("steps:50/s@5s,90/s@5s", None),
            ("trace:x", None),
        ] {
            let mut load = load(arrival, rate);
            load.warmup = Nanos::from_millis(130);
            load.duration = Some(Nanos::from_millis(700));
            let trace: Vec<Nanos> = (0..900).map(Nanos::from_millis).collect();
            for (until_ms, made) in [(0, 3), (50, 1), (131, 0), (400, 200), (830, 7), (5000, 9)] {
                let until = Nanos::from_millis(until_ms);
                let mut passing = Schedule::shared(&load, &trace, 3, 1, 3).unwrap();
                passing.by_ref(made);
                let mut making = passing.clone();
                let expected = std::iter::from_fn(|| making.next_due())
                    .take_while(|due| due.at < until)
                    .filter(|due| !due.warmup)
                    .count() as u64;
                assert_eq!(passing.pass(until), expected, "{arrival} {rate:?} {until_ms} ms");
                assert_eq!(passing.pass(until), 0, "{arrival}: passed twice");
            }
        }
    }

    /// The rest of an hour at the highest rate is counted without making its messages.
    #[test]
    fn the_rest_of_a_long_schedule_is_counted_at_once() {
        let mut load = load("constant", Some("100M/s"));
        load.duration = Some(Nanos::from_secs(3600));
        let mut schedule = Schedule::shared(&load, &[], 1, 0, 1).unwrap();
        assert_eq!(schedule.last_due(), Nanos::from_secs(3600));
        assert_eq!(schedule.pass(Nanos::NEVER), 360_000_000_000);
        assert_eq!(schedule.next_due(), None);
    }

    #[test]
    fn periodic_clients_have_their_own_phases_and_shares() {
        let mut load = load("periodic", Some("1/s/client"));
        load.messages = Some(10);
        load.duration = None;
        let streams: Vec<Vec<Due>> =
            (0..4).map(|index| all(Schedule::client(&load, 9, index).unwrap())).collect();
        assert_eq!(streams.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 2, 2]);
        for stream in &streams {
            assert!(stream[0].at < Nanos::from_secs(1));
            assert_eq!(stream[1].at - stream[0].at, Nanos::from_secs(1));
        }
        assert_ne!(streams[0][0].at, streams[1][0].at);
    }

    /// The clients of the second group offer what those of the first do, half a second later.
    #[test]
    fn who_joins_later_has_all_his_messages_later() {
        let mut load = load("constant", Some("10/s/client"));
        (load.messages, load.duration) = (Some(12), None);
        load.join = Some("2 every 500ms".parse().unwrap());
        let firsts: Vec<Vec<Due>> =
            (0..4).map(|index| all(Schedule::client(&load, 9, index).unwrap())).collect();
        assert_eq!(firsts[0], firsts[1]);
        for (early, late) in firsts[0].iter().zip(&firsts[2]) {
            assert_eq!(late.at - early.at, Nanos::from_millis(500));
        }
        assert_eq!(firsts[3].len(), 3);
    }

    #[test]
    fn steps_change_the_rate_at_their_borders() {
        let mut load = load("steps:10/s@1s,100/s@1s", None);
        load.duration = own_duration(&load.arrival, &[]);
        let dues = all(Schedule::shared(&load, &[], 1, 0, 1).unwrap());
        let first = dues.iter().filter(|due| due.at < Nanos::from_secs(1)).count();
        assert_eq!((first, dues.len()), (10, 110));
    }

    #[test]
    fn a_count_ends_the_stream_after_the_warm_up() {
        let mut load = load("constant", Some("100/s"));
        load.warmup = Nanos::from_secs(1);
        load.messages = Some(7);
        load.duration = None;
        load.split = Split::Ceil;
        let dues = all(Schedule::shared(&load, &[], 1, 0, 1).unwrap());
        assert_eq!(dues.iter().filter(|due| !due.warmup).count(), 8);
    }
}
