//! The header of a file of single messages.

/// The version of the file's format, in its metadata under `schema`.
pub const MESSAGES_SCHEMA: &str = "weigh/messages/1";

/// Facts about the trial, in the file's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// The trial's id.
    pub trial: String,
    /// Unix time at which the trial's clock stood at 0, nanoseconds.
    pub epoch_unix_ns: u64,
    /// Nanoseconds after which a message is late.
    pub timeout_ns: u64,
}
