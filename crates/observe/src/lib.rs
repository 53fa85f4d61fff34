//! Looks, and changes nothing: processor time and memory of a process tree, and the facts of the
//! host that a reader needs to doubt or repeat a figure.
//!
//! Everything is read from `/proc` and `/sys`; nothing here needs privileges. Every reading says
//! how fine it is ([`cpu::Accounting`]) and what it cost ([`sampler::Usage::own_cpu_ns`]).

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

/// What can keep an observer from looking.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The process to look at is not there.
    #[error("there is no process {0}: it ended, or the number is wrong")]
    NoProcess(u32),
    /// The control group to look at is not there.
    #[error("there is no control group {0}, or it accounts no processor time")]
    NoGroup(String),
    /// The container to look at is not there.
    #[error("there is no container {name} to watch: {why}")]
    NoContainer {
        /// Its name or id.
        name: String,
        /// Who was asked, and what they said.
        why: String,
    },
    /// A file of the kernel could not be read.
    #[error("{path} could not be read: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// A file of the kernel does not look as documented.
    #[error("{0} does not look as documented in proc(5)")]
    Unexpected(String),
}
