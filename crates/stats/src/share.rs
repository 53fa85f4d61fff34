//! Bounds of shares, from a count of events among n.

use statrs::distribution::{Beta, ContinuousCDF};

use crate::CONFIDENCE;

/// The largest share that is compatible with no event among `n`, one-sided at 95 %: 1 - 0.05^(1/n),
/// exactly; just below the "rule of three", 3/n. It is 1 for no trials.
pub fn zero_events_share_max(n: u64) -> f64 {
    if n == 0 { 1.0 } else { -((1.0 - CONFIDENCE).ln() / n as f64).exp_m1() }
}

/// The exact two-sided interval at 95 % of a share with `events` events among `n` (C. J. Clopper
/// and E. S. Pearson, 1934). It is 0 to 1 for no trials.
pub fn share_interval(events: u64, n: u64) -> (f64, f64) {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let events = events.min(n);
    let (seen, unseen) = (events as f64, (n - events) as f64);
    let low = match events {
        0 => 0.0,
        _ => beta(seen, unseen + 1.0).inverse_cdf(tail),
    };
    let high = match n - events {
        0 => 1.0,
        _ => beta(seen + 1.0, unseen).inverse_cdf(1.0 - tail),
    };
    (low, high)
}

fn beta(a: f64, b: f64) -> Beta {
    Beta::new(a, b).expect("both shapes are at least 1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_loss_seen_is_not_no_loss() {
        assert!((zero_events_share_max(1) - 0.95).abs() < 1e-15);
        assert!((zero_events_share_max(100) - 0.029_513_049_607_183).abs() < 1e-12);
        for n in [1, 10, 1_000, 10_000_000] {
            assert!(zero_events_share_max(n) < 3.0 / n as f64);
        }
        assert_eq!(zero_events_share_max(0), 1.0);
    }

    /// The known interval of 10 among 100: 4.9005 % to 17.6223 %.
    #[test]
    fn the_exact_interval_of_a_share_is_the_published_one() {
        let (low, high) = share_interval(10, 100);
        assert!((low - 0.049_005).abs() < 1e-5 && (high - 0.176_223).abs() < 1e-5, "{low} {high}");
        assert_eq!(share_interval(0, 10).0, 0.0);
        assert_eq!(share_interval(10, 10).1, 1.0);
        assert_eq!(share_interval(0, 0), (0.0, 1.0));
        // With 0 of n the upper end is 1 - 0.025^(1/n).
        assert!((share_interval(0, 10).1 - (1.0 - 0.025f64.powf(0.1))).abs() < 1e-9);
    }
}
