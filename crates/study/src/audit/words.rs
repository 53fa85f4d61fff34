//! Numbers as findings say them.

pub use weigh_model::numbers::{exact as number, rate, seconds as time};

/// A share of 1 as a percentage: `34.5 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// A factor: `10x`, `0.5x`.
pub fn factor(factor: f64) -> String {
    format!("{}x", number(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!((time(47.8e-6), time(1.371)), ("47.8 µs".into(), "1.371 s".into()));
        assert_eq!((percent(0.0667), percent(1.0)), ("6.67 %".into(), "100 %".into()));
        assert_eq!(factor(10.0), "10x");
    }
}
