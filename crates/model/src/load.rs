//! What is asked of a target: who sends how many messages of what kind, and when.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::arrival::Arrival;
use crate::body::BodySource;
use crate::units::{Bytes, Nanos, Rate};

/// What one operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Ask and wait for the answer.
    Request,
    /// Hand a message over, as confirmed as the protocol can.
    Publish,
    /// Publisher to server to subscribers.
    Deliver,
    /// Connect, one message, close.
    Session,
    /// Connected and idle.
    Hold,
}

impl Pattern {
    /// All patterns, in the order they are listed to a user.
    pub const ALL: [Pattern; 5] =
        [Pattern::Request, Pattern::Publish, Pattern::Deliver, Pattern::Session, Pattern::Hold];

    /// The word of the plan and the command line.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Request => "request",
            Pattern::Publish => "publish",
            Pattern::Deliver => "deliver",
            Pattern::Session => "session",
            Pattern::Hold => "hold",
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Pattern {
    type Err = String;
    fn from_str(text: &str) -> Result<Pattern, String> {
        Pattern::ALL.into_iter().find(|pattern| pattern.name() == text).ok_or_else(|| {
            let names = Pattern::ALL.map(Pattern::name).join(", ");
            format!("{text:?} is no pattern: type one of {names}")
        })
    }
}

/// Who hears whom in the pattern `deliver`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// All publishers to one subscriber (or to several that each get everything).
    FanIn,
    /// Every message to every subscriber.
    FanOut,
    /// Publisher i to subscriber i.
    Pairs,
    /// Every message to one of the subscribers (MQTT: a shared subscription).
    Shared,
}

impl FromStr for Topology {
    type Err = String;
    fn from_str(text: &str) -> Result<Topology, String> {
        match text {
            "fan-in" => Ok(Topology::FanIn),
            "fan-out" => Ok(Topology::FanOut),
            "pairs" => Ok(Topology::Pairs),
            "shared" => Ok(Topology::Shared),
            _ => Err(format!("{text:?} is no topology: type fan-in, fan-out, pairs or shared")),
        }
    }
}

/// How a total is split over clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The shares add up to the total; the first clients send one more where it does not divide.
    #[default]
    Exact,
    /// Every client sends the share rounded up, as mqtt-stresser does; the total grows.
    Ceil,
}

impl FromStr for Split {
    type Err = String;
    fn from_str(text: &str) -> Result<Split, String> {
        match text {
            "exact" => Ok(Split::Exact),
            "ceil" => Ok(Split::Ceil),
            _ => Err(format!("{text:?} is no split: type exact or ceil")),
        }
    }
}

impl Split {
    /// The share of client `index` of `clients` in `total` messages.
    pub fn share(self, total: u64, clients: u32, index: u32) -> u64 {
        let clients = u64::from(clients.max(1));
        match self {
            Split::Exact => total / clients + u64::from(u64::from(index) < total % clients),
            Split::Ceil => total.div_ceil(clients),
        }
    }

    /// What all shares add up to.
    pub fn total(self, total: u64, clients: u32) -> u64 {
        match self {
            Split::Exact => total,
            Split::Ceil => total.div_ceil(u64::from(clients.max(1))) * u64::from(clients.max(1)),
        }
    }
}

/// A load, fully decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// What one operation is.
    pub pattern: Pattern,
    /// Producing connections (publishers, requesters, holders); at least 1.
    pub connections: u32,
    /// Consuming connections in `deliver`, 0 elsewhere.
    pub subscribers: u32,
    /// Who hears whom in `deliver`.
    pub topology: Topology,
    /// Measured messages in total, warm-up apart. Exactly one of this and `duration` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Measured time, warm-up apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Nanos>,
    /// The same load before the measurement, with its own mark and left out of every figure.
    pub warmup: Nanos,
    /// When messages are due.
    pub arrival: Arrival,
    /// Messages per second, where the arrival has a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Most messages in flight per connection; `None` leaves it to arrival and protocol: 1 in
    /// closed loops, as many as the protocol allows in open ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// Pause after each completed message in closed loops.
    pub think: Nanos,
    /// How the total is split over clients.
    pub split: Split,
    /// What the bodies are made of.
    pub body: BodySource,
    /// Size of every body; `None` takes the size of the content and its mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Tmax: a message delivered later than this after its due time is late.
    pub timeout: Nanos,
}

impl Load {
    /// Subscribers that should get one message: the factor from messages to pairs.
    pub fn copies(&self) -> u64 {
        match (self.pattern, self.topology) {
            (Pattern::Deliver, Topology::Pairs | Topology::Shared) => 1,
            (Pattern::Deliver, _) => u64::from(self.subscribers),
            _ => 1,
        }
    }

    /// The window in force when the protocol allows `room` messages in flight.
    pub fn window_within(&self, room: u32) -> u32 {
        let asked = match (self.window, self.arrival.is_open()) {
            (Some(window), _) => window,
            (None, true) => u32::MAX,
            (None, false) => 1,
        };
        asked.min(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_shares_add_up_and_ceil_shares_are_equal() {
        let exact: Vec<u64> = (0..7).map(|i| Split::Exact.share(100, 7, i)).collect();
        assert_eq!(exact, [15, 15, 14, 14, 14, 14, 14]);
        assert_eq!(exact.iter().sum::<u64>(), Split::Exact.total(100, 7));
        assert_eq!(Split::Ceil.share(100, 7, 6), 15);
        assert_eq!(Split::Ceil.total(100, 7), 105);
    }
}
