//! Observers of one shard (RFC 7641): clients that get a notification when a resource changes.

use std::collections::{HashMap, VecDeque};

use weigh_model::server::ConnectionId;

use super::codec::Token;
use super::oscore::Exchange;

/// A registered client.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) peer: ConnectionId,
    pub(super) token: Token,
    /// The list it observes.
    pub(super) list: u32,
    /// Number of the last notification (section 4.4).
    pub(super) sequence: u32,
    /// Confirmable notifications that are not acknowledged.
    pub(super) in_progress: u32,
    /// The newest states, which wait for an acknowledgement.
    pub(super) waiting: VecDeque<Vec<u8>>,
    /// How its notifications are protected.
    pub(super) exchange: Option<Exchange>,
}

/// All observers of one shard.
#[derive(Debug, Default)]
pub(super) struct Observers {
    all: Vec<Observer>,
    /// Notifications by peer and message ID, until they are acknowledged.
    sent: HashMap<(ConnectionId, u16), Token>,
}

impl Observers {
    /// Number of observers.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Registers a client, or renews its registration (section 4.1); true if it is new.
    pub(super) fn register(&mut self, new: Observer) -> bool {
        let known = self.find(new.peer, new.token);
        match known {
            Some(known) => {
                (known.list, known.exchange) = (new.list, new.exchange);
                false
            }
            None => {
                self.all.push(new);
                true
            }
        }
    }

    /// Removes an observer; returns how many were removed.
    pub(super) fn remove(&mut self, peer: ConnectionId, token: Token) -> usize {
        let before = self.all.len();
        self.all.retain(|own| own.peer != peer || own.token != token);
        before - self.all.len()
    }

    /// Removes all observers at a peer; returns how many they were.
    pub(super) fn forget(&mut self, peer: ConnectionId) -> usize {
        let before = self.all.len();
        self.all.retain(|own| own.peer != peer);
        self.sent.retain(|(of, _), _| *of != peer);
        before - self.all.len()
    }

    /// The observers of one list.
    pub(super) fn of(&mut self, list: u32) -> impl Iterator<Item = &mut Observer> {
        self.all.iter_mut().filter(move |own| own.list == list)
    }

    /// The observer with this token at a peer.
    pub(super) fn of_peer(&mut self, peer: ConnectionId, token: Token) -> Option<&mut Observer> {
        self.find(peer, token)
    }

    /// A notification left with this message ID. Of those that are not confirmed the last one of
    /// each peer is known, in case it is rejected.
    pub(super) fn note_sent(
        &mut self,
        peer: ConnectionId,
        id: u16,
        token: Token,
        is_confirmed: bool,
    ) {
        if !is_confirmed {
            self.sent.remove(&(peer, id.wrapping_sub(1)));
        }
        self.sent.insert((peer, id), token);
    }

    /// A notification was acknowledged, or given up: its observer.
    pub(super) fn answered(&mut self, peer: ConnectionId, id: u16) -> Option<&mut Observer> {
        let token = self.sent.remove(&(peer, id))?;
        let observer = self.find(peer, token)?;
        observer.in_progress = observer.in_progress.saturating_sub(1);
        Some(observer)
    }

    /// Removes the observer that rejected a notification (section 3.6); returns how many.
    pub(super) fn reject(&mut self, peer: ConnectionId, id: u16) -> usize {
        match self.sent.remove(&(peer, id)) {
            Some(token) => self.remove(peer, token),
            None => 0,
        }
    }

    fn find(&mut self, peer: ConnectionId, token: Token) -> Option<&mut Observer> {
        self.all.iter_mut().find(|own| own.peer == peer && own.token == token)
    }
}
