//! Numbers as sentences have them.

use weigh_report::figures::{count, three_digits};

/// Three digits, or all of a whole number; `infinity` where nothing bounds it.
pub(crate) fn number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "infinity" } else { "-infinity" }.to_owned();
    }
    let is_count = value.fract() == 0.0 && (0.0..WHOLE_MAX).contains(&value);
    if is_count { count(value as u64) } else { three_digits(value) }
}

/// A value, and its interval where it has one. Each may be infinite.
pub(crate) fn between(value: f64, (low, high): (f64, f64)) -> String {
    if low == high && low == value {
        return number(value);
    }
    format!("{} ({} to {})", number(value), number(low), number(high))
}

/// Larger counts are written with three digits.
const WHOLE_MAX: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_and_measures_have_three_digits() {
        assert_eq!(number(1_362.0), "1,362");
        assert_eq!(number(1_362.4), "1,360");
        assert_eq!(number(0.012_34), "0.0123");
        assert_eq!(number(f64::INFINITY), "infinity");
        let (infinity, without) = (f64::INFINITY, f64::NEG_INFINITY);
        assert_eq!(between(2.0, (1.5, 2.5)), "2 (1.50 to 2.50)");
        assert_eq!(between(5.0, (5.0, 5.0)), "5");
        assert_eq!(between(5.0, (5.0, infinity)), "5 (5 to infinity)");
        assert_eq!(between(infinity, (infinity, infinity)), "infinity");
        assert_eq!(between(without, (without, without)), "-infinity");
        assert_eq!(between(without, (without, 1.0)), "-infinity (-infinity to 1)");
    }
}
