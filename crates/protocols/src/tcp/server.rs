//! The reference server: receives messages, answers them, and forwards each to the consumers
//! that subscribe to its producer, on this shard and on the others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ConnectionId, Outboxes, Record, Server, ServerReport};

use super::codec::{self, EVERYONE, Frame, Head};
use crate::pass_through::{PassThroughs, UNHEARD_BYTES_MAX, WHOLE_BYTES_MAX};
use crate::server_counts::ServerCounts;

/// State shared by the shards of one server: where to leave messages for each other's consumers.
#[derive(Clone, Default)]
pub(super) struct Exchange {
    boxes: Arc<RwLock<Vec<Arc<Mailbox>>>>,
    /// Consumers on all shards.
    consumers: Arc<AtomicU32>,
}

#[derive(Default)]
struct Mailbox {
    shard: u16,
    consumers: AtomicU32,
    /// Deliveries as frames, one behind the other.
    frames: Mutex<Vec<u8>>,
}

/// All connections of one shard.
pub(super) struct TcpServer {
    own: Arc<Mailbox>,
    exchange: Exchange,
    peers: Vec<Peer>,
    consumers: Vec<Consumer>,
    census: ServerCounts,
    passages: PassThroughs<Passing>,
    frame_bytes_max: usize,
    queue_bytes_max: usize,
}

/// A message that passes through.
#[derive(Clone, Copy)]
struct Passing {
    head: Head,
    is_heard: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Peer {
    Plain,
    Producer(u32),
    Consumer,
}

struct Consumer {
    connection: ConnectionId,
    /// The producer it listens to, or [`EVERYONE`].
    producer: u32,
}

impl TcpServer {
    pub(super) fn new(
        shard: u16,
        exchange: Exchange,
        frame_bytes_max: usize,
        queue_bytes_max: usize,
    ) -> TcpServer {
        let own = Arc::new(Mailbox { shard, ..Mailbox::default() });
        exchange.boxes.write().unwrap_or_else(PoisonError::into_inner).push(own.clone());
        TcpServer {
            own,
            exchange,
            peers: Vec::new(),
            consumers: Vec::new(),
            census: ServerCounts::default(),
            passages: PassThroughs::default(),
            frame_bytes_max,
            queue_bytes_max,
        }
    }

    fn take(
        &mut self,
        from: ConnectionId,
        frame: Frame<'_>,
        out: &mut dyn Outboxes,
    ) -> Result<(), Fault> {
        match frame.kind {
            codec::MESSAGE => {
                self.census.note(frame.body);
                self.publish(from, frame.body, out);
            }
            codec::ASK => {
                self.census.note(frame.body);
                out.store(Record::Message { name: &[], body: frame.body });
                let is_heard = self.publish(from, frame.body, out);
                let answer = if is_heard { codec::ACKNOWLEDGED } else { codec::NO_SUBSCRIBER };
                codec::write(out.stage(from), answer, frame.id, b"");
            }
            codec::ECHO => {
                self.census.note(frame.body);
                out.store(Record::Message { name: &[], body: frame.body });
                self.publish(from, frame.body, out);
                codec::write(out.stage(from), codec::ECHOED, frame.id, frame.body);
            }
            codec::HELLO => self.become_producer(from, frame.id)?,
            codec::SUBSCRIBE => {
                self.subscribe(from, frame.id)?;
                codec::write(out.stage(from), codec::SUBSCRIBED, frame.id, b"");
            }
            kind => {
                let text = format!("a frame of kind {kind:#04x}, which clients do not send");
                return Err(Fault::Malformed(text));
            }
        }
        Ok(())
    }

    /// Handles input while messages may be passing through.
    fn take_frame(
        &mut self,
        from: ConnectionId,
        frame: Frame<'_>,
        out: &mut dyn Outboxes,
    ) -> Result<(), Fault> {
        if self.passages.is_idle() {
            return self.take(from, frame, out);
        }
        let mut passages = std::mem::take(&mut self.passages);
        let result = self.take(from, frame, &mut passages.outboxes(out));
        self.passages = passages;
        result
    }

    /// Begins to pass on a message of which `input` is the beginning, if it is too large to be
    /// waited for: how many bytes that took.
    fn begin_passage(
        &mut self,
        from: ConnectionId,
        input: &[u8],
        out: &mut dyn Outboxes,
    ) -> Option<usize> {
        let head = codec::read_head(input)?;
        let consumers = self.exchange.consumers.load(Ordering::Acquire);
        let most = if consumers == 0 { UNHEARD_BYTES_MAX } else { WHOLE_BYTES_MAX };
        let passes = matches!(head.kind, codec::MESSAGE | codec::ASK);
        if !passes || u64::from(head.body_bytes) <= most {
            return None;
        }
        let producer = match self.peer(from) {
            Peer::Producer(producer) => producer,
            _ => EVERYONE,
        };
        let hears = |of: &&Consumer| of.producer == EVERYONE || of.producer == producer;
        let to = self.consumers.iter().filter(hears).map(|of| of.connection);
        let to: Vec<ConnectionId> = to.collect();
        if to.iter().any(|listener| self.passages.is_listener(*listener)) {
            self.passages.wait(from, out);
            return None;
        }
        // What is never whole cannot be left for another shard.
        let elsewhere = consumers as usize - self.consumers.len();
        (0..elsewhere).for_each(|_| self.census.note_dropped("too_large_for_other_shard"));
        for listener in &to {
            let kind = codec::DELIVERED;
            codec::write_head(out.stage(*listener), Head { kind, id: producer, ..head });
        }
        let is_plain = self.peer(from) == Peer::Plain;
        let passing = Passing { head, is_heard: !to.is_empty() || elsewhere > 0 || is_plain };
        self.passages.begin(from, to, u64::from(head.body_bytes), passing);
        Some(codec::HEAD_BYTES)
    }

    /// Passes on the available part of a message. Returns its number of bytes, and whether it was
    /// all.
    fn pass_on(
        &mut self,
        from: ConnectionId,
        input: &[u8],
        out: &mut dyn Outboxes,
    ) -> (usize, bool) {
        let taken = self.passages.take(from, input, out);
        let Some(passed) = self.passages.finish(from, out) else { return (taken, false) };
        self.census.note_reading(passed.reading);
        self.census.note_forwarded(passed.to.len() as u64);
        let Passing { head, is_heard } = passed.about;
        if head.kind == codec::ASK {
            let answer = if is_heard { codec::ACKNOWLEDGED } else { codec::NO_SUBSCRIBER };
            codec::write(out.stage(from), answer, head.id, b"");
        }
        (taken, true)
    }

    fn become_producer(&mut self, from: ConnectionId, index: u32) -> Result<(), Fault> {
        match self.peer(from) {
            Peer::Plain if index != EVERYONE => {
                self.peers[from.0 as usize] = Peer::Producer(index);
                Ok(())
            }
            Peer::Plain => Err(Fault::Malformed("a producer without an index".to_owned())),
            _ => Err(Fault::Malformed("a second greeting on one connection".to_owned())),
        }
    }

    fn subscribe(&mut self, from: ConnectionId, producer: u32) -> Result<(), Fault> {
        if self.peer(from) != Peer::Plain {
            return Err(Fault::Malformed("a second greeting on one connection".to_owned()));
        }
        self.peers[from.0 as usize] = Peer::Consumer;
        self.consumers.push(Consumer { connection: from, producer });
        self.own.consumers.fetch_add(1, Ordering::AcqRel);
        self.exchange.consumers.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn peer(&self, connection: ConnectionId) -> Peer {
        self.peers.get(connection.0 as usize).copied().unwrap_or(Peer::Plain)
    }

    /// Forwards a message; false if it came from a producer and had no consumer. Any consumer on
    /// other shards counts, since only they know their subscriptions.
    fn publish(&mut self, from: ConnectionId, body: &[u8], out: &mut dyn Outboxes) -> bool {
        let Peer::Producer(producer) = self.peer(from) else {
            if self.exchange.consumers.load(Ordering::Acquire) > 0 {
                self.forward(EVERYONE, body, out);
                self.post(EVERYONE, body, out);
            }
            return true;
        };
        let is_heard_here = self.forward(producer, body, out);
        let is_heard_elsewhere = self.post(producer, body, out);
        is_heard_here || is_heard_elsewhere
    }

    /// Stages a message for the consumers of this shard; false if none listens.
    fn forward(&mut self, producer: u32, body: &[u8], out: &mut dyn Outboxes) -> bool {
        let mut listeners = 0;
        let mut forwarded = 0;
        let frame_bytes = codec::HEAD_BYTES + body.len();
        for consumer in &self.consumers {
            if consumer.producer != EVERYONE && consumer.producer != producer {
                continue;
            }
            listeners += 1;
            let queued_bytes = out.pending_bytes(consumer.connection);
            if queued_bytes.saturating_add(frame_bytes) > self.queue_bytes_max {
                self.census.note_dropped("queue_full");
                continue;
            }
            codec::write(out.stage(consumer.connection), codec::DELIVERED, producer, body);
            forwarded += 1;
        }
        self.census.note_forwarded(forwarded);
        listeners > 0
    }

    /// Leaves a message for the consumers of other shards; false if there are none.
    fn post(&mut self, producer: u32, body: &[u8], out: &mut dyn Outboxes) -> bool {
        let here = self.consumers.len() as u32;
        if self.exchange.consumers.load(Ordering::Acquire) == here {
            return false;
        }
        let boxes = self.exchange.boxes.read().unwrap_or_else(PoisonError::into_inner);
        let mut is_posted = false;
        for other in boxes.iter().filter(|other| !Arc::ptr_eq(other, &self.own)) {
            if other.consumers.load(Ordering::Acquire) == 0 {
                continue;
            }
            let mut frames = other.frames.lock().unwrap_or_else(PoisonError::into_inner);
            is_posted = true;
            if frames.len().saturating_add(body.len()) > self.queue_bytes_max {
                self.census.note_dropped("queue_full");
                continue;
            }
            let was_empty = frames.is_empty();
            codec::write(&mut frames, codec::DELIVERED, producer, body);
            if was_empty {
                out.notify_shard(other.shard);
            }
        }
        is_posted
    }
}

impl Server for TcpServer {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        let index = connection.0 as usize;
        if index >= self.peers.len() {
            self.peers.resize(index + 1, Peer::Plain);
        }
        self.peers[index] = Peer::Plain;
        self.census.note_connection();
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        loop {
            if !self.passages.is_idle() && self.passages.is_sender(connection) {
                let (bytes, is_over) = self.pass_on(connection, &input[taken..], out);
                taken += bytes;
                if !is_over {
                    return Ok(taken);
                }
            }
            while let Some((frame, bytes)) = codec::read(&input[taken..], self.frame_bytes_max)? {
                self.take_frame(connection, frame, out)?;
                taken += bytes;
            }
            match self.begin_passage(connection, &input[taken..], out) {
                Some(bytes) => taken += bytes,
                None => return Ok(taken),
            }
        }
    }

    fn drained(&mut self, connection: ConnectionId, _now: Nanos, out: &mut dyn Outboxes) {
        self.passages.drained(connection, out);
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, out: &mut dyn Outboxes) {
        self.passages.closed(connection, out);
        if self.peer(connection) == Peer::Consumer {
            self.consumers.retain(|consumer| consumer.connection != connection);
            self.own.consumers.fetch_sub(1, Ordering::AcqRel);
            self.exchange.consumers.fetch_sub(1, Ordering::AcqRel);
        }
        if let Some(peer) = self.peers.get_mut(connection.0 as usize) {
            *peer = Peer::Plain;
        }
    }

    fn notified(&mut self, _now: Nanos, out: &mut dyn Outboxes) {
        let mut frames = self.own.frames.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut *frames);
        drop(frames);
        let mut passages = std::mem::take(&mut self.passages);
        let mut rest = &taken[..];
        while let Ok(Some((frame, bytes))) = codec::read(rest, usize::MAX) {
            self.forward(frame.id, frame.body, &mut passages.outboxes(out));
            rest = &rest[bytes..];
        }
        self.passages = passages;
    }

    fn report(&self) -> ServerReport {
        self.census.report()
    }
}
