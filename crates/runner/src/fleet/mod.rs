//! A fleet: agents on several hosts generate the load of a run, and this program has its plan, its
//! target, its journal and its result.

#[cfg(feature = "fleet")]
pub mod agent;
pub mod fitness;
#[cfg_attr(not(feature = "fleet"), path = "hosts_unbuilt.rs")]
pub mod hosts;
pub mod request;
pub mod verdict;
pub mod work;
#[cfg(feature = "fleet")]
pub mod workshop;

/// Version and commit of this program. A coordinator takes only agents with the same.
pub fn version(commit: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    commit.map_or(version.to_owned(), |commit| format!("{version} ({commit})"))
}
