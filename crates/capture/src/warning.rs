//! Warnings about the figures of the capture.

use serde::{Deserialize, Serialize};
use weigh_model::numbers::count;

/// A warning about an account, with advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Warning {
    /// The kernel dropped packets before the probe could read them.
    Dropped {
        /// Number of packets.
        packets: u64,
    },
    /// Bytes of streams were not captured.
    Unseen {
        /// Number of bytes.
        bytes: u64,
    },
    /// Fragments of IP packets could not be assigned to a connection.
    Fragments {
        /// Number of fragments.
        packets: u64,
    },
    /// The opening of connections was not seen.
    OpeningUnseen {
        /// Number of connections.
        connections: u64,
    },
    /// The records of TLS could not be followed.
    TlsLost {
        /// Number of connections.
        connections: u64,
    },
    /// The cipher suite pads, so overhead and content cannot be distinguished.
    TlsOverheadUnknown {
        /// Number of connections.
        connections: u64,
    },
    /// Tickets sent after a TLS 1.3 handshake look like content, and no codec's count was given.
    TlsTicketsHidden {
        /// Number of connections.
        connections: u64,
    },
    /// Super-packets were counted as packets.
    SuperPackets {
        /// Size of the largest, bytes.
        bytes: u32,
    },
    /// The capture ended before it was stopped.
    CaptureBroke {
        /// The cause.
        reason: String,
    },
}

impl Warning {
    /// What was found, in words.
    pub fn text(&self) -> String {
        match self {
            Warning::Dropped { packets } => {
                let packets = count(*packets);
                format!("the kernel dropped {packets} packets before the capture read them")
            }
            Warning::Unseen { bytes } => {
                format!("{} bytes of streams were not captured", count(*bytes))
            }
            Warning::Fragments { packets } => {
                let packets = count(*packets);
                format!("{packets} fragments of IP packets are not in the connections' figures")
            }
            Warning::OpeningUnseen { connections } => format!(
                "{} connections were open before the capture, so set-up and TLS are unknown",
                count(*connections)
            ),
            Warning::TlsLost { connections } => {
                let connections = count(*connections);
                format!("the TLS records of {connections} connections could not be followed")
            }
            Warning::TlsOverheadUnknown { connections } => format!(
                "{} connections used a cipher suite whose overhead depends on content",
                count(*connections)
            ),
            Warning::TlsTicketsHidden { connections } => {
                let connections = count(*connections);
                format!("in {connections} TLS 1.3 connections session tickets count as content")
            }
            Warning::SuperPackets { bytes } => format!(
                "packets of up to {} bytes were captured: segmentation was offloaded, and packets \
                 and header bytes are too small by an order of magnitude",
                count(u64::from(*bytes))
            ),
            Warning::CaptureBroke { reason } => format!("the capture ended early: {reason}"),
        }
    }

    /// What to type.
    pub fn advice(&self) -> &'static str {
        match self {
            Warning::Dropped { .. } => "use a larger ring, or capture headers only",
            Warning::Unseen { .. } => "start the capture first, and check that it drops nothing",
            Warning::Fragments { .. } => "use datagrams that fit the MTU",
            Warning::OpeningUnseen { .. } => "start the capture before the connections are opened",
            Warning::TlsLost { .. } => {
                "capture whole packets, from the first of each connection on"
            }
            Warning::TlsOverheadUnknown { .. } => "use an AEAD cipher suite or TLS 1.3",
            Warning::TlsTicketsHidden { .. } => "provide the codec's count of bytes",
            Warning::SuperPackets { .. } => {
                "switch TSO, GSO and GRO off on this interface (--offload off)"
            }
            Warning::CaptureBroke { .. } => "repeat the measurement",
        }
    }
}
