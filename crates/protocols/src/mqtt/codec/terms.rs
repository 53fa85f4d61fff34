//! Common terms of all packets: versions, quality of service, types, and errors.

/// The two versions that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// MQTT 3.1.1, protocol level 4.
    V311,
    /// MQTT 5, protocol level 5.
    V5,
}

/// Quality of service (section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Qos {
    /// QoS 0.
    AtMostOnce,
    /// QoS 1.
    AtLeastOnce,
    /// QoS 2.
    ExactlyOnce,
}

impl Qos {
    /// The level of a two-bit field; `None` for 3 and above.
    pub fn from_bits(bits: u8) -> Option<Qos> {
        match bits {
            0 => Some(Qos::AtMostOnce),
            1 => Some(Qos::AtLeastOnce),
            2 => Some(Qos::ExactlyOnce),
            _ => None,
        }
    }
}

/// Fault of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} (MQTT section {section})")]
pub struct Fault {
    /// The reason code of the error for the peer (section 2.4), 0x80 and above.
    pub reason: u8,
    /// The fault in words.
    pub what: &'static str,
    /// The section that is broken.
    pub section: &'static str,
}

impl Fault {
    pub(crate) const fn malformed(what: &'static str, section: &'static str) -> Fault {
        Fault { reason: 0x81, what, section }
    }

    pub(crate) const fn protocol(what: &'static str, section: &'static str) -> Fault {
        Fault { reason: 0x82, what, section }
    }
}

pub(crate) const CONNECT: u8 = 1;

pub(crate) const CONNACK: u8 = 2;

pub(crate) const PUBLISH: u8 = 3;

pub(crate) const PUBACK: u8 = 4;

pub(crate) const PUBREC: u8 = 5;

pub(crate) const PUBREL: u8 = 6;

pub(crate) const PUBCOMP: u8 = 7;

pub(crate) const SUBSCRIBE: u8 = 8;

pub(crate) const SUBACK: u8 = 9;

pub(crate) const UNSUBSCRIBE: u8 = 10;

pub(crate) const UNSUBACK: u8 = 11;

pub(crate) const PINGREQ: u8 = 12;

pub(crate) const PINGRESP: u8 = 13;

pub(crate) const DISCONNECT: u8 = 14;

pub(crate) const AUTH: u8 = 15;
