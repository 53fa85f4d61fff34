//! An agent of a fleet: generates parts of trials on this host, for a coordinator elsewhere.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use weigh_fleet::{Agent, AgentFacts, AgentOptions, AllowList};

use crate::exit::Stop;
use crate::fleet::hosts::{bus, stop};
use crate::fleet::request::BusChoice;
use crate::fleet::workshop::Bench;

/// How an agent takes part in a fleet.
pub struct AgentRequest {
    /// The bus on which it registers.
    pub bus: BusChoice,
    /// Its number in the fleet; `None` for the one of the scheduler that started it, or else one
    /// that the coordinator chooses.
    pub rank: Option<u32>,
    /// The targets that it may load: `HOST:PORT`, `HOST:*`, `*:PORT`, networks.
    pub may_load: Vec<String>,
    /// True to end after the first run.
    pub once: bool,
}

/// Registers and obeys until `stopped` is set. `say` gets a sentence about everything that happens.
///
/// # Errors
/// An option that is wrong, and a bus that cannot be used.
pub fn run(
    request: AgentRequest,
    version: String,
    stopped: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), Stop> {
    let allow = AllowList::parse(&request.may_load);
    let options = AgentOptions {
        bus: bus(&request.bus),
        rank: request.rank,
        allow: allow.map_err(|wrong| Stop::usage(format!("--may-load: {wrong}")))?,
        facts: AgentFacts::of_this_host(),
        version,
        once: request.once,
    };
    let agent = Agent::new(options, Arc::new(Bench::of_this_host())).map_err(stop)?;
    agent.run(stopped, say).map_err(stop)
}
