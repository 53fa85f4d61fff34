//! Four agents make the load that one process makes: message by message, and with the same ledger.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use weigh_engine::generator::{Generator, TrialObserver};
use weigh_engine::outcome::Outcome;
use weigh_engine::rendezvous::one_process::OneProcess;
use weigh_fleet::{Material, Order};
use weigh_model::mark::Mark;
use weigh_model::units::parse_rate;
use weigh_model::{Arrival, Load, Nanos, Pattern, Topology};

use super::agents::{gather, run, threads};
use super::nats::Nats;
use super::target::{Messages, Target};
use super::workshop::{Watcher, job, merged, order};

/// The messages with their due times from the start of the load.
fn since_start(messages: Messages, order: &Order, outcome: &Outcome) -> Messages {
    let start = outcome.shards.measure_from - order.trial.load.warmup;
    let moved = |(name, (due, body))| (name, (due - start, body));
    messages.into_iter().map(moved).collect::<BTreeMap<_, _>>()
}

fn of_one_process(order: &Order, target: &Target) -> (Messages, Outcome) {
    let meeting = Arc::new(OneProcess::new(order.shards));
    let job = Arc::new(job(order, &Material::default(), meeting).unwrap());
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let generator = Generator::start(job, 0..order.shards, Instant::now(), &observer).unwrap();
    let outcome = generator.finish().unwrap();
    (since_start(target.messages(), order, &outcome), outcome)
}

#[test]
fn four_agents_send_what_one_process_sends() {
    let Some(nats) = Nats::start("four_agents_send_what_one_process_sends") else { return };
    let (target, bus) = (Target::start(), nats.bus());
    let _agents = threads(&bus, 4);
    let fleet = gather(&bus, 4);
    for arrival in [Arrival::Poisson, Arrival::Constant] {
        let mut order = order(target.address());
        order.trial.load.arrival = arrival.clone();
        let (sent, one) = of_one_process(&order, &target);
        assert_eq!(one.ledger.contradiction(), None);
        assert_eq!((one.ledger.sent, one.ledger.delivered), (10_000, Some(10_000)));

        let watcher = Arc::new(Watcher::default());
        let observer: Arc<dyn TrialObserver> = watcher.clone();
        let outcome = run(&fleet, &order, &observer).unwrap();
        assert_eq!(outcome.hosts.len(), 4);
        for (rank, host) in (0..).zip(&outcome.hosts) {
            assert_eq!((host.rank, &host.shards), (rank, &(rank..rank + 1)));
            assert!(host.start_slack_ns >= 2_000_000, "{host:?}");
            // All run on this host's clock.
            assert!(host.offset_ns.unsigned_abs() <= host.clock_bound_ns, "{host:?}");
        }
        let starts: Vec<Nanos> = outcome.shards.iter().map(|shard| shard.measure_from).collect();
        assert!(starts.iter().all(|start| *start == starts[0]), "{starts:?}");
        let fleet_sent = target.messages();
        let merged = merged(&order, outcome);
        assert_eq!(merged.ledger, one.ledger);
        assert!(since_start(fleet_sent, &order, &merged) == sent, "{arrival:?}");

        let mut watched = watcher.0.lock().unwrap();
        assert_eq!(watched.moments, ["opening", "began", "load ended", "window ended"]);
        watched.settled.sort_unstable();
        assert_eq!(watched.settled, [0, 1, 2, 3]);
        assert_eq!(watched.sent, sent.len() as u64, "every interval of every shard");
    }
}

/// Some of the messages, by who they are.
fn is_lost(mark: &Mark) -> bool {
    mark.sequence % 997 == u64::from(mark.producer) + 5
}

/// Every message of four agents is that of one process, also through a fault that loses some of
/// them. `WEIGH_TEST_MESSAGES` sets the number of messages: a million take two minutes.
#[test]
fn many_messages_are_the_same_over_the_bus_and_through_a_fault() {
    let test = "many_messages_are_the_same_over_the_bus_and_through_a_fault";
    let Some(nats) = Nats::start(test) else { return };
    let messages = std::env::var("WEIGH_TEST_MESSAGES");
    let messages: u64 = messages.map_or(20_000, |messages| messages.parse().unwrap());
    let (target, bus) = (Target::with(is_lost), nats.bus());
    let _agents = threads(&bus, 4);
    let fleet = gather(&bus, 4);
    let mut order = order(target.address());
    order.trial.load = Load {
        topology: Topology::Pairs,
        // One producer in each shard: of several, the one that is free takes the next due time.
        connections: 4,
        subscribers: 4,
        messages: Some(messages),
        rate: Some(parse_rate(&format!("{}/s", (messages / 50).max(10_000))).unwrap()),
        timeout: Nanos::from_secs(5),
        ..order.trial.load
    };
    assert_eq!(order.trial.load.pattern, Pattern::Deliver);
    let (sent, one) = of_one_process(&order, &target);
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let outcome = run(&fleet, &order, &observer).unwrap();
    let fleet_sent = target.messages();
    let merged = merged(&order, outcome);
    assert_eq!(merged.ledger, one.ledger);
    let fleet_sent = since_start(fleet_sent, &order, &merged);
    assert_eq!(fleet_sent.len(), sent.len());
    let differs = fleet_sent.iter().zip(&sent).find(|(fleet, one)| fleet != one);
    assert!(differs.is_none(), "{differs:?}");
    assert_eq!(one.ledger.contradiction(), None);
    let lost = |(producer, is_warmup, sequence): &&(u32, bool, u64)| {
        !is_warmup && sequence % 997 == u64::from(*producer) + 5
    };
    let lost = sent.keys().filter(lost).count() as u64;
    assert!(lost > 0 && one.ledger.lost == Some(lost), "{lost} of {:?}", one.ledger);
    assert_eq!(one.ledger.sent, messages);
    println!("{messages} messages, {lost} of them lost: due times, bodies and ledgers are equal");
}
