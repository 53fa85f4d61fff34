//! Bytes that a cipher suite adds to each record.

/// The bytes that encrypting adds within a record's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Before the content: the explicit part of the nonce.
    pub nonce: u64,
    /// After the content: content type (TLS 1.3) and authentication tag.
    pub trailer: u64,
}

/// Overhead of `suite` in `version`, if it does not depend on the content: suites with CBC pad.
///
/// TLS 1.3: RFC 8446, section 5.2 (content type 1, tag 16; 8 for CCM_8, RFC 6655). TLS 1.2: GCM RFC
/// 5288 section 3, CCM RFC 6655 section 3 (explicit nonce 8), ChaCha20 RFC 7905 section 2 (none).
pub fn overhead(version: u16, suite: u16) -> Option<Overhead> {
    match (version, suite) {
        (0x0304, 0x1305) => Some(Overhead { nonce: 0, trailer: 1 + 8 }),
        (0x0304, 0x1301..=0x1304) => Some(Overhead { nonce: 0, trailer: 1 + 16 }),
        (0x0303, suite) if is_gcm(suite) || is_ccm(suite) => {
            Some(Overhead { nonce: 8, trailer: 16 })
        }
        (0x0303, suite) if is_ccm_8(suite) => Some(Overhead { nonce: 8, trailer: 8 }),
        (0x0303, 0xCCA8..=0xCCAE) => Some(Overhead { nonce: 0, trailer: 16 }),
        _ => None,
    }
}

/// The length of a TLS 1.3 record that holds a Finished message alone: 4 bytes of header, a hash
/// (RFC 8446, section 4.4.4), and what encrypting adds.
pub fn finished_record_bytes(suite: u16) -> Option<u64> {
    let hash = match suite {
        0x1301 | 0x1303..=0x1305 => 32,
        0x1302 => 48,
        _ => return None,
    };
    Some(4 + hash + overhead(0x0304, suite)?.trailer)
}

// Numbers from the TLS Cipher Suites registry of IANA.

fn is_gcm(suite: u16) -> bool {
    matches!(suite, 0x009C..=0x00AD | 0xC02B..=0xC032 | 0xD001 | 0xD002)
}

fn is_ccm(suite: u16) -> bool {
    matches!(suite, 0xC09C..=0xC09F | 0xC0A4..=0xC0A7 | 0xC0AC | 0xC0AD | 0xD005)
}

fn is_ccm_8(suite: u16) -> bool {
    matches!(suite, 0xC0A0..=0xC0A3 | 0xC0A8..=0xC0AB | 0xC0AE | 0xC0AF | 0xD003)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_the_specifications_give_them() {
        assert_eq!(overhead(0x0304, 0x1301), Some(Overhead { nonce: 0, trailer: 17 }));
        assert_eq!(overhead(0x0303, 0xC02F), Some(Overhead { nonce: 8, trailer: 16 }));
        assert_eq!(overhead(0x0303, 0xCCA9), Some(Overhead { nonce: 0, trailer: 16 }));
        assert_eq!(overhead(0x0303, 0xC0A0), Some(Overhead { nonce: 8, trailer: 8 }));
        assert_eq!(overhead(0x0303, 0xC013), None, "CBC pads");
        assert_eq!(finished_record_bytes(0x1301), Some(53));
        assert_eq!(finished_record_bytes(0x1302), Some(69));
        assert_eq!(finished_record_bytes(0x1305), Some(45));
    }
}
