//! Errors of emulated hosts.

use std::io;

/// Why a scene cannot be set. After [`HostsError::Forbidden`] a trial can still run on
/// loopback, with the warning on every figure of time, packets and bytes.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// This machine does not let this user make network namespaces.
    #[error("no network namespaces for this user: {reason}; {fix}")]
    Forbidden {
        /// The sysctl setting that forbids it, if known.
        setting: Option<&'static str>,
        /// What was found.
        reason: String,
        /// What to type.
        fix: String,
    },
    /// The program has more than one thread, and the kernel lets only a program with one enter a
    /// user namespace.
    #[error(
        "a user namespace can only be entered by a program with one thread, and this one has \
         {threads}; take the rights before any thread starts"
    )]
    TooLate {
        /// Number of threads.
        threads: usize,
    },
    /// The requested scene is impossible.
    #[error("{0}")]
    Scene(String),
    /// A step failed.
    #[error("{host}: {step}: {error}")]
    Step {
        /// Name of the host.
        host: String,
        /// The step that failed.
        step: String,
        /// The kernel's error.
        error: io::Error,
    },
}

impl HostsError {
    /// Makes a [`HostsError::Step`] from the kernel's error.
    pub(super) fn step(host: &str, step: &str) -> impl FnOnce(io::Error) -> HostsError {
        let (host, step) = (host.to_owned(), step.to_owned());
        move |error| HostsError::Step { host, step, error }
    }
}
