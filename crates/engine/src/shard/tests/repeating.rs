//! Messages that a server did not process, as it said.

use weigh_model::ledger::Cause;
use weigh_model::protocol::Lifetime;
use weigh_model::units::{Bytes, parse_rate};
use weigh_model::{Load, Nanos, Pattern};

use super::parcel::Manner;
use super::scene;
use crate::link::Traffic;

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

/// A server that processes nothing on any connection is not asked as fast as connections can be
/// made: the messages are lost once their time is over, after few connections.
#[test]
fn a_server_that_processes_nothing_is_asked_with_pauses() {
    let mut scene = scene(Manner::TakesOnly(0));
    scene.load.messages = Some(12);
    let (outcome, played) = scene.played();
    let ledger = &outcome.ledger;
    assert_eq!((ledger.scheduled, ledger.delivered), (12, Some(0)));
    assert_eq!(ledger.lost.unwrap() + ledger.not_sent, 12);
    assert!(played.connections < 100, "{} connections", played.connections);
    assert!(played.steps < 2_000, "{} steps", played.steps);
}

/// What a server ends after a while, without having been asked anything, is opened again at once.
#[test]
fn an_idle_connection_that_is_ended_late_is_opened_without_a_pause() {
    assert_eq!(Traffic::default().end_connection(false), 0);
    let mut short = Traffic::default();
    assert_eq!([short.end_connection(true), short.end_connection(true)], [1, 2]);
    short.has_answer = true;
    assert_eq!([short.end_connection(true), short.end_connection(true)], [0, 1]);
}
