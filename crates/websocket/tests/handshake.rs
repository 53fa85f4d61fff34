//! The opening handshake: the standard's own example, bad answers and bad requests.

use weigh_websocket::upgrade::{
    Refusal, Upgrade, accept, read_answer, read_any_request, read_request, request, request_with,
};

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

#[test]
fn an_upgrade_needs_no_subprotocol() {
    let asked = request_with("h", "/a?b=c", "", "Authorization: Basic eA==\r\n", KEY_BYTES);
    assert!(!asked.contains("Protocol:") && asked.ends_with("Basic eA==\r\n\r\n"), "{asked}");
    let Ok(Upgrade::Done(length, found)) = read_any_request(asked.as_bytes()) else {
        panic!("refused")
    };
    assert_eq!((length, &*found.target, found.subprotocols.len()), (asked.len(), "/a?b=c", 0));
    let answer = found.accepted("");
    let taken = read_answer(answer.as_bytes(), KEY_BYTES, "");
    assert_eq!(taken, Ok(Upgrade::Done(answer.len(), ())));
    let chosen = read_answer(found.accepted("wamp").as_bytes(), KEY_BYTES, "");
    assert!(matches!(chosen, Err(Refusal::Malformed(what)) if what.contains("\"wamp\"")));
    let insists =
        answer.replace("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
    let refused = read_answer(insists.as_bytes(), KEY_BYTES, "");
    assert!(matches!(refused, Err(Refusal::Malformed(what)) if what.contains("extension")));
}
