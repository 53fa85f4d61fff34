//! The error of a value that a key does not take.

use std::fmt;

use weigh_model::refusal;

/// The error of a value that a key does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// What is wrong with it.
    pub text: String,
    /// What to type instead.
    pub fix: String,
}

impl Wrong {
    /// Splits a message of the model: what is wrong, a colon or semicolon, what to type.
    pub fn split(said: &str) -> Wrong {
        let (text, fix) = refusal::split(said);
        Wrong::new(text, fix.unwrap_or_default())
    }

    /// Makes an error with its fix.
    pub fn new(text: impl Into<String>, fix: impl Into<String>) -> Wrong {
        Wrong { text: text.into(), fix: fix.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fix.as_str() {
            "" => f.write_str(&self.text),
            fix => write!(f, "{}\nhelp: {fix}", self.text),
        }
    }
}
