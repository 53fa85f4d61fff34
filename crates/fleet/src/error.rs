//! Reasons for which there is no fleet, or no agent in it.

/// Reason for which a fleet cannot be had or used. Every text is one sentence and, where there is
/// one, a hint what to type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// An option is wrong.
    #[error("{0}")]
    Options(String),
    /// The bus cannot be reached, refuses the credentials, or lacks JetStream.
    #[error("{0}")]
    Bus(String),
    /// Agents are missing, or were refused.
    #[error("{0}")]
    Agents(String),
    /// The wait for agents was ended by the user.
    #[error("stopped while waiting for agents")]
    Stopped,
    /// Material or outcomes could not be stored or read.
    #[error("{0}")]
    Store(String),
}
