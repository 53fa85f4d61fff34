//! Checks before anything starts: the machine's abilities, permission to load the targets, and
//! loads that one thread must handle.

pub mod due;
pub mod forecast;
pub mod overhead;
pub mod patience;
pub mod reach;

use std::collections::BTreeSet;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use weigh_engine::schedule;
use weigh_model::{Load, MeterChoice, Pattern};
use weigh_protocols::pass_through::WHOLE_BYTES_MAX;
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::doctor::{self, Demand, Finding, Level};
use weigh_testbed::facts::Facts;
use weigh_testbed::pinning::CoreSet;

use crate::case::Case;
use crate::case::lanes::Against;
use crate::exit::{Exit, Stop};
use crate::watcher::Watcher;

/// Checks that these cases may load their targets: a remote server may belong to another owner.
///
/// # Errors
/// A remote host without permission (`is_allowed`); an unknown host.
pub fn may_load(cases: &[Case], is_allowed: bool) -> Result<(), Stop> {
    let background = cases.iter().filter_map(|case| case.background.as_ref());
    let lanes = cases.iter().map(|case| &case.lane).chain(background.map(|own| &own.lane));
    let mut seen = BTreeSet::new();
    for lane in lanes {
        let Against::Foreign(endpoint) = &lane.against else { continue };
        if is_allowed || !seen.insert(endpoint.host.clone()) {
            continue;
        }
        if let Some(beyond) = beyond(&endpoint.host).map_err(|unknown| {
            Stop::new(Exit::Target, format!("{endpoint}: {unknown}; check its name"))
        })? {
            return Err(Stop::usage(format!(
                "{endpoint}: is not this machine{beyond}, and a load test can put a server \
                 out of service: add --i-may-load-this if you are allowed to"
            )));
        }
    }
    Ok(())
}

/// Checks whether a host is another machine: `None` if all of its addresses are this machine's;
/// otherwise the other address in words, if `host` is a name.
///
/// # Errors
/// An unknown host.
pub fn beyond(host: &str) -> Result<Option<String>, String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok((!address.is_loopback()).then(String::new));
    }
    if host == "localhost" {
        return Ok(None);
    }
    let found = (host, 0).to_socket_addrs();
    let mut found = found.map_err(|error| format!("the host {host} is unknown: {error}"))?;
    let other = found.find(|address| !address.ip().is_loopback());
    Ok(other.map(|address| format!(" ({host} is {})", address.ip())))
}

/// Threads of the generator: the number asked for, or the number that the connections need.
pub fn shards(cases: &[Case], asked: Option<u32>) -> u32 {
    let hard = weigh_engine::io::descriptors::limits().hard;
    let connections = cases.iter().map(|case| standing(&case.load)).max().unwrap_or(0);
    asked.unwrap_or_else(|| doctor::shards_needed(connections, hard))
}

/// Runs the doctor's checks, so that what cannot work is rejected now and not midway.
///
/// # Errors
/// The findings that make a trial impossible.
pub fn examine(catalogue: &Catalogue, cases: &[Case], shards: u32) -> Result<(), Stop> {
    check_cores(cases)?;
    // Only targets of the plan are asked for their versions: to start every server that is
    // installed would take longer than all other checks.
    let names: BTreeSet<String> = cases.iter().flat_map(started).collect();
    let targets = catalogue.targets().iter().filter(|target| names.contains(&target.name));
    let facts = Facts::gather(weigh_observe::host::facts(), targets);
    let of_hosts = facts.on_a_host();
    for case in cases {
        let facts = if case.has_hosts { &of_hosts } else { &facts };
        let demand = demand(case, shards);
        let said = |finding: Finding| {
            // A target that is missing is named as it was typed.
            let place = match finding.check {
                "installed" => demand.targets.join(", "),
                check => check.to_owned(),
            };
            format!("{place}: {}\nhelp: {}", finding.text, finding.fix)
        };
        let fatal: Vec<String> = doctor::examine(&demand, facts)
            .into_iter()
            .filter(|finding| finding.level == Level::Fatal)
            .map(said)
            .collect();
        if !fatal.is_empty() {
            return Err(Stop::usage(fatal.join("\n")));
        }
    }
    check_shards(cases, shards)
}

/// A target with more cores than the machine has would be measured on fewer.
fn check_cores(cases: &[Case]) -> Result<(), Stop> {
    let Ok(allowed) = CoreSet::allowed() else { return Ok(()) };
    let there = allowed.count();
    match cases.iter().find_map(|case| case.share.cores().filter(|asked| *asked > there)) {
        None => Ok(()),
        Some(asked) => {
            let most = there.saturating_sub(1).max(1);
            let fewer = if most > 1 { ", or fewer" } else { "" };
            Err(Stop::usage(format!(
                "--target-cores {asked}: this machine has {there}, and the generator needs one of \
                 them: type --target-cores {most}{fewer}"
            )))
        }
    }
}

/// Checks early that the log of an external meter, which is read after the run, can be read.
///
/// # Errors
/// A log that cannot exist there.
pub fn check_log(meter: Option<&MeterChoice>, watcher: &dyn Watcher) -> Result<(), Stop> {
    let Some(MeterChoice::Log { file, .. }) = meter else { return Ok(()) };
    let path = Path::new(file);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(Stop::usage(format!(
            "--meter csv:{file}: it is not a file, or its folder does not exist: name the log \
             that the meter's program writes"
        )));
    }
    if !path.exists() {
        watcher.say(&format!(
            "{file} does not exist yet: it is read after the run, so start the meter's \
             program now, or interrupt and name its log"
        ));
    }
    Ok(())
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
        source_addresses: sources_of(case),
        local: !matches!(case.lane.against, Against::Foreign(_)),
        targets: started(case),
    }
}

/// The real servers that a case starts.
fn started(case: &Case) -> Vec<String> {
    let lanes = std::iter::once(&case.lane).chain(case.background.iter().map(|own| &own.lane));
    let managed = lanes.filter_map(|lane| match &lane.against {
        Against::Managed(name) => Some(name.clone()),
        Against::Pipeline(pipeline) => pipeline.assembly.broker.clone(),
        _ => None,
    });
    let mut names: Vec<String> = managed.collect();
    names.dedup();
    names
}

/// A closed loop that waits for deliveries needs publishers and subscribers in one shard.
///
/// # Errors
/// The case, and what to type instead.
pub fn check_shards(cases: &[Case], shards: u32) -> Result<(), Stop> {
    let waits_for_delivery = |case: &Case| {
        case.load.delivers()
            && !case.load.arrival.is_open()
            && case.lane.protocol.guarantee(&case.lane.settings)
                == weigh_model::Guarantee::AtMostOnce
    };
    check_objects(cases, shards)?;
    match cases.iter().find(|case| shards > 1 && waits_for_delivery(case)) {
        None => Ok(()),
        Some(case) => Err(Stop::usage(format!(
            "--shards {shards}: a closed loop of unconfirmed {} messages waits for their \
             delivery, which one thread must see; type --shards 1, add a rate (-R), or use \
             fewer connections",
            case.lane.protocol.name()
        ))),
    }
}

/// The reference server streams large objects, and only within one of its threads.
fn check_objects(cases: &[Case], shards: u32) -> Result<(), Stop> {
    let is_large = |case: &Case| {
        let bytes = case.load.size.map_or(case.material.object_bytes, |size| size.0);
        case.load.pattern == Pattern::Transfer
            && case.load.delivers()
            && matches!(case.lane.against, Against::Reference)
            && bytes > WHOLE_BYTES_MAX
    };
    match cases.iter().find(|case| shards > 1 && is_large(case)) {
        None => Ok(()),
        Some(case) => Err(Stop::usage(format!(
            "--shards {shards}: the reference server of {} passes objects above 16 MiB on within \
             one thread; type --shards 1, or a smaller size",
            case.lane.protocol.name()
        ))),
    }
}

/// Local addresses for connections to a case's target: several only on loopback, one in a network
/// namespace.
fn sources_of(case: &Case) -> u32 {
    let is_on_loopback = match &case.lane.against {
        _ if case.has_hosts => false,
        Against::Reference | Against::Managed(_) | Against::Pipeline(_) => true,
        Against::Foreign(endpoint) => {
            let ip = endpoint.host.parse::<std::net::Ipv4Addr>();
            endpoint.host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
        }
    };
    let connections = case.load.connections.saturating_add(case.load.subscribers);
    if is_on_loopback { crate::targets::addresses::sources_for(connections) } else { 1 }
}

/// Connections that are open at the same time.
fn standing(load: &Load) -> u64 {
    u64::from(load.connections) + u64::from(load.subscribers)
}
