//! Takes frames from the bytes of a connection, one event each, and checks what can be checked
//! without knowing the streams (RFC 9113, sections 4 and 6).

use std::borrow::Cow;

use super::frame::{
    ACK, Breach, CONTINUATION, DATA, END_HEADERS, END_STREAM, ErrorCode, FRAME_BYTES_MAX,
    FRAME_HEAD_BYTES, FrameHead, GOAWAY, HEADERS, PADDED, PING, PRIORITY, PUSH_PROMISE, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, WITH_PRIORITY,
};

/// A frame, or several of them that make one block of header fields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<'i> {
    /// A whole block of header fields.
    Head {
        /// Its stream.
        stream: u32,
        /// The block.
        block: Cow<'i, [u8]>,
        /// True if nothing follows on the stream.
        ends: bool,
        /// True if the stream depends on itself by its priority.
        is_circular: bool,
    },
    /// Data.
    Data {
        /// Its stream.
        stream: u32,
        /// Content, without padding.
        data: &'i [u8],
        /// Bytes that flow control counts.
        flow_bytes: usize,
        /// True if nothing follows on the stream.
        ends: bool,
    },
    /// The peer ended a stream.
    Reset {
        /// The stream.
        stream: u32,
        /// Error code.
        code: u32,
    },
    /// More may be sent.
    Window {
        /// The stream; 0 for all of them together.
        stream: u32,
        /// Number of bytes; 0 is an error.
        by: u32,
    },
    /// Parameters of the peer.
    Settings(&'i [u8]),
    /// A ping to be answered with the same bytes.
    Ping(&'i [u8]),
    /// The peer takes no further streams.
    GoAway {
        /// The last stream that it may have processed.
        last: u32,
        /// Error code.
        code: u32,
        /// Further data, for people.
        words: &'i [u8],
    },
    /// A priority, which has no effect.
    Priority {
        /// The stream.
        stream: u32,
        /// True if the frame has the wrong length, or depends on itself.
        error: Option<ErrorCode>,
    },
    /// Nothing to be done: an acknowledgement, an unknown frame, a part of a block.
    Nothing,
}

/// The frames of one direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// A block of which CONTINUATION frames are still to come.
    partial: Option<Box<Partial>>,
}

#[derive(Debug)]
struct Partial {
    stream: u32,
    ends: bool,
    is_circular: bool,
    block: Vec<u8>,
    frames: u32,
}

impl Events {
    /// Takes the frame at the start of `input`: its event and its number of bytes; `None` if it is
    /// not all there.
    ///
    /// # Errors
    /// If the connection cannot continue.
    #[inline]
    pub(crate) fn next<'i>(
        &mut self,
        input: &'i [u8],
    ) -> Result<Option<(Event<'i>, usize)>, Breach> {
        let Some(head) = FrameHead::read(input) else { return Ok(None) };
        if head.length > FRAME_BYTES_MAX {
            return Err(Breach::new(ErrorCode::FrameSize, "a frame is larger than allowed"));
        }
        if let Some(partial) = &self.partial
            && (head.kind != CONTINUATION || head.stream != partial.stream)
        {
            return Err(Breach::protocol("another frame stands inside a block of header fields"));
        }
        let bytes = FRAME_HEAD_BYTES + head.length;
        let Some(payload) = input.get(FRAME_HEAD_BYTES..bytes) else { return Ok(None) };
        let event = match head.kind {
            HEADERS => self.head(head, payload)?,
            DATA => data(head, payload)?,
            CONTINUATION => self.continuation(head, payload)?,
            _ => control(head, payload)?,
        };
        Ok(Some((event, bytes)))
    }

    #[inline]
    fn head<'i>(&mut self, head: FrameHead, payload: &'i [u8]) -> Result<Event<'i>, Breach> {
        let FrameHead { stream, flags, .. } = head;
        if stream == 0 {
            return Err(Breach::protocol("HEADERS without a stream"));
        }
        let (mut block, ends, mut is_circular) = (payload, flags & END_STREAM != 0, false);
        if flags & (PADDED | WITH_PRIORITY) != 0 {
            block = unpadded(flags, block)?;
            if flags & WITH_PRIORITY != 0 {
                let (priority, after) = block.split_first_chunk::<5>().ok_or_else(|| {
                    Breach::new(ErrorCode::FrameSize, "HEADERS is too short for its priority")
                })?;
                is_circular = depends_on(priority) == stream;
                block = after;
            }
        }
        if flags & END_HEADERS != 0 {
            return Ok(Event::Head { stream, block: Cow::Borrowed(block), ends, is_circular });
        }
        let block = block.to_vec();
        self.partial = Some(Box::new(Partial { stream, ends, is_circular, block, frames: 0 }));
        Ok(Event::Nothing)
    }

    #[cold]
    fn continuation<'i>(
        &mut self,
        head: FrameHead,
        payload: &'i [u8],
    ) -> Result<Event<'i>, Breach> {
        let Some(mut partial) = self.partial.take() else {
            return Err(Breach::protocol("CONTINUATION without HEADERS"));
        };
        partial.block.extend_from_slice(payload);
        partial.frames += 1;
        if partial.block.len() > BLOCK_BYTES_MAX || partial.frames > CONTINUATIONS_MAX {
            let what = "a block of header fields is larger than allowed";
            return Err(Breach::new(ErrorCode::EnhanceYourCalm, what));
        }
        if head.flags & END_HEADERS == 0 {
            self.partial = Some(partial);
            return Ok(Event::Nothing);
        }
        let Partial { stream, ends, is_circular, block, .. } = *partial;
        Ok(Event::Head { stream, block: Cow::Owned(block), ends, is_circular })
    }
}

#[inline]
fn data(head: FrameHead, payload: &[u8]) -> Result<Event<'_>, Breach> {
    let FrameHead { stream, flags, length, .. } = head;
    if stream == 0 {
        return Err(Breach::protocol("DATA without a stream"));
    }
    let data = if flags & PADDED != 0 { unpadded(flags, payload)? } else { payload };
    Ok(Event::Data { stream, data, flow_bytes: length, ends: flags & END_STREAM != 0 })
}

/// Frames that carry no part of a message.
fn control(head: FrameHead, payload: &[u8]) -> Result<Event<'_>, Breach> {
    let FrameHead { stream, kind, flags, .. } = head;
    let is_ack = flags & ACK != 0;
    let wrong_size = |name: &str| {
        Breach::new(ErrorCode::FrameSize, format!("{name} of {} bytes", payload.len()))
    };
    let place = |due: bool, name: &str| {
        let what = if stream == 0 { "without a stream" } else { "on a stream" };
        if due { Ok(()) } else { Err(Breach::protocol(format!("{name} {what}"))) }
    };
    Ok(match kind {
        SETTINGS => {
            place(stream == 0, "SETTINGS")?;
            match (is_ack, payload.len()) {
                (true, 0) => Event::Nothing,
                (false, length) if length % 6 == 0 => Event::Settings(payload),
                _ => return Err(wrong_size("SETTINGS")),
            }
        }
        PING => {
            place(stream == 0, "PING")?;
            match (payload.len(), is_ack) {
                (8, true) => Event::Nothing,
                (8, false) => Event::Ping(payload),
                _ => return Err(wrong_size("PING")),
            }
        }
        GOAWAY => {
            place(stream == 0, "GOAWAY")?;
            let (last, rest) = word(payload).ok_or_else(|| wrong_size("GOAWAY"))?;
            let (code, words) = word(rest).ok_or_else(|| wrong_size("GOAWAY"))?;
            Event::GoAway { last: last & STREAM_MAX, code, words }
        }
        WINDOW_UPDATE => match word(payload) {
            Some((by, [])) => Event::Window { stream, by: by & STREAM_MAX },
            _ => return Err(wrong_size("WINDOW_UPDATE")),
        },
        RST_STREAM => {
            place(stream != 0, "RST_STREAM")?;
            match word(payload) {
                Some((code, [])) => Event::Reset { stream, code },
                _ => return Err(wrong_size("RST_STREAM")),
            }
        }
        PRIORITY => {
            place(stream != 0, "PRIORITY")?;
            let error = match <&[u8; 5]>::try_from(payload) {
                Ok(priority) if depends_on(priority) == stream => Some(ErrorCode::Protocol),
                Ok(_) => None,
                Err(_) => Some(ErrorCode::FrameSize),
            };
            Event::Priority { stream, error }
        }
        PUSH_PROMISE => return Err(Breach::protocol("PUSH_PROMISE, which is not allowed here")),
        // Section 5.5: unknown types are ignored.
        _ => Event::Nothing,
    })
}

/// The payload between its padding's length and its padding (section 6.1).
fn unpadded(flags: u8, payload: &[u8]) -> Result<&[u8], Breach> {
    if flags & PADDED == 0 {
        return Ok(payload);
    }
    let (padding, rest) = payload
        .split_first()
        .ok_or_else(|| Breach::new(ErrorCode::FrameSize, "a padded frame is empty"))?;
    let length = rest.len().checked_sub(usize::from(*padding));
    let length = length.ok_or_else(|| Breach::protocol("more padding than payload"))?;
    Ok(&rest[..length])
}

fn depends_on(priority: &[u8; 5]) -> u32 {
    let [a, b, c, d, _] = *priority;
    u32::from_be_bytes([a, b, c, d]) & STREAM_MAX
}

/// The number at the start of `bytes`, and what is behind it.
fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*word), rest))
}

/// The largest number of a stream (section 5.1.1), and the bits that it has.
pub(crate) const STREAM_MAX: u32 = 0x7fff_ffff;

/// Bytes of one block of header fields, coded, at most: more than its fields may have decoded.
const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// CONTINUATION frames of one block, at most: empty ones would never end.
const CONTINUATIONS_MAX: u32 = 64;
