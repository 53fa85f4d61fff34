//! Events of sockets: bytes go through the connections, signals to the bookkeeping.

use weigh_model::Nanos;
use weigh_model::connection::{Fault, Signal};
use weigh_model::protocol::{Role, Transport};

use super::parts::Loss;
use super::rules::Exchange;
use super::waking::Woken;
use super::{Phase, Shard};
use crate::io::{Io, IoEvent, Token};
use crate::link::{Link, LinkId, LinkPhase, LinkState, Staged, Tick};

impl Shard {
    /// Books one event. Nothing is written here: the whole batch is read first.
    pub(super) fn on_event(&mut self, now: Nanos, event: IoEvent<'_>) {
        let is_move =
            matches!(event, IoEvent::Writable(_) | IoEvent::Ended(_) | IoEvent::Failed(..));
        if is_move {
            self.books.last_moved = now;
        }
        match event {
            IoEvent::Connected(token) => self.connected(now, token),
            IoEvent::Received(token, bytes) => match self.link_of(token) {
                Some(link) => self.received(now, link, bytes),
                None => self.parting.heard(now, token, bytes),
            },
            IoEvent::Writable(token) => match self.link_of(token) {
                Some(link) => {
                    self.links[link].state.is_blocked = false;
                    self.books.unblocked.push(link);
                    self.mark_dirty(link);
                }
                None => self.parting.unblocked(token),
            },
            IoEvent::Ended(token) => match self.link_of(token) {
                Some(link) => self.ended(now, link),
                None => self.parting.ended(token),
            },
            IoEvent::Failed(token, fault) => match self.link_of(token) {
                Some(link) => {
                    let has_parted = self.has_parted(link);
                    let reason = if has_parted { String::new() } else { fault.to_string() };
                    self.lose(link, reason, false);
                }
                None => self.parting.ended(token),
            },
            IoEvent::Accepted { .. } | IoEvent::Woken => {}
        }
    }

    fn link_of(&self, token: Token) -> Option<LinkId> {
        let link = self.by_token.get(token.0 as usize).copied()?;
        // What comes after the fault that ended a session is ignored.
        (link != NO_LINK && !self.links[link].state.is_lost).then_some(link)
    }

    /// True if all that is in flight on a connection that ends is what the server did not process:
    /// however the connection ends, it is sent again.
    fn has_parted(&self, link: LinkId) -> bool {
        let state = &self.links[link].state;
        let traffic = state.traffic();
        state.phase == LinkPhase::Closing
            && !traffic.unprocessed.is_empty()
            && traffic.flights.live() as usize == traffic.unprocessed.len()
    }

    /// Ties a token to a link, or loosens it.
    pub(super) fn set_token(&mut self, link: LinkId, token: Option<Token>) {
        let state = &mut self.links[link].state;
        if let Some(old) = state.token {
            self.by_token[old.0 as usize] = NO_LINK;
        }
        if let Some(new) = token {
            let place = new.0 as usize;
            if place >= self.by_token.len() {
                self.by_token.resize(place + 1, NO_LINK);
            }
            self.by_token[place] = link;
        }
        state.token = token;
    }

    fn connected(&mut self, now: Nanos, token: Token) {
        let Some(index) = self.link_of(token) else { return };
        let Link { connection, state } = &mut self.links[index];
        let Some(connection) = connection else { return };
        let mut staged = self.out.spare.lend(state);
        let books = &mut self.books;
        connection
            .open(now, &mut staged.out, &mut |signal| books.signal(index, state, now, signal));
        self.out.spare.settle(state, staged);
        self.note_wake(index, now);
        self.mark_dirty(index);
    }

    fn received(&mut self, now: Nanos, index: LinkId, bytes: &[u8]) {
        let Link { connection, state } = &mut self.links[index];
        let Some(connection) = connection else { return };
        let mut staged = self.out.spare.lend(state);
        let Staged { out, carry, .. } = &mut *staged;
        let before = out.len();
        let books = &mut self.books;
        let is_told = !matches!(self.clock.phase, Phase::Closing(_));
        let is_stream = self.rules.transport == Transport::Stream;
        let was_standing = state.is_standing;
        let was_full = state.role == Role::Producer && was_standing && connection.room() == 0;
        let mut book = |state: &mut LinkState, signal: Signal<'_>| {
            if is_told {
                books.signal(index, state, now, signal);
            }
        };
        let result = if carry.is_empty() {
            let taken = connection.receive(bytes, now, out, &mut |signal| book(state, signal));
            // What is left of a datagram is gone.
            let rest = if is_stream { bytes } else { &[] };
            taken.map(|taken| carry.extend_from_slice(rest.get(taken..).unwrap_or(&[])))
        } else {
            carry.extend_from_slice(bytes);
            let taken = connection.receive(carry, now, out, &mut |signal| book(state, signal));
            taken.map(|taken| drop(carry.drain(..taken.min(carry.len()))))
        };
        let has_answer = out.len() > before;
        self.out.spare.settle(state, staged);
        if self.waking.asks_after(was_standing) {
            self.note_wake(index, now);
        }
        let state = &self.links[index].state;
        let is_closing = state.phase == LinkPhase::Closing;
        if has_answer || is_closing {
            self.mark_dirty(index);
        }
        self.continue_object(index);
        if was_full {
            self.note_room(index);
        }
        if let Err(fault) = result {
            self.lose_by_fault(index, &fault);
        }
    }

    /// Lets a full link send again that has room now: what gave it room may have been credit, and
    /// no answer.
    fn note_room(&mut self, index: LinkId) {
        let connection = self.links[index].connection.as_ref();
        if connection.is_some_and(|connection| connection.room() > 0) {
            self.books.unblocked.push(index);
        }
    }

    fn ended(&mut self, now: Nanos, index: LinkId) {
        let Link { connection, state } = &mut self.links[index];
        let Some(connection) = connection else { return };
        let staged = self.out.spare.lend(state);
        let books = &mut self.books;
        let result =
            connection.end(&staged.carry, &mut |signal| books.signal(index, state, now, signal));
        self.out.spare.settle(state, staged);
        let is_closing = state.phase == LinkPhase::Closing;
        let is_standing = state.is_standing;
        let traffic = state.traffic();
        let awaits = traffic.flights.live() as usize > traffic.unprocessed.len();
        match result {
            Err(fault) => self.lose_by_fault(index, &fault),
            Ok(()) if is_closing && !awaits => self.lose(index, String::new(), false),
            Ok(()) if is_standing => {
                self.lose(index, "closed by the server".to_owned(), false);
            }
            Ok(()) => self.lose(index, "closed by the server during set-up".to_owned(), false),
        }
    }

    pub(super) fn lose_by_fault(&mut self, link: LinkId, fault: &Fault) {
        let is_final =
            matches!(fault, Fault::Refused { .. } | Fault::OtherProtocol(_) | Fault::Untrusted(_));
        self.lose(link, fault.to_string(), is_final);
    }

    /// Puts the connection on the list of those to be taken down after the batch.
    pub(super) fn lose(&mut self, link: LinkId, reason: String, is_final: bool) {
        self.links[link].state.is_lost = true;
        self.connecting.losses.push(Loss { link, reason, is_final });
    }

    pub(super) fn mark_dirty(&mut self, link: LinkId) {
        let state = &mut self.links[link].state;
        if !state.is_dirty {
            state.is_dirty = true;
            self.out.dirty.push(link);
        }
    }

    /// Sends what consumers have to acknowledge before producers have their turn: a broker must not
    /// wait for the generator, or its queue fills and the loss is the generator's.
    pub(super) fn flush_consumers(&mut self, io: &mut dyn Io) {
        if self.links.consumers().len() == 0 {
            return;
        }
        for place in 0..self.out.dirty.len() {
            if self.is_consumer(self.out.dirty[place]) {
                self.flush(self.out.dirty[place], io);
            }
        }
    }

    /// Sends what connections left in their outboxes, and closes those that only waited for that.
    pub(super) fn flush_dirty(&mut self, io: &mut dyn Io) {
        for link in std::mem::take(&mut self.out.streaming) {
            self.mark_dirty(link);
        }
        let mut dirty = std::mem::take(&mut self.out.dirty);
        for link in dirty.drain(..) {
            self.links[link].state.is_dirty = false;
            self.flush(link, io);
            let state = &self.links[link].state;
            let is_over = state.phase == LinkPhase::Closing && state.out_bytes() == 0;
            if is_over && !state.is_lost && !matches!(self.clock.phase, Phase::Closing(_)) {
                self.close_link(link, io);
            }
        }
        dirty.append(&mut self.out.dirty);
        self.out.dirty = dirty;
    }

    /// Hands the outbox of a link to its socket, as far as it takes it.
    pub(super) fn flush(&mut self, link: LinkId, io: &mut dyn Io) {
        if self.waking.is_exact() {
            return self.flush_exact(link, io);
        }
        self.flush_one(link, io);
    }

    /// Flushes a link whose timers are exact. Apart, since most loads have none such.
    #[inline(never)]
    fn flush_exact(&mut self, link: LinkId, io: &mut dyn Io) {
        // A layer that makes datagrams when it is woken makes those of this turn, so that no
        // message waits for those of all other links.
        self.wake_due(link, io.now());
        self.flush_one(link, io);
        // Whatever is sent passes here.
        self.note_wake(link, io.now());
    }

    #[inline(always)]
    fn flush_one(&mut self, link: LinkId, io: &mut dyn Io) {
        self.hand_over(link, io);
        let is_stream = self.rules.exchange == Exchange::Stream;
        if is_stream && self.links[link].state.traffic().outgoing.is_some() {
            self.send_on(link, io);
        }
    }

    /// Hands what is composed to the socket.
    pub(super) fn hand_over(&mut self, link: LinkId, io: &mut dyn Io) {
        let state = &mut self.links[link].state;
        let Some(token) = state.token else {
            state.staged = None;
            return;
        };
        let Some(staged) = &mut state.staged else { return };
        if state.is_blocked || state.is_lost || staged.out.is_empty() {
            return;
        }
        let is_stream = self.rules.transport == Transport::Stream;
        let taken = match is_stream {
            true => {
                let rest = &staged.out.bytes()[staged.taken..];
                io.write(token, rest).map(|taken| staged.taken + taken)
            }
            false => io.send(token, staged.out.frames(), staged.taken),
        };
        match taken {
            Ok(taken) => {
                staged.taken = taken;
                if staged.taken == staged.out.len() {
                    staged.taken = 0;
                    staged.out.clear();
                    self.out.spare.take_back(state);
                } else {
                    state.is_blocked = true;
                }
            }
            // What came in before is reported first, then how the connection ended.
            Err(_) if is_stream => state.is_blocked = true,
            Err(fault) => self.lose(link, fault.to_string(), false),
        }
    }

    /// Hands what a connection said at its end to a peer that closed first, as far as the socket
    /// takes it: TLS answers close_notify (RFC 8446, section 6.1).
    pub(super) fn say_last(&self, link: LinkId, token: Token, io: &mut dyn Io) {
        let Some(staged) = &self.links[link].state.staged else { return };
        let rest = &staged.out.bytes()[staged.taken..];
        if self.rules.transport == Transport::Stream && !rest.is_empty() {
            let _ = io.write(token, rest);
        }
    }

    /// Asks a connection when it wants to be woken.
    pub(super) fn note_wake(&mut self, index: LinkId, now: Nanos) {
        let Link { connection, state } = &mut self.links[index];
        let (Some(connection), Some(_)) = (connection, state.token) else { return };
        if let Some(at) = connection.next_wake() {
            self.waking.note(index, state, at.max(now + Nanos(1)));
        }
    }

    /// Lets the connections whose time has come speak.
    pub(super) fn wake_connections(&mut self, now: Nanos) {
        while let Some(Woken { link, tick }) = self.waking.pop(now) {
            let state = &mut self.links[link].state;
            if let Some(at) = tick {
                if state.wake_at != at {
                    continue;
                }
                state.wake_at = Tick::NEVER;
            }
            self.wake_connection(link, now);
        }
    }

    fn wake_connection(&mut self, index: LinkId, now: Nanos) {
        if self.wake_due(index, now) {
            self.note_wake(index, now);
        }
    }

    /// Lets a connection speak if its time has come. False if it is not there, or is lost now.
    fn wake_due(&mut self, index: LinkId, now: Nanos) -> bool {
        let Link { connection, state } = &mut self.links[index];
        let (Some(connection), Some(_)) = (connection, state.token) else { return false };
        if state.is_lost {
            return false;
        }
        let is_due = connection.next_wake().is_some_and(|at| at <= now);
        if is_due {
            let mut staged = self.out.spare.lend(state);
            let before = staged.out.len();
            let books = &mut self.books;
            let result = connection.wake(now, &mut staged.out, &mut |signal| {
                books.signal(index, state, now, signal);
            });
            let has_spoken = staged.out.len() > before;
            self.out.spare.settle(state, staged);
            let is_closing = state.phase == LinkPhase::Closing;
            if self.waking.is_exact() {
                // An operation that a producer gave up makes room for its next one.
                self.books.unblocked.extend((state.role == Role::Producer).then_some(index));
            } else if has_spoken {
                self.books.note_sign_of_life(self.clock.phase == Phase::Measuring);
            }
            if has_spoken || is_closing {
                self.mark_dirty(index);
            }
            self.continue_object(index);
            if let Err(fault) = result {
                self.lose_by_fault(index, &fault);
                return false;
            }
        }
        true
    }

    /// True for a consumer.
    pub(super) fn is_consumer(&self, link: LinkId) -> bool {
        self.links.is_consumer(link)
    }
}

/// An entry of the token table that belongs to no link.
const NO_LINK: LinkId = LinkId(u32::MAX);
