//! State of one connection, and the words of its commands.

use std::ops::Range;

use weigh_model::Nanos;

use super::place::{Key, Place};
use crate::broker_core::Waiting;

/// One connection of a shard.
pub(in crate::redis) struct Peer {
    pub(super) place: Place,
    pub(super) is_resp3: bool,
    pub(super) db: u8,
    pub(super) is_authenticated: bool,
    pub(super) name: Vec<u8>,
    /// A read of it waits, until then if not [`Nanos::NEVER`].
    pub(super) blocked_until: Option<Nanos>,
    /// It does not read its answers, and no more of its commands are executed.
    pub(super) is_choked: bool,
    pub(super) is_ending: bool,
    /// Input that has to wait.
    pub(super) held: Vec<u8>,
}

impl Peer {
    pub(super) fn new(place: Place, is_authenticated: bool) -> Peer {
        Peer {
            place,
            is_resp3: false,
            db: 0,
            is_authenticated,
            name: Vec::new(),
            blocked_until: None,
            is_choked: false,
            is_ending: false,
            held: Vec::new(),
        }
    }

    /// A key of its database.
    pub(super) fn key(&self, name: &[u8]) -> Key {
        Key { db: self.db, name: name.into() }
    }
}

impl Waiting for Peer {
    fn is_waiting(&self) -> bool {
        self.blocked_until.is_some() || self.is_choked
    }

    fn held(&mut self) -> &mut Vec<u8> {
        &mut self.held
    }
}

/// The words of a command.
#[derive(Clone, Copy)]
pub(super) struct Words<'w> {
    input: &'w [u8],
    places: &'w [Range<usize>],
}

impl<'w> Words<'w> {
    pub(super) fn new(input: &'w [u8], places: &'w [Range<usize>]) -> Words<'w> {
        Words { input, places }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// A word; empty if there are fewer.
    pub(super) fn at(&self, index: usize) -> &'w [u8] {
        let place = self.places.get(index).cloned();
        place.and_then(|place| self.input.get(place)).unwrap_or_default()
    }

    /// True if a word is this one, in any case.
    pub(super) fn is(&self, index: usize, word: &str) -> bool {
        self.at(index).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Words from one on.
    pub(super) fn from(&self, first: usize) -> impl Iterator<Item = &'w [u8]> {
        let words = *self;
        (first..self.len()).map(move |index| words.at(index))
    }

    /// A word as a number that is not negative.
    pub(super) fn number(&self, index: usize) -> Option<u64> {
        std::str::from_utf8(self.at(index)).ok()?.parse().ok()
    }
}
