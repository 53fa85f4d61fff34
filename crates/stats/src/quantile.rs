//! Quantiles, and what they need: enough values, and the lost ones counted as infinite.

use crate::histogram::Histogram;

/// How many values a quantile needs at least, so that the interval of order statistics at 95 %
/// has an upper end within the data: n >= ln(0.025) / ln(q). 368 for 0.99, 3,688 for 0.999.
/// The quantile `q` is above 0 and below 1; the extremes 0 and 1 are observed, not estimated, and
/// need one value.
pub fn values_needed(q: f64) -> u64 {
    if q > 0.0 && q < 1.0 { (0.025f64.ln() / q.ln()).ceil().max(1.0) as u64 } else { 1 }
}

/// The quantile `q` of all messages when `lost` of them never arrived: a lost message waits for
/// ever, so a quantile that falls into the lost share is `None`, as is one without values.
pub fn quantile_with_loss(arrived: &Histogram, lost: u64, q: f64) -> Option<u64> {
    let total = arrived.count() + lost;
    // The product of a decimal fraction and a count may come out a hair above a whole number.
    let rank = ((q * total as f64 - ROUNDING).ceil().max(1.0)) as u64;
    if rank > arrived.count() {
        return None;
    }
    // Half a rank below, so that no rounding of the quotient reaches the next value.
    arrived.quantile((rank as f64 - 0.5) / arrived.count() as f64)
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
