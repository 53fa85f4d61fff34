//! What the user asks, resolved: the load, the cases to weigh, and how often.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::load::Load;
use crate::units::Nanos;

/// A resolved plan, as it is written to `plan.toml` of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What the run is called.
    pub name: String,
    /// The seed of all chance in the run.
    pub seed: u64,
    /// The load, where a case does not say otherwise.
    pub load: Load,
    /// How often each case is weighed.
    pub repeat: Repeat,
    /// The points of the matrix: plan keys with dots, and their values.
    #[serde(rename = "case")]
    pub cases: Vec<BTreeMap<String, toml::Value>>,
}

/// How often each case is weighed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Repetitions of every case.
    pub count: u32,
    /// Pause between trials.
    pub cool_down: Nanos,
}
