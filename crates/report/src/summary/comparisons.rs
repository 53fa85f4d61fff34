//! Compares cells that differ in one factor in the headline metrics, within a guarantee.

use serde_json::Value;
use weigh_model::arrival::Arrival;
use weigh_model::event::TrialFinished;
use weigh_model::plan::Plan;
use weigh_stats::comparison::Comparison as Weighed;
use weigh_stats::comparison::standing;

use super::cell::Cell;
use super::comparison::{Comparison, Multiplicity, Ratio, Shift, Verdict};
use super::headlines::HEADLINES;
use super::lateness::{is_withheld, lag_ns, without_lag};
use super::pairs::{BACKGROUND, pairs};
use super::{interference, lint, unmeasured};
use crate::figures::time;

/// The pairs of `cells` that differ in one factor in every headline metric that both have. Delivery
/// time is used if one of the two has no response time, or consumers that poll; service time if
/// response times of one are invalid.
pub(crate) fn build(cells: &[Cell], plan: &Plan, trials: &[&TrialFinished]) -> Vec<Comparison> {
    let mut all = Vec::new();
    for pair in pairs(cells) {
        let (left, right) = (&cells[pair.left], &cells[pair.right]);
        let have =
            |metric: &str| left.metrics.contains_key(metric) && right.metrics.contains_key(metric);
        let metrics =
            HEADLINES.iter().filter(|metric| have(metric) && is_shown(metric, [left, right]));
        all.extend(metrics.map(|metric| {
            let mut comparison = compare(metric, left, right, &pair.factor, plan);
            if pair.factor == BACKGROUND && unlike(metric, left, right, plan).is_none() {
                interference::weigh(&mut comparison, [left, right], trials);
            }
            comparison
        }));
    }
    all
}

/// True for a cell whose consumers poll.
pub(crate) fn polls(cell: &Cell) -> bool {
    cell.metrics.contains_key("polls")
}

/// Whether two cells that have `metric` are compared in it, considering their other metrics.
pub(crate) fn is_shown(metric: &str, cells: [&Cell; 2]) -> bool {
    let has_response = |cell: &Cell| cell.metrics.contains_key("response_time_ns.p99");
    match metric.split('.').next() {
        // The median is shown if one of the two waits for consumers that poll.
        _ if metric == "delivery_time_ns.p50" => cells.into_iter().any(polls),
        Some("delivery_time_ns") => {
            !cells.into_iter().all(has_response) || cells.into_iter().any(polls)
        }
        Some("service_time_ns") => {
            let response = metric.replace("service", "response");
            cells.into_iter().any(|cell| is_withheld(cell, &response))
        }
        _ => true,
    }
}

/// Marks comparisons that are significant when all are considered together, and counts.
pub(crate) fn together(all: &mut [Comparison]) -> Multiplicity {
    let probabilities: Vec<f64> = all.iter().filter_map(|comparison| comparison.p).collect();
    let stand = standing(&probabilities, CHANCE);
    let mut multiplicity = Multiplicity {
        compared: stand.len() as u32,
        expected_by_chance: CHANCE * stand.len() as f64,
        ..Multiplicity::default()
    };
    let judged = all.iter_mut().filter(|comparison| comparison.p.is_some());
    for (comparison, stands) in judged.zip(stand) {
        let is_called = matches!(comparison.verdict, Verdict::Lower | Verdict::Higher);
        comparison.stands = stands && is_called;
        multiplicity.called += u32::from(is_called);
        multiplicity.standing += u32::from(comparison.stands);
    }
    multiplicity
}

fn compare(metric: &str, left: &Cell, right: &Cell, factor: &str, plan: &Plan) -> Comparison {
    let mut comparison = Comparison {
        metric: metric.to_owned(),
        left: left.name.clone(),
        right: right.name.clone(),
        factor: factor.to_owned(),
        ratio: None,
        verdict: Verdict::Refused,
        reason: unlike(metric, left, right, plan),
        p: None,
        rank_p: None,
        shift: None,
        difference: None,
        stands: false,
    };
    if comparison.reason.is_none() {
        weigh(&mut comparison, left, right);
    }
    comparison
}

fn weigh(comparison: &mut Comparison, left: &Cell, right: &Cell) {
    let values = |cell: &Cell| -> Vec<f64> {
        cell.metrics[&comparison.metric].values.iter().copied().flatten().collect()
    };
    let sides = [values(left), values(right)];
    let weighed = Weighed::of(&sides[0], &sides[1]);
    comparison.ratio = weighed.ratio.map(|r| Ratio { value: r.value, low: r.low, high: r.high });
    comparison.verdict = Verdict::from(weighed.verdict).or_equal(comparison.ratio);
    comparison.reason = weighed.refusal.map(|refusal| refusal.to_string());
    comparison.p = weighed.p;
    comparison.rank_p = weighed.rank.map(|rank| rank.p);
    comparison.shift = weighed.rank.map(|rank| {
        let interval = rank.interval.ok();
        let [low, high] = [interval.map(|i| i.low), interval.map(|i| i.high)];
        Shift { value: rank.shift, low, high }
    });
    let again = |sides: [&[f64]; 2]| Weighed::of(sides[0], sides[1]);
    if let Some(hangs) = on_lag(&comparison.metric, comparison.verdict, [left, right], sides, again)
    {
        comparison.verdict = Verdict::TooClose;
        comparison.p = hangs.p.or(comparison.p);
        comparison.reason = Some(hangs.reason);
    }
}

/// A difference that exists only because the generator was late.
pub(crate) struct OnLag {
    /// Its probability between equals without that lateness.
    pub p: Option<f64>,
    /// Why there is no verdict.
    pub reason: String,
}

/// Whether the `verdict` on left and right is lost without the lateness of the higher side; `sides`
/// are their repetitions, and `again` compares them once more.
pub(crate) fn on_lag(
    metric: &str,
    verdict: Verdict,
    cells: [&Cell; 2],
    sides: [Vec<f64>; 2],
    again: impl Fn([&[f64]; 2]) -> Weighed,
) -> Option<OnLag> {
    let higher = match verdict {
        Verdict::Higher => 0,
        Verdict::Lower => 1,
        _ => return None,
    };
    let mut without = sides;
    without[higher] = without_lag(cells[higher], metric)?;
    let weighed = again([&without[0], &without[1]]);
    let lag = lag_ns(cells[higher], metric)?;
    (Verdict::from(weighed.verdict) != verdict).then(|| OnLag {
        p: weighed.p,
        reason: format!(
            "up to {} of {} is generator lag: without it there is no significant \
             difference",
            time(lag, false),
            cells[higher].name
        ),
    })
}

/// Why the two must not form a ratio; `None` if they may.
fn unlike(metric: &str, left: &Cell, right: &Cell, plan: &Plan) -> Option<String> {
    if let Some(cell) = [left, right].into_iter().find(|cell| unmeasured::why(cell, plan).is_some())
    {
        return Some(format!("nothing was measured in {}", cell.name));
    }
    if let Some(reason) = lint::pair::refusal(metric, left, right, plan) {
        return Some(reason);
    }
    if is_open(left, plan) != is_open(right, plan) {
        return Some(
            "one arrival process is open, the other closed: their times are not \
                     comparable"
                .into(),
        );
    }
    for cell in [left, right] {
        if is_withheld(cell, metric) {
            let name = &cell.name;
            return Some(format!("more than half of this time is generator lag in {name}"));
        }
        if let Some(warning) = cell.invalidated_by(metric) {
            return Some(format!("{} is invalid ({}): see its warnings", cell.name, warning.code));
        }
    }
    let lost = |cell: &&Cell| cell.metrics[metric].values.iter().any(Option::is_none);
    if let Some(cell) = [left, right].into_iter().find(lost) {
        return Some(format!("{} is in the lost share of {}", metric, cell.name));
    }
    // Fewer than three repetitions have their own reason.
    let beyond = |cell: &Cell| {
        let metric = &cell.metrics[metric];
        metric.refused.clone().filter(|_| metric.n > 2)
    };
    [left, right].into_iter().find_map(beyond)
}

/// Whether the schedule never waits for answers.
fn is_open(cell: &Cell, plan: &Plan) -> bool {
    let of_point = cell.point.get("load.arrival").and_then(Value::as_str);
    let arrival = of_point.and_then(|text| text.parse::<Arrival>().ok());
    arrival.as_ref().unwrap_or(&plan.load.arrival).is_open()
}

/// The share of equal pairs that a single comparison calls different, and the expected share of
/// false ones among those significant together.
const CHANCE: f64 = 0.05;
