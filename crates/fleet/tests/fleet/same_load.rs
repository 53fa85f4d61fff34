//! Four agents make the load that one process makes: message by message, and with the same ledger.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use weigh_engine::generator::{Generator, TrialObserver};
use weigh_engine::outcome::Outcome;
use weigh_engine::rendezvous::one_process::OneProcess;
use weigh_fleet::{Material, Order};
use weigh_model::{Arrival, Nanos};

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
