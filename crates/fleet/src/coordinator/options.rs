//! Which agents a coordinator gathers, and what it knows of them.

use std::ops::Range;
use std::time::Duration;

use crate::bus::BusOptions;
use crate::facts::AgentFacts;

/// Which agents to gather.
#[derive(Clone)]
pub struct FleetOptions {
    /// The bus.
    pub bus: BusOptions,
    /// Number of agents, at least 1.
    pub agents: u32,
    /// How long to wait for them; [`FleetOptions::WAIT`] as a rule.
    pub wait: Duration,
    /// Silence after which an agent is lost; [`FleetOptions::SILENCE`] as a rule. It covers a bus
    /// that is cut for a moment.
    pub silence: Duration,
    /// Version and commit, which the agents must have too.
    pub version: String,
}

impl FleetOptions {
    /// How long to wait for agents, as a rule.
    pub const WAIT: Duration = Duration::from_secs(60);
    /// Silence after which an agent is lost, as a rule.
    pub const SILENCE: Duration = Duration::from_secs(10);

    /// This number of agents of the same version, with the usual times.
    pub fn new(bus: BusOptions, agents: u32, version: String) -> FleetOptions {
        let (wait, silence) = (FleetOptions::WAIT, FleetOptions::SILENCE);
        FleetOptions { bus, agents, wait, silence, version }
    }
}

/// An agent of the fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its rank, from 0.
    pub rank: u32,
    /// Name of its host.
    pub name: String,
    /// What it reported.
    pub facts: AgentFacts,
    /// By how much its clock is ahead of this host's, nanoseconds.
    pub offset_ns: i64,
    /// Largest possible error of that, nanoseconds.
    pub clock_bound_ns: u64,
    /// Smallest round trip to it, nanoseconds.
    pub round_trip_ns: u64,
}

/// The shards that an agent is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The agent's rank.
    pub rank: u32,
    /// Numbers of the shards.
    pub shards: Range<u32>,
}
