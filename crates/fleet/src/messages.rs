//! What coordinator and agents say to each other. All of it may be lost or come twice: requests can
//! be repeated, states and reports carry numbers.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use weigh_engine::job::Failure;

use crate::facts::AgentFacts;
use crate::hash::Hash;
use crate::order::Part;
use crate::stored_part::KnownClock;

/// A request of a coordinator to one agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// The coordinator, one name for each [`Fleet`](crate::Fleet).
    pub session: String,
    /// What it wants.
    pub what: What,
}

/// What a coordinator wants of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// To obey this coordinator only.
    Hire(Hire),
    /// To prepare its part of a trial and to connect.
    Take(Box<Take>),
    /// To say whether it can start at this moment.
    Name(Start),
    /// To start then, because all can.
    Confirm(Confirm),
    /// To forget a trial, and to give it up if it still runs.
    End {
        /// The trial.
        turn: u64,
    },
    /// To be free for other coordinators.
    Release,
}

/// Terms of a coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hire {
    /// Its version and commit.
    pub version: String,
    /// Its host, for what the agent reports.
    pub host: String,
    /// The rank that the agent has from now on.
    pub rank: u32,
    /// Silence after which the coordinator is gone, milliseconds.
    pub silence_ms: u64,
}

/// A part of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Take {
    /// Number of the trial in this session, from 1.
    pub turn: u64,
    /// What to run.
    pub part: Part,
    /// What the agent's `CLOCK_MONOTONIC` shows at the trial's zero, nanoseconds.
    pub zero_ns: i64,
}

/// A start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The trial.
    pub turn: u64,
    /// The start on the trial's clock, nanoseconds.
    pub start_ns: u64,
}

/// A start that all agents can keep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Confirm {
    /// The start.
    pub start: Start,
    /// What is known of the agent's clock then.
    pub clock: KnownClock,
}

/// An agent's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It obeys now.
    Hired(Box<AgentFacts>),
    /// It does what was asked.
    Done,
    /// It can start, and has this much time left until then, nanoseconds.
    Slack {
        /// The time; negative if the start has passed.
        ns: i64,
    },
    /// It still ends what it did before: the request may be repeated.
    Later,
    /// It obeys another coordinator, or none.
    Stranger,
    /// It does not, for this reason.
    Refused(String),
}

/// The state of an agent's part of a trial. A later one replaces an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The trial.
    pub turn: u64,
    /// The agent's rank.
    pub rank: u32,
    /// Number of the state, from 1.
    pub number: u64,
    /// What its shards noted.
    pub counts: Counts,
    /// How often it was asked to stop.
    pub stop_level: u8,
    /// True once the trial has failed there.
    pub has_failed: bool,
    /// True once it takes its coordinator for gone.
    pub is_alone: bool,
    /// Why, if it is the one that failed.
    pub fault: Option<Fault>,
    /// True while an observer there needs the connections.
    pub is_held: bool,
    /// Connections of its shards while they open.
    pub opening: Vec<Opening>,
    /// True once the measured window of an open loop is over there.
    pub is_load_over: bool,
    /// True once everything is accounted for there.
    pub is_window_over: bool,
    /// Number of its last report.
    pub reports: u64,
    /// Time from the arrival of the confirmed start to the start, nanoseconds.
    pub start_slack_ns: u64,
    /// True once no shard runs there any more, and its outcomes are stored or given up.
    pub is_over: bool,
    /// Hashes of its shards' outcomes, once they are in the object store.
    pub outcomes: Option<Vec<Hash>>,
    /// Hash of its record of single messages, which is stored before, if it was to keep one.
    pub messages: Option<Hash>,
}

/// The state of all agents of a trial. A later one replaces an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Whole {
    /// The trial.
    pub turn: u64,
    /// Number of the state, from 1.
    pub number: u64,
    /// Sums over all agents.
    pub counts: Counts,
    /// The start on the trial's clock, once it is confirmed, nanoseconds.
    pub start_ns: Option<u64>,
    /// How often the trial was asked to stop, wherever that was most often.
    pub stop_level: u8,
    /// True once it has failed somewhere.
    pub has_failed: bool,
    /// True while the coordinator needs the connections.
    pub is_held_here: bool,
    /// Ranks of agents that need them.
    pub held: Vec<u32>,
    /// Number of the last report of each agent that has arrived, by rank.
    pub reported: Vec<u64>,
}

/// What shards noted: those of one agent, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Shards whose connections stand.
    pub ready: u32,
    /// Shards that send nothing more.
    pub sending_done: u32,
    /// Shards to which nothing more can come.
    pub complete: u32,
    /// Messages sent by shards that send nothing more.
    pub sent: u64,
    /// Messages that arrived for the first time.
    pub arrived: u64,
    /// The latest due time of a message that was sent, nanoseconds.
    pub last_due_ns: u64,
}

/// Connections of a shard while they open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The shard.
    pub shard: u32,
    /// Connections that are open.
    pub open: u64,
    /// All its connections.
    pub all: u64,
}

/// Why an agent's part failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Fault {
    /// The target does not answer.
    Unreachable {
        /// Its address.
        address: SocketAddr,
        /// Words of the system.
        reason: String,
    },
    /// The target refuses the session.
    Session {
        /// Its address.
        address: SocketAddr,
        /// Words of the protocol.
        reason: String,
    },
    /// Something that another attempt may not meet: the bus was too slow, or the agent was stopped.
    Lost {
        /// What happened.
        reason: String,
    },
    /// Something is missing on the agent's side.
    Generator {
        /// What is missing, or why the generator could not continue.
        reason: String,
    },
}

/// What a shard reports while it runs, as the first line of a message; an interval follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The trial.
    pub turn: u64,
    /// The agent's rank.
    pub rank: u32,
    /// Number of the report, from 1 for each agent and trial.
    pub number: u64,
    /// The shard.
    pub shard: u32,
    /// True if an interval follows; false if there is none any more.
    pub is_interval: bool,
}

impl Counts {
    /// Adds those of another agent, whatever it sent.
    pub fn add(&mut self, other: Counts) {
        self.ready = self.ready.saturating_add(other.ready);
        self.sending_done = self.sending_done.saturating_add(other.sending_done);
        self.complete = self.complete.saturating_add(other.complete);
        self.sent = self.sent.saturating_add(other.sent);
        self.arrived = self.arrived.saturating_add(other.arrived);
        self.last_due_ns = self.last_due_ns.max(other.last_due_ns);
    }
}

impl Fault {
    /// The failure on the coordinator's side. What an agent lacks is named with the agent.
    pub fn failure(self, agent: &str) -> Failure {
        match self {
            Fault::Unreachable { address, reason } => Failure::Unreachable { address, reason },
            Fault::Session { address, reason } => Failure::Session { address, reason },
            Fault::Lost { reason } => Failure::Lost(format!("{agent}: {reason}")),
            Fault::Generator { reason } => Failure::Ourselves(format!("{agent}: {reason}")),
        }
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Fault {
        match failure {
            Failure::Unreachable { address, reason } => Fault::Unreachable { address, reason },
            Failure::Session { address, reason } => Fault::Session { address, reason },
            Failure::Ourselves(reason) => Fault::Generator { reason },
            Failure::Lost(reason) => Fault::Lost { reason },
        }
    }
}

impl Report {
    /// The message: the report, and what follows it.
    pub fn with(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = written(self);
        bytes.push(b'\n');
        bytes.extend_from_slice(body);
        bytes
    }

    /// Reads a message; `None` if it is not one.
    pub fn split(bytes: &[u8]) -> Option<(Report, &[u8])> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        Some((read(&bytes[..end])?, &bytes[end + 1..]))
    }
}

/// A message as bytes.
pub fn written(message: &impl Serialize) -> Vec<u8> {
    // Nothing here has keys that are not strings, or a form of its own that fails.
    serde_json::to_vec(message).unwrap_or_default()
}

/// A message from bytes; `None` if it is none.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_split_at_the_first_line() {
        let report = Report { turn: 1, rank: 2, number: 3, shard: 4, is_interval: true };
        let bytes = report.with(b"a\nb");
        assert_eq!(Report::split(&bytes), Some((report, &b"a\nb"[..])));
        assert_eq!(Report::split(b"x\ny"), None);
        assert_eq!(Report::split(b""), None);
    }

    #[test]
    fn failures_come_back_with_the_name_of_the_agent_where_it_matters() {
        let address: SocketAddr = "10.0.0.1:1883".parse().unwrap();
        let refused = Failure::Session { address, reason: "no".to_owned() };
        assert_eq!(Fault::from(refused.clone()).failure("agent 1 (a)"), refused);
        let lacks = Fault::from(Failure::Ourselves("no descriptors".to_owned()));
        let text = lacks.failure("agent 1 (a)").to_string();
        assert_eq!(text, "agent 1 (a): no descriptors");
        let stopped = Fault::Lost { reason: "stopped".to_owned() };
        let lost = stopped.failure("agent 1 (a)");
        assert_eq!(lost, Failure::Lost("agent 1 (a): stopped".to_owned()));
        assert_eq!(lost.to_string(), "generator lost: agent 1 (a): stopped");
        let again = Fault::Lost { reason: "agent 1 (a): stopped".to_owned() };
        assert_eq!(Fault::from(lost), again, "a loss is a loss on the next host too");
    }
}
