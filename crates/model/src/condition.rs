//! A sentence about a figure that holds or does not: what thresholds, stop rules of an axis and
//! `weigh diff --fail-if` are made of. The grammar is the one that users of k6 know
//! (`response_time p(95) < 500ms`), beside the metric names of the summary
//! (`response_time_ns.p95 < 500ms`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{parse_duration, parse_rate, parse_size};

/// A sentence about a figure: `response_time_ns.p99 < 500ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    /// The flat name of the figure: a metric (`response_time_ns.p99`), or [`LOSS_RATIO`] or
    /// [`LOST`].
    pub metric: String,
    /// How the figure stands to the limit.
    pub operator: Operator,
    /// What it is held against.
    pub limit: Limit,
}

/// How a figure stands to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

/// What a figure is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A value in the metric's own unit.
    Value(f64),
    /// A signed change against another run, as a share: `+5%` is 0.05. Only a comparison of two
    /// runs can decide it.
    Change(f64),
}

/// The share of sent messages that were lost; not measured where nobody knows what arrived.
pub const LOSS_RATIO: &str = "loss_ratio";

/// The number of lost messages.
pub const LOST: &str = "lost";

impl Condition {
    /// Whether it holds of `figure`, in the metric's own unit. `None` for a limit that is a change
    /// against another run, see [`Condition::holds_for_change`].
    pub fn holds(&self, figure: f64) -> Option<bool> {
        match self.limit {
            Limit::Value(limit) => Some(self.operator.holds(figure, limit)),
            Limit::Change(_) => None,
        }
    }

    /// Whether it holds of `ratio`, new over old. `None` for a limit that is a value.
    pub fn holds_for_change(&self, ratio: f64) -> Option<bool> {
        match self.limit {
            Limit::Value(_) => None,
            Limit::Change(share) => Some(self.operator.holds(ratio - 1.0, share)),
        }
    }
}

impl Operator {
    fn holds(self, figure: f64, limit: f64) -> bool {
        match self {
            Operator::Less => figure < limit,
            Operator::LessOrEqual => figure <= limit,
            Operator::Greater => figure > limit,
            Operator::GreaterOrEqual => figure >= limit,
            Operator::Equal => figure == limit,
            Operator::NotEqual => figure != limit,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = String;

    /// Reads a sentence; the error says what to type instead.
    fn from_str(text: &str) -> Result<Condition, String> {
        let text = text.trim();
        if text == "first loss" {
            let (metric, limit) = (LOST.to_owned(), Limit::Value(0.0));
            return Ok(Condition {
                text: text.to_owned(),
                metric,
                operator: Operator::Greater,
                limit,
            });
        }
        let (left, operator, right) = split(text).ok_or_else(|| {
            format!(
                "{text:?} is no condition: type a metric, one of < <= > >= == !=, and a limit, \
                 such as \"response_time p(95) < 500ms\" or \"loss == 0\""
            )
        })?;
        let metric = metric(left.trim())?;
        let limit =
            limit(&metric, right.trim()).map_err(|problem| format!("{text:?}: {problem}"))?;
        Ok(Condition { text: text.to_owned(), metric, operator, limit })
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Condition, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

fn split(text: &str) -> Option<(&str, Operator, &str)> {
    let at = text.find(['<', '>', '=', '!'])?;
    let (left, rest) = text.split_at(at);
    OPERATORS
        .iter()
        .find_map(|(sign, operator)| Some((left, *operator, rest.strip_prefix(sign)?)))
        .filter(|(left, _, right)| !left.trim().is_empty() && !right.trim().is_empty())
}

/// The flat name of what is written as `response_time p(95)`, `response_time_ns.p95` or `loss`.
fn metric(text: &str) -> Result<String, String> {
    let (name, statistic) = match text.split_once(char::is_whitespace) {
        Some((name, statistic)) => (name, Some(statistic.trim())),
        None => (text, None),
    };
    match (name, statistic) {
        ("loss", None) => return Ok(LOSS_RATIO.to_owned()),
        ("errors", None | Some("rate")) => return Ok("errors_ratio".to_owned()),
        _ => {}
    }
    let is_time = |name: &str| TIMES.contains(&name);
    let full = if is_time(name) { format!("{name}_ns") } else { name.to_owned() };
    match statistic {
        Some(words) => Ok(format!("{full}.{}", statistic_part(words)?)),
        None if is_time(name) || full.ends_with("_ns") => Err(format!(
            "{name} has no single value: say which, such as \"{name} p(95)\", avg, med or max"
        )),
        None => Ok(full),
    }
}

/// The part of a metric's name for k6's word: `p(95)` is `p95`, `avg` is `mean`.
fn statistic_part(words: &str) -> Result<&'static str, String> {
    let plain: String = words.chars().filter(|c| !c.is_whitespace()).collect();
    STATISTICS.iter().find(|(word, _)| *word == plain).map(|(_, part)| *part).ok_or_else(|| {
        let known: Vec<&str> = STATISTICS.iter().map(|(word, _)| *word).collect();
        format!("{words:?} is no statistic that is kept: type one of {}", known.join(", "))
    })
}

/// The limit in the unit of `metric`, which its name tells.
fn limit(metric: &str, text: &str) -> Result<Limit, String> {
    if text.starts_with(['+', '-']) {
        let share = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        return share
            .filter(|share| share.is_finite())
            .map(|share| Limit::Change(share / 100.0))
            .ok_or_else(|| format!("{text:?} is no change: type one with its sign, such as +5%"));
    }
    let family = metric.split('.').next().unwrap_or(metric);
    let value = match () {
        () if family.ends_with("_ns") => parse_duration(text)?.0 as f64,
        () if family.ends_with("_time_s") => parse_duration(text)?.as_secs_f64(),
        () if family.ends_with("_ratio") => share(text)?,
        () if family.ends_with("_percent") => number(text.strip_suffix('%').unwrap_or(text))?,
        () if family.ends_with("_us_per_message") => match number(text) {
            Ok(value) => value,
            Err(_) => parse_duration(text)?.0 as f64 / 1e3,
        },
        () if family.ends_with("_bytes_per_s") || family.ends_with("_per_s") => {
            number(text).or_else(|_| parse_rate(text).map(|rate| rate.per_second))?
        }
        () if family.ends_with("_bytes") || family.contains("bytes_per") => {
            number(text).or_else(|_| parse_size(text).map(|size| size as f64))?
        }
        () => number(text)?,
    };
    Ok(Limit::Value(value))
}

/// A share: `0.5`, `1 %`, `0`.
fn share(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%') {
        Some(percent) => Ok(number(percent)? / 100.0),
        None => number(text),
    }
}

fn number(text: &str) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| format!("{text:?} is not a number in the unit of this metric"))
}

const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::LessOrEqual),
    ("<", Operator::Less),
    (">=", Operator::GreaterOrEqual),
    (">", Operator::Greater),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
];

/// Recorded times under the names that a user types.
const TIMES: [&str; 7] = [
    "response_time",
    "delivery_time",
    "service_time",
    "one_way_time",
    "connect_time",
    "send_lag",
    "error_time",
];

const STATISTICS: [(&str, &str); 10] = [
    ("avg", "mean"),
    ("mean", "mean"),
    ("med", "p50"),
    ("max", "max"),
    ("p(50)", "p50"),
    ("p(90)", "p90"),
    ("p(95)", "p95"),
    ("p(99)", "p99"),
    ("p(99.9)", "p999"),
    ("p(100)", "max"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Condition {
        text.parse().unwrap_or_else(|problem| panic!("{text}: {problem}"))
    }

    #[test]
    fn the_grammar_of_k6_and_flat_names_mean_the_same() {
        for text in ["response_time p(95) < 500ms", "response_time_ns.p95<500ms"] {
            let condition = read(text);
            assert_eq!(condition.metric, "response_time_ns.p95");
            assert_eq!(condition.limit, Limit::Value(5e8));
            assert_eq!((condition.holds(4e8), condition.holds(5e8)), (Some(true), Some(false)));
        }
        assert_eq!(read("loss == 0").metric, LOSS_RATIO);
        assert_eq!(read("loss < 1 %").limit, Limit::Value(0.01));
        assert_eq!(read("first loss").holds(1.0), Some(true));
        assert_eq!(read("target_cpu_percent.mean >= 99").limit, Limit::Value(99.0));
        assert_eq!(read("throughput_out_per_s > 5k/s").limit, Limit::Value(5000.0));
        assert_eq!(read("target_memory_bytes.max < 1MiB").limit, Limit::Value(1_048_576.0));
        assert_eq!(read("response_time avg < 1ms").metric, "response_time_ns.mean");
    }

    #[test]
    fn a_change_is_decided_by_a_ratio_only() {
        let condition = read("response_time_ns.p99 > +5%");
        assert_eq!(condition.limit, Limit::Change(0.05));
        assert_eq!(condition.holds(1.0), None);
        assert_eq!(condition.holds_for_change(1.06), Some(true));
        assert_eq!(condition.holds_for_change(1.04), Some(false));
    }

    #[test]
    fn nonsense_is_told_what_to_type() {
        for (text, mend) in [
            ("response_time < 5ms", "p(95)"),
            ("response_time p(42) < 5ms", "p(99.9)"),
            ("response_time p(95) < 500", "500ms"),
            ("p95", "such as"),
            ("loss == none", "not a number"),
            ("response_time_ns.p99 > +5", "+5%"),
            ("< 5", "such as"),
        ] {
            let problem = text.parse::<Condition>().unwrap_err();
            assert!(problem.contains(mend), "{text}: {problem}");
        }
    }

    #[test]
    fn it_is_written_as_it_was_read() {
        let text = "response_time p(95) < 500ms";
        let json = serde_json::to_string(&read(text)).unwrap();
        assert_eq!(json, format!("{text:?}"));
        assert_eq!(serde_json::from_str::<Condition>(&json).unwrap(), read(text));
    }
}
