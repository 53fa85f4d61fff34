//! Trials whose shards are in several processes: they send what one process sends, and end as one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use weigh_model::body::BodySource;
use weigh_model::mark::Mark;
use weigh_model::units::parse_rate;

use super::bus::{Bus, Carrier};
use super::*;
use crate::message_log::MessageEvent;
use crate::schedule::Schedule;

/// A message as it was sent, whatever its answer: producer, number, due time from the start of the
/// load, bytes of the body.
pub(super) type Sent = (u32, u64, Nanos, u32);

/// Result of a trial over several hosts.
pub(super) struct FleetPlayed {
    pub(super) shards: Vec<ShardOutcome>,
    pub(super) sent: Vec<Sent>,
    ended: Nanos,
}

/// Plays the scene with its shards spread over `hosts`, each with a job and a rendezvous of its
/// own. One host meets in [`OneProcess`], more of them over a [`Bus`].
pub(super) fn play(scene: &Scene, hosts: u32) -> FleetPlayed {
    let on = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let mut world = World::new(3);
    world.link(on, scene.way);
    let server = SimulatedServing::start(&parcel::host(scene.manner), on, world.party());
    let mut server = server.unwrap();
    let bus = Bus::new(hosts, scene.shards);
    let (mut players, mut logs) = (Vec::new(), Vec::new());
    for host in 0..hosts {
        let rendezvous: Arc<dyn Rendezvous> = match hosts {
            1 => Arc::new(OneProcess::new(scene.shards)),
            _ => bus.host(host as usize),
        };
        let (log, heard) = MessageLog::new();
        let job = scene.job_of(on, Some(Arc::new(log)), rendezvous);
        logs.push(heard);
        for shard in here(scene.shards, hosts, host) {
            // The order to stop is given to one of the hosts.
            let stops = if shard == 0 { scene.stops.clone() } else { Vec::new() };
            players.push(Player::new(&job, shard, world.party(), stops));
        }
    }
    let mut carrier = Carrier { bus, io: world.party(), next: Nanos(0) };
    let mut parties: Vec<&mut dyn Party> = vec![&mut server];
    parties.extend(players.iter_mut().map(|player| player as &mut dyn Party));
    parties.push(&mut carrier);
    world.run(&mut parties, Nanos::from_secs(60));
    assert!(players.iter().all(|player| player.shard.phase() == Phase::Done), "not over");
    let ended = world.now();
    let shards: Vec<_> = players.into_iter().map(|player| player.shard.outcome()).collect();
    let measured = shards.iter().map(|shard| shard.measure_from).min();
    let start = measured.unwrap() - scene.load.warmup;
    let mut sent: Vec<Sent> = Vec::new();
    for heard in logs.iter().flat_map(|log| log.try_iter()) {
        let Heard::Events(events) = heard else { continue };
        for event in events {
            if let MessageEvent::Sent { producer, number, due, body_bytes, .. } = event {
                sent.push((producer, number, due - start, body_bytes));
            }
        }
    }
    sent.sort_unstable();
    FleetPlayed { shards, sent, ended }
}

/// The shards of a host: as many on each, the first ones on the first.
fn here(shards: u32, hosts: u32, host: u32) -> std::ops::Range<u32> {
    shards * host / hosts..shards * (host + 1) / hosts
}

/// Four shards, eight producers, five consumers that hear all of them.
pub(super) fn delivering(arrival: Arrival) -> Scene {
    let mut scene = scene(Manner::Answers);
    scene.shards = 4;
    scene.load.pattern = Pattern::Deliver;
    scene.load.topology = Topology::FanOut;
    (scene.load.connections, scene.load.subscribers) = (8, 5);
    scene.load.messages = Some(2_000);
    scene.load.warmup = Nanos::from_millis(300);
    scene.load.arrival = arrival;
    scene.load.rate = Some(parse_rate("2k/s").unwrap());
    // Ends by numbers from other hosts or not before this.
    scene.load.timeout = Nanos::from_secs(20);
    scene
}

#[test]
fn hosts_send_and_count_what_one_process_does() {
    for arrival in [Arrival::Constant, Arrival::Poisson, Arrival::Periodic] {
        let scene = delivering(arrival);
        let one = play(&scene, 1);
        let merged = |shards| Outcome::merge(shards, &scene.load, scene.confirms, true).ledger;
        let ledger = merged(one.shards);
        assert_eq!((ledger.contradiction(), ledger.delivered), (None, Some(10_000)));
        assert_eq!(one.sent.len(), 2_000);
        for hosts in [2, 3, 4] {
            let fleet = play(&scene, hosts);
            assert!(fleet.sent == one.sent, "{hosts} hosts, {:?}", scene.load.arrival);
            assert_eq!(merged(fleet.shards), ledger, "{hosts} hosts");
            assert!(fleet.ended < Nanos::from_secs(5), "{hosts} hosts: {}", fleet.ended);
        }
    }
}

/// Outcomes of real shards come back from their bytes, and the whole that is made of them is the
/// same, down to the memory that the ledger took where it was kept.
#[test]
fn outcomes_travel_as_bytes() {
    let mut scene = delivering(Arrival::Poisson);
    scene.is_metered = true;
    scene.manner = Manner::ResetsSubscribersAfter(300);
    let shards = play(&scene, 4).shards;
    let sent: Vec<Vec<u8>> = shards.iter().map(ShardOutcome::to_bytes).collect();
    let read = sent.iter().map(|bytes| ShardOutcome::from_bytes(bytes).unwrap()).collect();
    let [here, there] =
        [shards, read].map(|shards| Outcome::merge(shards, &scene.load, scene.confirms, true));
    assert_eq!(here.ledger, there.ledger);
    assert!(here.ledger.causes.contains_key(&Cause::SubscriberDisconnected), "{:?}", here.ledger);
    assert_eq!(here.metrics(&scene.load), there.metrics(&scene.load));
    assert!(here.ledger_bytes > 0 && here.ledger_bytes == there.ledger_bytes);
    let seen = |of: &Outcome| (of.delivered_within, of.after, of.delivered_since, of.cpu_max);
    assert_eq!(seen(&here), seen(&there));
    assert_eq!(here.shards.to_bytes(), there.shards.to_bytes());
    assert_eq!(here.shards.contents, there.shards.contents);
    let bytes: usize = sent.iter().map(Vec::len).sum();
    assert!(bytes < 60_000, "{bytes} bytes for 2,000 messages and 10,000 deliveries");
}

/// Consumers that share their messages know from the sum over all hosts that nothing more comes.
#[test]
fn hosts_end_together_in_every_topology() {
    for (topology, connections, subscribers) in
        [(Topology::FanIn, 8, 1), (Topology::Pairs, 8, 8), (Topology::Shared, 8, 1)]
    {
        let mut scene = delivering(Arrival::Constant);
        scene.load.topology = topology;
        (scene.load.connections, scene.load.subscribers) = (connections, subscribers);
        let fleet = play(&scene, 4);
        let outcome = Outcome::merge(fleet.shards, &scene.load, scene.confirms, true);
        assert_eq!(outcome.ledger.delivered, Some(2_000), "{topology:?}");
        assert!(fleet.ended < Nanos::from_secs(5), "{topology:?}: {}", fleet.ended);
    }
}

#[test]
fn the_failure_of_one_host_ends_all() {
    let mut scene = delivering(Arrival::Constant);
    scene.refused_seat = Some(7);
    let fleet = play(&scene, 4);
    let failed: Vec<bool> = fleet.shards.iter().map(|shard| shard.failure.is_some()).collect();
    assert!(failed.contains(&true) && failed[..3].contains(&false), "{failed:?}");
    assert!(fleet.sent.is_empty() && fleet.ended < Nanos::from_secs(1), "{}", fleet.ended);
}

#[test]
fn a_stop_on_one_host_reaches_all() {
    let mut scene = delivering(Arrival::Constant);
    scene.load.messages = None;
    scene.load.duration = Some(Nanos::from_secs(30));
    scene.stops = vec![Nanos::from_secs(2)];
    let fleet = play(&scene, 4);
    assert!(fleet.shards.iter().all(|shard| shard.was_interrupted));
    assert!(fleet.ended < Nanos::from_secs(4), "{}", fleet.ended);
    let outcome = Outcome::merge(fleet.shards, &scene.load, scene.confirms, true);
    assert_eq!(outcome.ledger.contradiction(), None);
    assert_eq!(outcome.ledger.delivered, Some(outcome.ledger.sent));
}

/// A host counts up and announces its number of shards, so a range beyond the whole is refused.
#[test]
fn a_process_runs_some_of_the_shards_there_are() {
    let mut scene = scene(Manner::Answers);
    scene.shards = 4;
    for here in [3..5, 4..4] {
        let job = scene.job(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), None);
        let orders = Arc::clone(job.rendezvous.orders());
        let started = Generator::start(job, here, Instant::now(), &nobody());
        assert!(matches!(started.err(), Some(Failure::Ourselves(_))));
        assert!(orders.has_failed(), "the other hosts would wait");
    }
}

/// Runs two generators on real sockets, each with two shards.
#[test]
fn generators_meet_over_a_bus() {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = Serving::start(&parcel::host(Manner::Answers), any, 1).unwrap();
    let mut scene = delivering(Arrival::Constant);
    scene.load.messages = Some(200);
    let (epoch, is_over) = (Instant::now(), AtomicBool::new(false));
    let mut bus = Bus::new(2, scene.shards);
    let generators = [0, 1].map(|host| {
        let job = scene.job_of(serving.address(), None, bus.host(host as usize));
        Generator::start(job, here(scene.shards, 2, host), epoch, &nobody()).unwrap()
    });
    let parts = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                bus.carry(Nanos(epoch.elapsed().as_nanos() as u64));
                thread::sleep(Duration::from_millis(10));
            }
        });
        let parts = generators.map(|generator| generator.finish_here());
        is_over.store(true, Ordering::Relaxed);
        parts
    });
    let shards: Vec<ShardOutcome> = parts.into_iter().flat_map(Result::unwrap).collect();
    let starts: Vec<Nanos> = shards.iter().map(|shard| shard.measure_from).collect();
    assert!(starts.iter().all(|start| *start == starts[0]), "{starts:?}");
    let outcome = Outcome::merge(shards, &scene.load, scene.confirms, true);
    assert_eq!(outcome.ledger.contradiction(), None);
    assert_eq!(outcome.ledger.delivered, Some(1_000));
    assert_eq!(outcome.shards.lost_links, 0, "{:?}", outcome.shards.first_loss);
    serving.stop();
}

/// A million messages: message k of one shard is message k / 4 of shard k % 4, due at the same
/// time, and its body is made of its mark alone, by the composer of whatever host.
#[test]
fn a_million_messages_are_the_same_on_any_number_of_hosts() {
    let mut scene = scene(Manner::Answers);
    (scene.load.messages, scene.load.warmup) = (Some(1_000_000), Nanos::from_secs(1));
    (scene.load.arrival, scene.load.rate) = (Arrival::Poisson, Some(parse_rate("20k/s").unwrap()));
    let composer = || {
        let source = BodySource::Template("message {seq} of {client}, due at {time}".to_owned());
        Composer::new(&source, b"", None, &widest_mark(4, 1_000_000), 7).unwrap()
    };
    let (seed, load) = (77, &scene.load);
    let mut one = Schedule::shared(load, &[], seed, 0, 1).unwrap();
    let mut hosts: Vec<(Schedule, Composer)> = (0..4)
        .map(|host| (Schedule::shared(load, &[], seed, host, 4).unwrap(), composer()))
        .collect();
    let (whole, mut sequence) = (composer(), 0);
    let (mut body, mut other) = (Vec::new(), Vec::new());
    let all = std::iter::from_fn(|| one.next_due());
    for (place, due) in all.enumerate() {
        let (schedule, composer) = &mut hosts[place % 4];
        assert_eq!(schedule.next_due(), Some(due), "message {place}");
        if due.warmup {
            continue;
        }
        let (producer, lag) = ((place % 4) as u32, Nanos(0));
        let due = due.at;
        let mark = Mark { tag: 9, warmup: false, producer, sequence, due, lag, own_lag: lag };
        sequence += 1;
        body.clear();
        other.clear();
        whole.compose(&mark, &mut body);
        composer.compose(&mark, &mut other);
        assert_eq!(body, other, "message {place}");
    }
    assert_eq!(sequence, 1_000_000);
    assert!(hosts.iter_mut().all(|(schedule, _)| schedule.next_due().is_none()));
}

/// The other shard would wait for its connections for ever.
#[test]
fn a_shard_that_panics_ends_the_trial() {
    struct Panics;
    impl TrialObserver for Panics {
        fn thread_started(&self, shard: u32) {
            assert!(shard == 0, "as the test wants it");
        }

        fn progress(&self, _: u32, _: Progress) {}
    }
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = Serving::start(&parcel::host(Manner::Answers), any, 1).unwrap();
    let mut scene = scene(Manner::Answers);
    scene.shards = 2;
    let job = scene.job(serving.address(), None);
    let observer: Arc<dyn TrialObserver> = Arc::new(Panics);
    let generator = Generator::start(job, 0..2, Instant::now(), &observer).unwrap();
    let failure = generator.finish().unwrap_err();
    assert!(failure.to_string().contains("panicked"), "{failure}");
    serving.stop();
}

fn nobody() -> Arc<dyn TrialObserver> {
    struct Nobody;
    impl TrialObserver for Nobody {
        fn progress(&self, _: u32, _: Progress) {}
    }
    Arc::new(Nobody)
}
