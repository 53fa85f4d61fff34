//! The codec of CoAP: the examples of RFC 7252, what is written and read back, what is refused, and
//! the crate coap-lite as a second opinion.

use coap_lite::{CoapOption as Foreign, MessageType, Packet};
use proptest::collection::vec;
use proptest::prelude::*;
use weigh_protocols::coap::codec::{
    Block, Code, Flaw, Kind, OptionWriter, Token, code, number, parse, peek, put_empty, put_head,
    put_payload, read_unsigned,
};

fn written(
    kind: Kind,
    code: Code,
    id: u16,
    token: &[u8],
    options: &[(u16, Vec<u8>)],
    payload: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    put_head(&mut out, kind, code, id, Token::of(token));
    let mut writer = OptionWriter::default();
    for (number, value) in options {
        writer.put(&mut out, *number, value);
    }
    put_payload(&mut out, payload);
    out
}

/// Appendix A: figures 16 and 17, and the messages of figures 19 and 20.
#[test]
fn the_examples_of_the_specification_are_written_and_read() {
    let path = vec![(number::URI_PATH, b"temperature".to_vec())];
    let examples: [(Vec<u8>, &[u8]); 8] = [
        (
            written(Kind::Confirmable, code::GET, 0x7d34, b"", &path, b""),
            b"\x40\x01\x7d\x34\xbbtemperature",
        ),
        (
            written(Kind::Acknowledgement, code::CONTENT, 0x7d34, b"", &[], b"22.3 C"),
            b"\x60\x45\x7d\x34\xff22.3 C",
        ),
        (
            written(Kind::Confirmable, code::GET, 0x7d35, b"\x20", &path, b""),
            b"\x41\x01\x7d\x35\x20\xbbtemperature",
        ),
        (
            written(Kind::Acknowledgement, code::CONTENT, 0x7d35, b"\x20", &[], b"22.3 C"),
            b"\x61\x45\x7d\x35\x20\xff22.3 C",
        ),
        (written(Kind::Acknowledgement, code::EMPTY, 0x7d38, b"", &[], b""), b"\x60\x00\x7d\x38"),
        (
            written(Kind::Confirmable, code::CONTENT, 0xad7b, b"\x53", &[], b"22.3 C"),
            b"\x41\x45\xad\x7b\x53\xff22.3 C",
        ),
        (
            written(Kind::NonConfirmable, code::GET, 0x7d40, b"\x75", &path, b""),
            b"\x51\x01\x7d\x40\x75\xbbtemperature",
        ),
        (written(Kind::Reset, code::EMPTY, 0x7d40, b"", &[], b""), b"\x70\x00\x7d\x40"),
    ];
    for (own, example) in examples {
        assert_eq!(own, example);
        let message = parse(example).unwrap();
        assert_eq!(message.id, u16::from_be_bytes([example[2], example[3]]));
        assert_eq!(Packet::from_bytes(example).unwrap().header.message_id, message.id);
    }
    let message = parse(b"\x41\x01\x7d\x35\x20\xbbtemperature").unwrap();
    assert_eq!((message.kind, message.code), (Kind::Confirmable, code::GET));
    assert_eq!(message.token, Token::of(b"\x20"));
    assert_eq!(message.options.first(number::URI_PATH), Some(&b"temperature"[..]));
    assert_eq!(message.payload, b"");
}

/// Section 3.1: 12 fits the nibble, 13 and 268 take a byte more, 269 and more take two.
#[test]
fn deltas_and_lengths_are_extended_where_section_3_1_says() {
    for (value, nibble, extension) in [
        (0usize, 0u8, &[][..]),
        (12, 12, &[]),
        (13, 13, &[0]),
        (268, 13, &[255]),
        (269, 14, &[0, 0]),
        (65_535, 14, &[0xfe, 0xf2]),
    ] {
        let by_delta =
            written(Kind::Confirmable, code::GET, 1, b"", &[(value as u16, vec![])], b"");
        assert_eq!(by_delta[4], nibble << 4, "delta {value}");
        assert_eq!(&by_delta[5..], extension, "delta {value}");
        let by_length = written(Kind::Confirmable, code::GET, 1, b"", &[(1, vec![7; value])], b"");
        assert_eq!(by_length[4], 1 << 4 | nibble, "length {value}");
        assert_eq!(&by_length[5..5 + extension.len()], extension, "length {value}");
        for bytes in [by_delta, by_length] {
            let option = parse(&bytes).unwrap().options.iter().next().unwrap();
            assert!(usize::from(option.number) == value || option.value.len() == value);
        }
    }
}

#[test]
fn what_the_specification_forbids_is_refused() {
    for (bytes, flaw) in [
        (&b""[..], Flaw::Short),
        (b"\x40\x01\x7d", Flaw::Short),
        (b"\x80\x01\x7d\x34", Flaw::Version(2)),
        (b"\x00\x01\x7d\x34", Flaw::Version(0)),
        (b"\x49\x01\x7d\x34123456789", Flaw::TokenLength(9)),
        (b"\x4f\x01\x7d\x34123456789", Flaw::TokenLength(15)),
        (b"\x42\x01\x7d\x341", Flaw::TokenCut),
        (b"\x41\x00\x7d\x341", Flaw::NotEmpty),
        (b"\x60\x00\x7d\x34\xffx", Flaw::NotEmpty),
        (b"\x40\x20\x7d\x34", Flaw::Class(1)),
        (b"\x40\xc0\x7d\x34", Flaw::Class(6)),
        (b"\x40\xe0\x7d\x34", Flaw::Class(7)),
        (b"\x40\x01\x7d\x34\xf0", Flaw::OptionReserved),
        (b"\x40\x01\x7d\x34\x0f", Flaw::OptionReserved),
        (b"\x40\x01\x7d\x34\xd0", Flaw::OptionCut),
        (b"\x40\x01\x7d\x34\xe0\x00", Flaw::OptionCut),
        (b"\x40\x01\x7d\x34\x12a", Flaw::OptionCut),
        (b"\x40\x01\x7d\x34\xe0\xff\xff", Flaw::OptionNumber),
        (b"\x40\x01\x7d\x34\xff", Flaw::NoPayload),
    ] {
        assert_eq!(parse(bytes), Err(flaw), "{}", bytes.escape_ascii());
        // Other versions are ignored; everything else of four bytes can be rejected.
        let is_rejected = bytes.len() >= 4 && bytes[0] >> 6 == 1;
        assert_eq!(peek(bytes).is_some(), is_rejected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn codes_are_read_as_they_are_written() {
    assert_eq!(code::NOT_FOUND.to_string(), "4.04");
    assert_eq!((code::NOT_FOUND.number(), code::NOT_FOUND.name()), (404, Some("Not Found")));
    assert_eq!(code::CHANGED, Code(0x44));
    assert_eq!((code::CONTINUE.to_string(), code::CONTINUE.is_success()), ("2.31".into(), true));
    assert!(code::POST.is_request() && !code::EMPTY.is_request() && !code::CHANGED.is_request());
    assert!(code::CHANGED.is_response() && !code::POST.is_response());
}

/// RFC 7959, section 2.2: NUM, M and SZX in 0 to 3 bytes.
#[test]
fn blocks_are_numbers_of_twenty_bits() {
    let block = Block { index: 62, has_more: true, szx: 6 };
    assert_eq!(block.number(), 62 << 4 | 8 | 6);
    assert_eq!(Block::read(&[0x03, 0xee]), Some(block));
    assert_eq!(Block::read(b""), Some(Block { index: 0, has_more: false, szx: 0 }));
    assert_eq!(block.bytes(), 1024);
    assert_eq!(Block::read(&[7]), None, "the reserved size");
    assert_eq!(Block::read(&[1, 2, 3, 4]), None);
    assert_eq!((read_unsigned(&[1, 0]), read_unsigned(&[0; 5])), (Some(256), None));
}

#[test]
fn empty_messages_have_four_bytes() {
    let mut out = Vec::new();
    put_empty(&mut out, Kind::Acknowledgement, 0x0102);
    assert_eq!(out, [0x60, 0, 1, 2]);
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Confirmable),
        Just(Kind::NonConfirmable),
        Just(Kind::Acknowledgement),
        Just(Kind::Reset),
    ]
}

fn options() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let lengths = prop_oneof![0..20usize, 260..280usize];
    let value = lengths.prop_flat_map(|length| vec(any::<u8>(), length));
    vec((any::<u16>(), value), 0..6).prop_map(|mut options| {
        options.sort_by_key(|(number, _)| *number);
        options
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_here_and_elsewhere(
        kind in kinds(),
        code in prop_oneof![1..32u8, 0x40..0xc0u8],
        id in any::<u16>(),
        token in vec(any::<u8>(), 0..9),
        options in options(),
        payload in vec(any::<u8>(), 0..50),
    ) {
        let bytes = written(kind, Code(code), id, &token, &options, &payload);
        let message = parse(&bytes).unwrap();
        prop_assert_eq!((message.kind, message.code, message.id), (kind, Code(code), id));
        prop_assert_eq!(message.token.bytes(), &token[..]);
        prop_assert_eq!(message.payload, &payload[..]);
        let read: Vec<(u16, Vec<u8>)> =
            message.options.iter().map(|own| (own.number, own.value.to_vec())).collect();
        prop_assert_eq!(&read, &options);

        let foreign = Packet::from_bytes(&bytes).unwrap();
        let its_kind = match foreign.header.get_type() {
            MessageType::Confirmable => Kind::Confirmable,
            MessageType::NonConfirmable => Kind::NonConfirmable,
            MessageType::Acknowledgement => Kind::Acknowledgement,
            MessageType::Reset => Kind::Reset,
        };
        prop_assert_eq!((its_kind, foreign.header.message_id), (kind, id));
        prop_assert_eq!((foreign.get_token(), &foreign.payload[..]), (&token[..], &payload[..]));
        for (number, _) in &options {
            let own = read.iter().filter(|(of, _)| of == number).map(|(_, value)| value.clone());
            let own: Vec<Vec<u8>> = own.collect();
            let its = foreign.get_option(Foreign::from(*number)).cloned().unwrap_or_default();
            prop_assert_eq!(its.into_iter().collect::<Vec<_>>(), own);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..60), first in 0x40..0x80u8) {
        let bytes = [&[first][..], &bytes].concat();
        if let Ok(message) = parse(&bytes) {
            let options: usize = message.options.iter().map(|option| 1 + option.value.len()).sum();
            prop_assert!(options <= message.options.bytes().len());
            prop_assert!(message.payload.len() < bytes.len());
        }
    }
}
