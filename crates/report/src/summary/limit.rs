//! The limit of one lane as the summary holds it: an answer for every goal, and every trial.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weigh_model::trial::Point;

use super::ladder::HoldShown;
use super::limit_checks::{BurstShown, Moved};
use super::limit_curve::Described;

/// The result of the search in one lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// The lane: plan keys with dots, and their values.
    pub point: Point,
    /// How the target identified itself; empty before the first trial.
    pub target: String,
    /// The axis: `rate`, `connections`, `burst`, `subscribers`, `message-size`.
    pub axis: String,
    /// The unit of loads, as in `2994/s`.
    pub unit: String,
    /// The smallest and the largest load of the search.
    pub allowed: (f64, f64),
    /// One answer for every goal, in their order.
    pub goals: Vec<LimitGoal>,
    /// Why the search ended: `complete`, `budget`, `invalid`, `too-many-trials`, or `running` if it
    /// was interrupted.
    pub stop: String,
    /// Why the search ended, in a sentence.
    pub stopped: String,
    /// All trials in their order: the course of the search.
    pub trials: Vec<LimitTrial>,
    /// Their total time, seconds.
    pub time_used_s: f64,
    /// The shape of the curve around the limit. A description, never a capacity.
    pub described: Described,
    /// Results by load: means over all trials at a load.
    pub curve: Vec<HoldShown>,
    /// The effect of a second generator; absent if none was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_generator: Option<Moved>,
}

/// The answer for one goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitGoal {
    /// Its name.
    pub name: String,
    /// The goal: durations, loss ratio, exceed ratio, width, conditions.
    pub asked: Value,
    /// `decided`, `at-granularity`, `never-met`, `holds-at-max`, `withdrawn` or `undecided`.
    pub outcome: String,
    /// The answer in a sentence.
    pub sentence: String,
    /// `capacity_per_s` on an axis of rates, else `capacity_connections` and so on; empty if the
    /// goal has no lower bound, or lost it.
    pub metrics: BTreeMap<String, Capacity>,
    /// The largest load at which the goal was met.
    pub lower: Option<f64>,
    /// The smallest load at which it was missed.
    pub upper: Option<f64>,
    /// Why it was missed there, in the last trial at that load.
    pub missed_by: Option<String>,
    /// (upper - lower) / upper.
    pub width: Option<f64>,
    /// Messages per second expected at the lower bound; on an axis of rates only.
    pub conditional_throughput_per_s: Option<f64>,
    /// Bounds expected from short trials, lower and upper: a hint, not a bound.
    pub expected: (Option<f64>, Option<f64>),
    /// The largest load that passed, in trials of any length: the lower bound if it is proven, else
    /// the best answer so far.
    #[serde(default)]
    pub passed: Option<f64>,
    /// The smallest load above it that failed, in trials of any length.
    #[serde(default)]
    pub failed: Option<f64>,
    /// Why the answer is not proven: what ended the search, or what is left of it. Absent if it is
    /// proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven: Option<String>,
    /// Trials that are missing until it is proven, if the target continues to behave as it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_missing: Option<usize>,
    /// Time of those trials, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_missing_s: Option<f64>,
    /// Trials that were run for this goal.
    pub trials: usize,
    /// Time of those trials, seconds.
    pub time_used_s: f64,
    /// The limiting resource.
    pub ended_by: Option<EndedBy>,
    /// On an axis of bursts, the queue that the bounds imply; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstShown>,
}

/// A capacity: never one number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    /// The lower bound: the one to quote.
    pub value: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound; null if even the largest load was met or none was decided.
    pub high: Option<f64>,
}

/// The limiting resource, with the evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndedBy {
    /// The trial that was analysed: one that missed the goal at the upper bound, or the one that
    /// stopped the search.
    pub trial: String,
    /// Causes with their evidence, the likeliest first; or resources that were not the limit.
    pub sentence: String,
    /// The likeliest cause; null if it is unknown.
    pub resource: Option<String>,
    /// True if it belongs to the generator: then the limit is not the target's.
    pub is_ours: bool,
    /// What was observed in the trial.
    pub evidence: Value,
}

/// A trial of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitTrial {
    /// Its id, as in the journal.
    pub trial: String,
    /// The load.
    pub load: f64,
    /// How long it was offered, seconds.
    pub duration_s: f64,
    /// Messages that arrived in time.
    pub forwarded: u64,
    /// Messages that did not arrive in time.
    pub lost: u64,
    /// Messages per second that arrived.
    pub throughput_out_per_s: Option<f64>,
    /// By goal: why it missed it; null if it met it. Empty if the trial is invalid.
    pub missed: Vec<Option<String>>,
    /// By goal: the bounds after it.
    pub bounds: Vec<(Option<f64>, Option<f64>)>,
    /// `completed`, or how it ended otherwise.
    pub end: String,
}

impl Limit {
    /// The lane: `mqtt against reference, mqtt.qos 1`.
    pub fn title(&self) -> String {
        let word = |key: &str| self.point.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut title = format!("{} against {}", word("protocol"), word("target"));
        for (key, value) in &self.point {
            if key != "protocol" && key != "target" && !key.starts_with("load.") {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                title.push_str(&format!(", {key} {value}"));
            }
        }
        title
    }

    /// The unit that its loads count.
    pub fn counted(&self) -> &str {
        match self.axis.as_str() {
            "rate" => "messages per second",
            "burst" => "messages",
            "message-size" => "bytes",
            others => others,
        }
    }
}
