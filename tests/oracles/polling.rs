//! Consumers that ask. On virtual time every share of the delay is known before: messages that are
//! produced evenly over a period wait between nothing and all of it, and the path is added once
//! for the message on its way to the server and twice for the request that fetches it; how many
//! requests find nothing follows from counting. On sockets, and across a path, the mean is half a
//! period and the path.

use weigh_engine::io::sim::{Cut, Link};
use weigh_model::{Nanos, Pattern, Topology};

use crate::rig::{Setup, assert_near, simulated_address};

/// One producer at a constant rate, and consumers that ask once in a period, for whole seconds.
fn polled(consumers: u32, rate: &str, period: Nanos, seconds: u64) -> Setup {
    let mut setup = Setup::new("http1", &[], Pattern::Poll, 0).open("constant", rate);
    setup.load.messages = None;
    setup.load.duration = Some(Nanos::from_secs(seconds));
    setup.load.subscribers = consumers;
    setup.load.topology = if consumers > 1 { Topology::FanOut } else { Topology::FanIn };
    setup.load.poll.period = Some(period);
    setup.load.poll.limit = Some(1000);
    setup
}

fn across(mut setup: Setup, one_way: Nanos) -> Setup {
    setup.link = Link { delay: one_way, ..Link::default() };
    setup
}

fn ms(value_ns: f64) -> f64 {
    value_ns / 1e6
}

/// 997 messages a second lie at 997 different places of a period of a second.
#[test]
fn the_delay_is_half_a_period_and_the_path_on_virtual_time() {
    let one_way = Nanos::from_millis(15);
    for seed in 1..=5 {
        let setup = across(polled(1, "997/s", Nanos::from_secs(1), 20), one_way);
        let setup = setup.connections(100).seed(seed);
        let seen = setup.on_virtual_time();
        assert_eq!(seen.ledger().delivered, Some(997 * 20));
        let recorder = &seen.outcome.shards.recorder;
        let delivery = &recorder.delivery;
        // A message reaches the server after 15 ms, the request that brings it back takes 30: the
        // least is that the request comes just behind it.
        let (least, most) = (delivery.min().unwrap() as f64, delivery.max().unwrap() as f64);
        assert_near("least, ms", ms(least), 30.0, 1.1);
        assert_near("most, ms", ms(most), 1030.0, 1.6);
        assert_near("mean, ms", ms(delivery.mean().unwrap()), 530.0, 1.0);
        // Evenly from one to the other: every tenth is where it belongs.
        for tenth in 1..10 {
            let q = f64::from(tenth) / 10.0;
            let value = ms(delivery.quantile(q).unwrap() as f64);
            assert_near("tenth, ms", value, 30.0 + 1000.0 * q, 2.0);
        }
    }
}

#[test]
fn the_three_parts_add_up_to_the_delivery() {
    let one_way = Nanos::from_millis(15);
    let seen = across(polled(3, "50/s", Nanos::from_millis(400), 10), one_way);
    let seen = seen.connections(9).on_virtual_time();
    let recorder = &seen.outcome.shards.recorder;
    let parts = [&recorder.polls.wait, &recorder.polls.round_trip, &recorder.polls.handling];
    let count = recorder.delivery.count();
    assert_eq!((count, seen.ledger().delivered), (1500, Some(1500)));
    let sum: f64 = parts.iter().map(|part| part.mean().unwrap()).sum();
    parts.iter().for_each(|part| assert_eq!(part.count(), count));
    assert_near("sum, ms", ms(sum), ms(recorder.delivery.mean().unwrap()), 0.3);
    // The request is 30 ms on its way, less what of it lies before the message was due.
    assert!(recorder.polls.round_trip.max().unwrap() <= 30_020_000);
    assert!(recorder.polls.round_trip.quantile(0.5).unwrap() >= 29_980_000);
    // Nothing takes time in the simulated world but the way.
    assert_eq!(recorder.polls.handling.max(), Some(0));
}

/// 10 messages a second, 100 requests a second of each consumer: 10 of them find one each.
#[test]
fn answers_without_a_message_are_counted_exactly() {
    let one_way = Nanos::from_micros(100);
    for consumers in [1, 7] {
        let setup = polled(consumers, "10/s", Nanos::from_millis(10), 10);
        let seen = across(setup, one_way).on_virtual_time();
        assert_eq!(seen.ledger().delivered, Some(100 * u64::from(consumers)));
        let recorder = &seen.outcome.shards.recorder;
        assert_eq!(recorder.polls.made, 1000 * u64::from(consumers));
        assert_eq!(recorder.polls.empty, 900 * u64::from(consumers));
        assert_eq!((recorder.polls.skipped, recorder.polls.refused), (0, 0));
        assert_eq!(recorder.polls.messages, 100 * u64::from(consumers));
        assert_eq!(recorder.polls.lag.max(), Some(0));
    }
}

/// Where an answer takes longer than the period, every other request is not made, and that is said.
#[test]
fn a_request_waits_for_the_answer_to_the_last() {
    let setup = polled(1, "10/s", Nanos::from_millis(20), 5).connections(2);
    let seen = across(setup.clone(), Nanos::from_millis(15)).on_virtual_time();
    let recorder = &seen.outcome.shards.recorder;
    assert_eq!((recorder.polls.made, recorder.polls.skipped), (125, 125));
    let warnings = seen.outcome.warnings(&setup.load, true, &|code| setup.protocol.error(code));
    assert!(warnings.iter().any(|warning| warning.record().code == "polls-skipped"));
    assert_eq!(seen.ledger().delivered, Some(50));
}

/// A long poll is answered when the message comes: the delay is that of a subscriber, one way to
/// the server and one back, unless the message meets the next request on its way.
#[test]
fn a_long_poll_is_as_fast_as_the_path() {
    let mut setup = polled(2, "10/s", Nanos(0), 10);
    setup.load.poll.wait = Some(Nanos::from_secs(30));
    let seen = across(setup, Nanos::from_millis(15)).on_virtual_time();
    assert_eq!(seen.ledger().delivered, Some(200));
    let recorder = &seen.outcome.shards.recorder;
    let delivery = &recorder.delivery;
    assert_near("least, ms", ms(delivery.min().unwrap() as f64), 30.0, 0.05);
    assert_near("most, ms", ms(delivery.max().unwrap() as f64), 30.0, 0.05);
    // The request was there before the message: nothing was waited for.
    assert_eq!(recorder.polls.wait.max(), Some(0));
    assert!(recorder.polls.made < 210, "{} requests for 200 messages", recorder.polls.made);
    assert_eq!(recorder.polls.empty, 0);
}

/// A held request to which nothing comes is answered when its wait is over.
#[test]
fn a_long_poll_ends_with_its_wait() {
    let mut setup = polled(1, "1/s", Nanos(0), 4);
    setup.load.poll.wait = Some(Nanos::from_millis(300));
    let seen = across(setup, Nanos::from_micros(100)).on_virtual_time();
    assert_eq!(seen.ledger().delivered, Some(4));
    // A second holds three waits of 300.2 ms and a bit, which ends with the next message.
    let recorder = &seen.outcome.shards.recorder;
    assert_eq!((recorder.polls.made, recorder.polls.empty), (17, 12));
}

/// An answer that is full is followed by the next request at once.
#[test]
fn a_limit_leaves_nothing_behind() {
    let mut setup = polled(1, "100/s", Nanos::from_secs(1), 5).connections(4);
    setup.load.poll.limit = Some(10);
    let seen = across(setup, Nanos::from_millis(1)).on_virtual_time();
    assert_eq!(seen.ledger().delivered, Some(500));
    let recorder = &seen.outcome.shards.recorder;
    assert!(recorder.delivery.max().unwrap() < 1_050_000_000);
    assert!((50..=60).contains(&recorder.polls.made), "{}", recorder.polls.made);
}

/// The server keeps fewer readings than come in a period: what it forgot is lost by its hand.
#[test]
fn what_the_server_forgot_is_lost_and_counted_there() {
    let mut setup = polled(2, "100/s", Nanos::from_secs(1), 5);
    setup.server_settings = vec![("readings".to_owned(), "30".to_owned())];
    let seen = across(setup, Nanos::from_millis(1)).on_virtual_time();
    let ledger = seen.ledger();
    let forgotten: u64 = seen.server.dropped.values().sum();
    assert!(forgotten > 0, "{:?}", seen.server);
    assert_eq!(ledger.lost, Some(forgotten));
    assert_eq!(seen.server.unique, 500);
}

/// Each producer has a list of its own, and nobody hears of another's.
#[test]
fn pairs_have_lists_of_their_own() {
    let mut setup = polled(3, "30/s", Nanos::from_millis(100), 5).connections(3);
    setup.load.topology = Topology::Pairs;
    let seen = across(setup, Nanos::from_millis(1)).on_virtual_time();
    let ledger = seen.ledger();
    assert_eq!((ledger.delivered, ledger.foreign), (Some(150), 0));
}

/// A consumer whose connection is lost asks again where it was, and misses nothing.
#[test]
fn a_lost_connection_loses_no_message() {
    let mut setup = polled(1, "50/s", Nanos::from_millis(100), 5);
    let to = simulated_address();
    // Consumers connect first; after 1,500 bytes it has asked some twenty times.
    setup.cuts = vec![Cut { to, connection: 0, from_listener: false, after_bytes: 1500 }];
    let seen = across(setup, Nanos::from_millis(1)).on_virtual_time();
    assert_eq!(seen.outcome.shards.lost_links, 1);
    assert_eq!((seen.ledger().delivered, seen.ledger().duplicates), (Some(250), 0));
}

/// On sockets nothing is exact but what is counted; the delay is half a period.
#[test]
fn the_delay_is_half_a_period_on_sockets() {
    let period = Nanos::from_millis(100);
    let seen = polled(4, "997/s", period, 3).on_sockets();
    assert_eq!(seen.ledger().delivered, Some(4 * 997 * 3));
    let recorder = &seen.outcome.shards.recorder;
    assert_eq!(recorder.polls.made + recorder.polls.skipped, 4 * 30);
    let delay = ms(recorder.delivery.mean().unwrap());
    let wait = ms(recorder.polls.wait.mean().unwrap());
    println!("poll on sockets: mean delay {delay:.2} ms, of which waiting {wait:.2} ms of 50");
    assert!(wait <= delay, "what is waited for is part of the delay");
}
