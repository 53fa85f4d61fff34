//! What is wrong with an input, and what to type instead.

/// An input that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}\nhelp: {fix}")]
pub struct Wrong {
    /// The key, flag or file.
    pub place: String,
    /// The error.
    pub problem: String,
    /// What to type instead.
    pub fix: String,
}

impl Wrong {
    /// An error at a place.
    pub fn new(place: &str, problem: impl Into<String>, fix: impl Into<String>) -> Wrong {
        Wrong { place: place.to_owned(), problem: problem.into(), fix: fix.into() }
    }
}

/// A figure that cannot be predicted, and the run that would make it possible.
#[derive(
    Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Missing {
    /// What is not known, in a sentence.
    pub why: String,
    /// The command that would measure it.
    pub run: String,
}
