//! An agent: makes a part of the load for a coordinator.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use weigh_engine::job::Job;
use weigh_engine::rendezvous::Rendezvous;
use weigh_model::Nanos;

use crate::allow::AllowList;
use crate::bus::BusOptions;
use crate::error::FleetError;
use crate::facts::AgentFacts;
use crate::order::Part;

/// What makes a job of an order. It knows protocols, which the fleet does not.
pub trait Workshop: Send + Sync {
    /// Makes the job of a part, whose shards meet in `meeting`. Its address must be the target's
    /// ([`Target::address`](crate::Target)), its number of shards that of the order.
    ///
    /// # Errors
    /// A sentence: why this host cannot.
    fn job(
        &self,
        part: &Part,
        material: &Material,
        meeting: Arc<dyn Rendezvous>,
    ) -> Result<Job, String>;

    /// A shard of the part has started, in its thread: the place to pin it.
    fn thread_started(&self, _part: &Part, _shard: u32) {}
}

/// What an order names by its hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Material {
    /// The body; empty if none is named.
    pub body: Vec<u8>,
    /// Due times; empty if none are named.
    pub trace: Vec<Nanos>,
}

/// How an agent takes part.
pub struct AgentOptions {
    /// The bus.
    pub bus: BusOptions,
    /// Its rank; `None` for the one that the scheduler gave ([`scheduled_rank`]), or else for one
    /// that the coordinator chooses.
    pub rank: Option<u32>,
    /// The targets that it may load.
    pub allow: AllowList,
    /// Facts about its host.
    pub facts: AgentFacts,
    /// Version and commit. Coordinator and agents must have the same.
    pub version: String,
    /// True to end after the first run.
    pub once: bool,
}

/// An agent that is connected to the bus.
pub struct Agent {}

impl Agent {
    /// Connects to the bus.
    ///
    /// # Errors
    /// Those of [`Bus::connect`](crate::Bus::connect); [`FleetError::Options`] if the scheduler's
    /// rank is not a number.
    pub fn new(_options: AgentOptions, _workshop: Arc<dyn Workshop>) -> Result<Agent, FleetError> {
        panic!("not there yet")
    }

    /// Registers, and runs parts of trials until `stop` is set, or until the first run is over if
    /// that was asked for. `say` gets a sentence about everything that happens.
    ///
    /// # Errors
    /// If the bus does not accept the registration.
    pub fn run(&self, _stop: &AtomicBool, _say: &(dyn Fn(&str) + Sync)) -> Result<(), FleetError> {
        panic!("not there yet")
    }
}

/// The rank that a scheduler gave this process: `JOB_COMPLETION_INDEX` (Kubernetes),
/// `SLURM_PROCID`, `OMPI_COMM_WORLD_RANK` or `NOMAD_ALLOC_INDEX`; `None` without one.
///
/// # Errors
/// [`FleetError::Options`] if the variable is not a number.
pub fn scheduled_rank() -> Result<Option<u32>, FleetError> {
    panic!("not there yet")
}
