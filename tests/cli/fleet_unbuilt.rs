//! Fleets in a build without them.

use crate::rig::Place;

#[test]
fn a_build_without_fleets_says_how_to_get_one() {
    let place = Place::new("no-fleet");
    let agent = ["agent", "--bus", "nats://127.0.0.1:4222", "--may-load", "127.0.0.1:*"];
    place.weigh(&agent).with(2).saying(&["fleet (weigh agent)", "--features full"]);
    let fleet = ["tcp", "--fleet", "nats://127.0.0.1:4222", "--agents", "2"];
    place.compare(&fleet).with(2).saying(&["fleet (--fleet)", "--features full"]);
    assert!(place.runs().is_empty());
}
