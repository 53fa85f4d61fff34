//! A whole trial from one description: on virtual time in one thread, or on real sockets.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use weigh_engine::generator::{Generator, TrialObserver};
use weigh_engine::io::Io;
use weigh_engine::io::epoll::EpollIo;
use weigh_engine::io::sim::{Cut, Link, Party, Pause, SimIo, World};
use weigh_engine::job::{Job, Progress};
use weigh_engine::outcome::{Outcome, ShardOutcome};
use weigh_engine::rendezvous::one_process::OneProcess;
use weigh_engine::serving::{Serving, SimulatedServing};
use weigh_engine::shard::Shard;
use weigh_model::body::{Composer, widest_mark};
use weigh_model::connection::Connection;
use weigh_model::load::{Load, Pattern};
use weigh_model::protocol::{Host, Protocol, Seat, Transport};
use weigh_model::seal::Sealer;
use weigh_model::server::{Server, ServerReport};
use weigh_model::trial::{Settings, Trial};
use weigh_model::units::{Bytes, parse_rate};
use weigh_model::{Endpoint, Nanos};
use weigh_testbed::hosts::Scene;

use crate::delayed::delayed;
use crate::scripted::{Policy, Scripted};

/// Puts itself between the engine and the connection of a seat.
pub type Wrap = Arc<dyn Fn(Seat, Box<dyn Connection>) -> Box<dyn Connection> + Send + Sync>;

/// One trial, decided.
#[derive(Clone)]
pub struct Setup {
    pub protocol: &'static dyn Protocol,
    pub settings: Vec<(String, String)>,
    pub load: Load,
    pub seed: u64,
    pub shards: u32,
    pub trace: Vec<Nanos>,
    pub link: Link,
    pub wrap: Option<Wrap>,
    /// A server of the test's own in place of the reference server.
    pub server: Option<fn() -> Box<dyn Server>>,
    /// Settings that only the server gets.
    pub server_settings: Vec<(String, String)>,
    /// Connections that are reset in the simulated world.
    pub cuts: Vec<Cut>,
    /// When the simulated generator stands still.
    pub pauses: Vec<Pause>,
    /// When the simulated server takes no connections: from, until.
    pub refusals: Vec<(Nanos, Nanos)>,
    /// Who seals bodies that are to be sealed.
    pub sealer: Option<Arc<dyn Sealer>>,
    /// Both ends inside TLS.
    #[cfg(feature = "tls")]
    pub secured: Option<Arc<crate::secured::Secured>>,
}

/// What a trial left behind on both sides.
pub struct Seen {
    pub outcome: Outcome,
    /// The reference server's own count; empty for a scripted one.
    pub server: ServerReport,
    /// Check value over everything that happened; 0 on real sockets.
    pub log_hash: u64,
}

impl Setup {
    /// A closed loop of one connection and `messages` messages of 64 bytes.
    pub fn new(
        protocol: &str,
        settings: &[(&str, &str)],
        pattern: Pattern,
        messages: u64,
    ) -> Setup {
        Setup::of(weigh_protocols::find(protocol).unwrap(), settings, pattern, messages)
    }

    /// The same with a protocol that need not be in the registry.
    pub fn of(
        protocol: &'static dyn Protocol,
        settings: &[(&str, &str)],
        pattern: Pattern,
        messages: u64,
    ) -> Setup {
        let settings =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Setup {
            protocol,
            settings,
            load: Load {
                subscribers: u32::from(pattern == Pattern::Deliver),
                messages: Some(messages),
                size: Some(Bytes(64)),
                ..Load::closed(pattern, 1)
            },
            seed: 1,
            shards: 1,
            trace: Vec::new(),
            link: Link::default(),
            wrap: None,
            server: None,
            server_settings: Vec::new(),
            cuts: Vec::new(),
            pauses: Vec::new(),
            refusals: Vec::new(),
            sealer: None,
            #[cfg(feature = "tls")]
            secured: None,
        }
    }

    /// The same with an open arrival: `constant`, `1000/s`.
    pub fn open(mut self, arrival: &str, rate: &str) -> Setup {
        self.load.arrival = arrival.parse().unwrap();
        self.load.rate = Some(parse_rate(rate).unwrap());
        self
    }

    pub fn connections(mut self, connections: u32) -> Setup {
        self.load.connections = connections;
        self
    }

    pub fn seed(mut self, seed: u64) -> Setup {
        self.seed = seed;
        self
    }

    /// The protocol's settings, complete.
    pub fn table(&self) -> Settings {
        let given = self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        Settings::new(self.protocol.name(), self.protocol.settings(), given).unwrap()
    }

    /// The reference server of these settings.
    pub fn host(&self) -> Host {
        self.host_behind(None)
    }

    /// The same; inside QUIC behind a policy.
    fn host_behind(&self, policy: Option<Policy>) -> Host {
        if let Some(make) = self.server {
            return Host { transport: Transport::Stream, make: Box::new(move |_| make()) };
        }
        let mut settings = self.table();
        settings.0.extend(self.server_settings.iter().cloned());
        let host = self.protocol.host(&settings).unwrap();
        let host = match policy {
            Some(policy) => delayed(self.protocol.name(), host, policy),
            None => host,
        };
        #[cfg(feature = "tls")]
        if let Some(secured) = self.layer() {
            #[cfg(feature = "quic")]
            if self.is_in_quic() {
                return secured.host_in_quic(host, &settings);
            }
            return secured.host(host, self.protocol.properties().upgrades_to_tls);
        }
        host
    }

    /// The layer around both ends: always one where the protocol is over QUIC.
    #[cfg(feature = "tls")]
    fn layer(&self) -> Option<Arc<crate::secured::Secured>> {
        #[cfg(feature = "quic")]
        if self.is_in_quic() {
            return Some(self.secured.clone().unwrap_or_else(crate::secured::of_quic));
        }
        self.secured.clone()
    }

    #[cfg(feature = "tls")]
    fn inside(
        &self,
        layer: &crate::secured::Secured,
        dial: weigh_model::protocol::Dial,
    ) -> weigh_model::protocol::Dial {
        #[cfg(feature = "quic")]
        if self.is_in_quic() {
            return layer.dial_in_quic(dial, &self.table());
        }
        layer.dial(dial, self.protocol.properties().upgrades_to_tls)
    }

    /// True if the protocol is inside QUIC.
    pub fn is_in_quic(&self) -> bool {
        weigh_model::quic::is_on(self.protocol, &self.table())
    }

    /// The trial against a server at `address`.
    pub fn trial(&self, address: SocketAddr) -> Trial {
        Trial {
            id: String::new(),
            point: BTreeMap::new(),
            repetition: 0,
            seed: self.seed,
            protocol: self.protocol.name().to_owned(),
            target: "oracle".to_owned(),
            endpoint: Some(Endpoint::at(self.protocol.scheme(), address)),
            load: self.load.clone(),
            settings: self.table(),
        }
    }

    /// The job against a server at `address`.
    pub fn job(&self, address: SocketAddr) -> Arc<Job> {
        let trial = self.trial(address);
        let mut dial = self.protocol.dial(&trial).unwrap();
        if let Some(wrap) = self.wrap.clone() {
            let make = dial.make;
            dial.make = Box::new(move |seat| wrap(seat, make(seat)));
        }
        #[cfg(feature = "tls")]
        if let Some(secured) = self.layer() {
            dial = self.inside(&secured, dial);
        }
        let load = &trial.load;
        let widest = widest_mark(load.connections, load.messages.unwrap_or(1 << 40));
        let composer = match (load.pattern, self.sealer.clone()) {
            (Pattern::Transfer, _) => {
                Composer::in_pieces(&load.body, (b"", 0), load.size, &widest, 0)
            }
            (_, Some(sealer)) => Composer::sealed(&load.body, b"", load.size, &widest, 0, sealer),
            (_, None) => Composer::new(&load.body, b"", load.size, &widest, 0),
        };
        let composer = composer.unwrap();
        let (trace, shards) = (self.trace.clone(), self.shards);
        let rendezvous = Arc::new(OneProcess::new(shards));
        let every = Nanos::from_secs(1);
        Arc::new(Job {
            trial,
            dial,
            composer,
            object: None,
            address,
            sources: Vec::new(),
            consumers: None,
            trace,
            shards,
            every,
            messages: None,
            is_metered: false,
            may_be_cut_off: false,
            rendezvous,
        })
    }

    /// Runs on virtual time against the reference server.
    pub fn on_virtual_time(&self) -> Seen {
        let mut world = World::new(self.seed);
        world.link(simulated_address(), self.link);
        let mut server =
            SimulatedServing::start(&self.host(), simulated_address(), world.party()).unwrap();
        let (outcome, log_hash) = self.in_world(&mut world, &mut server, simulated_address());
        Seen { outcome, server: server.report().server, log_hash }
    }

    /// Runs on virtual time against the reference server behind `policy`.
    pub fn scripted_on_virtual_time(&self, policy: Policy) -> Seen {
        let mut world = World::new(self.seed);
        world.link(simulated_address(), self.link);
        if self.is_in_quic() {
            let host = self.host_behind(Some(policy));
            let mut server =
                SimulatedServing::start(&host, simulated_address(), world.party()).unwrap();
            let (outcome, log_hash) = self.in_world(&mut world, &mut server, simulated_address());
            return Seen { outcome, server: server.report().server, log_hash };
        }
        let (mut io, host) = (world.party(), self.host());
        listen(&mut io, host.transport, simulated_address());
        let server = Scripted::new(self.protocol.name(), (host.make)(0), policy);
        let mut party = ScriptedParty { server, io };
        let (outcome, log_hash) = self.in_world(&mut world, &mut party, simulated_address());
        Seen { outcome, server: party.server.report(), log_hash }
    }

    /// The same while `background` runs too, each against a server of this setup's protocol behind
    /// its own policy; what is seen is this setup's side.
    pub fn above(&self, background: &Setup, policies: [Policy; 2]) -> Seen {
        let mut world = World::new(self.seed);
        let places = [simulated_address(), SocketAddr::from((Ipv4Addr::LOCALHOST, 8))];
        let setups = [self, background];
        let mut servers: Vec<ScriptedParty> = Vec::new();
        for ((setup, policy), place) in setups.into_iter().zip(policies).zip(places) {
            world.link(place, setup.link);
            let (mut io, host) = (world.party(), setup.host());
            listen(&mut io, host.transport, place);
            let server = Scripted::new(setup.protocol.name(), (host.make)(0), policy);
            servers.push(ScriptedParty { server, io });
        }
        let shard = Shard::new(background.job(places[1]), 0, Box::new(|_| {}));
        let mut guest = Guest { shard, io: world.party() };
        // In the order in which the world made them.
        let mut others: Vec<&mut dyn Party> = Vec::new();
        servers.iter_mut().for_each(|server| others.push(server));
        others.push(&mut guest);
        let (outcome, log_hash) = self.among(&mut world, others, places[0]);
        Seen { outcome, server: servers[0].server.report(), log_hash }
    }

    fn in_world(
        &self,
        world: &mut World,
        server: &mut dyn Party,
        address: SocketAddr,
    ) -> (Outcome, u64) {
        self.among(world, vec![server], address)
    }

    /// Runs in a world of these parties, against whoever listens at `address`.
    pub fn among(
        &self,
        world: &mut World,
        others: Vec<&mut dyn Party>,
        address: SocketAddr,
    ) -> (Outcome, u64) {
        assert_eq!(self.shards, 1, "one shard in the simulated world");
        let job = self.job(address);
        let shard = Shard::new(Arc::clone(&job), 0, Box::new(|_| {}));
        let mut guest = Guest { shard, io: world.party() };
        self.cuts.iter().for_each(|cut| world.cut(*cut));
        // The guest is the party that was made last.
        self.pauses.iter().for_each(|pause| world.pause(others.len(), *pause));
        for (from, until) in &self.refusals {
            world.refuse(address, *from, *until);
        }
        let mut parties: Vec<&mut dyn Party> = Vec::new();
        for other in others {
            parties.push(other);
        }
        parties.push(&mut guest);
        world.run(&mut parties, Nanos::from_secs(100_000));
        let ended = world.now();
        let bytes = guest.io.bytes();
        let queue_drops = guest.io.dropped();
        let mut shard = ShardOutcome { ended, bytes, ..guest.shard.outcome() };
        shard.accounts.queue_drops = queue_drops;
        assert_eq!(shard.failure, None);
        let marked = job.composer.is_marked();
        (Outcome::merge(vec![shard], &self.load, job.dial.confirms, marked), world.log_hash())
    }

    /// Runs on real sockets against the reference server.
    pub fn on_sockets(&self) -> Seen {
        let shards = self.shards as u16;
        let serving = Serving::start(&self.host(), any_port(), shards).unwrap();
        let outcome = self.against(serving.address());
        Seen { outcome, server: serving.stop().server, log_hash: 0 }
    }

    /// Runs on real sockets against the reference server behind `policy`.
    pub fn scripted_on_sockets(&self, policy: Policy) -> Seen {
        if self.is_in_quic() {
            // Both ends count from the same moment, as the policy's stamps and due times must.
            let (host, epoch) = (self.host_behind(Some(policy)), Instant::now());
            let serving = Serving::start_since(&host, any_port(), 1, epoch).unwrap();
            let outcome = self.run_generator(serving.address(), epoch);
            return Seen { outcome, server: serving.stop().server, log_hash: 0 };
        }
        let generate = |address, epoch| self.run_generator(address, epoch);
        self.scripted(policy, any_port, generate)
    }

    /// The same between two hosts: the server is on `target`, the generator on `generator`.
    pub fn scripted_across(&self, scene: &Scene, policy: Policy) -> Seen {
        let target = scene.host("target").unwrap();
        let (door, address) = (target.door(), SocketAddr::from((target.address(), 0)));
        let enter = move || {
            door.enter().unwrap();
            address
        };
        let generator = scene.host("generator").unwrap();
        let generate =
            |address, epoch| generator.inside(|| Ok(self.run_generator(address, epoch))).unwrap();
        self.scripted(policy, enter, generate)
    }

    fn scripted(
        &self,
        policy: Policy,
        settle: impl FnOnce() -> SocketAddr + Send + 'static,
        generate: impl FnOnce(SocketAddr, Instant) -> Outcome,
    ) -> Seen {
        let (name, host) = (self.protocol.name(), self.host());
        let epoch = Instant::now();
        let (listens, listening) = channel();
        let (stop, stopped) = channel::<()>();
        let thread = thread::spawn(move || {
            let on = settle();
            let mut io = EpollIo::new(epoch).unwrap();
            if host.transport == Transport::DatagramRuns {
                io.let_kernel_cut();
            }
            listens.send(listen(&mut io, host.transport, on)).unwrap();
            let mut server = Scripted::new(name, (host.make)(0), policy);
            while stopped.try_recv().is_err() {
                let soon = io.now() + Nanos::from_millis(20);
                server.step(&mut io, soon);
            }
            server.report()
        });
        let address = listening.recv().unwrap();
        let outcome = generate(address, epoch);
        stop.send(()).unwrap();
        Seen { outcome, server: thread.join().unwrap(), log_hash: 0 }
    }

    /// Runs on real sockets against whoever listens at `address`.
    pub fn against(&self, address: SocketAddr) -> Outcome {
        self.run_generator(address, Instant::now())
    }

    fn run_generator(&self, address: SocketAddr, epoch: Instant) -> Outcome {
        let observer: Arc<dyn TrialObserver> = Arc::new(Nobody);
        let job = self.job(address);
        let generator = Generator::start(job, 0..self.shards, epoch, &observer).unwrap();
        generator.finish().unwrap()
    }
}

impl Seen {
    /// The ledger, after its identities have been checked.
    pub fn ledger(&self) -> &weigh_model::Ledger {
        let ledger = &self.outcome.ledger;
        assert_eq!(ledger.contradiction(), None, "{ledger:#?}");
        ledger
    }
}

/// Listens for connections or for datagrams; returns the address taken.
fn listen(io: &mut dyn Io, transport: Transport, on: SocketAddr) -> SocketAddr {
    match transport {
        Transport::Stream => io.listen(on, 1024).unwrap(),
        Transport::Datagram | Transport::DatagramRuns | Transport::Streams => {
            io.listen_datagrams(on).unwrap()
        }
    }
}

/// Where servers listen in the simulated world.
pub fn simulated_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 7))
}

/// A free port of loopback.
pub fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Fails unless `value` is within `tolerance` of `expected`.
#[track_caller]
pub fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    let difference = (value - expected).abs();
    assert!(difference <= tolerance, "{what}: {value}, not {expected} (+-{tolerance})");
}

struct Guest {
    shard: Shard,
    io: SimIo,
}

impl Party for Guest {
    fn step(&mut self) -> bool {
        self.shard.step(&mut self.io)
    }
}

struct ScriptedParty {
    server: Scripted,
    io: SimIo,
}

impl Party for ScriptedParty {
    fn step(&mut self) -> bool {
        self.server.step(&mut self.io, Nanos::NEVER);
        true
    }

    fn serves(&self) -> bool {
        true
    }
}

struct Nobody;

impl TrialObserver for Nobody {
    fn progress(&self, _shard: u32, _progress: Progress) {}
}
