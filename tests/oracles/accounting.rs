//! How much is sent, when and by whom: totals, shares, warm-up, think time, joining and due
//! times, all on virtual time.

use std::collections::BTreeMap;

use weigh_engine::io::sim::Link;
use weigh_engine::schedule::own_duration;
use weigh_model::mark::Mark;
use weigh_model::{Arrival, Nanos, Pattern, Split};

use crate::noting;
use crate::rig::{Seen, Setup, assert_near};

/// Runs and tells when which message was sent; none may be lost.
fn sends(setup: Setup) -> (Vec<(Nanos, Mark)>, Seen) {
    let (sends, seen) = noting::sends(setup);
    assert_eq!(seen.ledger().lost, Some(0));
    (sends, seen)
}

fn measured_by_producer(sends: &[(Nanos, Mark)]) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    for (_, mark) in sends.iter().filter(|(_, mark)| !mark.warmup) {
        *counts.entry(mark.producer).or_default() += 1;
    }
    counts
}

fn request(messages: u64) -> Setup {
    let mut setup = Setup::new("tcp", &[], Pattern::Request, messages);
    setup.link = Link { delay: Nanos::from_micros(500), ..Link::default() };
    setup
}

/// X (R + Z) = N: throughput, response time, think time and clients of a closed loop.
#[test]
fn a_closed_loop_obeys_little_and_thinks_as_told() {
    for (clients, window, think_ms) in [(1, 1, 0), (8, 1, 7), (5, 4, 3)] {
        let mut setup = request(20_000).connections(clients);
        setup.load.window = Some(window);
        setup.load.think = Nanos::from_millis(think_ms);
        let (sends, seen) = sends(setup.clone());
        let window_s = seen.outcome.window(&setup.load).unwrap().as_secs_f64();
        let x = seen.ledger().delivered.unwrap() as f64 / window_s;
        let r = seen.outcome.shards.recorder.response.mean().unwrap() / 1e9;
        let z = setup.load.think.as_secs_f64();
        let n = f64::from(clients * window);
        println!(
            "X (R + Z) / N = {:.4} with {clients} x {window}, Z {think_ms} ms",
            x * (r + z) / n
        );
        assert_near("X (R + Z) / N", x * (r + z) / n, 1.0, 0.02);
        if window == 1 {
            let mut last = BTreeMap::new();
            for (at, mark) in sends {
                if let Some(before) = last.insert(mark.producer, at) {
                    let gap = at - before;
                    let least = Nanos::from_millis(1) + setup.load.think;
                    assert!(gap >= least, "{gap} between sends of one client, at least {least}");
                    assert!(gap <= least + Nanos::from_micros(110), "{gap}, due after {least}");
                }
            }
        }
    }
}

#[test]
fn warm_up_is_left_out_exactly() {
    let mut open = request(1000).connections(4).open("constant", "2000/s");
    open.load.warmup = Nanos::from_millis(700);
    let (all, seen) = sends(open);
    let warmups = all.iter().filter(|(_, mark)| mark.warmup).count();
    assert_eq!((warmups, all.len()), (1400, 2400));
    assert_eq!((seen.ledger().sent, seen.server.warmup), (1000, 1400));
    assert_eq!(seen.outcome.shards.recorder.response.count(), 1000);
    assert_eq!(seen.server.unique, 1000);
    let mut closed = request(500).connections(3);
    closed.load.warmup = Nanos::from_millis(50);
    let (all, seen) = sends(closed);
    let warmups = all.iter().filter(|(_, mark)| mark.warmup).count() as u64;
    assert!(warmups >= 3 * 49, "{warmups}");
    assert_eq!((seen.ledger().sent, seen.server.warmup), (500, warmups));
    assert_eq!(seen.outcome.shards.recorder.response.count(), 500);
    let mut timed = request(0).connections(2).open("constant", "1000/s");
    (timed.load.messages, timed.load.duration) = (None, Some(Nanos::from_millis(300)));
    timed.load.warmup = Nanos::from_millis(100);
    let (_, seen) = sends(timed);
    assert_eq!((seen.ledger().sent, seen.server.warmup), (300, 100));
}

/// Where each client has its own share, the shares are as the split says.
#[test]
fn totals_are_split_as_told() {
    for arrival in [Arrival::Closed, Arrival::Burst, Arrival::Ramp(Nanos::from_millis(40))] {
        for (split, total) in [(Split::Exact, 1003), (Split::Ceil, 7 * 144)] {
            let mut setup = request(1003).connections(7);
            (setup.load.split, setup.load.arrival) = (split, arrival.clone());
            let (sends, seen) = sends(setup);
            assert_eq!(seen.ledger().sent, total, "{split:?} {arrival}");
            for (producer, count) in measured_by_producer(&sends) {
                assert_eq!(count, split.share(1003, 7, producer), "{split:?} {arrival}");
            }
        }
    }
    for arrival in ["periodic", "constant", "poisson"] {
        let setup = request(1003).connections(7).open(arrival, "100/s/client");
        let (sends, seen) = sends(setup);
        assert_eq!(seen.ledger().sent, 1003, "{arrival}");
        for (producer, count) in measured_by_producer(&sends) {
            assert_eq!(count, Split::Exact.share(1003, 7, producer), "{arrival}");
        }
    }
}

#[test]
fn clients_of_a_ramp_join_evenly() {
    let mut setup = request(5000).connections(10);
    setup.load.arrival = Arrival::Ramp(Nanos::from_millis(100));
    let (sends, _) = sends(setup);
    let mut first: BTreeMap<u32, Nanos> = BTreeMap::new();
    for (at, mark) in &sends {
        first.entry(mark.producer).or_insert(*at);
    }
    let start = first[&0];
    for (producer, at) in first {
        let expected = Nanos::from_millis(10 * u64::from(producer));
        let off = (at - start).0.abs_diff(expected.0);
        assert!(off < 150_000, "client {producer} joined {off} ns off its time");
    }
}

#[test]
fn schedules_are_kept_to_the_message() {
    // 100/s for 1 s, then 300/s for 2 s.
    let mut steps = request(0).connections(20);
    steps.load.messages = None;
    steps.load.arrival = "steps:100/s@1s,300/s@2s".parse().unwrap();
    steps.load.duration = own_duration(&steps.load.arrival, &[]);
    let (all, seen) = sends(steps);
    assert_eq!(seen.ledger().sent, 700);
    let start = all.iter().map(|(_, mark)| mark.due).min().unwrap();
    let first = all.iter().filter(|(_, mark)| mark.due - start < Nanos::from_secs(1)).count();
    assert_eq!(first, 100);
    // A trace: each listed moment once, in order.
    let mut trace = request(0).connections(3);
    trace.trace = [0, 5, 5, 40, 41, 300].map(Nanos::from_millis).to_vec();
    trace.load.messages = None;
    trace.load.arrival = Arrival::Trace("listed".to_owned());
    trace.load.duration = own_duration(&trace.load.arrival, &trace.trace);
    let listed = trace.trace.clone();
    let (all, seen) = sends(trace);
    assert_eq!(seen.ledger().sent, 6);
    let start = all[0].1.due;
    let mut dues: Vec<Nanos> = all.iter().map(|(_, mark)| mark.due - start).collect();
    dues.sort_unstable();
    assert_eq!(dues, listed);
    // Periodic: every client keeps its own period to the nanosecond.
    let setup = request(400).connections(4).open("periodic", "50/s/client");
    let (all, _) = sends(setup);
    let mut last: BTreeMap<u32, Nanos> = BTreeMap::new();
    for (_, mark) in all {
        if let Some(before) = last.insert(mark.producer, mark.due) {
            assert_eq!(mark.due - before, Nanos::from_millis(20));
        }
    }
    // By duration: a Poisson stream has a count of its own, the others an exact one.
    for (arrival, exact) in [("constant", Some(500)), ("periodic", Some(500)), ("poisson", None)] {
        let mut setup = request(0).connections(5).open(arrival, "500/s");
        (setup.load.messages, setup.load.duration) = (None, Some(Nanos::from_secs(1)));
        let (all, seen) = sends(setup);
        assert_eq!(all.len() as u64, seen.ledger().sent);
        match exact {
            Some(count) => assert_eq!(seen.ledger().sent, count, "{arrival}"),
            None => assert_near("poisson count", all.len() as f64, 500.0, 4.0 * 500f64.sqrt()),
        }
    }
}

/// A burst is due at once; its window reaches from the first send to the last completion.
#[test]
fn a_burst_is_due_at_once() {
    let mut setup = request(600).connections(6);
    setup.load.arrival = Arrival::Burst;
    let (all, seen) = sends(setup.clone());
    let due = all[0].1.due;
    assert!(all.iter().all(|(_, mark)| mark.due == due));
    // Half a millisecond there and back, and nothing takes time on the way.
    let window = seen.outcome.window(&setup.load).unwrap();
    assert_eq!(window, Nanos::from_millis(1));
    assert_eq!(seen.ledger().delivered, Some(600));
}
