//! Agents in time namespaces, whose clocks are known to be ahead by whole seconds, behind links
//! that delay one direction: the bound of each offset contains the truth, and a smaller one would
//! not.

use std::sync::Arc;
use std::time::Duration;

use weigh_engine::generator::TrialObserver;

use super::agents::{Process, gather, run, time_namespace};
use super::nats::Nats;
use super::proxy::Proxy;
use super::target::Target;
use super::workshop::{Watcher, merged, order};

/// Seconds by which the agents' clocks are ahead.
const AHEAD_S: [u32; 10] = [10, 37, 120, 333, 600, 1_000, 1_800, 2_500, 3_600, 5_000];
const ROUNDS: u64 = 10;

#[test]
fn bounds_contain_the_truth_and_half_of_them_do_not() {
    let test = "bounds_contain_the_truth_and_half_of_them_do_not";
    if !may_make_time_namespaces(test) {
        return;
    }
    let Some(nats) = Nats::start(test) else { return };
    let proxies: Vec<Proxy> = AHEAD_S.iter().map(|_| Proxy::start(nats.address)).collect();
    let both = proxies.iter().zip(AHEAD_S).zip(0..);
    let _agents: Vec<Process> = both
        .map(|((proxy, ahead), rank)| {
            Process::start(proxy.address, rank, Some(ahead), nats.folder.path())
        })
        .collect();
    let (mut measured, mut beyond_half) = (0, 0);
    for round in 0..ROUNDS {
        for (proxy, number) in proxies.iter().zip(round..) {
            // 0 to 20 ms, in one direction or in the other.
            let delay = Duration::from_micros(number * 7_919 % 21 * 1_000);
            match number % 2 {
                0 => proxy.delay(delay, Duration::ZERO),
                _ => proxy.delay(Duration::ZERO, delay),
            }
        }
        let fleet = gather(&nats.bus(), AHEAD_S.len() as u32);
        for member in fleet.members() {
            let truth_ns = i64::from(AHEAD_S[member.rank as usize]) * 1_000_000_000;
            let error = member.offset_ns.abs_diff(truth_ns);
            assert!(error <= member.clock_bound_ns, "round {round}: {error} ns, {member:?}");
            measured += 1;
            beyond_half += u32::from(error > member.clock_bound_ns / 2);
        }
    }
    println!("{measured} offsets within their bounds, {beyond_half} of them not within half");
    assert_eq!(measured, 100);
    assert!(4 * beyond_half > measured, "the bounds are wider than they must be: {beyond_half}");
}

/// Agents with clocks hours apart send, receive and count as one.
#[test]
fn a_trial_runs_over_clocks_that_are_far_apart() {
    let test = "a_trial_runs_over_clocks_that_are_far_apart";
    if !may_make_time_namespaces(test) {
        return;
    }
    let Some(nats) = Nats::start(test) else { return };
    let (target, ahead_s) = (Target::start(), [5_000, 10]);
    let proxies: Vec<Proxy> = ahead_s.iter().map(|_| Proxy::start(nats.address)).collect();
    let mut agents = Vec::new();
    for (rank, ahead) in (0..).zip(ahead_s) {
        let proxy = &proxies[rank as usize];
        proxy.delay(Duration::from_millis(8), Duration::ZERO);
        agents.push(Process::start(proxy.address, rank, Some(ahead), nats.folder.path()));
    }
    let fleet = gather(&nats.bus(), 2);
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let order = order(target.address());
    let outcome = run(&fleet, &order, &observer).unwrap();
    let mut skews = Vec::new();
    for host in &outcome.hosts {
        let truth_ns = i64::from(ahead_s[host.rank as usize]) * 1_000_000_000;
        let error = host.offset_ns.abs_diff(truth_ns);
        assert!(error <= host.clock_bound_ns, "{error} ns: {host:?}");
        skews.push(host.offset_ns - truth_ns);
    }
    let skew = skews[0].abs_diff(skews[1]);
    assert!(skew <= outcome.start_skew_bound_ns, "{skew} > {}", outcome.start_skew_bound_ns);
    let ledger = merged(&order, outcome).ledger;
    assert_eq!((ledger.contradiction(), ledger.delivered), (None, Some(10_000)));
}

fn may_make_time_namespaces(test: &str) -> bool {
    let made = time_namespace(1).args(["--fork", "true"]).output();
    if made.is_ok_and(|made| made.status.success()) {
        return true;
    }
    let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!is_ci, "time namespaces are not permitted here");
    eprintln!("SKIPPED {test}: time namespaces are not permitted here");
    false
}
