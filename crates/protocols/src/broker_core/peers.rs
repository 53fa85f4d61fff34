//! The connections of one shard.

use weigh_model::server::{ById, ConnectionId};

use super::place::Place;

/// What a shard keeps for each of its connections.
#[derive(Debug)]
pub(crate) struct Peers<P> {
    pub(crate) shard: u16,
    /// Connections so far.
    pub(crate) accepted: u64,
    each: ById<P>,
}

impl<P> Peers<P> {
    pub(crate) fn new(shard: u16) -> Peers<P> {
        Peers { shard, accepted: 0, each: ById::default() }
    }

    /// A client connected: keeps what is made for its place, which is returned.
    pub(crate) fn accept(
        &mut self,
        connection: ConnectionId,
        make: impl FnOnce(Place) -> P,
    ) -> Place {
        self.accepted += 1;
        let place = Place { shard: self.shard, connection, serial: self.accepted as u32 };
        self.each.put(connection, make(place));
        place
    }

    #[inline]
    pub(crate) fn get(&mut self, of: ConnectionId) -> Option<&mut P> {
        self.each.get_mut(of)
    }

    /// The connection is gone.
    pub(crate) fn remove(&mut self, of: ConnectionId) -> Option<P> {
        self.each.remove(of)
    }

    /// The numbers of all connections so far, open or not.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnectionId> + use<P> {
        self.each.ids()
    }
}
