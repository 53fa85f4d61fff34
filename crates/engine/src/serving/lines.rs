//! The connections of a shard as the server sees them. An idle one takes 8 bytes; buffers are
//! lent to those that have something staged, unsent or half received.

use weigh_model::connection::{Frames, end_frame};
use weigh_model::protocol::Transport;
use weigh_model::server::{ConnectionId, Outboxes, Record};

use crate::io::{Close, Io, Token, Waker};
use crate::storage::Store;

/// All connections, by the number of their token.
pub(super) struct Lines {
    lines: Vec<Line>,
    buffers: Vec<Buffers>,
    free: Vec<u32>,
    /// Lines with something to send or an end to make.
    dirty: Vec<Token>,
    open: u64,
    wakers: Vec<Waker>,
    /// Takes what is staged for connections that are gone.
    nowhere: Vec<u8>,
    /// Lines that are to be held (`true`) or released, in order.
    holds: Vec<(Token, bool)>,
    transport: Transport,
    /// Keeps what the server confirms, if it is to.
    pub(super) store: Option<Box<Store>>,
}

/// State of a line after a flush.
pub(super) enum Flushed {
    /// It stays open.
    Kept,
    /// It took everything, and the server asked to hear of it.
    Drained,
    /// It is to be closed in this way.
    Over(Close),
    /// Everything is out and the peer may still be sending: its end is to be awaited, because a
    /// close with unread input is a reset, which may overtake the answer (RFC 9112, section 9.6).
    Lingers,
}

impl Lines {
    pub(super) fn new(wakers: Vec<Waker>, transport: Transport) -> Lines {
        Lines {
            lines: Vec::new(),
            buffers: Vec::new(),
            free: Vec::new(),
            dirty: Vec::new(),
            open: 0,
            wakers,
            nowhere: Vec::new(),
            holds: Vec::new(),
            transport,
            store: None,
        }
    }

    pub(super) fn open(&self) -> u64 {
        self.open
    }

    pub(super) fn open_line(&mut self, token: Token) {
        let index = token.0 as usize;
        if self.lines.len() <= index {
            self.lines.resize(index + 1, Line { buffers: NONE, state: 0, held: 0 });
        }
        let state = OPEN | self.lines[index].state & DIRTY;
        self.lines[index] = Line { buffers: NONE, state, held: 0 };
        self.open += 1;
    }

    /// True unless the line is gone or about to be closed.
    pub(super) fn reads(&self, token: Token) -> bool {
        self.state(token) & (OPEN | CLOSING | FAILED) == OPEN
    }

    pub(super) fn mark_writable(&mut self, token: Token) {
        if self.state(token) & OPEN != 0 {
            self.lines[token.0 as usize].state &= !BLOCKED;
            self.mark_dirty(token);
        }
    }

    /// The peer has closed its side: to be closed once staged bytes are out.
    pub(super) fn mark_ended(&mut self, token: Token) {
        self.mark(token, CLOSING | ENDED);
    }

    /// To be closed from our side once staged bytes are out.
    pub(super) fn mark_closing(&mut self, token: Token) {
        self.mark(token, CLOSING);
    }

    /// True for a line whose end is awaited.
    pub(super) fn lingers(&self, token: Token) -> bool {
        self.state(token) & (OPEN | LINGERS) == OPEN | LINGERS
    }

    /// To be closed at once.
    pub(super) fn mark_failed(&mut self, token: Token) {
        self.mark(token, FAILED);
    }

    pub(super) fn close_all(&mut self) {
        (0..self.lines.len() as u32).for_each(|index| self.mark_ended(Token(index)));
    }

    pub(super) fn abort_all(&mut self) {
        (0..self.lines.len() as u32).for_each(|index| self.mark(Token(index), FAILED));
    }

    /// The bytes left over from earlier reads, to be put back after.
    pub(super) fn take_carry(&mut self, token: Token) -> Vec<u8> {
        match self.lines[token.0 as usize].buffers {
            NONE => Vec::new(),
            held => std::mem::take(&mut self.buffers[held as usize].carry),
        }
    }

    pub(super) fn put_carry(&mut self, token: Token, carry: Vec<u8>) {
        if !carry.is_empty() {
            self.lend(token).carry = carry;
        } else if self.lines[token.0 as usize].buffers != NONE {
            // Nothing is half received any more: the next flush gives the buffers back.
            self.lend(token).carry = carry;
            self.mark_dirty(token);
        }
    }

    /// Sets which sockets are read.
    pub(super) fn settle_holds(&mut self, io: &mut dyn Io) {
        for (token, held) in self.holds.drain(..) {
            match held {
                true => io.hold(token),
                false => io.release(token),
            }
        }
    }

    pub(super) fn any_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The lines to flush now; what gets dirty from here on belongs to the next round.
    pub(super) fn begin_flush(&mut self, round: &mut Vec<Token>) {
        std::mem::swap(&mut self.dirty, round);
        for token in round {
            self.lines[token.0 as usize].state &= !DIRTY;
        }
    }

    /// Sends what the socket takes.
    pub(super) fn flush(&mut self, token: Token, io: &mut dyn Io) -> Flushed {
        let line = self.lines[token.0 as usize];
        if line.state & OPEN == 0 {
            return Flushed::Kept;
        }
        if line.state & FAILED != 0 {
            return Flushed::Over(Close::Abort);
        }
        if line.buffers != NONE && line.state & BLOCKED == 0 {
            let buffers = &mut self.buffers[line.buffers as usize];
            if buffers.sent < buffers.staged.len() {
                let sent = match self.transport {
                    Transport::Stream => {
                        let rest = &buffers.staged[buffers.sent..];
                        io.write(token, rest).map(|taken| buffers.sent + taken)
                    }
                    Transport::Datagram | Transport::DatagramRuns | Transport::Streams => {
                        end_frame(&buffers.staged, &mut buffers.ends);
                        let frames = Frames { bytes: &buffers.staged, ends: &buffers.ends };
                        io.send(token, frames, buffers.sent)
                    }
                };
                match sent {
                    Ok(sent) if sent < buffers.staged.len() => {
                        buffers.sent = sent;
                        self.lines[token.0 as usize].state |= BLOCKED;
                    }
                    Ok(_) => buffers.empty(),
                    Err(_) => return Flushed::Over(Close::Abort),
                }
            }
        }
        self.note_backlog(token);
        if self.pending(token) > 0 {
            return Flushed::Kept;
        }
        self.return_if_empty(token);
        let line = &mut self.lines[token.0 as usize];
        if line.state & CLOSING != 0 {
            return match line.state & (ENDED | LINGERS) {
                0 => {
                    line.state |= LINGERS;
                    self.open -= 1;
                    Flushed::Lingers
                }
                LINGERS => Flushed::Kept,
                _ => Flushed::Over(Close::Graceful),
            };
        }
        if line.state & NOTIFY != 0 {
            line.state &= !NOTIFY;
            return Flushed::Drained;
        }
        Flushed::Kept
    }

    /// Reads nothing more from a peer that sends and does not read, until it has read half of what
    /// waits for it: its answers would fill the memory.
    fn note_backlog(&mut self, token: Token) {
        let pending = self.pending(token);
        let line = &mut self.lines[token.0 as usize];
        let was_behind = line.held & BEHIND != 0;
        if pending > BACKLOG_BYTES_MAX && !was_behind {
            self.set_held(token, BEHIND, true);
        } else if pending <= BACKLOG_BYTES_MAX / 2 && was_behind {
            self.set_held(token, BEHIND, false);
        }
    }

    /// Notes one of the reasons for reading nothing from a line; it is read if there is none.
    fn set_held(&mut self, token: Token, reason: u8, is_held: bool) {
        let line = &mut self.lines[token.0 as usize];
        let before = line.held;
        line.held = if is_held { before | reason } else { before & !reason };
        if (before == 0) != (line.held == 0) {
            self.holds.push((token, is_held));
        }
    }

    /// The line is gone; its number may be used again.
    pub(super) fn forget(&mut self, token: Token) {
        let line = &mut self.lines[token.0 as usize];
        let held = std::mem::replace(&mut line.buffers, NONE);
        self.holds.retain(|(known, _)| *known != token);
        self.open -= u64::from(line.state & LINGERS == 0);
        line.state &= DIRTY;
        if held != NONE {
            self.give_back(held);
        }
    }

    fn state(&self, token: Token) -> u8 {
        self.lines.get(token.0 as usize).map_or(0, |line| line.state)
    }

    fn mark(&mut self, token: Token, how: u8) {
        if self.state(token) & OPEN != 0 {
            self.lines[token.0 as usize].state |= how;
            self.mark_dirty(token);
        }
    }

    fn mark_dirty(&mut self, token: Token) {
        let line = &mut self.lines[token.0 as usize];
        if line.state & DIRTY == 0 {
            line.state |= DIRTY;
            self.dirty.push(token);
        }
    }

    fn pending(&self, token: Token) -> usize {
        match self.lines.get(token.0 as usize).map_or(NONE, |line| line.buffers) {
            NONE => 0,
            held => {
                let buffers = &self.buffers[held as usize];
                buffers.staged.len() - buffers.sent
            }
        }
    }

    /// The buffers of a line, lent now if it had none.
    fn lend(&mut self, token: Token) -> &mut Buffers {
        let line = &mut self.lines[token.0 as usize];
        if line.buffers == NONE {
            line.buffers = self.free.pop().unwrap_or_else(|| {
                self.buffers.push(Buffers::default());
                self.buffers.len() as u32 - 1
            });
        }
        &mut self.buffers[line.buffers as usize]
    }

    fn return_if_empty(&mut self, token: Token) {
        let line = &mut self.lines[token.0 as usize];
        let held = line.buffers;
        if held != NONE && self.buffers[held as usize].is_empty() {
            line.buffers = NONE;
            self.give_back(held);
        }
    }

    fn give_back(&mut self, held: u32) {
        let keep = self.free.len() < WARM_BUFFERS;
        self.buffers[held as usize].reset(if keep { WARM_BYTES } else { 0 });
        self.free.push(held);
    }
}

impl Outboxes for Lines {
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8> {
        let token = Token(to.0);
        if self.state(token) & (OPEN | FAILED | LINGERS) != OPEN {
            self.nowhere.clear();
            return &mut self.nowhere;
        }
        self.mark_dirty(token);
        let buffers = self.lend(token);
        buffers.compact();
        &mut buffers.staged
    }

    fn frame(&mut self, to: ConnectionId) {
        if self.lines.get(to.0 as usize).is_some_and(|line| line.buffers != NONE) {
            let Buffers { staged, ends, .. } = self.lend(Token(to.0));
            end_frame(staged, ends);
        }
    }

    fn pending_bytes(&self, of: ConnectionId) -> usize {
        self.pending(Token(of.0))
    }

    fn notify_drained(&mut self, of: ConnectionId) {
        self.mark(Token(of.0), NOTIFY);
    }

    fn hold(&mut self, which: ConnectionId) {
        if self.reads(Token(which.0)) {
            self.set_held(Token(which.0), BY_SERVER, true);
        }
    }

    fn release(&mut self, which: ConnectionId) {
        if self.state(Token(which.0)) & OPEN != 0 {
            self.set_held(Token(which.0), BY_SERVER, false);
        }
    }

    fn close(&mut self, which: ConnectionId) {
        self.mark_closing(Token(which.0));
    }

    fn abort(&mut self, which: ConnectionId) {
        self.mark_failed(Token(which.0));
    }

    fn notify_shard(&mut self, shard: u16) {
        if let Some(waker) = self.wakers.get(usize::from(shard)) {
            waker.wake();
        }
    }

    fn store(&mut self, record: Record<'_>) {
        if let Some(store) = &mut self.store {
            store.put(record);
        }
    }

    fn stores(&self) -> bool {
        self.store.is_some()
    }
}

#[derive(Clone, Copy)]
struct Line {
    /// Index of the buffers lent to it, or [`NONE`].
    buffers: u32,
    state: u8,
    /// Reasons for reading nothing from it.
    held: u8,
}

const _: () = assert!(size_of::<Line>() == 8);

#[derive(Default)]
struct Buffers {
    staged: Vec<u8>,
    /// Ends of the datagrams in it; empty for a stream.
    ends: Vec<u32>,
    /// Number of bytes of `staged` that the socket has taken.
    sent: usize,
    carry: Vec<u8>,
}

impl Buffers {
    fn is_empty(&self) -> bool {
        self.staged.is_empty() && self.carry.is_empty()
    }

    fn empty(&mut self) {
        self.staged.clear();
        self.ends.clear();
        self.sent = 0;
    }

    /// Moves the unsent rest to the front once that costs less than it frees.
    fn compact(&mut self) {
        if self.sent > self.staged.len() / 2 && self.ends.is_empty() {
            self.staged.drain(..self.sent);
            self.sent = 0;
        }
    }

    fn reset(&mut self, keep_bytes: usize) {
        self.empty();
        self.carry.clear();
        self.staged.shrink_to(keep_bytes);
        self.carry.shrink_to(keep_bytes);
    }
}

const NONE: u32 = u32::MAX;

/// It is a connection.
const OPEN: u8 = 1;
/// It stands in the list of dirty lines.
const DIRTY: u8 = 2;
/// The socket took less than all; wait until it is writable.
const BLOCKED: u8 = 4;
/// Close once everything is out.
const CLOSING: u8 = 8;
/// Close at once.
const FAILED: u8 = 16;
/// The server wants to know when everything is out.
const NOTIFY: u8 = 32;
/// The peer has closed its side, or need not be waited for.
const ENDED: u8 = 64;
/// Everything is out, our side is closed, the peer's end is awaited.
const LINGERS: u8 = 128;

/// The server asked for it.
const BY_SERVER: u8 = 1;
/// Too many bytes wait for the peer.
const BEHIND: u8 = 2;

/// Bytes that may wait for a peer before nothing more is read from it. The bodies that are passed
/// on in pieces have the same limit.
const BACKLOG_BYTES_MAX: usize = 1 << 20;

/// Number of unused buffers that keep their memory, and the size of it.
const WARM_BUFFERS: usize = 256;
const WARM_BYTES: usize = 4096;
