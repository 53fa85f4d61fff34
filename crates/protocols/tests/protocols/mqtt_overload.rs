//! What the reference broker does with a subscriber that does not keep up: the named policies,
//! each with exact counts.

use crate::mqtt_world::{Peer, World, hello, message};
use weigh_protocols::mqtt::codec::Qos::AtMostOnce;
use weigh_protocols::mqtt::codec::Version::{V5, V311};
use weigh_protocols::mqtt::codec::{Options, Packet, Publish, Qos, Version};

fn publish(world: &mut World, peer: Peer, version: Version, publish: Publish<'_>) {
    world.send(peer, version, &Packet::Publish(publish));
}

fn listener(world: &mut World, version: Version, name: &str, filter: &str, qos: Qos) -> Peer {
    let peer = world.join(&hello(version, name));
    assert_eq!(world.subscribe(peer, version, filter, Options::plain(qos), 0), qos as u8);
    peer
}

/// 201 messages of 1,006 bytes on the wire to a subscriber that does not read: 66 go into its
/// socket's way until 64 KiB wait there, 135 are left for the queue.
fn overload(policy: &str, version: Version) -> (World, Vec<String>) {
    let mut world = World::new(&[("overload", policy)]);
    let slow = listener(&mut world, version, "slow", "t", AtMostOnce);
    world.stall(slow, true);
    let sender = world.join(&hello(V311, "sender"));
    for at in 0..201 {
        let body = format!("{at:0>1000}");
        publish(&mut world, sender, V311, message(AtMostOnce, "t", &body));
    }
    world.stall(slow, false);
    world.settle();
    let lines = world.lines(slow, version);
    let short = |line: String| line.trim_start_matches("t q0 ").trim_start_matches('0').to_owned();
    (world, lines.into_iter().map(short).collect())
}

#[test]
fn overload_policies_drop_exactly_what_they_say() {
    let (world, lines) = overload("unlimited", V311);
    assert_eq!((lines.len(), world.report().dropped.len()), (201, 0));
    assert_eq!((world.report().forwarded, world.report().queued_bytes), (201, 0));

    let (world, lines) = overload("drop-newest:100", V311);
    assert_eq!((lines.len(), world.report().dropped["queue_full"]), (166, 35));
    assert_eq!((lines[65].as_str(), lines[165].as_str()), ("65", "165"));

    let (world, lines) = overload("drop-oldest:100", V311);
    assert_eq!((lines.len(), world.report().dropped["queue_full"]), (166, 35));
    assert_eq!((lines[65].as_str(), lines[66].as_str(), lines[165].as_str()), ("65", "101", "200"));

    let (world, lines) = overload("disconnect:1000", V311);
    assert_eq!((lines.len(), world.report().disconnects), (201, 0));

    // After 100 sends 101 wait.
    let (world, lines) = overload("disconnect:100", V5);
    let report = world.report();
    assert_eq!((lines.len(), lines[100].as_str()), (101, "disconnect 0x97"));
    assert_eq!(report.dropped["subscriber_disconnected"], 101);
    assert_eq!((report.disconnects, report.queued, report.queued_bytes), (1, 0, 0));
}

/// Study 000, table 17: 60 publishers burst at one subscriber. What arrives does not depend on
/// what was sent, but on the mailbox.
#[test]
fn a_burst_from_sixty_publishers_collapses_under_disconnect_and_under_nothing_else() {
    let burst = |policy: &str, per_client: usize| {
        let mut world = World::new(&[("overload", policy)]);
        let counter = listener(&mut world, V311, "counter", "load/+", AtMostOnce);
        let senders: Vec<Peer> =
            (0..60).map(|at| world.join(&hello(V311, &format!("sender{at}")))).collect();
        let mut bytes = Vec::new();
        for _ in 0..per_client {
            Packet::Publish(message(AtMostOnce, "load/x", &"b".repeat(120)))
                .encode(V311, &mut bytes);
        }
        for sender in senders {
            world.feed(sender, &bytes);
        }
        world.settle();
        let arrived = world.lines(counter, V311).len();
        (arrived, world.report())
    };
    for per_client in [84, 250, 500] {
        let (arrived, report) = burst("disconnect:1000", per_client);
        assert!((100..1_500).contains(&arrived), "{arrived} of {}", 60 * per_client);
        let dropped = report.dropped["subscriber_disconnected"];
        assert_eq!(arrived as u64 + dropped, 60 * per_client as u64);
        assert_eq!((report.disconnects, report.received), (1, 60 * per_client as u64));
        let (arrived, report) = burst("unlimited", per_client);
        assert_eq!((arrived, report.disconnects), (60 * per_client, 0));
        assert!(report.dropped.is_empty());
    }
}
