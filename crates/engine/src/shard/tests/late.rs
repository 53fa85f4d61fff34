//! Messages that are confirmed after the timeout.

use super::parcel::Manner;
use super::*;

/// A round trip of 1.4 s and a timeout of 1 s: what was confirmed after it is late, and how late
/// the slowest was is kept, so that a longer timeout can be named.
#[test]
fn the_slowest_late_message_is_kept() {
    let mut scene = scene(Manner::Answers);
    scene.way.delay = Nanos::from_millis(700);
    (scene.load.connections, scene.load.messages) = (2, Some(8));
    let (outcome, _) = scene.played();
    let (late, slowest) = (outcome.ledger.late, outcome.shards.recorder.late_ns_max);
    assert!(late > 0 && outcome.ledger.delivered == Some(0), "{:?}", outcome.ledger);
    assert!((1_400_000_000..1_500_000_000).contains(&slowest), "{slowest} ns");
    scene.load.timeout = Nanos::from_secs(2);
    let (outcome, _) = scene.played();
    assert_eq!((outcome.ledger.late, outcome.shards.recorder.late_ns_max), (0, 0));
}
