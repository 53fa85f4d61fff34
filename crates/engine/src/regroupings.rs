//! New divisions of messages among the consumers of a group: how many, and how long none was read.

use weigh_model::{Nanos, portable_fields};

/// Counts of new divisions while the load ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regroupings {
    /// Number of them, each counted for each consumer.
    pub times: u64,
    /// The longest time in which a consumer read nothing because of one.
    pub pause_max: Nanos,
}

impl Regroupings {
    /// A consumer has its new share after this pause.
    pub fn note(&mut self, pause: Nanos) {
        self.times += 1;
        self.pause_max = self.pause_max.max(pause);
    }

    /// Adds those of another shard.
    pub fn add(&mut self, other: Regroupings) {
        self.times += other.times;
        self.pause_max = self.pause_max.max(other.pause_max);
    }
}

portable_fields!(Regroupings { times, pause_max });
