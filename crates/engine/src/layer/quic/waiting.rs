//! Bytes of streams that the library did not take: the peer's flow control, or the bytes that may
//! be unacknowledged, hold them back.

use std::collections::BTreeMap;

use quinn_proto::{Connection, StreamId, VarInt, WriteError};

/// All that waits, by stream.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    streams: BTreeMap<StreamId, Held>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    /// Bytes that were taken of them.
    taken: usize,
    ends: bool,
}

impl Waiting {
    /// Number of bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes the next bytes of a stream; what is not taken waits.
    pub(super) fn write(
        &mut self,
        connection: &mut Connection,
        stream: StreamId,
        bytes: &[u8],
        ends: bool,
    ) {
        let taken = match self.streams.contains_key(&stream) {
            true => 0,
            false => match take(connection, stream, bytes) {
                Some(taken) => taken,
                None => return,
            },
        };
        let rest = &bytes[taken..];
        if rest.is_empty() && !self.streams.contains_key(&stream) {
            if ends {
                finish(connection, stream);
            }
            return;
        }
        let held = self.streams.entry(stream).or_default();
        held.bytes.extend_from_slice(rest);
        held.ends |= ends;
        self.bytes += rest.len();
    }

    /// Writes what waits, as far as it is taken now: of the stream first that was opened first. The
    /// library names the streams that can be written the other way round, which would let the
    /// oldest message wait for all newer ones.
    pub(super) fn resume(&mut self, connection: &mut Connection) {
        let bytes = &mut self.bytes;
        self.streams.retain(|stream, held| {
            let rest = held.bytes.len() - held.taken;
            let Some(taken) = take(connection, *stream, &held.bytes[held.taken..]) else {
                *bytes -= rest;
                return false;
            };
            held.taken += taken;
            *bytes -= taken;
            if taken == rest && held.ends {
                finish(connection, *stream);
            }
            taken < rest
        });
    }

    /// Drops what waits of a stream.
    fn forget(&mut self, stream: StreamId) {
        if let Some(held) = self.streams.remove(&stream) {
            self.bytes -= held.bytes.len() - held.taken;
        }
    }

    /// Abandons a stream.
    pub(super) fn reset(&mut self, connection: &mut Connection, stream: StreamId, code: VarInt) {
        self.forget(stream);
        // One that is closed already has nothing to abandon.
        let _ = connection.send_stream(stream).reset(code);
    }
}

/// Writes as much as is taken, and returns how much it was; `None` if the peer reads no more of the
/// stream.
fn take(connection: &mut Connection, stream: StreamId, bytes: &[u8]) -> Option<usize> {
    let mut taken = 0;
    while taken < bytes.len() {
        match connection.send_stream(stream).write(&bytes[taken..]) {
            Ok(more) => taken += more,
            Err(WriteError::Blocked) => break,
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return None,
        }
    }
    Some(taken)
}

fn finish(connection: &mut Connection, stream: StreamId) {
    // A peer that reads no more has said so.
    let _ = connection.send_stream(stream).finish();
}
