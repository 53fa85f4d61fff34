//! Time that a message may take on a path before it is late: the default of `load.timeout` for
//! paths on which [`crate::load::TIMEOUT`] is too short.

use weigh_model::path::{Direction, Path, Way};
use weigh_model::{Load, Nanos, Pattern};

use crate::case::Case;

/// What a message needs of a path without losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trip {
    /// Round trips in sequence: handshakes, greeting, exchange.
    pub round_trips: u32,
    /// Bytes to the target until the message is complete.
    pub up_bytes: u64,
    /// Bytes back.
    pub down_bytes: u64,
}

/// A timeout and its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The shortest timeout that does not call slow messages late, in whole seconds.
    pub timeout: Nanos,
    /// Mean round-trip time of the path at its slowest.
    pub round_trip: Nanos,
    /// Number of round trips of a message.
    pub round_trips: u32,
    /// Transmission time of its bytes.
    pub on_line: Nanos,
}

impl Patience {
    /// Computes the timeout of a message on this path.
    pub fn of(path: &Path, trip: &Trip) -> Patience {
        let over = |way: Way| path.over_time(way).into_iter().map(|(_, direction)| direction);
        let slowest = |way: Way| over(way).map(|own| own.delay + own.jitter.mean()).max();
        let line = |way: Way, bytes: u64| {
            let time = |own: Direction| {
                own.rate.map_or(0.0, |rate| (bytes * BITS_PER_BYTE) as f64 / rate.0 as f64)
            };
            over(way).map(time).fold(0.0, f64::max)
        };
        let round_trip =
            slowest(Way::Up).unwrap_or_default() + slowest(Way::Down).unwrap_or_default();
        let on_line = line(Way::Up, trip.up_bytes) + line(Way::Down, trip.down_bytes);
        let travel_s = round_trip.as_secs_f64() * f64::from(trip.round_trips.max(1));
        let again_s = if round_trip > FIRST_RETRY { FIRST_RETRY.as_secs_f64() } else { 0.0 };
        let whole_s = (TIMES * travel_s + LINE_TIMES * on_line + again_s).ceil();
        Patience {
            timeout: Nanos::from_secs_f64(whole_s),
            round_trip,
            round_trips: trip.round_trips.max(1),
            on_line: Nanos::from_secs_f64(on_line),
        }
    }

    /// The parts in words: `10 x 5 round trips of 1.6 s, 3 x 900 ms on the line`.
    pub fn words(&self) -> String {
        let trips = match self.round_trips {
            1 => format!("{TIMES} x the round trip of {}", self.round_trip),
            number => format!("{TIMES} x {number} round trips of {}", self.round_trip),
        };
        match self.on_line {
            short if short < Nanos::from_millis(10) => trips,
            on_line => format!("{trips}, {LINE_TIMES} x {on_line} on the line"),
        }
    }
}

/// Messages of a load that share the link: those in flight of a closed loop.
pub fn in_flight(load: &Load) -> u64 {
    match load.arrival.is_open() {
        true => 1,
        false => u64::from(load.connections) * u64::from(load.window_within(WINDOW_MAX)),
    }
}

/// Lengthens the default timeouts of cases whose path needs it. All cases get the longest one,
/// because cases with different timeouts could not be compared. `is_given` is true for timeouts of
/// the user, which stay; `patience` is the time that messages of a case need.
pub fn lengthen(
    cases: &mut [Case],
    is_given: impl Fn(usize) -> bool,
    patience: impl Fn(&Case) -> Option<Patience>,
) {
    let free = |(index, _): &(usize, &Case)| !is_given(*index);
    let needed = cases.iter().enumerate().filter(free);
    let needed = needed.filter_map(|(_, case)| patience(case)).map(|own| own.timeout).max();
    let Some(needed) = needed else { return };
    for (index, case) in cases.iter_mut().enumerate() {
        if !is_given(index) && case.load.pattern != Pattern::Hold {
            case.load.timeout = case.load.timeout.max(needed);
        }
    }
}

/// Round trips in a timeout: TCP repeats a lost packet after about one round trip, then after two,
/// four and eight (RFC 6298, section 5.5), so ten cover three losses in a row.
const TIMES: f64 = 10.0;

/// Factor for transmission: headers and repeated packets at most double it, and others queue
/// (chosen).
const LINE_TIMES: f64 = 3.0;

/// The first retransmission timeout of a connection (RFC 6298, section 2.1): on longer paths the
/// first packet is sent twice without a loss.
const FIRST_RETRY: Nanos = Nanos::from_secs(1);

/// Assumed window if the protocol sets it.
const WINDOW_MAX: u32 = 64;

const BITS_PER_BYTE: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        let head = "name = \"p\"\ntitle = \"P\"\nabout = \"A path.\"\nmtu = 1500\n";
        Path::parse("p.toml", &format!("{head}{text}")).unwrap()
    }

    /// 1.6 s of round trip, five of them: 80 s; 5,000 bytes down at 26 kbit/s: 1.54 s, three
    /// times; and 1 s for the first packet that is sent again.
    #[test]
    fn handshakes_bytes_and_the_first_retry_count() {
        let slow = path(
            "[up]\ndelay = \"800ms\"\nrate = \"62kbit/s\"\nqueue = \"8KB\"\n\
             [down]\ndelay = \"800ms\"\nrate = \"26kbit/s\"\nqueue = \"8KB\"\n",
        );
        let trip = Trip { round_trips: 5, up_bytes: 0, down_bytes: 5_000 };
        let patience = Patience::of(&slow, &trip);
        assert_eq!(patience.timeout, Nanos::from_secs(86));
        assert_eq!(patience.words(), "10 x 5 round trips of 1.6 s, 3 x 1.538 s on the line");
        let one = Patience::of(&slow, &Trip { round_trips: 1, up_bytes: 0, down_bytes: 0 });
        assert_eq!(one.timeout, Nanos::from_secs(17));
        assert_eq!(one.words(), "10 x the round trip of 1.6 s");
    }

    #[test]
    fn the_slowest_step_counts_and_a_free_path_needs_nothing() {
        let steps = path(
            "[up]\ndelay = \"10ms\"\n[[step]]\nat = \"1s\"\nup = { delay = \"2s\" }\n\
             [[step]]\nat = \"2s\"\nup = { delay = \"10ms\" }\n",
        );
        let trip = Trip { round_trips: 1, ..Trip::default() };
        assert_eq!(Patience::of(&steps, &trip).timeout, Nanos::from_secs(21));
        let free = Path::named("loopback", |_| unreachable!()).unwrap();
        assert_eq!(Patience::of(&free, &trip).timeout, Nanos(0));
    }
}
