//! Oracle O11: the certified values of NIST's Statistical Reference Datasets, univariate summary
//! statistics. The data files carry their source; NumAcc1 to 4 are made here from their definition.

use weigh_stats::estimate::Sample;
use weigh_stats::within_run::autocorrelation;

/// A data set with what NIST certifies to 15 digits.
struct Certified {
    name: &'static str,
    values: Vec<f64>,
    mean: f64,
    deviation: f64,
    autocorrelation: f64,
    /// The digits of the deviation that double precision leaves in the data.
    deviation_digits_min: f64,
}

#[test]
fn certified_values_are_met() {
    let mut sets = vec![
        read("Lew", include_str!("data/nist/Lew.txt")),
        read("Lottery", include_str!("data/nist/Lottery.txt")),
        read("Mavro", include_str!("data/nist/Mavro.txt")),
        read("Michelso", include_str!("data/nist/Michelso.txt")),
        read("PiDigits", include_str!("data/nist/PiDigits.txt")),
    ];
    sets.extend(accuracy_sets());
    println!("{:<9} {:>5} {:>6} {:>6} {:>6}", "", "n", "mean", "sd", "lag 1");
    for set in sets {
        let sample = Sample::of(&set.values).expect("values");
        let mean = digits(sample.mean, set.mean);
        let deviation = digits(sample.standard_deviation(), set.deviation);
        let lag1 = digits(autocorrelation(&set.values, 1), set.autocorrelation);
        println!("{:<9} {:>5} {mean:>6.1} {deviation:>6.1} {lag1:>6.1}", set.name, sample.n);
        assert!(mean >= 13.0, "{}: mean {}", set.name, sample.mean);
        let least = set.deviation_digits_min;
        assert!(deviation >= least, "{}: {}", set.name, sample.standard_deviation());
        assert!(lag1 >= least.min(12.0), "{}: {lag1}", set.name);
    }
}

/// The log relative error: how many digits are right, at most 15.
fn digits(found: f64, certified: f64) -> f64 {
    let error = ((found - certified) / certified).abs();
    if error == 0.0 { 15.0 } else { (-error.log10()).min(15.0) }
}

fn read(name: &'static str, text: &str) -> Certified {
    let certified = |what: &str| -> f64 {
        let line = text.lines().find(|line| line.contains(what)).expect("a certified value");
        line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    Certified {
        name,
        values: lines.map(|line| line.parse().expect("a number a line")).collect(),
        mean: certified("certified mean"),
        deviation: certified("certified standard deviation"),
        autocorrelation: certified("certified lag-1"),
        deviation_digits_min: 12.0,
    }
}

fn accuracy_sets() -> Vec<Certified> {
    let alternating = |base: f64| -> Vec<f64> {
        let pairs = (0..500).flat_map(|_| [base + 0.1, base + 0.3]);
        std::iter::once(base + 0.2).chain(pairs).collect()
    };
    let set = |name, values, mean, deviation, autocorrelation, deviation_digits_min| Certified {
        name,
        values,
        mean,
        deviation,
        autocorrelation,
        deviation_digits_min,
    };
    let first = vec![10_000_001.0, 10_000_003.0, 10_000_002.0];
    vec![
        set("NumAcc1", first, 10_000_002.0, 1.0, -0.5, 15.0),
        set("NumAcc2", alternating(1.0), 1.2, 0.1, -0.999, 13.0),
        set("NumAcc3", alternating(1_000_000.0), 1_000_000.2, 0.1, -0.999, 9.0),
        set("NumAcc4", alternating(10_000_000.0), 10_000_000.2, 0.1, -0.999, 8.0),
    ]
}
