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

/// A value, and its interval where it has one.
pub(crate) fn between(value: Option<f64>, low: Option<f64>, high: Option<f64>) -> String {
    let value_text = number(value.unwrap_or(f64::INFINITY));
    if low.is_some() && low == high && low == value || value.is_none() && low.is_none() {
        return value_text;
    }
    let (low, high) = (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY));
    format!("{value_text} ({} to {})", number(low), number(high))
}

/// Larger counts are told with three digits.
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
        assert_eq!(between(Some(2.0), Some(1.5), Some(2.5)), "2 (1.50 to 2.50)");
        assert_eq!(between(Some(5.0), Some(5.0), Some(5.0)), "5");
        assert_eq!(between(Some(5.0), Some(5.0), None), "5 (5 to infinity)");
        assert_eq!(between(None, None, None), "infinity");
    }
}
