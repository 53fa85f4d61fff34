//! What a fleet found in a trial.

use std::ops::Range;

use weigh_engine::outcome::ShardOutcome;
use weigh_model::Nanos;

use crate::facts::AgentFacts;

/// What all agents together found in a trial.
#[derive(Debug)]
pub struct FleetOutcome {
    /// Outcomes of all shards of the trial, in the order of their numbers, none of which failed.
    pub shards: Vec<ShardOutcome>,
    /// Each agent's part, by rank.
    pub hosts: Vec<HostPart>,
    /// The records of single messages, by rank, as `kept_messages::replay` of the engine reads
    /// them; empty if none was to be kept.
    pub messages: Vec<Vec<u8>>,
    /// Largest possible time between the starts of any two agents, nanoseconds: the sum of the two
    /// largest clock errors at the start.
    pub start_skew_bound_ns: u64,
}

/// An agent's part in a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct HostPart {
    /// Its rank.
    pub rank: u32,
    /// Name of its host.
    pub name: String,
    /// The shards that it ran.
    pub shards: Range<u32>,
    /// By how much its clock was taken to be ahead of this host's, nanoseconds, as it was when the
    /// trial was placed.
    pub offset_ns: i64,
    /// Largest possible error of its trial clock from the start of the trial to its end,
    /// nanoseconds; what it drifted since it was placed is included.
    pub clock_bound_ns: u64,
    /// Drift of its clock against this host's, parts per million.
    pub drift_ppm: f64,
    /// Largest possible error of the drift, parts per million.
    pub drift_bound_ppm: f64,
    /// Time between the arrival of the confirmed start and the start, nanoseconds.
    pub start_slack_ns: u64,
    /// Processor time of its shards in the measured window, to the end of draining.
    pub cpu: Nanos,
    /// Processor time of the busiest of them.
    pub cpu_max: Nanos,
    /// What it reported when it registered.
    pub facts: AgentFacts,
}
