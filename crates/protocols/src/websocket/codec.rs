//! Messages as frames, and the reference server's answers. Frames themselves are in the crate
//! `weigh-websocket`, which the layer under MQTT has too.

use weigh_websocket::Opcode;
use weigh_websocket::frame::put_part;

/// Appends a message in frames of at most `fragment` bytes; 0 is one frame (RFC 6455, section 5.4).
/// `mask` gives the key of each.
pub(super) fn put_message(
    out: &mut Vec<u8>,
    kind: Opcode,
    fragment: usize,
    body: &[u8],
    mut mask: impl FnMut() -> Option<[u8; 4]>,
) {
    if fragment == 0 || body.len() <= fragment {
        return put_part(out, kind, mask(), body, true);
    }
    let last = body.len().div_ceil(fragment) - 1;
    for (place, part) in body.chunks(fragment).enumerate() {
        let opcode = if place == 0 { kind } else { Opcode::Continuation };
        put_part(out, opcode, mask(), part, place == last);
    }
}

/// The reference server's answer to a message: how many subscribers it was handed to, in decimal
/// digits.
pub(super) fn answer(receivers: u64) -> String {
    receivers.to_string()
}

/// True for the answer to a message that has no subscriber.
pub(super) fn says_no_subscriber(answer: &[u8]) -> bool {
    answer == b"0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_as_the_standard_shows() {
        let mut out = Vec::new();
        put_message(&mut out, Opcode::Text, 3, b"Hello", || None);
        // RFC 6455, section 5.7: a fragmented unmasked text message.
        assert_eq!(out, b"\x01\x03Hel\x80\x02lo");
        for (fragment, bytes) in [(0, 7), (5, 7), (4, 9), (1, 15)] {
            let mut out = Vec::new();
            put_message(&mut out, Opcode::Text, fragment, b"Hello", || None);
            assert_eq!(out.len(), bytes, "{fragment}");
        }
        let mut empty = Vec::new();
        put_message(&mut empty, Opcode::Binary, 4, b"", || None);
        assert_eq!(empty, b"\x82\x00");
        assert!(says_no_subscriber(answer(0).as_bytes()) && !says_no_subscriber(b"10"));
    }
}
