//! Finds the records of TLS in a stream and classifies their bytes: handshake, overhead, content.
//!
//! Nothing is decrypted. In TLS 1.3 a handshake message looks like data once keys are there (RFC
//! 8446, section 5.1), so the end of the handshake is found by the size of the client's Finished,
//! and tickets that a server sends later count as content until the codec's own count of bytes
//! corrects them ([`crate::account::Account::attribute`]).

use serde::{Deserialize, Serialize};

use crate::stream::reassembly::Piece;
use crate::stream::suite::{Overhead, finished_record_bytes, overhead};

/// The record layer of one connection, both directions.
#[derive(Debug, Default)]
pub struct Session {
    facts: Facts,
    halves: [Half; 2],
    flight: Flight,
    server_hello_seen: bool,
    client_changed_first: Option<bool>,
}

/// Negotiated parameters, as far as they could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The version of the protocol, such as 0x0304 for TLS 1.3.
    pub version: Option<u16>,
    /// The cipher suite.
    pub suite: Option<u16>,
    /// True if an earlier session was continued.
    pub resumed: bool,
    /// True if the overhead of a record follows from the suite alone; with CBC suites it does not.
    pub overhead_exact: bool,
    /// True if the records could not be followed to the end: bytes were missing, or it is not TLS.
    pub lost: bool,
}

/// The bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Records of the handshake, whole: headers, messages, and what encrypting them added.
    pub handshake: u64,
    /// What records add to content: headers, content type, authentication tag, nonce; and alerts.
    pub record: u64,
    /// What the records carry for the layer above.
    pub application: u64,
    /// The alert with which a direction closes (close_notify), header and all.
    pub closing: u64,
}

/// Which end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that opened the connection.
    Client = 0,
    /// The end that accepted it.
    Server = 1,
}

impl Side {
    /// The other end.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

#[derive(Debug, Default)]
struct Half {
    offset: u64,
    header: [u8; HEADER_BYTES],
    header_filled: usize,
    record: Option<Record>,
    bytes: Bytes,
    /// The beginning of the handshake messages, until the server's hello is read.
    hello: Vec<u8>,
    changed_cipher: bool,
    handshake_end: Option<u64>,
    last: Option<Record>,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    start: u64,
    kind: u8,
    class: Class,
    length: u64,
    at: u64,
    /// True if part of it was never seen, and is not counted.
    has_hole: bool,
    overhead: Overhead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Handshake,
    Record,
    Application,
}

/// How far the client's last flight of a TLS 1.3 handshake has been seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Flight {
    #[default]
    Before,
    /// One record that is not Finished alone: a certificate, or the whole flight in one record.
    Begun,
    /// A second such record and its size in bytes: the verification, or already content.
    Unsure(u64),
    Done,
}

impl Session {
    /// What was agreed.
    pub fn facts(&self) -> Facts {
        let overhead_exact = self.known_overhead().is_some();
        Facts { overhead_exact, ..self.facts }
    }

    /// The bytes that `side` has sent so far.
    pub fn bytes(&self, side: Side) -> Bytes {
        let half = &self.halves[side as usize];
        let mut bytes = half.bytes;
        // A header that the end of the capture cut belongs to an unknown record.
        bytes.record += half.header_filled as u64;
        bytes
    }

    /// Where the handshake of `side` ends in its stream, once it does.
    pub fn handshake_end(&self, side: Side) -> Option<u64> {
        self.halves[side as usize].handshake_end
    }

    /// The records of `side` begin behind `offset` bytes in the clear.
    pub fn begin_at(&mut self, side: Side, offset: u64) {
        self.halves[side as usize].offset = offset;
    }

    /// Takes the next piece of what `side` sends.
    pub fn take(&mut self, side: Side, piece: Piece<'_>) {
        match piece {
            Piece::Bytes(bytes) => self.take_bytes(side, bytes),
            Piece::Cut(count) => self.take_absent(side, count, true),
            Piece::Hole(count) => self.take_absent(side, count, false),
        }
    }

    /// Ends the direction of `side`. Returns the offset of its closing alert, if it sent one.
    pub fn close(&mut self, side: Side) -> Option<u64> {
        self.settle_flight();
        let is_new = self.facts.version == Some(TLS_1_3);
        let half = &mut self.halves[side as usize];
        let last = half.last.take().filter(|_| half.record.is_none() && half.header_filled == 0)?;
        if last.has_hole {
            return None;
        }
        let whole = HEADER_BYTES as u64 + last.length;
        match last.kind {
            ALERT if half.handshake_end.is_some() => half.bytes.record -= whole,
            APPLICATION if is_new && last.class == Class::Application => {
                let Overhead { nonce, trailer } = last.overhead;
                if trailer == 0 || last.length != ALERT_BYTES + trailer {
                    return None;
                }
                half.bytes.application -= ALERT_BYTES;
                half.bytes.record -= HEADER_BYTES as u64 + nonce + trailer;
            }
            _ => return None,
        }
        half.bytes.closing += whole;
        Some(last.start)
    }

    /// Ends the connection.
    pub fn settle_flight(&mut self) {
        if let Flight::Unsure(length) = self.flight {
            self.take_back(length);
        }
    }

    fn known_overhead(&self) -> Option<Overhead> {
        overhead(self.facts.version?, self.facts.suite?)
    }

    fn take_bytes(&mut self, side: Side, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.facts.lost {
                let half = &mut self.halves[side as usize];
                half.bytes.application += bytes.len() as u64;
                half.offset += bytes.len() as u64;
                return;
            }
            let half = &mut self.halves[side as usize];
            let Some(record) = &mut half.record else {
                let count = bytes.len().min(HEADER_BYTES - half.header_filled);
                half.header[half.header_filled..half.header_filled + count]
                    .copy_from_slice(&bytes[..count]);
                half.header_filled += count;
                half.offset += count as u64;
                bytes = &bytes[count..];
                if half.header_filled == HEADER_BYTES {
                    self.begin_record(side);
                }
                continue;
            };
            let count = bytes.len().min((record.length - record.at) as usize);
            let (body, rest) = bytes.split_at(count);
            if record.kind == HANDSHAKE && !self.server_hello_seen && side == Side::Server {
                let room = HELLO_BYTES_MAX - half.hello.len();
                half.hello.extend_from_slice(&body[..count.min(room)]);
            }
            self.advance(side, count as u64, true);
            bytes = rest;
        }
    }

    /// Skips bytes whose content is missing; this is possible only inside a record.
    fn take_absent(&mut self, side: Side, mut count: u64, on_the_wire: bool) {
        while count > 0 {
            let half = &mut self.halves[side as usize];
            match &half.record {
                Some(record) if !self.facts.lost => {
                    let step = count.min(record.length - record.at);
                    self.advance(side, step, on_the_wire);
                    count -= step;
                }
                _ => {
                    self.facts.lost = true;
                    half.offset += count;
                    if on_the_wire {
                        half.bytes.application += count;
                    }
                    return;
                }
            }
        }
    }

    fn begin_record(&mut self, side: Side) {
        let half = &mut self.halves[side as usize];
        let [kind, major, _, high, low] = half.header;
        let length = u64::from(u16::from_be_bytes([high, low]));
        let start = half.offset - HEADER_BYTES as u64;
        half.header_filled = 0;
        let is_known = (CHANGE_CIPHER_SPEC..=HEARTBEAT).contains(&kind);
        if !is_known || major != 3 || length > RECORD_BYTES_MAX {
            half.bytes.application += HEADER_BYTES as u64;
            self.facts.lost = true;
            return;
        }
        let class = match kind {
            CHANGE_CIPHER_SPEC | HANDSHAKE => Class::Handshake,
            APPLICATION => self.class_of_content(side, length),
            _ => Class::Record,
        };
        let overhead = self.known_overhead().unwrap_or_default();
        let half = &mut self.halves[side as usize];
        match class {
            Class::Handshake => half.bytes.handshake += HEADER_BYTES as u64,
            _ => half.bytes.record += HEADER_BYTES as u64,
        }
        let record = Record { start, kind, class, length, at: 0, has_hole: false, overhead };
        half.record = Some(record);
        half.last = None;
        self.note_old_handshake(side, &record);
        if length == 0 {
            self.advance(side, 0, true);
        }
    }

    /// Up to TLS 1.2 a direction's handshake ends with the first message after it changed keys (RFC
    /// 5246, section 7.3).
    fn note_old_handshake(&mut self, side: Side, record: &Record) {
        if self.facts.version == Some(TLS_1_3) {
            return;
        }
        let half = &mut self.halves[side as usize];
        if record.kind == CHANGE_CIPHER_SPEC {
            half.changed_cipher = true;
            let client_first = *self.client_changed_first.get_or_insert(side == Side::Client);
            self.facts.resumed = !client_first;
        } else if record.kind == HANDSHAKE && half.changed_cipher {
            let end = record.start + HEADER_BYTES as u64 + record.length;
            half.handshake_end.get_or_insert(end);
        }
    }

    /// In TLS 1.3 records of content carry the encrypted part of the handshake too.
    fn class_of_content(&mut self, side: Side, length: u64) -> Class {
        // Before the server's hello it is early data (RFC 8446, section 2.3).
        if self.facts.version != Some(TLS_1_3) || !self.server_hello_seen {
            return Class::Application;
        }
        if side == Side::Server {
            // The client answers the server's last flight: whatever follows is not handshake.
            let is_over = self.flight != Flight::Before;
            return if is_over { Class::Application } else { Class::Handshake };
        }
        let is_finished =
            self.facts.suite.and_then(finished_record_bytes).is_none_or(|size| size == length);
        let end = self.halves[0].offset + length;
        let server_end = self.halves[1].offset;
        match self.flight {
            Flight::Done => return Class::Application,
            Flight::Unsure(before) if !is_finished => {
                self.take_back(before);
                return Class::Application;
            }
            Flight::Before => {
                self.halves[1].handshake_end.get_or_insert(server_end);
                self.halves[0].handshake_end = Some(end);
                self.flight = if is_finished { Flight::Done } else { Flight::Begun };
            }
            Flight::Begun if !is_finished => self.flight = Flight::Unsure(length),
            Flight::Begun | Flight::Unsure(_) => {
                self.halves[0].handshake_end = Some(end);
                self.flight = Flight::Done;
            }
        }
        Class::Handshake
    }

    /// The second record of the client's flight was content after all.
    fn take_back(&mut self, length: u64) {
        self.flight = Flight::Done;
        let Overhead { nonce, trailer } = self.known_overhead().unwrap_or_default();
        let added = (nonce + trailer).min(length);
        let bytes = &mut self.halves[0].bytes;
        bytes.handshake = bytes.handshake.saturating_sub(HEADER_BYTES as u64 + length);
        bytes.record += HEADER_BYTES as u64 + added;
        bytes.application += length - added;
    }

    fn advance(&mut self, side: Side, count: u64, on_the_wire: bool) {
        if !on_the_wire && matches!(self.flight, Flight::Unsure(_)) {
            // An incomplete record cannot be moved.
            self.flight = Flight::Done;
        }
        let half = &mut self.halves[side as usize];
        let Some(record) = &mut half.record else { return };
        let (from, to) = (record.at, record.at + count);
        record.has_hole |= !on_the_wire;
        if on_the_wire {
            let content_end = record.length.saturating_sub(record.overhead.trailer);
            let content_start = record.overhead.nonce.min(content_end);
            let content = to.min(content_end).saturating_sub(from.max(content_start));
            match record.class {
                Class::Handshake => half.bytes.handshake += count,
                Class::Record => half.bytes.record += count,
                Class::Application => {
                    half.bytes.application += content;
                    half.bytes.record += count - content;
                }
            }
        }
        record.at = to;
        half.offset += count;
        if to == record.length {
            half.last = half.record.take();
            if side == Side::Server && !self.server_hello_seen {
                self.read_server_hello();
            }
        }
    }

    fn read_server_hello(&mut self) {
        let hello = std::mem::take(&mut self.halves[Side::Server as usize].hello);
        match ServerHello::read(&hello) {
            Some(found) => {
                self.facts.version = Some(found.version);
                self.facts.suite = Some(found.suite);
                self.facts.resumed |= found.version == TLS_1_3 && found.has_pre_shared_key;
                self.server_hello_seen = !found.is_retry;
            }
            // Its end is in the next record.
            None => self.halves[Side::Server as usize].hello = hello,
        }
    }
}

/// What the server chose (RFC 8446, section 4.1.3; RFC 5246, section 7.4.1.3).
pub(super) struct ServerHello {
    pub(super) version: u16,
    pub(super) suite: u16,
    is_retry: bool,
    has_pre_shared_key: bool,
}

impl ServerHello {
    /// Reads a message of the handshake, type and length included.
    pub(super) fn read(bytes: &[u8]) -> Option<ServerHello> {
        let word = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        let (SERVER_HELLO, length) = (*bytes.first()?, usize::from(word(2)?)) else { return None };
        let end = 4 + length;
        bytes.get(..end)?;
        let after_session = 39 + usize::from(*bytes.get(38)?);
        let mut found = ServerHello {
            version: word(4)?,
            suite: word(after_session)?,
            is_retry: bytes.get(6..38)? == RETRY_RANDOM,
            has_pre_shared_key: false,
        };
        let mut at = after_session + 5;
        while at + 4 <= end {
            let (extension, length) = (word(at)?, usize::from(word(at + 2)?));
            match extension {
                SUPPORTED_VERSIONS if length == 2 => found.version = word(at + 4)?,
                PRE_SHARED_KEY => found.has_pre_shared_key = true,
                _ => {}
            }
            at += 4 + length;
        }
        Some(found)
    }
}

/// True while `bytes`, the first of a connection, can be the beginning of a ClientHello: a record
/// of the handshake, major version 3, and after the length a message of type 1.
pub fn may_be_client_hello(bytes: &[u8]) -> bool {
    bytes.iter().take(6).enumerate().all(|(at, &byte)| match at {
        0 => byte == HANDSHAKE,
        1 => byte == 3,
        2 => byte <= 4,
        5 => byte == CLIENT_HELLO,
        _ => true,
    })
}

/// TLS 1.3, as the supported_versions extension writes it.
pub const TLS_1_3: u16 = 0x0304;

// RFC 8446, sections 5.1 and 4.
const HEADER_BYTES: usize = 5;
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION: u8 = 23;
const HEARTBEAT: u8 = 24;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const SUPPORTED_VERSIONS: u16 = 43;
const PRE_SHARED_KEY: u16 = 41;
const ALERT_BYTES: u64 = 2;
/// RFC 5246, section 6.2.3: 2^14 bytes of content and at most 2,048 of expansion.
const RECORD_BYTES_MAX: u64 = (1 << 14) + 2048;
/// A server's hello has about 130 bytes; hybrid key shares of today make it about 1,200.
const HELLO_BYTES_MAX: usize = 4096;
/// SHA-256 of "HelloRetryRequest" (RFC 8446, section 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
    0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
];
