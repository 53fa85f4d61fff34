//! One cell of a summary: the results of all repetitions of one point of the matrix.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::ledger::Ledger;
use weigh_model::protocol::Guarantee;
use weigh_model::trial::Point;
use weigh_model::warnings::WarningRecord;

use super::metric::Metric;
use super::shape::{DoubtShape, GuaranteeShape, LedgerShape};

/// Repetitions below which no comparison should be believed (rule L13).
pub const REPETITIONS_MIN: u32 = 5;

/// True if the cell's target is a reference server, which Weighbridge carries itself.
pub fn is_reference(cell: &Cell) -> bool {
    cell.point.get("target").is_none_or(|target| target == "reference")
}

/// All repetitions of one point of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// A short name, unique in the run; comparisons refer to it.
    pub name: String,
    /// Plan keys with dots, and their values.
    pub point: Point,
    /// What the protocol promises here.
    #[schemars(with = "GuaranteeShape")]
    pub guarantee: Guarantee,
    /// What the target is, as it told itself.
    pub target: String,
    /// How many trials the cell rests on.
    pub repetitions: u32,
    /// False when a doubt says that the result must not be used.
    pub valid: bool,
    /// By name (`response_time_ns.p99`); what was not measured is absent.
    pub metrics: BTreeMap<String, Metric>,
    /// By recorded time (`response_time_ns`): how many values stand behind its quantiles in the
    /// repetition with the fewest, lost messages included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub samples: BTreeMap<String, u64>,
    /// Where every message went: the sum over the repetitions.
    #[schemars(with = "LedgerShape")]
    pub ledger: Ledger,
    /// What makes the result doubtful, each once.
    #[schemars(with = "Vec<DoubtShape>")]
    pub doubts: Vec<WarningRecord>,
    /// What the server granted or announced, the least over all repetitions.
    pub granted: BTreeMap<String, u64>,
    /// How many repetitions took which course within the measured window: `flat`, `warm-up`,
    /// `slow-down`, `not steady` or `too short to tell`; empty where no course was recorded or
    /// the load is not meant to be steady.
    #[serde(default)]
    pub steady_state: BTreeMap<String, u32>,
    /// What lay between the parties, where they were hosts of their own: the path, what carried its
    /// packets, and the state of the wire that was listened on. Of the first repetition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scene: BTreeMap<String, String>,
}

/// A trial that could not be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Its id.
    pub trial: String,
    /// Its point of the matrix.
    pub point: Point,
    /// What went wrong.
    pub error: String,
}

/// Key of a trial's scene: the result of asking a server given by URL for its own counters.
pub const COUNTERS_ASKED: &str = "counters";
