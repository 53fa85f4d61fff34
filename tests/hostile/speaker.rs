//! A protocol as both sides speak it here: its settings, the layer under it, and how much an honest
//! client and server say.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tempfile::TempDir;
use weigh_engine::job::Job;
use weigh_engine::layer::{tls, websocket};
use weigh_engine::rendezvous::one_process::OneProcess;
use weigh_model::body::{Composer, widest_mark};
use weigh_model::load::Load;
use weigh_model::protocol::{Dial, Host};
use weigh_model::trial::Settings;
use weigh_model::units::Bytes;
use weigh_model::{Endpoint, Nanos, Pattern, Protocol, Trial};

/// What is under the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    None,
    WebSocket,
    Tls,
}

/// A protocol with its settings.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub name: &'static str,
    protocol: &'static str,
    settings: &'static [(&'static str, &'static str)],
    pattern: Pattern,
    layer: Layer,
}

const fn plain(
    name: &'static str,
    protocol: &'static str,
    settings: &'static [(&'static str, &'static str)],
    pattern: Pattern,
) -> Manner {
    Manner { name, protocol, settings, pattern, layer: Layer::None }
}

/// Everything that is tried.
pub const MANNERS: [Manner; 12] = [
    plain("http1", "http1", &[], Pattern::Request),
    plain("http2", "http2", &[], Pattern::Request),
    plain("grpc", "grpc", &[], Pattern::Request),
    plain("mqtt 3.1.1", "mqtt", &[("qos", "1")], Pattern::Deliver),
    plain("mqtt 5", "mqtt", &[("qos", "2"), ("version", "5")], Pattern::Deliver),
    plain("tcp", "tcp", &[], Pattern::Request),
    plain("nats", "nats", &[("confirm", "ok")], Pattern::Deliver),
    plain("amqp", "amqp", &[], Pattern::Deliver),
    plain("redis", "redis", &[], Pattern::Deliver),
    plain("coap", "coap", &[], Pattern::Request),
    Manner {
        layer: Layer::WebSocket,
        ..plain("websocket", "mqtt", &[("qos", "1")], Pattern::Deliver)
    },
    Manner { layer: Layer::Tls, ..plain("tls", "tcp", &[], Pattern::Request) },
];

/// A protocol that is ready to be spoken.
pub struct Speaker {
    pub manner: Manner,
    protocol: &'static dyn Protocol,
    /// Certificates, where TLS needs them.
    folder: TempDir,
}

/// How many bytes an honest side says until its session stands, and in all.
#[derive(Clone, Copy, Debug)]
pub struct Rehearsal {
    pub client: (u64, u64),
    pub server: (u64, u64),
}

impl Speaker {
    pub fn new(manner: Manner) -> Speaker {
        let folder = tempfile::tempdir().unwrap();
        if manner.layer == Layer::Tls {
            tls::Certificates::make(folder.path()).unwrap();
        }
        Speaker { manner, protocol: weigh_protocols::find(manner.protocol).unwrap(), folder }
    }

    /// A closed loop of this many messages over this many connections.
    pub fn load(&self, messages: u64, connections: u32) -> Load {
        Load {
            subscribers: u32::from(self.manner.pattern == Pattern::Deliver),
            messages: Some(messages),
            size: Some(Bytes(64)),
            timeout: Nanos::from_secs(1),
            ..Load::closed(self.manner.pattern, connections)
        }
    }

    fn settings(&self) -> Settings {
        let given = self.manner.settings.iter().copied();
        Settings::new(self.protocol.name(), self.protocol.settings(), given).unwrap()
    }

    fn trial(&self, address: SocketAddr, load: Load, seed: u64) -> Trial {
        Trial {
            id: String::new(),
            point: BTreeMap::new(),
            repetition: 0,
            seed,
            protocol: self.protocol.name().to_owned(),
            target: "hostile".to_owned(),
            endpoint: Some(Endpoint::at(self.protocol.scheme(), address)),
            load,
            settings: self.settings(),
        }
    }

    fn dial_of(&self, trial: &Trial) -> Dial {
        let dial = self.protocol.dial(trial).unwrap();
        match self.manner.layer {
            Layer::None => dial,
            Layer::WebSocket => {
                let choice = websocket::ClientChoice {
                    host: "localhost".to_owned(),
                    path: "/mqtt".to_owned(),
                    subprotocol: "mqtt".to_owned(),
                    seed: trial.seed,
                };
                websocket::wrap_dial(dial, &choice, &Arc::default())
            }
            Layer::Tls => {
                let made = tls::Certificates::at(self.folder.path());
                let choice = tls::ClientChoice {
                    versions: tls::Versions::Tls13,
                    authority: Some(made.authority()),
                    identity: None,
                    name: "localhost".to_owned(),
                    alpn: Vec::new(),
                    resumes: false,
                    verifies: true,
                };
                tls::secure_dial(dial, &choice, &Arc::default()).unwrap()
            }
        }
    }

    /// How clients of a trial with this seed are made.
    pub fn dial(&self, address: SocketAddr, seed: u64) -> Dial {
        self.dial_of(&self.trial(address, self.load(1, 1), seed))
    }

    /// The reference server, inside its layer.
    pub fn host(&self) -> Host {
        let host = self.protocol.host(&self.settings()).unwrap();
        match self.manner.layer {
            Layer::None => host,
            Layer::WebSocket => websocket::wrap_host(host, "mqtt", &Arc::default()),
            Layer::Tls => {
                let made = tls::Certificates::at(self.folder.path());
                let (certificate, key) = made.of(tls::MadeFor::Server);
                let choice = tls::ServerChoice {
                    versions: tls::Versions::Tls13,
                    identity: tls::Identity { certificate, key },
                    clients: None,
                    alpn: Vec::new(),
                    resumes: false,
                };
                tls::secure_host(host, &choice, &Arc::default()).unwrap()
            }
        }
    }

    /// The job of an honest trial.
    pub fn job(&self, address: SocketAddr, load: Load) -> Arc<Job> {
        let trial = self.trial(address, load, 1);
        let dial = self.dial_of(&trial);
        let load = &trial.load;
        let widest = widest_mark(load.connections, load.messages.unwrap_or(1 << 40));
        let composer = Composer::new(&load.body, b"", load.size, &widest, 0).unwrap();
        Arc::new(Job {
            trial,
            dial,
            composer,
            object: None,
            address,
            sources: Vec::new(),
            consumers: None,
            trace: Vec::new(),
            shards: 1,
            every: Nanos::from_secs(1),
            messages: None,
            is_metered: false,
            may_be_cut_off: false,
            rendezvous: Arc::new(OneProcess::new(1)),
        })
    }
}

/// Where servers listen in the simulated world.
pub fn simulated_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 7))
}
