//! Frames of HTTP/2 (RFC 9113, sections 4, 6 and 7): their heads, types, flags and error codes.

use std::borrow::Cow;

/// The head of a frame (section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    /// Bytes of the payload.
    pub(crate) length: usize,
    /// Type: one of the constants below, or unknown.
    pub(crate) kind: u8,
    /// Flags of this type.
    pub(crate) flags: u8,
    /// Stream; 0 is the connection.
    pub(crate) stream: u32,
}

impl FrameHead {
    /// Reads the head at the start of `input`; `None` if it is not all there.
    #[inline]
    pub(crate) fn read(input: &[u8]) -> Option<FrameHead> {
        let head: &[u8; FRAME_HEAD_BYTES] = input.first_chunk()?;
        let [high, middle, low, kind, flags, a, b, c, d] = *head;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        // The first bit is reserved and ignored.
        let stream = u32::from_be_bytes([a & 0x7f, b, c, d]);
        Some(FrameHead { length, kind, flags, stream })
    }

    /// The head as bytes.
    #[inline]
    pub(crate) fn bytes(self) -> [u8; FRAME_HEAD_BYTES] {
        let [_, high, middle, low] = (self.length as u32).to_be_bytes();
        let [a, b, c, d] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, a, b, c, d]
    }
}

/// Appends a frame.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let head = FrameHead { length: payload.len(), kind, flags, stream };
    out.extend_from_slice(&head.bytes());
    out.extend_from_slice(payload);
}

/// Appends SETTINGS with these parameters (section 6.5).
pub(crate) fn put_settings(out: &mut Vec<u8>, parameters: &[(u16, u32)]) {
    let bytes = |(name, value): &(u16, u32)| {
        let mut pair = [0; 6];
        pair[..2].copy_from_slice(&name.to_be_bytes());
        pair[2..].copy_from_slice(&value.to_be_bytes());
        pair
    };
    let payload: Vec<u8> = parameters.iter().flat_map(bytes).collect();
    put(out, SETTINGS, 0, 0, &payload);
}

/// Appends RST_STREAM (section 6.4).
pub(crate) fn put_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    put(out, RST_STREAM, 0, stream, &(code as u32).to_be_bytes());
}

/// Appends WINDOW_UPDATE (section 6.9).
pub(crate) fn put_window_update(out: &mut Vec<u8>, stream: u32, by: u32) {
    put(out, WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
}

/// Appends GOAWAY (section 6.8): streams up to `last` were processed.
pub(crate) fn put_go_away(out: &mut Vec<u8>, last: u32, code: ErrorCode) {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&last.to_be_bytes());
    payload[4..].copy_from_slice(&(code as u32).to_be_bytes());
    put(out, GOAWAY, 0, 0, &payload);
}

/// Appends a block of header fields as HEADERS and as many CONTINUATION as it needs (sections 6.2
/// and 6.10). `put_block` appends the block.
#[inline]
pub(crate) fn put_headers(
    out: &mut Vec<u8>,
    stream: u32,
    ends_stream: bool,
    frame_bytes_max: usize,
    put_block: impl FnOnce(&mut Vec<u8>),
) {
    let at = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
    let start = out.len();
    put_block(out);
    let length = out.len() - start;
    let ends = if ends_stream { END_STREAM } else { 0 };
    if length <= frame_bytes_max {
        let head = FrameHead { length, kind: HEADERS, flags: ends | END_HEADERS, stream };
        out[at..start].copy_from_slice(&head.bytes());
        return;
    }
    let block = out.split_off(start);
    out.truncate(at);
    let pieces = block.chunks(frame_bytes_max).count();
    for (place, piece) in block.chunks(frame_bytes_max).enumerate() {
        let end = if place + 1 == pieces { END_HEADERS } else { 0 };
        match place {
            0 => put(out, HEADERS, ends | end, stream, piece),
            _ => put(out, CONTINUATION, end, stream, piece),
        }
    }
}

/// An error that ends the connection (section 5.4.1): GOAWAY is sent with its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    /// Code of the GOAWAY.
    pub(crate) code: ErrorCode,
    /// What the peer did.
    pub(crate) what: Cow<'static, str>,
}

impl Breach {
    /// An error with this code.
    pub(crate) fn new(code: ErrorCode, what: impl Into<Cow<'static, str>>) -> Breach {
        Breach { code, what: what.into() }
    }

    /// PROTOCOL_ERROR.
    pub(crate) fn protocol(what: impl Into<Cow<'static, str>>) -> Breach {
        Breach::new(ErrorCode::Protocol, what)
    }
}

/// Error codes (section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ErrorCode {
    /// NO_ERROR.
    None = 0,
    /// PROTOCOL_ERROR.
    Protocol = 1,
    /// FLOW_CONTROL_ERROR.
    FlowControl = 3,
    /// STREAM_CLOSED.
    StreamClosed = 5,
    /// FRAME_SIZE_ERROR.
    FrameSize = 6,
    /// REFUSED_STREAM.
    RefusedStream = 7,
    /// CANCEL.
    Cancel = 8,
    /// COMPRESSION_ERROR.
    Compression = 9,
    /// ENHANCE_YOUR_CALM.
    EnhanceYourCalm = 11,
}

/// Name of an error code, for texts.
pub(crate) fn code_name(code: u32) -> &'static str {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    NAMES.get(code as usize).copied().unwrap_or("an unknown code")
}

/// What a client sends first (section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of the head of a frame.
pub(crate) const FRAME_HEAD_BYTES: usize = 9;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

/// Bytes of a payload that every peer takes (section 4.2), and that this implementation takes.
pub(crate) const FRAME_BYTES_MAX: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = FrameHead { length: 0x01_02_03, kind: 9, flags: 5, stream: 0x7fff_fffe };
        let bytes = head.bytes();
        assert_eq!(bytes, [1, 2, 3, 9, 5, 0x7f, 0xff, 0xff, 0xfe]);
        assert_eq!(FrameHead::read(&bytes), Some(head));
        assert_eq!(FrameHead::read(&bytes[..8]), None);
        let reserved = [0, 0, 0, 0, 0, 0x80, 0, 0, 1];
        assert_eq!(FrameHead::read(&reserved).map(|head| head.stream), Some(1));
    }

    #[test]
    fn a_long_block_continues_in_further_frames() {
        let mut out = Vec::new();
        put_headers(&mut out, 1, true, 4, |out| out.extend_from_slice(b"abcdefghi"));
        let expected = [
            &[0, 0, 4, HEADERS, END_STREAM, 0, 0, 0, 1][..],
            b"abcd",
            &[0, 0, 4, CONTINUATION, 0, 0, 0, 0, 1],
            b"efgh",
            &[0, 0, 1, CONTINUATION, END_HEADERS, 0, 0, 0, 1],
            b"i",
        ];
        assert_eq!(out, expected.concat());
    }
}
