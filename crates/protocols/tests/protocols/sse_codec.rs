//! The event stream: the examples of the specification, every body and every cut, and bytes by
//! chance.

use proptest::collection::vec;
use proptest::prelude::*;
use weigh_protocols::sse::codec::{Item, Parser, TooLong, can_carry, put_event, put_retry};

const BYTES_MAX: usize = 1000;

/// Events as type and data, and reconnection times.
fn heard(parser: &mut Parser, input: &[u8]) -> Result<Vec<String>, TooLong> {
    let mut heard = Vec::new();
    parser.take(input, &mut |item| {
        heard.push(match item {
            Item::Event { kind, data } => {
                format!("{}|{}", String::from_utf8_lossy(kind), String::from_utf8_lossy(data))
            }
            Item::Retry(milliseconds) => format!("retry {milliseconds}"),
        });
    })?;
    Ok(heard)
}

fn parsed(input: &str) -> (Vec<String>, String) {
    let mut parser = Parser::new(BYTES_MAX, Vec::new());
    let heard = heard(&mut parser, input.as_bytes()).unwrap();
    (heard, String::from_utf8(parser.last_id().to_vec()).unwrap())
}

/// WHATWG HTML, section 9.2.6, with its comments.
#[test]
fn the_examples_of_the_specification_are_parsed() {
    let (events, id) = parsed("data: YHOO\ndata: +2\ndata: 10\n\n");
    assert_eq!((events, &*id), (vec!["|YHOO\n+2\n10".to_owned()], ""));
    // Four blocks: a comment, an event with an ID, one that sets the ID back, and one with a space.
    let mut parser = Parser::new(BYTES_MAX, Vec::new());
    assert_eq!(heard(&mut parser, b": test stream\n\n").unwrap(), [""; 0]);
    assert_eq!(heard(&mut parser, b"data: first event\nid: 1\n\n").unwrap(), ["|first event"]);
    assert_eq!(parser.last_id(), b"1");
    assert_eq!(heard(&mut parser, b"data:second event\nid\n\n").unwrap(), ["|second event"]);
    assert_eq!(parser.last_id(), b"");
    assert_eq!(heard(&mut parser, b"data:  third event\n\n").unwrap(), ["| third event"]);
    // Two events, one empty and one of a line feed; the last block is not whole.
    assert_eq!(parsed("data\n\ndata\ndata\n\ndata:").0, ["|", "|\n"]);
    assert_eq!(parsed("data:test\n\ndata: test\n\n").0, ["|test", "|test"]);
    let (events, _) = parsed("event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n");
    assert_eq!(events, ["add|73857293", "remove|2153"]);
}

#[test]
fn lines_end_in_three_ways_and_fields_have_rules() {
    assert_eq!(parsed("data: a\r\ndata: b\rdata: c\n\r\n").0, ["|a\nb\nc"]);
    assert_eq!(parsed("\u{feff}data: a\n\n\u{feff}data: b\n\n").0, ["|a"], "one byte order mark");
    assert_eq!(parsed("DATA: a\ndata : b\nother: c\n\n").0, [""; 0]);
    assert_eq!(parsed("retry: 3000\n\nretry: 3s\n\nretry\n\n").0, ["retry 3000"]);
    let (events, id) = parsed("id: 7\n\nid: 8\0\n\nevent: x\n\ndata: a\n\n");
    assert_eq!((events, &*id), (vec!["|a".to_owned()], "7"), "an ID without data counts too");
    let mut parser = Parser::new(BYTES_MAX, b"41".to_vec());
    heard(&mut parser, b"id: 42\ndata: a\n").unwrap();
    assert_eq!(parser.last_id(), b"41", "the event is not whole");
    assert!(!parser.is_between_events());
}

#[test]
fn what_is_too_long_is_refused_before_it_is_held() {
    let mut parser = Parser::new(100, Vec::new());
    let long = format!("data: {}", "x".repeat(100));
    assert_eq!(heard(&mut parser, long.as_bytes()), Err(TooLong { bytes_max: 100 }));
    let mut parser = Parser::new(100, Vec::new());
    let lines = "data: 0123456789\n".repeat(20);
    assert_eq!(heard(&mut parser, lines.as_bytes()), Err(TooLong { bytes_max: 100 }));
}

#[test]
fn events_are_written_line_by_line() {
    let mut out = Vec::new();
    put_event(&mut out, Some(7), "reading", b"{\n\"ph\":6.1}");
    assert_eq!(out, b"id: 7\nevent: reading\ndata: {\ndata: \"ph\":6.1}\n\n");
    out.clear();
    put_event(&mut out, None, "", b"");
    put_retry(&mut out, 1500);
    assert_eq!(out, b"data: \n\nretry: 1500\n\n");
    assert!(can_carry("\u{e4}\n\0".as_bytes()) && can_carry(b""));
    assert!(!can_carry(b"a\rb") && !can_carry(b"a\xff"));
}

proptest! {
    /// Whatever the body, the type and the cuts: what was put in comes out, once.
    #[test]
    fn events_survive_every_cut(
        bodies in vec("[ -~\n\u{e4}\u{feff}:]{0,60}", 1..6),
        kind in "[a-z]{0,8}",
        cut in 1usize..40,
    ) {
        let mut wire = Vec::new();
        for (place, body) in bodies.iter().enumerate() {
            prop_assert!(can_carry(body.as_bytes()));
            put_event(&mut wire, Some(place as u64 + 1), &kind, body.as_bytes());
        }
        let mut parser = Parser::new(BYTES_MAX, Vec::new());
        let mut events = Vec::new();
        for piece in wire.chunks(cut) {
            events.extend(heard(&mut parser, piece).unwrap());
        }
        let expected: Vec<String> = bodies.iter().map(|body| format!("{kind}|{body}")).collect();
        prop_assert_eq!(events, expected);
        let last = bodies.len().to_string();
        prop_assert_eq!(parser.last_id(), last.as_bytes());
        prop_assert!(parser.is_between_events());
    }

    #[test]
    fn cuts_change_nothing_whatever_the_bytes(
        input in vec(prop_oneof![
            Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), any::<u8>()
        ], 0..200),
        cut in 1usize..20,
    ) {
        let mut whole = Parser::new(BYTES_MAX, Vec::new());
        let expected = heard(&mut whole, &input).unwrap();
        let mut parser = Parser::new(BYTES_MAX, Vec::new());
        let mut events = Vec::new();
        for piece in input.chunks(cut) {
            events.extend(heard(&mut parser, piece).unwrap());
        }
        prop_assert_eq!(events, expected);
        prop_assert_eq!(parser.last_id(), whole.last_id());
    }
}
