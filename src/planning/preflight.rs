//! What is looked at before anything starts: whether the machine can do it, whether the targets
//! may be loaded, whether one thread can see what it must.

use weigh_engine::schedule;
use weigh_model::{Load, Pattern};
use weigh_stage::catalogue::Catalogue;
use weigh_stage::doctor::{self, Demand, Level};
use weigh_stage::facts::Facts;

use crate::exit::Stop;
use crate::planning::cases::Case;
use crate::planning::lanes::Against;

/// Asks whether the targets of these cases may be loaded: a server beyond this machine belongs to
/// somebody.
pub fn may_load(cases: &[Case], is_allowed: bool) -> Result<(), Stop> {
    let foreign = cases.iter().filter_map(|case| match &case.lane.against {
        Against::Foreign(endpoint) => Some(endpoint),
        _ => None,
    });
    let is_local = |host: &str| {
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    };
    match foreign.into_iter().find(|endpoint| !is_local(&endpoint.host)) {
        Some(endpoint) if !is_allowed => Err(Stop::usage(format!(
            "{endpoint}: lies beyond this machine, and a load test can put a server out of \
             service: add --i-may-load-this if you may"
        ))),
        _ => Ok(()),
    }
}

/// Threads of the generator: those asked for, or as many as the connections need.
pub fn shards(cases: &[Case], asked: Option<u32>) -> u32 {
    let hard = weigh_engine::io::descriptors::limits().hard;
    let connections = cases.iter().map(|case| standing(&case.load)).max().unwrap_or(0);
    asked.unwrap_or_else(|| doctor::shards_needed(connections, hard))
}

/// Asks the doctor: what cannot work is refused now instead of dying midway.
pub fn examine(catalogue: &Catalogue, cases: &[Case], shards: u32) -> Result<(), Stop> {
    let facts = Facts::gather(weigh_observe::host::facts(), catalogue);
    for case in cases {
        let fatal: Vec<String> = doctor::examine(&demand(case, shards), &facts)
            .into_iter()
            .filter(|finding| finding.level == Level::Fatal)
            .map(|finding| format!("{}: {}; {}", finding.check, finding.text, finding.fix))
            .collect();
        if !fatal.is_empty() {
            return Err(Stop::usage(fatal.join("\n  ")));
        }
    }
    check_shards(cases, shards)
}

fn demand(case: &Case, shards: u32) -> Demand {
    let load = &case.load;
    Demand {
        connections: u64::from(load.connections),
        subscribers: u64::from(load.subscribers),
        shards,
        target_shards: if matches!(case.lane.against, Against::Reference) { shards } else { 1 },
        messages: load.messages,
        duration: load.duration,
        rate_per_s: schedule::rate_per_second_max(load),
        connection_per_message: load.pattern == Pattern::Session
            || case.lane.settings.text("keep_alive") == "false",
        source_addresses: sources_max(&case.lane.against),
        local: !matches!(case.lane.against, Against::Foreign(_)),
        targets: match &case.lane.against {
            Against::Managed(name) => vec![name.clone()],
            _ => Vec::new(),
        },
    }
}

/// A closed loop that waits for deliveries needs publishers and subscribers in one shard.
fn check_shards(cases: &[Case], shards: u32) -> Result<(), Stop> {
    let waits_for_delivery = |case: &Case| {
        case.load.pattern == Pattern::Deliver
            && !case.load.arrival.is_open()
            && case.lane.protocol.guarantee(&case.lane.settings)
                == weigh_model::Guarantee::AtMostOnce
    };
    match cases.iter().find(|case| shards > 1 && waits_for_delivery(case)) {
        None => Ok(()),
        Some(case) => Err(Stop::usage(format!(
            "--shards {shards}: a closed loop of unconfirmed {} messages waits for their \
             delivery, which one thread must see; type --shards 1, give a rate (-R), or use \
             fewer connections",
            case.lane.protocol.name()
        ))),
    }
}

/// Local addresses that connections to this target may come from: several only on loopback.
fn sources_max(against: &Against) -> u32 {
    let is_on_loopback = match against {
        Against::Reference | Against::Managed(_) => true,
        Against::Foreign(endpoint) => {
            let ip = endpoint.host.parse::<std::net::Ipv4Addr>();
            endpoint.host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
        }
    };
    if is_on_loopback { crate::run::trial_run::SOURCES_MAX } else { 1 }
}

/// Connections that stand at once.
fn standing(load: &Load) -> u64 {
    u64::from(load.connections) + u64::from(load.subscribers)
}
