//! A bus that is cut for 3 s in the window: the load does not notice, and the result arrives.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use weigh_engine::generator::TrialObserver;
use weigh_model::Nanos;

use super::agents::{Thread, gather, options, run};
use super::nats::{Nats, bus};
use super::proxy::{Link, Proxy};
use super::target::Target;
use super::workshop::{Watcher, merged, steady};

#[test]
fn a_bus_that_stands_still_changes_nothing() {
    cut("a_bus_that_stands_still_changes_nothing", Link::Still);
}

#[test]
fn a_bus_that_breaks_changes_nothing() {
    cut("a_bus_that_breaks_changes_nothing", Link::Broken);
}

/// Runs the same trial with and without a cut, of the agents and of the coordinator.
fn cut(test: &str, how: Link) {
    let Some(nats) = Nats::start(test) else { return };
    let target = Target::start();
    let proxies = [0, 1, 2].map(|_| Proxy::start(nats.address));
    let start = |rank: u32| {
        Thread::start(options(bus(proxies[rank as usize].address), Some(rank))).unwrap()
    };
    let _agents = [start(0), start(1)];
    let fleet = gather(&bus(proxies[2].address), 2);
    let order = steady(target.address(), Nanos::from_secs(5));
    let mut ledgers = Vec::new();
    for cuts in [&[][..], &[0, 1, 2], &[1], &[2]] {
        let watcher = Arc::new(Watcher::default());
        let observer: Arc<dyn TrialObserver> = watcher.clone();
        let outcome = thread::scope(|scope| {
            let trial = scope.spawn(|| run(&fleet, &order, &observer));
            while !watcher.0.lock().unwrap().moments.contains(&"began") && !trial.is_finished() {
                thread::sleep(Duration::from_millis(10));
            }
            cuts.iter().for_each(|index| proxies[*index].set(how));
            thread::sleep(Duration::from_secs(3));
            proxies.iter().for_each(|proxy| proxy.set(Link::Open));
            trial.join().unwrap()
        });
        let sent = target.messages().len();
        let ledger = merged(&order, outcome.unwrap()).ledger;
        assert_eq!((ledger.contradiction(), ledger.delivered), (None, Some(ledger.sent)));
        assert_eq!(watcher.0.lock().unwrap().sent, sent as u64, "no interval is lost");
        ledgers.push(ledger);
    }
    assert!(ledgers.windows(2).all(|pair| pair[0] == pair[1]), "{ledgers:?}");
}
