//! Messages that a service of one shard confirms, until the loop stores them.

use weigh_model::server::{Outboxes, Record};

/// Bodies in the order in which they were confirmed. Without a store it stays empty.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    is_on: bool,
    bytes: Vec<u8>,
    /// End of each body in `bytes`.
    ends: Vec<usize>,
}

impl Stored {
    /// True if the server stores messages, so that copies are worth making.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Adds a whole message.
    pub(crate) fn put(&mut self, body: &[u8]) {
        if self.is_on {
            self.bytes.extend_from_slice(body);
            self.ends.push(self.bytes.len());
        }
    }

    /// Finds out whether the loop stores.
    pub(crate) fn turn(&mut self, out: &dyn Outboxes) {
        self.is_on = out.stores();
    }

    /// Hands all messages to the loop, which writes them before the turn's confirmations leave.
    pub(crate) fn hand_over(&mut self, out: &mut dyn Outboxes) {
        let mut begin = 0;
        for end in self.ends.drain(..) {
            out.store(Record::Message { name: &[], body: &self.bytes[begin..end] });
            begin = end;
        }
        self.bytes.clear();
    }
}
