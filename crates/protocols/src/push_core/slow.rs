//! A subscriber that reads more slowly than messages arrive: how much may wait for it, and what
//! happens then.

use weigh_model::protocol::{Setting, SettingKind};
use weigh_model::trial::Settings;

/// The key of the limit.
pub(crate) const QUEUE: Setting = Setting::integer(
    "server_queue_bytes_max",
    (1024, 1 << 40),
    "67108864",
    "Reference server: bytes that wait for a slow subscriber before server_slow applies.",
);

/// The key of the policy.
pub(crate) const SLOW: Setting = Setting {
    key: "server_slow",
    kind: SettingKind::Choice(&["disconnect", "drop"]),
    default: "disconnect",
    doc: "Reference server: disconnect a slow subscriber, or drop the message for it.",
};

/// Treatment of slow subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slow {
    /// Bytes that may wait for one.
    pub(crate) bytes_max: usize,
    /// False if messages are dropped for it.
    pub(crate) disconnects: bool,
}

impl Slow {
    /// Reads the two keys.
    pub(crate) fn read(settings: &Settings) -> Slow {
        Slow {
            bytes_max: settings.integer(QUEUE.key).max(1024) as usize,
            disconnects: settings.text(SLOW.key) != "drop",
        }
    }
}

/// Cause of a message that was dropped because too much waited for its subscriber.
pub(crate) const QUEUE_FULL: &str = "queue_full";
