//! What the WebSocket connections of a trial cost, counted at one end.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of all connections that share it; connections add theirs when they end.
#[derive(Debug, Default)]
pub struct Tally {
    upgrades: AtomicU64,
    upgrade_sent: AtomicU64,
    upgrade_received: AtomicU64,
    frame_sent: AtomicU64,
    frame_received: AtomicU64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Connections that were upgraded.
    pub upgrades: u64,
    /// Bytes of the requests for an upgrade.
    pub upgrade_sent_bytes: u64,
    /// Bytes of the answers.
    pub upgrade_received_bytes: u64,
    /// What frames added to the bytes of the protocol inside, sent: headers with masks, and whole
    /// control frames.
    pub frame_sent_bytes: u64,
    /// The same, received.
    pub frame_received_bytes: u64,
}

impl Tally {
    /// What was counted so far.
    pub fn figures(&self) -> Figures {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Figures {
            upgrades: read(&self.upgrades),
            upgrade_sent_bytes: read(&self.upgrade_sent),
            upgrade_received_bytes: read(&self.upgrade_received),
            frame_sent_bytes: read(&self.frame_sent),
            frame_received_bytes: read(&self.frame_received),
        }
    }

    pub(super) fn add(&self, more: Figures) {
        let add = |count: &AtomicU64, more: u64| count.fetch_add(more, Ordering::Relaxed);
        add(&self.upgrades, more.upgrades);
        add(&self.upgrade_sent, more.upgrade_sent_bytes);
        add(&self.upgrade_received, more.upgrade_received_bytes);
        add(&self.frame_sent, more.frame_sent_bytes);
        add(&self.frame_received, more.frame_received_bytes);
    }
}
