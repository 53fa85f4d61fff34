//! A server with a fixed service rate (oracle O22 of the methodology): each message is served for
//! the same time, one after the other, whatever is offered. What comes out while the load lasts is
//! the server's rate; what comes later is a backlog with figures of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use weigh_engine::record::{Observations, put_together};
use weigh_model::event::TrialFinished;
use weigh_model::ledger::Cause;
use weigh_model::protocol::Guarantee;
use weigh_model::{Nanos, Pattern, Topology};

use crate::rig::{Seen, Setup, assert_near};
use crate::scripted::Policy;

/// Serves one message after the other, each for so long.
fn server(service_ns: u64) -> Policy {
    let mut last = Nanos(0);
    Box::new(move |now, _| {
        last = last.max(now) + Nanos(service_ns);
        last
    })
}

/// Name, settings, pattern: every protocol with a queue before its answers, or its subscribers.
fn ways() -> Vec<Setup> {
    let way = |protocol: &str, settings: &[(&str, &str)], pattern| {
        Setup::new(protocol, settings, pattern, 1)
    };
    let mut ways = vec![
        way("mqtt", &[("qos", "0")], Pattern::Deliver),
        way("mqtt", &[("qos", "1")], Pattern::Deliver),
        way("mqtt", &[("qos", "2")], Pattern::Deliver),
        way("mqtt", &[("qos", "1")], Pattern::Publish),
        way("mqtt", &[("qos", "2")], Pattern::Publish),
        way("nats", &[("confirm", "none")], Pattern::Deliver),
        // What waits for acknowledgements leaves with them, past the scripted server.
        way("nats", &[("confirm", "jetstream"), ("max_ack_pending", "1000000")], Pattern::Deliver),
        way("nats", &[("confirm", "jetstream")], Pattern::Publish),
        way("redis", &[("command", "publish")], Pattern::Deliver),
        way("redis", &[("command", "xadd")], Pattern::Publish),
        way("tcp", &[], Pattern::Deliver),
        way("tcp", &[], Pattern::Request),
        // One connection has one request under way: many connections make the queue.
        way("http1", &[], Pattern::Request).connections(300),
    ];
    ways.push(way("http2", &[], Pattern::Request).connections(100));
    #[cfg(feature = "quic")]
    ways.push(way("http3", &[], Pattern::Request).connections(100));
    #[cfg(feature = "quic")]
    ways.push(way("mqtt", &[("qos", "1"), ("quic", "true")], Pattern::Publish));
    ways.push(way("grpc", &[], Pattern::Request).connections(100));
    ways.push(way("amqp", &[], Pattern::Publish));
    ways.push(way("kafka", &[("max_in_flight", "100000")], Pattern::Publish));
    // Less credit would hold messages back at their producers, where nothing is served.
    ways.push(way("amqp1", &[("broker_credit", "1000000")], Pattern::Publish));
    ways.push(way("websocket", &[], Pattern::Deliver));
    ways.push(way("websocket", &[("confirm", "pong")], Pattern::Publish));
    ways.push(way("sse", &[], Pattern::Deliver).connections(300));
    ways
}

/// `times` the capacity for `length`; nothing may be too late.
fn overloaded(mut setup: Setup, capacity: f64, times: f64, length: Nanos) -> Setup {
    setup.load.messages = None;
    setup.load.duration = Some(length);
    setup.load.timeout = Nanos::from_secs(1000);
    setup.load.window = None;
    setup.open("constant", &format!("{}/s", capacity * times))
}

fn metrics(setup: &Setup, seen: &Seen) -> BTreeMap<String, f64> {
    seen.outcome.metrics(&setup.load)
}

fn named(setup: &Setup, times: f64) -> String {
    format!("{} {:?} {:?} x {times}", setup.protocol.name(), setup.settings, setup.load.pattern)
}

/// What the figures must say of a server that serves `capacity` messages a second.
fn hold(setup: &Setup, seen: &Seen, (capacity, times): (f64, f64), tolerance: f64) {
    let name = named(setup, times);
    let (metrics, ledger) = (metrics(setup, seen), seen.ledger());
    let (out, inward) = (metrics["throughput_out_per_s"], metrics["throughput_in_per_s"]);
    let (window, drained) = (metrics["window_s"], metrics["drained_after_s"]);
    println!(
        "{name}: in {inward:.0}/s, out {out:.1}/s, backlog {}, drained after {drained:.3} s",
        metrics["backlog_messages"]
    );
    assert_near(&format!("{name}: out/s"), out, capacity, tolerance * capacity);
    assert_eq!(ledger.delivered, Some(ledger.sent), "{name}: nothing is lost");
    let within = out * window;
    let sent_within = inward * window;
    let backlog = metrics["backlog_messages"];
    assert_near(&format!("{name}: backlog"), backlog, sent_within - within, 0.5);
    // The rest is served at the same rate, whether it was sent by then or waited for its slot.
    let rest = (ledger.sent as f64 - within) / capacity;
    assert_near(&format!("{name}: drained"), drained, rest, tolerance * (window + rest));
    assert!(out <= metrics["settled_messages"] / window);
}

#[test]
fn an_overloaded_server_shows_its_service_rate() {
    let capacity = 1000.0;
    for setup in ways() {
        for (times, length_ms) in [(1.2, 4000), (2.0, 2000), (10.0, 500), (100.0, 300)] {
            let length = Nanos::from_millis(length_ms);
            let setup = overloaded(setup.clone(), capacity, times, length);
            let seen = setup.scripted_on_virtual_time(server(1_000_000));
            hold(&setup, &seen, (capacity, times), 0.01);
        }
    }
}

/// The queue that a warm-up leaves is served within the window: it is the server's rate too.
#[test]
fn what_the_warm_up_left_behind_is_served_within_the_window() {
    for setup in ways() {
        let mut setup = overloaded(setup, 1000.0, 2.0, Nanos::from_secs(2));
        setup.load.warmup = Nanos::from_secs(1);
        let seen = setup.scripted_on_virtual_time(server(1_000_000));
        let out = metrics(&setup, &seen)["throughput_out_per_s"];
        assert_near(&named(&setup, 2.0), out, 1000.0, 10.0);
        let finished = record(&setup, seen, |_| {});
        let codes = codes(&finished);
        let is_said = codes.iter().any(|code| code == "backlog" || code == "rate-not-reached");
        assert!(is_said, "{}: {codes:?}", named(&setup, 2.0));
    }
}

/// What still waited when the time limit of the last message was over is lost for that reason, not
/// for an unknown one: 4,000 messages, of which 1,000 leave each second until then.
#[test]
fn what_still_waited_at_the_time_limit_has_that_cause() {
    for setup in ways() {
        let mut setup = overloaded(setup, 1000.0, 4.0, Nanos::from_secs(1));
        setup.load.timeout = Nanos::from_secs(1);
        let seen = setup.scripted_on_virtual_time(server(1_000_000));
        let (ledger, name) = (seen.ledger(), named(&setup, 4.0));
        let (lost, arrived) = (ledger.lost.unwrap(), ledger.delivered.unwrap() + ledger.late);
        println!("{name}: {ledger:?}");
        assert!(arrived > 1000 && lost + ledger.not_sent > 1000, "{name}: {ledger:?}");
        let expected = if lost > 0 { vec![(&Cause::Timeout, &lost)] } else { Vec::new() };
        assert_eq!(ledger.causes.iter().collect::<Vec<_>>(), expected, "{name}");
    }
}

/// Messages that were never sent or never arrived are infinite, and the quantiles below them are
/// those of all messages: of 3,000 a second for a second, number i leaves at (i + 1) ms and was due
/// at i / 3 ms; those that leave within the time limit of the last one are two thirds.
#[test]
fn quantiles_are_those_of_all_messages_that_were_due() {
    for setup in ways() {
        let mut setup = overloaded(setup, 1000.0, 3.0, Nanos::from_secs(1));
        setup.load.timeout = Nanos::from_secs(1);
        let seen = setup.scripted_on_virtual_time(server(1_000_000));
        let name = named(&setup, 3.0);
        let finished = record(&setup, seen, |_| {});
        for time in headlines(&setup) {
            let quantile = |part: &str| finished.metrics[&format!("{time}.{part}")];
            println!("{name}: {time} p50 {} p90 {}", quantile("p50"), quantile("p90"));
            assert_near(&format!("{name}: {time}.p50"), quantile("p50"), 1e9, 2e7);
            assert!(quantile("p90").is_infinite() && quantile("max").is_infinite(), "{name}");
        }
    }
}

/// Not one message is answered in time: every quantile is infinite, and none is missing.
#[test]
fn a_trial_without_any_arrival_has_infinite_quantiles() {
    for setup in ways() {
        let mut setup = overloaded(setup, 1000.0, 1.0, Nanos::from_secs(1));
        setup.load.timeout = Nanos::from_secs(1);
        let seen = setup.scripted_on_virtual_time(server(1_000_000_000_000));
        let finished = record(&setup, seen, |_| {});
        for time in headlines(&setup) {
            for part in ["mean", "max", "p50", "p99"] {
                let figure = finished.metrics.get(&format!("{time}.{part}")).copied();
                assert_eq!(figure, Some(f64::INFINITY), "{} {time}.{part}", named(&setup, 1.0));
            }
        }
    }
}

/// Times from the due time that the server's queue is in.
fn headlines(setup: &Setup) -> Vec<&'static str> {
    match setup.load.delivers() {
        true => vec!["delivery_time_ns"],
        false => vec!["response_time_ns"],
    }
}

/// A number of messages makes the same window as the time that they take.
#[test]
fn a_load_given_by_count_has_the_window_of_its_schedule() {
    for arrival in ["constant", "periodic", "poisson"] {
        let mut setup = overloaded(ways().swap_remove(1), 1000.0, 2.0, Nanos::from_secs(2));
        (setup.load.duration, setup.load.messages) = (None, Some(4000));
        setup.load.arrival = arrival.parse().unwrap();
        let seen = setup.scripted_on_virtual_time(server(1_000_000));
        let metrics = metrics(&setup, &seen);
        assert_near(&format!("{arrival}: window"), metrics["window_s"], 2.0, 0.1);
        assert_near(&format!("{arrival}: in/s"), metrics["throughput_in_per_s"], 2000.0, 100.0);
        assert_near(&format!("{arrival}: out/s"), metrics["throughput_out_per_s"], 1000.0, 10.0);
    }
}

/// Each copy of a fan-out is a delivery.
#[test]
fn copies_count_each_for_itself() {
    let mut setup = overloaded(ways().swap_remove(1), 500.0, 4.0, Nanos::from_secs(2));
    setup.load.subscribers = 3;
    setup.load.topology = Topology::FanOut;
    let seen = setup.scripted_on_virtual_time(server(2_000_000));
    let metrics = metrics(&setup, &seen);
    assert_near("out/s", metrics["throughput_out_per_s"], 1500.0, 15.0);
    assert_eq!(seen.ledger().delivered, Some(4000 * 3));
}

/// A load that the server carries has no backlog and nothing to say about one.
#[test]
fn a_load_below_the_service_rate_leaves_nothing_behind() {
    for setup in ways() {
        let setup = overloaded(setup, 1000.0, 0.5, Nanos::from_secs(2));
        let seen = setup.scripted_on_virtual_time(server(1_000_000));
        let metrics = metrics(&setup, &seen);
        assert_near(&named(&setup, 0.5), metrics["throughput_out_per_s"], 500.0, 5.0);
        assert!(metrics["backlog_messages"] <= 1.0, "{metrics:?}");
        assert_eq!(codes(&record(&setup, seen, |_| {})), Vec::<String>::new());
    }
}

fn record(setup: &Setup, seen: Seen, with: impl Fn(&mut Observations)) -> TrialFinished {
    let job = setup.job(crate::rig::simulated_address());
    let mut observed = Observations::unwatched(Guarantee::AtLeastOnce, "oracle");
    observed.confirms = job.dial.confirms;
    with(&mut observed);
    put_together(&job.trial, seen.outcome, observed, setup.protocol)
}

/// Warnings of a trial about its rate.
fn codes(finished: &TrialFinished) -> Vec<String> {
    let spoken = ["backlog", "rate-not-reached", "generator-limited", "round-trip-limited"];
    let codes = finished.warnings.iter().map(|warning| warning.code.clone());
    codes.filter(|code| spoken.contains(&code.as_str())).collect()
}

#[test]
fn a_backlog_is_said_in_one_line() {
    let setup = overloaded(ways().swap_remove(0), 1000.0, 3.0, Nanos::from_secs(2));
    let seen = setup.scripted_on_virtual_time(server(1_000_000));
    let finished = record(&setup, seen, |_| {});
    let backlog = finished.warnings.iter().find(|warning| warning.code == "backlog").unwrap();
    let said = "messages were in flight when the load ended; the last one arrived 4 s later";
    assert!(backlog.text.ends_with(said), "{}", backlog.text);
}

/// Two connections with one message in flight each, answered after 1 ms: 2,000/s and no more. That
/// many connections as the text says reach the rate.
#[test]
fn the_round_trip_is_named_with_the_connections_that_lift_it() {
    let asked = |connections: u32| {
        let setup = Setup::new("http1", &[], Pattern::Request, 1).connections(connections);
        overloaded(setup, 1000.0, 4.5, Nanos::from_secs(1))
    };
    let delay = || -> Policy { Box::new(|now, _| now + Nanos::from_millis(1)) };
    let setup = asked(2);
    let mut seen = setup.scripted_on_virtual_time(delay());
    // A generator that spins while its slots are full is not the limit.
    (seen.outcome.shards.cpu, seen.outcome.window_cpu_max) =
        (Nanos(1_000_000_000), Nanos(1_000_000_000));
    let finished = record(&setup, seen, |_| {});
    let told: Vec<_> =
        finished.warnings.iter().map(|d| (d.code.as_str(), d.text.as_str())).collect();
    let short = finished.warnings.iter().find(|warning| warning.code == "rate-not-reached");
    let short = short.unwrap_or_else(|| panic!("{told:?}"));
    assert!(short.text.contains("2 connections x 1 in flight / 1"), "{}", short.text);
    assert!(short.advice.contains("at least 5 connections (-c 5"), "{}", short.advice);
    assert!(!codes(&finished).contains(&"generator-limited".to_owned()), "{told:?}");
    let seen = asked(5).scripted_on_virtual_time(delay());
    assert_eq!(codes(&record(&asked(5), seen, |_| {})), Vec::<String>::new());
}

/// On sockets the server says itself how much it served until the load ended: on a busy machine it
/// gets fewer messages than it could serve. Nothing that left later may count, in any attempt; what
/// left shortly before may have been held up on its way by other programs, so there are several.
#[test]
fn an_overloaded_server_shows_its_service_rate_on_sockets() {
    let mut ways = ways();
    ways.iter_mut().for_each(|way| way.load.connections = way.load.connections.min(40));
    for setup in ways {
        let name = named(&setup, 2.0);
        let setup = overloaded(setup, 500.0, 2.0, Nanos::from_secs(2));
        let is_near = (0..ATTEMPTS).any(|_| {
            let (out, served) = on_sockets(&setup);
            println!("{name}: {out} arrived, {served} served within the window");
            assert!(out <= served, "{name}: {out} arrived, {served} had left");
            served - out <= 0.03 * served
        });
        assert!(is_near, "{name}: see the counts above");
    }
}

/// How many messages arrived within the window by the figures, and how many left the server in it.
fn on_sockets(setup: &Setup) -> (f64, f64) {
    let departures = Arc::new(Mutex::new(Vec::new()));
    let (noted, mut policy) = (Arc::clone(&departures), server(2_000_000));
    let seen = setup.scripted_on_sockets(Box::new(move |now, message| {
        let departure = policy(now, message);
        noted.lock().unwrap().push(departure);
        departure
    }));
    let (begin, end) = seen.outcome.window_between().unwrap();
    let departures = departures.lock().unwrap();
    let served = departures.iter().filter(|at| (begin..end).contains(at)).count() as f64;
    let metrics = metrics(setup, &seen);
    assert_eq!(seen.ledger().delivered, Some(seen.ledger().sent));
    assert!(metrics["backlog_messages"] > 0.0, "{metrics:?}");
    ((metrics["throughput_out_per_s"] * metrics["window_s"]).round(), served)
}

/// How often a machine may be too busy.
const ATTEMPTS: usize = 5;
