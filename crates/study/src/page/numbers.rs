//! Figures in the units of a study, as people read them.

use weigh_report::figures::{count, three_digits, time};

/// A figure with its unit: `87.0 %`, `1.76 ms`, `492/s`.
pub(crate) fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "ns" => time(value, false),
        "us" | "µs" => time(value * 1e3, false),
        "ms" => time(value * 1e6, false),
        "s" => time(value * 1e9, false),
        "B" if value >= 1000.0 => format!("{} B", count(value.round() as u64)),
        "" | "1" | "ratio" => three_digits(value),
        "percent" | "%" => format!("{} %", three_digits(value)),
        "1/s" => format!("{}/s", three_digits(value)),
        unit => match unit.split_once('/') {
            Some(("1", each)) => format!("{}/{each}", three_digits(value)),
            Some((whole, each)) => format!("{} a {each}", in_unit(value, whole)),
            None => format!("{} {unit}", three_digits(value)),
        },
    }
}

/// An interval: `1.02 to 1.10`, `at least 3`; empty where there is none.
pub(crate) fn interval(low: Option<f64>, high: Option<f64>, unit: &str) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{} to {}", in_unit(low, unit), in_unit(high, unit)),
        (Some(low), None) => format!("at least {}", in_unit(low, unit)),
        (None, Some(high)) => format!("at most {}", in_unit(high, unit)),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_units() {
        assert_eq!(in_unit(22.63, "percent"), "22.6 %");
        assert_eq!(in_unit(0.0015, "s"), "1.50 ms");
        assert_eq!(in_unit(9985.0, "1/s"), "9,990/s");
        assert_eq!(in_unit(3.84, "1"), "3.84");
        assert_eq!(in_unit(755.0, "mAh"), "755 mAh");
        assert_eq!(in_unit(80.5, "us/message"), "80.5 µs a message");
        assert_eq!(in_unit(599_111.0, "1/min"), "599,000/min");
        assert_eq!(
            (in_unit(28_912.0, "B"), in_unit(272.0, "B")),
            ("28,912 B".into(), "272 B".into())
        );
        assert_eq!(interval(Some(1.0), Some(2.0), "ms"), "1.00 ms to 2.00 ms");
        assert_eq!(interval(Some(1.0), None, "1"), "at least 1.00");
        assert_eq!(interval(None, None, "1"), "");
    }
}
