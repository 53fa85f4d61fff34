//! The interval of a quantile from the values themselves, without any assumption about their
//! distribution: between two order statistics whose ranks follow from binomial probabilities (W. R.
//! Thompson, 1936; H. A. David and H. N. Nagaraja, "Order Statistics", section 7.1).
//!
//! The values must be independent: for correlated values of one run the interval is too narrow; see
//! [`crate::within_run`].

use crate::interval::{Interval, Method};
use crate::quantile::{nearest_rank, values_needed};
use crate::{CONFIDENCE, Refusal};

/// A quantile with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileInterval {
    /// The quantile of the sample, by the nearest rank.
    pub value: f64,
    /// Holds the true quantile with at least [`CONFIDENCE`].
    pub interval: Interval,
    /// The ranks of its ends, counted from 1.
    pub ranks: (u64, u64),
}

/// The interval of the quantile `q`, above 0 and below 1, of sorted values.
///
/// # Errors
/// If there are too few values in a tail.
pub fn quantile_interval(sorted: &[f64], q: f64) -> Result<QuantileInterval, Refusal> {
    let ranks = ranks(sorted.len() as u64, q)?;
    let at = |rank: u64| sorted[rank as usize - 1];
    Ok(QuantileInterval { value: nearest_rank(sorted, q), interval: order(ranks, at), ranks })
}

/// The ranks, counted from 1, of the two order statistics of `n` values around the quantile `q`: at
/// most 2.5 % of its probability is outside on either side, exactly.
///
/// # Errors
/// If there are too few values in a tail.
pub fn ranks(n: u64, q: f64) -> Result<(u64, u64), Refusal> {
    let needed = values_needed(q).max(values_needed(1.0 - q));
    if !(q > 0.0 && q < 1.0) || n < needed {
        return Err(Refusal::TailTooThin { q, have: n, needed });
    }
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let (first, weights) = binomial(n, q);
    let allowed = tail * weights.iter().sum::<f64>();
    let within = |weights: &mut dyn Iterator<Item = &f64>| {
        let mut sum = 0.0;
        weights
            .take_while(|weight| {
                sum += **weight;
                sum <= allowed
            })
            .count() as u64
    };
    // As many of the smallest counts as fit into the tail are below the low rank, and likewise
    // above; a count k means that k values do not exceed the quantile.
    let low = first + within(&mut weights.iter());
    let last = first + weights.len() as u64 - 1;
    let high = last + 1 - within(&mut weights.iter().rev());
    Ok((low.max(1), high.min(n)))
}

/// Unnormalised probabilities of a binomial distribution from the smallest count that matters on,
/// by recursion from the mode: no logarithm of a factorial loses digits.
fn binomial(n: u64, q: f64) -> (u64, Vec<f64>) {
    let mode = (((n + 1) as f64 * q) as u64).min(n);
    let odds = q / (1.0 - q);
    let mut weights = Vec::new();
    let (mut weight, mut count) = (1.0, mode);
    while count > 0 && weight > NEGLIGIBLE {
        weight *= count as f64 / ((n - count + 1) as f64 * odds);
        count -= 1;
        weights.push(weight);
    }
    let first = count;
    weights.reverse();
    weights.push(1.0);
    (weight, count) = (1.0, mode);
    while count < n && weight > NEGLIGIBLE {
        weight *= (n - count) as f64 / (count + 1) as f64 * odds;
        count += 1;
        weights.push(weight);
    }
    (first, weights)
}

fn order(ranks: (u64, u64), at: impl Fn(u64) -> f64) -> Interval {
    Interval { low: at(ranks.0), high: at(ranks.1), method: Method::OrderStatistics }
}

/// Probabilities below this share of the largest change no digit.
const NEGLIGIBLE: f64 = 1e-22;

#[cfg(test)]
mod tests {
    use statrs::distribution::{Binomial, DiscreteCDF};

    use super::*;

    /// Ranks for the median as in the tables, for example W. J. Conover, "Practical Nonparametric
    /// Statistics": 6 values give all of them, 10 give the 2nd and 9th, 20 the 6th and 15th.
    #[test]
    fn ranks_of_the_median_are_those_of_the_tables() {
        for (n, expected) in [(6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (100, (40, 61))] {
            assert_eq!(ranks(n, 0.5), Ok(expected), "{n}");
        }
    }

    #[test]
    fn the_tails_left_out_are_as_large_as_they_may_be() {
        for n in [37u64, 368, 1000, 9000] {
            for q in [0.1, 0.5, 0.9, 0.99] {
                let Ok((low, high)) = ranks(n, q) else { continue };
                let binomial = Binomial::new(q, n).unwrap();
                assert!(binomial.cdf(low - 1) <= 0.025 + 1e-12, "{n} {q}");
                assert!(binomial.cdf(low) > 0.025 - 1e-12, "{n} {q}");
                assert!(binomial.sf(high - 1) <= 0.025 + 1e-12, "{n} {q}");
                assert!(high == 1 || binomial.sf(high - 2) > 0.025 - 1e-12, "{n} {q}");
            }
        }
    }

    #[test]
    fn a_thin_tail_is_refused_with_what_it_needs() {
        let refusal = ranks(200, 0.999).unwrap_err();
        assert_eq!(refusal, Refusal::TailTooThin { q: 0.999, have: 200, needed: 3688 });
        assert!(refusal.to_string().contains("3688"), "{refusal}");
        assert!(ranks(3688, 0.999).is_ok() && ranks(3687, 0.999).is_err());
        assert!(ranks(100, 0.0).is_err() && ranks(100, 1.0).is_err());
    }

    #[test]
    fn a_billion_values_are_no_trouble() {
        let (low, high) = ranks(1_000_000_000, 0.5).unwrap();
        let expected = 1.959_964 * 0.5 * 1e9f64.sqrt();
        assert!(((high - low) as f64 / 2.0 / expected - 1.0).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn the_interval_holds_the_value() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        let exact = quantile_interval(&values, 0.9).unwrap();
        assert_eq!((exact.value, exact.interval.contains(900.0)), (900.0, true));
    }
}
