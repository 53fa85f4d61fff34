//! Quantiles: the values that they need, and lost messages counted as infinite.

use crate::histogram::Histogram;

/// Minimum of values for a quantile, so that the interval of order statistics at 95 % has an upper
/// end within the data: n >= ln(0.025) / ln(q). 368 for 0.99, 3,688 for 0.999. The quantile `q` is
/// above 0 and below 1; the extremes 0 and 1 are observed, not estimated, and need one value.
pub fn values_needed(q: f64) -> u64 {
    if q > 0.0 && q < 1.0 { (0.025f64.ln() / q.ln()).ceil().max(1.0) as u64 } else { 1 }
}

/// The quantile `q` of all messages when `lost` of them never arrived: the time of a lost message
/// is infinite, so a quantile in the lost share is `None`, as is one without values.
pub fn quantile_with_loss(arrived: &Histogram, lost: u64, q: f64) -> Option<u64> {
    let total = arrived.count() + lost;
    // The product of a decimal fraction and a count may be slightly above a whole number.
    let rank = ((q * total as f64 - ROUNDING).ceil().max(1.0)) as u64;
    if rank > arrived.count() {
        return None;
    }
    // Half a rank below, so that no rounding of the quotient reaches the next value.
    arrived.quantile((rank as f64 - 0.5) / arrived.count() as f64)
}

/// The quantile `q` (0 to 1) of sorted values, interpolated between the two nearest: type 7 of R.
/// J. Hyndman and Y. Fan (1996), the default of R and NumPy. NaN without values.
pub fn interpolated(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// The quantile `q` (0 to 1) of sorted values as one of them: the smallest that a share `q` does
/// not exceed, the nearest rank (type 1 of Hyndman and Fan). NaN without values.
pub fn nearest_rank(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64 - ROUNDING).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).wrapping_sub(1)).copied().unwrap_or(f64::NAN)
}

const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_needs_many_values() {
        assert_eq!(values_needed(0.99), 368);
        assert_eq!(values_needed(0.999), 3688);
        assert_eq!(values_needed(0.5), 6);
        assert_eq!((values_needed(1.0), values_needed(0.0)), (1, 1));
    }

    #[test]
    fn the_two_kinds_of_quantile_differ_as_published() {
        let sorted = [1.0, 2.0, 3.0, 4.0, 10.0];
        assert!((interpolated(&sorted, 0.9) - 7.6).abs() < 1e-12);
        assert_eq!(interpolated(&sorted, 1.0), 10.0);
        assert_eq!(nearest_rank(&sorted, 0.9), 10.0);
        assert_eq!(nearest_rank(&sorted, 0.4), 2.0);
        assert_eq!(nearest_rank(&sorted, 0.0), 1.0);
        assert!(interpolated(&[], 0.5).is_nan() && nearest_rank(&[], 0.5).is_nan());
    }

    #[test]
    fn lost_messages_are_infinitely_late() {
        let mut arrived = Histogram::new();
        (1..=990).for_each(|value| arrived.record(value));
        assert_eq!(quantile_with_loss(&arrived, 0, 0.5), Some(495));
        assert_eq!(quantile_with_loss(&arrived, 10, 0.5), Some(500));
        assert_eq!(quantile_with_loss(&arrived, 10, 0.99), Some(990));
        assert_eq!(quantile_with_loss(&arrived, 11, 0.99), None);
        assert_eq!(quantile_with_loss(&arrived, 10, 1.0), None);
        assert_eq!(quantile_with_loss(&Histogram::new(), 0, 0.5), None);
    }
}
