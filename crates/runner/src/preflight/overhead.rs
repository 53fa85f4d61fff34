//! Estimates the time of a trial besides its load. The times are those of trials of the published
//! studies on a quiet machine of two cores, in a release build.

use weigh_limit::{Goal, Search};
use weigh_model::counters::SysChoice;
use weigh_model::hop::HopStage;
use weigh_model::plan::Observe;
use weigh_model::{Nanos, tls};
use weigh_plan::forecast::{Expected, round_trip};
use weigh_testbed::catalogue::Catalogue;

use crate::case::Case;
use crate::case::lanes::Against;

/// A case with the time of its trial besides the load, in a plan that observes this. A wire, if
/// there is any, is captured if the plan says so.
pub fn expected<'c>(case: &'c Case, observe: &Observe, catalogue: &Catalogue) -> Expected<'c> {
    let is_heard = observe.wire || observe.pcap;
    let counted = if observe.sys == SysChoice::Off { MANAGED } else { COUNTED };
    let overhead = of_trial(case, is_heard, catalogue, counted);
    Expected { load: &case.load, path: case.path.as_ref(), overhead }
}

/// Time of a trial of a search besides its load, warm-up included. Counters are awaited only after
/// losses.
pub fn in_search(lane: &Case, catalogue: &Catalogue) -> Nanos {
    of_trial(lane, false, catalogue, MANAGED) + lane.load.warmup
}

/// Duration of a search in this lane: the usual number of loads, or its budget if that is less.
pub fn search(lane: &Case, search: &Search, catalogue: &Catalogue) -> Nanos {
    let overhead = in_search(lane, catalogue);
    let of = |goal: &Goal| {
        let loads = loads(search.axis.max() / search.axis.min(), goal.width).ceil() as u64;
        // Most loads need only short trials to be on one side; the two bounds need full ones.
        let more = goal.duration_sum.0.div_ceil(goal.final_trial_duration.0.max(1)) - 1;
        times(goal.final_trial_duration + overhead, loads + BOUNDS * more)
    };
    let longest = search.goals.iter().map(of).max().unwrap_or_default();
    search.budget.map_or(longest, |budget| budget.min(longest))
}

/// Number of loads that a search tries if the limit is anywhere between its ends, which are a
/// factor of `span` apart: it doubles up to the limit, on average half of the way, and halves the
/// last step until the bounds are as close as `width`, a share of the upper one.
fn loads(span: f64, width: f64) -> f64 {
    let doublings = span.log2().max(0.0) / 2.0;
    let halvings = (1.0 / -(1.0 - width).log2()).log2().max(0.0);
    1.0 + doublings + halvings
}

/// `counted` is the time of a server that publishes its counters in topics.
fn of_trial(case: &Case, is_heard: bool, catalogue: &Catalogue, counted: Nanos) -> Nanos {
    let mut sum = started(&case.lane.against, catalogue, counted) + opened(case);
    if case.load.delivers() {
        sum = sum + LINGERING;
    }
    if case.has_relay {
        sum = sum + RELAY;
    }
    if case.has_hosts {
        sum = sum + HOSTS;
    }
    if case.has_hosts && is_heard {
        sum = sum + HEARD;
    }
    if let Some(path) = &case.path {
        let closing = if is_heard { HEARD_TRIPS } else { 0 };
        sum = sum + times(round_trip(path), opening_trips(case) + closing);
    }
    if let Some(background) = &case.background {
        let own = if background.asked.is_at_same() {
            Nanos(0)
        } else {
            started(&background.lane.against, catalogue, counted)
        };
        sum = sum + background.asked.lead + own + BACKGROUND;
    }
    sum
}

/// Time to start and stop a target, and to wait until its counters stop changing.
fn started(against: &Against, catalogue: &Catalogue, counted: Nanos) -> Nanos {
    let tells_in_topics = |name: &str| {
        let choice = catalogue.choose(name);
        choice.is_ok_and(|own| own.target.counters.iter().any(|one| one.topic.is_some()))
    };
    match against {
        Against::Foreign(_) => Nanos(0),
        Against::Reference => PROCESS,
        Against::Pipeline(own) => {
            let stages = &own.assembly.stages;
            let has_broker = stages.contains(&HopStage::Gateway);
            let settling = if has_broker { FORWARDING } else { Nanos(0) };
            times(PROCESS, stages.len() as u64 + u64::from(has_broker)) + settling
        }
        Against::Managed(name) if tells_in_topics(name) => counted,
        Against::Managed(_) => MANAGED,
    }
}

/// CPU time to open the connections.
fn opened(case: &Case) -> Nanos {
    let each = if tls::is_on(&case.lane.settings) { SECURED } else { CONNECTED };
    times(each, u64::from(case.load.connections) + u64::from(case.load.subscribers))
}

/// Round trips before the first message: TCP, greeting, TLS, subscription.
fn opening_trips(case: &Case) -> u64 {
    let is_secured = tls::is_on(&case.lane.settings);
    2 + u64::from(is_secured) + u64::from(case.load.subscribers > 0)
}

fn times(each: Nanos, number: u64) -> Nanos {
    Nanos(each.0.saturating_mul(number))
}

/// Results of a search: the highest load that passed, and the lowest that failed.
const BOUNDS: u64 = 2;

/// A built-in server besides its messages: measured in the closed loops of study 000.
const PROCESS: Nanos = Nanos::from_millis(45);

/// Wait until a gateway and the stages behind it are idle.
const FORWARDING: Nanos = Nanos::from_millis(600);

/// A real server without counters in topics: study 000, `right/cost-real`, with nginx.
const MANAGED: Nanos = Nanos::from_millis(430);

/// A real server with them: the same study with Mosquitto, which reports once a second; three
/// reports are awaited.
const COUNTED: Nanos = Nanos::from_millis(3_200);

/// Wait for duplicates at subscribers: the engine's own time.
const LINGERING: Nanos = Nanos::from_millis(50);

/// A relay between two hosts: study 002, `right/F4`.
const RELAY: Nanos = Nanos::from_millis(80);

/// Creation and removal of network namespaces: study 000, `published/E7`.
const HOSTS: Nanos = Nanos::from_millis(100);

/// Packet capture on their links until the last packets: study 001, `right/T1`.
const HEARD: Nanos = Nanos::from_millis(110);

/// Round trips at the end of a captured trial: both sides disconnect, and the last packets are
/// awaited.
const HEARD_TRIPS: u64 = 2;

/// Start and end of a second generator: study 003, `right/under-mqtt`.
const BACKGROUND: Nanos = Nanos::from_millis(250);

/// One connection of study 000, `right/farms-many`: plain, and with a handshake of TLS.
const CONNECTED: Nanos = Nanos::from_micros(50);
const SECURED: Nanos = Nanos::from_micros(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_tries_more_loads_the_wider_it_looks_and_the_closer_it_comes() {
        // One load, half of four doublings, no halving: half of the upper bound is close enough.
        assert!((loads(16.0, 0.5) - 3.0).abs() < 1e-9);
        // Between 1 and 2 are three steps of a fifth of the upper one: 1.64 halvings.
        assert!((loads(16.0, 0.2) - 4.635).abs() < 1e-3);
        assert!((loads(1.0, 0.9) - 1.0).abs() < 1e-9, "one load is one load");
    }
}
