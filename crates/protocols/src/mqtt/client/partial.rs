//! A message of which only a part was sent, or has arrived.

use weigh_model::connection::Outbox;

use crate::mqtt::codec::Qos;

/// A message of which a part has been sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    left: u64,
    /// It was not taken at all: nothing of it is sent.
    pub(super) is_refused: bool,
    /// What is to be sent after it.
    pub(super) kept: Outbox,
}

/// A message of which a part has arrived.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) left: usize,
    pub(super) qos: Qos,
    pub(super) packet_id: u16,
    pub(super) is_new: bool,
}

impl Outgoing {
    pub(super) fn new(left: u64, is_refused: bool) -> Outgoing {
        Outgoing { left, is_refused, kept: Outbox::default() }
    }

    /// Appends the next piece; true if it was the last one.
    pub(super) fn put(&mut self, piece: &[u8], out: &mut Outbox) -> bool {
        self.left = self.left.saturating_sub(piece.len() as u64);
        if !self.is_refused {
            out.put(piece);
        }
        if self.left == 0 {
            out.put(self.kept.bytes());
        }
        self.left == 0
    }
}
