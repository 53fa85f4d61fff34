//! Cost of the WebSocket connections of a trial, counted at one end.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of all connections that share it; each connection adds its own when it ends.
#[derive(Debug, Default)]
pub struct Tally {
    upgrades: AtomicU64,
    upgrade_sent: AtomicU64,
    upgrade_received: AtomicU64,
    frame_sent: AtomicU64,
    frame_received: AtomicU64,
}

/// Counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Connections that were upgraded.
    pub upgrades: u64,
    /// Bytes of the requests for an upgrade.
    pub upgrade_sent_bytes: u64,
    /// Bytes of the answers.
    pub upgrade_received_bytes: u64,
    /// Bytes sent that frames added to those of the inner protocol: headers with masks, and whole
    /// control frames.
    pub frame_sent_bytes: u64,
    /// Bytes received that frames added to those of the inner protocol.
    pub frame_received_bytes: u64,
}

impl Tally {
    /// Returns the counts so far.
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
