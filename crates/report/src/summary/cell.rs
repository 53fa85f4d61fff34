//! One cell of a summary: the results of all repetitions of one point of the matrix.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::Durability;
use weigh_model::ledger::Ledger;
use weigh_model::protocol::Guarantee;
use weigh_model::trial::Point;
use weigh_model::warnings::WarningRecord;

use super::metric::Metric;
use super::shape::{GuaranteeShape, LedgerShape, WarningShape};

/// Start of the error of a trial that was not tried, because a server refused the session of an
/// earlier repetition.
pub const NOT_TRIED: &str = "not tried again: ";

/// Repetitions below which a comparison is not reliable (rule L13).
pub const REPETITIONS_MIN: u32 = 5;

/// True if the cell's target is a reference server, which is built into Weighbridge.
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
    /// What the protocol guarantees here.
    #[schemars(with = "GuaranteeShape")]
    pub guarantee: Guarantee,
    /// What a confirmation means on the target: `none`, `memory`, `page-cache`, `fsync`,
    /// `fsync=100ms`, `replicated=3` or `unknown`; absent if the run did not record it.
    #[schemars(with = "Option<String>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// How the target identified itself.
    pub target: String,
    /// Number of trials of the cell.
    pub repetitions: u32,
    /// False if a warning makes the result invalid.
    pub valid: bool,
    /// By name (`response_time_ns.p99`); what was not measured is absent.
    pub metrics: BTreeMap<String, Metric>,
    /// By recorded time (`response_time_ns`): number of values in the repetition with the fewest,
    /// lost messages included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub samples: BTreeMap<String, u64>,
    /// The ledger: the sum over the repetitions.
    #[schemars(with = "LedgerShape")]
    pub ledger: Ledger,
    /// Warnings on the result, each once.
    #[schemars(with = "Vec<WarningShape>")]
    #[serde(rename = "doubts")]
    pub warnings: Vec<WarningRecord>,
    /// What the server granted or announced, the minimum over all repetitions.
    pub granted: BTreeMap<String, u64>,
    /// Number of repetitions by course within the measured window: `flat`, `warm-up`, `slow-down`,
    /// `not steady` or `too short to tell`; empty if no course was recorded or the load is not
    /// meant to be steady.
    #[serde(default)]
    pub steady_state: BTreeMap<String, u32>,
    /// The path between the parties if they were separate hosts, how its packets were carried, and
    /// the state of the capture. Of the first repetition.
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

/// Key of a trial's scene: the result of reading an external server's counters.
pub const COUNTERS_ASKED: &str = "counters";
