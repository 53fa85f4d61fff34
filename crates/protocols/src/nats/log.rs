//! The messages of a stream, in memory, by number.

use std::collections::VecDeque;

use weigh_model::Nanos;

use super::codec::Publish;

/// The messages of a stream.
#[derive(Debug)]
pub(super) struct Log {
    messages: VecDeque<Kept>,
    /// Number of the first message that is there, or would be.
    first: u64,
    bytes: u64,
}

/// A message that is kept: subject, headers and body, one behind the other.
#[derive(Debug)]
struct Kept {
    data: Box<[u8]>,
    subject_bytes: u32,
    headers_bytes: u32,
    time: Nanos,
}

impl Log {
    /// An empty one; numbers begin with 1.
    pub(super) fn new() -> Log {
        Log { messages: VecDeque::new(), first: 1, bytes: 0 }
    }

    /// Keeps a message and returns its number.
    pub(super) fn push(&mut self, message: &Publish<'_>, time: Nanos) -> u64 {
        let number = self.next();
        let Publish { subject, headers, body, .. } = message;
        let kept = Kept {
            data: [*subject, *headers, *body].concat().into(),
            subject_bytes: subject.len() as u32,
            headers_bytes: headers.len() as u32,
            time,
        };
        self.bytes += kept.data.len() as u64;
        self.messages.push_back(kept);
        number
    }

    /// When the oldest message was stored.
    pub(super) fn oldest(&self) -> Option<Nanos> {
        self.messages.front().map(|kept| kept.time)
    }

    /// Discards the oldest message.
    pub(super) fn pop(&mut self) {
        if let Some(kept) = self.messages.pop_front() {
            self.bytes -= kept.data.len() as u64;
            self.first += 1;
        }
    }

    /// A message, without a subject for its answer, and when it was stored.
    pub(super) fn get(&self, number: u64) -> Option<(Publish<'_>, Nanos)> {
        let kept = self.messages.get(usize::try_from(number.checked_sub(self.first)?).ok()?)?;
        let (subject, rest) = kept.data.split_at(kept.subject_bytes as usize);
        let (headers, body) = rest.split_at(kept.headers_bytes as usize);
        Some((Publish { subject, reply: b"", headers, body }, kept.time))
    }

    /// Number of the first message.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Number of the next message.
    pub(super) fn next(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    /// Number of messages.
    pub(super) fn len(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Bytes of memory for messages.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
