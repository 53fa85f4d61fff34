//! Frames (AMQP 0-9-1, section 4.2.3): type, channel, length, payload, and an end.

use super::flaw::Flaw;

/// Smallest frame that both ends take before they agree on more (`frame-min-size`).
pub const FRAME_MIN: u32 = 4096;

/// Bytes of a frame besides its payload: type, channel, length, and the end.
pub const FRAME_OVERHEAD: usize = 8;

/// Type of a frame (section 4.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A method.
    Method = 1,
    /// The header of a content.
    Header = 2,
    /// A part of a body.
    Body = 3,
    /// A sign of life.
    Heartbeat = 8,
}

/// A whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type.
    pub kind: FrameKind,
    /// Its channel; 0 is the connection itself.
    pub channel: u16,
    /// Everything between its head and its end.
    pub payload: &'a [u8],
}

/// Reads the first frame of `input` and its number of bytes; `None` if it is not all there. A frame
/// has at most `frame_max` bytes with its head and end.
///
/// # Errors
/// Bytes that are not a frame.
#[inline]
pub fn read_frame(input: &[u8], frame_max: u32) -> Result<Option<(Frame<'_>, usize)>, Flaw> {
    let Some(first) = input.first() else { return Ok(None) };
    let kind = match first {
        1 => FrameKind::Method,
        2 => FrameKind::Header,
        3 => FrameKind::Body,
        8 => FrameKind::Heartbeat,
        _ => return Err(Flaw::frame("a frame of an unknown type")),
    };
    let Some(&[_, c1, c0, l3, l2, l1, l0]) = input.first_chunk::<7>() else { return Ok(None) };
    let channel = u16::from_be_bytes([c1, c0]);
    let length = u32::from_be_bytes([l3, l2, l1, l0]);
    if u64::from(length) + FRAME_OVERHEAD as u64 > u64::from(frame_max) {
        return Err(Flaw::frame("a frame is larger than the frame-max of the connection"));
    }
    if kind == FrameKind::Heartbeat && (length > 0 || channel != 0) {
        return Err(Flaw::frame("a heartbeat with a payload or a channel"));
    }
    let end = 7 + length as usize;
    match input.get(end) {
        None => Ok(None),
        Some(&FRAME_END) => Ok(Some((Frame { kind, channel, payload: &input[7..end] }, end + 1))),
        Some(_) => Err(Flaw::frame("a frame does not end with 0xCE")),
    }
}

/// Appends the head of a frame; returns the place that [`end_frame`] needs.
pub fn put_frame_head(kind: FrameKind, channel: u16, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.push(kind as u8);
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    at
}

/// Ends the frame whose head is at `at`.
pub fn end_frame(at: usize, out: &mut Vec<u8>) {
    let length = (out.len() - at - 7) as u32;
    out[at + 3..at + 7].copy_from_slice(&length.to_be_bytes());
    out.push(FRAME_END);
}

/// Appends a heartbeat.
pub fn put_heartbeat(out: &mut Vec<u8>) {
    let at = put_frame_head(FrameKind::Heartbeat, 0, out);
    end_frame(at, out);
}

/// Appends a part of a body as frames of at most `frame_max` bytes.
#[inline]
pub fn put_body(body: &[u8], channel: u16, frame_max: u32, out: &mut Vec<u8>) {
    let most = (frame_max as usize).saturating_sub(FRAME_OVERHEAD).max(1);
    for part in body.chunks(most) {
        let at = put_frame_head(FrameKind::Body, channel, out);
        out.extend_from_slice(part);
        end_frame(at, out);
    }
}

/// Last byte of every frame.
pub const FRAME_END: u8 = 0xCE;
