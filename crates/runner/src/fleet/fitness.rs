//! Checks before anything starts whether a fleet can do what a plan asks.

use weigh_model::plan::Plan;
use weigh_model::{Guarantee, tls};

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
    let is_captured = plan.observe.wire || plan.observe.pcap;
    is_captured.then_some((
        "packets cannot be captured with a fleet: a capture counts one network, and each agent has \
         its own",
        "leave --wire and --pcap out (in a plan observe.wire, observe.pcap)",
    ))
}

/// Loads of which a part stays on one host.
fn load(case: &Case) -> Option<(&'static str, &'static str)> {
    let load = &case.load;
    match () {
        () if case.material.object_bytes > FILE_BYTES_MAX => Some((
            "a file of more than 1 GiB is not sent to the agents of a fleet: each holds it in \
             memory",
            "name a smaller file, or leave --body out: every agent makes the object (--size)",
        )),
        () if load.body.seal().is_some() => Some((
            "bodies cannot be sealed with a fleet: each trial makes new keys, and they do not \
             leave the process that made them",
            "leave --seal-to and --body sealed:... out, or leave --fleet out",
        )),
        () if case.background.is_some() => Some((
            "a background cannot run with a fleet: one process makes it, next to a load of its own",
            "leave --background out, and make the other load with a second weigh compare",
        )),
        () => None,
    }
}

/// Things between generator and target that exist only on this host.
fn between(case: &Case) -> Option<(&'static str, &'static str)> {
    match () {
        () if case.path.is_some() || case.has_hosts => Some((
            "links cannot be emulated with a fleet: they join two network namespaces of one host",
            "leave --path and --wire out, and shape the network of the agents' hosts (tc netem)",
        )),
        () if case.has_relay => Some((
            "a relay cannot be used with a fleet: it stands between one generator and the target",
            "leave --relay out",
        )),
        () => match &case.lane.against {
            Against::Pipeline(_) => Some((
                "the pipeline cannot be measured with a fleet: the way of a message through it is \
                 put together from send times in this process",
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
    (is_mutual && !case.lane.is_foreign()).then_some((
        "client certificates that are made for the run cannot be used with a fleet: their keys \
         stay on this host",
        "leave tls_mutual out, or start the server with your own certificates and give its URL, \
         tls_cert and tls_key",
    ))
}

/// True for a load whose publishers wait for what subscribers see.
fn waits_for_delivery(case: &Case) -> bool {
    case.load.delivers()
        && !case.load.arrival.is_open()
        && case.lane.protocol.guarantee(&case.lane.settings) == Guarantee::AtMostOnce
}

fn refused(what: &str, fix: &str) -> Stop {
    Stop::usage(format!("--fleet: {what}\nhelp: {fix}"))
}

/// Size limit of a file that is sent to agents, bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;
