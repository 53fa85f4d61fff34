//! Messages too large to be held completely in a server's memory, passing through it: input is
//! forwarded at once to the listeners, and the sender waits for the slowest of them.
//!
//! While a message passes to a connection, other output to it is kept until the message is
//! complete. If a sender is lost before the end, the connections of its listeners are closed, since
//! a message without its end cannot be marked as such.

use std::collections::HashMap;

use weigh_model::mark::Reading;
use weigh_model::pieces::BodyReader;
use weigh_model::server::{ConnectionId, Outboxes, Record};

/// A body beyond this is never whole in a server's memory.
pub const WHOLE_BYTES_MAX: u64 = 16 << 20;

/// From this size on, a message without listeners needs no memory.
pub const UNHEARD_BYTES_MAX: u64 = 64 << 10;

/// The messages that pass through one shard of a server. `T` is what the protocol needs to know
/// about a
/// message at its end.
pub struct PassThroughs<T> {
    passages: HashMap<ConnectionId, Passage<T>>,
    listeners: HashMap<ConnectionId, Listener>,
    /// Senders that wait until their listeners are free.
    waiting: Vec<ConnectionId>,
}

/// A connection to which a message passes.
struct Listener {
    from: ConnectionId,
    /// Output that follows the message.
    kept: Vec<u8>,
    /// True if the server wants to know when it may send more to it.
    awaits_drain: bool,
}

struct Passage<T> {
    about: T,
    reader: BodyReader,
    left: u64,
    to: Vec<ConnectionId>,
    is_held: bool,
    /// True once a part of it has arrived.
    is_begun: bool,
}

/// A message that has passed.
pub struct Passed<T> {
    /// State of the protocol for it.
    pub about: T,
    /// Result of reading its body.
    pub reading: Reading,
    /// Its receivers.
    pub to: Vec<ConnectionId>,
}

impl<T> Default for PassThroughs<T> {
    fn default() -> PassThroughs<T> {
        PassThroughs { passages: HashMap::new(), listeners: HashMap::new(), waiting: Vec::new() }
    }
}

impl<T> PassThroughs<T> {
    /// True while nothing passes: then no further check is needed.
    pub fn is_idle(&self) -> bool {
        self.passages.is_empty() && self.waiting.is_empty()
    }

    /// True while a message from this connection passes.
    pub fn is_sender(&self, connection: ConnectionId) -> bool {
        self.passages.contains_key(&connection)
    }

    /// True while a message passes to this connection.
    pub fn is_listener(&self, connection: ConnectionId) -> bool {
        self.listeners.contains_key(&connection)
    }

    /// A message of `bytes` bytes begins to pass from `from` to `to`, whose heads are staged.
    pub fn begin(&mut self, from: ConnectionId, to: Vec<ConnectionId>, bytes: u64, about: T) {
        for listener in &to {
            let own = Listener { from, kept: Vec::new(), awaits_drain: false };
            self.listeners.insert(*listener, own);
        }
        let reader = BodyReader::default();
        let (is_held, is_begun) = (false, false);
        self.passages.insert(from, Passage { about, reader, left: bytes, to, is_held, is_begun });
    }

    /// `from` has to wait: those who would listen to its message are busy with another.
    pub fn wait(&mut self, from: ConnectionId, out: &mut dyn Outboxes) {
        if !self.waiting.contains(&from) {
            self.waiting.push(from);
        }
        out.hold(from);
    }

    /// Takes the available part of the message from `from`. Returns its number of bytes.
    pub fn take(&mut self, from: ConnectionId, input: &[u8], out: &mut dyn Outboxes) -> usize {
        let Some(passage) = self.passages.get_mut(&from) else { return 0 };
        let here = input.len().min(usize::try_from(passage.left).unwrap_or(usize::MAX));
        let piece = &input[..here];
        passage.reader.take(piece);
        passage.left -= here as u64;
        let is_first = !std::mem::replace(&mut passage.is_begun, true);
        out.store(Record::Piece { of: from, is_first, body: piece });
        for listener in &passage.to {
            out.stage(*listener).extend_from_slice(piece);
            if out.pending_bytes(*listener) > PENDING_BYTES_MAX {
                out.notify_drained(*listener);
                passage.is_held = true;
            }
        }
        if passage.is_held {
            out.hold(from);
        }
        here
    }

    /// The message from `from`, if all of it has passed; the kept output of its listeners is sent.
    pub fn finish(&mut self, from: ConnectionId, out: &mut dyn Outboxes) -> Option<Passed<T>> {
        self.passages.get(&from).filter(|passage| passage.left == 0)?;
        let passage = self.passages.remove(&from)?;
        out.store(Record::End { of: from });
        if passage.is_held {
            out.release(from);
        }
        for listener in &passage.to {
            if let Some(own) = self.listeners.remove(listener) {
                out.stage(*listener).extend_from_slice(&own.kept);
                if own.awaits_drain {
                    out.notify_drained(*listener);
                }
            }
        }
        self.resume(out);
        Some(Passed { about: passage.about, reading: passage.reader.finish(), to: passage.to })
    }

    /// The socket of `listener` accepted everything: its sender continues if no other is behind.
    pub fn drained(&mut self, listener: ConnectionId, out: &mut dyn Outboxes) {
        let Some(Listener { from, .. }) = self.listeners.get(&listener) else { return };
        let from = *from;
        let Some(passage) = self.passages.get_mut(&from) else { return };
        let is_behind = |to: &ConnectionId| out.pending_bytes(*to) > PENDING_BYTES_MAX;
        if passage.is_held && !passage.to.iter().any(is_behind) {
            passage.is_held = false;
            out.release(from);
        }
    }

    /// A connection is gone. What passed from it is given back: it will not arrive.
    pub fn closed(&mut self, connection: ConnectionId, out: &mut dyn Outboxes) -> Option<T> {
        self.waiting.retain(|waiting| *waiting != connection);
        if let Some(Listener { from, .. }) = self.listeners.remove(&connection)
            && let Some(passage) = self.passages.get_mut(&from)
        {
            passage.to.retain(|to| *to != connection);
            let is_behind = |to: &ConnectionId| out.pending_bytes(*to) > PENDING_BYTES_MAX;
            if passage.is_held && !passage.to.iter().any(is_behind) {
                passage.is_held = false;
                out.release(from);
            }
        }
        let passage = self.passages.remove(&connection)?;
        for listener in &passage.to {
            self.listeners.remove(listener);
            out.abort(*listener);
        }
        self.resume(out);
        Some(passage.about)
    }

    /// The engine's side for whatever else is done meanwhile.
    pub fn outboxes<'p>(&'p mut self, out: &'p mut dyn Outboxes) -> PassThroughOutboxes<'p, T> {
        PassThroughOutboxes { passages: self, out }
    }

    /// Waiting senders may try again.
    fn resume(&mut self, out: &mut dyn Outboxes) {
        self.waiting.drain(..).for_each(|waiting| out.release(waiting));
    }
}

/// The engine's side while messages pass: output to their listeners is kept.
pub struct PassThroughOutboxes<'p, T> {
    passages: &'p mut PassThroughs<T>,
    out: &'p mut dyn Outboxes,
}

impl<T> Outboxes for PassThroughOutboxes<'_, T> {
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8> {
        match self.passages.listeners.get_mut(&to) {
            Some(listener) => &mut listener.kept,
            None => self.out.stage(to),
        }
    }

    fn frame(&mut self, to: ConnectionId) {
        self.out.frame(to);
    }

    fn pending_bytes(&self, of: ConnectionId) -> usize {
        // Nothing may be sent to a listener now, so that it looks as if it could take no more.
        match self.passages.listeners.contains_key(&of) {
            true => usize::MAX,
            false => self.out.pending_bytes(of),
        }
    }

    fn notify_drained(&mut self, of: ConnectionId) {
        // Its outbox may be empty all the time that the message passes, and the server would hear
        // of it at once, again and again.
        match self.passages.listeners.get_mut(&of) {
            Some(listener) => listener.awaits_drain = true,
            None => self.out.notify_drained(of),
        }
    }

    fn hold(&mut self, which: ConnectionId) {
        self.out.hold(which);
    }

    fn release(&mut self, which: ConnectionId) {
        self.out.release(which);
    }

    fn close(&mut self, which: ConnectionId) {
        // Nothing follows a message without its end.
        match self.passages.listeners.contains_key(&which) {
            true => self.out.abort(which),
            false => self.out.close(which),
        }
    }

    fn abort(&mut self, which: ConnectionId) {
        self.out.abort(which);
    }

    fn notify_shard(&mut self, shard: u16) {
        self.out.notify_shard(shard);
    }

    fn store(&mut self, record: Record<'_>) {
        self.out.store(record);
    }

    fn stores(&self) -> bool {
        self.out.stores()
    }
}

/// With this number of bytes waiting for a listener, its sender waits until the socket accepted
/// them.
const PENDING_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine that counts what it is asked for.
    #[derive(Default)]
    struct Counts {
        staged: Vec<u8>,
        notified: Vec<ConnectionId>,
    }

    impl Outboxes for Counts {
        fn stage(&mut self, _: ConnectionId) -> &mut Vec<u8> {
            &mut self.staged
        }

        fn frame(&mut self, _: ConnectionId) {}

        fn pending_bytes(&self, _: ConnectionId) -> usize {
            0
        }

        fn notify_drained(&mut self, of: ConnectionId) {
            self.notified.push(of);
        }

        fn hold(&mut self, _: ConnectionId) {}

        fn release(&mut self, _: ConnectionId) {}

        fn close(&mut self, _: ConnectionId) {}

        fn abort(&mut self, _: ConnectionId) {}

        fn notify_shard(&mut self, _: u16) {}

        fn store(&mut self, _: Record<'_>) {}

        fn stores(&self) -> bool {
            false
        }
    }

    /// Who waits for a listener hears of it once, after the message, although the outbox is empty
    /// all the time.
    #[test]
    fn a_listener_is_free_after_the_message_and_not_before() {
        let (from, to) = (ConnectionId(1), ConnectionId(2));
        let (mut passages, mut out) = (PassThroughs::default(), Counts::default());
        passages.begin(from, vec![to], 4, ());
        for _ in 0..3 {
            let mut during = passages.outboxes(&mut out);
            assert_eq!(during.pending_bytes(to), usize::MAX);
            during.notify_drained(to);
            during.stage(to).extend_from_slice(b"later");
            during.notify_drained(from);
        }
        assert_eq!(out.notified, [from; 3], "the sender is no listener");
        assert_eq!(passages.take(from, b"body", &mut out), 4);
        assert!(passages.finish(from, &mut out).is_some());
        assert_eq!(out.notified, [from, from, from, to]);
        assert_eq!(out.staged, b"bodylaterlaterlater");
    }
}
