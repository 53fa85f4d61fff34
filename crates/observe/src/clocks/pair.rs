//! Offset and drift of two clocks, from exchanges of messages in both directions.
//!
//! A message cannot arrive before it was sent. So every message towards the other clock bounds how
//! much that is ahead from above, every message back from below, and all of them together leave a
//! set of lines (offset and drift) that are possible (S. B. Moon, P. Skelly and D. Towsley,
//! "Estimation and Removal of Clock Skew from Network Delay Measurements", 1999, who ask for the
//! best line of this set; L. Zhang, Z. Liu and C. H. Xia, "Clock Synchronization Algorithms for
//! Network Measurements", 2002, who find it by convex hulls). The whole set is kept here, as a
//! polygon that every exchange cuts, so that results hold for whichever of its lines is the
//! true one.
//!
//! It is assumed that the clocks drift evenly while they are watched. The bound is therefore never
//! below half the smallest round trip, which holds for a single exchange without any assumption
//! (RFC 5905, section 8: the offset's error is at most half the delay).

use weigh_stats::Refusal;

/// One exchange, in whole units of the two clocks (the same unit for both).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the question left, on the own clock: T1 of RFC 5905.
    pub sent: i64,
    /// When it reached the other side, on the other clock: T2.
    pub reached: i64,
    /// When the answer left there, on the other clock: T3.
    pub answered: i64,
    /// When it was received, on the own clock: T4.
    pub received: i64,
}

/// Offset and drift of two clocks, as far as exchanges bound them.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockPair {
    /// Where the own clock's axis begins, and how much of it is 1.
    origin: i64,
    scale: f64,
    /// Offset that all others are relative to.
    reference: i128,
    /// Corners of the set of possible lines: offset at the origin, and drift over the scale.
    corners: Vec<(f64, f64)>,
    /// First and last moment of an exchange on the own clock.
    span: (i64, i64),
    round_trip_min: i64,
}

/// A number between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounded {
    /// The middle.
    pub value: f64,
    /// Largest distance of the truth from it.
    pub bound: f64,
}

impl Exchange {
    /// Round-trip time without the time at the other side (RFC 5905, section 8: delta).
    pub fn round_trip(&self) -> i64 {
        (self.received.saturating_sub(self.sent))
            .saturating_sub(self.answered.saturating_sub(self.reached))
    }
}

impl Bounded {
    /// True if `value` lies within.
    pub fn contains(&self, value: f64) -> bool {
        (value - self.value).abs() <= self.bound
    }

    fn between(low: f64, high: f64) -> Bounded {
        Bounded { value: low.midpoint(high), bound: (high - low) / 2.0 }
    }
}

impl ClockPair {
    /// Computes what these exchanges leave possible. `resolution` is the longer step of the two
    /// clocks: the possible error of a stamp.
    ///
    /// # Errors
    /// Without exchanges; if one contradicts itself; if no even drift fits all of them, because a
    /// clock was set or slewed.
    pub fn of(exchanges: &[Exchange], resolution: i64) -> Result<ClockPair, Refusal> {
        let best = exchanges.iter().min_by_key(|exchange| exchange.round_trip());
        let best = best.ok_or(Refusal::NoValues)?;
        let impossible = exchanges.iter().position(|exchange| {
            exchange.received < exchange.sent || exchange.round_trip() < -resolution
        });
        if let Some(index) = impossible {
            return Err(Refusal::ImpossibleExchange { number: index + 1 });
        }
        let first = exchanges.iter().map(|exchange| exchange.sent).min().unwrap_or(best.sent);
        let last = exchanges.iter().map(|exchange| exchange.received).max().unwrap_or(best.sent);
        let scale = (last - first).max(1) as f64;
        let reference = i128::from(best.reached) - i128::from(best.sent);
        let mut pair = ClockPair {
            origin: first,
            scale,
            reference,
            corners: Vec::new(),
            span: (first, last),
            round_trip_min: best.round_trip().max(0),
        };
        let steepest = DRIFT_MAX * scale;
        let room = (best.round_trip().abs() + resolution) as f64 + 2.0 * steepest + 1.0;
        pair.corners =
            vec![(-room, -steepest), (room, -steepest), (room, steepest), (-room, steepest)];
        for exchange in exchanges {
            pair.cut(exchange, resolution);
        }
        if pair.corners.is_empty() { Err(Refusal::UnsteadyClocks) } else { Ok(pair) }
    }

    /// Offset of the other clock when the own one shows `own`.
    pub fn offset(&self, own: i64) -> Bounded {
        let ahead = self.ahead(own);
        Bounded { value: ahead.value + self.reference as f64, ..ahead }
    }

    /// Drift of the other clock, as a share: 0.0001 is 100 ppm.
    pub fn drift(&self) -> Bounded {
        let (low, high) = range(self.corners.iter().map(|corner| corner.1));
        Bounded::between(low / self.scale, high / self.scale)
    }

    /// The time from `sent` on the own clock to `reached` on the other.
    pub fn there(&self, sent: i64, reached: i64) -> Bounded {
        let arrived = self.since_origin(reached);
        let left = i128::from(sent) - i128::from(self.origin);
        Bounded { value: arrived.value - left as f64, ..arrived }
    }

    /// The time from `sent` on the other clock to `reached` on the own.
    pub fn back(&self, sent: i64, reached: i64) -> Bounded {
        let left = self.since_origin(sent);
        let arrived = i128::from(reached) - i128::from(self.origin);
        Bounded { value: arrived as f64 - left.value, ..left }
    }

    /// What the own clock shows when the other one shows `other`: the middle of what is possible.
    pub fn own(&self, other: i64) -> i64 {
        self.origin.saturating_add(self.since_origin(other).value as i64)
    }

    /// By which share of itself a time on the other clock is longer than on the own: drift over 1
    /// plus drift.
    pub fn excess(&self) -> Bounded {
        let (low, high) = range(self.corners.iter().map(|corner| self.excess_of(corner.1)));
        Bounded::between(low, high)
    }

    /// The first and the last moment of an exchange, on the own clock.
    pub fn span(&self) -> (i64, i64) {
        self.span
    }

    /// The smallest round trip.
    pub fn round_trip_min(&self) -> i64 {
        self.round_trip_min
    }

    /// The time on the own clock from its origin until the other one shows `other`. A stamp of the
    /// other clock is as far ahead as that was when the stamp was made, not when the message left
    /// at the other end: with a delay of 10 s and a drift of 100 ppm these differ by 1 ms.
    ///
    /// Every line solved for the own time. It is a fraction of two linear terms, so that its
    /// extremes over a polygon are in its corners.
    fn since_origin(&self, other: i64) -> Bounded {
        let apart = (i128::from(other) - self.reference - i128::from(self.origin)) as f64;
        let own = self.corners.iter().map(|(offset, drift)| {
            let since = apart - offset;
            since - since * self.excess_of(*drift)
        });
        let (low, high) = range(own);
        self.at_least_half(Bounded::between(low, high))
    }

    fn excess_of(&self, drift: f64) -> f64 {
        let share = drift / self.scale;
        share / (1.0 + share)
    }

    /// The offset less the reference, which may be too large for a floating point number.
    fn ahead(&self, own: i64) -> Bounded {
        let x = self.x(own);
        let (low, high) = range(self.corners.iter().map(|(offset, drift)| offset + drift * x));
        self.at_least_half(Bounded::between(low, high))
    }

    /// Slewed a little at a time, a clock can leave a narrow set without emptying it: no bound is
    /// below half the smallest round trip.
    fn at_least_half(&self, possible: Bounded) -> Bounded {
        Bounded { bound: possible.bound.max(self.round_trip_min as f64 / 2.0), ..possible }
    }

    fn x(&self, own: i64) -> f64 {
        (i128::from(own) - i128::from(self.origin)) as f64 / self.scale
    }

    /// Leaves the lines that this exchange allows.
    fn cut(&mut self, exchange: &Exchange, resolution: i64) {
        let relative =
            |other: i64, own: i64| (i128::from(other) - i128::from(own) - self.reference) as f64;
        let most = relative(exchange.reached, exchange.sent) + resolution as f64;
        let least = relative(exchange.answered, exchange.received) - resolution as f64;
        let (there, back) = (self.x(exchange.sent), self.x(exchange.received));
        clip(&mut self.corners, |(offset, drift)| most - (offset + drift * there));
        clip(&mut self.corners, |(offset, drift)| (offset + drift * back) - least);
    }
}

/// Cuts a convex polygon along the line where `inside` is 0 and keeps where it is not negative (I.
/// E. Sutherland and G. W. Hodgman, "Reentrant Polygon Clipping", 1974).
fn clip(corners: &mut Vec<(f64, f64)>, inside: impl Fn((f64, f64)) -> f64) {
    let mut kept = Vec::with_capacity(corners.len() + 1);
    for (index, &to) in corners.iter().enumerate() {
        let from = corners[(index + corners.len() - 1) % corners.len()];
        let (at_from, at_to) = (inside(from), inside(to));
        if (at_from >= -SLACK) != (at_to >= -SLACK) && at_from != at_to {
            let share = (at_from / (at_from - at_to)).clamp(0.0, 1.0);
            let between = |from: f64, to: f64| from + share * (to - from);
            kept.push((between(from.0, to.0), between(from.1, to.1)));
        }
        if at_to >= -SLACK {
            kept.push(to);
        }
    }
    kept.dedup();
    *corners = kept;
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Quartz is within 100 ppm and a slewed clock within 500 (`adjtimex(2)`): a drift ten times
/// that is an error.
const DRIFT_MAX: f64 = 0.005;

/// Units that rounding may add.
const SLACK: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_stats::random::Random;

    const SECOND: f64 = 1e9;

    /// Two clocks and a path between them, in nanoseconds.
    struct World {
        offset: f64,
        drift: f64,
        /// The least delay there and back.
        least: (f64, f64),
        jitter: f64,
        random: Random,
    }

    impl World {
        fn new(seed: u64) -> World {
            let mut random = Random::new(seed);
            let offset = if random.next_f64() < 0.5 { -0.05 } else { 0.05 } * SECOND;
            let drift = if random.next_f64() < 0.5 { -1e-4 } else { 1e-4 };
            let least = (random.next_f64() * 0.02 * SECOND, random.next_f64() * 0.02 * SECOND);
            World { offset, drift, least, jitter: 0.01 * SECOND, random }
        }

        fn other(&self, own: f64) -> f64 {
            own + self.offset + self.drift * (own - START)
        }

        fn delay(&mut self, least: f64) -> f64 {
            least - self.jitter * (1.0 - self.random.next_f64()).ln()
        }

        fn exchange(&mut self, own: f64) -> Exchange {
            let there = own + self.delay(self.least.0);
            let answered = there + 50_000.0;
            let received = answered + self.delay(self.least.1);
            Exchange {
                sent: own as i64,
                reached: self.other(there) as i64,
                answered: self.other(answered) as i64,
                received: received as i64,
            }
        }

        fn exchanges(&mut self, count: u32, every: f64) -> Vec<Exchange> {
            (0..count).map(|number| self.exchange(START + f64::from(number) * every)).collect()
        }

        /// Whether offset, drift and a delay each way lie within `share` of their bounds.
        fn holds(&mut self, pair: &ClockPair, at: f64, share: f64) -> bool {
            let narrow = |told: Bounded| Bounded { bound: told.bound * share, ..told };
            let offset = narrow(pair.offset(at as i64)).contains(self.other(at) - at);
            let drift = narrow(pair.drift()).contains(self.drift);
            let (there, back) = (self.delay(self.least.0), self.delay(self.least.1));
            let told = pair.there(at as i64, self.other(at + there) as i64);
            let there = narrow(told).contains(there);
            let told = pair.back(self.other(at - back) as i64, at as i64);
            offset && drift && there && narrow(told).contains(back)
        }
    }

    /// 2026-11-21 in nanoseconds since 1970.
    const START: f64 = 1_795_219_200.0 * SECOND;

    /// Offsets of ±50 ms, drifts of ±100 ppm, paths that are up to 20 ms longer one way than the
    /// other: the truth lies within in 100 of 100, and not within half as much.
    #[test]
    fn the_bound_contains_the_truth_in_100_of_100() {
        let mut half_would_do = 0;
        for seed in 0..100 {
            let mut world = World::new(seed);
            let pair = ClockPair::of(&world.exchanges(120, 0.5 * SECOND), 1_000).unwrap();
            for share in [0.0, 0.25, 0.7, 1.0] {
                let at = START + share * 60.0 * SECOND;
                assert!(world.holds(&pair, at, 1.0), "seed {seed} at {share}");
            }
            let middle = START + 30.0 * SECOND;
            half_would_do += u32::from(world.holds(&pair, middle, 0.5));
            let bound = pair.offset(middle as i64).bound;
            assert!(bound >= pair.round_trip_min() as f64 / 2.0, "{bound}");
            assert!(bound < pair.round_trip_min() as f64, "{bound}: wider than it need be");
        }
        assert!(half_would_do < 80, "half the bound contains the truth in {half_would_do} of 100");
    }

    /// Drift is known the better the longer it was watched, and beyond the last exchange the offset
    /// the worse the further.
    #[test]
    fn what_was_not_watched_is_known_worse() {
        let mut world = World::new(7);
        let short = ClockPair::of(&world.exchanges(20, 0.5 * SECOND), 1_000).unwrap();
        let long = ClockPair::of(&world.exchanges(2_000, 0.5 * SECOND), 1_000).unwrap();
        assert!(long.drift().bound < short.drift().bound / 20.0);
        let bound = |seconds: f64| short.offset((START + seconds * SECOND) as i64).bound;
        assert!(bound(5.0) < bound(60.0) && bound(60.0) < bound(600.0) / 5.0);
        for seconds in [60.0, 600.0, -60.0] {
            assert!(world.holds(&short, START + seconds * SECOND, 1.0), "{seconds} s");
        }
    }

    /// Delays of 10 s between clocks that are known to a fraction of a millisecond and drift by 100
    /// ppm: the offset at the other end of the way is 1 ms off, three times the bound.
    #[test]
    fn long_delays_are_told_by_the_clock_where_the_stamp_was_made() {
        for seed in 0..100 {
            let mut world = World::new(seed);
            world.least = (0.000_2 * SECOND, 0.000_2 * SECOND);
            world.jitter = 0.000_05 * SECOND;
            let pair = ClockPair::of(&world.exchanges(240, 0.5 * SECOND), 1_000).unwrap();
            let delay = 10.0 * SECOND;
            for second in [1.0, 50.0, 105.0] {
                let left = START + second * SECOND;
                let arrived = left + delay;
                let sent = world.other(left) as i64;
                let reached = world.other(arrived) as i64;
                let there = pair.there(left as i64, reached);
                assert!(there.contains(delay), "seed {seed} at {second} s: {there:?}");
                let back = pair.back(sent, arrived as i64);
                assert!(back.contains(delay), "seed {seed} at {second} s: {back:?}");
                let own = pair.own(reached) as f64;
                assert!((own - arrived).abs() <= there.bound + 1_000.0, "{own} of {arrived}");
                // What the offset at the wrong end of the way makes of it.
                let at_the_begin = pair.offset(left as i64);
                let wrong = (reached - left as i64) as f64 - at_the_begin.value;
                assert!(!Bounded { value: wrong, ..at_the_begin }.contains(delay), "{wrong}");
                let at_the_end = pair.offset(arrived as i64);
                let wrong = (arrived as i64 - sent) as f64 + at_the_end.value;
                assert!(!Bounded { value: wrong, ..at_the_end }.contains(delay), "{wrong}");
            }
            assert!(pair.excess().contains(world.drift / (1.0 + world.drift)));
        }
    }

    #[test]
    fn one_exchange_is_half_its_round_trip() {
        let only = Exchange { sent: 1_000, reached: 5_600, answered: 5_700, received: 2_300 };
        let pair = ClockPair::of(&[only], 0).unwrap();
        assert_eq!((only.round_trip(), pair.round_trip_min()), (1_200, 1_200));
        // ((5600 - 1000) + (5700 - 2300)) / 2, as RFC 5905 has it, and what drift adds in between.
        let offset = pair.offset(1_650);
        assert!((offset.value - 4_000.0).abs() < 5.0, "{offset:?}");
        assert!((offset.bound - 600.0).abs() < 5.0, "{offset:?}");
    }

    #[test]
    fn a_clock_that_was_set_is_refused() {
        let mut world = World::new(3);
        let mut exchanges = world.exchanges(60, 0.5 * SECOND);
        world.offset += 0.5 * SECOND;
        let later = START + 30.0 * SECOND;
        let after = (0..60).map(|number| world.exchange(later + f64::from(number) * 0.5 * SECOND));
        exchanges.extend(after.collect::<Vec<_>>());
        assert_eq!(ClockPair::of(&exchanges, 1_000), Err(Refusal::UnsteadyClocks));
        assert_eq!(ClockPair::of(&[], 0), Err(Refusal::NoValues));
        let impossible = Exchange { sent: 10, reached: 0, answered: 0, received: 9 };
        let refusal = ClockPair::of(&[impossible], 0);
        assert_eq!(refusal, Err(Refusal::ImpossibleExchange { number: 1 }));
    }
}
