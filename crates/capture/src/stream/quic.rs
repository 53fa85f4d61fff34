//! Finds the packets of QUIC in datagrams and classifies their bytes: handshake, or all that
//! follows.
//!
//! Nothing is decrypted. Packets with a long header are the handshake (RFC 9000, section 17.2):
//! they show their length, and several may share a datagram. A packet with a short header ends its
//! datagram. Its header, tag, acknowledgements and repetitions count as content until the codec's
//! own count corrects it.

use crate::stream::dtls::Split;
use crate::stream::tls::Facts;

/// What is known of a connection: nothing that a suite would say.
pub const FACTS: Facts =
    Facts { version: None, suite: None, resumed: false, overhead_exact: false, lost: false };

/// True if a datagram begins with an Initial of version 1, as a client's first does (section 14.1:
/// it has at least 1,200 bytes).
pub fn may_be_initial(datagram: &[u8], length: u64) -> bool {
    let head = datagram.first_chunk::<5>();
    head.is_some_and(|[first, version @ ..]| first & 0xf0 == 0xc0 && *version == VERSION)
        && length >= INITIAL_BYTES_MIN
}

/// Splits a datagram of `length` bytes, of which `captured` are known.
pub fn split(captured: &[u8], length: u64) -> Split {
    let mut at = 0;
    while at < length {
        let rest = captured.get(at as usize..).unwrap_or_default();
        // What follows the end of what was captured follows a packet of the handshake.
        let is_long = rest.first().is_none_or(|first| first & 0x80 != 0);
        if !is_long {
            break;
        }
        at = match long_bytes(rest) {
            Some(bytes) => (at + bytes).min(length),
            None => length,
        };
    }
    Split { handshake: at, content: length - at, ..Split::default() }
}

/// Bytes of the packet with a long header at the start of `bytes`; `None` if it shows no length
/// (Retry, Version Negotiation), or its header was cut off.
fn long_bytes(bytes: &[u8]) -> Option<u64> {
    let [first, version @ ..] = bytes.first_chunk::<5>()?;
    let kind = first >> 4 & 3;
    if *version != VERSION || kind == RETRY {
        return None;
    }
    let mut at = 5;
    // Connection IDs of both ends.
    for _ in 0..2 {
        at += 1 + usize::from(*bytes.get(at)?);
    }
    if kind == INITIAL {
        let (token, digits) = number(bytes.get(at..)?)?;
        at += digits + usize::try_from(token).ok()?;
    }
    let (length, digits) = number(bytes.get(at..)?)?;
    Some((at + digits) as u64 + length)
}

/// An integer (section 16), and how many bytes it has.
fn number(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let digits = bytes.get(..1 << (first >> 6))?;
    let rest = digits[1..].iter();
    let value = rest.fold(u64::from(first & 0x3f), |value, digit| value << 8 | u64::from(*digit));
    Some((value, digits.len()))
}

const VERSION: [u8; 4] = [0, 0, 0, 1];
const INITIAL: u8 = 0;
const RETRY: u8 = 3;
const INITIAL_BYTES_MIN: u64 = 1_200;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001, appendix A.2: the header of the client's Initial.
    const INITIAL_HEAD: [u8; 22] = [
        0xc3, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 8, 0, 0, 0x44, 0x9e, 0, 0,
        0, 2,
    ];

    #[test]
    fn the_initial_of_the_standard_is_a_handshake_of_1200_bytes() {
        let mut datagram = INITIAL_HEAD.to_vec();
        datagram.resize(1_200, 0x5a);
        assert!(may_be_initial(&datagram, 1_200));
        assert_eq!(long_bytes(&datagram), Some(1_200));
        assert_eq!(split(&datagram, 1_200).handshake, 1_200);
        // The same with only its head captured.
        assert_eq!(split(&datagram[..22], 1_200).handshake, 1_200);
        assert!(!may_be_initial(&datagram, 1_199));
        assert!(!may_be_initial(b"\x40\x01", 1_200));
    }

    #[test]
    fn packets_that_share_a_datagram_are_split() {
        // A Handshake of 6 + 2 + 1 + 10 bytes, then a short header.
        let mut datagram = vec![0xe0, 0, 0, 0, 1, 0, 2, 7, 7, 10];
        datagram.extend_from_slice(&[1; 10]);
        datagram.extend_from_slice(&[0x41; 30]);
        let found = split(&datagram, 50);
        assert_eq!((found.handshake, found.record, found.content), (20, 0, 30));
        // Behind what was captured nothing is known.
        assert_eq!(split(&datagram[..15], 50).handshake, 50);
        let short = split(&[0x41; 30], 30);
        assert_eq!((short.handshake, short.content), (0, 30));
        // Retry and Version Negotiation fill their datagram.
        assert_eq!(split(&[0xf0, 0, 0, 0, 1, 0, 0, 9, 9], 9).handshake, 9);
        assert_eq!(split(&[0x80, 0, 0, 0, 0, 0, 0, 9, 9], 9).handshake, 9);
    }
}
