//! Checks before anything starts whether a fleet can do what a plan asks.

use weigh_model::body::BodySource;
use weigh_model::plan::Plan;
use weigh_model::{Guarantee, Pattern, tls};

use crate::case::Case;
use crate::case::lanes::Against;
use crate::exit::Stop;

/// Refuses what agents cannot do: each has a network, files and a record of its own.
///
/// # Errors
/// The first thing that they cannot do, and what to type instead.
pub fn check(plan: &Plan, cases: &[Case], agents: u32) -> Result<(), Stop> {
    if let Some((what, fix)) = observed(plan) {
        return Err(refused(what, fix));
    }
    for case in cases {
        if let Some((what, fix)) = load(case).or_else(|| between(case)).or_else(|| secrets(case)) {
            return Err(refused(&format!("{}: {what}", case.title()), fix));
        }
    }
    match cases.iter().find(|case| agents > 1 && waits_for_delivery(case)) {
        None => Ok(()),
        Some(case) => Err(Stop::usage(format!(
            "--agents {agents}: a closed loop of unconfirmed {} messages waits for their delivery, \
             which one thread must see\nhelp: add a rate (-R), or type --agents 1",
            case.lane.protocol.name()
        ))),
    }
}

/// Refuses targets on loopback of this host, such as all that Weighbridge starts, unless all agents
/// are on it too, in the same network namespace.
///
/// # Errors
/// The first target that another host cannot reach, and the first agent that is elsewhere.
pub fn check_places<'h>(
    cases: &[Case],
    elsewhere: impl IntoIterator<Item = &'h str>,
) -> Result<(), Stop> {
    let own = cases.iter().find(|case| case.lane.against.is_on_this_machine());
    let Some((case, host)) = own.zip(elsewhere.into_iter().next()) else { return Ok(()) };
    Err(Stop::usage(format!(
        "--fleet: {} listens on loopback of this host, and {host} is elsewhere\nhelp: start the \
         server where all agents reach it (weigh serve, weigh targets start), and type its URL",
        case.title()
    )))
}

/// Number of shards on all agents together: what was asked for, or as many as the connections need,
/// and one for each agent at least.
///
/// # Errors
/// Fewer shards than agents.
pub fn shards(agents: u32, asked: Option<u32>, needed: u32) -> Result<u32, Stop> {
    match asked {
        Some(asked) if asked < agents => Err(Stop::usage(format!(
            "--shards {asked}: each of {agents} agents runs at least one\nhelp: type --shards \
             {agents}, or leave it out"
        ))),
        Some(asked) => Ok(asked),
        None => Ok(needed.max(agents)),
    }
}

/// Observations that need the generator in this process.
fn observed(plan: &Plan) -> Option<(&'static str, &'static str)> {
    let observe = &plan.observe;
    match () {
        () if observe.messages => Some(("single messages are not recorded", NO_MESSAGES)),
        () if observe.wire || observe.pcap => Some(("packets are not captured", NO_WIRE)),
        () => None,
    }
}

/// Loads of which a part stays on one host.
fn load(case: &Case) -> Option<(&'static str, &'static str)> {
    let load = &case.load;
    let is_file = matches!(load.body, BodySource::File(_));
    match () {
        () if load.pattern == Pattern::Transfer && is_file => Some((
            "a file is streamed from one host only",
            "leave --body out, so that every agent makes the object (--size)",
        )),
        () if load.body.seal().is_some() => {
            Some(("keys of sealed bodies stay on one host", "leave --seal-to out"))
        }
        () if case.background.is_some() => {
            Some(("a background has one generator", "leave --background out"))
        }
        () => None,
    }
}

/// Things between generator and target that exist only on this host.
fn between(case: &Case) -> Option<(&'static str, &'static str)> {
    match () {
        () if case.path.is_some() || case.has_hosts => {
            Some(("emulated links and captures are on one host", "leave --path and --wire out"))
        }
        () if case.has_relay => Some(("a relay has one generator", "leave --relay out")),
        () => match &case.lane.against {
            Against::Pipeline(_) => Some((
                "the way through the pipeline is recorded by one generator",
                "leave --fleet out, or name another target",
            )),
            _ => None,
        },
    }
}

/// Keys that were made for the run.
fn secrets(case: &Case) -> Option<(&'static str, &'static str)> {
    let settings = &case.lane.settings;
    let is_mutual = tls::is_on(settings) && settings.flag("tls_mutual");
    (is_mutual && !case.lane.is_foreign())
        .then_some(("client certificates of a run are for one generator", "leave tls_mutual out"))
}

/// True for a load whose publishers wait for what subscribers see.
fn waits_for_delivery(case: &Case) -> bool {
    case.load.delivers()
        && !case.load.arrival.is_open()
        && case.lane.protocol.guarantee(&case.lane.settings) == Guarantee::AtMostOnce
}

fn refused(what: &str, fix: &str) -> Stop {
    Stop::usage(format!("--fleet: {what} by a fleet\nhelp: {fix}"))
}

const NO_MESSAGES: &str = "leave --keep-messages out (in a plan observe.messages)";
const NO_WIRE: &str = "leave --wire and --pcap out (in a plan observe.wire, observe.pcap)";
