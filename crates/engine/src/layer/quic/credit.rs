//! Streams that a client may open: the library opens some ahead, so that the protocol inside always
//! knows how many it can use at once.

use quinn_proto::{Connection, Dir};
use weigh_model::connection::Outbox;
use weigh_model::streams;

/// Streams in both directions, opened and used.
#[derive(Debug)]
pub(super) struct Credit {
    opened: u64,
    used: u64,
    /// Streams to be opened ahead of their use.
    ahead: u64,
    /// True while the peer allows no more.
    is_exhausted: bool,
}

impl Credit {
    pub(super) fn new() -> Credit {
        Credit { opened: 0, used: 0, ahead: AHEAD_FIRST, is_exhausted: false }
    }

    /// That of a protocol that uses one stream.
    pub(super) fn of_one() -> Credit {
        Credit { ahead: AHEAD_OF_ONE, ..Credit::new() }
    }

    /// True if more streams are to be opened.
    pub(super) fn is_short(&self) -> bool {
        !self.is_exhausted && self.opened < self.used + self.ahead / 2
    }

    /// The peer allows more.
    pub(super) fn note_available(&mut self) {
        self.is_exhausted = false;
    }

    /// Opens streams, and reports how many there are.
    pub(super) fn top_up(&mut self, connection: &mut Connection, plain: &mut Outbox) {
        if !self.is_short() {
            return;
        }
        if self.opened > 0 && self.opened == self.used {
            self.ahead = (self.ahead * 2).min(AHEAD_MAX);
        }
        let before = self.opened;
        while self.opened < self.used + self.ahead {
            if connection.streams().open(Dir::Bi).is_none() {
                self.is_exhausted = true;
                break;
            }
            self.opened += 1;
        }
        if self.opened > before {
            streams::put_opened(plain.buffer(), self.opened);
            plain.frame();
        }
    }

    /// The protocol inside uses the stream of this index. False if it was not opened.
    pub(super) fn is_used(&mut self, index: u64) -> bool {
        self.used = self.used.max(index + 1);
        index < self.opened
    }
}

const AHEAD_FIRST: u64 = 64;

/// The least that opens one.
const AHEAD_OF_ONE: u64 = 2;

const AHEAD_MAX: u64 = 4_096;
