//! Why there are no hosts.

use std::io;

/// What stands in the way of a scene. After [`HostsError::Forbidden`] a trial can still run on
/// loopback, with the doubt on every figure of time, packets and bytes.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// This machine does not let this user make network namespaces.
    #[error("no network namespaces for this user: {reason}; {mend}")]
    Forbidden {
        /// The sysctl that forbids it, if one does.
        setting: Option<&'static str>,
        /// What was found.
        reason: String,
        /// What to do.
        mend: String,
    },
    /// The program has more than one thread, and the kernel lets only a program with one enter a
    /// user namespace.
    #[error(
        "a user namespace can only be entered by a program with one thread, and this one has \
         {threads}: take the ground first thing"
    )]
    TooLate {
        /// How many.
        threads: usize,
    },
    /// The scene that is asked for cannot be.
    #[error("{0}")]
    Scene(String),
    /// A step failed.
    #[error("{host}: {step}: {error}")]
    Step {
        /// Which host.
        host: String,
        /// What was being done.
        step: String,
        /// What the kernel said.
        error: io::Error,
    },
}

impl HostsError {
    /// Makes a [`HostsError::Step`] of what the kernel said.
    pub(super) fn step(host: &str, step: &str) -> impl FnOnce(io::Error) -> HostsError {
        let (host, step) = (host.to_owned(), step.to_owned());
        move |error| HostsError::Step { host, step, error }
    }
}
