//! What the claim C07 of the study tcp-mqtt rests on, simulated: how often a t interval of 150
//! transfer times holds their mean, and how often the interval that a verdict is made of, that of
//! the 90 % quantile over the median, holds the true ratio. Times are quiet, log-normal, of two
//! modes, and with the tail of the preset `wifi`. `cargo test -p weigh-study --test transfer_times
//! -- --nocapture` prints the tables.

use toml::Table;
use weigh_model::path::{Jitter, preset};
use weigh_stats::propagation::Known;
use weigh_stats::quantile::nearest_rank;
use weigh_stats::random::Random;

/// A distribution of transfer times.
struct Kind {
    name: &'static str,
    draw: Box<dyn Fn(&mut Random) -> f64>,
}

/// What is true of a kind: from so many draws that their own error is far below any interval's.
struct Truth {
    mean: f64,
    ratio: f64,
}

/// Where the intervals of many sets lay, as shares of all sets.
#[derive(Default)]
struct Held {
    sets: u32,
    within: u32,
    above: u32,
}

impl Kind {
    fn new(name: &'static str, draw: impl Fn(&mut Random) -> f64 + 'static) -> Kind {
        Kind { name, draw: Box::new(draw) }
    }

    /// The times of one repetition, sorted.
    fn transfers(&self, random: &mut Random) -> Vec<f64> {
        let mut times: Vec<f64> = (0..TRANSFERS).map(|_| (self.draw)(random)).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    fn truth(&self) -> Truth {
        let mut random = Random::new(1);
        let mut times: Vec<f64> = (0..TRUTH_DRAWS).map(|_| (self.draw)(&mut random)).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        times.sort_by(f64::total_cmp);
        Truth { mean, ratio: ratio(&times) }
    }
}

impl Held {
    /// Counts an interval: above means that all of it lies above the truth.
    fn count(&mut self, known: Option<Known>, truth: f64) {
        let interval = known.and_then(Known::student_interval);
        let (low, high) = interval.expect("several values have an interval");
        self.sets += 1;
        self.within += u32::from(low <= truth && truth <= high);
        self.above += u32::from(low > truth);
    }

    fn share(&self, of: u32) -> f64 {
        f64::from(of) / f64::from(self.sets)
    }
}

/// The figure of the claim's conditions: the 90 % quantile over the median, each as a trial's
/// histogram has it.
fn ratio(sorted: &[f64]) -> f64 {
    nearest_rank(sorted, 0.9) / nearest_rank(sorted, 0.5)
}

fn log_normal(name: &'static str, sigma: f64) -> Kind {
    Kind::new(name, move |random| (sigma * random.normal()).exp())
}

/// Times near one, and a share of them that is so many times as long; either mode spreads by 10 %.
fn two_modes(name: &'static str, share: f64, times: f64) -> Kind {
    Kind::new(name, move |random| {
        let centre = if random.next_f64() < share { times } else { 1.0 };
        centre * (0.1 * random.normal()).exp()
    })
}

/// There and back across the preset: what its two directions add at random, and its delay.
fn wifi() -> Kind {
    let path = preset("wifi").expect("it comes with the program");
    let delay = (path.up.delay.0 + path.down.delay.0) as f64;
    let Jitter::Pareto { scale, shape, most } = path.down.jitter else {
        panic!("the preset's tail is another: {:?}", path.down.jitter)
    };
    assert_eq!(path.up.jitter, Jitter::None);
    Kind::new("the preset wifi", move |random| {
        let tail = (1.0 - random.next_f64()).powf(-1.0 / shape) - 1.0;
        delay + (tail * scale.0 as f64).min(most.0 as f64)
    })
}

/// 150 transfers of one session each: how often Student's interval at 95 % holds their mean.
#[test]
fn a_long_tail_is_held_less_often_than_it_says() {
    println!("{:<28} {:>7} {:>7}", "150 transfers", "p90/p50", "held %");
    for (kind, least, most) in [
        (log_normal("quiet, deviation 0.02", 0.02), 0.940, 0.960),
        (two_modes("one in five, three times", 0.2, 3.0), 0.940, 0.960),
        (log_normal("log-normal 0.5", 0.5), 0.935, 0.955),
        // The bound of the claim: where the ratio is three the share is about 93.5.
        (log_normal("log-normal, ratio 3", BOUND.ln() / NORMAL_90), 0.925, 0.945),
        (log_normal("log-normal 1", 1.0), 0.915, 0.935),
        (wifi(), 0.86, 0.90),
    ] {
        let truth = kind.truth();
        let mut random = Random::new(2);
        let mut held = Held::default();
        for _ in 0..SETS {
            held.count(Known::mean_of(&kind.transfers(&mut random)), truth.mean);
        }
        let share = held.share(held.within);
        println!("{:<28} {:>7.2} {:>7.1}", kind.name, truth.ratio, 100.0 * share);
        assert!((least..=most).contains(&share), "{}: {share}", kind.name);
    }
}

/// Repetitions of 150 transfers each: how often the interval of the claim's figure holds the true
/// ratio, and how often all of it lies above, which would contradict the claim falsely.
#[test]
fn the_ratio_of_quantiles_is_held_about_as_often_as_it_says() {
    println!("{:<28} {:>7} {:>3} {:>7} {:>7}", "repetitions", "p90/p50", "n", "held %", "above %");
    for (kind, least) in [
        (log_normal("quiet, deviation 0.02", 0.02), 0.90),
        (log_normal("log-normal 0.5", 0.5), 0.90),
        (log_normal("log-normal, ratio 3", BOUND.ln() / NORMAL_90), 0.90),
        (log_normal("log-normal 1", 1.0), 0.90),
        // A quantile of 150 values lies a little too low, which shows where they spread little
        // about it and repetitions are many: the interval then lies below, in the claim's favour.
        (two_modes("one in five, three times", 0.2, 3.0), 0.85),
        (two_modes("one in five, seven times", 0.2, 7.0), 0.85),
        (wifi(), 0.90),
    ] {
        let truth = kind.truth();
        for n in REPETITIONS {
            let held = over_repetitions(&kind, n, truth.ratio);
            let (within, above) = (held.share(held.within), held.share(held.above));
            println!(
                "{:<28} {:>7.2} {n:>3} {:>7.1} {:>7.1}",
                kind.name,
                truth.ratio,
                100.0 * within,
                100.0 * above
            );
            assert!(within >= least, "{}, n = {n}: {within}", kind.name);
            assert!(above <= ABOVE_MOST, "{}, n = {n}: {above} above", kind.name);
        }
    }
}

/// What no interval of this figure can do: where a second mode begins at just the 90 % quantile,
/// repetitions fall on either side of the gap, and more of them make it worse. A verdict on such
/// times would have to ask for another quantile.
#[test]
fn a_mode_that_begins_at_the_quantile_is_not_held() {
    let kind = two_modes("one in ten, five times", 0.1, 5.0);
    let truth = kind.truth();
    let shares = REPETITIONS.map(|n| {
        let held = over_repetitions(&kind, n, truth.ratio);
        println!("{}, n = {n}: {:.1} %", kind.name, 100.0 * held.share(held.within));
        held.share(held.within)
    });
    assert!(shares[2] < 0.8 && shares[2] < shares[0], "{shares:?}");
}

fn over_repetitions(kind: &Kind, n: usize, truth: f64) -> Held {
    let mut random = Random::new(n as u64);
    let mut held = Held::default();
    for _ in 0..SETS {
        let ratios: Vec<f64> = (0..n).map(|_| ratio(&kind.transfers(&mut random))).collect();
        held.count(Known::mean_of(&ratios), truth);
    }
    held
}

/// What is simulated is what is run: as many transfers and repetitions as the study's plans have.
#[test]
fn the_sizes_are_those_of_the_study() {
    let plans: Table = include_str!("../../../studies/tcp-mqtt/plan-right.toml")
        .parse()
        .expect("the study's plans are TOML");
    let number = |plan: &str, path: &[&str]| {
        let of = |table: Option<&toml::Value>, key: &&str| table?.get(key).cloned();
        let found = path.iter().fold(plans.get(plan).cloned(), |at, key| of(at.as_ref(), key));
        found.and_then(|value| value.as_integer()).unwrap_or_else(|| panic!("{plan} {path:?}"))
    };
    for (plan, quick) in [("iterations-quiet", REPETITIONS[0]), ("iterations-busy", REPETITIONS[1])]
    {
        assert_eq!(number(plan, &["load", "messages"]), TRANSFERS as i64);
        assert_eq!(number(plan, &["quick", "repeat", "at_least"]), quick as i64);
        assert_eq!(number(plan, &["repeat", "at_least"]), REPETITIONS[2] as i64);
    }
}

/// Transfers of a repetition, as the paper has them and the plans.
const TRANSFERS: usize = 150;

/// Repetitions at quick scale in a quiet network and in a busy one, and at full scale.
const REPETITIONS: [usize; 3] = [5, 6, 20];

/// The ratio that the claim's conditions ask about.
const BOUND: f64 = 3.0;

/// The 90 % quantile of the standard normal distribution (Abramowitz and Stegun, table 26.5).
const NORMAL_90: f64 = 1.281_551_6;

/// Sets of each kind: one standard error of a share of 95 % is 0.5 percentage points.
const SETS: u32 = 2_000;

/// Of an honest interval at 95 %, 2.5 % of the sets lie above; and three standard errors.
const ABOVE_MOST: f64 = 0.035;

/// So many that the error of a truth is a hundredth of an interval's width.
const TRUTH_DRAWS: usize = 1_000_000;
