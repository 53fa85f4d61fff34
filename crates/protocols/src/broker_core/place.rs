//! Where a connection is served, and one call from the engine.

use weigh_model::Nanos;
use weigh_model::server::{ConnectionId, Outboxes};

/// A connection of one of the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) shard: u16,
    pub(crate) connection: ConnectionId,
    /// Distinguishes connections with the same number.
    pub(crate) serial: u32,
}

/// One call from the engine.
pub(crate) struct Turn<'t, W = ()> {
    pub(crate) out: &'t mut dyn Outboxes,
    pub(crate) now: Nanos,
    pub(crate) shard: u16,
    /// Connections of this shard that wait and may continue, where connections do.
    pub(crate) woken: W,
}

impl<'t, W: Default> Turn<'t, W> {
    pub(crate) fn new(out: &'t mut dyn Outboxes, now: Nanos, shard: u16) -> Turn<'t, W> {
        Turn { out, now, shard, woken: W::default() }
    }
}
