//! A value that a key does not take: what is wrong with it, and what to type instead.

/// A value that a key does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// What is wrong with it.
    pub text: String,
    /// What to type instead.
    pub mend: String,
}

impl Wrong {
    /// From the way the model says it: what is wrong, a colon, what to type.
    pub fn split(said: &str) -> Wrong {
        match said.rsplit_once(": type ") {
            Some((text, mend)) => Wrong::new(text, format!("type {mend}")),
            None => Wrong::new(said, ""),
        }
    }

    /// So much is wrong, and so it is mended.
    pub fn new(text: impl Into<String>, mend: impl Into<String>) -> Wrong {
        Wrong { text: text.into(), mend: mend.into() }
    }
}
