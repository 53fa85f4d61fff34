//! Oracles for one direction, on virtual time: what binomial, Gilbert-Elliott and the rate say
//! beforehand, and what must hold for every direction and every traffic.

use proptest::prelude::*;
use statrs::distribution::{Binomial, DiscreteCDF};
use weigh_model::path::{
    BitRate, Direction, GilbertElliott, Jitter, Loss, Path, Reorder, Share, Way,
};
use weigh_model::units::{Bytes, Nanos};
use weigh_testbed::link::line::{Cause, Fate, Line};

fn begun(direction: Direction, seed: u64) -> Line {
    let mut line = Line::new(vec![(Nanos(0), direction)]);
    line.begin(Nanos(0), seed);
    line
}

fn lossy(loss: Loss) -> Direction {
    Direction { loss, ..Direction::free() }
}

/// Which of `packets` packets, a millisecond apart, are lost.
fn losses(direction: &Direction, seed: u64, packets: u64) -> Vec<bool> {
    let mut line = begun(direction.clone(), seed);
    let fate = |number| line.offer(Nanos::from_millis(number), 1000);
    (0..packets).map(fate).map(|fate| fate == Fate::Dropped(Cause::Lost)).collect()
}

fn count(lost: &[bool]) -> u64 {
    lost.iter().filter(|lost| **lost).count() as u64
}

/// The exact interval that holds a binomial count but for one case in a million.
fn binomial_interval(share: f64, packets: u64) -> std::ops::RangeInclusive<u64> {
    let binomial = Binomial::new(share, packets).unwrap();
    binomial.inverse_cdf(5e-7)..=binomial.inverse_cdf(1.0 - 5e-7)
}

#[test]
fn independent_loss_is_binomial() {
    for (share, seed) in [(0.001, 1), (0.01, 2), (0.02, 3), (0.1, 4), (0.5, 5), (0.9, 6)] {
        let lost = count(&losses(&lossy(Loss::Independent(Share(share))), seed, 100_000));
        let interval = binomial_interval(share, 100_000);
        assert!(interval.contains(&lost), "{share}: {lost} not in {interval:?}");
    }
    assert_eq!(count(&losses(&lossy(Loss::Independent(Share::ZERO)), 1, 10_000)), 0);
    assert_eq!(count(&losses(&lossy(Loss::Independent(Share::ALL)), 1, 10_000)), 10_000);
}

/// Independent losses know nothing of each other: after a loss the next is as likely as ever.
/// And a hundred seeds are a hundred different samples.
#[test]
fn independent_losses_are_independent() {
    let direction = lossy(Loss::Independent(Share(0.1)));
    let lost = losses(&direction, 7, 200_000);
    let after_loss = lost.windows(2).filter(|pair| pair[0]).count() as u64;
    let both = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as u64;
    assert!(binomial_interval(0.1, after_loss).contains(&both), "{both} of {after_loss}");
    let over_seeds: u64 = (0..1000).map(|seed| count(&losses(&direction, seed, 100))).sum();
    assert!(binomial_interval(0.1, 100_000).contains(&over_seeds), "{over_seeds}");
}

#[test]
fn the_same_seed_loses_the_same_packets() {
    let direction = lossy(Loss::Independent(Share(0.05)));
    let lost = losses(&direction, 11, 5000);
    assert_eq!(lost, losses(&direction, 11, 5000));
    assert_ne!(lost, losses(&direction, 12, 5000));
    // Neither time nor the queue nor jitter changes which: only those that the queue dropped are
    // missing among the lost.
    let busy = Direction {
        rate: Some(BitRate(1_000_000)),
        queue: Some(Bytes(20_000)),
        jitter: Jitter::Normal { deviation: Nanos::from_millis(3) },
        duplicate: Share(0.1),
        ..direction
    };
    let mut line = begun(busy, 11);
    let mut full = 0;
    for (number, lost) in lost.into_iter().enumerate() {
        match line.offer(Nanos::from_micros(number as u64 * 700), 100 + number as u32 % 1400) {
            Fate::Dropped(Cause::QueueFull) => full += 1,
            fate => assert_eq!(fate == Fate::Dropped(Cause::Lost), lost, "packet {number}"),
        }
    }
    assert!((1000..4900).contains(&full), "the queue dropped {full}: no test of it");
}

/// Elliott's channel: bad with p / (p + r), bursts of 1 / r packets on average (all of them lost
/// in the bad state, none in the good one).
#[test]
fn bursts_are_those_of_gilbert_and_elliott() {
    let (to_bad, to_good) = (0.01, 0.25);
    let share = |share| Share(share);
    let two = GilbertElliott::new(share(to_bad), share(to_good), Share::ALL, Share::ZERO);
    let packets = 2_000_000;
    let lost = losses(&lossy(Loss::GilbertElliott(two)), 21, packets);
    let stationary = to_bad / (to_bad + to_good);
    assert!((Loss::GilbertElliott(two).long_run() - stationary).abs() < 1e-12);
    // The variance of the share is that of a binomial times (1 + rho) / (1 - rho), where rho =
    // 1 - p - r is the correlation of neighbours: five standard errors.
    let rho: f64 = 1.0 - to_bad - to_good;
    let variance = stationary * (1.0 - stationary) / packets as f64 * (1.0 + rho) / (1.0 - rho);
    let found = count(&lost) as f64 / packets as f64;
    assert!((found - stationary).abs() < 5.0 * variance.sqrt(), "{found} for {stationary}");
    let bursts: Vec<usize> =
        lost.split(|lost| !lost).map(<[bool]>::len).filter(|length| *length > 0).collect();
    let number = bursts.len() as f64;
    let mean = bursts.iter().sum::<usize>() as f64 / number;
    // Geometric with mean 1/r and variance (1-r)/r^2.
    let error = ((1.0 - to_good) / (to_good * to_good) / number).sqrt();
    assert!((mean - 1.0 / to_good).abs() < 5.0 * error, "bursts of {mean}");
    let of_one = bursts.iter().filter(|length| **length == 1).count() as u64;
    assert!(binomial_interval(to_good, bursts.len() as u64).contains(&of_one), "{of_one}");
}

#[test]
fn partial_loss_in_both_states_adds_up() {
    let two = GilbertElliott::new(Share(0.05), Share(0.2), Share(0.5), Share(0.01));
    let loss = Loss::GilbertElliott(two);
    assert!((loss.long_run() - (0.2 * 0.5 + 0.8 * 0.01)).abs() < 1e-12);
    let found = count(&losses(&lossy(loss), 22, 1_000_000)) as f64 / 1e6;
    // At most the variance of a sum with the correlation of the states.
    assert!((found - loss.long_run()).abs() < 0.004, "{found}");
    // A channel that never turns bad, and one that never leaves the good state's loss.
    let never = GilbertElliott::new(Share::ZERO, Share::ZERO, Share::ALL, Share::ZERO);
    assert_eq!(count(&losses(&lossy(Loss::GilbertElliott(never)), 1, 1000)), 0);
}

/// The spike's figure: 2,000 packets of 1,028 bytes at once into 10 Mbit/s with 64 kB of queue.
#[test]
fn a_burst_fills_the_queue_and_drains_at_the_rate() {
    let direction = Direction {
        rate: Some(BitRate(10_000_000)),
        queue: Some(Bytes(64_000)),
        overhead: Bytes(0),
        ..Direction::free()
    };
    let mut line = begun(direction, 1);
    let fates: Vec<Fate> = (0..2000).map(|_| line.offer(Nanos(0), 1028)).collect();
    let out: Vec<Nanos> = fates.iter().filter_map(departure).collect();
    assert_eq!(out.len(), 64_000 / 1028);
    for (number, at) in out.iter().enumerate() {
        // 8,224 bits at 10 per microsecond.
        assert_eq!(at.0, (number as u64 + 1) * 822_400);
    }
}

#[test]
fn jitter_has_its_distribution() {
    let base = Nanos::from_millis(100);
    let quantiles = |jitter, at: [f64; 3]| {
        let mut line = begun(Direction { delay: base, jitter, ..Direction::free() }, 31);
        let mut added: Vec<f64> = (0..100_000_u64)
            .map(|number| {
                // Ten seconds apart: no packet holds up another.
                let now = Nanos::from_secs(number * 10);
                let at = departure(&line.offer(now, 100)).unwrap();
                at.as_secs_f64() - (now + base).as_secs_f64()
            })
            .collect();
        added.sort_by(f64::total_cmp);
        at.map(|q| added[(q * 1e5) as usize] * 1e3)
    };
    let millis = Nanos::from_millis;
    for (jitter, at, expected, tolerance) in [
        (Jitter::Uniform { width: millis(10) }, [0.1, 0.5, 0.9], [1.0, 5.0, 9.0], 0.1),
        (Jitter::Normal { deviation: millis(10) }, [0.0228, 0.5, 0.9772], [-20.0, 0.0, 20.0], 0.4),
        (Jitter::Exponential { mean: millis(10) }, [0.1, 0.5, 0.9], [1.0536, 6.931, 23.026], 0.4),
        (
            Jitter::Pareto { scale: millis(10), shape: 2.0, most: millis(50) },
            [0.1, 0.75, 0.99],
            [0.5409, 10.0, 50.0],
            0.3,
        ),
    ] {
        let found = quantiles(jitter, at);
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < tolerance, "{jitter}: {found} for {expected}");
        }
    }
    let late = Direction {
        delay: Nanos::from_millis(1),
        jitter: Jitter::Normal { deviation: Nanos::from_millis(10) },
        ..Direction::free()
    };
    let mut line = begun(late, 1);
    assert!((0..1000).all(|n| {
        let now = Nanos::from_secs(n);
        departure(&line.offer(now, 100)).is_some_and(|at| at >= now)
    }));
}

#[test]
fn shares_of_doubled_and_overtaken_packets() {
    let by = Nanos::from_millis(50);
    let direction = Direction {
        delay: Nanos::from_millis(10),
        duplicate: Share(0.03),
        reorder: Some(Reorder { share: Share(0.02), by }),
        ..Direction::free()
    };
    let mut line = begun(direction, 41);
    let (mut doubled, mut held) = (0, 0);
    for number in 0..100_000 {
        let now = Nanos::from_millis(number);
        let Fate::Leaves { at, twice } = line.offer(now, 500) else { panic!("lost") };
        doubled += u64::from(twice);
        let delay = at.since(now);
        // Who is held back does not hold up the others.
        assert!(delay == Nanos::from_millis(10) || delay == Nanos::from_millis(60), "{delay}");
        held += u64::from(delay > Nanos::from_millis(10));
    }
    assert!(binomial_interval(0.03, 100_000).contains(&doubled), "{doubled}");
    assert!(binomial_interval(0.02, 100_000).contains(&held), "{held}");
}

#[test]
fn steps_count_from_the_beginning() {
    let text = r#"
name = "s"
title = "s"
about = "s"
mtu = 1500
up = { delay = "10ms" }
step = [{ at = "1s", up = { delay = "1ms" } }, { at = "2s", up = { loss = "100%" } }]
"#;
    let mut line = Line::new(Path::parse("s.toml", text).unwrap().over_time(Way::Up));
    let after = |line: &mut Line, millis| {
        let now = Nanos::from_millis(millis);
        departure(&line.offer(now, 100)).map(|at| at.since(now).0 / 1_000_000)
    };
    // Not yet begun: as at 0, however late it is.
    assert_eq!(after(&mut line, 60_000), Some(10));
    line.begin(Nanos::from_secs(100), 1);
    let expected = [(100_990, Some(10)), (101_000, Some(1)), (101_999, Some(1)), (102_000, None)];
    for (millis, delay) in expected {
        assert_eq!(after(&mut line, millis), delay, "at {millis} ms");
    }
    line.begin(Nanos::from_secs(103), 1);
    assert_eq!(after(&mut line, 103_500), Some(10));
}

fn departure(fate: &Fate) -> Option<Nanos> {
    match fate {
        Fate::Leaves { at, .. } => Some(*at),
        Fate::Dropped(_) => None,
    }
}

/// Any direction without reordering, over any three stages.
fn directions() -> impl Strategy<Value = Direction> {
    let rate = prop_oneof![
        Just(None),
        (10_000..2_000_000_000_u64, 1_600..200_000_u64)
            .prop_map(|(rate, queue)| Some((BitRate(rate), Bytes(queue))))
    ];
    let jitter = prop_oneof![
        Just(Jitter::None),
        (0..20_000_000_u64).prop_map(|width| Jitter::Uniform { width: Nanos(width) }),
        (0..20_000_000_u64).prop_map(|sd| Jitter::Normal { deviation: Nanos(sd) }),
        (0..20_000_000_u64).prop_map(|mean| Jitter::Exponential { mean: Nanos(mean) }),
    ];
    (0..100_000_000_u64, jitter, 0.0..0.3, 0.0..0.3, rate).prop_map(
        |(delay, jitter, loss, duplicate, rate)| Direction {
            delay: Nanos(delay),
            jitter,
            loss: Loss::Independent(Share(loss)),
            duplicate: Share(duplicate),
            rate: rate.map(|(rate, _)| rate),
            queue: rate.map(|(_, queue)| queue),
            ..Direction::free()
        },
    )
}

proptest! {
    /// Nothing leaves before it came or before what came earlier, and everything that comes
    /// leaves or has a cause.
    #[test]
    fn order_is_kept_and_nothing_leaves_early(
        stages in prop::collection::vec(directions(), 1..4),
        traffic in prop::collection::vec((0..3_000_000_u64, 20..1500_u32), 1..400),
        seed in any::<u64>(),
    ) {
        let plan = (0_u64..).zip(stages).map(|(n, d)| (Nanos::from_millis(n * 150), d)).collect();
        let mut line = Line::new(plan);
        line.begin(Nanos(0), seed);
        let (mut now, mut last) = (Nanos(0), Nanos(0));
        for (gap, bytes) in traffic {
            now = now + Nanos(gap);
            if let Fate::Leaves { at, .. } = line.offer(now, bytes) {
                prop_assert!(at >= now && at >= last);
                last = at;
            }
        }
    }

    /// Between any two departures no more leaves than the rate carries and one packet; what waits
    /// never exceeds the queue; and a link with a full queue is never idle.
    #[test]
    fn rate_and_queue_are_bounds(
        rate in 50_000..1_000_000_000_u64,
        queue in 1_600..100_000_u64,
        traffic in prop::collection::vec((0..2_000_000_u64, 20..1500_u32), 2..400),
    ) {
        let direction = Direction {
            rate: Some(BitRate(rate)),
            queue: Some(Bytes(queue)),
            overhead: Bytes(14),
            ..Direction::free()
        };
        let mut line = begun(direction, 1);
        let mut now = Nanos(0);
        // Reference: packets in the system as (departure, bytes).
        let mut inside: Vec<(Nanos, u64)> = Vec::new();
        let mut last = Nanos(0);
        for (gap, bytes) in traffic {
            now = now + Nanos(gap);
            inside.retain(|(at, _)| *at > now);
            let waiting: u64 = inside.iter().map(|(_, bytes)| bytes).sum();
            let bytes = u64::from(bytes) + 14;
            match line.offer(now, bytes as u32 - 14) {
                Fate::Dropped(cause) => {
                    prop_assert_eq!(cause, Cause::QueueFull);
                    prop_assert!(waiting + bytes > queue);
                }
                Fate::Leaves { at, .. } => {
                    prop_assert!(waiting + bytes <= queue);
                    // Lindley: it starts when it came or when the one before was through.
                    let start = now.max(last);
                    let exact = bytes as f64 * 8e9 / rate as f64;
                    prop_assert!((at.since(start).0 as f64 - exact).abs() <= 0.501);
                    last = at;
                    inside.push((at, bytes));
                }
            }
        }
    }

    /// A rate that changes carries exactly what it is over time: when the k-th packet of a burst
    /// is through, the integral of the rate is the bits of the first k.
    #[test]
    fn bits_are_conserved_while_the_rate_changes(
        rates in prop::collection::vec(10_000..100_000_000_u64, 1..6),
        every in 1_000_000..50_000_000_u64,
        burst in prop::collection::vec(20..1500_u32, 1..100),
    ) {
        let stage = |(number, rate): (u64, &u64)| {
            let queue = Some(Bytes(1_000_000));
            let direction =
                Direction { rate: Some(BitRate(*rate)), queue, ..Direction::free() };
            (Nanos(number * every), direction)
        };
        let mut line = Line::new((0..).zip(&rates).map(stage).collect());
        line.begin(Nanos(0), 1);
        let carried_by = |at: Nanos| -> f64 {
            let last = rates.len() as u64 - 1;
            (0..).zip(&rates).map(|(number, rate)| {
                let from = number * every;
                let until = if number == last { at.0 } else { at.0.min(from + every) };
                until.saturating_sub(from) as f64 * *rate as f64 / 1e9
            }).sum()
        };
        let mut bits = 0;
        for (number, bytes) in burst.into_iter().enumerate() {
            bits += u64::from(bytes + 14) * 8;
            let at = departure(&line.offer(Nanos(0), bytes)).expect("the queue is large");
            // Half a nanosecond of rounding for each packet, at the highest rate.
            let tolerance = (number as f64 + 1.0) * 0.5 * 100_000_000.0 / 1e9 + 1e-3;
            prop_assert!((carried_by(at) - bits as f64).abs() <= tolerance);
        }
    }
}
