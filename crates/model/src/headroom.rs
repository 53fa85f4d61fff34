//! Use of limited resources in a trial: descriptors, ports, the kernel's queues.

use serde::{Deserialize, Serialize};

/// Resources observed during a trial for its attribution, as in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// File descriptors of target or generator, whichever is closer to its limit.
    pub descriptors: Option<Use>,
    /// Local ports of the generator.
    pub ports: Option<Use>,
    /// Connections and segments that the kernel dropped during the window.
    pub kernel_drops: Option<u64>,
}

/// Use of a limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// Largest number in use.
    pub used: u64,
    /// Number available.
    pub available: u64,
    /// Attempts that failed because none was left.
    pub failures: u64,
}
