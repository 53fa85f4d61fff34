use std::sync::Arc;

use proptest::prelude::*;
use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_stats::random::Random;

use super::codec::{Broken, Control, Decoder, Opcode, header_bytes, put_frame};
use super::session::{Session, Side};
use super::tally::Tally;
use super::upgrade::{Refusal, Upgrade, accept, read_answer, read_request, request};
use super::{ClientChoice, Figures};
use crate::layer::session::Session as Layer;

/// The examples of RFC 6455, section 5.7.
#[test]
fn frames_are_those_of_the_standard() {
    let frame = |opcode, mask, payload: &[u8]| {
        let mut out = Vec::new();
        put_frame(&mut out, opcode, mask, payload);
        out
    };
    assert_eq!(frame(Opcode::Text, None, b"Hello"), b"\x81\x05Hello");
    let key = Some([0x37, 0xfa, 0x21, 0x3d]);
    let masked = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    assert_eq!(frame(Opcode::Text, key, b"Hello"), masked);
    assert_eq!(frame(Opcode::Ping, None, b"Hello"), b"\x89\x05Hello");
    let pong = b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    assert_eq!(frame(Opcode::Pong, key, b"Hello"), pong);
    assert_eq!(frame(Opcode::Binary, None, &[0; 256])[..4], [0x82, 0x7e, 0x01, 0x00]);
    let long = frame(Opcode::Binary, None, &[0; 65_536]);
    assert_eq!(long[..10], [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
    for (length, header) in [(0, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10)] {
        let payload = vec![7; length];
        for (mask, more) in [(None, 0), (key, 4)] {
            let bytes = frame(Opcode::Binary, mask, &payload).len();
            assert_eq!(bytes, length + header + more);
            assert_eq!(header_bytes(length as u64, mask.is_some()), (header + more) as u64);
        }
    }
}

fn decoded(expects_mask: bool, bytes: &[u8]) -> Result<(Vec<u8>, Vec<String>), Broken> {
    let (mut plain, mut told) = (Vec::new(), Vec::new());
    let mut decoder = Decoder::new(expects_mask);
    decoder.take(bytes, &mut plain, &mut |control| told.push(format!("{control:?}")))?;
    Ok((plain, told))
}

#[test]
fn pieces_of_a_message_are_joined_and_controls_may_lie_between() {
    // Section 5.7: "Hel" and "lo", as bytes; a ping between them.
    let bytes = b"\x02\x03Hel\x89\x01p\x80\x02lo\x88\x06\x03\xe8done";
    let (plain, told) = decoded(false, bytes).unwrap();
    assert_eq!(plain, b"Hello");
    assert_eq!(told, ["Ping([112])", "Close(Some(1000), \"done\")"]);
}

#[test]
fn what_breaks_the_rules_is_named_with_its_code() {
    let cases: [(&[u8], u16, &str); 13] = [
        (b"\xc2\x00", 1002, "reserved bits"),
        (b"\x83\x00", 1002, "no opcode 3"),
        (b"\x82\x80\0\0\0\0", 1002, "is masked"),
        (b"\x80\x00", 1002, "continuation of nothing"),
        (b"\x02\x00\x02\x00", 1002, "inside another"),
        (b"\x82\x7e\x00\x7d", 1002, "a length of 125"),
        (b"\x82\x7f\0\0\0\0\0\0\xff\xff", 1002, "a length of 65535"),
        (b"\x82\x7f\xff\0\0\0\0\0\0\0", 1002, "not written so"),
        (b"\x09\x00", 1002, "control frame"),
        (b"\x89\x7e\x00\x7e", 1002, "control frame"),
        (b"\x81\x00", 1003, "text came"),
        (b"\x88\x01\x03", 1002, "half a close code"),
        (b"\x88\x02\x03\xed", 1002, "1005 is not a close code"),
    ];
    for (bytes, code, said) in cases {
        let broken = decoded(false, bytes).unwrap_err();
        assert_eq!(broken.code, code, "{bytes:?}");
        assert!(broken.what.contains(said), "{} says not {said}", broken.what);
    }
    assert!(decoded(true, b"\x82\x00").unwrap_err().what.contains("a client's frame is not"));
    assert_eq!(decoded(false, b"\x88\x03\x03\xe8\xff").unwrap_err().code, 1007);
}

proptest! {
    /// Whatever the cuts, whatever the mask: what was put in comes out.
    #[test]
    fn frames_survive_every_cut(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6),
        key: [u8; 4],
        cut in 1usize..40,
    ) {
        let mut wire = Vec::new();
        for body in &bodies {
            put_frame(&mut wire, Opcode::Binary, Some(key), body);
        }
        let (mut plain, mut decoder) = (Vec::new(), Decoder::new(true));
        for piece in wire.chunks(cut) {
            decoder.take(piece, &mut plain, &mut |_| {}).unwrap();
        }
        prop_assert_eq!(plain, bodies.concat());
        prop_assert!(!decoder.is_inside());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), mask: bool) {
        let _ = decoded(mask, &bytes);
        let _ = read_answer(&bytes, [0; 16], "parcel");
        let _ = read_request(&bytes, "parcel");
    }
}

/// Key and answer of RFC 6455, section 1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const KEY_BYTES: [u8; 16] = *b"the sample nonce";

#[test]
fn an_upgrade_is_asked_for_and_answered_as_in_the_standard() {
    assert_eq!(accept(KEY), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let asked = request("example.com", "/parcel", "parcel", KEY_BYTES);
    assert!(asked.contains(&format!("Sec-WebSocket-Key: {KEY}\r\n")), "{asked}");
    let Ok(Upgrade::Done(length, answer)) = read_request(asked.as_bytes(), "parcel") else {
        panic!("refused")
    };
    assert_eq!(length, asked.len());
    let taken = read_answer(answer.as_bytes(), KEY_BYTES, "parcel");
    assert_eq!(taken, Ok(Upgrade::Done(answer.len(), ())));
    for end in 1..answer.len() {
        let part = read_answer(&answer.as_bytes()[..end], KEY_BYTES, "parcel");
        assert_eq!(part, Ok(Upgrade::Unfinished));
    }
}

#[test]
fn bad_answers_are_told_apart() {
    let asked = request("h", "/", "parcel", KEY_BYTES);
    let Ok(Upgrade::Done(_, good)) = read_request(asked.as_bytes(), "parcel") else {
        panic!("refused")
    };
    let malformed = |answer: &str| match read_answer(answer.as_bytes(), KEY_BYTES, "parcel") {
        Err(Refusal::Malformed(what)) => what,
        other => panic!("{other:?}"),
    };
    assert!(malformed(&good.replace("s3pP", "S3pP")).contains("another key"));
    assert!(malformed(&good.replace("Upgrade: websocket\r\n", "")).contains("does not say"));
    assert!(malformed(&good.replace(": parcel", ": wamp")).contains("\"wamp\""));
    let without = good.replace("Sec-WebSocket-Protocol: parcel\r\n", "");
    assert!(malformed(&without).contains("does not take the subprotocol parcel"));
    let status = read_answer(b"HTTP/1.1 404 Not Found\r\n\r\n", KEY_BYTES, "parcel");
    assert_eq!(status, Err(Refusal::Status(404, "Not Found".to_owned())));
    let other = read_answer(b"\x20\x02\x00\x00", KEY_BYTES, "parcel");
    assert!(matches!(other, Err(Refusal::OtherProtocol(_))), "{other:?}");
}

#[test]
fn bad_requests_are_turned_away_with_a_status() {
    let good = request("h", "/", "parcel", KEY_BYTES);
    for (request, status) in [
        (good.replace("GET", "PUT"), "400 "),
        (good.replace("Upgrade: websocket\r\n", ""), "426 "),
        (good.replace("Version: 13", "Version: 8"), "426 "),
        (good.replace(KEY, "c2hvcnQ="), "400 "),
        (good.replace("Protocol: parcel", "Protocol: wamp"), "400 "),
        (good.replace("Host: h\r\n", ""), "400 "),
        ("\x10\x0e\0\x04abcd".to_owned(), "400 "),
    ] {
        let away = read_request(request.as_bytes(), "parcel").unwrap_err();
        assert!(away.answer.starts_with(&format!("HTTP/1.1 {status}")), "{}", away.answer);
    }
}

/// Both ends, and what is under way between them.
struct Pair {
    client: Session,
    server: Session,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Pair {
    fn new(tally: &Arc<Tally>) -> Pair {
        let choice = ClientChoice {
            host: "h".into(),
            path: "/parcel".into(),
            subprotocol: "parcel".into(),
            seed: 1,
        };
        let side = Side::client(&choice, Random::new(1));
        let client = Session::new(side, Nanos(0), Arc::clone(tally));
        let server = Session::new(Side::server("parcel"), Nanos(0), Arc::default());
        Pair { client, server, to_server: Vec::new(), to_client: Vec::new() }
    }

    /// Both stand.
    fn upgraded(tally: &Arc<Tally>) -> Pair {
        let mut pair = Pair::new(tally);
        let mut nothing = Vec::new();
        let started = pair.client.feed(&[], Nanos(0), &mut nothing, &mut pair.to_server);
        assert_eq!((started, pair.client.stands()), (Ok(false), false));
        assert_eq!(pair.at_server(), Ok((true, Vec::new())));
        assert_eq!(pair.at_client(), Ok((true, Vec::new())));
        pair
    }

    fn at_server(&mut self) -> Result<(bool, Vec<u8>), Fault> {
        let (input, mut plain) = (std::mem::take(&mut self.to_server), Vec::new());
        let began = self.server.feed(&input, Nanos(0), &mut plain, &mut self.to_client)?;
        Ok((began, plain))
    }

    fn at_client(&mut self) -> Result<(bool, Vec<u8>), Fault> {
        let (input, mut plain) = (std::mem::take(&mut self.to_client), Vec::new());
        let began = self.client.feed(&input, Nanos(0), &mut plain, &mut self.to_server)?;
        Ok((began, plain))
    }
}

#[test]
fn a_session_carries_both_ways_and_counts_what_it_adds() {
    let tally = Arc::new(Tally::default());
    let mut pair = Pair::upgraded(&tally);
    pair.client.say(&[9; 200], &mut pair.to_server).unwrap();
    assert_eq!(pair.to_server.len(), 200 + 8);
    assert_eq!(pair.at_server(), Ok((false, vec![9; 200])));
    pair.server.say(&[7; 100], &mut pair.to_client).unwrap();
    assert_eq!(pair.to_client.len(), 100 + 2);
    assert_eq!(pair.at_client(), Ok((false, vec![7; 100])));
    pair.client.goodbye(&mut pair.to_server);
    assert_eq!(pair.to_server.len(), 8, "header, mask and code");
    assert_eq!(pair.at_server(), Ok((false, Vec::new())));
    assert!(pair.server.has_peer_closed());
    assert_eq!(pair.to_client, b"\x88\x02\x03\xe8");
    assert_eq!(pair.at_client(), Ok((false, Vec::new())));
    assert!(pair.client.has_peer_closed() && pair.to_server.is_empty());
    drop(pair);
    let figures = tally.figures();
    let Figures { frame_sent_bytes, frame_received_bytes, upgrades, .. } = figures;
    assert_eq!((frame_sent_bytes, frame_received_bytes, upgrades), (16, 6, 1));
    let sent = request("h", "/parcel", "parcel", [0; 16]).len() as u64;
    assert_eq!(figures.upgrade_sent_bytes, sent);
}

#[test]
fn pings_are_answered_and_a_bad_end_has_its_reason() {
    let mut pair = Pair::upgraded(&Arc::default());
    put_frame(&mut pair.to_client, Opcode::Ping, None, b"are you there");
    pair.at_client().unwrap();
    let mut told = Vec::new();
    let mut server = Decoder::new(true);
    let pong = std::mem::take(&mut pair.to_server);
    let answered = server.take(&pong, &mut Vec::new(), &mut |control| match control {
        Control::Pong(payload) => told.extend_from_slice(payload),
        other => panic!("{other:?}"),
    });
    assert_eq!((answered, told.as_slice()), (Ok(()), &b"are you there"[..]));
    put_frame(&mut pair.to_client, Opcode::Close, None, b"\x03\xf3too busy");
    let fault = pair.at_client().unwrap_err().to_string();
    assert!(fault.contains("close code 1011: too busy"), "{fault}");
}

#[test]
fn a_broken_frame_is_answered_by_its_code() {
    let mut pair = Pair::upgraded(&Arc::default());
    pair.to_client.extend_from_slice(b"\x81\x02hi");
    let fault = pair.at_client().unwrap_err().to_string();
    assert!(fault.contains("WebSocket: text came"), "{fault}");
    let seen = decoded(true, &pair.to_server).unwrap().1;
    assert_eq!(seen, ["Close(Some(1003), \"\")"]);
    assert_eq!(pair.at_client(), Ok((false, Vec::new())), "nothing is read after that");
}
