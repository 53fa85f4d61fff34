//! A condition on a figure: used by thresholds, goals, stop rules of an axis and `--fail-if`. The
//! grammar is the one of k6 (`response_time p(95) < 500ms`), with short names (`p99 < 50ms`, `loss
//! == 0`) and the metric names of the summary (`response_time_ns.p95 < 500ms`).

mod limits;
mod words;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use limits::Limit;
pub use words::{HEADLINE, LOSS_RATIO, SHORT, resolve};

pub use crate::metrics::{quantile_of, quantile_word};

/// A condition on a figure: `response_time_ns.p99 < 500ms`.
///
/// # Examples
///
/// A limit is written with its unit; figures are in the unit of their metric:
///
/// ```
/// use weigh_model::Condition;
///
/// let condition: Condition = "response_time p(99) < 50ms".parse()?;
/// assert_eq!(condition.metric, "response_time_ns.p99");
/// assert_eq!(condition.holds(40e6), Some(true));
/// assert_eq!(condition.negated().to_string(), "response_time p(99) >= 50ms");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    /// The flat name of the figure: a metric (`response_time_ns.p99`), or [`LOSS_RATIO`] or
    /// [`LOST`].
    pub metric: String,
    /// Comparison of the figure with the limit.
    pub operator: Operator,
    /// The limit.
    pub limit: Limit,
}

/// Comparison of a figure with its limit.
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

/// The number of lost messages.
pub const LOST: &str = "lost";

impl Condition {
    /// Returns whether it holds for `figure`, in the metric's own unit. `None` for a limit that is
    /// a change against another run, see [`Condition::holds_for_change`].
    pub fn holds(&self, figure: f64) -> Option<bool> {
        match self.limit {
            Limit::Value(limit) => Some(self.operator.holds(figure, limit)),
            Limit::Change(_) => None,
        }
    }

    /// Returns whether it holds for `ratio`, new over old. `None` for a limit that is a value.
    pub fn holds_for_change(&self, ratio: f64) -> Option<bool> {
        match self.limit {
            Limit::Value(_) => None,
            Limit::Change(share) => Some(self.operator.holds(ratio - 1.0, share)),
        }
    }

    /// Returns the condition that holds if this one does not: `p99 <= 50ms` for `p99 > 50ms`.
    pub fn negated(&self) -> Condition {
        let operator = self.operator.negated();
        let written = split(&self.text).map(|(left, _, right)| (left.trim(), right.trim()));
        let (left, right) = written.unwrap_or((LOST, "0"));
        Condition { text: format!("{left} {operator} {right}"), operator, ..self.clone() }
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

    fn negated(self) -> Operator {
        match self {
            Operator::Less => Operator::GreaterOrEqual,
            Operator::LessOrEqual => Operator::Greater,
            Operator::Greater => Operator::LessOrEqual,
            Operator::GreaterOrEqual => Operator::Less,
            Operator::Equal => Operator::NotEqual,
            Operator::NotEqual => Operator::Equal,
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = OPERATORS.iter().find(|(_, operator)| operator == self);
        f.write_str(sign.map_or("", |(sign, _)| sign))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = String;

    /// Reads a condition; the error contains what to type instead.
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
        if let Some(wrong) = no_comparison(text) {
            return Err(wrong);
        }
        let (left, operator, right) = split(text).ok_or_else(|| no_condition(text))?;
        let metric = words::metric(left.trim())?;
        let limit = limits::limit(&metric, right.trim())
            .map_err(|problem| format!("{text:?}: {problem}"))?;
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

/// The error of several signs that together are not a comparison, such as `>>` and `=>`.
fn no_comparison(text: &str) -> Option<String> {
    let is_sign = |c: char| "<>=!".contains(c);
    let (left, rest) = text.split_at(text.find(is_sign)?);
    let (signs, right) = rest.split_at(rest.find(|c: char| !is_sign(c)).unwrap_or(rest.len()));
    let is_known = signs.len() < 2 || OPERATORS.iter().any(|(known, _)| *known == signs);
    if is_known || left.trim().is_empty() || right.trim().is_empty() {
        return None;
    }
    let meant = match (signs.contains('<'), signs.contains('>'), signs.contains('=')) {
        (true, true, _) => "!=",
        (true, false, true) => "<=",
        (true, false, false) => "<",
        (false, true, true) => ">=",
        (false, true, false) => ">",
        (false, false, _) => "==",
    };
    let [left, right] = [left, right].map(str::trim);
    let corrected = format!("{left} {meant} {right}");
    // What is typed next must be accepted.
    let fix = match corrected.parse::<Condition>() {
        Ok(_) => corrected,
        Err(_) => format!("{left} {meant}\" and a limit with its unit, as in \"p99 > 50ms"),
    };
    Some(format!("{text:?}: {signs:?} is not a comparison: type \"{fix}\""))
}

fn no_condition(text: &str) -> String {
    let single = text.split_once('=').filter(|(left, right)| {
        !left.is_empty() && !left.ends_with(['<', '>', '!', '=']) && !right.starts_with('=')
    });
    match single {
        Some((left, right)) => {
            format!("{text:?} is not a condition: type \"{} == {}\"", left.trim(), right.trim())
        }
        None => format!(
            "{text:?} is not a condition: type a metric, one of < <= > >= == != and a limit, such \
             as \"p99 > 50ms\" or \"loss > 0\"; --fail-if names what must not be true, --goal \
             and thresholds what must"
        ),
    }
}

const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::LessOrEqual),
    ("<", Operator::Less),
    (">=", Operator::GreaterOrEqual),
    (">", Operator::Greater),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::words::LOSS_RATIO;

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
        for (text, fix) in [
            ("response_time < 5ms", "p(95)"),
            ("response_time min < 5ms", "p99.9"),
            ("loss = 0", "loss == 0"),
            ("p99 >> 50ms", "\">>\" is not a comparison: type \"p99 > 50ms\""),
            ("p99 >> 50", "type \"p99 >\" and a limit with its unit, as in \"p99 > 50ms\""),
            ("p99 => 50ms", "\"=>\" is not a comparison: type \"p99 >= 50ms\""),
            ("loss <> 0", "type \"loss != 0\""),
            ("loss === 0", "type \"loss == 0\""),
            ("p99 < NaN", "finite number"),
            ("p99 < -1ms", "is negative"),
            ("response_time p(95) < 500", "500ms"),
            ("p95", "\"p99 > 50ms\""),
            ("loss == none", "such as 1%"),
            ("response_time_ns.p99 > +5", "+5%"),
            ("< 5", "\"p99 > 50ms\""),
        ] {
            let problem = text.parse::<Condition>().unwrap_err();
            assert!(problem.contains(fix), "{text}: {problem}");
        }
    }

    #[test]
    fn what_fails_a_build_is_the_opposite_of_what_must_hold() {
        for (text, opposite) in [
            ("p99 > 50ms", "p99 <= 50ms"),
            ("loss > 0", "loss <= 0"),
            ("errors != 0", "errors == 0"),
            ("throughput_out<20k/s", "throughput_out >= 20k/s"),
            ("first loss", "lost <= 0"),
        ] {
            let negated = read(text).negated();
            assert_eq!(negated.to_string(), opposite);
            assert_eq!(read(opposite), negated, "it is what its text says");
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
