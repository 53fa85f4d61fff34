//! What an agent leaves in the object store besides its outcomes, once it has stored them all.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::facts::AgentFacts;
use crate::hash::Hash;

/// An agent's part of a trial that is complete. It is stored last: where the parts of all agents
/// are there, so are all outcomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredPart {
    /// The agent's rank.
    pub rank: u32,
    /// What it reported.
    pub facts: AgentFacts,
    /// The shards that it ran.
    pub here: Range<u32>,
    /// Hashes of their outcomes.
    pub outcomes: Vec<Hash>,
    /// Hash of its record of single messages, if it was to keep one.
    pub messages: Option<Hash>,
    /// Time from the arrival of the confirmed start to the start, nanoseconds.
    pub start_slack_ns: u64,
    /// What its coordinator knew of its clock when it confirmed the start; `None` if the agent did
    /// not hear it.
    pub clock: Option<KnownClock>,
}

/// What a coordinator knows of an agent's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownClock {
    /// By how much it was taken to be ahead when the trial was placed, nanoseconds.
    pub offset_ns: i64,
    /// Largest possible error of the agent's trial clock, nanoseconds.
    pub error_ns: u64,
    /// Its drift, parts per million.
    pub drift_ppm: f64,
    /// Largest possible error of the drift, parts per million.
    pub drift_bound_ppm: f64,
}
