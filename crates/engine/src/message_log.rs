//! The record of single messages, as the generator makes it: shards note the events of each
//! message, in chunks that a thread of the runner turns into rows. Between the due time of a
//! message and the kernel, nothing is noted except into memory that is already there; chunks change
//! hands at the end of a shard's step. If the reader falls behind, shards wait for it, and the wait
//! is counted: a record with gaps would contradict the ledger.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Instant;

use weigh_model::Nanos;
use weigh_model::ledger::{Cause, NotSentCause};

/// Something that happened to a message of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageEvent {
    /// It was handed to the transport.
    Sent {
        /// Its producer, over all shards.
        producer: u32,
        /// Number of connections that its producer had opened before this one.
        connection: u32,
        /// Its number at its producer.
        number: u64,
        /// Due time.
        due: Nanos,
        /// Time at which it was handed over.
        sent: Nanos,
        /// Part of the time between the two that was the generator's own lateness.
        own_lag: Nanos,
        /// Bytes of its body.
        body_bytes: u32,
    },
    /// The server confirmed it.
    Confirmed {
        /// Its producer.
        producer: u32,
        /// Its number.
        number: u64,
        /// Time of the confirmation.
        at: Nanos,
    },
    /// Its flight ended without success.
    Failed {
        /// Its producer.
        producer: u32,
        /// Its number.
        number: u64,
        /// Time of the server's error answer; [`Nanos::NEVER`] if it did not answer.
        at: Nanos,
        /// Cause of the failure.
        cause: Cause,
    },
    /// A consumer got it for the first time.
    Arrived {
        /// The consumer, over all shards.
        consumer: u32,
        /// Its producer.
        producer: u32,
        /// Its number.
        number: u64,
        /// Time of the arrival.
        at: Nanos,
        /// True after the timeout.
        is_late: bool,
    },
    /// Messages that were due and never sent.
    NotSent {
        /// Reason for not sending them.
        cause: NotSentCause,
        /// Number of messages.
        count: u64,
    },
}

/// Place where the shards of a trial leave their chunks.
#[derive(Debug)]
pub struct MessageLog {
    sender: SyncSender<Heard>,
    spare: Mutex<Vec<Vec<MessageEvent>>>,
    waits: AtomicU64,
    waited_ns: AtomicU64,
}

/// Event for the reader of a log.
#[derive(Debug)]
pub enum Heard {
    /// Some events of one shard, in their order.
    Events(Vec<MessageEvent>),
    /// There will be no more.
    End,
}

impl MessageLog {
    /// A log and the end that is read. At most [`CHUNKS_WAITING_MAX`] chunks wait in between.
    pub fn new() -> (MessageLog, Receiver<Heard>) {
        let (sender, receiver) = sync_channel(CHUNKS_WAITING_MAX);
        let spare = Mutex::new(Vec::new());
        let (waits, waited_ns) = (AtomicU64::new(0), AtomicU64::new(0));
        (MessageLog { sender, spare, waits, waited_ns }, receiver)
    }

    /// Gives a chunk back that was read, so that its memory is used again.
    pub fn give_back(&self, mut chunk: Vec<MessageEvent>) {
        chunk.clear();
        if let Ok(mut spare) = self.spare.lock()
            && spare.len() < CHUNKS_WAITING_MAX
        {
            spare.push(chunk);
        }
    }

    /// Reports to the reader that all shards are done.
    pub fn end(&self) {
        // A reader that is gone has read what it wanted.
        let _ = self.sender.send(Heard::End);
    }

    /// Returns how long shards have waited for the reader.
    pub fn waited(&self) -> Nanos {
        Nanos(self.waited_ns.load(Ordering::Relaxed))
    }

    /// Adds to how long shards have waited for the reader: those of another host.
    pub fn note_waited(&self, waited: Nanos) {
        self.waited_ns.fetch_add(waited.0, Ordering::Relaxed);
    }

    /// Passes on events that were noted on another host. Nothing is late by this wait.
    pub fn replay(&self, events: Vec<MessageEvent>) {
        if !events.is_empty() {
            // A reader that is gone has read what it wanted.
            let _ = self.sender.send(Heard::Events(events));
        }
    }

    fn hand_over(&self, events: Vec<MessageEvent>) {
        let Err(TrySendError::Full(heard)) = self.sender.try_send(Heard::Events(events)) else {
            return;
        };
        let since = Instant::now();
        self.waits.fetch_add(1, Ordering::SeqCst);
        let _ = self.sender.send(heard);
        let waited_ns = since.elapsed().as_nanos() as u64;
        self.waited_ns.fetch_add(waited_ns, Ordering::Relaxed);
    }

    fn empty_chunk(&self) -> Vec<MessageEvent> {
        let spare = self.spare.lock().ok().and_then(|mut spare| spare.pop());
        spare.unwrap_or_else(|| Vec::with_capacity(CHUNK_CAPACITY))
    }
}

/// The notes of one shard.
#[derive(Debug)]
pub(crate) struct Notes {
    events: Vec<MessageEvent>,
}

impl Notes {
    pub(crate) fn new(log: &MessageLog) -> Notes {
        Notes { events: log.empty_chunk() }
    }

    /// Notes an event; memory is only asked for where one step has more than fit.
    #[inline]
    pub(crate) fn note(&mut self, event: MessageEvent) {
        self.events.push(event);
    }

    /// Hands the notes over once they make a chunk, or all of them if it `is_last`.
    pub(crate) fn hand_over(&mut self, log: &MessageLog, is_last: bool) {
        if self.events.len() >= CHUNK_EVENTS || (is_last && !self.events.is_empty()) {
            let full = std::mem::replace(&mut self.events, log.empty_chunk());
            log.hand_over(full);
        }
    }
}

/// Chunks that may wait for the reader: 64 of 4,096 events of 40 bytes are 10 MB.
pub const CHUNKS_WAITING_MAX: usize = 64;

/// Events after which a chunk is handed over.
const CHUNK_EVENTS: usize = 4096;

/// Events that a chunk has memory for: what one step adds fits as a rule.
const CHUNK_CAPACITY: usize = 2 * CHUNK_EVENTS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_change_hands_whole_and_their_memory_comes_back() {
        let (log, heard) = MessageLog::new();
        let mut notes = Notes::new(&log);
        let event = |number| MessageEvent::Confirmed { producer: 0, number, at: Nanos(number) };
        for number in 0..CHUNK_EVENTS as u64 {
            notes.hand_over(&log, false);
            notes.note(event(number));
        }
        assert!(heard.try_recv().is_err());
        notes.hand_over(&log, false);
        notes.note(event(4096));
        notes.hand_over(&log, true);
        notes.hand_over(&log, true);
        log.end();
        let mut lengths = Vec::new();
        while let Ok(Heard::Events(events)) = heard.recv() {
            lengths.push(events.len());
            log.give_back(events);
        }
        assert_eq!(lengths, [CHUNK_EVENTS, 1]);
        assert_eq!(log.empty_chunk().capacity(), CHUNK_CAPACITY);
        assert_eq!(log.waited(), Nanos(0));
    }

    /// A reader that has fallen behind is waited for, which is known; nothing is left out.
    #[test]
    fn a_slow_reader_is_waited_for_and_said() {
        let (log, heard) = MessageLog::new();
        let event = MessageEvent::NotSent { cause: NotSentCause::WindowFull, count: 1 };
        (0..CHUNKS_WAITING_MAX).for_each(|_| log.hand_over(vec![event]));
        assert_eq!(log.waited(), Nanos(0));
        let events = std::thread::scope(|scope| {
            scope.spawn(|| {
                log.hand_over(vec![event]);
                log.end();
            });
            while log.waits.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            let mut events = 0;
            while let Ok(Heard::Events(chunk)) = heard.recv() {
                events += chunk.len();
            }
            events
        });
        assert_eq!(events, CHUNKS_WAITING_MAX + 1);
        assert!(log.waited() > Nanos(0));
    }
}
