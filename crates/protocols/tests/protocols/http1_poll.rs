//! The pattern `poll` over `http1`: how a consumer sets its session up and goes on, against our own
//! server and against what others answer; how the server holds a request.

use crate::rig::{Client, Heard, Shard, exchange, trial};
use proptest::prelude::*;
use weigh_model::connection::Fault;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Dial, Invalid, Protocol, Role, Seat};
use weigh_model::server::ConnectionId;
use weigh_model::{Nanos, Trial};
use weigh_protocols::http1::Http1;

const URL: &str = "http://h:8080/readings";

fn poll(wait: Option<Nanos>) -> Trial {
    let mut trial = trial(&Http1, Pattern::Poll, Topology::FanIn, URL, &[]).unwrap();
    (trial.load.poll.limit, trial.load.poll.wait) = (Some(10), wait);
    trial
}

fn dial() -> Dial {
    Http1.dial(&poll(None)).unwrap()
}

fn consumer(dial: &Dial) -> Client {
    Client::new((dial.make)(Seat { index: 0, role: Role::Consumer }))
}

fn ask(client: &mut Client) {
    client.connection.poll().unwrap().ask(Nanos(0), &mut client.out);
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// The first line of the request that a client has sent.
fn asked(client: &mut Client) -> String {
    text(client.sent()).lines().next().unwrap_or_default().to_owned()
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn post(body: &str) -> String {
    let length = body.len();
    format!("POST /readings HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}")
}

fn messages(client: &mut Client) -> Vec<String> {
    let heard = client.heard.drain(..);
    let body = |heard| match heard {
        Heard::Message(_, body) => Some(text(body)),
        _ => None,
    };
    heard.filter_map(body).collect()
}

#[test]
fn a_session_begins_at_the_end_of_the_list_and_misses_nothing_after() {
    let mut shard = Shard::of(&Http1, &[]);
    shard.answer(post("{\"old\":1}").as_bytes());
    shard.accept(1);
    let mut client = consumer(&dial());
    exchange(&mut client, &mut shard, 1, &[]);
    assert_eq!(client.heard, [Heard::Ready]);
    client.heard.clear();
    for body in ["{\"n\":1}", "plain", "{\"n\":3}"] {
        shard.answer(post(body).as_bytes());
    }
    ask(&mut client);
    exchange(&mut client, &mut shard, 1, &[]);
    assert_eq!(client.heard.last(), Some(&Heard::Answered(Ok(()))));
    assert_eq!(messages(&mut client), ["{\"n\":1}", "plain", "{\"n\":3}"]);
    ask(&mut client);
    assert_eq!(asked(&mut client), "GET /readings?since=4&limit=10 HTTP/1.1");
    client.feed(ok("{\"readings\":[],\"next\":\"4\"}").as_bytes()).unwrap();
    assert_eq!(client.heard, [Heard::Answered(Ok(()))]);
}

/// A server that takes no limit of 0, and gives its readings out in small pages.
#[test]
fn another_server_is_followed_from_the_begin() {
    let mut client = consumer(&dial());
    assert_eq!(asked(&mut client), "GET /readings?limit=0 HTTP/1.1");
    client.feed(b"HTTP/1.1 422 No\r\nContent-Length: 3\r\n\r\nno\n").unwrap();
    assert_eq!(asked(&mut client), "GET /readings?limit=1000 HTTP/1.1");
    client.feed(ok("{\"next\": \"p/2\", \"readings\": [ {}, {} ]}").as_bytes()).unwrap();
    assert_eq!(asked(&mut client), "GET /readings?since=p%2F2&limit=1000 HTTP/1.1");
    assert_eq!(client.heard, []);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                   c\r\n{\"readings\":\r\nf\r\n[],\"next\":9.50}\r\n0\r\n\r\n";
    client.feed(chunked.as_bytes()).unwrap();
    assert_eq!(client.heard, [Heard::Ready]);
    ask(&mut client);
    assert_eq!(asked(&mut client), "GET /readings?since=9.50&limit=10 HTTP/1.1");
    client.heard.clear();
    client.feed(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    assert_eq!(client.heard, [Heard::Answered(Ok(()))]);
    ask(&mut client);
    client.feed(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert_eq!(client.heard[1..], [Heard::Answered(Err(503))]);
    ask(&mut client);
    assert!(text(client.sent()).contains("since=9.50&"), "the cursor was lost");
}

#[test]
fn what_is_no_list_ends_the_session_and_says_why() {
    let fault = |answer: &str| {
        let mut client = consumer(&dial());
        client.feed(answer.as_bytes()).unwrap_err()
    };
    let Fault::Malformed(why) = fault(&ok("[1,2]")) else { panic!("not malformed") };
    assert!(why.contains("\"readings\""), "{why}");
    assert!(matches!(fault("SSH-2.0-OpenSSH\r\n"), Fault::OtherProtocol(_)));
    let mut client = consumer(&dial());
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let result = client.feed(missing.as_bytes()).and_then(|()| client.feed(missing.as_bytes()));
    assert!(matches!(result, Err(Fault::Refused { code: 404, .. })), "{result:?}");
}

/// A connection that the server ends hands its cursor on to the next of its seat.
#[test]
fn the_next_connection_goes_on_from_the_cursor() {
    let dial = dial();
    let mut client = consumer(&dial);
    client.feed(ok("{\"readings\":[],\"next\":\"5\"}").as_bytes()).unwrap();
    client.feed(ok("{\"readings\":[],\"next\":\"5\"}").as_bytes()).unwrap();
    ask(&mut client);
    client.heard.clear();
    let last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 30\r\n\r\n\
                {\"readings\":[\"a\"],\"next\":\"6\"} ";
    client.feed(last.as_bytes()).unwrap();
    let message = Heard::Message(Vec::new(), b"a".to_vec());
    assert_eq!(client.heard, [message, Heard::Answered(Ok(())), Heard::Closing]);
    drop(client);
    let mut next = consumer(&dial);
    assert_eq!(next.heard, [Heard::Ready]);
    ask(&mut next);
    assert_eq!(asked(&mut next), "GET /readings?since=6&limit=10 HTTP/1.1");
    next.feed(ok("{\"readings\":[],\"next\":\"6\"}").as_bytes()).unwrap();
}

fn get(shard: &mut Shard, target: &str) -> (String, String) {
    let answer = shard.answer(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
    let answer = text(answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

#[test]
fn a_bad_cursor_is_answered_with_the_reason() {
    let mut shard = Shard::of(&Http1, &[]);
    shard.answer(post("{}").as_bytes());
    for (query, why) in [
        ("since=abc", "unknown cursor"),
        ("since=-1", "unknown cursor"),
        ("since=2", "beyond the list's end"),
        ("limit=x", "whole number"),
        ("since=1&wait=9", "unit"),
        ("since=1&wait=6m", "5m"),
    ] {
        let (status, body) = get(&mut shard, &format!("/readings?{query}"));
        assert_eq!(status, "HTTP/1.1 400 Bad Request", "{query}");
        assert!(body.contains(why), "{query}: {body}");
    }
    let (status, body) = get(&mut shard, "/readings?since=0&limit=5");
    assert_eq!((&*status, &*body), ("HTTP/1.1 200 OK", "{\"readings\":[{}],\"next\":\"1\"}"));
    assert_eq!(get(&mut shard, "/readings/x").0, "HTTP/1.1 404 Not Found");
}

#[test]
fn a_request_is_held_until_a_reading_comes_or_its_wait_is_over() {
    let mut shard = Shard::of(&Http1, &[]);
    let hold = "GET /readings?since=0&wait=30s HTTP/1.1\r\nHost: h\r\n\r\n";
    for connection in 1..=3 {
        shard.accept(connection);
        shard.feed(connection, hold.as_bytes()).unwrap();
        assert_eq!(shard.staged(connection), b"");
    }
    assert_eq!(shard.server.next_wake(), Some(Nanos::from_secs(30)));
    shard.close(3);
    // Whoever says more does not wait.
    shard.feed(2, b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let both = text(shard.staged(2));
    assert!(both.contains("\"readings\":[]") && both.ends_with("ok\n"), "{both}");
    shard.answer(post("{\"n\":1}").as_bytes());
    assert!(text(shard.staged(1)).ends_with("{\"readings\":[{\"n\":1}],\"next\":\"1\"}"));
    assert_eq!(shard.server.next_wake(), None);
    shard.feed(1, hold.replace("since=0", "since=1").as_bytes()).unwrap();
    assert_eq!(shard.server.wake(Nanos::from_secs(29), &mut shard.desk), shard.server.next_wake());
    assert_eq!(shard.staged(1), b"");
    shard.server.wake(Nanos::from_secs(30), &mut shard.desk);
    assert!(text(shard.staged(1)).ends_with("{\"readings\":[],\"next\":\"1\"}"));
}

/// A reading comes in by one shard, and somebody waits at another.
#[test]
fn shards_tell_each_other_of_readings() {
    let settings = poll(None).settings;
    let host = Http1.host(&settings).unwrap();
    let [mut one, mut other] = [0, 1].map(|shard| Shard::new((host.make)(shard)));
    other.accept(5);
    let hold = "GET /readings?since=0&wait=30s HTTP/1.1\r\nHost: h\r\n\r\n";
    other.feed(5, hold.as_bytes()).unwrap();
    one.answer(post("{}").as_bytes());
    assert_eq!(one.desk.notified, [1]);
    other.server.notified(Nanos(0), &mut other.desk);
    assert!(text(other.staged(5)).ends_with("{\"readings\":[{}],\"next\":\"1\"}"));
    other.server.closed(ConnectionId(5), Nanos(0), &mut other.desk);
}

#[test]
fn a_batch_that_is_no_array_is_refused_whole() {
    let mut shard = Shard::of(&Http1, &[]);
    let batch = |shard: &mut Shard, body: &str| {
        let post = post(body).replace("/readings", "/messages/batch");
        text(shard.answer(post.as_bytes()))
    };
    assert!(batch(&mut shard, "[{},\"x\",3]").starts_with("HTTP/1.1 201"));
    assert_eq!(shard.server.report().received, 3);
    for body in ["{}", "[{},", "[{}]x", ""] {
        let answer = batch(&mut shard, body);
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("JSON array"), "{answer}");
    }
    assert_eq!(shard.server.report().received, 3);
}

#[test]
fn contradictions_are_named_with_the_fix() {
    let wrong = |topology, pattern, given: &[(&str, &str)]| -> Invalid {
        let trial = trial(&Http1, pattern, topology, URL, given).unwrap();
        Http1.dial(&trial).err().expect("an error")
    };
    let shared = wrong(Topology::Shared, Pattern::Poll, &[]);
    assert_eq!(shared.place, "load.topology");
    assert_eq!(wrong(Topology::FanIn, Pattern::Poll, &[("method", "GET")]).place, "http1.method");
    let closing = wrong(Topology::FanIn, Pattern::Poll, &[("keep_alive", "false")]);
    assert_eq!(closing.place, "http1.keep_alive");
    assert_eq!(wrong(Topology::FanIn, Pattern::Batch, &[("expect", "true")]).place, "http1.expect");
}

proptest! {
    #[test]
    fn no_answer_makes_a_consumer_panic(bytes: Vec<u8>, cuts: Vec<usize>, head in 0..3usize) {
        let mut client = consumer(&dial());
        let head: &str = ["", "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{\"readings\":[",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n"][head];
        let input = [head.as_bytes(), &bytes].concat();
        let _ = client.feed_cut(&input, &cuts).and_then(|()| client.end());
    }

    #[test]
    fn cuts_change_nothing(cuts: Vec<usize>) {
        let mut shard = Shard::of(&Http1, &[]);
        shard.accept(1);
        let mut client = consumer(&dial());
        exchange(&mut client, &mut shard, 1, &cuts);
        shard.answer(post("{\"n\":1}").as_bytes());
        ask(&mut client);
        exchange(&mut client, &mut shard, 1, &cuts);
        prop_assert_eq!(messages(&mut client), ["{\"n\":1}"]);
    }
}
