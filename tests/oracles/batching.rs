//! Messages that leave together: each keeps its identity and its place in the ledger, and the times
//! of message and exchange follow from the path.

use weigh_engine::io::sim::Link;
use weigh_model::{Nanos, Pattern};

use crate::rig::{Seen, Setup, assert_near};

/// A closed loop of batches over `protocol`, 10 ms away.
fn batches(protocol: &str, settings: &[(&str, &str)], messages: u64, batch: u32) -> Setup {
    let mut setup = Setup::new(protocol, settings, Pattern::Batch, messages);
    setup.load.batch = Some(batch);
    setup.load.window = Some(1);
    setup.link = Link { delay: Nanos::from_millis(10), ..Link::default() };
    setup
}

const PROTOCOLS: [(&str, &[(&str, &str)]); 4] =
    [("http1", &[]), ("mqtt", &[("qos", "1")]), ("mqtt", &[("qos", "2")]), ("tcp", &[])];

fn response_ms(seen: &Seen, q: f64) -> f64 {
    seen.outcome.shards.recorder.response.quantile(q).unwrap() as f64 / 1e6
}

fn batch_ms(seen: &Seen) -> f64 {
    seen.outcome.shards.recorder.batch.mean().unwrap() / 1e6
}

/// 1,000 messages, 100 at a time, one exchange after the other: ten round trips.
#[test]
fn a_batch_takes_a_round_trip_however_many_messages_are_in_it() {
    for (protocol, settings) in PROTOCOLS {
        let seen = batches(protocol, settings, 1000, 100).on_virtual_time();
        let what = format!("{protocol} {settings:?}");
        assert_eq!(seen.ledger().delivered, Some(1000), "{what}");
        assert_eq!((seen.server.unique, seen.server.duplicates), (1000, 0), "{what}");
        // PUBLISH, PUBREC, PUBREL, PUBCOMP are two round trips.
        let trips = if settings.contains(&("qos", "2")) { 2.0 } else { 1.0 };
        let recorder = &seen.outcome.shards.recorder;
        assert_eq!((recorder.batch.count(), recorder.response.count()), (10, 1000), "{what}");
        assert_near(&what, batch_ms(&seen), 20.0 * trips, 0.1);
        assert_near(&what, response_ms(&seen, 0.5), 20.0 * trips, 0.1);
        let whole = recorder.span.last_done.unwrap() - recorder.span.first_sent.unwrap();
        assert_near(&what, whole.as_secs_f64() * 1e3, 200.0 * trips, 1.0);
        assert_eq!(recorder.writes, 10, "{what}");
    }
}

/// The last batch holds what is left, on every connection.
#[test]
fn a_total_that_does_not_divide_is_sent_all_the_same() {
    for (protocol, settings) in PROTOCOLS {
        let mut setup = batches(protocol, settings, 1003, 100).connections(3);
        setup.load.window = Some(2);
        let seen = setup.on_virtual_time();
        assert_eq!(seen.ledger().delivered, Some(1003), "{protocol}");
        assert_eq!(seen.outcome.shards.recorder.batch.count(), 3 * 4, "{protocol}");
    }
}

/// A burst leaves in batches too, as many at once as the window allows.
#[test]
fn a_burst_leaves_in_batches() {
    for (protocol, settings) in PROTOCOLS {
        let mut setup = batches(protocol, settings, 1000, 300);
        setup.load.arrival = weigh_model::Arrival::Burst;
        setup.load.window = Some(1);
        let seen = setup.on_virtual_time();
        assert_eq!(seen.ledger().delivered, Some(1000), "{protocol}");
        assert_eq!(seen.outcome.shards.recorder.batch.count(), 4, "{protocol}");
    }
}

/// At a rate a batch leaves when it is full: its first message has waited for the others, and what
/// is left when the schedule is spent leaves as it is.
#[test]
fn at_a_rate_messages_wait_until_their_batch_is_full() {
    for (protocol, settings) in PROTOCOLS {
        let trips = if settings.contains(&("qos", "2")) { 2.0 } else { 1.0 };
        let seen = batches(protocol, settings, 1005, 100).open("constant", "1000/s");
        let seen = seen.on_virtual_time();
        assert_eq!(seen.ledger().delivered, Some(1005), "{protocol}");
        let recorder = &seen.outcome.shards.recorder;
        assert_eq!(recorder.batch.count(), 11, "{protocol}");
        let most = recorder.response.max().unwrap() as f64 / 1e6;
        assert_near(protocol, most, 99.0 + 20.0 * trips, 0.3);
        assert_near(protocol, response_ms(&seen, 0.5), 49.5 + 20.0 * trips, 2.0);
        // That wait is no lag of the generator.
        assert_eq!(recorder.lags.own.max(), Some(0), "{protocol}");
    }
}

/// A server that grants fewer messages in flight than a batch has gets it in parts.
#[test]
fn a_batch_goes_in_parts_where_the_server_takes_no_more() {
    let mut setup = batches("mqtt", &[("qos", "1"), ("version", "5")], 300, 100);
    setup.server_settings = vec![("broker_receive_maximum".to_owned(), "40".to_owned())];
    let seen = setup.on_virtual_time();
    assert_eq!(seen.ledger().delivered, Some(300));
    assert_eq!(seen.outcome.shards.recorder.batch.count(), 3);
    // 40, 40 and 20: three round trips.
    assert_near("batch, ms", batch_ms(&seen), 60.0, 0.1);
}

/// Nobody confirms: a batch is over when it has left.
#[test]
fn unconfirmed_batches_arrive_whole() {
    for (protocol, settings) in
        [("mqtt", &[("qos", "0")][..]), ("tcp", &[("acknowledge", "false")])]
    {
        let seen = batches(protocol, settings, 1003, 100).on_virtual_time();
        assert_eq!(seen.ledger().sent, 1003, "{protocol}");
        assert_eq!(seen.server.unique, 1003, "{protocol}");
    }
}

#[test]
fn batches_arrive_whole_on_sockets() {
    for (protocol, settings) in PROTOCOLS {
        let mut setup = batches(protocol, settings, 20_007, 1000).connections(2);
        setup.shards = 2;
        let seen = setup.on_sockets();
        assert_eq!(seen.ledger().delivered, Some(20_007), "{protocol}");
        assert_eq!(seen.server.unique, 20_007, "{protocol}");
    }
}
