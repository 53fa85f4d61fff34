//! What exchanges say about an agent's clock. Recent ones are all kept, of older ones the best of
//! each stretch: a trial is judged with those before, during and after it, however long it takes.

use std::collections::VecDeque;

use weigh_observe::clocks::RESOLUTION_NS;
use weigh_observe::clocks::pair::{ClockPair, Exchange};

/// Exchanges with one agent.
#[derive(Clone, Debug, Default)]
pub struct ClockBook {
    exchanges: VecDeque<Exchange>,
}

/// What is known of another clock at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// By how much it is ahead, nanoseconds.
    pub offset_ns: i64,
    /// Largest possible error of that, nanoseconds.
    pub bound_ns: u64,
    /// Its drift, parts per million.
    pub drift_ppm: f64,
    /// Largest possible error of the drift, parts per million.
    pub drift_bound_ppm: f64,
    /// The smallest round trip, nanoseconds.
    pub round_trip_ns: u64,
}

impl ClockBook {
    /// Adds an exchange, in nanoseconds of the two clocks, and drops what is no longer needed.
    pub fn note(&mut self, exchange: Exchange) {
        if exchange.received < exchange.sent || exchange.round_trip() < -RESOLUTION_NS {
            // No clock that only runs forward gives such stamps.
            return;
        }
        self.exchanges.push_back(exchange);
        let (recent, oldest) = (exchange.received - RECENT_NS, exchange.received - KEPT_NS);
        while self.exchanges.front().is_some_and(|first| first.received < oldest) {
            self.exchanges.pop_front();
        }
        self.thin(recent);
    }

    /// Number of exchanges that are kept.
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// What is known of the other clock when the own one shows `own_ns`; `None` without exchanges.
    ///
    /// Clocks drift evenly for a while only. So the exchanges around the moment count, and fewer of
    /// them if they contradict an even drift.
    pub fn at(&self, own_ns: i64) -> Option<Estimate> {
        let best = self.exchanges.iter().map(Exchange::round_trip).min()?.max(0) as u64;
        for around in AROUND_NS {
            let is_near = |exchange: &&Exchange| (exchange.sent - own_ns).abs() <= around;
            let near: Vec<Exchange> = self.exchanges.iter().filter(is_near).copied().collect();
            let Ok(pair) = ClockPair::of(&near, RESOLUTION_NS) else { continue };
            let (offset, drift) = (pair.offset(own_ns), pair.drift());
            return Some(Estimate {
                offset_ns: offset.value.round() as i64,
                bound_ns: offset.bound.ceil() as u64 + 1,
                drift_ppm: drift.value * 1e6,
                drift_bound_ppm: drift.bound * 1e6,
                round_trip_ns: best,
            });
        }
        self.by_nearest(own_ns, best)
    }

    /// What the nearest exchange says alone, widened by the largest drift there can be.
    fn by_nearest(&self, own_ns: i64, round_trip_ns: u64) -> Option<Estimate> {
        let nearest = self.exchanges.iter().min_by_key(|it| (it.sent - own_ns).abs())?;
        let high = nearest.reached.saturating_sub(nearest.sent);
        let low = nearest.answered.saturating_sub(nearest.received);
        let apart = (nearest.sent - own_ns).unsigned_abs() + nearest.round_trip().unsigned_abs();
        let bound = high.abs_diff(low) / 2 + apart / 1_000_000 * DRIFT_MAX_PPM;
        Some(Estimate {
            offset_ns: low.midpoint(high),
            bound_ns: bound + RESOLUTION_NS as u64,
            drift_ppm: 0.0,
            drift_bound_ppm: DRIFT_MAX_PPM as f64,
            round_trip_ns,
        })
    }

    /// Keeps the best exchange of every stretch that is over.
    fn thin(&mut self, recent: i64) {
        let stretch = |exchange: &Exchange| exchange.received.div_euclid(STRETCH_NS);
        let old =
            self.exchanges.iter().take_while(|it| stretch(it) < recent.div_euclid(STRETCH_NS));
        let old = old.count();
        // What was thinned already has one exchange in each stretch.
        let mut index = old;
        while index >= 2 {
            let (before, this) = (self.exchanges[index - 2], self.exchanges[index - 1]);
            if stretch(&before) != stretch(&this) {
                break;
            }
            let worse = usize::from(before.round_trip() <= this.round_trip());
            self.exchanges.remove(index - 2 + worse);
            index -= 1;
        }
    }
}

const SECOND_NS: i64 = 1_000_000_000;
/// How long every exchange is kept.
const RECENT_NS: i64 = 20 * SECOND_NS;
/// Of older ones the best of each of these.
const STRETCH_NS: i64 = 5 * SECOND_NS;
const KEPT_NS: i64 = 2 * 3600 * SECOND_NS;
/// Distances within which exchanges count, the farthest that agree first.
const AROUND_NS: [i64; 4] = [60 * SECOND_NS, 20 * SECOND_NS, 6 * SECOND_NS, 2 * SECOND_NS];
/// Ten times what the crystals of computers have.
const DRIFT_MAX_PPM: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The other clock is ahead by `offset` at 0 and drifts by `ppm`.
    fn exchange(at: i64, there: i64, back: i64, offset: i64, ppm: i64) -> Exchange {
        let other = |own: i64| own + offset + own / 1_000_000 * ppm;
        let reached = at + there;
        Exchange {
            sent: at,
            reached: other(reached),
            answered: other(reached + 1_000),
            received: reached + 1_000 + back,
        }
    }

    #[test]
    fn the_bound_contains_the_offset_for_hours() {
        for (ppm, there, back) in [(0, 100_000, 100_000), (80, 15_000_000, 50_000), (-80, 1, 1)] {
            let (mut book, offset) = (ClockBook::default(), -5_000 * SECOND_NS);
            for number in 0..3 * 3600 * 5 {
                let at = number * SECOND_NS / 5;
                book.note(exchange(at, there, back + number % 7 * 90_000, offset, ppm));
                if number % 1_000 == 999 {
                    let known = book.at(at).unwrap();
                    let truth = offset + at / 1_000_000 * ppm;
                    let error = (known.offset_ns - truth).unsigned_abs();
                    assert!(error <= known.bound_ns, "{number}: {error} {known:?}");
                    assert!(known.bound_ns < 8_000_000, "{number}: {known:?}");
                    let drift = (known.drift_ppm - ppm as f64).abs();
                    assert!(drift <= known.drift_bound_ppm + 1e-6, "{known:?}");
                }
            }
            // 2 hours of one in 5 s, and the last 20 s to 25 s.
            assert!((1_400..1_600).contains(&book.len()), "{}", book.len());
            let start = book.at(3600 * SECOND_NS + SECOND_NS).unwrap();
            let truth = offset + 3_601_000 * ppm;
            assert!((start.offset_ns - truth).unsigned_abs() <= start.bound_ns, "{start:?}");
        }
    }

    /// A clock whose rate changes leaves fewer exchanges, but never a bound that is wrong.
    #[test]
    fn a_clock_that_turns_is_judged_by_what_is_near() {
        let mut book = ClockBook::default();
        for number in 0..300 {
            let at = number * SECOND_NS / 5;
            let bent = (at - 30 * SECOND_NS).max(0) / 1_000_000 * 400;
            book.note(exchange(at, 20_000, 20_000, bent, 0));
        }
        let known = book.at(59 * SECOND_NS + SECOND_NS / 2).unwrap();
        let truth = 29_500_000 / 1_000 * 400;
        assert!((known.offset_ns - truth).unsigned_abs() <= known.bound_ns, "{known:?}");
    }

    #[test]
    fn nothing_is_known_without_exchanges() {
        let mut book = ClockBook::default();
        assert_eq!(book.at(0), None);
        book.note(Exchange { sent: 10, reached: 0, answered: 0, received: 9 });
        assert!(book.is_empty());
    }

    /// Stamps come over a network.
    #[test]
    fn no_stamp_causes_a_panic() {
        let ends = [i64::MIN, -1, 0, 1, i64::MAX];
        for (reached, answered) in ends.iter().flat_map(|a| ends.map(|b| (*a, b))) {
            let mut book = ClockBook::default();
            for sent in [SECOND_NS, 2 * SECOND_NS, 500 * SECOND_NS] {
                book.note(Exchange { sent, reached, answered, received: sent + 1_000 });
                book.note(exchange(sent, 10, 10, 0, 0));
            }
            for at in [0, SECOND_NS, 5_000 * SECOND_NS] {
                assert!(book.at(at).is_some());
            }
        }
    }
}
