//! Subscribers that read nothing for a while, on virtual time: what is confirmed meanwhile and
//! never delivered is exactly what the broker says it dropped, and what waits waits for the end.

use weigh_model::{Arrival, Nanos, Pattern};

use crate::rig::Setup;

const MESSAGES: u64 = 3000;
const STALL: Nanos = Nanos::from_secs(4);

/// A thousand a second for three seconds, to a subscriber that reads after four.
fn stalled(overload: &str) -> Setup {
    let settings = [("qos", "1"), ("overload", overload)];
    let mut setup = Setup::new("mqtt", &settings, Pattern::Deliver, MESSAGES);
    setup = setup.open("constant", "1000/s");
    setup.load.size = Some(weigh_model::units::Bytes(1000));
    setup.load.stall = Some(STALL);
    setup.load.timeout = Nanos::from_secs(10);
    setup
}

#[test]
fn what_a_full_queue_drops_was_confirmed_and_is_lost() {
    let seen = stalled("drop-newest:100").on_virtual_time();
    let ledger = seen.ledger();
    let dropped: u64 = seen.server.dropped.values().sum();
    println!("{dropped} of {MESSAGES} dropped");
    assert_eq!(ledger.contradiction(), None);
    assert_eq!((ledger.sent, ledger.acknowledged), (MESSAGES, MESSAGES));
    assert!(dropped > MESSAGES / 2, "{dropped}");
    assert_eq!((ledger.lost, ledger.acked_not_delivered), (Some(dropped), dropped));
}

/// The first message is due when the stall begins, so it waits for all of it; the publisher hears
/// nothing of that.
#[test]
fn what_is_kept_waits_for_the_end_of_the_stall() {
    let seen = stalled("unlimited").on_virtual_time();
    let ledger = seen.ledger();
    assert_eq!((ledger.delivered, ledger.lost), (Some(MESSAGES), Some(0)));
    assert_eq!((ledger.acked_not_delivered, ledger.late), (0, 0));
    let recorder = &seen.outcome.shards.recorder;
    let (first, last) = (recorder.delivery.max().unwrap(), recorder.delivery.min().unwrap());
    // Within the histogram's own precision of three digits.
    let exact = |value: u64, expected: u64| value.abs_diff(expected) <= expected / 500;
    assert!(exact(first, STALL.0), "{first}");
    assert!(exact(last, STALL.0 - Nanos::from_millis(2999).0), "{last}");
    assert!(recorder.response.max().unwrap() < Nanos::from_millis(1).0);
}

/// A closed loop of confirmed messages goes on while nobody reads.
#[test]
fn a_closed_loop_does_not_wait_for_who_does_not_read() {
    let mut setup = stalled("unlimited");
    setup.load.arrival = Arrival::Closed;
    setup.load.rate = None;
    let seen = setup.on_virtual_time();
    let ledger = seen.ledger();
    assert_eq!((ledger.delivered, ledger.lost), (Some(MESSAGES), Some(0)));
}
