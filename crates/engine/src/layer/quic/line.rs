//! The streams of a connection: what the library reports of them becomes pieces, and pieces are
//! written to them.

use quinn_proto::{
    Connection, ConnectionHandle, Dir, ReadError, Side, StreamEvent, StreamId, VarInt,
};
use weigh_model::connection::Outbox;
use weigh_model::streams::{self, Piece};

use super::credit::Credit;
use super::waiting::Waiting;

/// The connection and its streams.
pub(super) struct Line {
    pub(super) handle: ConnectionHandle,
    pub(super) connection: Connection,
    pub(super) credit: Credit,
    pub(super) waiting: Waiting,
    /// Streams with something to read.
    pub(super) readable: Vec<StreamId>,
    /// Streams in one direction that this end has opened.
    opened_one_way: u64,
    pub(super) is_held: bool,
    /// True if what waits may be taken now.
    pub(super) has_room: bool,
    /// True while the peer has not confirmed all of a stream that this end has ended.
    pub(super) is_ending: bool,
}

impl Line {
    pub(super) fn new(handle: ConnectionHandle, connection: Connection) -> Line {
        Line {
            handle,
            connection,
            credit: Credit::new(),
            waiting: Waiting::default(),
            readable: Vec::new(),
            opened_one_way: 0,
            is_held: false,
            has_room: false,
            is_ending: false,
        }
    }

    pub(super) fn note(&mut self, event: StreamEvent, plain: &mut Outbox) {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(stream) = self.connection.streams().accept(dir) {
                    self.readable.push(stream);
                }
            }
            StreamEvent::Readable { id } => self.readable.push(id),
            StreamEvent::Writable { .. } => self.has_room = true,
            StreamEvent::Stopped { id, error_code } => {
                // The answer to it (RFC 9000, section 3.5): else the stream never ends.
                self.waiting.reset(&mut self.connection, id, error_code);
                self.is_ending = false;
                streams::put_stop(plain.buffer(), number(id), error_code.into_inner());
                plain.frame();
            }
            StreamEvent::Available { dir: Dir::Bi } => self.credit.note_available(),
            StreamEvent::Finished { .. } => self.is_ending = false,
            StreamEvent::Available { .. } => {}
        }
    }

    /// Passes on what can be read; returns how many bytes that was.
    pub(super) fn read(&mut self, plain: &mut Outbox) -> u64 {
        if self.is_held {
            return 0;
        }
        let mut total = 0;
        for stream in self.readable.drain(..) {
            let mut source = self.connection.recv_stream(stream);
            let Ok(mut chunks) = source.read(true) else { continue };
            let (mut reset, mut ends, before) = (None, false, plain.len());
            streams::put_found(plain.buffer(), number(stream), |out| {
                loop {
                    match chunks.next(usize::MAX) {
                        Ok(Some(chunk)) => out.extend_from_slice(&chunk.bytes),
                        Ok(None) => {
                            ends = true;
                            return true;
                        }
                        Err(ReadError::Blocked) => return false,
                        Err(ReadError::Reset(code)) => {
                            reset = Some(code);
                            return false;
                        }
                    }
                }
            });
            // Whatever it says: what is to be sent is asked for after every event.
            let _ = chunks.finalize();
            let bytes = plain.len() - before - streams::HEAD_BYTES;
            total += bytes as u64;
            if bytes == 0 && !ends {
                plain.buffer().truncate(before);
            }
            if let Some(code) = reset {
                streams::put_reset(plain.buffer(), number(stream), code.into_inner());
            }
            plain.frame();
        }
        total
    }

    /// Does what a piece of the protocol inside says. False if its stream is not allowed.
    pub(super) fn take(&mut self, piece: Piece<'_>, side: Side) -> bool {
        match piece {
            Piece::Bytes { stream, bytes, is_last } => {
                if !self.is_open(stream, side) {
                    return false;
                }
                self.is_ending |= is_last;
                self.waiting.write(&mut self.connection, id(stream), bytes, is_last);
            }
            Piece::Reset { stream, code } => {
                if !sends_on(stream, side) {
                    return false;
                }
                self.waiting.reset(&mut self.connection, id(stream), var_int(code));
            }
            Piece::Stop { stream, code } => {
                if !sends_on(stream, !side) {
                    return false;
                }
                // One that has ended already needs no stop.
                let _ = self.connection.recv_stream(id(stream)).stop(var_int(code));
            }
            Piece::Opened(_) | Piece::Close(_) => {}
        }
        true
    }

    /// Opens a stream of this end if it is new. False if this end may not send on it.
    fn is_open(&mut self, stream: u64, side: Side) -> bool {
        if !sends_on(stream, side) {
            return false;
        }
        if streams::is_of_client(stream) != side.is_client() {
            return true;
        }
        let index = id(stream).index();
        if streams::is_both_ways(stream) {
            return self.credit.is_used(index);
        }
        while self.opened_one_way <= index {
            if self.connection.streams().open(Dir::Uni).is_none() {
                return false;
            }
            self.opened_one_way += 1;
        }
        true
    }
}

/// True if this side sends on a stream (RFC 9000, section 2.1).
fn sends_on(stream: u64, side: Side) -> bool {
    stream <= VarInt::MAX.into_inner()
        && (streams::is_both_ways(stream) || streams::is_of_client(stream) == side.is_client())
}

fn id(stream: u64) -> StreamId {
    let initiator = if streams::is_of_client(stream) { Side::Client } else { Side::Server };
    let dir = if streams::is_both_ways(stream) { Dir::Bi } else { Dir::Uni };
    StreamId::new(initiator, dir, stream >> 2)
}

fn number(id: StreamId) -> u64 {
    VarInt::from(id).into_inner()
}

pub(super) fn var_int(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}
