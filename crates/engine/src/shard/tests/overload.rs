//! Loads far beyond what is taken: every message is accounted for, and what waits is bounded.

use weigh_model::units::parse_rate;

use super::*;
use crate::shard::parts::RELEASED_MAX;
use crate::shard::source::BACKLOG_MAX;

/// Due messages that a shard holds in memory.
pub(super) fn waiting(shard: &Shard) -> usize {
    let of_link = |link: &Link| match link.state.role {
        Role::Producer => link.state.traffic().waiting.len(),
        Role::Consumer => 0,
    };
    shard.pending.backlog.len() + shard.links.iter().map(of_link).sum::<usize>()
}

/// Four connections with a window of one and a round trip of 100 µs take 40,000 messages a second.
fn overloaded(rate: &str) -> Scene {
    let mut scene = scene(Manner::Answers);
    scene.load.messages = None;
    scene.load.duration = Some(Nanos::from_millis(100));
    scene.load.arrival = Arrival::Constant;
    scene.load.rate = Some(parse_rate(rate).unwrap());
    scene.load.window = Some(1);
    scene
}

#[test]
fn a_backlog_is_bounded_and_every_message_is_accounted_for() {
    for (rate, arrival) in [
        ("1M/s", Arrival::Constant),
        ("1M/s", Arrival::Poisson),
        ("250k/s/client", Arrival::Constant),
        ("250k/s/client", Arrival::Periodic),
    ] {
        let mut scene = overloaded(rate);
        scene.load.arrival = arrival;
        let (outcome, played) = scene.played();
        let ledger = &outcome.ledger;
        let place = format!("{rate} {:?}", scene.load.arrival);
        assert!(ledger.messages.abs_diff(100_000) < 2_000, "{place}: {}", ledger.messages);
        assert!(ledger.sent > 40_000, "{place}: {} sent in 1.1 s", ledger.sent);
        assert_eq!(ledger.sent + ledger.not_sent, ledger.messages, "{place}");
        let (most, growth) = played.waiting_max;
        assert!(most <= BACKLOG_MAX + 4, "{place}: {most} waited");
        assert!(most >= BACKLOG_MAX / 2, "{place}: the bound was not reached");
        assert!(growth <= 2 * RELEASED_MAX, "{place}: {growth} in one step");
        assert!(played.ended < Nanos::from_millis(1_400), "{place}: {}", played.ended);
        assert!(played.steps < 250_000, "{place}: {} steps", played.steps);
    }
}

/// A stop finds what was due until then, wherever it waited.
#[test]
fn a_stop_accounts_for_what_was_due_until_then() {
    for rate in ["10M/s", "2500k/s/client"] {
        let mut scene = overloaded(rate);
        scene.stops = vec![Nanos::from_millis(30)];
        let (outcome, played) = scene.played();
        assert!(outcome.shards.was_interrupted && played.ended < Nanos::from_millis(100), "{rate}");
        let offered = outcome.ledger.messages;
        assert!((200_000..300_000).contains(&offered), "{rate}: {offered}");
        assert!(played.waiting_max.0 <= BACKLOG_MAX + 4, "{rate}: {:?}", played.waiting_max);
    }
}

/// A load that is cut off offers all that it was to offer, and counts it without making it.
#[test]
fn a_load_that_nobody_can_send_is_counted_at_once() {
    let mut scene = overloaded("1M/s");
    scene.manner = Manner::ResetsAfter(5);
    scene.refuse = Some((Nanos::from_millis(1), Nanos::from_secs(1_000)));
    let (outcome, _) = scene.played();
    assert_eq!(outcome.ledger.messages, 100_000);
}

/// A burst leaves in few writes, or each message in one of its own; either way every message has
/// its own send time and its place in the ledger.
#[test]
fn bursts_leave_together_or_singly() {
    let mut scene = scene(Manner::Answers);
    scene.load.arrival = Arrival::Burst;
    let (together, _) = scene.played();
    scene.load.writes = Writes::Single;
    let (singly, _) = scene.played();
    for outcome in [&together, &singly] {
        assert_eq!(outcome.ledger.sent, 200);
        assert_eq!(outcome.shards.recorder.lags.all.count(), 200);
    }
    assert_eq!(singly.messages_per_write(&scene.load), Some(1.0));
    assert_eq!(singly.shards.recorder.writes, 200);
    // Four clients, 50 messages each, 16 in flight: 16, 16, 16, 2.
    assert_eq!(together.shards.recorder.writes, 16);
    let says = |outcome: &Outcome| {
        let warnings = outcome.warnings(&scene.load, true, &|_| unreachable!("no error"));
        warnings.iter().any(|warning| matches!(warning, Warning::Burst(_)))
    };
    assert!(says(&together) && !says(&singly));
}
