//! Checks whether a plateau is the target's: a second generator joins the first at the same total
//! load. If the throughput rises, the first one was the limit.

use weigh_stats::{Comparison, Ratio};

/// Effect of a second generator on the output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Movement {
    /// Output rises by more than 5 %: the one generator was the limit, and the plateau is not the
    /// target's.
    Rises(Ratio),
    /// Output stays within 5 % either way: the plateau is the target's or the path's.
    Stays(Ratio),
    /// Output falls by more than 5 %: more connections or more load slow the target down.
    Falls(Ratio),
    /// These runs do not decide it.
    CannotTell(Option<Ratio>),
}

impl Movement {
    /// Compares the output of runs with two generators with that of runs with one, at the same
    /// offered load and number of connections: one value per run, at least three each, preferably
    /// alternating. The interval is that of the ratio of means (Fieller's); "stays" needs all of it
    /// within 5 % of 1, so "too close to call" is not enough.
    pub fn of(one: &[f64], two: &[f64]) -> Movement {
        let Some(ratio) = Comparison::of(two, one).ratio else { return Movement::CannotTell(None) };
        let (Some(low), Some(high)) = (ratio.low, ratio.high) else {
            return Movement::CannotTell(Some(ratio));
        };
        if low >= 1.0 - SAME_SHARE && high <= 1.0 + SAME_SHARE {
            Movement::Stays(ratio)
        } else if low > 1.0 + SAME_SHARE {
            Movement::Rises(ratio)
        } else if high < 1.0 - SAME_SHARE {
            Movement::Falls(ratio)
        } else {
            Movement::CannotTell(Some(ratio))
        }
    }
}

/// A smaller difference does not make the generator the limit.
const SAME_SHARE: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_interval_shows_is_said() {
        let one = [3000.0, 3010.0, 2990.0, 3005.0, 2995.0];
        let times = |factor: f64| one.map(|value| value * factor);
        assert!(matches!(Movement::of(&one, &times(1.01)), Movement::Stays(_)));
        assert!(matches!(Movement::of(&one, &times(1.8)), Movement::Rises(_)));
        assert!(matches!(Movement::of(&one, &times(0.7)), Movement::Falls(_)));
        let wild = [2000.0, 4100.0, 3100.0, 2500.0, 3400.0];
        assert!(matches!(Movement::of(&one, &wild), Movement::CannotTell(Some(_))));
        assert!(matches!(Movement::of(&one[..2], &one[..2]), Movement::CannotTell(_)));
        assert_eq!(Movement::of(&[], &one), Movement::CannotTell(None));
    }
}
