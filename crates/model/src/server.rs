//! The server's end: all connections of one shard as one pure state machine, on the same loop and
//! in the same style as the connections, so that two reference servers differ in the protocol and
//! not in the implementation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::connection::Fault;
use crate::units::Nanos;

/// Identifies a connection of one shard while it is open; numbers are reused. Over datagrams it
/// identifies a peer: an address from which something arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// What is kept for each connection of a shard, by its number.
#[derive(Clone, Debug)]
pub struct ById<T>(Vec<Option<T>>);

impl<T> Default for ById<T> {
    fn default() -> ById<T> {
        ById(Vec::new())
    }
}

impl<T> ById<T> {
    /// Keeps `own` for a connection, instead of what was there.
    pub fn put(&mut self, of: ConnectionId, own: T) {
        let at = of.0 as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = Some(own);
    }

    /// What is kept for a connection.
    #[inline]
    pub fn get(&self, of: ConnectionId) -> Option<&T> {
        self.0.get(of.0 as usize)?.as_ref()
    }

    /// What is kept for a connection, to change it.
    #[inline]
    pub fn get_mut(&mut self, of: ConnectionId) -> Option<&mut T> {
        self.0.get_mut(of.0 as usize)?.as_mut()
    }

    /// Takes what is kept for a connection.
    pub fn remove(&mut self, of: ConnectionId) -> Option<T> {
        self.0.get_mut(of.0 as usize)?.take()
    }

    /// The numbers of all connections so far, open or not.
    pub fn ids(&self) -> impl Iterator<Item = ConnectionId> + use<T> {
        (0..self.0.len() as u32).map(ConnectionId)
    }
}

/// Outboxes of a server's connections, and control of their sockets; the engine provides them.
pub trait Outboxes {
    /// The bytes staged for a connection in this turn; append to it. They are handed to the
    /// socket when the whole ready batch has been read.
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8>;

    /// Ends a frame of what is staged for a connection: it leaves as one datagram, as with
    /// [`crate::connection::Outbox::frame`].
    fn frame(&mut self, to: ConnectionId);

    /// Bytes of this connection that the socket has not taken yet, staged ones included.
    fn pending_bytes(&self, of: ConnectionId) -> usize;

    /// Asks for [`Server::drained`] once the socket has taken everything.
    fn notify_drained(&mut self, of: ConnectionId);

    /// Reads nothing more from this connection until [`Outboxes::release`]: its peer has to wait.
    /// Input already read in this turn is still delivered.
    fn hold(&mut self, which: ConnectionId);

    /// Reads again from a connection that was held.
    fn release(&mut self, which: ConnectionId);

    /// Closes once the staged bytes are sent; nothing more is read.
    fn close(&mut self, which: ConnectionId);

    /// Closes at once; staged bytes are discarded.
    fn abort(&mut self, which: ConnectionId);

    /// Makes another shard call [`Server::notified`].
    fn notify_shard(&mut self, shard: u16);

    /// Stores a message, or a part of one, before anything that is staged in this turn is sent.
    /// Call it for each message that is confirmed; the confirmation may be staged at once. Without
    /// a store (durability `memory`) it has no effect.
    fn store(&mut self, record: Record<'_>);

    /// True if [`Outboxes::store`] has an effect, so that copies for it are worth making.
    fn stores(&self) -> bool;
}

/// What a server stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A whole message.
    Message {
        /// Its topic, path or method; at most 65,535 bytes are stored.
        name: &'a [u8],
        /// Its body.
        body: &'a [u8],
    },
    /// The next part of a message that is never in memory as a whole.
    Piece {
        /// The connection that sends it. A message of another connection may be in between.
        of: ConnectionId,
        /// True for the first part. Earlier parts of the connection without an end are void.
        is_first: bool,
        /// The part.
        body: &'a [u8],
    },
    /// The pieces of this connection so far are one whole message.
    End {
        /// The connection.
        of: ConnectionId,
    },
}

/// All server connections of one shard. [`Server::closed`] follows every accept exactly once.
pub trait Server: Send {
    /// A client connected.
    fn accepted(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes);

    /// Takes what it can of `input` and returns how many bytes that was; the remainder comes again
    /// with more after it. An error closes the connection once staged bytes are sent. Never panics,
    /// whatever the bytes.
    ///
    /// # Errors
    /// Bytes that the protocol does not allow.
    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault>;

    /// The socket took everything that was staged, after [`Outboxes::notify_drained`].
    fn drained(&mut self, _connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {}

    /// The connection is gone, whichever side ended it.
    fn closed(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes);

    /// Called once at the start and whenever the time it returned has come.
    fn wake(&mut self, _now: Nanos, _out: &mut dyn Outboxes) -> Option<Nanos> {
        None
    }

    /// Returns the time at which [`Server::wake`] is to be called at the latest because of input
    /// since then; asked after every turn.
    fn next_wake(&self) -> Option<Nanos> {
        None
    }

    /// Another shard has left something for this one.
    fn notified(&mut self, _now: Nanos, _out: &mut dyn Outboxes) {}

    /// Returns the counts of this shard.
    fn report(&self) -> ServerReport;
}

/// The cause in [`ServerReport::dropped`] of datagrams that the kernel dropped because a receive
/// queue was full: the server never saw them.
pub const RECEIVE_QUEUE_FULL: &str = "receive_queue_full";

/// The cause in [`ServerReport::dropped`] of messages that waited for a subscriber whose connection
/// ended.
pub const SUBSCRIBER_DISCONNECTED: &str = "subscriber_disconnected";

/// A server's own counts, by identity if bodies carry it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Connections accepted.
    pub connections: u64,
    /// Messages received, of any kind.
    pub received: u64,
    /// Different messages with a whole mark of the measured window, over all producers.
    pub unique: u64,
    /// Further arrivals of messages that had arrived before.
    pub duplicates: u64,
    /// Messages with a mark and a failing check.
    pub corrupt: u64,
    /// Messages without a mark.
    pub foreign: u64,
    /// Messages of a warm-up.
    pub warmup: u64,
    /// Copies handed to subscribers.
    pub forwarded: u64,
    /// Everything dropped, by cause: `queue_full`, `subscriber_disconnected`, and so on.
    pub dropped: BTreeMap<String, u64>,
    /// Subscribers the server itself disconnected because of its overload policy.
    pub disconnects: u64,
    /// Messages in queues now.
    pub queued: u64,
    /// Bytes of memory held for messages in queues now.
    pub queued_bytes: u64,
    /// Sockets at which the kernel refuses to cut runs of datagrams, as it was asked to.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncut_sockets: u64,
    /// What was stored; absent without a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreCounts>,
}

/// Counts of a server's store, an append-only file for each shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreCounts {
    /// Records appended: messages, and parts of large ones.
    pub records: u64,
    /// Bytes appended, with the heads of the records.
    pub bytes: u64,
    /// Calls of write(2).
    pub writes: u64,
    /// Calls of fdatasync(2) that succeeded.
    pub syncs: u64,
    /// Time in write(2), nanoseconds.
    pub write_ns: u64,
    /// Time in fdatasync(2), nanoseconds.
    pub sync_ns: u64,
}

impl StoreCounts {
    /// Applies `both` to each count of this one and of another.
    fn with(self, other: StoreCounts, both: impl Fn(u64, u64) -> u64) -> StoreCounts {
        StoreCounts {
            records: both(self.records, other.records),
            bytes: both(self.bytes, other.bytes),
            writes: both(self.writes, other.writes),
            syncs: both(self.syncs, other.syncs),
            write_ns: both(self.write_ns, other.write_ns),
            sync_ns: both(self.sync_ns, other.sync_ns),
        }
    }
}

impl ServerReport {
    /// Adds the count of another shard.
    pub fn add(&mut self, other: &ServerReport) {
        self.connections += other.connections;
        self.received += other.received;
        self.unique += other.unique;
        self.duplicates += other.duplicates;
        self.corrupt += other.corrupt;
        self.foreign += other.foreign;
        self.warmup += other.warmup;
        self.forwarded += other.forwarded;
        for (cause, count) in &other.dropped {
            *self.dropped.entry(cause.clone()).or_default() += count;
        }
        self.disconnects += other.disconnects;
        self.queued += other.queued;
        self.queued_bytes += other.queued_bytes;
        self.uncut_sockets += other.uncut_sockets;
        if let Some(other) = other.store {
            self.store = Some(self.store.unwrap_or_default().with(other, |own, other| own + other));
        }
    }

    /// Returns what was counted after `before`, an earlier report of the same server. Queues and
    /// sockets are as they are now.
    pub fn since(&self, before: &ServerReport) -> ServerReport {
        let dropped = self.dropped.iter().map(|(cause, count)| {
            let earlier = before.dropped.get(cause).copied().unwrap_or(0);
            (cause.clone(), count.saturating_sub(earlier))
        });
        ServerReport {
            connections: self.connections.saturating_sub(before.connections),
            received: self.received.saturating_sub(before.received),
            unique: self.unique.saturating_sub(before.unique),
            duplicates: self.duplicates.saturating_sub(before.duplicates),
            corrupt: self.corrupt.saturating_sub(before.corrupt),
            foreign: self.foreign.saturating_sub(before.foreign),
            warmup: self.warmup.saturating_sub(before.warmup),
            forwarded: self.forwarded.saturating_sub(before.forwarded),
            dropped: dropped.filter(|(_, count)| *count > 0).collect(),
            disconnects: self.disconnects.saturating_sub(before.disconnects),
            queued: self.queued,
            queued_bytes: self.queued_bytes,
            uncut_sockets: self.uncut_sockets,
            store: self
                .store
                .map(|own| own.with(before.store.unwrap_or_default(), u64::saturating_sub)),
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_since_another_holds_what_came_after_it() {
        let before = ServerReport {
            received: 5,
            unique: 4,
            dropped: [("queue_full".to_owned(), 2), ("other".to_owned(), 1)].into(),
            queued: 3,
            store: Some(StoreCounts { records: 3, syncs: 2, ..StoreCounts::default() }),
            ..ServerReport::default()
        };
        let mut after = before.clone();
        after.add(&ServerReport {
            received: 7,
            unique: 7,
            dropped: [("queue_full".to_owned(), 4)].into(),
            store: Some(StoreCounts { records: 4, syncs: 1, ..StoreCounts::default() }),
            ..ServerReport::default()
        });
        let since = after.since(&before);
        assert_eq!((since.received, since.unique, since.queued), (7, 7, 3));
        assert_eq!(since.dropped, [("queue_full".to_owned(), 4)].into());
        let stored = StoreCounts { records: 4, syncs: 1, ..StoreCounts::default() };
        assert_eq!(since.store, Some(stored));
        assert_eq!(after.since(&ServerReport::default()), after);
    }
}
