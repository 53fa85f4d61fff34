//! A fleet: one trial whose load several hosts make, with one result.
//!
//! One process is the coordinator. It has the plan, observes the target and writes the journal.
//! Agents on other hosts run shards of the trial. All of them are connected to a bus, a NATS server
//! with JetStream; whatever the user has (Kubernetes, Slurm, ssh) places the processes.
//!
//! ```text
//! coordinator            bus               agent 0 … agent N−1
//!   gather   ──── hire ──────────────────►  hired
//!   clocks   ◄─── four stamps, 5 times a second, from here to the end
//!   run      ──── part of a trial ───────►  allowed? material, job, connections
//!            ◄─── ready                     all ready: the start is named, acknowledged, confirmed
//!            ◄─── intervals, states         load: nothing is decided over the bus
//!            ◄─── outcomes by object store  free for the next trial
//! ```
//!
//! The engine's [`Rendezvous`](weigh_engine::rendezvous::Rendezvous) is what shards agree on. Here
//! it is carried as snapshots: each agent publishes its own numbers, and the coordinator publishes
//! the sums. A message that is lost or comes twice changes nothing.

pub mod agent;
pub mod allow;
pub mod bus;
pub mod clock;
pub mod coordinator;
pub mod error;
pub mod facts;
pub mod hash;
pub mod launch;
pub mod order;

mod fresh_name;
mod meeting;
mod messages;
mod monotonic;
mod peers;
mod stored_part;
mod subjects;
mod sums;

#[cfg(test)]
mod simulation;

pub use agent::{Agent, AgentEnd, AgentOptions, Material, Workshop};
pub use allow::AllowList;
pub use bus::{Bus, BusOptions};
pub use coordinator::{Fleet, FleetOptions, FleetOutcome, HostPart, Member, Placed};
pub use error::FleetError;
pub use facts::AgentFacts;
pub use hash::Hash;
pub use order::{Attempt, Authority, Order, Part, Secrets, Target};
