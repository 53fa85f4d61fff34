//! The codec of AMQP 0-9-1: frames byte by byte against the specification's grammar, the frames of
//! the Python library pika as a second opinion, what is written and read back, what is refused.

use proptest::collection::vec;
use proptest::prelude::*;
use weigh_protocols::amqp::codec::{
    Cursor, FRAME_MIN, Field, Flaw, Frame, FrameKind, Header, Long, Method, PROTOCOL_HEADER,
    Properties, Short, Table, TableWriter, Value, code, method_name, put_body, put_heartbeat,
    read_frame,
};

const FRAME_MAX: u32 = 131_072;

/// Frames that pika 1.4.4 wrote: a name and the bytes in hexadecimal digits on each line.
const PIKA: &str = include_str!("amqp_frames/pika.txt");

fn pika(name: &str) -> Vec<u8> {
    let lines = PIKA.lines().filter_map(|line| line.split_once(' '));
    let (_, digits) = lines.clone().find(|(own, _)| *own == name).expect("a frame of pika");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn frame(bytes: &[u8]) -> Frame<'_> {
    let (frame, size) = read_frame(bytes, FRAME_MAX).unwrap().expect("a whole frame");
    assert_eq!(size, bytes.len());
    frame
}

fn written(method: &Method<'_>, channel: u16) -> Vec<u8> {
    let mut out = Vec::new();
    method.put(channel, &mut out);
    out
}

/// Section 4.2: type, channel, length, payload, end; class and method, then the fields.
#[test]
fn methods_are_the_bytes_of_the_grammar() {
    let key = Short("k");
    let examples: [(Method<'_>, u16, &[u8]); 6] = [
        (
            Method::Publish { reserved_1: 0, exchange: Short("ab"), routing_key: key, bits: 1 },
            1,
            b"\x01\0\x01\0\0\0\x0c\0\x3c\0\x28\0\0\x02ab\x01k\x01\xce",
        ),
        (
            Method::Ack { delivery_tag: 258, bits: 1 },
            2,
            b"\x01\0\x02\0\0\0\x0d\0\x3c\0\x50\0\0\0\0\0\0\x01\x02\x01\xce",
        ),
        (
            Method::TuneOk { channel_max: 2047, frame_max: 131_072, heartbeat_s: 60 },
            0,
            b"\x01\0\0\0\0\0\x0c\0\x0a\0\x1f\x07\xff\0\x02\0\0\0\x3c\xce",
        ),
        (
            Method::Qos { prefetch_size: 0, prefetch_count: 100, bits: 0 },
            1,
            b"\x01\0\x01\0\0\0\x0b\0\x3c\0\x0a\0\0\0\0\0\x64\0\xce",
        ),
        (Method::ConfirmSelect { bits: 0 }, 1, b"\x01\0\x01\0\0\0\x05\0\x55\0\x0a\0\xce"),
        (Method::ConnectionCloseOk {}, 0, b"\x01\0\0\0\0\0\x04\0\x0a\0\x33\xce"),
    ];
    for (method, channel, bytes) in examples {
        assert_eq!(written(&method, channel), bytes, "{}", method.name());
        let read = frame(bytes);
        assert_eq!((read.kind, read.channel), (FrameKind::Method, channel));
        assert_eq!(Method::read(read.payload), Ok(method));
    }
    assert_eq!(&PROTOCOL_HEADER, b"AMQP\x00\x00\x09\x01", "section 4.2.2");
    let mut out = Vec::new();
    put_heartbeat(&mut out);
    assert_eq!(out, b"\x08\0\0\0\0\0\0\xce", "section 4.2.7");
}

/// Sections 2.3.5.2 and 4.2.6: class, weight, size, flags from the highest bit down; then bodies.
#[test]
fn contents_are_the_bytes_of_the_grammar() {
    let properties = Properties {
        content_type: Some(Short("a/b")),
        delivery_mode: Some(2),
        ..Properties::default()
    };
    let mut raw = Vec::new();
    properties.put(&mut raw);
    let mut out = Vec::new();
    Header { body_bytes: 5, raw: &raw }.put(1, &mut out);
    assert_eq!(out, b"\x02\0\x01\0\0\0\x13\0\x3c\0\0\0\0\0\0\0\0\0\x05\x90\0\x03a/b\x02\xce");
    let header = Header::read(frame(&out).payload).unwrap();
    assert_eq!(Properties::read(header.raw), Ok(properties));
    out.clear();
    put_body(b"hello", 1, FRAME_MIN, &mut out);
    assert_eq!(out, b"\x03\0\x01\0\0\0\x05hello\xce");
    out.clear();
    put_body(&[7; 9000], 3, FRAME_MIN, &mut out);
    let mut rest = &out[..];
    let mut lengths = Vec::new();
    while let Some((frame, size)) = read_frame(rest, FRAME_MIN).unwrap() {
        lengths.push(frame.payload.len());
        rest = &rest[size..];
    }
    assert_eq!(lengths, [4088, 4088, 824], "frame-max includes 8 bytes of head and end");
}

/// Every frame of pika is read, and written again byte by byte.
#[test]
fn frames_of_pika_are_read_and_written_the_same() {
    let mut methods = 0;
    for line in PIKA.lines() {
        let (name, _) = line.split_once(' ').unwrap();
        let bytes = pika(name);
        if name == "protocol" {
            assert_eq!(bytes, PROTOCOL_HEADER);
            continue;
        }
        let read = frame(&bytes);
        match read.kind {
            FrameKind::Method => {
                let method = Method::read(read.payload).unwrap();
                assert_eq!(written(&method, read.channel), bytes, "{name}");
                methods += 1;
            }
            FrameKind::Header => {
                let header = Header::read(read.payload).unwrap();
                let properties = Properties::read(header.raw).unwrap();
                let (mut raw, mut out) = (Vec::new(), Vec::new());
                properties.put(&mut raw);
                Header { raw: &raw, ..header }.put(read.channel, &mut out);
                assert_eq!(out, bytes, "{name}");
            }
            FrameKind::Body => assert_eq!(read.payload, b"hello"),
            FrameKind::Heartbeat => assert!(read.payload.is_empty()),
        }
    }
    assert_eq!(methods, 32);
}

#[test]
fn fields_of_pika_have_their_values() {
    let bytes = pika("basic.deliver");
    let Ok(Method::Deliver { consumer_tag, delivery_tag, bits, exchange, routing_key }) =
        Method::read(frame(&bytes).payload)
    else {
        panic!("a delivery");
    };
    assert_eq!((consumer_tag, delivery_tag, bits), (Short("tag"), 1 << 33, 1));
    assert_eq!((exchange, routing_key), (Short("amq.direct"), Short("key")));
    let bytes = pika("start");
    let Ok(Method::Start { major: 0, minor: 9, server_properties, mechanisms, .. }) =
        Method::read(frame(&bytes).payload)
    else {
        panic!("a start");
    };
    assert_eq!(mechanisms, Long(b"PLAIN AMQPLAIN"));
    assert_eq!(server_properties.text("product"), Some("RabbitMQ"));
    assert!(server_properties.has_capability("capabilities", "basic.nack"));
    assert!(!server_properties.has_capability("capabilities", "other"));
    let bytes = pika("header-all");
    let header = Header::read(frame(&bytes).payload).unwrap();
    let properties = Properties::read(header.raw).unwrap();
    assert_eq!((header.body_bytes, properties.timestamp), (1 << 40, Some(1_600_000_000)));
    assert_eq!((properties.delivery_mode, properties.is_persistent()), (Some(1), false));
    assert_eq!(properties.headers.and_then(|table| table.text("h")), Some("v"));
}

#[test]
fn tables_have_every_type_of_value() {
    let bytes = pika("table");
    let Ok(Method::QueueDeclare { arguments, .. }) = Method::read(frame(&bytes).payload) else {
        panic!("a declaration");
    };
    for (name, value) in [
        ("flag", Value::Flag(true)),
        ("int", Value::Number(7)),
        ("long", Value::Number(1 << 40)),
        ("neg", Value::Number(-5)),
        ("text", Value::Text("é".as_bytes())),
        ("none", Value::Void),
        ("dec", Value::Decimal(2, 123)),
        ("raw", Value::Text(b"\0\xff")),
    ] {
        assert_eq!(arguments.get(name), Some(value), "{name}");
    }
    assert!(matches!(arguments.get("time"), Some(Value::Time(1_577_836_800))));
    assert!(matches!(arguments.get("array"), Some(Value::Array(_))));
    let all = b"\x01bb\x80\x01BB\x80\x01ss\xff\xff\x01uu\xff\xff\x01ii\xff\xff\xff\xff\
                \x01ff\x3f\xc0\0\0\x01dd\x3f\xf8\0\0\0\0\0\0";
    let mut whole = (all.len() as u32).to_be_bytes().to_vec();
    whole.extend_from_slice(all);
    let table = Table::read(&mut Cursor::new(&whole)).unwrap();
    let values: Vec<Value<'_>> = table.entries().map(|(_, value)| value).collect();
    let number = Value::Number;
    assert_eq!(values[..5], [-128, 128, -1, 65_535, 4_294_967_295].map(number));
    assert_eq!(values[5..], [Value::Real(1.5), Value::Real(1.5)]);
}

#[test]
fn what_is_malformed_is_named_and_not_read() {
    let refused = |bytes: &[u8]| read_frame(bytes, FRAME_MIN).unwrap_err();
    assert_eq!(refused(b"HTTP/1.1").code, code::FRAME_ERROR);
    assert!(refused(b"\x01\0\x01\0\x10\0\0").what.contains("frame-max"));
    assert!(refused(b"\x01\0\0\0\0\0\0\xcf").what.contains("0xCE"));
    assert!(refused(b"\x08\0\x01\0\0\0\0\xce").what.contains("heartbeat"));
    let payload = |bytes: &[u8]| Method::read(bytes).map(|method| method.name()).unwrap_err();
    assert_eq!(payload(b"\0\x3c\0\x63").code, code::NOT_IMPLEMENTED);
    assert_eq!(payload(b"\0\x3c\0\x50\0").code, code::SYNTAX_ERROR);
    assert_eq!(payload(b"\0\x0a\0\x33\0"), Flaw::syntax("bytes follow the last field"));
    assert_eq!(payload(b"\0\x0a\0\x3c\x02\xff\xfe").code, code::SYNTAX_ERROR, "not UTF-8");
    // A table that says it is longer than its frame, and one that nests without end.
    assert!(Table::read(&mut Cursor::new(b"\xff\xff\xff\xff")).is_err());
    let mut deep = b"\x01aV".to_vec();
    for _ in 0..40 {
        let mut outer = b"\x01aF".to_vec();
        outer.extend_from_slice(&(deep.len() as u32).to_be_bytes());
        outer.extend_from_slice(&deep);
        deep = outer;
    }
    let mut whole = (deep.len() as u32).to_be_bytes().to_vec();
    whole.extend_from_slice(&deep);
    let error = Table::read(&mut Cursor::new(&whole)).unwrap_err();
    assert!(error.what.contains("too deeply"), "{error}");
    let header = |bytes: &[u8]| Header::read(bytes).unwrap_err().code;
    assert_eq!(header(b"\0\x3d\0\0\0\0\0\0\0\0\0\0\0\0"), code::FRAME_ERROR, "another class");
    assert_eq!(header(b"\0\x3c\0\0\0\0\0\0\0\0\0\0\0\x01"), code::SYNTAX_ERROR, "more flags");
    assert_eq!(header(b"\0\x3c\0\0\0\0\0\0\0\0\0\0\x10\0"), code::SYNTAX_ERROR, "no mode");
}

#[test]
fn names_and_reply_codes_are_those_of_the_specification() {
    for (class, id, name) in [
        (10, 10, "connection.start"),
        (20, 41, "channel.close-ok"),
        (50, 10, "queue.declare"),
        (60, 120, "basic.nack"),
        (85, 11, "confirm.select-ok"),
    ] {
        assert_eq!(method_name(class, id), Some(name));
    }
    assert_eq!((method_name(60, 1), code::name(404), code::name(1)), (None, "NOT_FOUND", ""));
}

proptest! {
    #[test]
    fn no_bytes_make_reading_panic(bytes in vec(any::<u8>(), 0..200), kind in 0..5u8) {
        let _ = read_frame(&bytes, FRAME_MIN);
        let _ = Method::read(&bytes);
        let _ = Header::read(&bytes);
        let _ = Table::read(&mut Cursor::new(&bytes)).map(|table| table.entries().count());
        // With a plausible beginning the fields behind it are reached.
        let class = [10u8, 20, 40, 50, 60][usize::from(kind)];
        let id = bytes.first().map_or(10, |byte| byte % 13 * 10 + byte / 128);
        let _ = Method::read(&[&[0, class, 0, id], &bytes[..]].concat());
    }

    #[test]
    fn what_is_written_is_read_back(
        queue in "[a-zé]{0,60}", tag in any::<u64>(), bits in any::<u8>(), channel in any::<u16>(),
        text in "\\PC{0,40}", number in any::<i64>(), flag in any::<bool>(), cut in any::<usize>(),
    ) {
        let mut inner = TableWriter::default();
        inner.number("n", number).flag("f", flag);
        let mut table = TableWriter::default();
        table.text("t", &text).table("i", inner.as_table());
        let method = Method::QueueDeclare {
            reserved_1: 0, queue: Short(&queue), bits, arguments: table.as_table(),
        };
        let mut bytes = written(&method, channel);
        let declared = bytes.len();
        let ack = Method::Ack { delivery_tag: tag, bits };
        ack.put(channel, &mut bytes);
        let (first, size) = read_frame(&bytes, FRAME_MAX).unwrap().unwrap();
        prop_assert_eq!((size, first.channel), (declared, channel));
        prop_assert_eq!(Method::read(first.payload), Ok(method));
        let (second, _) = read_frame(&bytes[size..], FRAME_MAX).unwrap().unwrap();
        prop_assert_eq!(Method::read(second.payload), Ok(ack));
        // No part of a frame is taken for a whole one.
        prop_assert_eq!(read_frame(&bytes[..cut % declared], FRAME_MAX), Ok(None));
    }

    #[test]
    fn short_strings_are_cut_where_a_character_ends(text in "\\PC{200,300}") {
        let mut out = Vec::new();
        Short(&text).put(&mut out);
        let Short(read) = Short::read(&mut Cursor::new(&out)).unwrap();
        prop_assert!(text.starts_with(read) && out.len() <= 256);
    }
}
