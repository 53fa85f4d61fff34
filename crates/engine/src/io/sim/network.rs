//! Payload travels between the parties of the world: handshakes, bytes, ends and resets.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weigh_model::Nanos;

use super::Link;
use super::ends::{End, EndId, LinkState, Listener, Payload, Travel};
use super::state::{Notice, Socket, State};
use crate::io::{Close, IoFault, Token};

/// Operations of a party on its sockets.
impl State {
    pub(super) fn lay(&mut self, to: SocketAddr, link: Link) {
        self.links.push(LinkState::new(link));
        self.link_of.insert(to, self.links.len() - 1);
    }

    pub(super) fn connect(&mut self, number: usize, to: SocketAddr) -> Token {
        let id = self.ends.len();
        let token = self.parties[number].new_token(Socket::Connection(id));
        let link = self.link_of.get(&to).copied().unwrap_or(0);
        self.ends.push(End::new(number, token, link, to));
        self.dispatch(id, Payload::Request { client: id, attempt: 0 }, 0);
        token
    }

    pub(super) fn listen(
        &mut self,
        number: usize,
        mut on: SocketAddr,
        backlog: u32,
    ) -> Result<SocketAddr, IoFault> {
        if on.port() == 0 {
            let taken = |port: &u16| !self.listeners.contains_key(&SocketAddr::new(on.ip(), *port));
            on.set_port((FIRST_PORT..u16::MAX).find(taken).ok_or(IoFault::AddressInUse)?);
        }
        if self.listeners.contains_key(&on) {
            return Err(IoFault::AddressInUse);
        }
        self.parties[number].new_token(Socket::Listener(on));
        let listener = Listener { party: number, backlog, waiting: 0, reached: 0 };
        self.listeners.insert(on, listener);
        Ok(on)
    }

    pub(super) fn write(
        &mut self,
        number: usize,
        to: Token,
        bytes: &[u8],
    ) -> Result<usize, IoFault> {
        let id = self.parties[number].connection(to).ok_or(IoFault::Other(EBADF))?;
        let end = &mut self.ends[id];
        if let Some(fault) = end.failure {
            return Err(fault);
        }
        if end.shut {
            return Err(IoFault::Reset);
        }
        let Some(peer) = end.peer.filter(|_| end.established) else {
            return Ok(0);
        };
        let room = self.links[end.link].link.buffer_bytes.saturating_sub(end.out.outstanding);
        let taken = bytes.len().min(room);
        end.out.blocked = taken < bytes.len();
        end.out.outstanding += taken;
        let whole = end
            .out
            .cut_after
            .map_or(taken, |cut| taken.min(cut.saturating_sub(end.out.written) as usize));
        let severs = !end.out.severed
            && end.out.cut_after.is_some_and(|cut| end.out.written + taken as u64 >= cut);
        end.out.severed |= severs;
        end.out.written += taken as u64;
        self.parties[number].bytes.0 += taken as u64;
        for piece in bytes[..whole].chunks(SEGMENT_BYTES) {
            self.dispatch(id, Payload::Bytes(peer, piece.to_vec()), piece.len());
        }
        if severs {
            self.dispatch(id, Payload::Failure(peer, IoFault::Reset), 0);
            let back = self.ends[id].out.last_arrival + self.links[self.ends[id].link].link.delay;
            self.schedule(back, Payload::Failure(id, IoFault::Reset));
        }
        Ok(taken)
    }

    pub(super) fn hold(&mut self, number: usize, which: Token, held: bool) {
        if let Some(id) = self.parties[number].flow(which) {
            return self.hold_flow(id, held);
        }
        let Some(id) = self.parties[number].connection(which) else { return };
        let was_held = std::mem::replace(&mut self.ends[id].held, held);
        if was_held && !held {
            self.note_readable(id);
        }
    }

    pub(super) fn shutdown(&mut self, number: usize, which: Token) {
        let Some(id) = self.parties[number].connection(which) else { return };
        let end = &mut self.ends[id];
        if let (Some(peer), true, None, false) = (end.peer, end.established, end.failure, end.shut)
        {
            end.shut = true;
            self.dispatch(id, Payload::Finish(peer), 0);
        }
    }

    pub(super) fn close(&mut self, number: usize, which: Token, how: Close) {
        let party = &mut self.parties[number];
        let Some(place) = party.tokens.get_mut(which.0 as usize) else { return };
        let Some(socket) = place.take() else { return };
        party.free.push(which.0);
        let id = match socket {
            Socket::Connection(id) => id,
            Socket::Listener(on) => {
                self.listeners.remove(&on);
                return self.turn_away_waiting(number, on);
            }
            Socket::Flow(id) => return self.close_flow(id),
            Socket::Datagrams(on) => return self.close_datagrams(on),
        };
        let end = &mut self.ends[id];
        end.closed = true;
        // A close with unread bytes is a reset too (RFC 2525, section 2.17).
        let unread = !end.received.is_empty();
        end.received = VecDeque::new();
        if let (Some(peer), true, None) = (end.peer, end.established, end.failure) {
            let payload = match how {
                Close::Graceful | Close::Answered if !unread && end.shut => return,
                Close::Graceful | Close::Answered if !unread => Payload::Finish(peer),
                Close::Graceful | Close::Answered | Close::Abort => {
                    Payload::Failure(peer, IoFault::Reset)
                }
            };
            self.dispatch(id, payload, 0);
        }
    }

    /// Gives an accepted connection its token.
    pub(super) fn take_accepted(&mut self, number: usize, id: EndId) -> Token {
        if let Some(listener) = self.listeners.get_mut(&self.ends[id].to) {
            listener.waiting = listener.waiting.saturating_sub(1);
        }
        let token = self.parties[number].new_token(Socket::Connection(id));
        self.ends[id].token = token;
        token
    }

    /// Reports to the other end that bytes were read here.
    pub(super) fn acknowledge(&mut self, id: EndId, bytes: usize) {
        let end = &self.ends[id];
        if let (Some(peer), true) = (end.peer, bytes > 0) {
            let at = self.now + self.links[end.link].link.delay;
            self.schedule(at, Payload::Window(peer, bytes));
        }
    }

    /// Has the party look at this end in its next turn.
    pub(super) fn note_readable(&mut self, id: EndId) {
        let end = &mut self.ends[id];
        if !end.readable_noted && !end.closed {
            end.readable_noted = true;
            self.parties[end.party].inbox.push_back(Notice::Readable(id));
        }
    }
}

/// Events in transit.
impl State {
    /// Sends something off from an end, behind everything that left there before.
    fn dispatch(&mut self, from: EndId, payload: Payload, bytes: usize) {
        let (link, listens) = (self.ends[from].link, self.ends[from].listens);
        let leaves = self.leave(link, usize::from(!listens), bytes);
        let late = self.jitter(link);
        let end = &mut self.ends[from];
        let arrives = (leaves + self.links[link].link.delay + late).max(end.out.last_arrival);
        end.out.last_arrival = arrives;
        self.schedule(arrives, payload);
    }

    /// Returns the time at which the last of `bytes` bytes has left through a link, after all that
    /// left before.
    pub(super) fn leave(&mut self, link: usize, direction: usize, bytes: usize) -> Nanos {
        let way = &mut self.links[link];
        let free = &mut way.free_at[direction];
        let mut leaves = self.now;
        if let (Some(rate), true) = (way.link.bytes_per_s, bytes > 0) {
            let takes = (bytes as u128 * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
            leaves = self.now.max(*free) + Nanos(u64::try_from(takes).unwrap_or(u64::MAX));
            *free = leaves;
        }
        leaves
    }

    /// Payload chance adds to the delay of a link.
    pub(super) fn jitter(&mut self, link: usize) -> Nanos {
        match self.links[link].link.jitter.0 {
            0 => Nanos(0),
            jitter => Nanos(self.random.below(jitter.saturating_add(1))),
        }
    }

    pub(super) fn schedule(&mut self, at: Nanos, payload: Payload) {
        self.order += 1;
        let travel = Travel { at, order: self.order, payload };
        self.travels.push(travel);
    }

    pub(super) fn arrive(&mut self, payload: Payload) {
        match payload {
            Payload::Request { client, attempt } => self.request_arrives(client, attempt),
            Payload::Answer(client) => self.answer_arrives(client),
            Payload::Confirmation(listening) => {
                if self.listeners.contains_key(&self.ends[listening].to) {
                    let party = self.ends[listening].party;
                    self.parties[party].inbox.push_back(Notice::Accepted(listening));
                } else {
                    self.turn_away(listening);
                }
            }
            Payload::Bytes(id, bytes) => {
                let end = &mut self.ends[id];
                if !end.closed {
                    end.received.extend(bytes);
                    return self.note_readable(id);
                }
                // Bytes for a closed socket are answered by a reset (RFC 9293, section 3.5.2).
                if let Some(peer) = end.peer
                    && end.failure.is_none()
                {
                    self.dispatch(id, Payload::Failure(peer, IoFault::Reset), 0);
                }
            }
            Payload::Finish(id) => {
                self.ends[id].finished = true;
                self.note_readable(id);
            }
            Payload::Failure(id, fault) => {
                if self.ends[id].failure.is_none() {
                    self.ends[id].failure = Some(fault);
                    self.note_readable(id);
                }
            }
            Payload::Datagram(from, bytes) => self.datagram_arrives(from, bytes),
            Payload::Unheard(id) => self.unheard(id),
            Payload::Window(id, bytes) => {
                let end = &mut self.ends[id];
                end.out.outstanding = end.out.outstanding.saturating_sub(bytes);
                if end.out.blocked && !end.closed && end.failure.is_none() {
                    end.out.blocked = false;
                    self.parties[end.party].inbox.push_back(Notice::Writable(id));
                }
            }
        }
    }

    /// Resets the connections that a listener leaves unaccepted.
    fn turn_away_waiting(&mut self, number: usize, on: SocketAddr) {
        let mut inbox = std::mem::take(&mut self.parties[number].inbox);
        inbox.retain(|notice| match *notice {
            Notice::Accepted(id) if self.ends[id].to == on => {
                self.turn_away(id);
                false
            }
            _ => true,
        });
        self.parties[number].inbox = inbox;
    }

    fn turn_away(&mut self, listening: EndId) {
        self.ends[listening].closed = true;
        if let Some(client) = self.ends[listening].peer {
            self.dispatch(listening, Payload::Failure(client, IoFault::Reset), 0);
        }
    }

    fn request_arrives(&mut self, client: EndId, attempt: u32) {
        if self.ends[client].closed {
            return;
        }
        let (to, link) = (self.ends[client].to, self.ends[client].link);
        let back = self.now + self.links[link].link.delay;
        let refused = |(on, from, until): &(SocketAddr, Nanos, Nanos)| {
            *on == to && *from <= self.now && self.now < *until
        };
        let refused = self.refusals.iter().any(refused);
        let Some(listener) = self.listeners.get_mut(&to).filter(|_| !refused) else {
            return self.schedule(back, Payload::Failure(client, IoFault::Refused));
        };
        if listener.waiting > listener.backlog {
            // Dropped; the client asks again after 1, 2, 4 ... seconds (RFC 6298, section 2).
            let wait = Nanos::from_secs(1 << attempt);
            let again = match attempt {
                0..ATTEMPTS_MAX => Payload::Request { client, attempt: attempt + 1 },
                _ => Payload::Failure(client, IoFault::Unreachable),
            };
            return self.schedule(self.now + wait, again);
        }
        listener.waiting += 1;
        let (party, connection) = (listener.party, listener.reached);
        listener.reached += 1;
        let id = self.ends.len();
        let mut end = End::new(party, Token(u32::MAX), link, to);
        end.listens = true;
        end.peer = Some(client);
        self.ends.push(end);
        self.ends[client].peer = Some(id);
        for cut in &self.cuts {
            if cut.to == to && cut.connection == connection {
                let cut_end = if cut.from_listener { id } else { client };
                self.ends[cut_end].out.cut_after = Some(cut.after_bytes);
            }
        }
        self.dispatch(id, Payload::Answer(client), 0);
    }

    fn answer_arrives(&mut self, client: EndId) {
        let Some(listening) = self.ends[client].peer else { return };
        if self.ends[client].closed {
            // It has given up meanwhile: the listener never hears of it.
            self.ends[listening].closed = true;
            if let Some(listener) = self.listeners.get_mut(&self.ends[listening].to) {
                listener.waiting = listener.waiting.saturating_sub(1);
            }
            return;
        }
        self.ends[client].established = true;
        self.ends[listening].established = true;
        let party = self.ends[client].party;
        self.parties[party].inbox.push_back(Notice::Connected(client));
        self.dispatch(client, Payload::Confirmation(listening), 0);
    }
}

/// The first port handed out for port 0.
const FIRST_PORT: u16 = 40_000;
/// A long write travels in pieces of this size, so that a slow link delivers it bit by bit.
const SEGMENT_BYTES: usize = 16 * 1024;
/// Number of times a dropped request is sent again, as Linux does (tcp_syn_retries).
const ATTEMPTS_MAX: u32 = 6;
const EBADF: i32 = 9;
