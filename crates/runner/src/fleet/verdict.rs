//! What hosts of a fleet add to the record of a trial: how far apart they started, which of them
//! was the limit or late, and rule L20 on times that span two clocks.

use std::ops::Range;

use weigh_model::event::TrialFinished;
use weigh_model::fleet::{FleetRan, HostRan, HostVerdict};
use weigh_model::numbers::time;
use weigh_model::warnings::WarningRecord;
use weigh_model::{Arrival, Load, Nanos, Topology, Warning};
use weigh_report::summary::lateness::LATEST_HOST;
use weigh_stats::histogram::Histogram;

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
        // Counted before times are withheld: the ledger is judged by the same clocks.
        let near = bound.and_then(|_| near_limit(finished, load, worst.bound_ns));
        finished.warnings.extend(near.map(|own| own.record()));
        finished.metrics.extend(bound.map(|bound| ("clock_bound_ns".to_owned(), bound)));
        let warning = withhold(below(finished, bound), finished, &worst, bound);
        finished.warnings.extend(warning);
    }
    name_the_limit(finished, ran);
    let of_hosts = late_hosts(ran).chain(uneven(ran, load));
    finished.warnings.extend(of_hosts.map(|own| own.record()));
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
        let spoken = name.trim_end_matches("_ns").replace('_', " ").replace("one way", "one-way");
        match median {
            Some(median) => format!("{spoken} (median {})", time(*median, false)),
            None => spoken,
        }
    };
    let names: Vec<String> = times.iter().map(words).collect();
    let [producer, consumer] = worst.hosts.map(HostRan::words);
    let between = format!("the clock error between {producer} and {consumer}");
    let verb = if names.len() == 1 { "is" } else { "are" };
    let names = names.join(" and ");
    let what = match bound_ns {
        Some(bound) => format!("{names} {verb} shorter than {between}, {}", time(bound, false)),
        None => format!("{names}: {between} is unknown"),
    };
    Some(Warning::BelowClockBound(what).record())
}

/// The warning about messages whose delivery time is so close to the time limit that the error of
/// the two clocks decides whether they were late.
fn near_limit(finished: &TrialFinished, load: &Load, bound_ns: u64) -> Option<Warning> {
    let times = Histogram::from_base64(finished.histograms.get("delivery_time_ns")?).ok()?;
    let limit = load.timeout.0;
    let (low, high) = (limit.saturating_sub(bound_ns), limit.saturating_add(bound_ns));
    // A recorded value is the upper end of its bucket, which is a thousandth of it wide at most.
    let is_near = |&(upper, _): &(u64, u64)| upper >= low && upper - upper / 1_000 <= high;
    let messages: u64 = times.recorded().filter(is_near).map(|(_, count)| count).sum();
    let near = || Warning::NearTimeLimit(messages, Nanos(bound_ns), load.timeout);
    (messages > 0).then(near)
}

/// The warning about hosts whose part of the times is mostly their own lateness.
fn late_hosts(ran: &FleetRan) -> impl Iterator<Item = Warning> + use<> {
    let is_late = |host: &&HostRan| host.verdict == Some(HostVerdict::Late);
    let words = |host: &HostRan| {
        let lag = host.send_lag_ns_p99.map_or(0.0, |own| own as f64);
        format!("{} ({} at p99)", host.words(), time(lag, false))
    };
    let late: Vec<String> = ran.hosts.iter().filter(is_late).map(words).collect();
    let what = format!("{} sent late", late.join(", "));
    (ran.hosts.len() > 1 && !late.is_empty()).then_some(Warning::LateHost(what)).into_iter()
}

/// The warning that hosts were busy at different times, where the load has no window of its own.
fn uneven(ran: &FleetRan, load: &Load) -> Option<Warning> {
    let [all, shared] = ran.busy_and_shared_ns()?;
    let has_window = load.arrival.is_open() && load.arrival != Arrival::Burst;
    let is_uneven = !has_window && (shared as f64) < EVEN_MIN * all as f64;
    is_uneven.then(|| Warning::UnevenHosts(shared as f64 / 1e9, all as f64 / 1e9))
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
const SPANNING: [&str; 5] = [
    "delivery_time_ns",
    "one_way_time_ns",
    "first_byte_time_ns",
    "poll_wait_time_ns",
    // From the due time where that is later than the request.
    "poll_round_trip_time_ns",
];

/// Share of the time in which hosts were busy that they must share.
const EVEN_MIN: f64 = 0.95;

/// Code of the warning that the generator was the limit.
const LIMITED: &str = "generator-limited";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weigh_engine::recorder::Recorder;
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
        let text = &warning.text;
        assert!(text.starts_with("delivery time (median 100 µs) is shorter than"), "{text}");
        assert!(text.ends_with(", 100 µs"), "{text}");
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

    /// A new recorded time must be put on one side or the other.
    #[test]
    fn every_recorded_time_is_of_one_clock_or_of_two() {
        const ONE_CLOCK: [&str; 9] = [
            "response_time_ns",
            "service_time_ns",
            "connect_time_ns",
            "session_time_ns",
            "send_lag_ns",
            "error_time_ns",
            "batch_time_ns",
            "handling_time_ns",
            "poll_lag_ns",
        ];
        for name in Recorder::TIMES {
            let is_of_one = ONE_CLOCK.contains(&name);
            assert_ne!(is_of_one, SPANNING.contains(&name), "{name}");
        }
    }

    #[test]
    fn messages_at_the_time_limit_are_counted_with_the_error_of_the_clocks() {
        let limit = Nanos::from_secs(1);
        let load = Load { timeout: limit, ..load(Topology::FanIn, 4, 1) };
        let mut times = Histogram::new();
        for (value_ns, count) in [(990_000_000, 5), (999_950_000, 2), (1_000_050_000, 3)] {
            times.record_n(value_ns, count);
        }
        times.record(1_010_000_000);
        let mut finished = finished(5e8);
        finished.histograms.insert("delivery_time_ns".to_owned(), times.to_base64());
        add(&mut finished, &ran(), &load, false);
        let near: Vec<&WarningRecord> =
            finished.warnings.iter().filter(|own| own.code == "near-time-limit").collect();
        let expected = "up to 5 messages arrived within 100 µs of the time limit of 1 s";
        assert!(near.len() == 1 && near[0].text.starts_with(expected), "{near:?}");

        finished.warnings.clear();
        add(&mut finished, &ran(), &Load { timeout: Nanos::from_secs(2), ..load }, false);
        assert!(finished.warnings.iter().all(|own| own.code != "near-time-limit"));
    }

    #[test]
    fn a_late_host_is_named_although_all_together_are_not_late() {
        let mut ran = ran();
        ran.hosts[0].verdict = Some(HostVerdict::Late);
        let mut finished = finished(1e9);
        add(&mut finished, &ran, &load(Topology::Pairs, 4, 4), false);
        let late = finished.warnings.iter().find(|own| own.code == "late-host").expect("one");
        assert_eq!(late.text, "agent 0 (h0) (90.0 ns at p99) sent late");
    }

    #[test]
    fn a_load_without_a_window_says_that_hosts_were_busy_at_different_times() {
        let mut ran = ran();
        ran.hosts[0].busy_ns = Some([0, 4_000_000_000]);
        ran.hosts[1].busy_ns = Some([1_000, 2_000_000_000]);
        let has = |ran: &FleetRan, load: &Load| {
            let mut finished = finished(1e9);
            add(&mut finished, ran, load, false);
            finished.warnings.iter().any(|own| own.code == "uneven-hosts")
        };
        let closed = load(Topology::Pairs, 4, 4);
        assert!(has(&ran, &closed));
        assert!(!has(&ran, &Load { arrival: Arrival::Poisson, ..closed.clone() }));
        ran.hosts[1].busy_ns = Some([100_000_000, 3_950_000_000]);
        assert!(!has(&ran, &closed), "96 % are shared");
    }

    #[test]
    fn a_limit_of_the_generator_names_the_busiest_host() {
        let mut finished = finished(1e9);
        add(&mut finished, &ran(), &load(Topology::Pairs, 4, 4), false);
        assert!(finished.warnings[0].text.ends_with("; busiest: agent 1 (h1)"));
        assert_eq!(finished.scene["fleet.latest"], "agent 0 (h0)");
    }
}
