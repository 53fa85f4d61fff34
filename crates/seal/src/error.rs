//! Errors of keys, policies and objects.

/// Why something was not sealed or not opened. Opening fails closed: with any of these, no byte of
/// the content is given out.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SealError {
    /// A key file has the wrong content.
    #[error("{place}: {problem}; {fix}")]
    Key {
        /// The file.
        place: String,
        /// What it contains.
        problem: String,
        /// What to type.
        fix: &'static str,
    },
    /// The policy is invalid.
    #[error("policy{}: {problem}; {fix}", place(*at))]
    Policy {
        /// Line and column in its file, from 1, if it was read from one.
        at: Option<(usize, usize)>,
        /// What is wrong.
        problem: String,
        /// What to type.
        fix: String,
    },
    /// The requested object is impossible.
    #[error("{problem}; {fix}")]
    Asked {
        /// What is wrong.
        problem: String,
        /// What to type.
        fix: &'static str,
    },
    /// The bytes are not a sealed object, or end too early.
    #[error("not a complete sealed object: {0}")]
    Format(String),
    /// The object uses a feature that this program does not have.
    #[error("the object uses {0}, which this program does not support")]
    Unsupported(String),
    /// The signature is missing, from another signer, or not over these bytes.
    #[error("signature: {0}")]
    Signature(String),
    /// The key is not that of a recipient.
    #[error("the key {0} is not one of the object's recipients")]
    NotARecipient(String),
    /// The key belongs to a recipient, but decryption fails: something was changed.
    #[error(
        "part {part:?} does not open with this key: it, its policy or its recipients were changed"
    )]
    Changed {
        /// The part's name.
        part: String,
    },
    /// A part belongs to another object or position.
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
