//! Four agents make the load that one process makes: message by message, and with the same ledger.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use weigh_engine::generator::{Generator, TrialObserver};
use weigh_engine::outcome::Outcome;
use weigh_engine::rendezvous::one_process::OneProcess;
use weigh_engine::serving::Serving;
use weigh_fleet::{Material, Order};
use weigh_model::ledger::Cause;
use weigh_model::mark::Mark;
use weigh_model::trial::Settings;
use weigh_model::units::parse_rate;
use weigh_model::{Arrival, Load, Nanos, Topology};

use super::agents::{Process, gather, run, threads};
use super::fault_proxy::{FaultProxy, Faults};
use super::nats::Nats;
use super::target::{Messages, Target};
use super::workshop::{Watcher, job, merged, order};

/// The messages with their due times from the start of the load.
fn since_start(messages: Messages, order: &Order, outcome: &Outcome) -> Messages {
    let start = outcome.shards.measure_from - order.trial.load.warmup;
    let moved = |(name, (due, body))| (name, (due - start, body));
    messages.into_iter().map(moved).collect::<BTreeMap<_, _>>()
}

fn outcome_of_one_process(order: &Order) -> Outcome {
    let meeting = Arc::new(OneProcess::new(order.shards));
    let job = Arc::new(job(order, &Material::default(), meeting).unwrap());
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let generator = Generator::start(job, 0..order.shards, Instant::now(), &observer).unwrap();
    generator.finish().unwrap()
}

fn of_one_process(order: &Order, target: &Target) -> (Messages, Outcome) {
    let outcome = outcome_of_one_process(order);
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

/// One message in 499 of each producer.
fn is_lost(mark: &Mark) -> bool {
    is_numbered_to_be_lost(mark.producer, mark.sequence)
}

fn is_numbered_to_be_lost(producer: u32, sequence: u64) -> bool {
    sequence % 499 == u64::from(producer) + 5
}

/// An order of many messages from each producer to its own consumer.
fn many(at: SocketAddr, way: &Way, messages: u64) -> Order {
    let mut order = order(at);
    let protocol = weigh_protocols::find(way.protocol).unwrap();
    order.trial.protocol = way.protocol.to_owned();
    order.target.scheme = way.protocol.to_owned();
    order.trial.settings = Settings::new(way.protocol, protocol.settings(), [way.setting]).unwrap();
    order.trial.load = Load {
        topology: Topology::Pairs,
        connections: way.producers,
        subscribers: way.producers,
        arrival: way.arrival.clone(),
        messages: Some(messages),
        rate: Some(parse_rate(&format!("{}/s", (messages / 100).max(5_000))).unwrap()),
        timeout: Nanos::from_secs(5),
        ..order.trial.load
    };
    order
}

/// How messages are sent, so that the loss of one closes no connection: whatever is in flight then
/// would depend on the moment.
struct Way {
    protocol: &'static str,
    setting: (&'static str, &'static str),
    arrival: Arrival,
    producers: u32,
}

/// Every message of four agents is that of one process, also through a fault that loses some of
/// them by who they are. `WEIGH_TEST_MESSAGES` sets the number of messages.
#[test]
fn many_messages_are_the_same_over_the_bus_and_through_a_fault() {
    let test = "many_messages_are_the_same_over_the_bus_and_through_a_fault";
    let Some(nats) = Nats::start(test) else { return };
    let (messages, bus) = (number_of_messages(), nats.bus());
    let _agents = threads(&bus, 4);
    let fleet = gather(&bus, 4);
    // One producer in each shard, and producers with schedules of their own: of several that share
    // a schedule, a free one takes the next due time.
    for way in [
        Way {
            protocol: "tcp",
            setting: ("acknowledge", "false"),
            arrival: Arrival::Poisson,
            producers: 4,
        },
        Way { protocol: "mqtt", setting: ("qos", "1"), arrival: Arrival::Periodic, producers: 8 },
    ] {
        let target = Target::losing(way.protocol, is_lost);
        let order = many(target.address(), &way, messages);
        let (sent, one) = of_one_process(&order, &target);
        let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
        let outcome = run(&fleet, &order, &observer).unwrap();
        let fleet_sent = target.messages();
        let merged = merged(&order, outcome);
        assert_eq!(merged.ledger, one.ledger, "{}", way.protocol);
        let fleet_sent = since_start(fleet_sent, &order, &merged);
        assert_eq!(fleet_sent.len(), sent.len(), "{}", way.protocol);
        let differs = fleet_sent.iter().zip(&sent).find(|(fleet, one)| fleet != one);
        assert!(differs.is_none(), "{}: {differs:?}", way.protocol);
        assert_eq!(one.ledger.contradiction(), None);
        let is_lost = |(producer, is_warmup, sequence): &&(u32, bool, u64)| {
            !is_warmup && is_numbered_to_be_lost(*producer, *sequence)
        };
        let lost = sent.keys().filter(is_lost).count() as u64;
        assert!(lost > 0 && one.ledger.lost == Some(lost), "{lost} of {:?}", one.ledger);
        assert_eq!(one.ledger.sent, messages);
        println!(
            "{}: {messages} messages, {lost} of them lost: due times, bodies and ledgers are equal",
            way.protocol
        );
    }
}

/// `WEIGH_TEST_MESSAGES`, or 10,000.
fn number_of_messages() -> u64 {
    std::env::var("WEIGH_TEST_MESSAGES").map_or(10_000, |messages| messages.parse().unwrap())
}

/// Four agents have the ledger of one process, to the message, and it is that of the faults.
#[test]
fn many_messages_have_one_ledger_through_a_proxy_with_faults() {
    let test = "many_messages_have_one_ledger_through_a_proxy_with_faults";
    let Some(nats) = Nats::start(test) else { return };
    let (messages, bus, folder) = (number_of_messages(), nats.bus(), nats.folder.path());
    let mqtt = weigh_protocols::find("mqtt").unwrap();
    let settings = Settings::new("mqtt", mqtt.settings(), []).unwrap();
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let serving = Serving::start(&mqtt.host(&settings).unwrap(), any_port, 1).unwrap();
    let proxy = FaultProxy::start(serving.address(), folder);
    let way =
        Way { protocol: "mqtt", setting: ("qos", "1"), arrival: Arrival::Periodic, producers: 8 };
    let order = many(proxy.address, &way, messages);
    let one = outcome_of_one_process(&order).ledger;
    let done = Faults::of(8, messages / 8);
    assert_eq!(proxy.faults(), done);

    let agents = (0..4).map(|rank| Process::start(nats.address, rank, None, folder));
    let _agents: Vec<Process> = agents.collect();
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let outcome = run(&gather(&bus, 4), &order, &observer).unwrap();
    assert_eq!(proxy.faults(), done);
    assert_eq!(merged(&order, outcome).ledger, one, "four agents, and one process");

    let Faults { there, back } = done;
    let damaged = there.damaged + back.damaged;
    assert_eq!((one.contradiction(), one.sent), (None, messages));
    assert_eq!(one.lost, Some(there.lost + back.lost + damaged), "{one:?}");
    assert_eq!(one.delivered, one.lost.map(|lost| messages - lost));
    assert_eq!((one.duplicates, one.corrupt), (there.doubled + back.doubled, damaged), "{one:?}");
    assert_eq!(one.acknowledged, messages - there.lost, "{one:?}");
    assert_eq!(one.acked_not_delivered, back.lost + damaged, "{one:?}");
    let causes =
        [(Cause::Corrupt, damaged), (Cause::Timeout, there.lost), (Cause::Unknown, back.lost)];
    assert_eq!(one.causes, BTreeMap::from(causes), "{one:?}");
    println!("mqtt: {messages} messages through a proxy, {done:?}: ledgers are equal");
}
