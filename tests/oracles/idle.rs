//! Connections that only stand: all of them come up, every ping is answered, none is lost, and
//! nothing is counted that was not sent.

use std::sync::Arc;

use weigh_model::{Nanos, Pattern};

use crate::rig::{Seen, Setup};
use crate::wrapped::Wrapped;

const CONNECTIONS: u64 = 2_000;

const PING_ANSWER: &[u8] = &[0xD0, 0];

fn hold(keep_alive: &str, seconds: u64) -> Setup {
    let settings = [("keep_alive", keep_alive)];
    let mut setup = Setup::new("mqtt", &settings, Pattern::Hold, 0).connections(CONNECTIONS as u32);
    setup.load.messages = None;
    setup.load.duration = Some(Nanos::from_secs(seconds));
    setup
}

/// What holds of every hold that nothing disturbs.
fn check(setup: &Setup, seen: &Seen) {
    let (outcome, ledger) = (&seen.outcome, seen.ledger());
    let alive = outcome.shards.alive;
    assert_eq!((outcome.shards.opened, outcome.shards.held), (CONNECTIONS, CONNECTIONS));
    assert_eq!((outcome.shards.lost_links, alive.answered), (0, alive.sent));
    assert_eq!((ledger.scheduled, ledger.sent, ledger.received), (0, 0, 0));
    assert_eq!((ledger.not_sent, ledger.lost.unwrap_or(0)), (0, 0));
    assert_eq!((seen.server.connections, seen.server.received), (CONNECTIONS, 0));
    let metrics = outcome.metrics(&setup.load);
    assert_eq!(metrics["connections_held"], CONNECTIONS as f64);
    assert_eq!(metrics["keep_alives_unanswered"], 0.0);
}

/// With a keep-alive of 60 s a ping leaves 59.8 s after the last, or up to a tick later: five in
/// five minutes, and of two bytes each way.
#[test]
fn two_thousand_connections_for_five_minutes_on_virtual_time() {
    let setup = hold("60s", 300);
    let seen = setup.on_virtual_time();
    check(&setup, &seen);
    let alive = seen.outcome.shards.alive;
    assert_eq!((alive.sent, alive.in_window), (5 * CONNECTIONS, 5 * CONNECTIONS));
    let shorter = hold("60s", 1).on_virtual_time();
    assert_eq!(shorter.outcome.shards.alive.sent, 0);
    let (long, short) = (seen.outcome.shards.bytes, shorter.outcome.shards.bytes);
    let pings = (long.0 - short.0, long.1 - short.1);
    assert_eq!(pings, (2 * alive.sent, 2 * alive.sent));
    let per_s = seen.outcome.metrics(&setup.load)["keep_alives_per_s"];
    assert!((per_s - 5.0 * CONNECTIONS as f64 / 300.0).abs() < 1e-9, "{per_s}");
}

/// Inside QUIC the pings are those of MQTT, counted as they are over TCP; that of QUIC is in no
/// figure but the bytes. A broker ends clients that are silent for longer than they said.
#[cfg(feature = "quic")]
#[test]
fn connections_inside_quic_are_kept_alive_by_both() {
    let hold_in_quic = |keep_alive: &str, seconds| {
        let mut setup = hold(keep_alive, seconds);
        setup.settings.push(("quic".to_owned(), "true".to_owned()));
        setup.load.connections = 20;
        setup
    };
    let setup = hold_in_quic("60s", 300);
    let seen = setup.on_virtual_time();
    let alive = seen.outcome.shards.alive;
    assert_eq!((alive.sent, alive.in_window, alive.answered), (100, 100, 100));
    assert_eq!((seen.outcome.shards.lost_links, seen.outcome.shards.held), (0, 20));
    assert_eq!(seen.outcome.metrics(&setup.load)["keep_alives_unanswered"], 0.0);
    // A broker that hears no ping: 1.5 times the keep-alive (MQTT 5.0, section 3.1.2.10).
    let mut setup = hold_in_quic("60s", 100);
    setup.wrap = Some(Arc::new(|_, connection| {
        Box::new(Wrapped { is_woken: false, ..Wrapped::new(connection) })
    }));
    let seen = setup.on_virtual_time();
    assert_eq!(seen.outcome.shards.lost_links, 20, "{:?}", seen.outcome.shards.first_loss);
}

/// On sockets, with two shards that have a descriptor table each.
#[test]
fn two_thousand_connections_on_sockets() {
    let mut setup = hold("4s", 5);
    setup.shards = 2;
    let seen = setup.on_sockets();
    check(&setup, &seen);
    assert!(seen.outcome.shards.alive.sent >= CONNECTIONS, "{:?}", seen.outcome.shards.alive);
    assert!(seen.outcome.metrics(&setup.load)["connections_per_s"] > 0.0);
}

/// A server that takes pings and never answers: each connection is given up half a keep-alive
/// after its ping, made again, and the silence is told.
#[test]
fn pings_without_an_answer_are_told() {
    let mut setup = hold("60s", 80);
    setup.load.connections = 20;
    setup.wrap = Some(Arc::new(|_, connection| {
        Box::new(Wrapped { unheard: Some(PING_ANSWER), ..Wrapped::new(connection) })
    }));
    let seen = setup.on_virtual_time();
    let alive = seen.outcome.shards.alive;
    assert_eq!((alive.sent, alive.answered, seen.outcome.shards.lost_links), (20, 0, 0));
    assert_eq!(seen.outcome.metrics(&setup.load)["keep_alives_unanswered"], 20.0);
    setup.load.duration = Some(Nanos::from_secs(100));
    let longer = setup.on_virtual_time();
    assert_eq!((longer.outcome.shards.alive.sent, longer.outcome.shards.lost_links), (20, 20));
    assert_eq!(longer.outcome.shards.held, 20, "they stand again");
}
