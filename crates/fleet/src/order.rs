//! What the coordinator asks of an agent: a trial, and which of its shards to run.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use weigh_model::{Nanos, Trial};

use crate::hash::Hash;

/// A trial as all agents run it. There is no secret in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The run's id.
    pub run: String,
    /// The attempt at the trial, from 1.
    pub attempt: u32,
    /// The trial; its endpoint is not carried.
    pub trial: Trial,
    /// The target, as agents reach it.
    pub target: Target,
    /// Number of shards of all agents together.
    pub shards: u32,
    /// Length of the intervals that shards report; `None` for the engine's choice.
    pub every: Option<Nanos>,
    /// Wall clock at the trial's zero, nanoseconds since 1970.
    pub unix_ns: u64,
    /// The body that is sent, or from which bodies are made, if it is given.
    pub body: Option<Hash>,
    /// The due times of a traced arrival ([`Fleet::put_trace`](crate::Fleet::put_trace)).
    pub trace: Option<Hash>,
    /// True to keep the record of single messages.
    pub keeps_messages: bool,
    /// What clients need for TLS besides the trial's settings; `None` for connections without TLS.
    pub tls: Option<Authority>,
}

/// One attempt at a trial of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The run's id.
    pub run: String,
    /// The trial's id.
    pub trial: String,
    /// Number of the attempt, from 1.
    pub number: u32,
}

impl Order {
    /// The attempt that this order is for.
    pub fn attempt(&self) -> Attempt {
        let (run, trial) = (self.run.clone(), self.trial.id.clone());
        Attempt { run, trial, number: self.attempt }
    }
}

/// Address of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// One of the protocol's schemes.
    pub scheme: String,
    /// Host as the user wrote it: a name or an address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path with its leading slash, or empty.
    pub path: String,
    /// Address that clients connect to, and which the agent's allow list must contain.
    pub address: SocketAddr,
}

/// The certificate authorities that clients trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// Certificates in PEM; `None` for those of the agent's system.
    pub pem: Option<String>,
}

/// What only the agents may know. It is sent by request and reply, on a private bus only, and is
/// never stored.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// User name at the target; empty for none.
    pub user: String,
    /// Password at the target.
    pub password: String,
    /// Certificate of the clients in PEM; empty for none.
    pub certificate_pem: String,
    /// Its private key in PEM.
    pub key_pem: String,
    /// Settings of the protocol that are never recorded or shown, such as headers with tokens.
    pub settings: BTreeMap<String, String>,
}

/// The part of a trial that one agent runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The trial.
    pub order: Order,
    /// Secrets of the target, if there are any.
    pub secrets: Option<Secrets>,
    /// The shards to run here.
    pub here: Range<u32>,
    /// The agent's rank.
    pub rank: u32,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(hidden)")
    }
}
