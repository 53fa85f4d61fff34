//! From the first measured message to the last: when they were due, sent and completed.

use weigh_model::{Nanos, portable_fields};

/// The ends of what was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    /// Time at which the first message was handed to a transport.
    pub first_sent: Option<Nanos>,
    /// Time at which the last message was handed to a transport.
    pub last_sent: Option<Nanos>,
    /// Time at which the last message was completed: confirmed or delivered.
    pub last_done: Option<Nanos>,
    /// First and last due time.
    pub due: Option<(Nanos, Nanos)>,
}

impl Span {
    /// A message due at `due` was handed over at `sent`.
    #[inline]
    pub fn sent(&mut self, due: Nanos, sent: Nanos) {
        self.first_sent.get_or_insert(sent);
        self.last_sent = Some(sent);
        self.due = match self.due {
            None => Some((due, due)),
            Some((first, last)) => Some((first.min(due), last.max(due))),
        };
    }

    /// From the first due time to the last completion; `None` if nothing was completed.
    pub fn due_to_done(&self) -> Option<(Nanos, Nanos)> {
        let (first, _) = self.due?;
        Some((first, self.last_done?))
    }

    /// Widens it by that of another shard.
    pub fn merge(&mut self, other: &Span) {
        self.first_sent = match (self.first_sent, other.first_sent) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (some, None) | (None, some) => some,
        };
        self.last_sent = self.last_sent.max(other.last_sent);
        self.last_done = self.last_done.max(other.last_done);
        self.due = match (self.due, other.due) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (span, None) | (None, span) => span,
        };
    }
}

portable_fields!(Span { first_sent, last_sent, last_done, due });
