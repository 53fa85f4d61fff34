//! Pieces of streams: what a layer that carries many streams at once (QUIC) and the protocol inside
//! pass to each other as bytes. They never leave the process.
//!
//! A piece has a head of 13 bytes (the number of its stream, its kind, and the length of its
//! content, little-endian) and its content. Streams have the numbers of QUIC (RFC 9000, section
//! 2.1), and each end numbers those that it opens without gaps.

/// A piece of a stream, or news about all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'p> {
    /// The next bytes of a stream.
    Bytes {
        /// Number of the stream.
        stream: u64,
        /// The bytes; may be empty.
        bytes: &'p [u8],
        /// True if the stream ends with them.
        is_last: bool,
    },
    /// The sender abandons a stream, with the protocol's own code: RESET_STREAM.
    Reset {
        /// Number of the stream.
        stream: u64,
        /// The code.
        code: u64,
    },
    /// The receiver reads no more of a stream, with the protocol's own code: STOP_SENDING.
    Stop {
        /// Number of the stream.
        stream: u64,
        /// The code.
        code: u64,
    },
    /// From the layer to a client: it may open this number of streams in both directions, since the
    /// beginning.
    Opened(u64),
    /// To the layer: the code with which the connection is to be closed; nothing more is sent.
    Close(u64),
}

/// Appends the next bytes of a stream, which `put` appends.
pub fn put_bytes(out: &mut Vec<u8>, stream: u64, is_last: bool, put: impl FnOnce(&mut Vec<u8>)) {
    put_found(out, stream, |out| {
        put(out);
        is_last
    });
}

/// Appends the next bytes of a stream, which `put` appends; it returns true if the stream ends with
/// them.
pub fn put_found(out: &mut Vec<u8>, stream: u64, put: impl FnOnce(&mut Vec<u8>) -> bool) {
    let start = put_head(out, stream, BYTES, 0);
    if put(out) {
        out[start - 5] = LAST;
    }
    let length = (out.len() - start) as u32;
    out[start - 4..start].copy_from_slice(&length.to_le_bytes());
}

/// Appends that a stream is abandoned.
pub fn put_reset(out: &mut Vec<u8>, stream: u64, code: u64) {
    put_number(out, stream, RESET, code);
}

/// Appends that a stream is read no more.
pub fn put_stop(out: &mut Vec<u8>, stream: u64, code: u64) {
    put_number(out, stream, STOP, code);
}

/// Appends the number of streams that a client may open.
pub fn put_opened(out: &mut Vec<u8>, streams: u64) {
    put_number(out, 0, OPENED, streams);
}

/// Appends the code with which the connection is to be closed.
pub fn put_close(out: &mut Vec<u8>, code: u64) {
    put_number(out, 0, CLOSE, code);
}

/// Takes the first piece, and returns it with the number of bytes that it took; `None` if it is not
/// whole, or not a piece.
pub fn next(input: &[u8]) -> Option<(Piece<'_>, usize)> {
    let head: &[u8; HEAD_BYTES] = input.first_chunk()?;
    let stream = u64::from_le_bytes(*head.first_chunk()?);
    let length = u32::from_le_bytes(*head.last_chunk()?) as usize;
    let content = input.get(HEAD_BYTES..HEAD_BYTES + length)?;
    let number = || content.first_chunk().map(|digits| u64::from_le_bytes(*digits));
    let piece = match head[8] {
        kind @ (BYTES | LAST) => Piece::Bytes { stream, bytes: content, is_last: kind == LAST },
        RESET => Piece::Reset { stream, code: number()? },
        STOP => Piece::Stop { stream, code: number()? },
        OPENED => Piece::Opened(number()?),
        CLOSE => Piece::Close(number()?),
        _ => return None,
    };
    Some((piece, HEAD_BYTES + length))
}

/// True if both ends send on a stream.
pub const fn is_both_ways(stream: u64) -> bool {
    stream & 2 == 0
}

/// True if the client opened a stream.
pub const fn is_of_client(stream: u64) -> bool {
    stream & 1 == 0
}

/// Bytes of the head of a piece.
pub const HEAD_BYTES: usize = 13;

fn put_head(out: &mut Vec<u8>, stream: u64, kind: u8, length: u32) -> usize {
    out.extend_from_slice(&stream.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(&length.to_le_bytes());
    out.len()
}

fn put_number(out: &mut Vec<u8>, stream: u64, kind: u8, number: u64) {
    put_head(out, stream, kind, 8);
    out.extend_from_slice(&number.to_le_bytes());
}

const BYTES: u8 = 0;
const LAST: u8 = 1;
const RESET: u8 = 2;
const STOP: u8 = 3;
const OPENED: u8 = 4;
const CLOSE: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_as_they_were_put() {
        let mut out = Vec::new();
        put_bytes(&mut out, 4, false, |out| out.extend_from_slice(b"one"));
        put_bytes(&mut out, 1 << 40, true, |_| {});
        put_reset(&mut out, 8, 0x10c);
        put_stop(&mut out, 3, 0x103);
        put_opened(&mut out, 100);
        put_close(&mut out, 0x100);
        let due = [
            Piece::Bytes { stream: 4, bytes: b"one", is_last: false },
            Piece::Bytes { stream: 1 << 40, bytes: b"", is_last: true },
            Piece::Reset { stream: 8, code: 0x10c },
            Piece::Stop { stream: 3, code: 0x103 },
            Piece::Opened(100),
            Piece::Close(0x100),
        ];
        let mut rest = &out[..];
        for piece in due {
            let (found, bytes) = next(rest).unwrap();
            assert_eq!(found, piece);
            rest = &rest[bytes..];
        }
        assert_eq!(next(rest), None);
        assert_eq!(next(&out[..HEAD_BYTES + 2]), None, "not whole");
        assert_eq!(next(&[9; 30]), None, "not a piece");
    }

    #[test]
    fn numbers_say_who_opened_a_stream() {
        let kinds = [0, 1, 2, 3].map(|stream| (is_both_ways(stream), is_of_client(stream)));
        assert_eq!(kinds, [(true, true), (true, false), (false, true), (false, false)]);
    }
}
