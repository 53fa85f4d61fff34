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
