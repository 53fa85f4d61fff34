//! All that the rest of the program knows of a protocol.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::connection::Connection;
use crate::load::Pattern;
use crate::server::Server;
use crate::settings::Settings;
pub use crate::settings::{Invalid, Setting, SettingKind};
use crate::trial::Trial;

/// How often a message may arrive. Figures are compared like with like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Guarantee {
    /// Never twice, perhaps not at all: nobody confirms it.
    #[serde(rename = "at most once")]
    AtMostOnce,
    /// Confirmed; a sender that hears nothing sends again.
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

    /// The scheme of its URLs: `mqtt`.
    fn scheme(&self) -> &'static str;

    /// The patterns it can carry; the first is its default in `compare`.
    fn patterns(&self) -> &'static [Pattern];

    /// The keys of its own table in a plan.
    fn settings(&self) -> &'static [Setting];

    /// The points of the matrix that `compare` weighs when nothing narrower was asked for:
    /// each is a list of settings (MQTT: QoS 0, 1 and 2).
    fn lanes(&self) -> &'static [&'static [(&'static str, &'static str)]] {
        &[&[]]
    }

    /// What it promises under these settings.
    fn guarantee(&self, settings: &Settings) -> Guarantee;

    /// The terms that a client under these settings asks the server for, by the names under which
    /// it grants them.
    fn asks(&self, _settings: &Settings) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// False if operations bring the server no message that it could count (an HTTP GET), so
    /// that its own count is not held against the ledger.
    fn carries(&self, _settings: &Settings) -> bool {
        true
    }

    /// The library that speaks for its clients under these settings, with its version; `None` where
    /// they are state machines of our own.
    fn library(&self, _settings: &Settings) -> Option<&'static str> {
        None
    }

    /// What begins with `head`, which stands in a stream of this protocol where a packet of it may
    /// begin; there may be more bytes or fewer than it takes. `None` where it is none, or cannot be
    /// told. For diagrams only: nothing is counted by it.
    fn packet_name(&self, _from_client: bool, _head: &[u8]) -> Option<PacketName> {
        None
    }

    /// How clients are made for this trial.
    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid>;

    /// The reference server, with these settings.
    fn host(&self, settings: &Settings) -> Result<Host, Invalid>;
}

/// What a packet of a protocol is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketName {
    /// As its specification calls it: `PUBLISH QoS 1`.
    pub name: String,
    /// How many bytes it takes in the stream; `None` where its first bytes do not tell.
    pub length: Option<u64>,
    /// True if its sender asks for messages with it.
    pub subscribes: bool,
}

/// Whether a connection lives for one message or for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Opened once and kept.
    Kept,
    /// One connection per message.
    PerMessage,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends messages, or just stays connected.
    Producer,
    /// Receives messages.
    Consumer,
}

/// A connection's place in the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Index among the connections of its role, from 0, over all shards.
    pub index: u32,
    /// What it is for.
    pub role: Role,
}

/// Finds the producer that a topic belongs to.
pub type ProducerOf = Box<dyn Fn(&[u8]) -> Option<u32> + Send + Sync>;

/// How the engine makes clients: door 1, in which the engine owns the socket.
pub struct Dial {
    /// Whether a connection lives for one message or for all.
    pub lifetime: Lifetime,
    /// True if the server confirms messages, so that `acknowledged` means something.
    pub confirms: bool,
    /// True if connections are to be read to the peer's end before they are closed: where the
    /// peer answers a goodbye, since bytes that come to a closed socket are answered by a reset.
    pub is_answered: bool,
    /// The producer a topic belongs to, for bodies too small for a mark; `None` if topics do
    /// not tell.
    pub producer_of: Option<ProducerOf>,
    /// Makes the connection of a seat.
    pub make: Box<dyn Fn(Seat) -> Box<dyn Connection> + Send + Sync>,
}

/// How the engine makes a reference server: one [`Server`] per shard, by its index.
pub struct Host {
    /// Makes the server of one shard of `shards`.
    pub make: Box<dyn Fn(u16) -> Box<dyn Server> + Send + Sync>,
}
