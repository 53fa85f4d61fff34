//! What is wrong is said in one sentence: agents that cannot be used, a bus that does not let in,
//! targets that are not allowed, a store that is full.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use weigh_engine::generator::TrialObserver;
use weigh_fleet::{
    AgentOptions, AllowList, Bus, BusOptions, Fleet, FleetError, FleetOptions, Secrets,
};
use weigh_model::Nanos;

use super::agents::{Thread, gather, options, run, threads, wanted};
use super::nats::{Nats, bus};
use super::target::Target;
use super::workshop::{Watcher, merged, order, steady};

/// What a fleet that does not come about says, after a second.
fn refusal(bus: &BusOptions, agents: u32) -> String {
    let options = FleetOptions { wait: Duration::from_secs(1), ..wanted(bus.clone(), agents) };
    match Fleet::gather(&options, &|_| {}) {
        Ok(_) => panic!("there is a fleet"),
        Err(error) => error.to_string(),
    }
}

fn refused_bus(options: &BusOptions) -> String {
    match Bus::connect(options) {
        Ok(_) => panic!("connected"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn agents_that_cannot_be_used_are_named() {
    let Some(nats) = Nats::start("agents_that_cannot_be_used_are_named") else { return };
    let bus = nats.bus();
    let text = refusal(&bus, 2);
    assert!(text.starts_with("0 of 2 agents could be used within 1 s; missing: ranks 0 and 1"));
    assert!(text.contains("help: start them with weigh agent"), "{text}");

    let _first = Thread::start(options(bus.clone(), Some(0))).unwrap();
    let _second = Thread::start(options(bus.clone(), Some(0))).unwrap();
    let text = refusal(&bus, 2);
    assert!(text.contains("has rank 0, which agent") && text.contains("missing: rank 1"), "{text}");

    let foreign = AgentOptions { version: "9.9".to_owned(), ..options(bus.clone(), Some(1)) };
    let _foreign = Thread::start(foreign).unwrap();
    let _beyond = Thread::start(options(bus.clone(), Some(7))).unwrap();
    let text = refusal(&bus, 2);
    assert!(text.contains("is of version 9.9, this is 1.2.3 (abc)"), "{text}");
    assert!(text.contains("has rank 7, expected 0 to 1"), "{text}");

    // Fleets of other names do not see them.
    let elsewhere = BusOptions { name: "elsewhere".to_owned(), ..bus };
    assert!(!refusal(&elsewhere, 2).contains("refused"));
}

#[test]
fn an_agent_obeys_one_coordinator() {
    let Some(nats) = Nats::start("an_agent_obeys_one_coordinator") else { return };
    let bus = nats.bus();
    let _agents = threads(&bus, 2);
    let fleet = gather(&bus, 1);
    let text = refusal(&bus, 2);
    assert!(text.contains("it is busy with a run of the coordinator on"), "{text}");
    drop(fleet);
    assert_eq!(gather(&bus, 2).members().len(), 2);
}

#[test]
fn a_fleet_waits_for_agents_that_come_late_and_takes_no_more() {
    let test = "a_fleet_waits_for_agents_that_come_late_and_takes_no_more";
    let Some(nats) = Nats::start(test) else { return };
    let bus = nats.bus();
    let _first = Thread::start(options(bus.clone(), None)).unwrap();
    let said = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let gathering = scope.spawn(|| {
            let say = |text: &str| said.lock().unwrap().push(text.to_owned());
            Fleet::gather(&wanted(bus.clone(), 2), &say).unwrap()
        });
        while said.lock().unwrap().is_empty() {
            thread::sleep(Duration::from_millis(10));
        }
        let _second = Thread::start(options(bus.clone(), Some(0))).unwrap();
        let fleet = gathering.join().unwrap();
        let ranks: Vec<u32> = fleet.members().iter().map(|member| member.rank).collect();
        assert_eq!(ranks, [0, 1]);
        // A third is free for another coordinator.
        let _third = Thread::start(options(bus.clone(), None)).unwrap();
        assert_eq!(gather(&bus, 1).members().len(), 1);
    });
    assert_eq!(said.lock().unwrap()[0], "1 of 2 agents are there; waiting for rank 1");
}

#[test]
fn a_bus_that_does_not_let_in_says_why() {
    let Some(nats) = Nats::with(
        "a_bus_that_does_not_let_in_says_why",
        "jetstream { store_dir: \"STORE\" }\nauthorization { token: \"right\" }",
    ) else {
        return;
    };
    let with = |token: &str| BusOptions { token: Some(token.to_owned()), ..nats.bus() };
    assert!(Bus::connect(&with("right")).unwrap().is_private());
    let in_url = format!("nats://right@{}", nats.address);
    Bus::connect(&BusOptions { url: in_url, ..BusOptions::default() }).unwrap();
    for wrong in [with("wrong"), nats.bus()] {
        let text = refused_bus(&wrong);
        assert!(text.contains("refuses the credentials; help:"), "{text}");
    }
    let agent = Thread::start(options(with("wrong"), None)).err();
    assert!(matches!(agent, Some(FleetError::Bus(text)) if text.contains("refuses")));

    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = refused_bus(&bus(gone));
    assert!(text.contains("cannot be reached") && text.contains("nats-server -js"), "{text}");

    let missing = BusOptions { nkey_seed: Some("/no/such/seed".into()), ..nats.bus() };
    let text = refused_bus(&missing);
    assert!(text.contains("cannot read the nkey seed of the bus from /no/such/seed"), "{text}");
}

/// A key pair that is used nowhere else.
const SEED: &str = "SUAPHMUU4KZJ2D24HHKGHSG6PBXWA5HUSAUTCX4F367WC4A2JMSS6PEOB4";

#[test]
fn an_nkey_lets_in() {
    let Some(nats) = Nats::with(
        "an_nkey_lets_in",
        "jetstream { store_dir: \"STORE\" }\nauthorization { users: [{ nkey: \
         UAW6ROV2WM7Z2YD2S54XDH3H5YAMKKUKD6O2LFD7M3AU7FHS5Y367OET }] }",
    ) else {
        return;
    };
    let seed = nats.folder.path().join("seed");
    std::fs::write(&seed, format!("{SEED}\n")).unwrap();
    let keyed = BusOptions { nkey_seed: Some(seed), ..nats.bus() };
    Bus::connect(&keyed).unwrap();
    assert!(refused_bus(&nats.bus()).contains("refuses the credentials"));
}

#[test]
fn a_bus_without_jetstream_is_refused() {
    let Some(nats) = Nats::with("a_bus_without_jetstream_is_refused", "") else { return };
    let text = refused_bus(&nats.bus());
    assert!(text.contains("has no JetStream") && text.contains("-js"), "{text}");
}

#[test]
fn a_target_that_is_not_allowed_is_not_loaded() {
    let test = "a_target_that_is_not_allowed_is_not_loaded";
    let Some(nats) = Nats::start(test) else { return };
    let (target, bus) = (Target::start(), nats.bus());
    let allow = AllowList::parse(&["10.0.0.0/8", "127.0.0.1:1"]).unwrap();
    let _strict = Thread::start(AgentOptions { allow, ..options(bus.clone(), Some(1)) }).unwrap();
    let _other = Thread::start(options(bus.clone(), Some(0))).unwrap();
    let fleet = gather(&bus, 2);
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let text = run(&fleet, &order(target.address()), &observer).unwrap_err().to_string();
    let at = target.address();
    let expected =
        format!("agent 1 (host): the agent may not load {at}; help: start it with --may-load {at}");
    assert_eq!(text, expected);
    assert!(target.messages().is_empty(), "no agent may load it alone");
}

/// The bus is on this host, by an address that is not one of loopback.
#[test]
fn secrets_do_not_go_over_a_bus_that_others_can_read() {
    let test = "secrets_do_not_go_over_a_bus_that_others_can_read";
    let Some(nats) = Nats::start(test) else { return };
    let (target, own) = (Target::start(), nats.bus());
    let url = format!("nats://0.0.0.0:{}", nats.address.port());
    let public = BusOptions { url, ..BusOptions::default() };
    assert!(!Bus::connect(&public).unwrap().is_private());
    let _agents = threads(&public, 1);
    let secrets = Secrets { password: "pass-4711".to_owned(), ..Secrets::default() };
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let order = order(target.address());
    let outcome = |bus: &BusOptions, secrets: Option<&Secrets>| {
        gather(bus, 1).run(&order, secrets, super::agents::now_ns(), &observer, &mut |_| {})
    };
    let text = outcome(&public, Some(&secrets)).unwrap_err().to_string();
    assert!(text.starts_with("secrets of the target are not sent over a bus"), "{text}");
    assert!(text.ends_with("; help: connect with tls://"), "{text}");
    // What a coordinator on the host of the bus may send, an agent elsewhere does not take.
    let text = outcome(&own, Some(&secrets)).unwrap_err().to_string();
    assert!(
        text.contains("agent 0 (host): secrets came over a bus that others can read"),
        "{text}"
    );
    assert!(text.contains("help: connect the agent with tls://"), "{text}");
    assert!(target.messages().is_empty(), "nothing was loaded");
    let ledger = merged(&order, outcome(&public, None).unwrap()).ledger;
    assert_eq!(ledger.delivered, Some(10_000), "without secrets it is allowed");
}

#[test]
fn a_target_that_is_not_there_is_named() {
    let Some(nats) = Nats::start("a_target_that_is_not_there_is_named") else { return };
    let bus = nats.bus();
    let _agents = threads(&bus, 2);
    let fleet = gather(&bus, 2);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let failure = run(&fleet, &order(gone), &observer).unwrap_err();
    assert!(
        matches!(&failure, weigh_engine::job::Failure::Unreachable { address, .. }
        if *address == gone),
        "{failure}"
    );
}

#[test]
fn fewer_shards_than_agents_are_refused() {
    let Some(nats) = Nats::start("fewer_shards_than_agents_are_refused") else { return };
    let bus = nats.bus();
    let _agents = threads(&bus, 2);
    let fleet = gather(&bus, 2);
    let text = fleet.place(1).unwrap_err().to_string();
    assert!(text.contains("1 shards cannot run on 2 agents") && text.contains("help:"), "{text}");
    assert_eq!(fleet.place(4).unwrap().iter().map(|placed| placed.shards.len()).sum::<usize>(), 4);
}

#[test]
fn a_store_that_is_full_says_so() {
    let Some(nats) = Nats::with(
        "a_store_that_is_full_says_so",
        "jetstream { store_dir: \"STORE\", max_file_store: 300KB }",
    ) else {
        return;
    };
    let bus = nats.bus();
    let _agents = threads(&bus, 1);
    let fleet = gather(&bus, 1);
    fleet.put_material(b"small").unwrap();
    let text = fleet.put_material(&[7; 1 << 20]).unwrap_err().to_string();
    assert!(text.starts_with("the object store of the bus is full"), "{text}");
    assert!(text.contains("help: raise max_file_store"), "{text}");
}

/// Stops once to finish the record, and what was sent by then is the result.
#[test]
fn a_stop_reaches_all_agents() {
    let Some(nats) = Nats::start("a_stop_reaches_all_agents") else { return };
    let (target, bus) = (Target::start(), nats.bus());
    let _agents = threads(&bus, 2);
    let fleet = gather(&bus, 2);
    let order = steady(target.address(), Nanos::from_secs(3_000));
    for presses in [1, 2] {
        let watcher = Arc::new(Watcher::default());
        let observer: Arc<dyn TrialObserver> = watcher.clone();
        let now_ns = super::agents::now_ns();
        let outcome = fleet.run(&order, None, now_ns, &observer, &mut |stop| {
            let watcher = Arc::clone(&watcher);
            thread::spawn(move || {
                while !watcher.0.lock().unwrap().moments.contains(&"began") {
                    thread::sleep(Duration::from_millis(10));
                }
                thread::sleep(Duration::from_millis(500));
                (0..presses).for_each(|_| stop());
            });
        });
        let outcome = outcome.unwrap();
        assert!(outcome.shards.iter().all(|shard| shard.was_interrupted));
        let ledger = merged(&order, outcome).ledger;
        assert_eq!(ledger.contradiction(), None);
        assert!(ledger.sent > 0);
        if presses == 1 {
            assert_eq!(ledger.delivered, Some(ledger.sent));
        }
    }
}

/// Before the load there is nothing to finish, and nothing that waits for ever.
#[test]
fn a_stop_before_the_start_ends_the_trial() {
    let Some(nats) = Nats::start("a_stop_before_the_start_ends_the_trial") else { return };
    let (target, bus) = (Target::start(), nats.bus());
    let _agents = threads(&bus, 2);
    let fleet = gather(&bus, 2);
    let order = order(target.address());
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    for presses in [1, 2] {
        let now_ns = super::agents::now_ns();
        let stop = &mut |stop: Box<dyn Fn() + Send + Sync>| {
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(300));
                (0..presses).for_each(|_| stop());
            });
        };
        let outcome = fleet.run(&order, None, now_ns, &observer, stop).unwrap();
        assert!(outcome.shards.iter().any(|shard| shard.was_interrupted));
        assert_eq!(merged(&order, outcome).ledger.sent, 0);
    }
}

#[test]
fn a_wait_for_agents_can_be_ended() {
    let Some(nats) = Nats::start("a_wait_for_agents_can_be_ended") else { return };
    let (target, bus) = (Target::start(), nats.bus());
    let long = FleetOptions { wait: Duration::from_secs(3_000), ..wanted(bus.clone(), 1) };
    let stopped = Fleet::gather_until(&long, &|_| {}, &|| true).err();
    assert_eq!(stopped, Some(FleetError::Stopped));
    let agents = threads(&bus, 1);
    let fleet = Fleet::gather(&long, &|_| {}).unwrap();
    drop(agents);
    // Long enough for the agent to be missed before the trial.
    thread::sleep(Duration::from_millis(1_500));
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let now_ns = super::agents::now_ns();
    let outcome = fleet.run(&order(target.address()), None, now_ns, &observer, &mut |stop| stop());
    assert_eq!(outcome.unwrap_err().to_string(), "stopped while waiting for agents");
}

#[test]
fn an_agent_for_one_run_ends_after_it() {
    let Some(nats) = Nats::start("an_agent_for_one_run_ends_after_it") else { return };
    let (target, bus) = (Target::start(), nats.bus());
    let agent = AgentOptions { once: true, ..options(bus.clone(), None) };
    let agent = Thread::start(agent).unwrap();
    let fleet = gather(&bus, 1);
    drop(fleet);
    let fleet = gather(&bus, 1);
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    for _ in 0..2 {
        run(&fleet, &order(target.address()), &observer).unwrap();
    }
    assert!(!agent.has_ended(), "the run has more trials");
    drop(fleet);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while !agent.has_ended() {
        assert!(std::time::Instant::now() < until, "it has not ended");
        thread::sleep(Duration::from_millis(10));
    }
}
