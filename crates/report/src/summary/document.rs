//! The result of a run as one document, `weigh/summary/1`: the content of `summary.json` and of
//! `--json`. It is made only from the run's events, so a replayed journal gives the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::energy::MeterChosen;
use weigh_model::event::HostFacts;
use weigh_model::plan::Plan;

use super::answer_line::AnswerLine;
use super::cell::{Cell, Failure};
use super::comparison::{Comparison, Multiplicity};
use super::fleet::GeneratorHost;
use super::interference::Interference;
use super::ladder::Ladder;
use super::limit::Limit;
use super::modelled::Modelled;
use super::shape::{HostShape, MeterShape};
use super::threshold::Threshold;

/// The name and version of the document's format.
pub const SUMMARY_SCHEMA: &str = "weigh/summary/1";

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("$id" = "urn:weigh:schema:summary:1"))]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: String,
    /// What was run, when, and where.
    pub run: Run,
    /// The answer to the question of the run, at most six lines, made from the rest of this
    /// document; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<AnswerLine>,
    /// One entry per point of the matrix that has a result, in the order of the plan.
    pub cells: Vec<Cell>,
    /// Pairs of cells that differ in one factor only, metric by metric.
    pub comparisons: Vec<Comparison>,
    /// The effect of many comparisons on each of them.
    #[serde(default)]
    pub multiplicity: Multiplicity,
    /// The thresholds of the plan, and whether they hold; empty without thresholds.
    #[serde(default)]
    pub thresholds: Vec<Threshold>,
    /// The results of a search for a limit, one entry per lane; absent without a search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// The curves of loads that were raised in steps and held; absent without such loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ladders: Vec<Ladder>,
    /// The backgrounds of cells; absent without backgrounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<Interference>,
    /// Device and basis of modelled energy; absent if it was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<Modelled>,
    /// Claims of a published study and whether they hold; empty outside studies.
    pub claims: Vec<serde_json::Value>,
    /// Trials that could not be done.
    pub failures: Vec<Failure>,
}

/// What was run, when, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The run's id: its folder's name.
    pub id: String,
    /// When it started, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// `done`, `interrupted`, `failed`, or `unfinished` if the journal has no last line.
    pub outcome: String,
    /// The machine.
    #[schemars(with = "HostShape")]
    pub host: HostFacts,
    /// The plan as resolved.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub plan: Plan,
    /// The energy meter, or why there was none; absent if it was not requested.
    #[schemars(with = "Option<MeterShape>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<MeterChosen>,
    /// The hosts of the fleet that generated the load, by rank; absent if `host` generated it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<GeneratorHost>,
    /// Within a trial, no two hosts of the fleet started further apart, nanoseconds; absent without
    /// a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew_bound_ns: Option<u64>,
}

impl Summary {
    /// Returns why not every answer of a search is proven, in one line; `None` if all are.
    pub fn unproven(&self) -> Option<String> {
        let goals =
            || self.limits.iter().flat_map(|limit| limit.goals.iter().map(move |own| (limit, own)));
        let open = || goals().filter(|(_, goal)| goal.unproven.is_some());
        let (limit, goal) = open().next()?;
        let more = match open().count() {
            1 => String::new(),
            count => format!(" (and {} of {} answers in all)", count, goals().count()),
        };
        let why = goal.unproven.as_deref().unwrap_or_default();
        Some(format!("{}: {} is not proven: {why}{more}", limit.title(), goal.name))
    }
}
