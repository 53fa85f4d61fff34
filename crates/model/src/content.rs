//! Content of a connection above TLS, protocol and payload separately: counted by the codec, which
//! alone knows the payload of a stream.

use serde::{Deserialize, Serialize};

/// A part of a connection's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// From the first SYN to the end of the last handshake: TCP's, TLS's, and the protocol's own
    /// (MQTT: CONNECT, CONNACK, SUBSCRIBE and SUBACK).
    SetUp,
    /// Everything between set-up and tear-down.
    Messages,
    /// From the protocol's disconnect (MQTT: DISCONNECT), or the first FIN, RST or closing alert of
    /// a direction on.
    TearDown,
}

impl Phase {
    /// All phases in their order.
    pub const ALL: [Phase; 3] = [Phase::SetUp, Phase::Messages, Phase::TearDown];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Phase::SetUp => "set_up",
            Phase::Messages => "messages",
            Phase::TearDown => "tear_down",
        }
    }
}

/// Bytes above TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentBytes {
    /// Bytes that the protocol adds.
    pub protocol: u64,
    /// The payload: the bodies of messages.
    pub payload: u64,
}

/// Bytes that a codec wrote to a stream, or read from it, by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodecCount {
    /// Set-up, such as CONNECT of MQTT.
    pub set_up: ContentBytes,
    /// Messages.
    pub messages: ContentBytes,
    /// Tear-down, such as DISCONNECT of MQTT.
    pub tear_down: ContentBytes,
}

/// Both directions of a connection, or of all of them, seen from the end that opened it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamCounts {
    /// Written by the initiator.
    pub sent: CodecCount,
    /// Written by the responder.
    pub received: CodecCount,
}

/// Counts for a codec, packet by packet; off, at the price of one branch, until it is started. A
/// packet counts once it is whole.
#[derive(Debug, Default)]
pub struct Meter {
    counts: Option<Box<StreamCounts>>,
}

impl CodecCount {
    /// All bytes.
    pub fn total(&self) -> u64 {
        Phase::ALL.iter().map(|phase| self.of(*phase).total()).sum()
    }

    /// The bytes of one phase.
    pub fn of(&self, phase: Phase) -> ContentBytes {
        match phase {
            Phase::SetUp => self.set_up,
            Phase::Messages => self.messages,
            Phase::TearDown => self.tear_down,
        }
    }

    /// Counts `bytes`, of which `payload` are payload.
    pub fn add(&mut self, phase: Phase, bytes: usize, payload: usize) {
        let of = match phase {
            Phase::SetUp => &mut self.set_up,
            Phase::Messages => &mut self.messages,
            Phase::TearDown => &mut self.tear_down,
        };
        of.payload += payload as u64;
        of.protocol += bytes.saturating_sub(payload) as u64;
    }

    /// Adds what another connection counted.
    pub fn absorb(&mut self, other: &CodecCount) {
        for phase in Phase::ALL {
            let ContentBytes { protocol, payload } = other.of(phase);
            self.add(phase, (protocol + payload) as usize, payload as usize);
        }
    }
}

impl ContentBytes {
    /// Protocol and payload.
    pub fn total(&self) -> u64 {
        self.protocol + self.payload
    }
}

impl StreamCounts {
    /// Adds what another connection counted.
    pub fn absorb(&mut self, other: &StreamCounts) {
        self.sent.absorb(&other.sent);
        self.received.absorb(&other.received);
    }
}

impl Meter {
    /// Counts from now on.
    pub fn start(&mut self) {
        self.counts.get_or_insert_default();
    }

    /// Counts `bytes` written, of which `payload` are payload.
    #[inline]
    pub fn wrote(&mut self, phase: Phase, bytes: usize, payload: usize) {
        if let Some(counts) = &mut self.counts {
            counts.sent.add(phase, bytes, payload);
        }
    }

    /// Counts `bytes` read, of which `payload` are payload.
    #[inline]
    pub fn read(&mut self, phase: Phase, bytes: usize, payload: usize) {
        if let Some(counts) = &mut self.counts {
            counts.received.add(phase, bytes, payload);
        }
    }

    /// Returns the counts; `None` if counting was not started.
    pub fn counts(&self) -> Option<StreamCounts> {
        self.counts.as_deref().copied()
    }
}

crate::portable_fields!(ContentBytes { protocol, payload });
crate::portable_fields!(CodecCount { set_up, messages, tear_down });
crate::portable_fields!(StreamCounts { sent, received });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_counts_once_it_is_asked_to() {
        let mut meter = Meter::default();
        meter.wrote(Phase::Messages, 10, 4);
        assert_eq!(meter.counts(), None);
        meter.start();
        meter.wrote(Phase::SetUp, 12, 0);
        meter.wrote(Phase::Messages, 10, 4);
        meter.read(Phase::TearDown, 2, 0);
        let counts = meter.counts().unwrap();
        assert_eq!(counts.sent.set_up, ContentBytes { protocol: 12, payload: 0 });
        assert_eq!(counts.sent.messages, ContentBytes { protocol: 6, payload: 4 });
        assert_eq!((counts.sent.total(), counts.received.total()), (22, 2));
        let mut both = counts;
        both.absorb(&counts);
        assert_eq!(both.sent.messages, ContentBytes { protocol: 12, payload: 8 });
    }

    #[test]
    fn a_meter_takes_a_word_of_an_idle_connection() {
        assert_eq!(size_of::<Meter>(), size_of::<usize>());
    }
}
