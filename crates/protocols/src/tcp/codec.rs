//! Frames: four bytes of length (big-endian, of everything behind it), one byte of kind, four
//! bytes of number (big-endian), and the body.

use weigh_model::connection::Fault;

/// A frame as it stands in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// One of the constants below; others are for the reader to refuse.
    pub(super) kind: u8,
    /// The message's number at its sender, or a producer's index.
    pub(super) id: u32,
    /// Kind and content of the frame.
    pub(super) body: &'a [u8],
}

/// A message that wants no answer.
pub(super) const MESSAGE: u8 = 0x01;
/// A message that wants an acknowledgement.
pub(super) const ASK: u8 = 0x02;
/// A message that wants its body back.
pub(super) const ECHO: u8 = 0x03;
/// The sender is the producer of this index.
pub(super) const HELLO: u8 = 0x04;
/// The sender wants the messages of this producer, or of [`EVERYONE`].
pub(super) const SUBSCRIBE: u8 = 0x05;
/// The message of this number was taken in.
pub(super) const ACKNOWLEDGED: u8 = 0x81;
/// The message of this number was taken in; here is its body.
pub(super) const ECHOED: u8 = 0x82;
/// The subscription stands.
pub(super) const SUBSCRIBED: u8 = 0x83;
/// A message of the producer of this index.
pub(super) const DELIVERED: u8 = 0x84;
/// The message of this number was received, and its producer has no subscriber.
pub(super) const NO_SUBSCRIBER: u8 = 0x85;

/// In a subscription: all producers. In a delivery: a producer that never said hello.
pub(super) const EVERYONE: u32 = u32::MAX;

/// Bytes of a frame besides its body.
pub(super) const HEAD_BYTES: usize = LENGTH_BYTES + COUNTED_HEAD_BYTES;

const LENGTH_BYTES: usize = 4;
const COUNTED_HEAD_BYTES: usize = 5;

/// The first frame of `input` and its number of bytes; `None` if it is incomplete.
pub(super) fn read(
    input: &[u8],
    frame_bytes_max: usize,
) -> Result<Option<(Frame<'_>, usize)>, Fault> {
    let Some((length, rest)) = input.split_first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    if length < COUNTED_HEAD_BYTES {
        let text = format!("a frame has the length {length}; the least is 5");
        return Err(Fault::Malformed(text));
    }
    if length > frame_bytes_max - LENGTH_BYTES {
        return Err(Fault::Malformed(format!(
            "a frame of {} bytes; the limit is {frame_bytes_max}: raise tcp.frame_bytes_max",
            length as u64 + LENGTH_BYTES as u64
        )));
    }
    let Some(counted) = rest.get(..length) else { return Ok(None) };
    let (head, body) = counted.split_at(COUNTED_HEAD_BYTES);
    let id = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    Ok(Some((Frame { kind: head[0], id, body }, LENGTH_BYTES + length)))
}

/// Bytes before the body of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) id: u32,
    /// Bytes of the body.
    pub(super) body_bytes: u32,
}

/// The head of the frame that `input` begins with; `None` if it is not all there. Its length has
/// been checked by [`read`].
pub(super) fn read_head(input: &[u8]) -> Option<Head> {
    let (length, rest) = input.split_first_chunk()?;
    let (head, _) = rest.split_first_chunk::<COUNTED_HEAD_BYTES>()?;
    let body_bytes = u32::from_be_bytes(*length).checked_sub(COUNTED_HEAD_BYTES as u32)?;
    let id = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    Some(Head { kind: head[0], id, body_bytes })
}

/// Appends a frame. A body beyond 4 GiB cannot be framed; the limits of the settings keep every
/// body below that.
pub(super) fn write(out: &mut Vec<u8>, kind: u8, id: u32, body: &[u8]) {
    out.reserve(HEAD_BYTES + body.len());
    write_head(out, Head { kind, id, body_bytes: body.len() as u32 });
    out.extend_from_slice(body);
}

/// Appends the bytes before a body.
#[inline]
pub(super) fn write_head(out: &mut Vec<u8>, of: Head) {
    let length = COUNTED_HEAD_BYTES as u32 + of.body_bytes;
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&length.to_be_bytes());
    head[4] = of.kind;
    head[5..].copy_from_slice(&of.id.to_be_bytes());
    out.extend_from_slice(&head);
}

/// The largest frame that there can be: four bytes of length, and as many as they can tell.
pub(super) const FRAME_BYTES_MAX: u64 = LENGTH_BYTES as u64 + u32::MAX as u64;

/// The producer in the topic of a delivery, which is its index as four bytes.
pub(super) fn producer_of(topic: &[u8]) -> Option<u32> {
    let index = u32::from_be_bytes(topic.try_into().ok()?);
    (index != EVERYONE).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_nine_bytes_and_its_body() {
        let mut out = Vec::new();
        write(&mut out, ASK, 0x0102_0304, b"hi");
        assert_eq!(out, [0, 0, 0, 7, 2, 1, 2, 3, 4, b'h', b'i']);
        let frame = Frame { kind: ASK, id: 0x0102_0304, body: b"hi" };
        assert_eq!(read(&out, 64), Ok(Some((frame, 11))));
        for cut in 0..out.len() {
            assert_eq!(read(&out[..cut], 64), Ok(None));
            let head = Head { kind: ASK, id: 0x0102_0304, body_bytes: 2 };
            assert_eq!(read_head(&out[..cut]), (cut >= HEAD_BYTES).then_some(head));
        }
    }

    #[test]
    fn lengths_outside_the_limits_are_refused_at_once() {
        assert!(matches!(read(&[0, 0, 0, 4], 64), Err(Fault::Malformed(_))));
        assert_eq!(read(&[0, 0, 0, 60], 64), Ok(None));
        assert!(matches!(read(&[0, 0, 0, 61], 64), Err(Fault::Malformed(_))));
        assert!(matches!(read(&[255; 4], 64), Err(Fault::Malformed(_))));
    }
}
