//! Subjects of a fleet on the bus, and names in its object store.

use crate::hash::Hash;
use crate::order::Attempt;

/// The name under which agents register as a NATS service.
pub const SERVICE: &str = "weigh";

/// Where an agent takes requests of a coordinator.
pub fn ask(fleet: &str, agent: &str) -> String {
    format!("weigh.{fleet}.agent.{agent}.ask")
}

/// Where an agent answers with its clock.
pub fn clock(fleet: &str, agent: &str) -> String {
    format!("weigh.{fleet}.agent.{agent}.clock")
}

/// Where the agents of a coordinator publish their states.
pub fn state(fleet: &str, session: &str) -> String {
    format!("weigh.{fleet}.session.{session}.state")
}

/// Where they publish what their shards report.
pub fn report(fleet: &str, session: &str) -> String {
    format!("weigh.{fleet}.session.{session}.report")
}

/// Where the coordinator publishes the state of all.
pub fn whole(fleet: &str, session: &str) -> String {
    format!("weigh.{fleet}.session.{session}.whole")
}

/// The name of material.
pub fn material(hash: Hash) -> String {
    format!("material/{hash}")
}

/// The name of a shard's outcome.
pub fn outcome(attempt: &Attempt, shard: u32) -> String {
    format!("{}/{shard}", of_attempt(attempt))
}

/// The name of an agent's record of single messages.
pub fn messages(attempt: &Attempt, rank: u32) -> String {
    format!("{}/messages-{rank}", of_attempt(attempt))
}

/// The name of an agent's part, stored once its outcomes are.
pub fn part(attempt: &Attempt, rank: u32) -> String {
    format!("{}/agent-{rank}", of_attempt(attempt))
}

/// What the names of all outcomes of a run begin with.
pub fn of_run(run: &str) -> String {
    format!("outcome/{run}/")
}

/// What the names of all outcomes of an attempt begin with, before a slash.
pub fn of_attempt(attempt: &Attempt) -> String {
    let Attempt { run, trial, number } = attempt;
    format!("{}{trial}/{number}", of_run(run))
}
