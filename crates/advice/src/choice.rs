//! One option: a protocol with its settings, a server, connections kept or not, TLS or not.

use std::collections::BTreeMap;

use weigh_model::protocol::Guarantee;
use weigh_model::{Durability, Nanos};

/// An option, with everything that is known of it without a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Name of the protocol in plans: `mqtt`.
    pub protocol: String,
    /// Server: `reference`, or the name of one in `targets/`.
    pub target: String,
    /// Settings of the protocol that make its lane: `qos` is `1`.
    pub settings: BTreeMap<String, String>,
    /// True if a device keeps its connection; false if every message opens one.
    pub is_kept: bool,
    /// True inside TLS.
    pub is_tls: bool,
    /// True if such a connection resumes a TLS session.
    pub resumes: bool,
    /// True over datagrams.
    pub is_datagram: bool,
    /// True if servers deliver to subscribers.
    pub delivers: bool,
    /// What the protocol guarantees with these settings.
    pub guarantee: Guarantee,
    /// What a confirmation means on this server.
    pub durability: Durability,
    /// Largest body in bytes that the protocol or its client here can send at once; `None` if only
    /// memory limits it.
    pub body_max: Option<u64>,
    /// Longest silence that the protocol lets a client announce; `None` if it has no keep-alive.
    pub silence_max: Option<Nanos>,
    /// Abilities of the server, by name; `None` if it was never probed.
    pub abilities: Option<BTreeMap<String, AbilityKnown>>,
}

/// An ability that a probe looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbilityKnown {
    /// True if it is there, perhaps with a limit.
    pub is_there: bool,
    /// Its number, if it has one.
    pub number: Option<u64>,
    /// What the probe saw.
    pub evidence: String,
}

impl Choice {
    /// Settings as words: `qos=1`; empty without any.
    pub fn variant(&self) -> String {
        let words = self.settings.iter().map(|(key, value)| format!("{key}={value}"));
        words.collect::<Vec<_>>().join(",")
    }

    /// Settings as lines of a plan: `mqtt.qos = 1`.
    pub fn plan_lines(&self) -> Vec<String> {
        let line = |(key, value): (&String, &String)| {
            let is_bare = value.parse::<i64>().is_ok() || value == "true" || value == "false";
            let value = if is_bare { value.clone() } else { format!("{value:?}") };
            format!("{}.{key} = {value}", self.protocol)
        };
        self.settings.iter().map(line).collect()
    }

    /// Protocol and settings: `mqtt qos 1`.
    pub fn lane(&self) -> String {
        let words = self.settings.iter().map(|(key, value)| format!(" {key} {value}"));
        let server = if self.target == REFERENCE { "" } else { self.target.as_str() };
        let protocol = if server.is_empty() { &self.protocol } else { server };
        format!("{protocol}{}", words.collect::<String>())
    }

    /// The whole option: `mqtt qos 1, kept, TLS`.
    pub fn name(&self) -> String {
        let kept = match (self.is_kept, self.is_datagram) {
            (_, true) => "datagrams",
            (true, false) => "kept",
            (false, false) => "one each",
        };
        let tls = match (self.is_tls, self.resumes) {
            (false, _) => "",
            (true, true) => ", TLS resumed",
            (true, false) => ", TLS",
        };
        format!("{}, {kept}{tls}", self.lane())
    }

    /// The name of the cells that share its costs: protocol and server.
    pub fn family(&self) -> String {
        format!("{}@{}", self.protocol, self.target)
    }

    /// How often a message reaches the server: twice with QoS 2.
    pub fn arrivals(&self) -> f64 {
        if self.guarantee == Guarantee::ExactlyOnce { 2.0 } else { 1.0 }
    }
}

/// Name of the built-in servers.
pub const REFERENCE: &str = "reference";
