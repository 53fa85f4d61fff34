//! The codec of AMQP 1.0: values and a composite byte by byte as the specification prints them, the
//! frames of the library Qpid Proton as a second opinion, what is written and read back, what is
//! refused.

use proptest::collection::vec;
use proptest::prelude::*;
use weigh_protocols::amqp1::codec::{
    AMQP_HEADER, Array, Attach, Begin, Body, Compound, Cursor, Delivery, Detach, Disposition,
    FRAME_MIN, Fields, Flow, Frame, FrameKind, Header, MECHANISMS, Message, Open, Outcome,
    Performative, Problem, Role, SASL_HEADER, Sasl, State, Symbols, Terminus, Transfer, Value,
    name, put_data_head, put_delivery, put_empty, read_frame,
};

const FRAME_MAX: u32 = 131_072;

/// What a client and a server of Qpid Proton 0.40.0 wrote: an end and the bytes in hexadecimal
/// digits on each line.
const PROTON: &str = include_str!("amqp1_frames/proton.txt");

fn value(bytes: &[u8]) -> Value<'_> {
    let mut cursor = Cursor::new(bytes);
    let value = cursor.value().unwrap_or_else(|flaw| panic!("{flaw}: {bytes:02x?}"));
    assert!(cursor.is_empty(), "{bytes:02x?}");
    value
}

fn frame(bytes: &[u8]) -> Frame<'_> {
    let (frame, size) = read_frame(bytes, FRAME_MAX).unwrap().expect("a whole frame");
    assert_eq!(size, bytes.len());
    frame
}

fn written(performative: &Performative<'_>, channel: u16) -> Vec<u8> {
    let mut out = Vec::new();
    performative.put(channel, &mut out);
    out
}

/// Part 1, section 1.6: every encoding of every type that is used.
#[test]
fn values_are_the_bytes_of_the_specification() {
    for (bytes, expected) in [
        (&b"\x40"[..], Value::Null),
        (b"\x56\x01", Value::Bool(true)),
        (b"\x41", Value::Bool(true)),
        (b"\x42", Value::Bool(false)),
        (b"\x50\xff", Value::Ubyte(255)),
        (b"\x60\x01\x02", Value::Ushort(258)),
        (b"\x70\0\0\x01\0", Value::Uint(256)),
        (b"\x52\x07", Value::Uint(7)),
        (b"\x43", Value::Uint(0)),
        (b"\x80\0\0\0\0\0\0\x01\0", Value::Ulong(256)),
        (b"\x53\x24", Value::Ulong(0x24)),
        (b"\x44", Value::Ulong(0)),
        (b"\x51\xff", Value::Byte(-1)),
        (b"\x61\xff\xfe", Value::Short(-2)),
        (b"\x71\xff\xff\xff\xfd", Value::Int(-3)),
        (b"\x54\xfc", Value::Int(-4)),
        (b"\x81\xff\xff\xff\xff\xff\xff\xff\xfb", Value::Long(-5)),
        (b"\x55\xfa", Value::Long(-6)),
        (b"\x72\x3f\x80\0\0", Value::Float(1.0)),
        (b"\x82\x3f\xf0\0\0\0\0\0\0", Value::Double(1.0)),
        (b"\x74\0\0\0\x01", Value::Decimal(b"\0\0\0\x01")),
        (b"\x73\0\0\0\x41", Value::Char(65)),
        (b"\x83\0\0\x01\x2a\0\0\0\0", Value::Timestamp(1_279_900_254_208)),
        (b"\x98aaaabbbbccccdddd", Value::Uuid(b"aaaabbbbccccdddd")),
        (b"\xa0\x02\0\xff", Value::Binary(b"\0\xff")),
        (b"\xb0\0\0\0\x01x", Value::Binary(b"x")),
        (b"\xa1\x03URL", Value::Text("URL")),
        (b"\xb1\0\0\0\x03URL", Value::Text("URL")),
        (b"\xa3\x04amqp", Value::Symbol("amqp")),
        (b"\x45", Value::List(Compound::default())),
        (b"\xc0\x03\x02\x41\x42", Value::List(Compound { count: 2, items: b"\x41\x42" })),
        (b"\xd0\0\0\0\x05\0\0\0\x01\x41", Value::List(Compound { count: 1, items: b"\x41" })),
        (b"\xc1\x03\x02\x43\x44", Value::Map(Compound { count: 2, items: b"\x43\x44" })),
        (
            b"\xe0\x04\x02\x50\x07\x08",
            Value::Array(Array { count: 2, code: 0x50, items: b"\x07\x08" }),
        ),
    ] {
        assert_eq!(value(bytes), expected, "{bytes:02x?}");
        assert_eq!(Cursor::new(bytes).raw(), Ok(bytes), "read over");
        for end in 0..bytes.len() {
            assert!(Cursor::new(&bytes[..end]).value().is_err(), "cut: {bytes:02x?}");
        }
    }
}

/// Part 1, sections 1.2 and 1.4: the described string and the book.
#[test]
fn described_values_are_the_examples_of_the_specification() {
    let url = b"\0\xa1\x03URL\xa1\x1ehttp://example.org/hello-world";
    let Value::Described(described) = value(url) else { panic!("it is described") };
    assert_eq!(value(described.descriptor), Value::Text("URL"));
    assert_eq!(value(described.value), Value::Text("http://example.org/hello-world"));
    let book = b"\0\xa3\x11example:book:list\xc0\x40\x03\xa1\x15AMQP for & by Dummies\
                 \xe0\x25\x02\xa1\x0eRob J. Godfrey\x13Rafael H. Schloming\x40";
    let Value::Described(described) = value(book) else { panic!("it is described") };
    assert_eq!(value(described.descriptor), Value::Symbol("example:book:list"));
    assert!(described.code().is_err(), "it is not of AMQP");
    let mut fields = Fields::of(described).unwrap();
    assert_eq!(fields.value(), Ok(Value::Text("AMQP for & by Dummies")));
    let Ok(Value::Array(authors)) = fields.value() else { panic!("an array") };
    let authors: Vec<Value<'_>> = authors.iter().map(Result::unwrap).collect();
    assert_eq!(authors, [Value::Text("Rob J. Godfrey"), Value::Text("Rafael H. Schloming")]);
    assert_eq!(fields.value(), Ok(Value::Null));
    assert_eq!(fields.value(), Ok(Value::Null), "what is missing at the end is null");
}

/// Part 2, sections 2.2 and 2.3; part 5, section 5.3.
#[test]
fn frames_are_the_bytes_of_the_specification() {
    assert_eq!((&AMQP_HEADER, &SASL_HEADER), (b"AMQP\0\x01\0\0", b"AMQP\x03\x01\0\0"));
    let mut empty = Vec::new();
    put_empty(&mut empty);
    assert_eq!(empty, b"\0\0\0\x08\x02\0\0\0");
    assert_eq!(frame(&empty), Frame { kind: FrameKind::Amqp, channel: 0, body: b"" });
    let extended = b"\0\0\0\x10\x03\0\0\x07extd\0\x53\x18\x45";
    let read = frame(extended);
    assert_eq!(
        (read.channel, Performative::read(read.body)),
        (7, Ok((Performative::Close(None), &b""[..])))
    );
    let accepted = Disposition {
        role: Role::Receiver,
        first: 3,
        last: None,
        settled: true,
        state: Some(State::Accepted),
    };
    let bytes = b"\0\0\0\x17\x02\0\0\x01\0\x53\x15\xc0\x0a\x05\x41\x52\x03\x40\x41\0\x53\x24\x45";
    assert_eq!(written(&Performative::Disposition(accepted), 1), bytes);
    let mut init = Vec::new();
    let response = Some(&b"\0a\0b"[..]);
    Sasl::Init { mechanism: "PLAIN", response, hostname: None }.put(&mut init);
    assert_eq!(init, b"\0\0\0\x1b\x02\x01\0\0\0\x53\x41\xc0\x0e\x02\xa3\x05PLAIN\xa0\x04\0a\0b");
    for (wrong, what) in [
        (&b"\0\0\0\x08\x01\0\0\0"[..], "body is not in it"),
        (b"\0\0\0\x08\x03\0\0\0", "body is not in it"),
        (b"\0\0\0\x04\x02\0\0\0", "body is not in it"),
        (b"\0\0\0\x08\x02\x07\0\0", "unknown type"),
        (b"\x01\0\0\0\x02\0\0\0", "larger than max-frame-size"),
    ] {
        let flaw = read_frame(wrong, FRAME_MAX).unwrap_err().to_string();
        assert!(flaw.contains(what), "{flaw}: {wrong:02x?}");
    }
}

/// A symbol may describe what a number describes (part 1, section 1.5).
#[test]
fn descriptors_may_be_symbols() {
    // The lengths are those of the texts.
    let condition = "amqp:decode-error";
    let mut bytes = b"\0\xa3\x0famqp:close:list".to_vec();
    let mut error = b"\0\xa3\x0famqp:error:list\xc0".to_vec();
    error.extend_from_slice(&[condition.len() as u8 + 3, 1, 0xa3, condition.len() as u8]);
    error.extend_from_slice(condition.as_bytes());
    bytes.extend_from_slice(&[0xc0, error.len() as u8 + 1, 1]);
    bytes.extend_from_slice(&error);
    let problem = Problem { condition, description: None, info: None };
    assert_eq!(Performative::read(&bytes), Ok((Performative::Close(Some(problem)), &b""[..])));
    bytes[19] += 1;
    assert!(Performative::read(&bytes).is_err(), "lengths that are wrong are refused");
}

/// Every frame of Proton is read; what is written of it is read the same.
#[test]
fn frames_of_proton_are_read() {
    let (mut seen, mut names) = (0, Vec::new());
    for line in PROTON.lines() {
        let (_, digits) = line.split_once(' ').unwrap();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
        let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        if bytes.starts_with(b"AMQP") {
            assert!(bytes == AMQP_HEADER || bytes == SASL_HEADER);
            continue;
        }
        seen += 1;
        let own = frame(&bytes);
        names.push(name(&own).expect("a name"));
        if own.kind == FrameKind::Sasl {
            let sasl = Sasl::read(own.body).unwrap();
            let mut again = Vec::new();
            sasl.put(&mut again);
            assert_eq!(Sasl::read(frame(&again).body), Ok(sasl));
            continue;
        }
        let (performative, payload) = Performative::read(own.body).unwrap();
        let again = written(&performative, own.channel);
        assert_eq!(Performative::read(frame(&again).body), Ok((performative, &b""[..])));
        assert!(again.len() <= bytes.len(), "as short as Proton's: {line}");
        if let Performative::Transfer(_) = performative {
            let message = Message::read(payload).unwrap();
            let body = message.body.bytes(&message, &mut Vec::new()).to_vec();
            let is_large = body == [b'y'; 300];
            assert!(is_large || body == b"text" || body == b"to the client", "{body:?}");
            assert_eq!(message.header.durable, !is_large);
        }
    }
    assert_eq!(seen, 25);
    for name in ["sasl-mechanisms", "sasl-init", "sasl-outcome", "open", "begin", "attach", "flow"]
    {
        assert!(names.contains(&name), "{name}");
    }
    for name in ["transfer", "disposition", "detach", "close"] {
        assert!(names.contains(&name), "{name}");
    }
}

/// Part 3, section 3.2: sections in their order, bodies of each kind.
#[test]
fn messages_have_sections() {
    let mut bytes = Vec::new();
    let header = Header { durable: true, delivery_count: 2, ..Header::default() };
    header.put(&mut bytes);
    assert_eq!(bytes, b"\0\x53\x70\xc0\x07\x05\x41\x40\x40\x40\x52\x02");
    put_data_head(5, &mut bytes);
    bytes.extend_from_slice(b"hello");
    let message = Message::read(&bytes).unwrap();
    assert_eq!((message.header, message.body), (header, Body::Data(b"hello")));
    assert_eq!(message.bare, b"\0\x53\x75\xa0\x05hello");
    let mut none = Vec::new();
    Header::default().put(&mut none);
    assert_eq!(none, b"", "a header of defaults is left out");
    put_data_head(256, &mut none);
    assert_eq!(none, b"\0\x53\x75\xb0\0\0\x01\0");
    let data = |text: &[u8]| [b"\0\x53\x75\xa0", &[text.len() as u8][..], text].concat();
    let several = [data(b"one"), data(b"two")].concat();
    let message = Message::read(&several).unwrap();
    assert_eq!(message.body.bytes(&message, &mut Vec::new()), b"onetwo");
    let text = Message::read(b"\0\x53\x77\xa1\x04text").unwrap();
    assert_eq!(text.body, Body::Data(b"text"));
    assert!(matches!(Message::read(b"\0\x53\x77\x41").unwrap().body, Body::Other(_)));
    assert_eq!(Message::read(b"").unwrap().body, Body::Empty);
    for wrong in [
        [data(b"x"), b"\0\x53\x70\x45".to_vec()].concat(),
        [data(b"x"), b"\0\x53\x77\x41".to_vec()].concat(),
        b"\0\x53\x10\x45".to_vec(),
        b"\x41".to_vec(),
        b"\0\x53\x75\xa1\x01x".to_vec(),
    ] {
        assert!(Message::read(&wrong).is_err(), "{wrong:02x?}");
    }
}

/// A message larger than a frame comes in several, and in parts where the window ends.
#[test]
fn deliveries_are_cut_into_frames_and_windows() {
    let (head, body) = ([1u8; 20], [2u8; 3000]);
    let parts = [&head[..], &body];
    let delivery = Delivery { handle: 1, id: 9, is_settled: false, parts };
    let mut out = Vec::new();
    let (mut sent, mut transfers) = (0, 0);
    for window in [2, 1, 100] {
        let progress = put_delivery(&delivery, sent, 3, FRAME_MIN, window, &mut out);
        assert_eq!(progress.is_whole, window == 100);
        (sent, transfers) = (progress.bytes, transfers + progress.transfers);
    }
    let (mut rest, mut message, mut seen) = (&out[..], Vec::new(), 0);
    while let Some((frame, size)) = read_frame(rest, FRAME_MIN).unwrap() {
        let (performative, payload) = Performative::read(frame.body).unwrap();
        let Performative::Transfer(transfer) = performative else { panic!("a transfer") };
        assert_eq!(transfer.delivery_id, (seen == 0).then_some(9));
        message.extend_from_slice(payload);
        seen += 1;
        assert_eq!(transfer.more, message.len() < 3020);
        rest = &rest[size..];
    }
    assert_eq!((seen, message.len()), (transfers, 3020));
    assert_eq!(message, [&head[..], &body].concat());
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0u32), Just(7), Just(300), any::<u32>()]
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Sender), Just(Role::Receiver)]
}

fn problem() -> impl Strategy<Value = Option<Problem<'static>>> {
    let (condition, description) = ("amqp:not-found", Some("no such node"));
    let problem = Problem { condition, description, info: None };
    prop_oneof![Just(None), Just(Some(problem))]
}

fn state() -> impl Strategy<Value = Option<State<'static>>> {
    prop_oneof![
        Just(None),
        Just(Some(State::Accepted)),
        Just(Some(State::Received)),
        Just(Some(State::Released)),
        problem().prop_map(|problem| Some(State::Rejected(problem))),
        Just(Some(State::Modified { failed: false, undeliverable: true })),
    ]
}

fn terminus() -> impl Strategy<Value = Option<Terminus<'static>>> {
    let own = (number(), any::<bool>(), 0..3u8).prop_map(|(timeout_s, dynamic, kind)| Terminus {
        address: (kind > 0).then_some("farm.tank"),
        durable: u32::from(kind),
        expiry_policy: (kind == 2).then_some("never"),
        timeout_s,
        dynamic,
        ..Terminus::default()
    });
    proptest::option::of(own)
}

/// What makes connections, sessions and links.
fn makers() -> impl Strategy<Value = Performative<'static>> {
    let long = "x".repeat(300).leak();
    prop_oneof![
        (any::<u32>(), any::<u16>(), proptest::option::of(any::<u32>())).prop_map(
            |(max_frame_size, channel_max, idle_time_out_ms)| Performative::Open(Open {
                container_id: long,
                hostname: Some("vhost"),
                max_frame_size,
                channel_max,
                idle_time_out_ms,
            })
        ),
        (proptest::option::of(any::<u16>()), number(), number()).prop_map(
            |(remote_channel, next_outgoing_id, window)| Performative::Begin(Begin {
                remote_channel,
                next_outgoing_id,
                incoming_window: window,
                outgoing_window: window,
                handle_max: 7,
            })
        ),
        (role(), terminus(), terminus(), number(), 0..3u8).prop_map(
            |(role, source, target, count, mode)| Performative::Attach(Attach {
                name: "link",
                handle: 3,
                role,
                snd_settle_mode: mode,
                rcv_settle_mode: mode / 2,
                source,
                target,
                initial_delivery_count: (role == Role::Sender).then_some(count),
                max_message_size: (count > 7).then_some(count.into()),
            })
        ),
    ]
}

/// What is said in sessions, and what ends them.
fn others() -> impl Strategy<Value = Performative<'static>> {
    prop_oneof![
        (number(), number(), proptest::option::of(number()), any::<bool>(), any::<bool>())
            .prop_map(|(id, window, handle, drain, echo)| Performative::Flow(Flow {
                next_incoming_id: (id > 7).then_some(id),
                incoming_window: window,
                next_outgoing_id: id,
                outgoing_window: window,
                handle,
                delivery_count: handle,
                link_credit: handle,
                available: None,
                drain,
                echo,
            })),
        (number(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(id, settled, more, aborted)| Performative::Transfer(Transfer {
                handle: 1,
                delivery_id: (!aborted).then_some(id),
                delivery_tag: more.then_some(b"tag"),
                message_format: settled.then_some(0),
                settled,
                more,
                resume: false,
                aborted,
            })
        ),
        (role(), number(), proptest::option::of(number()), any::<bool>(), state()).prop_map(
            |(role, first, last, settled, state)| Performative::Disposition(Disposition {
                role,
                first,
                last,
                settled,
                state,
            })
        ),
        (number(), any::<bool>(), problem()).prop_map(|(handle, closed, error)| {
            Performative::Detach(Detach { handle, closed, error })
        }),
        problem().prop_map(Performative::End),
        problem().prop_map(Performative::Close),
    ]
}

fn performatives() -> impl Strategy<Value = Performative<'static>> {
    prop_oneof![makers(), others()]
}

proptest! {
    /// What is written is read back, and no beginning of it is taken for a whole frame.
    #[test]
    fn performatives_are_read_back(performative in performatives(), channel: u16) {
        let bytes = written(&performative, channel);
        let own = frame(&bytes);
        prop_assert_eq!(own.channel, channel);
        prop_assert_eq!(Performative::read(own.body), Ok((performative, &b""[..])));
        for end in 0..bytes.len() {
            prop_assert_eq!(read_frame(&bytes[..end], FRAME_MAX), Ok(None));
        }
        for end in 0..own.body.len() {
            prop_assert!(Performative::read(&own.body[..end]).is_err());
        }
    }

    /// No bytes make the codec panic, and nothing is read that is not there.
    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..80)) {
        let mut cursor = Cursor::new(&bytes);
        while let Ok(value) = cursor.value() {
            if let Value::Array(array) = value {
                let items = array.iter().take(1000).count();
                prop_assert!(items <= bytes.len() + 1);
            }
            if cursor.is_empty() {
                break;
            }
        }
        let _ = Cursor::new(&bytes).raw();
        let _ = read_frame(&bytes, FRAME_MAX);
        let _ = Sasl::read(&bytes);
        let framed = [b"\0\x53\x14", &bytes[..]].concat();
        let _ = Performative::read(&framed);
        if let Ok(message) = Message::read(&bytes) {
            let _ = message.body.bytes(&message, &mut Vec::new());
        }
    }
}

/// Values inside values cost no stack, whatever the input says.
#[test]
fn depth_is_not_a_recursion() {
    let deep = vec![0u8; 1 << 20];
    assert!(Cursor::new(&deep).value().is_err());
    assert!(Cursor::new(&deep).raw().is_err());
    let many = b"\xf0\0\0\0\x05\xff\xff\xff\xff\x41";
    let Value::Array(array) = value(many) else { panic!("an array") };
    assert_eq!(array.iter().count(), 1, "items of no bytes are read once");
    assert!(MECHANISMS.contains("PLAIN") && MECHANISMS.contains("ANONYMOUS"));
    assert!(!Symbols::One("x").contains("y") && Outcome::OK == 0);
}
