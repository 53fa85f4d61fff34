//! Reports of reference servers when they have stopped.

use serde::Serialize;
use weigh_model::server::{RECEIVE_QUEUE_FULL, ServerReport};

/// Counts of a server and of its sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServingReport {
    /// The protocol's own count, over all shards.
    pub server: ServerReport,
    /// Connections closed because what came broke the protocol.
    pub faults: u64,
    /// The first few of those, in words.
    pub fault_reasons: Vec<String>,
    /// Shards that were not allowed a descriptor table of their own.
    pub shared_tables: u16,
    /// Number of times that accepting paused because no descriptors were left.
    pub accept_pauses: u64,
    /// Connections open now.
    pub open_connections: u64,
    /// Bytes handed to sockets.
    pub bytes_written: u64,
    /// Bytes read from sockets.
    pub bytes_read: u64,
}

impl ServingReport {
    /// Adds datagrams that the kernel dropped at a full receive queue: those the server never saw.
    pub(super) fn note_dropped(&mut self, datagrams: u64) {
        if datagrams > 0 {
            *self.server.dropped.entry(RECEIVE_QUEUE_FULL.to_owned()).or_default() += datagrams;
        }
    }

    /// Adds the report of another shard.
    pub fn add(&mut self, other: ServingReport) {
        self.server.add(&other.server);
        self.faults += other.faults;
        self.fault_reasons.extend(other.fault_reasons);
        self.fault_reasons.truncate(REASONS_KEPT);
        self.shared_tables += other.shared_tables;
        self.accept_pauses += other.accept_pauses;
        self.open_connections += other.open_connections;
        self.bytes_written += other.bytes_written;
        self.bytes_read += other.bytes_read;
    }
}

/// Number of fault reasons that a report keeps.
pub(super) const REASONS_KEPT: usize = 8;
