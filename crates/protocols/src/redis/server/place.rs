//! Names within the whole server, of connections and of keys, and what a turn of a shard works
//! with.

use weigh_model::Nanos;
use weigh_model::server::{ConnectionId, Outboxes};

/// A connection among those of all shards; its serial distinguishes it from later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) shard: u16,
    pub(super) connection: ConnectionId,
    pub(super) serial: u32,
}

/// A key: the number of its database, and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) db: u8,
    pub(super) name: Box<[u8]>,
}

/// One turn of a shard.
pub(super) struct Turn<'t> {
    pub(super) out: &'t mut dyn Outboxes,
    pub(super) now: Nanos,
    pub(super) shard: u16,
    /// Connections of this shard whose blocked command was answered.
    pub(super) unblocked: Vec<ConnectionId>,
}

/// The refusal of a command, in the words of Redis.
pub(super) struct Refusal(pub(super) String);

impl From<&str> for Refusal {
    fn from(text: &str) -> Refusal {
        Refusal(text.to_owned())
    }
}
