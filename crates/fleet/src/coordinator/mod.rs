//! The coordinator: gathers agents and runs trials on them.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use weigh_engine::generator::TrialObserver;
use weigh_engine::job::Failure;
use weigh_engine::outcome::ShardOutcome;
use weigh_model::Nanos;

use crate::bus::{Bus, BusOptions};
use crate::error::FleetError;
use crate::facts::AgentFacts;
use crate::hash::Hash;
use crate::order::{Order, Secrets};

/// Which agents to gather.
#[derive(Clone)]
pub struct FleetOptions {
    /// The bus.
    pub bus: BusOptions,
    /// Number of agents, at least 1.
    pub agents: u32,
    /// How long to wait for them; 60 s as a rule.
    pub wait: Duration,
    /// Silence after which an agent is lost; 10 s as a rule. It covers a bus that is cut for a
    /// moment.
    pub silence: Duration,
    /// Version and commit, which the agents must have too.
    pub version: String,
}

/// Agents that obey this process until it is dropped.
pub struct Fleet {}

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

/// What all agents together found in a trial.
#[derive(Debug)]
pub struct FleetOutcome {
    /// Outcomes of all shards of the trial, in the order of their numbers, none of which failed.
    pub shards: Vec<ShardOutcome>,
    /// Each agent's part, by rank.
    pub hosts: Vec<HostPart>,
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
    /// By how much its clock was taken to be ahead of this host's, nanoseconds: the difference
    /// between the two readings at the trial's zero.
    pub offset_ns: i64,
    /// Largest possible error of its trial clock from the start of the trial to its end,
    /// nanoseconds; drift since the zero is included.
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

impl Fleet {
    /// Waits for exactly as many agents as asked for. `say` gets a sentence about each that came,
    /// is missing or was refused.
    ///
    /// # Errors
    /// Those of [`Bus::connect`]; [`FleetError::Agents`] if agents are missing when the time is
    /// over.
    pub fn gather(_options: &FleetOptions, _say: &dyn Fn(&str)) -> Result<Fleet, FleetError> {
        panic!("not there yet")
    }

    /// The agents by rank, with what is known of their clocks now.
    pub fn members(&self) -> Vec<Member> {
        panic!("not there yet")
    }

    /// The bus.
    pub fn bus(&self) -> &Arc<Bus> {
        panic!("not there yet")
    }

    /// The shards of each agent: contiguous ranges, at least one each, by cores and descriptors.
    ///
    /// # Errors
    /// [`FleetError::Options`] if there are fewer shards than agents.
    pub fn place(&self, _shards: u32) -> Result<Vec<Placed>, FleetError> {
        panic!("not there yet")
    }

    /// Stores bytes that agents need, for as long as the fleet is there. Storing them again costs
    /// a look.
    ///
    /// # Errors
    /// [`FleetError::Store`] if the object store is full or cannot be reached.
    pub fn put_material(&self, _bytes: &[u8]) -> Result<Hash, FleetError> {
        panic!("not there yet")
    }

    /// Stores the due times of a traced arrival.
    ///
    /// # Errors
    /// Those of [`Fleet::put_material`].
    pub fn put_trace(&self, _trace: &[Nanos]) -> Result<Hash, FleetError> {
        panic!("not there yet")
    }

    /// Runs a trial on all agents. Its clock stands at 0 at `epoch_ns` of this host's
    /// `CLOCK_MONOTONIC`. `observer` gets what a generator of this process would report, except
    /// that no thread starts here; the moments of the window are those of this host's clock.
    /// `stopper` is called once, with what stops the trial: once to finish the record, twice to end
    /// it.
    ///
    /// # Errors
    /// The first failure of a shard; [`Failure::Ourselves`] if an agent is lost or refuses its
    /// part. There is never a result from fewer shards. The agents are free for the next attempt,
    /// and a lost agent may be replaced by one of the same rank.
    pub fn run(
        &self,
        _order: &Order,
        _secrets: Option<&Secrets>,
        _epoch_ns: u64,
        _observer: &Arc<dyn TrialObserver>,
        _stopper: &mut dyn FnMut(Box<dyn Fn() + Send + Sync>),
    ) -> Result<FleetOutcome, Failure> {
        panic!("not there yet")
    }
}
