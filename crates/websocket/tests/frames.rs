//! Frames: the standard's own examples, violations with their codes, and cuts at every place.

use proptest::prelude::*;
use weigh_websocket::frame::{apply_mask, put_part};
use weigh_websocket::upgrade::{read_answer, read_any_request, read_request};
use weigh_websocket::{Broken, Decoder, Header, Messages, Opcode, Rules, header_bytes, put_frame};

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
        let _ = read_any_request(&bytes);
    }
}

/// The examples of RFC 6455, section 5.7, read: one frame, one that is masked, fragments of text
/// with a control frame between, and a large message.
#[test]
fn headers_of_the_standard_are_read() {
    let header = |bytes: &[u8], mask| Header::read(bytes, mask).unwrap().unwrap();
    let of = |opcode, is_last, length| Header { opcode, is_last, mask: None, length };
    assert_eq!(header(b"\x81\x05Hello", false), (of(Opcode::Text, true, 5), 2));
    let masked = Header { mask: Some([0x37, 0xfa, 0x21, 0x3d]), ..of(Opcode::Text, true, 5) };
    let bytes = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    assert_eq!(header(bytes, true), (masked, 6));
    let mut payload = bytes[6..].to_vec();
    apply_mask(&mut payload, [0x37, 0xfa, 0x21, 0x3d], 0);
    assert_eq!(payload, b"Hello");
    assert_eq!(header(b"\x01\x03Hel", false), (of(Opcode::Text, false, 3), 2));
    assert_eq!(header(b"\x80\x02lo", false), (of(Opcode::Continuation, true, 2), 2));
    assert_eq!(header(b"\x82\x7e\x01\x00", false), (of(Opcode::Binary, true, 256), 4));
    let large = b"\x82\x7f\0\0\0\0\0\x01\0\0";
    assert_eq!(header(large, false), (of(Opcode::Binary, true, 65_536), 10));
    for end in 0..large.len() {
        assert_eq!(Header::read(&large[..end], false), Ok(None));
    }
    let mut out = Vec::new();
    put_part(&mut out, Opcode::Text, None, b"Hel", false);
    put_frame(&mut out, Opcode::Ping, None, b"");
    put_part(&mut out, Opcode::Continuation, None, b"lo", true);
    assert_eq!(out, b"\x01\x03Hel\x89\x00\x80\x02lo");
}

#[test]
fn messages_have_one_kind_a_limit_and_an_end() {
    let rules = Rules { accepts_text: true, message_bytes_max: 5 };
    let of = |opcode, is_last, length| Header { opcode, is_last, mask: None, length };
    let mut messages = Messages::default();
    let begun = of(Opcode::Text, false, 3);
    assert_eq!((messages.check(&begun, &rules), messages.pass(&begun)), (Ok(()), None));
    assert!(messages.is_inside());
    let ping = of(Opcode::Ping, true, 125);
    assert_eq!((messages.check(&ping, &rules), messages.pass(&ping)), (Ok(()), None));
    let inside = messages.check(&of(Opcode::Binary, true, 1), &rules).unwrap_err();
    assert!(inside.what.contains("inside another"), "{inside}");
    let large = messages.check(&of(Opcode::Continuation, true, 3), &rules).unwrap_err();
    assert_eq!((large.code, large.what.contains("6 bytes, and at most 5")), (1009, true));
    let end = of(Opcode::Continuation, true, 2);
    assert_eq!((messages.check(&end, &rules), messages.pass(&end)), (Ok(()), Some(Opcode::Text)));
    assert!(!messages.is_inside());
    let nothing = messages.check(&end, &rules).unwrap_err();
    assert!(nothing.what.contains("continuation of nothing"), "{nothing}");
    let whole = of(Opcode::Binary, true, 5);
    assert_eq!(messages.pass(&whole), Some(Opcode::Binary));
    let text = Messages::default().check(&of(Opcode::Text, true, 0), &Rules::BYTES).unwrap_err();
    assert_eq!(text.code, 1003);
}

proptest! {
    /// A header is read as it was written, and needs all its bytes.
    #[test]
    fn headers_are_read_as_they_were_written(
        kind in 0usize..3,
        is_last: bool,
        mask: Option<[u8; 4]>,
        length in prop_oneof![0u64..126, 126u64..65_536, 65_536u64..=i64::MAX as u64],
    ) {
        let opcode = [Opcode::Continuation, Opcode::Text, Opcode::Binary][kind];
        let header = Header { opcode, is_last, mask, length };
        let mut out = Vec::new();
        header.put(&mut out);
        prop_assert_eq!(out.len() as u64, header_bytes(length, mask.is_some()));
        prop_assert_eq!(Header::read(&out, mask.is_some()), Ok(Some((header, out.len()))));
        for end in 0..out.len() {
            prop_assert_eq!(Header::read(&out[..end], mask.is_some()), Ok(None));
        }
    }
}
