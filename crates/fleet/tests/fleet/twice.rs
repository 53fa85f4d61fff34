//! Every message comes twice, and some of them come late: nothing changes. Material reaches agents
//! by its name, secrets reach them at all, and neither stays.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weigh_engine::generator::TrialObserver;
use weigh_engine::job::Job;
use weigh_engine::rendezvous::Rendezvous;
use weigh_fleet::{Agent, Material, Part, Secrets, Workshop};
use weigh_model::body::BodySource;

use super::agents::{gather, now_ns, options, run, threads};
use super::nats::Nats;
use super::raw::{Raw, holds};
use super::target::Target;
use super::workshop::{Watcher, job, merged, order};

#[test]
fn messages_that_come_twice_change_nothing() {
    let Some(nats) = Nats::start("messages_that_come_twice_change_nothing") else { return };
    let (target, bus) = (Target::start(), nats.bus());
    let repeated = Raw::connect(nats.address).repeat(&["weigh.>", "$SRV.>"]);
    let _agents = threads(&bus, 4);
    let fleet = gather(&bus, 4);
    for attempt in 1..3 {
        let order = weigh_fleet::Order { attempt, ..order(target.address()) };
        let watcher = Arc::new(Watcher::default());
        let observer: Arc<dyn TrialObserver> = watcher.clone();
        let outcome = run(&fleet, &order, &observer).unwrap();
        let ledger = merged(&order, outcome).ledger;
        assert_eq!((ledger.contradiction(), ledger.delivered), (None, Some(10_000)));
        let sent = target.messages().len() as u64;
        let watched = watcher.0.lock().unwrap();
        assert_eq!(watched.sent, sent, "an interval counts once");
        assert_eq!(watched.settled.len(), 4);
    }
    assert!(repeated.load(Ordering::SeqCst) > 100, "messages were repeated");
}

/// Takes secrets and material as a runner would.
#[derive(Default)]
struct Noting(Mutex<Vec<(Option<Secrets>, Vec<u8>)>>);

impl Workshop for Noting {
    fn job(
        &self,
        part: &Part,
        material: &Material,
        meeting: Arc<dyn Rendezvous>,
    ) -> Result<Job, String> {
        self.0.lock().unwrap().push((part.secrets.clone(), material.body.clone()));
        job(&part.order, material, meeting)
    }
}

#[test]
fn material_and_secrets_reach_agents_and_do_not_stay() {
    let test = "material_and_secrets_reach_agents_and_do_not_stay";
    let Some(nats) = Nats::start(test) else { return };
    let (target, bus, noting) = (Target::start(), nats.bus(), Arc::new(Noting::default()));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (stored, said) = (
        Raw::connect(nats.address).overhear(&["$O.>", "$KV.>"]),
        Raw::connect(nats.address).overhear(&["weigh.>"]),
    );
    let body = format!("{{\"of\":{BODY:?}}}").repeat(20_000).into_bytes();
    std::thread::scope(|scope| {
        let agent = Agent::new(options(bus.clone(), None), noting.clone()).unwrap();
        let stopped = &stop;
        scope.spawn(move || agent.run(stopped, &|_| {}).unwrap());
        let fleet = gather(&bus, 1);
        let mut order = order(target.address());
        order.body = Some(fleet.put_material(&body).unwrap());
        assert_eq!(order.body, Some(fleet.put_material(&body).unwrap()));
        order.trial.load.body = BodySource::File("of the user".to_owned());
        order.trial.load.size = None;
        order.trial.load.messages = Some(20);
        let (user, password) = ("ann".to_owned(), PASSWORD.to_owned());
        let secrets = Secrets { user, password, ..Secrets::default() };
        let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
        let outcome = fleet.run(&order, Some(&secrets), now_ns(), &observer, &mut |_| {});
        assert_eq!(merged(&order, outcome.unwrap()).ledger.delivered, Some(100));
        assert_eq!(*noting.0.lock().unwrap(), [(Some(secrets), body.clone())]);
        let mut raw = Raw::connect(nats.address);
        // The file, and of the trial four outcomes and the agent's part.
        assert_eq!(raw.objects(), 6, "all of it stays until the next trial");
        only_the_body_is_stored(&nats.folder.path().join("store"));
        drop(fleet);
        assert_eq!(raw.objects(), 0);
        stop.store(true, Ordering::SeqCst);
    });
    let parts = ["\"cpu\":", "outcome/run-1/trial-1/1/3", "outcome/run-1/trial-1/1/agent-0"];
    for part in [&[BODY][..], &parts].concat() {
        assert!(stored.holds(part), "{part} was stored, and seen");
    }
    assert!(said.holds(PASSWORD), "secrets are sent, and seen");
    assert!(!stored.holds(PASSWORD), "secrets are never stored, not even for a moment");
}

/// Looks into the files of the bus, while the objects of a trial are in them.
fn only_the_body_is_stored(store: &Path) {
    let until = Instant::now() + Duration::from_secs(30);
    // The server writes a moment after it confirms.
    while !files_below(store).iter().any(|file| holds(file, BODY)) {
        assert!(Instant::now() < until, "the body is not in the files of the bus");
        std::thread::sleep(Duration::from_millis(20));
    }
    let has_secret = files_below(store).iter().any(|file| holds(file, PASSWORD));
    assert!(!has_secret, "secrets are never stored");
}

fn files_below(folder: &Path) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.extend(std::fs::read(&path)),
        }
    }
    files
}

const BODY: &str = "a file of the user";
const PASSWORD: &str = "pass-4711";
