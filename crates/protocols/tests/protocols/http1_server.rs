//! The protocol `http1`, server side: what is stored, counted and refused; and both ends
//! together.

use crate::rig::{Client, Heard, Shard, exchange};
use proptest::prelude::*;
use weigh_model::protocol::Protocol;
use weigh_model::trial::Settings;
use weigh_protocols::http1::Http1;

fn answer(input: &str) -> String {
    text(Shard::of(&Http1, &[]).answer(input.as_bytes()))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn status(input: &str) -> (u16, bool) {
    let answer = answer(input);
    let status = answer.get(9..12).unwrap_or_else(|| panic!("{input:?}: {answer:?}"));
    (status.parse().unwrap(), answer.contains("\r\nConnection: close\r\n"))
}

const CREATED: &str = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_stored_message_is_answered_with_43_bytes() {
    let post = "POST /messages HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(answer(post), CREATED);
    assert_eq!(CREATED.len(), 22 + 19 + 2);
    assert_eq!(answer(&post.repeat(3)), CREATED.repeat(3));
    let chunked = "POST /messages HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
                   1\r\nh\r\n1\r\ni\r\n0\r\nX-Sum: 1\r\n\r\n";
    assert_eq!(answer(chunked), CREATED);
    let absolute = "POST http://h/messages HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(answer(absolute), CREATED);
}

#[test]
fn connections_are_kept_as_the_version_and_the_fields_say() {
    let post = |version: &str, fields: &str| {
        answer(&format!("POST /messages {version}\r\nHost: h\r\n{fields}Content-Length: 0\r\n\r\n"))
    };
    let answer = |field: &str| format!("HTTP/1.1 201 Created\r\nContent-Length: 0{field}\r\n\r\n");
    assert_eq!(post("HTTP/1.1", ""), answer(""));
    assert_eq!(post("HTTP/1.1", "Connection: close\r\n"), answer("\r\nConnection: close"));
    assert_eq!(post("HTTP/1.0", ""), answer("\r\nConnection: close"));
    let kept = post("HTTP/1.0", "Connection: Keep-Alive\r\n");
    assert_eq!(kept, answer("\r\nConnection: keep-alive"));
}

#[test]
fn nothing_is_answered_after_a_close() {
    let mut shard = Shard::of(&Http1, &[]);
    let post =
        "POST /messages HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let answers = text(shard.answer(post.repeat(2).as_bytes()));
    assert_eq!(answers.matches("HTTP/1.1").count(), 1);
    assert_eq!((shard.server.report().received, shard.desk.closed.len()), (1, 1));
}

#[test]
fn what_was_stored_is_listed_and_counted() {
    let mut shard = Shard::of(&Http1, &[("store", "2"), ("path", "/readings")]);
    for body in ["a", "b", "\"c\""] {
        let post = format!(
            "POST /readings HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(text(shard.answer(post.as_bytes())), CREATED);
    }
    let mut get = |target: &str| {
        let input = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        let answer = text(shard.answer(input.as_bytes()));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{answer}");
        body.to_owned()
    };
    let b = r#"{"id":1,"bytes":1,"body":"b"}"#;
    let c = r#"{"id":2,"bytes":3,"body":"\"c\""}"#;
    assert_eq!(get("/messages"), format!(r#"{{"messages":[{b},{c}],"next":3,"count":3}}"#));
    let first = get("/readings?since=0&limit=1");
    assert_eq!(first, format!(r#"{{"messages":[{b}],"next":2,"count":3}}"#));
    assert_eq!(get("/messages?since=3"), r#"{"messages":[],"next":3,"count":3}"#);
    assert_eq!(get("/messages/count"), r#"{"count":3}"#);
    assert_eq!(get("/healthz"), "ok\n");
    let head = text(shard.answer(b"HEAD /messages/count HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert!(head.contains("Content-Length: 11\r\n") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn the_count_is_of_all_shards() {
    let settings = Settings::new("http1", Http1.settings(), None).unwrap();
    let host = Http1.host(&settings).unwrap();
    let (mut left, mut right) = (Shard::new((host.make)(0)), Shard::new((host.make)(1)));
    left.answer(b"POST /messages HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    let count = text(right.answer(b"GET /messages/count HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert!(count.ends_with("{\"count\":1}"), "{count}");
    assert_eq!((left.server.report().received, right.server.report().received), (1, 0));
}

#[test]
fn every_refusal_has_its_status() {
    let post = |fields: &str| format!("POST /messages HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n");
    let many: String = (0..65).map(|n| format!("A{n}: x\r\n")).collect();
    for (input, due) in [
        ("GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), (404, false)),
        ("DELETE /messages HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), (405, false)),
        ("POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".to_owned(), (405, false)),
        ("GET /messages?since=x HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), (400, false)),
        (post("X: y"), (411, true)),
        (post("Content-Length: 1073741825"), (413, true)),
        (post("Content-Length: 5\r\nExpect: coffee"), (417, true)),
        (post(&many), (431, true)),
        (post(&format!("A: {}", "x".repeat(20_000))), (431, true)),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000)), (414, true)),
        ("BREW /messages HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), (501, true)),
        (post("Transfer-Encoding: gzip, chunked"), (501, true)),
        (post("Transfer-Encoding: gzip"), (400, true)),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n".to_owned(), (505, true)),
        ("GET /messages HTTP/1.1\r\n\r\n".to_owned(), (400, true)),
        ("GET /messages HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), (400, true)),
        ("GET messages HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), (400, true)),
        ("\x10\x0e\0\x04MQTT\x04\x02\0\x3c\0\x02me".to_owned(), (400, true)),
        (post("Content-Length: 5\r\nTransfer-Encoding: chunked"), (400, true)),
        (post("Content-Length: 5\r\nContent-Length: 6"), (400, true)),
        (post("Content-Length: +5"), (400, true)),
        (post("Content-Length : 5"), (400, true)),
        (post("Content-Length: 0\r\n folded"), (400, true)),
        (post("Transfer-Encoding: chunked") + "5 \r\nhello", (400, true)),
        (post("Transfer-Encoding: chunked") + "1\r\nhello", (400, true)),
    ] {
        assert_eq!(status(&input), due, "{}", &input[..input.len().min(200)]);
    }
    assert!(answer("PUT /healthz HTTP/1.1\r\nHost: h\r\n\r\n").contains("Allow: GET, HEAD\r\n"));
    let allow = answer("PUT /messages HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
    assert!(allow.contains("Allow: GET, HEAD, POST\r\n"), "{allow}");
}

#[test]
fn a_chunked_body_is_bounded_too() {
    let mut shard = Shard::of(&Http1, &[("body_bytes_max", "4")]);
    let head = "POST /messages HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = text(shard.answer(format!("{head}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").as_bytes()));
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    let answer = text(shard.answer(format!("{head}3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n").as_bytes()));
    assert_eq!(answer, CREATED);
}

#[test]
fn expectations_are_met_or_refused_before_the_body() {
    let expect = |target: &str| {
        format!(
            "POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    let met = format!("HTTP/1.1 100 Continue\r\n\r\n{CREATED}");
    assert_eq!(answer(&(expect("/messages") + "hi")), met);
    assert_eq!(status(&expect("/healthz")), (405, true));
}

#[test]
fn messages_are_taken_at_any_path_until_one_is_set() {
    let post =
        |path: &str| format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    let mut any = Shard::of(&Http1, &[]);
    for path in ["/", "/api/v1/readings?device=7", "/readings/x", "/messages"] {
        assert_eq!(text(any.answer(post(path).as_bytes())), CREATED, "{path}");
    }
    assert_eq!(any.server.report().received, 4);
    let mut set = Shard::of(&Http1, &[("path", "/in")]);
    let answers = ["/in", "/messages", "/", "/other"].map(|path| {
        let answer = text(set.answer(post(path).as_bytes()));
        answer.split(' ').nth(1).map(str::to_owned)
    });
    assert_eq!(answers.each_ref().map(Option::as_deref), ["201", "201", "404", "404"].map(Some));
    assert_eq!(set.server.report().received, 2);
}

/// Every combination of the settings that shape the exchange, with the server's own client.
#[test]
fn both_ends_agree_under_every_setting() {
    for method in ["POST", "GET", "HEAD"] {
        for keep_alive in ["true", "false"] {
            for pipeline in ["1", "4"] {
                for expect in ["true", "false"] {
                    if expect == "true" && (method != "POST" || pipeline != "1") {
                        continue;
                    }
                    let given = [
                        ("method", method),
                        ("keep_alive", keep_alive),
                        ("pipeline", pipeline),
                        ("expect", expect),
                    ];
                    for step in 1..12 {
                        let cuts: Vec<usize> = (0..300).map(|n| n * step).collect();
                        both_ends(&given, &cuts);
                    }
                }
            }
        }
    }
}

fn both_ends(given: &[(&str, &str)], cuts: &[usize]) {
    let mut shard = Shard::of(&Http1, given);
    let mut sent = 0;
    for connection in 0..4 {
        let mut client = Client::of(&Http1, "http://h", given);
        shard.accept(connection);
        let mut due = vec![Heard::Ready];
        for _ in 0..3 {
            while client.connection.room() > 0 {
                client.send(sent, format!("message {sent}").as_bytes());
                due.push(Heard::Done(sent));
                sent += 1;
            }
            exchange(&mut client, &mut shard, connection, cuts);
        }
        if given.contains(&("keep_alive", "false")) {
            due.push(Heard::Closing);
        }
        assert_eq!(client.heard, due, "{given:?}");
    }
    let stored = if given.contains(&("method", "POST")) { u64::from(sent) } else { 0 };
    assert_eq!(shard.server.report().received, stored);
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec![
        &b"POST /messages HTTP/1.1\r\n"[..],
        b"GET /messages?limit=2 HTTP/1.1\r\n",
        b"GET / HTTP/1.0\r\n",
        b"GET / HTTP/3.0\r\n",
        b"Host: h\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"Connection: keep-alive\r\n",
        b"Expect: 100-continue\r\n",
        b"\r\n",
        b"\n",
        b"abc",
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
        b" ",
        b"\0",
    ]);
    prop::collection::vec(part, 0..16).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn cuts_change_no_answer(
        input in requests(),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let run = |cuts: &[usize]| {
            let mut shard = Shard::of(&Http1, &[("body_bytes_max", "4")]);
            shard.accept(0);
            shard.feed_cut(0, &input, cuts).unwrap();
            (text(shard.staged(0)), shard.server.report())
        };
        prop_assert_eq!(run(&[]), run(&cuts));
    }
}
