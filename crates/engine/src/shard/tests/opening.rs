//! Connections that do not all come to stand.

use super::*;

/// A kernel without memory for sockets, for example: each attempt succeeds, and all never stand.
#[test]
fn connections_that_never_all_stand_end_the_opening() {
    let mut scene = scene(Manner::GreetsAndCloses);
    scene.load.connections = 300;
    let played = scene.play();
    let Err(Failure::Session { reason, .. }) = played.outcome else { panic!("no failure") };
    assert!(reason.starts_with("at most ") && reason.contains("of 300 connections"), "{reason}");
    assert!(played.ended < Nanos::from_secs(40), "{}", played.ended);
    // A hold is a search for just that: it goes on with what stands.
    scene.load.pattern = Pattern::Hold;
    scene.load.messages = None;
    scene.load.duration = Some(Nanos::from_secs(1));
    let (outcome, played) = scene.played();
    assert!(outcome.shards.held < 300 && outcome.shards.lost_links > 0);
    assert!(played.ended < Nanos::from_secs(45), "{}", played.ended);
}

#[test]
fn refused_connections_are_tried_again_later_and_not_at_once() {
    let mut scene = scene(Manner::ResetsAfter(25));
    scene.refuse = Some((Nanos::from_millis(5), Nanos::from_millis(600)));
    let (outcome, played) = scene.played();
    assert_eq!(outcome.ledger.sent, 200);
    assert!(played.ended > Nanos::from_millis(600));
    assert!(played.steps < 2_000, "{} steps", played.steps);
}

/// The time from the first opening to the last standing connection of 50, over a way with this
/// delay.
fn opening_time(pattern: Pattern, delay: Nanos, times_its_handshake: bool) -> Nanos {
    let mut scene = scene(Manner::Answers);
    scene.way.delay = delay;
    scene.load.connections = 50;
    scene.load.pattern = pattern;
    if pattern == Pattern::Hold {
        (scene.load.messages, scene.load.duration) = (None, Some(Nanos::from_secs(1)));
    }
    scene.times_its_handshake = times_its_handshake;
    let (outcome, _) = scene.played();
    let (asked, stood) = outcome.shards.set_up.unwrap();
    stood - asked
}

/// QUIC takes for the round trip in how much time its handshake is answered.
#[test]
fn connections_that_time_their_handshakes_are_opened_one_after_another() {
    let millis = Nanos::from_millis;
    let (far, near) = (millis(50), Nanos::from_micros(50));
    let together = opening_time(Pattern::Request, far, false);
    assert!(together < millis(201), "{together}");
    // The first stands after two round trips at most: a 32nd of it, and at most 5 ms.
    let apart = opening_time(Pattern::Request, far, true);
    assert!((together + millis(49 * 3)..together + millis(49 * 5 + 1)).contains(&apart), "{apart}");
    let near_apart = opening_time(Pattern::Request, near, true);
    assert!(near_apart < millis(6), "{near_apart}");
    // A hold measures how fast connections come to stand.
    assert_eq!(opening_time(Pattern::Hold, far, true), opening_time(Pattern::Hold, far, false));
}

/// A long opening is not cut short because it waits by itself.
#[test]
fn pauses_do_not_count_as_a_path_that_prevents_connections() {
    let mut scene = scene(Manner::Answers);
    scene.way.delay = Nanos::from_millis(100);
    scene.load.connections = 3_000;
    scene.load.messages = Some(3_000);
    (scene.may_be_cut_off, scene.times_its_handshake) = (true, true);
    let (outcome, _) = scene.played();
    let (asked, stood) = outcome.shards.set_up.unwrap();
    assert!(stood - asked > Nanos::from_secs(12), "{}", stood - asked);
    assert_eq!((outcome.shards.opened, outcome.ledger.sent), (3_000, 3_000));
}
