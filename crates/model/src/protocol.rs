//! Interface of a protocol to the other crates.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::connection::Connection;
use crate::durability::Durability;
use crate::load::Pattern;
use crate::server::Server;
use crate::settings::Settings;
pub use crate::settings::{Invalid, Setting, SettingKind};
use crate::trial::Trial;

/// Number of times that a message may arrive. Only figures of the same guarantee are compared.
///
/// # Examples
///
/// ```
/// use weigh_model::Guarantee;
///
/// assert!(Guarantee::AtMostOnce < Guarantee::AtLeastOnce);
/// assert_eq!(Guarantee::ExactlyOnce.to_string(), "exactly once");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Guarantee {
    /// Never twice, perhaps not at all: nothing confirms it.
    #[serde(rename = "at most once")]
    AtMostOnce,
    /// Confirmed; without a confirmation the sender sends again.
    #[serde(rename = "at least once")]
    AtLeastOnce,
    /// Confirmed, and repeated sends are recognised.
    #[serde(rename = "exactly once")]
    ExactlyOnce,
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Guarantee::AtMostOnce => "at most once",
            Guarantee::AtLeastOnce => "at least once",
            Guarantee::ExactlyOnce => "exactly once",
        })
    }
}

/// A protocol: how its clients are made, and its reference server.
pub trait Protocol: Sync {
    /// The registry's name, also the first part of its plan keys: `mqtt`.
    fn name(&self) -> &'static str;

    /// Other names that the command line takes for it.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// The schemes of its URLs. The first is that of the protocol itself; the others also name
    /// layers under it: `mqtt`, `mqtts`, `ws`, `wss`.
    fn schemes(&self) -> &'static [Scheme];

    /// The patterns it can carry; the first is its default in `compare`.
    fn patterns(&self) -> &'static [Pattern];

    /// The keys of its own table in a plan.
    fn settings(&self) -> &'static [Setting];

    /// The points of the matrix that `compare` measures by default: each is a list of settings
    /// (MQTT: QoS 0, 1 and 2).
    fn lanes(&self) -> &'static [&'static [(&'static str, &'static str)]] {
        &[&[]]
    }

    /// Further properties.
    fn properties(&self) -> Properties {
        Properties::default()
    }

    /// True if under these settings every message uses a new connection, whatever the pattern.
    fn renews(&self, _settings: &Settings) -> bool {
        false
    }

    /// Name of the code of [`crate::connection::Signal::Refused`], and what to do about it.
    fn error(&self, code: u16) -> ErrorWords {
        ErrorWords { name: format!("error {code}"), advice: ErrorWords::ADVICE }
    }

    /// Returns the guarantee under these settings.
    fn guarantee(&self, settings: &Settings) -> Guarantee;

    /// The strongest durability that these settings allow, whatever the server can do: AMQP's
    /// transient messages are in memory only. `None` if they set no limit.
    fn durability_limit(&self, _settings: &Settings) -> Option<Durability> {
        None
    }

    /// The limits that a client under these settings asks the server for, by the names under which
    /// the server grants them.
    fn asks(&self, _settings: &Settings) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// False if operations send the server no message that it could count (an HTTP GET), so that
    /// its count is not compared with the ledger.
    fn carries(&self, _settings: &Settings) -> bool {
        true
    }

    /// The library of its clients under these settings, with its version; `None` if they are
    /// built-in state machines.
    fn library(&self, _settings: &Settings) -> Option<&'static str> {
        None
    }

    /// Names the packet that begins with `head`, at a place of a stream where a packet may begin;
    /// `head` may be longer or shorter than the packet. `None` if it is not known. For diagrams
    /// only: nothing is counted by it.
    fn packet_name(&self, _from_client: bool, _head: &[u8]) -> Option<PacketName> {
        None
    }

    /// Refuses a pattern that the protocol does not support; `fix` names those that it does.
    ///
    /// # Errors
    /// The pattern of the trial is not among [`Protocol::patterns`].
    fn check_pattern(&self, trial: &Trial, fix: &str) -> Result<(), Invalid> {
        let pattern = trial.load.pattern;
        if self.patterns().contains(&pattern) {
            return Ok(());
        }
        let problem = format!("{} does not support the pattern {pattern}", self.name());
        Err(Invalid::new("load.pattern", problem, fix))
    }

    /// Returns how clients of this trial are made.
    ///
    /// # Errors
    /// A trial that the protocol cannot run: the plan key, what is wrong, and what to type.
    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid>;

    /// The reference server, with these settings.
    ///
    /// # Errors
    /// A value that the reference server does not accept, and its key.
    fn host(&self, settings: &Settings) -> Result<Host, Invalid>;
}

impl dyn Protocol + '_ {
    /// The scheme of its URLs without layers: `mqtt`.
    pub fn scheme(&self) -> &'static str {
        self.scheme_in(&Scheme::plain("", 0))
    }

    /// The scheme with the layers of `like`, as far as it has one: `wss`.
    pub fn scheme_in(&self, like: &Scheme) -> &'static str {
        let schemes = self.schemes();
        schemes
            .iter()
            .find(|own| own.has_layers_of(like))
            .or(schemes.first())
            .map_or("", |own| own.name)
    }

    /// True if the key is in its table.
    pub fn has_setting(&self, key: &str) -> bool {
        self.settings().iter().any(|setting| setting.key == key)
    }
}

/// A scheme of a protocol's URLs, with the layers that it implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Name before `://`.
    pub name: &'static str,
    /// Default port; 0 if every URL has to name it.
    pub port: u16,
    /// True if it implies TLS.
    pub is_secure: bool,
    /// True if it implies WebSocket.
    pub is_websocket: bool,
    /// True if it implies QUIC, and so TLS 1.3.
    pub is_quic: bool,
}

impl Scheme {
    /// A scheme without layers.
    pub const fn plain(name: &'static str, port: u16) -> Scheme {
        Scheme { name, port, is_secure: false, is_websocket: false, is_quic: false }
    }

    /// A scheme with TLS.
    pub const fn secure(name: &'static str, port: u16) -> Scheme {
        Scheme { is_secure: true, ..Scheme::plain(name, port) }
    }

    /// Returns this scheme inside WebSocket.
    pub const fn in_websocket(self) -> Scheme {
        Scheme { is_websocket: true, ..self }
    }

    /// Returns this scheme inside QUIC.
    pub const fn in_quic(self) -> Scheme {
        Scheme { is_secure: true, is_quic: true, ..self }
    }

    fn has_layers_of(&self, other: &Scheme) -> bool {
        let layers = |own: &Scheme| (own.is_secure, own.is_websocket, own.is_quic);
        layers(self) == layers(other)
    }
}

/// Properties of a protocol, as data: everything has a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// True if `compare` measures it by default.
    pub is_compared: bool,
    /// True if `compare` without arguments leaves it out, so that the main job stays short: it is
    /// measured where its name is given.
    pub is_only_by_name: bool,
    /// The setting, as key and value, under which every message has a connection of its own;
    /// `compare` measures it too without arguments. `None` if its connections are always kept.
    pub per_message: Option<(&'static str, &'static str)>,
    /// True if its servers are brokers, at which producers and consumers meet.
    pub is_brokered: bool,
    /// Round trips between the transport and the first message: CONNECT and CONNACK are one.
    pub greeting_round_trips: u32,
    /// Bytes of the request, and of the answer, that keep a session alive; `None` if only the
    /// transport does.
    pub ping_bytes: Option<u64>,
    /// The subprotocol of WebSocket (RFC 6455, section 1.9); empty if it has none.
    pub websocket: &'static str,
    /// Way in which its servers publish counters.
    pub counters: CountersBy,
    /// True if TLS begins behind the first line of the server, which is in the clear (NATS), and
    /// not with the first byte of the client.
    pub upgrades_to_tls: bool,
    /// A datagram that every server answers, for a look at whether one is there; empty if the
    /// protocol runs over a stream, where a connection is enough.
    pub greeting_datagram: &'static [u8],
}

/// Way in which servers of a protocol publish counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountersBy {
    /// No way is known.
    #[default]
    Nothing,
    /// As messages on topics below `$SYS`.
    Topics,
    /// On a page that is read over HTTP.
    Page,
    /// In the answer to the command INFO of Redis.
    Info,
}

/// An error of a protocol in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorWords {
    /// Name: `status 404`.
    pub name: String,
    /// What to do about it.
    pub advice: &'static str,
}

impl ErrorWords {
    /// Advice for an error without specific advice.
    pub const ADVICE: &str = "check address, path and credentials; errors are in no response \
                              time, they have times of their own (error_time_ns)";
}

/// Name of a packet of a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketName {
    /// Name in its specification: `PUBLISH QoS 1`.
    pub name: String,
    /// Number of its bytes in the stream; `None` if its first bytes do not contain the length.
    pub length: Option<u64>,
    /// True if its sender subscribes with it.
    pub subscribes: bool,
}

/// Lifetime of a connection: one message, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Opened once and kept.
    Kept,
    /// One connection per message.
    PerMessage,
}

impl Lifetime {
    /// One connection per message for sessions; kept for every other pattern.
    pub fn of(pattern: Pattern) -> Lifetime {
        match pattern {
            Pattern::Session => Lifetime::PerMessage,
            _ => Lifetime::Kept,
        }
    }
}

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends messages, or only stays connected.
    Producer,
    /// Receives messages.
    Consumer,
}

/// A connection's place in the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Index among the connections of its role, from 0, over all shards.
    pub index: u32,
    /// Its role.
    pub role: Role,
}

/// Finds the producer that a topic belongs to.
pub type ProducerOf = Box<dyn Fn(&[u8]) -> Option<u32> + Send + Sync>;

/// Carrier of a protocol's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A stream of bytes in order: TCP.
    #[default]
    Stream,
    /// Datagrams, each of which arrives whole, or never, or twice, or out of order: UDP. Output is
    /// cut into frames ([`crate::connection::Outbox::frame`]).
    Datagram,
    /// Datagrams likewise; the kernel cuts runs of them that leave together, and joins them when
    /// they come in. Connections and servers see each datagram as without.
    DatagramRuns,
    /// Many streams of one encrypted connection over datagrams: QUIC. Input and output are pieces
    /// of streams ([`crate::streams`]). Only a layer carries it, and datagrams carry the layer.
    Streams,
}

impl Transport {
    /// True if it reaches the network as datagrams.
    pub fn is_over_datagrams(self) -> bool {
        self != Transport::Stream
    }
}

/// Functions with which the engine makes clients, if the engine owns the socket.
pub struct Dial {
    /// Carrier of its bytes.
    pub transport: Transport,
    /// Lifetime of a connection: one message, or all.
    pub lifetime: Lifetime,
    /// True if the server confirms messages, so that `acknowledged` means something.
    pub confirms: bool,
    /// True if connections are to be read to the peer's end before they are closed: where the peer
    /// answers a disconnect, since bytes that arrive at a closed socket are answered by a reset.
    pub is_answered: bool,
    /// The producer a topic belongs to, for bodies too small for a mark; `None` if topics do not
    /// identify it.
    pub producer_of: Option<ProducerOf>,
    /// Makes the connection of a seat.
    pub make: Box<dyn Fn(Seat) -> Box<dyn Connection> + Send + Sync>,
}

/// Functions with which the engine makes a reference server: one [`Server`] per shard, by its
/// index.
pub struct Host {
    /// Carrier of its bytes.
    pub transport: Transport,
    /// Makes the server of one shard of `shards`.
    pub make: Box<dyn Fn(u16) -> Box<dyn Server> + Send + Sync>,
}

crate::portable_choice!(Role { Producer = 0, Consumer = 1 });
