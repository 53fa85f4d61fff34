//! One picture: its option for the chart library and its texts.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use crate::summary::Metric;

/// One picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// A name that can be a file's: `axis-load.connections-response_time_ns.p99`.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Its subject: a metric's name, a cell's number, or what a group has in common.
    pub subject: String,
    /// Part of its subject, if that takes several pictures, such as `1 to 40 of 200`; empty for a
    /// whole.
    pub part: String,
    /// Title, in one line.
    pub title: String,
    /// How to read it, and what was left out.
    pub note: String,
    /// Height of the drawing, CSS pixels; without legend and title.
    pub height: u32,
    /// Parameters of the functions named in the option: the unit, the whole.
    pub about: Value,
    /// The option for ECharts.
    pub option: Value,
}

/// Kind of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A metric of every cell: repetitions, mean, interval.
    Dots,
    /// A metric along a key of the plan, one line for each combination of other keys.
    Axis,
    /// Percentiles of a recorded time, one line per cell.
    Curve,
    /// Where the messages of a cell ended.
    Flow,
    /// The histogram of a time in a cell.
    Histogram,
    /// The course of a cell second by second.
    OverTime,
    /// The cost of a message, by process.
    Cost,
    /// Modelled battery energy of a message, by use.
    Modelled,
    /// Bytes of a message or a session on the wire, by layer.
    Wire,
    /// The route of a message through the stages of a pipeline.
    Way,
    /// One session packet by packet.
    Session,
    /// A search for a limit, trial by trial.
    Search,
    /// Results by load.
    Loads,
}

/// Number of repetitions of these metrics, for a caption: intervals need three.
pub(crate) fn of_repetitions<'m>(metrics: impl IntoIterator<Item = &'m Metric>) -> String {
    let numbers: BTreeSet<u32> = metrics.into_iter().map(|metric| metric.n).collect();
    match (numbers.first(), numbers.last()) {
        (Some(1), Some(1)) => "1 repetition, so there is no interval".to_owned(),
        (Some(2), Some(2)) => "2 repetitions, too few for an interval".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{least} repetitions"),
        (Some(least @ ..3), Some(most)) => {
            format!("{least} to {most} repetitions; no interval below 3")
        }
        (Some(least), Some(most)) => format!("{least} to {most} repetitions"),
        _ => "no repetition".to_owned(),
    }
}

/// The range `first..end` of `all` in words, counted from 1; empty for the whole.
pub(crate) fn part(first: usize, end: usize, all: usize) -> String {
    if end - first == all { String::new() } else { format!("{} to {end} of {all}", first + 1) }
}

/// `value` with five significant digits: more than any picture or table shows, and less than half
/// of the full length.
pub fn lean(value: f64) -> Value {
    rounded(value, 5)
}

/// `value` with this number of significant digits.
pub(crate) fn rounded(value: f64, digits: i32) -> Value {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { Value::from(0) } else { Value::Null };
    }
    let scale = 10f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    let is_whole = rounded.fract() == 0.0 && rounded.abs() < WHOLE_MAX;
    if is_whole { Value::from(rounded as i64) } else { Value::from(rounded) }
}

/// Whole numbers below this are exact as floating point.
const WHOLE_MAX: f64 = 9e15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caption_names_the_repetitions_that_there_were() {
        let of = |numbers: &[usize]| {
            let metrics = numbers.iter().map(|n| Metric::new("window_s", &vec![1.0; *n]));
            of_repetitions(&metrics.collect::<Vec<_>>())
        };
        for (numbers, said) in [
            (&[10, 10][..], "10 repetitions"),
            (&[5, 10], "5 to 10 repetitions"),
            (&[1], "1 repetition, so there is no interval"),
            (&[2, 2], "2 repetitions, too few for an interval"),
            (&[2, 5], "2 to 5 repetitions; no interval below 3"),
        ] {
            assert_eq!(of(numbers), said);
        }
    }

    #[test]
    fn lean_numbers_keep_five_digits() {
        for (value, text) in [
            (0.0, "0"),
            (123_456.7, "123460"),
            (0.012_345_67, "0.012346"),
            (-2.5, "-2.5"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(lean(value).to_string(), text);
        }
    }
}
