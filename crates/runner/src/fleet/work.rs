//! What a fleet needs to run one trial, and what comes back.

use std::path::PathBuf;

use weigh_engine::job::Job;
use weigh_engine::outcome::Outcome;
use weigh_model::fleet::FleetRan;

use crate::interrupts::Interrupts;

/// One attempt at a trial.
pub struct Work<'w> {
    /// The run's id.
    pub run: &'w str,
    /// Number of the attempt at this trial, from 1.
    pub attempt: u32,
    /// The trial, as one process would run it.
    pub job: &'w Job,
    /// Contents of its body source.
    pub body: &'w [u8],
    /// Certificate authority of a server that was started for this trial, if it has one.
    pub authority: Option<PathBuf>,
    /// The trial's time 0 on this host's monotonic clock, nanoseconds.
    pub epoch_ns: u64,
    /// The same moment since 1970-01-01, nanoseconds.
    pub unix_ns: u64,
    /// Signals that may end the trial early.
    pub interrupts: &'w Interrupts,
}

/// The load of a trial, once it is over.
pub struct Generated {
    /// Results of all shards.
    pub outcome: Outcome,
    /// Record of the hosts that generated it, if it was a fleet.
    pub hosts: Option<FleetRan>,
}
