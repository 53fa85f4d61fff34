//! The record layer against handshakes whose account is known, cut into pieces of any size.

use proptest::collection::vec;
use proptest::prelude::*;
use weigh_capture::stream::reassembly::Piece;
use weigh_capture::stream::tls::{Bytes, Session, Side};

const CLIENT: Side = Side::Client;
const SERVER: Side = Side::Server;
const HELLO: u8 = 22;
const CHANGE: u8 = 20;
const ALERT: u8 = 21;
const CONTENT: u8 = 23;
/// Header 5, content type 1, tag 16 (RFC 8446, section 5.2).
const ADDED: u64 = 22;

/// What both ends say, record by record, and what each record is.
#[derive(Clone, Debug, Default)]
struct Script {
    records: Vec<(Side, Vec<u8>)>,
    expected: [Bytes; 2],
}

/// What a record is to be counted as.
#[derive(Clone, Copy)]
enum As {
    Handshake,
    Content,
    Closing,
}

impl Script {
    fn say(&mut self, side: Side, kind: u8, body: &[u8], counted: As) -> &mut Script {
        let length = (body.len() as u16).to_be_bytes();
        let mut record = vec![kind, 3, 3, length[0], length[1]];
        record.extend_from_slice(body);
        let bytes = &mut self.expected[side as usize];
        let whole = record.len() as u64;
        match counted {
            As::Handshake => bytes.handshake += whole,
            As::Content => {
                bytes.record += ADDED;
                bytes.application += whole - ADDED;
            }
            As::Closing => bytes.closing += whole,
        }
        self.records.push((side, record));
        self
    }

    /// Hellos of TLS 1.3 with TLS_AES_128_GCM_SHA256, and the server's flight.
    fn hello(&mut self) -> &mut Script {
        self.say(CLIENT, HELLO, &client_hello(), As::Handshake)
            .say(SERVER, HELLO, &server_hello([7; 32], true, 0x1301), As::Handshake)
            .say(SERVER, CHANGE, &[1], As::Handshake)
            .say(SERVER, CONTENT, &[0; 900], As::Handshake)
            .say(SERVER, CONTENT, &[0; 53], As::Handshake)
            .say(CLIENT, CHANGE, &[1], As::Handshake)
    }

    /// Messages, and the farewell of both.
    fn talk(&mut self) -> &mut Script {
        self.say(CLIENT, CONTENT, &[0; 300], As::Content)
            .say(SERVER, CONTENT, &[0; 16_401], As::Content)
            .say(CLIENT, CONTENT, &[0; 18], As::Content)
            .say(CLIENT, CONTENT, &[0; 19], As::Closing)
            .say(SERVER, CONTENT, &[0; 19], As::Closing)
    }

    fn play(&self, pieces: &[usize]) -> Session {
        let mut session = Session::default();
        let mut sizes = pieces.iter().cycle();
        for (side, record) in &self.records {
            let mut rest = &record[..];
            while !rest.is_empty() {
                let count = sizes.next().map_or(rest.len(), |size| rest.len().min(*size));
                session.take(*side, Piece::Bytes(&rest[..count]));
                rest = &rest[count..];
            }
        }
        session.close(CLIENT);
        session.close(SERVER);
        session
    }

    fn check(&self, session: &Session) {
        assert!(!session.facts().lost);
        for side in [CLIENT, SERVER] {
            assert_eq!(session.bytes(side), self.expected[side as usize], "{side:?}");
        }
    }
}

fn client_hello() -> Vec<u8> {
    let mut body = vec![1, 0, 0, 196];
    body.resize(200, 9);
    body
}

/// RFC 8446, section 4.1.3, with or without the extension that makes it TLS 1.3.
fn server_hello(random: [u8; 32], is_new: bool, suite: u16) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend_from_slice(&random);
    body.push(32);
    body.extend_from_slice(&[5; 32]);
    body.extend_from_slice(&suite.to_be_bytes());
    body.push(0);
    let extensions: &[u8] =
        if is_new { &[0, 51, 0, 2, 0, 29, 0, 43, 0, 2, 3, 4] } else { &[255, 1, 0, 1, 0] };
    body.extend_from_slice(&(extensions.len() as u16).to_be_bytes());
    body.extend_from_slice(extensions);
    let mut message = vec![2, 0, 0, body.len() as u8];
    message.extend_from_slice(&body);
    message
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    vec(1..2000_usize, 1..20)
}

proptest! {
    #[test]
    fn a_new_session(pieces in pieces()) {
        let mut script = Script::default();
        script.hello().say(CLIENT, CONTENT, &[0; 53], As::Handshake).talk();
        let session = script.play(&pieces);
        script.check(&session);
        let facts = session.facts();
        prop_assert_eq!((facts.version, facts.suite), (Some(0x0304), Some(0x1301)));
        prop_assert!(!facts.resumed && facts.overhead_exact);
        // 205 for the hello, 6 for the change, 58 for Finished.
        prop_assert_eq!(session.handshake_end(CLIENT), Some(269));
        prop_assert_eq!(session.handshake_end(SERVER), Some(script.expected[1].handshake));
    }

    #[test]
    fn a_client_with_a_certificate_message_by_message(pieces in pieces()) {
        let mut script = Script::default();
        script
            .hello()
            .say(CLIENT, CONTENT, &[0; 700], As::Handshake)
            .say(CLIENT, CONTENT, &[0; 96], As::Handshake)
            .say(CLIENT, CONTENT, &[0; 53], As::Handshake)
            .talk();
        script.check(&script.play(&pieces));
    }

    #[test]
    fn a_client_with_a_certificate_in_one_record(pieces in pieces()) {
        let mut script = Script::default();
        script.hello().say(CLIENT, CONTENT, &[0; 850], As::Handshake).talk();
        script.check(&script.play(&pieces));
    }

    #[test]
    fn a_server_that_asks_again(pieces in pieces()) {
        let retry = [
            0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65,
            0xB8, 0x91, 0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2,
            0xC8, 0xA8, 0x33, 0x9C,
        ];
        let mut script = Script::default();
        script
            .say(CLIENT, HELLO, &client_hello(), As::Handshake)
            .say(SERVER, HELLO, &server_hello(retry, true, 0x1301), As::Handshake)
            .say(SERVER, CHANGE, &[1], As::Handshake)
            .say(CLIENT, CHANGE, &[1], As::Handshake)
            .hello()
            .say(CLIENT, CONTENT, &[0; 53], As::Handshake)
            .talk();
        script.check(&script.play(&pieces));
    }

    #[test]
    fn the_older_version(pieces in pieces(), resumed in any::<bool>()) {
        // ECDHE_RSA_WITH_CHACHA20_POLY1305 adds a tag of 16 and nothing else (RFC 7905).
        let mut script = Script::default();
        script
            .say(CLIENT, HELLO, &client_hello(), As::Handshake)
            .say(SERVER, HELLO, &server_hello([7; 32], false, 0xCCA8), As::Handshake);
        // In a session that is continued the server changes keys first.
        for side in if resumed { [SERVER, CLIENT] } else { [CLIENT, SERVER] } {
            script
                .say(side, CHANGE, &[1], As::Handshake)
                .say(side, HELLO, &[0; 32], As::Handshake);
        }
        script
            .say(CLIENT, CONTENT, &[0; 116], As::Content)
            .say(SERVER, CONTENT, &[0; 18], As::Content)
            .say(CLIENT, ALERT, &[0; 18], As::Closing)
            .say(SERVER, ALERT, &[0; 18], As::Closing);
        // One byte less than in TLS 1.3: no content type inside.
        for bytes in &mut script.expected {
            bytes.record -= 1;
            bytes.application += 1;
        }
        let session = script.play(&pieces);
        script.check(&session);
        prop_assert_eq!(session.facts().resumed, resumed);
        prop_assert_eq!(session.facts().version, Some(0x0303));
        let ends = [CLIENT, SERVER].map(|side| session.handshake_end(side));
        prop_assert_eq!(ends, script.expected.map(|bytes| Some(bytes.handshake)));
    }

    #[test]
    fn what_the_capture_cut_is_counted_within_records_only(kept in 1..400_u64) {
        let mut script = Script::default();
        script.hello().say(CLIENT, CONTENT, &[0; 53], As::Handshake).talk();
        let mut session = Session::default();
        for (side, record) in &script.records {
            // Cut in the middle of a long record, and only counted from there on.
            let kept = (kept as usize).max(5).min(record.len());
            let is_hello = record[0] == HELLO;
            let kept = if is_hello { record.len() } else { kept };
            session.take(*side, Piece::Bytes(&record[..kept]));
            if kept < record.len() {
                session.take(*side, Piece::Cut((record.len() - kept) as u64));
            }
        }
        session.close(CLIENT);
        session.close(SERVER);
        script.check(&session);
    }

    #[test]
    fn whatever_was_missed_the_rest_adds_up(
        missed in vec((0..3_u8, any::<bool>()), 1..16),
        certificate in 0..3_usize,
    ) {
        let mut script = Script::default();
        script.hello();
        for _ in 0..certificate {
            script.say(CLIENT, CONTENT, &[0; 700], As::Handshake);
        }
        script.say(CLIENT, CONTENT, &[0; 53], As::Handshake).talk();
        let mut session = Session::default();
        let mut total = [0_u64; 2];
        for ((side, record), (kind, of_all)) in script.records.iter().zip(missed.iter().cycle()) {
            let kept = if *of_all { 0 } else { 5 + (record.len() - 5) / 2 };
            let rest = (record.len() - kept) as u64;
            session.take(*side, Piece::Bytes(&record[..kept]));
            total[*side as usize] += kept as u64;
            match kind {
                0 => session.take(*side, Piece::Bytes(&record[kept..])),
                1 => session.take(*side, Piece::Cut(rest)),
                _ => session.take(*side, Piece::Hole(rest)),
            }
            total[*side as usize] += if *kind < 2 { rest } else { 0 };
        }
        for side in [CLIENT, SERVER] {
            session.close(side);
            let Bytes { handshake, record, application, closing } = session.bytes(side);
            prop_assert_eq!(handshake + record + application + closing, total[side as usize]);
        }
    }

    #[test]
    fn no_stream_panics_and_no_byte_is_lost(
        streams in vec((any::<bool>(), vec(any::<u8>(), 0..200), 0..3_u8, 0..50_u64), 0..30),
    ) {
        let mut session = Session::default();
        let mut total = [0_u64; 2];
        for (from_client, bytes, kind, count) in streams {
            let side = if from_client { CLIENT } else { SERVER };
            let piece = match kind {
                0 => Piece::Bytes(&bytes),
                1 => Piece::Cut(count),
                _ => Piece::Hole(count),
            };
            total[side as usize] += match piece {
                Piece::Bytes(bytes) => bytes.len() as u64,
                Piece::Cut(count) => count,
                Piece::Hole(_) => 0,
            };
            session.take(side, piece);
        }
        for side in [CLIENT, SERVER] {
            session.close(side);
            let Bytes { handshake, record, application, closing } = session.bytes(side);
            prop_assert_eq!(handshake + record + application + closing, total[side as usize]);
        }
    }
}

#[test]
fn early_data_is_content() {
    let mut script = Script::default();
    script
        .say(CLIENT, HELLO, &client_hello(), As::Handshake)
        .say(CLIENT, CHANGE, &[1], As::Handshake)
        .say(CLIENT, CONTENT, &[0; 100], As::Content);
    // Before the server's hello the suite is unknown: only the header is overhead.
    script.expected[0].record -= 17;
    script.expected[0].application += 17;
    script.check(&script.play(&[]));
}

#[test]
fn a_hole_over_a_header_ends_the_reading_and_says_so() {
    let mut script = Script::default();
    script.hello().say(CLIENT, CONTENT, &[0; 53], As::Handshake);
    let mut session = script.play(&[]);
    session.take(CLIENT, Piece::Bytes(&[CONTENT, 3, 3, 0, 100, 1, 2]));
    // Still within the record.
    session.take(CLIENT, Piece::Hole(98));
    assert!(!session.facts().lost);
    session.take(CLIENT, Piece::Hole(3));
    assert!(session.facts().lost);
    session.take(CLIENT, Piece::Bytes(b"anything"));
    assert_eq!(session.bytes(CLIENT).application, 2 + 8);
}
