//! Compares cells that differ in one factor in the headline metrics, like with like only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weigh_model::arrival::Arrival;
use weigh_model::event::TrialFinished;
use weigh_model::plan::Plan;
use weigh_stats::comparison::{self, Comparison as Weighed, standing};

use crate::figures::time;
use crate::interference;
use crate::lateness::{is_withheld, lag_ns, without_lag};
use crate::lint;
use crate::pairs::pairs;
use crate::summary::Cell;

pub use crate::pairs::{BACKGROUND, LANE};

/// The metrics in which cells are compared.
pub const HEADLINES: &[&str] = &[
    "response_time_ns.p50",
    "response_time_ns.p99",
    "service_time_ns.p50",
    "service_time_ns.p99",
    "delivery_time_ns.p50",
    "delivery_time_ns.p99",
    "throughput_out_per_s",
    "target_cpu_us_per_message",
    "energy_j_per_message",
    "energy_above_idle_j_per_message",
    "energy_mah_per_session",
];

/// Two cells in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The metric's name.
    pub metric: String,
    /// Name of the left cell.
    pub left: String,
    /// Name of the right cell.
    pub right: String,
    /// What tells the two apart: `lane` for protocol, target and settings at one place of all
    /// axes, `background` for a case with a second workload beneath it (left) and without (right),
    /// or the key of the axis along which they are neighbours (`load.connections`).
    #[serde(default)]
    pub factor: String,
    /// Left over right; null where the two must not be put in one ratio. Of a case with a
    /// background and without it the interval is that for pairs of repetitions.
    pub ratio: Option<Ratio>,
    /// `lower`, `higher`, `too close to call`, `practically equal` or `refused`: left as seen from
    /// right.
    pub verdict: Verdict,
    /// Why it was refused, or why it is too close to call although the interval leaves out 1; else
    /// null.
    pub reason: Option<String>,
    /// How probable so large a difference is between equals, by the interval of the ratio; null
    /// where there is none.
    #[serde(default)]
    pub p: Option<f64>,
    /// The same by the ranks alone (Mann and Whitney); null where it was refused.
    #[serde(default)]
    pub rank_p: Option<f64>,
    /// The shift of left against right (Hodges and Lehmann); null where it was refused.
    #[serde(default)]
    pub shift: Option<Shift>,
    /// By how much left is above right, over repetitions that took turns; with a background and
    /// without it only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Whether a `lower` or `higher` stands when all comparisons of the run are taken together
    /// (Benjamini and Hochberg at 5 %); false for other verdicts.
    #[serde(default)]
    pub stands: bool,
}

/// Left over right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The ratio of the means.
    pub value: f64,
    /// Lower end of the interval at 95 %; null with fewer than 3 repetitions a side.
    pub low: Option<f64>,
    /// Upper end of the interval at 95 %; null with fewer than 3 repetitions a side.
    pub high: Option<f64>,
}

/// By how much left is larger than right, in the metric's unit: the median of all differences of
/// their repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shift {
    /// The shift.
    pub value: f64,
    /// Lower end of the interval at 95 %; null with fewer than 4 repetitions a side.
    pub low: Option<f64>,
    /// Upper end of the interval at 95 %; null with fewer than 4 repetitions a side.
    pub high: Option<f64>,
}

/// By how much left is above right, in the metric's unit: the mean over pairs of repetitions that
/// took turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The difference.
    pub value: f64,
    /// Lower end of the interval at 95 %; null with fewer than 3 pairs.
    pub low: Option<f64>,
    /// Upper end of the interval at 95 %; null with fewer than 3 pairs.
    pub high: Option<f64>,
    /// How many pairs there are.
    pub pairs: u32,
}

/// What can be said of left, as seen from right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// The interval of the ratio is below 1.
    #[serde(rename = "lower")]
    Lower,
    /// The interval of the ratio is above 1.
    #[serde(rename = "higher")]
    Higher,
    /// The interval of the ratio contains 1, or leaves it out only because of the generator's
    /// lateness.
    #[serde(rename = "too close to call")]
    TooClose,
    /// The whole interval of the ratio is within 1 % of 1.
    #[serde(rename = "practically equal")]
    PracticallyEqual,
    /// The two must not be, or cannot be, compared.
    #[serde(rename = "refused")]
    Refused,
}

impl From<comparison::Verdict> for Verdict {
    fn from(verdict: comparison::Verdict) -> Verdict {
        match verdict {
            comparison::Verdict::Lower => Verdict::Lower,
            comparison::Verdict::Higher => Verdict::Higher,
            comparison::Verdict::TooClose => Verdict::TooClose,
            comparison::Verdict::Refused => Verdict::Refused,
        }
    }
}

impl Verdict {
    /// The same, but an effect that is certainly below 1 % is none, whether the interval of `ratio`
    /// leaves out 1 or not.
    pub(crate) fn or_equal(self, ratio: Option<Ratio>) -> Verdict {
        match ratio {
            Some(Ratio { low: Some(low), high: Some(high), .. })
                if self != Verdict::Refused && low >= 1.0 - EQUAL && high <= 1.0 + EQUAL =>
            {
                Verdict::PracticallyEqual
            }
            _ => self,
        }
    }

    /// The words in which it is reported.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Lower => "lower",
            Verdict::Higher => "higher",
            Verdict::TooClose => "too close to call",
            Verdict::PracticallyEqual => "practically equal",
            Verdict::Refused => "refused",
        }
    }
}

/// What many comparisons together mean for each of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Multiplicity {
    /// Comparisons with a verdict.
    pub compared: u32,
    /// Those of them that are `lower` or `higher`.
    pub called: u32,
    /// How many would be called by chance were all cells equal: one in twenty.
    pub expected_by_chance: f64,
    /// Those that stand when all are taken together: at most one in twenty of them is expected to
    /// be false.
    pub standing: u32,
}

/// The pairs of `cells` that differ in one factor in every headline metric that both have.
/// Delivery time stands in where one of the two has no response time, or consumers that ask, and
/// service time where those of one are invalid.
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

/// True for a cell whose consumers ask.
pub(crate) fn polls(cell: &Cell) -> bool {
    cell.metrics.contains_key("polls")
}

/// Whether two cells that have `metric` are compared in it, beside what else they have.
pub(crate) fn is_shown(metric: &str, cells: [&Cell; 2]) -> bool {
    let has_response = |cell: &Cell| cell.metrics.contains_key("response_time_ns.p99");
    match metric.split('.').next() {
        // The median is told where one of the two waits for consumers that ask.
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

/// Marks those that stand when all are taken together, and counts.
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

/// A difference that is there only because the generator was late.
pub(crate) struct OnLag {
    /// How probable it is between equals without that lateness.
    pub p: Option<f64>,
    /// Why it is not called.
    pub reason: String,
}

/// Whether the `verdict` on left and right is lost where the lateness of the higher side is taken
/// away; `sides` are their repetitions, and `again` compares them once more.
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
            "up to {} of {} is the generator's lateness: without it the two are not told apart",
            time(lag, false),
            cells[higher].name
        ),
    })
}

/// Why the two must not be put in one ratio; `None` if they may.
fn unlike(metric: &str, left: &Cell, right: &Cell, plan: &Plan) -> Option<String> {
    if let Some(reason) = lint::pair::refusal(metric, left, right, plan) {
        return Some(reason);
    }
    if is_open(left, plan) != is_open(right, plan) {
        return Some("one arrival is open, the other closed: their times differ in kind".into());
    }
    for cell in [left, right] {
        if is_withheld(cell, metric) {
            let name = &cell.name;
            return Some(format!("more than half of it is the generator's lateness in {name}"));
        }
        if let Some(doubt) = cell.spoilt_by(metric) {
            return Some(format!("{} is invalid ({}): see its doubts", cell.name, doubt.code));
        }
    }
    let lost = |cell: &&Cell| cell.metrics[metric].values.iter().any(Option::is_none);
    if let Some(cell) = [left, right].into_iter().find(lost) {
        return Some(format!("{} falls into the lost share of {}", metric, cell.name));
    }
    // Fewer than three repetitions have a reason of their own.
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

/// An effect below this share of 1 is none in practice.
const EQUAL: f64 = 0.01;

/// The share of equals that a single comparison calls different, and of those that stand that is
/// expected to be false.
const CHANCE: f64 = 0.05;
