//! Refusals of several commands, in the words of Redis.

/// A command whose words make no sense.
pub(super) const SYNTAX: &str = "ERR syntax error";

/// A word that is not a number.
pub(super) const NOT_A_NUMBER: &str = "ERR value is not an integer or out of range";

/// A word that is not the ID of an entry.
pub(super) const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";

/// A read whose key is gone.
pub(super) const GONE: &str = "UNBLOCKED the stream key no longer exists";

/// A read whose group is gone or was never there.
pub(super) const NO_GROUP: &str = "NOGROUP No such key or consumer group";

/// A group of a stream that is not there.
pub(super) const NO_KEY: &str = concat!(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to ",
    "use the MKSTREAM option to create an empty stream automatically.",
);

/// A word of a client as an error shows it.
pub(super) fn shown(word: &[u8]) -> String {
    word[..word.len().min(SHOWN_BYTES_MAX)].escape_ascii().to_string()
}

const SHOWN_BYTES_MAX: usize = 128;
