//! Makes jobs of orders, with the protocol that they name, and the orders of the tests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use weigh_engine::generator::TrialObserver;
use weigh_engine::job::{Job, Progress};
use weigh_engine::outcome::Outcome;
use weigh_engine::rendezvous::Rendezvous;
use weigh_fleet::{FleetOutcome, Material, Order, Part, Target, Workshop};
use weigh_model::body::{Composer, widest_mark};
use weigh_model::protocol::Protocol;
use weigh_model::trial::Settings;
use weigh_model::units::{Bytes, parse_rate};
use weigh_model::{Arrival, Endpoint, Load, Nanos, Pattern, Topology, Trial};
use weigh_protocols::tcp::Tcp;

/// What agents of the tests make jobs with.
pub struct Shop;

impl Workshop for Shop {
    fn job(
        &self,
        part: &Part,
        material: &Material,
        meeting: Arc<dyn Rendezvous>,
    ) -> Result<Job, String> {
        job(&part.order, material, meeting)
    }
}

/// The job of an order, here or on an agent.
pub fn job(
    order: &Order,
    material: &Material,
    rendezvous: Arc<dyn Rendezvous>,
) -> Result<Job, String> {
    let mut trial = order.trial.clone();
    trial.endpoint = Some(Endpoint::at(&order.target.scheme, order.target.address));
    let protocol = weigh_protocols::find(&trial.protocol).map_err(|error| error.to_string())?;
    let load = &trial.load;
    let largest = widest_mark(load.connections, 1_000_000);
    let made = Composer::new(&load.body, &material.body, load.size, &largest, order.unix_ns);
    Ok(Job {
        dial: protocol.dial(&trial).map_err(|error| error.to_string())?,
        composer: made.map_err(|error| error.to_string())?,
        object: None,
        address: order.target.address,
        sources: Vec::new(),
        consumers: None,
        trace: material.trace.clone(),
        shards: order.shards,
        every: Nanos::from_millis(100),
        messages: None,
        is_metered: false,
        may_be_cut_off: false,
        rendezvous,
        trial,
    })
}

/// Four shards, eight producers, five consumers that hear all of them, 2,000 messages in 2 s.
pub fn order(at: SocketAddr) -> Order {
    let load = Load {
        topology: Topology::FanOut,
        subscribers: 5,
        messages: Some(2_000),
        warmup: Nanos::from_millis(200),
        arrival: Arrival::Poisson,
        rate: Some(parse_rate("1k/s").unwrap()),
        size: Some(Bytes(100)),
        // A trial ends by numbers from other hosts or not before this.
        timeout: Nanos::from_secs(20),
        ..Load::closed(Pattern::Deliver, 8)
    };
    Order {
        run: "run-1".to_owned(),
        attempt: 1,
        trial: Trial {
            id: "trial-1".to_owned(),
            point: Default::default(),
            repetition: 0,
            seed: 77,
            protocol: "tcp".to_owned(),
            target: "reference".to_owned(),
            endpoint: None,
            load,
            settings: Settings::new("tcp", Tcp.settings(), []).unwrap(),
        },
        target: Target {
            scheme: "tcp".to_owned(),
            host: at.ip().to_string(),
            port: at.port(),
            path: String::new(),
            address: at,
        },
        shards: 4,
        every: None,
        unix_ns: 1_700_000_000_000_000_000,
        body: None,
        trace: None,
        keeps_messages: false,
        tls: None,
    }
}

/// An order of short trials without an end of their own: 200 messages a second for a while.
pub fn steady(at: SocketAddr, duration: Nanos) -> Order {
    let mut order = order(at);
    let load = &mut order.trial.load;
    (load.messages, load.duration) = (None, Some(duration));
    load.rate = Some(parse_rate("200/s").unwrap());
    order
}

/// The result of a fleet as one.
pub fn merged(order: &Order, outcome: FleetOutcome) -> Outcome {
    Outcome::merge(outcome.shards, &order.trial.load, true, true)
}

/// Everything that an observer was called for.
#[derive(Default)]
pub struct Watcher(pub Mutex<Watched>);

#[derive(Default)]
pub struct Watched {
    /// `opening`, `began`, `load ended`, `window ended`, each once, in their order.
    pub moments: Vec<&'static str>,
    /// Messages sent, as the intervals of each shard count them.
    pub sent: u64,
    /// Shards that have no interval to report any more.
    pub settled: Vec<u32>,
}

impl Watcher {
    fn note(&self, moment: &'static str) {
        let moments = &mut self.0.lock().unwrap().moments;
        if moments.last() != Some(&moment) {
            moments.push(moment);
        }
    }
}

impl TrialObserver for Watcher {
    fn window_began(&self, _: Nanos) {
        self.note("began");
    }

    fn load_ended(&self, _: Nanos) {
        self.note("load ended");
    }

    fn window_ended(&self, _: Nanos) {
        self.note("window ended");
    }

    fn progress(&self, shard: u32, progress: Progress) {
        match progress {
            Progress::Opening(..) => self.note("opening"),
            Progress::Interval(told) => self.0.lock().unwrap().sent += told.interval.sent,
            Progress::Settled => self.0.lock().unwrap().settled.push(shard),
        }
    }
}
