//! Why a stage does not start.

/// What is wrong, and what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// With what was typed.
    #[error("{0}")]
    Typed(String),
    /// With what is there: a port in use, a broker that refuses, a file of something else.
    #[error("{0}")]
    Found(String),
}
