//! A delivery as transfers: one frame, or as many as its message needs (part 2, section 2.6.14), as
//! far as the window of the session allows.

use super::frame::{FrameKind, begin_frame, end_frame};
use super::performative::Transfer;

/// A delivery that is being sent.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// The link.
    pub handle: u32,
    /// Its number, which is its tag too.
    pub id: u32,
    /// It needs no disposition.
    pub is_settled: bool,
    /// The message, in two parts.
    pub parts: [&'a [u8]; 2],
}

/// How far a delivery has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the message that were written.
    pub bytes: usize,
    /// Transfers that were written this time.
    pub transfers: u32,
    /// True if the message is written as a whole.
    pub is_whole: bool,
}

/// Writes the transfers of a delivery from the byte `from` of its message on: frames of at most
/// `frame_max` bytes, and at most `window` of them.
pub fn put_delivery(
    delivery: &Delivery<'_>,
    from: usize,
    channel: u16,
    frame_max: u32,
    window: u32,
    out: &mut Vec<u8>,
) -> Progress {
    let [first, second] = delivery.parts;
    let all = first.len() + second.len();
    let tag = delivery.id.to_be_bytes();
    let mut progress = Progress { bytes: from, transfers: 0, is_whole: false };
    while progress.transfers < window && !progress.is_whole {
        let mut transfer = Transfer { handle: delivery.handle, ..Transfer::default() };
        if progress.bytes == 0 {
            transfer.delivery_id = Some(delivery.id);
            transfer.delivery_tag = Some(&tag);
            transfer.message_format = Some(0);
            transfer.settled = delivery.is_settled;
        }
        let at = begin_frame(FrameKind::Amqp, channel, out);
        transfer.put(out);
        // One more byte, if the flag `more` takes the place of a null that is left out.
        let room = (frame_max as usize).saturating_sub(out.len() - at + FLAG_BYTES);
        let left = all - progress.bytes;
        if left > room {
            out.truncate(at + HEAD_BYTES);
            transfer.more = true;
            transfer.put(out);
        }
        let end = progress.bytes + left.min(room);
        let part = |part: &mut Vec<u8>, bytes: &[u8], begin: usize| {
            let to = end.saturating_sub(begin).min(bytes.len());
            let from = progress.bytes.saturating_sub(begin).min(to);
            part.extend_from_slice(&bytes[from..to]);
        };
        part(out, first, 0);
        part(out, second, first.len());
        end_frame(at, out);
        progress.is_whole = end == all;
        progress.bytes = end;
        progress.transfers += 1;
    }
    progress
}

/// Bytes of a frame before its body.
const HEAD_BYTES: usize = 8;

/// What `more` may add: itself, and nulls before it.
const FLAG_BYTES: usize = 6;
