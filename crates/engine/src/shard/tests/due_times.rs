//! Which producer sends at which due time (decision 62). The seed decides it where clients have
//! schedules of their own and where a shard has one producer, whatever happens to connections. Of
//! a schedule that producers share it decides when the shard sends, and free producers take turns.

use weigh_model::units::parse_rate;

use super::fleet::{Sent, delivering, play};
use super::*;

/// A trial whose connections end after every twentieth message, on one host next to the server and
/// on four hosts far away: what is in flight then, and who is free, differs.
fn near_and_far(arrival: Arrival, producers: u32, rate: &str) -> [Vec<Sent>; 2] {
    let mut scene = delivering(arrival);
    scene.manner = Manner::ResetsAfter(20);
    scene.load.connections = producers;
    scene.load.rate = Some(parse_rate(rate).unwrap());
    [(1, Nanos::from_micros(50)), (4, Nanos::from_millis(7))].map(|(hosts, delay)| {
        scene.way.delay = delay;
        let played = play(&scene, hosts);
        let lost: u64 = played.shards.iter().map(|shard| shard.lost_links).sum();
        assert!(lost >= 40, "{lost} connections were lost on {hosts} hosts");
        assert_eq!(played.sent.len(), 2_000, "{hosts} hosts");
        played.sent
    })
}

#[test]
fn a_client_keeps_its_due_times_when_connections_end() {
    for (arrival, producers, rate) in [
        (Arrival::Periodic, 8, "2k/s"),
        (Arrival::Poisson, 8, "250/s/client"),
        // One producer in each shard has the shared schedule for itself.
        (Arrival::Poisson, 4, "2k/s"),
        (Arrival::Constant, 4, "2k/s"),
    ] {
        let [near, far] = near_and_far(arrival.clone(), producers, rate);
        let differs = near.iter().zip(&far).find(|(near, far)| near != far);
        assert!(differs.is_none(), "{arrival:?}, {producers} producers: {differs:?}");
    }
}

/// A producer that is not connected cannot send, and the load must not wait for it.
#[test]
fn a_shard_keeps_its_due_times_and_free_producers_take_them() {
    let [near, far] = near_and_far(Arrival::Poisson, 8, "2k/s");
    let by_shard = |sent: &[Sent]| {
        let mut dues: Vec<_> = sent.iter().map(|(client, _, due, _)| (client % 4, *due)).collect();
        dues.sort_unstable();
        dues
    };
    assert!(by_shard(&near) == by_shard(&far), "a due time of another shard");
    let counts = |sent: &[Sent]| {
        (0..8).map(|client| sent.iter().filter(|own| own.0 == client).count()).collect::<Vec<_>>()
    };
    assert_ne!(near, far, "the two producers of a shard take turns by who is connected");
    let (near, far) = (counts(&near), counts(&far));
    assert!(near.iter().chain(&far).all(|count| *count > 100), "{near:?}, {far:?}");
}
