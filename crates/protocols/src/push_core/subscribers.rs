//! The subscribers of one shard, and how events reach them.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use weigh_model::server::{ConnectionId, Outboxes};

use super::channel::Event;
use super::hub::Hub;
use super::slow::{QUEUE_FULL, Slow};
use crate::server_counts::ServerCounts;

/// The subscribers of one shard.
#[derive(Debug)]
pub(crate) struct Subscribers {
    hub: Arc<Hub>,
    shard: u16,
    slow: Slow,
    by_channel: HashMap<u32, Vec<Subscriber>>,
    /// Subscribers that were disconnected because they did not read.
    disconnects: u64,
}

/// Form in which events leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Plain,
    /// Each as a chunk of HTTP/1.1 (RFC 9112, section 7.1).
    Chunk,
}

#[derive(Debug)]
struct Subscriber {
    connection: ConnectionId,
    form: Form,
    /// Events up to this one are not for it.
    after: u64,
    /// True if something was sent since the last [`Subscribers::keep_alive`].
    has_heard: bool,
}

/// The engine's side, and the counts.
pub(crate) struct Turn<'t> {
    pub(crate) out: &'t mut dyn Outboxes,
    pub(crate) counts: &'t mut ServerCounts,
}

impl Subscribers {
    pub(crate) fn new(hub: Arc<Hub>, shard: u16, slow: Slow) -> Subscribers {
        Subscribers { hub, shard, slow, by_channel: HashMap::new(), disconnects: 0 }
    }

    /// Subscribers that were disconnected because they did not read.
    pub(crate) fn disconnects(&self) -> u64 {
        self.disconnects
    }

    /// True if this shard has any.
    pub(crate) fn are_there(&self) -> bool {
        !self.by_channel.is_empty()
    }

    /// Adds a subscriber. One that comes back gets the events behind `after` first, as far as they
    /// are kept.
    pub(crate) fn add(
        &mut self,
        connection: ConnectionId,
        channel: u32,
        form: Form,
        after: Option<u64>,
        turn: &mut Turn<'_>,
    ) {
        let (last, events, missed) = self.hub.enter(channel, self.shard, after);
        turn.counts.note_dropped_many(HISTORY_OVERFLOW, missed);
        turn.counts.note_forwarded(events.len() as u64);
        let out = turn.out.stage(connection);
        events.iter().for_each(|event| put(form, &event.bytes, out));
        let own = Subscriber { connection, form, after: last, has_heard: true };
        self.by_channel.entry(channel).or_default().push(own);
    }

    /// Removes a subscriber, if it is one.
    pub(crate) fn remove(&mut self, connection: ConnectionId, channel: u32) {
        let Some(own) = self.by_channel.get_mut(&channel) else { return };
        let before = own.len();
        own.retain(|one| one.connection != connection);
        let left = own.len();
        if left < before {
            self.hub.leave(channel, self.shard);
        }
        if left == 0 {
            self.by_channel.remove(&channel);
        }
    }

    /// Hands a message to the subscribers of a channel on all shards, and returns their number.
    /// `encode` gets the number of the event.
    pub(crate) fn publish(
        &mut self,
        channel: u32,
        turn: &mut Turn<'_>,
        encode: impl FnOnce(u64, &mut Vec<u8>),
    ) -> u64 {
        let published = self.hub.publish(channel, self.shard, encode);
        published.shards.iter().for_each(|shard| turn.out.notify_shard(*shard));
        turn.counts.note_dropped_many(QUEUE_FULL, published.dropped);
        if let Some(event) = &published.event {
            self.deliver(event, turn);
        }
        published.receivers
    }

    /// Delivers what other shards left for this one.
    pub(crate) fn deliver_mail(&mut self, turn: &mut Turn<'_>) {
        for event in self.hub.take_mail(self.shard) {
            self.deliver(&event, turn);
        }
    }

    fn deliver(&mut self, event: &Event, turn: &mut Turn<'_>) {
        let Some(own) = self.by_channel.get_mut(&event.channel) else { return };
        let (mut forwarded, mut cut) = (0, Vec::new());
        for one in own.iter_mut().filter(|one| one.after < event.id) {
            let waiting = turn.out.pending_bytes(one.connection);
            if waiting.saturating_add(event.bytes.len()) > self.slow.bytes_max {
                // What is kept, a subscriber that is cut off may come back for.
                if !self.slow.disconnects || !self.hub.keeps_events() {
                    turn.counts.note_dropped(QUEUE_FULL);
                }
                if self.slow.disconnects {
                    cut.push(one.connection);
                }
                continue;
            }
            put(one.form, &event.bytes, turn.out.stage(one.connection));
            one.has_heard = true;
            forwarded += 1;
        }
        turn.counts.note_forwarded(forwarded);
        for connection in cut {
            self.remove(connection, event.channel);
            self.disconnects += 1;
            turn.out.abort(connection);
        }
    }

    /// Sends `bytes` to each subscriber that got nothing since the last call.
    pub(crate) fn keep_alive(&mut self, bytes: &[u8], out: &mut dyn Outboxes) {
        for one in self.by_channel.values_mut().flatten() {
            if !std::mem::replace(&mut one.has_heard, false) {
                put(one.form, bytes, out.stage(one.connection));
            }
        }
    }
}

/// Appends bytes in a form.
pub(crate) fn put(form: Form, bytes: &[u8], out: &mut Vec<u8>) {
    match form {
        Form::Plain => out.extend_from_slice(bytes),
        Form::Chunk => {
            out.reserve(bytes.len() + CHUNK_BYTES_MAX);
            // Writing to memory does not fail.
            let _ = write!(out, "{:x}\r\n", bytes.len());
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Cause of events that a subscriber came back for and that were no longer kept.
const HISTORY_OVERFLOW: &str = "history_overflow";

/// Size and line ends of a chunk.
const CHUNK_BYTES_MAX: usize = 16 + 4;
