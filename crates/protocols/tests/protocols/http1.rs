//! The protocol `http1`, client side: requests byte by byte, and every kind of answer.

use crate::rig::{Client, Heard, kind, trial};
use proptest::prelude::*;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Lifetime, Protocol, Role, Seat};
use weigh_model::trial::Settings;
use weigh_model::{Endpoint, Nanos};
use weigh_protocols::http1::Http1;

const URL: &str = "http://127.0.0.1:8080";

fn client(given: &[(&str, &str)]) -> Client {
    Client::of(&Http1, URL, given)
}

fn request(url: &str, given: &[(&str, &str)], body: &[u8]) -> String {
    let mut client = Client::of(&Http1, url, given);
    client.send(1, body);
    String::from_utf8(client.sent()).unwrap()
}

fn refused(url: &str, given: &[(&str, &str)]) -> String {
    let trial = trial(&Http1, Pattern::Request, Topology::FanIn, url, given).unwrap();
    Http1.dial(&trial).err().expect("an error").to_string()
}

#[test]
fn a_request_is_what_rfc_9112_asks_and_no_byte_more() {
    let sent = request(URL, &[], &[b'x'; 64]);
    // 25 + 22 + 32 + 20 + 2 bytes of head, counted by hand.
    let head = "POST /messages HTTP/1.1\r\n\
                Host: 127.0.0.1:8080\r\n\
                Content-Type: application/json\r\n\
                Content-Length: 64\r\n\r\n";
    assert_eq!(sent, format!("{head}{}", "x".repeat(64)));
    assert_eq!(head.len(), 25 + 22 + 32 + 20 + 2);
    let least = request("http://h", &[("content_type", ""), ("path", "/")], b"");
    assert_eq!(least, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(least.len(), 17 + 9 + 19 + 2);
}

#[test]
fn urls_and_settings_shape_the_request() {
    let sent = request("http://me:p%40ss@[::1]:81/a?b=c", &[("method", "GET")], b"ignored");
    let due = "GET /a?b=c HTTP/1.1\r\nHost: [::1]:81\r\nAuthorization: Basic bWU6cEBzcw==\r\n\r\n";
    assert_eq!(sent, due);
    let given = [("keep_alive", "false"), ("method", "HEAD"), ("headers", "X-A: 1:2| Accept:*/*")];
    let due = "HEAD /messages HTTP/1.1\r\nHost: h:8080\r\nConnection: close\r\n\
               X-A: 1:2\r\nAccept: */*\r\n\r\n";
    assert_eq!(request("http://h:8080", &given, b""), due);
}

#[test]
fn impossible_settings_are_refused_with_the_fix() {
    for (given, place) in [
        (&[("path", "messages")][..], "http1.path"),
        (&[("path", "/a b")], "http1.path"),
        (&[("headers", "X-A 1")], "http1.headers"),
        (&[("headers", "X A: 1")], "http1.headers"),
        (&[("headers", "X-A: 1\r\nY: 2")], "http1.headers"),
        (&[("headers", "host: x")], "http1.headers"),
        (&[("headers", "Expect: x")], "set http1.expect"),
        (&[("content_type", "a\nb")], "http1.content_type"),
        (&[("expect", "true"), ("method", "GET")], "http1.expect"),
        (&[("expect", "true"), ("pipeline", "2")], "http1.pipeline"),
    ] {
        let error = refused(URL, given);
        assert!(error.contains(place), "{given:?}: {error}");
    }
    let twice = refused("http://me:x@h", &[("headers", "Authorization: Basic eA==")]);
    assert!(twice.contains("Authorization is set twice"), "{twice}");
    assert!(refused("http://h/a b", &[]).contains("target"));
    let mut unknown = trial(&Http1, Pattern::Request, Topology::FanIn, URL, &[]).unwrap();
    unknown.endpoint = None::<Endpoint>;
    assert!(Http1.dial(&unknown).is_err());
}

#[test]
fn a_session_is_a_connection_per_message() {
    let dial = |pattern, given: &[(&str, &str)]| {
        Http1.dial(&trial(&Http1, pattern, Topology::FanIn, URL, given).unwrap()).unwrap()
    };
    assert_eq!(dial(Pattern::Request, &[]).lifetime, Lifetime::Kept);
    assert_eq!(dial(Pattern::Session, &[]).lifetime, Lifetime::PerMessage);
    assert_eq!(dial(Pattern::Request, &[("keep_alive", "false")]).lifetime, Lifetime::PerMessage);
    let dial = dial(Pattern::Session, &[("pipeline", "5")]);
    let mut client = Client::new((dial.make)(Seat { index: 0, role: Role::Producer }));
    assert_eq!(client.connection.room(), 1);
    client.send(1, b"x");
    assert!(client.sent().windows(19).any(|part| part == b"Connection: close\r\n"));
}

#[test]
fn only_a_post_carries_a_message() {
    for (method, carries) in [("POST", true), ("GET", false), ("HEAD", false)] {
        let settings = Settings::new("http1", Http1.settings(), [("method", method)]).unwrap();
        assert_eq!(Http1.carries(&settings), carries);
    }
}

/// Everything heard after `Ready` when three requests are in flight, and how it ended.
fn heard(input: &[u8], cuts: &[usize], is_ended: bool) -> (Vec<Heard>, &'static str) {
    let mut client = client(&[("pipeline", "3")]);
    for ticket in 1..=3 {
        client.send(ticket, b"x");
    }
    let mut result = client.feed_cut(input, cuts);
    if is_ended && result.is_ok() {
        result = client.end();
    }
    (client.heard.split_off(1), kind(&result))
}

#[test]
fn answers_are_taken_in_order_whatever_delimits_them() {
    use Heard::{Closing, Done, Refused};
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for (input, due) in [
        (ok.repeat(3), vec![Done(1), Done(2), Done(3)]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok".into(), vec![]),
        ("HTTP/1.1 204 No Content\r\n\r\n".repeat(2), vec![Done(1), Done(2)]),
        ("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n".into(), vec![Done(1)]),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n".into(), vec![Refused(1, 304)]),
        ("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".into(), vec![Refused(1, 302)]),
        (
            format!("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n{ok}"),
            vec![Refused(1, 404), Done(2)],
        ),
        ("HTTP/1.1 599 \r\ncontent-length:0\r\n\r\n".into(), vec![Refused(1, 599)]),
        (
            format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n{ok}"),
            vec![Done(1)],
        ),
        (
            format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n\
                 0\r\nX-Sum: 1\r\n\r\n{ok}"
            ),
            vec![Done(1), Done(2)],
        ),
        (
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".into(),
            vec![Done(1), Closing],
        ),
        (format!("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n{ok}"), vec![Done(1), Closing]),
        ("\r\n".to_owned() + ok, vec![]),
    ] {
        let due_end = if input.starts_with('\r') { "other protocol" } else { "ok" };
        assert_eq!(heard(input.as_bytes(), &[], false), (due.clone(), due_end), "{input}");
        for cut in 0..input.len() {
            let (signals, end) = heard(input.as_bytes(), &[cut, cut * 7], false);
            assert_eq!((signals, end), (due.clone(), due_end), "{input} cut at {cut}");
        }
    }
}

#[test]
fn an_answer_may_end_with_the_connection() {
    let until_close = b"HTTP/1.1 200 OK\r\n\r\nbody";
    assert_eq!(heard(until_close, &[], false), (vec![], "ok"));
    assert_eq!(heard(until_close, &[], true), (vec![Heard::Done(1), Heard::Closing], "ok"));
    assert_eq!(heard(b"", &[], true), (vec![], "ok"));
    for cut_short in [
        &b"HTTP/1.1 200"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
    ] {
        assert_eq!(heard(cut_short, &[], true), (vec![], "ended"));
    }
}

#[test]
fn what_is_no_answer_is_a_fault() {
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
    let many: String = (0..65).map(|n| format!("A{n}: x\r\n")).collect();
    for (input, due) in [
        ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "other protocol"),
        ("\x20\x02\x00\x00".to_owned(), "other protocol"),
        ("HTTP/2 200 OK\r\n\r\n".to_owned(), "malformed"),
        ("HTTP/1.1 099 Low\r\n\r\n".to_owned(), "malformed"),
        ("HTTP/1.1 20 OK\r\n\r\n".to_owned(), "malformed"),
        ("HTTP/1.1 101 Switching\r\n\r\n".to_owned(), "malformed"),
        (head("Content-Length: 5\r\nTransfer-Encoding: chunked"), "malformed"),
        (head("Content-Length: 5\r\nContent-Length: 6"), "malformed"),
        (head("Content-Length: -5"), "malformed"),
        (head("Content-Length: 5x"), "malformed"),
        (head("Content-Length : 5"), "malformed"),
        (head("A: b\r\n folded"), "malformed"),
        (head(": b"), "malformed"),
        (head("A: \0"), "malformed"),
        (head(&many), "malformed"),
        (head(&format!("A: {}", "x".repeat(20_000))), "malformed"),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), "malformed"),
        (head("Transfer-Encoding: chunked") + "x\r\n", "malformed"),
        (head("Transfer-Encoding: chunked") + "1\r\nab\r\n", "malformed"),
    ] {
        let input = input.as_bytes();
        assert_eq!(heard(input, &[], false), (vec![], due), "{}", input.escape_ascii());
        let cuts: Vec<usize> = (0..input.len().min(300)).collect();
        assert_eq!(heard(input, &cuts, false), (vec![], due), "{}", input.escape_ascii());
    }
}

#[test]
fn answers_that_nobody_asked_for_are_faults() {
    for (input, due) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"[..], "malformed"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "malformed"),
        (b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n", "ended"),
    ] {
        assert_eq!(kind(&client(&[]).feed(input)), due);
    }
}

#[test]
fn head_is_answered_without_a_body() {
    let mut client = client(&[("method", "HEAD")]);
    client.send(1, b"");
    client.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n").unwrap();
    assert_eq!(client.heard, [Heard::Ready, Heard::Done(1)]);
    client.send(2, b"");
    client.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    assert_eq!(client.heard.last(), Some(&Heard::Done(2)));
}

#[test]
fn the_pipeline_is_the_room() {
    let mut client = client(&[("pipeline", "2")]);
    assert_eq!(client.connection.room(), 2);
    client.send(1, b"");
    client.send(2, b"");
    assert_eq!(client.connection.room(), 0);
    client.feed(b"HTTP/1.1 204 -\r\n\r\n").unwrap();
    assert_eq!(client.connection.room(), 1);
    client.feed(b"HTTP/1.1 204 -\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(client.connection.room(), 0);
    assert_eq!(client.heard[1..], [Heard::Done(1), Heard::Done(2), Heard::Closing]);
}

#[test]
fn a_body_is_held_until_the_server_wants_it() {
    let given = [("expect", "true")];
    let mut waiting = client(&given);
    waiting.send(1, b"body");
    let head = String::from_utf8(waiting.sent()).unwrap();
    assert!(head.ends_with("Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"), "{head}");
    waiting.feed(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    assert_eq!(waiting.sent(), b"body");
    waiting.feed(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert_eq!(waiting.heard, [Heard::Ready, Heard::Done(1)]);
    waiting.send(2, b"");
    assert!(!String::from_utf8(waiting.sent()).unwrap().contains("Expect"));

    let mut unwanted = client(&given);
    unwanted.send(1, b"body");
    unwanted.sent();
    unwanted.feed(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert_eq!(unwanted.heard[1..], [Heard::Refused(1, 417), Heard::Closing]);
    assert!(unwanted.sent().is_empty());

    let mut unheard = client(&given);
    unheard.send(1, b"body");
    let _head = unheard.sent();
    unheard.wake(Nanos::from_millis(10)).unwrap();
    let due = unheard.connection.next_wake();
    assert_eq!((due, unheard.out.len()), (Some(Nanos::from_secs(1)), 0));
    unheard.wake(Nanos::from_secs(1)).unwrap();
    assert_eq!(unheard.sent(), b"body");
    assert_eq!(unheard.connection.next_wake(), None);
}

fn answers() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec![
        &b"HTTP/1.1 200 OK\r\n"[..],
        b"HTTP/1.0 404 \r\n",
        b"HTTP/1.1 100 \r\n\r\n",
        b"HTTP/1.1 204 -\r\n\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"\r\n",
        b"\n",
        b"abc",
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
        b" ",
        b"\0",
    ]);
    prop::collection::vec(part, 0..14).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn cuts_change_nothing(
        input in answers(),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
        is_ended in any::<bool>(),
    ) {
        prop_assert_eq!(heard(&input, &[], is_ended), heard(&input, &cuts, is_ended));
    }
}
