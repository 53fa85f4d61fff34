//! One session packet by packet, as it was captured: what a sequence diagram is drawn from.

use serde::{Deserialize, Serialize};

/// The packets of one session of a trial, in the order in which they were captured at the
/// clients' interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPackets {
    /// The trial's id.
    pub trial: String,
    /// Who takes part, as the diagram names them from left to right; packets refer to them by
    /// their place.
    pub parties: Vec<String>,
    /// What TLS agreed on, such as `TLS 1.3, resumed`; absent without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// The packets; of a long session only its beginning and its end.
    pub packets: Vec<SessionPacket>,
    /// What was left out; absent where everything is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<PacketGap>,
}

/// One packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPacket {
    /// When it was captured, nanoseconds after the first of the session.
    pub at_ns: u64,
    /// The place of the party that sent it.
    pub from: u8,
    /// The place of the party that it was sent to.
    pub to: u8,
    /// Its bytes on the wire from the link header on; of a super-packet, of all that it becomes.
    pub bytes: u64,
    /// Of these, bytes of the stream.
    pub stream_bytes: u64,
    /// Its flags of TCP, such as `SYN, ACK` (RFC 9293, section 3.1); PSH and URG are not kept.
    pub flags: String,
    /// `set_up`, `messages` or `tear_down`.
    pub phase: String,
    /// What begins in it, as the protocol calls it: `PUBLISH QoS 1`, `TLS ClientHello`. Empty where
    /// it carries nothing, goes on with what began before, or nobody could tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// What is special about it; empty for most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<PacketMark>,
    /// Packets on the wire that it becomes, where it is a super-packet; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<u64>,
}

/// What is special about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketMark {
    /// It carries something that had been captured before.
    Retransmission,
    /// It was sent once more later, on a path that dropped packets: it was lost on the way, or what
    /// acknowledged it was.
    SentAgain,
    /// It was sent once more later although it was not lost: the sender's timer ran out before the
    /// acknowledgement came.
    SentTooEarly,
    /// Something before it is missing, or something behind it came first.
    OutOfOrder,
    /// It asks only whether the peer is there.
    KeepAlive,
}

/// Packets that were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketGap {
    /// Before which of the packets, from 0.
    pub before: u64,
    /// How many.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl PacketMark {
    /// What it is in words.
    pub fn words(self) -> &'static str {
        match self {
            PacketMark::Retransmission => "retransmission",
            PacketMark::SentAgain => "sent again later",
            PacketMark::SentTooEarly => "not lost, sent again too early",
            PacketMark::OutOfOrder => "out of order",
            PacketMark::KeepAlive => "keep-alive",
        }
    }
}

/// Packets of one session that are kept at most: more nobody reads.
pub const SESSION_PACKETS_MAX: usize = 200;
