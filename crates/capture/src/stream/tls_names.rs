//! Names of TLS records, as far as they can be read without keys.

use crate::account::Unit;

/// The record that begins with `head`. `is_handshake` says that the handshake has not ended here:
/// in TLS 1.3 its later messages are encrypted and look like data (RFC 8446, section 5.1).
pub(crate) fn unit(head: &[u8], is_handshake: bool) -> Option<Unit> {
    let [kind, major, _, high, low] = *head.first_chunk()?;
    let length = u64::from(u16::from_be_bytes([high, low]));
    if major != 3 {
        return None;
    }
    let name = match kind {
        20 => "ChangeCipherSpec".to_owned(),
        21 => "Alert".to_owned(),
        22 => messages(head.get(RECORD_HEADER_BYTES..).unwrap_or_default(), length),
        23 if is_handshake => ENCRYPTED.to_owned(),
        23 => "application data".to_owned(),
        _ => return None,
    };
    let length = Some(RECORD_HEADER_BYTES as u64 + length);
    Some(Unit { name: format!("TLS {name}"), length, subscribes: false })
}

/// The messages in a record of the handshake. After the keys have changed nothing in it can be
/// read: the type is unknown, or the length goes beyond the record.
fn messages(mut body: &[u8], length: u64) -> String {
    let mut left = length;
    let mut names = Vec::new();
    while let [kind, a, b, c, ..] = *body {
        let length = 4 + u64::from(u32::from_be_bytes([0, a, b, c]));
        let Some((_, name)) = MESSAGES.iter().find(|(known, _)| *known == kind) else { break };
        // A certificate may continue in the next record; all else must fit.
        if length > left && kind != CERTIFICATE {
            break;
        }
        names.push(*name);
        left = left.saturating_sub(length);
        body = usize::try_from(length).ok().and_then(|end| body.get(end..)).unwrap_or_default();
    }
    if names.is_empty() { ENCRYPTED.to_owned() } else { names.join(", ") }
}

const RECORD_HEADER_BYTES: usize = 5;
const CERTIFICATE: u8 = 11;
const ENCRYPTED: &str = "handshake, encrypted";

/// RFC 8446, section 4, and RFC 5246, section 7.4.
const MESSAGES: [(u8, &str); 12] = [
    (0, "HelloRequest"),
    (1, "ClientHello"),
    (2, "ServerHello"),
    (4, "NewSessionTicket"),
    (8, "EncryptedExtensions"),
    (CERTIFICATE, "Certificate"),
    (12, "ServerKeyExchange"),
    (13, "CertificateRequest"),
    (14, "ServerHelloDone"),
    (15, "CertificateVerify"),
    (16, "ClientKeyExchange"),
    (22, "CertificateStatus"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_called_as_the_specification_calls_them() {
        let named = |head: &[u8], is_handshake| {
            unit(head, is_handshake).map(|unit| (unit.name, unit.length.unwrap()))
        };
        let of = |name: &str, length| Some((name.to_owned(), length));
        let hello = [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];
        assert_eq!(named(&hello, true), of("TLS ClientHello", 205));
        // A flight of TLS 1.2 in one record: a hello of 6 bytes, a certificate of 3, and the end.
        let flight =
            [22, 3, 3, 0, 21, 2, 0, 0, 6, 9, 9, 9, 9, 9, 9, 11, 0, 0, 3, 0, 0, 0, 14, 0, 0, 0];
        let all = "TLS ServerHello, Certificate, ServerHelloDone";
        assert_eq!(named(&flight, true), of(all, 26));
        let finished = [22, 3, 3, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 77, 13];
        assert_eq!(named(&finished, true).unwrap().1, 45);
        assert_eq!(
            named(&[22, 3, 3, 0, 40, 99, 1, 2, 3], true),
            of("TLS handshake, encrypted", 45)
        );
        assert_eq!(named(&[20, 3, 3, 0, 1, 1], true), of("TLS ChangeCipherSpec", 6));
        assert_eq!(named(&[23, 3, 3, 0, 53], true), of("TLS handshake, encrypted", 58));
        assert_eq!(named(&[23, 3, 3, 1, 0], false), of("TLS application data", 261));
        assert_eq!(named(&[21, 3, 3, 0, 2, 1, 0], false), of("TLS Alert", 7));
        assert_eq!(named(b"GET / HTTP/1.1", false), None);
        assert_eq!(named(&[22, 3], true), None);
    }
}
