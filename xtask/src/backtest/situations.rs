//! The situations that are drawn, and those that are set. What is drawn is within the loads of a
//! calibration: up to 60,000 connections without TLS and 10,000 inside it, up to 10,000 messages/s
//! on kept connections, bodies up to 8 KiB.

use weigh_advice::Criterion;
use weigh_advice::situation::{Device, Needs, Network, ShareWord, Situation, TlsWish};
use weigh_model::Nanos;
use weigh_model::protocol::Guarantee;
use weigh_model::units::Bytes;
use weigh_stats::random::Random;

/// The seed of all thirty.
pub(crate) const SEED: u64 = 20_261_126;

/// Devices, seconds between two messages of a device, and bytes of a body.
pub(crate) type Sends = [f64; 3];

/// A situation with MQTT and HTTP to choose from.
pub(crate) fn situation(kind: &str, matters: Criterion, sends: Sends, tls: TlsWish) -> Situation {
    let [devices, every_s, size] = sends;
    let every = Nanos::from_millis((every_s * 1e3).round().max(1.0) as u64);
    let mut own = Situation::new(devices as u64, every, Bytes(size as u64));
    kind.clone_into(&mut own.name);
    own.options = vec!["mqtt".to_owned(), "http".to_owned()];
    own.matters = vec![matters];
    own.network.tls = tls;
    own.server.memory = Bytes(4 << 30);
    own.server.headroom = ShareWord(1.0);
    own
}

/// Ten within what a calibration measures. The criteria are those of the list in issue 24 that a
/// trial of seconds can measure: mostly the server's processor, and bytes.
pub(crate) fn inside() -> Vec<Situation> {
    let mut random = Random::new(SEED);
    let shift: Vec<f64> = (0..4).map(|_| random.next_f64()).collect();
    let matters = [
        Criterion::ServerCpu,
        Criterion::Bytes,
        Criterion::ServerCpu,
        Criterion::Bytes,
        Criterion::ServerCpu,
    ];
    let one = |index: usize| {
        let place =
            |dimension: usize, base: usize| (halton(index + 1, base) + shift[dimension]).fract();
        let at = |dimension: usize, base: usize, low: f64, high: f64| {
            low * (high / low).powf(place(dimension, base))
        };
        let tls = if index.is_multiple_of(2) { TlsWish::Off } else { TlsWish::On };
        let most = if tls == TlsWish::On { 10_000.0 } else { 20_000.0 };
        let devices = at(0, 2, 50.0, most).round();
        let rate = at(1, 3, 50.0, 8_000.0).min(devices * 100.0);
        let size = at(2, 5, 32.0, 2_000.0).round();
        let mut own = situation("inside", matters[index % 5], [devices, devices / rate, size], tls);
        // Half of the users accept a loss.
        if place(3, 7) < 0.5 {
            own.needs.guarantee = Guarantee::AtMostOnce;
        }
        own
    };
    (0..10).map(one).collect()
}

/// Eight at the edges: the most connections, the highest rate, large bodies, slow paths, batteries.
pub(crate) fn edges() -> Vec<Situation> {
    let of = |matters, sends, tls| situation("edge", matters, sends, tls);
    let (on, off) = (TlsWish::On, TlsWish::Off);
    let path = |own: Situation, name: &str| {
        let network = Network { path: Some(name.to_owned()), ..own.network };
        Situation { network, ..own }
    };
    let answered = |own: Situation, ms: u64| {
        let latency = Some(Nanos::from_millis(ms));
        Situation { needs: Needs { latency, ..own.needs }, ..own }
    };
    let powered = |own: Situation| {
        let device = Device {
            model: "nrf9160".to_owned(),
            radio: "nb-iot".to_owned(),
            battery: None,
            lifetime: None,
        };
        path(Situation { device: Some(device), ..own }, "nb-iot")
    };
    vec![
        // An answer within 120 ms on LTE leaves no time to open a connection.
        answered(path(of(Criterion::Memory, [20_000.0, 60.0, 72.0], off), "lte"), 120),
        answered(path(of(Criterion::Memory, [9_500.0, 60.0, 72.0], on), "lte"), 120),
        of(Criterion::ServerCpu, [50.0, 0.005, 64.0], off),
        of(Criterion::ServerCpu, [20.0, 0.014, 8_000.0], off),
        path(of(Criterion::Latency, [10.0, 5.0, 64.0], off), "satellite"),
        path(of(Criterion::Latency, [10.0, 10.0, 64.0], off), "nb-iot"),
        powered(of(Criterion::Energy, [10.0, 3_600.0, 200.0], off)),
        powered(of(Criterion::Energy, [10.0, 60.0, 200.0], off)),
    ]
}

/// Four that must be refused: a rate, a size, a protocol and a broker that were never measured.
pub(crate) fn outside() -> Vec<Situation> {
    let of = |sends: Sends, options: &[&str]| {
        let own = situation("outside", Criterion::ServerCpu, sends, TlsWish::Off);
        let options = options.iter().map(|own| (*own).to_owned()).collect();
        Situation { options, ..own }
    };
    vec![
        of([1_000.0, 0.01, 64.0], &["mqtt", "http"]),
        of([2_000.0, 60.0, 1_000_000.0], &["mqtt", "http"]),
        of([100.0, 60.0, 64.0], &["coap"]),
        of([100.0, 60.0, 64.0], &["nanomq"]),
    ]
}

/// Three from threads: UMH#1607 (500 to 1,000 messages/s), PicoMQTT#74 (1,000 devices over TLS),
/// and study 000 (farms with a reading a minute).
pub(crate) fn users() -> Vec<Situation> {
    let of = |matters, sends, tls| situation("user", matters, sends, tls);
    vec![
        of(Criterion::ServerCpu, [100.0, 0.1, 125.0], TlsWish::Off),
        of(Criterion::ServerCpu, [1_000.0, 10.0, 125.0], TlsWish::On),
        of(Criterion::Memory, [60_000.0, 60.0, 72.0], TlsWish::Off),
    ]
}

/// The radical inverse of `index`.
fn halton(index: usize, base: usize) -> f64 {
    let (mut left, mut share, mut sum) = (index, 1.0, 0.0);
    while left > 0 {
        share /= base as f64;
        sum += share * (left % base) as f64;
        left /= base;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that is drawn is within the calibration, and both wishes for a guarantee occur.
    #[test]
    fn what_is_drawn_is_within_the_calibration() {
        let all = inside();
        for own in &all {
            let most = if own.network.tls == TlsWish::On { 10_000 } else { 60_000 };
            assert!(own.traffic.devices <= most, "{own:?}");
            assert!(own.rate_per_s() <= 10_000.0 && own.traffic.size.0 <= 8_192, "{own:?}");
            own.check().expect("a situation");
        }
        let lax = all.iter().filter(|own| own.guarantee() == Guarantee::AtMostOnce).count();
        assert!((2..=8).contains(&lax), "{lax} of 10");
        for own in edges().iter().chain(&outside()).chain(&users()) {
            own.check().expect("a situation");
        }
        assert_eq!((edges().len(), outside().len(), users().len()), (8, 4, 3));
    }

    #[test]
    fn the_radical_inverse_fills_the_interval() {
        let first: Vec<f64> = (1..=4).map(|index| halton(index, 2)).collect();
        assert_eq!(first, [0.5, 0.25, 0.75, 0.125]);
    }
}
