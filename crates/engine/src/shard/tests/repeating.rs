//! Messages that a server did not process, as it said.

use weigh_model::ledger::Cause;
use weigh_model::protocol::Lifetime;
use weigh_model::units::{Bytes, parse_rate};
use weigh_model::{Load, Nanos, Pattern};

use super::parcel::Manner;
use super::scene;

/// What a server did not process is sent again on the next connection: every message is answered
/// once, in closed and in open loops, and keeps its due time.
#[test]
fn what_was_not_processed_is_sent_again() {
    for is_open in [false, true] {
        let mut scene = scene(Manner::TakesOnly(7));
        scene.load.window = Some(4);
        if is_open {
            let rate = parse_rate("20000/s").unwrap();
            scene.load = Load {
                messages: Some(200),
                size: Some(Bytes(64)),
                timeout: Nanos::from_secs(1),
                ..Load::open(Pattern::Request, 4, rate)
            };
        }
        let (outcome, played) = scene.played();
        let ledger = &outcome.ledger;
        assert_eq!((ledger.sent, ledger.delivered, ledger.lost), (200, Some(200), Some(0)));
        let again = outcome.shards.accounts.sent_again;
        assert!(again > 0 && played.connections > 20, "{again}, {}", played.connections);
        assert_eq!(outcome.metrics(&scene.load)["sent_again"], again as f64);
        assert_eq!(outcome.shards.lost_links, 0);
    }
}

/// Sessions have no next connection: there such a message is lost with its connection.
#[test]
fn a_session_that_was_not_processed_is_lost() {
    let mut scene = scene(Manner::TakesOnly(0));
    scene.lifetime = Lifetime::PerMessage;
    scene.load.pattern = Pattern::Session;
    let (outcome, _) = scene.played();
    assert_eq!(outcome.ledger.causes.get(&Cause::ConnectionClosed), Some(&200));
}
