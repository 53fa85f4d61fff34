//! Bytes that the codecs of a trial counted on each connection, for trials with packet capture.

use std::net::SocketAddr;

use weigh_model::Nanos;
use weigh_model::content::StreamCounts;
use weigh_model::portable_fields;
use weigh_model::protocol::Role;

/// The counts of all connections that a trial has closed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// One by one, the first [`ROWS_MAX`] of each shard.
    pub rows: Vec<ConnectionContent>,
    /// All together, those without a row too.
    pub total: StreamCounts,
    /// Connections without a row.
    pub connections_untold: u64,
}

/// Counts of the codec of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionContent {
    /// Local address; `None` if the kernel did not report it, and on virtual time.
    pub local: Option<SocketAddr>,
    /// Role of the connection.
    pub role: Role,
    /// Index of its seat among those of its role.
    pub index: u32,
    /// Time at which it was requested, on the trial's clock: a port may be used again.
    pub opened_at: Nanos,
    /// Both directions.
    pub counts: StreamCounts,
}

impl Contents {
    /// Adds a connection.
    pub fn note(&mut self, row: ConnectionContent) {
        self.total.absorb(&row.counts);
        if self.rows.len() < ROWS_MAX {
            self.rows.push(row);
        } else {
            self.connections_untold += 1;
        }
    }

    /// Adds another shard's connections.
    pub fn merge(&mut self, other: Contents) {
        self.rows.extend(other.rows);
        self.total.absorb(&other.total);
        self.connections_untold += other.connections_untold;
    }
}

portable_fields!(Contents { rows, total, connections_untold });
portable_fields!(ConnectionContent { local, role, index, opened_at, counts });

/// As many as a capture lists one by one.
pub const ROWS_MAX: usize = 12_000;
