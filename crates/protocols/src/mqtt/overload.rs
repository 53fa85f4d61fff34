//! Overload policies of the reference broker, for a subscriber that does not keep up. They are
//! settings because they, and not the protocol, decide how much of a burst arrives.

use std::fmt;
use std::str::FromStr;

/// Policy for messages that wait for a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// They wait, however many.
    Unlimited,
    /// At most this many wait; further ones are dropped (Mosquitto's `max_queued_messages`).
    DropNewest(u32),
    /// At most this many wait; further ones replace the oldest (EMQX's session queue).
    DropOldest(u32),
    /// More than this many waiting, seen after every [`SENDS_PER_CHECK`] sends, costs the
    /// subscriber its connection and all that waits (EMQX's `force_shutdown.max_mailbox_size`).
    /// While a session has no connection, its queue keeps the newest this many.
    Disconnect(u32),
}

/// Messages sent to a subscriber between two looks at its queue under
/// [`Overload::Disconnect`]: the `active_n` of EMQX 5.5.
pub const SENDS_PER_CHECK: u8 = 100;

impl FromStr for Overload {
    type Err = String;
    fn from_str(text: &str) -> Result<Overload, String> {
        if text == "unlimited" {
            return Ok(Overload::Unlimited);
        }
        let wrong = || {
            format!(
                "unknown overload policy {text:?}: type unlimited, drop-newest:N, drop-oldest:N \
                 or disconnect:N, for example drop-newest:1000"
            )
        };
        let (name, limit) = text.split_once(':').ok_or_else(wrong)?;
        let limit = limit.parse().ok().filter(|limit| *limit > 0).ok_or_else(wrong)?;
        match name {
            "drop-newest" => Ok(Overload::DropNewest(limit)),
            "drop-oldest" => Ok(Overload::DropOldest(limit)),
            "disconnect" => Ok(Overload::Disconnect(limit)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Overload::Unlimited => f.write_str("unlimited"),
            Overload::DropNewest(limit) => write!(f, "drop-newest:{limit}"),
            Overload::DropOldest(limit) => write!(f, "drop-oldest:{limit}"),
            Overload::Disconnect(limit) => write!(f, "disconnect:{limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for text in ["unlimited", "drop-newest:1000", "drop-oldest:1", "disconnect:1000"] {
            assert_eq!(text.parse::<Overload>().unwrap().to_string(), text);
        }
        for text in ["", "drop-newest", "drop-newest:", "drop-newest:0", "disconnect:-1", "x:1"] {
            let error = text.parse::<Overload>().unwrap_err();
            assert!(error.contains("drop-newest:N"), "{error}");
        }
    }
}
