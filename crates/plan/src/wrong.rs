//! The error of a value that a key does not take.

/// The error of a value that a key does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// What is wrong with it.
    pub text: String,
    /// What to type instead.
    pub fix: String,
}

impl Wrong {
    /// Splits a message of the model: what is wrong, a colon, what to type.
    pub fn split(said: &str) -> Wrong {
        match said.rsplit_once(": type ") {
            Some((text, fix)) => Wrong::new(text, format!("type {fix}")),
            None => Wrong::new(said, ""),
        }
    }

    /// Makes an error with its fix.
    pub fn new(text: impl Into<String>, fix: impl Into<String>) -> Wrong {
        Wrong { text: text.into(), fix: fix.into() }
    }
}
