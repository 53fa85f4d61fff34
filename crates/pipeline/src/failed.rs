//! Errors of a stage that does not start.

/// What is wrong, and what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// Wrong arguments.
    #[error("{0}")]
    Typed(String),
    /// A wrong environment: a port in use, a broker that refuses, a file of another program.
    #[error("{0}")]
    Found(String),
}
