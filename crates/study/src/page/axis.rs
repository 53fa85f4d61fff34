//! The axes of a chart: their range and the numbers at their ticks.

use weigh_report::figures::count;
use weigh_report::figures::marks::{mark_at_most, next_mark, nice};

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    /// Quantity on the axis, with its unit.
    pub(super) label: String,
    /// True if equal distances are equal ratios.
    is_log: bool,
    /// The value at its beginning.
    low: f64,
    /// The value at its end.
    high: f64,
    /// The values that have a number beside them.
    pub(super) marks: Vec<f64>,
}

impl Axis {
    /// An axis for `values`; `reaches` are ends of intervals, which it shows as far as they do not
    /// press the values together. A logarithmic axis without a value above 0 becomes linear.
    pub(super) fn over(
        label: &str,
        unit: &str,
        is_log: bool,
        values: impl Iterator<Item = f64>,
        reaches: impl Iterator<Item = f64>,
    ) -> Axis {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        let reaches = reaches.filter(|end| end.is_finite() && *end <= REACH_MAX * most);
        let most = reaches.fold(most, f64::max);
        let positive = values.iter().copied().filter(|value| *value > 0.0);
        let least_above_0 = positive.fold(f64::INFINITY, f64::min);
        let label = labelled(label, unit);
        if is_log && least_above_0.is_finite() {
            return Axis::logarithmic(label, least_above_0, most);
        }
        let least = values.iter().copied().fold(0.0, f64::min);
        Axis::linear(label, least, most)
    }

    /// A linear axis from `low` (at most 0) to `high`, each moved outwards to the next mark.
    pub(super) fn linear(label: String, low: f64, high: f64) -> Axis {
        let high = if high > low { high } else { low + 1.0 };
        let step = nice((high - low) / STEPS);
        let first = (low / step).floor() as i64;
        let last = (high / step - 1e-9).ceil() as i64;
        let marks: Vec<f64> = (first..=last).map(|nth| nth as f64 * step).collect();
        let ends = (marks[0], marks[marks.len() - 1]);
        Axis { label, is_log: false, low: ends.0, high: ends.1, marks }
    }

    /// A logarithmic axis whose ends are marks: 1, 2 and 5 times the powers of ten, or the powers
    /// alone where there are many.
    pub(super) fn logarithmic(label: String, low: f64, high: f64) -> Axis {
        let mut marks = vec![mark_at_most(low)];
        if low >= high && marks[0] >= low * (1.0 - 1e-9) {
            // A lone value is not drawn on the edge.
            marks = vec![mark_at_most(low * 0.9)];
            marks.push(next_mark(marks[0]));
            marks.push(next_mark(marks[1]));
        }
        while marks[marks.len() - 1] < high.max(low) * (1.0 - 1e-9) || marks.len() < 2 {
            marks.push(next_mark(marks[marks.len() - 1]));
        }
        let (low, high) = (marks[0], marks[marks.len() - 1]);
        if marks.len() > LOG_MARKS_MAX {
            marks.retain(|mark| (mark.log10() - mark.log10().round()).abs() < 1e-9);
        }
        let every = marks.len().div_ceil(LOG_MARKS_MAX);
        let marks = marks.into_iter().step_by(every).collect();
        Axis { label, is_log: true, low, high, marks }
    }

    /// True if equal distances are equal ratios.
    pub(super) fn is_log(&self) -> bool {
        self.is_log
    }

    /// Where a value lies: 0 at the beginning, 1 at the end, less or more beyond. `None` where a
    /// logarithmic axis has no place for it.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        if !self.is_log {
            return Some((value - self.low) / (self.high - self.low));
        }
        let part = |value: f64| value.ln();
        (value > 0.0).then(|| (part(value) - part(self.low)) / (part(self.high) - part(self.low)))
    }

    /// The value at this part of the axis, the inverse of [`Axis::place`].
    pub(super) fn value(&self, part: f64) -> f64 {
        match self.is_log {
            true => self.low * (self.high / self.low).powf(part),
            false => self.low + (self.high - self.low) * part,
        }
    }
}

/// The label with its unit in brackets, where there is one.
fn labelled(label: &str, unit: &str) -> String {
    let unit = match unit {
        "" | "1" | "ratio" => return label.to_owned(),
        "percent" => "%",
        "us" => "µs",
        "1/s" => "per second",
        unit => match unit.strip_prefix("us/") {
            Some(each) => return format!("{label} (µs/{each})"),
            None => unit,
        },
    };
    format!("{label} ({unit})")
}

/// A number beside an axis: `0.5`, `200`, `5,000`, `10k`, `1.5M`.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    let shortest = |value: f64| format!("{value:.3e}").parse().unwrap_or(value).to_string();
    if size >= 1e6 {
        return format!("{}M", shortest(value / 1e6));
    }
    if size >= 1e4 {
        return format!("{}k", shortest(value / 1e3));
    }
    if size >= 1e3 && value.fract() == 0.0 && value > 0.0 {
        return count(value as u64);
    }
    shortest(value)
}

/// Steps of a linear axis, about.
const STEPS: f64 = 5.0;

/// Marks of a logarithmic axis, at most.
const LOG_MARKS_MAX: usize = 7;

/// Intervals that end beyond this multiple of the largest value are drawn up to the axis end.
const REACH_MAX: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(values: &[f64], reaches: &[f64]) -> Axis {
        Axis::over("y", "", false, values.iter().copied(), reaches.iter().copied())
    }

    #[test]
    fn a_linear_axis_begins_at_0_and_shows_intervals_that_are_not_endless() {
        assert_eq!(linear(&[17.0, 97.0], &[102.0]).marks.last(), Some(&125.0));
        assert_eq!(linear(&[17.0, 97.0], &[1e6]).marks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(linear(&[-3.0, 9.0], &[]).marks.first(), Some(&-5.0));
        assert_eq!(linear(&[], &[]).place(0.0), Some(0.0), "an axis of nothing is one still");
    }

    #[test]
    fn a_logarithmic_axis_has_equal_distances_for_equal_ratios_and_no_place_for_0() {
        let axis = Axis::over("x", "s", true, [0.0, 1.0, 100.0].into_iter(), [].into_iter());
        assert_eq!((axis.place(1.0), axis.place(0.0)), (Some(0.0), None));
        assert!((axis.place(10.0).unwrap() - 0.5).abs() < 1e-12);
        assert!((axis.value(0.5) - 10.0).abs() < 1e-9);
        assert_eq!(axis.marks, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        let wide = Axis::over("x", "", true, [1.0, 1e9].into_iter(), [].into_iter());
        assert!(wide.marks.len() <= LOG_MARKS_MAX, "{:?}", wide.marks);
        let none = Axis::over("x", "", true, [0.0].into_iter(), [].into_iter());
        assert!(!none.is_log(), "without a value above 0 it cannot be logarithmic");
    }

    #[test]
    fn numbers_of_an_axis_are_short_and_have_no_unit() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (200.0, "200"),
            (5_000.0, "5,000"),
            (10_000.0, "10k"),
            (1_500_000.0, "1.5M"),
            (0.1 + 0.2, "0.3"),
            (-5.0, "-5"),
        ] {
            assert_eq!(short(value), text);
        }
        let axis = Axis::over("round trip", "us", false, [1.0].into_iter(), [].into_iter());
        assert_eq!(axis.label, "round trip (µs)");
        assert_eq!(labelled("cost", "us/message"), "cost (µs/message)");
    }
}
