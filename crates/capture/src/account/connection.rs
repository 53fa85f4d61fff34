//! The account of one connection.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::account::note::PacketNote;
use crate::account::placed::Placed;
use crate::account::quiet::Quiet;
use crate::account::traffic::{Phases, Traffic};
use crate::stream::tls::Facts;

/// Packets and bytes of one TCP connection, or between two UDP ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The end that opened it. If the opening was not seen, the end that is not a server by its
    /// port.
    pub initiator: SocketAddr,
    /// The end that accepted it.
    pub responder: SocketAddr,
    /// TCP or UDP.
    pub transport: Transport,
    /// True if the first SYN was seen. If not, set-up is missing, and TLS cannot be distinguished
    /// from plain
    /// content.
    pub opening_seen: bool,
    /// How it ended.
    pub ending: Ending,
    /// Its first packet, in nanoseconds since 1970.
    pub first_at_ns: u64,
    /// Its last packet, in nanoseconds since 1970.
    pub last_at_ns: u64,
    /// Pauses: when no packet went in either direction.
    #[serde(default)]
    pub quiet: Quiet,
    /// True if its segments carry timestamps (RFC 7323), which take 12 bytes of each header.
    pub timestamps: bool,
    /// Negotiated TLS parameters; absent without TLS.
    pub tls: Option<Facts>,
    /// Bytes of its streams that were not captured: the capture lost packets, or began late.
    pub unseen_bytes: u64,
    /// From the initiator to the responder.
    pub sent: Phases,
    /// From the responder to the initiator.
    pub received: Phases,
    /// Its first packets and its last, if they were requested ([`crate::Settings::notes`]).
    pub notes: Vec<PacketNote>,
    /// Packets whose phase the codec's count may still change.
    #[serde(skip)]
    pub(crate) placed: Vec<Placed>,
}

impl Connection {
    /// Both directions, all phases.
    pub fn total(&self) -> Traffic {
        self.sent.total() + self.received.total()
    }
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Still open when the capture ended; always so with UDP.
    Open,
    /// Both ends sent FIN.
    Finished,
    /// One end sent RST.
    Reset,
}
