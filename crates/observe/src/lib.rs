//! Observes without changing anything: processor time and memory of a process tree, and the facts
//! of the host that a reader needs to judge or repeat a figure.
//!
//! Everything is read from `/proc` and `/sys`; nothing here needs privileges. Every reading has
//! its resolution ([`cpu::Accounting`]) and its own cost ([`sampler::Usage::own_cpu_ns`]).

pub mod boot;
pub mod clocks;
pub mod container;
pub mod cores;
pub mod cpu;
pub mod energy;
pub mod group;
pub mod host;
pub mod memory;
pub mod process;
#[cfg(feature = "tls")]
pub mod remote;
pub mod room;
pub mod sampler;
pub mod subject;

/// Errors of observers.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The process does not exist.
    #[error("no process {0}: it has ended, or the number is wrong; name a running one")]
    NoProcess(u32),
    /// No process listens on the port.
    #[error("no process listens on port {0}: start it, or name its port")]
    NoListener(u16),
    /// The control group does not exist.
    #[error("no control group {0}, or it does not account processor time; check its path")]
    NoGroup(String),
    /// The container does not exist, or cannot be observed.
    #[error("cannot observe the container {name}: {why}")]
    NoContainer {
        /// Its name or id.
        name: String,
        /// The engines asked, and their answers.
        why: String,
    },
    /// A file of the kernel could not be read.
    #[error("{path} could not be read: {error}; check its permissions")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file of the kernel does not look as documented.
    #[error("{0} does not look as documented in proc(5)")]
    Unexpected(String),
}
