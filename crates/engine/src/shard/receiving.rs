//! What happens on sockets: bytes go through the wires, signals to the desk.

use std::cmp::Reverse;

use weigh_model::Nanos;
use weigh_model::protocol::Role;
use weigh_model::wire::{Fault, Outbox};

use super::Shard;
use crate::io::{Happening, Io, Token};
use crate::link::{Link, LinkPhase};

/// Why a connection is lost.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    pub(super) link: u32,
    pub(super) reason: String,
    /// True where trying again cannot help: the session was refused.
    pub(super) is_final: bool,
}

impl Shard {
    /// Books one happening. Nothing is written here: the whole batch is read first.
    pub(super) fn happened(&mut self, now: Nanos, happening: Happening<'_>) {
        let is_move = matches!(
            happening,
            Happening::Writable(_) | Happening::Ended(_) | Happening::Failed(..)
        );
        if is_move {
            self.desk.last_moved = now;
        }
        match happening {
            Happening::Connected(token) => self.connected(now, token),
            Happening::Received(token, bytes) => {
                if let Some(link) = self.link_of(token) {
                    self.received(now, link, bytes);
                }
            }
            Happening::Writable(token) => {
                if let Some(link) = self.link_of(token) {
                    self.links[link as usize].state.is_blocked = false;
                    self.desk.stirred.push(link);
                    self.mark_dirty(link);
                }
            }
            Happening::Ended(token) => {
                if let Some(link) = self.link_of(token) {
                    self.ended(now, link);
                }
            }
            Happening::Failed(token, fault) => {
                if let Some(link) = self.link_of(token) {
                    self.lose(link, fault.to_string(), false);
                }
            }
            Happening::Accepted { .. } | Happening::Poked => {}
        }
    }

    fn link_of(&self, token: Token) -> Option<u32> {
        let link = self.by_token.get(token.0 as usize).copied()?;
        // What comes after the fault that ended a session is nobody's concern any more.
        (link != NO_LINK && !self.links[link as usize].state.is_lost).then_some(link)
    }

    /// Ties a token to a link, or loosens it.
    pub(super) fn set_token(&mut self, link: u32, token: Option<Token>) {
        let state = &mut self.links[link as usize].state;
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
        let Link { wire, state } = &mut self.links[index as usize];
        let Some(wire) = wire else { return };
        let mut out = borrow(&mut self.spare, &mut state.out);
        wire.open(now, &mut out, &mut |signal| self.desk.signal(index, state, now, signal));
        state.out = out;
        state.wake_at = now;
        self.wakes.push(Reverse((now, index)));
        self.mark_dirty(index);
    }

    fn received(&mut self, now: Nanos, index: u32, bytes: &[u8]) {
        let Link { wire, state } = &mut self.links[index as usize];
        let Some(wire) = wire else { return };
        let mut out = borrow(&mut self.spare, &mut state.out);
        let mut carry = std::mem::take(&mut state.carry);
        let before = out.len();
        let desk = &mut self.desk;
        let result = if carry.is_empty() {
            let taken = wire.receive(bytes, now, &mut out, &mut |signal| {
                desk.signal(index, state, now, signal);
            });
            taken.map(|taken| carry.extend_from_slice(bytes.get(taken..).unwrap_or(&[])))
        } else {
            carry.extend_from_slice(bytes);
            let taken = wire.receive(&carry, now, &mut out, &mut |signal| {
                desk.signal(index, state, now, signal);
            });
            taken.map(|taken| drop_front(&mut carry, taken))
        };
        state.carry = carry;
        let has_answer = out.len() > before;
        if out.is_empty() {
            give_back(&mut self.spare, out);
        } else {
            state.out = out;
        }
        let is_closing = state.phase == LinkPhase::Closing;
        if has_answer || is_closing {
            self.mark_dirty(index);
        }
        if let Err(fault) = result {
            self.lose_by_fault(index, &fault);
        }
    }

    fn ended(&mut self, now: Nanos, index: u32) {
        let Link { wire, state } = &mut self.links[index as usize];
        let Some(wire) = wire else { return };
        let rest = std::mem::take(&mut state.carry);
        let desk = &mut self.desk;
        let result = wire.end(&rest, &mut |signal| desk.signal(index, state, now, signal));
        let is_closing = state.phase == LinkPhase::Closing;
        let is_standing = state.is_standing;
        let awaits = state.flights.live() > 0;
        match result {
            Err(fault) => self.lose_by_fault(index, &fault),
            Ok(()) if is_closing && !awaits => self.lose(index, String::new(), false),
            Ok(()) if is_standing => {
                self.lose(index, "closed by the server".to_owned(), false);
            }
            Ok(()) => self.lose(index, "closed by the server during set-up".to_owned(), false),
        }
    }

    pub(super) fn lose_by_fault(&mut self, link: u32, fault: &Fault) {
        let is_final = matches!(fault, Fault::Refused { .. } | Fault::OtherProtocol(_));
        self.lose(link, fault.to_string(), is_final);
    }

    /// Puts the connection on the list of those to be taken down after the batch.
    pub(super) fn lose(&mut self, link: u32, reason: String, is_final: bool) {
        self.links[link as usize].state.is_lost = true;
        self.losses.push(Loss { link, reason, is_final });
    }

    pub(super) fn mark_dirty(&mut self, link: u32) {
        let state = &mut self.links[link as usize].state;
        if !state.is_dirty {
            state.is_dirty = true;
            self.dirty.push(link);
        }
    }

    /// Sends what consumers have to acknowledge before producers have their turn: a broker that
    /// waits for it must not wait for us, or its queue would fill and the loss be ours.
    pub(super) fn flush_consumers(&mut self, io: &mut dyn Io) {
        let consumers = self.desk.accounts.consumers.len() as u32;
        if consumers == 0 {
            return;
        }
        for place in 0..self.dirty.len() {
            if self.dirty[place] < consumers {
                self.flush(self.dirty[place], io);
            }
        }
    }

    /// Sends what wires left in their outboxes, and closes those that only waited for that.
    pub(super) fn flush_dirty(&mut self, io: &mut dyn Io) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for link in dirty.drain(..) {
            self.links[link as usize].state.is_dirty = false;
            self.flush(link, io);
            let state = &self.links[link as usize].state;
            if state.phase == LinkPhase::Closing && state.out.is_empty() && !state.is_lost {
                self.close_link(link, io);
            }
        }
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
    }

    /// Hands the outbox of a link to its socket, as far as it takes it.
    pub(super) fn flush(&mut self, link: u32, io: &mut dyn Io) {
        let state = &mut self.links[link as usize].state;
        let Some(token) = state.token else {
            state.out.clear();
            return;
        };
        if state.is_blocked || state.is_lost || state.out.is_empty() {
            return;
        }
        match io.write(token, &state.out.bytes()[state.out_taken..]) {
            Ok(taken) => {
                state.out_taken += taken;
                if state.out_taken == state.out.len() {
                    state.out_taken = 0;
                    give_back(&mut self.spare, std::mem::take(&mut state.out));
                } else {
                    state.is_blocked = true;
                }
            }
            // What came in before is reported first, then how the connection ended.
            Err(_) => state.is_blocked = true,
        }
    }

    /// Lets the wires whose time has come speak: keep-alive, retransmission.
    pub(super) fn wake_wires(&mut self, _io: &mut dyn Io, now: Nanos) {
        while let Some(Reverse((at, index))) = self.wakes.peek().copied() {
            if at > now {
                return;
            }
            self.wakes.pop();
            let Link { wire, state } = &mut self.links[index as usize];
            let (Some(wire), Some(_)) = (wire, state.token) else { continue };
            if state.wake_at != at || state.is_lost {
                continue;
            }
            state.out = borrow(&mut self.spare, &mut state.out);
            let next = wire.wake(now, &mut state.out);
            if state.out.is_empty() {
                give_back(&mut self.spare, std::mem::take(&mut state.out));
            } else {
                self.mark_dirty(index);
            }
            match next {
                Ok(Some(at)) => {
                    let at = at.max(now + Nanos(1));
                    self.links[index as usize].state.wake_at = at;
                    self.wakes.push(Reverse((at, index)));
                }
                Ok(None) => {}
                Err(fault) => self.lose_by_fault(index, &fault),
            }
        }
    }

    /// True for a consumer, whose loss nobody mends.
    pub(super) fn is_consumer(&self, link: u32) -> bool {
        self.links[link as usize].state.role == Role::Consumer
    }
}

fn drop_front(bytes: &mut Vec<u8>, count: usize) {
    if count >= bytes.len() {
        *bytes = Vec::new();
    } else {
        bytes.drain(..count);
    }
}

/// The outbox of a link to append to; from the spare ones if it has none.
pub(super) fn borrow(spare: &mut Vec<Outbox>, out: &mut Outbox) -> Outbox {
    let own = std::mem::take(out);
    if own.is_empty() { spare.pop().unwrap_or(own) } else { own }
}

/// Keeps an outbox for the next link with something to say, unless it has grown large.
fn give_back(spare: &mut Vec<Outbox>, mut out: Outbox) {
    if spare.len() < OUTBOXES_KEPT && out.buffer().capacity() <= OUTBOX_KEPT_BYTES {
        out.clear();
        spare.push(out);
    }
}

/// An entry of the token table that belongs to no link.
const NO_LINK: u32 = u32::MAX;

/// The largest outbox that is kept between turns, and how many are.
const OUTBOX_KEPT_BYTES: usize = 128 * 1024;
const OUTBOXES_KEPT: usize = 64;
