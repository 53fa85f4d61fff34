//! A generator that is late by a known amount: what its lateness adds to each quantile of the
//! times from the due time comes out exactly, and what waited for the target is none of it.

use std::collections::BTreeMap;

use weigh_engine::io::sim::{Link, Pause};
use weigh_engine::lag_share;
use weigh_model::Nanos;
use weigh_model::load::Pattern;
use weigh_model::units::Bytes;

use crate::rig::{Setup, assert_near};

const PERIOD: Nanos = Nanos::from_millis(100);
const EARLY: Nanos = Nanos::from_millis(1);
const LATE: Nanos = Nanos::from_millis(4);
const PARTS: [&str; 5] = ["p50", "p90", "p95", "p99", "max"];

/// Ten messages a second, 5 ms away, and one of `every` of them is due while the generator stands
/// still, until `LATE` after its due time. No answer comes in a pause.
fn late(mut setup: Setup, every: u64) -> Setup {
    setup.link = Link { delay: Nanos::from_millis(5), ..Link::default() };
    setup = setup.open("constant", "10/s");
    let on_time = setup.on_virtual_time();
    let (first, _) = on_time.outcome.shards.recorder.span.due.unwrap();
    setup.pauses = vec![Pause {
        from: first + PERIOD - EARLY,
        lasts: EARLY + LATE,
        every: Some(Nanos(PERIOD.0 * every)),
    }];
    setup
}

fn shares_ms(setup: &Setup, messages: u64) -> BTreeMap<String, f64> {
    let seen = setup.on_virtual_time();
    assert_eq!(seen.ledger().delivered.or(Some(seen.ledger().sent)), Some(messages));
    let shares = lag_share::of(&seen.outcome, &setup.load);
    shares.into_iter().map(|(name, share)| (name, share / 1e6)).collect()
}

/// A protocol, its settings, the pattern, and the times that hold lateness.
type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], Pattern, &'c [&'c str]);

/// Every protocol and guarantee, to the confirmation and to the subscriber: all but the first
/// message leave 4 ms late.
#[test]
fn lateness_of_every_message_is_in_every_quantile() {
    let cases: [Case<'_>; 8] = [
        ("http1", &[], Pattern::Request, &["response"]),
        ("tcp", &[], Pattern::Request, &["response"]),
        ("mqtt", &[("qos", "1")], Pattern::Publish, &["response"]),
        ("mqtt", &[("qos", "2")], Pattern::Publish, &["response"]),
        ("mqtt", &[("qos", "0")], Pattern::Deliver, &["delivery"]),
        ("mqtt", &[("qos", "1")], Pattern::Deliver, &["response", "delivery"]),
        ("mqtt", &[("qos", "2")], Pattern::Deliver, &["response", "delivery"]),
        ("tcp", &[], Pattern::Deliver, &["delivery"]),
    ];
    for (protocol, given, pattern, times) in cases {
        let setup = late(Setup::new(protocol, given, pattern, 200).connections(2), 1);
        let shares = shares_ms(&setup, 200);
        for time in times {
            for part in PARTS {
                let share = shares[&format!("{time}_time_lag_ns.{part}")];
                assert_near(&format!("{protocol} {given:?} {time} {part}"), share, 4.0, 0.02);
            }
            let mean = shares[&format!("{time}_time_lag_ns.mean")];
            assert_near("mean", mean, 4.0 * 199.0 / 200.0, 0.02);
        }
    }
}

/// One message of five is late: the quantiles above 80 % show it, those below do not.
#[test]
fn lateness_of_some_messages_is_in_the_quantiles_that_they_are_in() {
    let setup = late(Setup::new("http1", &[], Pattern::Request, 500), 5);
    let shares = shares_ms(&setup, 500);
    let share = |part: &str| shares[&format!("response_time_lag_ns.{part}")];
    assert_eq!(share("p50"), 0.0);
    for part in ["p90", "p95", "p99", "max"] {
        assert_near(part, share(part), 4.0, 0.02);
    }
    assert_near("mean", share("mean"), 0.8, 0.01);
}

/// A window of one and an answer that takes two periods: messages wait longer and longer, for the
/// target alone.
#[test]
fn what_waits_for_the_window_is_not_lateness() {
    for (protocol, given, pattern) in [
        ("mqtt", &[("qos", "1")][..], Pattern::Deliver),
        ("http1", &[], Pattern::Request),
        ("mqtt", &[("qos", "2")], Pattern::Publish),
    ] {
        let mut setup = Setup::new(protocol, given, pattern, 50).open("constant", "10/s");
        setup.load.window = Some(1);
        setup.load.timeout = Nanos::from_secs(60);
        setup.link = Link { delay: PERIOD, ..Link::default() };
        let seen = setup.on_virtual_time();
        assert!(seen.outcome.shards.recorder.lags.all.max() > Some(4_000_000_000), "{protocol}");
        for (name, share) in lag_share::of(&seen.outcome, &setup.load) {
            assert_eq!(share, 0.0, "{protocol} {name}");
        }
    }
}

/// A connection for each message: to make it is the target's time, to begin late the generator's.
#[test]
fn a_connection_for_each_message_is_not_lateness() {
    for every in [1, 1000] {
        let setup = Setup::new("mqtt", &[("qos", "1")], Pattern::Session, 100).connections(4);
        let shares = shares_ms(&late(setup, every), 100);
        for part in PARTS.iter().filter(|part| every == 1 || **part != "max") {
            let share = shares[&format!("response_time_lag_ns.{part}")];
            assert_near(part, share, if every == 1 { 4.0 } else { 0.0 }, 0.03);
        }
    }
}

/// Ten to an exchange, the first of which has waited nine periods for the last by design.
#[test]
fn what_waits_for_its_exchange_is_not_lateness() {
    let mut setup = Setup::new("http1", &[], Pattern::Batch, 100);
    setup.load.batch = Some(10);
    let shares = shares_ms(&late(setup, 1), 100);
    for part in PARTS.iter().filter(|part| **part != "p99") {
        assert_near(part, shares[&format!("response_time_lag_ns.{part}")], 4.0, 1.0);
    }
}

/// Requests of a consumer that is late are a part of what its messages wait, and no more of it
/// than there was to wait for.
#[test]
fn a_late_request_is_lateness_of_the_messages_it_fetches() {
    let mut setup = Setup::new("http1", &[], Pattern::Poll, 100).open("constant", "10/s");
    setup.load.subscribers = 1;
    setup.load.poll.period = Some(PERIOD);
    setup.load.poll.limit = Some(100);
    setup.link = Link { delay: Nanos::from_millis(5), ..Link::default() };
    let seen = setup.on_virtual_time();
    let (first, _) = seen.outcome.shards.recorder.span.due.unwrap();
    let wait = seen.outcome.shards.recorder.polls.wait.quantile(0.5).unwrap();
    setup.pauses =
        vec![Pause { from: first + Nanos(wait) - EARLY, lasts: EARLY + LATE, every: Some(PERIOD) }];
    let shares = shares_ms(&setup, 100);
    assert_near("p50", shares["delivery_time_lag_ns.p50"], 4.0, 0.1);
    setup.pauses.clear();
    for (name, share) in shares_ms(&setup, 100) {
        assert_eq!(share, 0.0, "{name}");
    }
}

/// Shards that were late by different amounts: the share is that of all their messages together.
#[test]
fn the_shares_of_several_shards_are_those_of_all_their_messages() {
    let of = |every| late(Setup::new("http1", &[], Pattern::Request, 200), every);
    let (setup, mut all) = (of(1), of(1).on_virtual_time().outcome);
    all.shards.recorder.merge(&of(1000).on_virtual_time().outcome.shards.recorder);
    let shares = lag_share::of(&all, &setup.load);
    let share = |part: &str| shares[&format!("response_time_lag_ns.{part}")] / 1e6;
    assert_near("p90", share("p90"), 4.0, 0.02);
    assert_near("mean", share("mean"), 2.0, 0.03);
}

/// Nobody can be late for what has no due time, and a body without a mark has no delivery time.
#[test]
fn loops_without_a_schedule_have_no_share() {
    let closed = Setup::new("http1", &[], Pattern::Request, 100);
    let mut burst = Setup::new("http1", &[], Pattern::Request, 100);
    burst.load.arrival = weigh_model::Arrival::Burst;
    for setup in [closed, burst] {
        assert_eq!(lag_share::of(&setup.on_virtual_time().outcome, &setup.load), BTreeMap::new());
    }
    let mut small = Setup::new("mqtt", &[("qos", "1")], Pattern::Deliver, 200);
    small.load.size = Some(Bytes(8));
    let shares = shares_ms(&late(small, 1), 200);
    assert_near("p50", shares["response_time_lag_ns.p50"], 4.0, 0.02);
    assert!(!shares.contains_key("delivery_time_lag_ns.p50"));
}
