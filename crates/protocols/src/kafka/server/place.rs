//! Names of connections within the whole server, and what a turn of a shard works with.

use weigh_model::Nanos;
use weigh_model::server::{ConnectionId, Outboxes};

/// A connection among those of all shards; its serial distinguishes it from later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) shard: u16,
    pub(super) connection: ConnectionId,
    pub(super) serial: u32,
}

/// One turn of a shard.
pub(super) struct Turn<'t> {
    pub(super) out: &'t mut dyn Outboxes,
    pub(super) now: Nanos,
    pub(super) shard: u16,
    /// Connections of this shard whose request may be answered now.
    pub(super) woken: Vec<Place>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was answered, or has no answer.
    Answered,
    /// It is answered by then, or looked at again.
    Waits(Nanos),
    /// The connection ends: a batch without an answer failed.
    Ends,
}
