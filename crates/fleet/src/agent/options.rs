//! How an agent takes part, and what it needs from its user.

use std::env;
use std::sync::Arc;

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

/// The rank that a scheduler gave this process: `JOB_COMPLETION_INDEX` (Kubernetes),
/// `SLURM_PROCID`, `OMPI_COMM_WORLD_RANK` or `NOMAD_ALLOC_INDEX`; `None` without one.
///
/// # Errors
/// [`FleetError::Options`] if the variable is not a number.
pub fn scheduled_rank() -> Result<Option<u32>, FleetError> {
    rank_in(|name| env::var(name).ok())
}

fn rank_in(value: impl Fn(&str) -> Option<String>) -> Result<Option<u32>, FleetError> {
    let Some((name, text)) = RANK_NAMES.iter().find_map(|name| Some((name, value(name)?))) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        FleetError::Options(format!(
            "expected the agent's rank in {name} as a number, found {text:?}; help: unset it, or \
             give the rank as an option"
        ))
    })
}

const RANK_NAMES: [&str; 4] =
    ["JOB_COMPLETION_INDEX", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "NOMAD_ALLOC_INDEX"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_is_that_of_the_scheduler() {
        let only = |known: &'static str, text: &'static str| {
            rank_in(move |name| (name == known).then(|| text.to_owned()))
        };
        assert_eq!(only("SLURM_PROCID", "3"), Ok(Some(3)));
        assert_eq!(only("JOB_COMPLETION_INDEX", "0"), Ok(Some(0)));
        assert_eq!(only("PATH", "3"), Ok(None));
        let error = only("SLURM_PROCID", "x").unwrap_err().to_string();
        assert!(error.contains("SLURM_PROCID") && error.contains("\"x\""), "{error}");
    }
}
