//! What a file of single messages says of its trial.

/// The version of the file's format, in its metadata under `schema`.
pub const MESSAGES_SCHEMA: &str = "weigh/messages/1";

/// What a file says of its trial, in its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// The trial's id.
    pub trial: String,
    /// The trial's clock stood at 0 so many nanoseconds after 1970-01-01T00:00Z.
    pub epoch_unix_ns: u64,
    /// After this many nanoseconds a message is late.
    pub timeout_ns: u64,
}
