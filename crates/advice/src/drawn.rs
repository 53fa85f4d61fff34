//! A predicted figure: its value, and draws that show how uncertain it is. Figures that depend on
//! the same unknown use the same draws of it, so that their ratio is less uncertain than each of
//! them.

use serde::{Deserialize, Serialize};
use weigh_stats::cost_model::ends;
use weigh_stats::random::Random;

/// Draws of every figure.
pub const DRAWS: usize = 1_000;

/// A figure with its draws; `None` of the draws where nothing is uncertain.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The value.
    pub value: f64,
    /// One value for every draw of the unknowns.
    pub draws: Vec<f64>,
}

/// A figure as a document has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Shown {
    /// The value; null if nothing bounds it.
    #[serde(with = "bound")]
    #[schemars(with = "Option<f64>")]
    pub value: f64,
    /// Lower end of the 95 % interval.
    #[serde(with = "bound")]
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    /// Upper end; null if nothing bounds it.
    #[serde(with = "bound")]
    #[schemars(with = "Option<f64>")]
    pub high: f64,
}

impl Shown {
    /// This figure `factor` times.
    pub fn times(self, factor: f64) -> Shown {
        let [value, low, high] = [self.value, self.low, self.high].map(|own| own * factor);
        Shown { value, low, high }
    }
}

/// Numbers that may be infinite, which JSON has no number for.
mod bound {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    }
}

impl Drawn {
    /// A figure that is known exactly.
    pub fn exact(value: f64) -> Drawn {
        Drawn { value, draws: vec![value; DRAWS] }
    }

    /// A figure between two bounds, anywhere between them with the same probability; `at` has the
    /// place for every draw, so that figures with the same unknown move together.
    pub fn between(low: f64, high: f64, at: &[f64]) -> Drawn {
        let draws = at.iter().map(|share| low + share * (high - low)).collect();
        Drawn { value: (low + high) / 2.0, draws }
    }

    /// Combines two figures, draw by draw.
    pub fn with(&self, other: &Drawn, of: impl Fn(f64, f64) -> f64) -> Drawn {
        let draws = self.draws.iter().zip(&other.draws).map(|(a, b)| of(*a, *b)).collect();
        Drawn { value: of(self.value, other.value), draws }
    }

    /// Computes another figure from this one.
    pub fn map(&self, of: impl Fn(f64) -> f64) -> Drawn {
        Drawn { value: of(self.value), draws: self.draws.iter().map(|own| of(*own)).collect() }
    }

    /// The 95 % interval, which includes the value.
    pub fn interval(&self) -> [f64; 2] {
        let [low, high] = ends(self.draws.clone());
        [low.min(self.value), high.max(self.value)]
    }

    /// As a document has it.
    pub fn shown(&self) -> Shown {
        let [low, high] = self.interval();
        Shown { value: self.value, low, high }
    }

    /// Share of the draws in which this figure is below the other; ties count half.
    pub fn beats(&self, other: &Drawn) -> f64 {
        let one = |(a, b): (&f64, &f64)| match a.total_cmp(b) {
            std::cmp::Ordering::Less => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 0.0,
        };
        let sum: f64 = self.draws.iter().zip(&other.draws).map(one).sum();
        sum / self.draws.len().max(1) as f64
    }

    /// Share of the draws in which this figure is more than `factor` times the other.
    pub fn exceeds(&self, factor: f64, other: &Drawn) -> f64 {
        let above = self.draws.iter().zip(&other.draws).filter(|(a, b)| **a > factor * **b);
        above.count() as f64 / self.draws.len().max(1) as f64
    }
}

/// Numbers from 0 to 1, the same for every figure with this name.
pub fn uniform(name: &str) -> Vec<f64> {
    let mut random = Random::new(seed(name));
    (0..DRAWS).map(|_| random.next_f64()).collect()
}

/// Factors around 1 of which 95 % are within `factor` either way, the same for every figure with
/// this name.
pub fn factors(name: &str, factor: f64) -> Vec<f64> {
    let deviation = factor.max(1.0).ln() / NORMAL;
    normal(name).into_iter().map(|own| (deviation * own).exp()).collect()
}

/// Numbers of the standard normal distribution, the same for every figure with this name.
pub fn normal(name: &str) -> Vec<f64> {
    let mut random = Random::new(seed(name));
    (0..DRAWS).map(|_| random.normal()).collect()
}

/// A seed from a name: FNV-1a.
fn seed(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Standard deviations of a normal distribution to either end of its 95 %.
pub const NORMAL: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_with_one_unknown_move_together() {
        let at = uniform("acknowledgements");
        let (small, large) = (Drawn::between(1.0, 2.0, &at), Drawn::between(1.1, 2.2, &at));
        assert_eq!(small.beats(&large), 1.0, "although their intervals overlap");
        assert!(small.interval()[1] > large.interval()[0]);
        let apart = Drawn::between(1.1, 2.2, &uniform("something else"));
        assert!(small.beats(&apart) < 0.9);
        assert_eq!(Drawn::exact(2.0).beats(&Drawn::exact(2.0)), 0.5);
    }

    #[test]
    fn factors_have_the_spread_that_was_asked_for() {
        let factors = factors("machine", 2.0);
        let within = factors.iter().filter(|own| (0.5..=2.0).contains(*own)).count();
        assert!((930..=970).contains(&within), "{within} of 1000 within a factor of 2");
        assert!(factors.iter().all(|own| *own > 0.0));
    }
}
