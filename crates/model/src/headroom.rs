//! What a trial used of things that run out: descriptors, ports, the kernel's queues.

use serde::{Deserialize, Serialize};

/// What was looked at beside a trial for the sake of its attribution, as a journal holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// File descriptors of target or generator, whichever is nearer its end.
    pub descriptors: Option<Use>,
    /// Local ports of the generator.
    pub ports: Option<Use>,
    /// What the kernel dropped on the way during the window, connections and segments.
    pub kernel_drops: Option<u64>,
}

/// How much of something that ends was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// In use at most.
    pub used: u64,
    /// There are so many.
    pub available: u64,
    /// Attempts that failed for want of it.
    pub failures: u64,
}
