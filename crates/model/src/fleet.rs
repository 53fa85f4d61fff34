//! The hosts that generate the load of a run together: where its shards are placed, and what each
//! host did in a trial.

use serde::{Deserialize, Serialize};

/// Most agents of a fleet: as many as one coordinator was tried with.
pub const AGENTS_MAX: u32 = 1_000;

/// The hosts of a run, as they were when its trials began or were resumed.
///
/// # Examples
///
/// ```
/// use weigh_model::event::Event;
///
/// let line = r#"{"event":"fleet_placed","fleet":"default","shards":2,"hosts":[{"rank":0,
///     "name":"load-1","first_shard":0,"shards":2,"cores":4,"kernel":"6.1.0","cpu":"Xeon",
///     "clock_source":"tsc","version":"0.1.0"}]}"#;
/// let Event::FleetPlaced(placed) = serde_json::from_str(line)? else { panic!("another event") };
/// assert_eq!(placed.hosts[0].name, "load-1");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetPlaced {
    /// Name of the fleet on its bus.
    pub fleet: String,
    /// Number of shards of every trial, on all hosts together.
    pub shards: u32,
    /// The hosts, by rank.
    pub hosts: Vec<FleetHost>,
}

/// A host that generates a part of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetHost {
    /// Its number in the fleet.
    pub rank: u32,
    /// Its name.
    pub name: String,
    /// The first of its shards, which have consecutive numbers.
    pub first_shard: u32,
    /// Number of its shards.
    pub shards: u32,
    /// Cores that its agent may use.
    pub cores: u32,
    /// Kernel release.
    pub kernel: String,
    /// Model name of the processor.
    pub cpu: String,
    /// Clock source of the kernel; empty if it does not report it.
    pub clock_source: String,
    /// The version of Weighbridge on it.
    pub version: String,
    /// Its baseline: requests per second over TCP to the built-in server on it; absent if it could
    /// not be measured, and in records before this key.
    #[serde(default)]
    pub baseline_per_s: Option<f64>,
    /// What disturbs load on it, as `weigh doctor` found when its agent started, one sentence each.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Its memory in bytes; absent if it is not known, and in records before this key.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Files that its agent may have open, connections among them; absent without a limit, and in
    /// records before this key.
    #[serde(default)]
    pub descriptors: Option<u64>,
    /// Its local ports for connections to one address; absent if they are not known, and in records
    /// before this key.
    #[serde(default)]
    pub ports: Option<u32>,
}

/// Record of the hosts during one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetRan {
    /// The trial's id.
    pub trial: String,
    /// Largest difference between the starts of two hosts: no pair of them started further apart,
    /// nanoseconds.
    pub start_skew_bound_ns: u64,
    /// The hosts, by rank.
    pub hosts: Vec<HostRan>,
}

/// Record of one host during one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRan {
    /// Its number in the fleet.
    pub rank: u32,
    /// Its name.
    pub name: String,
    /// The first of its shards, which have consecutive numbers.
    pub first_shard: u32,
    /// Number of its shards.
    pub shards: u32,
    /// Its monotonic clock minus that of the coordinator at the trial's time 0, nanoseconds.
    pub clock_offset_ns: i64,
    /// Largest error of the trial's clock on this host over the trial, nanoseconds.
    pub clock_bound_ns: u64,
    /// Drift of its clock against that of the coordinator, parts per million.
    pub clock_drift_ppm: f64,
    /// Time between the moment at which the host knew the start and the start, nanoseconds.
    pub start_slack_ns: u64,
    /// Messages that it sent in the measured window.
    pub sent: u64,
    /// Load of its busiest shard in percent of one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// The 99 % quantile of its send lag, nanoseconds; absent if it sent too few messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lag_ns_p99: Option<u64>,
    /// Its first due time and its last completion on the trial's clock, nanoseconds; absent if it
    /// completed nothing, and in records before this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<[u64; 2]>,
    /// Why its part of the load is not what was asked for; absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<HostVerdict>,
}

/// Why a host's part of a load is not what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostVerdict {
    /// It sent late: more than half of the times that it added to the result are its own lag.
    Late,
    /// Its busiest shard used its whole core.
    Full,
}

impl HostVerdict {
    /// The word in files and texts.
    pub fn word(self) -> &'static str {
        match self {
            HostVerdict::Late => "late",
            HostVerdict::Full => "full",
        }
    }
}

impl HostRan {
    /// Its name in texts: `agent 2 (load-3)`.
    pub fn words(&self) -> String {
        format!("agent {} ({})", self.rank, self.name)
    }
}

impl FleetRan {
    /// The host whose busiest shard used most of its core, of those for which that is known.
    pub fn busiest(&self) -> Option<&HostRan> {
        let known = self.hosts.iter().filter(|host| host.cpu_percent.is_some());
        let percent = |host: &HostRan| host.cpu_percent.unwrap_or(0.0);
        known.max_by(|left, right| percent(left).total_cmp(&percent(right)))
    }

    /// The host that sent latest, by the 99 % quantile.
    pub fn latest(&self) -> Option<&HostRan> {
        let known = self.hosts.iter().filter(|host| host.send_lag_ns_p99.is_some());
        known.max_by_key(|host| host.send_lag_ns_p99)
    }

    /// From the first due time to the last completion of all hosts, and the part of it that they
    /// share, nanoseconds; `None` unless every host completed something.
    pub fn busy_and_shared_ns(&self) -> Option<[u64; 2]> {
        let busy: Vec<[u64; 2]> =
            self.hosts.iter().map(|host| host.busy_ns).collect::<Option<_>>()?;
        let first = |[from, _]: &[u64; 2]| *from;
        let last = |[_, to]: &[u64; 2]| *to;
        let all = busy.iter().map(last).max()?.saturating_sub(busy.iter().map(first).min()?);
        let shared = busy.iter().map(last).min()?.saturating_sub(busy.iter().map(first).max()?);
        Some([all, shared])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(rank: u32, cpu_percent: Option<f64>, send_lag_ns_p99: Option<u64>) -> HostRan {
        HostRan { rank, cpu_percent, send_lag_ns_p99, ..HostRan::default() }
    }

    #[test]
    fn the_worst_host_is_named() {
        let hosts =
            vec![host(0, Some(20.0), None), host(1, None, Some(9)), host(2, Some(80.0), Some(4))];
        let ran = FleetRan { hosts, ..FleetRan::default() };
        assert_eq!(ran.busiest().map(|host| host.rank), Some(2));
        assert_eq!(ran.latest().map(|host| host.rank), Some(1));
        assert_eq!(FleetRan::default().busiest(), None);
    }

    #[test]
    fn hosts_share_the_part_in_which_all_are_busy() {
        let busy = |each: &[Option<[u64; 2]>]| {
            let host =
                |busy_ns: &Option<[u64; 2]>| HostRan { busy_ns: *busy_ns, ..host(0, None, None) };
            let hosts = each.iter().map(host).collect();
            FleetRan { hosts, ..FleetRan::default() }.busy_and_shared_ns()
        };
        assert_eq!(busy(&[Some([10, 90]), Some([20, 110])]), Some([100, 70]));
        assert_eq!(busy(&[Some([10, 20]), Some([30, 40])]), Some([30, 0]), "one after the other");
        assert_eq!(busy(&[Some([10, 20]), None]), None);
        assert_eq!(busy(&[]), None);
    }
}
