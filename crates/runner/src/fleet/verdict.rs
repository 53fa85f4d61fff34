//! What hosts of a fleet add to the record of a trial: how far apart they started, which of them
//! was the limit, and rule L20 on times that span two clocks.

use std::ops::Range;

use weigh_model::event::TrialFinished;
use weigh_model::fleet::{FleetRan, HostRan};
use weigh_model::numbers::time;
use weigh_model::warnings::WarningRecord;
use weigh_model::{Load, Topology, Warning};
use weigh_report::summary::lateness::LATEST_HOST;

/// Adds start skew and clock bound, withholds times below that bound, and names the host that was
/// the limit. In a trial that was taken over from a program that was killed, the clock bound is
/// not known, and no time carries one.
pub fn add(finished: &mut TrialFinished, ran: &FleetRan, load: &Load, is_taken_over: bool) {
    let skew = ran.start_skew_bound_ns as f64;
    finished.metrics.insert("start_skew_bound_ns".to_owned(), skew);
    if is_taken_over {
        finished.warnings.push(Warning::TakenOver(ran.hosts.len() as u64).record());
    }
    if let Some(worst) = worst_pair(ran, load) {
        let bound = (!is_taken_over).then_some(worst.bound_ns as f64);
        finished.metrics.extend(bound.map(|bound| ("clock_bound_ns".to_owned(), bound)));
        let warning = withhold(below(finished, bound), finished, &worst, bound);
        finished.warnings.extend(warning);
    }
    name_the_limit(finished, ran);
    if let Some(host) = ran.latest().filter(|_| ran.hosts.len() > 1) {
        finished.scene.insert(LATEST_HOST.to_owned(), host.words());
    }
}

/// The two hosts between which messages go and whose clocks are known least.
struct Pair<'r> {
    bound_ns: u64,
    hosts: [&'r HostRan; 2],
}

/// The worst pair of hosts of which one has a producer and the other one of its consumers; `None`
/// if every message stays on one host.
fn worst_pair<'r>(ran: &'r FleetRan, load: &Load) -> Option<Pair<'r>> {
    if !load.delivers() || load.topology == Topology::Pairs {
        // Client i is in shard i modulo their number, whether it is a producer or a consumer.
        return None;
    }
    let on = |host: &HostRan, clients: u32| shards(host).start < clients;
    let mut worst: Option<Pair<'r>> = None;
    for producer in ran.hosts.iter().filter(|host| on(host, load.connections)) {
        for consumer in ran.hosts.iter().filter(|host| on(host, load.subscribers)) {
            let bound_ns = producer.clock_bound_ns.saturating_add(consumer.clock_bound_ns);
            let is_worse = worst.as_ref().is_none_or(|known| known.bound_ns < bound_ns);
            if producer.rank != consumer.rank && is_worse {
                worst = Some(Pair { bound_ns, hosts: [producer, consumer] });
            }
        }
    }
    worst
}

fn shards(host: &HostRan) -> Range<u32> {
    host.first_shard..host.first_shard + host.shards
}

/// Recorded times of messages that span two hosts and whose median is below the bound, or all if
/// there is none, with that median if it is known.
fn below(finished: &TrialFinished, bound_ns: Option<f64>) -> Vec<(&'static str, Option<f64>)> {
    let median = |name: &str| {
        let of = |part: &str| finished.metrics.get(&format!("{name}.{part}")).copied();
        of("p50").or(of("mean"))
    };
    let has = |name: &str| {
        let prefix = format!("{name}.");
        finished.metrics.keys().any(|own| own.starts_with(&prefix))
    };
    let known = SPANNING.into_iter().filter(|name| has(name));
    let known = known.map(|name| (name, median(name)));
    let is_below = |own: Option<f64>| bound_ns.zip(own).is_none_or(|(bound, own)| own < bound);
    known.filter(|(_, median)| is_below(*median)).collect()
}

/// Removes times from the record; returns the warning if there are any.
fn withhold(
    times: Vec<(&'static str, Option<f64>)>,
    finished: &mut TrialFinished,
    worst: &Pair<'_>,
    bound_ns: Option<f64>,
) -> Option<WarningRecord> {
    if times.is_empty() {
        return None;
    }
    for (name, _) in &times {
        let prefixes = [format!("{name}."), format!("{}_lag_ns.", name.trim_end_matches("_ns"))];
        let is_of = |own: &String| prefixes.iter().any(|prefix| own.starts_with(prefix));
        finished.metrics.retain(|own, _| !is_of(own));
        finished.samples.remove(*name);
        finished.histograms.remove(*name);
    }
    let words = |(name, median): &(&str, Option<f64>)| {
        let spoken = name.trim_end_matches("_ns").replace('_', " ");
        match median {
            Some(median) => format!("{spoken} (median {})", time(*median, false)),
            None => spoken,
        }
    };
    let names: Vec<String> = times.iter().map(words).collect();
    let [producer, consumer] = worst.hosts.map(HostRan::words);
    let between = format!("the clock error between {producer} and {consumer}");
    let names = names.join(", ");
    let what = match bound_ns {
        Some(bound) => format!("{names} below {}, {between}", time(bound, false)),
        None => format!("{names}: {between} is unknown"),
    };
    Some(Warning::BelowClockBound(what).record())
}

/// Adds the busiest host to the warning that the generator was the limit.
fn name_the_limit(finished: &mut TrialFinished, ran: &FleetRan) {
    let Some(host) = ran.busiest().filter(|_| ran.hosts.len() > 1) else { return };
    for warning in &mut finished.warnings {
        if warning.code == LIMITED {
            warning.text = format!("{}; busiest: {}", warning.text, host.words());
        }
    }
}

/// Recorded times that begin at the producer and end at the consumer.
const SPANNING: [&str; 4] =
    ["delivery_time_ns", "one_way_time_ns", "first_byte_time_ns", "poll_wait_time_ns"];

/// Code of the warning that the generator was the limit.
const LIMITED: &str = "generator-limited";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weigh_model::{Ledger, Pattern};

    fn load(topology: Topology, connections: u32, subscribers: u32) -> Load {
        Load { topology, subscribers, ..Load::closed(Pattern::Deliver, connections) }
    }

    /// Two hosts with two shards each, whose clocks are known to within 30 and 70 µs.
    fn ran() -> FleetRan {
        let host = |rank: u32, clock_bound_ns: u64| HostRan {
            rank,
            name: format!("h{rank}"),
            first_shard: 2 * rank,
            shards: 2,
            clock_bound_ns,
            cpu_percent: Some(f64::from(40 + 50 * rank)),
            send_lag_ns_p99: Some(u64::from(90 - 50 * rank)),
            ..HostRan::default()
        };
        let hosts = vec![host(0, 30_000), host(1, 70_000)];
        FleetRan { start_skew_bound_ns: 90_000, hosts, ..FleetRan::default() }
    }

    fn finished(p50_ns: f64) -> TrialFinished {
        serde_json::from_value(json!({
            "trial": "a", "point": {}, "repetition": 0, "seed": 1,
            "guarantee": "at least once", "target": "reference",
            "doubts": [Warning::generator_limited(97.0).record()],
            "metrics": {
                "delivery_time_ns.p50": p50_ns, "delivery_time_ns.p99": 5e6,
                "delivery_time_lag_ns.p99": 1.0, "response_time_ns.p50": 50_000.0,
            },
            "samples": { "delivery_time_ns": 100, "response_time_ns": 100 }, "granted": {},
            "ledger": Ledger::default(), "histograms": { "delivery_time_ns": "x" },
        }))
        .expect("a result")
    }

    #[test]
    fn a_time_below_the_bound_of_two_clocks_is_withheld_with_a_warning() {
        let mut finished = finished(99_999.0);
        add(&mut finished, &ran(), &load(Topology::FanIn, 4, 1), false);
        let names: Vec<&str> = finished.metrics.keys().map(String::as_str).collect();
        assert_eq!(names, ["clock_bound_ns", "response_time_ns.p50", "start_skew_bound_ns"]);
        assert_eq!(finished.metrics["clock_bound_ns"], 100_000.0);
        assert!(!finished.samples.contains_key("delivery_time_ns"));
        assert!(finished.histograms.is_empty());
        let warning = finished.warnings.last().expect("a warning");
        assert_eq!(warning.code, "L20");
        assert!(warning.text.contains("delivery time (median 100 µs) below 100 µs"), "{warning:?}");
        assert!(warning.text.contains("agent 1 (h1)"), "{warning:?}");
    }

    #[test]
    fn a_time_above_the_bound_carries_it() {
        let mut finished = finished(100_001.0);
        add(&mut finished, &ran(), &load(Topology::FanIn, 4, 1), false);
        assert_eq!(finished.metrics["clock_bound_ns"], 100_000.0);
        assert_eq!(finished.metrics["delivery_time_ns.p50"], 100_001.0);
        assert_eq!(finished.warnings.len(), 1);
    }

    /// Whatever the clocks did after the coordinator was killed, no time between two of them is
    /// reported.
    #[test]
    fn a_trial_that_was_taken_over_has_no_times_between_hosts() {
        let mut finished = finished(1e9);
        add(&mut finished, &ran(), &load(Topology::FanIn, 4, 1), true);
        let names: Vec<&str> = finished.metrics.keys().map(String::as_str).collect();
        assert_eq!(names, ["response_time_ns.p50", "start_skew_bound_ns"]);
        let codes: Vec<&str> = finished.warnings.iter().map(|own| own.code.as_str()).collect();
        assert_eq!(codes, ["generator-limited", "taken-over", "L20"]);
        let text = &finished.warnings[2].text;
        assert!(text.ends_with("between agent 1 (h1) and agent 0 (h0) is unknown"), "{text}");
    }

    /// Pairs are in one shard, one client is on one host, and no message goes between two hosts.
    #[test]
    fn messages_that_stay_on_one_host_need_no_bound() {
        for own in [load(Topology::Pairs, 4, 4), load(Topology::FanIn, 1, 1)] {
            let mut finished = finished(1.0);
            add(&mut finished, &ran(), &own, false);
            assert!(!finished.metrics.contains_key("clock_bound_ns"), "{own:?}");
            assert_eq!(finished.metrics["delivery_time_ns.p50"], 1.0, "{own:?}");
            assert_eq!(finished.metrics["start_skew_bound_ns"], 90_000.0);
        }
    }

    #[test]
    fn a_limit_of_the_generator_names_the_busiest_host() {
        let mut finished = finished(1e9);
        add(&mut finished, &ran(), &load(Topology::Pairs, 4, 4), false);
        assert!(finished.warnings[0].text.ends_with("; busiest: agent 1 (h1)"));
        assert_eq!(finished.scene["fleet.latest"], "agent 0 (h0)");
    }
}
