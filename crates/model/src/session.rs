//! One session packet by packet, as it was captured: the data of a sequence diagram.

use serde::{Deserialize, Serialize};

/// The packets of one session of a trial, in the order in which they were captured at the
/// clients' interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPackets {
    /// The trial's id.
    pub trial: String,
    /// Parties, as the diagram names them from left to right; packets refer to them by index.
    pub parties: Vec<String>,
    /// Result of the TLS negotiation, such as `TLS 1.3, resumed`; absent without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// The packets; of a long session only the first and last ones.
    pub packets: Vec<SessionPacket>,
    /// Packets that were left out; absent if the session is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<PacketGap>,
}

/// One packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPacket {
    /// Time of the capture, nanoseconds after the first of the session.
    pub at_ns: u64,
    /// The index of the party that sent it.
    pub from: u8,
    /// The index of the party that it was sent to.
    pub to: u8,
    /// Its bytes on the wire from the link header on; of a super-packet, those of all packets it is
    /// split into.
    pub bytes: u64,
    /// Of these, bytes of the stream.
    pub stream_bytes: u64,
    /// Its flags of TCP, such as `SYN, ACK` (RFC 9293, section 3.1); PSH and URG are not kept.
    pub flags: String,
    /// `set_up`, `messages` or `tear_down`.
    pub phase: String,
    /// Messages that begin in it, in the words of the protocol: `PUBLISH QoS 1`, `TLS ClientHello`.
    /// Empty if it carries nothing, continues what began before, or is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Special properties; empty for most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<PacketMark>,
    /// Number of packets on the wire, for a super-packet; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<u64>,
}

/// A special property of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketMark {
    /// It carries data that had been captured before.
    Retransmission,
    /// It was sent again later, on a path that dropped packets: it was lost in transit, or its
    /// acknowledgement was.
    SentAgain,
    /// It was sent again later although it was not lost: the sender's timer ran out before the
    /// acknowledgement came.
    SentTooEarly,
    /// Data before it is missing, or later data arrived first.
    OutOfOrder,
    /// It only checks that the peer is alive.
    KeepAlive,
}

/// Packets that were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketGap {
    /// The index of the packet after the gap, from 0.
    pub before: u64,
    /// Number of packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl PacketMark {
    /// Text of the property.
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

/// Most packets of one session that are kept, so that a diagram stays readable.
pub const SESSION_PACKETS_MAX: usize = 200;
