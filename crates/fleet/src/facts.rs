//! What an agent reports about its host when it registers.

use serde::{Deserialize, Serialize};
use weigh_model::event::HostFacts;

/// Facts about the host of an agent that decide what it can carry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// Name of the host.
    pub name: String,
    /// Identity of its network: processes with the same one reach each other by loopback.
    pub place: String,
    /// Kernel, processor, cores, memory.
    pub host: HostFacts,
    /// Files that the process may have open, after raising the limit as far as allowed.
    pub descriptors: u64,
    /// Local ports for outgoing connections to one address.
    pub ports: u32,
    /// Rate that it reaches against the built-in server on it, messages per second; `None` if that
    /// was not measured.
    pub baseline_per_s: Option<f64>,
    /// Findings of the host's own check, one sentence each.
    pub findings: Vec<String>,
}

impl AgentFacts {
    /// The facts of this host, without baseline and findings.
    pub fn of_this_host() -> AgentFacts {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        AgentFacts {
            name,
            place: place(),
            host: weigh_observe::host::facts(),
            descriptors: limit.maximum.unwrap_or(u64::MAX),
            ports: local_ports(),
            baseline_per_s: None,
            findings: Vec::new(),
        }
    }
}

/// Identity of the network of this process: the kernel's name of this boot, and the number of the
/// network namespace.
pub fn place() -> String {
    let network = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{}/{}", weigh_observe::boot::id().unwrap_or_default(), network.display())
}

/// Size of the kernel's range of local ports; 0 if the kernel does not report it.
fn local_ports() -> u32 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let range = range.unwrap_or_default();
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<u32>().ok());
    match (ends.next(), ends.next()) {
        (Some(first), Some(last)) if last >= first => last - first + 1,
        _ => 0,
    }
}
