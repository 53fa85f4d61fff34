//! Length-prefixed frames over TCP: the simplest possible messaging protocol, and so the
//! lower bound for all others. The format is in `README.md`.

use weigh_model::load::{Pattern, Topology};
use weigh_model::numbers::count;
use weigh_model::protocol::{
    Dial, Guarantee, Host, Invalid, Lifetime, PacketName, Properties, Protocol, Role, Scheme, Seat,
    Setting, SettingKind, Transport,
};
use weigh_model::tls;
use weigh_model::trial::{Settings, Trial};

mod client;
mod codec;
mod names;
mod server;

/// The protocol `tcp`.
pub struct Tcp;

impl Protocol for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("tcp", 0), Scheme::secure("tls+tcp", 0)];
        SCHEMES
    }

    fn properties(&self) -> Properties {
        Properties { is_compared: true, ..Properties::default() }
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[
            Pattern::Request,
            Pattern::Publish,
            Pattern::Deliver,
            Pattern::Batch,
            Pattern::Session,
            Pattern::Transfer,
            Pattern::Hold,
        ]
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn guarantee(&self, settings: &Settings) -> Guarantee {
        match settings.flag("acknowledge") {
            true => Guarantee::AtLeastOnce,
            false => Guarantee::AtMostOnce,
        }
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        names::name(from_client, head)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        let asks = asks(&trial.settings)?;
        if trial.load.topology == Topology::Shared {
            return Err(Invalid::new(
                "load.topology",
                "tcp does not support shared subscriptions",
                "type --topology fan-in, fan-out or pairs",
            ));
        }
        let frame_bytes_max = frame_bytes_max(&trial.settings);
        let body_bytes_max = frame_bytes_max - codec::HEAD_BYTES;
        if let Some(size) = trial.load.size.filter(|size| size.0 > body_bytes_max as u64) {
            let fix = match frame_bytes_max as u64 {
                codec::FRAME_BYTES_MAX => format!("make bodies at most {body_bytes_max}B"),
                _ => format!("make bodies at most {body_bytes_max}B or raise tcp.frame_bytes_max"),
            };
            let problem = format!(
                "{size} does not fit into a frame of {} bytes",
                count(frame_bytes_max as u64)
            );
            return Err(Invalid::new("load.size", problem, fix));
        }
        let in_pieces = trial.load.pattern == Pattern::Transfer;
        if in_pieces && asks == client::Asks::Echo {
            return Err(Invalid::new(
                "tcp.echo",
                "a transfer sends its object in one direction",
                "leave tcp.echo at false, or type --pattern request",
            ));
        }
        let deliver = trial.load.delivers().then_some(trial.load.topology);
        let greeting = move |seat: Seat| match (deliver, seat.role) {
            (Some(Topology::Pairs), Role::Consumer) => client::Greeting::Subscribe(seat.index),
            (_, Role::Consumer) => client::Greeting::Subscribe(codec::EVERYONE),
            (Some(_), Role::Producer) => client::Greeting::Hello(seat.index),
            (None, Role::Producer) => client::Greeting::None,
        };
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: Lifetime::of(trial.load.pattern),
            confirms: asks != client::Asks::Nothing,
            is_answered: false,
            producer_of: Some(Box::new(codec::producer_of)),
            make: Box::new(move |seat| {
                let limits = client::Limits { frame_bytes_max, in_pieces };
                Box::new(client::TcpConnection::new(asks, greeting(seat), limits))
            }),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let frame_bytes_max = frame_bytes_max(settings);
        let queue_bytes_max = match settings.integer("queue_bytes_max") {
            0 => usize::MAX,
            bytes => bytes as usize,
        };
        let exchange = server::Exchange::default();
        Ok(Host {
            transport: Transport::Stream,
            make: Box::new(move |shard| {
                let exchange = exchange.clone();
                Box::new(server::TcpServer::new(shard, exchange, frame_bytes_max, queue_bytes_max))
            }),
        })
    }
}

fn asks(settings: &Settings) -> Result<client::Asks, Invalid> {
    match (settings.flag("acknowledge"), settings.flag("echo")) {
        (true, true) => Ok(client::Asks::Echo),
        (true, false) => Ok(client::Asks::Acknowledgement),
        (false, false) => Ok(client::Asks::Nothing),
        (false, true) => Err(Invalid::new(
            "tcp.echo",
            "an echo is an answer, and tcp.acknowledge = false disables answers",
            "leave tcp.acknowledge at true, or tcp.echo at false",
        )),
    }
}

fn frame_bytes_max(settings: &Settings) -> usize {
    settings.integer("frame_bytes_max") as usize
}

const OWN: &[Setting] = &[
    Setting {
        key: "acknowledge",
        kind: SettingKind::Flag,
        default: "true",
        doc: "Whether the server confirms every message.",
    },
    Setting {
        key: "echo",
        kind: SettingKind::Flag,
        default: "false",
        doc: "Whether the server confirms by sending the body back.",
    },
    Setting {
        key: "frame_bytes_max",
        kind: SettingKind::Integer(64, codec::FRAME_BYTES_MAX),
        default: "1073741824",
        doc: "Largest frame received or sent, including 9 bytes of header.",
    },
    Setting {
        key: "queue_bytes_max",
        kind: SettingKind::Integer(0, 1 << 40),
        default: "0",
        doc: "Bytes kept for a slow consumer before the server drops messages; 0 means no limit.",
    },
];

/// The keys of tcp, and those of TLS.
static SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "");
