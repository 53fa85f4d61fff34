//! Agents and coordinators that die: a trial fails or is whole, agents that are left become free,
//! and the next trial works.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use weigh_engine::generator::TrialObserver;
use weigh_fleet::{Fleet, FleetOptions};
use weigh_model::Nanos;

use super::agents::{Process, Thread, coordinator, gather, now_ns, options, run, threads, wanted};
use super::nats::Nats;
use super::raw::Raw;
use super::target::Target;
use super::workshop::{Watcher, merged, order, steady};

/// `WEIGH_TEST_KILLS` sets how many agents are killed.
#[test]
fn a_killed_agent_leaves_no_result_of_the_others() {
    let test = "a_killed_agent_leaves_no_result_of_the_others";
    let Some(nats) = Nats::start(test) else { return };
    let kills = std::env::var("WEIGH_TEST_KILLS").map_or(10, |kills| kills.parse().unwrap());
    let (target, folder) = (Target::start(), nats.folder.path());
    let start = |rank| Process::start(nats.address, rank, None, folder);
    let mut agents: Vec<Process> = (0..3).map(start).collect();
    let options = FleetOptions {
        silence: Duration::from_secs(2),
        wait: Duration::from_secs(5),
        ..wanted(nats.bus(), 3)
    };
    let fleet = Fleet::gather(&options, &|_| {}).unwrap();
    let mut order = order(target.address());
    order.trial.load.messages = Some(600);
    let (mut failed, mut whole, mut dead) = (0, 0, 0);
    for attempt in 1..=kills {
        order.attempt = attempt;
        let watcher = Arc::new(Watcher::default());
        let observer: Arc<dyn TrialObserver> = watcher.clone();
        // The trial takes 2 to 3 s: connections, 1 s to the start, 0.8 s of load.
        let moment = Duration::from_millis(now_ns() / 1_000 % 2_600);
        let victim = (now_ns() / 7_000 % 3) as u32;
        let outcome = thread::scope(|scope| {
            let trial = scope.spawn(|| run(&fleet, &order, &observer));
            thread::sleep(moment);
            agents[victim as usize].kill();
            trial.join().unwrap()
        });
        match outcome {
            Ok(outcome) => {
                assert_eq!(outcome.shards.len(), 4);
                let ledger = merged(&order, outcome).ledger;
                assert_eq!((ledger.contradiction(), ledger.sent), (None, 3_000), "{moment:?}");
                whole += 1;
            }
            Err(failure) => {
                let text = failure.to_string();
                assert!(text.starts_with("generator lost: "), "{moment:?}: {text}");
                // While it is hired it is a rank that is missing. One that died after its trial
                // may be missed in the next.
                let is_named = [victim, dead].into_iter().any(|rank| {
                    text.contains(&format!("agent {rank} ("))
                        || text.contains(&format!("rank {rank}"))
                });
                assert!(is_named, "{victim}, {moment:?}: {text}");
                failed += 1;
            }
        }
        let mut settled = watcher.0.lock().unwrap().settled.clone();
        settled.sort_unstable();
        // Without all agents the trial does not begin; if it does, the observer hears its end.
        let is_whole = settled == [0, 1, 2, 3] || settled.is_empty();
        assert!(is_whole, "{moment:?}: {settled:?} of the shards are settled");
        dead = victim;
        agents[victim as usize] = start(victim);
        agents[victim as usize].await_said("registered as", 1);
    }
    println!("{kills} kills: {failed} trials failed, {whole} were whole before");
    order.attempt = kills + 1;
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    // The last victim may have died after its trial: then its silence is noticed in this one.
    let outcome = run(&fleet, &order, &observer).or_else(|_| run(&fleet, &order, &observer));
    let ledger = merged(&order, outcome.unwrap()).ledger;
    assert_eq!((ledger.contradiction(), ledger.delivered), (None, Some(3_000)));
    drop(fleet);
    assert_eq!(Raw::connect(nats.address).objects(), 0, "nothing is left in the object store");
}

/// The coordinator is a process that is killed while the load runs.
#[test]
fn agents_outlive_their_coordinator() {
    let test = "agents_outlive_their_coordinator";
    let Some(nats) = Nats::start(test) else { return };
    let (target, bus) = (Target::start(), nats.bus());
    let agents: Vec<Process> =
        (0..2).map(|rank| Process::start(nats.address, rank, None, nats.folder.path())).collect();
    let mut dying = coordinator(nats.address, target.address(), nats.folder.path());
    dying.await_said("load runs", 1);
    dying.kill();
    let mut raw = Raw::connect(nats.address);
    for agent in &agents {
        agent.await_said("was silent for 1.5 s: it is gone", 1);
        agent.await_said("is over here; free", 1);
    }
    assert_eq!(raw.objects(), 6, "outcomes of all shards, and a part of each agent");
    let fleet = gather(&bus, 2);
    let sent = target.messages();
    let dead = steady(target.address(), Nanos::from_secs(4));
    let outcome = fleet.take_over(&dead.attempt(), 4).unwrap();
    let ranks: Vec<u32> = outcome.hosts.iter().map(|host| host.rank).collect();
    assert_eq!(ranks, [0, 1]);
    for host in &outcome.hosts {
        assert!(host.clock_bound_ns > 0 && host.start_slack_ns > 0 && host.cpu.0 > 0, "{host:?}");
    }
    // Whole: the agents went on adding up what each of them sent and got.
    let ledger = merged(&dead, outcome).ledger;
    let delivered = ledger.sent;
    assert_eq!((ledger.contradiction(), ledger.delivered), (None, Some(delivered)));
    let in_window = sent.keys().filter(|(_, is_warmup, _)| !is_warmup).count() as u64;
    assert_eq!((ledger.sent, in_window > 700), (5 * in_window, true), "every message, once");

    let mut order = order(target.address());
    order.attempt = 2;
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let ledger = merged(&order, run(&fleet, &order, &observer).unwrap()).ledger;
    assert_eq!((ledger.contradiction(), ledger.delivered), (None, Some(10_000)));
    assert_eq!(fleet.take_over(&dead.attempt(), 4).unwrap_err(), MISSING, "it is taken once");
    drop(fleet);
    assert_eq!(raw.objects(), 0, "nothing is left in the object store");
}

const MISSING: &str = "0 of 2 agents have stored their outcomes";

/// An agent that dies after its coordinator leaves no result: the others give the load up.
#[test]
fn agents_do_not_outlive_one_of_them() {
    let test = "agents_do_not_outlive_one_of_them";
    let Some(nats) = Nats::start(test) else { return };
    let (target, bus) = (Target::start(), nats.bus());
    let mut agents: Vec<Process> =
        (0..2).map(|rank| Process::start(nats.address, rank, None, nats.folder.path())).collect();
    let mut dying = coordinator(nats.address, target.address(), nats.folder.path());
    dying.await_said("load runs", 1);
    dying.kill();
    agents[0].kill();
    agents[1].await_said("is over here; free", 1);
    agents[0] = Process::start(nats.address, 0, None, nats.folder.path());
    let fleet = gather(&bus, 2);
    let dead = steady(target.address(), Nanos::from_secs(4));
    assert_eq!(fleet.take_over(&dead.attempt(), 4).unwrap_err(), MISSING);
    drop(fleet);
    assert_eq!(Raw::connect(nats.address).objects(), 0, "nothing is left in the object store");
}

/// Before the load there is nothing to finish.
#[test]
fn a_stopped_agent_fails_the_trial_at_once() {
    let Some(nats) = Nats::start("a_stopped_agent_fails_the_trial_at_once") else { return };
    let (target, bus) = (Target::start(), nats.bus());
    let mut agents = threads(&bus, 2);
    let fleet = gather(&bus, 2);
    let order = steady(target.address(), Nanos::from_secs(60));
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let began = Instant::now();
    let outcome = thread::scope(|scope| {
        let trial = scope.spawn(|| run(&fleet, &order, &observer));
        thread::sleep(Duration::from_secs(2));
        drop(agents.pop());
        trial.join().unwrap()
    });
    let text = outcome.unwrap_err().to_string();
    assert_eq!(text, "generator lost: agent 1 (host): the agent was stopped");
    assert!(began.elapsed() < Duration::from_secs(50), "the load was not awaited");
    let _another = Thread::start(options(bus, Some(1))).unwrap();
    let order = super::workshop::order(target.address());
    let ledger = merged(&order, run(&fleet, &order, &observer).unwrap()).ledger;
    assert_eq!((ledger.contradiction(), ledger.delivered), (None, Some(10_000)));
}
