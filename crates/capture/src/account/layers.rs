//! The bytes of some packets, split by layer.

use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// Bytes by layer. Every byte of every packet is in exactly one of them, so their sum is the number
/// of
/// bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// Link headers, VLAN tags, padding of short frames, and whole packets that are not IP.
    pub link: u64,
    /// IP headers with options and extension headers, and what IP carries other than TCP and UDP.
    pub ip: u64,
    /// TCP headers with options, UDP headers; of retransmitted packets too.
    pub transport: u64,
    /// Records of the TLS handshake, whole, and messages of the handshake that come after it.
    pub tls_handshake: u64,
    /// What TLS adds to each piece of content, and its alerts.
    pub tls_record: u64,
    /// Bytes that the protocol adds to the payload, by its codec's count.
    pub protocol: u64,
    /// Payload, by the codec's count.
    pub payload: u64,
    /// Content of the stream that no codec has split into protocol and payload yet.
    pub application: u64,
    /// Repeated bytes of a stream: the content of retransmissions.
    pub repeated: u64,
}

impl Layers {
    /// Each layer by its name, in the order in which packets nest. Content is either `application`
    /// or, once a codec has split it, `protocol` and `payload`.
    pub fn named(&self, is_split: bool) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("link", Some(self.link)),
            ("ip", Some(self.ip)),
            ("transport", Some(self.transport)),
            ("tls_handshake", Some(self.tls_handshake)),
            ("tls_record", Some(self.tls_record)),
            ("protocol", is_split.then_some(self.protocol)),
            ("payload", is_split.then_some(self.payload)),
            ("application", (!is_split).then(|| self.content())),
            ("repeated", Some(self.repeated)),
        ];
        all.into_iter().filter_map(|(name, bytes)| Some((name, bytes?)))
    }

    /// All bytes.
    pub fn total(&self) -> u64 {
        self.header() + self.stream() + self.repeated
    }

    /// Link, IP and transport headers.
    pub fn header(&self) -> u64 {
        self.link + self.ip + self.transport
    }

    /// The bytes that the transport carried, each once.
    pub fn stream(&self) -> u64 {
        self.tls_handshake + self.tls_record + self.content()
    }

    /// The bytes that the protocol handed down, whether TLS carried them or not.
    pub fn content(&self) -> u64 {
        self.protocol + self.payload + self.application
    }

    fn with(self, other: Layers, change: impl Fn(u64, u64) -> u64) -> Layers {
        Layers {
            link: change(self.link, other.link),
            ip: change(self.ip, other.ip),
            transport: change(self.transport, other.transport),
            tls_handshake: change(self.tls_handshake, other.tls_handshake),
            tls_record: change(self.tls_record, other.tls_record),
            protocol: change(self.protocol, other.protocol),
            payload: change(self.payload, other.payload),
            application: change(self.application, other.application),
            repeated: change(self.repeated, other.repeated),
        }
    }
}

impl Add for Layers {
    type Output = Layers;

    fn add(self, other: Layers) -> Layers {
        self.with(other, |a, b| a + b)
    }
}

impl Sub for Layers {
    type Output = Layers;

    fn sub(self, other: Layers) -> Layers {
        self.with(other, |a, b| a - b)
    }
}

impl AddAssign for Layers {
    fn add_assign(&mut self, other: Layers) {
        *self = *self + other;
    }
}

impl SubAssign for Layers {
    fn sub_assign(&mut self, other: Layers) {
        *self = *self - other;
    }
}
