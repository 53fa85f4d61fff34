//! State that all shards of a trial share: the trial itself, what they report, why they fail.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use weigh_model::body::Composer;
use weigh_model::event::Interval;
use weigh_model::protocol::Dial;
use weigh_model::{Load, Nanos, Trial};

use crate::interval_times::IntervalTimes;
use crate::message_log::MessageLog;
use crate::object::ObjectFile;
use crate::rendezvous::Rendezvous;
use crate::socket_host::SocketHost;

/// A trial with everything the engine needs to run it.
pub struct Job {
    /// The trial.
    pub trial: Trial,
    /// How to connect its clients.
    pub dial: Dial,
    /// Makes its bodies.
    pub composer: Composer,
    /// The file that bodies are read from piece by piece.
    pub object: Option<ObjectFile>,
    /// Address of the target.
    pub address: SocketAddr,
    /// Local addresses to connect from, in turn; empty leaves the choice to the kernel.
    pub sources: Vec<IpAddr>,
    /// The host on which consumers are, if it is not the producers'.
    pub consumers: Option<Arc<dyn SocketHost>>,
    /// The due times of a traced arrival.
    pub trace: Vec<Nanos>,
    /// Number of shards that run it, in all processes together.
    pub shards: u32,
    /// Length of the intervals that shards report, see [`interval_length`].
    pub every: Nanos,
    /// Takes what happens to every single message, where that is to be kept.
    pub messages: Option<Arc<MessageLog>>,
    /// True if codecs are to count what they write and read, because packets are captured.
    pub is_metered: bool,
    /// True where an emulated path is between: a target that stays silent is cut off, and what
    /// it should have got is lost, instead of the target being unreachable.
    pub may_be_cut_off: bool,
    /// Where its shards meet; made for as many as [`Job::shards`].
    pub rendezvous: Arc<dyn Rendezvous>,
}

impl Job {
    /// The load of the trial.
    pub fn load(&self) -> &Load {
        &self.trial.load
    }

    /// True where a message completes by being delivered, because nothing confirms it.
    pub fn completes_on_delivery(&self) -> bool {
        let load = self.load();
        load.delivers() && !self.dial.confirms && !load.arrival.is_open()
    }

    /// True where consumers tell what arrived.
    pub fn has_consumers(&self) -> bool {
        self.load().delivers()
    }

    /// True where every client has a share of the total of its own.
    pub fn has_quotas(&self) -> bool {
        let load = self.load();
        load.messages.is_some() && load.arrival.is_closed()
    }
}

/// Report of a shard while it runs.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Number of its open connections, and of all its connections.
    Opening(u64, u64),
    /// Counts of the last interval.
    Interval(Box<ShardInterval>),
    /// It has no interval to report any more.
    Settled,
}

/// Counts of a shard in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardInterval {
    /// Its counts; without quantiles, which are those of all shards together.
    pub interval: Interval,
    /// The end that it was to have, the same for all shards: intervals of different shards that
    /// have it in common are one.
    pub border: Nanos,
    /// Its times.
    pub times: IntervalTimes,
    /// Processor time of the shard's thread in it; 0 on virtual time.
    pub cpu: Nanos,
}

/// The length of intervals that makes a series of at most [`INTERVALS_MAX`]: at least 100 ms, in
/// steps that people read. Where the load's length is not known it is 100 ms, the length of the
/// first intervals: the writer of the series joins later ones.
pub fn interval_length(load: &Load) -> Nanos {
    let Some(duration) = load.duration else { return Nanos::from_millis(100) };
    let whole = duration + load.warmup;
    let step = INTERVAL_STEPS_MS.iter().map(|step| Nanos::from_millis(*step));
    let longest = Nanos(whole.0.div_ceil(INTERVALS_MAX));
    step.into_iter().find(|step| *step >= longest).unwrap_or(longest)
}

/// Intervals of a trial whose length is known, draining left out.
pub const INTERVALS_MAX: u64 = 120;

/// 0.1, 0.2, 0.5, 1, 2, 5, 10, 15 and 30 s; 1, 2, 5, 10, 15 and 30 min; 1 h.
const INTERVAL_STEPS_MS: [u64; 16] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    900_000, 1_800_000, 3_600_000,
];

/// Cause for which a trial could not start or continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No answer from the target's address.
    #[error("{address}: {reason}")]
    Unreachable {
        /// The address.
        address: SocketAddr,
        /// Words of the system.
        reason: String,
    },
    /// The target answers, and the session is refused or is not of this protocol.
    #[error("{address}: {reason}")]
    Session {
        /// The address.
        address: SocketAddr,
        /// Words of the protocol.
        reason: String,
    },
    /// Something on our own side is missing: descriptors, ports, a thread.
    #[error("{0}")]
    Ourselves(String),
    /// A process that generates a part of the load is gone, or did not know the start in time.
    /// Another attempt may succeed.
    #[error("generator lost: {0}")]
    Lost(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::Pattern;

    /// Never more than 120 intervals, never shorter than 100 ms, and of steps that people read.
    #[test]
    fn intervals_are_few_and_of_round_lengths() {
        let mut load =
            Load { warmup: Nanos::from_millis(500), ..Load::closed(Pattern::Request, 1) };
        assert_eq!(interval_length(&load), Nanos::from_millis(100));
        for (seconds, length_ms) in [
            (1, 100),
            (10, 100),
            (12, 200),
            (30, 500),
            (100, 1_000),
            (120, 2_000),
            (36_000, 600_000),
            (500_000, 4_166_671),
        ] {
            load.duration = Some(Nanos::from_secs(seconds));
            let length = interval_length(&load);
            assert_eq!(length.0.div_ceil(1_000_000), length_ms, "{seconds} s");
            let count = (load.warmup.0 + seconds * 1_000_000_000).div_ceil(length.0);
            assert!(count <= INTERVALS_MAX, "{count}");
        }
    }
}
