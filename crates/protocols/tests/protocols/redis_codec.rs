//! The codec of Redis: the examples of its specification, what is written and read back, what is
//! refused, and the crate redis-protocol as a second opinion.

use proptest::collection::vec;
use proptest::prelude::*;
use redis_protocol::resp2::types::OwnedFrame;
use redis_protocol::{resp2, resp3};
use weigh_protocols::redis::codec::{
    Flaw, RequestMax, Token, Values, put_array, put_bulk, put_error, put_integer, put_map,
    put_null, put_push, put_simple, read_reply, read_request, read_token,
};

const MOST: usize = 1 << 20;
const REQUEST: RequestMax = RequestMax { bulk_bytes: MOST, bytes: 2 * MOST };

/// All tokens of a reply, one after the other.
fn tokens(input: &[u8]) -> Vec<Token<'_>> {
    let (reply, bytes) = read_reply(input, MOST).unwrap().expect("a whole reply");
    assert_eq!(bytes, input.len());
    let mut values: Values<'_> = reply.values;
    let mut all = vec![reply.head];
    while let Some(token) = values.token() {
        all.push(token);
    }
    all
}

/// The words of a command, and the bytes that it takes.
type Command = (Vec<Vec<u8>>, usize);

fn words(input: &[u8]) -> Result<Option<Command>, Flaw> {
    let mut places = Vec::new();
    let bytes = read_request(input, REQUEST, &mut places)?;
    let words = places.iter().map(|place| input[place.clone()].to_vec()).collect();
    Ok(bytes.map(|bytes| (words, bytes)))
}

/// "Redis serialization protocol specification", sections on RESP 2 types.
#[test]
fn the_examples_of_resp_2_are_read() {
    let examples: &[(&[u8], &[Token<'_>])] = &[
        (b"+OK\r\n", &[Token::Simple(b"OK")]),
        (b"-Error message\r\n", &[Token::Error(b"Error message")]),
        (b"-ERR unknown command 'asdf'\r\n", &[Token::Error(b"ERR unknown command 'asdf'")]),
        (b":0\r\n", &[Token::Integer(0)]),
        (b":1000\r\n", &[Token::Integer(1000)]),
        (b":-9223372036854775808\r\n", &[Token::Integer(i64::MIN)]),
        (b":+7\r\n", &[Token::Integer(7)]),
        (b"$5\r\nhello\r\n", &[Token::Bulk(b"hello")]),
        (b"$0\r\n\r\n", &[Token::Bulk(b"")]),
        (b"$-1\r\n", &[Token::Null]),
        (b"*0\r\n", &[Token::Array(0)]),
        (b"*-1\r\n", &[Token::Null]),
        (
            b"*2\r\n$5\r\nhello\r\n$5\r\nworld\r\n",
            &[Token::Array(2), Token::Bulk(b"hello"), Token::Bulk(b"world")],
        ),
        (
            b"*3\r\n:1\r\n:2\r\n:3\r\n",
            &[Token::Array(3), Token::Integer(1), Token::Integer(2), Token::Integer(3)],
        ),
        (
            b"*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*2\r\n+Hello\r\n-World\r\n",
            &[
                Token::Array(2),
                Token::Array(3),
                Token::Integer(1),
                Token::Integer(2),
                Token::Integer(3),
                Token::Array(2),
                Token::Simple(b"Hello"),
                Token::Error(b"World"),
            ],
        ),
        (
            b"*3\r\n$5\r\nhello\r\n$-1\r\n$5\r\nworld\r\n",
            &[Token::Array(3), Token::Bulk(b"hello"), Token::Null, Token::Bulk(b"world")],
        ),
    ];
    for (input, expected) in examples {
        assert_eq!(tokens(input), *expected, "{}", input.escape_ascii());
        for cut in 0..input.len() {
            assert_eq!(read_reply(&input[..cut], MOST), Ok(None), "{}", input.escape_ascii());
        }
    }
}

/// The same page, sections on RESP 3 types; the attribute is left out.
#[test]
fn the_examples_of_resp_3_are_read() {
    let examples: &[(&[u8], &[Token<'_>])] = &[
        (b"_\r\n", &[Token::Null]),
        (b"#t\r\n", &[Token::Boolean(true)]),
        (b"#f\r\n", &[Token::Boolean(false)]),
        (b",1.23\r\n", &[Token::Double(b"1.23")]),
        (b",-inf\r\n", &[Token::Double(b"-inf")]),
        (
            b"(3492890328409238509324850943850943825024385\r\n",
            &[Token::BigNumber(b"3492890328409238509324850943850943825024385")],
        ),
        (b"!21\r\nSYNTAX invalid syntax\r\n", &[Token::Error(b"SYNTAX invalid syntax")]),
        (b"=15\r\ntxt:Some string\r\n", &[Token::Bulk(b"Some string")]),
        (
            b"%2\r\n+first\r\n:1\r\n+second\r\n:2\r\n",
            &[
                Token::Map(2),
                Token::Simple(b"first"),
                Token::Integer(1),
                Token::Simple(b"second"),
                Token::Integer(2),
            ],
        ),
        (b"~1\r\n:1\r\n", &[Token::Set(1), Token::Integer(1)]),
        (
            b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n",
            &[Token::Push(3), Token::Bulk(b"message"), Token::Bulk(b"c"), Token::Bulk(b"hi")],
        ),
        (
            b"|1\r\n+key-popularity\r\n%2\r\n$1\r\na\r\n,0.1923\r\n$1\r\nb\r\n,0.0012\r\n\
              *2\r\n:2039123\r\n:9543892\r\n",
            &[Token::Array(2), Token::Integer(2_039_123), Token::Integer(9_543_892)],
        ),
        (
            b"*3\r\n:1\r\n:2\r\n|1\r\n+ttl\r\n:3600\r\n:3\r\n",
            &[Token::Array(3), Token::Integer(1), Token::Integer(2), Token::Integer(3)],
        ),
    ];
    for (input, expected) in examples {
        assert_eq!(tokens(input), *expected, "{}", input.escape_ascii());
        for cut in 0..input.len() {
            assert_eq!(read_reply(&input[..cut], MOST), Ok(None), "{}", input.escape_ascii());
        }
    }
}

/// The same page, section "Sending commands to a Redis server", and inline commands.
#[test]
fn the_examples_of_requests_are_read() {
    for (input, expected) in [
        (&b"*2\r\n$4\r\nLLEN\r\n$6\r\nmylist\r\n"[..], &["LLEN", "mylist"][..]),
        (b"*1\r\n$4\r\nPING\r\n", &["PING"]),
        (b"PING\r\n", &["PING"]),
        (b"EXISTS somekey\r\n", &["EXISTS", "somekey"]),
        (b"  SET  a   b \n", &["SET", "a", "b"]),
        (b"\r\n", &[]),
        (b"*0\r\n", &[]),
        (b"*-1\r\n", &[]),
    ] {
        let expected: Vec<Vec<u8>> = expected.iter().map(|word| word.as_bytes().to_vec()).collect();
        assert_eq!(words(input), Ok(Some((expected, input.len()))), "{}", input.escape_ascii());
        for cut in 0..input.len() {
            assert_eq!(words(&input[..cut]), Ok(None), "{}", input.escape_ascii());
        }
    }
}

#[test]
fn values_are_written_byte_by_byte() {
    let mut out = Vec::new();
    put_array(&mut out, 2);
    put_bulk(&mut out, b"hello");
    put_integer(&mut out, -7);
    put_simple(&mut out, "OK\r\n+no");
    put_error(&mut out, "ERR no");
    put_map(&mut out, 1, false);
    put_map(&mut out, 1, true);
    put_push(&mut out, 3, true);
    put_push(&mut out, 3, false);
    put_null(&mut out, false, false);
    put_null(&mut out, true, false);
    put_null(&mut out, true, true);
    let expected = b"*2\r\n$5\r\nhello\r\n:-7\r\n+OK  +no\r\n-ERR no\r\n*2\r\n%1\r\n>3\r\n*3\r\n\
                     $-1\r\n*-1\r\n_\r\n";
    assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn what_is_not_resp_is_refused() {
    for (input, flaw) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], Flaw::Type(b'H')),
        (b"\x20\x02\x00\x00", Flaw::Type(b' ')),
        (b"$-2\r\n", Flaw::BulkLength),
        (b"$\r\n", Flaw::BulkLength),
        (b"$1048577\r\n", Flaw::BulkLength),
        (b"$99999999999999999999\r\n", Flaw::BulkLength),
        (b"$2\r\nabc\r\n", Flaw::BulkEnd),
        (b"*x\r\n", Flaw::Elements),
        (b"*4294967295\r\n", Flaw::Elements),
        (b"*1048576\r\n*1048576\r\n", Flaw::Elements),
        (b":1.5\r\n", Flaw::Number),
        (b":9223372036854775808\r\n", Flaw::Number),
        (b"#x\r\n", Flaw::Number),
        (b"+a\rb\r\n", Flaw::LineEnd),
        (b"+a\n", Flaw::LineEnd),
        (b"*?\r\n", Flaw::Streamed),
        (b"$?\r\n", Flaw::Streamed),
        (b"=2\r\nab\r\n", Flaw::BulkLength),
    ] {
        assert_eq!(read_reply(input, MOST), Err(flaw), "{}", input.escape_ascii());
    }
    let line = [b"+".as_slice(), &vec![b'x'; 70_000]].concat();
    assert_eq!(read_reply(&line, MOST), Err(Flaw::Line));
    assert_eq!(words(b"*1\r\n:1\r\n"), Err(Flaw::NotBulk(b':')));
    assert_eq!(words(b"*1\r\n$-1\r\n"), Err(Flaw::BulkLength));
    assert_eq!(words(b"*1048577\r\n"), Err(Flaw::Elements));
    assert_eq!(words(&vec![b'x'; 70_000]), Err(Flaw::Line));
    let small = RequestMax { bulk_bytes: 10, bytes: 40 };
    let long = b"*9\r\n$9\r\n123456789\r\n$9\r\n123456789\r\n$9\r\n123456789\r\n";
    assert_eq!(read_request(long, small, &mut Vec::new()), Err(Flaw::Bytes));
}

/// A value that both codecs can carry.
fn frame() -> impl Strategy<Value = OwnedFrame> {
    let text = "[ -~]{0,20}";
    let leaf = prop_oneof![
        text.prop_map(|text| OwnedFrame::SimpleString(text.into_bytes())),
        any::<i64>().prop_map(OwnedFrame::Integer),
        vec(any::<u8>(), 0..40).prop_map(OwnedFrame::BulkString),
        Just(OwnedFrame::Null),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| vec(inner, 0..6).prop_map(OwnedFrame::Array))
}

fn put_frame(out: &mut Vec<u8>, frame: &OwnedFrame, is_resp3: bool) {
    match frame {
        OwnedFrame::SimpleString(text) => put_simple(out, std::str::from_utf8(text).unwrap()),
        OwnedFrame::Error(text) => put_error(out, text),
        OwnedFrame::Integer(number) => put_integer(out, *number),
        OwnedFrame::BulkString(bytes) => put_bulk(out, bytes),
        OwnedFrame::Array(frames) => {
            put_array(out, frames.len());
            frames.iter().for_each(|frame| put_frame(out, frame, is_resp3));
        }
        OwnedFrame::Null => put_null(out, false, is_resp3),
    }
}

/// What we read, as the other codec has it.
fn read_frame(values: &mut Values<'_>, token: Token<'_>) -> OwnedFrame {
    match token {
        Token::Simple(text) => OwnedFrame::SimpleString(text.to_vec()),
        Token::Error(text) => OwnedFrame::Error(String::from_utf8_lossy(text).into_owned()),
        Token::Integer(number) => OwnedFrame::Integer(number),
        Token::Bulk(bytes) => OwnedFrame::BulkString(bytes.to_vec()),
        Token::Null => OwnedFrame::Null,
        Token::Array(count) => {
            let one = |_| {
                let token = values.token().expect("an element");
                read_frame(values, token)
            };
            OwnedFrame::Array((0..count).map(one).collect())
        }
        other => panic!("{other:?} is not of RESP 2"),
    }
}

proptest! {
    #[test]
    fn the_second_codec_reads_what_this_one_writes(frame in frame()) {
        let mut out = Vec::new();
        put_frame(&mut out, &frame, false);
        let (found, bytes) = resp2::decode::decode(&out).unwrap().expect("a whole frame");
        prop_assert_eq!((&found, bytes), (&frame, out.len()));
        let mut newer = Vec::new();
        put_frame(&mut newer, &frame, true);
        let found = resp3::decode::complete::decode(&newer).unwrap().expect("a whole frame");
        prop_assert_eq!(found.1, newer.len());
        for written in [out, newer] {
            let (reply, bytes) = read_reply(&written, MOST).unwrap().expect("a whole reply");
            prop_assert_eq!(bytes, written.len());
            let mut values = reply.values;
            prop_assert_eq!(&read_frame(&mut values, reply.head), &frame);
        }
    }

    #[test]
    fn requests_are_read_back(
        sent in vec(vec(any::<u8>(), 0..50), 1..8),
        more in vec(any::<u8>(), 0..9),
    ) {
        let mut out = Vec::new();
        put_array(&mut out, sent.len());
        sent.iter().for_each(|word| put_bulk(&mut out, word));
        let bytes = out.len();
        out.extend(more);
        prop_assert_eq!(words(&out), Ok(Some((sent, bytes))));
    }

    /// Arbitrary bytes never panic, and what is read is within them.
    #[test]
    fn no_bytes_panic(
        input in vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'%'), Just(b'\r'), Just(b'\n'),
            Just(b'1'), Just(b'-'), any::<u8>()], 0..80),
    ) {
        if let Ok(Some((_, bytes))) = read_token(&input, MOST) {
            prop_assert!(bytes <= input.len() && bytes > 0);
        }
        if let Ok(Some((reply, bytes))) = read_reply(&input, MOST) {
            prop_assert!(bytes <= input.len());
            let mut values = reply.values;
            while values.token().is_some() {}
            let mut values = reply.values;
            while values.skip().is_some() {}
        }
        let mut places = Vec::new();
        if let Ok(Some(bytes)) = read_request(&input, REQUEST, &mut places) {
            prop_assert!(bytes <= input.len() && bytes > 0);
            prop_assert!(places.iter().all(|place| place.end <= bytes));
        }
    }
}
