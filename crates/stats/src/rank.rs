//! Tests whether one sample tends to be larger than another, by ranks only: one extreme run cannot
//! decide it. Mann and Whitney's test with the shift of Hodges and Lehmann.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::interval::{Interval, Method};
use crate::{CONFIDENCE, Refusal};

/// The test of "neither tends to be larger" and the shift that fits best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// Number of pairs with left above right, ties counted half.
    pub u: f64,
    /// The two-sided probability of a `u` at least this extreme if neither tends to be larger.
    pub p: f64,
    /// True if `p` and the interval are exact, false if they use the normal approximation.
    pub exact: bool,
    /// The median of all differences left minus right (J. L. Hodges and E. L. Lehmann, 1963).
    pub shift: f64,
    /// The interval of the shift; refused if even all the data do not reach 95 %.
    pub interval: Result<Interval, Refusal>,
}

impl RankTest {
    /// Compares two independent samples. Exact without ties and below [`EXACT_VALUES_BELOW`]
    /// values a side, as R's `wilcox.test` decides it; otherwise the normal approximation.
    ///
    /// # Errors
    /// Without finite values on both sides, or without spread.
    pub fn of(left: &[f64], right: &[f64]) -> Result<RankTest, Refusal> {
        let sides = Sides::of(left, right)?;
        let small = left.len().max(right.len()) < EXACT_VALUES_BELOW;
        if small && !sides.has_ties() { sides.exact() } else { sides.normal() }
    }

    /// The exact test (H. B. Mann and D. R. Whitney, 1947), which needs values without ties; with
    /// them `p` is that of SciPy's `method="exact"`, which ignores ties.
    ///
    /// # Errors
    /// Without finite values on both sides.
    pub fn exact(left: &[f64], right: &[f64]) -> Result<RankTest, Refusal> {
        Sides::of(left, right)?.exact()
    }

    /// The normal approximation with the correction for ties and for continuity. The interval is
    /// that of M. Hollander and D. A. Wolfe (1999), section 4.3, with the same corrections.
    ///
    /// # Errors
    /// Without finite values on both sides, or without spread.
    pub fn normal(left: &[f64], right: &[f64]) -> Result<RankTest, Refusal> {
        Sides::of(left, right)?.normal()
    }
}

struct Sides {
    /// Left values, sorted.
    left: Vec<f64>,
    /// Right values, sorted.
    right: Vec<f64>,
    u: f64,
    /// The sum of t^3 - t over groups of t equal values.
    ties: f64,
}

impl Sides {
    fn of(left: &[f64], right: &[f64]) -> Result<Sides, Refusal> {
        let both = || left.iter().chain(right);
        if left.is_empty() || right.is_empty() || both().any(|value| !value.is_finite()) {
            return Err(Refusal::NoValues);
        }
        let sorted = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            values
        };
        let pooled = sorted(&both().copied().collect::<Vec<f64>>());
        let groups = pooled.chunk_by(|one, other| one == other).map(|group| group.len() as f64);
        let ties = groups.map(|t| t * t * t - t).sum();
        let (left, right) = (sorted(left), sorted(right));
        let below = |value: &f64| {
            let below = right.partition_point(|other| other < value);
            (below + right.partition_point(|other| other <= value)) as f64 / 2.0
        };
        let u = left.iter().map(below).sum();
        Ok(Sides { left, right, u, ties })
    }

    fn has_ties(&self) -> bool {
        self.ties > 0.0
    }

    fn exact(&self) -> Result<RankTest, Refusal> {
        let below = cumulative(self.left.len(), self.right.len());
        let pairs = self.pairs();
        // The distribution is symmetrical, so the far tail is read on the near side; the half left
        // by ties counts as less extreme.
        let near = self.u.min(pairs as f64 - self.u).ceil() as usize;
        let p = (2.0 * below[near]).min(1.0);
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let rank = below.partition_point(|probability| *probability < tail);
        let interval = self.between(rank, Method::HodgesLehmannExact);
        Ok(RankTest { u: self.u, p, exact: true, shift: self.shift(), interval })
    }

    fn normal(&self) -> Result<RankTest, Refusal> {
        let deviation = self.deviation();
        if deviation == 0.0 {
            return Err(Refusal::NoSpread);
        }
        let middle = self.pairs() as f64 / 2.0;
        let normal = Normal::standard();
        let z = ((self.u - middle).abs() - CONTINUITY).max(0.0) / deviation;
        let p = (2.0 * normal.sf(z)).min(1.0);
        let quantile = normal.inverse_cdf(1.0 - (1.0 - CONFIDENCE) / 2.0);
        let rank = (middle - CONTINUITY - quantile * deviation).floor() + 1.0;
        let interval = self.between(rank.max(0.0) as usize, Method::HodgesLehmannNormal);
        Ok(RankTest { u: self.u, p, exact: false, shift: self.shift(), interval })
    }

    fn deviation(&self) -> f64 {
        let all = (self.left.len() + self.right.len()) as f64;
        let spread = all + 1.0 - self.ties / (all * (all - 1.0));
        (self.pairs() as f64 / 12.0 * spread).max(0.0).sqrt()
    }

    fn shift(&self) -> f64 {
        let n = self.pairs();
        (self.difference(n.div_ceil(2)) + self.difference(n / 2 + 1)) / 2.0
    }

    fn pairs(&self) -> usize {
        self.left.len() * self.right.len()
    }

    /// Of all differences left minus right, the one of `rank`, counted from 1, without computing
    /// them all: the smallest number that `rank` of them do not exceed, by bisection.
    fn difference(&self, rank: usize) -> f64 {
        let largest = |sorted: &[f64]| sorted.last().copied().unwrap_or_default();
        let (mut low, mut high) = (
            place(self.left[0] - largest(&self.right)),
            place(largest(&self.left) - self.right[0]),
        );
        while low < high {
            let middle = low + (high - low) / 2;
            if self.up_to(number(middle)) >= rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        number(low)
    }

    /// Number of differences that do not exceed `limit`.
    fn up_to(&self, limit: f64) -> usize {
        let mut from = 0;
        let count = |left: &f64| {
            // A larger left value needs a larger right one.
            while self.right.get(from).is_some_and(|right| left - right > limit) {
                from += 1;
            }
            self.right.len() - from
        };
        self.left.iter().map(count).sum()
    }

    /// From the difference of `rank`, counted from 1, to that of the same rank from above.
    fn between(&self, rank: usize, method: Method) -> Result<Interval, Refusal> {
        let n = self.pairs();
        if rank == 0 {
            let have = self.left.len().min(self.right.len());
            return Err(Refusal::TooFew { have, needed: SHIFT_VALUES_MIN.max(have + 1) });
        }
        let (low, high) = (self.difference(rank), self.difference(n + 1 - rank));
        Ok(Interval { low, high, method })
    }
}

/// The index of a number among all numbers, which are ordered as their bits are once the sign is
/// inverted (IEEE 754, section 5.10).
fn place(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn number(place: u64) -> f64 {
    f64::from_bits(if place >> 63 == 1 { place & !(1 << 63) } else { !place })
}

/// P(U <= u) for all u from 0 on, without ties: the number of ways to choose ranks with a given
/// sum, built up rank by rank from additions of positive numbers only.
fn cumulative(left_n: usize, right_n: usize) -> Vec<f64> {
    let (few, all) = (left_n.min(right_n), left_n + right_n);
    let pairs = left_n * right_n;
    // ways[j][u]: number of choices of j ranks with a sum u above the smallest possible one.
    let mut ways = vec![vec![0.0f64; pairs + 1]; few + 1];
    ways[0][0] = 1.0;
    for rank in 1..=all {
        for chosen in (1..=few.min(rank)).rev() {
            // As the `chosen`-th smallest, this rank is above its lowest possible value by this
            // difference.
            let above = rank - chosen;
            let (before, after) = ways.split_at_mut(chosen);
            for (u, slot) in after[0].iter_mut().enumerate().skip(above) {
                *slot += before[chosen - 1][u - above];
            }
        }
    }
    let total: f64 = ways[few].iter().sum();
    let mut sum = 0.0;
    let add = |count: &f64| {
        sum += count;
        sum / total
    };
    ways[few].iter().map(add).collect()
}

/// R's limit for exact probabilities.
pub const EXACT_VALUES_BELOW: usize = 50;

/// Values a side with which an interval of the shift exists: 4 and 4 can be ordered in 70 ways.
const SHIFT_VALUES_MIN: usize = 4;

const CONTINUITY: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Hollander and Wolfe (1973), page 69: permeability of the human chorioamnion, the example of
    /// R's `wilcox.test`, which gives W = 35 and, one-sided, p = 0.1272.
    #[test]
    fn the_example_of_the_book_comes_out() {
        let at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        let test = RankTest::of(&at_term, &early).unwrap();
        assert_eq!((test.u, test.exact), (35.0, true));
        assert!((test.p / 2.0 - 0.1272).abs() < 5e-5, "{}", test.p);
        assert!((test.shift - 0.305).abs() < 1e-12, "{}", test.shift);
    }

    #[test]
    fn the_distribution_is_that_of_counting() {
        // Of 20 orders of 3 and 3, one has U = 0, one U = 1, two U = 2, three U = 3.
        let below = cumulative(3, 3);
        let expected = [1.0, 2.0, 4.0, 7.0, 10.0].map(|count| count / 20.0);
        assert!(below.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-15));
        assert_eq!(cumulative(40, 49).last(), Some(&1.0));
    }

    #[test]
    fn the_differences_need_not_be_made_to_be_ranked() {
        let mut random = crate::random::Random::new(1);
        let mut draw = |n| (0..n).map(|_| (random.normal() * 4.0).round() / 3.0).collect();
        let (left, right): (Vec<f64>, Vec<f64>) = (draw(23), draw(17));
        let sides = Sides::of(&left, &right).unwrap();
        let mut all: Vec<f64> =
            left.iter().flat_map(|l| right.iter().map(move |r| l - r)).collect();
        all.sort_by(f64::total_cmp);
        for (index, difference) in all.iter().enumerate() {
            assert_eq!(sides.difference(index + 1), *difference);
        }
        let large: Vec<f64> = (0..100_000).map(f64::from).collect();
        assert_eq!(RankTest::of(&large, &large).unwrap().shift, 0.0);
    }

    #[test]
    fn three_a_side_have_no_interval_of_the_shift() {
        let test = RankTest::of(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
        assert_eq!(test.interval, Err(Refusal::TooFew { have: 3, needed: 4 }));
        assert!((test.p - 0.1).abs() < 1e-12);
        assert_eq!(RankTest::of(&[1.0; 3], &[1.0; 3]), Err(Refusal::NoSpread));
        assert_eq!(RankTest::of(&[], &[1.0]), Err(Refusal::NoValues));
    }
}
