//! What can be wrong with a key, a policy or an object.

/// Why something was not sealed or not opened. Opening fails closed: with any of these, no byte of
/// the content is given out.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SealError {
    /// A key file holds something else.
    #[error("{place}: {problem}; {mend}")]
    Key {
        /// The file.
        place: String,
        /// What it holds.
        problem: String,
        /// What to do.
        mend: &'static str,
    },
    /// The policy cannot be used.
    #[error("policy{}: {problem}; {mend}", place(*at))]
    Policy {
        /// Line and column of its file, from 1, where it was read from one.
        at: Option<(usize, usize)>,
        /// What is wrong.
        problem: String,
        /// What to do.
        mend: String,
    },
    /// What was asked for cannot be sealed.
    #[error("{problem}; {mend}")]
    Asked {
        /// What is wrong.
        problem: String,
        /// What to do.
        mend: &'static str,
    },
    /// The bytes are no sealed object, or end too early.
    #[error("this is no whole sealed object: {0}")]
    Format(String),
    /// The object uses what this program does not.
    #[error("the object uses {0}, which this program does not open")]
    Unsupported(String),
    /// The signature is missing, made by somebody else, or not over these bytes.
    #[error("signature: {0}")]
    Signature(String),
    /// The key belongs to no recipient.
    #[error("the key {0} is none of the object's recipients")]
    NotARecipient(String),
    /// The key belongs to a recipient, and does not open what is there: something was changed.
    #[error(
        "part {part:?} does not open with this key: it, its policy or its recipients were changed"
    )]
    Changed {
        /// The part's name.
        part: String,
    },
    /// A part is not of this object, or not in its place.
    #[error("part {part:?} does not belong here: {problem}")]
    Misplaced {
        /// The part's name.
        part: String,
        /// What is wrong.
        problem: String,
    },
    /// The policy forbids it.
    #[error("the policy forbids it: {0}")]
    Forbidden(String),
    /// The operating system gave no random bytes.
    #[error("no random bytes from the operating system: {0}")]
    Random(String),
}

fn place(at: Option<(usize, usize)>) -> String {
    at.map_or_else(String::new, |(line, column)| format!(", line {line}, column {column}"))
}
