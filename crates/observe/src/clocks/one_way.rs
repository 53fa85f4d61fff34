//! One-way delays between hosts, with their bounds, or the reason why there are none
//! (methodology, section 3: a one-way figure whose effect is below the bound is refused, rule L20).

use crate::clocks::pair::{ClockPair, Exchange};
use serde::Serialize;
use weigh_model::numbers::{count, span};
use weigh_stats::Refusal;
use weigh_stats::quantile::nearest_rank;

use crate::clocks::RESOLUTION_NS;
use crate::clocks::records::Message;

/// Direction of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the host that asked for the exchanges to the one that answered.
    There,
    /// From the host that answered to the one that asked.
    Back,
}

/// One-way delays of messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneWay {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Direction.
    pub direction: Direction,
    /// Messages that arrived.
    pub received: usize,
    /// Messages that never arrived: their delay is infinite.
    pub lost: usize,
    /// Possible error of every delay below because of the clocks, nanoseconds: equal for all of
    /// them, up to drift.
    pub clock_bound_ns: f64,
    /// The delays.
    pub delays: Vec<OneWayFigure>,
    /// How much longer the slow ones took than the middle one: p99 less p50. The offset of the
    /// clocks falls out of it, their drift does not.
    pub spread: Option<OneWayFigure>,
    /// The clocks.
    pub clocks: ClockReport,
}

/// A figure with its bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneWayFigure {
    /// `one_way_time_ns.p50`.
    pub name: &'static str,
    /// Nanoseconds; `null` where it is refused.
    pub value: Option<f64>,
    /// Possible error because of the clocks, nanoseconds.
    pub bound: f64,
    /// Why there is no value.
    pub refused: Option<String>,
}

/// Offset and drift of two clocks, from exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockReport {
    /// Number of exchanges.
    pub exchanges: usize,
    /// Seconds between the first and the last.
    pub seconds: f64,
    /// The smallest round trip, nanoseconds.
    pub round_trip_ns_min: i64,
    /// Offset of the other clock at the first exchange, nanoseconds.
    pub offset_ns_first: f64,
    /// Offset at the last exchange, nanoseconds.
    pub offset_ns_last: f64,
    /// Possible error of these, nanoseconds.
    pub offset_bound_ns: f64,
    /// Drift of the other clock, parts per million; positive if it is faster.
    pub drift_ppm: f64,
    /// Possible error of the drift, parts per million.
    pub drift_bound_ppm: f64,
}

/// Why there is no one-way figure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OneWayRefusal {
    /// The exchanges cannot be used.
    #[error("L20: {0}")]
    Clocks(#[from] Refusal),
    /// The clocks were not watched while messages went.
    #[error(
        "L20: clocks must be watched before, during and after the messages: {what}; run \
        weigh clock HOST from before the first message to after the last"
    )]
    Unwatched {
        /// What is missing.
        what: String,
    },
    /// A message arrived before it can have been sent.
    #[error(
        "L20: message {} arrived {} before it was sent, and the clocks are known to within {}: a \
         clock was set, the stamps are of other clocks, or messages went the other way (--back)",
        count(*.number as u64),
        span(*.early_ns),
        span(*.bound_ns)
    )]
    BeforeItWasSent {
        /// Its number, from 1.
        number: usize,
        /// How much too early, nanoseconds.
        early_ns: f64,
        /// Possible error of the clocks, nanoseconds.
        bound_ns: f64,
    },
    /// Nothing arrived.
    #[error("no message arrived: no delay to report")]
    NothingArrived,
}

impl ClockReport {
    /// Computes offset and drift from these exchanges.
    ///
    /// # Errors
    /// If they cannot be used.
    pub fn of(exchanges: &[Exchange]) -> Result<(ClockReport, ClockPair), Refusal> {
        let clocks = ClockPair::of(exchanges, RESOLUTION_NS)?;
        let (first, last) = clocks.span();
        let (at_first, at_last) = (clocks.offset(first), clocks.offset(last));
        let drift = clocks.drift();
        let report = ClockReport {
            exchanges: exchanges.len(),
            seconds: (last - first) as f64 / 1e9,
            round_trip_ns_min: clocks.round_trip_min(),
            offset_ns_first: at_first.value,
            offset_ns_last: at_last.value,
            offset_bound_ns: at_first.bound.max(at_last.bound),
            drift_ppm: drift.value * 1e6,
            drift_bound_ppm: drift.bound * 1e6,
        };
        Ok((report, clocks))
    }
}

impl OneWay {
    /// Computes the delays of `messages`, with clocks watched by `exchanges`.
    ///
    /// # Errors
    /// If no delay can be computed.
    pub fn of(
        messages: &[Message],
        exchanges: &[Exchange],
        direction: Direction,
    ) -> Result<OneWay, OneWayRefusal> {
        let (report, clocks) = ClockReport::of(exchanges)?;
        let arrived: Vec<(i64, i64)> =
            messages.iter().filter_map(|own| Some((own.sent_ns, own.received_ns?))).collect();
        if arrived.is_empty() {
            return Err(OneWayRefusal::NothingArrived);
        }
        let mut delays = Vec::with_capacity(arrived.len());
        let mut bound: f64 = 0.0;
        for (sent, received) in &arrived {
            let delay = match direction {
                Direction::There => clocks.there(*sent, *received),
                Direction::Back => clocks.back(*sent, *received),
            };
            bound = bound.max(delay.bound);
            delays.push(delay.value);
        }
        if let Some(number) = delays.iter().position(|delay| *delay < -bound) {
            let early_ns = -delays[number];
            let number = number + 1;
            return Err(OneWayRefusal::BeforeItWasSent { number, early_ns, bound_ns: bound });
        }
        // Checked later, because stamps of other clocks would be reported as unwatched.
        check_watched(&arrived, exchanges, &clocks, direction)?;
        let lost = messages.len() - arrived.len();
        delays.extend(std::iter::repeat_n(f64::INFINITY, lost));
        delays.sort_by(f64::total_cmp);
        let all = Delays { sorted: &delays, lost };
        Ok(OneWay {
            schema: SCHEMA,
            direction,
            received: arrived.len(),
            lost,
            clock_bound_ns: bound,
            delays: FIGURES.iter().map(|(name, q)| all.figure(name, *q, bound)).collect(),
            spread: spread((&arrived, lost), &clocks, direction),
            clocks: report,
        })
    }
}

/// Sorted delays; those of lost messages are infinite.
struct Delays<'d> {
    sorted: &'d [f64],
    lost: usize,
}

impl Delays<'_> {
    /// A quantile of all messages; `None` if it falls among the lost.
    fn quantile(&self, q: f64) -> Option<f64> {
        Some(nearest_rank(self.sorted, q)).filter(|delay| delay.is_finite())
    }

    fn figure(&self, name: &'static str, q: f64, bound: f64) -> OneWayFigure {
        let Some(value) = self.quantile(q) else {
            let refused = Some(format!("falls among the {} lost messages", self.lost));
            return OneWayFigure { name, value: None, bound, refused };
        };
        if value.abs() <= bound {
            let refused = Some(format!(
                "L20: the clocks are known to within {}, and the figure is {}",
                span(bound),
                span(value)
            ));
            return OneWayFigure { name, value: None, bound, refused };
        }
        OneWayFigure { name, value: Some(value), bound, refused: None }
    }
}

/// Possible error by drift alone of how much longer slow messages took than the middle one. The
/// offset is equal for both.
fn spread(
    (arrived, lost): (&[(i64, i64)], usize),
    clocks: &ClockPair,
    direction: Direction,
) -> Option<OneWayFigure> {
    let (excess, first) = (clocks.excess(), *arrived.first()?);
    let apart = |(sent, received): (i64, i64)| i128::from(received) - i128::from(sent);
    let sign = if direction == Direction::There { -1.0 } else { 1.0 };
    let other = |message: (i64, i64)| other_stamp(message, direction);
    let relative = arrived.iter().map(|message| {
        let since = other(*message).saturating_sub(other(first)) as f64;
        (apart(*message) - apart(first)) as f64 + sign * excess.value * since
    });
    let mut sorted: Vec<f64> = relative.chain(std::iter::repeat_n(f64::INFINITY, lost)).collect();
    sorted.sort_by(f64::total_cmp);
    let all = Delays { sorted: &sorted, lost };
    let value = all.quantile(0.99)? - all.quantile(0.5)?;
    let from = arrived.iter().map(|message| other(*message)).min()?;
    let to = arrived.iter().map(|message| other(*message)).max()?;
    let bound = excess.bound * to.saturating_sub(from) as f64;
    let name = "one_way_time_ns.p99_less_p50";
    let is_known = value > bound;
    let refused = (!is_known).then(|| {
        format!("L20: drift alone could cause {}, and the figure is {}", span(bound), span(value))
    });
    Some(OneWayFigure { name, value: is_known.then_some(value), bound, refused })
}

/// The stamp of the host that answered exchanges: drift counts from when it was made.
fn other_stamp((sent, received): (i64, i64), direction: Direction) -> i64 {
    match direction {
        Direction::There => received,
        Direction::Back => sent,
    }
}

/// When a message left and arrived, on the clock of the host that asked.
fn own_times((sent, received): (i64, i64), clocks: &ClockPair, direction: Direction) -> [i64; 2] {
    match direction {
        Direction::There => [sent, clocks.own(received)],
        Direction::Back => [clocks.own(sent), received],
    }
}

/// Whether there were exchanges before the first message left, after the last had arrived, and
/// between.
fn check_watched(
    arrived: &[(i64, i64)],
    exchanges: &[Exchange],
    clocks: &ClockPair,
    direction: Direction,
) -> Result<(), OneWayRefusal> {
    let own = arrived.iter().flat_map(|message| own_times(*message, clocks, direction));
    let (first, last) = own.fold((i64::MAX, i64::MIN), |(a, b), at| (a.min(at), b.max(at)));
    let unwatched = |what: String| Err(OneWayRefusal::Unwatched { what });
    let begin = exchanges.iter().map(|exchange| exchange.sent).min().unwrap_or(i64::MAX);
    let end = exchanges.iter().map(|exchange| exchange.received).max().unwrap_or(i64::MIN);
    if begin > first {
        let late = span(begin.saturating_sub(first) as f64);
        return unwatched(format!("the first exchange came {late} after the first message"));
    }
    if end < last {
        let early = span(last.saturating_sub(end) as f64);
        return unwatched(format!("the last exchange ended {early} before the last message"));
    }
    let is_during = |exchange: &Exchange| exchange.sent >= first && exchange.received <= last;
    // A burst may be shorter than the pause between two exchanges.
    let pause = end.saturating_sub(begin) / i64::try_from(exchanges.len()).unwrap_or(i64::MAX);
    if last - first > 2 * pause && !exchanges.iter().any(is_during) {
        return unwatched("no exchange was between the first message and the last".to_owned());
    }
    Ok(())
}

/// The figures reported of the delays.
const FIGURES: [(&str, f64); 4] = [
    ("one_way_time_ns.min", 0.0),
    ("one_way_time_ns.p50", 0.5),
    ("one_way_time_ns.p90", 0.9),
    ("one_way_time_ns.p99", 0.99),
];

/// Version of the JSON document.
pub const SCHEMA: &str = "weigh/one-way/1";

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_795_219_200_000_000_000;

    /// 50 ms ahead, and 100 ppm faster.
    fn other(own: i64) -> i64 {
        own + 50_000_000 + (own - START) / 10_000
    }

    /// Ten exchanges a second of 0.4 ms each.
    fn exchanges(seconds: i64) -> Vec<Exchange> {
        let exchange = |sent: i64| Exchange {
            sent,
            reached: other(sent + 200_000),
            answered: other(sent + 200_000),
            received: sent + 400_000,
        };
        (0..seconds * 10).map(|step| exchange(START + step * 100_000_000)).collect()
    }

    /// A message every tenth second from the tenth second on. Most take 10 s, some 14.
    fn messages(count: i64, direction: Direction) -> Vec<Message> {
        let message = |step: i64| {
            let left = START + 10_000_000_000 + step * 100_000_000;
            let delay = if step % 20 == 0 { 14_000_000_000 } else { 10_000_000_000 };
            let (sent_ns, received_ns) = match direction {
                Direction::There => (left, other(left + delay)),
                Direction::Back => (other(left), left + delay),
            };
            Message { sent_ns, received_ns: Some(received_ns) }
        };
        (0..count).map(message).collect()
    }

    #[test]
    fn delays_of_seconds_and_their_spread_lie_within_their_bounds() {
        for direction in [Direction::There, Direction::Back] {
            let told = OneWay::of(&messages(200, direction), &exchanges(60), direction).unwrap();
            assert!(told.clock_bound_ns < 300_000.0, "{told:?}");
            for (figure, truth) in told.delays.iter().zip([10e9, 10e9, 10e9, 14e9]) {
                let off = figure.value.unwrap() - truth;
                assert!(off.abs() <= figure.bound, "{direction:?}: {off} in {figure:?}");
            }
            let spread = told.spread.unwrap();
            let off = spread.value.unwrap() - 4e9;
            // Stamps are whole nanoseconds. By the time of the other end it would be 400 µs off.
            assert!(off.abs() <= spread.bound + 2.0, "{direction:?}: {off} in {spread:?}");
            assert!(spread.bound < 200_000.0, "{spread:?}");
        }
    }

    /// The last message leaves at 29.9 s and arrives 10 s later, or left that much earlier than the
    /// exchanges began.
    #[test]
    fn both_ends_of_a_way_must_be_watched() {
        let refused = |exchanges: &[Exchange], direction| match OneWay::of(
            &messages(200, direction),
            exchanges,
            direction,
        ) {
            Err(OneWayRefusal::Unwatched { what }) => what,
            other => panic!("{other:?}"),
        };
        let there = refused(&exchanges(35), Direction::There);
        assert!(there.contains("the last exchange ended"), "{there}");
        let back = refused(&exchanges(60)[150..], Direction::Back);
        assert!(back.contains("the first exchange came"), "{back}");
    }
}
