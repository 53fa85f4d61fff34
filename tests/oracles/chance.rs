//! Chance that can be had again: the same seed gives the same trial, Poisson sends are Poisson,
//! and the number of shards changes nothing that is counted.

use weigh_model::load::Topology;
use weigh_model::{Nanos, Pattern};

use crate::noting;
use crate::rig::{Seen, Setup};

/// The moments of all sends of a trial on virtual time.
fn send_times(setup: Setup) -> (Vec<Nanos>, Seen) {
    let (sends, seen) = noting::sends(setup);
    (sends.into_iter().map(|(sent, _)| sent).collect(), seen)
}

/// The Kolmogorov-Smirnov distance of the gaps from the exponential distribution, times the
/// root of their number; 1.628 is its 1 % critical value.
fn distance(times: &[Nanos], mean_ns: f64) -> f64 {
    let mut gaps: Vec<f64> =
        times.windows(2).map(|pair| (pair[1] - pair[0]).0 as f64 / mean_ns).collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let worst = gaps.iter().enumerate().map(|(index, gap)| {
        let theory = 1.0 - (-gap).exp();
        let (below, above) = (index as f64 / n, (index + 1) as f64 / n);
        (theory - below).abs().max((above - theory).abs())
    });
    worst.fold(0.0, f64::max) * n.sqrt()
}

#[test]
fn real_sends_are_poisson() {
    let passed = (0..100)
        .filter(|seed| {
            let setup = Setup::new("tcp", &[("acknowledge", "false")], Pattern::Publish, 1000);
            let (times, _) = send_times(setup.open("poisson", "1000/s").seed(*seed));
            assert_eq!(times.len(), 1000);
            distance(&times, 1e6) < 1.628
        })
        .count();
    println!("sends at 1,000/s: p > 0.01 in {passed} of 100 seeds");
    assert!(passed >= 95, "{passed} of 100 seeds");
}

#[test]
fn the_same_seed_is_the_same_trial() {
    for (protocol, given) in [
        ("tcp", &[][..]),
        ("mqtt", &[("qos", "0")][..]),
        ("mqtt", &[("qos", "2"), ("version", "5")][..]),
    ] {
        let mut setup = Setup::new(protocol, given, Pattern::Deliver, 2000)
            .connections(7)
            .open("poisson", "3000/s");
        setup.link.delay = Nanos::from_micros(80);
        setup.link.jitter = Nanos::from_micros(500);
        setup.link.in_pieces = true;
        let [first, again] = [(); 2].map(|()| setup.on_virtual_time());
        assert_eq!(first.log_hash, again.log_hash);
        assert_eq!(first.ledger(), again.ledger());
        assert_eq!(first.server, again.server);
        let times = |seen: &Seen| {
            let times = seen.outcome.shards.recorder.times();
            times.iter().map(|(name, times)| (*name, times.to_base64())).collect::<Vec<_>>()
        };
        assert_eq!(times(&first), times(&again));
        assert_eq!(first.ledger().lost, Some(0));
        let other = setup.clone().seed(2).on_virtual_time();
        assert_ne!(first.log_hash, other.log_hash);
    }
}

#[test]
fn two_shards_count_what_one_counts() {
    for topology in [Topology::FanIn, Topology::Pairs] {
        for qos in ["0", "1"] {
            let mut setup = Setup::new("mqtt", &[("qos", qos)], Pattern::Deliver, 2000)
                .connections(8)
                .open("constant", "4000/s");
            setup.load.topology = topology;
            setup.load.subscribers = if topology == Topology::Pairs { 8 } else { 1 };
            let one = setup.on_sockets();
            setup.shards = 2;
            let two = setup.on_sockets();
            assert_eq!(one.ledger(), two.ledger(), "{topology:?} {qos}");
            assert_eq!(two.ledger().delivered, Some(2000));
        }
    }
}
