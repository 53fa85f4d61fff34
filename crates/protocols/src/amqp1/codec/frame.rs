//! Frames (part 2, section 2.3): a size, the place of the body, a type, a channel, the body.

use super::flaw::Flaw;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type.
    pub kind: FrameKind,
    /// Its channel; 0 for SASL.
    pub channel: u16,
    /// Its body: empty, or a performative and what follows it.
    pub body: &'a [u8],
}

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A frame of AMQP.
    Amqp,
    /// A frame of SASL.
    Sasl,
}

/// Reads the frame at the beginning of `input` and its size; `None` if it is not whole yet.
///
/// # Errors
/// A frame that is larger than `frame_max`, or whose head makes no sense.
pub fn read_frame(input: &[u8], frame_max: u32) -> Result<Option<(Frame<'_>, usize)>, Flaw> {
    let Some([a, b, c, d, offset, kind, channel @ ..]) = input.first_chunk::<8>() else {
        return Ok(None);
    };
    let size = u32::from_be_bytes([*a, *b, *c, *d]);
    let (body_at, size_bytes) = (usize::from(*offset) * 4, size as usize);
    if size > frame_max.max(FRAME_MIN) {
        return Err(Flaw::frame("a frame that is larger than max-frame-size"));
    }
    if *offset < 2 || body_at > size_bytes {
        return Err(Flaw::frame("a frame whose body is not in it"));
    }
    let kind = match kind {
        0 => FrameKind::Amqp,
        1 => FrameKind::Sasl,
        _ => return Err(Flaw::frame("a frame of an unknown type")),
    };
    let Some(whole) = input.get(..size_bytes) else { return Ok(None) };
    let channel = u16::from_be_bytes(*channel);
    Ok(Some((Frame { kind, channel, body: &whole[body_at..] }, size_bytes)))
}

/// Begins a frame and returns its place; [`end_frame`] follows.
pub fn begin_frame(kind: FrameKind, channel: u16, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    let [high, low] = channel.to_be_bytes();
    out.extend_from_slice(&[0, 0, 0, 0, 2, u8::from(kind == FrameKind::Sasl), high, low]);
    at
}

/// Ends the frame that began at `at`: fills in its size.
pub fn end_frame(at: usize, out: &mut [u8]) {
    let size = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&size.to_be_bytes());
}

/// Writes a frame without a body, which shows that this end is alive (section 2.4.5).
pub fn put_empty(out: &mut Vec<u8>) {
    let at = begin_frame(FrameKind::Amqp, 0, out);
    end_frame(at, out);
}

/// Bytes of a frame that every end takes, also before `open` (section 2.4.1).
pub const FRAME_MIN: u32 = 512;

/// Bytes of a frame without a body.
pub const EMPTY_FRAME_BYTES: usize = 8;
