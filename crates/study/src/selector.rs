//! Selects cells of a run: plan keys and their values there, whether a case or the whole plan sets
//! them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use weigh_model::plan::Plan;
use weigh_model::trial::Point;
use weigh_model::units::{parse_duration, parse_rate, parse_size};

/// Plan keys and values; a cell that has them all is meant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector(pub BTreeMap<String, Value>);

impl Selector {
    /// Whether a point says all of it.
    pub fn fits(&self, point: &Point) -> bool {
        self.0.iter().all(|(key, value)| point.get(key).is_some_and(|own| is_same(own, value)))
    }
}

impl fmt::Display for Selector {
    /// ` at load.connections 50, protocol http1`; nothing where every cell is meant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (key, value)) in self.0.iter().enumerate() {
            let before = if number == 0 { " at" } else { "," };
            match value {
                Value::String(text) => write!(f, "{before} {key} {text}")?,
                other => write!(f, "{before} {key} {other}")?,
            }
        }
        Ok(())
    }
}

/// All that is known of a cell: what its point says, and what holds for the whole plan.
pub fn whole(plan: &Plan, point: &Point) -> Point {
    let load = serde_json::to_value(&plan.load).unwrap_or_default();
    let shared = load.as_object().cloned().unwrap_or_default();
    let mut whole: Point =
        shared.into_iter().map(|(key, value)| (format!("load.{key}"), value)).collect();
    whole.extend(point.clone());
    whole
}

/// A value along an axis as a number: sizes in bytes, durations in seconds, rates per second.
pub fn number(value: &Value) -> Option<f64> {
    let text = match value {
        Value::Number(number) => return number.as_f64(),
        Value::String(text) => text.as_str(),
        _ => return None,
    };
    let plain: Option<f64> = text.parse().ok();
    // Before sizes, of which "2m" would be two million.
    let time = || parse_duration(text).ok().map(|time| time.as_secs_f64());
    let size = || parse_size(text).ok().map(|bytes| bytes as f64);
    let rate = || parse_rate(text).ok().map(|rate| rate.per_second);
    let share = || text.strip_suffix('%')?.trim().parse().ok();
    plain.or_else(time).or_else(size).or_else(rate).or_else(share)
}

/// Whether two values say the same, whichever way they are written.
fn is_same(left: &Value, right: &Value) -> bool {
    if left == right {
        return true;
    }
    let is_per_client = |value: &Value| value.as_str().is_some_and(|text| text.contains("/client"));
    match (number(left), number(right)) {
        (Some(own), Some(other)) => own == other && is_per_client(left) == is_per_client(right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_the_same_whichever_way_it_is_written() {
        for (left, right) in [
            (json!(50), json!(50.0)),
            (json!("1s"), json!("1000ms")),
            (json!("1KiB"), json!("1024B")),
            (json!("1k/s"), json!("1000/s")),
            (json!(1), json!("1")),
            (json!(true), json!(true)),
        ] {
            assert!(is_same(&left, &right), "{left} {right}");
        }
        for (left, right) in [
            (json!(50), json!(51)),
            (json!("http1"), json!("mqtt")),
            (json!("10/s"), json!("10/s/client")),
            (json!(true), json!("true ")),
        ] {
            assert!(!is_same(&left, &right), "{left} {right}");
        }
        assert_eq!(number(&json!("2m")), Some(120.0));
        assert_eq!(number(&json!("5%")), Some(5.0));
        assert_eq!(number(&json!("mqtt")), None);
    }

    #[test]
    fn a_selector_is_told_in_words() {
        let selector = Selector([("a".to_owned(), json!(5)), ("b".to_owned(), json!("x"))].into());
        assert_eq!(selector.to_string(), " at a 5, b x");
        assert_eq!(Selector::default().to_string(), "");
    }
}
