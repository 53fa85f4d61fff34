//! Where a connection is served.

use weigh_model::server::ConnectionId;

/// A connection of one of the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) shard: u16,
    pub(crate) connection: ConnectionId,
    /// Distinguishes connections with the same number.
    pub(crate) serial: u32,
}
