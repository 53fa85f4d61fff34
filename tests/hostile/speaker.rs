//! A protocol as both sides speak it here: its settings, the layer under it, and how much an honest
//! client and server say.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tempfile::TempDir;
use weigh_engine::job::Job;
#[cfg(feature = "quic")]
use weigh_engine::layer::quic;
use weigh_engine::layer::{tls, websocket};
use weigh_engine::rendezvous::one_process::OneProcess;
use weigh_model::body::{Composer, widest_mark};
use weigh_model::load::Load;
use weigh_model::protocol::{Dial, Host};
use weigh_model::trial::Settings;
use weigh_model::units::Bytes;
use weigh_model::{Endpoint, Nanos, Pattern, Protocol, Trial, oscore};

/// What is under the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    None,
    WebSocket,
    Tls,
    #[cfg(feature = "quic")]
    Quic,
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

impl Manner {
    /// True if a peer of this protocol takes these bytes, said over and over, for a legal message:
    /// to plain TCP, line ends are the length of one of 218 MB, and the beginning of its body.
    pub fn is_body(&self, said: &[u8]) -> bool {
        self.protocol == "tcp" && said == b"\r\n"
    }
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
pub const MANNERS: &[Manner] = &[
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
    plain("kafka", "kafka", &[], Pattern::Deliver),
    plain("amqp1", "amqp1", &[], Pattern::Deliver),
    plain("kafka group", "kafka", &[("group", "g-{trial}")], Pattern::Deliver),
    plain("oscore", "coap", &[("oscore", "on")], Pattern::Request),
    #[cfg(feature = "quic")]
    Manner { layer: Layer::Quic, ..plain("quic", "http3", &[], Pattern::Request) },
    #[cfg(feature = "quic")]
    Manner {
        layer: Layer::Quic,
        ..plain("mqtt in quic", "mqtt", &[("qos", "1"), ("quic", "true")], Pattern::Deliver)
    },
];

#[cfg(feature = "quic")]
const TUNING: quic::Tuning = quic::Tuning {
    congestion: quic::Congestion::Cubic,
    datagram_bytes: 1_200,
    is_cut_by_kernel: false,
};

#[cfg(feature = "quic")]
fn alpn() -> Vec<Vec<u8>> {
    vec![b"hostile".to_vec()]
}

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
        if !matches!(manner.layer, Layer::None | Layer::WebSocket) {
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
        let mut settings = self.settings();
        if oscore::is_on(&settings) {
            // A server takes no number twice: every trial has IDs of its own.
            settings.0.insert(oscore::FIRST_ID.to_owned(), (1000 * seed).to_string());
        }
        Trial {
            id: String::new(),
            point: BTreeMap::new(),
            repetition: 0,
            seed,
            protocol: self.protocol.name().to_owned(),
            target: "hostile".to_owned(),
            endpoint: Some(Endpoint::at(self.protocol.scheme(), address)),
            load,
            settings,
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
            Layer::Tls => tls::secure_dial(dial, &self.client_choice(), &Arc::default()).unwrap(),
            #[cfg(feature = "quic")]
            Layer::Quic => {
                let choice = tls::ClientChoice { alpn: alpn(), ..self.client_choice() };
                quic::secure_dial(dial, &choice, &TUNING, &Arc::default()).unwrap()
            }
        }
    }

    fn client_choice(&self) -> tls::ClientChoice {
        tls::ClientChoice {
            versions: tls::Versions::Tls13,
            authority: Some(tls::Certificates::at(self.folder.path()).authority()),
            identity: None,
            name: "localhost".to_owned(),
            alpn: Vec::new(),
            resumes: false,
            verifies: true,
        }
    }

    fn server_choice(&self) -> tls::ServerChoice {
        let made = tls::Certificates::at(self.folder.path());
        let (certificate, key) = made.of(tls::MadeFor::Server);
        tls::ServerChoice {
            versions: tls::Versions::Tls13,
            identity: tls::Identity { certificate, key },
            clients: None,
            alpn: Vec::new(),
            resumes: false,
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
            Layer::Tls => tls::secure_host(host, &self.server_choice(), &Arc::default()).unwrap(),
            #[cfg(feature = "quic")]
            Layer::Quic => {
                let choice = tls::ServerChoice { alpn: alpn(), ..self.server_choice() };
                quic::secure_host(host, &choice, &TUNING, &Arc::default()).unwrap()
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
