//! Finds the records of DTLS in datagrams and classifies their bytes: handshake, overhead, content.
//!
//! Nothing is decrypted. DTLS 1.2 shows the type of every record (RFC 6347, section 4.1). DTLS 1.3
//! shows two bits of the epoch (RFC 9147, section 4): epoch 2 is the handshake, later ones are
//! content. Acknowledgements and alerts in them count as content until the codec's own count
//! corrects it, as tickets of TLS 1.3 do.

use crate::stream::suite::{Overhead, overhead};
use crate::stream::tls::{Facts, ServerHello, Side, TLS_1_3};

/// The record layer between two ports.
#[derive(Debug, Default)]
pub struct Session {
    facts: Facts,
}

/// The bytes of one datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Records of the handshake, whole.
    pub handshake: u64,
    /// What records add to content: headers, content type, authentication tag, nonce; and alerts.
    pub record: u64,
    /// What the records carry for the layer above.
    pub content: u64,
}

/// True if a datagram begins with a ClientHello in a record of the first epoch.
pub fn may_be_client_hello(datagram: &[u8]) -> bool {
    matches!(datagram, [HANDSHAKE, 254, 253 | 255, 0, 0, ..])
        && datagram.get(HEADER_BYTES) == Some(&CLIENT_HELLO)
}

impl Session {
    /// What was agreed, in the numbers of TLS.
    pub fn facts(&self) -> Facts {
        let overhead_exact = self.known_overhead().is_some();
        Facts { overhead_exact, ..self.facts }
    }

    /// Splits a datagram of `length` bytes, of which `captured` are known.
    pub fn take(&mut self, side: Side, captured: &[u8], length: u64) -> Split {
        let (mut split, mut at) = (Split::default(), 0);
        while at < length {
            let rest = captured.get(at as usize..).unwrap_or_default();
            let Some(record) = Record::read(rest, length - at) else {
                // The head of the record was cut off, or this is not DTLS.
                self.facts.lost = true;
                split.content += length - at;
                break;
            };
            if side == Side::Server && record.kind == Kind::Plain(HANDSHAKE) {
                self.read_hello(rest.get(record.head as usize..).unwrap_or_default());
            }
            self.count(&record, &mut split);
            at += record.head + record.body;
        }
        split
    }

    fn count(&self, record: &Record, split: &mut Split) {
        let Record { head, body, kind } = *record;
        match kind {
            Kind::Plain(HANDSHAKE | CHANGE_CIPHER_SPEC) | Kind::Sealed(HANDSHAKE_EPOCH) => {
                split.handshake += head + body;
            }
            Kind::Plain(APPLICATION) | Kind::Sealed(_) => {
                let Overhead { nonce, trailer } = self.known_overhead().unwrap_or_default();
                let added = (nonce + trailer).min(body);
                split.record += head + added;
                split.content += body - added;
            }
            // Alerts, acknowledgements in the clear, heartbeats.
            Kind::Plain(_) => split.record += head + body,
        }
    }

    /// Reads what the server chose, if a message is its hello and whole.
    fn read_hello(&mut self, message: &[u8]) {
        let Some((head, body)) = message.split_first_chunk::<MESSAGE_HEAD_BYTES>() else { return };
        let is_whole = head[6..9] == [0; 3] && head[9..12] == head[1..4];
        if !is_whole {
            return;
        }
        // As the message stands in TLS: type and length, without number and fragment.
        let message = [&head[..4], body].concat();
        let Some(found) = ServerHello::read(&message) else { return };
        self.facts.suite = Some(found.suite);
        self.facts.version = match found.version {
            DTLS_1_3 => Some(TLS_1_3),
            DTLS_1_2 => Some(TLS_1_2),
            other => Some(other),
        };
    }

    fn known_overhead(&self) -> Option<Overhead> {
        overhead(self.facts.version?, self.facts.suite?)
    }
}

/// One record.
#[derive(Clone, Copy, Debug)]
struct Record {
    head: u64,
    body: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A record whose type is shown.
    Plain(u8),
    /// A record of DTLS 1.3 and the low bits of its epoch.
    Sealed(u8),
}

impl Record {
    /// Reads the head of the record at the start of `bytes`; `room` bytes are left of the datagram.
    fn read(bytes: &[u8], room: u64) -> Option<Record> {
        let first = *bytes.first()?;
        if first >> 5 == 1 {
            // RFC 9147, section 4: 0 0 1, then a bit each for a connection ID, a sequence number of
            // two bytes and a length, and two of the epoch.
            let has = |bit: u8| first & bit != 0;
            if has(0x10) {
                return None;
            }
            let number = if has(8) { 2 } else { 1 };
            let head = if has(4) { 3 + number } else { 1 + number };
            let body = match has(4) {
                true => word(bytes, 1 + number)?,
                false => room.checked_sub(head as u64)?,
            };
            let record = Record { head: head as u64, body, kind: Kind::Sealed(first & 3) };
            return Some(record).filter(|own| own.head + own.body <= room);
        }
        if !(CHANGE_CIPHER_SPEC..=ACKNOWLEDGEMENT).contains(&first) || *bytes.get(1)? != 254 {
            return None;
        }
        let body = word(bytes, HEADER_BYTES - 2)?;
        let record = Record { head: HEADER_BYTES as u64, body, kind: Kind::Plain(first) };
        Some(record).filter(|own| own.head + own.body <= room)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])))
}

// RFC 6347, section 4.1: type, version, epoch, sequence number, length.
const HEADER_BYTES: usize = 13;
/// Section 4.2.2: type, length, number, offset and length of the fragment.
const MESSAGE_HEAD_BYTES: usize = 12;
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const APPLICATION: u8 = 23;
/// The last type (RFC 9147, section 7).
const ACKNOWLEDGEMENT: u8 = 26;
const CLIENT_HELLO: u8 = 1;
/// Low bits of the epoch of the encrypted handshake (RFC 9147, section 6.1).
const HANDSHAKE_EPOCH: u8 = 2;
const DTLS_1_2: u16 = 0xfefd;
const DTLS_1_3: u16 = 0xfefc;
const TLS_1_2: u16 = 0x0303;

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of DTLS 1.2.
    fn record(kind: u8, epoch: u8, body: &[u8]) -> Vec<u8> {
        let head = [kind, 254, 253, 0, epoch, 0, 0, 0, 0, 0, 1, 0, body.len() as u8];
        [&head[..], body].concat()
    }

    /// A ServerHello without extensions that chooses `suite`, or with those of DTLS 1.3.
    fn hello(suite: u16, is_new: bool) -> Vec<u8> {
        let mut body = [&[254, 253][..], &[7; 32], &[0], &suite.to_be_bytes(), &[0]].concat();
        if is_new {
            body.extend_from_slice(&[0, 6, 0, 43, 0, 2, 254, 252]);
        }
        let length = body.len() as u8;
        let head = [2, 0, 0, length, 0, 1, 0, 0, 0, 0, 0, length];
        record(HANDSHAKE, 0, &[&head[..], &body].concat())
    }

    #[test]
    fn records_of_1_2_show_their_type() {
        let mut session = Session::default();
        let hello = hello(0xC0A8, false);
        let whole = hello.len() as u64;
        let split = session.take(Side::Server, &hello, whole);
        assert_eq!(split, Split { handshake: whole, ..Split::default() });
        assert_eq!((session.facts().version, session.facts().suite), (Some(0x0303), Some(0xC0A8)));
        // PSK_WITH_AES_128_CCM_8: nonce 8, tag 8.
        let data = record(APPLICATION, 1, &[0; 46]);
        let split = session.take(Side::Client, &data, data.len() as u64);
        assert_eq!(split, Split { handshake: 0, record: 29, content: 30 });
        let both = [record(CHANGE_CIPHER_SPEC, 0, &[1]), record(HANDSHAKE, 1, &[0; 40])].concat();
        let split = session.take(Side::Client, &both, both.len() as u64);
        assert_eq!(split.handshake, 14 + 53);
        let alert = record(21, 1, &[0; 18]);
        assert_eq!(session.take(Side::Client, &alert, 31).record, 31);
        assert!(!session.facts().lost);
    }

    #[test]
    fn records_of_1_3_show_their_epoch() {
        let mut session = Session::default();
        let hello = hello(0x1301, true);
        session.take(Side::Server, &hello, hello.len() as u64);
        assert_eq!(session.facts().version, Some(TLS_1_3));
        let sealed = |epoch: u8, body: u8| {
            let head = [0x2c | epoch, 0, 1, 0, body];
            [&head[..], &vec![0; body.into()]].concat()
        };
        let datagram = [sealed(2, 60), sealed(3, 27)].concat();
        let split = session.take(Side::Client, &datagram, datagram.len() as u64);
        assert_eq!(split, Split { handshake: 65, record: 5 + 17, content: 10 });
        // Without a length the record ends with its datagram.
        let short = [&[0x23, 0][..], &[0; 30]].concat();
        let split = session.take(Side::Server, &short, 32);
        assert_eq!(split, Split { handshake: 0, record: 2 + 17, content: 13 });
    }

    #[test]
    fn what_is_not_a_record_is_content() {
        let mut session = Session::default();
        assert_eq!(session.take(Side::Client, b"hello", 5).content, 5);
        assert!(session.facts().lost);
        assert!(may_be_client_hello(&record(HANDSHAKE, 0, &[1, 0])));
        assert!(!may_be_client_hello(&record(HANDSHAKE, 0, &[2, 0])));
        assert!(!may_be_client_hello(b"\x44\x02"));
    }
}
