//! The statistics kept of every recorded time, and quantiles in names of metrics.

/// The quantile that a metric's name ends with, from 0 to 1: 0.999 for `response_time_ns.p999`.
pub fn quantile_of(metric: &str) -> Option<f64> {
    let digits = metric.rsplit_once(".p")?.1;
    if digits.len() < 2 || !digits.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    format!("0.{digits}").parse().ok().filter(|q: &f64| *q > 0.0)
}

/// The quantile that a metric's name ends with, for people: `p99.9`.
pub fn quantile_word(metric: &str) -> Option<String> {
    quantile_of(metric)?;
    let digits = metric.rsplit_once(".p")?.1;
    let (whole, fraction) = digits.split_at(2);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("p{whole}{point}{fraction}"))
}

/// Quantiles that are kept: the part of the metric's name, and the quantile as a share.
pub const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// All statistics that are kept, as parts of the metric's name.
pub const PARTS: [&str; 7] = ["mean", "p50", "p90", "p95", "p99", "p999", "max"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_quantile_in_numbers_and_words() {
        assert_eq!(quantile_of("response_time_ns.p999"), Some(0.999));
        assert_eq!(quantile_of("response_time_ns.max"), None);
        assert_eq!(quantile_of("wire.bytes_per_message"), None);
        assert_eq!(quantile_word("response_time_ns.p999").as_deref(), Some("p99.9"));
        assert_eq!(quantile_word("response_time_ns.p05").as_deref(), Some("p5"));
    }
}
