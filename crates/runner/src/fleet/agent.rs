//! An agent of a fleet: generates parts of trials on this host, for a coordinator elsewhere.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use weigh_fleet::{Agent, AgentFacts, AgentOptions, AllowList};
use weigh_model::calibration::Calibration;
use weigh_testbed::doctor::{self, Demand, Level};
use weigh_testbed::facts::Facts;
use weigh_testbed::pinning::{CoreSet, Pinning};

use crate::exit::Stop;
use crate::fleet::hosts::{bus, stop};
use crate::fleet::request::BusChoice;
use crate::fleet::workshop::Bench;
use crate::interrupts::Interrupts;
use crate::run::baseline::{self, Kind};

pub use weigh_fleet::AgentEnd;

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

/// Registers and obeys until `stopped` is set, or until the run for which it was started is over.
/// `say` gets a sentence about everything that happens.
///
/// # Errors
/// An option that is wrong, and a bus that cannot be used.
pub fn run(
    request: AgentRequest,
    version: String,
    stopped: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<AgentEnd, Stop> {
    let allow = AllowList::parse(&request.may_load);
    let options = AgentOptions {
        bus: bus(&request.bus),
        rank: request.rank,
        allow: allow.map_err(|wrong| Stop::usage(format!("--may-load: {wrong}")))?,
        facts: facts(say),
        version,
        once: request.once,
    };
    let agent = Agent::new(options, Arc::new(Bench::of_this_host())).map_err(stop)?;
    agent.run(stopped, say).map_err(stop)
}

/// The facts of this host, with its baseline and what the doctor finds, which are said too.
fn facts(say: &dyn Fn(&str)) -> AgentFacts {
    let baseline = baseline();
    if let Some(baseline) = &baseline {
        say(&baseline.words());
    }
    AgentFacts {
        baseline_per_s: baseline.map(|own| own.per_s),
        findings: findings(say),
        ..AgentFacts::of_this_host()
    }
}

/// What this host reaches against a server on it, on loopback.
fn baseline() -> Option<Calibration> {
    let pinning = Pinning::divide(&CoreSet::allowed().ok()?, 1, 1);
    let interrupts = Interrupts::default();
    let bench = baseline::Bench { pinning: &pinning, shards: 1, interrupts: &interrupts };
    bench.glance(&Kind::of_hosts()?)
}

/// What would disturb load on this host, one sentence each.
fn findings(say: &dyn Fn(&str)) -> Vec<String> {
    let facts = Facts::of_machine(weigh_observe::host::facts());
    let demand = Demand { local: false, ..Demand::default() };
    let found = doctor::examine(&demand, &facts).into_iter();
    let found = found.filter(|own| own.level != Level::Ok).map(|own| {
        say(&format!("{}; help: {}", own.text, own.fix));
        own.text
    });
    found.collect()
}
