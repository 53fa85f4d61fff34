//! Trials over several hosts, body by body: what each connection hands over, and everything that
//! the trial records of it, is the same wherever its shard runs.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use weigh_model::Ledger;
use weigh_model::mark::{Mark, Reading};
use weigh_model::units::parse_rate;

use super::bus::{Bus, Carrier};
use super::*;

/// A hash of each body as it was sent, by warm-up, producer and number. A body has the times of its
/// message in it.
type Bodies = BTreeMap<(bool, u32, u64), u64>;

/// Everything that is known of the messages of a trial.
#[derive(PartialEq)]
struct Known {
    bodies: Bodies,
    ledger: Ledger,
    /// Recorded times: name, count, median, maximum.
    times: Vec<(&'static str, u64, Option<u64>, Option<u64>)>,
}

/// Plays the scene over that many hosts. They meet over a bus also where there is one, so that
/// trials over one and over several start at the same moment.
fn play(scene: &Scene, hosts: u32) -> Known {
    let on = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let mut world = World::new(3);
    world.link(on, scene.way);
    let server = SimulatedServing::start(&parcel::host(scene.manner), on, world.party());
    let mut server = server.unwrap();
    let bus = Bus::new(hosts, scene.shards);
    let bodies = Arc::default();
    let mut players = Vec::new();
    for host in 0..hosts {
        let mut job = scene.job_of(on, None, bus.host(host as usize));
        keep_bodies(Arc::get_mut(&mut job).unwrap(), &bodies);
        for shard in scene.shards * host / hosts..scene.shards * (host + 1) / hosts {
            players.push(Player::new(&job, shard, world.party(), Vec::new()));
        }
    }
    let mut carrier = Carrier { bus, io: world.party(), next: Nanos(0) };
    let mut parties: Vec<&mut dyn Party> = vec![&mut server];
    parties.extend(players.iter_mut().map(|player| player as &mut dyn Party));
    parties.push(&mut carrier);
    world.run(&mut parties, Nanos::from_secs(120));
    assert!(players.iter().all(|player| player.shard.phase() == Phase::Done), "{}", world.now());
    let shards = players.into_iter().map(|player| player.shard.outcome()).collect();
    let Outcome { shards, ledger, .. } = Outcome::merge(shards, &scene.load, scene.confirms, true);
    assert_eq!(ledger.contradiction(), None);
    let times = shards.recorder.times().into_iter();
    let times = times.map(|(name, all)| (name, all.count(), all.quantile(0.5), all.max()));
    let bodies = std::mem::take(&mut *bodies.lock().unwrap());
    Known { bodies, ledger, times: times.collect() }
}

/// Lets the connections of a job note each body that they send.
fn keep_bodies(job: &mut Job, bodies: &Arc<Mutex<Bodies>>) {
    let (confirms, bodies) = (job.dial.confirms, Arc::clone(bodies));
    job.dial.make = Box::new(move |seat| {
        let bodies = Arc::clone(&bodies);
        let keep: parcel::Keep = Box::new(move |body| {
            let Reading::Whole(mark) = Mark::read_any(body) else { panic!("a body has no mark") };
            let identity = (mark.warmup, mark.producer, mark.sequence);
            let mut hasher = DefaultHasher::new();
            body.hash(&mut hasher);
            let twice = bodies.lock().unwrap().insert(identity, hasher.finish());
            assert_eq!(twice, None, "{identity:?} was sent twice");
        });
        Box::new(Parcels { keep: Some(keep), ..Parcels::new(seat, confirms, None) })
    });
}

/// A scene with warm-up in which four shards have several clients each.
fn four_shards(arrival: &str, rate: Option<&str>) -> Scene {
    let mut scene = scene(Manner::Answers);
    scene.shards = 4;
    scene.load.connections = 12;
    scene.load.size = Some(Bytes(100));
    scene.load.arrival = arrival.parse().unwrap();
    scene.load.rate = rate.map(|rate| parse_rate(rate).unwrap());
    if scene.load.arrival.is_open() && arrival != "burst" {
        scene.load.warmup = Nanos::from_millis(300);
        (scene.load.messages, scene.load.duration) = (None, Some(Nanos::from_secs(2)));
    }
    scene
}

#[test]
fn hosts_send_the_bodies_that_one_host_sends() {
    for (arrival, rate) in [
        ("constant", Some("20k/s")),
        ("poisson", Some("5k/s")),
        ("periodic", Some("300/s/client")),
        ("steps:2k/s@1s,5k/s@1s", None),
        ("burst", None),
        ("closed", None),
    ] {
        let scene = four_shards(arrival, rate);
        let alone = play(&scene, 1);
        assert!(alone.ledger.sent >= 200, "{arrival}: {:?}", alone.ledger);
        assert_eq!(Some(alone.ledger.sent), alone.ledger.delivered, "{arrival}");
        for hosts in [2, 4] {
            let apart = play(&scene, hosts);
            assert!(apart == alone, "{arrival} on {hosts} hosts");
        }
    }
}

#[test]
fn hosts_send_many_bodies_that_one_host_sends() {
    let mut scene = four_shards("poisson", Some("200k/s"));
    scene.load.connections = 64;
    (scene.load.messages, scene.load.duration) = (Some(MANY), None);
    let alone = play(&scene, 1);
    assert_eq!(alone.ledger.delivered, Some(MANY));
    assert!(play(&scene, 4) == alone);
}

/// Messages of the long trial: some seconds with both of its runs.
const MANY: u64 = 200_000;
