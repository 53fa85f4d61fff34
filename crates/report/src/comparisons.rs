//! Compares cells pair by pair in the headline metrics, like with like only.

use serde_json::Value;
use weigh_model::arrival::Arrival;
use weigh_model::plan::Plan;
use weigh_stats::comparison::{self, Comparison as Weighed};

use crate::lint;
use crate::summary::{Cell, Comparison, Ratio, Verdict};

/// The metrics in which cells are compared.
pub const HEADLINES: &[&str] = &[
    "response_time_ns.p50",
    "response_time_ns.p99",
    "delivery_time_ns.p99",
    "throughput_out_per_s",
    "target_cpu_us_per_message",
];

/// All pairs of `cells` in every headline metric that both have. Delivery time stands in where
/// one of the two has no response time.
pub(crate) fn build(cells: &[Cell], plan: &Plan) -> Vec<Comparison> {
    let mut all = Vec::new();
    for (index, left) in cells.iter().enumerate() {
        for right in &cells[index + 1..] {
            let have = |metric: &str| {
                left.metrics.contains_key(metric) && right.metrics.contains_key(metric)
            };
            let has_response = have("response_time_ns.p99");
            let metrics = HEADLINES.iter().filter(|metric| {
                have(metric) && !(has_response && metric.starts_with("delivery_time_ns"))
            });
            all.extend(metrics.map(|metric| compare(metric, left, right, plan)));
        }
    }
    all
}

fn compare(metric: &str, left: &Cell, right: &Cell, plan: &Plan) -> Comparison {
    let (ratio, verdict, reason) = match unlike(metric, left, right, plan) {
        Some(reason) => (None, Verdict::Refused, Some(reason)),
        None => weigh(metric, left, right),
    };
    let (left, right) = (left.name.clone(), right.name.clone());
    Comparison { metric: metric.to_owned(), left, right, ratio, verdict, reason }
}

fn weigh(metric: &str, left: &Cell, right: &Cell) -> (Option<Ratio>, Verdict, Option<String>) {
    let values = |cell: &Cell| -> Vec<f64> {
        cell.metrics[metric].values.iter().copied().flatten().collect()
    };
    let weighed = Weighed::of(&values(left), &values(right));
    let ratio = weighed.ratio.map(|r| Ratio { value: r.value, low: r.low, high: r.high });
    let verdict = match weighed.verdict {
        comparison::Verdict::Lower => Verdict::Lower,
        comparison::Verdict::Higher => Verdict::Higher,
        comparison::Verdict::TooClose => Verdict::TooClose,
        comparison::Verdict::Refused => Verdict::Refused,
    };
    (ratio, verdict, weighed.refusal.map(|refusal| refusal.to_string()))
}

/// Why the two must not be put in one ratio; `None` if they may.
fn unlike(metric: &str, left: &Cell, right: &Cell, plan: &Plan) -> Option<String> {
    if let Some(reason) = lint::pair::refusal(metric, left, right, plan) {
        return Some(reason);
    }
    if is_open(left, plan) != is_open(right, plan) {
        return Some("one arrival is open, the other closed: their times differ in kind".into());
    }
    if let Some(cell) = [left, right].into_iter().find(|cell| !cell.valid) {
        return Some(format!("{} is invalid: see its doubts", cell.name));
    }
    let lost = |cell: &&Cell| cell.metrics[metric].values.iter().any(Option::is_none);
    let cell = [left, right].into_iter().find(lost)?;
    Some(format!("{} falls into the lost share of {}", metric, cell.name))
}

/// Whether the schedule never waits for answers.
fn is_open(cell: &Cell, plan: &Plan) -> bool {
    let of_point = cell.point.get("load.arrival").and_then(Value::as_str);
    let arrival = of_point.and_then(|text| text.parse::<Arrival>().ok());
    arrival.as_ref().unwrap_or(&plan.load.arrival).is_open()
}
