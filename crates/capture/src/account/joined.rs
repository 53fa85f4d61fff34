//! Super-packets of UDP: runs of datagrams that the kernel will cut, or has joined.

use crate::account::layers::Layers;
use crate::account::tracked::Share;

/// The datagrams of a packet, as far as they were captured, each with its part of the packet's
/// figures; the packet itself if `datagram_bytes` is 0. With
/// `Counting::AsCaptured` the first datagram carries the packet's count and headers.
pub(crate) fn datagrams<'a>(
    captured: &'a [u8],
    whole: &Share,
    datagram_bytes: u64,
) -> impl Iterator<Item = (&'a [u8], Share)> {
    let is_run = datagram_bytes > 0 && whole.stream_bytes > datagram_bytes;
    let size = if is_run { datagram_bytes } else { whole.stream_bytes };
    let count = if is_run { whole.stream_bytes.div_ceil(size) } else { 1 };
    let is_counted_cut = whole.packets == count;
    let whole = *whole;
    (0..count).map(move |index| {
        let (start, is_first) = (index * size, index == 0);
        let stream_bytes = size.min(whole.stream_bytes - start);
        let first = captured.len().min(start as usize);
        let end = captured.len().min((start + stream_bytes) as usize);
        let share = Share {
            at_ns: whole.at_ns,
            packets: u64::from(is_first || is_counted_cut),
            packets_captured: u64::from(is_first),
            bytes_captured: if is_first { whole.bytes_captured } else { 0 },
            headers: match (is_counted_cut, is_first) {
                (true, _) => each_of(count, whole.headers),
                (false, true) => whole.headers,
                (false, false) => Layers::default(),
            },
            stream_bytes,
            segment_bytes: 0,
        };
        (&captured[first..end], share)
    })
}

/// The headers of one of `count` packets, which have the same headers.
fn each_of(count: u64, headers: Layers) -> Layers {
    Layers {
        link: headers.link / count,
        ip: headers.ip / count,
        transport: headers.transport / count,
        ..Layers::default()
    }
}
