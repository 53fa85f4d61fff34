//! Counts of a forwarder, and what it could not do in time.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use weigh_model::units::Nanos;

use crate::link::line::Cause;

/// One direction of one host's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayCounts {
    /// Packets that arrived.
    pub offered: u64,
    /// IP bytes that arrived.
    pub offered_bytes: u64,
    /// Packets dropped because the queue was full.
    pub queue_full: u64,
    /// Packets lost by chance, as the path says.
    pub lost: u64,
    /// Copies made by chance, as the path says.
    pub doubled: u64,
}

/// Counts of one host's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounts {
    /// From the host.
    pub up: WayCounts,
    /// To the host.
    pub down: WayCounts,
    /// Frames that were not IPv4.
    pub foreign: u64,
    /// Packets to an address that no host has.
    pub unroutable: u64,
    /// Packets written to the host.
    pub written: u64,
    /// Packets that the host's interface did not take.
    pub refused: u64,
    /// Packets of the host that were gone before the forwarder saw them: its interface or ring
    /// was full.
    pub overflowed: u64,
}

/// All counts of a forwarder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCounts {
    /// Counts of the paths, in the order of the ports.
    pub ports: Vec<PortCounts>,
    /// Packets that left more than [`LATE`] after they were due.
    pub late: u64,
    /// Sum of the time between due and written, of all packets, nanoseconds.
    pub lateness_ns_sum: u64,
    /// Longest of these times, nanoseconds.
    pub lateness_ns_max: u64,
    /// Packets discarded because the memory for packets under way was full.
    pub overruns: u64,
    /// Processor time of the forwarder, nanoseconds: neither the generator's nor the target's.
    pub cpu_ns: u64,
}

/// From here on a packet is late: far above the wake-up cost of an idle machine (0.1 ms), and a
/// thirtieth of the shortest round trip that a path over a radio or a wide area has.
pub const LATE: Nanos = Nanos::from_millis(1);

impl PathCounts {
    /// Whether the forwarder itself changed the path noticeably: the trial gets a warning.
    pub fn is_bent(&self) -> bool {
        self.late > 0
            || self.overruns > 0
            || self.ports.iter().any(|port| port.overflowed > 0 || port.refused > 0)
    }

    /// Packets written to hosts.
    pub fn written(&self) -> u64 {
        self.ports.iter().map(|port| port.written).sum()
    }

    /// Mean time between due and written, nanoseconds; 0 without packets.
    pub fn lateness_ns_mean(&self) -> f64 {
        self.lateness_ns_sum as f64 / self.written().max(1) as f64
    }
}

impl AddAssign for WayCounts {
    fn add_assign(&mut self, more: WayCounts) {
        self.offered += more.offered;
        self.offered_bytes += more.offered_bytes;
        self.queue_full += more.queue_full;
        self.lost += more.lost;
        self.doubled += more.doubled;
    }
}

impl WayCounts {
    pub(crate) fn dropped(&mut self, cause: Cause) {
        match cause {
            Cause::QueueFull => self.queue_full += 1,
            Cause::Lost => self.lost += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_forwarder_could_not_do_bends_the_path() {
        let mut counts =
            PathCounts { ports: vec![PortCounts::default(); 2], ..PathCounts::default() };
        counts.ports[0].up.lost = 1;
        counts.ports[0].down.queue_full = 1;
        assert!(!counts.is_bent());
        counts.ports[1].overflowed = 1;
        assert!(counts.is_bent());
    }
}
