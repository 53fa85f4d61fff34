//! The network between devices and server as numbers: round trip, rates, loss. The time of an
//! exchange follows from them; a loss costs a timer of TCP.

use weigh_model::path::{Direction, Jitter, Path};

use crate::account::Tally;
use crate::drawn::{Drawn, uniform};

/// A path as numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name; empty for a local network without delay.
    pub name: String,
    /// Round trip of small packets, seconds: delays and the mean of their jitter.
    pub round_trip_s: f64,
    /// Spread of the jitter of both directions, seconds.
    pub jitter_s: f64,
    /// Bytes a second from the device, and to it; infinite without a limit.
    pub rates: [f64; 2],
    /// Shares of the packets that are lost from the device, and to it, in the long run.
    pub losses: [f64; 2],
    /// Largest IP packet, bytes.
    pub mtu: u64,
    /// Bytes of the link layer for each packet, from the device and to it.
    pub overheads: [f64; 2],
}

impl Link {
    /// A local network without delay.
    pub fn local() -> Link {
        Link {
            name: String::new(),
            round_trip_s: 0.0,
            jitter_s: 0.0,
            rates: [f64::INFINITY; 2],
            losses: [0.0; 2],
            mtu: 1500,
            overheads: [0.0; 2],
        }
    }

    /// The numbers of a path.
    pub fn of(path: &Path) -> Link {
        let both = [&path.up, &path.down];
        let delay = |own: &Direction| (own.delay + own.jitter.mean()).as_secs_f64();
        let spread = |own: &Direction| match own.jitter {
            Jitter::None => 0.0,
            Jitter::Uniform { width } => width.as_secs_f64() / 2.0,
            // 2.33 standard deviations hold 99 %.
            Jitter::Normal { deviation } => 2.33 * deviation.as_secs_f64(),
            // ln(100) - 1 means above the mean.
            Jitter::Exponential { mean } => 3.605 * mean.as_secs_f64(),
            Jitter::Pareto { most, .. } => most.as_secs_f64(),
        };
        let rate = |own: &Direction| own.rate.map_or(f64::INFINITY, |rate| rate.0 as f64 / 8.0);
        Link {
            name: path.name.clone(),
            round_trip_s: both.iter().map(|own| delay(own)).sum(),
            jitter_s: both.iter().map(|own| spread(own)).sum(),
            rates: both.map(rate),
            losses: both.map(|own| own.loss.long_run()),
            mtu: u64::from(path.mtu),
            overheads: both.map(|own| own.overhead.0 as f64),
        }
    }

    /// Bytes with what is sent again, because a path lost it.
    pub fn with_losses(&self, tally: &Tally) -> f64 {
        let [up, down] = self.losses.map(|loss| 1.0 / (1.0 - loss.min(0.99)));
        tally.up * up + tally.down * down
    }

    /// Bytes that the radio carries besides: its own headers.
    pub fn link_bytes(&self, tally: &Tally) -> f64 {
        tally.up_packets * self.overheads[0] + tally.down_packets * self.overheads[1]
    }

    /// Seconds that these bytes are on the line.
    pub fn line_s(&self, tally: &Tally) -> f64 {
        let up = tally.up + tally.up_packets * self.overheads[0];
        let down = tally.down + tally.down_packets * self.overheads[1];
        up / self.rates[0] + down / self.rates[1]
    }

    /// Time of an exchange: this number of round trips, with these bytes.
    pub fn typical_s(&self, trips: f64, tally: &Tally) -> f64 {
        trips * self.round_trip_s + self.line_s(tally)
    }

    /// The 99th percentile of the same. A lost packet costs a probe (RFC 8985: twice the round
    /// trip) or a timer (RFC 6298, Linux: at least 200 ms above the round trip; 1 s before the
    /// first one is known, as in opening).
    pub fn p99_s(&self, trips: f64, tally: &Tally, opens: bool) -> Drawn {
        let base = self.typical_s(trips, tally) + self.jitter_s * trips.max(0.5);
        let losses = self.losses_at_99(tally);
        let low = 2.0 * self.round_trip_s + PROBE_S;
        let high = self.round_trip_s + if opens { FIRST_TIMER_S } else { TIMER_S };
        let [low, high] = [low.min(high), low.max(high)];
        Drawn::between(base + losses * low, base + losses * high, &uniform("timers"))
    }

    /// Number of losses among these packets that 99 % of the exchanges do not exceed.
    fn losses_at_99(&self, tally: &Tally) -> f64 {
        let packets = [tally.up_packets, tally.down_packets];
        let mean: f64 = packets.iter().zip(self.losses).map(|(number, loss)| number * loss).sum();
        // Poisson: independent losses, each rare.
        let (mut term, mut sum, mut losses) = ((-mean).exp(), (-mean).exp(), 0.0);
        while sum < 0.99 && losses < LOSSES_MAX {
            losses += 1.0;
            term *= mean / losses;
            sum += term;
        }
        losses
    }
}

/// RFC 8985, section 7.2, as Linux rounds it.
const PROBE_S: f64 = 0.002;

/// Linux: TCP_RTO_MIN.
const TIMER_S: f64 = 0.2;

/// RFC 6298, section 2.1.
const FIRST_TIMER_S: f64 = 1.0;

const LOSSES_MAX: f64 = 1e4;

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str) -> Link {
        Link::of(&weigh_model::path::preset(name).unwrap())
    }

    /// NB-IoT: 2 x 800 ms, 62 and 26 kbit/s, 8 B for each packet.
    #[test]
    fn an_exchange_takes_its_round_trips_and_its_bytes() {
        let nb_iot = link("nb-iot");
        assert_eq!(nb_iot.round_trip_s, 1.6);
        let tally = Tally {
            up: 767.0,
            up_packets: 1.0,
            down: 317.0,
            down_packets: 1.0,
            ..Tally::default()
        };
        let expected = 775.0 * 8.0 / 62e3 + 325.0 * 8.0 / 26e3;
        assert!((nb_iot.line_s(&tally) - expected).abs() < 1e-12);
        assert!((nb_iot.typical_s(2.0, &tally) - (3.2 + expected)).abs() < 1e-12);
        let p99 = nb_iot.p99_s(2.0, &tally, false);
        assert_eq!(p99.interval()[0], p99.value, "nothing is lost there");
    }

    /// 1 % of 2 packets: 0.98 of the exchanges lose none, so the 99th percentile has one loss.
    #[test]
    fn a_loss_costs_a_timer() {
        let path = Path::of_words(None, [("path.delay", "15ms"), ("path.loss", "1%")]);
        let lossy = Link::of(&path.unwrap().unwrap());
        let tally = Tally { up_packets: 1.0, down_packets: 1.0, ..Tally::default() };
        assert_eq!(lossy.losses_at_99(&tally), 1.0);
        let [low, high] = lossy.p99_s(1.0, &tally, false).interval();
        assert!(low >= 0.03 + 0.06 && high <= 0.03 + 0.23 + 1e-9, "{low} to {high}");
        let few = Tally { up_packets: 0.3, ..Tally::default() };
        assert_eq!(lossy.losses_at_99(&few), 0.0);
    }
}
