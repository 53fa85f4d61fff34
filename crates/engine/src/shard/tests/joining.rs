//! Clients that come while the load runs, and closed loops with a share for each second.

use weigh_model::units::parse_rate;

use super::*;

/// 30 clients, ten each half second, every one with a subscriber of its own.
fn pairs(messages: u64) -> Scene {
    let mut scene = scene(Manner::Answers);
    scene.confirms = false;
    let load = &mut scene.load;
    (load.pattern, load.topology) = (Pattern::Deliver, Topology::Pairs);
    (load.connections, load.subscribers) = (30, 30);
    (load.arrival, load.writes) = (Arrival::Burst, Writes::Single);
    (load.messages, load.join) = (Some(messages), Some("10 every 500ms".parse().unwrap()));
    scene
}

/// Messages that were sent, by the stretch of `length_ms` in which they were sent. What is sent as
/// a stretch begins may be in the interval that ends there.
fn by_stretches(played: &Played, length_ms: u64) -> Vec<u64> {
    let mut stretches = std::collections::BTreeMap::new();
    let first = played.intervals.iter().map(|told| told.border).min().unwrap_or_default();
    let every = Nanos::from_millis(100);
    for told in played.intervals.iter().filter(|told| told.interval.sent > 0) {
        let place = (told.border - first + every).0 / (length_ms * 1_000_000);
        *stretches.entry(place).or_default() += told.interval.sent;
    }
    stretches.into_values().collect()
}

/// Each group sends at its turn and not before, its subscribers listen by then, and what it sends
/// is due when its turn comes, so that connecting is in its times.
#[test]
fn groups_come_one_after_the_other_and_are_heard() {
    for (shards, connects) in [(1, 60), (3, 60)] {
        let mut scene = pairs(90);
        scene.shards = shards;
        let (outcome, played) = scene.played();
        let ledger = &outcome.ledger;
        assert_eq!((ledger.sent, ledger.delivered, ledger.lost), (90, Some(90), Some(0)));
        assert_eq!((outcome.shards.opened, played.connections), (connects, connects));
        assert_eq!(by_stretches(&played, 500), [30, 30, 30], "{shards} shards");
        let (first, last) = outcome.shards.recorder.span.due.unwrap();
        assert_eq!(last - first, Nanos::from_secs(1), "two pauses");
        // A session each for subscriber and client lie between the turn and the first message.
        let least = outcome.shards.recorder.delivery.quantile(0.0).unwrap();
        assert!(least >= 4 * 50_000, "{least} ns");
        assert!(played.steps < 3_000, "{} steps", played.steps);
    }
}

/// Subscribers of all stand before the first client comes; closed loops begin at their turn.
#[test]
fn what_is_heard_by_all_is_connected_before() {
    let mut scene = pairs(90);
    scene.load.topology = Topology::FanIn;
    scene.load.subscribers = 1;
    scene.load.arrival = Arrival::Closed;
    let (outcome, played) = scene.played();
    assert_eq!((outcome.ledger.delivered, outcome.shards.opened), (Some(90), 31));
    assert_eq!(by_stretches(&played, 500), [30, 30, 30]);
    assert!(outcome.shards.set_up.is_some(), "the subscriber stood before the load");
}

/// While connections are refused, a client is tried again, and what it has to send is late and not
/// lost; where it stays so, all of it is accounted for as not sent.
#[test]
fn who_cannot_connect_at_its_turn_is_tried_again_and_accounted_for() {
    let mut scene = pairs(90);
    scene.refuse = Some((Nanos::from_millis(450), Nanos::from_millis(600)));
    let (outcome, _) = scene.played();
    assert_eq!((outcome.ledger.sent, outcome.ledger.delivered), (90, Some(90)));
    assert!(outcome.shards.lost_links >= 10, "{}", outcome.shards.lost_links);
    scene.refuse = Some((Nanos::from_millis(450), Nanos::from_secs(50)));
    let (outcome, played) = scene.played();
    let ledger = &outcome.ledger;
    assert_eq!((ledger.sent, ledger.delivered, ledger.not_sent), (30, Some(30), 60));
    assert_eq!(ledger.not_sent_causes[&NotSentCause::ConnectionClosed], 60);
    assert!(played.ended < Nanos::from_secs(10), "{}", played.ended);
}

#[test]
fn a_target_that_lets_nobody_in_ends_the_trial() {
    let mut scene = pairs(90);
    scene.refuse = Some((Nanos(0), Nanos::from_secs(50)));
    let played = scene.play();
    assert!(played.is_over);
    assert!(
        matches!(played.outcome, Err(Failure::Unreachable { .. })),
        "{:?}",
        played.outcome.err()
    );
}

/// Messages of clients that never started are not sent.
#[test]
fn a_stop_between_two_groups_leaves_the_rest_unsent() {
    let mut scene = pairs(90);
    scene.stops = vec![Nanos::from_millis(700)];
    let (outcome, _) = scene.played();
    let ledger = &outcome.ledger;
    assert_eq!((ledger.sent, ledger.delivered, ledger.not_sent), (60, Some(60), 30));
}

/// A connection for every message: each client begins at its turn.
#[test]
fn connections_for_each_message_begin_at_their_turn() {
    let mut scene = scene(Manner::Answers);
    scene.lifetime = Lifetime::PerMessage;
    scene.load.messages = Some(40);
    scene.load.join = Some("2 every 500ms".parse().unwrap());
    let (outcome, played) = scene.played();
    assert_eq!((outcome.ledger.sent, played.connections), (40, 40));
    assert_eq!(by_stretches(&played, 500), [20, 20]);
}

/// 40 a second over 4 clients: ten of each at the beginning of a second, and then nothing.
#[test]
fn a_share_is_sent_at_the_beginning_of_each_second() {
    for (confirms, window) in [(true, 1), (false, 1), (true, 3)] {
        let mut scene = scene(Manner::Answers);
        scene.confirms = confirms;
        scene.load.window = Some(window);
        scene.load.arrival = Arrival::EachSecond;
        scene.load.rate = Some(parse_rate("40/s").unwrap());
        let (outcome, played) = scene.played();
        assert_eq!(outcome.ledger.sent, 200);
        assert_eq!(by_stretches(&played, 1_000), [40; 5], "{confirms} {window}");
        assert!(played.ended >= Nanos::from_secs(4) && played.ended < Nanos::from_millis(4_300));
        assert!(played.steps < 3_000, "{} steps", played.steps);
        if confirms {
            let slowest = outcome.shards.recorder.response.max().unwrap();
            assert!(slowest < 2_000_000, "{slowest} ns: a client that waits is not late");
        }
    }
}

/// By time: three seconds are three shares.
#[test]
fn shares_of_a_time_are_as_many_as_its_seconds() {
    let mut scene = scene(Manner::Answers);
    scene.load.arrival = Arrival::EachSecond;
    scene.load.rate = Some(parse_rate("7/s/client").unwrap());
    (scene.load.messages, scene.load.duration) = (None, Some(Nanos::from_secs(3)));
    let (outcome, _) = scene.played();
    assert_eq!(outcome.ledger.sent, 3 * 4 * 7);
    assert_eq!(outcome.window(&scene.load), Some(Nanos::from_secs(3)));
}
