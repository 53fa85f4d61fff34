//! Outliers. They are shown and never dropped: a slow run is a fact about the target until its
//! cause is known.

use crate::average::median;
use crate::quantile::interpolated;

/// The rule by which a value is an outlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Beyond 1.5 interquartile ranges from the quartiles (J. W. Tukey, "Exploratory Data
    /// Analysis", 1977).
    TukeyFences,
    /// A modified z-score above 3.5: 0.6745 x the distance from the median over the median
    /// distance (B. Iglewicz and D. Hoaglin, 1993).
    MedianDistance,
}

impl Rule {
    /// The words in reports.
    pub fn name(self) -> &'static str {
        match self {
            Rule::TukeyFences => "beyond 1.5 interquartile ranges (Tukey)",
            Rule::MedianDistance => "modified z-score above 3.5 (Iglewicz and Hoaglin)",
        }
    }

    /// The indices of the outliers, in their order. None among fewer than [`VALUES_MIN`] values,
    /// and none by the median distance if half of them are equal.
    pub fn flags(self, values: &[f64]) -> Vec<usize> {
        if values.len() < VALUES_MIN || values.iter().any(|value| !value.is_finite()) {
            return Vec::new();
        }
        let (low, high) = match self {
            Rule::TukeyFences => fences(values),
            Rule::MedianDistance => distance_limits(values),
        };
        (0..values.len()).filter(|&i| values[i] < low || values[i] > high).collect()
    }
}

/// Quartiles of fewer values are not useful.
pub const VALUES_MIN: usize = 5;

fn fences(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (first, third) = (interpolated(&sorted, 0.25), interpolated(&sorted, 0.75));
    let reach = 1.5 * (third - first);
    (first - reach, third + reach)
}

fn distance_limits(values: &[f64]) -> (f64, f64) {
    let centre = median(values).unwrap_or_default();
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    match median(&distances) {
        Some(typical) if typical > 0.0 => {
            let reach = 3.5 / 0.6745 * typical;
            (centre - reach, centre + reach)
        }
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_stands_apart_is_named_by_both_rules() {
        let values = [10.0, 10.2, 9.9, 10.1, 14.0, 9.8, 10.0];
        for rule in [Rule::TukeyFences, Rule::MedianDistance] {
            assert_eq!(rule.flags(&values), [4], "{}", rule.name());
            assert_eq!(rule.flags(&values[..4]), [0; 0]);
        }
        assert!(Rule::MedianDistance.flags(&[1.0, 1.0, 1.0, 1.0, 9.0]).is_empty());
        assert_eq!(Rule::TukeyFences.flags(&[1.0, 1.0, 1.0, 1.0, 9.0]), [4]);
    }
}
