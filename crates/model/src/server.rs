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
    }

    /// Returns what was counted after `before`, an earlier report of the same server. Queues are as
    /// they are now.
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
        }
    }
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
            ..ServerReport::default()
        };
        let mut after = before.clone();
        after.add(&ServerReport {
            received: 7,
            unique: 7,
            dropped: [("queue_full".to_owned(), 4)].into(),
            ..ServerReport::default()
        });
        let since = after.since(&before);
        assert_eq!((since.received, since.unique, since.queued), (7, 7, 3));
        assert_eq!(since.dropped, [("queue_full".to_owned(), 4)].into());
        assert_eq!(after.since(&ServerReport::default()), after);
    }
}
